"""How many requests per second a deployment answers for ever."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ledgerkit._simulate.prepare import prepare
from ledgerkit._simulate.run import run
from ledgerkit.errors import WorkloadError
from ledgerkit.kernels import serving
from ledgerkit.kernels.batch import PER_SECOND

if TYPE_CHECKING:
    from ledgerkit._simulate.arrivals import Arrivals
    from ledgerkit._simulate.prepare import Arrays, CachePlan
    from ledgerkit._simulate.scheduler import Scheduler
    from ledgerkit.costs.table import CostTable

_ROUNDS = 8
"""Answers per client of the saturating loop."""
_BACKLOG = 0.1
"""Share of requests that may be open when the last one comes."""


def requests_per_s(
    table: CostTable, how: Scheduler, plan: CachePlan, arrivals: Arrivals
) -> float | None:
    """Answers per second while the queue never runs dry; None where requests are too few to tell.

    The first requests are asked in a closed loop of more clients than there are seats; the rate is
    that after the first round, before the loop runs dry.
    """
    mean = float(np.mean(arrivals.prompt_tokens + arrivals.output_tokens))
    each = math.ceil(mean / plan.block_tokens) + plan.extra_blocks
    ranks = table.deployment.dp_attention
    seats = min((how.max_num_seqs or 1) * ranks, plan.blocks / each, 1 << 20)
    clients = how.replicas * (math.ceil(1.1 * seats) + 1)
    count = min(arrivals.requests, max(_ROUNDS * clients, 100))
    if count < 3 * clients:
        return None
    loop = closed(arrivals, count, clients)
    arrays = prepare(table, how.model_copy(update={"request_path_s": 0.0}), plan, loop)
    run(arrays, None)
    ends = arrays.fate[:, serving.F_FINISHED]
    ends = np.sort(ends[ends >= 0])
    if len(ends) <= 2 * clients:
        return None
    first, last = ends[clients - 1], ends[-clients - 1]
    # equal requests end in waves: whole ones count
    count = int(((ends > first) & (ends <= last)).sum())
    return count * PER_SECOND / float(last - first) if last > first else None


def backlog(arrivals: Arrivals, arrays: Arrays) -> str | None:
    """Word on a frame or trace that comes faster than it is answered; None = it does not.

    Such a stream is finite, and its rate changes: it is run, and what came of it is told.
    """
    offered = arrivals.rate_per_s
    fate = arrays.fate
    ends = fate[fate[:, serving.F_FINISHED] >= 0, serving.F_FINISHED]
    if not offered > 0 or not len(ends):
        return None
    last = int(fate[:, serving.F_ARRIVED].max())
    behind = int((ends > last).sum())
    seats = int(arrays.settings[serving.S_SEATS]) * len(arrays.replicas)
    answered = len(ends) / (float(ends.max()) / PER_SECOND)
    if behind <= max(_BACKLOG * len(ends), seats) or answered >= (1 - _BACKLOG) * offered:
        return None
    return (
        f"{behind:,} of {arrivals.requests:,} requests were unanswered when the last one came: "
        f"{offered:.4g} requests/s came and about {answered:.4g} were answered; waits grow with "
        "the length of the run"
    )


def closed(arrivals: Arrivals, count: int, clients: int) -> Arrivals:
    """First ``count`` requests, asked by ``clients`` that wait for their answers."""
    before = np.maximum(np.arange(count) - clients, -1)
    end = int(arrivals.segment_start[count])
    return replace(
        arrivals, arrival_s=np.where(before < 0, 0.0, np.nan),
        prompt_tokens=arrivals.prompt_tokens[:count], output_tokens=arrivals.output_tokens[:count],
        predecessor=before, gap_s=np.zeros(count),
        segment_start=arrivals.segment_start[: count + 1], segment_ids=arrivals.segment_ids[:end],
        segment_tokens=arrivals.segment_tokens[:end], answer_ids=arrivals.answer_ids[:count],
        offered_per_s=None, concurrency=clients,
    )  # fmt: skip


def too_much(rate: float, most: float) -> WorkloadError:
    """Error for a stream whose queue grows for ever."""
    return WorkloadError(
        "the load is above capacity: the queue of this stream grows for ever",
        given=f"{rate:.4g} requests per second", allowed=f"below about {most:.4g}",
        fix="lower the rate, use more replicas, or pass overload='run' to see the queue grow",
    )  # fmt: skip
