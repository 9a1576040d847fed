"""Runs a task over all units, in threads or on a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from ledgerkit._sweep.plan import Plan
from ledgerkit._sweep.prepared import Tables
from ledgerkit._sweep.progress import Display
from ledgerkit._sweep.run import OnProgress, Stop, default_threads, run
from ledgerkit._sweep.task import Task
from ledgerkit.errors import SweepCancelledError

R = TypeVar("R")


@dataclass(slots=True)
class Options:
    """How a sweep runs."""

    run_on: Literal["threads", "dask"] = "threads"
    client: Any = None
    threads: int = field(default_factory=default_threads)
    progress: bool | OnProgress = True


def execute(
    task: Task[R],
    tables: Tables,
    options: Options,
    *,
    units: Iterable[int] | None = None,
    partial: Callable[[], Any] = lambda: None,
) -> Counter[str]:
    """Run a task, its parts joined in order; return what was dropped, by reason.

    ``partial`` makes the result of what has been joined, for a run that is cancelled.
    """
    plan = task.plan
    dropped: Counter[str] = Counter()
    todo = range(plan.units) if units is None else list(units)

    def join(unit: int, part: tuple[R, Counter[str]]) -> None:
        task.reducer.join(unit, part[0])
        dropped.update(part[1])

    shown = Display() if options.progress is True else None
    on_progress = shown or (options.progress if callable(options.progress) else None)
    try:
        if options.run_on == "dask":
            from ledgerkit._sweep.cluster import run_on_cluster

            run_on_cluster(task, todo, join, options.client, points_of(plan), on_progress)
        else:
            stop = Stop()
            run(
                todo, lambda unit: task(unit, tables, stop), join,
                points_of=points_of(plan), total_points=sum(map(points_of(plan), todo)),
                threads=options.threads, stop=stop, on_progress=on_progress,
            )  # fmt: skip
    except (SweepCancelledError, KeyboardInterrupt) as stopped:
        stopped.partial = partial()  # type: ignore[union-attr]
        stopped.add_note("what was found so far is in .partial of this error")
        raise
    finally:
        if shown is not None:
            shown.close()
    return dropped


def points_of(plan: Plan) -> Callable[[int], int]:
    """Points of a unit, the mean of all: for progress."""
    each, rest = divmod(plan.points, plan.units)
    return lambda unit: each + (unit < rest)
