"""Feed-forward kinds: dense and mixture of experts."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ledgerkit.spec._base import Count, Frozen, Size


class DenseFfn(Frozen):
    """A dense MLP: ``matrices`` = 3 with a gate (SwiGLU, GeGLU), 2 without."""

    kind: Literal["dense"] = "dense"
    intermediate_size: Size
    matrices: Literal[2, 3] = 3


class MoeFfn(Frozen):
    """Routed experts, with shared experts and a dense MLP beside them where the model has them.

    Examples
    --------
    >>> MoeFfn(
    ...     num_experts=256,
    ...     num_experts_per_tok=8,
    ...     moe_intermediate_size=2048,
    ...     shared_intermediate_size=2048,
    ... ).num_experts_per_tok
    8
    """

    kind: Literal["moe"] = "moe"
    num_experts: Size
    num_experts_per_tok: Size
    moe_intermediate_size: Size
    expert_hidden_size: Size | None = None
    """Width of what an expert sees; None = hidden_size (LatentMoE has less)."""
    shared_intermediate_size: Count = 0
    """Total width of the shared experts; 0 = none."""
    dense_intermediate_size: Count = 0
    """Width of a dense MLP that runs beside the experts (Gemma 4); 0 = none."""
    matrices: Literal[2, 3] = 3
    n_group: Size = 1
    topk_group: Size = 1
    """Node-limited routing: experts come from ``topk_group`` of ``n_group`` groups."""

    @model_validator(mode="after")
    def _topk_fits(self) -> Self:
        if self.num_experts_per_tok > self.num_experts:
            msg = f"num_experts_per_tok {self.num_experts_per_tok} > num_experts {self.num_experts}"
            raise ValueError(msg)
        return self


class NoFfn(Frozen):
    """A layer without a feed-forward block."""

    kind: Literal["none"] = "none"


FeedForward = Annotated[DenseFfn | MoeFfn | NoFfn, Field(discriminator="kind")]
