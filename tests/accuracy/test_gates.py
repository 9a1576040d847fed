"""What ACCURACY.md promises, checked on the known rows and guarded by the small table."""

from __future__ import annotations

import numpy as np
import pytest

from ledgerkit._accuracy import report
from ledgerkit._accuracy.prepared import PATHS, Constants, serving_of
from ledgerkit._accuracy.score import coverage, score, split_quantiles
from ledgerkit._accuracy.servers import calibrated
from ledgerkit._calibration import priced
from ledgerkit._steady.bands import factor
from ledgerkit._steady.result import SteadyState


def _errors(study, axis):
    held, judged = study.held_out[axis], study.targets.ttft_judged > 0
    tpot, ttft = study.measured
    return score(held.tpot_s, tpot), score(held.ttft_s[judged], ttft[judged])


def test_gates_hold_on_the_known_rows(known):
    assert [gate.name for gate in report.gates(known, "en") if not gate.met] == []
    tpot, ttft = _errors(known, "model")
    assert (tpot.rows, ttft.rows) == (1206, 1173)
    assert tpot.median <= 10
    assert tpot.mean <= 14
    assert ttft.median <= 32
    assert abs(tpot.bias) <= 5
    assert abs(ttft.bias) <= 5
    assert not known.refused


def test_the_band_covers_what_it_says(known):
    judged = known.targets.ttft_judged > 0
    for axis in ("model", "combination"):
        held = known.held_out[axis]
        for quantity, predicted, measured in (
            ("tpot", held.tpot_s, known.measured[0]),
            ("ttft", held.ttft_s[judged], known.measured[1][judged]),
        ):
            assert 0.85 <= coverage(predicted, measured, factor(quantity, "inside")) <= 0.95


def test_shipped_factors_are_the_ones_that_the_rows_give(known):
    lines = report.band_lines(known)
    for quantity in ("TPOT", "TTFT"):
        found = max(line.quantile for line in lines if line.quantity == quantity)
        assert factor(quantity.lower(), "inside") == pytest.approx(found, rel=0.02)
    for line in lines:
        assert 0.85 <= line.own_coverage <= 0.95


def test_other_ways_of_holding_out_are_not_much_worse(known):
    for axis in ("device", "engine", "combination"):
        tpot, ttft = _errors(known, axis)
        assert tpot.median <= 10
        assert tpot.mean <= 14
        assert ttft.median <= 32


def test_nothing_fitted_is_nearly_as_good(known):
    """Efficiencies from kernels carry the accuracy; eight constants only trim it."""
    assert score(known.shipped.tpot_s, known.measured[0]).median <= 10
    fitted = known.constants.vector()
    folds = np.array([fold.vector() for fold in known.folds["model"]])
    assert np.all(folds[:, 0] > 0.2e-3)
    assert np.all(folds[:, 0] < 1.2e-3)
    assert 0.05 < fitted[3] < 0.15


def test_disaggregated_rows_with_constants_of_the_others(known):
    tpot, ttft = known.pools_measured
    assert score(known.pool_tpot_s, tpot).median <= 16
    assert score(known.pool_ttft_s, ttft).median <= 40
    assert coverage(known.pool_tpot_s, tpot, factor("tpot", "inside")) >= 0.85
    assert coverage(known.pool_ttft_s, ttft, factor("ttft", "disaggregated")) >= 0.85


def test_one_point_of_a_server_halves_the_error_of_its_others(known):
    found = calibrated(known, 1)
    assert found.servers > 50
    assert found.after.median <= 6.1
    assert found.after.median < 0.7 * found.before.median
    assert found.factor <= factor("tpot", "calibrated") * 1.02


def test_prepared_rows_are_the_product(public):
    """The arrays that constants are fitted on give what lk.steady_state gives, row by row."""
    constants = Constants(0.7e-3, 12e-6, 30e-6, 0.07, (0.08, 0.03, 0.2, 0.05))
    times = public.prepared.times(constants)
    host = {"host_step_s": 0.7e-3, "host_sequence_s": 12e-6, "host_prefill_kernel_s": 30e-6}
    for i, (row, setup) in enumerate(zip(public.judged, public.setups, strict=True)):
        table = priced(setup.table(), host)
        serving = serving_of(row, constants)
        if not serving.in_step(table):
            serving = serving.model_copy(update={"wait_share": 0.07})
        state = SteadyState(table, setup.workload, serving)
        assert state.tpot_s == pytest.approx(times.tpot_s[i], rel=1e-12)
        assert state.ttft_s == pytest.approx(times.ttft_s[i], rel=1e-12)


def test_the_small_table_guards_the_model(public):
    """A row of each group weighs as much as the worst group's: limits are those of such a table."""
    assert not public.refused
    tpot, ttft = _errors(public, "model")
    assert tpot.median <= 11
    assert tpot.mean <= 18
    assert ttft.median <= 45
    assert coverage(public.held_out["model"].tpot_s, public.measured[0],
                    factor("tpot", "inside")) >= 0.85  # fmt: skip
    assert score(public.pool_tpot_s, public.pools_measured[0]).median <= 20


def test_engines_without_a_fitted_path_get_the_default():
    constants = Constants(1, 1, 1, 1, (1.0, 2.0, 3.0, 4.0))
    assert [constants.path_s(engine, client or "burst") for engine, client in PATHS] == [1, 2, 3, 4]
    assert constants.path_s("other", "burst") == 0.045
    assert Constants.of(constants.vector()) == constants


def test_own_quantiles_never_see_their_fold():
    """Moving a group's residuals moves the factor of the others, not its own."""
    rng = np.random.default_rng(1)
    measured = np.ones(60)
    names = [f"g{i // 10}" for i in range(60)]
    predicted = np.exp(0.1 * rng.normal(size=60))
    _, before = split_quantiles(predicted, measured, names, names, 0.9)
    predicted[:10] = 100.0
    _, after = split_quantiles(predicted, measured, names, names, 0.9)
    assert after[:10] == pytest.approx(before[:10])
    assert np.all(after[10:] > before[10:])
