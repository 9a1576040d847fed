r"""Captured graphs: cheap launches for a padded batch.

A graph exists for some numbers of sequences; a step between two of them runs as the larger. It
saves the host's launch of every kernel and adds the work of sequences that are not there.

Source: vLLM CUDA graphs. Worked: sizes 1, 2, 4, 8, 16, 24: 9 sequences run as 16, 44 % for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ledgerkit.costs.scheduling.entry import SchedulingEntry, booked, check


@dataclass(frozen=True, slots=True)
class GraphPadding:
    """What a captured graph costs and saves in one step."""

    padded_sequences: int
    captured: bool
    """False: more sequences than the largest graph, so that the host launches each kernel."""
    entries: tuple[SchedulingEntry, ...]


def padded(sequences: int, sizes: Sequence[int]) -> int:
    """Sequences of the graph that a step runs in; as they are where no graph is large enough.

    Examples
    --------
    >>> padded(9, (1, 2, 4, 8, 16, 24)), padded(40, (1, 2, 4, 8, 16, 24))
    (16, 40)
    """
    check("sequences", sequences, 1)
    return min((size for size in sizes if size >= sequences), default=sequences)


def graph_padding(
    *,
    sequences: int,
    sizes: Sequence[int],
    flop_per_token: float,
    step_s: float | None = None,
    padded_step_s: float | None = None,
    kernels: int = 0,
    host_kernel_s: float = 0.0,
    kernel_s: float = 0.0,
) -> GraphPadding:
    """Book the padding of one decode step.

    Parameters
    ----------
    sequences : int
        That decode.
    sizes : sequence of int
        Captured ones.
    flop_per_token : float
        FLOP of one sequence's token.
    step_s, padded_step_s : float, optional
        Seconds of the step as it is and as it is padded.
    kernels : int
        Kernels of a step.
    host_kernel_s, kernel_s : float
        Seconds of launching one kernel from the host, and inside a graph.

    Returns
    -------
    GraphPadding

    Examples
    --------
    >>> graph_padding(sequences=9, sizes=(8, 16), flop_per_token=1e9).entries[0].amount
    7000000000.0
    """
    check("flop_per_token", flop_per_token, 0.0)
    size = padded(sequences, sizes)
    captured = any(one >= sequences for one in sizes)
    extra = {"padded": size, "sequences": sequences}
    entries = [
        SchedulingEntry(
            "sequences that are not there", "decode", "scheduling", "padding", "compute",
            flop_per_token * (size - sequences), "step",
            "flop_per_token * (padded - sequences)",
            {**extra, "flop_per_token": flop_per_token}, "next captured size", "exact",
        )
    ]  # fmt: skip
    if step_s is not None and padded_step_s is not None:
        entries.append(
            SchedulingEntry(
                "padding", "decode", "scheduling", "padding", "time", padded_step_s - step_s,
                "step", "padded_step_s - step_s",
                {"padded_step_s": padded_step_s, "step_s": step_s}, "next captured size",
            )
        )  # fmt: skip
    if captured:
        entries.append(
            SchedulingEntry(
                "launches by the host", "decode", "scheduling", "launch", "time",
                kernels * (kernel_s - host_kernel_s), "step",
                "kernels * (kernel_s - host_kernel_s)",
                {"kernels": kernels, "kernel_s": kernel_s, "host_kernel_s": host_kernel_s},
                "a graph is launched once; upper bound where the device is busier than the host",
            )
        )  # fmt: skip
    return GraphPadding(size, captured, booked(*entries))
