"""Poisson streams and disaggregated pools: loads whose running sequences follow from the load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ledgerkit._steady.formula import (
    Load,
    Times,
    first_step_waits,
    interference,
    queue_wait,
)
from ledgerkit._steady.options import Serving
from ledgerkit._steady.work import Points, load
from ledgerkit.costs.table import CostTable, Edge
from ledgerkit.errors import DeploymentError, WorkloadError
from ledgerkit.kernels import columns as c
from ledgerkit.kernels import step as kernels
from ledgerkit.spec._base import LARGEST
from ledgerkit.spec.deployment import Deployment, Workload

_ROUNDS = 200
_CLOSE = 1e-12


@dataclass(frozen=True, slots=True)
class Pools:
    """Prefill workers beside decode workers."""

    prefill: CostTable
    prefill_workers: int
    decode_workers: int


def check_pools(
    prefill: Deployment | dict[str, Any] | None,
    prefill_workers: int | None,
    decode_workers: int | None,
) -> bool:
    """Return whether the point is disaggregated; refuse a half-stated one."""
    if prefill is None and prefill_workers is None and decode_workers is None:
        return False
    known = (prefill_workers, decode_workers)
    if any(type(workers) is not int or not 1 <= workers <= LARGEST for workers in known):
        raise DeploymentError(
            "disaggregated prefill needs the number of workers on both sides: without them the "
            "sequences of a decode worker are unknown",
            given={"prefill_workers": prefill_workers, "decode_workers": decode_workers},
            allowed=f"two integers of 1 to {LARGEST}",
            fix="give prefill_workers= and decode_workers= (and prefill=, if laid out differently)",
        )  # fmt: skip
    return True


def _too_much(rate: float, most: float, what: str) -> WorkloadError:
    return WorkloadError(
        f"the load is above capacity: {what}, so the queue of a Poisson stream grows for ever",
        given=f"{rate:.4g} requests per second", allowed=f"below about {most:.4g}",
        fix="lower arrival_rate_per_s, or ask for a closed loop to see the queue that it causes",
    )  # fmt: skip


def poisson(
    table: CostTable, workload: Workload, serving: Serving, seat_count: int, edge: Edge,
    factor: float,
) -> tuple[Points, Load, Times]:  # fmt: skip
    """Solve a Poisson stream on one replica.

    The sequences that run are those of Little's law, and the request itself; they slow down the
    steps, which lets more of them run: the fixed point is approached from below.
    """
    rate = serving.arrival_rate_per_s or 0.0
    running, step = 1.0, np.zeros(1)
    for _ in range(_ROUNDS):
        points = Points.mean(table, workload, running)
        priced = load(table, points, serving, edge, factor)
        step = np.maximum(step, priced.step_s)
        rounds, added = interference(priced, rate * step)
        step = priced.step_s + added
        found = 1.0 + rate * float(priced.steps[0] * step[0])
        if found > seat_count:
            most = _most(table, workload, serving, seat_count, factor)
            raise _too_much(rate, most, "no seat is free")
        if abs(found - running) <= _CLOSE * running:
            break
        running = found
    service = _service_s(table, workload, priced)
    busy = rate * service
    if busy >= 1.0:
        raise _too_much(rate, 1.0 / service, "prompts take longer than their arrivals are apart")
    shared, wait_step = first_step_waits(priced, step)
    wait = np.array([queue_wait(busy, service, serving.length_variation)])
    none = np.zeros(1)
    times = Times(
        rounds=rounds,
        interference_s=added,
        step_s=step,
        tpot_s=step / priced.tokens_per_step,
        shared_steps_s=shared,
        wait_prefill_s=wait,
        wait_seat_s=none,
        wait_step_s=wait_step,
        ttft_s=priced.request_path_s + priced.alone_s + shared + wait + wait_step,
    )
    return points, priced, times


def _service_s(table: CostTable, workload: Workload, priced: Load) -> float:
    """Seconds for which one prompt occupies the prefill side of the steps."""
    chunks = float(priced.chunks[0])
    if not priced.mixed[0]:
        return float(priced.prompt_s[0]) + chunks * float(priced.separate_host_s[0])
    together = max(1, table.chunk_tokens // workload.new_tokens)
    return float(priced.prompt_s[0]) + chunks * float(priced.step_s[0]) / together


def _most(
    table: CostTable, workload: Workload, serving: Serving, seat_count: int, factor: float
) -> float:
    """Requests per second when every seat is taken."""
    points = Points.mean(table, workload, float(seat_count))
    priced = load(table, points, serving, factor=factor)
    _, added = interference(priced, seat_count / priced.steps)
    return seat_count / float((priced.steps * (priced.step_s + added))[0])


def saturated_prompt_s(table: CostTable, workload: Workload, edge: Edge) -> float:
    """Seconds per prompt of a prefill worker whose attention ranks all fill their chunks."""
    layout, chunk = table.deployment, table.chunk_tokens
    ops, links, scalars = (x[edge][0] for x in (table.ops, table.link_rows, table.scalars))
    packed = max(1.0, chunk / workload.new_tokens)
    seconds, start = 0.0, workload.cached_tokens
    while start < workload.prompt_tokens:
        tokens = min(chunk, workload.prompt_tokens - start)
        last = start + tokens >= workload.prompt_tokens
        seconds += kernels.step(
            ops, links, scalars, float(tokens), float(start), packed,
            tokens * packed * layout.dp_attention, packed if last else 0.0, 1.0,
            np.zeros((len(ops), c.AMOUNTS)), np.zeros((len(links), c.LINK_AMOUNTS)),
            np.zeros(c.HOST_AMOUNTS),
        )  # fmt: skip
        start += tokens
    return seconds / packed / layout.dp_attention / layout.pp


@dataclass(frozen=True, slots=True)
class PoolTimes:
    """A disaggregated point; seconds."""

    running: float
    """Sequences that one decode worker runs."""
    alone_s: float
    step_s: float
    wait_prefill_s: float
    wait_pool_s: float
    cycle_s: float
    pool_s: float
    """Seconds per prompt of the whole prefill pool when it is busy."""
    binds: str


def disaggregated(
    decode: CostTable, pools: Pools, workload: Workload, serving: Serving, seat_count: int,
    edge: Edge,
) -> tuple[Points, PoolTimes]:  # fmt: skip
    """Solve prefill workers and decode workers together.

    A request is in one of the two pools, and whatever time it spends before its first token it
    does not spend in a decode batch: the batch shrinks until both sides agree.
    """
    alone = float(load(pools.prefill, Points.mean(pools.prefill, workload, 1.0), serving,
                       edge).alone_s[0])  # fmt: skip
    pool_s = saturated_prompt_s(pools.prefill, workload, edge) / pools.prefill_workers
    steps = workload.output_tokens / serving.tokens_per_step
    if serving.arrival == "poisson":
        return _stream(decode, pools, workload, serving, seat_count, edge, alone, pool_s)
    clients, seats = workload.concurrency, seat_count * pools.decode_workers
    wait = serving.waits(pools.prefill) * (clients - 1) * pool_s
    running, binds = float(min(clients, seats)), "concurrency"
    for _ in range(_ROUNDS):
        points = Points.mean(decode, workload, running / pools.decode_workers)
        step = float(load(decode, points, serving, edge).step_s[0])
        answer = steps * step
        limits = {
            "concurrency": serving.path_s() + alone + wait + answer,
            "prefill_pool": clients * pool_s,
            "seats": clients * answer / seats,
        }
        binds = max(limits, key=limits.__getitem__)
        cycle = limits[binds]
        found = min(max(1.0, clients * answer / cycle), float(seats))
        if abs(found - running) <= _CLOSE * running:
            break
        running = (found + running) / 2.0
    rest = cycle - answer - serving.path_s() - alone - wait
    return points, PoolTimes(
        running=running / pools.decode_workers, alone_s=alone, step_s=step, wait_prefill_s=wait,
        wait_pool_s=max(0.0, rest), cycle_s=cycle, pool_s=pool_s, binds=binds,
    )  # fmt: skip


def _stream(
    decode: CostTable, pools: Pools, workload: Workload, serving: Serving, seat_count: int,
    edge: Edge, alone: float, pool_s: float,
) -> tuple[Points, PoolTimes]:  # fmt: skip
    rate = serving.arrival_rate_per_s or 0.0
    steps = workload.output_tokens / serving.tokens_per_step
    if rate * pool_s >= 1.0:
        raise _too_much(rate, 1.0 / pool_s, "the prefill pool is full")
    running = 1.0
    for _ in range(_ROUNDS):
        points = Points.mean(decode, workload, running)
        step = float(load(decode, points, serving, edge).step_s[0])
        found = 1.0 + rate * steps * step / pools.decode_workers
        if found > seat_count:
            most = seat_count * pools.decode_workers / (steps * step)
            raise _too_much(rate, most, "no seat is free on the decode workers")
        if abs(found - running) <= _CLOSE * running:
            break
        running = found
    wait = queue_wait(
        rate * pool_s, pool_s * pools.prefill_workers, serving.length_variation,
        pools.prefill_workers,
    )  # fmt: skip
    cycle = serving.path_s() + alone + wait + steps * step
    return points, PoolTimes(
        running=running, alone_s=alone, step_s=step, wait_prefill_s=wait, wait_pool_s=0.0,
        cycle_s=cycle, pool_s=pool_s, binds="arrivals",
    )  # fmt: skip
