"""Predicted against measured: every group of rows with the band, and the offset of each group."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from ledgerkit import text
from ledgerkit.charts import theme as themes
from ledgerkit.charts._page import foot, header, meta, resolve_language
from ledgerkit.charts._trails import read_rows
from ledgerkit.charts.canvas import GRID, MARK, WASH, Canvas
from ledgerkit.charts.metrics import text_width
from ledgerkit.errors import FigureError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from ledgerkit.charts._spec import LedgerChart
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
        self.left, self.top, self.low, self.high = left, top, math.log(low), math.log(high)

    def x(self, seconds: float) -> float:
        return self.left + SIDE * self._place(seconds)

    def y(self, seconds: float) -> float:
        return self.top + SIDE * (1.0 - self._place(seconds))

    def _place(self, seconds: float) -> float:
        return (math.log(seconds) - self.low) / (self.high - self.low)

    def band(self, factor: float) -> list[tuple[float, float]]:
        """Corners of the band, cut at the edges of the square."""
        low, high = math.exp(self.low), math.exp(self.high)
        return [
            (self.x(low), self.y(low)), (self.x(low), self.y(low * factor)),
            (self.x(high / factor), self.y(high)), (self.x(high), self.y(high)),
            (self.x(high), self.y(high / factor)), (self.x(low * factor), self.y(low)),
        ]  # fmt: skip


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
        raise FigureError("the accuracy chart needs rows of tpot and of ttft", given=len(rows))
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
    ends = [math.exp(panel.low), math.exp(panel.high)]
    canvas.segment((panel.x(ends[0]), panel.y(ends[0])), (panel.x(ends[1]), panel.y(ends[1])),
                   canvas.theme.rule)  # fmt: skip
    for power in range(math.ceil(panel.low / math.log(10)), math.ceil(panel.high / math.log(10))):
        tick = 10.0**power
        x, y = panel.x(tick), panel.y(tick)
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
            (panel.x(row["measured_s"]), panel.y(row["predicted_s"])), one.shape,
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
        raise FigureError("the chart of groups needs at least one group")
    series = _series(rows, look)
    canvas = Canvas(look, size.width)
    title = text.get("accuracy.groups.title", language)
    subtitle = text.get("accuracy.groups.subtitle", language)
    top = header(canvas, title, [subtitle])
    names = [f"{row['group']} ({row['rows']})" for row in rows]
    left = themes.MARGIN + max(text_width(name, themes.SMALL) for name in names) + 14
    right = canvas.width - themes.MARGIN - 44
    low, high = math.log(0.45), math.log(2.6)

    def x(ratio: float) -> float:
        return left + (right - left) * (min(max(math.log(ratio), low), high) - low) / (high - low)

    bottom = top + PITCH * len(rows)
    factor = rows[0]["factor"]
    canvas.polygon(
        [(x(1 / factor), top - 8), (x(factor), top - 8), (x(factor), bottom - 8),
         (x(1 / factor), bottom - 8)],
        look.free, level=WASH,
    )  # fmt: skip
    for tick in TICKS:
        canvas.segment((x(tick), top - 8), (x(tick), bottom - 8),
                       look.rule if tick == 1 else look.grid, level=GRID)  # fmt: skip
        canvas.text(x(tick), bottom + 6, f"{tick:g}", align="center")
    for index, (row, name) in enumerate(zip(rows, names, strict=True)):
        y, one = top + PITCH * index, series[row["model"]]
        canvas.text(themes.MARGIN, y, name, color=look.ink)
        canvas.segment((x(row["low"]), y), (x(row["high"]), y), one.color, width=2.2, level=MARK)
        canvas.symbol((x(row["median"]), y), one.shape, 80, fill=one.color)
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
