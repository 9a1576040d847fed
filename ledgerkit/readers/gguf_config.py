"""llama.cpp metadata → the fields of a ``config.json``, one function for each architecture.

The result goes through the reader of the matching family, so that a GGUF file and the checkpoint it
was made of are read by the same code. Keys and defaults: ggml-org/llama.cpp, ``conversion/*.py``
(what is written) and ``src/models/*.cpp``, ``load_arch_hparams`` (what is assumed when it is not).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit.errors import UnsupportedArchitectureError
from ledgerkit.readers.gguf_config_experts import EXPERTS
from ledgerkit.readers.gguf_config_further import FURTHER
from ledgerkit.readers.gguf_config_more import MORE
from ledgerkit.readers.gguf_config_plain import PLAIN
from ledgerkit.readers.gguf_fields import Config, base, biases, dense, latent, vocabulary, window

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledgerkit.readers.gguf_metadata import Metadata

__all__ = ["ARCHITECTURES", "config_of"]


def config_of(meta: Metadata) -> Config:
    """Translate the metadata of a GGUF file into the config of the family that reads it.

    Parameters
    ----------
    meta : Metadata
        Metadata and tensors of the file.

    Raises
    ------
    UnsupportedArchitectureError
        No reader knows this architecture, or one of its keys.
    CheckpointError
        A key is missing or holds an absurd value.
    """
    kind = meta.values.get("general.type", "model")
    if kind != "model":
        raise UnsupportedArchitectureError(
            f"{meta.path}: the file holds no language model", given=kind,
            fix="give the file of the model itself, not a projector or an adapter",
        )  # fmt: skip
    translate = ARCHITECTURES.get(meta.architecture)
    if translate is None:
        raise UnsupportedArchitectureError(
            f"{meta.path}: no reader knows this GGUF architecture", given=meta.architecture,
            allowed=", ".join(sorted(ARCHITECTURES)),
            fix="give the config.json of the checkpoint that the file was made of",
        )  # fmt: skip
    config = translate(meta)
    meta.finish()
    return config


def _llama(meta: Metadata) -> Config:
    if not meta.count("expert_count", 0):
        tokens = meta.count("attention.sliding_window", 0)
        if tokens:
            return {**dense("mistral", meta), "sliding_window": tokens}
        return {**dense("llama", meta), **biases(meta)}
    return {
        **dense("mixtral", meta),
        "num_local_experts": meta.size("expert_count"),
        "num_experts_per_tok": meta.size("expert_used_count"),
        "sliding_window": meta.count("attention.sliding_window", 0) or None,
    }


def _qwen2(meta: Metadata) -> Config:
    return dense("qwen2", meta)


def _qwen3(meta: Metadata) -> Config:
    return {**dense("qwen3", meta), "attention_bias": "blk.0.attn_q.bias" in meta.tensors}


def _qwen3moe(meta: Metadata) -> Config:
    meta.count("feed_forward_length", 0)  # every layer has experts: no dense width is used
    width = meta.size("expert_feed_forward_length")
    return {
        "model_type": "qwen3_moe",
        **base(meta),
        "intermediate_size": width,
        "moe_intermediate_size": width,
        "num_experts": meta.size("expert_count"),
        "num_experts_per_tok": meta.size("expert_used_count"),
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    }


def _gemma2(meta: Metadata) -> Config:
    return {**dense("gemma2", meta), **window(meta, period=2, default=4096)}


def _gemma3(meta: Metadata) -> Config:
    return {**dense("gemma3_text", meta), **window(meta, period=6)}


def _gemma4(meta: Metadata) -> Config:
    layers = meta.layers()
    windowed = meta.windowed_layers(layers, period=6)
    kv_heads = meta.per_layer("attention.head_count_kv", layers)
    kinds = {kind: {count for count, here in zip(kv_heads, windowed, strict=True) if here is kind}
             for kind in (True, False)}  # fmt: skip
    shared = meta.count("attention.shared_kv_layers", 0)
    widths = meta.per_layer("feed_forward_length", layers)
    narrow, wide = set(widths[: layers - shared]), set(widths[layers - shared :])
    if any(len(found) > 1 for found in (*kinds.values(), narrow, wide)) or not narrow:
        raise UnsupportedArchitectureError(
            f"{meta.path}: layers of one kind differ in heads or widths",
            given={"head_count_kv": kv_heads, "feed_forward_length": widths},
        )  # fmt: skip
    window_heads, full_heads = (next(iter(kinds[kind]), None) for kind in (True, False))
    width = narrow.pop()
    head_dim, full_dim = meta.size("attention.key_length_swa"), meta.size("attention.key_length")
    values = meta.size("attention.value_length_swa"), meta.size("attention.value_length")
    if values != (head_dim, full_dim) or wide - {width, 2 * width}:
        raise UnsupportedArchitectureError(
            f"{meta.path}: keys and values, or the layers that share a cache, are not Gemma 4's",
            given={"value_length": values, "feed_forward_length": widths},
        )  # fmt: skip
    full = [layer for layer in range(layers - shared) if not windowed[layer]]
    per_layer = meta.count("embedding_length_per_layer_input", 0)
    config = {
        "model_type": "gemma4_text",
        "hidden_size": meta.size("embedding_length"),
        "num_hidden_layers": layers,
        "num_attention_heads": meta.size("attention.head_count"),
        "num_key_value_heads": window_heads or full_heads,
        "num_global_key_value_heads": full_heads,
        "head_dim": head_dim,
        "global_head_dim": full_dim,
        "attention_k_eq_v": bool(full) and f"blk.{full[0]}.attn_v.weight" not in meta.tensors,
        "intermediate_size": width,
        "use_double_wide_mlp": wide == {2 * width},
        "num_kv_shared_layers": shared,
        "hidden_size_per_layer_input": per_layer,
        **vocabulary(meta),
        **window(meta, period=6),
    }
    if per_layer:
        config["vocab_size_per_layer_input"] = meta.shape("per_layer_token_embd.weight")[-1]
    experts = meta.count("expert_count", 0)
    if experts:
        config |= {
            "enable_moe_block": True,
            "num_experts": experts,
            "top_k_experts": meta.size("expert_used_count"),
            "moe_intermediate_size": meta.size("expert_feed_forward_length"),
        }
    return config


def _gpt_oss(meta: Metadata) -> Config:
    meta.count("feed_forward_length", 0)
    return {
        "model_type": "gpt_oss",
        **base(meta),
        **window(meta, period=2),
        "intermediate_size": meta.size("expert_feed_forward_length"),
        "num_local_experts": meta.size("expert_count"),
        "num_experts_per_tok": meta.size("expert_used_count"),
        "attention_bias": "blk.0.attn_q.bias" in meta.tensors,
    }


def _phi3(meta: Metadata) -> Config:
    tokens = meta.count("attention.sliding_window", 0)
    return {**dense("phi3", meta), "sliding_window": tokens or None}


def _deepseek2(meta: Metadata) -> Config:
    config = {"model_type": "deepseek_v2", "num_hidden_layers": meta.layers(), **latent(meta)}
    first = config["first_k_dense_replace"]
    if f"blk.{first}.exp_probs_b.bias" in meta.tensors:
        config |= {"model_type": "deepseek_v3", "num_nextn_predict_layers": 0}
    return config


ARCHITECTURES: dict[str, Callable[[Metadata], Config]] = {
    "llama": _llama,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "qwen3moe": _qwen3moe,
    "gemma2": _gemma2,
    "gemma3": _gemma3,
    "gemma4": _gemma4,
    "gpt-oss": _gpt_oss,
    "phi3": _phi3,
    "deepseek2": _deepseek2,
    **MORE,
    **FURTHER,
    **EXPERTS,
    **PLAIN,
}
"""GGUF architectures that can be read, by their translators."""
