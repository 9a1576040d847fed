"""From the cost table to the seconds that the closed form needs, for one or many points."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ledgerkit._steady.formula import Load, Numbers
from ledgerkit._steady.options import Serving
from ledgerkit.costs.memory import stage_bytes
from ledgerkit.costs.table import CostTable, Edge
from ledgerkit.errors import CapacityError
from ledgerkit.kernels import columns as c
from ledgerkit.kernels import step as kernels
from ledgerkit.spec.deployment import Workload
from ledgerkit.spec.workpoint import WorkPoint

SeatLimit = Literal["memory", "max_num_seqs", "given"]
_TIME = 4


@dataclass(frozen=True, slots=True)
class Seats:
    """Sequences that one replica runs at once, and what sets the number."""

    count: int
    limit: SeatLimit


def seats(table: CostTable, context: int, given: int | None = None) -> Seats:
    """Sequences of this context that a replica runs at once.

    In a steady load sequences are in all phases of their answers, so ``context`` is the mean one.

    Raises
    ------
    CapacityError
        Not even one sequence per attention rank fits.
    """
    if given is not None:
        return Seats(given, "given")
    holdings, ranks = list(table.holdings), table.deployment.dp_attention
    most = table.deployment.max_num_seqs or table.profile.max_num_seqs
    free = math.inf
    empty, one = (stage_bytes(holdings, context, n) for n in (0.0, 1.0))
    for fixed, with_one in zip(empty, one, strict=True):
        if with_one > fixed:
            free = min(free, table.cache_room(fixed) / (with_one - fixed))
    if free < 1:
        raise CapacityError(
            f"not one sequence of {context} tokens fits beside the weights of {table.model.slug} "
            f"on {table.deployment.devices} x {table.hardware.slug}",
            given=f"{max(empty) / 1e9:.1f} GB of weights per device",
            allowed="weights that leave room for a sequence",
            fix="use more devices or fewer bits, or state seats= if you know that it runs",
        )  # fmt: skip
    if free >= most:
        return Seats(most * ranks, "max_num_seqs")
    return Seats(math.floor(free) * ranks, "memory")


@dataclass(frozen=True, slots=True)
class Points:
    """Points of one table; arrays of one length."""

    prompt_tokens: Numbers
    cached_tokens: Numbers
    output_tokens: Numbers
    concurrency: Numbers
    running: Numbers
    sequences: Numbers
    """Sequences of one micro-batch on the fullest attention rank."""
    group_tokens: Numbers
    """Tokens that the experts of one micro-batch see."""
    batches: Numbers
    """Micro-batches of a decode step."""

    @classmethod
    def whole(
        cls, table: CostTable, prompt_tokens: Numbers, cached_tokens: Numbers,
        output_tokens: Numbers, concurrency: Numbers, running: Numbers,
    ) -> Points:  # fmt: skip
        """Points with whole sequences, rounded as ``lk.ledger`` rounds them."""
        layout = table.deployment
        per_rank = np.ceil(running / layout.dp_attention)
        batches = np.minimum(float(layout.pp), per_rank)
        return cls(
            prompt_tokens, cached_tokens, output_tokens, concurrency, running,
            np.ceil(per_rank / batches), np.ceil(running / batches), batches,
        )  # fmt: skip

    @classmethod
    def mean(cls, table: CostTable, workload: Workload, running: float) -> Points:
        """One point at a mean number of sequences, of which each rank has at least one."""
        layout = table.deployment

        per_rank = max(1.0, running / layout.dp_attention)
        batches = min(float(layout.pp), per_rank)

        def one(value: float) -> Numbers:
            return np.array([value], dtype=np.float64)

        return cls(
            one(workload.prompt_tokens), one(workload.cached_tokens), one(workload.output_tokens),
            one(workload.concurrency), one(running), one(per_rank / batches),
            one(max(1.0, running) / batches), one(batches),
        )  # fmt: skip

    @property
    def context(self) -> Numbers:
        """Context at which decode is priced, as in ``Workload.decode_context``."""
        return self.prompt_tokens + np.floor(self.output_tokens / 2.0)

    def work_point(self, workload: Workload) -> WorkPoint:
        """Make the point (of one) that entries are drawn up at."""
        return WorkPoint(
            prompt_tokens=workload.prompt_tokens,
            cached_tokens=workload.cached_tokens,
            context=workload.decode_context,
            sequences=float(self.sequences[0]),
            group_tokens=float(self.group_tokens[0]),
            micro_batches=float(self.batches[0]),
        )


def without_host(scalars: Numbers) -> Numbers:
    """Scalars of a step that costs work and communication only."""
    bare = scalars.copy()
    bare[..., [c.KERNELS, c.HOST_STEP_S, c.HOST_SEQUENCE_S]] = 0.0
    return bare


def totals(table: CostTable, points: Points, edge: Edge, *, host: bool = True) -> Numbers:
    """Totals of prefill and decode: float64[points, phase, ledger, resource]."""
    out = np.empty((len(points.running), 2, 3, 5))
    scalars = table.scalars[edge]
    kernels.totals(
        table.ops[edge], table.link_rows[edge], scalars if host else without_host(scalars),
        table.op_ledger, points.prompt_tokens, points.cached_tokens, points.context,
        points.sequences, points.group_tokens, points.batches,
        np.full_like(points.running, float(table.chunk_tokens)), out,
    )  # fmt: skip
    return out


def phase_seconds(out: Numbers, phase: int) -> Numbers:
    """Seconds of one phase of each point, summed without rounding."""
    return np.array([math.fsum(row[phase, :, _TIME]) for row in out])


def _verify_s(table: CostTable, points: Points, i: int, tokens: float, edge: Edge) -> float:
    """Seconds of the work of a decode step with so many query tokens for each sequence."""
    ops, links = table.ops[edge][1], table.link_rows[edge][1]
    sequences, group = points.sequences[i], points.group_tokens[i]
    return kernels.step(
        ops, links, without_host(table.scalars[edge][1]), tokens, points.context[i] - 1.0,
        sequences, group * tokens, sequences * tokens, points.batches[i],
        np.zeros((len(ops), c.AMOUNTS)), np.zeros((len(links), c.LINK_AMOUNTS)),
        np.zeros(c.HOST_AMOUNTS),
    )  # fmt: skip


def draft_s(table: CostTable, points: Points, serving: Serving, edge: Edge) -> Numbers:
    """Seconds that drafting and verifying add to a decode step.

    A verified token costs what a further query token costs; drafting one costs a mean layer, as
    with a multi-token-prediction block (a judgement).
    """
    found = np.zeros_like(points.running)
    if serving.draft_tokens:
        for i in range(len(found)):
            one = _verify_s(table, points, i, 1.0, edge)
            many = _verify_s(table, points, i, 1.0 + serving.draft_tokens, edge)
            found[i] = many - one + serving.draft_tokens * one / table.model.num_hidden_layers
    return found


def load(
    table: CostTable, points: Points, serving: Serving, edge: Edge = "mid", factor: float = 1.0
) -> Load:
    """Price the points: everything that the closed form needs.

    ``factor`` is that of a calibration, which ``table`` already holds for decode.
    """
    deployment = table.deployment
    out, bare = totals(table, points, edge), totals(table, points, edge, host=False)
    scalars = table.scalars[edge][0]

    def all_points(value: float) -> Numbers:
        return np.full_like(points.running, float(value))

    new_tokens = points.prompt_tokens - points.cached_tokens
    # attention ranks prefill side by side, and share experts and links: the square root of their
    # number is between full and no overlap; pipeline stages work on different prompts
    side_by_side = math.sqrt(deployment.dp_attention) * deployment.pp
    drafting = draft_s(table, points, serving, edge)
    return Load(
        concurrency=points.concurrency,
        running=points.running,
        steps=points.output_tokens / serving.tokens_per_step,
        tokens_per_step=all_points(serving.tokens_per_step),
        step_s=phase_seconds(out, 1) + drafting,
        draft_s=drafting,
        prompt_s=phase_seconds(bare, 0) / side_by_side,
        chunks=np.ceil(new_tokens / table.chunk_tokens),
        launch_s=all_points(scalars[c.KERNELS] * scalars[c.HOST_PREFILL_KERNEL_S]),
        separate_host_s=all_points(scalars[c.HOST_STEP_S] + scalars[c.HOST_SEQUENCE_S]),
        alone_s=phase_seconds(out, 0),
        mixed=all_points(serving.mixes(table)),
        wait_share=all_points(serving.waits(table)),
        request_path_s=all_points(serving.path_s()),
        factor=all_points(factor),
    )
