"""Calibrations: exact on one point, honest on more, and carried through the books."""

from __future__ import annotations

import math

import polars as pl
import pytest

import ledgerkit as lk
from ledgerkit._steady.bands import factor
from ledgerkit.errors import LoadTestError

MODEL, DEVICE = "llama-3.1-8b", "h100-sxm-80gb"
LAYOUT = lk.Deployment(tp=1)


def _point(clients, prompt=2048, output=512):
    return lk.Workload(prompt_tokens=prompt, output_tokens=output, concurrency=clients)


def _measured(clients, seconds=None, slower=1.0, **more):
    point = _point(clients)
    tpot = seconds or slower * lk.steady_state(MODEL, DEVICE, LAYOUT, point).tpot_s
    return {"prompt_tokens": 2048, "output_tokens": 512, "concurrency": clients, "tpot_s": tpot,
            **more}  # fmt: skip


def test_one_point_is_met_exactly_and_scales_the_others():
    found = lk.calibrate(_measured(16, 0.02), MODEL, DEVICE, LAYOUT)
    state = lk.steady_state(MODEL, DEVICE, LAYOUT, _point(16), calibration=found)
    assert state.tpot_s == pytest.approx(0.02, rel=1e-6)
    plain = lk.steady_state(MODEL, DEVICE, LAYOUT, _point(16))
    assert found.tpot_factor == pytest.approx(0.02 / plain.tpot_s, rel=1e-2)
    for clients in (1, 64):
        before = lk.steady_state(MODEL, DEVICE, LAYOUT, _point(clients))
        after = lk.steady_state(MODEL, DEVICE, LAYOUT, _point(clients), calibration=found)
        assert after.tpot_s / before.tpot_s == pytest.approx(found.tpot_factor, rel=0.02)
        assert after.tpot_band.factor == factor("tpot", "calibrated")


def test_a_calibrated_ledger_scales_decode_balances_and_says_so():
    told = {"engine": "vLLM 0.26.0", "date": "2026-05-01"}
    found = lk.calibrate(_measured(16, slower=1.3), MODEL, DEVICE, LAYOUT, provenance=told)
    plain = lk.ledger(MODEL, DEVICE, LAYOUT, _point(8))
    books = lk.ledger(MODEL, DEVICE, LAYOUT, _point(8), calibration=found)
    assert books.tpot_s == pytest.approx(found.tpot_factor * plain.tpot_s, rel=1e-12)
    assert books.ttft_s == plain.ttft_s
    seconds = books.entries.filter(phase="decode", resource="time")
    assert set(seconds["basis"]) == {"calibrated"}
    assert all("vLLM 0.26.0" in source for source in seconds["source"])
    total = math.fsum(seconds["amount_device"])
    assert abs(total - books.tpot_s) <= 4 * math.ulp(books.tpot_s)
    kept = books.entries.filter(phase="prefill")
    assert "calibrated" not in set(kept["basis"])
    for explained in books.explain():
        assert explained.evaluate() == pytest.approx(explained.amount, rel=1e-9)


def test_another_workload_of_a_calibrated_ledger_is_calibrated_too():
    found = lk.calibrate(_measured(16, slower=1.3), MODEL, DEVICE, LAYOUT)
    moved = lk.ledger(MODEL, DEVICE, LAYOUT, _point(16), calibration=found).at(_point(8))
    fresh = lk.ledger(MODEL, DEVICE, LAYOUT, _point(8), calibration=found)
    assert moved.tpot_s == fresh.tpot_s
    assert moved.entries.equals(fresh.entries)
    assert "calibrated" in moved.entries["basis"].to_list()


def test_more_points_find_the_constant_that_moved():
    """A server whose host takes 40 instead of 10 us per sequence, everything else as predicted."""
    rows = []
    for clients in (1, 16, 64, 128):
        tpot = lk.steady_state(MODEL, DEVICE, LAYOUT, _point(clients)).tpot_s
        rows.append(_measured(clients, tpot + 30e-6 * clients))
    found = lk.calibrate(rows, MODEL, DEVICE, LAYOUT)
    learned = {one.name: one for one in found.learned}
    moved = learned["host_sequence_s"]
    # the prior holds it back, and what it says about itself contains the truth
    assert moved.value > 2 * moved.prior
    assert abs(math.log(40e-6 / moved.value)) < 2 * math.log(moved.spread)
    assert abs(math.log(learned["tpot_factor"].value)) < 2 * math.log(learned["tpot_factor"].spread)
    assert moved.learned > 0.5
    # nothing was said about the launch floor of prefill steps: it stays where it was
    assert learned["host_prefill_kernel_s"].learned < 0.1
    assert found.residual < 0.02
    state = lk.steady_state(MODEL, DEVICE, LAYOUT, _point(96), calibration=found)
    plain = lk.steady_state(MODEL, DEVICE, LAYOUT, _point(96)).tpot_s
    assert state.tpot_s == pytest.approx(plain + 30e-6 * 96, rel=0.02)


def test_first_tokens_inform_the_request_path():
    rows = [_measured(n, ttft_s=0.25) for n in (1, 2)]
    found = lk.calibrate(rows, MODEL, DEVICE, LAYOUT)
    assert found.value("request_path_s") > 0.1
    state = lk.steady_state(MODEL, DEVICE, LAYOUT, _point(1), calibration=found)
    assert state.serving.request_path_s == found.value("request_path_s")
    # what the caller states wins
    stated = lk.steady_state(MODEL, DEVICE, LAYOUT, _point(1), calibration=found, request_path_s=0)
    assert stated.serving.request_path_s == 0


def test_pure_decode_steps_calibrate_without_the_prefills_of_others():
    books = lk.ledger(MODEL, DEVICE, LAYOUT, _point(32))
    row = {"prompt_tokens": 2048, "output_tokens": 512, "concurrency": 32, "itl_s": books.tpot_s}
    assert lk.calibrate(row, MODEL, DEVICE, LAYOUT).tpot_factor == pytest.approx(1.0, abs=1e-6)


def test_a_load_test_feeds_it_directly():
    cells = pl.DataFrame(
        {
            "cell": ["2K x 4", "2K x 16"], "run": [0, 0], "prompt_tokens": [2048.0, 2048.0],
            "output_tokens": [512.0, 512.0], "concurrency": [4.0, 15.7], "itl_s": [0.009, 0.011],
            "ttft_p50_s": [0.12, 0.3],
        }
    )  # fmt: skip
    results = lk.loadtest.Results.from_cells(cells, {"server": "vLLM 0.26.0"})
    found = lk.calibrate(results, MODEL, DEVICE, LAYOUT)
    assert len(found.measured) == 2
    assert found.measured[1].concurrency == 16
    assert ("server", "vLLM 0.26.0") in found.provenance
    assert found.tpot_factor > 1


def test_it_survives_a_file(tmp_path):
    found = lk.calibrate(_measured(16, slower=0.8), MODEL, DEVICE, LAYOUT)
    path = found.save(tmp_path / "server" / "calibration.json")
    assert lk.Calibration.load(path) == found
    (tmp_path / "other.json").write_text("[1, 2]", encoding="utf-8")
    with pytest.raises(LoadTestError, match="does not hold a calibration"):
        lk.Calibration.load(tmp_path / "other.json")


def test_it_is_frozen_and_says_what_it_learned():
    found = lk.calibrate(_measured(16, slower=1.1), MODEL, DEVICE, LAYOUT)
    with pytest.raises(Exception, match="frozen"):
        found.model = "other"
    assert found.table.columns == [
        "name", "prior", "value", "prior_spread", "spread", "learned",
    ]  # fmt: skip
    assert "1 points" in repr(found)


def test_another_deployment_is_told_and_another_device_gets_no_narrow_band():
    found = lk.calibrate(_measured(16, slower=1.1), MODEL, DEVICE, LAYOUT)
    two = lk.steady_state(MODEL, DEVICE, lk.Deployment(tp=2), _point(8), calibration=found)
    assert any("another deployment" in note for note in two.notes)
    assert two.tpot_band.factor == factor("tpot", "calibrated")
    far = lk.steady_state(MODEL, "h200-sxm-141gb", LAYOUT, _point(8), calibration=found)
    assert any("another hardware" in note for note in far.notes)
    assert far.tpot_band.factor == factor("tpot", "inside")


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        ([], "nothing to calibrate on"),
        ([{"prompt_tokens": 1, "output_tokens": 1, "concurrency": 1}], "nothing to calibrate on"),
        ([{"prompt_tokens": 1, "tpot_s": 0.01}], "needs prompt_tokens"),
        ([{"prompt_tokens": 1, "output_tokens": 1, "concurrency": 1, "tpot_s": -1.0}],
         "nothing to calibrate on"),
    ],
)  # fmt: skip
def test_useless_measurements_are_refused(rows, match):
    with pytest.raises(LoadTestError, match=match):
        lk.calibrate(rows, MODEL, DEVICE, LAYOUT)
