"""Trails, marks and names on the ledger triangle, and the table of shares beside it."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from ledgerkit import text
from ledgerkit.charts._names import ANCHORS, Ground, along, set_names
from ledgerkit.charts._trails import coinciding
from ledgerkit.charts.canvas import FOCUS, MARK
from ledgerkit.spec.axes import LEDGERS
from ledgerkit.text import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ledgerkit.charts._trails import Stop, Trail, Trails
    from ledgerkit.charts.canvas import Canvas
    from ledgerkit.charts.theme import Series
    from ledgerkit.text import Language

__all__ = ["draw_trails"]

Point = tuple[float, float]
_LARGE = 190.0
_SMALL = 34.0
_NEAR = 8.0


def draw_trails(
    canvas: Canvas,
    ground: Ground,
    trails: Trails,
    series: Mapping[str, Series],
    language: Language,
    *,
    focus: str | None = None,
) -> list[Point]:
    """Draw every trail with its marks and, if asked, its name.

    Parameters
    ----------
    canvas : Canvas
        Where to draw.
    ground : Ground
        Window and bounds.
    trails : Trails
        What to draw.
    series : mapping
        Label to colour and shape.
    language : {"zh", "en"}
        Language of tooltips.
    focus : str, optional
        Label drawn last and in full colour; the others fade.

    Returns
    -------
    list of (x, y)
        Points that marks and trails cover.
    """
    paths = {
        trail.label: [ground.view.at(stop.shares[0], stop.shares[2]) for stop in trail.stops]
        for trail in trails.trails
    }
    under = coinciding(trails.trails)
    # what lies under another comes first, the focus last
    order = sorted(
        trails.trails, key=lambda trail: (trail.label == focus, trail.label not in under)
    )
    for trail in order:
        _draw_trail(
            canvas,
            ground,
            trail,
            paths[trail.label],
            series[trail.label],
            trails,
            language,
            faded=focus is not None and trail.label != focus,
            under=trail.label in under,
        )
    for start, end in trails.arrows:
        marks = [
            paths[trail.label][trail.stops.index(trail.mark)]
            for label in (start, end)
            for trail in trails.trails
            if trail.label == label
        ]
        if len(marks) == 2:
            _technique_arrow(canvas, marks[0], marks[1], ground.scale)
    if ground.names:
        set_names(canvas, ground, trails, paths, series, focus)
    return [point for path in paths.values() for point in (*path, *along(path))]


def _technique_arrow(canvas: Canvas, start: Point, end: Point, scale: float) -> None:
    """Arrow from one large mark to another; none where they touch."""
    length = math.dist(start, end)
    gap = 11 * scale
    if length < 3 * gap:
        return
    dx, dy = (end[0] - start[0]) / length, (end[1] - start[1]) / length
    tip = (end[0] - dx * gap, end[1] - dy * gap)
    ink = canvas.theme.ink
    tail = (start[0] + dx * gap, start[1] + dy * gap)
    canvas.segment(tail, (tip[0] - dx * 6 * scale, tip[1] - dy * 6 * scale), ink,
                   width=2.2 * scale, level=FOCUS)  # fmt: skip
    canvas.symbol(tip, "triangle", 120.0 * scale, fill=ink, width=0.6,
                  angle=math.degrees(math.atan2(dx, -dy)), level=FOCUS)  # fmt: skip


def _draw_trail(
    canvas: Canvas,
    ground: Ground,
    trail: Trail,
    path: Sequence[Point],
    series: Series,
    trails: Trails,
    language: Language,
    *,
    faded: bool,
    under: bool,
) -> None:
    theme = canvas.theme
    level = MARK if faded or not ground.names else FOCUS
    opacity = theme.faded if faded else 1.0
    scale = ground.scale
    fitting = sum(1 for stop in trail.stops if stop.fits)
    widths = [
        (1.0 + 3.6 * index / max(1, len(path) - 1)) * scale + (4 if under else 0)
        for index in range(len(path))
    ]
    if fitting > 1:
        canvas.trail(path[:fitting], widths[:fitting], series.color, level=level, opacity=opacity)
    if fitting < len(path):
        canvas.polyline(
            path[max(0, fitting - 1) :],
            series.color,
            width=2.0 * scale,
            dash=(4, 3),
            level=level,
            opacity=opacity,
        )
    mark = trail.stops.index(trail.mark)
    if ground.names:
        _small_marks(canvas, trail, path, series, level, opacity, mark)
    _arrow(canvas, trail, path, series, level, opacity, mark, scale)
    solid = trail.mark.fits
    canvas.symbol(
        path[mark],
        series.shape,
        _LARGE * scale * (3.4 if under else 1),
        fill=series.color if solid else theme.background,
        stroke=theme.background if solid else series.color,
        width=1.6 if solid else 2.0,
        level=level,
        tip=_tip(trail, trail.mark, trails, language),
        opacity=opacity,
    )


def _small_marks(
    canvas: Canvas,
    trail: Trail,
    path: Sequence[Point],
    series: Series,
    level: int,
    opacity: float,
    mark: int,
) -> None:
    """Circles at the first point and at the usual contexts, unless the large mark is near."""
    last = len(path) - 1
    for index, stop in enumerate(trail.stops):
        usual = index == 0 or stop.value in ANCHORS
        if index in {mark, last} or not usual or math.dist(path[index], path[mark]) < _NEAR:
            continue
        hollow = index == 0 or not stop.fits
        canvas.symbol(
            path[index],
            "circle",
            _SMALL,
            fill=canvas.theme.background if hollow else series.color,
            stroke=series.color if hollow else canvas.theme.background,
            width=1.6 if hollow else 1.2,
            level=level,
            opacity=opacity,
        )


def _arrow(
    canvas: Canvas,
    trail: Trail,
    path: Sequence[Point],
    series: Series,
    level: int,
    opacity: float,
    mark: int,
    scale: float,
) -> None:
    """Head of the trail; none where the trail is shorter than its mark."""
    length = sum(math.dist(a, b) for a, b in pairwise(path))
    if len(path) < 2 or length < 14 * scale or math.dist(path[-1], path[mark]) < 12 * scale:
        return
    back = next((point for point in reversed(path[:-1]) if math.dist(point, path[-1]) > 3), path[0])
    dx, dy = path[-1][0] - back[0], path[-1][1] - back[1]
    solid = trail.stops[-1].fits
    canvas.symbol(
        path[-1],
        "triangle",
        130.0 * scale,
        fill=series.color if solid else canvas.theme.background,
        stroke=canvas.theme.background if solid else series.color,
        width=0.8 if solid else 1.8,
        angle=math.degrees(math.atan2(dx, -dy)),
        level=level,
        opacity=opacity,
    )


def _tip(trail: Trail, stop: Stop, trails: Trails, language: Language) -> dict[str, str]:
    shares = numbers.share_texts(stop.shares)
    state = "fits.yes" if stop.fits else "fits.no"
    return {
        text.get("tip.model", language): trail.label,
        text.get(f"tip.{trails.axis}", language): trails.position(stop.value),
        **{
            text.get(f"ledger.{ledger}", language): f"{share}%"
            for ledger, share in zip(LEDGERS, shares, strict=True)
        },
        text.get("tip.step", language): numbers.duration(stop.seconds),
        text.get("tip.memory", language): text.get(state, language),
    }
