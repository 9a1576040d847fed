"""One chart for the Explorer: key numbers, triangle, bars and memory of one deployment."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ledgerkit import text
from ledgerkit.charts import theme as themes
from ledgerkit.charts._captions import (
    describe_trails,
    left_out,
    triangle_finding,
    triangle_subtitles,
)
from ledgerkit.charts._memory_row import LAYOUT as MEMORY_LAYOUT
from ledgerkit.charts._memory_row import draw_case
from ledgerkit.charts._page import foot, resolve_language
from ledgerkit.charts._trails import finite, read_trails
from ledgerkit.charts._triangle_views import draw_empty, draw_whole, draw_zoomed
from ledgerkit.charts._two_ledgers import draw_two_ledgers
from ledgerkit.charts.bars import LAYOUT as BAR_LAYOUT
from ledgerkit.charts.bars import draw_bar_heads, draw_bill, read_bills
from ledgerkit.charts.canvas import GRID, Canvas
from ledgerkit.charts.memory import read_cases
from ledgerkit.charts.metrics import text_width
from ledgerkit.charts.triangle import check_form, choose_form
from ledgerkit.errors import FigureError
from ledgerkit.text import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from ledgerkit.charts._chart import LedgerChart
    from ledgerkit.charts.theme import Theme
    from ledgerkit.text import Language

__all__ = ["explorer_panel", "explorer_specification"]

_NUMBERS: Final = 78.0


def explorer_panel(
    table: pl.DataFrame,
    entries: pl.DataFrame | None = None,
    memory: pl.DataFrame | None = None,
    *,
    focus: str | None = None,
    language: str | None = None,
    theme: str | Theme | None = None,
    preset: str | None = None,
    trail: str | None = None,
    form: str = "auto",
    key_numbers: bool = True,
) -> LedgerChart:
    """Draw everything the Explorer shows of a deployment as one chart, 588 px wide.

    Parameters
    ----------
    table : polars.DataFrame
        ``Comparison.table``; with several deployments the others are reference.
    entries : polars.DataFrame, optional
        ``Comparison.entries``: draws the bars of the focused deployment.
    memory : polars.DataFrame, optional
        ``Comparison.memory``: draws its memory against capacity.
    focus : str, optional
        Label of the deployment in full colour; default is the first.
    language : {"zh", "en"}, optional
        Default: that of :func:`ledgerkit.set_language`.
    theme : {"article", "slide", "dark"}, optional
        Colours.
    preset : {"panel", "phone"}, optional
        588 px, or 420 px.
    trail : {"prompt_tokens", "concurrency", "output_tokens"}, optional
        Column that the trails follow; by default the one that varies.
    form : {"auto", "whole", "zoom", "two_ledgers"}
        Here ``"auto"`` never enlarges a slice: a panel that redraws at every move of a slider must
        not jump between layouts.
    key_numbers : bool
        Whether to set the key numbers above the triangle.

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
    >>> one = lk.compare([{"model": "llama-3.1-8b", "hardware": "h100-sxm-80gb", "workload": work}])
    >>> explorer_panel(one.table, one.entries, one.memory, language="en").to_dict()["width"]
    588
    """
    from ledgerkit.charts._chart import LedgerChart  # heavy: it loads Altair

    return LedgerChart(
        **explorer_specification(
            table, entries, memory, focus=focus, language=language, theme=theme, preset=preset,
            trail=trail, form=form, key_numbers=key_numbers,
        )
    )  # fmt: skip


def explorer_specification(
    table: pl.DataFrame,
    entries: pl.DataFrame | None = None,
    memory: pl.DataFrame | None = None,
    *,
    focus: str | None = None,
    language: str | None = None,
    theme: str | Theme | None = None,
    preset: str | None = None,
    trail: str | None = None,
    form: str = "auto",
    key_numbers: bool = True,
) -> dict[str, Any]:
    """Vega-Lite specification of :func:`explorer_panel`, without Altair.

    A widget paints from it at once: loading Altair takes longer than everything else.

    Parameters
    ----------
    table, entries, memory, focus, language, theme, preset, trail, form, key_numbers
        As in :func:`explorer_panel`.

    Returns
    -------
    dict
    """
    language = resolve_language(language)
    look = themes.resolve_theme(theme)
    size = themes.resolve_preset(preset, ("panel", "phone"))
    trails = read_trails(table, trail, language)
    labels = [one.label for one in trails.trails]
    if focus is not None and focus not in labels:
        raise FigureError("no such deployment", given=focus, allowed=", ".join(labels))
    chosen = focus or (labels[0] if labels else "")
    series = themes.assign_series([(one.label, one.model) for one in trails.trails], look)
    canvas = Canvas(look, size.width)
    y = 18.0
    point = _point(table, chosen)
    if key_numbers and point:
        y = _key_numbers(canvas, y, point, language)
    fading = chosen if len(labels) > 1 else None
    if not trails.trails:
        y = draw_empty(canvas, y, size, language)
    else:
        shape = check_form(form)
        if shape == "auto":
            shape = "two_ledgers" if choose_form(trails) == "two_ledgers" else "whole"
        draw = {"zoom": draw_zoomed, "whole": draw_whole}.get(shape)
        if draw is None:
            y = draw_two_ledgers(canvas, y + 8, trails, series, language)
        else:
            y = draw(canvas, y, size, trails, series, language, fading)
    dropped = trails.dropped
    if entries is not None:
        bills, more = read_bills(entries)
        dropped += more
        columns = BAR_LAYOUT[size.name]
        for bill in [bill for bill in bills if bill.label == chosen]:
            draw_bar_heads(canvas, y, columns, language)
            y = draw_bill(canvas, y + 24, bill, columns, language, short=size.name == "phone")
            y += 16
    if memory is not None:
        cases, more = read_cases(memory, language, table)
        dropped += more
        for case in [case for case in cases if case.label == chosen]:
            y = draw_case(canvas, y, case, MEMORY_LAYOUT[size.name], language, first=True)
    own = tuple(one for one in trails.trails if one.label == chosen)
    finding = triangle_finding(replace(trails, trails=own), language)
    subtitles = triangle_subtitles(trails, language)
    notes = [*subtitles, finding, text.get("panel.basis", language), *left_out(dropped, language)]
    height = foot(canvas, y + 6, [note for note in notes if note])
    title = text.get("triangle.title.article", language)
    facts = {"title": title, "operating_point": " ".join(subtitles)}
    options = {"language": language, "theme": look.name, "preset": size.name, "focus": focus}
    return canvas.specification(
        height,
        description=describe_trails(trails, language, **facts),
        # no frames: a widget replaces the figure at every move, and the reader has the objects
        meta={"chart": "explorer_panel", "options": options, **facts, "finding": finding},
    )


def _point(table: pl.DataFrame, label: str) -> Mapping[str, Any]:
    """Row of the operating point; empty where there is none."""
    for row in table.iter_rows(named=True):
        if row["label"] == label and row["is_operating_point"]:
            return row
    return {}


def _key_numbers(canvas: Canvas, y: float, point: Mapping[str, Any], language: Language) -> float:
    """Time per token, one sequence, whole replica and time to first token, with their bands."""
    theme = canvas.theme
    tpot, tokens, ttft = (_value(point, name) for name in ("tpot_s", "tokens_per_s", "ttft_s"))
    cells = []
    if tpot:
        cells += [
            ("tpot", numbers.duration(tpot), _band(point, "tpot_s", language)),
            ("sequence", numbers.rate(1 / tpot), ""),
        ]
    if tokens is not None:
        cells.append(("replica", numbers.rate(tokens), ""))
    if ttft is not None:
        cells.append(("ttft", numbers.duration(ttft), _band(point, "ttft_s", language)))
    if not cells:
        return y
    fields = {"prompt": numbers.context(point["prompt_tokens"])}
    named = [(text.get(f"panel.{name}", language, **fields), *rest) for name, *rest in cells]
    across = 2 if canvas.width < 500 else 4
    starts = _starts(named, canvas.width - 2 * themes.MARGIN) if across == 4 else [0.0, 190.0]
    for index, (name, value, band) in enumerate(named):
        x = themes.MARGIN + starts[index % across]
        top = y + (index // across) * 66
        canvas.text(x, top, name)
        canvas.text(x, top + 23, value, size=themes.VERDICT, color=theme.ink, bold=True)
        canvas.text(x, top + 44, band)
    bottom = y + ((len(cells) - 1) // across) * 66 + _NUMBERS - 16
    canvas.segment(
        (themes.MARGIN, bottom), (canvas.width - themes.MARGIN, bottom), theme.grid, level=GRID
    )
    return bottom + 16


def _starts(cells: Sequence[Sequence[str]], room: float) -> list[float]:
    """Left ends of columns with equal gaps between them, so that a long number takes its room."""
    widths = [
        max(
            text_width(name, themes.SMALL),
            text_width(value, themes.VERDICT, bold=True),
            text_width(band, themes.SMALL),
        )
        for name, value, band in cells
    ]
    gap = (room - sum(widths)) / max(1, len(widths) - 1)
    return [sum(widths[:index]) + gap * index for index in range(len(widths))]


def _value(point: Mapping[str, Any], name: str) -> float | None:
    value = point.get(name)
    return float(value) if value is not None and finite(value) else None


def _band(point: Mapping[str, Any], name: str, language: Language) -> str:
    low, high = _value(point, f"{name}_low"), _value(point, f"{name}_high")
    return "" if low is None or high is None else numbers.duration_band(low, high, language)
