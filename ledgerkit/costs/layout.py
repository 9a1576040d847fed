"""Parallel layouts: what divides, what is copied, and what cannot be built."""

from __future__ import annotations

from ledgerkit.errors import DeploymentError, UnsupportedDtypeError
from ledgerkit.spec.attention import (
    Attention,
    CompressedAttention,
    LatentAttention,
    SoftmaxAttention,
    StateAttention,
)
from ledgerkit.spec.deployment import Deployment
from ledgerkit.spec.feed_forward import DenseFfn, FeedForward, MoeFfn
from ledgerkit.spec.model import LayerGroup, Model
from ledgerkit.spec.weights import Weight


def kv_heads_per_rank(num_key_value_heads: int, tp: int) -> int:
    """KV heads that one tensor-parallel rank keeps: at least one, so copies appear beyond.

    Examples
    --------
    >>> kv_heads_per_rank(8, 4), kv_heads_per_rank(8, 16)
    (2, 1)
    """
    return max(1, num_key_value_heads // tp)


def kv_copies(num_key_value_heads: int, tp: int) -> float:
    """How many ranks hold the same KV head."""
    return tp * kv_heads_per_rank(num_key_value_heads, tp) / num_key_value_heads


def split_and_copies(
    weight: Weight, group: LayerGroup | None, deployment: Deployment
) -> tuple[float, float]:
    """Return (fraction of the tensor on one device, copies of it over the tp ranks)."""
    tp = deployment.tp
    if weight.split == "experts":
        return 1.0 / (tp * deployment.dp_attention), 1.0
    if weight.split in ("tp", "vocab"):
        return 1.0 / tp, 1.0
    if weight.split == "kv_heads" and group is not None:
        attention = group.attention
        heads = attention.num_key_value_heads if isinstance(attention, SoftmaxAttention) else 1
        return kv_heads_per_rank(heads, tp) / heads, kv_copies(heads, tp)
    return 1.0, float(tp)


def at_entry(weight: Weight) -> bool:
    """Tell whether a tensor outside the layers is on the first pipeline stage, not the last."""
    return weight.use == "lookup" or weight.account == "per_layer_embedding"


def check(model: Model, deployment: Deployment) -> None:
    """Refuse layouts that no engine can build for this model.

    Raises
    ------
    DeploymentError
        A size does not divide; the message names it and lists what does.
    """
    pp, ep = deployment.pp, deployment.ep
    if pp > model.num_hidden_layers:
        raise DeploymentError(
            "pp is larger than the number of layers", given=pp,
            allowed=f"1 to {model.num_hidden_layers}", fix="each stage needs a layer",
        )  # fmt: skip
    if (
        deployment.max_model_len is not None
        and deployment.max_model_len > model.max_position_embeddings
    ):
        raise DeploymentError(
            f"max_model_len is beyond the positions of {model.slug}",
            given=deployment.max_model_len, allowed=f"up to {model.max_position_embeddings}",
            fix="leave max_model_len out to serve all of them",
        )  # fmt: skip
    for group in model.groups:
        _check_attention(group.attention, deployment)
        _check_ffn(group.ffn, deployment)
    if not any(isinstance(g.ffn, MoeFfn) for g in model.groups):
        if ep > 1:
            raise DeploymentError(f"{model.slug} has no experts to spread", given=ep,
                                  allowed="ep=1", fix="leave ep out")  # fmt: skip
        if deployment.experts:
            raise DeploymentError(
                f"{model.slug} has no experts to re-type", given=deployment.experts,
                allowed="experts=None", fix="weights= re-types all matrices",
            )  # fmt: skip


def _check_attention(attention: Attention, deployment: Deployment) -> None:
    tp = deployment.tp
    match attention:
        case SoftmaxAttention():
            _divides("num_attention_heads", attention.num_attention_heads, tp)
            heads = attention.num_key_value_heads
            if heads % tp and tp % heads:
                raise DeploymentError(
                    f"tp must divide num_key_value_heads = {heads} or be a multiple of it",
                    given=tp, allowed=f"divisors or multiples of {heads}",
                    fix=f"use tp = {_divisors(heads)}",
                )  # fmt: skip
            _layout_exists(deployment.kv_dtype)
        case LatentAttention() | CompressedAttention():
            _divides("num_attention_heads", attention.num_attention_heads, tp)
        case StateAttention():
            _divides("state heads", attention.num_heads, tp)


def _check_ffn(ffn: FeedForward, deployment: Deployment) -> None:
    tp = deployment.tp
    match ffn:
        case DenseFfn():
            _divides("intermediate_size", ffn.intermediate_size, tp)
        case MoeFfn():
            shards = deployment.expert_shards
            _divides("moe_intermediate_size", ffn.moe_intermediate_size, shards,
                     "tp · dp_attention / ep")  # fmt: skip
            _divides("num_experts", ffn.num_experts, deployment.ep, "ep")
            if ffn.shared_intermediate_size:
                _divides("shared_intermediate_size", ffn.shared_intermediate_size, tp)
            if ffn.dense_intermediate_size:
                _divides("intermediate_size", ffn.dense_intermediate_size, tp)


def _layout_exists(kv_dtype: str) -> None:
    if kv_dtype == "fp8_ds_mla":
        raise UnsupportedDtypeError(
            "fp8_ds_mla is a layout of MLA latents; this model has ordinary keys and values",
            given=kv_dtype, allowed="every other layout", fix="use kv_dtype='fp8'",
        )  # fmt: skip


def _divides(field: str, size: int, by: int, name: str = "tp") -> None:
    if size % by:
        raise DeploymentError(
            f"{name} must divide {field} = {size}", given=by, allowed=f"divisors of {size}",
            fix=f"use {name} = {_divisors(size)}",
        )  # fmt: skip


def _divisors(size: int) -> str:
    return ", ".join(str(d) for d in range(1, min(size, 64) + 1) if size % d == 0)


def stage_layers(num_layers: int, pp: int) -> tuple[range, ...]:
    """Layers of each pipeline stage.

    The remainder goes to the stages before the last, as vLLM does: the last one holds the head.

    Examples
    --------
    >>> [len(stage) for stage in stage_layers(61, 4)]
    [15, 15, 16, 15]
    """
    base, rest = divmod(num_layers, pp)
    sizes = [base] * pp
    for i in range(rest):
        sizes[-(i + 2) % pp] += 1
    starts = [sum(sizes[:i]) for i in range(pp)]
    return tuple(range(start, start + size) for start, size in zip(starts, sizes, strict=True))
