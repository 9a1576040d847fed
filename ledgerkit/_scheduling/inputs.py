"""What the closed forms need to know of a deployment, read off its cost table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ledgerkit._amounts import run_phase
from ledgerkit._scheduling.steps import draft_of_mtp, mixed_s, verify_s
from ledgerkit.costs.layout import split_and_copies
from ledgerkit.costs.linear import served_bytes
from ledgerkit.costs.memory import Residence
from ledgerkit.costs.scheduling import OutputLengths, Turn
from ledgerkit.costs.table import CostTable
from ledgerkit.errors import DeploymentError, WorkloadError
from ledgerkit.kernels import columns as c
from ledgerkit.spec.deployment import Workload
from ledgerkit.spec.feed_forward import MoeFfn
from ledgerkit.spec.workpoint import WorkPoint

__all__ = ["Inputs", "draft_of_mtp"]


@dataclass(frozen=True)
class Inputs:
    """A deployment at a workload; amounts are of the busiest device."""

    table: CostTable
    workload: Workload

    @property
    def context(self) -> int:
        """Context at which decode is priced."""
        return self.workload.decode_context

    def decode_s(self, sequences: int, tokens: int = 1, context: int | None = None) -> float:
        """Seconds of a decode step."""
        return verify_s(self.table, context or self.context, sequences, tokens)

    def mixed_s(self, chunk_tokens: int, past_tokens: int) -> float:
        """Seconds of a step with a chunk beside the sequences of the workload."""
        return mixed_s(
            self.table, chunk_tokens=chunk_tokens, past_tokens=past_tokens,
            sequences=self.workload.concurrency, context=self.context,
        )  # fmt: skip

    def prefill_s(self, cached_tokens: int) -> float:
        """Seconds of the prompt, so many of its tokens being cached."""
        changed = self.workload.model_dump() | {"cached_tokens": cached_tokens}
        point = WorkPoint.of(self.table.deployment, Workload(**changed))
        return run_phase(self.table, 0, point).seconds

    def turn_s(self, turn: Turn) -> float:
        """Seconds of one model call alone: its prefill, and its answer token by token."""
        layout, context = self.table.deployment, turn.context
        asked = Workload(
            prompt_tokens=context, output_tokens=turn.written, cached_tokens=turn.cached
        )
        seconds = run_phase(self.table, 0, WorkPoint.of(layout, asked)).seconds
        return seconds + (turn.written - 1) * self.decode_s(1, context=asked.decode_context)

    @property
    def kv_bytes_per_token(self) -> float:
        """Cache bytes that each further token adds for ever."""
        found = Residence.of(self.table.holdings).terms
        grown = [
            per_token / ratio for limit, ratio, block, per_token in found
            if block == 1 and limit == math.inf
        ]  # fmt: skip
        return float(sum(grown).max()) if grown else 0.0  # type: ignore[union-attr]

    def kept_bytes(self, tokens: float) -> float:
        """Cache bytes of one sequence that do not grow for ever: its windows and states."""
        found = Residence.of(self.table.holdings)
        kept = found.per_sequence + sum(
            per_token * min(tokens, limit) / ratio
            for limit, ratio, block, per_token in found.terms
            if block == 1 and limit < math.inf
        )
        return float(kept.max())

    @property
    def pool_bytes(self) -> float:
        """Room for the cache beside the weights."""
        return max(0.0, self.table.cache_room(self.resident_weight_bytes, "mid"))

    def flop_per_token(self, ledger: str) -> float:
        """Prefill FLOP of one token's weights in one ledger, head and expansion left out."""
        return math.fsum(
            op.stage_count * op.prefill.device.flop_per_token
            for op in self.table.operations
            if op.ledger == ledger and op.prefill.device.scope in (c.SCOPE_RANK, c.SCOPE_EXPERTS)
        )

    @property
    def flop_per_pair(self) -> float:
        """FLOP of one (query, key) pair in all layers that see the whole context."""
        return math.fsum(
            op.stage_count * op.prefill.device.flop_per_pair
            for op in self.table.operations
            if min(op.prefill.device.window, op.prefill.device.topk) == math.inf
            and not op.prefill.device.chunk
        )

    @property
    def expand_flop_per_token(self) -> float:
        """FLOP of expanding one latent in all layers (MLA)."""
        return math.fsum(
            op.stage_count * op.prefill.device.flop_per_token
            for op in self.table.operations
            if op.prefill.device.scope == c.SCOPE_CONTEXT
        )

    def weight_bytes(self, tokens: int) -> float:
        """Bytes of weights that a step of so many tokens reads."""
        total = 0.0
        for op in self.table.operations:
            work = op.prefill.device
            experts = work.experts * (1.0 - work.miss**tokens) if work.read_per_expert else 0.0
            total += op.stage_count * (work.read_per_step + work.read_per_expert * experts)
        return total

    @property
    def resident_weight_bytes(self) -> float:
        """Weights on the fullest device."""
        return float(Residence.of(self.table.holdings).base.max())

    @property
    def global_weight_bytes(self) -> float:
        """Weights outside the layers, on one device."""
        layout = self.table.deployment
        return math.fsum(
            served_bytes(weight, layout) * split_and_copies(weight, None, layout)[0]
            for weight in self.table.model.globals
        )

    def expert_bytes(self) -> float:
        """Bytes of one routed expert on a device, a mean over the layers that have any."""
        _, layers = self.experts()
        return (
            math.fsum(op.count * op.decode.device.read_per_expert for op in self.table.operations)
            / layers
        )

    def experts(self) -> tuple[MoeFfn, int]:
        """Experts of the first group that has them, and all layers with experts.

        Raises
        ------
        DeploymentError
            The model has none.
        """
        groups = [g for g in self.table.model.groups if isinstance(g.ffn, MoeFfn)]
        if not groups or not isinstance(groups[0].ffn, MoeFfn):
            raise DeploymentError(
                f"{self.table.model.slug} has no experts", given=self.table.model.slug,
                allowed="models with experts", fix="take one of them, see lk.models()",
            )  # fmt: skip
        return groups[0].ffn, sum(group.count for group in groups)

    def experts_s(self) -> tuple[float, float]:
        """Seconds of the routed experts in a decode step: where arithmetic binds, where bytes."""
        point = WorkPoint.of(self.table.deployment, self.workload)
        rows = run_phase(self.table, 1, point).ops
        routed = [
            i for i, op in enumerate(self.table.operations)
            if op.compute_account == "routed_experts"
        ]  # fmt: skip
        return (
            math.fsum(float(rows[i, c.A_TIME_COMPUTE]) for i in routed),
            math.fsum(float(rows[i, c.A_TIME_MEMORY]) for i in routed),
        )

    def lengths(self, given: Any) -> OutputLengths:
        """Output lengths from a name, a list or the object; the mean is the workload's."""
        if isinstance(given, OutputLengths):
            return given
        mean = self.workload.output_tokens
        if isinstance(given, str):
            made = {"fixed": OutputLengths.fixed, "uniform": OutputLengths.uniform,
                    "exponential": OutputLengths.exponential}  # fmt: skip
            if given in made:
                return made[given](mean)
        elif isinstance(given, Sequence) and not isinstance(given, bytes):
            return OutputLengths.empirical(given)
        raise WorkloadError(
            "output lengths are a name, a list of lengths or OutputLengths", given=given,
            allowed="fixed, uniform, exponential, or a list", fix="use lengths='exponential'",
        )  # fmt: skip


def rate(name: str, given: float | None, known: float | None) -> float:
    """A link rate that was given, or that the device has.

    Raises
    ------
    DeploymentError
        Neither.
    """
    found = given if given is not None else known
    if found is None:
        raise DeploymentError(f"the device states no rate for {name}", given=given,
                              allowed="bytes per second", fix=f"give {name}=")  # fmt: skip
    return found
