"""MiniMax-Text-01 and MiniMax-M1: lightning attention with softmax attention in between, experts.

Source: ``models/minimax`` of transformers 5.24 (its decay buffers are computed, not stored).
Experts are as wide as ``intermediate_size``; ``attn_type_list`` holds 1 for softmax attention.
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
from ledgerkit.readers.families._common import (
    Frame,
    read_frame,
    read_head_dim,
    read_heads,
    require,
)
from ledgerkit.readers.fields import Fields
from ledgerkit.readers.rows import Architecture, Layer, Row, attention_row
from ledgerkit.spec.attention import Attention, SoftmaxAttention, StateAttention
from ledgerkit.spec.feed_forward import MoeFfn

_COMMON = {
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "num_experts_per_tok": 2,
    "num_local_experts": 8,
    "shared_intermediate_size": 0,
}
DEFAULTS: dict[str, Mapping[str, Any]] = {
    "minimax": _COMMON,
    "minimax_m1": _COMMON,
    "minimax_text_01": _COMMON,
}
_SCALARS = tuple(
    f"layernorm_{part}_{kind}"
    for part in ("full_attention", "linear_attention", "mlp")
    for kind in ("alpha", "beta")
) + tuple(
    f"{part}_{kind}_factor" for part in ("full_attn", "linear_attn", "mlp")
    for kind in ("alpha", "beta")
)  # fmt: skip


def read(fields: Fields, _model_type: str) -> Architecture:
    """Read a MiniMax-01 decoder."""
    frame = read_frame(fields)
    hidden = frame.hidden
    heads, kv_heads = read_heads(fields)
    head_dim = read_head_dim(fields, hidden, heads)
    fields.ignore("scalar", *_SCALARS)
    fields.ignore("runtime", "block_size", "shared_moe_mode", "postnorm")
    fields.only("sliding_window", why="windows of this model type are not known")
    require(
        fields.count("shared_intermediate_size") == 0,
        "shared experts of this model type are not known",
        fields.values.get("shared_intermediate_size"),
    )
    softmax = SoftmaxAttention(
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
    )
    mixers: dict[bool, tuple[Attention, list[Row]]] = {
        True: (softmax, gqa_projections(hidden, heads, kv_heads, head_dim)),
        False: _lightning(hidden, heads, head_dim),
    }
    experts = fields.size("num_local_experts", "num_experts")
    width = fields.size("intermediate_size")
    at = LAYER + "block_sparse_moe."
    ffn_rows = (
        *ffn_norm(hidden),
        *router(hidden, experts, name=at + "gate.weight"),
        *routed_experts(
            hidden, width, experts, at=at + "experts.{expert}.", names=("w1", "w3", "w2")
        ),
    )
    moe = MoeFfn(
        num_experts=experts,
        num_experts_per_tok=fields.size("num_experts_per_tok"),
        moe_intermediate_size=width,
    )
    layers = {
        full: Layer(attention, moe, (*attention_norm(hidden), *rows, *ffn_rows))
        for full, (attention, rows) in mixers.items()
    }
    return frame.architecture([layers[full] for full in _full_layers(fields, frame)])


def _full_layers(fields: Fields, frame: Frame) -> list[bool]:
    """Return which layers have softmax attention."""
    kinds = fields.integers("attn_type_list", frame.layers, default=None)
    if kinds is not None:
        require(set(kinds) <= {0, 1}, "attn_type_list holds 0 (lightning) and 1 (softmax)", kinds)
        return [kind == 1 for kind in kinds]
    types = fields.words(
        "layer_types",
        frame.layers,
        allowed=("linear_attention", "full_attention"),
        default=None,
    )
    if types is None:  # the class default
        return [index % 2 == 0 for index in range(frame.layers)]
    return [kind == "full_attention" for kind in types]


def _lightning(hidden: int, heads: int, head_dim: int) -> tuple[StateAttention, list[Row]]:
    inner = heads * head_dim
    at = LAYER + "self_attn."
    attention = StateAttention(
        variant="lightning",
        num_heads=heads,
        key_dim=head_dim,
        value_dim=head_dim,
        num_groups=heads,
    )
    rows = [
        attention_row(at + "qkv_proj.weight", 3 * inner, hidden),
        attention_row(at + "out_proj.weight", hidden, inner),
        attention_row(at + "output_gate.weight", inner, hidden),
        attention_row(at + "norm.weight", inner, use="vector", account="state"),
    ]
    return attention, rows
