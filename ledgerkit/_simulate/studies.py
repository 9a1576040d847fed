"""The same requests again, under other rates, without a mechanism, with other engines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ledgerkit._refs import resolve
from ledgerkit._simulate.scheduler import Scheduler
from ledgerkit._simulate.verb import serve
from ledgerkit.costs.table import build
from ledgerkit.errors import WorkloadError
from ledgerkit.spec._base import at_least_one, finite_number
from ledgerkit.spec.deployment import Deployment

if TYPE_CHECKING:
    import polars as pl

    from ledgerkit._simulate.result import Simulation

__all__ = ["ablation", "engines", "load_curve"]

MECHANISMS: dict[str, dict[str, Any]] = {
    "prefix cache": {"prefix_cache": False},
    "paged cache": {"cache_allocation": "contiguous", "prefix_cache": False},
    "chunked prefill": {"chunked_prefill": False},
    "continuous batching": {"batching": "static", "prefix_cache": False,
                            "cache_allocation": "contiguous"},
}  # fmt: skip
"""What an engine would do without each mechanism. Reuse needs pages, and batches that go on."""

_GOALS = ("ttft_s", "tpot_s", "e2e_s")


def _check_goal(goal: Mapping[str, float]) -> None:
    unknown = sorted(set(goal) - set(_GOALS))
    if unknown:
        raise WorkloadError(f"a goal has no {unknown[0]!r}", given=goal[unknown[0]],
                            allowed=", ".join(_GOALS), fix=f"leave {unknown[0]} out")  # fmt: skip


def _of_fields(given: Any) -> bool:
    return isinstance(given, Mapping) and all(isinstance(v, Mapping) for v in given.values())


def _row(run: Simulation, goal: Mapping[str, float]) -> dict[str, Any]:
    share = run.share()
    kept = run.goodput(**goal)
    return {
        "requests_per_s": run.requests_per_s, "tokens_per_s": run.tokens_per_s,
        "ttft_s_p50": run.percentile("ttft_s", 0.5), "ttft_s_p99": run.percentile("ttft_s", 0.99),
        "tpot_s_p50": run.percentile("tpot_s", 0.5), "tpot_s_p99": run.percentile("tpot_s", 0.99),
        "itl_s_p99": run.percentile("itl_s", 0.99),
        "goodput_per_s": kept["requests_per_s"], "goodput_share": kept["share"],
        "hit_rate": run.hit_rate, "preemptions": run.preemptions, "rejected": run.rejected,
        "wall_s": run.wall_s, **{f"{name}_share": value for name, value in share.items()},
    }  # fmt: skip


def load_curve(run: Simulation, rates_per_s: Sequence[float], **goal: float) -> pl.DataFrame:
    """Serve the same requests at other rates; see ``Simulation.load_curve``."""
    import polars as pl  # heavy

    _check_goal(goal)
    now = run.arrivals.rate_per_s
    if not run.arrivals.chained and not math.isfinite(now):
        raise WorkloadError("a load curve needs requests at two moments or more: one moment has "
                            "no rate", given=f"{run.arrivals.requests:,} at one moment",
                            allowed="two requests or more, one after another",
                            fix="simulate a longer stream")  # fmt: skip
    if not math.isfinite(now):
        raise WorkloadError("a load curve needs a stream of arrivals, not a loop",
                            given=run.arrivals.label, allowed="poisson, gamma, frames, traces",
                            fix="simulate a stream")  # fmt: skip
    rates = at_least_one(WorkloadError, "rates_per_s", rates_per_s, "requests per second")
    warm = float(run.warm_up)
    rows = []
    for given in rates:
        rate = finite_number(WorkloadError, "a rate", given, 1e-9, 1e12)
        stream = replace(
            run.arrivals, arrival_s=run.arrivals.arrival_s * (now / rate), offered_per_s=None,
        )  # fmt: skip
        one = serve(run.table, run.scheduler, stream, warm_up=warm, overload="run")
        rows.append({"rate_per_s": rate, **_row(one, goal)})
    return pl.DataFrame(rows)


def ablation(
    run: Simulation, mechanisms: Mapping[str, Mapping[str, Any]] | None = None, **goal: float
) -> pl.DataFrame:
    """Serve the same requests without each mechanism; see ``Simulation.ablation``."""
    import polars as pl  # heavy

    _check_goal(goal)
    if mechanisms is not None and not _of_fields(mechanisms):
        raise WorkloadError("mechanisms are names with the settings that differ",
                            given=mechanisms, allowed="a dict of dicts of scheduler settings",
                            fix="pass {'prefix cache': {'prefix_cache': False}}")  # fmt: skip
    given = run.scheduler.model_dump()
    rows = [{"without": "nothing", **_row(run, goal), "cost": 0.0}]
    for name, change in (MECHANISMS if mechanisms is None else mechanisms).items():
        fields = {**given, **change}
        if "cache_allocation" in change or "batching" in change:
            fields["preemption"] = "none"
        if change.get("chunked_prefill") is False:
            # an engine that cannot cut prompts needs steps as long as the longest
            longest = int(run.arrivals.prompt_tokens.max())
            fields["max_num_batched_tokens"] = max(longest, given["max_num_batched_tokens"])
        how = Scheduler(**fields)
        if how == run.scheduler:
            continue
        one = serve(run.table, how, run.arrivals, warm_up=run.warm_up, overload="run")
        if not one.answered:
            continue
        rows.append({
            "without": name, **_row(one, goal), "cost": one.wall_s / run.wall_s - 1.0,
        })  # fmt: skip
    return pl.DataFrame(rows)


def engines(
    run: Simulation, names: Sequence[str], **goal: float
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Serve the same requests with other engine profiles; see ``Simulation.engines``."""
    import polars as pl  # heavy

    _check_goal(goal)
    rows, books = [], []
    for name in at_least_one(WorkloadError, "names", names, "engines, see lk.engines()"):
        layout = Deployment(**run.deployment.model_dump() | {"engine": name})
        model, hardware, layout, profile, efficiencies = resolve(run.model, run.hardware, layout)
        table = build(model, layout, hardware, efficiencies, profile)
        how = Scheduler(replicas=run.scheduler.replicas).filled(table)
        one = serve(table, how, run.arrivals, warm_up=run.warm_up, overload="run")
        label = f"{profile.name} {profile.version}"
        rows.append({"engine": label, **_row(one, goal)})
        books.append(one.entries.select(pl.lit(label).alias("engine"), pl.all()))
    return pl.DataFrame(rows), pl.concat(books)
