"""Charts of simulated runs: over time, latencies, books, load curve, ablation, crossover."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import altair as alt
import polars as pl

from ledgerkit import text
from ledgerkit.charts._offline import offline
from ledgerkit.charts._page import resolve_language
from ledgerkit.charts.sweep import style
from ledgerkit.charts.theme import Theme, resolve_theme
from ledgerkit.errors import FigureError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledgerkit._simulate import Simulation
    from ledgerkit.text import Language

__all__ = [
    "draw_books",
    "draw_latency",
    "draw_timeline",
    "finish",
    "share_bars",
    "shares_of_parts",
    "word",
]

_POINTS: Final = 400
"""Of a cumulative distribution."""
_PADDING: Final = {"left": 24, "right": 28, "top": 18, "bottom": 18}
PARTS: Final = ("attention_kv", "ffn_mlp", "communication", "launch", "host", "padding",
                "recompute", "draft", "queue")  # fmt: skip
_LINKS: Final = ("tp", "ep", "pp")


def _subtitle(run: Simulation, language: Language) -> str:
    return text.get(
        "simulate.subtitle", language, model=run.model.slug, replicas=run.scheduler.replicas,
        devices=run.deployment.devices, hardware=run.hardware.slug, engine=run.deployment.engine,
        load=_load(run, language),
    )  # fmt: skip


def _load(run: Simulation, language: Language) -> str:
    """Say in words what is asked; a trace by its name."""
    arrivals = run.arrivals
    if arrivals.offered_per_s is not None:
        return text.get("simulate.load.stream", language, rate=f"{arrivals.offered_per_s:g}")
    if arrivals.concurrency is not None:
        return text.get("simulate.load.loop", language, clients=arrivals.concurrency)
    return arrivals.label


def finish(
    chart: Any, key: str, subtitle: str, language: Language, look: Theme
) -> alt.TopLevelMixin:
    """Set title, alternative text and style."""
    words = text.get(f"simulate.{key}.title", language)
    title = alt.Title(words, subtitle=subtitle or [],
                      anchor="start", offset=14)  # fmt: skip
    told = text.get("alt.separator", language).join(filter(None, (words, subtitle)))
    whole = chart.properties(title=title, description=told, padding=_PADDING)
    return offline(whole.configure(**style(look)))


def word(key: str, language: Language) -> str:
    """Look up a word of these charts."""
    return text.get(f"simulate.{key}", language)


def draw_timeline(
    run: Simulation, *, language: str | None = None, theme: str | Theme | None = None
) -> alt.TopLevelMixin:
    """Draw running and waiting sequences and the use of the cache over time.

    Parameters
    ----------
    run : Simulation
    language : {"zh", "en"}, optional
    theme : {"article", "slide", "dark"} or Theme, optional

    Returns
    -------
    altair.TopLevelMixin
    """
    chosen, look = resolve_language(language), resolve_theme(theme)
    frame = run.timeline.gather_every(max(1, -(-run.timeline.height // 1500)))
    panels = []
    rows = (("running", "attention_kv", ""), ("waiting", "ffn_mlp", ""),
            ("cache_occupancy", "scheduling", "%"))  # fmt: skip
    for i, (column, ledger, form) in enumerate(rows):
        name = "cache" if column == "cache_occupancy" else column
        last = i == len(rows) - 1
        x = alt.X("time_s:Q", title=word("axis.time", chosen) if last else None,
                  axis=alt.Axis(labels=last, ticks=last))  # fmt: skip
        y = alt.Y(f"{column}:Q", title=word(f"axis.{name}", chosen),
                  axis=alt.Axis(format=form or "d", tickCount=4))  # fmt: skip
        base = alt.Chart(frame).encode(x=x, y=y)
        if run.scheduler.replicas > 1:
            base = base.encode(detail="replica:N")
        line = base.mark_line(
            color=look.text[ledger], strokeWidth=1.2 * look.stroke, interpolate="step-after",
            opacity=1.0 if run.scheduler.replicas == 1 else 0.6,
        )  # fmt: skip
        panels.append(line.properties(width=600, height=110))
    return finish(alt.vconcat(*panels, spacing=8), "timeline", _subtitle(run, chosen), chosen,
                   look)  # fmt: skip


def draw_latency(
    run: Simulation, *, ttft_s: float | None = None, tpot_s: float | None = None,
    language: str | None = None, theme: str | Theme | None = None,
) -> alt.TopLevelMixin:  # fmt: skip
    """Draw the cumulative distributions of first token and token time, with the goals as lines.

    Parameters
    ----------
    run : Simulation
    ttft_s, tpot_s : float, optional
        Goals in seconds.
    language : {"zh", "en"}, optional
    theme : {"article", "slide", "dark"} or Theme, optional

    Returns
    -------
    altair.TopLevelMixin
    """
    chosen, look = resolve_language(language), resolve_theme(theme)
    panels = []
    for metric, goal, ledger in (("ttft_s", ttft_s, "attention_kv"), ("tpot_s", tpot_s,
                                                                      "scheduling")):  # fmt: skip
        values = run.requests.filter("is_measured")[metric].drop_nulls().sort()
        if values.is_empty():
            continue
        frame = pl.DataFrame({
            "value": [values.quantile(i / _POINTS, "lower") for i in range(_POINTS + 1)],
            "share": [i / _POINTS for i in range(_POINTS + 1)],
        })  # fmt: skip
        base = alt.Chart(frame).mark_line(
            color=look.text[ledger], strokeWidth=2 * look.stroke, interpolate="step-after"
        ).encode(
            alt.X("value:Q", title=word(f"latency.{metric}", chosen),
                  scale=alt.Scale(type="log", nice=False), axis=alt.Axis(tickCount=5)),
            alt.Y("share:Q", title=word("axis.share_of_requests", chosen),
                  axis=alt.Axis(format="%")),
        )  # fmt: skip
        layers: list[Any] = [base]
        if goal is not None:
            kept = int((values <= goal).sum()) / len(values)
            mark = pl.DataFrame({
                "value": [goal], "label": [f"{word('goal', chosen)} {goal:g} s, {kept:.0%}"],
            })  # fmt: skip
            rule = alt.Chart(mark).encode(alt.X("value:Q"))
            layers.append(rule.mark_rule(color=look.alert, strokeDash=[4, 3]))
            layers.append(rule.mark_text(
                color=look.alert, align="right", dx=-5, y=228, fontSize=12,
            ).encode(text="label:N"))  # fmt: skip
        panels.append(alt.layer(*layers).properties(width=280, height=240))
    if not panels:
        raise FigureError("no request of this run was answered", given=run.rejected)
    return finish(alt.hconcat(*panels), "latency", _subtitle(run, chosen), chosen, look)


def shares_of_parts(books: pl.DataFrame, by: Sequence[str], language: Language) -> pl.DataFrame:
    """Shares of the nine parts of the time, in drawing order."""
    part = (
        pl.when(pl.col("ledger") != "scheduling").then(pl.col("ledger"))
        .when(pl.col("account").is_in(_LINKS)).then(pl.lit("communication"))
        .otherwise(pl.col("account"))
    )  # fmt: skip
    frame = (
        books.with_columns(part=part)
        .group_by([*by, "part"], maintain_order=True)
        .agg(pl.col("share").sum())
    )
    names = {name: word(f"part.{name}", language) for name in PARTS}
    return frame.with_columns(
        order=pl.col("part").replace_strict({n: i for i, n in enumerate(PARTS)}),
        label=pl.col("part").replace_strict(names),
    ).sort("order", maintain_order=True)


def share_bars(frame: pl.DataFrame, y: str, language: Language, look: Theme) -> Any:
    """Stacked bars of the parts of the time, one for each value of ``y``."""
    tints = look.tints["scheduling"]
    shades = [look.fill["attention_kv"], look.fill["ffn_mlp"], look.fill["scheduling"],
              *list(tints.values())[1:6], look.free]  # fmt: skip
    labels = [word(f"part.{name}", language) for name in PARTS]
    order = frame[y].unique(maintain_order=True).to_list()
    shades += [look.grid] * (len(labels) - len(shades))
    return alt.Chart(frame).mark_bar(stroke=look.background, strokeWidth=0.6).encode(
        alt.X("share:Q", title=word("axis.share", language), stack="zero",
              axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])),
        alt.Y(f"{y}:N", title=None, sort=order, axis=alt.Axis(labelLimit=220)),
        alt.Color("label:N", title=None, sort=labels,
                  scale=alt.Scale(domain=labels, range=shades),
                  legend=alt.Legend(orient="bottom", columns=5)),
        order="order:Q",
        tooltip=["label:N", alt.Tooltip("share:Q", format=".1%")],
    ).properties(width=540, height=34 * max(1, len(order)) + 10)  # fmt: skip


def draw_books(
    run: Simulation, *, language: str | None = None, theme: str | Theme | None = None
) -> alt.TopLevelMixin:
    """Draw where the device time of a run went, idle time included.

    Parameters
    ----------
    run : Simulation
    language : {"zh", "en"}, optional
    theme : {"article", "slide", "dark"} or Theme, optional

    Returns
    -------
    altair.TopLevelMixin
    """
    chosen, look = resolve_language(language), resolve_theme(theme)
    frame = shares_of_parts(run.entries.with_columns(run=pl.lit(run.model.slug)), ["run"], chosen)
    return finish(
        share_bars(frame, "run", chosen, look), "books", _subtitle(run, chosen), chosen, look
    )
