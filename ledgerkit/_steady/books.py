"""Entries of a loaded point: those of the ledger, and what the load adds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ledgerkit._entries import Entry, phase_entries, resident_entries
from ledgerkit._expressions import DECODE, PREFILL, Formula
from ledgerkit._steady.options import serving_constant
from ledgerkit._steady.work import Points
from ledgerkit.costs.table import EDGES
from ledgerkit.spec.workpoint import WorkPoint

if TYPE_CHECKING:
    from ledgerkit._explain import Value
    from ledgerkit._steady.formula import Load, Times
    from ledgerkit._steady.options import Serving
    from ledgerkit._steady.streams import PoolTimes
    from ledgerkit.costs.table import CostTable, Edge
    from ledgerkit.spec.axes import Account, Phase
    from ledgerkit.spec.deployment import Workload

POLLACZEK = "queue of Pollaczek and Khinchine, arrivals of a Poisson stream"
CONSERVED = "every prefill that a request does not wait for falls between its tokens"


@dataclass(frozen=True, slots=True)
class Solved:
    """One point, solved at one edge of the constants."""

    points: Points
    load: Load
    times: Times | None
    pools: PoolTimes | None


def _numbers(**values: float) -> dict[str, Value]:
    return {name: float(value) for name, value in values.items()}


def _seconds(
    phase: Phase, account: Account, op: str, amounts: tuple[float, float, float],
    expression: str, values: dict[str, Value], source: str,
) -> Entry:  # fmt: skip
    mid, low, high = amounts
    return Entry(
        phase, "scheduling", account, op, "time", None, mid, None, min(low, mid), max(high, mid),
        "estimated", Formula(expression, values), source,
    )  # fmt: skip


def mean_point(points: Points, table: CostTable, workload: Workload) -> WorkPoint:
    """Mean device of the point that entries are drawn up at."""
    layout, batches = table.deployment, float(points.batches[0])
    running = float(points.running[0])
    return WorkPoint(
        prompt_tokens=workload.prompt_tokens, cached_tokens=workload.cached_tokens,
        context=workload.decode_context, sequences=running / layout.dp_attention / batches,
        group_tokens=running / batches, micro_batches=batches,
    )  # fmt: skip


def loaded_entries(
    prefill: CostTable, decode: CostTable, workload: Workload, serving: Serving,
    solved: dict[Edge, Solved],
) -> list[Entry]:  # fmt: skip
    """All entries of a loaded point; prefill and decode may run on different workers."""
    mid = solved["mid"]
    point = mid.points.work_point(workload)
    mean = mean_point(mid.points, decode, workload)
    entries = phase_entries(prefill, PREFILL, point, mean)
    entries += _request_path(serving)
    entries += _pool_waits(solved, serving) if mid.pools else _waits(solved, serving)
    entries += phase_entries(decode, DECODE, point, mean)
    entries += _drafting(solved, serving)
    if mid.times is not None:
        entries += _interference(solved)
    whole = max(1, round(float(mid.points.running[0])))
    held = workload.model_copy(update={"concurrency": whole})
    entries += resident_entries(decode, held)
    return entries


def _request_path(serving: Serving) -> list[Entry]:
    seconds = serving.path_s()
    band = serving_constant("request_path_s")
    ends = (band.low, band.high) if serving.request_path_s is None else (seconds, seconds)
    if not seconds:
        return []
    return [
        _seconds("prefill", "host", "request path", (seconds, *ends), "request_path_s",
                 _numbers(request_path_s=seconds), "outside the engine's steps"),
    ]  # fmt: skip


def _at(solved: dict[Edge, Solved], name: str) -> tuple[float, float, float]:
    mid, low, high = (float(getattr(solved[edge].times, name)[0]) for edge in EDGES)
    return mid, low, high


def _waits(solved: dict[Edge, Solved], serving: Serving) -> list[Entry]:
    load, times = solved["mid"].load, solved["mid"].times
    running, step = float(load.running[0]), float(load.step_s[0])
    shared = float(load.chunks[0]) - 0.5 if load.mixed[0] else 0.5
    found = []
    if running > 1:
        found += [
            _seconds("prefill", "queue", "decode steps of others", _at(solved, "shared_steps_s"),
                     "(running - 1) / running * shared_steps * step_s",
                     _numbers(running=running, shared_steps=shared, step_s=step),
                     "steps that a prompt shares or waits for"),
            _seconds("prefill", "queue", "rest of the running step", _at(solved, "wait_step_s"),
                     "(running - 1) / running * loaded_step_s / 2",
                     _numbers(running=running, loaded_step_s=times.step_s[0] if times else 0.0),
                     "half of a step, on average"),
        ]  # fmt: skip
    waits = _at(solved, "wait_prefill_s")
    expression, values, source = (
        "wait_share * (running - 1) * prompt_s",
        _numbers(wait_share=load.wait_share[0], running=running, prompt_s=load.prompt_s[0]),
        CONSERVED,
    )
    if serving.arrival == "poisson":
        expression, values, source = "wait_s", _numbers(wait_s=waits[0]), POLLACZEK
    if waits[0]:
        found.append(
            _seconds("prefill", "queue", "prefills of others", waits, expression, values, source)
        )
    seat = _at(solved, "wait_seat_s")
    if seat[0] and times is not None:
        found.append(
            _seconds("prefill", "queue", "no free seat", seat,
                     "(concurrency - running) / running * steps * loaded_step_s",
                     _numbers(concurrency=load.concurrency[0], running=running,
                              steps=load.steps[0], loaded_step_s=times.step_s[0]),
                     "requests beyond the seats wait for an answer to end"),
        )  # fmt: skip
    return found


def _pool_waits(solved: dict[Edge, Solved], serving: Serving) -> list[Entry]:
    def ends(name: str) -> tuple[float, float, float]:
        mid, low, high = (float(getattr(solved[edge].pools, name)) for edge in EDGES)
        return mid, low, high

    found = []
    source = CONSERVED if serving.arrival == "closed_loop" else "Sakasegawa, Poisson stream"
    for name, op, why in (
        ("wait_prefill_s", "prefills of others", source),
        ("wait_pool_s", "no free worker", "the pool that binds sets the cycle of every client"),
    ):
        amounts = ends(name)
        if amounts[0]:
            found.append(_seconds("prefill", "queue", op, amounts, "wait_s",
                                  _numbers(wait_s=amounts[0]), why))  # fmt: skip
    return found


def _drafting(solved: dict[Edge, Solved], serving: Serving) -> list[Entry]:
    mid, low, high = (float(solved[edge].load.draft_s[0]) for edge in EDGES)
    if not mid:
        return []
    source = f"{serving.draft_tokens} more query tokens per sequence, and a mean layer for each"
    return [
        _seconds("decode", "draft", "drafting and verification", (mid, low, high), "draft_s",
                 _numbers(draft_s=mid), source),
    ]  # fmt: skip


def _interference(solved: dict[Edge, Solved]) -> list[Entry]:
    load, times = solved["mid"].load, solved["mid"].times
    amounts = _at(solved, "interference_s")
    if times is None or not amounts[0]:
        return []
    chunk = "max(rounds, 1) * prompt_s / chunks"
    values = _numbers(
        rounds=times.rounds[0], prompt_s=load.prompt_s[0], chunks=load.chunks[0],
        launch_s=load.launch_s[0], factor=load.factor[0],
    )  # fmt: skip
    if load.mixed[0]:
        text = f"max({chunk} + step_s, launch_s) - step_s"
        values |= _numbers(step_s=load.step_s[0])
    else:
        text = f"max({chunk}, launch_s) + host_s"
        values |= _numbers(host_s=load.separate_host_s[0])
    return [
        _seconds("decode", "queue", "prefills between tokens", amounts,
                 f"factor * min(rounds, 1) * ({text})", values, CONSERVED),
    ]  # fmt: skip
