"""Break-even curves: both sides of a transfer along an axis, with the crossing marked."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from ledgerkit import text
from ledgerkit._techniques.break_even import axis_value
from ledgerkit.charts import theme as themes
from ledgerkit.charts._lines import LogAxis
from ledgerkit.charts._page import foot, header, meta, resolve_language
from ledgerkit.charts._trails import read_rows
from ledgerkit.charts.canvas import FOCUS, MARK, Canvas
from ledgerkit.charts.metrics import text_width
from ledgerkit.charts.waterfall import amount_writer
from ledgerkit.errors import FigureError
from ledgerkit.text import numbers

if TYPE_CHECKING:
    import polars as pl

    from ledgerkit._techniques.double_entry import Transfer
    from ledgerkit.charts._chart import LedgerChart
    from ledgerkit.charts.theme import Theme
    from ledgerkit.text import Language

__all__ = ["break_even_curves", "draw_break_even"]

COLUMNS: Final = (
    "value", "before", "after", "sides", "crossing", "first", "axis", "resource", "phase",
    "accounts", "model", "before_label", "after_label", "title_zh", "title_en", "deployment_zh",
    "deployment_en", "sentence_zh", "sentence_en", "prompt_tokens", "concurrency",
)  # fmt: skip
_LEFT: Final = 84.0
_HEIGHT: Final = 300.0
_CONTEXTS: Final = ("context", "prompt_tokens", "query_tokens", "cached_tokens", "output_tokens")


def break_even_curves(
    table: pl.DataFrame,
    *,
    language: str | None = None,
    theme: str | Theme | None = None,
    preset: str | None = None,
) -> LedgerChart:
    """Draw what both sides of a transfer cost along an axis.

    Parameters
    ----------
    table : polars.DataFrame
        ``Transfer.curve()``.
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
        If columns are missing, an option is unknown, or there is nothing to draw.

    Examples
    --------
    >>> import ledgerkit as lk
    >>> work = lk.Workload(prompt_tokens=512, output_tokens=256, concurrency=8)
    >>> drafting = lk.transfer(
    ...     "speculative_decoding",
    ...     model="llama-3.1-8b",
    ...     hardware="h100-sxm-80gb",
    ...     workload=work,
    ...     draft="llama-3.2-1b",
    ...     acceptance=0.6,
    ... )
    >>> chart = break_even_curves(drafting.curve("concurrency"), language="en")
    >>> chart.to_dict()["usermeta"]["ledgerkit"]["finding"].partition(":")[0]
    'time, decode, prompt 512'
    """
    language = resolve_language(language)
    look = themes.resolve_theme(theme)
    size = themes.resolve_preset(preset, ("article",))
    rows = [
        row
        for row in read_rows(table, COLUMNS, "the break-even curves")
        if row["value"] > 0 and row["before"] > 0 and row["after"] > 0
    ]
    if len(rows) < 2:
        raise FigureError(
            "a break-even chart needs two positive points",
            given=len(rows),
            allowed="two points above 0 or more",
        )
    first = rows[0]
    canvas = Canvas(look, size.width)
    title = text.get("break_even.title", language, title=first[f"title_{language}"])
    point = text.get(
        "transfer.point", language, model=first["model"],
        deployment=first[f"deployment_{language}"], prompt=numbers.context(first["prompt_tokens"]),
        concurrency=numbers.count(first["concurrency"]),
    )  # fmt: skip
    subtitles = [point, first[f"sentence_{language}"]]
    if first["accounts"]:
        subtitles.append(text.get("break_even.accounts", language, accounts=first["accounts"]))
    y = header(canvas, title, subtitles)
    _draw(canvas, y + 4, rows, language)
    height = foot(canvas, y + _HEIGHT + 68, [text.get("break_even.foot", language)])
    facts = {"title": title, "operating_point": point, "finding": first[f"sentence_{language}"]}
    options = {"language": language, "theme": look.name, "preset": size.name}
    return canvas.chart(
        height,
        description=f"{title}. {point}. {facts['finding']}",
        meta=meta("break_even_curves", {"table": (table, COLUMNS)}, options, **facts),
    )


def _powers(low: float, high: float, base: float) -> list[float]:
    start = math.ceil(math.log(low, base) - 1e-9)
    end = math.floor(math.log(high, base) + 1e-9)
    step = max(1, math.ceil((end - start + 1) / 8))
    return [base**power for power in range(start, end + 1, step)]


def _ticks(axis: str, low: float, high: float) -> list[float]:
    """Powers of four where tokens are counted, of two for sequences, decimal ones elsewhere."""
    if axis in _CONTEXTS:
        return _powers(low, high, 4.0)
    return _powers(low, high, 2.0) if axis == "concurrency" else _nice(low, high)


def _nice(low: float, high: float) -> list[float]:
    """Powers of ten, or some multiples of these where there are few."""
    tens = _powers(low, high, 10.0)
    if len(tens) > 2:
        return tens
    first = math.floor(math.log10(low))
    found = [
        digit * 10.0**power
        for power in range(first, math.ceil(math.log10(high)) + 1)
        for digit in (1, 2, 3, 4, 5, 6, 7, 8)
        if low <= digit * 10.0**power <= high
    ]
    return found if len(found) < 9 else [value for value in found if f"{value:e}"[0] in "125"]


def _draw(canvas: Canvas, top: float, rows: list[dict[str, Any]], language: Language) -> None:
    look, right = canvas.theme, canvas.width - themes.MARGIN - 8
    first = rows[0]
    write = amount_writer(first["resource"])
    values = [row["value"] for row in rows]
    amounts = [row[side] for row in rows for side in ("before", "after")]
    across = LogAxis(_LEFT, right, min(values), max(values))
    low, high = min(amounts), max(amounts)
    if high / low < 1.2:
        low, high = low / 1.1, high * 1.1
    low /= (high / low) ** 0.12  # room for the mark of a crossing near the axis
    bottom = top + _HEIGHT
    up = LogAxis(bottom, top + 12, low, high)
    for tick in _ticks(first["axis"], min(values), max(values)):
        x = across.at(tick)
        canvas.segment((x, top), (x, bottom), look.grid)
        words = axis_value(first["axis"], tick)
        # the last one may not leave the page
        x = min(x, canvas.width - 4 - text_width(words, themes.SMALL) / 2)
        canvas.text(x, bottom + 15, words, align="center")
    for tick in _nice(low, high):
        y = up.at(tick)
        canvas.segment((_LEFT, y), (right, y), look.grid)
        canvas.text(_LEFT - 8, y, write(tick), align="right")
    canvas.segment((_LEFT, bottom), (right, bottom), look.rule)
    what = text.get(
        "break_even.axis", language, resource=text.get(f"resource.{first['resource']}", language),
        phase=text.get(f"phase.{first['phase']}", language),
    )  # fmt: skip
    canvas.text(themes.MARGIN, top - 14, what, color=look.ink, bold=True)
    canvas.text(right, bottom + 36, _axis_name(first["axis"], language), align="right",
                color=look.ink, bold=True)  # fmt: skip
    for side, color, dash in (("before", look.mute, (6, 4)), ("after", look.ink, ())):
        points = [(across.at(row["value"]), up.at(row[side])) for row in rows]
        canvas.polyline(points, color, width=2.2, dash=dash, level=MARK)
    _draw_key(canvas, bottom + 36, first, language)
    if first["crossing"] and across.low <= first["crossing"] <= across.high:
        _draw_crossing(canvas, rows, across, up, language)


def _axis_name(axis: str, language: Language) -> str:
    try:
        return text.get(f"transfer.axis.{axis}", language)
    except KeyError:
        return axis


def _draw_key(canvas: Canvas, y: float, first: dict[str, Any], language: Language) -> None:
    look, x = canvas.theme, themes.MARGIN
    same = first["before_label"] == first["after_label"]
    sides = first["sides"].split("_")
    for side, color, dash in zip(sides, (look.mute, look.ink), ((6, 4), ()), strict=True):
        canvas.segment((x, y), (x + 26, y), color, width=2.2, dash=dash, level=MARK)
        label = first["model"] if same else first.get(f"{side}_label", first["model"])
        words = text.get(f"break_even.{side}", language, label=label)
        canvas.text(x + 34, y, words, color=look.ink)
        x += 34 + text_width(words, themes.SMALL) + 20


def _draw_crossing(
    canvas: Canvas, rows: list[dict[str, Any]], across: LogAxis, up: LogAxis, language: Language
) -> None:
    look, first = canvas.theme, rows[0]
    value = first["crossing"]
    left = max((row for row in rows if row["value"] <= value), key=lambda row: row["value"])
    right = min((row for row in rows if row["value"] >= value), key=lambda row: row["value"])
    part = 0.0
    if right["value"] > left["value"]:
        part = math.log(value / left["value"]) / math.log(right["value"] / left["value"])
    amount = left["after"] * (right["after"] / left["after"]) ** part
    at = (across.at(value), up.at(amount))
    canvas.segment((at[0], at[1]), (at[0], up.start), look.ink, dash=(2, 3))
    stands = axis_value(first["axis"], first["first"] or value, exact=True)
    words = text.get("break_even.mark", language, value=stands)
    tip = {words: amount_writer(first["resource"])(amount)}
    canvas.symbol(at, "circle", 110, fill=look.background, stroke=look.ink, width=2.2, level=FOCUS,
                  tip=tip)  # fmt: skip
    width = text_width(words, themes.LABEL, bold=True)
    fits = at[0] + 14 + width < canvas.width - themes.MARGIN
    # where the curve does not go: it falls to the right below, or comes from the left above
    above = (right["after"] < left["after"]) == fits
    y = max(at[1] - 16, up.end + 8) if above else min(at[1] + 22, up.start - 12)
    canvas.text(at[0] + (14 if fits else -14), y, words,
                size=themes.LABEL, bold=True, color=look.ink,
                align="left" if fits else "right")  # fmt: skip


def draw_break_even(
    transfer: Transfer,
    *,
    axis: str = "context",
    resource: Any = "time",
    accounts: Any = None,
    phase: Any = None,
    between: tuple[float, float] | None = None,
    **options: Any,
) -> LedgerChart:
    """Draw both sides along an axis; other options as in :func:`break_even_curves`."""
    table = transfer.curve(axis, resource, accounts, phase=phase, between=between)
    return break_even_curves(table, **options)
