"""Measured over predicted by cell, and curves of time and share along both axes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ledgerkit import text
from ledgerkit.charts import theme as themes
from ledgerkit.charts._lines import LogAxis, draw_ratio_grid, draw_whisker
from ledgerkit.charts._page import foot, header, meta, resolve_language
from ledgerkit.charts._trails import finite, read_rows
from ledgerkit.charts.canvas import GRID, Canvas, Point
from ledgerkit.charts.metrics import Box, text_width
from ledgerkit.text import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from ledgerkit.charts._chart import LedgerChart
    from ledgerkit.charts.theme import Theme

__all__ = ["loadtest_curves", "loadtest_ratio"]

RATIO_COLUMNS: Final = (
    "cell", "measured_s", "measured_low_s", "measured_high_s", "predicted_s", "predicted_low_s",
    "predicted_high_s", "prompt_tokens", "concurrency_requested",
)  # fmt: skip
CURVE_COLUMNS: Final = (
    "axis", "kind", "place", "step_s", "step_low_s", "step_high_s", "share", "share_low",
    "share_high",
)  # fmt: skip
_ROW: Final = 24.0
_TICKS: Final = (0.1, 0.2, 0.25, 0.33, 0.5, 0.67, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 10.0)


def loadtest_ratio(
    frame: pl.DataFrame,
    *,
    language: str | None = None,
    theme: str | Theme | None = None,
    preset: str | None = None,
) -> LedgerChart:
    """Draw measured over predicted step times, one row per cell.

    Parameters
    ----------
    frame : polars.DataFrame
        ``Diagnosis.table``.
    language : {"zh", "en"}, optional
        Default: that of :func:`ledgerkit.set_language`.
    theme : {"article", "slide", "dark"}, optional
        Colours.
    preset : {"article", "phone"}, optional
        700 px, or 420 px.

    Returns
    -------
    LedgerChart

    Raises
    ------
    FigureError
        If columns are missing, or an option is unknown.
    """
    language = resolve_language(language)
    look = themes.resolve_theme(theme)
    size = themes.resolve_preset(preset, ("article", "phone"))
    rows = [
        row
        for row in read_rows(frame, RATIO_COLUMNS, "measured over predicted")
        if finite(row["predicted_s"], row["measured_s"])
    ]
    canvas = Canvas(look, size.width)
    title = text.get("loadtest.ratio.title", language)
    subtitle = text.get("loadtest.ratio.subtitle", language)
    y = header(canvas, title, [subtitle])
    names = max([text_width(_name(row), themes.SMALL) for row in rows], default=0.0)
    left = themes.MARGIN + names + 16
    right = canvas.width - themes.MARGIN - (176 if size.name == "article" else 20)
    axis = LogAxis(left, right, *_limits(rows))
    bottom = y + 14 + _ROW * max(len(rows), 1)
    draw_ratio_grid(canvas, axis, _TICKS, (y, bottom), words_below=16, one=look.ink)
    if not rows:
        canvas.text(left, y + 14, text.get("loadtest.nothing", language), color=look.ink)
    if size.name == "article" and rows:
        for edge, key in ((86.0, "measured"), (0.0, "predicted")):
            canvas.text(canvas.width - themes.MARGIN - edge, y - 4,
                        text.get(f"loadtest.ratio.{key}", language), align="right")  # fmt: skip
    for index, row in enumerate(rows):
        _ratio_row(canvas, y + 14 + (index + 0.5) * _ROW, row, axis,
                   numbered=size.name == "article")  # fmt: skip
    height = foot(canvas, bottom + 46, [])
    ratios = [row["measured_s"] / row["predicted_s"] for row in rows]
    finding = (
        numbers.number_band(min(ratios), max(ratios), "{:.2f}".format, language) if ratios else ""
    )
    facts = {"title": title, "operating_point": subtitle, "finding": finding}
    items = text.get("alt.separator", language).join(
        f"{_name(row)} {ratio:.2f}" for row, ratio in zip(rows, ratios, strict=True)
    )
    return canvas.chart(
        height,
        description=text.get("alt.figure", language, items=items, **facts).strip(),
        meta=meta(
            "loadtest_ratio", {"frame": (frame, RATIO_COLUMNS)},
            {"language": language, "theme": look.name, "preset": size.name}, **facts,
        ),
    )  # fmt: skip


def _name(row: Mapping[str, Any]) -> str:
    return f"{numbers.context(row['prompt_tokens'])} × {row['concurrency_requested']:.0f}"


def _limits(rows: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    ends = [0.8, 1.25]
    for row in rows:
        names = ("measured_low_s", "measured_s", "measured_high_s", "predicted_low_s",
                 "predicted_high_s")  # fmt: skip
        ends += [
            row[name] / row["predicted_s"] for name in names if finite(row[name]) and row[name] > 0
        ]
    return min(ends) / 1.08, max(ends) * 1.08


def _ratio_row(
    canvas: Canvas, y: float, row: Mapping[str, Any], axis: LogAxis, *, numbered: bool
) -> None:
    look, predicted = canvas.theme, row["predicted_s"]
    canvas.text(axis.start - 12, y, _name(row), align="right", color=look.ink)
    if finite(row["predicted_low_s"], row["predicted_high_s"]):
        band = Box(axis.cut(row["predicted_low_s"] / predicted), y - 8,
                   axis.cut(row["predicted_high_s"] / predicted), y + 8)  # fmt: skip
        canvas.rectangle(band, fill=look.free, level=GRID)
    ratio = row["measured_s"] / predicted
    ends = None
    if finite(row["measured_low_s"], row["measured_high_s"]):
        low, high = max(row["measured_low_s"], 1e-9) / predicted, row["measured_high_s"] / predicted
        ends = ((axis.cut(low), y), (axis.cut(high), y))
    words = f"{numbers.milliseconds(row['measured_s'])} / {numbers.milliseconds(predicted)}"
    draw_whisker(canvas, (axis.cut(ratio), y), ends, width=2.0,
                 tip={_name(row): f"{words} = {ratio:.2f}"})  # fmt: skip
    if numbered:
        edge = canvas.width - themes.MARGIN
        canvas.text(edge - 86, y, numbers.milliseconds(row["measured_s"]), align="right",
                    color=look.ink)  # fmt: skip
        canvas.text(edge, y, numbers.milliseconds(predicted), align="right")


@dataclass(frozen=True)
class _Panel:
    """A box with logarithmic x and linear y."""

    box: Box
    x: LogAxis
    y_top: float

    def at(self, place: float, value: float) -> Point:
        up = min(max(value / self.y_top, 0.0), 1.0)
        return self.x.at(place), self.box.bottom - up * (self.box.bottom - self.box.top)


def loadtest_curves(
    frame: pl.DataFrame,
    *,
    verdict: pl.DataFrame,
    language: str | None = None,
    theme: str | Theme | None = None,
    preset: str | None = None,
) -> LedgerChart:
    """Draw step time and KV share over context and over batch, through the operating point.

    Parameters
    ----------
    frame : polars.DataFrame
        Fitted curves with intervals, and measured means.
    verdict : polars.DataFrame
        One row: operating point and setup in words.
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
        If columns are missing, or an option is unknown.
    """
    language = resolve_language(language)
    look = themes.resolve_theme(theme)
    size = themes.resolve_preset(preset, ("article",))
    needed = ("context_tokens", "concurrency", f"setup_{language}", f"at_{language}")
    point = next(iter(read_rows(verdict, needed, "the load-test curves")))
    rows = list(read_rows(frame, CURVE_COLUMNS, "the load-test curves"))
    canvas = Canvas(look, size.width)
    title = text.get("loadtest.curves.title", language)
    setup = point[f"setup_{language}"]
    at = point[f"at_{language}"]
    subtitle = text.get("loadtest.separator", language).join(part for part in (setup, at) if part)
    y = header(canvas, title, [subtitle])
    step_top = 1.12 * max(
        [row["step_high_s"] or row["step_s"] for row in rows if finite(row["step_s"])],
        default=1.0,
    )
    columns = {"context": (70.0, 336.0), "concurrency": (414.0, 680.0)}
    for axis, (left, right) in columns.items():
        mine = [row for row in rows if row["axis"] == axis]
        if not mine:
            continue
        places = [row["place"] for row in mine]
        reach = LogAxis(left, right, min(places), max(places))
        fixed = (
            text.get("loadtest.curves.at_batch", language,
                     value=numbers.count(point["concurrency"]))
            if axis == "context"
            else text.get("loadtest.curves.at_context", language,
                          value=numbers.context(point["context_tokens"]))
        )  # fmt: skip
        here = point["context_tokens" if axis == "context" else "concurrency"]
        for top, kind, most in ((y + 20, "step", step_top), (y + 262, "share", 1.0)):
            panel = _Panel(Box(left, top, right, top + 170), reach, most)
            _draw_panel(canvas, panel, mine, kind, axis, here, fixed, language)
    height = foot(canvas, y + 262 + 170 + 66, [text.get("loadtest.curves.foot", language)])
    facts = {"title": title, "operating_point": subtitle, "finding": ""}
    items = text.get("alt.separator", language).join(
        f"{row['axis']} {row['place']:.0f}: {numbers.milliseconds(row['step_s'])}"
        for row in rows
        if row["kind"] == "measured"
    )
    return canvas.chart(
        height,
        description=text.get("alt.figure", language, items=items, **facts).strip(),
        meta=meta(
            "loadtest_curves",
            {"frame": (frame, CURVE_COLUMNS), "verdict": (verdict, verdict.columns)},
            {"language": language, "theme": look.name, "preset": size.name}, **facts,
        ),
    )  # fmt: skip


def _draw_panel(
    canvas: Canvas,
    panel: _Panel,
    rows: Sequence[Mapping[str, Any]],
    kind: str,
    axis: str,
    here: float,
    fixed: str,
    language: str,
) -> None:
    look, box = canvas.theme, panel.box
    canvas.text(box.left, box.top - 14, text.get(f"loadtest.curves.{kind}", language),
                color=look.ink, bold=True)  # fmt: skip
    canvas.text(box.right, box.top - 14, fixed, align="right")
    for value in _ticks(panel.y_top, kind):
        _, level = panel.at(panel.x.low, value)
        canvas.segment((box.left, level), (box.right, level), look.grid)
        word = numbers.percent(value) if kind == "share" else f"{value * 1e3:g}"
        canvas.text(box.left - 8, level, word, align="right")
    fitted = [row for row in rows if row["kind"] == "fitted"]
    color = look.fill["attention_kv"] if kind == "share" else look.ink
    suffix = "" if kind == "share" else "_s"
    if fitted:
        upper = [panel.at(row["place"], row[f"{kind}_high{suffix}"]) for row in fitted]
        lower = [panel.at(row["place"], row[f"{kind}_low{suffix}"]) for row in fitted]
        wash = look.wash["attention_kv"] if kind == "share" else look.free
        canvas.polygon([*upper, *reversed(lower)], wash)
        canvas.polyline(
            [panel.at(row["place"], row[f"{kind}{suffix}"]) for row in fitted], color, width=2.0
        )
    at = panel.x.at(here)
    if box.left - 1 <= at <= box.right + 1:
        canvas.segment((at, box.top), (at, box.bottom), look.mute, dash=(2, 3))
    if kind == "share":
        for limit, dash in ((0.2, (6, 4)), (0.5, ())):
            _, level = panel.at(panel.x.low, limit)
            canvas.segment((box.left, level), (box.right, level), look.rule, dash=dash)
    else:
        for row in rows:
            if row["kind"] == "measured":
                _dot(canvas, panel, row)
    canvas.segment((box.left, box.bottom), (box.right, box.bottom), look.rule)
    first, last = math.log2(panel.x.low), math.log2(panel.x.high)
    step = 2 if axis == "context" and last - first > 5 else 1
    for exponent in range(math.ceil(first), math.floor(last) + 1, step):
        word = numbers.context(2.0**exponent) if axis == "context" else f"{2**exponent}"
        canvas.text(panel.x.at(2.0**exponent), box.bottom + 16, word, align="center")
    if kind == "share":
        key = "loadtest.axis.context" if axis == "context" else "loadtest.ticks.batch"
        canvas.text(box.right, box.bottom + 36, text.get(key, language), color=look.ink,
                    align="right")  # fmt: skip


def _ticks(top: float, kind: str) -> list[float]:
    if kind == "share":
        return [0.0, 0.25, 0.5, 0.75, 1.0]
    rough = top / 4
    unit = 10 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= rough)
    return [step * i for i in range(int(top / step) + 1)]


def _dot(canvas: Canvas, panel: _Panel, row: Mapping[str, Any]) -> None:
    place, ends = row["place"], None
    if finite(row["step_low_s"], row["step_high_s"]):
        ends = (panel.at(place, row["step_low_s"]), panel.at(place, row["step_high_s"]))
    words = numbers.milliseconds(row["step_s"])
    draw_whisker(canvas, panel.at(place, row["step_s"]), ends, width=1.6, tip={words: words})
