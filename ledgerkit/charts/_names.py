"""Names at the heads of trails, and positions along one of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from ledgerkit.charts import theme as themes
from ledgerkit.charts._labels import Placed, Wanted, around, place
from ledgerkit.charts.canvas import MARK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ledgerkit.charts._ternary import View
    from ledgerkit.charts._trails import Stop, Trails
    from ledgerkit.charts.canvas import Canvas
    from ledgerkit.charts.metrics import Box
    from ledgerkit.charts.theme import Series

__all__ = ["ANCHORS", "Ground", "along", "set_names"]

Point = tuple[float, float]
ANCHORS: Final = (1024, 8192, 32768, 131072)
"""Contexts that get a mark and, on one trail, a label."""

_LEADER_FROM: Final = 16.0
_LONG_ENOUGH: Final = 60.0
_BETWEEN: Final = 16.0
_COVERS: Final = 40.0
_TOO_CROWDED: Final = 30.0


@dataclass(frozen=True)
class Ground:
    """Where and how trails are drawn.

    Parameters
    ----------
    view : View
        What is shown.
    bounds : Box
        Names stay inside.
    names : bool
        Whether to set names and positions; the inset does without.
    scale : float
        Size of the marks; 1 on a full figure.
    listed : bool
        Whether a table beside names every mark: then a name that would cover a mark is left out.
    """

    view: View
    bounds: Box
    names: bool = True
    scale: float = 1.0
    listed: bool = True


def set_names(
    canvas: Canvas,
    ground: Ground,
    trails: Trails,
    paths: Mapping[str, Sequence[Point]],
    series: Mapping[str, Series],
    focus: str | None,
) -> None:
    """Set names at the heads first, then positions along one trail where they find room.

    Parameters
    ----------
    canvas : Canvas
        Where to draw.
    ground : Ground
        Window and bounds.
    trails : Trails
        What is drawn.
    paths : mapping
        Label to points in px.
    series : mapping
        Label to colour and shape.
    focus : str or None
        Label in full colour.
    """
    theme = canvas.theme
    wanted = []
    marks: list[Point] = []
    outline = [ground.view.pixel(corner) for corner in ((0.0, 0.0), (0.5, 1.0), (1.0, 0.0))]
    lines = along(outline)
    for trail in trails.trails:
        path = paths[trail.label]
        marks += [path[trail.stops.index(trail.mark)], path[-1]]
        lines += along(path)
        tail = path[0] if len(path) > 1 else None
        wanted.append(Wanted(trail.label, themes.LABEL, True, around(path[-1], tail), path[-1]))
    heads = {trail.label: paths[trail.label][trail.stops.index(trail.mark)]
             for trail in trails.trails}  # fmt: skip
    for start, end in trails.arrows:
        if start in heads and end in heads:
            arrow = along([heads[start], heads[end]])
            lines += arrow
            marks += arrow[-6:]  # its head is as wide as a mark
    placed = place(wanted, words=canvas.words, marks=marks, lines=lines, bounds=ground.bounds)
    for trail, spot in zip(trails.trails, placed, strict=True):
        if spot is None or (ground.listed and spot.cost >= _COVERS):
            continue
        quiet = focus is not None and trail.label != focus
        canvas.text(
            spot.x,
            spot.y,
            spot.text,
            size=themes.LABEL,
            color=theme.mute if quiet else series[trail.label].color,
            bold=True,
            align=spot.align,
        )
        _leader(canvas, spot, paths[trail.label], series[trail.label].color)
    _set_positions(canvas, ground, trails, paths, marks, lines, focus)


def _leader(canvas: Canvas, spot: Placed, path: Sequence[Point], color: str) -> None:
    """A thin line to a name that stands away from both ends of its trail."""
    middle = (spot.box.top + spot.box.bottom) / 2
    # the letters, not the line box
    nearest = [
        (
            min(max(x, spot.box.left - 3), spot.box.right + 3),
            min(max(y, middle - 7), middle + 7),
        )
        for x, y in (path[-1], path[0])
    ]
    gaps = [math.dist(end, point) for end, point in zip((path[-1], path[0]), nearest, strict=True)]
    if min(gaps) > _LEADER_FROM:
        canvas.segment(path[-1], nearest[0], color, level=MARK)


def _set_positions(
    canvas: Canvas,
    ground: Ground,
    trails: Trails,
    paths: Mapping[str, Sequence[Point]],
    marks: Sequence[Point],
    lines: Sequence[Point],
    focus: str | None,
) -> None:
    """Write 1K, 8K, ... along the trail that has most room for them."""
    best: list[Placed] = []
    best_worth = 0.0
    for trail in sorted(trails.trails, key=lambda trail: -_length(paths[trail.label])):
        path = paths[trail.label]
        if focus not in {None, trail.label} or _length(path) < _LONG_ENOUGH:
            continue
        stops: list[tuple[Stop, Point]] = []
        for index, stop in enumerate(trail.stops):
            usual = index in {0, len(path) - 1} or stop.operating or stop.value in ANCHORS
            if usual and (not stops or math.dist(path[index], stops[-1][1]) > _BETWEEN):
                stops.append((stop, path[index]))
        wanted = []
        for stop, (x, y) in stops:
            spots = tuple(
                (x + dx, y + dy, "center", abs(dx) * 0.5 + (0 if dy < 0 else 4))
                for dy in (-16.0, 17.0, -20.0, 21.0)
                for dx in (0.0, -7.0, 7.0)
            )
            wanted.append(Wanted(trails.position(stop.value), themes.SMALL, False, spots, (x, y)))
        placed = place(
            wanted,
            words=canvas.words,
            marks=[point for point in marks if point not in path],
            lines=lines,
            bounds=ground.bounds,
        )
        found = [spot for spot in placed if spot and spot.cost < _TOO_CROWDED]
        worth = sum(_TOO_CROWDED - spot.cost for spot in found)
        if worth > best_worth:
            best, best_worth = found, worth
    for spot in best:
        canvas.text(spot.x, spot.y, spot.text, align=spot.align)


def _length(path: Sequence[Point]) -> float:
    return sum(math.dist(a, b) for a, b in pairwise(path))


def along(path: Sequence[Point]) -> list[Point]:
    """Points every few px along a path, so that names can keep off it.

    Parameters
    ----------
    path : sequence of (x, y)
        px.

    Returns
    -------
    list of (x, y)

    Examples
    --------
    >>> len(along([(0.0, 0.0), (60.0, 0.0)]))
    10
    """
    found: list[Point] = []
    for start, end in pairwise(path):
        parts = max(1, int(math.dist(start, end) / 6))
        found += [
            (
                start[0] + (end[0] - start[0]) * part / parts,
                start[1] + (end[1] - start[1]) * part / parts,
            )
            for part in range(parts)
        ]
    return found
