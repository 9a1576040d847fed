"""What is wrong with the measurements themselves, found before and after the fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from ledgerkit.loadtest._student import t_two_sided

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ledgerkit.loadtest._fit import Fit

__all__ = ["Finding", "examine", "examine_fit", "examine_ttft_growth"]

Severity = Literal["note", "warning", "excluded", "blocking"]

STEADY_TOKENS = 200
"""Decode tokens per sequence below which a step time is shaky."""
_CONCURRENCY_OFF = 0.05
_STALLED = 1.10
_OUTPUT_OFF = 0.01
_PROMPT_OFF = 0.10
_STEPS_S = (1e-9, 1e6)  # a nanosecond to eleven days; NaN is not between
_FEWEST, _MOST = 1e-3, 1e12
_CHUNKED = 1.05


@dataclass(frozen=True)
class Finding:
    """One thing that a reader must know about the data.

    Attributes
    ----------
    key : str
        Which pitfall; the text in zh and en hangs on it.
    severity : {"note", "warning", "excluded", "blocking"}
        ``excluded``: rows were left out; ``blocking``: no verdict is possible.
    cells : tuple of str
        Where it was seen.
    values : dict
        Numbers for the text.
    """

    key: str
    severity: Severity
    cells: tuple[str, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)


def _rules(graph_sizes: tuple[int, ...]) -> dict[str, tuple[Severity, pl.Expr]]:
    """What is wrong with a row, by pitfall."""
    column = pl.col
    step, asked = column("itl_s"), column("concurrency_requested")
    reached = column("concurrency") / asked
    uneven = step > _STALLED * column("itl_median_s")
    # one sequence alone, or a window without prefills: then others were in the way of the machine
    calm = (asked == 1) | (column("itl_method") == "steady window").fill_null(value=False)
    spread = column("output_tokens_max") - column("output_tokens_min")
    rules: dict[str, tuple[Severity, pl.Expr]] = {
        "no_step_time": ("excluded", step.is_null() | ~step.is_between(*_STEPS_S)),
        "preemption": ("excluded", column("preemptions") > 0),
        "no_coordinates": (
            "excluded",
            pl.any_horizontal(
                part.is_null() | ~part.is_between(_FEWEST, _MOST)
                for part in (
                    asked,
                    column("context_tokens"),
                    column("prompt_tokens").fill_null(1.0),
                    column("concurrency").fill_null(1.0),
                )
            ),
        ),
        "failed_requests": ("warning", column("failed") > 0),
        "achieved_concurrency": ("warning", (reached - 1).abs() > _CONCURRENCY_OFF),
        "prefix_hits": ("warning", column("cached_tokens") > 0.01 * column("prompt_tokens")),
        "prompt_not_as_asked": (
            "warning",
            (column("prompt_tokens_counted") / column("prompt_tokens") - 1).abs() > _PROMPT_OFF,
        ),
        "output_not_fixed": ("warning", spread > _OUTPUT_OFF * column("output_tokens_max")),
        "few_steady_tokens": ("warning", column("steady_tokens") < STEADY_TOKENS),
        "prefill_in_decode": ("warning", uneven & ~calm),
        "uneven_steps": ("warning", uneven & calm),
        "no_steady_window": ("warning", column("itl_method") == "no steady window"),
        "tokens_from_chunks": ("warning", column("tokens_from") == "chunks"),
        "several_tokens_per_chunk": ("note", column("tokens_per_chunk") > _CHUNKED),
        "unverified_concurrency": ("note", column("concurrency").is_null()),
    }
    if graph_sizes:
        odd = ~asked.is_in([float(size) for size in graph_sizes]) & (asked <= graph_sizes[-1])
        rules["graph_padding"] = ("warning", odd)
    return rules


def examine(
    cells: pl.DataFrame, graph_sizes: tuple[int, ...] = ()
) -> tuple[pl.DataFrame, list[Finding]]:
    """Look for pitfalls row by row.

    Parameters
    ----------
    cells : polars.DataFrame
        Runs of cells (``CELL_COLUMNS``).
    graph_sizes : tuple of int
        Batch sizes that the engine captures as graphs; others run as the next larger one.

    Returns
    -------
    polars.DataFrame
        Rows that can be used, with ``concurrency`` and ``context_tokens`` filled in.
    list of Finding
        What was seen, and what was left out.
    """
    cells = cells.with_columns(
        context_tokens=pl.coalesce(
            "context_tokens", pl.col("prompt_tokens") + pl.col("output_tokens").fill_null(0) / 2
        ),
    )
    rules = _rules(graph_sizes)
    hits = cells.select(rule.fill_null(False).alias(key) for key, (_, rule) in rules.items())
    out = pl.any_horizontal(key for key, (severity, _) in rules.items() if severity == "excluded")
    kept = hits.select(~out).to_series()
    found = []
    for key, (severity, _) in rules.items():
        seen = hits[key] if severity == "excluded" or key == "failed_requests" else hits[key] & kept
        if seen.any():
            names = tuple(cells["cell"].filter(seen).unique(maintain_order=True).to_list())
            found.append(
                Finding(key, severity, names, {"rows": int(seen.sum()), "needed": STEADY_TOKENS})
            )
    filled = pl.coalesce("concurrency", "concurrency_requested").alias("concurrency")
    return cells.filter(kept).with_columns(filled), found


def examine_fit(fit: Fit, orders: Iterable[int | None]) -> list[Finding]:
    """Look for drift over the test, and for a misfit that is real but small."""
    found = []
    misfit = fit.lack_of_fit()
    if misfit.p is not None and misfit.p < 1e-3 and not misfit.is_bad:
        found.append(
            Finding("small_misfit", "warning", (misfit.worst_cell,),
                    {"residual": misfit.worst_residual})
        )  # fmt: skip
    at_bound = [i for i in range(len(fit.theta)) if fit.theta[i] == 0.0]
    if at_bound:
        found.append(Finding("at_bound", "note", (), {"columns": tuple(at_bound)}))
    return found + _drift(fit, list(orders))


def _drift(fit: Fit, places: list[int | None]) -> list[Finding]:
    """Trend of repeats over the test: each cell is compared with itself, so load cannot pose as it.

    A test that runs its cells in order of load cannot tell drift from load, and is told so.
    """
    if any(place is None for place in places) or len(set(places)) < 4:
        return []
    order = np.array(places, dtype=np.float64)
    place = np.stack([np.ones_like(order), np.log(fit.design[:, 2]), np.log(fit.design[:, 1])], 1)
    guess = place @ np.linalg.lstsq(place, order, rcond=None)[0]
    tied = float(np.var(order - guess)) < 0.4 * float(np.var(order))
    found = [Finding("ordered", "warning")] if tied else []
    names = np.array(fit.cells)
    within, error = order.copy(), fit.residuals.copy()
    for name in set(fit.cells):
        within[names == name] -= within[names == name].mean()
        error[names == name] -= error[names == name].mean()
    rest = len(order) - len(set(fit.cells)) - 1
    moved = float(within @ within)
    if rest < 3 or moved == 0:
        return found
    slope = float(within @ error) / moved
    spread = float(np.square(error - slope * within).sum()) / rest
    drift = slope * float(order.max() - order.min())
    if spread > 0 and t_two_sided(slope / np.sqrt(spread / moved), rest) < 0.01:
        severe = tied and abs(drift) > 2 * fit.sigma
        found.append(Finding("drift", "blocking" if severe else "warning", (), {"drift": drift}))
    return found


def examine_ttft_growth(cells: pl.DataFrame) -> list[Finding]:
    """Repeated prompts that hit a prefix cache show as a TTFT that does not grow."""
    alone = (
        cells.filter((pl.col("concurrency_requested") == 1) & pl.col("ttft_p50_s").is_not_null())
        .group_by("prompt_tokens")
        .agg(pl.col("ttft_p50_s").median())
        .sort("prompt_tokens")
    )
    if alone.height < 2 or alone["prompt_tokens"][-1] < 4 * alone["prompt_tokens"][0]:
        return []
    growth = alone["ttft_p50_s"][-1] / alone["ttft_p50_s"][0]
    if growth >= 1.5:
        return []
    span = alone["prompt_tokens"][-1] / alone["prompt_tokens"][0]
    return [Finding("ttft_does_not_grow", "warning", (), {"growth": growth, "span": span})]
