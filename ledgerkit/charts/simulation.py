"""Charts of one simulated run: over time, latencies, books."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import altair as alt
import polars as pl

from ledgerkit import text
from ledgerkit._compare import device_name
from ledgerkit.catalog.engines import load_engine
from ledgerkit.charts._offline import offline
from ledgerkit.charts._page import meta, resolve_language
from ledgerkit.charts.sweep import style
from ledgerkit.charts.theme import Theme, resolve_theme
from ledgerkit.errors import FigureError
from ledgerkit.text import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledgerkit._simulate import Simulation
    from ledgerkit.text import Language

__all__ = [
    "draw_books",
    "draw_latency",
    "draw_timeline",
    "finish",
    "needs",
    "share_bars",
    "shares_of_parts",
    "simulation_books",
    "simulation_latency",
    "simulation_timeline",
    "word",
]

_POINTS: Final = 400
"""Of a cumulative distribution."""
_MOST_REQUESTS: Final = 2_000
"""That a figure of latencies carries with it."""
_SAMPLES: Final = 1500
"""Of a timeline: more than the pixels that show them."""
_PADDING: Final = {"left": 24, "right": 28, "top": 18, "bottom": 18}
PARTS: Final = ("attention_kv", "ffn_mlp", "communication", "launch", "host", "padding",
                "recompute", "draft", "queue")  # fmt: skip
_SHADES: Final = (2, 0, 4, 1, 5, 3)
"""Tints of the parts of scheduling: light beside dark, so that neighbours keep apart."""
_LINKS: Final = ("tp", "ep", "pp")


def _subtitle(run: Simulation, language: Language) -> str:
    machine = f"{run.deployment.devices} × {device_name(run.hardware.slug)}"
    if run.scheduler.replicas > 1:
        machine = f"{run.scheduler.replicas} × ({machine})"
    return text.get(
        "simulate.subtitle", language, model=run.model.name, machine=machine,
        engine=load_engine(run.deployment.engine).name, load=_load(run, language),
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
    chart: Any, key: str, subtitle: str, finding: str, options: dict[str, Any], look: Theme,
    frames: dict[str, tuple[pl.DataFrame, Sequence[str]]],
) -> alt.TopLevelMixin:  # fmt: skip
    """Set title, finding, alternative text and style, and what draws the figure again."""
    language: Language = options["language"]
    words = text.get(f"simulate.{key}.title", language)
    lines = [line for line in (subtitle, finding) if line]
    title = alt.Title(words, subtitle=lines, anchor="start", offset=14)
    told = ". ".join([words, *lines])
    facts = meta(
        f"simulation_{key}", frames, {"subtitle": subtitle, **options}, title=words,
        operating_point=subtitle, finding=finding,
    )  # fmt: skip
    whole = chart.properties(title=title, description=told, padding=_PADDING,
                             usermeta={"ledgerkit": facts})  # fmt: skip
    return offline(whole.configure(**style(look)))


def needs(frame: pl.DataFrame, columns: Sequence[str]) -> None:
    """Refuse a frame that lacks what a chart reads."""
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise FigureError("a column is missing", given=missing, allowed=", ".join(columns))
    if frame.is_empty():
        raise FigureError("the frame has no row", given=frame.shape, allowed="one row or more",
                          fix="pass the frame of a run that answered something")  # fmt: skip


def _needs_answers(run: Simulation) -> None:
    """Refuse a run that has nothing to show."""
    if not run.answered:
        raise FigureError(
            "no request of this run was answered",
            given=f"{run.rejected} of {run.arrivals.requests} requests rejected",
            allowed="runs with an answered request",
            fix="simulate shorter requests, or a deployment that holds such long ones",
        )


def word(key: str, language: Language) -> str:
    """Look up a word of these charts."""
    return text.get(f"simulate.{key}", language)


_TIMELINE: Final = ("time_s", "replica", "running", "waiting", "cache_occupancy")


def simulation_timeline(
    timeline: pl.DataFrame, *, subtitle: str = "", language: str | None = None,
    theme: str | Theme | None = None,
) -> alt.TopLevelMixin:  # fmt: skip
    """Draw running and waiting sequences and the use of the cache over time.

    Parameters
    ----------
    timeline : polars.DataFrame
        ``Simulation.timeline``.
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

    Examples
    --------
    >>> import ledgerkit as lk
    >>> stream = lk.Arrivals.poisson(6.0, requests=100, prompt_tokens=1024, output_tokens=64)
    >>> run = lk.simulate("llama-3.1-8b", "h100-sxm-80gb", arrivals=stream)
    >>> chart = simulation_timeline(run.timeline, language="en")
    >>> lk.charts.describe(chart).partition(".")[0]
    'A run over time: batch, queue, cache'
    """
    chosen, look = resolve_language(language), resolve_theme(theme)
    needs(timeline, _TIMELINE)
    frame = timeline.select(_TIMELINE).gather_every(max(1, -(-timeline.height // _SAMPLES)))
    replicas = frame["replica"].n_unique()
    panels = []
    rows = (("running", "attention_kv", ""), ("waiting", "ffn_mlp", ""),
            ("cache_occupancy", "scheduling", "%"))  # fmt: skip
    for i, (column, ledger, form) in enumerate(rows):
        name = "cache" if column == "cache_occupancy" else column
        last = i == len(rows) - 1
        x = alt.X("time_s:Q", title=word("axis.time", chosen) if last else None,
                  axis=alt.Axis(labels=last, ticks=last))  # fmt: skip
        most = 1.0 if form else max(1.0, float(frame[column].max() or 0))  # type: ignore[arg-type]
        ticks: dict[str, Any] = {"format": form or "d", "tickCount": 4}
        if not form and most < 5:
            ticks["values"] = list(range(int(most) + 1))
        y = alt.Y(f"{column}:Q", title=None, scale=alt.Scale(domain=[0, most]),
                  axis=alt.Axis(**ticks))  # fmt: skip
        base = alt.Chart(frame).encode(x=x, y=y)
        if replicas > 1:
            base = base.encode(detail="replica:N")
        line = base.mark_line(
            color=look.text[ledger], strokeWidth=1.2 * look.stroke, interpolate="step-after",
            opacity=1.0 if replicas == 1 else 0.6,
        )  # fmt: skip
        told = alt.Title(
            word(f"axis.{name}", chosen), anchor="start", frame="group", fontSize=13, offset=6
        )
        panels.append(line.properties(width=600, height=96, title=told))
    running, waiting, cache = timeline.select(
        pl.col("running", "waiting", "cache_occupancy").max()
    ).row(0)
    finding = text.get(
        "simulate.timeline.finding", chosen, running=numbers.count(running),
        waiting=numbers.count(waiting), cache=numbers.percent(cache),
    )  # fmt: skip
    return finish(
        alt.vconcat(*panels, spacing=10), "timeline", subtitle, finding,
        {"language": chosen, "theme": look.name}, look, {"timeline": (frame, _TIMELINE)},
    )  # fmt: skip


def draw_timeline(run: Simulation, *, language: str | None = None, **options: Any) -> Any:
    """Draw a run over time; other options as in :func:`simulation_timeline`."""
    _needs_answers(run)
    chosen = resolve_language(language)
    return simulation_timeline(
        run.timeline, subtitle=_subtitle(run, chosen), language=chosen, **options
    )


def simulation_latency(
    requests: pl.DataFrame, *, ttft_s: float | None = None, tpot_s: float | None = None,
    subtitle: str = "", language: str | None = None, theme: str | Theme | None = None,
) -> alt.TopLevelMixin:  # fmt: skip
    """Draw the cumulative distributions of first token and token time, with the goals as lines.

    Parameters
    ----------
    requests : polars.DataFrame
        ``Simulation.requests``, or its columns ``ttft_s`` and ``tpot_s`` alone.
    ttft_s, tpot_s : float, optional
        Goals in seconds.
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
        A column is missing, or no request was answered.

    Examples
    --------
    >>> import polars as pl, ledgerkit as lk
    >>> requests = pl.DataFrame({"ttft_s": [0.1, 0.2, 0.4], "tpot_s": [0.01, 0.01, 0.02]})
    >>> chart = simulation_latency(requests, ttft_s=0.3, language="en")
    >>> lk.charts.describe(chart).partition(". ")[2]
    'First token within 200 ms for half of them, 400 ms for 99%'
    """
    chosen, look = resolve_language(language), resolve_theme(theme)
    needs(requests, _LATENCY)
    if "is_measured" in requests.columns:
        requests = requests.filter("is_measured")
    goals = {"ttft_s": ttft_s, "tpot_s": tpot_s}
    panels = [
        _cumulative(values, name, goals[name], ledger, chosen, look)
        for name, ledger in (("ttft_s", "attention_kv"), ("tpot_s", "scheduling"))
        if not (values := requests[name].drop_nulls().sort()).is_empty()
    ]
    if not panels:
        raise FigureError(
            "no request of this run was answered",
            given=requests.height,
            allowed="runs with an answered request",
            fix="pass the requests of a run that answered something",
        )
    first = requests["ttft_s"].drop_nulls()
    finding = text.get(
        "simulate.latency.finding", chosen,
        # at least that share of the requests, also where there are few
        **{name: numbers.duration(first.quantile(part, "higher") or 0.0)
           for name, part in (("half", 0.5), ("most", 0.99))},
    )  # fmt: skip
    options = {**goals, "language": chosen, "theme": look.name}
    kept = requests.select(_LATENCY)
    if kept.height > _MOST_REQUESTS:  # what is drawn needs no more than these quantiles
        parts = [i / _MOST_REQUESTS for i in range(_MOST_REQUESTS + 1)]
        kept = pl.DataFrame(
            {name: [kept[name].quantile(part, "lower") for part in parts] for name in _LATENCY}
        )
    return finish(
        alt.hconcat(*panels), "latency", subtitle, finding, options, look,
        {"requests": (kept, _LATENCY)},
    )  # fmt: skip


_LATENCY: Final = ("ttft_s", "tpot_s")


def _cumulative(
    values: pl.Series, metric: str, goal: float | None, ledger: str, language: Language,
    look: Theme,
) -> Any:  # fmt: skip
    frame = pl.DataFrame({
        "value": [values.quantile(i / _POINTS, "lower") for i in range(_POINTS + 1)],
        "share": [i / _POINTS for i in range(_POINTS + 1)],
    })  # fmt: skip
    base = alt.Chart(frame).mark_line(
        color=look.text[ledger], strokeWidth=2 * look.stroke, interpolate="step-after"
    ).encode(
        alt.X("value:Q", title=word(f"latency.{metric}", language),
              scale=alt.Scale(type="log", nice=False), axis=alt.Axis(tickCount=5)),
        alt.Y("share:Q", title=word("axis.share_of_requests", language),
              axis=alt.Axis(format="%")),
    )  # fmt: skip
    layers: list[Any] = [base]
    if goal is not None:
        kept = int((values <= goal).sum()) / len(values)
        comma = text.get("loadtest.separator", language)
        mark = pl.DataFrame({
            "value": [goal], "label": [f"{word('goal', language)} {goal:g} s{comma}{kept:.0%}"],
        })  # fmt: skip
        rule = alt.Chart(mark).encode(alt.X("value:Q"))
        layers.append(rule.mark_rule(color=look.alert, strokeDash=[4, 3]))
        layers.append(
            rule.mark_text(color=look.alert, align="right", dx=-5, y=228, fontSize=12)
            .encode(text="label:N")
        )  # fmt: skip
    return alt.layer(*layers).properties(width=280, height=240)


def draw_latency(run: Simulation, *, language: str | None = None, **options: Any) -> Any:
    """Draw the latencies of a run; other options as in :func:`simulation_latency`."""
    _needs_answers(run)
    chosen = resolve_language(language)
    return simulation_latency(
        run.requests, subtitle=_subtitle(run, chosen), language=chosen, **options
    )


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
    """Stacked bars of the parts of the time that there are, one for each value of ``y``."""
    tints = list(look.tints["scheduling"].values())
    colors = [look.fill["attention_kv"], look.fill["ffn_mlp"], *(tints[i] for i in _SHADES),
              look.free]  # fmt: skip
    there = set(frame.filter(pl.col("share") > 0)["part"])
    shown = {word(f"part.{name}", language): color
             for name, color in zip(PARTS, colors, strict=True) if name in there}  # fmt: skip
    labels, shades = list(shown), list(shown.values())
    order = frame[y].unique(maintain_order=True).to_list()
    return alt.Chart(frame).mark_bar(stroke=look.background, strokeWidth=0.6).encode(
        alt.X("share:Q", title=word("axis.share", language), stack="zero",
              axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])),
        alt.Y(f"{y}:N", title=None, sort=order, axis=alt.Axis(labelLimit=220)),
        alt.Color("label:N", title=None, sort=labels,
                  scale=alt.Scale(domain=labels, range=shades),
                  legend=alt.Legend(orient="bottom", columns=6 if len(labels) <= 6 else 5)),
        order="order:Q",
        tooltip=["label:N", alt.Tooltip("share:Q", format=".1%")],
    ).properties(width=540, height=34 * max(1, len(order)) + 10)  # fmt: skip


_BOOKS: Final = ("ledger", "account", "share")


def simulation_books(
    entries: pl.DataFrame, *, label: str = "", subtitle: str = "", language: str | None = None,
    theme: str | Theme | None = None,
) -> alt.TopLevelMixin:  # fmt: skip
    """Draw where the device time of a run went, idle time included.

    Parameters
    ----------
    entries : polars.DataFrame
        ``Simulation.entries``.
    label : str
        Name of the bar, such as the model.
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

    Examples
    --------
    >>> import polars as pl, ledgerkit as lk
    >>> rows = {"ledger": ["ffn_mlp", "scheduling"], "account": ["dense", "queue"]}
    >>> entries = pl.DataFrame({**rows, "share": [0.75, 0.25]})
    >>> lk.charts.describe(simulation_books(entries, language="en"))
    'Where the time went: the books of a run. Most: FFN / MLP 75%; idle 25%'
    """
    chosen, look = resolve_language(language), resolve_theme(theme)
    needs(entries, _BOOKS)
    frame = shares_of_parts(entries.with_columns(run=pl.lit(label)), ["run"], chosen)
    shares = dict(zip(frame["part"], frame["share"], strict=True))
    idle = shares.pop("queue", 0.0)
    most = max(shares, key=lambda name: shares[name])
    finding = text.get(
        "simulate.books.finding", chosen, part=word(f"part.{most}", chosen),
        share=numbers.percent(shares[most]), idle=numbers.percent(idle),
    )  # fmt: skip
    options = {"label": label, "language": chosen, "theme": look.name}
    return finish(
        share_bars(frame, "run", chosen, look), "books", subtitle, finding, options, look,
        {"entries": (entries, _BOOKS)},
    )  # fmt: skip


def draw_books(run: Simulation, *, language: str | None = None, **options: Any) -> Any:
    """Draw the books of a run; other options as in :func:`simulation_books`."""
    _needs_answers(run)
    chosen = resolve_language(language)
    return simulation_books(
        run.entries, label=run.model.name, subtitle=_subtitle(run, chosen), language=chosen,
        **options,
    )  # fmt: skip
