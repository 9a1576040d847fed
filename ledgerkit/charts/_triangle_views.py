"""The views of the ledger triangle: whole, enlarged, empty, and the reading aid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit import text
from ledgerkit.charts import theme as themes
from ledgerkit.charts._field import (
    draw_ground,
    draw_region_words,
    draw_scales,
    draw_slice_names,
    draw_triangle_names,
)
from ledgerkit.charts._marks import draw_trails
from ledgerkit.charts._names import Ground
from ledgerkit.charts._share_table import draw_share_table, table_width
from ledgerkit.charts._ternary import HEIGHT, OUTLINE, View, clip_polygon, slice_window
from ledgerkit.charts.canvas import MARK
from ledgerkit.charts.metrics import Box, wrap
from ledgerkit.text import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ledgerkit.charts._trails import Trails
    from ledgerkit.charts.canvas import Canvas
    from ledgerkit.charts.theme import Preset, Series
    from ledgerkit.text import Language

__all__ = ["draw_empty", "draw_whole", "draw_zoomed"]


def _triangle(left: float, apex: float, side: float) -> View:
    return View(left, apex + side * HEIGHT, side, side * HEIGHT)


def draw_empty(canvas: Canvas, y: float, size: Preset, language: Language) -> float:
    """Draw the empty triangle with its reading aid, and what to do.

    Parameters
    ----------
    canvas : Canvas
        Where to draw.
    y : float
        Where the body starts, px.
    size : Preset
        Width of the figure.
    language : {"zh", "en"}
        Language.

    Returns
    -------
    float
        Where the foot starts, px.
    """
    view = _whole_view(size, y)
    draw_ground(canvas, view)
    draw_scales(canvas, view)
    draw_triangle_names(canvas, view, language)
    if size.name != "phone":
        draw_aid(canvas, themes.MARGIN, y + 12, language)
    canvas.text(
        view.left + view.width / 2,
        view.base - view.height * 0.42,
        text.get("triangle.choose", language),
        size=themes.CORNER,
        color=canvas.theme.ink,
        bold=True,
        align="center",
    )
    return view.base + 84


def _whole_view(size: Preset, y: float) -> View:
    left, side = {"article": (66.0, 520.0), "panel": (80.0, 428.0), "phone": (44.0, 330.0)}[
        size.name
    ]
    return _triangle(left, y + 32, side)


def draw_whole(
    canvas: Canvas,
    y: float,
    size: Preset,
    trails: Trails,
    series: Mapping[str, Series],
    language: Language,
    focus: str | None,
) -> float:
    """Draw the whole triangle, with the table of shares beside or below it.

    Parameters
    ----------
    canvas : Canvas
        Where to draw.
    y : float
        Where the body starts, px.
    size : Preset
        Width of the figure.
    trails : Trails
        What to draw.
    series : mapping
        Label to colour and shape.
    language : {"zh", "en"}
        Language.
    focus : str or None
        Label in full colour.

    Returns
    -------
    float
        Where the foot starts, px.
    """
    view = _whole_view(size, y)
    draw_ground(canvas, view)
    draw_scales(canvas, view)
    draw_triangle_names(canvas, view, language)
    beside = size.name == "article" and table_width(trails, language) <= 258
    if size.name != "phone":
        draw_aid(canvas, themes.MARGIN, y + 12, language)
    right = canvas.width - themes.MARGIN
    if beside:
        draw_share_table(canvas, right - 256, right, y + 12, trails, series, language)
    bounds = Box(8, y, canvas.width - 8, view.base - 4)
    draw_trails(
        canvas,
        Ground(view, bounds, listed=size.name != "panel"),
        trails,
        series,
        language,
        focus=focus,
    )
    y = view.base + 40
    if not beside and size.name != "panel":
        y = draw_share_table(canvas, themes.MARGIN, right, y + 38, trails, series, language)
    return y + 38


def draw_zoomed(
    canvas: Canvas,
    y: float,
    size: Preset,
    trails: Trails,
    series: Mapping[str, Series],
    language: Language,
    focus: str | None,
) -> float:
    """Draw the whole triangle small, the table beside it, and its lower slice enlarged below.

    Parameters
    ----------
    canvas : Canvas
        Where to draw.
    y : float
        Where the body starts, px.
    size : Preset
        Width of the figure.
    trails : Trails
        What to draw.
    series : mapping
        Label to colour and shape.
    language : {"zh", "en"}
        Language.
    focus : str or None
        Label in full colour.

    Returns
    -------
    float
        Where the foot starts, px.
    """
    phone = size.name == "phone"
    low, high, top = slice_window([(stop.shares[0], stop.shares[2]) for stop in trails.stops])
    inset = _triangle(38.0, y + 26, 140.0 if phone else 200.0)
    _inset(canvas, inset, trails, series, language, (low, high, top))
    right = canvas.width - themes.MARGIN
    beside = inset.left + inset.width + 40
    bottom = y
    if not phone and size.name != "panel":
        bottom = draw_share_table(canvas, beside + 20, right, y + 8, trails, series, language) + 32
        beside += 20
    elif not phone:
        beside += 20
    bottom = _aid_text(canvas, beside, bottom if bottom > y else y + 30, right - beside, language)
    top_y = max(inset.base + 24, bottom) + 76
    # room for the scheduling scale on the right, and for FFN labels at a cut left side
    margins = (24.0, 42.0) if phone else (40.0, 40.0)
    if high - low < 1:
        margins = (52.0, 52.0)
    height = 190.0 if phone else 250.0
    width = canvas.width - sum(margins)
    view = View(margins[0], top_y + height, width, height, low, high, top)
    _slice_heading(canvas, view, top_y - 58, language)
    draw_ground(canvas, view)
    draw_scales(canvas, view)
    draw_slice_names(canvas, view, language)
    bounds = Box(8, top_y + 2, canvas.width - 8, view.base - 3)
    taken = draw_trails(
        canvas,
        Ground(view, bounds, listed=size.name != "panel"),
        trails,
        series,
        language,
        focus=focus,
    )
    draw_region_words(canvas, view, taken, language)
    y = view.base + 42
    if phone:
        y = draw_share_table(canvas, themes.MARGIN, right, y + 36, trails, series, language)
    return y + 36


def _slice_heading(canvas: Canvas, view: View, y: float, language: Language) -> None:
    top = numbers.percent(view.top)
    canvas.text(
        themes.MARGIN,
        y,
        text.get("triangle.zoom.title", language, top=top),
        size=themes.SUBTITLE,
        color=canvas.theme.ink,
        bold=True,
    )
    if view.stretch > 1.05:
        note = text.get("triangle.zoom.stretch", language, factor=f"{view.stretch:.1f}")
        canvas.text(themes.MARGIN, y + 18, note)


def _inset(
    canvas: Canvas,
    view: View,
    trails: Trails,
    series: Mapping[str, Series],
    language: Language,
    window: tuple[float, float, float],
) -> None:
    """The whole triangle with the enlarged part outlined."""
    theme = canvas.theme
    draw_ground(canvas, view, grid=False)
    draw_trails(
        canvas,
        Ground(view, Box(0, 0, canvas.width, canvas.width), names=False, scale=0.45),
        trails,
        series,
        language,
    )
    low, high, top = window
    corners = [view.pixel(point) for point in clip_polygon(OUTLINE, low, high, 0.0, top)]
    for start, end in zip(corners, (*corners[1:], corners[0]), strict=True):
        canvas.segment(start, end, theme.ink, width=1.4, level=MARK)
    middle = view.left + view.width / 2
    for ledger, x, y, align in (
        ("scheduling", middle, view.base - view.height - 13, "center"),
        ("ffn_mlp", view.left - 18, view.base + 15, "left"),
        ("attention_kv", view.left + view.width + 26, view.base + 15, "right"),
    ):
        canvas.text(
            x,
            y,
            text.get(f"ledger.plain.{ledger}", language),
            color=theme.text[ledger],
            bold=True,
            align=align,
        )


def _aid_text(canvas: Canvas, x: float, y: float, room: float, language: Language) -> float:
    canvas.text(x, y, text.get("triangle.aid.title", language), color=canvas.theme.ink, bold=True)
    for paragraph in text.get("triangle.aid.text", language).split("\n"):
        for line in wrap(paragraph, room, themes.SMALL):
            y += themes.FOOT_PITCH
            canvas.text(x, y, line)
    return y


def draw_aid(canvas: Canvas, x: float, y: float, language: Language) -> None:
    """How to read a point: two lines of text, and a small triangle with one example.

    Parameters
    ----------
    canvas : Canvas
        Where to draw.
    x, y : float
        Where the heading starts, px.
    language : {"zh", "en"}
        Language of the text.
    """
    theme = canvas.theme
    bottom = _aid_text(canvas, x, y, 172, language)
    view = _triangle(x + 24, bottom + 27, 84.0)
    point = view.at(0.3, 0.2)
    corners = [view.pixel(corner) for corner in OUTLINE]
    for start, end in zip(corners, (*corners[1:], corners[0]), strict=True):
        canvas.segment(start, end, theme.rule)
    guides = (
        ("attention_kv", view.at(0.3, 0.0), "30%", (-4, 15), "center"),
        ("ffn_mlp", view.at(0.0, 0.5), "50%", (-6, -6), "right"),
        ("scheduling", view.at(0.8, 0.2), "20%", (7, 0), "left"),
    )
    for ledger, end, share, (dx, dy), align in guides:
        canvas.segment(point, end, theme.fill[ledger], width=1.8)
        canvas.text(
            end[0] + dx,
            end[1] + dy,
            share,
            color=theme.text[ledger],
            bold=True,
            align=align,
        )
    for ledger, corner in zip(("ffn_mlp", "attention_kv", "scheduling"), corners, strict=True):
        canvas.symbol(corner, "circle", 40, fill=theme.fill[ledger], width=0)
    canvas.symbol(point, "circle", 46, fill=theme.ink, width=1.2)
