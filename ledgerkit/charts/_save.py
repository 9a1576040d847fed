"""Writing figures: svg, png, pdf, html and json, the same bytes from the same input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from xml.sax.saxutils import escape, quoteattr

from ledgerkit.charts import theme as themes
from ledgerkit.charts._files import renderer, replace_file
from ledgerkit.charts._fonts import register_fonts
from ledgerkit.charts._page import resolve_language
from ledgerkit.charts._pdf import ordered_pdf
from ledgerkit.errors import FigureError
from ledgerkit.spec._base import finite_number

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "SUFFIXES",
    "describe",
    "open_figure",
    "renderer",
    "replace_file",
    "save_figure",
    "svg_of",
]

SUFFIXES: Final = (".svg", ".png", ".pdf", ".html", ".json")
_SOURCE_HEIGHT: Final = 19.0
_PAGE: Final = """<!DOCTYPE html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ margin: 0; background: {background}; }}
main {{ overflow-x: auto; }}
</style>
</head>
<body>
<main><div id="figure"></div></main>
<script>{renderer}</script>
<script>
vegaEmbed("#figure", {spec}, {{renderer: "svg", actions: false}});
</script>
</body>
</html>
"""


def save_figure(
    chart: Any,
    path: str | Path,
    *,
    language: str | None = None,
    theme: str | None = None,
    scale: float = 2,
    description: str | None = None,
    source: str | None = None,
) -> Path:
    """Write a figure to a file whose suffix names the format.

    Text is set in the shipped font, which svg and html name and png and pdf embed. The file is
    replaced as a whole or not at all.

    Parameters
    ----------
    chart : altair chart, Ledger, Comparison, ...
        A chart, or an object with a ``chart`` method, which then draws it.
    path : str or pathlib.Path
        Ends in .svg, .png, .pdf, .html (works without network) or .json (specification and data;
        :func:`ledgerkit.charts.open_figure` draws it again).
    language : {"zh", "en"}, optional
        For a figure of ledgerkit: draws it again in that language. Default: as drawn.
    theme : {"article", "slide", "dark"}, optional
        Likewise for the colours.
    scale : float
        Pixels of a png per px of the figure.
    description : str, optional
        Alternative text; by default made from the data.
    source : str, optional
        A line under the figure.

    Returns
    -------
    pathlib.Path
        Where it was written.

    Raises
    ------
    FigureError
        If the suffix is unknown, the directory is missing or not writable, the scale is not
        positive, or the object is no chart.

    Examples
    --------
    >>> import polars as pl, tempfile, ledgerkit as lk
    >>> rows = {
    ...     "label": "Gemma",
    ...     "component": "cache",
    ...     "bytes_device": 28e9,
    ...     "capacity_bytes": 85e9,
    ... }
    >>> frame = pl.DataFrame([rows | {"limit_bytes": 78e9, "max_concurrency": 28}])
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     save_figure(lk.charts.memory_bars(frame), f"{directory}/memory.svg").name
    'memory.svg'
    """
    try:
        target = Path(path)
    except TypeError:
        raise FigureError("a figure is saved under a path", given=path, allowed="text or a Path",
                          fix="name a file, such as 'figure.svg'") from None  # fmt: skip
    suffix = target.suffix.lower()
    if suffix not in SUFFIXES:
        raise FigureError("unknown file format", given=target.name, allowed=", ".join(SUFFIXES),
                          fix="end the name with one of these")  # fmt: skip
    scale = finite_number(FigureError, "scale", scale, most=100.0, above=True)
    spec = _specification(chart, language, theme)
    if description is not None:
        spec["description"] = description
    if source:
        _add_source(spec, source)
    register_fonts()
    replace_file(target, _written(spec, suffix, scale))
    return target


def _written(spec: Mapping[str, Any], suffix: str, scale: float) -> bytes:
    if suffix == ".svg":
        return _svg(spec)
    if suffix == ".png":
        return _png(spec, scale)
    if suffix == ".pdf":
        return _pdf(spec)
    if suffix == ".html":
        return _html(spec)
    return (json.dumps(spec, ensure_ascii=False, indent=1) + "\n").encode()


def describe(chart: Any) -> str:
    """Alternative text of a figure, made from its data.

    Parameters
    ----------
    chart : altair chart
        A figure of ledgerkit, or any chart with a description.

    Returns
    -------
    str
        Empty where the chart has none.

    Raises
    ------
    FigureError
        If the object is no chart.

    Examples
    --------
    >>> import altair as alt
    >>> describe(alt.Chart(alt.Data(values=[])).mark_point().properties(description="nothing"))
    'nothing'
    """
    return str(_specification(chart, None, None).get("description", ""))


def open_figure(path: str | Path, **options: Any) -> Any:
    """Draw a saved json figure again, with other options if wished.

    Parameters
    ----------
    path : str or pathlib.Path
        A file that :func:`save_figure` wrote as .json.
    **options : object
        Options of the chart function, such as ``language="en"`` or ``theme="dark"``.

    Returns
    -------
    altair chart

    Raises
    ------
    FigureError
        If the file cannot be read, or holds no data to draw from.

    Examples
    --------
    >>> import polars as pl, tempfile, ledgerkit as lk
    >>> rows = {
    ...     "label": "Gemma",
    ...     "component": "cache",
    ...     "bytes_device": 28e9,
    ...     "capacity_bytes": 85e9,
    ... }
    >>> frame = pl.DataFrame([rows | {"limit_bytes": 78e9, "max_concurrency": 28}])
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = save_figure(lk.charts.memory_bars(frame, language="en"), f"{directory}/m.json")
    ...     describe(open_figure(path, language="zh"))[:4]
    '显存够不'
    """
    try:
        spec = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FigureError(
            f"the figure cannot be read: {error}",
            given=str(path),
            allowed="a .json file of save_figure",
            fix="save it as .json again",
        ) from error
    facts = _facts(spec) if isinstance(spec, dict) else {}
    if not facts.get("data"):
        raise FigureError(
            "the file holds no data to draw from",
            given=str(path),
            allowed="a .json file that save_figure wrote from a chart of ledgerkit",
            fix="save the chart as .json first",
        )
    return _draw_again(facts, options)


def _facts(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What a figure of ledgerkit knows of itself; empty for other charts."""
    usermeta = spec.get("usermeta")
    facts = usermeta.get("ledgerkit", {}) if isinstance(usermeta, dict) else {}
    return facts if isinstance(facts, dict) else {}


def _draw_again(facts: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    import polars as pl

    from ledgerkit import charts

    frames = {name: pl.DataFrame(columns) for name, columns in facts["data"].items()}
    return getattr(charts, facts["chart"])(**frames, **(facts["options"] | dict(options)))


def _specification(chart: Any, language: str | None, theme: str | None) -> dict[str, Any]:
    """Specification of a chart, drawn again where another language or theme is asked for."""
    wanted: dict[str, Any] = {}
    if language is not None:
        wanted["language"] = resolve_language(language)
    if theme is not None:
        wanted["theme"] = themes.resolve_theme(theme).name
    if not hasattr(chart, "to_dict"):
        draw = getattr(chart, "chart", None)
        if draw is None:
            raise FigureError(
                "this is no chart and has no chart method",
                given=type(chart).__name__,
                allowed="a chart, or an object with .chart()",
                fix="pass what a chart function returned",
            )
        chart = draw(**wanted)
    spec: dict[str, Any] = chart.to_dict()
    facts = _facts(spec)
    drawn = facts.get("options", {})
    if facts and any(drawn.get(name) != value for name, value in wanted.items()):
        if not facts.get("data"):
            raise FigureError(
                "this figure cannot be drawn again",
                given=", ".join(f"{name}={value!r}" for name, value in wanted.items()),
                allowed="the language and theme that it was drawn in",
                fix="give language and theme to the function that draws it",
            )
        spec = _draw_again(facts, wanted).to_dict()
    if not facts:
        # somebody else's chart: at least its words get the shipped font
        config = spec.setdefault("config", {})
        config.setdefault("font", themes.FONT_STACK)
    return spec


def _add_source(spec: dict[str, Any], source: str) -> None:
    """Set a line under the figure. Coordinates are pixels, so that nothing else moves."""
    facts = _facts(spec)
    if not facts or "layer" not in spec:
        raise FigureError(
            "a source line needs a figure of ledgerkit",
            allowed="figures of ledgerkit",
            fix="use the description instead",
        )
    look = themes.resolve_theme(facts["options"]["theme"])
    position = {"type": "quantitative", "scale": None, "axis": None}
    spec["height"] += _SOURCE_HEIGHT
    spec["layer"] = [
        *spec["layer"],
        {
            "data": {
                "values": [
                    {"x": themes.MARGIN, "y": spec["height"] - themes.BOTTOM, "text": source}
                ]
            },
            "mark": {
                "type": "text",
                "align": "left",
                "baseline": "middle",
                "font": themes.FONT_STACK,
                "fontSize": themes.SMALL,
                "color": look.mute,
                "aria": False,
            },
            "encoding": {
                "x": {"field": "x", **position},
                "y": {"field": "y", **position},
                "text": {"field": "text", "type": "nominal"},
            },
        },
    ]


def _plain(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The specification without the facts, which only the json file keeps."""
    usermeta = {
        name: value for name, value in spec.get("usermeta", {}).items() if name != "ledgerkit"
    }
    return {**spec, "usermeta": usermeta}


def svg_of(chart: Any) -> str:
    """Draw a chart as an SVG in the shipped font.

    Parameters
    ----------
    chart : altair chart
        A chart, or an object with a ``chart`` method.

    Returns
    -------
    str

    Raises
    ------
    FigureError
        If the object is no chart.

    Examples
    --------
    >>> import ledgerkit as lk
    >>> "<desc" in svg_of(lk.cache_table(["gpt2"], [512, 1024]).pipe(lk.charts.cache_curves))
    True
    """
    register_fonts()
    return _svg(_specification(chart, None, None)).decode()


def _svg(spec: Mapping[str, Any]) -> bytes:
    import vl_convert

    facts = _facts(spec)
    svg: str = vl_convert.vegalite_to_svg(_plain(spec))
    title = facts.get("title") or spec.get("title") or "ledgerkit"
    words = title if isinstance(title, str) else str(title.get("text", "ledgerkit"))
    language = facts.get("options", {}).get("language")
    attributes = ' role="img" aria-labelledby="figure-title figure-description"'
    if language:
        attributes += f" xml:lang={quoteattr({'zh': 'zh-CN', 'en': 'en'}[language])}"
    start = svg.index("<svg") + len("<svg")
    end = svg.index(">", start)
    head = (
        f'<title id="figure-title">{escape(words)}</title>'
        f'<desc id="figure-description">{escape(str(spec.get("description", words)))}</desc>'
    )
    return (svg[:start] + attributes + svg[start : end + 1] + head + svg[end + 1 :] + "\n").encode()


def _png(spec: Mapping[str, Any], scale: float) -> bytes:
    import vl_convert

    # the resolution goes into the file, so that the figure keeps its size in print
    return bytes(vl_convert.vegalite_to_png(_plain(spec), ppi=72 * scale))


def _pdf(spec: Mapping[str, Any]) -> bytes:
    import vl_convert

    title = _facts(spec).get("title", "")
    return ordered_pdf(bytes(vl_convert.vegalite_to_pdf(_plain(spec))), title=str(title))


def _html(spec: Mapping[str, Any]) -> bytes:
    """One page with renderer, specification and data: it needs no network."""
    facts = _facts(spec)
    # a string in the data must not end the script
    shown = json.dumps(_plain(spec), ensure_ascii=False).replace("</", "<\\/")
    page = _PAGE.format(
        language={"zh": "zh-CN"}.get(facts.get("options", {}).get("language"), "en"),
        title=escape(str(facts.get("title", "ledgerkit"))),
        background=spec.get("background", "#FFFFFF"),
        renderer=renderer(),
        spec=shown,
    )
    return page.encode()
