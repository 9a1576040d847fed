"""Charts of studies of simulated runs: engines, load, ablation, crossover of speculation."""

from __future__ import annotations

import math
from typing import Any, Final

import altair as alt
import polars as pl

from ledgerkit import text
from ledgerkit.charts._page import resolve_language
from ledgerkit.charts.simulation import finish, needs, share_bars, shares_of_parts, word
from ledgerkit.charts.theme import Theme, resolve_theme
from ledgerkit.errors import FigureError
from ledgerkit.text import numbers

_ENGINES: Final = ("engine", "ledger", "account", "share")
_LOAD: Final = ("rate_per_s", "ttft_s_p50", "ttft_s_p99", "goodput_per_s", "goodput_share")
_CROSSOVER: Final = ("clients", "speedup", "setting")

__all__ = ["simulation_ablation", "simulation_crossover", "simulation_engines", "simulation_load"]


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

    Examples
    --------
    >>> import ledgerkit as lk
    >>> stream = lk.Arrivals.poisson(6.0, requests=100, prompt_tokens=1024, output_tokens=64)
    >>> run = lk.simulate("llama-3.1-8b", "h100-sxm-80gb", arrivals=stream)
    >>> books = run.engines(["vllm", "sglang", "llama.cpp"])[1]
    >>> chart = simulation_engines(books, language="en")
    >>> lk.charts.describe(chart).partition(". ")[0]
    'Same model, same machine: the books of several engines'
    """
    chosen, look = resolve_language(language), resolve_theme(theme)
    needs(books, _ENGINES)
    frame = shares_of_parts(books, ["engine"], chosen)
    busy = frame.filter(~pl.col("part").is_in(["attention_kv", "ffn_mlp", "queue"]))
    overhead = busy.group_by("engine", maintain_order=True).agg(pl.col("share").sum())
    least, most = (overhead.sort("share", maintain_order=True).row(i) for i in (0, -1))
    finding = text.get(
        "simulate.engines.finding", chosen, least=least[0], least_share=numbers.percent(least[1]),
        most=most[0], most_share=numbers.percent(most[1]),
    )  # fmt: skip
    return finish(
        share_bars(frame, "engine", chosen, look), "engines", subtitle, finding,
        {"language": chosen, "theme": look.name}, look, {"books": (books, _ENGINES)},
    )  # fmt: skip


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

    Examples
    --------
    >>> import ledgerkit as lk
    >>> stream = lk.Arrivals.poisson(6.0, requests=100, prompt_tokens=1024, output_tokens=64)
    >>> run = lk.simulate("llama-3.1-8b", "h100-sxm-80gb", arrivals=stream)
    >>> curve = run.load_curve([2, 4, 8, 16, 32], ttft_s=0.2)
    >>> chart = simulation_load(curve, language="en")
    >>> lk.charts.describe(chart)
    'Load curve: time to first token, and goodput. Latency holds up to 16 requests/s'
    """
    chosen, look = resolve_language(language), resolve_theme(theme)
    needs(curve, _LOAD)
    curve = curve.sort("rate_per_s")
    knee = _knee(curve)
    x = alt.X("rate_per_s:Q", title=word("axis.rate", chosen))
    long = curve.select("rate_per_s", p50="ttft_s_p50", p99="ttft_s_p99").unpivot(
        ["p50", "p99"], index="rate_per_s"
    )
    hue = alt.Color(
        "variable:N",
        title=None,
        legend=None,
        scale=alt.Scale(domain=["p50", "p99"], range=list(look.series[:2])),
    )
    lines = alt.Chart(long).mark_line(point=True, strokeWidth=2 * look.stroke).encode(
        x, alt.Y("value:Q", title=word("latency.ttft_s", chosen), scale=alt.Scale(
            type="log", nice=False)), hue,
    )  # fmt: skip
    ends = long.group_by("variable", maintain_order=True).last()
    lines += alt.Chart(ends).mark_text(align="left", dx=8, fontSize=12).encode(
        x, y="value:Q", text="variable:N", color=hue
    )  # fmt: skip
    good = (
        alt.Chart(curve)
        .mark_line(point={"color": look.ink}, strokeWidth=2 * look.stroke, color=look.ink)
        .encode(x, alt.Y("goodput_per_s:Q", title=word("axis.goodput", chosen)))
    )
    panels: list[Any] = [lines, good]
    if knee is not None:
        label = text.get("simulate.knee", chosen, rate=f"{knee:.3g}")
        mark = alt.Chart(pl.DataFrame({"rate_per_s": [knee], "label": [label]})).encode(x)
        rule = mark.mark_rule(color=look.alert, strokeDash=[4, 3])
        told = mark.mark_text(color=look.alert, align="right", dx=-5, y=10, fontSize=12).encode(
            text="label:N"
        )
        panels = [lines + rule + told, good + rule]
    chart = alt.hconcat(*[panel.properties(width=280, height=240) for panel in panels], spacing=44)
    finding = (
        text.get("simulate.load.no_knee", chosen) if knee is None
        else text.get("simulate.load.finding", chosen, rate=f"{knee:.3g}")
    )  # fmt: skip
    options = {"language": chosen, "theme": look.name}
    return finish(chart, "load", subtitle, finding, options, look, {"curve": (curve, _LOAD)})


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

    Examples
    --------
    >>> import ledgerkit as lk
    >>> clients = lk.Arrivals.closed_loop(
    ...     64,
    ...     requests=300,
    ...     prompt_tokens=2048,
    ...     output_tokens=lk.Lengths.exponential(256),
    ...     shared_prefix_tokens=1536,
    ...     prefixes=4,
    ... )
    >>> run = lk.simulate("llama-3.1-8b", "h100-sxm-80gb", arrivals=clients)
    >>> chart = simulation_ablation(run.ablation(), language="en")
    >>> lk.charts.describe(chart).partition(". ")[0]
    'Without a mechanism, the same requests take longer by'
    """
    chosen, look = resolve_language(language), resolve_theme(theme)
    needs(rows, ("without", "cost"))
    known = set(text.keys())

    def name(without: str) -> str:
        key = f"simulate.without.{without.replace(' ', '_')}"
        return text.get(key, chosen) if key in known else without

    frame = rows.filter(pl.col("without") != "nothing").select(
        "cost", label=pl.col("without").map_elements(name, return_dtype=pl.String),
        told=pl.col("cost").map_elements(
            lambda c: f"{round(c, 2) + 0.0:+.0%}", return_dtype=pl.String
        ),
    )  # fmt: skip
    most = max(0.01, float(frame["cost"].max() or 0.0))  # type: ignore[arg-type]
    base = alt.Chart(frame).encode(
        alt.X("cost:Q", title=word("axis.cost", chosen), axis=alt.Axis(format="%", tickCount=5),
              scale=alt.Scale(domainMax=1.15 * most)),
        alt.Y("label:N", title=None, sort=alt.EncodingSortField("cost", order="descending")),
    )  # fmt: skip
    bars = base.mark_bar(color=look.fill["scheduling"], height=18)
    words = base.mark_text(align="left", dx=5, color=look.ink, fontSize=12).encode(text="told:N")
    chart = (bars + words).properties(width=520, height=36 * max(1, frame.height))
    worst = frame.sort("cost", descending=True, maintain_order=True).row(0, named=True)
    finding = text.get("simulate.ablation.finding", chosen, name=worst["label"],
                       cost=worst["told"])  # fmt: skip
    options = {"language": chosen, "theme": look.name}
    return finish(chart, "ablation", subtitle, finding, options, look,
                  {"rows": (rows, ("without", "cost"))})  # fmt: skip


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

    Examples
    --------
    >>> import ledgerkit as lk
    >>> import polars as pl
    >>> rows = pl.DataFrame(
    ...     {"setting": ["4 drafts"] * 3, "clients": [1, 16, 256], "speedup": [2.1, 1.6, 0.9]}
    ... )
    >>> chart = simulation_crossover(rows, language="en")
    >>> lk.charts.describe(chart)
    'Speculation: the gain depends on the batch. 4 drafts: pays up to about 172 clients'
    """
    chosen, look = resolve_language(language), resolve_theme(theme)
    needs(rows, _CROSSOVER)
    if rows["setting"].n_unique() > len(look.series):
        raise FigureError("too many settings to tell apart", given=rows["setting"].n_unique(),
                          allowed=f"up to {len(look.series)}")  # fmt: skip
    x = alt.X(
        "clients:Q",
        title=word("axis.clients", chosen),
        scale=alt.Scale(type="log", base=2, nice=False),
        axis=alt.Axis(values=_powers(rows), grid=True),
    )
    hue = alt.Color("setting:N", sort=None, legend=None, scale=alt.Scale(range=list(look.series)))
    y = alt.Y("speedup:Q", title=word("axis.speedup", chosen), scale=alt.Scale(zero=False))
    lines = alt.Chart(rows).mark_line(point=True, strokeWidth=2 * look.stroke).encode(x, y, hue)
    starts = rows.sort("clients").group_by("setting", maintain_order=True).first()
    # named where the lines are furthest apart: before the first point they all begin
    names = alt.Chart(starts).mark_text(align="left", dx=8, dy=-10, fontSize=12).encode(
        x, y, hue, text="setting:N"
    )  # fmt: skip
    one = (
        alt.Chart(pl.DataFrame({"speedup": [1.0]}))
        .mark_rule(color=look.alert, strokeDash=[4, 3])
        .encode(y="speedup:Q")
    )
    chart = (lines + one + names).properties(width=520, height=280)
    finding = text.get("alt.separator", chosen).join(
        _until(str(name[0]), part, chosen)
        for name, part in rows.sort("clients").group_by("setting", maintain_order=True)
    )
    options = {"language": chosen, "theme": look.name}
    return finish(chart, "crossover", subtitle, finding, options, look,
                  {"rows": (rows, _CROSSOVER)})  # fmt: skip


def _until(name: str, rows: pl.DataFrame, language: text.Language) -> str:
    """Up to how many clients speculation pays: where the drawn line leaves 1 for good."""
    points = list(zip(rows["clients"].to_list(), rows["speedup"].to_list(), strict=True))
    paying = [i for i, (_, speedup) in enumerate(points) if speedup > 1]
    if not paying:
        return text.get("simulate.crossover.never", language, name=name)
    last = paying[-1]
    clients, gain = points[last]
    if last + 1 == len(points):
        return text.get("simulate.crossover.always", language, name=name, clients=f"{clients:,}")
    beyond, loss = points[last + 1]
    # the line is straight over the logarithm of the clients
    part = (gain - 1.0) / (gain - loss)
    crossing = clients * (beyond / clients) ** part
    told = f"{crossing:,.0f}" if crossing >= 10 else f"{crossing:.1f}"
    return text.get("simulate.crossover.until", language, name=name, clients=told)


def _powers(rows: pl.DataFrame) -> list[int]:
    top = int(rows["clients"].max())  # type: ignore[arg-type]
    return [2**i for i in range(int(math.log2(max(1, top))) + 1)]
