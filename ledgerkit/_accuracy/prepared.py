"""Rows priced once, so that host constants can be fitted without pricing them again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ledgerkit._accuracy.setups import BURST_VARIATION, Setup
from ledgerkit._steady.formula import Load, Numbers, Times, closed_loop
from ledgerkit._steady.options import Serving, serving_constant
from ledgerkit._steady.work import Points, load, phase_seconds, seats, totals, without_host
from ledgerkit.kernels import columns as c
from ledgerkit.kernels import step as kernels

if TYPE_CHECKING:
    from ledgerkit._accuracy.rows import Row
    from ledgerkit.costs.table import CostTable

__all__ = ["PATHS", "Constants", "Prepared", "prepare", "serving_of"]

PATHS = (("trtllm", ""), ("vllm", ""), ("sglang", "burst"), ("sglang", "fixed"))
"""Engine and client of each fitted request path; the empty client stands for all."""


@dataclass(frozen=True, slots=True)
class Constants:
    """The eight host constants."""

    host_step_s: float
    host_sequence_s: float
    host_prefill_kernel_s: float
    wait_share: float
    request_path_s: tuple[float, float, float, float]
    """In the order of ``PATHS``."""

    def vector(self) -> Numbers:
        """As an array, for fitting."""
        return np.array([
            self.host_step_s, self.host_sequence_s, self.host_prefill_kernel_s, self.wait_share,
            *self.request_path_s,
        ])  # fmt: skip

    @classmethod
    def of(cls, vector: Numbers) -> Constants:
        """From an array."""
        step, sequence, kernel, wait, *paths = (float(value) for value in vector)
        return cls(step, sequence, kernel, wait, (paths[0], paths[1], paths[2], paths[3]))

    def path_s(self, engine: str, client: str) -> float:
        """Request path of a row; that of a plain server for an engine that was not fitted."""
        for (name, kind), seconds in zip(PATHS, self.request_path_s, strict=True):
            if name == engine and kind in ("", client):
                return seconds
        return serving_constant("request_path_s").mid


@dataclass(frozen=True, slots=True)
class Prepared:
    """Priced rows; arrays over rows, host times left out of every second."""

    loads: Load
    work_s: Numbers
    """Of a decode step."""
    kernels: Numbers
    kernel_s: Numbers
    sequences: Numbers
    chunk_s: Numbers
    """float64[rows, chunks]: work of each chunk of a prompt alone; NaN beyond the last."""
    path: Numbers
    """Index into ``PATHS``; -1 = not fitted."""
    in_step: Numbers
    """1 where requests stay in step, so that the wait share is not the fitted one."""

    def load(self, constants: Constants) -> Load:
        """Put host constants in."""
        host = constants.host_step_s + constants.host_sequence_s * self.sequences
        single = constants.host_step_s + constants.host_sequence_s
        launch = self.kernels * constants.host_prefill_kernel_s
        chunks = np.fmax(self.chunk_s, launch[:, None])
        alone = np.where(np.isnan(self.chunk_s), 0.0, chunks).sum(axis=1)
        paths = np.array([*constants.request_path_s, serving_constant("request_path_s").mid])
        return replace(
            self.loads,
            step_s=self.work_s + self.kernels * self.kernel_s + host,
            launch_s=launch,
            separate_host_s=np.full_like(launch, single),
            alone_s=alone + self.loads.chunks * single,
            wait_share=np.where(
                self.in_step > 0, serving_constant("wait_share_in_step").mid, constants.wait_share
            ),
            request_path_s=paths[self.path.astype(int)],
        )

    def times(self, constants: Constants) -> Times:
        """Predict every row."""
        return closed_loop(self.load(constants))


def serving_of(row: Row, constants: Constants | None = None) -> Serving:
    """Load of a row: how its client sends, and the fitted constants if there are any."""
    variation = 0.0 if row.fixed_lengths else BURST_VARIATION
    if constants is None:
        return Serving(length_variation=variation)
    path_s = constants.path_s(row.engine, row.client)
    return Serving(length_variation=variation, request_path_s=path_s)


def _chunks(table: CostTable, prompt: int) -> list[float]:
    """Work of each chunk of a prompt, in seconds."""
    ops, links = table.ops["mid"][0], table.link_rows["mid"][0]
    scalars = without_host(table.scalars["mid"][0])
    found = []
    for start in range(0, prompt, table.chunk_tokens):
        tokens = min(table.chunk_tokens, prompt - start)
        found.append(
            kernels.step(
                ops, links, scalars, float(tokens), float(start), 1.0, float(tokens),
                float(start + tokens >= prompt), 1.0, np.zeros((len(ops), c.AMOUNTS)),
                np.zeros((len(links), c.LINK_AMOUNTS)), np.zeros(c.HOST_AMOUNTS),
            )
        )  # fmt: skip
    return found


def prepare(rows: list[Row], setups: list[Setup]) -> Prepared:
    """Price aggregated rows."""
    loads, work, names, chunk_lists = [], [], [], []
    for row, setup in zip(rows, setups, strict=True):
        table, workload = setup.table(), setup.workload
        # a server that was measured had room for one sequence on each rank, whatever we count
        count = max_seats(table, setup)
        one = [np.array([float(x)]) for x in (
            workload.prompt_tokens, 0, workload.output_tokens, workload.concurrency,
            min(workload.concurrency, count),
        )]  # fmt: skip
        points = Points.whole(table, *one)
        serving = serving_of(row)
        loads.append(load(table, points, serving))
        work.append(float(phase_seconds(totals(table, points, "mid", host=False), 1)[0]))
        scalars = table.scalars["mid"][1]
        names.append((
            scalars[c.KERNELS], scalars[c.KERNEL_S], float(points.sequences[0]),
            float(_path(row)), float(serving.in_step(table)),
        ))  # fmt: skip
        chunk_lists.append(_chunks(table, workload.prompt_tokens))
    columns = np.array(names, dtype=np.float64).T
    widest = max(map(len, chunk_lists))
    return Prepared(
        loads=Load(*(np.concatenate([getattr(one, name) for one in loads])
                     for name in Load.__dataclass_fields__)),
        work_s=np.array(work), kernels=columns[0], kernel_s=columns[1], sequences=columns[2],
        chunk_s=np.array([one + [np.nan] * (widest - len(one)) for one in chunk_lists]),
        path=columns[3], in_step=columns[4],
    )  # fmt: skip


def max_seats(table: CostTable, setup: Setup) -> int:
    """Seats of a row; at least one for each attention rank."""
    from ledgerkit.errors import CapacityError

    try:
        return seats(table, setup.workload.decode_context).count
    except CapacityError:
        return table.deployment.dp_attention


def _path(row: Row) -> int:
    for i, (engine, client) in enumerate(PATHS):
        if engine == row.engine and client in ("", row.client):
            return i
    return -1
