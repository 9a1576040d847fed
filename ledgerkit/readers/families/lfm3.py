"""LFM3: short convolutions, attention with and without a window, norms before and after a block.

Source: ``models/lfm3`` of transformers 5.24; its ``g_proj`` is ``gate_proj`` in checkpoints.
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
    vocabulary,
)
from ledgerkit.readers.families._common import Frame, read_frame, read_head_dim, read_heads
from ledgerkit.readers.families.lfm2 import MLP, NAMES, convolution
from ledgerkit.readers.fields import Fields
from ledgerkit.readers.rows import Architecture, Layer, Row, attention_row
from ledgerkit.spec.attention import SoftmaxAttention, StateAttention
from ledgerkit.spec.feed_forward import DenseFfn

DEFAULTS: dict[str, Mapping[str, Any]] = {
    "lfm3": {
        "num_key_value_heads": 4,
        "head_dim": 128,
        "max_position_embeddings": 128000,
        "tie_word_embeddings": True,
        "conv_bias": False,
        "conv_L_cache": 7,
        "sliding_window": 256,
        "use_sandwich_norm": True,
        "use_attention_gate": True,
        "attention_bias": False,
    }
}


def read(fields: Fields, _model_type: str) -> Architecture:
    """Read an LFM3 decoder of convolutions and two kinds of attention."""
    frame = read_frame(fields)
    hidden = frame.hidden
    heads, kv_heads = read_heads(fields)
    head_dim = read_head_dim(fields, hidden, heads)
    bias = fields.flag("attention_bias")
    gated = fields.flag("use_attention_gate")
    rows = gqa_projections(hidden, heads, kv_heads, head_dim, qkv_bias=bias, o_bias=bias,
                           qk_norm=head_dim)  # fmt: skip
    if gated:
        rows.append(attention_row(LAYER + "self_attn.gate_proj.weight", heads, hidden))
    full = SoftmaxAttention(
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
        qk_norm=True,
        output_gate=gated,
    )
    near = full.model_copy(update={"window": fields.optional("sliding_window")})
    mixers: dict[str, tuple[SoftmaxAttention | StateAttention, list[Row]]] = {
        "full_attention": (full, rows),
        "sliding_attention": (near, rows),
        "conv": convolution(fields, hidden),
    }
    width = fields.size("intermediate_size")
    mlp = dense_mlp(hidden, width, at=MLP, names=NAMES)
    after_mixer: list[Row] = []
    after_mlp: list[Row] = []
    if fields.flag("use_sandwich_norm"):
        after_mixer = attention_norm(hidden, LAYER + "post_operator_norm")
        after_mlp = ffn_norm(hidden, LAYER + "post_ffn_norm")
    layers = {
        kind: Layer(
            attention,
            DenseFfn(intermediate_size=width),
            (
                *attention_norm(hidden, LAYER + "operator_norm"),
                *mixer,
                *after_mixer,
                *ffn_norm(hidden, LAYER + "ffn_norm"),
                *mlp,
                *after_mlp,
            ),
        )
        for kind, (attention, mixer) in mixers.items()
    }
    table = vocabulary(hidden, frame.vocab, tie=frame.tie, norm="model.embedding_norm")
    return frame.architecture([layers[kind] for kind in _kinds(fields, frame)], table)


def _kinds(fields: Fields, frame: Frame) -> list[str]:
    """Return the mixer of each layer: listed, or by the rule of the class."""
    types = fields.words("layer_types", frame.layers, default=None,
                         allowed=("conv", "full_attention", "sliding_attention"))  # fmt: skip
    if types is not None:
        return types
    fields.record.use(fields.path + "layer_types", "full in 2, 6, 10, ...; window in 4, 8, 12, ...",
                      "derived", "rule of the class")  # fmt: skip
    rule = ("sliding_attention", "conv", "full_attention", "conv")
    return ["conv", *(rule[index % 4] for index in range(1, frame.layers))]
