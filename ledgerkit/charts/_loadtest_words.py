"""Words on the plane of a load test: milliseconds, limits, names of regions."""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import partial
from typing import TYPE_CHECKING, Any

from ledgerkit import text
from ledgerkit.charts import theme as themes
from ledgerkit.charts._labels import Wanted, place
from ledgerkit.charts._loadtest_plane import most_at, place_word
from ledgerkit.charts.metrics import Box, text_width
from ledgerkit.text import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ledgerkit.charts._loadtest_plane import Plane
    from ledgerkit.charts.canvas import Canvas, Point

__all__ = ["draw_labels", "draw_regions", "share_between"]


def share_between(grid: Sequence[tuple[float, float, float]]) -> Any:
    """Bilinear share between the grid's points, in log2 of both axes."""
    contexts = sorted({math.log2(c) for c, _, _ in grid})
    many = sorted({math.log2(b) for _, b, _ in grid})
    value = {(math.log2(c), math.log2(b)): share for c, b, share in grid}

    def around(axis: list[float], at: float) -> tuple[float, float, float]:
        right = min(max(bisect_left(axis, at), 1), len(axis) - 1)
        low, high = axis[right - 1], axis[right]
        return low, high, min(max((at - low) / (high - low), -0.5), 1.5)

    def share(context: float, batch: float) -> float:
        c0, c1, p = around(contexts, math.log2(context))
        b0, b1, q = around(many, math.log2(batch))
        lower = value[c0, b0] * (1 - p) + value[c1, b0] * p
        upper = value[c0, b1] * (1 - p) + value[c1, b1] * p
        return lower * (1 - q) + upper * q

    return share


def draw_labels(
    canvas: Canvas,
    plane: Plane,
    measured: Sequence[Mapping[str, Any]],
    wanted: Sequence[Mapping[str, Any]],
    marks: Sequence[Point],
    lines: Sequence[Sequence[Point]],
    language: str,
) -> None:
    """Milliseconds beside their dots, and what is still to measure."""
    names = []
    for row in (*measured, *wanted):
        at = (plane.x(row["context_tokens"]), plane.y(row["concurrency"]))
        if not plane.inside(at):
            continue
        bold = bool(row["is_operating_point"]) or row["kind"] == "next"
        word = (
            text.get("loadtest.verdict.next", language)
            if row["kind"] == "next"
            else numbers.milliseconds(row["measured_s"]).removesuffix(" ms")
        )
        off = 15.0 if row["is_operating_point"] else 10.0
        names.append(
            Wanted(
                word, themes.SMALL, bold,
                tuple(
                    (at[0] + dx * off, at[1] + dy * off, align, cost)
                    for dx, dy, align, cost in (
                        (0.9, -1.2, "left", 0.0), (-0.9, -1.2, "right", 3.0),
                        (0.9, 1.3, "left", 4.0), (-0.9, 1.3, "right", 6.0),
                        (0.0, -1.7, "center", 3.0), (0.0, 1.8, "center", 6.0),
                        (1.4, 0.0, "left", 5.0), (-1.4, 0.0, "right", 7.0),
                    )
                ),
                at,
            )
        )  # fmt: skip
    edge = Box(plane.box.left + 2, plane.box.top + 2, plane.box.right + 4, plane.box.bottom - 2)
    along = [point for line in lines for point in line]
    placed = place(names, words=canvas.words, marks=marks, lines=along, bounds=edge)
    for name, found in zip(names, placed, strict=True):
        if found is not None:
            canvas.text(found.x, found.y, found.text, size=themes.SMALL, color=canvas.theme.ink,
                        bold=name.bold, align=found.align)  # fmt: skip


def draw_regions(
    canvas: Canvas,
    plane: Plane,
    share: Any,
    limits: Sequence[tuple[float, float]],
    marks: Sequence[Point],
    lines: Sequence[Sequence[Point]],
    language: str,
    *,
    named: bool,
) -> None:
    """Limits on their lines, and names of the regions where there is room, if ``named``."""
    look = canvas.theme

    def at(x: float, y: float) -> float:
        low, high = plane.context
        part = (x - plane.box.left) / (plane.box.right - plane.box.left)
        context = 2 ** (low + part * (high - low))
        part = (plane.box.bottom - y) / (plane.box.bottom - plane.box.top)
        batch = 2 ** (plane.batch[0] + part * (plane.batch[1] - plane.batch[0]))
        return -1.0 if batch > most_at(limits, context) else float(share(context, batch))

    taken = list(marks)
    for level, line in zip((0.2, 0.5), lines, strict=True):
        spot = _on_line(line, taken)
        if spot is not None:
            word = numbers.percent(level)
            half = text_width(word, themes.SMALL, bold=True) / 2 + 5
            canvas.rectangle(
                Box(spot[0] - half, spot[1] - 9, spot[0] + half, spot[1] + 9), fill=look.background
            )
            canvas.text(*spot, word, color=look.ink, bold=True, align="center")
            taken.append(spot)
    words = [(box.left + box.right, box.top + box.bottom) for box in canvas.words]
    taken += [(x / 2, y / 2) for x, y in words]
    if not named:
        return
    for key, low, high, color in (
        ("kv", 0.5, 2.0, "#FFFFFF" if look.name != "dark" else look.background),
        ("mixed", 0.2, 0.5, look.ink),
        ("rest", -0.5, 0.2, look.text["ffn_mlp"]),
    ):
        word = text.get(f"loadtest.region.{key}", language)
        inside = partial(_between, at, low, high)
        found = place_word(plane, word, inside, taken)
        if found is None:
            continue
        pale = key == "kv" and at(*found) < 0.62
        canvas.text(*found, word, size=themes.SUBTITLE, color=look.ink if pale else color,
                    bold=True, align="center")  # fmt: skip
        taken.append(found)


def _between(at: Any, low: float, high: float, x: float, y: float) -> bool:
    return bool(low <= at(x, y) < high)


def _on_line(line: Sequence[Point], taken: Sequence[Point]) -> Point | None:
    """The point of a line that is farthest from marks and ends."""
    best, found = 20.0, None
    for point in line[4:-4]:
        free = min([math.dist(point, other) for other in taken], default=99.0)
        if free > best:
            best, found = free, point
    return found
