"""Phi-3, Phi-3.5 and Phi-4: fused projections.

Source: ``models/phi3`` of transformers 5.24. q, k and v are slices of one stored tensor, and so are
the two inner matrices of the MLP.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerkit.readers.blocks import LAYER, attention_norm, ffn_norm
from ledgerkit.readers.families._common import read_frame, read_head_dim, read_heads
from ledgerkit.readers.fields import Fields
from ledgerkit.readers.rows import Architecture, Layer, attention_row, ffn_row
from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.feed_forward import DenseFfn

DEFAULTS: dict[str, Mapping[str, Any]] = {
    "phi3": {
        "max_position_embeddings": 4096,
        "tie_word_embeddings": False,
        "sliding_window": None,
    },
    "phi4_multimodal": {
        "num_key_value_heads": 8,
        "max_position_embeddings": 131072,
        "tie_word_embeddings": False,
        "sliding_window": None,
    },
}


def read(fields: Fields, _model_type: str) -> Architecture:
    """Read a Phi-3 decoder."""
    frame = read_frame(fields)
    hidden = frame.hidden
    heads, kv_heads = read_heads(fields)
    head_dim = read_head_dim(fields, hidden, heads)
    intermediate = fields.size("intermediate_size")
    fields.ignore("rotary", "full_attn_mod", "interpolate_factor")
    for name in ("attention_bias", "mlp_bias"):
        fields.only(name, False, why="Phi-3 has no biases")
    attention = SoftmaxAttention(
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
        window=fields.optional("sliding_window"),
    )
    at, mlp = LAYER + "self_attn.", LAYER + "mlp."
    rows = (
        *attention_norm(hidden),
        attention_row(at + "qkv_proj.weight", heads * head_dim, hidden),
        attention_row(at + "qkv_proj.weight", 2 * kv_heads * head_dim, hidden, split="kv_heads"),
        attention_row(at + "o_proj.weight", hidden, heads * head_dim),
        *ffn_norm(hidden),
        ffn_row(mlp + "gate_up_proj.weight", 2 * intermediate, hidden, account="dense", split="tp"),
        ffn_row(mlp + "down_proj.weight", hidden, intermediate, account="dense", split="tp"),
    )
    layer = Layer(attention, DenseFfn(intermediate_size=intermediate), rows)
    return frame.architecture([layer] * frame.layers)
