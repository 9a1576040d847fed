"""From rows of marks to a Vega-Lite specification."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ledgerkit.charts.theme import FONT_STACK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["SCHEMA", "layer"]

SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v6.json"

# Row field to channel and type. A scale of None passes the value through: pixels, colours, areas.
_CHANNELS: Final[dict[str, tuple[str, str]]] = {
    "x": ("x", "quantitative"),
    "y": ("y", "quantitative"),
    "x2": ("x2", ""),
    "y2": ("y2", ""),
    "text": ("text", "nominal"),
    "color": ("color", "nominal"),
    "fill": ("fill", "nominal"),
    "stroke": ("stroke", "nominal"),
    "size": ("size", "quantitative"),
    "width": ("strokeWidth", "quantitative"),
    "angle": ("angle", "quantitative"),
    "shape": ("shape", "nominal"),
    "opacity": ("opacity", "quantitative"),
    "line": ("detail", "nominal"),
    "order": ("order", "quantitative"),
    "label": ("description", "nominal"),
}
_UNSCALED: Final = {
    "x",
    "y",
    "color",
    "fill",
    "stroke",
    "size",
    "width",
    "angle",
    "shape",
    "opacity",
}
_LEGENDS: Final = _UNSCALED - {"x", "y", "angle"}
# What may stand in the mark definition where all rows of a layer agree.
_MARK_PROPERTY: Final = {
    "color": "color",
    "fill": "fill",
    "stroke": "stroke",
    "width": "strokeWidth",
    "angle": "angle",
    "shape": "shape",
    "opacity": "opacity",
}
_MARKS: Final[dict[str, dict[str, Any]]] = {
    "text": {"type": "text", "baseline": "middle", "font": FONT_STACK},
    "rect": {"type": "rect"},
    "polygon": {"type": "line", "filled": True, "interpolate": "linear-closed", "strokeWidth": 0},
    "rule": {"type": "rule"},
    "line": {"type": "line", "strokeCap": "round", "strokeJoin": "round"},
    "trail": {"type": "trail"},
    "point": {"type": "point", "filled": True, "opacity": 1},
}


def _encoding(name: str) -> dict[str, Any]:
    """How a row field is encoded: by its value, without a scale."""
    _, kind = _CHANNELS[name]
    definition: dict[str, Any] = {"field": name}
    if kind:
        definition["type"] = kind
    if name in _UNSCALED:
        definition["scale"] = None
    if name in {"x", "y"}:
        definition["axis"] = None
    if name in _LEGENDS:
        definition["legend"] = None
    return definition


def layer(
    kind: str, options: Mapping[str, Any], tips: Sequence[str], rows: list[dict[str, Any]]
) -> dict[str, Any]:
    """Build one Vega-Lite layer.

    Parameters
    ----------
    kind : str
        Mark: text, rect, polygon, rule, line, trail or point.
    options : mapping
        Further mark properties, the same for all rows.
    tips : sequence of str
        Titles of the tooltip, whose texts are the row fields t0, t1, ...
    rows : list of dict
        One per mark or per vertex, all with the same fields.

    Returns
    -------
    dict

    Examples
    --------
    >>> made = layer("text", {"align": "left"}, (), [{"x": 1, "y": 2, "text": "A", "color": "red"}])
    >>> made["mark"]["color"], made["data"]["values"]
    ('red', [{'x': 1, 'y': 2, 'text': 'A'}])
    """
    # decoration is silent for screen readers: the figure's description says it in words
    mark: dict[str, Any] = {**_MARKS[kind], "aria": bool(tips)}
    for option, value in options.items():
        mark[option] = list(value) if isinstance(value, tuple) else value
    encoding: dict[str, Any] = {}
    constant: set[str] = set()
    for name in rows[0]:
        if name not in _CHANNELS:
            continue
        target = _MARK_PROPERTY.get(name)
        if name == "size" and kind != "trail":
            target = "fontSize" if kind == "text" else "size"
        first = rows[0][name]
        if target and all(row[name] == first for row in rows):
            mark[target] = first
            constant.add(name)
        else:
            encoding[_CHANNELS[name][0]] = _encoding(name)
    if tips:
        encoding["tooltip"] = [
            {"field": f"t{index}", "type": "nominal", "title": title}
            for index, title in enumerate(tips)
        ]
    values = [{name: value for name, value in row.items() if name not in constant} for row in rows]
    return {"data": {"values": values}, "mark": mark, "encoding": encoding}
