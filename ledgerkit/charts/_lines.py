"""What charts of lines and ratios share: a logarithmic axis, its grid, dots with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ledgerkit.charts import theme as themes
from ledgerkit.charts.canvas import FOCUS, GRID, MARK, Canvas, Point
from ledgerkit.charts.metrics import text_width

__all__ = ["LogAxis", "draw_ratio_grid", "draw_whisker"]


@dataclass(frozen=True)
class LogAxis:
    """A logarithmic axis from ``start`` px, at ``low``, to ``end`` px, at ``high``.

    Examples
    --------
    >>> axis = LogAxis(100.0, 200.0, 1.0, 16.0)
    >>> axis.at(4.0), axis.at(64.0), axis.cut(64.0)
    (150.0, 250.0, 200.0)
    """

    start: float
    end: float
    low: float
    high: float

    def part(self, value: float) -> float:
        """How far along the axis a value lies: 0 to 1 inside."""
        return math.log(value / self.low) / math.log(self.high / self.low)

    def at(self, value: float) -> float:
        """Px of a value, also of one beyond the ends."""
        return self.start + self.part(value) * (self.end - self.start)

    def cut(self, value: float) -> float:
        """Px of a value; beyond the ends, px of the end."""
        return self.start + min(max(self.part(value), 0.0), 1.0) * (self.end - self.start)


def draw_ratio_grid(
    canvas: Canvas,
    axis: LogAxis,
    ticks: Iterable[float],
    reach: tuple[float, float],
    *,
    words_below: float,
    one: str,
) -> None:
    """Vertical lines of a chart of ratios, with their values below; that of 1 stands out.

    Where values would touch, the ones closer to 1 stay.

    Parameters
    ----------
    canvas : Canvas
    axis : LogAxis
        Sideways.
    ticks : iterable of float
        Ratios; those beyond the axis are left out.
    reach : (float, float)
        Top and bottom of the lines, px.
    words_below : float
        Px from their bottom to the values.
    one : str
        Colour of the line at 1.
    """
    top, bottom = reach
    taken: list[tuple[float, float]] = []
    for tick in sorted(ticks, key=lambda ratio: abs(math.log(ratio))):
        x, half = axis.at(tick), text_width(f"{tick:g}", themes.SMALL) / 2 + 4
        free = all(x + half < left or x - half > right for left, right in taken)
        if not axis.low <= tick <= axis.high or not free:
            continue
        taken.append((x - half, x + half))
        canvas.segment((x, top), (x, bottom), one if tick == 1 else canvas.theme.grid, level=GRID)
        canvas.text(x, bottom + words_below, f"{tick:g}", align="center",
                    color=canvas.theme.ink if tick == 1 else None)  # fmt: skip


def draw_whisker(
    canvas: Canvas,
    at: Point,
    ends: tuple[Point, Point] | None,
    *,
    width: float,
    tip: Mapping[str, str] | None = None,
) -> None:
    """A hollow dot with the line of its interval; ``ends`` None draws the dot alone."""
    look = canvas.theme
    if ends is not None:
        canvas.segment(*ends, look.ink, width=width, level=MARK)
    canvas.symbol(at, "circle", 64, fill=look.background, stroke=look.ink, width=1.8, level=FOCUS,
                  tip=tip)  # fmt: skip
