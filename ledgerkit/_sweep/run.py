"""Units of work in threads: in order, with progress, and stopped at once when asked to."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from ledgerkit.errors import SweepCancelledError

T = TypeVar("T")

_LOOK_S = 0.1
"""How often the waiting thread looks up: for progress, and for an interrupt from the keyboard."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is."""

    points: int
    total_points: int
    elapsed_s: float

    @property
    def fraction(self) -> float:
        """Share that is done, 0 to 1."""
        return self.points / self.total_points if self.total_points else 1.0

    @property
    def points_per_s(self) -> float:
        """Mean rate so far."""
        return self.points / self.elapsed_s if self.elapsed_s > 0 else 0.0

    @property
    def remaining_s(self) -> float:
        """Seconds that the rest takes at this rate."""
        rate = self.points_per_s
        return (self.total_points - self.points) / rate if rate else float("inf")


OnProgress = Callable[[Progress], object]
"""Called about ten times a second; ``False`` cancels the run."""


class Stop:
    """A stop sign that workers look at."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def __call__(self) -> bool:
        """Whether to stop."""
        return self._event.is_set()

    def set(self) -> None:
        """Ask all workers to stop."""
        self._event.set()


def default_threads() -> int:
    """One thread for each processor that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def run(
    units: Iterable[int],
    work: Callable[[int], T],
    consume: Callable[[int, T], None],
    *,
    points_of: Callable[[int], int],
    total_points: int,
    threads: int,
    stop: Stop,
    on_progress: OnProgress | None,
) -> None:
    """Run ``work`` on every unit in threads, and ``consume`` the results in order, in this thread.

    Raises
    ------
    SweepCancelledError
        ``on_progress`` returned False; everything before has been consumed.
    KeyboardInterrupt
        Passed on once the workers have stopped.
    """
    meter = Meter(total_points, on_progress)
    waiting = enumerate(units)
    running: dict[Future[T], tuple[int, int]] = {}
    ready: dict[int, tuple[int, T]] = {}
    consumed = 0
    with ThreadPoolExecutor(threads, thread_name_prefix="sweep") as pool:
        try:
            while True:
                # results that wait for their turn count, so that one slow unit cannot fill memory
                room = 3 * threads - len(running) - len(ready)
                for turn, unit in islice(waiting, max(0, room)):
                    running[pool.submit(work, unit)] = (turn, unit)
                if not running:
                    break
                finished, _ = wait(running, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
                for future in finished:
                    turn, unit = running.pop(future)
                    ready[turn] = (unit, future.result())
                while consumed in ready:
                    unit, result = ready.pop(consumed)
                    consume(unit, result)
                    meter.add(points_of(unit))
                    consumed += 1
                meter.report()
        except BaseException:
            stop.set()
            for future in running:
                future.cancel()
            raise


class Meter:
    """Counts points, and reports."""

    def __init__(self, total_points: int, on_progress: OnProgress | None) -> None:
        self._total, self._tell = total_points, on_progress
        self._started = time.perf_counter()
        self._points = 0

    def add(self, points: int) -> None:
        """Count points that are done."""
        self._points += points

    def report(self) -> None:
        """Tell how far the run is; raises if the answer is to stop."""
        if self._tell is None:
            return
        elapsed_s = time.perf_counter() - self._started
        if self._tell(Progress(self._points, self._total, elapsed_s)) is False:
            raise SweepCancelledError(
                f"cancelled after {self._points:,} of {self._total:,} points",
                fix="what was found so far is in .partial of this error",
            )
