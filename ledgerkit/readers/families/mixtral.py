"""Mixtral: Mistral attention, experts in every layer.

Source: ``models/mixtral`` of transformers 5.24; tensor names of the checkpoints (w1, w3, w2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerkit.readers.blocks import (
    LAYER,
    attention_norm,
    ffn_norm,
    gqa_projections,
    routed_experts,
    router,
)
from ledgerkit.readers.families._common import read_frame, read_head_dim, read_heads
from ledgerkit.readers.fields import Fields
from ledgerkit.readers.rows import Architecture, Layer
from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.feed_forward import MoeFfn

DEFAULTS: dict[str, Mapping[str, Any]] = {
    "mixtral": {
        "num_key_value_heads": 8,
        "max_position_embeddings": 131072,
        "tie_word_embeddings": False,
        "sliding_window": None,
        "num_experts_per_tok": 2,
        "num_local_experts": 8,
    }
}


def read(fields: Fields, _model_type: str) -> Architecture:
    """Read a Mixtral decoder."""
    frame = read_frame(fields)
    hidden = frame.hidden
    heads, kv_heads = read_heads(fields)
    head_dim = read_head_dim(fields, hidden, heads)
    experts = fields.size("num_local_experts", "num_experts")
    topk = fields.size("num_experts_per_tok")
    width = fields.size("intermediate_size")
    attention = SoftmaxAttention(
        num_attention_heads=heads, num_key_value_heads=kv_heads, head_dim=head_dim,
        v_head_dim=head_dim, window=fields.optional("sliding_window"),
    )  # fmt: skip
    at = LAYER + "block_sparse_moe."
    rows = (
        *attention_norm(hidden),
        *gqa_projections(hidden, heads, kv_heads, head_dim),
        *ffn_norm(hidden),
        *router(hidden, experts, name=at + "gate.weight"),
        *routed_experts(hidden, width, experts, at=at + "experts.{expert}.",
                        names=("w1", "w3", "w2")),
    )  # fmt: skip
    moe = MoeFfn(num_experts=experts, num_experts_per_tok=topk, moe_intermediate_size=width)
    return frame.architecture([Layer(attention, moe, rows)] * frame.layers)
