"""Aria's text model: Llama attention, experts with a shared one in every layer.

Source: ``models/aria`` of transformers 5.24; tensor names of the checkpoint, which stores the
matrices of all experts of a layer together.
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
    router,
)
from ledgerkit.readers.families._common import read_frame, read_head_dim, read_heads
from ledgerkit.readers.fields import Fields
from ledgerkit.readers.rows import Architecture, Layer, ffn_row
from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.feed_forward import MoeFfn

DEFAULTS: dict[str, Mapping[str, Any]] = {
    "aria_text": {
        "max_position_embeddings": 2048,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
        "intermediate_size": 4096,
        "moe_num_experts": 8,
        "moe_topk": 2,
        "moe_num_shared_experts": 2,
    }
}


def read(fields: Fields, _model_type: str) -> Architecture:
    """Read the text model of Aria."""
    frame = read_frame(fields)
    hidden = frame.hidden
    heads, kv_heads = read_heads(fields)
    head_dim = read_head_dim(fields, hidden, heads)
    experts = fields.size("moe_num_experts")
    width = fields.size("intermediate_size")
    shared = fields.count("moe_num_shared_experts") * width
    bias = fields.flag("attention_bias")
    fields.only("moe_intermediate_size", width, why="intermediate_size is the width of an expert")
    fields.ignore("training", "moe_z_loss_coeff", "moe_aux_loss_coeff")
    attention = SoftmaxAttention(
        num_attention_heads=heads, num_key_value_heads=kv_heads, head_dim=head_dim,
        v_head_dim=head_dim,
    )  # fmt: skip
    moe = MoeFfn(
        num_experts=experts, num_experts_per_tok=fields.size("moe_topk"),
        moe_intermediate_size=width, shared_intermediate_size=shared,
    )  # fmt: skip
    at = LAYER + "mlp."
    rows = [
        *attention_norm(hidden),
        *gqa_projections(hidden, heads, kv_heads, head_dim, qkv_bias=bias, o_bias=bias),
        *ffn_norm(hidden),
        *router(hidden, experts, name=at + "router.weight"),
        *(
            ffn_row(f"{at}experts.{name}.weight", *shape, account="routed_experts",
                    split="experts", copies=experts, routed=True)
            for name, shape in (("fc1", (2 * width, hidden)), ("fc2", (hidden, width)))
        ),
    ]  # fmt: skip
    mlp_bias = fields.flag("mlp_bias")
    if shared:
        rows += dense_mlp(hidden, shared, at=at + "shared_experts.", bias=mlp_bias,
                          account="shared_experts")  # fmt: skip
    return frame.architecture([Layer(attention, moe, tuple(rows))] * frame.layers)
