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

    @classmethod
    def of(cls, deployment: Deployment, workload: Workload) -> WorkPoint:
        """Busiest device: ranks and micro-batches round up.

        With ``pp`` stages a step is ``pp`` micro-batches, one in each stage.
        """
        per_rank = workload.sequences_per_rank(deployment)
        return cls(
            prompt_tokens=workload.prompt_tokens,
            cached_tokens=workload.cached_tokens,
            context=workload.decode_context,
            sequences=float(math.ceil(per_rank / deployment.pp)),
            group_tokens=float(math.ceil(workload.concurrency / deployment.pp)),
        )

    @classmethod
    def mean(cls, deployment: Deployment, workload: Workload) -> WorkPoint:
        """Mean device: sums over all devices are this times their number."""
        return cls(
            prompt_tokens=workload.prompt_tokens,
            cached_tokens=workload.cached_tokens,
            context=workload.decode_context,
            sequences=workload.concurrency / deployment.dp_attention / deployment.pp,
            group_tokens=workload.concurrency / deployment.pp,
        )
