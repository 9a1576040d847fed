"""Capacities on the cache chart: dotted lines, and a ring where a curve meets its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit import text
from ledgerkit.charts import theme as themes
from ledgerkit.charts._cache_plot import USUAL, path_of
from ledgerkit.charts._labels import Wanted, place
from ledgerkit.charts._names import along
from ledgerkit.charts.canvas import FOCUS, GRID
from ledgerkit.charts.metrics import Box
from ledgerkit.text import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ledgerkit.charts._cache_plot import Axes
    from ledgerkit.charts.cache import Curve
    from ledgerkit.charts.canvas import Canvas
    from ledgerkit.charts.theme import Series
    from ledgerkit.text import Language

__all__ = ["draw_capacities"]

Point = tuple[float, float]


def draw_capacities(
    canvas: Canvas,
    axes: Axes,
    curves: Sequence[Curve],
    series: Mapping[str, Series],
    language: Language,
) -> None:
    """Draw each capacity once, and a ring where its curve meets it.

    Parameters
    ----------
    canvas : Canvas
        Where to draw.
    axes : Axes
        Its ranges.
    curves : sequence of Curve
        What is drawn.
    series : mapping
        Label to colour.
    language : {"zh", "en"}
        Language.
    """
    owners: dict[float, list[Curve]] = {}
    for curve in curves:
        if curve.capacity:
            owners.setdefault(curve.capacity, []).append(curve)
    rings: dict[str, Point] = {}
    for capacity, owned in owners.items():
        for curve in owned:
            crossing = curve.crossing()
            if crossing is not None:
                word = text.get("cache.fits", language, context=numbers.context(crossing))
                rings.setdefault(word, axes.at(crossing, capacity))
    clutter = _Clutter(axes, curves, rings)
    alert = canvas.theme.alert
    for point in rings.values():
        canvas.symbol(
            point, "circle", 170, fill="transparent", stroke=alert, width=2.2, level=FOCUS
        )
    wanted = [
        Wanted(word, themes.SUBTITLE, True, _beside(x, y), (x, y)) for word, (x, y) in rings.items()
    ]
    clutter.set(canvas, wanted, alert)
    ink = canvas.theme.ink
    for capacity, owned in owners.items():
        _, y = axes.at(axes.tokens[0], capacity)
        canvas.segment((axes.left, y), (axes.right, y), ink, dash=(1, 2), width=1.2, level=GRID)
        word = owned[0].capacity_text or text.get(
            "cache.capacity", language, amount=numbers.byte_size(capacity)
        )
        spots = tuple(
            (axes.left + 8 + step, y + side, "left", step * 0.02 + (4 if side > 0 else 0))
            for step in range(0, int(axes.right - axes.left), 24)
            for side in (-10, 13)
        )
        # with several capacities the owner's colour says whose it is
        color = ink if len(owners) == 1 else series[owned[0].label].color
        clutter.set(canvas, [Wanted(word, themes.SMALL, False, spots, (axes.left, y))], color)


class _Clutter:
    """What words on the plot keep clear of."""

    def __init__(self, axes: Axes, curves: Sequence[Curve], rings: Mapping[str, Point]) -> None:
        self.bounds = Box(axes.left + 2, axes.top, axes.right - 2, axes.bottom)
        self.lines = [point for curve in curves for point in along(path_of(axes, curve))]
        for capacity in {curve.capacity for curve in curves if curve.capacity}:
            _, y = axes.at(axes.tokens[0], capacity)
            self.lines += along([(axes.left, y), (axes.right, y)])
        self.marks = [*rings.values()]
        self.marks += [axes.at(x, y) for curve in curves for x, y in curve.points if x in USUAL]

    def set(self, canvas: Canvas, wanted: Sequence[Wanted], color: str) -> None:
        """Set words where they cover least."""
        placed = place(
            wanted, words=canvas.words, marks=self.marks, lines=self.lines, bounds=self.bounds
        )
        for one, spot in zip(wanted, placed, strict=True):
            if spot:
                canvas.text(
                    spot.x,
                    spot.y,
                    spot.text,
                    size=one.size,
                    color=color,
                    bold=one.bold,
                    align=spot.align,
                )


def _beside(x: float, y: float) -> tuple[tuple[float, float, str, float], ...]:
    """Places around a ring, the best first."""
    return (
        (x - 11, y - 17, "right", 0.0),
        (x + 11, y + 19, "left", 1.0),
        (x - 24, y - 28, "right", 4.0),
        (x + 26, y + 20, "left", 4.0),
        (x + 12, y + 32, "left", 5.0),
        (x - 40, y - 17, "right", 5.0),
        (x - 14, y + 22, "right", 6.0),
        (x + 14, y - 22, "left", 6.0),
    )
