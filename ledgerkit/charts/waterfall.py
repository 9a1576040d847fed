"""The waterfall of a stack: what each technique does alone, and their interaction apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ledgerkit import text
from ledgerkit.charts import theme as themes
from ledgerkit.charts._page import foot, header, meta, resolve_language
from ledgerkit.charts._trails import read_rows
from ledgerkit.charts.canvas import GRID, Canvas
from ledgerkit.charts.metrics import Box
from ledgerkit.text import numbers

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from ledgerkit._techniques.double_entry import Transfer
    from ledgerkit.charts._chart import LedgerChart
    from ledgerkit.charts.theme import Theme
    from ledgerkit.text import Language

__all__ = ["draw_waterfall", "stack_waterfall"]

COLUMNS: Final = ("technique", "kind", "label_zh", "label_en", "alone", "in_order", "after",
                  "phase", "resource", "model", "prompt_tokens", "concurrency", "deployment_zh",
                  "deployment_en")  # fmt: skip
_ROW: Final = 34.0
_BAR: Final = 22.0
_LEFT: Final = 216.0
_WORDS: Final = 150.0


def stack_waterfall(
    table: pl.DataFrame,
    *,
    language: str | None = None,
    theme: str | Theme | None = None,
    preset: str | None = None,
) -> LedgerChart:
    """Draw a stack of techniques as a waterfall.

    Parameters
    ----------
    table : polars.DataFrame
        ``Transfer.waterfall()``.
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

    Examples
    --------
    >>> import ledgerkit as lk
    >>> work = lk.Workload(prompt_tokens=8192, output_tokens=512, concurrency=8)
    >>> stack = lk.transfer(
    ...     ["mqa", "kv_quantization"],
    ...     model="llama-3.1-8b",
    ...     hardware="h100-sxm-80gb",
    ...     workload=work,
    ... )
    >>> chart = stack_waterfall(stack.waterfall(), language="en")
    >>> len([row for row in stack.waterfall()["kind"] if row == "interaction"])
    1
    """
    language = resolve_language(language)
    look = themes.resolve_theme(theme)
    size = themes.resolve_preset(preset, ("article",))
    rows = read_rows(table, COLUMNS, "the waterfall")
    first = rows[0]
    canvas = Canvas(look, size.width)
    title = text.get("waterfall.title", language)
    scale = text.get(
        "waterfall.scale", language, resource=text.get(f"resource.{first['resource']}", language),
        phase=text.get(f"phase.{first['phase']}", language),
    )  # fmt: skip
    point = text.get(
        "transfer.point", language, model=first["model"],
        deployment=first[f"deployment_{language}"], prompt=numbers.context(first["prompt_tokens"]),
        concurrency=numbers.count(first["concurrency"]),
    )  # fmt: skip
    y = header(canvas, title, [point, scale])
    finding = _draw(canvas, y, rows, language)
    notes = [text.get("waterfall.foot", language)]
    if any(row["kind"] == "technique" and row["alone"] is None for row in rows):
        notes.append(text.get("waterfall.needs", language))
    height = foot(canvas, y + _ROW * len(rows) + 14, notes)
    facts = {"title": title, "operating_point": f"{point} {scale}"}
    options = {"language": language, "theme": look.name, "preset": size.name}
    return canvas.chart(
        height,
        description=f"{title}. {point}. {finding}",
        meta=meta("stack_waterfall", {"table": (table, COLUMNS)}, options, **facts,
                  finding=finding),
    )  # fmt: skip


def amount_writer(resource: str) -> Callable[[float], str]:
    """How amounts of a resource are written."""
    if resource == "time":
        return numbers.duration
    if resource == "steps":
        return lambda value: numbers.count(round(value))
    unit = "FLOP" if resource == "compute" else "B"
    return lambda value: numbers.si(value, unit)


def _draw(canvas: Canvas, y: float, rows: list[dict[str, Any]], language: Language) -> str:
    look = canvas.theme
    write = amount_writer(rows[0]["resource"])
    right = canvas.width - themes.MARGIN - _WORDS
    levels = _levels(rows)
    highest = max(max(pair) for pair in levels)
    lowest = min(0.0, *(min(pair) for pair in levels))
    span = (highest - lowest) or 1.0

    def x(value: float) -> float:
        return _LEFT + (value - lowest) / span * (right - _LEFT)

    start = levels[0][1]
    for n, (row, (old, new)) in enumerate(zip(rows, levels, strict=True)):
        middle = y + _ROW * n + _ROW / 2
        ends = row["kind"] in ("start", "end")
        name = row[f"label_{language}"] or text.get(f"waterfall.{row['kind']}", language)
        if row["kind"] == "technique" and row["alone"] is None:
            name += " *"
        canvas.text(themes.MARGIN, middle, name, size=themes.SUBTITLE, bold=ends, color=look.ink)
        box = Box(min(x(old), x(new)), middle - _BAR / 2, max(x(old), x(new)), middle + _BAR / 2)
        saved = new < old
        change = new - old
        if ends:
            words = write(new)
        else:
            sign = "\u2212" if saved else "+" if change else ""
            share = numbers.percent(change / start, signed=True) if start else ""
            amount = sign + write(abs(change))
            words = f"{amount}（{share}）" if language == "zh" else f"{amount} ({share})"
        tip = {name: words}
        if box.right - box.left < 1.5:
            box = Box(box.left, box.top, box.left + 1.5, box.bottom)
        if ends:
            canvas.rectangle(box, fill=look.ink, tip=tip)
        elif row["kind"] == "interaction":
            canvas.rectangle(box, fill=look.free, stroke=look.rule, width=1.6, tip=tip)
        else:
            canvas.rectangle(box, fill=look.mute if saved else look.background, stroke=look.mute,
                             width=1.6, tip=tip)  # fmt: skip
        canvas.text(box.right + 8, middle, words, color=look.ink, bold=ends)
        if n + 1 < len(rows):
            canvas.segment((x(new), middle + _BAR / 2), (x(new), middle + _ROW - _BAR / 2),
                           look.rule, level=GRID)  # fmt: skip
    return text.get(
        "transfer.finding", language,
        what=text.get(f"resource.{rows[0]['resource']}", language),
        change=numbers.change(start, levels[-1][1], write, language),
    )  # fmt: skip


def _levels(rows: list[dict[str, Any]]) -> list[tuple[float, float]]:
    """Where each bar begins and ends: changes alone, one after another, then the interaction."""
    found: list[tuple[float, float]] = []
    level = 0.0
    for row in rows:
        if row["kind"] in ("start", "end"):
            found.append((0.0, row["after"]))
            level = row["after"]
            continue
        change = row["in_order"] if row["alone"] is None else row["alone"]
        found.append((level, level + change))
        level += change
    return found


def draw_waterfall(
    transfer: Transfer, *, resource: Any = "time", phase: Any = None, **options: Any
) -> LedgerChart:
    """Draw the waterfall of a stack; other options as in :func:`stack_waterfall`."""
    return stack_waterfall(transfer.waterfall(resource, phase), **options)
