"""The plane of a load test: log2 context sideways, log2 batch upwards, and what lies on it."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ledgerkit.charts import theme as themes
from ledgerkit.charts.canvas import GRID, MARK, WASH, Canvas, Point
from ledgerkit.charts.metrics import Box, text_box, text_width
from ledgerkit.text import numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "SHADES",
    "Plane",
    "contour",
    "draw_axes",
    "draw_dots",
    "draw_ring",
    "draw_room",
    "draw_shares",
    "most_at",
    "place_word",
    "shade",
]

SHADES: Final = {
    "article": ("#F6F7F9", "#DCE5F3", "#B4C7E6", "#7F9FD3", "#4469B0", "#163F85"),
    "dark": ("#1A2029", "#22334E", "#2C4A78", "#3F6BA8", "#5A90D2", "#79B2F7"),
}
"""KV share from 0 to 100 %: one hue, so that it survives grey print."""


def _linear(channel: int) -> float:
    value = channel / 255
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def _encoded(value: float) -> int:
    value = 12.92 * value if value <= 0.0031308 else 1.055 * value ** (1 / 2.4) - 0.055
    return round(255 * min(max(value, 0.0), 1.0))


def shade(share: float, ramp: Sequence[str]) -> str:
    """Colour of a share, interpolated in linear RGB.

    Examples
    --------
    >>> shade(0.0, SHADES["article"]), shade(1.0, SHADES["article"])
    ('#F6F7F9', '#163F85')
    """
    place = min(max(share, 0.0), 1.0) * (len(ramp) - 1)
    left = min(int(place), len(ramp) - 2)
    part = place - left
    mixed = []
    for at in (1, 3, 5):
        a, b = (_linear(int(ramp[left + i][at : at + 2], 16)) for i in (0, 1))
        mixed.append(_encoded(a + (b - a) * part))
    return "#" + "".join(f"{channel:02X}" for channel in mixed)


@dataclass(frozen=True)
class Plane:
    """A box in px that stands for a stretch of log2 context by log2 batch."""

    box: Box
    context: tuple[float, float]
    """Log2 of the left and right end."""
    batch: tuple[float, float]
    """Log2 of the lower and upper end."""

    def x(self, context: float) -> float:
        """Px of a context."""
        low, high = self.context
        part = (math.log2(max(context, 1e-9)) - low) / (high - low)
        return self.box.left + part * (self.box.right - self.box.left)

    def y(self, batch: float) -> float:
        """Px of a batch."""
        low, high = self.batch
        part = (math.log2(max(batch, 1e-9)) - low) / (high - low)
        return self.box.bottom - part * (self.box.bottom - self.box.top)

    def inside(self, at: Point) -> bool:
        """Whether a point is in the box."""
        b = self.box
        return b.left - 1 <= at[0] <= b.right + 1 and b.top - 1 <= at[1] <= b.bottom + 1


def draw_shares(
    canvas: Canvas, plane: Plane, shares: Sequence[tuple[float, float, float]], ramp: Sequence[str]
) -> None:
    """Fill the plane with the shares of a regular grid (context, batch, share)."""
    contexts = sorted({c for c, _, _ in shares})
    many = sorted({b for _, b, _ in shares})
    width = (plane.box.right - plane.box.left) / len(contexts)
    height = (plane.box.bottom - plane.box.top) / len(many)
    column = {c: i for i, c in enumerate(contexts)}
    row = {b: i for i, b in enumerate(many)}
    for context, batch, share in shares:
        left = plane.box.left + column[context] * width
        bottom = plane.box.bottom - row[batch] * height
        # cells overlap a little: antialiasing would show hairlines between them
        box = Box(left, bottom - height - 0.4, min(left + width + 0.4, plane.box.right), bottom)
        canvas.rectangle(box, fill=shade(share, ramp), level=WASH)


def most_at(limits: Sequence[tuple[float, float]], context: float) -> float:
    """Most sequences at a context, between given (context, most); no limits, no bound.

    Examples
    --------
    >>> most_at([(1024.0, 32.0), (2048.0, 16.0)], 1536.0), most_at([], 1.0)
    (24.0, inf)
    """
    for (left, first), (right, second) in itertools.pairwise(limits):
        if left <= context <= right:
            return first + (second - first) * (context - left) / (right - left)
    if not limits:
        return math.inf
    return limits[0][1] if context < limits[0][0] else limits[-1][1]


def contour(
    plane: Plane,
    share_at: Callable[[float, float], float],
    level: float,
    limits: Sequence[tuple[float, float]] = (),
    points: int = 61,
) -> list[Point]:
    """Points where the share crosses a level: it rises with the batch, so bisection finds it.

    Beyond ``limits`` (context, most sequences) nothing runs, and nothing is drawn.
    """
    low_b, high_b = plane.batch
    found = []
    for i in range(points):
        exponent = plane.context[0] + i / (points - 1) * (plane.context[1] - plane.context[0])
        context = 2**exponent
        if not share_at(context, 2**low_b) < level < share_at(context, 2**high_b):
            continue
        low, high = low_b, high_b
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if share_at(context, 2**middle) < level else (low, middle)
        if 2**low <= most_at(limits, context):
            found.append((plane.x(context), plane.y(2**low)))
    return found


def draw_room(
    canvas: Canvas, plane: Plane, room: Sequence[tuple[float, float]], word: str
) -> list[Point]:
    """Cover what does not fit (context, most sequences); returns points of its alert edge."""
    box = plane.box
    edge = [
        (min(max(plane.x(c), box.left), box.right), min(plane.y(max(most, 1e-3)), box.bottom))
        for c, most in room
    ]
    below = [i for i, (_, y) in enumerate(edge) if y > box.top]
    if len(edge) < 2 or not below:
        return []
    edge = edge[max(below[0] - 1, 0) :]
    if edge[0][1] < box.top:  # start where the edge enters the frame
        (x0, y0), (x1, y1) = edge[:2]
        edge[0] = (x0 + (x1 - x0) * (box.top - y0) / (y1 - y0), box.top)
    if edge[-1][0] < box.right:  # the model's own limit ends the books a little earlier
        (x0, y0), (x1, y1) = edge[-2:]
        edge.append((box.right, min(y1 + (y1 - y0) / (x1 - x0) * (box.right - x1), box.bottom)))
    canvas.polygon(
        [(edge[0][0], box.top), *edge, (edge[-1][0], box.top)], canvas.theme.free, level=GRID
    )
    canvas.polyline(edge, canvas.theme.alert, width=2.0, level=GRID)
    right = max(x for x, _ in edge)
    low = max(y for x, y in edge if x > right - 1)
    width = text_width(word, themes.SUBTITLE, bold=True)
    x = right - width / 2 - 10
    y = plane.box.top + 22
    if low > y + 14:
        canvas.text(x, y, word, size=themes.SUBTITLE, color=canvas.theme.alert, bold=True,
                    align="center")  # fmt: skip
    return edge


def place_word(
    plane: Plane,
    word: str,
    belongs: Callable[[float, float], bool],
    keep_off: Sequence[Point],
) -> Point | None:
    """Middle of the free place in a region that is farthest from its edge and from marks."""
    steps, best, found = 24, 8.0, None
    box = plane.box
    half = text_width(word, themes.SUBTITLE, bold=True) / 2 + 6
    places = [
        (
            box.left + (i + 0.5) / steps * (box.right - box.left),
            box.top + (j + 0.5) / steps * (box.bottom - box.top),
        )
        for i in range(steps)
        for j in range(steps)
    ]
    region = [belongs(*place) for place in places]
    outside = [place for place, here in zip(places, region, strict=True) if not here]
    for place, here in zip(places, region, strict=True):
        if not here or not box.left + half < place[0] < box.right - half:
            continue
        # words are wide: distances sideways count less
        gaps = [
            math.hypot(max(abs(place[0] - x) - half, 0.0), place[1] - y)
            for x, y in (*outside, *keep_off)
        ]
        edge = min(place[1] - box.top, box.bottom - place[1])
        free = min([*gaps, edge])
        if free > best:
            best, found = free, place
    return found


def draw_axes(canvas: Canvas, plane: Plane, contexts: set[float], many: set[float]) -> None:
    """Ticks at powers of two; the measured ones in ink."""
    box, ink, mute = plane.box, canvas.theme.ink, canvas.theme.mute
    canvas.segment((box.left, box.bottom), (box.right, box.bottom), canvas.theme.rule)
    canvas.segment((box.left, box.top), (box.left, box.bottom), canvas.theme.rule)
    last = -math.inf
    for exponent in range(math.ceil(plane.context[0]), math.floor(plane.context[1]) + 1):
        value = 2.0**exponent
        word = numbers.context(value)
        measured = any(abs(math.log2(c / value)) < 0.15 for c in contexts)
        span = text_box(plane.x(value), 0, word, size=themes.SMALL, align="center")
        if span.left < last + 4:
            continue
        last = span.right
        canvas.text(plane.x(value), box.bottom + 18, word, align="center",
                    color=ink if measured else mute)  # fmt: skip
    for exponent in range(math.ceil(plane.batch[0]), math.floor(plane.batch[1]) + 1):
        value = 2.0**exponent
        measured = any(abs(math.log2(b / value)) < 0.15 for b in many)
        canvas.text(box.left - 8, plane.y(value), numbers.count(value), align="right",
                    color=ink if measured else mute)  # fmt: skip


def draw_ring(canvas: Canvas, at: Point) -> None:
    """Mark the operating point."""
    for color, width in ((canvas.theme.background, 6.0), (canvas.theme.ink, 2.2)):
        canvas.symbol(at, "circle", 330, fill="transparent", stroke=color, width=width)


def draw_dots(
    canvas: Canvas,
    dots: Sequence[tuple[Point, str, bool]],
    *,
    hollow: bool = False,
) -> None:
    """White dots with an ink edge; the operating point has a ring (point, words, is it)."""
    ink, background = canvas.theme.ink, canvas.theme.background
    for at, words, ring in dots:
        if ring:
            draw_ring(canvas, at)
        canvas.symbol(at, "circle", 78, fill="transparent" if hollow else background, stroke=ink,
                      width=1.8, level=MARK, tip={words: words} if words else None)  # fmt: skip
