"""Qwen3-MoE: grouped-query attention with q/k norms, experts on every sparse step.

Source: ``models/qwen3_moe`` of transformers 5.24.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerkit.readers.blocks import (
    attention_norm,
    dense_mlp,
    ffn_norm,
    gqa_projections,
    routed_experts,
    router,
    vocabulary,
)
from ledgerkit.readers.families._common import Frame, read_frame, read_head_dim, read_heads
from ledgerkit.readers.fields import MAX_LAYERS, Fields
from ledgerkit.readers.rows import Architecture, Layer
from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.feed_forward import DenseFfn, MoeFfn

DEFAULTS: dict[str, Mapping[str, Any]] = {
    "qwen3_moe": {
        "num_key_value_heads": 4,
        "max_position_embeddings": 32768,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "use_sliding_window": False,
        "sliding_window": 4096,
        "decoder_sparse_step": 1,
        "moe_intermediate_size": 768,
        "num_experts_per_tok": 8,
        "num_experts": 128,
        "mlp_only_layers": None,
    }
}


def read(fields: Fields, model_type: str) -> Architecture:
    """Read a Qwen mixture of experts."""
    frame = read_frame(fields)
    hidden = frame.hidden
    heads, kv_heads = read_heads(fields)
    head_dim = read_head_dim(fields, hidden, heads)
    bias = fields.flag("attention_bias")
    window = None
    if fields.flag("use_sliding_window"):
        window = fields.optional("sliding_window")
    else:
        fields.ignore("unused", "sliding_window")
    fields.ignore("unused", "max_window_layers")
    attention = SoftmaxAttention(
        num_attention_heads=heads, num_key_value_heads=kv_heads, head_dim=head_dim,
        v_head_dim=head_dim, window=window, qk_norm=True,
    )  # fmt: skip
    shared = (
        *attention_norm(hidden),
        *gqa_projections(hidden, heads, kv_heads, head_dim, qkv_bias=bias, o_bias=bias,
                         qk_norm=head_dim),
        *ffn_norm(hidden),
    )  # fmt: skip
    flags = sparse_layers(fields, frame)
    kinds = {}
    if True in flags:
        experts = fields.size("num_experts", "num_local_experts")
        width = fields.size("moe_intermediate_size")
        moe = MoeFfn(num_experts=experts, num_experts_per_tok=fields.size("num_experts_per_tok"),
                     moe_intermediate_size=width)  # fmt: skip
        rows = (*shared, *router(hidden, experts), *routed_experts(hidden, width, experts))
        kinds[True] = Layer(attention, moe, rows)
    if False in flags:
        intermediate = fields.size("intermediate_size")
        dense = DenseFfn(intermediate_size=intermediate)
        kinds[False] = Layer(attention, dense, (*shared, *dense_mlp(hidden, intermediate)))
    else:
        fields.ignore("unused", "intermediate_size")
    return Architecture(
        hidden_size=hidden,
        vocab_size=frame.vocab,
        max_position_embeddings=frame.context,
        tie_word_embeddings=frame.tie,
        layers=[kinds[flag] for flag in flags],
        globals=vocabulary(hidden, frame.vocab, frame.tie),
    )


def sparse_layers(fields: Fields, frame: Frame) -> list[bool]:
    """Return which layers hold experts."""
    dense = set(fields.integers("mlp_only_layers") or ())
    step = fields.size("decoder_sparse_step", most=MAX_LAYERS)
    experts = fields.count("num_experts", "num_local_experts")
    return [
        experts > 0 and index not in dense and (index + 1) % step == 0
        for index in range(frame.layers)
    ]
