"""Verdicts on data whose truth is known, and every pitfall."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ledgerkit as lk
from benchmarks.loadtest_coverage import Case, run_case
from ledgerkit.errors import LoadTestError
from ledgerkit.loadtest._basis import Basis
from ledgerkit.loadtest._fit import fit_steps, relative_fit
from ledgerkit.loadtest._settle import Room, next_cells

CONTEXTS, MANY = (1024, 8192, 32768, 131072), (1, 4, 8, 16)


def rows(step, contexts=CONTEXTS, many=MANY, runs=3, noise=0.01, seed=0, **more):
    random = np.random.default_rng(seed)
    cells = [(c, b) for c in contexts for b in many]
    found = []
    for run in range(runs):
        for c, b in (cells[i] for i in random.permutation(len(cells))):
            found.append(
                {
                    "prompt_tokens": c, "concurrency_requested": b, "concurrency": b, "run": run,
                    "order": len(found),
                    "itl_s": step(c, b) * (1 + noise * random.standard_normal()),
                    **{name: value(c, b) if callable(value) else value
                       for name, value in more.items()},
                }
            )  # fmt: skip
    return pl.DataFrame(found)


def dense(c, b):
    return (6.0 + 0.02 * b + 4e-5 * b * c) * 1e-3


def keys(found):
    return {finding.key for finding in found.findings}


# fits ------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(st.floats(1e-4, 1), st.floats(0, 1e-2), st.floats(0, 1e-6))
def test_exact_data_give_the_exact_surface(t0, w, a):
    c, b = np.array([(c, b) for c in CONTEXTS for b in MANY], dtype=float).T
    fit = fit_steps(Basis(), c, b, t0 + w * b + a * b * c, tuple("x" * 16), tuple(range(16)))
    assert fit.theta == pytest.approx([t0, w, a], rel=1e-6, abs=1e-9)
    share = fit.share_of((2,), 32768, 8)
    assert share.value == pytest.approx(a * 8 * 32768 / (t0 + w * 8 + a * 8 * 32768), abs=1e-6)
    assert share.low <= share.value <= share.high


def test_coefficients_are_never_negative():
    falling = rows(lambda c, b: 0.02 - 1e-4 * b)  # noqa: ARG005
    found = lk.loadtest.diagnose(falling)
    assert (found.fit.theta >= 0).all()
    assert "at_bound" in keys(found)
    assert 0 <= found.attention_kv_share.low <= found.attention_kv_share.high <= 1


def test_the_fit_is_scale_free():
    frame = rows(dense)
    slow = frame.with_columns(pl.col("itl_s") * 1000)
    a, b = lk.loadtest.diagnose(frame), lk.loadtest.diagnose(slow)
    assert a.attention_kv_share.value == pytest.approx(b.attention_kv_share.value, rel=1e-6)
    assert a.attention_kv_share.low == pytest.approx(b.attention_kv_share.low, rel=1e-5)


def test_weighting_is_relative_not_absolute():
    # errors of 10 % on long steps must not drown errors of 10 % on short ones
    random = np.random.default_rng(3)
    x = np.repeat([1.0, 10.0, 100.0], 200)
    y = (1 + 2 * x) * (1 + 0.1 * random.standard_normal(600))
    fit = relative_fit(np.stack([np.ones_like(x), x], axis=1), y)
    low, high = fit.coefficient(0).low, fit.coefficient(0).high
    assert low <= 1 <= high
    assert high - low < 0.5


def test_a_design_without_two_directions_is_not_estimable():
    diagonal = pl.concat([rows(dense, (1024,), (1,)), rows(dense, (8192,), (8,))])
    found = lk.loadtest.diagnose(diagonal)
    assert (found.verdict, found.judgement.rule) == ("undetermined", "not_estimable")
    assert found.next_cells


# verdicts --------------------------------------------------------------------------------------


def test_kv_dominates():
    found = lk.loadtest.diagnose(rows(dense), at=(131072, 8))
    assert (found.verdict, found.judgement.rule) == ("attention_kv", "kv_dominates")
    assert found.attention_kv_share.low <= 42 / 48.16 <= found.attention_kv_share.high


def test_weights_where_the_cache_is_minor():
    found = lk.loadtest.diagnose(rows(dense), at=(1024, 8))
    assert (found.verdict, found.judgement.suspect) == ("weights", None)


def test_mixed_between_and_on_the_line():
    assert lk.loadtest.diagnose(rows(dense), at=(8192, 8)).judgement.rule == "kv_between"
    wide = rows(dense, noise=0.12, seed=4)
    found = lk.loadtest.diagnose(wide, at=(10_000, 16))  # 6.4 of 12.72 ms
    assert (found.verdict, found.judgement.rule) == ("mixed", "kv_straddles")
    assert found.next_cells


def test_neither_context_nor_batch_helps():
    found = lk.loadtest.diagnose(rows(lambda c, b: (1 + 4 * b) * 1e-3), at=(8192, 8))  # noqa: ARG005
    assert (found.verdict, found.judgement.rule) == ("service", "neither_helps")


def test_the_engine_is_not_what_the_client_waits_for():
    gap = rows(dense, engine_itl_s=lambda c, b: 0.7 * dense(c, b))
    found = lk.loadtest.diagnose(gap)
    assert (found.verdict, found.judgement.rule) == ("service", "engine_gap")
    assert found.gap.value == pytest.approx(0.3, abs=0.02)
    small = rows(dense, engine_itl_s=lambda c, b: 0.95 * dense(c, b))
    assert lk.loadtest.diagnose(small).verdict != "service"


def test_a_misfit_needs_the_model_before_it_blames_anything():
    def bent(c, b):  # a step in b that no basis has
        return dense(c, b) * (1.6 if b == 8 else 1.0)

    found = lk.loadtest.diagnose(rows(bent))
    assert (found.verdict, found.judgement.rule) == ("undetermined", "misfit_without_model")
    found = lk.loadtest.diagnose(rows(bent), model="llama-3.1-8b")
    assert (found.verdict, found.judgement.rule) == ("service", "misfit")


@pytest.mark.parametrize("slug", ["qwen3-30b-a3b", "gemma-3-27b-it", "deepseek-v3.2"])
def test_the_right_basis_fits_where_the_plain_one_does_not(slug):
    model = lk.load_model(slug)
    basis = Basis(model)
    theta = np.array([4e-3, 6e-13 if basis.weights_kind == "distinct_experts" else 1e-5, 4e-13])

    def step(c, b):
        return float(basis.columns(np.array([float(c)]), np.array([float(b)]))[0] @ theta)

    # from below the window to far beyond it
    frame = rows(step, contexts=(128, 512, 2048, 16384), noise=0.002)
    right = lk.loadtest.diagnose(frame, model=model, at=(32768, 8))
    plain = lk.loadtest.diagnose(frame, at=(32768, 8))
    assert right.fit.theta == pytest.approx(theta, rel=0.1)
    assert right.fit.lack_of_fit().p > 1e-3
    assert plain.fit.lack_of_fit().p < 1e-6


@pytest.mark.parametrize(
    ("frame", "rule"),
    [
        (rows(dense, contexts=(1024,)), "one_context"),
        (rows(dense, many=(4,)), "one_concurrency"),
        (rows(dense, runs=2), "few_runs"),
        (rows(dense, noise=0.15, contexts=(1024, 2048), many=(1, 2)), "wide_interval"),
        (rows(dense, noise=0.6, seed=2), "noisy"),
    ],
)
def test_what_cannot_be_said_is_not_said_and_the_missing_cells_are_named(frame, rule):
    frame = frame.with_columns(pl.col("itl_s").abs())
    found = lk.loadtest.diagnose(frame, at=(8192, 8))
    assert (found.verdict, found.judgement.rule) == ("undetermined", rule)
    assert found.next_cells
    assert all(cell.runs >= 1 for cell in found.next_cells)


def test_the_named_cell_mostly_settles_it():
    open_cases = narrower = settled = 0
    for seed in range(20):
        few = rows(dense, contexts=(1024, 8192), many=(1, 4), noise=0.1, seed=seed)
        open_ = lk.loadtest.diagnose(few, at=(131072, 4))
        assert open_.verdict in ("undetermined", "mixed", "attention_kv")
        if not open_.next_cells:
            continue
        cell = open_.next_cells[0]
        more = rows(dense, (cell.prompt_tokens,), (cell.concurrency,), cell.runs, 0.1, seed + 99)
        after = lk.loadtest.diagnose(pl.concat([few, more]), at=(131072, 4))
        narrower += after.attention_kv_share.width < open_.attention_kv_share.width
        open_cases += 1
        settled += after.verdict == "attention_kv"
    assert open_cases >= 10
    assert narrower >= 0.9 * open_cases
    assert settled >= 0.8 * open_cases


def test_further_cells_respect_the_context_limit():
    fit = lk.loadtest.diagnose(rows(dense, noise=0.1)).fit
    room = Room(tokens=9000, sequences=4, measured=(512,))
    found = next_cells(fit, (8192, 8), (0.2, 0.5), room=room, count=20)
    assert {cell.prompt_tokens for cell in found} == {512, 1024, 8192}
    assert {cell.concurrency for cell in found} == {1, 4}


@pytest.mark.parametrize("cells", [{"contexts": (1024,)}, {"many": (1,)}, {"runs": 2}])
def test_missing_cells_are_such_as_the_server_takes(cells):
    small = lk.Deployment(max_model_len=2304, max_num_seqs=4)
    design = {"contexts": (128, 1024), "many": (1, 4), **cells}
    found = lk.loadtest.diagnose(rows(dense, **design), deployment=small)
    assert found.next_cells
    assert all(cell.prompt_tokens < 2304 for cell in found.next_cells)
    assert all(cell.concurrency <= 4 for cell in found.next_cells)


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_an_expected_width_is_a_width(seed):
    """Also where noise makes the fitted cache negative."""
    frame = rows(lambda c, b: 0.1 - 1e-6 * c + 0.01 * b, (128, 2048), (1, 4), 3, 0.3, seed)
    for cell in lk.loadtest.diagnose(frame.with_columns(pl.col("itl_s").abs())).next_cells:
        assert cell.expected_width is None or 0 <= cell.expected_width <= 1


# anchors ---------------------------------------------------------------------------------------


def measured_by_the_books(model, device, extra=0.0):
    from ledgerkit.loadtest._anchors import predicted_ledger

    def step(c, b):
        return predicted_ledger(model, device, lk.Deployment(), c, b).tpot_s + extra

    return rows(step, contexts=(1024, 8192, 32768), noise=0.005)


def test_anchors_are_one_where_the_books_are_right():
    model, device = lk.load_model("llama-3.1-8b"), lk.load_hardware("h100-sxm-80gb")
    found = lk.loadtest.diagnose(
        measured_by_the_books(model, device), model=model, hardware=device, at=(32768, 8)
    )
    assert found.anchors.cache.value == pytest.approx(1.0, abs=0.03)
    ratios = found.table["measured_over_predicted"]
    assert ratios.to_numpy() == pytest.approx(np.ones(len(ratios)), abs=0.02)
    books = lk.ledger(model, device, None, lk.Workload(prompt_tokens=32768, output_tokens=1,
                                                       concurrency=8))  # fmt: skip
    cache = books.entries.filter(
        (pl.col("phase") == "decode")
        & (pl.col("resource") == "time")
        & pl.col("account").is_in(["core", "cache"])
    )["amount_device"].sum()
    assert found.attention_kv_share.value == pytest.approx(cache / books.tpot_s, abs=0.01)


def test_a_late_constant_is_scheduling():
    model, device = lk.load_model("llama-3.1-8b"), lk.load_hardware("h100-sxm-80gb")
    late = measured_by_the_books(model, device, extra=0.02)
    found = lk.loadtest.diagnose(late, model=model, hardware=device, at=(1024, 4))
    assert (found.verdict, found.judgement.suspect) == ("weights", "scheduling")
    assert found.anchors.constant.low > 1.3
    assert "κ0" in found.text("zh")
    assert "κ0" in found.text("en")


def test_compute_that_grows_with_the_sequences_is_told_from_a_service_chain():
    from ledgerkit.loadtest._anchors import predicted_ledger

    device = lk.Hardware(slug="cpu", memory_bytes=16 * 10**9, memory_bytes_per_s=20e9,
                         peak_flop_per_s={"fp32": 40e9})  # fmt: skip
    model = lk.load_model("smollm2-135m")
    layout = lk.Deployment(weights="q4_1", kv_dtype="fp16", engine="llama.cpp")

    def step(c, b):
        return predicted_ledger(model, device, layout, c, b).tpot_s

    frame = rows(step, contexts=(128, 512, 2048), many=(1, 2, 4, 8))
    blind = lk.loadtest.diagnose(frame, at=(128, 8))
    assert (blind.verdict, blind.judgement.rule) == ("service", "neither_helps")
    assert "hardware=" in blind.text("en")
    seeing = lk.loadtest.diagnose(
        frame, model=model, hardware=device, deployment=layout, at=(128, 8)
    )
    assert (seeing.verdict, seeing.judgement.suspect) == ("weights", "compute")
    assert seeing.anchors.sequence.low <= 1.0 <= seeing.anchors.sequence.high


# pitfalls --------------------------------------------------------------------------------------


PITFALLS = {
    "preemption": {"preemptions": lambda c, b: float(c == 131072 and b == 16)},
    "achieved_concurrency": {"concurrency": lambda _, b: b * 0.8 if b == 16 else float(b)},
    "failed_requests": {"failed": 1},
    "prefix_hits": {"cached_tokens": 512.0},
    "output_not_fixed": {"output_tokens_min": 90.0, "output_tokens_max": 128.0},
    "few_steady_tokens": {"steady_tokens": 50.0},
    "prefill_in_decode": {"itl_median_s": lambda c, b: 0.7 * dense(c, b)},
    "uneven_steps": {"itl_median_s": lambda c, b: 0.7 * dense(c, b), "itl_method": "steady window"},
    "tokens_from_chunks": {"tokens_from": "chunks"},
    "several_tokens_per_chunk": {"tokens_per_chunk": 2.4},
    "no_steady_window": {"itl_method": "no steady window"},
}


@pytest.mark.parametrize("key", PITFALLS)
def test_every_pitfall_is_seen_and_said(key):
    clean = lk.loadtest.diagnose(rows(dense))
    assert key not in keys(clean)
    found = lk.loadtest.diagnose(rows(dense, **PITFALLS[key]))
    assert key in keys(found)
    for language in ("zh", "en"):
        assert len(found.text(language).splitlines()) > len(clean.text(language).splitlines())


def test_preempted_runs_are_left_out():
    found = lk.loadtest.diagnose(rows(dense, **PITFALLS["preemption"]))
    assert found.cells.height == 45


def test_the_achieved_concurrency_is_used():
    def served(c, b):
        return dense(c, min(b, 8))

    frame = rows(served, concurrency=lambda _, b: float(min(b, 8)))
    found = lk.loadtest.diagnose(frame, at=(32768, 8))
    exact = 4e-5 * 8 * 32768 / (6.16 + 4e-5 * 8 * 32768)
    assert found.attention_kv_share.low <= exact <= found.attention_kv_share.high


def test_padded_graphs_are_noted_for_engines_that_pad():
    odd = rows(dense, many=(1, 4, 9, 16))
    assert "graph_padding" in keys(lk.loadtest.diagnose(odd, deployment=lk.Deployment()))
    assert "graph_padding" not in keys(lk.loadtest.diagnose(odd))


def test_an_outlier_is_named_left_out_and_changes_nothing():
    frame = rows(dense)
    spiked = frame.with_columns(
        pl.when(pl.int_range(pl.len()) == 7).then(3 * pl.col("itl_s")).otherwise("itl_s")
        .alias("itl_s")
    )  # fmt: skip
    found = lk.loadtest.diagnose(spiked, at=(32768, 8))
    assert "outlier" in keys(found)
    clean = lk.loadtest.diagnose(frame, at=(32768, 8))
    assert found.verdict == clean.verdict
    assert found.attention_kv_share.value == pytest.approx(clean.attention_kv_share.value, abs=0.01)
    assert found.cells.height == frame.height - 1


def test_drift_in_a_shuffled_test_is_a_warning():
    frame = rows(dense, noise=0.01)
    drifting = frame.with_columns(pl.col("itl_s") * (1 + 0.15 * pl.col("order") / 48))
    found = lk.loadtest.diagnose(drifting)
    (drift,) = [finding for finding in found.findings if finding.key == "drift"]
    assert drift.values["drift"] == pytest.approx(0.15, abs=0.03)
    assert drift.severity == "warning"


def test_drift_in_an_ordered_test_rules_out_a_verdict():
    frame = rows(dense, noise=0.01).sort("concurrency_requested", "prompt_tokens", "run")
    place = pl.int_range(pl.len())
    ordered = frame.with_columns(place.alias("order"))
    assert {"ordered"} <= keys(lk.loadtest.diagnose(ordered))
    # the first cell comes back at the end, 30 % slower
    last = ordered[0].with_columns(order=pl.lit(48, pl.Int64), run=pl.lit(3, pl.Int64))
    drifting = pl.concat([ordered, last]).with_columns(
        pl.col("itl_s") * (1 + 0.3 * pl.col("order") / 48)
    )
    found = lk.loadtest.diagnose(drifting)
    assert (found.verdict, found.judgement.rule) == ("undetermined", "blocked")


def test_a_ttft_that_does_not_grow_betrays_the_prefix_cache():
    frame = rows(dense, ttft_p50_s=lambda c, _: 0.05 + 1e-8 * c)
    found = lk.loadtest.diagnose(frame)
    assert {"ttft_does_not_grow", "ttft_constant"} <= keys(found)
    fair = rows(dense, ttft_p50_s=lambda c, _: 0.001 + 2e-5 * c + 1e-10 * c * c)
    found = lk.loadtest.diagnose(fair)
    assert not {"ttft_does_not_grow", "ttft_constant"} & keys(found)
    assert found.ttft.constant_share.value == pytest.approx(0.0466, abs=0.01)
    assert found.ttft.attention_over_linear == pytest.approx(131072 * 1e-10 / 2e-5, rel=0.1)


def test_an_extrapolation_is_said():
    few = rows(dense, contexts=(1024, 8192))
    assert "extrapolated" in keys(lk.loadtest.diagnose(few, at=(131072, 8)))
    assert "extrapolated" not in keys(lk.loadtest.diagnose(few, at=(8192, 8)))


# what goes in and comes out --------------------------------------------------------------------


def test_bootstrap_needs_ten_runs_and_agrees_with_delta():
    with pytest.raises(LoadTestError, match="10 runs"):
        lk.loadtest.diagnose(rows(dense), interval="bootstrap")
    many = rows(dense, runs=12, noise=0.05)
    delta = lk.loadtest.diagnose(many, at=(32768, 8)).attention_kv_share
    found = lk.loadtest.diagnose(many, at=(32768, 8), interval="bootstrap")
    assert found.interval_method == "bootstrap"
    assert found.attention_kv_share.width == pytest.approx(delta.width, rel=0.6)


@pytest.mark.parametrize(
    "column",
    [
        pl.col("itl_s").alias("tpot_p50_s"),
        (1 / pl.col("itl_s")).alias("tokens_per_s_one"),
        (pl.col("concurrency") / pl.col("itl_s")).alias("tokens_per_s"),
    ],
)
def test_other_measures_of_a_step_are_understood(column):
    frame = rows(dense)
    expected = lk.loadtest.diagnose(frame, at=(32768, 8)).attention_kv_share
    found = lk.loadtest.diagnose(frame.with_columns(column).drop("itl_s"), at=(32768, 8))
    assert found.attention_kv_share.value == pytest.approx(expected.value)


@pytest.mark.parametrize(
    "bad",
    [
        pl.DataFrame({"prompt_tokens": [1]}),
        pl.DataFrame({"itl_s": [0.1]}),
        pl.DataFrame({"itl_s": [0.1], "prompt_tokens": [None], "concurrency_requested": [1]}),
    ],
)
def test_rows_that_cannot_be_placed(bad):
    with pytest.raises(LoadTestError):
        lk.loadtest.diagnose(bad)


def test_an_empty_or_dead_test_is_undetermined():
    dead = rows(dense).with_columns(itl_s=pl.lit(None, pl.Float64))
    found = lk.loadtest.diagnose(dead)
    assert (found.verdict, found.judgement.rule) == ("undetermined", "no_rows")
    with pytest.raises(LoadTestError, match="no fit"):
        found.shares([1], [1])


@pytest.mark.parametrize("at", [(0, 1), (1, -1), (float("nan"), 1), (1024, float("inf"))])
def test_operating_points_that_make_no_sense(at):
    with pytest.raises(LoadTestError, match="operating point"):
        lk.loadtest.diagnose(rows(dense), at=at)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_words_are_those_of_the_article(language):
    texts = {
        at: lk.loadtest.diagnose(rows(dense), at=at).text(language)
        for at in ((131072, 8), (1024, 8), (8192, 8))
    }
    zh = ["Attention / KV 账更可疑", "权重读取 / FFN / 调度更可疑", "混合瓶颈"]
    en = ["Attention / KV", "weights, FFN, scheduling", "mixed"]
    for word, text in zip(zh if language == "zh" else en, texts.values(), strict=True):
        assert text.splitlines()[0] == word
        assert "batch 8" in text


def test_the_table_and_shares_are_consistent():
    found = lk.loadtest.diagnose(rows(dense), at=(32768, 8))
    table = found.table
    assert table.height == 16
    assert (table["measured_low_s"] <= table["measured_s"]).all()
    assert table["residual"].abs().max() < 0.05
    shares = found.shares([32768, 1024], [8, 1])
    assert shares["attention_kv_share"][0] == pytest.approx(found.attention_kv_share.value)
    assert (shares["low"] <= shares["attention_kv_share"]).all()
    three = (found.attention_kv_share, found.sequence_share, found.step_share)
    assert sum(share.value for share in three) == pytest.approx(1.0)


# coverage: the small version of benchmarks/loadtest_coverage.py ---------------------------------


@pytest.mark.parametrize("noise", [0.03, 0.10])
@pytest.mark.parametrize("truth", ["attention_kv", "mixed", "weights", "service", "service_gap"])
def test_intervals_cover_and_verdicts_do_not_lie(truth, noise):
    count = 250
    found = run_case(Case(truth, None, noise), count, seed=7)
    # four standard errors of a share of 250 around 95 %
    assert found["covered"] > 0.95 - 4 * (0.95 * 0.05 / count) ** 0.5
    assert found["wrong"] <= 0.02
