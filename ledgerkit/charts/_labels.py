"""Where names go: beside their mark, clear of other words, marks and lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ledgerkit.charts.metrics import Box, text_box

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Placed", "Wanted", "place", "push_apart"]

Point = tuple[float, float]
# words keep 4 px apart sideways; line boxes may overlap a little, the letters in them do not
_APART: Final = 4.0
_OVERLAP_Y: Final = 5.0
# Costs of one candidate in arbitrary units: a pixel off costs a little, a covered mark a lot.
_PER_PIXEL: Final = 0.6
_ON_MARK: Final = 40.0
_ON_LINE: Final = 9.0
_CROSSED: Final = 12.0
_BEAM: Final = 16
_OPTIONS: Final = 26
_STEPS: Final = (6.0, 11.0, 17.0, 25.0, 34.0, 51.0, 68.0)
_CELL: Final = 24.0


@dataclass(frozen=True)
class Wanted:
    """A name that looks for a place.

    Parameters
    ----------
    text : str
        The name.
    size : float
        px.
    bold : bool
        Weight 700.
    candidates : tuple of (x, y, align, cost)
        Anchors in px that it may take.
    at : (x, y)
        The mark that it names.
    """

    text: str
    size: float
    bold: bool
    candidates: tuple[tuple[float, float, str, float], ...]
    at: Point


@dataclass(frozen=True)
class Placed:
    """A name with its place.

    Parameters
    ----------
    text : str
        The name.
    x, y : float
        Anchor in px.
    align : {"left", "center", "right"}
        What ``x`` is.
    box : Box
        What it covers.
    cost : float
        How far it is from a perfect place; 0 is perfect.
    """

    text: str
    x: float
    y: float
    align: str
    box: Box
    cost: float


def around(
    head: Point, tail: Point | None, reach: float = 12.0
) -> tuple[tuple[float, float, str, float], ...]:
    """Candidates for a name at the head of a trail: right of it, above, below, or at the tail.

    Parameters
    ----------
    head, tail : (x, y)
        Ends of the trail in px; no tail for a single point.
    reach : float
        Distance from the mark in px.

    Returns
    -------
    tuple of (x, y, align, cost)
    """
    x, y = head
    steps = [0.0, *(sign * step for step in _STEPS for sign in (1, -1))]
    found = [(x + reach, y + step, "left", abs(step) * _PER_PIXEL) for step in steps]
    found += [
        (x, y + sign * (reach + 6 + step), "center", 16.0 + step * _PER_PIXEL)
        for sign in (-1, 1)
        for step in (0.0, 17.0, 34.0)
    ]
    left = tail or head
    found += [
        (left[0] - reach, left[1] + step, "right", 20.0 + abs(step) * _PER_PIXEL) for step in steps
    ]
    return tuple(found)


def _hits(box: Box, other: Box) -> bool:
    across, down = box.overlap(other)
    return across > -_APART and down > _OVERLAP_Y


class _Clutter:
    """What names keep clear of: words exactly, marks and lines as points in a grid of cells."""

    def __init__(
        self, words: Sequence[Box], marks: Sequence[Point], lines: Sequence[Point], bounds: Box
    ) -> None:
        # grown by what must stay free, as plain tuples: this test runs thousands of times
        self.words = [
            (
                word.left - _APART,
                word.top + _OVERLAP_Y,
                word.right + _APART,
                word.bottom - _OVERLAP_Y,
            )
            for word in words
        ]
        self.bounds = bounds
        self.cells: dict[tuple[int, int], list[tuple[float, float, bool]]] = {}
        for points, is_mark in ((marks, True), (lines, False)):
            for x, y in points:
                self.cells.setdefault((int(x // _CELL), int(y // _CELL)), []).append(
                    (x, y, is_mark)
                )

    def cost(self, box: Box) -> float | None:
        """Cost of a place, None where the name cannot stand."""
        bounds = self.bounds
        if box.left < bounds.left or box.right > bounds.right:
            return None
        if box.top < bounds.top or box.bottom > bounds.bottom:
            return None
        for left, word_top, right, word_bottom in self.words:
            if (
                box.left < right
                and box.right > left
                and box.top < word_bottom
                and box.bottom > word_top
            ):
                return None
        # the visible letters are smaller than the line box
        top, bottom = box.top + 4, box.bottom - 3
        cost = 0.0
        for column in range(int((box.left - 6) // _CELL), int((box.right + 6) // _CELL) + 1):
            for row in range(int((top - 6) // _CELL), int((bottom + 6) // _CELL) + 1):
                for x, y, is_mark in self.cells.get((column, row), ()):
                    reach = 6.0 if is_mark else 1.0
                    if (
                        box.left - reach < x < box.right + reach
                        and top - reach < y < bottom + reach
                    ):
                        cost += _ON_MARK if is_mark else _ON_LINE
        return cost


def place(
    wanted: Sequence[Wanted],
    *,
    words: Sequence[Box],
    marks: Sequence[Point],
    lines: Sequence[Point],
    bounds: Box,
) -> list[Placed | None]:
    """Find a place for every name so that the total cost is small (beam search).

    Parameters
    ----------
    wanted : sequence of Wanted
        The names.
    words : sequence of Box
        Text that is already there.
    marks, lines : sequence of (x, y)
        Centres of marks, and points along lines, in px.
    bounds : Box
        Names stay inside.

    Returns
    -------
    list of Placed or None
        In the order of ``wanted``; None where no candidate is free.
    """
    order = sorted(range(len(wanted)), key=lambda index: (wanted[index].at[1], index))
    clutter = _Clutter(words, marks, lines, bounds)
    beam: list[tuple[float, tuple[Placed | None, ...]]] = [(0.0, ())]
    for index in order:
        name = wanted[index]
        options: list[Placed] = []
        for x, y, align, base in name.candidates:
            box = text_box(x, y, name.text, size=name.size, bold=name.bold, align=align)
            cost = clutter.cost(box)
            if cost is not None:
                options.append(Placed(name.text, x, y, align, box, base + cost))
        options = sorted(options, key=lambda option: option.cost)[:_OPTIONS]
        grown: list[tuple[float, tuple[Placed | None, ...]]] = []
        for total, placed in beam:
            free = [
                (total + option.cost + _order_cost(option, placed), (*placed, option))
                for option in options
                if not any(other and _hits(option.box, other.box) for other in placed)
            ]
            grown += free or [(total + 1000.0, (*placed, None))]
        # ties keep their order, so that the same input gives the same picture
        beam = sorted(grown, key=lambda item: item[0])[:_BEAM]
    result: list[Placed | None] = [None] * len(wanted)
    for index, placed_name in zip(order, beam[0][1], strict=True):
        result[index] = placed_name
    return result


def _order_cost(option: Placed, placed: Sequence[Placed | None]) -> float:
    """Names are placed from the top mark down: one that climbs over an earlier one confuses."""
    return _CROSSED * sum(
        1 for other in placed if other and other.align == option.align and other.y > option.y
    )


def push_apart(
    wanted: Sequence[float], heights: Sequence[float], top: float, bottom: float
) -> list[float]:
    """Centres of a column of blocks, moved as little as needed so that none overlap.

    Parameters
    ----------
    wanted : sequence of float
        Wanted centres in px, ascending.
    heights : sequence of float
        Heights of the blocks in px.
    top, bottom : float
        The column's ends in px; the last block is clamped inside, then the chain is pushed up.

    Returns
    -------
    list of float

    Examples
    --------
    >>> push_apart([10, 12, 60], [20, 20, 20], 0, 100)
    [10, 30.0, 60]
    """
    centres = list(wanted)
    for index, height in enumerate(heights):
        least = top + height / 2
        if index:
            least = centres[index - 1] + (heights[index - 1] + height) / 2
        centres[index] = max(centres[index], least)
    limit = bottom
    for index in range(len(centres) - 1, -1, -1):
        centres[index] = min(centres[index], limit - heights[index] / 2)
        limit = centres[index] - heights[index] / 2
    return centres
