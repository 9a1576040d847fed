"""Gemma 2 and 3: alternating window and full layers, a norm on both sides of each block.

Sources: ``models/gemma2`` and ``models/gemma3`` of transformers 5.24. Gemma 3 files may state as
little as six fields; the rest are the class defaults below.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerkit.readers.blocks import (
    LAYER,
    attention_norm,
    dense_mlp,
    ffn_norm,
    gqa_projections,
)
from ledgerkit.readers.families._common import Frame, read_frame, read_head_dim, read_heads
from ledgerkit.readers.fields import MAX_LAYERS, Fields
from ledgerkit.readers.rows import Architecture, Layer
from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.feed_forward import DenseFfn

_COMMON = {
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 26,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "tie_word_embeddings": True,
    "attention_bias": False,
    "sliding_window": 4096,
}
DEFAULTS: dict[str, Mapping[str, Any]] = {
    "gemma2": {
        **_COMMON,
        "vocab_size": 256000,
        "max_position_embeddings": 8192,
        "sliding_window_pattern": 2,
    },
    "gemma3_text": {
        **_COMMON,
        "vocab_size": 262208,
        "max_position_embeddings": 131072,
        "sliding_window_pattern": 6,
    },
}


def read(fields: Fields, model_type: str) -> Architecture:
    """Read a Gemma 2 or 3 decoder."""
    frame = read_frame(fields)
    hidden = frame.hidden
    heads, kv_heads = read_heads(fields)
    head_dim = read_head_dim(fields, hidden, heads)
    bias = fields.flag("attention_bias")
    intermediate = fields.size("intermediate_size")
    fields.only("use_bidirectional_attention", False, why="attention in both directions has no "
                "decode phase")  # fmt: skip
    qk_norm = head_dim if model_type == "gemma3_text" else None
    rows = (
        *attention_norm(hidden),
        *attention_norm(hidden, LAYER + "post_attention_layernorm"),
        *gqa_projections(hidden, heads, kv_heads, head_dim, qkv_bias=bias, o_bias=bias,
                         qk_norm=qk_norm),
        *ffn_norm(hidden, LAYER + "pre_feedforward_layernorm"),
        *ffn_norm(hidden, LAYER + "post_feedforward_layernorm"),
        *dense_mlp(hidden, intermediate),
    )  # fmt: skip
    window = fields.optional("sliding_window")

    def layer(size: int | None) -> Layer:
        attention = SoftmaxAttention(
            num_attention_heads=heads, num_key_value_heads=kv_heads, head_dim=head_dim,
            v_head_dim=head_dim, window=size, qk_norm=qk_norm is not None,
        )  # fmt: skip
        return Layer(attention, DenseFfn(intermediate_size=intermediate), rows)

    kinds = {"sliding_attention": layer(window), "full_attention": layer(None)}
    return frame.architecture([kinds[kind] for kind in read_layer_types(fields, frame)])


def read_layer_types(fields: Fields, frame: Frame) -> list[str]:
    """Return the kinds of layers: stated, or every n-th full."""
    every = fields.size("sliding_window_pattern", "_sliding_window_pattern", most=MAX_LAYERS)
    types = fields.words("layer_types", frame.layers, default=None,
                         allowed=("full_attention", "sliding_attention"))  # fmt: skip
    if types is not None:
        return types
    derived = ["full_attention" if (index + 1) % every == 0 else "sliding_attention"
               for index in range(frame.layers)]  # fmt: skip
    fields.record.use(fields.path + "layer_types", f"one full layer in {every}", "derived",
                      "sliding_window_pattern")  # fmt: skip
    return derived
