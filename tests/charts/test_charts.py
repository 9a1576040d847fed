"""What the figures show follows from their frames."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import time

import altair as alt
import polars as pl
import pytest

from ledgerkit import charts
from ledgerkit.errors import FigureError
from tests.charts import samples
from tests.charts.figures import FIGURES, all_figures, marks_of, words_of


def facts(chart):
    return chart.to_dict()["usermeta"]["ledgerkit"]


@pytest.mark.parametrize("name", list(FIGURES))
def test_specifications_are_valid_vega_lite(name):
    spec = FIGURES[name](language="en", theme="dark").to_dict()
    alt.LayerChart.validate(spec)
    assert "NaN" not in str(spec)
    assert len(spec["layer"]) <= 30


@pytest.mark.parametrize(("name", "language"), list(all_figures()))
def test_every_figure_says_in_words_what_it_shows(name, language):
    chart = FIGURES[name](language=language)
    described = charts.describe(chart)
    assert len(described) > 20
    assert "{" not in described
    if "panel" not in name:
        assert described.startswith(facts(chart)["title"])
    # no decoration is read out, and every data mark is
    for layer in chart.to_dict()["layer"]:
        assert layer["mark"]["aria"] == ("tooltip" in layer["encoding"])


# --- triangle -----------------------------------------------------------------------------------


def large_marks(chart):
    """Marks at the operating points of the main view, by colour."""
    return {mark.get("fill"): mark for mark in marks_of(chart, "point") if mark.get("size") == 190}


def test_the_mark_stands_where_its_shares_put_it():
    table = samples.comparison(samples.scaled([samples.DEEPSEEK], 2.5), values=(8192,))
    chart = charts.ledger_triangle(table, form="whole", language="en")
    row = table.row(0, named=True)
    mark = large_marks(chart)["#7347DB"]
    left, side = 66, 520
    assert mark["x"] == pytest.approx(
        left + side * (row["attention_kv_share"] + row["scheduling_share"] / 2), abs=0.01
    )
    base = max(rule["y"] for rule in marks_of(chart, "rule") if rule.get("stroke") == "#8A919E"
               and rule["y"] == rule["y2"] and rule["x2"] - rule["x"] == side)  # fmt: skip
    assert base - mark["y"] == pytest.approx(
        side * math.sqrt(3) / 2 * row["scheduling_share"], abs=0.02
    )


@pytest.mark.parametrize(("factor", "form"), [(0.18, "two_ledgers"), (1.0, "zoom"), (2.2, "whole")])
def test_the_form_follows_the_largest_scheduling_share(factor, form):
    table = samples.comparison(samples.scaled(samples.FOUR, factor))
    automatic = charts.ledger_triangle(table, language="en")
    forced = charts.ledger_triangle(table, language="en", form=form)
    assert automatic.to_dict()["layer"] == forced.to_dict()["layer"]
    words = " ".join(words_of(automatic))
    assert ("The framed part: scheduling 0 to" in words) == (form == "zoom")
    assert ("under 5%" in words) == (form == "two_ledgers")


def test_printed_shares_sum_to_a_hundred_and_rows_follow_the_trails_downwards():
    chart = charts.ledger_triangle(samples.comparison(samples.SIX), language="en")
    table = samples.comparison(samples.SIX).filter(pl.col("is_operating_point"))
    rows = [
        mark for mark in marks_of(chart, "text")
        if re.fullmatch(r"\d+|<1|–", mark["text"])
    ]  # fmt: skip
    lines = {}
    for mark in rows:
        lines.setdefault(mark["y"], []).append((mark["x"], mark["text"]))
    sums = [sum(int(t) for _, t in sorted(line) if t.isdigit()) for line in lines.values()
            if len(line) == 3]  # fmt: skip
    assert sums == [100] * 6
    names = [
        (mark["y"], mark["text"])
        for mark in marks_of(chart, "text")
        if mark["text"] in set(table["label"]) and mark["fontWeight"] == 400
    ]
    ranked = table.sort("scheduling_share", descending=True)["label"].to_list()
    assert [name for _, name in sorted(names)] == ranked


def test_what_does_not_fit_is_dashed_hollow_and_explained():
    chart = charts.ledger_triangle(samples.comparison([samples.GEMMA]), language="en")
    dashed = [line for line in marks_of(chart, "line") if line.get("strokeDash") == [4, 3]]
    assert dashed
    assert {line.get("stroke") for line in dashed} == {"#53730A"}
    arrows = [mark for mark in marks_of(chart, "point") if mark["shape"] == "triangle"]
    assert {mark.get("fill") for mark in arrows} == {"#FFFFFF"}
    assert any("does not fit" in word for word in words_of(chart))
    fitting = charts.ledger_triangle(samples.comparison([samples.KIMI]), language="en")
    assert not any("does not fit" in word for word in words_of(fitting))
    assert not [line for line in marks_of(fitting, "line") if line.get("strokeDash") == [4, 3]]


def test_an_operating_point_that_does_not_fit_is_hollow():
    path = samples.Path("Gemma", "gemma", (0.2, 0.5), (0.3, 0.2), fits_to=2048)
    chart = charts.ledger_triangle(samples.comparison([path]), language="en")
    mark = next(m for m in marks_of(chart, "point") if m.get("size") == 190)
    assert mark["fill"] == "#FFFFFF"
    assert mark["stroke"] == "#53730A"


def test_the_trail_grows_from_thin_to_thick():
    chart = charts.ledger_triangle(samples.comparison([samples.KIMI]), language="en", form="whole")
    trail = sorted(marks_of(chart, "trail"), key=lambda row: row["order"])
    sizes = [row["size"] for row in trail]
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[-1]) == (1.0, 4.6)
    assert [row["x"] for row in trail] == sorted(row["x"] for row in trail)


def test_rows_that_are_not_finite_are_left_out_and_counted():
    table = samples.comparison(samples.FOUR)
    broken = table.with_columns(
        pl.when((pl.col("label") == "Kimi-K2.6") & (pl.col("prompt_tokens") <= 2048))
        .then(float("nan"))
        .otherwise(pl.col("attention_kv_share"))
        .alias("attention_kv_share"),
        pl.when((pl.col("label") == "DeepSeek-V3") & (pl.col("prompt_tokens") == 1024))
        .then(float("inf"))
        .otherwise(pl.col("decode_time_s"))
        .alias("decode_time_s"),
    )
    chart = charts.ledger_triangle(broken, language="en")
    assert any("not finite: 3." in word for word in words_of(chart))
    assert any("3 行" in word for word in words_of(charts.ledger_triangle(broken, language="zh")))
    assert "NaN" not in str(chart.to_dict()["layer"])


def test_a_deployment_without_decode_time_has_no_point_but_a_sentence():
    table = samples.comparison([samples.KIMI, samples.GEMMA]).with_columns(
        pl.when(pl.col("label") == "Kimi-K2.6")
        .then(0.0)
        .otherwise(pl.col("decode_time_s"))
        .alias("decode_time_s")
    )
    chart = charts.ledger_triangle(table, language="en")
    assert "Kimi-K2.6: no decode time, so no shares to draw." in words_of(chart)
    assert "#B0456F" not in large_marks(chart)


def test_the_empty_triangle_says_what_to_do():
    empty = samples.comparison(samples.FOUR).clear()
    assert "选一个模型" in words_of(charts.ledger_triangle(empty, language="zh"))
    assert "choose a model" in words_of(charts.ledger_triangle(empty, language="en"))


def test_twins_are_drawn_wide_under_narrow_and_named():
    chart = charts.ledger_triangle(samples.comparison(samples.TWINS), language="en")
    assert any("coincide" in word for word in words_of(chart))
    trail = [row for row in marks_of(chart, "trail") if row["order"] == 0]
    widths = {row["fill"]: row["size"] for row in trail if row["size"] >= 1}
    assert widths["#B0456F"] == widths["#7347DB"] + 4


def test_focus_fades_the_others():
    chart = charts.ledger_triangle(
        samples.comparison(samples.FOUR), language="en", focus="Kimi-K2.6", form="whole"
    )
    marks = large_marks(chart)
    assert marks["#B0456F"]["opacity"] == 1
    assert marks["#7347DB"]["opacity"] == 0.45


def test_the_trail_is_the_column_that_varies():
    chart = charts.ledger_triangle(
        samples.comparison(samples.FOUR, axis="concurrency", values=(1, 8, 64), operating=32),
        language="en",
    )
    assert facts(chart)["options"]["trail"] == "concurrency"
    assert "prompt 8K; concurrency 1→64" in facts(chart)["operating_point"]


def test_the_finding_names_the_largest_move():
    found = facts(charts.ledger_triangle(samples.comparison(samples.FOUR), language="en"))
    assert "Gemma 4 26B A4B moves most, from 17% to 67%" in found["finding"]


def test_missing_columns_and_other_objects_are_named():
    table = samples.comparison(samples.FOUR)
    with pytest.raises(FigureError, match=r"scheduling_share, order"):
        charts.ledger_triangle(table.drop("scheduling_share", "order"))
    with pytest.raises(FigureError, match=r"polars frame.*'dict'"):
        charts.ledger_triangle({"label": []})
    with pytest.raises(FigureError, match=r"no such deployment.*'Llama'"):
        charts.explorer_panel(table, focus="Llama")


# --- bars ---------------------------------------------------------------------------------------


def test_bars_split_each_row_at_its_shares():
    chart = charts.ledger_bars(samples.entries(["One"]), language="en")
    read = [mark for mark in marks_of(chart, "rect") if mark.get("t1") == "bytes read"]
    assert [(mark["t3"], mark["t4"]) for mark in read] == [
        ("KV cache", "147 GB"),
        ("projections", "98.0 GB"),
        ("routed experts", "280 GB"),
        ("vocabulary", "2.00 GB"),
    ]
    left, right = 104, 492
    bounds = [left]
    for amount in (147, 98, 280, 2):
        bounds.append(bounds[-1] + (right - left) * amount / 527)
    for mark, start, end in zip(read, bounds, bounds[1:], strict=False):
        assert mark["x"] == pytest.approx(start, abs=1.6)
        assert mark["x2"] == pytest.approx(end, abs=1.6)


def test_bars_print_shares_totals_and_a_dash_where_nothing_is_booked():
    words = words_of(charts.ledger_bars(samples.entries(["One"]), language="en"))
    # by hand: 245, 282 and 0 of 527 GB
    index = words.index("bytes read")
    assert words[index + 1 :].count("527 GB") == 1
    for shown in ("46", "54", "–", "527 GB", "839 GB", "23.3 ms"):
        assert shown in words


def test_accounts_of_one_kind_share_a_segment_and_keep_their_own_name_when_alone():
    both = words_of(charts.ledger_bars(samples.entries(["One"]), language="en"))
    assert "communication" in both
    assert "expert comm." not in both
    only = samples.entries(["One"]).filter(pl.col("account") != "tp")
    assert "expert comm." in words_of(charts.ledger_bars(only, language="en"))


def test_the_key_lists_only_what_occurs():
    words = words_of(charts.ledger_bars(samples.entries(["One"]), language="en"))
    assert "indexer" not in words
    assert "routed experts" in words


def test_a_resource_that_nobody_pays_keeps_its_row():
    chart = charts.ledger_bars(samples.entries(["One"], only=("time",)), language="en")
    words = words_of(chart)
    assert words.count("–") == 8  # three shares and a total, twice
    assert not [mark for mark in marks_of(chart, "rect") if mark.get("t1") == "memory"]


# --- cache --------------------------------------------------------------------------------------


def test_a_ring_stands_where_the_curve_meets_its_capacity():
    chart = charts.cache_curves(samples.caches(), language="en")
    rings = [mark for mark in marks_of(chart, "point") if mark.get("fill") == "transparent"]
    words = words_of(chart)
    # 4.82 GB / 70,272 B = 68,590 tokens = 67K; 2 GB / 192,512 B = 10,389 = 10K
    assert {"fits 67K", "fits 10K", "fits 60K"} <= set(words)
    assert len(rings) == 3
    first, last = (mark["x"] for mark in sorted(
        (m for m in marks_of(chart, "text") if m["text"] in {"1K", "128K"}),
        key=lambda m: m["x"]))  # fmt: skip
    expected = first + (last - first) * math.log2(4.82e9 / 70272 / 1024) / 7
    assert any(ring["x"] == pytest.approx(expected, abs=0.1) for ring in rings)


def test_curves_that_coincide_share_a_label():
    words = words_of(charts.cache_curves(samples.caches(), language="en"))
    assert any("the two coincide" in word for word in words)
    alone = words_of(charts.cache_curves(samples.caches(twins=False), language="en"))
    assert not any("coincide" in word for word in alone)


def test_a_cache_that_does_not_grow_is_a_level_line():
    chart = charts.cache_curves(samples.caches(), language="en")
    level = [row for row in marks_of(chart, "line") if row.get("stroke") == "#1F4A12"]
    assert len({row["y"] for row in level}) == 1


def test_sizes_that_a_logarithm_cannot_show_are_left_out_and_counted():
    frame = samples.caches().with_columns(
        pl.when(pl.col("label") == "Mamba-2.8B").then(0.0).otherwise(pl.col("cache_bytes"))
        .alias("cache_bytes")
    )  # fmt: skip
    words = words_of(charts.cache_curves(frame, language="en"))
    assert any("not finite: 8." in word for word in words)


def test_the_capacity_is_optional():
    words = words_of(charts.cache_curves(samples.caches().drop("capacity_bytes"), language="en"))
    assert not any("fits" in word for word in words)


def test_counted_bytes_are_named_and_checked():
    live = facts(charts.cache_curves(samples.caches(), language="en"))
    reserved = facts(charts.cache_curves(samples.caches(), language="en", counted="reserved"))
    assert live["operating_point"] != reserved["operating_point"]
    with pytest.raises(FigureError, match=r"kind of bytes.*live, reserved"):
        charts.cache_curves(samples.caches(), counted="ideal")


# --- memory -------------------------------------------------------------------------------------


def test_memory_is_drawn_as_a_share_of_the_capacity():
    chart = charts.memory_bars(samples.memory(samples.CASES[0]), language="en")
    parts = [mark for mark in marks_of(chart, "rect") if "t0" in mark]
    scale = (529 - 20) / 150.8
    position = 20.0
    for mark, size in zip(parts, samples.CASES[0][1], strict=True):
        assert mark["x"] == pytest.approx(position, abs=0.02)
        position += size * scale
        assert mark["x2"] == pytest.approx(position, abs=0.85)


def test_too_much_is_outlined_and_the_verdict_says_by_how_much():
    chart = charts.memory_bars(samples.memory(samples.CASES[1]), language="en")
    # 2.1 + 48.2 + 28.2 + 2.6 = 81.1 of 84.9 × 0.92 = 78.108
    assert "over by 2.99 GB" in words_of(chart)
    assert [mark for mark in marks_of(chart, "rect") if mark.get("stroke") == "#A3191F"]
    assert "超出 2.99 GB" in words_of(
        charts.memory_bars(samples.memory(samples.CASES[1]), language="zh")
    )


def test_a_bar_far_beyond_the_capacity_is_cut():
    chart = charts.memory_bars(samples.memory(samples.CASES[2]), language="en")
    longest = max(mark["x2"] for mark in marks_of(chart, "rect"))
    assert longest <= 20 + (529 - 20) * 1.05 + 0.01
    assert "over by 163 GB" in words_of(chart)


def test_unknown_components_and_capacities_of_zero_are_errors():
    frame = samples.memory(samples.CASES[0])
    with pytest.raises(FigureError, match=r"component.*'weights'.*attention_weights"):
        charts.memory_bars(frame.with_columns(pl.lit("weights").alias("component")))
    with pytest.raises(FigureError, match="capacity must be positive"):
        charts.memory_bars(frame.with_columns(pl.lit(0.0).alias("capacity_bytes")))


# --- all ----------------------------------------------------------------------------------------


def test_the_panel_is_built_fast_enough_for_a_slider():
    table = samples.comparison(samples.FOUR)
    labels = [path.label for path in samples.FOUR]
    frames = (table, samples.entries(labels), samples.memory(*samples.CASES))
    charts.explorer_panel(*frames, language="en").to_dict()
    spent = []
    for _ in range(7):
        start = time.process_time()
        charts.explorer_panel(*frames, language="zh").to_dict()
        spent.append(time.process_time() - start)
    assert sorted(spent)[len(spent) // 2] < 0.040


def test_the_panel_keeps_its_form_while_shares_cross_a_quarter():
    heights = {
        charts.explorer_panel(
            samples.comparison(samples.scaled([samples.MIMO], factor)), language="en"
        ).to_dict()["height"]
        for factor in (0.5, 0.9, 1.2, 2.0)
    }
    assert len(heights) == 1


def test_figures_are_altair_charts():
    chart = charts.memory_bars(samples.memory(samples.CASES[0]), language="en")
    assert isinstance(chart, alt.LayerChart)
    titled = chart.properties(title="Another title").to_dict()
    assert titled["title"] == "Another title"
    assert titled["layer"] == chart.to_dict()["layer"]
    assert chart.copy().to_dict() == chart.to_dict()
    assert "<script" in chart.to_html()
    assert alt.JupyterChart(chart).spec["width"] == 700


def test_an_altair_theme_of_the_user_changes_nothing():
    before = charts.memory_bars(samples.memory(samples.CASES[0]), language="en").to_dict()
    with alt.theme.enable("dark"):
        assert (
            charts.memory_bars(samples.memory(samples.CASES[0]), language="en").to_dict() == before
        )


def test_importing_the_package_loads_no_chart_library():
    code = (
        "import sys, ledgerkit, ledgerkit._plot;"
        "print([m for m in ('altair', 'vl_convert', 'polars') if m in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert found.strip() == "[]"
