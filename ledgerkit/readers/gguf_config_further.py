"""llama.cpp metadata → config fields: further decoders, mixtures of experts and hybrids.

Keys and extents: ggml-org/llama.cpp, ``conversion/*.py`` and ``src/models/*.cpp``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ledgerkit.errors import CheckpointError, UnsupportedArchitectureError
from ledgerkit.readers.gguf_fields import (
    Config,
    base,
    biases,
    dense,
    head_width,
    mixer_layers,
    vocabulary,
    window,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledgerkit.readers.gguf_metadata import Metadata

__all__ = ["FURTHER"]

_EXAONE4_WINDOWED = 64
"""Layers of the EXAONE 4 that has windows (32B): llama.cpp has it in its code."""
_GEMMA3N_CACHES = 20
"""Layers of Gemma 3n with a cache of their own: llama.cpp has it in its code."""


def _stated(meta: Metadata, suffix: str) -> bool:
    return f"blk.0.{suffix}" in meta.tensors


def _biased(model_type: str, meta: Metadata) -> Config:
    return {**dense(model_type, meta), **biases(meta)}


def _attention_biased(model_type: str, meta: Metadata) -> Config:
    return {**dense(model_type, meta), "attention_bias": _stated(meta, "attn_q.bias")}


def _vision_text(meta: Metadata) -> Config:
    meta.count("n_deepstack_layers", 0)  # the tower feeds them; no tensor of the text model
    return _attention_biased("qwen3_vl_text", meta)


def _qwen2vl(meta: Metadata) -> Config:
    return dense("qwen2_vl_text", meta)


def _ernie(meta: Metadata) -> Config:
    return {**dense("ernie4_5", meta), "use_bias": _stated(meta, "attn_q.bias")}


def _seed_oss(meta: Metadata) -> Config:
    return {**_biased("seed_oss", meta), "attention_out_bias": _stated(meta, "attn_output.bias")}


def _mistral3(meta: Metadata) -> Config:
    if meta.count("expert_count", 0):  # what Mixtral is, with another temperature of attention
        return {**dense("mixtral", meta), **_experts(meta, "num_local_experts")}
    return dense("ministral3", meta)


def _starcoder2(meta: Metadata) -> Config:
    tokens = meta.count("attention.sliding_window", 0)
    return {
        **dense("starcoder2", meta),
        "use_bias": _stated(meta, "attn_q.bias"),
        "sliding_window": tokens or None,
    }


def _olmo2(meta: Metadata) -> Config:
    if meta.has("attention.sliding_window"):
        return {**_attention_biased("olmo3", meta), **window(meta, period=4)}
    return _attention_biased("olmo2", meta)


def _command_r(meta: Metadata) -> Config:
    return {**_attention_biased("cohere", meta), "use_qk_norm": _stated(meta, "attn_q_norm.weight")}


def _cohere2(meta: Metadata) -> Config:
    return {**_attention_biased("cohere2", meta), **window(meta, period=4)}


def _exaone4(meta: Metadata) -> Config:
    config = dense("exaone4", meta)
    if config["num_hidden_layers"] == _EXAONE4_WINDOWED:
        return {**config, **window(meta, period=4, default=4096)}
    if meta.count("attention.sliding_window", 0):
        raise UnsupportedArchitectureError(
            f"{meta.path}: llama.cpp gives windows to {_EXAONE4_WINDOWED} layers only",
            given=config["num_hidden_layers"],
        )
    types = ["full_attention"] * config["num_hidden_layers"]
    return {**config, "sliding_window": None, "layer_types": types}


# -- mixtures of experts ---------------------------------------------------------------------


def _experts(meta: Metadata, count: str = "num_experts") -> Config:
    return {
        count: meta.size("expert_count"),
        "num_experts_per_tok": meta.size("expert_used_count"),
    }


def _qwen3vlmoe(meta: Metadata) -> Config:
    meta.count("n_deepstack_layers", 0)
    meta.count("feed_forward_length", 0)  # every layer has experts: no dense width is used
    width = meta.size("expert_feed_forward_length")
    return {
        "model_type": "qwen3_vl_moe_text",
        **base(meta),
        **_experts(meta),
        "intermediate_size": width,
        "moe_intermediate_size": width,
        "attention_bias": _stated(meta, "attn_q.bias"),
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    }


def _hunyuan_moe(meta: Metadata) -> Config:
    width = meta.size("feed_forward_length")
    meta.count("expert_shared_count", 0)  # the width below is the one of all shared experts
    return {
        "model_type": "hunyuan_v1_moe",
        **base(meta),
        **_experts(meta),
        "moe_intermediate_size": meta.size("expert_feed_forward_length", width),
        "intermediate_size": meta.size("expert_shared_feed_forward_length", width),
        "num_shared_expert": 1,
        "attention_bias": _stated(meta, "attn_q.bias"),
    }


def _ernie_moe(meta: Metadata) -> Config:
    width = meta.size("expert_feed_forward_length")
    shared = meta.count("expert_shared_count", 0)
    meta.count("expert_shared_feed_forward_length", 0)  # the tensors tell
    return {
        "model_type": "ernie4_5_moe",
        **base(meta),
        "use_bias": _stated(meta, "attn_q.bias"),
        "intermediate_size": meta.size("feed_forward_length"),
        "moe_intermediate_size": width,
        "moe_num_experts": meta.size("expert_count"),
        "moe_k": meta.size("expert_used_count"),
        "moe_num_shared_experts": shared,
        "moe_layer_start_index": meta.count("leading_dense_block_count", 0),
        "moe_layer_interval": meta.size("interleave_moe_layer_step"),
    }


def _minimax_m2(meta: Metadata) -> Config:
    meta.count("feed_forward_length", 0)
    return {
        "model_type": "minimax_m2",
        **base(meta),
        **_experts(meta, "num_local_experts"),
        "intermediate_size": meta.size("expert_feed_forward_length"),
        "qk_norm_type": "per_layer",
    }


def _granitemoe(meta: Metadata) -> Config:
    shared = meta.count("expert_shared_feed_forward_length", 0)
    return {
        **_attention_biased("granitemoeshared" if shared else "granitemoe", meta),
        **_experts(meta, "num_local_experts"),
        **({"shared_intermediate_size": shared} if shared else {}),
    }


def _olmoe(meta: Metadata) -> Config:
    return {**dense("olmoe", meta), **_experts(meta)}


def _dots1(meta: Metadata) -> Config:
    return {
        "model_type": "dots1",
        **base(meta),
        **_experts(meta, "n_routed_experts"),
        "intermediate_size": meta.size("feed_forward_length"),
        "moe_intermediate_size": meta.size("expert_feed_forward_length"),
        "n_shared_experts": meta.count("expert_shared_count", 0),
        "first_k_dense_replace": meta.count("leading_dense_block_count", 0),
        "attention_bias": _stated(meta, "attn_q.bias"),
        "sliding_window": None,
    }


# -- hybrids, and Gemma 3n -------------------------------------------------------------------


def _nemotron_h(meta: Metadata) -> Config:
    layers = meta.layers()
    attends, kv_heads = mixer_layers(meta)
    widths = meta.per_layer("feed_forward_length", layers)
    drafts = meta.count("nextn_predict_layers", 0)
    if drafts > 1 or drafts >= layers or (drafts and not (attends[-1] and widths[-1])):
        raise UnsupportedArchitectureError(
            f"{meta.path}: these MTP blocks of {meta.architecture} are not known",
            given={"nextn_predict_layers": drafts, "feed_forward_length": widths},
            allowed="no block, or one with attention and an MLP or experts",
            fix="give the file that was converted without them",
        )  # fmt: skip
    layers -= drafts
    attends, widths = attends[:layers], widths[:layers]
    inner, heads = meta.size("ssm.inner_size"), meta.size("ssm.time_step_rank")
    different = sorted(set(widths) - {0})
    if inner % heads or len(different) > 1:
        raise CheckpointError(f"{meta.path}: ssm.inner_size must be a multiple of the heads, and "
                              "all MLPs must be equally wide",
                              given=(inner, heads, different))  # fmt: skip
    both = [layer for layer in range(layers) if attends[layer] and widths[layer]]
    if both:
        raise UnsupportedArchitectureError(f"{meta.path}: blocks with attention and an MLP are "
                                           "not known here", given=both)  # fmt: skip
    moe = meta.count("expert_count", 0) > 0
    kinds = [
        "attention" if here else ("moe" if moe else "mlp") if width else "mamba"
        for here, width in zip(attends, widths, strict=True)
    ]
    hidden, attention_heads = meta.size("embedding_length"), meta.size("attention.head_count")
    config = {
        "model_type": "nemotron_h",
        "hidden_size": hidden,
        "layers_block_type": kinds,
        **(
            {
                "num_nextn_predict_layers": 1,
                "mtp_layers_block_type": ["attention", "moe" if moe else "mlp"],
            }
            if drafts
            else {}
        ),
        "num_attention_heads": attention_heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_width(meta, hidden, attention_heads),
        "mamba_num_heads": heads,
        "mamba_head_dim": inner // heads,
        "ssm_state_size": meta.size("ssm.state_size"),
        "n_groups": meta.size("ssm.group_count"),
        "conv_kernel": meta.size("ssm.conv_kernel"),
        "use_conv_bias": any(name.endswith("ssm_conv1d.bias") for name in meta.tensors),
        "mlp_bias": any(name.endswith("ffn_up.bias") for name in meta.tensors),
        **vocabulary(meta),
    }
    if not moe:
        return {**config, "intermediate_size": different[0]} if different else config
    meta.count("expert_shared_count", 0)
    return {
        **config,
        "n_routed_experts": meta.size("expert_count"),
        "num_experts_per_tok": meta.size("expert_used_count"),
        "moe_intermediate_size": meta.size("expert_feed_forward_length"),
        "moe_shared_expert_intermediate_size": meta.size("expert_shared_feed_forward_length"),
        "moe_latent_size": meta.count("moe_latent_size", 0) or None,
        "n_group": meta.size("expert_group_count", 1),
        "topk_group": meta.size("expert_group_used_count", 1),
    }


def _periodic(meta: Metadata, what: str, flags: list[bool]) -> Config:
    """Return period and offset of the layers that have something."""
    found = [layer for layer, flag in enumerate(flags) if flag]
    layers = len(flags)
    if not found:  # none: an offset that no layer reaches
        return {f"{what}_layer_period": layers + 1, f"{what}_layer_offset": layers}
    first = found[0]
    period = found[1] - first if len(found) > 1 else max(layers, first + 1)
    if found != list(range(first, layers, period)) or first >= period:
        raise UnsupportedArchitectureError(
            f"{meta.path}: the layers do not follow one period", given=found
        )
    return {f"{what}_layer_period": period, f"{what}_layer_offset": first}


def _jamba(meta: Metadata) -> Config:
    attends, kv_heads = mixer_layers(meta)
    sparse = [f"blk.{layer}.ffn_gate_inp.weight" in meta.tensors for layer in range(len(attends))]
    hidden, heads = meta.size("embedding_length"), meta.size("attention.head_count")
    inner = meta.size("ssm.inner_size")
    if inner % hidden:
        raise CheckpointError(f"{meta.path}: ssm.inner_size is no multiple of the width",
                              given=(inner, hidden))  # fmt: skip
    return {
        "model_type": "jamba",
        "hidden_size": hidden,
        "num_hidden_layers": len(attends),
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_width(meta, hidden, heads),
        "intermediate_size": meta.size("feed_forward_length"),
        "num_experts": meta.count("expert_count", 0) or 1,
        "num_experts_per_tok": meta.count("expert_used_count", 0) or 1,
        **_periodic(meta, "attn", attends),
        **_periodic(meta, "expert", sparse),
        "mamba_expand": inner // hidden,
        "mamba_d_state": meta.size("ssm.state_size"),
        "mamba_d_conv": meta.size("ssm.conv_kernel"),
        "mamba_dt_rank": meta.size("ssm.time_step_rank"),
        **vocabulary(meta),
    }


def _gemma3n(meta: Metadata) -> Config:
    layers = meta.layers()
    shared = max(layers - _GEMMA3N_CACHES, 0)
    stated = meta.count("attention.shared_kv_layers", shared)
    if stated != shared:
        raise UnsupportedArchitectureError(
            f"{meta.path}: llama.cpp keeps {_GEMMA3N_CACHES} caches of this architecture",
            given={"block_count": layers, "attention.shared_kv_layers": stated},
        )
    return {
        "model_type": "gemma3n_text",
        **base(meta),
        **window(meta, period=5),
        "intermediate_size": meta.per_layer("feed_forward_length", layers),
        "num_kv_shared_layers": shared,
        "hidden_size_per_layer_input": meta.size("embedding_length_per_layer_input"),
        "vocab_size_per_layer_input": meta.shape("per_layer_token_embd.weight")[-1],
        "altup_num_inputs": meta.size("altup.num_inputs"),
        "laurel_rank": meta.shape("blk.0.laurel_l.weight")[-1],
    }


FURTHER: dict[str, Callable[[Metadata], Config]] = {
    "arcee": partial(_biased, "arcee"),
    "cohere2": _cohere2,
    "command-r": _command_r,
    "dots1": _dots1,
    "ernie4_5": _ernie,
    "ernie4_5-moe": _ernie_moe,
    "exaone4": _exaone4,
    "gemma3n": _gemma3n,
    "glm4": partial(_attention_biased, "glm4"),
    "granite": partial(_biased, "granite"),
    "granitemoe": _granitemoe,
    "hunyuan-dense": partial(_attention_biased, "hunyuan_v1_dense"),
    "hunyuan-moe": _hunyuan_moe,
    "internlm2": partial(_biased, "llama"),
    "jamba": _jamba,
    "minimax-m2": _minimax_m2,
    "mistral3": _mistral3,
    "nemotron_h": _nemotron_h,
    "nemotron_h_moe": _nemotron_h,
    "olmo2": _olmo2,
    "olmoe": _olmoe,
    "qwen2vl": _qwen2vl,
    "qwen3vl": _vision_text,
    "qwen3vlmoe": _qwen3vlmoe,
    "seed_oss": _seed_oss,
    "smollm3": partial(_biased, "smollm3"),
    "starcoder2": _starcoder2,
}
"""Further architectures, by their translators."""
