"""Two bars instead of the triangle, where scheduling is too small to be a corner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit import text
from ledgerkit.charts import theme as themes
from ledgerkit.charts._segments import segments
from ledgerkit.charts.canvas import FOCUS, GRID, MARK
from ledgerkit.charts.metrics import Box, text_width
from ledgerkit.spec.axes import LEDGERS
from ledgerkit.text import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ledgerkit.charts._trails import Trail, Trails
    from ledgerkit.charts.canvas import Canvas
    from ledgerkit.charts.theme import Series
    from ledgerkit.text import Language

__all__ = ["draw_two_ledgers"]

_ROW = 64.0
_BAR = 19.0


def draw_two_ledgers(
    canvas: Canvas,
    y: float,
    trails: Trails,
    series: Mapping[str, Series],
    language: Language,
) -> float:
    """Draw one bar per deployment: Attention / KV from the left, FFN / MLP from the right.

    The boundary is the large mark; the trail above the bar shows where it travels.

    Parameters
    ----------
    canvas : Canvas
        Where to draw.
    y : float
        Where the body starts, px.
    trails : Trails
        What to draw.
    series : mapping
        Label to colour and shape.
    language : {"zh", "en"}
        Language.

    Returns
    -------
    float
        Where the foot starts, px.
    """
    theme = canvas.theme
    left = themes.MARGIN + 6
    phone = canvas.width < 500
    right = canvas.width - themes.MARGIN - (150 if phone else 176)
    columns = [right + step for step in ((34, 68, 100, 150) if phone else (44, 84, 120, 176))]
    for ledger, x in zip(LEDGERS, columns, strict=False):
        head = text.get(f"ledger.short.{ledger}", language)
        canvas.text(x, y, head, color=theme.text[ledger], bold=True, align="right")
    canvas.text(columns[3], y, "ms", color=theme.ink, bold=True, align="right")
    canvas.text(left, y, text.get("two.axis", language), color=theme.text["attention_kv"])
    top = y + 14
    bottom = top + _ROW * len(trails.trails) + 6
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = left + tick * (right - left)
        canvas.segment((x, top), (x, bottom), theme.grid, level=GRID)
        canvas.text(x, bottom + 12, numbers.percent(tick), align="center")
    for index, trail in enumerate(trails.trails):
        _row(canvas, left, right, top + 16 + index * _ROW, trail, series, trails, language)
        middle = top + 16 + index * _ROW + 30
        largest = trail.mark.shares.index(max(trail.mark.shares))
        for column, (ledger, share) in enumerate(
            zip(LEDGERS, numbers.share_texts(trail.mark.shares), strict=True)
        ):
            canvas.text(
                columns[column],
                middle,
                share,
                color=theme.text[ledger],
                bold=column == largest,
                align="right",
            )
        step = numbers.milliseconds(trail.mark.seconds)
        canvas.text(columns[3], middle, step, color=theme.ink, align="right")
    return bottom + 50


def _row(
    canvas: Canvas,
    left: float,
    right: float,
    y: float,
    trail: Trail,
    series: Mapping[str, Series],
    trails: Trails,
    language: Language,
) -> None:
    theme = canvas.theme
    one = series[trail.label]
    canvas.text(left, y, trail.label, size=themes.LABEL, color=one.color, bold=True)
    bar = Box(left, y + 30 - _BAR / 2, right, y + 30 + _BAR / 2)
    amounts = {
        ledger: {"": share} for ledger, share in zip(LEDGERS, trail.mark.shares, strict=True)
    }
    for part in segments(amounts, bar.left, bar.right):
        canvas.rectangle(
            Box(part.left, bar.top, part.right, bar.bottom),
            fill=theme.fill[part.ledger],
            tip={
                text.get("tip.model", language): trail.label,
                text.get("tip.ledger", language): text.get(f"ledger.{part.ledger}", language),
                text.get("tip.share", language): numbers.percent(part.share),
            },
        )
    if len(trail.stops) > 1:
        _travel(canvas, left, right, y + 15, trail, one, trails)
    at = (left + trail.mark.shares[0] * (right - left), y + 30)
    solid = trail.mark.fits
    canvas.symbol(
        at,
        one.shape,
        150,
        fill=one.color if solid else theme.background,
        stroke=theme.background if solid else one.color,
        level=FOCUS,
    )


def _travel(
    canvas: Canvas,
    left: float,
    right: float,
    y: float,
    trail: Trail,
    series: Series,
    trails: Trails,
) -> None:
    """The way of the boundary along the trail, with its ends written beside it."""
    points = [(left + stop.shares[0] * (right - left), y) for stop in trail.stops]
    widths = [1.0 + 3.0 * index / (len(points) - 1) for index in range(len(points))]
    fitting = sum(1 for stop in trail.stops if stop.fits)
    if fitting > 1:
        canvas.trail(points[:fitting], widths[:fitting], series.color)
    if fitting < len(points):
        canvas.polyline(points[max(0, fitting - 1) :], series.color, width=2, dash=(4, 3))
    start, end = points[0][0], points[-1][0]
    first, last = (trails.position(trail.stops[index].value) for index in (0, -1))
    forward = end >= start
    if abs(end - start) < 8:
        return
    name_ends = left + text_width(trail.label, themes.LABEL, bold=True) + 8
    low = start if forward else end
    if low - text_width(first, themes.SMALL) - 6 > name_ends or low - 40 > left:
        canvas.text(low - 6, y, first if forward else last, align="right")
    canvas.text((end if forward else start) + 10, y, last if forward else first)
    solid = trail.stops[-1].fits
    canvas.symbol(
        points[-1],
        "triangle",
        80,
        fill=series.color if solid else canvas.theme.background,
        stroke=canvas.theme.background if solid else series.color,
        width=0.8,
        angle=90 if forward else 270,
        level=MARK,
    )
