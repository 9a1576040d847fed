"""Run the kernel in slices: progress, cancel, an end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ledgerkit._simulate.arrivals import LONGEST_S
from ledgerkit._simulate.notice import told_if_cold
from ledgerkit.errors import LedgerError, SimulationCancelledError, WorkloadError
from ledgerkit.kernels import batch, serving, simulator

if TYPE_CHECKING:
    from ledgerkit._simulate.prepare import Arrays

SLICE = 50_000
"""Iterations between two looks at the clock: a few hundredths of a second."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is."""

    requests: int
    """Answered or rejected so far."""
    total_requests: int
    iterations: int
    elapsed_s: float

    @property
    def fraction(self) -> float:
        """Share that is done, 0 to 1."""
        return self.requests / self.total_requests


OnProgress = Callable[[Progress], object]
"""Called after each slice; ``False`` cancels the run."""


def run(arrays: Arrays, progress: OnProgress | None, most_iterations: int | None = None) -> bool:
    """Run to the end, or to ``most_iterations``; returns whether it came to the end.

    Raises
    ------
    SimulationCancelledError
        ``progress`` returned False.
    WorkloadError
        The simulated time is beyond what the clock can count.
    """
    begun = time.perf_counter()
    a = arrays
    counters, total = a.counters, len(a.asked)
    simulator.start(a.replicas, a.slots, a.ring, counters, a.ops, a.layout, a.whole, a.part)
    ended = simulator.RUNNING
    while ended == simulator.RUNNING:
        steps = SLICE
        if most_iterations is not None:
            steps = min(steps, most_iterations - int(counters[serving.N_STEPS]))
            if steps <= 0:
                break
        with told_if_cold(silent=progress is not None):
            ended = simulator.run(*a.inputs(steps))
        if progress is not None:
            done = int(counters[serving.N_FINISHED] + counters[serving.N_REJECTED])
            state = Progress(done, total, int(counters[serving.N_STEPS]),
                             time.perf_counter() - begun)  # fmt: skip
            if progress(state) is False:
                raise SimulationCancelledError(
                    "the simulation was cancelled",
                    given=f"{done:,} of {total:,} requests answered",
                )  # fmt: skip
    if ended == simulator.LATE:
        raise WorkloadError(
            "the run takes longer than its clock can tell", allowed=f"up to {LONGEST_S:,.0f} s",
            given=f"{int(counters[serving.N_FINISHED]):,} of {total:,} requests answered by then",
            fix="simulate fewer requests, or more replicas",
        )  # fmt: skip
    if ended == simulator.STUCK:
        raise LedgerError(
            "the simulated engine makes no progress", given=f"{total:,} requests",
            allowed="runs that end", fix="please report this run",
        )  # fmt: skip
    batch.expand(a.ops, a.layout, a.rows, a.steps)
    return ended == simulator.DONE
