"""The point at which a deployment is priced, as the kernels see it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ledgerkit.spec.deployment import Deployment, Workload


@dataclass(frozen=True, slots=True)
class WorkPoint:
    """Numbers of one (deployment, workload)."""

    prompt_tokens: int
    cached_tokens: int
    context: int
    """Context of the decode step."""
    sequences: float
    """Sequences of one micro-batch on the fullest attention rank."""
    group_tokens: float
    """Tokens that the experts of one micro-batch see."""
    micro_batches: float
    """Micro-batches that a decode step sends through the pipeline."""

    @property
    def new_tokens(self) -> int:
        """Prompt tokens that prefill computes."""
        return self.prompt_tokens - self.cached_tokens

    @classmethod
    def of(cls, deployment: Deployment, workload: Workload) -> WorkPoint:
        """Busiest device: ranks and micro-batches round up.

        With ``pp`` stages a step is ``pp`` micro-batches, one in each stage, or fewer where there
        are not as many sequences.
        """
        per_rank = workload.sequences_per_rank(deployment)
        batches = min(deployment.pp, per_rank)
        return cls(
            prompt_tokens=workload.prompt_tokens,
            cached_tokens=workload.cached_tokens,
            context=workload.decode_context,
            sequences=float(math.ceil(per_rank / batches)),
            group_tokens=float(math.ceil(workload.concurrency / batches)),
            micro_batches=float(batches),
        )

    @classmethod
    def mean(cls, deployment: Deployment, workload: Workload) -> WorkPoint:
        """Mean device: sums over the devices of a stage are this times their number."""
        batches = min(deployment.pp, workload.sequences_per_rank(deployment))
        return cls(
            prompt_tokens=workload.prompt_tokens,
            cached_tokens=workload.cached_tokens,
            context=workload.decode_context,
            sequences=workload.concurrency / deployment.dp_attention / batches,
            group_tokens=workload.concurrency / batches,
            micro_batches=float(batches),
        )
