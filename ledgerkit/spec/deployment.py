"""Deployment and workload: how a model is served, and what it is asked to do."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator

from ledgerkit.errors import DeploymentError, WorkloadError
from ledgerkit.spec._base import Count, Frozen, Size, raise_from_validation
from ledgerkit.spec.cache import KV_DTYPES
from ledgerkit.spec.precision import check_weight_format

__all__ = ["Deployment", "Workload"]


class Deployment(Frozen):
    """How a model is laid out on devices and run by an engine.

    A replica is ``pp · tp · dp_attention`` devices.

    Examples
    --------
    >>> Deployment(tp=1, dp_attention=8, ep=8).devices
    8
    """

    weights: str | None = None
    """Storage format for projections, dense FFN and experts; None = as the checkpoint has them."""
    experts: str | None = None
    """Storage format for routed and shared experts; None = as ``weights`` says."""
    kv_dtype: str = "bf16"
    """Cache layout."""
    activations: str = "bf16"
    """Dtype of activations between layers: ``bf16`` or ``fp16``."""
    tp: Size = 1
    """Tensor-parallel ranks."""
    pp: Size = 1
    """Pipeline stages."""
    ep: Size = 1
    """Expert-parallel groups; divides ``tp · dp_attention``."""
    dp_attention: Size = 1
    """Attention data-parallel ranks."""
    engine: str = "vllm"
    """Engine profile, see ``lk.engines()``."""
    max_model_len: Size | None = None
    """Longest sequence in tokens; None = the model's own."""
    max_num_seqs: Size | None = None
    """Most sequences that run at once; None = the engine's default."""
    max_num_batched_tokens: Size | None = None
    """Tokens of one prefill chunk; None = the engine's default."""
    block_size: Size | None = None
    """Tokens of one cache block; None = the engine's default."""
    memory_fraction: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of device memory that the engine may use; None = the engine's default."""

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise_from_validation(error, DeploymentError, "Deployment", Deployment.model_fields)

    @field_validator("weights", "experts")
    @classmethod
    def _known_storage(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None:
            check_weight_format(str(info.field_name), value)
        return value

    @field_validator("kv_dtype")
    @classmethod
    def _known_layout(cls, value: str) -> str:
        if value not in KV_DTYPES:
            raise DeploymentError("unknown cache layout", given=value, allowed=", ".join(KV_DTYPES),
                                  fix="kv_dtype='bf16' suits every model")  # fmt: skip
        return value

    @field_validator("activations")
    @classmethod
    def _known_activations(cls, value: str) -> str:
        if value not in ("bf16", "fp16"):
            raise DeploymentError("unknown dtype of activations", given=value,
                                  allowed="bf16, fp16", fix="use activations='bf16'")  # fmt: skip
        return value

    @model_validator(mode="after")
    def _ep_divides(self) -> Deployment:
        ranks = self.tp * self.dp_attention
        if ranks % self.ep:
            raise DeploymentError(
                f"ep must divide tp · dp_attention = {ranks}", given=self.ep,
                allowed=f"divisors of {ranks}", fix=f"use ep={ranks} or ep=1",
            )  # fmt: skip
        return self

    @property
    def devices(self) -> int:
        """Devices of one replica."""
        return self.pp * self.tp * self.dp_attention

    @property
    def expert_shards(self) -> int:
        """Devices that each expert is split over."""
        return self.tp * self.dp_attention // self.ep


class Workload(Frozen):
    """What the deployment is asked to do, per replica.

    Examples
    --------
    >>> Workload(prompt_tokens=8192, output_tokens=512, concurrency=32).decode_context
    8448
    """

    prompt_tokens: Size
    """Tokens of a prompt, cached ones included."""
    output_tokens: Size
    """Tokens of an answer."""
    concurrency: Size = 1
    """Sequences that decode at once on a replica."""
    cached_tokens: Count = 0
    """Prompt tokens found in the prefix cache."""

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise_from_validation(error, WorkloadError, "Workload", Workload.model_fields)

    @model_validator(mode="after")
    def _something_to_prefill(self) -> Workload:
        if self.cached_tokens >= self.prompt_tokens:
            raise WorkloadError(
                "cached_tokens must be below prompt_tokens: at least one token is computed",
                given=self.cached_tokens, allowed=f"0 to {self.prompt_tokens - 1}",
                fix="prompt_tokens includes the cached ones",
            )  # fmt: skip
        return self

    @property
    def new_tokens(self) -> int:
        """Prompt tokens that prefill computes."""
        return self.prompt_tokens - self.cached_tokens

    @property
    def decode_context(self) -> int:
        """Context at which a decode step is priced: the middle of the answer."""
        return self.prompt_tokens + self.output_tokens // 2

    @property
    def hold_context(self) -> int:
        """Context at which memory is counted: the end of the answer."""
        return self.prompt_tokens + self.output_tokens

    def sequences_per_rank(self, deployment: Deployment) -> int:
        """Sequences of the fullest attention rank."""
        return math.ceil(self.concurrency / deployment.dp_attention)
