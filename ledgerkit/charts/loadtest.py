"""Figures of a load test: the verdict on its map, measured over predicted, curves with intervals.

The functions named ``loadtest_…`` draw from frames alone; ``draw_…`` are what ``Diagnosis.chart``
calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ledgerkit import text
from ledgerkit.charts import theme as themes
from ledgerkit.charts._loadtest_plane import (
    SHADES,
    Plane,
    contour,
    draw_axes,
    draw_dots,
    draw_ring,
    draw_room,
    draw_shares,
    shade,
)
from ledgerkit.charts._loadtest_words import draw_labels, draw_regions, share_between
from ledgerkit.charts._page import foot, header, meta, resolve_language
from ledgerkit.charts._trails import read_rows
from ledgerkit.charts.canvas import MARK, Canvas, Point
from ledgerkit.charts.metrics import Box, text_width, wrap
from ledgerkit.text import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from ledgerkit.charts._chart import LedgerChart
    from ledgerkit.charts.theme import Theme
    from ledgerkit.loadtest import Diagnosis

__all__ = ["draw_ratio", "draw_sensitivity", "draw_verdict", "loadtest_verdict"]

VERDICT_COLUMNS: Final = (
    "verdict", "context_tokens", "concurrency", "share", "low", "high", "log2_context_low",
    "log2_context_high", "log2_concurrency_low", "log2_concurrency_high", "runs", "sigma",
    *(f"{name}_{language}" for name in ("setup", "at", "evidence", "next", "change", "findings")
      for language in text.LANGUAGES),
)  # fmt: skip
CELL_COLUMNS: Final = (
    "kind", "cell", "context_tokens", "concurrency", "measured_s", "runs", "is_operating_point"
)  # fmt: skip
_MOST_NOTES: Final = 4
LEDGER: Final = {"attention_kv": "attention_kv", "weights": "ffn_mlp"}
"""Verdicts that have a ledger's colour."""


def draw_verdict(found: Diagnosis, **options: Any) -> LedgerChart:
    """Draw the verdict of a diagnosis."""
    from ledgerkit.loadtest import _figures as frames

    return loadtest_verdict(
        frames.verdict_frame(found), cells=frames.cell_frame(found),
        shares=frames.share_frame(found), room=frames.room_frame(found), **options,
    )  # fmt: skip


def draw_ratio(found: Diagnosis, **options: Any) -> LedgerChart:
    """Draw measured over predicted step times of a diagnosis."""
    from ledgerkit.charts._loadtest_lines import loadtest_ratio

    return loadtest_ratio(found.table, **options)


def draw_sensitivity(found: Diagnosis, **options: Any) -> LedgerChart:
    """Draw step time and KV share along both axes."""
    from ledgerkit.charts._loadtest_lines import loadtest_curves
    from ledgerkit.loadtest import _figures as frames

    return loadtest_curves(
        frames.curve_frame(found), verdict=frames.verdict_frame(found), **options
    )


def loadtest_verdict(
    frame: pl.DataFrame,
    *,
    cells: pl.DataFrame,
    shares: pl.DataFrame,
    room: pl.DataFrame,
    language: str | None = None,
    theme: str | Theme | None = None,
    preset: str | None = None,
) -> LedgerChart:
    """Draw a verdict: the map of KV shares with what was measured, and what follows.

    Parameters
    ----------
    frame : polars.DataFrame
        One row: verdict, share with interval, limits of the map, sentences in zh and en.
    cells : polars.DataFrame
        Measured cells and those still to measure.
    shares : polars.DataFrame
        context_tokens, concurrency, share on a regular grid; empty draws no map.
    room : polars.DataFrame
        context_tokens, max_concurrency; empty draws no limit.
    language : {"zh", "en"}, optional
        Default: that of :func:`ledgerkit.set_language`.
    theme : {"article", "slide", "dark"}, optional
        Colours.
    preset : {"article", "phone"}, optional
        700 px with the words beside the map, or 420 px with the words below.

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
    verdict = next(iter(read_rows(frame, VERDICT_COLUMNS, "the load-test verdict")))
    rows = list(read_rows(cells, CELL_COLUMNS, "the load-test verdict"))
    grid = [
        (r["context_tokens"], r["concurrency"], r["share"]) for r in shares.iter_rows(named=True)
    ]
    canvas = Canvas(look, size.width)
    title = text.get("loadtest.verdict.title", language)
    plain = "" if grid else ".plain"
    subtitle = text.get(f"loadtest.verdict.subtitle{plain}", language)
    setup = verdict[f"setup_{language}"]
    y = header(canvas, title, [setup, subtitle] if setup else [subtitle])
    phone = size.name == "phone"
    box = Box(62, y + 26, canvas.width - 20, y + 300) if phone else Box(74, y + 26, 470, y + 366)
    plane = Plane(
        box,
        (verdict["log2_context_low"], verdict["log2_context_high"]),
        (verdict["log2_concurrency_low"], verdict["log2_concurrency_high"]),
    )
    _map(canvas, plane, verdict, rows, grid, room, language)
    below = box.bottom + 42
    if grid:
        below = _scale(canvas, box.left, below + 26, language)
    if phone:
        left, top, width = themes.MARGIN, below + 26, canvas.width - 2 * themes.MARGIN
    else:
        left, top, width = 493.0, box.top + 2, 187.0
    bottom = _words(canvas, Box(left, top, left + width, top), verdict, language)
    height = foot(canvas, max(below, bottom) + 30, _foot(verdict, language, drawn=bool(grid)))
    finding = " ".join(
        [text.get(f"verdict.{verdict['verdict']}", language),
         *verdict[f"evidence_{language}"].split("\n")[:1]]
    )  # fmt: skip
    facts = {"title": title, "operating_point": verdict[f"at_{language}"], "finding": finding}
    items = text.get("alt.separator", language).join(
        f"{row['cell']} {numbers.milliseconds(row['measured_s'])}"
        for row in rows
        if row["kind"] == "measured"
    )
    return canvas.chart(
        height,
        description=text.get("alt.figure", language, items=items, **facts).strip(),
        meta=meta(
            "loadtest_verdict",
            {
                "frame": (frame, VERDICT_COLUMNS),
                "cells": (cells, CELL_COLUMNS),
                "shares": (shares, ("context_tokens", "concurrency", "share")),
                "room": (room, ("context_tokens", "max_concurrency")),
            },
            {"language": language, "theme": look.name, "preset": size.name},
            **facts,
        ),
    )


def _foot(verdict: Mapping[str, Any], language: str, *, drawn: bool) -> list[str]:
    lines = []
    if drawn:
        lines.append(
            text.get("loadtest.foot", language, runs=verdict["runs"],
                     sigma=numbers.percent(verdict["sigma"]))
        )  # fmt: skip
    found = verdict[f"findings_{language}"]
    return lines + (found.split("\n")[:_MOST_NOTES] if found else [])


def _map(
    canvas: Canvas,
    plane: Plane,
    verdict: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    grid: Sequence[tuple[float, float, float]],
    room: pl.DataFrame,
    language: str,
) -> None:
    look, box = canvas.theme, plane.box
    measured = [row for row in rows if row["kind"] == "measured"]
    wanted = [row for row in rows if row["kind"] == "next"]
    ramp = SHADES["dark" if look.name == "dark" else "article"]
    lines: list[list[Point]] = []
    limits = list(room.select("context_tokens", "max_concurrency").iter_rows())
    if grid:
        draw_shares(canvas, plane, grid, ramp)
        share = share_between(grid)
        for level, dash in ((0.2, (6, 4)), (0.5, ())):
            points = contour(plane, share, level, limits)
            lines.append(points)
            if len(points) > 1:
                canvas.polyline(points, look.background, width=4.5)
                canvas.polyline(points, look.ink, width=2.2, dash=dash)
    full = draw_room(canvas, plane, limits, text.get("loadtest.region.full", language))
    draw_axes(
        canvas, plane,
        {row["context_tokens"] for row in measured}, {row["concurrency"] for row in measured},
    )  # fmt: skip
    canvas.text(box.left - 50 if box.left > 70 else themes.MARGIN, box.top - 16,
                text.get("loadtest.axis.batch", language), color=look.ink)  # fmt: skip
    canvas.text(box.right, box.bottom + 38, text.get("loadtest.axis.context", language),
                color=look.ink, align="right")  # fmt: skip
    dots = [
        (
            (plane.x(row["context_tokens"]), plane.y(row["concurrency"])),
            f"{row['cell']}: {numbers.milliseconds(row['measured_s'])}",
            bool(row["is_operating_point"]),
        )
        for row in measured
    ]
    here = (plane.x(verdict["context_tokens"]), plane.y(verdict["concurrency"]))
    if not any(ring for _, _, ring in dots) and plane.inside(here):
        draw_ring(canvas, here)
    draw_dots(canvas, dots)
    for row in rows:
        at = (plane.x(row["context_tokens"]), plane.y(row["concurrency"]))
        if row["kind"] == "dropped" and plane.inside(at):
            canvas.symbol(at, "cross", 60, fill=look.rule, angle=45, level=MARK)
    hollow = [
        ((plane.x(row["context_tokens"]), plane.y(row["concurrency"])), "", False) for row in wanted
    ]
    draw_dots(canvas, [dot for dot in hollow if plane.inside(dot[0])], hollow=True)
    marks = [at for at, _, _ in (*dots, *hollow)] + [here]
    draw_labels(canvas, plane, measured, wanted, marks, [*lines, full], language)
    if grid:
        draw_regions(canvas, plane, share_between(grid), limits, marks, lines, language,
                     named=verdict["verdict"] != "service")  # fmt: skip


def _scale(canvas: Canvas, left: float, y: float, language: str) -> float:
    """The key of the shade; returns where it ends."""
    word = text.get("loadtest.scale", language)
    canvas.text(left, y, word, color=canvas.theme.ink)
    ramp = SHADES["dark" if canvas.theme.name == "dark" else "article"]
    start = left + text_width(word, themes.SMALL) + 16
    width = min(160.0, canvas.width - themes.MARGIN - start - 14)
    for i in range(32):
        x = start + i * width / 32
        box = Box(x, y - 6, min(x + width / 32 + 0.4, start + width), y + 6)
        canvas.rectangle(box, fill=shade((i + 0.5) / 32, ramp), level=MARK)
    for share in (0.0, 0.2, 0.5, 1.0):
        canvas.text(start + share * width, y + 17, numbers.percent(share), align="center")
    return y + 17


def _words(canvas: Canvas, column: Box, verdict: Mapping[str, Any], language: str) -> float:
    """Verdict, reasons and what to do, in a column; returns where it ends."""
    look = canvas.theme
    width, x, y = column.right - column.left, column.left, column.top

    def paragraph(
        content: str, size: float, color: str, pitch: float, *, bold: bool = False
    ) -> None:
        nonlocal y
        for part in content.split("\n"):
            for line in wrap(part, width, size, bold=bold):
                canvas.text(x, y, line, size=size, color=color, bold=bold)
                y += pitch

    def rule() -> None:
        nonlocal y
        canvas.segment((x, y - 4), (column.right, y - 4), look.grid)
        y += 14

    paragraph(text.get("loadtest.verdict.head", language), themes.SUBTITLE, look.mute, 24)
    ledger = LEDGER.get(verdict["verdict"])
    color = look.text[ledger] if ledger else look.ink
    paragraph(text.get(f"verdict.{verdict['verdict']}", language), themes.VERDICT, color, 24,
              bold=True)  # fmt: skip
    y += 4
    first, *rest = verdict[f"evidence_{language}"].split("\n")
    paragraph(first, themes.SUBTITLE, look.ink, 18)
    if rest:
        y += 8
        rule()
        paragraph(text.get("loadtest.verdict.why", language), themes.SUBTITLE, look.ink, 19,
                  bold=True)  # fmt: skip
        paragraph("\n".join(rest), themes.SMALL, look.mute, 17)
    for key, head in (("next", "loadtest.verdict.next"), ("change", "loadtest.verdict.change")):
        if verdict[f"{key}_{language}"]:
            y += 8
            rule()
            paragraph(text.get(head, language), themes.SUBTITLE, look.ink, 19, bold=True)
            paragraph(verdict[f"{key}_{language}"], themes.SMALL, look.mute, 17)
    return y - 17
