"""Geometry of the ledger triangle: shares to pixels, clipped to a window.

FFN / MLP is the bottom left corner, Attention / KV the bottom right, scheduling the top. In unit
coordinates a point is ``(attention + scheduling / 2, scheduling)``. A view shows a window of the
unit square: all of the triangle, or its lower slice with the vertical axis stretched. Stretching
keeps lines straight and parallels parallel, so that the grid reads the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ledgerkit.spec.axes import Ledger

__all__ = ["REGIONS", "View", "clip_polygon", "clip_segment", "grid_line", "slice_window"]

Point = tuple[float, float]
HEIGHT: Final = 3**0.5 / 2
"""Height of an equilateral triangle over its side."""

REGIONS: Final[Mapping[Ledger, tuple[Point, ...]]] = {
    "attention_kv": ((1.0, 0.0), (0.75, 0.5), (0.5, 1 / 3), (0.5, 0.0)),
    "ffn_mlp": ((0.0, 0.0), (0.5, 0.0), (0.5, 1 / 3), (0.25, 0.5)),
    "scheduling": ((0.5, 1.0), (0.25, 0.5), (0.5, 1 / 3), (0.75, 0.5)),
}
"""Where each ledger is the largest, in unit coordinates."""

OUTLINE: Final = ((0.0, 0.0), (1.0, 0.0), (0.5, 1.0))
BORDERS: Final = tuple(((0.5, 1 / 3), edge) for edge in ((0.5, 0.0), (0.25, 0.5), (0.75, 0.5)))


@dataclass(frozen=True)
class View:
    """A window of the triangle and the pixels it fills.

    Parameters
    ----------
    left, base : float
        Pixel of the window's lower left corner.
    width, height : float
        Size in px.
    low, high : float
        Horizontal window in unit coordinates.
    top : float
        Largest scheduling share shown.

    Examples
    --------
    >>> View(0, 100, 200, 100).at(0.5, 0.0)
    (100.0, 100.0)
    """

    left: float
    base: float
    width: float
    height: float
    low: float = 0.0
    high: float = 1.0
    top: float = 1.0

    @property
    def whole(self) -> bool:
        """Whether the window holds all of the triangle."""
        return self.low <= 0 and self.high >= 1 and self.top >= 1

    @property
    def stretch(self) -> float:
        """How much larger a scheduling share is drawn than an equal share along the base."""
        across = self.width / (self.high - self.low)
        return self.height / self.top / HEIGHT / across

    def pixel(self, point: Point) -> Point:
        """Pixel of a point in unit coordinates.

        Parameters
        ----------
        point : (u, v)
            Unit coordinates.

        Returns
        -------
        (x, y)

        Examples
        --------
        >>> View(0, 100, 200, 100).pixel((0.5, 1.0))
        (100.0, 0.0)
        """
        u, v = point
        return (
            self.left + (u - self.low) / (self.high - self.low) * self.width,
            self.base - v / self.top * self.height,
        )

    def at(self, attention: float, scheduling: float) -> Point:
        """Pixel of a pair of shares.

        Parameters
        ----------
        attention, scheduling : float
            Shares, 0 to 1; the rest is FFN / MLP.

        Returns
        -------
        (x, y)

        Examples
        --------
        >>> View(0, 100, 200, 100).at(0.0, 1.0)
        (100.0, 0.0)
        """
        return self.pixel((attention + scheduling / 2, scheduling))

    def polygon(self, points: Sequence[Point]) -> list[Point]:
        """Pixels of a polygon, cut to the window.

        Parameters
        ----------
        points : sequence of (u, v)
            Unit coordinates.

        Returns
        -------
        list of (x, y)
            Empty when nothing is inside.

        Examples
        --------
        >>> View(0, 10, 10, 10).polygon([(0, 0), (1, 0), (0.5, 1)])
        [(0.0, 10.0), (10.0, 10.0), (5.0, 0.0)]
        """
        inside = clip_polygon(points, self.low, self.high, 0.0, self.top)
        return [self.pixel(point) for point in inside]

    def segment(self, start: Point, end: Point) -> tuple[Point, Point] | None:
        """Pixels of a segment, cut to the window.

        Parameters
        ----------
        start, end : (u, v)
            Unit coordinates.

        Returns
        -------
        pair of (x, y) or None
            None when nothing is inside.

        Examples
        --------
        >>> View(0, 10, 10, 10, top=0.5).segment((0.5, 0.0), (0.5, 1.0))
        ((5.0, 10.0), (5.0, 0.0))
        """
        cut = clip_segment(start, end, self.low, self.high, 0.0, self.top)
        return cut and (self.pixel(cut[0]), self.pixel(cut[1]))


def grid_line(ledger: Ledger, share: float) -> tuple[Point, Point]:
    """Line of equal share of one ledger, in unit coordinates.

    Parameters
    ----------
    ledger : str
        The ledger whose share is constant.
    share : float
        0 to 1.

    Returns
    -------
    pair of (u, v)
        The end where the share is labelled comes first.

    Examples
    --------
    >>> grid_line("attention_kv", 0.5)
    ((0.5, 0.0), (0.75, 0.5))
    """
    rest = 1 - share
    if ledger == "attention_kv":
        return (share, 0.0), (share + rest / 2, rest)
    if ledger == "ffn_mlp":
        return (rest / 2, rest), (rest, 0.0)
    return (1 - share / 2, share), (share / 2, share)


def clip_segment(
    start: Point, end: Point, low: float, high: float, bottom: float, top: float
) -> tuple[Point, Point] | None:
    """Part of a segment inside an upright rectangle (Liang-Barsky).

    Parameters
    ----------
    start, end : (u, v)
        Ends.
    low, high, bottom, top : float
        The rectangle.

    Returns
    -------
    pair of (u, v) or None
        In the direction of the segment; None when it misses or only touches.

    Examples
    --------
    >>> clip_segment((0, 0), (2, 0), 0, 1, 0, 1)
    ((0.0, 0.0), (1.0, 0.0))
    """
    du, dv = end[0] - start[0], end[1] - start[1]
    first, last = 0.0, 1.0
    for step, room in (
        (-du, start[0] - low),
        (du, high - start[0]),
        (-dv, start[1] - bottom),
        (dv, top - start[1]),
    ):
        if step == 0:
            if room < 0:
                return None
        elif step < 0:
            first = max(first, room / step)
        else:
            last = min(last, room / step)
    if first >= last:
        return None
    return (
        (start[0] + first * du, start[1] + first * dv),
        (start[0] + last * du, start[1] + last * dv),
    )


def clip_polygon(
    points: Sequence[Point], low: float, high: float, bottom: float, top: float
) -> list[Point]:
    """Part of a convex polygon inside an upright rectangle (Sutherland-Hodgman).

    Parameters
    ----------
    points : sequence of (u, v)
        Corners in order.
    low, high, bottom, top : float
        The rectangle.

    Returns
    -------
    list of (u, v)

    Examples
    --------
    >>> clip_polygon([(0, 0), (2, 0), (2, 1), (0, 1)], 0, 1, 0, 1)
    [(0, 0), (1.0, 0.0), (1.0, 1.0), (0, 1)]
    """
    corners = list(points)
    for axis, limit, sign in ((0, low, 1), (0, high, -1), (1, bottom, 1), (1, top, -1)):
        kept: list[Point] = []
        for index, corner in enumerate(corners):
            before = corners[index - 1]
            gap = sign * (corner[axis] - limit)
            gap_before = sign * (before[axis] - limit)
            if gap * gap_before < 0:
                part = gap_before / (gap_before - gap)
                kept.append(
                    (
                        before[0] + part * (corner[0] - before[0]),
                        before[1] + part * (corner[1] - before[1]),
                    )
                )
            if gap >= 0:
                kept.append(corner)
        corners = kept
    return corners


def slice_window(points: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Choose the window of an enlarged view.

    The slice keeps both lower corners in sight as long as the points spread over more than half of
    the base; only a tight cluster is cut at the sides as well.

    Parameters
    ----------
    points : sequence of (attention, scheduling)
        Shares of everything that is drawn.

    Returns
    -------
    low, high, top : float
        Horizontal window in unit coordinates, and the largest scheduling share.

    Examples
    --------
    >>> slice_window([(0.2, 0.12), (0.8, 0.08)])
    (0.0, 1.0, 0.15)
    """
    top = max(0.1, -(-(max(share for _, share in points) + 0.015) // 0.05) * 0.05)
    across = [attention + scheduling / 2 for attention, scheduling in points]
    # tenths, one free tenth on the left and two on the right, where the names stand
    low = max(0, int(min(across) * 10 - 0.5))
    high = min(10, int(max(across) * 10) + 3)
    if high - low < 4:
        low = max(0, min(low, high - 4))
        high = low + 4
    if high - low > 6:
        low, high = 0, 10
    return low / 10, high / 10, round(top, 2)
