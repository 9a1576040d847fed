"""The ground of the ledger triangle: regions, grid, outline, scales and corner names."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ledgerkit import text
from ledgerkit.charts import theme as themes
from ledgerkit.charts._labels import Wanted, place
from ledgerkit.charts._ternary import BORDERS, OUTLINE, REGIONS, View, grid_line
from ledgerkit.charts.canvas import GRID, WASH
from ledgerkit.charts.metrics import Box, text_width
from ledgerkit.text import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledgerkit.charts.canvas import Canvas
    from ledgerkit.spec.axes import Ledger
    from ledgerkit.text import Language

__all__ = [
    "draw_ground",
    "draw_region_words",
    "draw_scales",
    "draw_slice_names",
    "draw_triangle_names",
]

Point = tuple[float, float]
_STUB = 10.0


def steps(view: View) -> dict[Ledger, list[float]]:
    """Shares that get a grid line and a label, by ledger.

    Parameters
    ----------
    view : View
        What is shown.

    Returns
    -------
    dict
    """
    across = 0.2 if view.high - view.low > 0.6 else 0.1
    up = 0.2 if view.top > 0.5 else (0.05 if view.top <= 0.25 else 0.1)

    def shares(step: float) -> list[float]:
        return [round(step * index, 2) for index in range(1, round(1 / step))]

    sides = shares(across)
    return {"attention_kv": sides, "ffn_mlp": sides, "scheduling": shares(up)}


def draw_ground(canvas: Canvas, view: View, *, grid: bool = True) -> None:
    """Fill the three regions and draw grid, borders and outline.

    Parameters
    ----------
    canvas : Canvas
        Where to draw.
    view : View
        What is shown.
    grid : bool
        Whether to draw the grid lines.
    """
    theme = canvas.theme
    for ledger, region in REGIONS.items():
        corners = view.polygon(region)
        if len(corners) > 2:
            canvas.polygon(corners, theme.wash[ledger], level=WASH)
    if grid:
        for ledger, shares in steps(view).items():
            for share in shares:
                _line(canvas, view, grid_line(ledger, share), theme.gridline[ledger])
    for border in BORDERS:
        _line(canvas, view, border, theme.rule, dash=(2, 3))
    for side in zip(OUTLINE, (*OUTLINE[1:], OUTLINE[0]), strict=True):
        _line(canvas, view, side, theme.rule, width=1.4)
    if view.top < 1:
        _line(canvas, view, grid_line("scheduling", view.top), theme.rule, dash=(5, 3))
    for edge in (view.low, view.high):
        cut = ((edge, 0.0), (edge, 2 * min(edge, 1 - edge)))
        _line(canvas, view, cut, theme.rule, dash=(5, 3))


def _line(
    canvas: Canvas,
    view: View,
    ends: tuple[Point, Point],
    color: str,
    *,
    width: float = 1.0,
    dash: tuple[int, ...] = (),
) -> None:
    """Draw the part of a line that the window holds."""
    line = view.segment(*ends)
    if line:
        canvas.segment(*line, color, width=width, dash=dash, level=GRID)


def _outward(start: Point, end: Point, length: float) -> Point:
    """A step of ``length`` px beyond ``start``, away from ``end``."""
    dx, dy = start[0] - end[0], start[1] - end[1]
    size = math.hypot(dx, dy)
    return start[0] + dx / size * length, start[1] + dy / size * length


def draw_scales(canvas: Canvas, view: View) -> None:
    """Label the grid lines at the edges, each in its ledger's colour.

    Attention / KV reads along the base, scheduling along the right side, FFN / MLP along the left
    side or, where that is cut off, along the top.

    Parameters
    ----------
    canvas : Canvas
        Where to draw.
    view : View
        What is shown.
    """
    theme = canvas.theme
    for ledger, shares in steps(view).items():
        for share in shares:
            line = view.segment(*grid_line(ledger, share))
            if line is None:
                continue
            (x, y), end = line
            label = numbers.percent(share)
            tip = _outward((x, y), end, _STUB)
            if ledger == "scheduling":
                canvas.segment((x, y), (x + _STUB, y), theme.fill[ledger], width=1.6)
                canvas.text(x + _STUB + 4, y, label, color=theme.text[ledger])
            elif ledger == "attention_kv":
                if y < view.base - 1:  # begins at a cut side, not at the base
                    continue
                canvas.segment((x, y), tip, theme.fill[ledger], width=1.6)
                canvas.text(tip[0] - 2, y + 20, label, color=theme.text[ledger], align="center")
            elif view.whole or share >= 1 - view.top + 1e-9:
                canvas.segment((x, y), tip, theme.fill[ledger], width=1.6)
                canvas.text(tip[0] - 5, tip[1] + 2, label, color=theme.text[ledger], align="right")
            elif x > view.left + 1:
                canvas.segment((x, y), tip, theme.fill[ledger], width=1.6)
                canvas.text(tip[0], tip[1] - 9, label, color=theme.text[ledger], align="center")


def draw_triangle_names(canvas: Canvas, view: View, language: Language) -> None:
    """Name corners and edges of the whole triangle.

    Parameters
    ----------
    canvas : Canvas
        Where to draw.
    view : View
        The whole triangle.
    language : {"zh", "en"}
        Language of the names.
    """
    theme = canvas.theme
    top = view.at(0, 1)
    names = {ledger: text.get(f"ledger.{ledger}", language) for ledger in REGIONS}
    canvas.text(
        top[0],
        top[1] - 17,
        names["scheduling"],
        size=themes.CORNER,
        color=theme.text["scheduling"],
        bold=True,
        align="center",
    )
    _corner_names(canvas, names, view.base + 40)
    canvas.text(
        view.left + view.width / 2,
        view.base + 40,
        text.get("triangle.edge.attention_kv", language),
        color=theme.text["attention_kv"],
        align="center",
    )
    # along the sides, clear of the tick labels
    for ledger, side, angle in (("ffn_mlp", -1, -60), ("scheduling", 1, 60)):
        middle = view.pixel((0.5 + side * 0.25, 0.5))
        lift = 0.06 * view.height
        canvas.text(
            middle[0] + side * 56,
            middle[1] - 26 + lift,
            text.get(f"triangle.edge.{ledger}", language),
            color=theme.text[ledger],
            align="center",
            angle=angle,
        )


def _corner_names(canvas: Canvas, names: dict[Ledger, str], y: float) -> None:
    theme = canvas.theme
    for ledger, x, align in (
        ("ffn_mlp", themes.MARGIN, "left"),
        ("attention_kv", canvas.width - themes.MARGIN, "right"),
    ):
        canvas.text(
            x,
            y,
            names[ledger],  # type: ignore[index]
            size=themes.CORNER,
            color=theme.text[ledger],
            bold=True,
            align=align,
        )


def draw_slice_names(canvas: Canvas, view: View, language: Language) -> None:
    """Name corners, edges and regions of an enlarged slice.

    Parameters
    ----------
    canvas : Canvas
        Where to draw.
    view : View
        The slice.
    language : {"zh", "en"}
        Language of the names.
    """
    theme = canvas.theme
    names = {ledger: text.get(f"ledger.{ledger}", language) for ledger in REGIONS}
    y = view.base + 42
    if view.low <= 0 and view.high >= 1:
        _corner_names(canvas, names, y)
    edge = text.get("triangle.edge.attention_kv", language)
    canvas.text(
        view.left + view.width / 2, y, edge, color=theme.text["attention_kv"], align="center"
    )
    top = view.base - view.height
    canvas.text(
        canvas.width - themes.MARGIN,
        top - 40,
        text.get("triangle.edge.scheduling_up", language),
        color=theme.text["scheduling"],
        align="right",
    )
    _ffn_edge(canvas, view, top - 19, language)


def _ffn_edge(canvas: Canvas, view: View, y: float, language: Language) -> None:
    """Title of the FFN / MLP scale: left of its ticks on the cut top, else in their widest gap."""
    word = text.get("triangle.edge.ffn_mlp", language)
    room = text_width(word, themes.SMALL)
    lines = [view.segment(*grid_line("ffn_mlp", share)) for share in steps(view)["ffn_mlp"]]
    ticks = sorted(
        line[0][0] for line in lines if line and line[0][1] < view.base - view.height + 1
    )
    edges = [themes.MARGIN - 12, *(tick + 18 for tick in ticks)]
    spots = [
        (left + 12, y, "left", float(index))
        for index, (left, right) in enumerate(zip(edges, ticks, strict=False))
        if right - 18 - left > room + 24
    ]
    # no gap is wide enough: a line higher, or two
    spots += [
        (view.left + view.width * 0.42, y - 21, "left", 50.0),
        (canvas.width - themes.MARGIN, y - 39, "right", 60.0),
    ]
    bounds = Box(0, 0, canvas.width, view.base)
    wanted = Wanted(word, themes.SMALL, False, tuple(spots), (view.left, y))
    for spot in place([wanted], words=canvas.words, marks=(), lines=(), bounds=bounds):
        if spot:
            color = canvas.theme.text["ffn_mlp"]
            canvas.text(spot.x, spot.y, spot.text, color=color, align=spot.align)


def draw_region_words(
    canvas: Canvas, view: View, taken: Sequence[Point], language: Language
) -> None:
    """Say on both sides of the border which ledger is the larger one, where there is room.

    Parameters
    ----------
    canvas : Canvas
        Where to draw.
    view : View
        The slice.
    taken : sequence of (x, y)
        Points of marks and trails, which the words keep clear of.
    language : {"zh", "en"}
        Language of the words.
    """
    border = view.pixel((0.5, 0.0))[0]
    wanted = []
    for ledger, side in (("ffn_mlp", -1), ("attention_kv", 1)):
        spots = tuple(
            (border + side * 10, y, "right" if side < 0 else "left", cost)
            for y, cost in ((view.base - 15, 0.0), (view.base - view.height + 16, 1.0))
        )
        word = text.get(f"triangle.largest.{ledger}", language)
        wanted.append(Wanted(word, themes.SMALL, False, spots, (border, view.base)))
    bounds = Box(view.left + 6, 0, view.left + view.width - 6, view.base)
    placed = place(wanted, words=canvas.words, marks=taken, lines=(), bounds=bounds)
    for ledger, spot in zip(("ffn_mlp", "attention_kv"), placed, strict=True):
        if spot and spot.cost < 20:
            canvas.text(
                spot.x, spot.y, spot.text, color=canvas.theme.text[ledger], align=spot.align
            )
