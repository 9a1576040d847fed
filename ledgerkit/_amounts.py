"""Run the kernels on one point: amounts of every operation, link and holding.

One point is interpreted (see ``ledgerkit.kernels._jit``) unless compiled kernels are loaded anyway,
or it has so many prefill chunks that loading them is sooner done. Both give the same bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ledgerkit.costs.table import EDGES, CostTable, Edge, Level
from ledgerkit.kernels import columns as c
from ledgerkit.kernels import step as kernels
from ledgerkit.kernels._jit import Kernel
from ledgerkit.spec.workpoint import WorkPoint

Array = npt.NDArray[np.float64]

_INTERPRETED_ROWS = 20_000
"""Takes a twentieth of a second, and a ledger with all entries does it ten times."""


@dataclass(frozen=True, slots=True, eq=False)
class PhaseAmounts:
    """What one phase costs, operation by operation."""

    ops: Array
    """float64[n_ops, AMOUNTS]"""
    links: Array
    """float64[n_links, LINK_AMOUNTS]"""
    host: Array
    """float64[HOST_AMOUNTS]"""
    seconds: float


def _interpret(table: CostTable, point: WorkPoint) -> bool:
    if kernels.step.loaded:
        return False
    chunks = math.ceil((point.prompt_tokens - point.cached_tokens) / table.chunk_tokens)
    return (chunks + 1) * len(table.operations) <= _INTERPRETED_ROWS


def run_phase(
    table: CostTable, phase: int, point: WorkPoint, edge: Edge = "mid", level: Level = "device"
) -> PhaseAmounts:
    """Price one phase (0 = prefill, 1 = decode) at a point.

    ``level`` other than ``device`` counts all layers, and copies once (``tp_once``, ``once``) or
    as they are (``ranks``); its seconds mean nothing.
    """
    ops = table.ops[edge][phase] if level == "device" else table.amounts_rows(level, phase)
    links = table.link_rows[edge][phase]
    if level != "device":
        links = links.copy()
        links[:, c.L_AMOUNT_COUNT] = links[:, c.L_COUNT]
    scalars = table.scalars[edge][phase]
    rows = ops, links, scalars
    if phase:
        batch = point.sequences, point.group_tokens, point.micro_batches
        return _run(kernels.decode, table, point, rows, (float(point.context), *batch))
    request = float(point.prompt_tokens), float(point.cached_tokens), float(table.chunk_tokens)
    return _run(kernels.prefill, table, point, rows, request)


def run_step(
    table: CostTable, point: WorkPoint, scalars: Array, phase: int,
    where: tuple[float, float, float, float, float, float],
) -> PhaseAmounts:  # fmt: skip
    """Price one step of a phase: query and cached tokens, sequences, group, sampled, batches."""
    rows = table.ops["mid"][phase], table.link_rows["mid"][phase], scalars
    return _run(kernels.step, table, point, rows, where)


def _run(
    kernel: Kernel[..., float], table: CostTable, point: WorkPoint,
    rows: tuple[Array, Array, Array], where: tuple[float, ...],
) -> PhaseAmounts:  # fmt: skip
    ops = np.zeros((len(rows[0]), c.AMOUNTS))
    links = np.zeros((len(rows[1]), c.LINK_AMOUNTS))
    host = np.zeros(c.HOST_AMOUNTS)
    if not _interpret(table, point):
        seconds = kernel(*rows, *where, ops, links, host)
        return PhaseAmounts(ops, links, host, seconds)
    sums = [total.tolist() for total in (ops, links, host)]
    seconds = kernel.plain(*(given.tolist() for given in rows), *where, *sums)
    return PhaseAmounts(
        np.array(sums[0]), np.array(sums[1]).reshape(links.shape), np.array(sums[2]), seconds
    )


def run_totals(table: CostTable, point: WorkPoint) -> dict[Edge, Array]:
    """Totals by edge: float64[phase, ledger, (flop, read, write, communicate, time)]."""
    where = [
        np.array([value], dtype=np.float64)
        for value in (point.prompt_tokens, point.cached_tokens, point.context, point.sequences,
                      point.group_tokens, point.micro_batches, table.chunk_tokens)
    ]  # fmt: skip
    interpret = _interpret(table, point)
    found: dict[Edge, Array] = {}
    for edge in EDGES:
        out = np.empty((1, 2, 3, 5))
        rows = table.ops[edge], table.link_rows[edge], table.scalars[edge]
        arrays: list[Any] = [*rows, table.op_ledger, *where, out]
        if interpret:
            lists = [array.tolist() for array in arrays]
            kernels.totals.plain(*lists)
            out[:] = lists[-1]
        else:
            kernels.totals(*arrays)
        found[edge] = out[0]
    return found
