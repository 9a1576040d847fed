"""Points of a sweep over two columns, with the front that no other point beats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import altair as alt
import polars as pl

from ledgerkit import text
from ledgerkit._compare import device_name
from ledgerkit.catalog.hardware import hardware as hardware_frame
from ledgerkit.catalog.models import models as models_frame
from ledgerkit.charts._offline import offline
from ledgerkit.charts._page import meta, resolve_language
from ledgerkit.charts.theme import FONT_STACK, Theme, resolve_theme
from ledgerkit.errors import FigureError

if TYPE_CHECKING:
    from ledgerkit._sweep import Sweep

__all__ = ["draw_points", "style", "sweep_points"]

MOST_POINTS: Final = 4_000
"""More would make the notebook heavy; the front is always drawn whole."""
_TINT: Final = 0.35
"""Of a point's colour that is left beside the front; opaque, so that a PDF stays small."""


def draw_points(
    sweep: Sweep, *, x: str, y: str, color: str | None = "model", facet: str | None = None,
    max_points: int = MOST_POINTS, log: bool = True, **options: Any,
) -> alt.TopLevelMixin:  # fmt: skip
    """Draw a sweep; other options as in :func:`sweep_points`.

    Parameters
    ----------
    sweep : Sweep
        What to draw.
    x, y : str
        Numeric columns.
    color, facet : str, optional
        Fields with at most six values each.
    max_points : int
        Beside the front at most so many are drawn, evenly thinned, and the figure says so.
    log : bool
        Logarithmic axes.
    **options : object
        ``language``, ``theme``.

    Returns
    -------
    altair.TopLevelMixin

    Raises
    ------
    FigureError
        Nothing to draw, or a field with too many values.
    """
    fields = tuple(dict.fromkeys(name for name in (color, facet) if name))
    frame = sweep.select(*dict.fromkeys((*fields, x, y))).collect()
    kept = _drawable(frame, x, y, log=log)
    step = max(1, -(-kept.height // max_points))
    points = kept
    if step > 1:
        points = pl.concat([kept.gather_every(step), _front(kept, x, y, fields)])
    return sweep_points(
        points, x=x, y=y, color=color, facet=facet, log=log, total=kept.height,
        dropped=frame.height - kept.height, **options,
    )  # fmt: skip


def sweep_points(
    points: pl.DataFrame, *, x: str, y: str, color: str | None = None, facet: str | None = None,
    total: int | None = None, dropped: int = 0, log: bool = True, language: str | None = None,
    theme: str | Theme | None = None,
) -> alt.TopLevelMixin:  # fmt: skip
    """Draw points as a scatter, their Pareto front as a line in each colour and facet.

    Parameters
    ----------
    points : polars.DataFrame
        Of a sweep, all or some, its front among them.
    x, y : str
        Numeric columns.
    color, facet : str, optional
        Fields with at most six values each.
    total, dropped : int, optional
        Points of which these are some, and points that could not be drawn: the figure says so.
    log : bool
        Logarithmic axes.
    language : {"zh", "en"}, optional
    theme : {"article", "slide", "dark"} or Theme, optional

    Returns
    -------
    altair.TopLevelMixin

    Raises
    ------
    FigureError
        Nothing to draw, or a field with too many values.

    Examples
    --------
    >>> import ledgerkit as lk
    >>> points = lk.sweep(
    ...     model=["llama-3.1-8b", "qwen3-8b"],
    ...     hardware="h100-sxm-80gb",
    ...     prompt_tokens=4096,
    ...     output_tokens=256,
    ...     concurrency=[1, 4, 16, 64],
    ... ).collect()
    >>> axes = {"x": "tokens_per_s", "y": "tpot_s", "color": "model"}
    >>> lk.charts.describe(sweep_points(points, **axes, language="en"))
    'Sweep: 8 deployments'
    """
    chosen, look = resolve_language(language), resolve_theme(theme)
    fields = tuple(dict.fromkeys(name for name in (color, facet) if name))
    columns = tuple(dict.fromkeys((*fields, x, y)))
    missing = [name for name in columns if name not in points.columns]
    if missing:
        raise FigureError("a column is missing", given=missing, allowed=", ".join(points.columns))
    shown = _drawable(points.select(columns), x, y, log=log)
    for name in fields:
        if shown[name].n_unique() > len(look.series):
            raise FigureError(
                f"{name} has too many values to tell apart", given=shown[name].n_unique(),
                allowed=f"up to {len(look.series)}",
            )  # fmt: skip
    front = _front(shown, x, y, fields)
    whole = max(total or 0, shown.height)
    notes = []
    if whole > shown.height:
        notes.append(text.get("sweep.chart.sampled", chosen, shown=f"{shown.height:,}",
                              total=f"{whole:,}"))  # fmt: skip
    if dropped:
        notes.append(text.get("sweep.chart.dropped", chosen, count=f"{dropped:,}"))
    words = text.get("sweep.chart.title", chosen, count=f"{whole:,}")
    chart = _layers(_named(shown), _named(front), x, y, color, chosen, look, log=log)
    if facet:
        # three in a row leave no empty place for a fourth
        across = 3 if shown[facet].n_unique() in (3, 5, 6) else 2
        drawn: Any = (
            chart.properties(width=600 // across - 10, height=260)
            .facet(alt.Facet(f"{facet}:N", title=None, sort=None), columns=across)
            .resolve_scale(x="shared", y="shared")
        )
    else:
        drawn = chart.properties(width=560, height=360)
    options = {
        "x": x, "y": y, "color": color, "facet": facet, "log": log, "total": whole,
        "dropped": dropped, "language": chosen, "theme": look.name,
    }  # fmt: skip
    facts = meta("sweep_points", {"points": (shown, columns)}, options, title=words,
                 finding=" ".join(notes))  # fmt: skip
    looks = style(look)
    if facet:
        looks["legend"] |= {"orient": "bottom"}
    return offline(
        drawn.properties(
            title=alt.Title(words, subtitle=notes, anchor="start"),
            description=". ".join([words, *notes]),
            usermeta={"ledgerkit": facts},
        ).configure(**looks)
    )


def _named(frame: pl.DataFrame) -> pl.DataFrame:
    """Write models and devices of the catalogue by their names, as the other figures do."""
    known = models_frame()
    names = {
        "model": dict(zip(known["slug"], known["name"], strict=True)),
        "hardware": {slug: device_name(slug) for slug in hardware_frame()["slug"]},
    }
    text_types = (pl.String, pl.Enum, pl.Categorical)
    return frame.with_columns(
        pl.col(name).cast(pl.String).replace(of) for name, of in names.items()
        if isinstance(frame.schema.get(name), text_types)
    )  # fmt: skip


def _drawable(frame: pl.DataFrame, x: str, y: str, *, log: bool) -> pl.DataFrame:
    kept = frame.filter(*(pl.col(name).is_finite() for name in (x, y)))
    if log:
        kept = kept.filter(pl.col(x) > 0, pl.col(y) > 0)
    if kept.is_empty():
        raise FigureError(
            "no point of the sweep can be drawn",
            given=f"{x}, {y}",
            allowed="points with values in both columns",
        )
    return kept


def _pale(color: str, look: Theme) -> str:
    """Mix a colour into the background."""
    inks, ground = (
        [int(code[i : i + 2], 16) for i in (1, 3, 5)] for code in (color, look.background)
    )
    mixed = (round(_TINT * a + (1 - _TINT) * b) for a, b in zip(inks, ground, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _layers(
    shown: pl.DataFrame, front: pl.DataFrame, x: str, y: str, color: str | None,
    language: text.Language, look: Theme, *, log: bool,
) -> alt.LayerChart:  # fmt: skip
    both = pl.concat(
        [shown.with_columns(front=pl.lit(False)), front.with_columns(front=pl.lit(True))]
    )
    scale = alt.Scale(type="log" if log else "linear", zero=False, nice=False)
    # the marks of a logarithm crowd at the end of a decade
    sparse = alt.Axis(labelOverlap="greedy", labelSeparation=8)
    base = alt.Chart(both).encode(
        alt.X(x, title=_label(x, language), scale=scale, axis=sparse),
        alt.Y(y, title=_label(y, language), scale=scale),
    )
    dots = base.transform_filter("!datum.front").mark_point(
        filled=True, size=12, opacity=1, color=_pale(look.series[0], look)
    )
    line = base.transform_filter("datum.front").mark_line(
        point=alt.OverlayMarkDef(size=20, opacity=1), strokeWidth=2 * look.stroke,
        color=look.series[0],
    ).encode(order=alt.Order(x))  # fmt: skip
    if not color:
        return alt.LayerChart(layer=[dots, line])
    # one scale for both shades, so that facets share one legend: of the fronts
    order = both[color].unique(maintain_order=True).to_list()
    series = list(look.series[: len(order)])
    pale = f"pale {color}"
    shades = alt.Scale(domain=[*order, *(f"{one} " for one in order)],
                       range=[*series, *(_pale(one, look) for one in series)])  # fmt: skip
    legend = alt.Legend(values=order, symbolType="stroke", symbolStrokeWidth=3)
    title = _label(color, language)
    dots = dots.transform_calculate(**{pale: f"datum[{color!r}] + ' '"})
    return alt.LayerChart(layer=[
        dots.encode(alt.Color(f"{pale}:N", title=title, scale=shades, legend=legend)),
        line.encode(alt.Color(f"{color}:N", title=title, scale=shades, legend=legend)),
    ])  # fmt: skip


def _front(frame: pl.DataFrame, x: str, y: str, fields: tuple[str, ...]) -> pl.DataFrame:
    """Points that no other of the same colour and facet beats."""
    from ledgerkit._sweep.conditions import direction

    low_x, low_y = (pl.col(name) * (-1.0 if direction(name, None)[1] else 1.0) for name in (x, y))
    ordered = frame.with_columns(__x=low_x, __y=low_y).sort("__x", "__y", maintain_order=True)
    before = pl.col("__y").cum_min().shift(1)
    if fields:
        before = before.over(fields)
    kept = ordered.filter(before.is_null() | (pl.col("__y") < before))
    return kept.drop("__x", "__y")


def _label(name: str, language: text.Language) -> str:
    key = f"sweep.axis.{name}"
    return text.get(key, language) if key in set(text.keys()) else name


def style(look: Theme) -> dict[str, Any]:
    """Configuration of a chart with axes in a theme.

    What Vega says of axes and marks by itself is English and names columns; the description of the
    whole chart is what is read aloud.
    """
    words = {"labelFont": FONT_STACK, "titleFont": FONT_STACK}
    return {
        "background": look.background,
        "font": FONT_STACK,
        "axis": {**words, "aria": False, "labelColor": look.mute, "titleColor": look.ink,
                 "gridColor": look.grid, "domainColor": look.rule, "tickColor": look.rule,
                 "labelFontSize": 12, "titleFontSize": 13, "titleFontWeight": "normal"},
        "legend": {**words, "aria": False, "labelColor": look.ink, "titleColor": look.ink,
                   "labelFontSize": 12, "titleFontSize": 12},
        "header": {**words, "labelColor": look.ink, "titleColor": look.ink, "labelFontSize": 13,
                   "labelFontWeight": "bold", "labelAnchor": "start"},
        "title": {"font": FONT_STACK, "subtitleFont": FONT_STACK, "color": look.ink,
                  "subtitleColor": look.mute, "fontSize": 18, "subtitleFontSize": 13,
                  "subtitlePadding": 7, "subtitleLineHeight": 18},
        "mark": {"aria": False},
        "view": {"stroke": None},
    }  # fmt: skip
