"""A drawing surface in pixels that becomes one layered Altair chart.

Ternary plots, bars with seams and direct labels are not what axes are for. Charts compute their
geometry in Python, where it can be tested, and draw on this surface; scales are switched off, so
that a coordinate is a pixel (x to the right, y down). Marks of one style share a layer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from ledgerkit.charts import theme as themes
from ledgerkit.charts._spec import SCHEMA, layer
from ledgerkit.charts.metrics import Box, text_box

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ledgerkit.charts._chart import LedgerChart

__all__ = ["FOCUS", "GRID", "MARK", "WASH", "WORD", "Canvas", "Point"]

WASH, GRID, MARK, FOCUS, WORD = range(5)
"""Drawing order; within one level, the order in which styles were first used."""

Point: TypeAlias = tuple[float, float]
_Style: TypeAlias = tuple[int, str, tuple[tuple[str, Any], ...], tuple[str, ...], tuple[str, ...]]


def _number(value: float) -> float:
    """Two decimals of a pixel: short specifications, and the same bytes on every machine."""
    rounded = round(float(value), 2)
    return int(rounded) if rounded == int(rounded) else rounded


class Canvas:
    """Collects marks in pixels and turns them into one chart.

    Parameters
    ----------
    theme : Theme
        Colours of background and text.
    width : float
        px.

    Examples
    --------
    >>> canvas = Canvas(themes.THEMES["article"], 200)
    >>> canvas.text(20, 24, "decode", bold=True)
    >>> canvas.chart(60).to_dict()["layer"][0]["mark"]["type"]
    'text'
    """

    def __init__(self, theme: themes.Theme, width: float) -> None:
        self.theme = theme
        self.width = width
        self.words: list[Box] = []
        """Boxes of all unrotated text so far: what labels must keep clear of."""
        self._rows: dict[_Style, list[dict[str, Any]]] = {}
        self._lines = 0

    def _add(
        self,
        level: int,
        kind: str,
        row: dict[str, Any],
        tip: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        row |= _tip(tip)
        # marks with different fields cannot share a layer
        key = (level, kind, tuple(options.items()), tuple(tip or ()), tuple(row))
        self._rows.setdefault(key, []).append(row)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = themes.SMALL,
        color: str | None = None,
        bold: bool = False,
        align: str = "left",
        angle: float = 0,
    ) -> None:
        """Set one line of text, ``y`` at its middle.

        Parameters
        ----------
        x, y : float
            px.
        text : str
            One line; nothing is drawn for an empty one.
        size : float
            px.
        color : str, optional
            Default: mute.
        bold : bool
            Weight 700.
        align : {"left", "center", "right"}
            What ``x`` is.
        angle : float
            Degrees clockwise.
        """
        if not text:
            return
        row = {
            "x": _number(x),
            "y": _number(y),
            "text": text,
            "color": color or self.theme.mute,
            "size": _number(size),
            "angle": _number(angle % 360),
        }
        self._add(WORD, "text", row, align=align, fontWeight=700 if bold else 400)
        if not angle % 360:
            self.words.append(text_box(x, y, text, size=size, bold=bold, align=align))

    def rectangle(
        self,
        box: Box,
        *,
        fill: str | None = None,
        stroke: str | None = None,
        width: float = 1.0,
        level: int = MARK,
        tip: Mapping[str, str] | None = None,
    ) -> None:
        """Draw a rectangle.

        Parameters
        ----------
        box : Box
            Its edges.
        fill, stroke : str, optional
            Colours; None draws none.
        width : float
            Stroke width in px.
        level : int
            Place in the drawing order.
        tip : mapping, optional
            Tooltip: title to text.
        """
        row = {
            "x": _number(box.left),
            "y": _number(box.top),
            "x2": _number(box.right),
            "y2": _number(box.bottom),
        }
        paint = {"fill": fill or "transparent"}
        if stroke:
            paint |= {"stroke": stroke}
            row |= {"width": _number(width)}
        self._add(level, "rect", row | paint, tip)

    def polygon(self, points: Sequence[Point], fill: str, *, level: int = WASH) -> None:
        """Fill a polygon.

        Parameters
        ----------
        points : sequence of (x, y)
            Corners in order.
        fill : str
            Colour.
        level : int
            Place in the drawing order.
        """
        self._lines += 1
        for order, (x, y) in enumerate(points):
            row = {"x": _number(x), "y": _number(y), "fill": fill}
            self._add(level, "polygon", row | {"line": self._lines, "order": order})

    def segment(
        self,
        start: Point,
        end: Point,
        color: str,
        *,
        width: float = 1.0,
        dash: tuple[int, ...] = (),
        level: int = GRID,
    ) -> None:
        """Draw a straight line.

        Parameters
        ----------
        start, end : (x, y)
            px.
        color : str
            Colour.
        width : float
            px.
        dash : tuple of int
            Lengths drawn and left out; empty is solid.
        level : int
            Place in the drawing order.
        """
        row = {
            "x": _number(start[0]),
            "y": _number(start[1]),
            "x2": _number(end[0]),
            "y2": _number(end[1]),
            "stroke": color,
            "width": _number(width * self.theme.stroke),
        }
        self._add(level, "rule", row, **_dashed(dash))

    def polyline(
        self,
        points: Sequence[Point],
        color: str,
        *,
        width: float = 1.0,
        dash: tuple[int, ...] = (),
        level: int = MARK,
        opacity: float = 1.0,
    ) -> None:
        """Draw a line through points.

        Parameters
        ----------
        points : sequence of (x, y)
            px, in order.
        color : str
            Colour.
        width : float
            px.
        dash : tuple of int
            Lengths drawn and left out; empty is solid.
        level : int
            Place in the drawing order.
        opacity : float
            0 to 1.
        """
        self._lines += 1
        for order, (x, y) in enumerate(points):
            row = {
                "x": _number(x),
                "y": _number(y),
                "stroke": color,
                "line": self._lines,
                "order": order,
                **_faded(opacity),
            }
            options = {"strokeWidth": _number(width * self.theme.stroke), **_dashed(dash)}
            self._add(level, "line", row, None, **options)

    def trail(
        self,
        points: Sequence[Point],
        widths: Sequence[float],
        color: str,
        *,
        level: int = MARK,
        opacity: float = 1.0,
    ) -> None:
        """Draw a line that changes its width.

        Parameters
        ----------
        points : sequence of (x, y)
            px, in order.
        widths : sequence of float
            px, one per point.
        color : str
            Colour.
        level : int
            Place in the drawing order.
        opacity : float
            0 to 1.
        """
        self._lines += 1
        for order, ((x, y), width) in enumerate(zip(points, widths, strict=True)):
            row = {
                "x": _number(x),
                "y": _number(y),
                "size": _number(width * self.theme.stroke),
                "fill": color,
                "line": self._lines,
                "order": order,
                **_faded(opacity),
            }
            self._add(level, "trail", row)

    def symbol(
        self,
        at: Point,
        shape: str,
        size: float,
        *,
        fill: str,
        stroke: str | None = None,
        width: float = 1.6,
        angle: float = 0,
        level: int = MARK,
        tip: Mapping[str, str] | None = None,
        opacity: float = 1.0,
    ) -> None:
        """Draw a point mark.

        Parameters
        ----------
        at : (x, y)
            px.
        shape : str
            A Vega symbol, such as ``"circle"``.
        size : float
            Area of its square in px².
        fill : str
            Inside; the background's colour makes a hollow mark.
        stroke : str, optional
            Edge; default is the background, a casing that keeps marks apart.
        width : float
            Stroke width in px.
        angle : float
            Degrees clockwise.
        level : int
            Place in the drawing order.
        tip : mapping, optional
            Tooltip: title to text.
        opacity : float
            0 to 1.
        """
        row = {
            "x": _number(at[0]),
            "y": _number(at[1]),
            "shape": shape,
            "size": _number(size),
            "fill": fill,
            "stroke": stroke or self.theme.background,
            "width": _number(width),
            "angle": _number(angle % 360),
            **_faded(opacity),
        }
        self._add(level, "point", row, tip)

    def chart(
        self, height: float, *, description: str = "", meta: Mapping[str, Any] | None = None
    ) -> LedgerChart:
        """Turn what was drawn into a chart.

        Parameters
        ----------
        height : float
            px.
        description : str
            Alternative text.
        meta : mapping, optional
            Stored in the specification under ``usermeta.ledgerkit``.

        Returns
        -------
        LedgerChart
        """
        from ledgerkit.charts._chart import LedgerChart  # heavy: it loads Altair

        return LedgerChart(**self.specification(height, description=description, meta=meta))

    def specification(
        self, height: float, *, description: str = "", meta: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Turn what was drawn into a Vega-Lite specification, without Altair.

        Parameters
        ----------
        height : float
            px.
        description : str
            Alternative text.
        meta : mapping, optional
            Stored under ``usermeta.ledgerkit``.

        Returns
        -------
        dict
        """
        layers = [
            layer(kind, dict(options), tips, rows)
            for (_, kind, options, tips, _), rows in sorted(
                self._rows.items(), key=lambda item: item[0][0]
            )
        ]
        properties: dict[str, Any] = {"description": description} if description else {}
        if not layers:  # Vega-Lite wants at least one
            layers = [layer("text", {}, (), [{"x": 0, "y": 0, "text": ""}])]
        return {
            "$schema": SCHEMA,
            "layer": layers,
            "width": _number(self.width),
            "height": _number(height),
            "padding": 0,
            "autosize": {"type": "none", "contains": "padding"},
            "background": self.theme.background,
            "config": {"font": themes.FONT_STACK, "view": {"stroke": None}},
            "usermeta": {
                "embedOptions": {"renderer": "svg", "actions": False},
                "ledgerkit": dict(meta or {}),
            },
            **properties,
        }


def _faded(opacity: float) -> dict[str, float]:
    return {"opacity": opacity} if opacity < 1 else {}


def _dashed(dash: tuple[int, ...]) -> dict[str, Any]:
    return {"strokeDash": dash} if dash else {}


def _tip(tip: Mapping[str, str] | None) -> dict[str, str]:
    """Row fields of a tooltip, and the label that a screen reader reads."""
    if not tip:
        return {}
    label = "; ".join(f"{title} {text}" for title, text in tip.items())
    return {f"t{index}": text for index, text in enumerate(tip.values())} | {"label": label}
