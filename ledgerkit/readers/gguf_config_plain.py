"""llama.cpp metadata → config fields: LFM2, and decoders whose layers are all alike.

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
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledgerkit.readers.gguf_metadata import Metadata

__all__ = ["PLAIN"]


def _biased(model_type: str, meta: Metadata) -> Config:
    return {**dense(model_type, meta), **biases(meta)}


def _lfm2(meta: Metadata) -> Config:
    attends, kv_heads = mixer_layers(meta)
    hidden, heads = meta.size("embedding_length"), meta.size("attention.head_count")
    return {
        "model_type": "lfm2",
        "hidden_size": hidden,
        "num_hidden_layers": len(attends),
        "layer_types": ["full_attention" if here else "conv" for here in attends],
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_width(meta, hidden, heads),
        "intermediate_size": meta.size("feed_forward_length"),
        "block_auto_adjust_ff_dim": False,  # done when the file was converted
        "conv_L_cache": meta.size("shortconv.l_cache"),
        "conv_bias": False,
        **vocabulary(meta),
    }


def _lfm2moe(meta: Metadata) -> Config:
    config = _lfm2(meta)
    del config["block_auto_adjust_ff_dim"]  # the width of this model type is the one that is stated
    return {
        **config,
        "model_type": "lfm2_moe",
        "num_dense_layers": meta.count("leading_dense_block_count", 0),
        "num_experts": meta.size("expert_count"),
        "num_experts_per_tok": meta.size("expert_used_count"),
        "moe_intermediate_size": meta.size("expert_feed_forward_length"),
        "use_expert_bias": True,
    }


def _apertus(meta: Metadata) -> Config:
    # its activation's numbers are metadata here, not tensors: as with an activation that has none
    return {**_biased("apertus", meta), "hidden_act": "silu"}


def _stablelm(meta: Metadata) -> Config:
    meta.raw("use_parallel_residual")  # the tensors tell
    return {
        **dense("stablelm", meta),
        "use_qkv_bias": "blk.0.attn_q.bias" in meta.tensors,
        "use_parallel_residual": "blk.0.ffn_norm.weight" not in meta.tensors,
        "qk_layernorm": "blk.0.attn_q_norm.weight" in meta.tensors,
    }


def _chatglm(meta: Metadata) -> Config:
    return {
        **dense("glm", meta),
        "attention_bias": "blk.0.attn_qkv.bias" in meta.tensors
        or "blk.0.attn_q.bias" in meta.tensors,
    }


def _mamba2(meta: Metadata) -> Config:
    hidden, inner = meta.size("embedding_length"), meta.size("ssm.inner_size")
    heads = meta.size("ssm.time_step_rank")
    if inner % hidden or inner % heads:
        raise CheckpointError(
            f"{meta.path}: ssm.inner_size is no multiple of width and heads", given=inner,
            allowed=f"multiples of {hidden} and {heads}",
        )  # fmt: skip
    for name in ("attention.head_count", "feed_forward_length"):
        meta.count(name, 0)  # written as 0: there is neither
    return {
        "model_type": "mamba2",
        "hidden_size": hidden,
        "num_hidden_layers": meta.layers(),
        "num_heads": heads,
        "head_dim": inner // heads,
        "expand": inner // hidden,
        "state_size": meta.size("ssm.state_size"),
        "n_groups": meta.size("ssm.group_count"),
        "conv_kernel": meta.size("ssm.conv_kernel"),
        "use_conv_bias": "blk.0.ssm_conv1d.bias" in meta.tensors,
        "vocab_size": meta.vocab_size(),
        "tie_word_embeddings": "output.weight" not in meta.tensors,
    }


def _dbrx(meta: Metadata) -> Config:
    config = base(meta)
    return {
        "model_type": "dbrx",
        "d_model": config["hidden_size"],
        "n_heads": config["num_attention_heads"],
        "n_layers": config["num_hidden_layers"],
        "max_seq_len": config["max_position_embeddings"],
        "vocab_size": config["vocab_size"],
        "tie_word_embeddings": config["tie_word_embeddings"],
        "attn_config": {"kv_n_heads": config["num_key_value_heads"]},
        "ffn_config": {
            "ffn_hidden_size": meta.size("feed_forward_length"),
            "moe_num_experts": meta.size("expert_count"),
            "moe_top_k": meta.size("expert_used_count"),
        },
    }


def _deci(meta: Metadata) -> Config:
    layers = meta.layers()
    heads, kv_heads, widths = (
        meta.per_layer(key, layers)
        for key in ("attention.head_count", "attention.head_count_kv", "feed_forward_length")
    )
    different = sorted(set(heads) - {0})
    linear = [layer for layer in range(layers) if bool(heads[layer]) != bool(kv_heads[layer])]
    if len(different) != 1 or linear:
        raise UnsupportedArchitectureError(
            f"{meta.path}: blocks of {meta.architecture} whose attention is one matrix, or whose "
            "heads differ, are not known", given={"head_count": heads, "head_count_kv": kv_heads},
            allowed="blocks with the same heads, or without attention",
            fix="give the config.json of the checkpoint",
        )  # fmt: skip
    most, hidden = different[0], meta.size("embedding_length")
    blocks = [
        {
            "attention": {"n_heads_in_group": most // kv} if kv else {"no_op": True},
            "ffn": {"intermediate_size": width} if width else {"no_op": True},
        }
        for kv, width in zip(kv_heads, widths, strict=True)
    ]
    return {
        "model_type": "nemotron-nas",
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": most,
        "head_dim": head_width(meta, hidden, most),
        "block_configs": blocks,
        **vocabulary(meta),
    }


def _falcon(meta: Metadata) -> Config:
    config = base(meta)
    kv_heads, two_norms = config["num_key_value_heads"], "blk.0.attn_norm_2.weight" in meta.tensors
    return {
        "model_type": "falcon",
        "hidden_size": config["hidden_size"],
        "num_hidden_layers": config["num_hidden_layers"],
        "num_attention_heads": config["num_attention_heads"],
        "num_kv_heads": kv_heads,
        "multi_query": kv_heads == 1,
        "new_decoder_architecture": two_norms,
        "parallel_attn": True,
        "ffn_hidden_size": meta.size("feed_forward_length"),
        "bias": "blk.0.attn_qkv.bias" in meta.tensors,
        "vocab_size": config["vocab_size"],
        "max_position_embeddings": config["max_position_embeddings"],
        "tie_word_embeddings": config["tie_word_embeddings"],
    }


def _phi2(meta: Metadata) -> Config:
    config = dense("phi", meta)
    del config["head_dim"]  # the class has no such field: head_width has seen to it
    return config


PLAIN: dict[str, Callable[[Metadata], Config]] = {
    "apertus": _apertus,
    "baichuan": partial(dense, "llama"),
    "chatglm": _chatglm,
    "dbrx": _dbrx,
    "deci": _deci,
    "exaone": partial(dense, "llama"),
    "falcon": _falcon,
    "gemma": partial(dense, "gemma"),
    "jais2": partial(_biased, "jais2"),
    "lfm2": _lfm2,
    "lfm2moe": _lfm2moe,
    "mamba2": _mamba2,
    "minicpm": partial(_biased, "llama"),
    "nemotron": partial(_biased, "nemotron"),
    "olmo": partial(dense, "olmo"),
    "phi2": _phi2,
    "stablelm": _stablelm,
}
"""Further architectures, by their translators."""
