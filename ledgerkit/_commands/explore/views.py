"""The three charts of the page, as Vega-Lite whose data the page's script fills in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ledgerkit.charts import theme as themes
from ledgerkit.charts._field import draw_ground, draw_scales, draw_triangle_names
from ledgerkit.charts._spec import SCHEMA, layer
from ledgerkit.charts._ternary import HEIGHT, View
from ledgerkit.charts._triangle_views import draw_aid
from ledgerkit.charts.canvas import Canvas
from ledgerkit.spec.axes import LEDGERS
from ledgerkit.text import get

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledgerkit.charts.theme import Theme
    from ledgerkit.text import Language

__all__ = ["PRESETS", "charts", "geometry"]


@dataclass(frozen=True)
class _Size:
    """Pixels of one width of the page."""

    width: float
    left: float
    side: float
    top: float
    curve: float


PRESETS: Final = {
    "wide": _Size(width=588, left=80, side=428, top=44, curve=240),
    "phone": _Size(width=420, left=44, side=330, top=44, curve=220),
}
BELOW: Final = 66.0
"""Room under the base of the triangle, px."""
_EXAMPLE: Final[dict[str, dict[str, Any]]] = {
    "trail": {"x": 0, "y": 0, "size": 1, "fill": "#000", "line": 0, "order": 0, "opacity": 1},
    "marks": {
        "x": 0, "y": 0, "shape": "circle", "size": 1, "fill": "#000", "stroke": "#000", "width": 1,
        "angle": 0, "opacity": 1, "label": "", "t0": "", "t1": "", "t2": "",
    },
    "words": {"x": 0, "y": 0, "text": "", "color": "#000"},
}  # fmt: skip
"""One row of each set that the script fills: it decides the encodings."""


def _view(size: _Size) -> View:
    return View(size.left, size.top + size.side * HEIGHT, size.side, size.side * HEIGHT)


def geometry(preset: str) -> dict[str, float]:
    """Where the triangle stands, for the script.

    Parameters
    ----------
    preset : {"wide", "phone"}
        Width of the page.

    Returns
    -------
    dict
        Left, base, width and height of the triangle and the width of the chart, px.
    """
    size = PRESETS[preset]
    view = _view(size)
    return {
        "left": view.left,
        "base": view.base,
        "width": view.width,
        "height": view.height,
        "chart": size.width,
    }


def charts(language: Language, theme: str, preset: str) -> dict[str, Any]:
    """Specifications of triangle, time and cache.

    Parameters
    ----------
    language : {"zh", "en"}
        Of all words.
    theme : {"article", "dark"}
        Colours.
    preset : {"wide", "phone"}
        Width.

    Returns
    -------
    dict
        Name to Vega-Lite. Data sets without values (trail, marks, words; step, band, here; cache,
        others) are filled by the page.
    """
    look = themes.resolve_theme(theme)
    size = PRESETS[preset]
    return {
        "triangle": _triangle(language, look, size, aid=preset == "wide"),
        "time": _time(language, look, size),
        "cache": _cache(language, look, size),
    }


def _triangle(language: Language, look: Theme, size: _Size, *, aid: bool) -> dict[str, Any]:
    view = _view(size)
    canvas = Canvas(look, size.width)
    draw_ground(canvas, view)
    draw_scales(canvas, view)
    draw_triangle_names(canvas, view, language)
    if aid:
        draw_aid(canvas, themes.MARGIN, 20, language)
    spec = canvas.chart(view.base + BELOW).to_dict()
    spec["usermeta"].pop("ledgerkit")
    tips = [get(f"ledger.plain.{ledger}", language) for ledger in LEDGERS]
    spec["layer"] += [
        _filled("trail", "trail", {}),
        _filled("point", "marks", {}, tips),
        _filled("text", "words", {"align": "center", "fontWeight": 700, "fontSize": themes.LABEL}),
    ]
    return dict(spec)


def _filled(
    mark: str, name: str, options: dict[str, Any], tips: Sequence[str] = ()
) -> dict[str, Any]:
    # two rows that differ in everything, so that every field is encoded and none is a constant
    example = _EXAMPLE[name]
    other = {
        field: f"{value}." if isinstance(value, str) else value + 1
        for field, value in example.items()
    }
    made = layer(mark, options, tips, [example, other])
    made["data"] = {"name": name}
    return made


def _frame(look: Theme, size: _Size, layers: list[dict[str, Any]]) -> dict[str, Any]:
    axis = {
        "labelColor": look.mute,
        "titleColor": look.mute,
        "labelFontSize": themes.SMALL,
        "titleFontSize": themes.SMALL,
        "titleFontWeight": "normal",
        "domainColor": look.rule,
        "tickColor": look.rule,
        "gridColor": look.grid,
        "titlePadding": 8,
    }
    return {
        "$schema": SCHEMA,
        "width": size.width - 110,
        "height": size.curve,
        "padding": {"left": 82, "right": 28, "top": 36, "bottom": 52},
        "autosize": {"type": "none"},
        "background": look.background,
        "layer": layers,
        "config": {
            "font": themes.FONT_STACK,
            "view": {"stroke": None},
            "axis": axis,
            "text": {"font": themes.FONT_STACK, "fontSize": themes.SMALL},
        },
    }


def _context(language: Language) -> dict[str, Any]:
    return {
        "field": "context",
        "type": "quantitative",
        "scale": {"type": "log", "base": 2, "domain": [1024, 131072], "nice": False},
        "axis": {
            "title": get("page.axis.context", language),
            "values": [1024 * 2**step for step in range(8)],
            "labelExpr": "datum.value / 1024 + 'K'",
            "grid": False,
            "labelOverlap": False,
        },
    }


def _time(language: Language, look: Theme, size: _Size) -> dict[str, Any]:
    x = _context(language)
    y_axis = {"title": get("page.axis.time", language), "tickCount": 5, "format": ",d"}
    names = {str(ledger): get(f"ledger.plain.{ledger}", language) for ledger in LEDGERS}
    order = ["ffn_mlp", "attention_kv", "scheduling"]
    y = {"field": "ms", "type": "quantitative", "axis": y_axis}
    layers: list[dict[str, Any]] = [
        {
            "data": {"name": "step"},
            "mark": {"type": "area", "stroke": look.background, "strokeWidth": 2},
            "encoding": {
                "x": x,
                "y": {**y, "stack": "zero"},
                "order": {"field": "order", "type": "quantitative"},
                "color": {
                    "field": "ledger",
                    "type": "nominal",
                    "scale": {"domain": order, "range": [look.fill[name] for name in order]},
                    "legend": {
                        "orient": "top", "direction": "horizontal", "title": None,
                        "symbolType": "square", "offset": 8,
                        "labelFontSize": themes.SMALL, "labelColor": look.ink,
                        "values": order[::-1],
                        "labelExpr": _lookup(names),
                    },
                },
            },
        },
        *(
            {
                "data": {"name": "band"},
                "mark": {"type": "line", "color": look.ink, "strokeDash": [4, 3]},
                "encoding": {"x": x, "y": {**y, "field": edge}},
            }
            for edge in ("low_ms", "high_ms")
        ),
        {
            "data": {"name": "here"},
            "mark": {"type": "rule", "color": look.ink, "strokeWidth": 1.4},
            "encoding": {"x": x},
        },
    ]  # fmt: skip
    return _frame(look, size, layers)


def _lookup(names: dict[str, str]) -> str:
    """Write a Vega expression that gives each ledger its name."""
    words = ", ".join(f"'{key}': '{name}'" for key, name in names.items())
    return f"({{{words}}})[datum.label]"


def _cache(language: Language, look: Theme, size: _Size) -> dict[str, Any]:
    x = _context(language)
    y = {
        "field": "bytes",
        "type": "quantitative",
        "scale": {"type": "log", "nice": True},
        "axis": {
            "title": get("page.axis.cache", language),
            "values": [10**power for power in range(5, 14)],
            "labelExpr": "replace(format(datum.value, '~s'), /([kMGT])$/, ' $1') + 'B'",
        },
    }  # fmt: skip
    line = {"field": "label", "type": "nominal"}
    layers: list[dict[str, Any]] = [
        {
            "data": {"name": "others"},
            "mark": {"type": "line", "color": look.rule, "strokeWidth": 1, "opacity": 0.6},
            "encoding": {"x": x, "y": y, "detail": line},
        },
        {
            "data": {"name": "cache"},
            "mark": {"type": "line"},
            "encoding": {
                "x": x,
                "y": y,
                "detail": line,
                "strokeWidth": {
                    "field": "width", "type": "quantitative", "scale": None, "legend": None,
                },
                "color": {"field": "color", "type": "nominal", "scale": None, "legend": None},
            },
        },
        {
            "data": {"name": "here"},
            "mark": {"type": "rule", "color": look.ink, "strokeWidth": 1.4},
            "encoding": {"x": x},
        },
    ]  # fmt: skip
    return _frame(look, size, layers)
