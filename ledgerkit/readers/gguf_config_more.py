"""llama.cpp metadata → config fields: hybrids, and models with MTP blocks.

llama.cpp counts MTP ("next-n") blocks among the layers; a config does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit.errors import CheckpointError
from ledgerkit.readers.gguf_fields import (
    Config,
    base,
    head_width,
    latent,
    mixer_layers,
    vocabulary,
    without_mtp,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledgerkit.readers.gguf_metadata import Metadata

__all__ = ["MORE"]

_CHUNK = 8192
"""Tokens of a chunk of Llama 4: llama.cpp has it in its code, not in the file."""


def _qwen2moe(meta: Metadata) -> Config:
    meta.count("feed_forward_length", 0)  # every layer has experts: no dense width is used
    width = meta.size("expert_feed_forward_length")
    return {
        "model_type": "qwen2_moe",
        **base(meta),
        "intermediate_size": width,
        "moe_intermediate_size": width,
        "shared_expert_intermediate_size": meta.size("expert_shared_feed_forward_length"),
        "num_experts": meta.size("expert_count"),
        "num_experts_per_tok": meta.size("expert_used_count"),
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    }


def _delta_net(model_type: str, meta: Metadata) -> Config:
    """Return the fields of a Qwen hybrid, its FFN left out."""
    values = meta.size("ssm.time_step_rank")
    inner = meta.size("ssm.inner_size")
    if inner % values:
        raise CheckpointError(f"{meta.path}: ssm.inner_size is no multiple of the value heads",
                              given=(inner, values))  # fmt: skip
    config = {
        **base(meta),
        "model_type": model_type,
        "linear_num_key_heads": meta.size("ssm.group_count"),
        "linear_num_value_heads": values,
        "linear_key_head_dim": meta.size("ssm.state_size"),
        "linear_value_head_dim": inner // values,
        "linear_conv_kernel_dim": meta.size("ssm.conv_kernel"),
        "full_attention_interval": meta.size("full_attention_interval", 4),
        **without_mtp(meta),
    }
    config["mtp_num_hidden_layers"] = config.pop("num_nextn_predict_layers")
    return config


def _experts_of_hybrid(meta: Metadata) -> Config:
    meta.count("feed_forward_length", 0)
    width = meta.size("expert_feed_forward_length")
    return {
        "intermediate_size": width,
        "moe_intermediate_size": width,
        "shared_expert_intermediate_size": meta.size("expert_shared_feed_forward_length", width),
        "num_experts": meta.size("expert_count"),
        "num_experts_per_tok": meta.size("expert_used_count"),
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    }


def _qwen3next(meta: Metadata) -> Config:
    return {**_delta_net("qwen3_next", meta), **_experts_of_hybrid(meta)}


def _qwen35(meta: Metadata) -> Config:
    width = meta.size("feed_forward_length")
    return {**_delta_net("qwen3_5_text", meta), "intermediate_size": width}


def _qwen35moe(meta: Metadata) -> Config:
    return {**_delta_net("qwen3_5_moe_text", meta), **_experts_of_hybrid(meta)}


def _glm4moe(meta: Metadata) -> Config:
    return {
        **base(meta),
        "model_type": "glm4_moe",
        **without_mtp(meta),
        "intermediate_size": meta.size("feed_forward_length"),
        "moe_intermediate_size": meta.size("expert_feed_forward_length"),
        "n_routed_experts": meta.size("expert_count"),
        "num_experts_per_tok": meta.size("expert_used_count"),
        "n_shared_experts": meta.count("expert_shared_count", 0),
        "first_k_dense_replace": meta.count("leading_dense_block_count", 0),
        "n_group": meta.size("expert_group_count", 1),
        "topk_group": meta.size("expert_group_used_count", 1),
        "attention_bias": "blk.0.attn_q.bias" in meta.tensors,
        "use_qk_norm": "blk.0.attn_q_norm.weight" in meta.tensors,
    }


def _sparse_latent(model_type: str, meta: Metadata) -> Config:
    """Return latent attention whose layers pick tokens with an indexer of their own, or share."""
    config = {"model_type": model_type, **latent(meta), **without_mtp(meta)}
    names = [f"blk.{layer}.indexer.attn_k.weight" for layer in range(config["num_hidden_layers"])]
    owned = ["full" if name in meta.tensors else "shared" for name in names]
    stated = meta.raw("attention.indexer.types")
    if isinstance(stated, tuple) and [bool(own) for own in stated[: len(owned)]] != [
        own == "full" for own in owned
    ]:
        raise CheckpointError(f"{meta.path}: attention.indexer.types contradicts the tensors",
                              given=stated)  # fmt: skip
    return {
        **config,
        "index_n_heads": meta.size("attention.indexer.head_count"),
        "index_head_dim": meta.size("attention.indexer.key_length"),
        "index_topk": meta.size("attention.indexer.top_k"),
        **({"indexer_types": owned} if model_type == "glm_moe_dsa" else {}),
    }


def _deepseek32(meta: Metadata) -> Config:
    return _sparse_latent("deepseek_v32", meta)


def _glm_dsa(meta: Metadata) -> Config:
    return _sparse_latent("glm_moe_dsa", meta)


def _granitehybrid(meta: Metadata) -> Config:
    attends, kv_heads = mixer_layers(meta)
    hidden, heads = meta.size("embedding_length"), meta.size("attention.head_count")
    mamba_heads, inner = meta.size("ssm.time_step_rank"), meta.size("ssm.inner_size")
    if inner % hidden or inner % mamba_heads:
        raise CheckpointError(
            f"{meta.path}: ssm.inner_size is no multiple of width and heads", given=inner,
            allowed=f"multiples of {hidden} and {mamba_heads}",
        )  # fmt: skip
    experts = meta.count("expert_count", 0)
    width = meta.size("feed_forward_length")
    shared = meta.count("expert_shared_feed_forward_length", 0)
    first = attends.index(True)
    return {
        "model_type": "granitemoehybrid",
        "hidden_size": hidden,
        "num_hidden_layers": len(attends),
        "layer_types": ["attention" if here else "mamba" for here in attends],
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_width(meta, hidden, heads),
        "attention_bias": f"blk.{first}.attn_q.bias" in meta.tensors,
        "mamba_n_heads": mamba_heads,
        "mamba_d_head": inner // mamba_heads,
        "mamba_expand": inner // hidden,
        "mamba_d_state": meta.size("ssm.state_size"),
        "mamba_n_groups": meta.size("ssm.group_count"),
        "mamba_d_conv": meta.size("ssm.conv_kernel"),
        "mamba_conv_bias": any(name.endswith("ssm_conv1d.bias") for name in meta.tensors),
        "num_local_experts": experts,
        "num_experts_per_tok": meta.count("expert_used_count", 0),
        "intermediate_size": width,
        "shared_intermediate_size": shared if experts else width,
        **vocabulary(meta),
    }


def _kimi_linear(meta: Metadata) -> Config:
    attends, _ = mixer_layers(meta)
    config = latent(meta)
    return {
        "model_type": "kimi_linear",
        "num_hidden_layers": len(attends),
        "num_experts": config.pop("n_routed_experts"),
        **config,
        "linear_num_heads": config["num_attention_heads"],
        "linear_head_dim": meta.size("kda.head_dim"),
        "linear_conv_kernel_dim": meta.size("ssm.conv_kernel"),
        "layer_types": ["full_attention" if here else "linear_attention" for here in attends],
    }


def _llama4(meta: Metadata) -> Config:
    layers = meta.layers()
    chunked = meta.windowed_layers(layers, period=4)
    if meta.has("attention.sliding_window") and not meta.count("attention.sliding_window"):
        chunked = [False] * layers
    return {
        "model_type": "llama4_text",
        **base(meta),
        "intermediate_size_mlp": meta.size("feed_forward_length"),
        "intermediate_size": meta.size("expert_feed_forward_length"),
        "num_local_experts": meta.size("expert_count"),
        "num_experts_per_tok": meta.size("expert_used_count"),
        "interleave_moe_layer_step": meta.size("interleave_moe_layer_step"),
        "attention_chunk_size": meta.size("attention.chunk_size", _CHUNK),
        "layer_types": ["chunked_attention" if here else "full_attention" for here in chunked],
    }


MORE: dict[str, Callable[[Metadata], Config]] = {
    "qwen2moe": _qwen2moe,
    "qwen3next": _qwen3next,
    "qwen35": _qwen35,
    "qwen35moe": _qwen35moe,
    "glm4moe": _glm4moe,
    "deepseek32": _deepseek32,
    "glm-dsa": _glm_dsa,
    "granitehybrid": _granitehybrid,
    "kimi-linear": _kimi_linear,
    "llama4": _llama4,
}
"""Further architectures, by their translators."""
