"""Axes, curves and end labels of the cache chart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ledgerkit import text
from ledgerkit.charts import theme as themes
from ledgerkit.charts._labels import push_apart
from ledgerkit.charts.canvas import GRID, MARK
from ledgerkit.charts.metrics import wrap
from ledgerkit.text import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ledgerkit.charts.cache import Curve
    from ledgerkit.charts.canvas import Canvas
    from ledgerkit.charts.theme import Series
    from ledgerkit.text import Language

__all__ = ["Axes", "draw_axes", "draw_curves", "draw_ends"]

Point = tuple[float, float]
USUAL: Final = (1024, 8192, 32768, 131072)
_LINE: Final = 16.0


@dataclass(frozen=True)
class Axes:
    """Logarithmic axes in px.

    Parameters
    ----------
    left, top, right, bottom : float
        The plot.
    tokens, size : (low, high)
        Ranges in tokens and bytes.

    Examples
    --------
    >>> Axes(0, 0, 100, 100, (1, 100), (1, 100)).at(10, 10)
    (50.0, 50.0)
    """

    left: float
    top: float
    right: float
    bottom: float
    tokens: tuple[float, float]
    size: tuple[float, float]

    @classmethod
    def around(
        cls, curves: Sequence[Curve], left: float, top: float, right: float, bottom: float
    ) -> Axes:
        """Axes that hold all curves and capacities.

        Parameters
        ----------
        curves : sequence of Curve
            What is drawn; not empty.
        left, top, right, bottom : float
            The plot in px.

        Returns
        -------
        Axes
        """
        xs = [x for curve in curves for x, _ in curve.points]
        ys = [y for curve in curves for _, y in curve.points]
        ys += [curve.capacity for curve in curves if curve.capacity]
        low, high = min(xs), max(xs)
        if low == high:
            low, high = low / 2, high * 2
        return cls(left, top, right, bottom, (low, high), (min(ys) / 1.8, max(ys) * 1.6))

    def at(self, tokens: float, size: float) -> Point:
        """Pixel of a context and a size.

        Parameters
        ----------
        tokens, size : float
            Tokens and bytes, positive.

        Returns
        -------
        (x, y)

        Examples
        --------
        >>> Axes(0, 0, 100, 100, (1, 100), (1, 100)).at(1, 100)
        (0.0, 0.0)
        """
        across = math.log(tokens / self.tokens[0]) / math.log(self.tokens[1] / self.tokens[0])
        up = math.log(size / self.size[0]) / math.log(self.size[1] / self.size[0])
        return (
            self.left + across * (self.right - self.left),
            self.bottom - up * (self.bottom - self.top),
        )

    def token_ticks(self) -> list[float]:
        """Powers of two inside the range."""
        first = math.ceil(math.log2(self.tokens[0]) - 1e-9)
        last = math.floor(math.log2(self.tokens[1]) + 1e-9)
        return [float(2**power) for power in range(first, last + 1)]

    def size_ticks(self) -> list[float]:
        """Decades inside the range; with 2 and 5 between them where there are too few."""
        first = math.floor(math.log10(self.size[0]))
        last = math.ceil(math.log10(self.size[1]))
        ticks = [10.0**power for power in range(first, last + 1)]
        inside = [tick for tick in ticks if self.size[0] <= tick <= self.size[1]]
        if len(inside) > 2:
            return inside
        ticks = [digit * tick for tick in ticks for digit in (1, 2, 5)]
        return [tick for tick in ticks if self.size[0] <= tick <= self.size[1]]


def draw_axes(canvas: Canvas, axes: Axes, language: Language) -> None:
    """Draw grid, ticks and the title of the context axis.

    Parameters
    ----------
    canvas : Canvas
        Where to draw.
    axes : Axes
        Its ranges.
    language : {"zh", "en"}
        Language.
    """
    theme = canvas.theme
    ticks = axes.token_ticks()
    every = 1 + int(len(ticks) * 36 / (axes.right - axes.left))
    for index, tick in enumerate(ticks):
        x, _ = axes.at(tick, axes.size[0])
        if (len(ticks) - 1 - index) % every:
            continue
        canvas.segment((x, axes.top), (x, axes.bottom), theme.grid, level=GRID)
        canvas.text(x, axes.bottom + 17, numbers.context(tick), align="center")
    for tick in axes.size_ticks():
        _, y = axes.at(axes.tokens[0], tick)
        canvas.segment((axes.left, y), (axes.right, y), theme.grid, level=GRID)
        power = math.log10(tick)
        label = numbers.byte_size(tick)
        if power == int(power):
            label = label.replace(".00", "").replace(".0", "")
        canvas.text(axes.left - 9, y, label, align="right")
    canvas.segment((axes.left, axes.bottom), (axes.right, axes.bottom), theme.rule, level=GRID)
    canvas.text(
        axes.right,
        axes.bottom + 37,
        text.get("cache.axis", language),
        color=theme.ink,
        align="right",
    )


def path_of(axes: Axes, curve: Curve) -> list[Point]:
    """Pixels of a curve.

    Parameters
    ----------
    axes : Axes
        Its ranges.
    curve : Curve
        What is drawn.

    Returns
    -------
    list of (x, y)
    """
    return [axes.at(x, y) for x, y in curve.points]


def groups_of(curves: Sequence[Curve]) -> list[list[Curve]]:
    """Curves that coincide, together; in the order of appearance.

    Parameters
    ----------
    curves : sequence of Curve
        What is drawn.

    Returns
    -------
    list of list of Curve
    """
    groups: list[list[Curve]] = []
    for curve in curves:
        for group in groups:
            if curve.same_as(group[0]):
                group.append(curve)
                break
        else:
            groups.append([curve])
    return groups


def draw_curves(
    canvas: Canvas,
    axes: Axes,
    curves: Sequence[Curve],
    series: Mapping[str, Series],
    language: Language,
) -> None:
    """Draw the lines and their marks; curves that coincide as a wide line under a narrow one.

    Parameters
    ----------
    canvas : Canvas
        Where to draw.
    axes : Axes
        Its ranges.
    curves : sequence of Curve
        What is drawn.
    series : mapping
        Label to colour and shape.
    language : {"zh", "en"}
        Language of the tooltips.
    """
    for group in groups_of(curves):
        for depth, curve in reversed(list(enumerate(group))):
            one = series[curve.label]
            path = path_of(axes, curve)
            dash = one.dash if curve.reference else ()
            canvas.polyline(path, one.color, width=2.6 + 3.4 * depth, dash=dash, level=MARK)
        for depth, curve in reversed(list(enumerate(group))):
            one = series[curve.label]
            if curve.reference:
                continue
            # under the narrow line the marks stand between those of the line above
            usual = [value * 2**depth for value in USUAL] if len(group) > 1 else list(USUAL)
            for x, y in curve.points:
                if x in usual or (depth == 0 and (x, y) == curve.points[-1]):
                    canvas.symbol(
                        axes.at(x, y),
                        one.shape,
                        78,
                        fill=one.color,
                        width=1.2,
                        tip={
                            text.get("tip.model", language): curve.label,
                            text.get("tip.context", language): numbers.context(x),
                            text.get("tip.cache", language): numbers.byte_size(y),
                            text.get("tip.law", language): curve.law,
                        },
                    )


def draw_ends(
    canvas: Canvas,
    axes: Axes,
    curves: Sequence[Curve],
    series: Mapping[str, Series],
    language: Language,
    *,
    listed: bool,
) -> float:
    """Name every line at its end, with mechanism and law.

    Parameters
    ----------
    canvas : Canvas
        Where to draw.
    axes : Axes
        Its ranges.
    curves : sequence of Curve
        What is drawn.
    series : mapping
        Label to colour and shape.
    language : {"zh", "en"}
        Language.
    listed : bool
        As a list under the plot, where there is no room at the side.

    Returns
    -------
    float
        Where the foot starts, px.
    """
    theme = canvas.theme
    groups = sorted(groups_of(curves), key=lambda group: -group[0].points[-1][1])
    left = themes.MARGIN if listed else axes.right + 22
    room = canvas.width - themes.MARGIN - left
    blocks = [_block(group, room, language) for group in groups]
    heights = [len(block) * _LINE + 7 for block in blocks]
    ends = [axes.at(*group[0].points[-1]) for group in groups]
    if listed:
        start = axes.bottom + 70
        centres = [
            start + sum(heights[:index]) + height / 2 for index, height in enumerate(heights)
        ]
    else:
        # the name stands at the line's end, its details below
        wanted = [y + height / 2 - _LINE / 2 for (_, y), height in zip(ends, heights, strict=True)]
        column = max(axes.bottom, axes.top + sum(heights))
        centres = push_apart(wanted, heights, axes.top - 10, column)
    for group, block, height, centre, end in zip(
        groups, blocks, heights, centres, ends, strict=True
    ):
        y = centre - height / 2 + _LINE / 2
        for index, line in enumerate(block):
            if index < len(group):
                one = series[group[index].label]
                canvas.text(
                    left + (14 if listed and one.shape else 0),
                    y,
                    line,
                    size=themes.LABEL,
                    color=one.color,
                    bold=True,
                )
                if listed and one.shape:
                    canvas.symbol((left + 5, y), one.shape, 80, fill=one.color, width=1.0)
                elif not listed:
                    elbow = axes.right + 13
                    color = one.color
                    canvas.segment((axes.right + 5, end[1]), (elbow, y), color, level=MARK)
                    canvas.segment((elbow, y), (left - 3, y), color, level=MARK)
            else:
                color = theme.ink if line == group[0].law else theme.mute
                canvas.text(left, y, line, color=color)
            y += _LINE
    last = centres[-1] + heights[-1] / 2
    return max(axes.bottom + 72, last + 24)


def _block(group: Sequence[Curve], room: float, language: Language) -> list[str]:
    """Lines of one label: names, mechanism, law."""
    first = group[0]
    mechanism = first.mechanism
    if len(group) > 1:
        key = "cache.same.two" if len(group) == 2 else "cache.same.all"
        mechanism = text.get(key, language, mechanism=first.mechanism)
    details = [*wrap(mechanism, room, themes.SMALL)] if mechanism else []
    return [*(curve.label for curve in group), *details, *([first.law] if first.law else [])]
