"""Fields that the metadata of many architectures state in the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.errors import CheckpointError, UnsupportedArchitectureError

if TYPE_CHECKING:
    from ledgerkit.readers.gguf_metadata import Metadata

__all__ = ["Config", "base", "biases", "dense", "head_width", "latent",
           "mixer_layers", "vocabulary", "window", "without_mtp"]  # fmt: skip

Config = dict[str, Any]


def head_width(meta: Metadata, hidden: int, heads: int) -> int:
    """Return the width of a head, which keys and values share."""
    key_dim = meta.size("attention.key_length", hidden // heads)
    value_dim = meta.size("attention.value_length", hidden // heads)
    if value_dim != key_dim:
        raise UnsupportedArchitectureError(
            f"{meta.path}: keys and values of different widths in {meta.architecture!r}",
            given=(key_dim, value_dim),
        )
    return key_dim


def base(meta: Metadata) -> Config:
    """Return the fields that every decoder has."""
    heads = meta.size("attention.head_count")
    hidden = meta.size("embedding_length")
    return {
        "hidden_size": hidden,
        "num_hidden_layers": meta.layers(),
        "num_attention_heads": heads,
        "num_key_value_heads": meta.size("attention.head_count_kv", heads),
        "head_dim": head_width(meta, hidden, heads),
        **vocabulary(meta),
    }


def vocabulary(meta: Metadata) -> Config:
    """Return vocabulary, longest context and whether the table is tied."""
    return {
        "vocab_size": meta.vocab_size(),
        "max_position_embeddings": meta.size("context_length"),
        "tie_word_embeddings": "output.weight" not in meta.tensors,
    }


def dense(model_type: str, meta: Metadata) -> Config:
    """Return the fields of a decoder whose layers all have one dense MLP."""
    width = meta.size("feed_forward_length")
    return {"model_type": model_type, **base(meta), "intermediate_size": width}


def biases(meta: Metadata) -> Config:
    """Return which linear layers of the first block have a bias."""
    stated = meta.tensors
    return {
        "attention_bias": "blk.0.attn_q.bias" in stated,
        "mlp_bias": "blk.0.ffn_up.bias" in stated,
    }


def window(meta: Metadata, period: int, default: int | None = None) -> Config:
    """Return window and layer types of a model that alternates windowed and full layers."""
    layers = meta.layers()
    windowed = meta.windowed_layers(layers, period)
    tokens = meta.count("attention.sliding_window", default or 0)
    if not tokens:
        return {"sliding_window": None, "layer_types": ["full_attention"] * layers}
    types = ["sliding_attention" if here else "full_attention" for here in windowed]
    return {"sliding_window": tokens, "layer_types": types}


def latent(meta: Metadata) -> Config:
    """Return latent attention, experts and vocabulary of a DeepSeek-style decoder."""
    heads = meta.size("attention.head_count")
    rank = meta.size("attention.kv_lora_rank")
    rope = meta.size("rope.dimension_count")
    if meta.has("attention.key_length_mla"):
        width, value_dim = (meta.size(f"attention.{part}_length_mla") for part in ("key", "value"))
        stored = (meta.size("attention.key_length"), meta.size("attention.value_length"),
                  max(meta.per_layer("attention.head_count_kv", meta.layers())))  # fmt: skip
        expected = (rank + rope, rank, 1)
        if stored != expected:
            raise CheckpointError(
                f"{meta.path}: key_length, value_length, head_count_kv are not those of a latent",
                given=stored, allowed=str(expected),
            )  # fmt: skip
    else:  # converted before llama.cpp had MLA: keys and values are expanded for every head
        width, value_dim = (meta.size(f"attention.{part}_length") for part in ("key", "value"))
        meta.size("attention.head_count_kv")
    return {
        "hidden_size": meta.size("embedding_length"),
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "q_lora_rank": meta.count("attention.q_lora_rank", 0) or None,
        "kv_lora_rank": rank,
        "qk_nope_head_dim": width - rope,
        "qk_rope_head_dim": rope,
        "v_head_dim": value_dim,
        "intermediate_size": meta.size("feed_forward_length"),
        "first_k_dense_replace": meta.count("leading_dense_block_count", 0),
        "moe_intermediate_size": meta.size("expert_feed_forward_length"),
        "n_routed_experts": meta.count("expert_count", 0) or None,
        "num_experts_per_tok": meta.count("expert_used_count", 0) or None,
        "n_shared_experts": meta.count("expert_shared_count", 0) or None,
        "n_group": meta.size("expert_group_count", 1),
        "topk_group": meta.size("expert_group_used_count", 1),
        **vocabulary(meta),
    }


def mixer_layers(meta: Metadata) -> tuple[list[bool], int]:
    """Return which layers attend (the others have no key heads), and their key heads."""
    kv_heads = meta.per_layer("attention.head_count_kv", meta.layers())
    counts = sorted(set(kv_heads) - {0})
    if len(counts) != 1:
        raise UnsupportedArchitectureError(
            f"{meta.path}: attention layers of a hybrid must have the same heads", given=kv_heads
        )
    return [count > 0 for count in kv_heads], counts[0]


def without_mtp(meta: Metadata) -> Config:
    """Return layers and MTP blocks, which llama.cpp counts among the layers."""
    blocks = meta.count("nextn_predict_layers", 0)
    layers = meta.layers() - blocks
    if layers < 1:
        raise CheckpointError(f"{meta.path}: no layer is left beside the MTP blocks", given=blocks)
    if not any(name.startswith(f"blk.{layers}.") for name in meta.tensors):
        blocks = 0  # counted, but left out of the file
    return {"num_hidden_layers": layers, "num_nextn_predict_layers": blocks}
