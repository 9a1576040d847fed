"""One row of the memory chart: heading, bar, verdict, and what binds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ledgerkit import text
from ledgerkit.charts import theme as themes
from ledgerkit.charts._contrast import contrast, readable_on
from ledgerkit.charts.canvas import FOCUS, MARK
from ledgerkit.charts.metrics import Box, text_width, wrap
from ledgerkit.text import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ledgerkit.charts.canvas import Canvas
    from ledgerkit.charts.memory import Case
    from ledgerkit.charts.theme import Theme
    from ledgerkit.text import Language

__all__ = ["LAYOUT", "Frame", "colors", "draw_case"]

_LONGEST: Final = 1.05
_READABLE: Final = 4.5


@dataclass(frozen=True)
class Frame:
    """Where a memory row stands, px.

    Parameters
    ----------
    left, right : float
        Zero and the capacity.
    words : float
        Left end of the verdict at the side; None sets it above the bar.
    """

    left: float
    right: float
    words: float | None


LAYOUT: Final[Mapping[str, Frame]] = {
    "article": Frame(20.0, 529.0, 572.0),
    "panel": Frame(20.0, 440.0, 470.0),
    "phone": Frame(20.0, 372.0, None),
}


def colors(theme: Theme) -> dict[str, str]:
    """Colour of each component: the ledger's, and for attention weights its projections tint.

    Parameters
    ----------
    theme : Theme
        The look.

    Returns
    -------
    dict
    """
    return {
        "attention_weights": theme.tints["attention_kv"]["projections"],
        "ffn_weights": theme.fill["ffn_mlp"],
        "cache": theme.fill["attention_kv"],
        "reserve": theme.fill["scheduling"],
    }


def draw_case(
    canvas: Canvas, y: float, case: Case, frame: Frame, language: Language, *, first: bool
) -> float:
    """Draw one deployment's memory.

    Parameters
    ----------
    canvas : Canvas
        Where to draw.
    y : float
        Middle of the line of its name, px.
    case : Case
        What to draw.
    frame : Frame
        Where the bar stands.
    language : {"zh", "en"}
        Language.
    first : bool
        Whether to name limit and capacity.

    Returns
    -------
    float
        Middle of the line after it, px.
    """
    theme = canvas.theme
    y = _heading(canvas, y, case, frame, language, first=first)
    y += 12
    bar = Box(frame.left, y, frame.right, y + 26)
    scale = (frame.right - frame.left) / case.capacity
    end = frame.left + case.capacity * _LONGEST * scale
    canvas.rectangle(bar, fill=theme.free)
    left = frame.left
    for component, size in case.parts.items():
        right = left + size * scale
        if left < end:
            _part(
                canvas, case, component, Box(left, bar.top, min(right, end), bar.bottom), language
            )
        left = right
    _free_words(canvas, case, left, frame, scale, bar, language)
    limit = frame.left + case.limit * scale
    if case.over > 0:
        canvas.rectangle(
            Box(limit, bar.top - 2, min(left, end), bar.bottom + 2),
            stroke=theme.alert,
            width=2.4,
            level=FOCUS,
        )
    if left > end:
        # the bar goes on: two slanted cuts, the number stands in the verdict
        for shift in (-7.0, -2.0):
            canvas.segment(
                (end + shift - 3, bar.bottom + 4),
                (end + shift + 3, bar.top - 4),
                theme.background,
                width=2.4,
                level=FOCUS,
            )
    canvas.segment(
        (limit, bar.top - 4), (limit, bar.bottom + 4), theme.ink, dash=(4, 3), width=1.6, level=MARK
    )
    canvas.segment(
        (frame.right, bar.top - 4), (frame.right, bar.bottom + 4), theme.ink, width=2.4, level=MARK
    )
    if frame.words is not None:
        _verdict(canvas, frame.words, bar.top + 4, case, language)
    y = bar.bottom + 16
    color = theme.alert if case.over > 0 else theme.mute
    for line in wrap(case.binds, canvas.width - 2 * themes.MARGIN, themes.SMALL):
        canvas.text(frame.left, y, line, color=color)
        y += themes.FOOT_PITCH
    return y + 16


def _heading(
    canvas: Canvas, y: float, case: Case, frame: Frame, language: Language, *, first: bool
) -> float:
    """Name, deployment in words, and over the first bar what its two marks are."""
    theme = canvas.theme
    canvas.text(frame.left, y, case.label, size=themes.SUBTITLE, color=theme.ink, bold=True)
    words = text.get(
        "memory.device" if case.deployment else "memory.capacity_only",
        language,
        deployment=case.deployment,
        capacity=numbers.byte_size(case.capacity),
        gib=numbers.gib(case.capacity),
    )
    start = frame.left + text_width(case.label, themes.SUBTITLE, bold=True) + 12
    end = start + text_width(words, themes.SMALL)
    if end <= canvas.width - themes.MARGIN:
        canvas.text(start, y, words)
    else:
        for line in wrap(words, canvas.width - 2 * themes.MARGIN, themes.SMALL):
            y += themes.FOOT_PITCH
            canvas.text(frame.left, y, line)
            end = frame.left + text_width(line, themes.SMALL)
    if frame.words is None:
        y += themes.FOOT_PITCH + 2
        end = _verdict(canvas, frame.left, y, case, language)
    if first:
        y = _mark_names(canvas, y, end, case, frame, language)
    return y


def _mark_names(
    canvas: Canvas, y: float, end: float, case: Case, frame: Frame, language: Language
) -> float:
    """Name limit and capacity over the first bar: beside the heading, or on a line of their own."""
    limit = frame.left + case.limit / case.capacity * (frame.right - frame.left)
    share = numbers.percent(case.limit / case.capacity)
    usable = text.get("memory.usable", language, share=share)
    if limit - text_width(usable, themes.SMALL) < end + 16:
        y += themes.FOOT_PITCH + 1
    ink = canvas.theme.ink
    canvas.text(limit + 2, y, usable, color=ink, align="right")
    canvas.text(limit + 10, y, text.get("memory.capacity", language), color=ink)
    return y


def _verdict(canvas: Canvas, x: float, y: float, case: Case, language: Language) -> float:
    """Whether it fits, by how much not, and at most how many sequences; returns its right end."""
    theme = canvas.theme
    if case.over > 0:
        word = text.get("fits.over", language, amount=numbers.byte_size(case.over))
        color = theme.alert
    else:
        word = text.get(f"fits.{case.fits}", language)
        color = theme.text["scheduling"] if case.fits == "yes" else theme.ink
    canvas.text(x, y, word, size=themes.SUBTITLE, color=color, bold=True)
    end = x + text_width(word, themes.SUBTITLE, bold=True)
    if case.most is None:
        return end
    most = text.get("memory.most", language, count=numbers.count(case.most))
    at = (end + 12, y) if canvas.width < 500 else (x, y + 18)
    canvas.text(*at, most, color=theme.ink)
    return at[0] + text_width(most, themes.SMALL)


def _part(canvas: Canvas, case: Case, component: str, box: Box, language: Language) -> None:
    theme = canvas.theme
    fill = colors(theme)[component]
    size = numbers.byte_size(case.parts[component])
    seam = min(0.8, (box.right - box.left) / 4)
    canvas.rectangle(
        Box(box.left, box.top, box.right - seam, box.bottom),
        fill=fill,
        tip={
            text.get("tip.model", language): case.label,
            text.get("tip.component", language): text.get(f"memory.{component}", language),
            text.get("tip.amount", language): size,
        },
    )
    ink = readable_on(fill, theme)
    wide = box.right - box.left > text_width(size, themes.SMALL) + 12
    if wide and contrast(ink, fill) >= _READABLE:
        canvas.text(
            (box.left + box.right) / 2,
            (box.top + box.bottom) / 2,
            size,
            color=ink,
            align="center",
        )


def _free_words(
    canvas: Canvas,
    case: Case,
    left: float,
    frame: Frame,
    scale: float,
    bar: Box,
    language: Language,
) -> None:
    """How much is free up to the limit, where there is room to say it."""
    room = frame.left + case.limit * scale - left
    if case.over >= 0:
        return
    word = text.get("memory.free", language, amount=numbers.byte_size(-case.over))
    if room > text_width(word, themes.SMALL) + 12:
        canvas.text(left + room / 2, (bar.top + bar.bottom) / 2, word, align="center")
