"""llama.cpp metadata → config fields: mixtures of experts whose layers differ.

Layers differ in window, in heads and in the kind of their MLP. Keys and extents:
ggml-org/llama.cpp, ``conversion/*.py`` and ``src/models/*.cpp``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit.errors import CheckpointError, UnsupportedArchitectureError
from ledgerkit.readers.gguf_fields import (
    Config,
    base,
    head_width,
    latent,
    vocabulary,
    window,
    without_mtp,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledgerkit.readers.gguf_metadata import Metadata

__all__ = ["EXPERTS"]


def _types(windowed: list[bool]) -> list[str]:
    return ["sliding_attention" if here else "full_attention" for here in windowed]


def _sparse(meta: Metadata, layers: int) -> list[str]:
    """Return the kind of MLP of each layer: the tensors tell."""
    return [
        "sparse" if f"blk.{layer}.ffn_gate_inp.weight" in meta.tensors else "dense"
        for layer in range(layers)
    ]


def _one(meta: Metadata, what: str, values: list[int]) -> int:
    """Return the value that all layers of a kind share."""
    if len(set(values)) != 1:
        raise UnsupportedArchitectureError(
            f"{meta.path}: {meta.architecture} needs the same {what} in all layers of a kind",
            given=values, allowed="one value for window layers, one for full layers",
            fix="convert the checkpoint again, or give its config.json",
        )  # fmt: skip
    return values[0]


def _experts(meta: Metadata) -> Config:
    for name in ("leading_dense_block_count", "expert_shared_count"):
        meta.count(name, 0)  # the tensors tell
    return {
        "moe_intermediate_size": meta.size("expert_feed_forward_length"),
        "num_experts_per_tok": meta.size("expert_used_count"),
    }


def _bailingmoe2(meta: Metadata) -> Config:
    layers = without_mtp(meta)
    if layers["num_nextn_predict_layers"]:
        raise UnsupportedArchitectureError(
            f"{meta.path}: MTP blocks of bailingmoe2 are not known",
            given=layers["num_nextn_predict_layers"], allowed="0 MTP blocks in the file",
            fix="give the file that was converted without them",
        )  # fmt: skip
    width = meta.size("expert_feed_forward_length")
    meta.count("expert_shared_feed_forward_length", width)  # the tensors tell
    return {
        **base(meta),
        **_experts(meta),
        "model_type": "bailing_moe",
        "num_hidden_layers": layers["num_hidden_layers"],
        "num_experts": meta.size("expert_count"),
        "num_shared_experts": meta.count("expert_shared_count"),
        "intermediate_size": meta.size("feed_forward_length"),
        "first_k_dense_replace": meta.count("leading_dense_block_count", 0),
        "n_group": meta.size("expert_group_count", 1),
        "topk_group": meta.size("expert_group_used_count", 1),
        "use_qkv_bias": "blk.0.attn_qkv.bias" in meta.tensors,
        "use_qk_norm": "blk.0.attn_q_norm.weight" in meta.tensors,
        "moe_router_enable_expert_bias": True,
    }


def _afmoe(meta: Metadata) -> Config:
    return {
        **base(meta),
        **_experts(meta),
        **window(meta, period=4),
        "model_type": "afmoe",
        "num_experts": meta.size("expert_count"),
        "num_shared_experts": meta.count("expert_shared_count"),
        "intermediate_size": meta.size("feed_forward_length"),
        "num_dense_layers": meta.count("leading_dense_block_count", 0),
    }


def _phimoe(meta: Metadata) -> Config:
    return {
        **base(meta),
        "model_type": "phimoe",
        "intermediate_size": meta.size("feed_forward_length"),
        "num_local_experts": meta.size("expert_count"),
        "num_experts_per_tok": meta.size("expert_used_count"),
        "attention_bias": "blk.0.attn_q.bias" in meta.tensors,
        "lm_head_bias": "output.bias" in meta.tensors,
        "sliding_window": meta.count("attention.sliding_window", 0) or None,
    }


def _mimo2(meta: Metadata) -> Config:
    blocks = without_mtp(meta)
    layers, drafts = blocks["num_hidden_layers"], meta.count("nextn_predict_layers", 0)
    windowed = meta.windowed_layers(layers + drafts, period=1)[:layers]
    kv_heads = meta.per_layer("attention.head_count_kv", layers + drafts)[:layers]
    by_kind = {
        kind: [count for count, here in zip(kv_heads, windowed, strict=True) if here is kind]
        for kind in set(windowed)
    }
    full = _one(meta, "attention.head_count_kv", by_kind.get(False) or by_kind[True])
    narrow = _one(meta, "attention.head_count_kv", by_kind.get(True) or by_kind[False])
    heads = meta.size("attention.head_count")
    key_dim, value_dim = (meta.size(f"attention.{part}_length") for part in ("key", "value"))
    meta.raw("attention.value_scale")
    sinks = {
        kind: any(
            f"blk.{layer}.attn_sinks.weight" in meta.tensors
            for layer in range(layers)
            if windowed[layer] is kind
        )
        for kind in (True, False)
    }
    shapes = {"num_attention_heads": heads, "head_dim": key_dim, "v_head_dim": value_dim}
    return {
        **vocabulary(meta),
        **_experts(meta),
        **blocks,
        **shapes,
        **{f"swa_{name}": size for name, size in shapes.items()},
        "model_type": "mimo_v2",
        "hidden_size": meta.size("embedding_length"),
        "num_key_value_heads": full,
        "swa_num_key_value_heads": narrow,
        "layer_types": _types(windowed),
        "sliding_window": meta.size("attention.sliding_window"),
        "attention_projection_layout": "separate",  # fused in a file: the same elements
        "add_swa_attention_sink_bias": sinks[True],
        "add_full_attention_sink_bias": sinks[False],
        "intermediate_size": meta.size("feed_forward_length"),
        "mlp_layer_types": _sparse(meta, layers),
        "n_routed_experts": meta.size("expert_count"),
        "n_group": meta.size("expert_group_count", 1),
        "topk_group": meta.size("expert_group_used_count", 1),
    }


def _step35(meta: Metadata) -> Config:
    blocks = without_mtp(meta)
    layers, drafts = blocks["num_hidden_layers"], meta.count("nextn_predict_layers", 0)
    windowed = meta.windowed_layers(layers + drafts, period=4)
    heads, kv_heads = (
        meta.per_layer(f"attention.{name}", layers + drafts)
        for name in ("head_count", "head_count_kv")
    )

    def of(values: list[int], *, kind: bool) -> int:
        found = [value for value, here in zip(values, windowed, strict=True) if here is kind]
        return _one(meta, "heads", found or values)

    hidden, full_heads = meta.size("embedding_length"), of(heads, kind=False)
    kinds = _types(windowed)
    return {
        **vocabulary(meta),
        **_experts(meta),
        **blocks,
        "model_type": "step3p5",
        "hidden_size": hidden,
        "num_attention_heads": full_heads,
        "num_attention_groups": of(kv_heads, kind=False),
        "head_dim": head_width(meta, hidden, full_heads),
        "attention_other_setting": {
            "num_attention_heads": of(heads, kind=True),
            "num_attention_groups": of(kv_heads, kind=True),
        },
        "layer_types": kinds[:layers],
        "mtp_layer_types": kinds[layers : layers + blocks["num_nextn_predict_layers"]],
        "mlp_layer_types": _sparse(meta, layers),
        "sliding_window": meta.size("attention.sliding_window"),
        "intermediate_size": meta.size("feed_forward_length"),
        "share_expert_dim": meta.size("expert_shared_feed_forward_length"),
        "moe_num_experts": meta.size("expert_count"),
        "gating": "blk.0.attn_gate.weight" in meta.tensors,
    }


def _laguna(meta: Metadata) -> Config:
    layers = meta.layers()
    heads = meta.per_layer("attention.head_count", layers)
    hidden, kv_heads = meta.size("embedding_length"), meta.size("attention.head_count_kv")
    windows = window(meta, period=4)
    if not windows["sliding_window"]:
        del windows["sliding_window"]  # no layer has one, and the class knows no null
    head_dim = head_width(meta, hidden, heads[0])
    gate = meta.shape("blk.0.attn_gate.weight")[-1]
    shared = meta.size("expert_shared_feed_forward_length")
    return {
        **vocabulary(meta),
        **_experts(meta),
        **windows,
        "model_type": "laguna",
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads[0],
        "num_attention_heads_per_layer": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
        "gating": "per-head" if gate == heads[0] else "per-element",
        "intermediate_size": meta.size("feed_forward_length"),
        "shared_expert_intermediate_size": shared,
        "num_experts": meta.size("expert_count"),
        "mlp_layer_types": _sparse(meta, layers),
    }


def _exaone_moe(meta: Metadata) -> Config:
    blocks = without_mtp(meta)
    layers, drafts = blocks["num_hidden_layers"], meta.count("nextn_predict_layers", 0)
    windowed = meta.windowed_layers(layers + drafts, period=4)
    shared = meta.count("expert_shared_count", 0)
    width = meta.size("expert_feed_forward_length")
    whole = meta.count("expert_shared_feed_forward_length", shared * width)
    if whole != shared * width:
        raise CheckpointError(f"{meta.path}: expert_shared_feed_forward_length contradicts the "
                              "number of shared experts", given=whole,
                              allowed=str(shared * width))  # fmt: skip
    kinds = _types(windowed)
    return {
        **base(meta),
        **_experts(meta),
        **blocks,
        "model_type": "exaone_moe",
        "sliding_window": meta.size("attention.sliding_window"),
        "layer_types": kinds[:layers],
        "mtp_layer_types": kinds[layers : layers + blocks["num_nextn_predict_layers"]] or None,
        "intermediate_size": meta.size("feed_forward_length"),
        "num_experts": meta.size("expert_count"),
        "num_shared_experts": shared,
        "first_k_dense_replace": meta.count("leading_dense_block_count", 0),
    }


def _hy_v3(meta: Metadata) -> Config:
    blocks = without_mtp(meta)
    width, shared = meta.size("expert_feed_forward_length"), meta.count("expert_shared_count", 0)
    whole = meta.count("expert_shared_feed_forward_length", shared * width)
    if whole % width:
        raise CheckpointError(f"{meta.path}: expert_shared_feed_forward_length is no multiple of "
                              "an expert's width", given=whole, allowed=str(width))  # fmt: skip
    return {
        **base(meta),
        **_experts(meta),
        **blocks,
        "model_type": "hy_v3",
        "attention_bias": "blk.0.attn_q.bias" in meta.tensors,
        "intermediate_size": meta.size("feed_forward_length"),
        "num_experts": meta.size("expert_count"),
        "num_shared_experts": whole // width,
        "mlp_layer_types": _sparse(meta, blocks["num_hidden_layers"]),
    }


def _mistral4(meta: Metadata) -> Config:
    return {"num_hidden_layers": meta.layers(), **latent(meta), "model_type": "mistral4"}


EXPERTS: dict[str, Callable[[Metadata], Config]] = {
    "afmoe": _afmoe,
    "bailingmoe2": _bailingmoe2,
    "exaone-moe": _exaone_moe,
    "hy_v3": _hy_v3,
    "laguna": _laguna,
    "mimo2": _mimo2,
    "mistral4": _mistral4,
    "phimoe": _phimoe,
    "step35": _step35,
}
"""Architectures with experts, by their translators."""
