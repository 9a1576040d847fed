"""gpt-oss: biases and sinks, alternating windows, fused experts in mxfp4.

Sources: ``models/gpt_oss`` of transformers 5.24, the headers of gpt-oss-20b.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerkit.readers.blocks import (
    LAYER,
    attention_norm,
    ffn_norm,
    gqa_projections,
)
from ledgerkit.readers.families._common import read_frame, read_head_dim, read_heads
from ledgerkit.readers.families.gemma import read_layer_types
from ledgerkit.readers.fields import Fields
from ledgerkit.readers.rows import Architecture, Layer, attention_row, ffn_row
from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.axes import Account
from ledgerkit.spec.feed_forward import MoeFfn

DEFAULTS: dict[str, Mapping[str, Any]] = {
    "gpt_oss": {
        "vocab_size": 201088,
        "hidden_size": 2880,
        "intermediate_size": 2880,
        "num_hidden_layers": 36,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "max_position_embeddings": 131072,
        "tie_word_embeddings": False,
        "attention_bias": True,
        "sliding_window": 128,
        "sliding_window_pattern": 2,
        "num_local_experts": 128,
        "num_experts_per_tok": 4,
    }
}


def read(fields: Fields, _model_type: str) -> Architecture:
    """Read a gpt-oss decoder."""
    frame = read_frame(fields)
    hidden = frame.hidden
    heads, kv_heads = read_heads(fields)
    head_dim = read_head_dim(fields, hidden, heads)
    bias = fields.flag("attention_bias")
    experts = fields.size("num_local_experts", "num_experts")
    topk = fields.size("num_experts_per_tok", "experts_per_token")
    width = fields.size("intermediate_size")
    window = fields.optional("sliding_window")
    mlp = LAYER + "mlp."
    account: Account = "routed_experts"
    rows = (
        *attention_norm(hidden),
        *gqa_projections(hidden, heads, kv_heads, head_dim, qkv_bias=bias, o_bias=bias),
        attention_row(LAYER + "self_attn.sinks", heads, use="vector"),
        *ffn_norm(hidden),
        ffn_row(mlp + "router.weight", experts, hidden, account="router", quantizable=False),
        ffn_row(mlp + "router.bias", experts, account="router", use="vector"),
        ffn_row(mlp + "experts.gate_up_proj", 2 * width, hidden, account=account,
                split="experts", copies=experts, routed=True),
        ffn_row(mlp + "experts.gate_up_proj_bias", 2 * width, account=account, use="vector",
                split="experts", copies=experts, routed=True),
        ffn_row(mlp + "experts.down_proj", hidden, width, account=account, split="experts",
                copies=experts, routed=True),
        ffn_row(mlp + "experts.down_proj_bias", hidden, account=account, use="vector",
                split="experts", copies=experts, routed=True),
    )  # fmt: skip
    moe = MoeFfn(num_experts=experts, num_experts_per_tok=topk, moe_intermediate_size=width)

    def layer(size: int | None) -> Layer:
        attention = SoftmaxAttention(
            num_attention_heads=heads,
            num_key_value_heads=kv_heads,
            head_dim=head_dim,
            v_head_dim=head_dim,
            window=size,
        )
        return Layer(attention, moe, rows)

    fields.only(
        "sliding_window_pattern", 2, why="every other layer of this model type has a window"
    )
    kinds = {"sliding_attention": layer(window), "full_attention": layer(None)}
    return frame.architecture([kinds[kind] for kind in read_layer_types(fields, frame)])
