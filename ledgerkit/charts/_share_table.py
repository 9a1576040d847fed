"""The table of shares and step times beside the triangle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit import text
from ledgerkit.charts import theme as themes
from ledgerkit.charts.metrics import Box, text_width
from ledgerkit.spec.axes import LEDGERS
from ledgerkit.text import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ledgerkit.charts._trails import Trail, Trails
    from ledgerkit.charts.canvas import Canvas
    from ledgerkit.charts.theme import Series
    from ledgerkit.text import Language

__all__ = ["draw_share_table", "ranked", "table_width"]

_TABLE_PITCH = 21.0


def ranked(trails: Sequence[Trail]) -> list[Trail]:
    """Trails from top to bottom: by scheduling share at the marked point, descending.

    Parameters
    ----------
    trails : sequence of Trail
        In any order.

    Returns
    -------
    list of Trail
    """
    return sorted(trails, key=lambda trail: -trail.mark.shares[2])


def table_width(trails: Trails, language: Language) -> float:
    """Width that the share table needs for its names and its caption.

    Parameters
    ----------
    trails : Trails
        Its rows.
    language : {"zh", "en"}
        Language of the caption.

    Returns
    -------
    float
        px.
    """
    names = [text_width(trail.label, themes.SMALL) + 15 for trail in trails.trails]
    return max([text_width(_caption(trails, language), themes.SMALL) + 10, *names]) + 26 + 102


def _caption(trails: Trails, language: Language) -> str:
    """Head of the share table: at which point the shares are taken."""
    points = {trail.mark.value for trail in trails.trails}
    if len(points) == 1 and trails.axis == "prompt_tokens":
        return text.get("triangle.table.one", language, position=trails.position(points.pop()))
    return text.get("triangle.table.mixed", language)


def draw_share_table(
    canvas: Canvas,
    left: float,
    right: float,
    y: float,
    trails: Trails,
    series: Mapping[str, Series],
    language: Language,
) -> float:
    """Draw shares and step time at the marked points.

    Parameters
    ----------
    canvas : Canvas
        Where to draw.
    left, right : float
        Edges of the table in px.
    y : float
        Middle of its head.
    trails : Trails
        Its rows, from the largest scheduling share down.
    series : mapping
        Label to colour and shape.
    language : {"zh", "en"}
        Language of the heads.

    Returns
    -------
    float
        Middle of the last row, px.
    """
    theme = canvas.theme
    rows = ranked(trails.trails)
    columns = [right - 102, right - 68, right - 36, right]
    if right - left > 320:
        columns = [right - 140, right - 96, right - 54, right]
    canvas.text(left, y, _caption(trails, language))
    for ledger, x in zip(LEDGERS, columns, strict=False):
        head = text.get(f"ledger.short.{ledger}", language)
        canvas.text(x, y, head, color=theme.text[ledger], bold=True, align="right")
    canvas.text(right, y, "ms", color=theme.ink, bold=True, align="right")
    canvas.segment((left, y + 12), (right, y + 12), theme.rule)
    for trail in rows:
        y += _TABLE_PITCH if trail is not rows[0] else _TABLE_PITCH + 4
        one = series[trail.label]
        solid = trail.mark.fits
        canvas.symbol(
            (left + 5, y),
            one.shape,
            80,
            fill=one.color if solid else theme.background,
            stroke=theme.background if solid else one.color,
            width=1.0 if solid else 1.6,
        )
        canvas.words.append(Box(left - 2, y - 8, left + 12, y + 8))
        canvas.text(left + 15, y, trail.label, color=theme.ink)
        largest = trail.mark.shares.index(max(trail.mark.shares))
        for index, (ledger, share) in enumerate(
            zip(LEDGERS, numbers.share_texts(trail.mark.shares), strict=True)
        ):
            canvas.text(
                columns[index],
                y,
                share,
                color=theme.text[ledger],
                bold=index == largest,
                align="right",
            )
        milliseconds = numbers.milliseconds(trail.mark.seconds)
        canvas.text(right, y, milliseconds, color=theme.ink, align="right")
    return y
