"""Points of a sweep over two columns, with the front that no other point beats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import altair as alt
import polars as pl

from ledgerkit import text
from ledgerkit.charts._offline import offline
from ledgerkit.charts._page import resolve_language
from ledgerkit.charts.theme import FONT_STACK, Theme, resolve_theme
from ledgerkit.errors import FigureError

if TYPE_CHECKING:
    from ledgerkit._sweep import Sweep

__all__ = ["draw_points"]

MOST_POINTS: Final = 4_000
"""More would make the notebook heavy; the front is always drawn whole."""


def draw_points(
    sweep: Sweep,
    *,
    x: str,
    y: str,
    color: str | None = "model",
    facet: str | None = None,
    language: str | None = None,
    theme: str | Theme | None = None,
    max_points: int = MOST_POINTS,
    log: bool = True,
) -> alt.TopLevelMixin:
    """Draw a sweep as a scatter, its Pareto front as a line in each colour and facet.

    Parameters
    ----------
    sweep : Sweep
        What to draw.
    x, y : str
        Numeric columns.
    color, facet : str, optional
        Fields with at most six values each.
    language : {"zh", "en"}, optional
    theme : {"article", "slide", "dark"} or Theme, optional
    max_points : int
        Of the other points at most so many are drawn, evenly thinned, and the figure says so.
    log : bool
        Logarithmic axes.

    Returns
    -------
    altair.TopLevelMixin

    Raises
    ------
    FigureError
        Nothing to draw, or a field with too many values.
    """
    chosen, look = resolve_language(language), resolve_theme(theme)
    fields = tuple(dict.fromkeys(name for name in (color, facet) if name))
    columns = tuple(dict.fromkeys((*fields, x, y)))
    frame = sweep.select(*columns).collect()
    kept = frame.filter(*(pl.col(name).is_finite() for name in (x, y)))
    if log:
        kept = kept.filter(pl.col(x) > 0, pl.col(y) > 0)
    if kept.is_empty():
        raise FigureError("no point of the sweep can be drawn", given=f"{x}, {y}")
    for name in fields:
        if kept[name].n_unique() > len(look.series):
            raise FigureError(
                f"{name} has too many values to tell apart", given=kept[name].n_unique(),
                allowed=f"up to {len(look.series)}",
            )  # fmt: skip
    front = _front(kept, x, y, fields)
    step = max(1, -(-kept.height // max_points))
    shown = kept.gather_every(step)
    notes = []
    if step > 1:
        notes.append(text.get("sweep.chart.sampled", chosen, shown=f"{shown.height:,}",
                              total=f"{kept.height:,}"))  # fmt: skip
    if frame.height > kept.height:
        notes.append(text.get("sweep.chart.dropped", chosen,
                              count=f"{frame.height - kept.height:,}"))  # fmt: skip
    title = alt.Title(
        text.get("sweep.chart.title", chosen, count=f"{kept.height:,}"), subtitle=notes,
        anchor="start",
    )  # fmt: skip
    chart = _layers(shown, front, x, y, color, chosen, look, log=log)
    if facet:
        drawn: Any = chart.facet(
            alt.Facet(f"{facet}:N", title=None, sort=None), columns=2
        ).resolve_scale(x="shared", y="shared")
    else:
        drawn = chart.properties(width=560, height=360)
    return offline(drawn.properties(title=title).configure(**style(look)))


def _layers(
    shown: pl.DataFrame, front: pl.DataFrame, x: str, y: str, color: str | None,
    language: text.Language, look: Theme, *, log: bool,
) -> alt.LayerChart:  # fmt: skip
    both = pl.concat(
        [shown.with_columns(front=pl.lit(False)), front.with_columns(front=pl.lit(True))]
    )
    scale = alt.Scale(type="log" if log else "linear", zero=False, nice=False)
    base = alt.Chart(both).encode(
        alt.X(x, title=_label(x, language), scale=scale),
        alt.Y(y, title=_label(y, language), scale=scale),
    )
    if color:
        order = both[color].unique(maintain_order=True).to_list()
        hue = alt.Color(
            f"{color}:N", title=_label(color, language), sort=order,
            scale=alt.Scale(range=list(look.series)), legend=alt.Legend(symbolOpacity=1.0),
        )  # fmt: skip
        base = base.encode(hue)
    dots = base.transform_filter("!datum.front").mark_point(
        filled=True, size=12, opacity=0.25, clip=True
    )
    line = base.transform_filter("datum.front").mark_line(
        point=alt.OverlayMarkDef(size=20), strokeWidth=2 * look.stroke
    )
    return alt.LayerChart(layer=[dots, line.encode(order=alt.Order(x))])


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
    """Configuration of a chart with axes in a theme."""
    words = {"labelFont": FONT_STACK, "titleFont": FONT_STACK}
    return {
        "background": look.background,
        "font": FONT_STACK,
        "axis": {**words, "labelColor": look.mute, "titleColor": look.ink, "gridColor": look.grid,
                 "domainColor": look.rule, "tickColor": look.rule, "labelFontSize": 12,
                 "titleFontSize": 13, "titleFontWeight": "normal"},
        "legend": {**words, "labelColor": look.ink, "titleColor": look.ink, "labelFontSize": 12,
                   "titleFontSize": 12},
        "header": {**words, "labelColor": look.ink, "titleColor": look.ink},
        "title": {"font": FONT_STACK, "subtitleFont": FONT_STACK, "color": look.ink,
                  "subtitleColor": look.mute, "fontSize": 18, "subtitleFontSize": 13},
        "view": {"stroke": None},
    }  # fmt: skip
