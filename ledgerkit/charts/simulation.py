"""Charts of simulated runs: over time, latencies, books, load curve, ablation, crossover."""

from __future__ import annotations

import math
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
    "simulation_ablation",
    "simulation_crossover",
    "simulation_engines",
    "simulation_load",
]

_POINTS: Final = 400
"""Of a cumulative distribution."""
PARTS: Final = ("attention_kv", "ffn_mlp", "communication", "launch", "host", "padding",
                "recompute", "draft", "queue")  # fmt: skip
_LINKS: Final = ("tp", "ep", "pp")


def _subtitle(run: Simulation, language: Language) -> str:
    return text.get(
        "simulate.subtitle", language, model=run.model.slug, replicas=run.scheduler.replicas,
        devices=run.deployment.devices, hardware=run.hardware.slug, engine=run.deployment.engine,
        load=run.arrivals.label,
    )  # fmt: skip


def _finish(
    chart: Any, key: str, subtitle: str, language: Language, look: Theme
) -> alt.TopLevelMixin:
    title = alt.Title(text.get(f"simulate.{key}.title", language), subtitle=subtitle or [],
                      anchor="start", offset=14)  # fmt: skip
    return offline(chart.properties(title=title).configure(**style(look)))


def _word(key: str, language: Language) -> str:
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
        x = alt.X("time_s:Q", title=_word("axis.time", chosen) if last else None,
                  axis=alt.Axis(labels=last, ticks=last))  # fmt: skip
        y = alt.Y(f"{column}:Q", title=_word(f"axis.{name}", chosen),
                  axis=alt.Axis(format=form or "d", tickCount=4))  # fmt: skip
        base = alt.Chart(frame).encode(x=x, y=y)
        if run.scheduler.replicas > 1:
            base = base.encode(detail="replica:N")
        line = base.mark_line(
            color=look.text[ledger], strokeWidth=1.2 * look.stroke, interpolate="step-after",
            opacity=1.0 if run.scheduler.replicas == 1 else 0.6,
        )  # fmt: skip
        panels.append(line.properties(width=600, height=110))
    return _finish(alt.vconcat(*panels, spacing=8), "timeline", _subtitle(run, chosen), chosen,
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
            alt.X("value:Q", title=_word(f"latency.{metric}", chosen),
                  scale=alt.Scale(type="log", nice=False), axis=alt.Axis(tickCount=5)),
            alt.Y("share:Q", title=_word("axis.share_of_requests", chosen),
                  axis=alt.Axis(format="%")),
        )  # fmt: skip
        layers: list[Any] = [base]
        if goal is not None:
            kept = int((values <= goal).sum()) / len(values)
            mark = pl.DataFrame({
                "value": [goal], "label": [f"{_word('goal', chosen)} {goal:g} s, {kept:.0%}"],
            })  # fmt: skip
            rule = alt.Chart(mark).encode(alt.X("value:Q"))
            layers.append(rule.mark_rule(color=look.alert, strokeDash=[4, 3]))
            layers.append(rule.mark_text(
                color=look.alert, align="right", dx=-5, y=228, fontSize=12,
            ).encode(text="label:N"))  # fmt: skip
        panels.append(alt.layer(*layers).properties(width=280, height=240))
    if not panels:
        raise FigureError("no request of this run was answered", given=run.rejected)
    return _finish(alt.hconcat(*panels), "latency", _subtitle(run, chosen), chosen, look)


def _parts(books: pl.DataFrame, by: Sequence[str], language: Language) -> pl.DataFrame:
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
    names = {name: _word(f"part.{name}", language) for name in PARTS}
    return frame.with_columns(
        order=pl.col("part").replace_strict({n: i for i, n in enumerate(PARTS)}),
        label=pl.col("part").replace_strict(names),
    ).sort("order", maintain_order=True)


def _bars(frame: pl.DataFrame, y: str, language: Language, look: Theme) -> Any:
    tints = look.tints["scheduling"]
    shades = [look.fill["attention_kv"], look.fill["ffn_mlp"], look.fill["scheduling"],
              *list(tints.values())[1:6], look.free]  # fmt: skip
    labels = [_word(f"part.{name}", language) for name in PARTS]
    order = frame[y].unique(maintain_order=True).to_list()
    shades += [look.grid] * (len(labels) - len(shades))
    return alt.Chart(frame).mark_bar(stroke=look.background, strokeWidth=0.6).encode(
        alt.X("share:Q", title=_word("axis.share", language), stack="zero",
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
    frame = _parts(run.entries.with_columns(run=pl.lit(run.model.slug)), ["run"], chosen)
    return _finish(_bars(frame, "run", chosen, look), "books", _subtitle(run, chosen), chosen, look)


def simulation_engines(
    books: pl.DataFrame, *, subtitle: str = "", language: str | None = None,
    theme: str | Theme | None = None,
) -> alt.TopLevelMixin:  # fmt: skip
    """Draw the books of several engines side by side.

    Parameters
    ----------
    books : polars.DataFrame
        Second frame of ``Simulation.engines``.
    subtitle : str
        The operating point.
    language : {"zh", "en"}, optional
    theme : {"article", "slide", "dark"} or Theme, optional

    Returns
    -------
    altair.TopLevelMixin

    Raises
    ------
    FigureError
        A column is missing.
    """
    chosen, look = resolve_language(language), resolve_theme(theme)
    _needs(books, ("engine", "ledger", "account", "share"))
    frame = _parts(books, ["engine"], chosen)
    return _finish(_bars(frame, "engine", chosen, look), "engines", subtitle, chosen, look)


def simulation_load(
    curve: pl.DataFrame, *, subtitle: str = "", language: str | None = None,
    theme: str | Theme | None = None,
) -> alt.TopLevelMixin:  # fmt: skip
    """Draw rate against first-token time and goodput, with the knee marked.

    The knee is the highest rate up to which at least 99 % of the offered requests keep the goal,
    or, without one, the highest whose p99 is below three times that of the lowest rate.

    Parameters
    ----------
    curve : polars.DataFrame
        As ``Simulation.load_curve`` gives it.
    subtitle : str
        The operating point.
    language : {"zh", "en"}, optional
    theme : {"article", "slide", "dark"} or Theme, optional

    Returns
    -------
    altair.TopLevelMixin

    Raises
    ------
    FigureError
        A column is missing.
    """
    chosen, look = resolve_language(language), resolve_theme(theme)
    _needs(curve, ("rate_per_s", "ttft_s_p50", "ttft_s_p99", "goodput_per_s", "goodput_share"))
    curve = curve.sort("rate_per_s")
    knee = _knee(curve)
    x = alt.X("rate_per_s:Q", title=_word("axis.rate", chosen))
    long = curve.select("rate_per_s", p50="ttft_s_p50", p99="ttft_s_p99").unpivot(
        ["p50", "p99"], index="rate_per_s"
    ).with_columns(pl.col("variable").replace_strict(
        {name: _word(name, chosen) for name in ("p50", "p99")}
    ))  # fmt: skip
    lines = alt.Chart(long).mark_line(point=True, strokeWidth=2 * look.stroke).encode(
        x, alt.Y("value:Q", title=_word("latency.ttft_s", chosen), scale=alt.Scale(
            type="log", nice=False)),
        alt.Color("variable:N", title=None, legend=alt.Legend(orient="top"), scale=alt.Scale(
            range=[look.text["attention_kv"], look.text["ffn_mlp"]])),
    )  # fmt: skip
    good = (
        alt.Chart(curve)
        .mark_line(point=True, strokeWidth=2 * look.stroke, color=look.text["scheduling"])
        .encode(x, alt.Y("goodput_per_s:Q", title=_word("axis.goodput", chosen)))
    )
    panels: list[Any] = [lines, good]
    if knee is not None:
        label = text.get("simulate.knee", chosen, rate=f"{knee:.3g}")
        mark = alt.Chart(pl.DataFrame({"rate_per_s": [knee], "label": [label]})).encode(x)
        rule = mark.mark_rule(color=look.alert, strokeDash=[4, 3])
        word = mark.mark_text(color=look.alert, align="right", dx=-5, y=10, fontSize=12).encode(
            text="label:N"
        )
        panels = [lines + rule + word, good + rule]
    chart = alt.hconcat(*[panel.properties(width=280, height=240) for panel in panels])
    return _finish(chart, "load", subtitle, chosen, look)


def _knee(curve: pl.DataFrame) -> float | None:
    """Highest rate before the latency, or the goal, breaks."""
    if float(curve["goodput_share"].min() or 0.0) < 1:  # type: ignore[arg-type]
        kept = curve.filter(pl.col("goodput_share") >= 0.99)
    else:
        kept = curve.filter(pl.col("ttft_s_p99") <= 3 * curve["ttft_s_p99"][0])
    if kept.is_empty() or kept.height == curve.height:
        return None
    return float(kept["rate_per_s"].max())  # type: ignore[arg-type]


def simulation_ablation(
    rows: pl.DataFrame, *, subtitle: str = "", language: str | None = None,
    theme: str | Theme | None = None,
) -> alt.TopLevelMixin:  # fmt: skip
    """Draw by how much the same requests take longer without each mechanism.

    Parameters
    ----------
    rows : polars.DataFrame
        As ``Simulation.ablation`` gives it.
    subtitle : str
        The operating point.
    language : {"zh", "en"}, optional
    theme : {"article", "slide", "dark"} or Theme, optional

    Returns
    -------
    altair.TopLevelMixin

    Raises
    ------
    FigureError
        A column is missing.
    """
    chosen, look = resolve_language(language), resolve_theme(theme)
    _needs(rows, ("without", "cost"))
    known = set(text.keys())

    def name(without: str) -> str:
        key = f"simulate.without.{without.replace(' ', '_')}"
        return text.get(key, chosen) if key in known else without

    frame = rows.filter(pl.col("without") != "nothing").select(
        "cost", label=pl.col("without").map_elements(name, return_dtype=pl.String),
        told=pl.col("cost").map_elements(lambda c: f"{c:+.0%}", return_dtype=pl.String),
    )  # fmt: skip
    most = max(0.01, float(frame["cost"].max() or 0.0))  # type: ignore[arg-type]
    base = alt.Chart(frame).encode(
        alt.X("cost:Q", title=_word("axis.cost", chosen), axis=alt.Axis(format="%"),
              scale=alt.Scale(domainMax=1.15 * most)),
        alt.Y("label:N", title=None, sort=alt.EncodingSortField("cost", order="descending")),
    )  # fmt: skip
    bars = base.mark_bar(color=look.fill["scheduling"], height=18)
    words = base.mark_text(align="left", dx=5, color=look.ink, fontSize=12).encode(text="told:N")
    chart = (bars + words).properties(width=520, height=36 * max(1, frame.height))
    return _finish(chart, "ablation", subtitle, chosen, look)


def simulation_crossover(
    rows: pl.DataFrame, *, subtitle: str = "", language: str | None = None,
    theme: str | Theme | None = None,
) -> alt.TopLevelMixin:  # fmt: skip
    """Draw the speed-up of speculation against the number of clients, and where it ends.

    Parameters
    ----------
    rows : polars.DataFrame
        ``clients``, ``speedup`` (tokens per second with over without), ``setting`` (any text).
    subtitle : str
        The operating point.
    language : {"zh", "en"}, optional
    theme : {"article", "slide", "dark"} or Theme, optional

    Returns
    -------
    altair.TopLevelMixin

    Raises
    ------
    FigureError
        A column is missing, or there are more settings than colours.
    """
    chosen, look = resolve_language(language), resolve_theme(theme)
    _needs(rows, ("clients", "speedup", "setting"))
    if rows["setting"].n_unique() > len(look.series):
        raise FigureError("too many settings to tell apart", given=rows["setting"].n_unique(),
                          allowed=f"up to {len(look.series)}")  # fmt: skip
    lines = alt.Chart(rows).mark_line(point=True, strokeWidth=2 * look.stroke).encode(
        alt.X("clients:Q", title=_word("axis.clients", chosen), scale=alt.Scale(
            type="log", base=2, nice=False), axis=alt.Axis(values=_powers(rows), grid=True)),
        alt.Y("speedup:Q", title=_word("axis.speedup", chosen), scale=alt.Scale(zero=False)),
        alt.Color("setting:N", title=None, sort=None, scale=alt.Scale(range=list(look.series))),
    )  # fmt: skip
    one = (
        alt.Chart(pl.DataFrame({"speedup": [1.0]}))
        .mark_rule(color=look.alert, strokeDash=[4, 3])
        .encode(y="speedup:Q")
    )
    chart = (lines + one).properties(width=480, height=280)
    return _finish(chart, "crossover", subtitle, chosen, look)


def _powers(rows: pl.DataFrame) -> list[int]:
    top = int(rows["clients"].max())  # type: ignore[arg-type]
    return [2**i for i in range(int(math.log2(max(1, top))) + 1)]


def _needs(frame: pl.DataFrame, columns: Sequence[str]) -> None:
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise FigureError("a column is missing", given=missing, allowed=", ".join(columns))
    if frame.is_empty():
        raise FigureError("the frame has no row", given=0)
