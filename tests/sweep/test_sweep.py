"""The object that ``lk.sweep`` returns: axes, conditions, reductions, and what it refuses."""

from __future__ import annotations

import math
import pickle

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledgerkit as lk
from ledgerkit._sweep import columns
from ledgerkit.errors import LedgerError, SweepCancelledError, SweepError

BASE = {
    "model": "llama-3.1-8b",
    "hardware": ["h100-sxm-80gb", "h200-sxm-141gb", "l4-24gb"],
    "tp": [1, 2, 3, 8],
    "prompt_tokens": [512, 8192, 130_000],
    "output_tokens": [1, 256],
    "concurrency": [1, 16, 250],
}


def swept(**changes: object) -> lk.Sweep:
    return lk.sweep(**{**BASE, "progress": False, **changes})


def test_points_that_cannot_be_are_dropped_with_a_count_by_reason() -> None:
    sweep = swept()
    frame, dropped = sweep.collect(), sweep.dropped
    assert frame.height + dropped["points"].sum() == sweep.points == 3 * 4 * 3 * 2 * 3
    reasons = dict(dropped.rows())
    assert reasons["tp must divide num_attention_heads = 32"] == sweep.points // 4
    assert "tp" in frame.columns
    assert 3 not in frame["tp"]


def test_rows_come_in_the_order_of_the_axes() -> None:
    frame = swept(tp=[2, 1]).select("hardware", "tp", "concurrency", "prompt_tokens",
                                    "output_tokens").collect()  # fmt: skip
    order = {name: i for i, name in enumerate(BASE["hardware"])}
    keys = [(order[h], -tp, c, p, o) for h, tp, c, p, o in frame.iter_rows()]
    assert keys == sorted(keys)


def test_numbers_do_not_depend_on_threads_or_units(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = swept(threads=1).collect()
    assert swept(threads=4).collect().equals(whole)
    monkeypatch.setattr("ledgerkit._sweep.plan.UNIT_POINTS", 7)
    for threads in (1, 3):
        assert swept(threads=threads).collect().equals(whole)
        assert (
            swept(threads=threads)
            .pareto("tpot_s", "tokens_per_s")
            .equals(whole_front(whole, "tpot_s", "tokens_per_s"))
        )


def whole_front(frame: pl.DataFrame, low: str, high: str) -> pl.DataFrame:
    """Front of a frame by comparing every pair: the slow twin."""
    points = list(zip(frame[low], frame[high], strict=True))
    kept = [
        i
        for i, (a, b) in enumerate(points)
        if not any(
            (x <= a and y >= b and (x, y) != (a, b)) or ((x, y) == (a, b) and j < i)
            for j, (x, y) in enumerate(points)
        )
    ]
    return frame[sorted(kept, key=lambda i: (points[i][0], i))]


@pytest.mark.parametrize("seed", range(3))
def test_pareto_is_what_comparing_all_pairs_gives(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sweep = swept(
        tp=[1, 8], prompt_tokens=sorted({*rng.integers(1, 9000, 12).tolist()}),
        concurrency=sorted({*rng.integers(1, 300, 9).tolist()}),
    )  # fmt: skip
    frame = sweep.collect()
    assert sweep.pareto("e2e_s", "tokens_per_s_per_device").equals(
        whole_front(frame, "e2e_s", "tokens_per_s_per_device")
    )
    three = sweep.pareto("tpot_s", "tokens_per_s", "resident_bytes_device")
    rows = three.select("tpot_s", -pl.col("tokens_per_s"), "resident_bytes_device").rows()
    everything = frame.select("tpot_s", -pl.col("tokens_per_s"), "resident_bytes_device").rows()
    for row in rows:
        assert not any(
            all(a <= b for a, b in zip(other, row, strict=True)) and other != row
            for other in everything
        )
    beaten = [o for o in everything if o not in set(rows)]
    assert all(
        any(all(a <= b for a, b in zip(row, other, strict=True)) for row in rows)
        for other in beaten
    )


@given(st.lists(st.tuples(*[st.integers(0, 6)] * 3), min_size=1, max_size=60), st.integers(1, 9))
def test_front_kernel_equals_its_twin(points: list[tuple[int, int, int]], cut: int) -> None:
    from ledgerkit._sweep.reducers import Pareto

    reducer = Pareto([("tpot_s", False), ("ttft_s", False), ("e2e_s", False)])
    for start in range(0, len(points), cut):
        part = np.array(points[start : start + cut], dtype=np.float64)
        reducer.join(0, (part, np.arange(start, start + len(part)), 0))
    expected = {
        i
        for i, a in enumerate(points)
        if not any(
            all(x <= y for x, y in zip(b, a, strict=True)) and (a != b or j < i)
            for j, b in enumerate(points)
            if j != i
        )
    }
    assert set(reducer.ids.tolist()) == expected


def test_best_and_top_by_groups_under_limits() -> None:
    sweep = swept()
    frame = sweep.collect()
    limits = {"tpot_s": 0.05, "fits": "yes"}
    best = sweep.best("tokens_per_s", by=["hardware", "prompt_tokens"], subject_to=limits)
    allowed = frame.filter(pl.col("tpot_s") <= 0.05, pl.col("fits") == "yes")
    expected = allowed.group_by("hardware", "prompt_tokens", maintain_order=True).agg(
        pl.col("tokens_per_s").max()
    )
    assert (
        best.select("hardware", "prompt_tokens", "tokens_per_s")
        .sort(pl.all())
        .equals(expected.sort(pl.all()))
    )
    top = sweep.top(5, "ttft_s", subject_to=pl.col("concurrency") > 1)
    several = frame.filter(pl.col("concurrency") > 1).sort("ttft_s", maintain_order=True)
    assert top.equals(several.head(5))
    assert sweep.best("tpot_s", subject_to={"tpot_s": 1e-9}).is_empty()
    worst = sweep.best("tpot_s", sense="high")
    assert worst["tpot_s"].item() == frame["tpot_s"].max()


def test_histogram_counts_every_point_once() -> None:
    sweep = swept()
    frame = sweep.collect()
    for options in ({"bins": 7}, {"bins": 5, "log": True}):
        counted = sweep.histogram("tpot_s", **options)
        assert counted["points"].sum() == frame.height
        assert counted.height == options["bins"]
    values = frame["tpot_s"].to_numpy()
    edges = [0.01, 0.02, 0.05]
    counts, _ = np.histogram(values, edges)
    counted = sweep.histogram("tpot_s", edges=edges)
    assert (
        counted.filter(pl.col("low").is_finite() & pl.col("high").is_finite())["points"].to_list()
        == counts.tolist()
    )
    assert counted["points"].sum() == frame.height


def test_where_and_select_are_lazy_and_leave_the_sweep_as_it_is() -> None:
    sweep = swept()
    narrow = sweep.where(pl.col("tpot_s") < 0.02, pl.col("hardware") != "l4-24gb").select(
        "hardware", "tpot_s"
    )
    frame = sweep.collect()
    expected = frame.filter(pl.col("tpot_s") < 0.02, pl.col("hardware") != "l4-24gb")
    assert narrow.collect().equals(expected.select("hardware", "tpot_s"))
    assert sweep.columns != narrow.columns
    assert narrow.pareto("tpot_s", "ttft_s").columns == ["hardware", "tpot_s"]


def test_conditions_of_each_row_are_taken() -> None:
    sweep = swept()
    frame = sweep.collect()
    for condition in (
        ~(pl.col("tpot_s") > 0.01) & pl.col("tp").is_in([1, 8]),
        pl.when(pl.col("fits") == "yes").then(pl.col("ttft_s") < 1).otherwise(pl.lit(False)),
        pl.col("hardware").cast(pl.String).str.contains("h[12]00"),
        pl.max_horizontal("ttft_s", "e2e_s").is_between(0.1, 1.0),
        pl.col("tpot_s").log() + pl.col("concurrency") / 2 < pl.col("tokens_per_s") ** 0.5,
        pl.lit(True),
    ):
        assert sweep.where(condition).collect().equals(frame.filter(condition))


def test_money_and_energy_follow_from_the_ledger() -> None:
    sweep = swept(
        hardware=["h100-sxm-80gb", "h200-sxm-141gb"], tp=[1, 2],
        prices={"h100-sxm-80gb": 2.0},
    ).select("hardware", "tp", "prompt_tokens", "tokens_per_s", "ttft_s", "usd_per_hour",
             "usd_per_million_output_tokens", "usd_per_million_input_tokens", "price_source",
             "tdp_energy_j_per_output_token", "devices")  # fmt: skip
    frame = sweep.collect()
    assert frame.filter(pl.col("hardware") == "h200-sxm-141gb")["usd_per_hour"].is_null().all()
    priced = frame.filter(pl.col("hardware") == "h100-sxm-80gb")
    watts = lk.load_hardware("h100-sxm-80gb").tdp_w
    for row in priced.iter_rows(named=True):
        per_s = 2.0 * row["tp"] / 3600
        assert row["usd_per_million_output_tokens"] == pytest.approx(
            per_s / row["tokens_per_s"] * 1e6, rel=1e-14
        )
        assert row["usd_per_million_input_tokens"] == pytest.approx(
            per_s * row["ttft_s"] / row["prompt_tokens"] * 1e6, rel=1e-14
        )
        assert row["tdp_energy_j_per_output_token"] == pytest.approx(
            watts * row["tp"] / row["tokens_per_s"], rel=1e-14
        )
    left_out = f"^{frame.height - priced.height} points have no value of .*usd_per_million"
    with pytest.warns(UserWarning, match=left_out):
        front = sweep.pareto("tpot_s", "usd_per_million_output_tokens", sense={"tpot_s": "low"})
    assert set(front["hardware"]) == {"h100-sxm-80gb"}


def test_prices_of_different_sources_are_not_compared() -> None:
    mixed = swept(hardware=["h100-sxm-80gb", "a100-sxm-40gb"])
    with pytest.raises(SweepError, match="different sources"):
        mixed.pareto("tpot_s", "usd_per_million_output_tokens")
    source = lk.load_hardware("h100-sxm-80gb").price_source
    one = swept(hardware=["h100-sxm-80gb", "a100-sxm-40gb"], price_source=source)
    with pytest.warns(UserWarning, match="left out"):
        front = one.pareto("tpot_s", "usd_per_million_output_tokens")
    assert set(front["hardware"]) == {"h100-sxm-80gb"}


def test_frames_of_points_and_the_namespace() -> None:
    points = pl.DataFrame(
        {"model": ["llama-3.1-8b", "gpt2"], "hardware": ["l4-24gb"] * 2,
         "prompt_tokens": [100, 5000], "output_tokens": [10, 10]}
    )  # fmt: skip
    sweep = lk.sweep(points)
    assert sweep.collect().height == 1
    assert sweep.dropped["points"].to_list() == [1]
    assert points.ledger.collect("tpot_s").height == 1
    assert points.ledger.pareto("tpot_s", "ttft_s").height == 1


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"prompt_tokens": None}, "prompt_tokens"),
        ({"prompt_tokens": ["x", None]}, "'prompt_tokens' has nulls"),
        ({"prompt_tokens": [True, False]}, "'prompt_tokens' has the wrong type"),
        ({"tp": ["1", "2"]}, "'tp' has the wrong type"),
        ({"prompt_tokens": [1.5, 2.0]}, "whole numbers"),
        ({"prompt_tokens": [math.nan, 2.0]}, "whole numbers"),
        ({"concurrency": [0, 1]}, "out of range"),
        ({"speed": [1, 2]}, "speed"),
    ],
)
def test_frames_are_checked_by_column(changes: dict, match: str) -> None:
    data = {"model": ["gpt2"] * 2, "hardware": ["l4-24gb"] * 2, "prompt_tokens": [9, 10],
            "output_tokens": [1, 2], **changes}  # fmt: skip
    frame = pl.DataFrame({name: values for name, values in data.items() if values is not None})
    with pytest.raises(SweepError, match=match):
        lk.sweep(frame)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"tp": []}, "'tp' is empty"),
        ({"concurrency": [1, 1]}, "value twice"),
        ({"tp": [2, 2]}, "value twice"),
        ({"model": ["llama-3.1-8b", "llama-3.1-8b"]}, "value twice"),
        ({"concurrency": [1, math.nan]}, "whole numbers"),
        ({"concurrency": [1.5]}, "whole numbers"),
        ({"concurrency": -1}, "out of range"),
        ({"concurrency": [True]}, "whole numbers"),
        ({"prompt_tokens": 10**13}, "out of range"),
        ({"prompt_tokens": "many"}, "whole numbers"),
        ({"memory_fraction": math.nan}, "finite"),
        ({"tp": -1}, "tp"),
        ({"kv_dtype": "fp3"}, "kv_dtype"),
        ({"engine": "nothing"}, "engine"),
        ({"model": "no-such-model"}, "no-such-model"),
        ({"batch": 3}, "no such axis"),
        ({"tp": {1, 2}}, "ordered sequence"),
        ({"threads": 0}, "threads"),
        ({"threads": 1.5}, "threads"),
        ({"threads": "2"}, "threads"),
        ({"progress": "yes"}, "progress"),
        ({"prices": ["l4-24gb"]}, "prices are"),
        ({"price_source": "a friend"}, "price of this source"),
        ({"run_on": "moon"}, "run_on"),
        ({"run_on": "dask"}, "client"),
        ({"prices": {"tpu-v5p": 1.0}}, "not in the sweep"),
        ({"prices": {"l4-24gb": -1.0}}, "positive"),
    ],
)
def test_bad_axes_are_refused(changes: dict, match: str) -> None:
    with pytest.raises(LedgerError, match=match):
        swept(**changes)


def test_missing_and_doubled_axes_are_refused() -> None:
    with pytest.raises(SweepError, match="output_tokens="):
        lk.sweep(model="gpt2", hardware="l4-24gb", prompt_tokens=1)
    with pytest.raises(SweepError, match="'tp' is given twice"):
        lk.sweep(lk.zip_axes(tp=[1, 2], ep=[1, 2]), **BASE)
    with pytest.raises(SweepError, match="one length"):
        lk.zip_axes(tp=[1, 2], ep=[1])
    with pytest.raises(SweepError, match="sequence"):
        lk.zip_axes(tp=1)
    with pytest.raises(SweepError, match="frame holds all fields"):
        lk.sweep(pl.DataFrame({"model": ["gpt2"]}), tp=1)


def test_too_many_points_for_memory_are_refused_with_the_way_out() -> None:
    large = swept(prompt_tokens=range(1, 100_001), concurrency=range(1, 10_001))
    with pytest.raises(SweepError, match=r"24,000,000,000 points.*\.pareto\(\)"):
        large.collect()


@pytest.mark.parametrize(
    ("act", "match"),
    [
        (lambda s: s.where(pl.col("speed") > 1), "speed"),
        (lambda s: s.where(pl.col("tpot_s") < pl.col("tpot_s").mean()), "on its own"),
        (lambda s: s.where(pl.col("tpot_s").rank() < 3), "on its own"),
        (lambda s: s.where(pl.col("tpot_s") < pl.col("tpot_s").max().over("tp")), "on its own"),
        (lambda s: s.where(pl.col("tpot_s").shift() < 3), "on its own"),
        (lambda s: s.where(pl.col("tpot_s").is_duplicated()), "on its own"),
        (lambda s: s.where(pl.int_range(pl.len()) < 3), "on its own"),
        (lambda s: s.where(pl.col("tpot_s") * 2), "true or false"),
        (lambda s: s.where(pl.col("tpot_s").str.contains("a")), "cannot be computed"),
        (lambda s: s.where("tpot_s < 1"), "polars expression"),
        (lambda s: s.select("speed"), "speed"),
        (lambda s: s.select(), "at least one"),
        (lambda s: s.pareto("tpot_s"), "two objectives"),
        (lambda s: s.pareto("tpot_s", "fits"), "no number"),
        (lambda s: s.pareto("tpot_s", "concurrency"), "which side"),
        (lambda s: s.pareto("tpot_s", "ttft_s", sense="low"), "sense="),
        (lambda s: s.pareto("tpot_s", "ttft_s", sense={"e2e_s": "low"}), "sense="),
        (lambda s: s.best("tpot_s", by="fits"), "fields of a point"),
        (lambda s: s.best("tpot_s", subject_to={"fits": "perhaps"}), "perhaps"),
        (lambda s: s.best("tpot_s", subject_to={"concurrency": 3}), "which side"),
        (lambda s: s.best("tpot_s", subject_to={"tpot_s": math.nan}), "number"),
        (lambda s: s.top(0, "tpot_s"), "number of points"),
        (lambda s: s.histogram("tpot_s", bins=0), "bins"),
        (lambda s: s.histogram("tpot_s", edges=[2, 1]), "rise"),
        (lambda s: s.histogram("tpot_s", edges=["a", "b"]), "rise"),
        (lambda s: s.histogram("tpot_s", edges=5), "rise"),
        (lambda s: s.histogram("tpot_s", edges=[1, math.nan, 3]), "rise"),
        (lambda s: s.histogram("fits"), "no number"),
        (lambda s: s.collect(memory_bytes="2 GB"), "memory_bytes"),
        (lambda s: s.collect(memory_bytes=-1), "memory_bytes"),
        (lambda s: s.sink_parquet(None), "destination"),
        (lambda s: s.sink_parquet(""), "destination"),
        (lambda s: s.chart("ttft_s", "tpot_s", colour="tp"), "colour"),
        (lambda s: s.chart("ttft_s", "tpot_s", max_points=0), "max_points"),
        (lambda s: s.chart("speed", "tpot_s"), "speed"),
    ],
)
def test_bad_questions_are_refused(act: object, match: str) -> None:
    with pytest.raises(SweepError, match=match):
        act(swept())


def test_a_run_can_be_cancelled_and_keeps_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ledgerkit._sweep.plan.UNIT_POINTS", 50)
    seen = []

    def tell(progress: object) -> bool:
        seen.append(progress)
        return len(seen) < 3

    with pytest.raises(SweepCancelledError) as caught:
        swept(prompt_tokens=range(1, 2000), progress=tell, threads=2).collect()
    assert 0 < caught.value.partial.height < 2000 * 72
    assert [p.points for p in seen] == sorted(p.points for p in seen)
    assert 0 < seen[-1].fraction < 1
    assert seen[-1].points_per_s > 0


def test_geomspace_and_columns() -> None:
    assert lk.geomspace(1, 1000, 4) == (1, 10, 100, 1000)
    assert lk.geomspace(1, 3, 10) == (1, 2, 3)
    with pytest.raises(SweepError, match="num"):
        lk.geomspace(1, 3, 1)
    for huge in ((1, 10**400, 3), (1, 3, 10**9)):
        with pytest.raises(SweepError, match="geomspace is"):
            lk.geomspace(*huge)
    table = lk.Sweep.outputs()
    assert set(table["column"]) == set(columns.COLUMNS)
    everything = swept(prompt_tokens=[100], concurrency=[3]).select(*columns.COLUMNS).collect()
    assert everything.columns == list(columns.COLUMNS)
    assert set(everything["fits"]) <= set(columns.FITS)


def test_a_task_can_be_sent_to_another_process() -> None:
    from ledgerkit._sweep.reducers import Collect

    sweep = swept()
    task = sweep.where(pl.col("tpot_s") < 1).task(Collect(sweep.columns))
    again = pickle.loads(pickle.dumps(task))  # noqa: S301 - made in this line
    part, dropped = again(0, sweep.tables, lambda: False)
    assert part.equals(sweep.where(pl.col("tpot_s") < 1).collect())
    assert dropped.total() == sweep.dropped["points"].sum()
