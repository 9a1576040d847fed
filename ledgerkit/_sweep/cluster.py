"""The same units on a cluster of ``distributed`` workers.

Units are small, pure and sent again when a worker is lost, and parts are joined in the order of the
units: the result is that of threads.
"""

from __future__ import annotations

import pickle
import time
import uuid
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, TypeVar

from ledgerkit._sweep.prepared import Tables
from ledgerkit._sweep.run import Meter, OnProgress
from ledgerkit._sweep.task import Task
from ledgerkit.errors import SweepError

R = TypeVar("R")
Part = tuple[int, Any, Counter[str]]

_UNITS_PER_CALL = 4
_LOOK_S = 0.05
_EMBEDDED_BYTES = 1_000_000
"""Larger sweeps (frames of many points) are sent to every worker once, not with every call."""

_open_tasks: OrderedDict[str, tuple[Task[Any], Tables]] = OrderedDict()
"""Of this worker process: the last sweeps, with the tables that they have built."""


def _call(token: str, payload: bytes, units: tuple[int, ...]) -> list[Part]:
    """Compute units in a worker."""
    if token not in _open_tasks:
        task: Task[Any] = pickle.loads(payload)  # noqa: S301 - sent by the user's own client
        _open_tasks[token] = task, Tables(task.plan)
        while len(_open_tasks) > 2:
            _open_tasks.popitem(last=False)
    task, tables = _open_tasks[token]
    return [(unit, *task(unit, tables, lambda: False)) for unit in units]


def run_on_cluster(
    task: Task[R],
    units: Iterable[int],
    join: Callable[[int, tuple[R, Counter[str]]], None],
    client: Any,
    points_of: Callable[[int], int],
    on_progress: OnProgress | None,
) -> None:
    """Run a task on a cluster; parts are joined here, in order."""
    submit = getattr(client, "submit", None)
    if submit is None:
        raise SweepError(
            "client is no client of a cluster",
            given=client,
            allowed="a distributed.Client",
            fix="pass distributed.Client(...)",
        )
    todo = list(units)
    payload: Any = pickle.dumps(task)
    if len(payload) > _EMBEDDED_BYTES:
        payload = client.scatter(payload, broadcast=True)
    token = uuid.uuid4().hex
    meter = Meter(sum(map(points_of, todo)), on_progress)
    calls = (tuple(todo[i : i + _UNITS_PER_CALL]) for i in range(0, len(todo), _UNITS_PER_CALL))
    running: OrderedDict[int, Any] = OrderedDict()
    waiting = enumerate(calls)
    try:
        while True:
            room = 4 * max(1, sum(client.nthreads().values())) - len(running)
            for turn, call in islice(waiting, max(0, room)):
                running[turn] = submit(_call, token, payload, call, pure=False, retries=3)
            if not running:
                break
            turn, first = next(iter(running.items()))
            if first.done():
                for unit, part, dropped in first.result():
                    join(unit, (part, dropped))
                    meter.add(points_of(unit))
                del running[turn]
            else:
                time.sleep(_LOOK_S)
            meter.report()
    finally:
        client.cancel(list(running.values()))
