"""Run the kernels on one point: amounts of every operation, link and holding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ledgerkit.costs.table import EDGES, CostTable, Edge, Level
from ledgerkit.kernels import columns as c
from ledgerkit.kernels import step as kernels
from ledgerkit.spec.workpoint import WorkPoint

Array = npt.NDArray[np.float64]


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
    op_sum = np.zeros((len(ops), c.AMOUNTS))
    link_sum = np.zeros((len(links), c.LINK_AMOUNTS))
    host_sum = np.zeros(c.HOST_AMOUNTS)
    if phase:
        seconds = kernels.decode(
            ops, links, scalars, float(point.context), point.sequences, point.group_tokens,
            point.micro_batches, op_sum, link_sum, host_sum,
        )  # fmt: skip
    else:
        seconds = kernels.prefill(
            ops, links, scalars, float(point.prompt_tokens), float(point.cached_tokens),
            float(table.chunk_tokens), op_sum, link_sum, host_sum,
        )  # fmt: skip
    return PhaseAmounts(op_sum, link_sum, host_sum, seconds)


def run_totals(table: CostTable, point: WorkPoint) -> dict[Edge, Array]:
    """Totals by edge: float64[phase, ledger, (flop, read, write, communicate, time)]."""

    def one(value: float) -> Array:
        return np.array([value], dtype=np.float64)

    found: dict[Edge, Array] = {}
    for edge in EDGES:
        out = np.empty((1, 2, 3, 5))
        kernels.totals(
            table.ops[edge], table.link_rows[edge], table.scalars[edge], table.op_ledger,
            one(point.prompt_tokens), one(point.cached_tokens), one(point.context),
            one(point.sequences), one(point.group_tokens), one(point.micro_batches),
            one(table.chunk_tokens), out,
        )  # fmt: skip
        found[edge] = out[0]
    return found
