r"""Continuous against static batching: idle slots.

A static batch of B runs until its longest answer ends, :math:`E[\max_B O]` steps for
:math:`B \cdot E[O]` tokens; continuous batching refills a slot at once. With equal steps the gain
is :math:`E[\max_B O] / E[O]`; where steps get shorter as slots drain, with
:math:`A_b` steps at which b slots work,

.. math:: \sum_b t(b) A_b \,/\, (E[O] \, t(B)).

Source: Orca (iteration-level scheduling); order statistics. Worked: exponential answers gain
:math:`H_B`: 2.72 (8 slots), 4.06 (32), 5.43 (128); equal ones gain nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ledgerkit.costs.scheduling.entry import SchedulingEntry, booked, check
from ledgerkit.costs.scheduling.lengths import OutputLengths

SOURCE = "a static batch ends with its longest answer; a continuous one refills the slot"


@dataclass(frozen=True, slots=True)
class Batching:
    """What continuous batching is worth against static batches of the same slots."""

    gain: float
    """Throughput over that of static batches."""
    idle_share: float
    """Of the slot-steps of a static batch, those that produce nothing."""
    entries: tuple[SchedulingEntry, ...]


def continuous_batching(
    lengths: OutputLengths,
    slots: int,
    step_s: Callable[[int], float] | None = None,
    schedule_s: float = 0.0,
) -> Batching:
    """Compare continuous batching with static batches, per batch of ``slots`` requests.

    Parameters
    ----------
    lengths : OutputLengths
        Of the answers.
    slots : int
        Sequences that run at once.
    step_s : callable, optional
        Seconds of a decode step with so many busy slots; None = all steps alike.
    schedule_s : float
        Host seconds by which deciding anew before each step prolongs it.

    Returns
    -------
    Batching

    Examples
    --------
    >>> round(continuous_batching(OutputLengths.exponential(200), 32).gain, 2)
    4.06
    """
    check("schedule_s", schedule_s, 0.0)
    busy = lengths.busy_steps(slots)
    longest, mean = float(busy.sum()), lengths.mean
    entries = [
        SchedulingEntry(
            "idle steps", "decode", "scheduling", "padding", "steps", mean - longest, "batch",
            "mean_output - longest_output", {"mean_output": mean, "longest_output": longest},
            SOURCE,
        )
    ]  # fmt: skip
    gain = longest / mean
    if step_s is not None:
        full = step_s(slots)
        drain = tuple(float(n) * step_s(b) for b, n in enumerate(busy, start=1) if n)
        static = math.fsum(drain)
        gain = static / (mean * (full + schedule_s))
        entries.append(
            SchedulingEntry(
                "idle slots", "decode", "scheduling", "padding", "time", mean * full - static,
                "batch", "mean_output * full_step_s - sum(s for s in drain_s)",
                {"mean_output": mean, "full_step_s": full, "drain_s": drain}, SOURCE,
            )
        )  # fmt: skip
    entries.append(
        SchedulingEntry(
            "deciding before each step", "decode", "scheduling", "host", "time",
            mean * schedule_s, "batch", "mean_output * schedule_s",
            {"mean_output": mean, "schedule_s": schedule_s}, "host time of an engine step",
        )
    )  # fmt: skip
    return Batching(gain, 1.0 - mean / longest, booked(*entries))
