"""Pixels follow from shares: the pure geometry under the figures."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.charts._labels import Wanted, around, place, push_apart
from ledgerkit.charts._segments import grouped, segments
from ledgerkit.charts._ternary import (
    HEIGHT,
    OUTLINE,
    REGIONS,
    View,
    clip_polygon,
    grid_line,
    slice_window,
)
from ledgerkit.charts.metrics import Box, _pieces, text_width, wrap
from ledgerkit.spec.axes import LEDGERS

WHOLE = View(66, 574, 520, 520 * HEIGHT)
shares = st.tuples(st.floats(0, 1), st.floats(0, 1)).filter(lambda pair: sum(pair) <= 1)


def area(polygon):
    return abs(
        sum(
            a[0] * b[1] - b[0] * a[1]
            for a, b in zip(polygon, (*polygon[1:], polygon[0]), strict=True)
        )
        / 2
    )


def test_corners_are_where_the_ledgers_are():
    assert WHOLE.at(0, 0) == (66, 574)
    assert WHOLE.at(1, 0) == (586, 574)
    assert WHOLE.at(0, 1) == pytest.approx((326, 574 - 450.333), abs=1e-3)


@given(shares)
def test_distances_to_the_sides_are_the_shares(pair):
    attention, scheduling = pair
    x, y = WHOLE.at(attention, scheduling)
    height = 520 * HEIGHT
    assert (574 - y) / height == pytest.approx(scheduling, abs=1e-9)
    # distance to the left side, whose ends are the FFN and the scheduling corner
    left = math.sin(math.pi / 3) * (x - 66) - math.cos(math.pi / 3) * (574 - y)
    assert left / height == pytest.approx(attention, abs=1e-9)


@given(shares, st.floats(0.1, 1), st.floats(0, 0.4), st.floats(0.6, 1))
def test_a_stretched_slice_keeps_lines_straight_and_points_on_their_grid_lines(
    pair, top, low, high
):
    attention, scheduling = pair
    view = View(40, 600, 620, 250, low, high, top)
    for ledger, share in zip(
        LEDGERS, (attention, 1 - attention - scheduling, scheduling), strict=True
    ):
        (u0, v0), (u1, v1) = grid_line(ledger, share)
        (x0, y0), (x1, y1) = view.pixel((u0, v0)), view.pixel((u1, v1))
        x, y = view.at(attention, scheduling)
        cross = (x1 - x0) * (y - y0) - (y1 - y0) * (x - x0)
        assert abs(cross) <= 1e-6 * max(1.0, math.hypot(x1 - x0, y1 - y0)) * 1e3


def test_the_regions_tile_the_triangle():
    assert sum(area(region) for region in REGIONS.values()) == pytest.approx(area(OUTLINE))
    for ledger, region in REGIONS.items():
        u = sum(corner[0] for corner in region) / len(region)
        v = sum(corner[1] for corner in region) / len(region)
        amounts = {"attention_kv": u - v / 2, "ffn_mlp": 1 - u - v / 2, "scheduling": v}
        assert max(amounts, key=amounts.__getitem__) == ledger


@given(st.floats(0, 0.5), st.floats(0.5, 1), st.floats(0.05, 1))
def test_clipping_stays_inside_and_keeps_the_area(low, high, top):
    if high - low < 0.01:
        return
    inside = clip_polygon(OUTLINE, low, high, 0, top)
    for u, v in inside:
        assert low - 1e-9 <= u <= high + 1e-9
        assert -1e-9 <= v <= top + 1e-9
    # integral of the triangle's height over the window
    steps = 2000
    width = (high - low) / steps
    expected = sum(
        min(top, 2 * min(u, 1 - u)) * width
        for u in (low + (index + 0.5) * width for index in range(steps))
    )
    assert area(inside) == pytest.approx(expected, abs=1e-3)


@given(st.lists(shares.filter(lambda pair: pair[1] < 0.25), min_size=1, max_size=40))
def test_the_slice_holds_every_point(points):
    low, high, top = slice_window(points)
    assert 0 <= low < high <= 1
    assert high - low >= 0.4 - 1e-9
    assert 0.1 <= top <= 0.3
    for attention, scheduling in points:
        assert low <= attention + scheduling / 2 <= high
        assert scheduling < top


amount = st.floats(0, 1e15, allow_subnormal=False)


@given(
    st.dictionaries(
        st.sampled_from(LEDGERS),
        st.dictionaries(st.sampled_from(["core", "cache", "dense"]), amount, max_size=3),
        max_size=3,
    )
)
def test_segments_fill_the_bar_in_order_without_overlap(amounts):
    parts = segments(amounts, 100, 500)
    total = sum(value for groups in amounts.values() for value in groups.values())
    if total == 0:
        assert parts == []
        return
    for one, other in pairwise(parts):
        assert one.right <= other.left + 1e-9
    for part in parts:
        assert 100 - 1e-9 <= part.left <= part.right <= 500 + 1e-9
        # a seam takes at most half of a part
        assert part.right - part.left >= 400 * part.share / 2 - 1e-6
    assert sum(part.share for part in parts) == pytest.approx(1)
    assert sum(part.amount for part in parts) == pytest.approx(total)


def test_grouping_keeps_the_sum_and_at_most_five_groups():
    booked = [("ffn_mlp", name, float(size)) for size, name in enumerate(
        ["routed_experts", "shared_experts", "dense", "vocab", "router", "offload", "residual",
         "per_layer_embedding", "norms", "not_yet_known"], start=1)]  # fmt: skip
    groups = grouped(booked)["ffn_mlp"]
    assert len(groups) == 5
    assert sum(groups.values()) == pytest.approx(55)
    assert list(groups)[-1] == "other"
    # the largest named ones stay
    assert set(groups) - {"other"} == {"offload", "router", "vocab", "dense"}


@given(
    st.lists(st.tuples(st.floats(0, 400), st.floats(10, 60)), min_size=1, max_size=7),
)
def test_pushed_blocks_do_not_overlap_and_keep_their_order(blocks):
    blocks = sorted(blocks)
    centres = [centre for centre, _ in blocks]
    heights = [height for _, height in blocks]
    placed = push_apart(centres, heights, 0, 430)
    for (one, other), (low, high) in zip(
        pairwise(placed),
        pairwise(heights),
        strict=True,
    ):
        assert other - one >= (low + high) / 2 - 1e-6
    assert placed[-1] + heights[-1] / 2 <= 430 + 1e-6


@given(st.lists(st.tuples(st.floats(100, 500), st.floats(100, 400)), min_size=1, max_size=6))
def test_names_never_stand_on_each_other_or_outside(heads):
    bounds = Box(8, 60, 692, 560)
    wanted = [
        Wanted(f"Model {index}", 13.5, True, around(head, None), head)
        for index, head in enumerate(heads)
    ]
    placed = [
        spot for spot in place(wanted, words=[], marks=heads, lines=[], bounds=bounds) if spot
    ]
    for index, one in enumerate(placed):
        assert bounds.left <= one.box.left
        assert one.box.right <= bounds.right
        for other in placed[:index]:
            across, down = one.box.overlap(other.box)
            assert across <= 0 or down <= 5.5
    assert len(placed) == len(heads)


def test_a_lone_name_stands_right_of_its_mark():
    wanted = Wanted("Kimi", 13.5, True, around((300, 300), (200, 310)), (300, 300))
    (spot,) = place([wanted], words=[], marks=[(300, 300)], lines=[], bounds=Box(0, 0, 700, 600))
    assert (spot.align, spot.y) == ("left", 300)
    assert spot.x > 300


def test_widths_are_those_of_the_font(root):
    from fontTools.ttLib import TTFont

    for bold, weight in ((False, "Regular"), (True, "Bold")):
        font = TTFont(root / "data" / "fonts" / f"LedgerKitSansSC-{weight}.otf")
        names, advances = font.getBestCmap(), font["hmtx"]
        for sample in ("8×H200 fp8", "decode 一步的时间，落在哪本账？", "−56% → ←"):
            expected = sum(advances[names[ord(c)]][0] for c in sample) * 13.5 / 1000
            assert text_width(sample, 13.5, bold=bold) == pytest.approx(expected)


@given(
    st.text(alphabet="上下文越长，（一）条序列 KV cache 占多少。token", max_size=80),
    st.floats(60, 400),
)
def test_wrapped_lines_keep_the_text_and_the_width(paragraph, width):
    lines = wrap(paragraph, width, 12)
    assert "".join("".join(lines).split()) == "".join(paragraph.split())
    for line in lines:
        # only what cannot be broken may stick out
        assert text_width(line, 12) <= width or len(_pieces(line)) == 1
        assert not line.startswith(" ")


def test_no_line_starts_with_closing_punctuation_or_ends_with_an_opening_one():
    lines = wrap("每条序列在用的字节（不含引擎预留），两轴都取对数；SI 单位（1K = 1024）。", 96, 12)
    assert len(lines) > 3
    assert not any(line[0] in "，；。）" for line in lines)
    assert not any(line.endswith("（") for line in lines)
