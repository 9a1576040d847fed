"""Predicted against measured: every group of rows with the band, and the offset of each group."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from ledgerkit import text
from ledgerkit.charts import theme as themes
from ledgerkit.charts._lines import LogAxis, draw_ratio_grid
from ledgerkit.charts._page import foot, header, meta, resolve_language
from ledgerkit.charts._trails import read_rows
from ledgerkit.charts.canvas import MARK, WASH, Canvas, Point
from ledgerkit.charts.metrics import Box, text_width
from ledgerkit.errors import FigureError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from ledgerkit.charts._chart import LedgerChart
    from ledgerkit.charts.theme import Series, Theme

__all__ = ["accuracy_groups", "accuracy_scatter"]

ROWS: Final = (
    "quantity",
    "model",
    "group",
    "measured_s",
    "predicted_s",
    "rows",
    "factor",
    "covered",
)
GROUPS: Final = ("group", "model", "rows", "low", "median", "high", "factor")
SIDE: Final = 278.0
PITCH: Final = 20.0
TICKS: Final = (0.5, 0.7, 1.0, 1.4, 2.0)


def _seconds(value: float) -> str:
    """Name a tick: 1 ms, 10 ms, 1 s."""
    return f"{value:g} s" if value >= 1 else f"{value * 1e3:g} ms"


def _series(rows: Sequence[Mapping[str, Any]], look: Theme) -> dict[str, Series]:
    """Colours by model, in the order of the names, so that both charts agree."""
    return themes.assign_series([(name, name) for name in sorted({r["model"] for r in rows})], look)


class _Panel:
    """One square of predicted against measured seconds, both logarithmic."""

    def __init__(self, left: float, top: float, low: float, high: float) -> None:
        self.low, self.high = low, high
        self.across = LogAxis(left, left + SIDE, low, high)
        self.up = LogAxis(top + SIDE, top, low, high)

    def at(self, measured: float, predicted: float) -> Point:
        return self.across.at(measured), self.up.at(predicted)

    def band(self, factor: float) -> list[Point]:
        """Corners of the band, cut at the edges of the square."""
        low, high = self.low, self.high
        corners = ((low, low), (low, low * factor), (high / factor, high), (high, high),
                   (high, high / factor), (low * factor, low))  # fmt: skip
        return [self.at(*corner) for corner in corners]


def _key(canvas: Canvas, y: float, series: Mapping[str, Series]) -> float:
    """Name the models, each with its colour and shape."""
    x = themes.MARGIN
    for one in series.values():
        width = 14 + text_width(one.label, themes.SMALL, bold=True)
        if x > themes.MARGIN and x + width > canvas.width - themes.MARGIN:
            x, y = themes.MARGIN, y + 19
        canvas.symbol((x + 5, y), one.shape, 70, fill=one.color)
        canvas.text(x + 14, y, one.label, color=one.color, bold=True)
        x += width + 18
    return y


def accuracy_scatter(
    frame: pl.DataFrame,
    *,
    language: str | None = None,
    theme: str | Theme | None = None,
    preset: str | None = None,
) -> LedgerChart:
    """Draw predicted against measured seconds, one mark per group of alike rows.

    Parameters
    ----------
    frame : polars.DataFrame
        Columns quantity (tpot, ttft), model, group, measured_s, predicted_s, rows, factor, covered.
    language : {"zh", "en"}, optional
        Default: that of :func:`ledgerkit.set_language`.
    theme : {"article", "slide", "dark"}, optional
        Colours.
    preset : {"article"}, optional
        700 px.

    Returns
    -------
    LedgerChart

    Raises
    ------
    FigureError
        If columns are missing, or there is no row.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame(
    ...     {
    ...         "quantity": ["tpot", "ttft"],
    ...         "model": "m",
    ...         "group": "g",
    ...         "measured_s": [0.01, 0.2],
    ...         "predicted_s": [0.011, 0.3],
    ...         "rows": 4,
    ...         "factor": [1.4, 2.7],
    ...         "covered": 0.9,
    ...     }
    ... )
    >>> accuracy_scatter(frame, language="en").to_dict()["usermeta"]["ledgerkit"]["title"]
    'How far are predictions from measurements?'
    """
    language = resolve_language(language)
    look = themes.resolve_theme(theme)
    size = themes.resolve_preset(preset, ("article",))
    rows = read_rows(frame, ROWS, "the accuracy chart")
    by_quantity = {q: [r for r in rows if r["quantity"] == q] for q in ("tpot", "ttft")}
    if not all(by_quantity.values()):
        raise FigureError(
            "the accuracy chart needs rows of tpot and of ttft",
            given=len(rows),
            allowed="rows of both",
        )
    series = _series(rows, look)
    canvas = Canvas(look, size.width)
    title = text.get("accuracy.figure.title", language)
    many = sum(row["rows"] for row in by_quantity["tpot"])
    subtitle = text.get("accuracy.figure.subtitle", language, rows=f"{many:,}")
    y = header(canvas, title, [subtitle])
    y = _key(canvas, y, series) + 22
    for index, (quantity, found) in enumerate(by_quantity.items()):
        left = 66.0 + index * 334.0
        name = text.get(f"accuracy.figure.{quantity}", language)
        canvas.text(left, y, name, size=themes.SUBTITLE, color=look.ink, bold=True)
        _draw_panel(canvas, left, y + 18, found, series, language)
    y += 18 + SIDE
    facts = {
        f"{prefix}{quantity}": value
        for quantity, found in by_quantity.items()
        for prefix, value in (
            ("", f"{found[0]['factor']:.2f}"), ("covered_", f"{100 * found[0]['covered']:.0f}")
        )
    }  # fmt: skip
    finding = text.get("accuracy.figure.foot", language, **facts)
    height = foot(canvas, y + 58, [finding])
    return canvas.chart(
        height, description=f"{title} {subtitle} {finding}",
        meta=meta("accuracy_scatter", {"frame": (frame, ROWS)},
                  {"language": language, "theme": look.name, "preset": size.name},
                  title=title, operating_point=subtitle, finding=finding),
    )  # fmt: skip


def _draw_panel(
    canvas: Canvas, left: float, top: float, rows: Sequence[Mapping[str, Any]],
    series: Mapping[str, Series], language: str,
) -> None:  # fmt: skip
    seconds = [row[name] for row in rows for name in ("measured_s", "predicted_s")]
    panel = _Panel(left, top, min(seconds) / 1.3, max(seconds) * 1.3)
    canvas.polygon(panel.band(rows[0]["factor"]), canvas.theme.free, level=WASH)
    low, high = panel.low, panel.high
    canvas.segment(panel.at(low, low), panel.at(high, high), canvas.theme.rule)
    for power in range(math.ceil(math.log10(low)), math.ceil(math.log10(high))):
        tick = 10.0**power
        x, y = panel.at(tick, tick)
        canvas.segment((x, top), (x, top + SIDE), canvas.theme.grid)
        canvas.segment((left, y), (left + SIDE, y), canvas.theme.grid)
        canvas.text(x, top + SIDE + 14, _seconds(tick), align="center")
        canvas.text(left - 6, y, _seconds(tick), align="right")
    measured, predicted = (
        text.get(f"accuracy.figure.{name}", language) for name in ("measured", "predicted")
    )
    canvas.text(left + SIDE, top + SIDE + 32, f"{measured} →", align="right")
    canvas.text(left + 6, top + 10, f"↑ {predicted}")
    for row in rows:
        one = series[row["model"]]
        tip = {
            row["group"]: f"{measured} {_precise(row['measured_s'])}, "
            f"{predicted} {_precise(row['predicted_s'])}, {row['rows']}"
        }
        canvas.symbol(
            panel.at(row["measured_s"], row["predicted_s"]), one.shape,
            18 + 6 * math.sqrt(row["rows"]), fill=one.color, width=0.6, level=MARK, tip=tip,
            opacity=0.75,
        )  # fmt: skip


def _precise(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.1f} ms"


def accuracy_groups(
    frame: pl.DataFrame,
    *,
    language: str | None = None,
    theme: str | Theme | None = None,
    preset: str | None = None,
) -> LedgerChart:
    """Draw predicted over measured time between tokens, one line per model, device and engine.

    Parameters
    ----------
    frame : polars.DataFrame
        Columns group, model, rows, low, median, high (of the ratio), factor.
    language : {"zh", "en"}, optional
        Default: that of :func:`ledgerkit.set_language`.
    theme : {"article", "slide", "dark"}, optional
        Colours.
    preset : {"article"}, optional
        700 px.

    Returns
    -------
    LedgerChart

    Raises
    ------
    FigureError
        If columns are missing, or there is no row.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame(
    ...     {
    ...         "group": ["m on d"],
    ...         "model": ["m"],
    ...         "rows": [9],
    ...         "low": [0.9],
    ...         "median": [1.05],
    ...         "high": [1.2],
    ...         "factor": [1.4],
    ...     }
    ... )
    >>> accuracy_groups(frame, language="en").to_dict()["height"] > 100
    True
    """
    language = resolve_language(language)
    look = themes.resolve_theme(theme)
    size = themes.resolve_preset(preset, ("article",))
    rows = read_rows(frame, GROUPS, "the chart of groups")
    if not rows:
        raise FigureError(
            "the chart of groups needs at least one group", allowed="one group or more"
        )
    series = _series(rows, look)
    canvas = Canvas(look, size.width)
    title = text.get("accuracy.groups.title", language)
    subtitle = text.get("accuracy.groups.subtitle", language)
    top = header(canvas, title, [subtitle])
    names = [f"{row['group']} ({row['rows']})" for row in rows]
    left = themes.MARGIN + max(text_width(name, themes.SMALL) for name in names) + 14
    axis = LogAxis(left, canvas.width - themes.MARGIN - 44, 0.45, 2.6)
    bottom = top + PITCH * len(rows)
    factor = rows[0]["factor"]
    band = Box(axis.cut(1 / factor), top - 8, axis.cut(factor), bottom - 8)
    canvas.rectangle(band, fill=look.free, level=WASH)
    draw_ratio_grid(canvas, axis, TICKS, (top - 8, bottom - 8), words_below=14, one=look.rule)
    for index, (row, name) in enumerate(zip(rows, names, strict=True)):
        y, one = top + PITCH * index, series[row["model"]]
        canvas.text(themes.MARGIN, y, name, color=look.ink)
        canvas.segment((axis.cut(row["low"]), y), (axis.cut(row["high"]), y), one.color, width=2.2,
                       level=MARK)  # fmt: skip
        canvas.symbol((axis.cut(row["median"]), y), one.shape, 80, fill=one.color)
        canvas.text(canvas.width - themes.MARGIN, y, f"{row['median']:.2f}", align="right",
                    color=look.ink)  # fmt: skip
    finding = text.get("accuracy.groups.foot", language)
    height = foot(canvas, bottom + 32, [finding])
    return canvas.chart(
        height, description=f"{title} {subtitle} {finding}",
        meta=meta("accuracy_groups", {"frame": (frame, GROUPS)},
                  {"language": language, "theme": look.name, "preset": size.name},
                  title=title, operating_point=subtitle, finding=finding),
    )  # fmt: skip
