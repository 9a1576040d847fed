"""Charts of transfers show what the frames say."""

from __future__ import annotations

import math
from itertools import pairwise

import polars as pl
import pytest

import ledgerkit as lk
from ledgerkit.charts import transfer as transfer_chart
from ledgerkit.charts.waterfall import _levels
from ledgerkit.errors import FigureError, TechniqueError
from ledgerkit.text import numbers
from tests.charts.figures import marks_of, words_of

WORK = lk.Workload(prompt_tokens=8192, output_tokens=512, concurrency=8)


def make(technique, model="llama-3.1-8b", **options):
    return lk.transfer(technique, model=model, hardware="h200-sxm-141gb", workload=WORK, **options)


@pytest.fixture(scope="module")
def mla():
    return make("mla", "deepseek-v3", action="remove", deployment=lk.Deployment(tp=8)).reversed()


@pytest.fixture(scope="module")
def stack():
    return make(["mla", {"technique": "kv_quantization", "kv_dtype": "fp8_ds_mla"},
                 {"technique": "speculative_decoding", "draft": "llama-3.2-1b"},
                 "tensor_parallelism"])  # fmt: skip


def test_credits_stand_left_of_the_line_and_debits_right(mla):
    chart = mla.chart(language="en")
    groups = transfer_chart.read_groups(mla.table, "decode")
    lines = [line for group in groups for line in group.lines]
    bars = [m for m in marks_of(chart, "rect") if m["x2"] - m["x"] > 4.01 and "t0" in m]
    assert len(bars) == len(lines)
    scale = 0.64
    for bar, line in zip(sorted(bars, key=lambda m: m["y"]), lines, strict=True):
        length = transfer_chart.REACH * abs(line.share) / scale
        assert bar["x2"] - bar["x"] == pytest.approx(max(1.5, length), abs=0.02)
        inner = bar["x2"] if line.change < 0 else bar["x"]
        assert inner == pytest.approx(transfer_chart.ZERO, abs=0.02)


def test_the_head_of_a_group_follows_its_net_sign(mla):
    words = words_of(mla.chart(language="zh"))
    assert {"多算", "少读", "少存", "更差调度"} <= set(words)
    before, after = mla.net.filter(name="tpot_s").select("before", "after").row(0)
    assert numbers.change(before, after, numbers.duration, "zh") in words


def test_no_booked_cost_is_said():
    words = " ".join(words_of(make("mqa").chart(language="en")))
    assert "no cost booked" in words
    words = " ".join(words_of(make("mla").chart(language="en")))
    assert "no cost booked" not in words


def test_an_empty_transfer_says_that_nothing_changes():
    both = make(["kv_quantization", {"technique": "kv_quantization", "action": "remove"}])
    words = " ".join(words_of(both.chart(language="en")))
    assert "nothing changes" in words
    assert not [m for m in marks_of(both.chart(), "rect") if "t0" in m]


def test_unknown_options_and_missing_columns_are_named(mla):
    with pytest.raises(FigureError, match="decode, prefill"):
        mla.chart(phase="hold")
    with pytest.raises(FigureError, match="columns"):
        lk.charts.transfer_bars(mla.table.drop("change"), mla.summary())
    with pytest.raises(FigureError, match="columns"):
        lk.charts.taxonomy_page(lk.techniques().drop("pays"))
    with pytest.raises(FigureError, match="two positive points"):
        lk.charts.break_even_curves(mla.curve("context", "read").head(1))
    with pytest.raises(FigureError, match="two labels"):
        lk.charts.ledger_triangle(lk.compare([mla.before.ledger]).table, arrows=["one"])


def test_bars_alone_and_the_interaction_sum_to_the_whole(stack):
    table = stack.waterfall()
    assert table["kind"].to_list() == ["start", *["technique"] * 4, "interaction", "end"]
    used = table.with_columns(pl.coalesce("alone", "in_order").alias("bar"))
    bars = used.filter(pl.col("kind").is_in(["technique", "interaction"]))["bar"]
    start, end = table["after"][0], table["after"][-1]
    assert math.fsum(bars) == pytest.approx(end - start, rel=1e-12)
    assert math.fsum(table["in_order"].drop_nulls()) == pytest.approx(end - start, rel=1e-12)
    # a layout of latents needs the latents: it is taken in order
    assert table.filter(technique="kv_quantization")["alone"].item() is None
    assert end == pytest.approx(stack.total("decode", "time")[1])
    with pytest.raises(TechniqueError, match="reversed"):
        stack.reversed().waterfall()


def test_the_bars_of_a_waterfall_meet(stack):
    rows = stack.waterfall("resident").to_dicts()
    levels = _levels(rows)
    for (_, end), (start, _) in pairwise(levels[:-1]):
        assert end == start
    assert levels[-2][1] == pytest.approx(levels[-1][1], rel=1e-12)


def test_scheduling_is_booked_on_the_layout_that_a_stack_ends_with():
    draft = {"technique": "speculative_decoding", "draft": "llama-3.2-1b"}
    one, other = make([draft, "tensor_parallelism"]), make(["tensor_parallelism", draft])
    assert one.table.equals(other.table)


def test_the_mark_of_a_break_even_stands_on_both_curves(mla):
    table = mla.curve("context", "compute")
    crossing = table["crossing"][0]
    at = mla.moved("context", round(crossing)).total("decode", "compute")
    assert at[0] == pytest.approx(at[1], rel=1e-3)
    chart = mla.chart("break_even", resource="compute", language="en")
    assert f"break-even {table['first'][0]:,.0f}" in words_of(chart)
    assert len(marks_of(chart, "point")) == 1


def test_a_prefix_is_kept_while_what_it_saves_exceeds_what_it_pays():
    work = lk.Workload(prompt_tokens=8192, output_tokens=512, concurrency=16)
    kept = lk.transfer("prefix_cache", model="llama-3.1-8b", hardware="h100-sxm-80gb",
                       workload=work, reuse_interval_s=10.0, pool_bytes=60e9)  # fmt: skip
    table = kept.curve("reuse_interval_s", phase="hold")
    assert table["sides"].unique().to_list() == ["saved_paid"]
    assert table["before"].n_unique() == 1  # one use saves the same, however long it takes
    ratio = table["after"] / table["value"]
    assert ratio.max() == pytest.approx(ratio.min(), rel=1e-9)
    crossing = table["crossing"][0]
    assert crossing * ratio[0] == pytest.approx(table["before"][0], rel=1e-6)
    for language, word in (("zh", "平衡点 10.7 s"), ("en", "break-even 10.7 s")):
        chart = kept.chart("break_even", axis="reuse_interval_s", phase="hold", language=language)
        assert word in str(chart.to_dict())


def test_the_arrow_of_a_technique_leads_from_before_to_after(mla):
    chart = mla.chart("triangle", language="en")
    heads = [m for m in marks_of(chart, "point") if m.get("shape") == "triangle"]
    assert len(heads) == 1
    large = {m["fill"]: m for m in marks_of(chart, "point") if m.get("size") == 190}
    assert len(large) == 2
    drafted = make({"technique": "speculative_decoding", "draft": "llama-3.2-1b"})
    assert "Llama 3.1 8B + speculative decoding" in words_of(drafted.chart("triangle"))


def test_the_taxonomy_has_a_row_for_every_technique():
    frame = lk.techniques()
    for language in ("zh", "en"):
        words = words_of(lk.charts.taxonomy_page(frame, language=language))
        assert set(frame[f"name_{language}"]) <= set(words)
        assert set(frame[f"cost_{language}"]) <= set(words)
    circles = [m for m in marks_of(lk.charts.taxonomy_page(frame), "point") if "t0" in m]
    assert len(circles) == frame["saves"].list.len().sum() + frame["pays"].list.len().sum()
