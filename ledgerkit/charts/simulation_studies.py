"""Charts of studies of simulated runs: engines, load, ablation, crossover of speculation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

from ledgerkit import text
from ledgerkit.charts._page import resolve_language
from ledgerkit.charts.simulation import finish, share_bars, shares_of_parts, word
from ledgerkit.charts.theme import Theme, resolve_theme
from ledgerkit.errors import FigureError

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    >>> lk.charts.describe(chart)
    'Same model, same machine: the books of several engines'
    """
    chosen, look = resolve_language(language), resolve_theme(theme)
    _needs(books, ("engine", "ledger", "account", "share"))
    frame = shares_of_parts(books, ["engine"], chosen)
    return finish(share_bars(frame, "engine", chosen, look), "engines", subtitle, chosen, look)


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
    'Load curve: time to first token, and goodput'
    """
    chosen, look = resolve_language(language), resolve_theme(theme)
    _needs(curve, ("rate_per_s", "ttft_s_p50", "ttft_s_p99", "goodput_per_s", "goodput_share"))
    curve = curve.sort("rate_per_s")
    knee = _knee(curve)
    x = alt.X("rate_per_s:Q", title=word("axis.rate", chosen))
    long = curve.select("rate_per_s", p50="ttft_s_p50", p99="ttft_s_p99").unpivot(
        ["p50", "p99"], index="rate_per_s"
    ).with_columns(pl.col("variable").replace_strict(
        {name: word(name, chosen) for name in ("p50", "p99")}
    ))  # fmt: skip
    lines = alt.Chart(long).mark_line(point=True, strokeWidth=2 * look.stroke).encode(
        x, alt.Y("value:Q", title=word("latency.ttft_s", chosen), scale=alt.Scale(
            type="log", nice=False)),
        alt.Color("variable:N", title=None, legend=alt.Legend(orient="top"), scale=alt.Scale(
            range=list(look.series[:2]))),
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
    chart = alt.hconcat(*[panel.properties(width=280, height=240) for panel in panels])
    return finish(chart, "load", subtitle, chosen, look)


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
    >>> stream = lk.Arrivals.poisson(6.0, requests=100, prompt_tokens=1024, output_tokens=64)
    >>> run = lk.simulate("llama-3.1-8b", "h100-sxm-80gb", arrivals=stream)
    >>> chart = simulation_ablation(run.ablation(), language="en")
    >>> lk.charts.describe(chart)
    'Without a mechanism, the same requests take longer by'
    """
    chosen, look = resolve_language(language), resolve_theme(theme)
    _needs(rows, ("without", "cost"))
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
    return finish(chart, "ablation", subtitle, chosen, look)


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
    'Speculation pays until the batch is large'
    """
    chosen, look = resolve_language(language), resolve_theme(theme)
    _needs(rows, ("clients", "speedup", "setting"))
    if rows["setting"].n_unique() > len(look.series):
        raise FigureError("too many settings to tell apart", given=rows["setting"].n_unique(),
                          allowed=f"up to {len(look.series)}")  # fmt: skip
    lines = alt.Chart(rows).mark_line(point=True, strokeWidth=2 * look.stroke).encode(
        alt.X("clients:Q", title=word("axis.clients", chosen), scale=alt.Scale(
            type="log", base=2, nice=False), axis=alt.Axis(values=_powers(rows), grid=True)),
        alt.Y("speedup:Q", title=word("axis.speedup", chosen), scale=alt.Scale(zero=False)),
        alt.Color("setting:N", title=None, sort=None, scale=alt.Scale(range=list(look.series))),
    )  # fmt: skip
    one = (
        alt.Chart(pl.DataFrame({"speedup": [1.0]}))
        .mark_rule(color=look.alert, strokeDash=[4, 3])
        .encode(y="speedup:Q")
    )
    chart = (lines + one).properties(width=480, height=280)
    return finish(chart, "crossover", subtitle, chosen, look)


def _powers(rows: pl.DataFrame) -> list[int]:
    top = int(rows["clients"].max())  # type: ignore[arg-type]
    return [2**i for i in range(int(math.log2(max(1, top))) + 1)]


def _needs(frame: pl.DataFrame, columns: Sequence[str]) -> None:
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise FigureError("a column is missing", given=missing, allowed=", ".join(columns))
    if frame.is_empty():
        raise FigureError("the frame has no row", given=0)
