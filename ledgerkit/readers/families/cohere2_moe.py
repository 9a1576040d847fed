"""Command A with experts (``cohere2_moe``): one norm in front of attention and MLP side by side.

Source: ``models/cohere2_moe`` of transformers 5.24. Experts are as wide as ``intermediate_size``;
dense layers in front have a width and a pattern of windows of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerkit.readers.blocks import (
    LAYER,
    attention_norm,
    dense_mlp,
    gqa_projections,
    routed_experts,
    router,
)
from ledgerkit.readers.families._common import (
    Frame,
    read_frame,
    read_head_dim,
    read_heads,
    window_flags,
)
from ledgerkit.readers.fields import MAX_LAYERS, Fields
from ledgerkit.readers.rows import Architecture, Layer, Row
from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.feed_forward import DenseFfn, FeedForward, MoeFfn

DEFAULTS: dict[str, Mapping[str, Any]] = {
    "cohere2_moe": {
        "head_dim": 128,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": True,
        "attention_bias": False,
        "sliding_window": 4096,
        "sliding_window_pattern": 4,
        "prefix_dense_sliding_window_pattern": 1,
        "first_k_dense_replace": 0,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "num_shared_experts": 0,
    }
}


def read(fields: Fields, _model_type: str) -> Architecture:
    """Read a Command A with experts; layers differ in window and kind of MLP."""
    frame = read_frame(fields)
    heads, kv_heads = read_heads(fields)
    head_dim = read_head_dim(fields, frame.hidden, heads)
    bias = fields.flag("attention_bias")
    fields.only("use_qk_norm", False, why="this model type has no q and k norms")
    fields.ignore("router arithmetic", "shared_expert_combination_strategy", "expert_selection_fn")
    rows = (
        *attention_norm(frame.hidden),
        *gqa_projections(frame.hidden, heads, kv_heads, head_dim, qkv_bias=bias, o_bias=bias),
    )
    sparse, windowed = _kinds(fields, frame)
    window = fields.optional("sliding_window")
    ffns = {flag: (_moe if flag else _dense)(fields, frame.hidden) for flag in set(sparse)}
    fields.ignore("unused", "intermediate_size", "prefix_dense_intermediate_size", "num_experts",
                  "num_experts_per_tok", "num_shared_experts")  # fmt: skip

    def layer(*, flag: bool, near: bool) -> Layer:
        attention = SoftmaxAttention(
            num_attention_heads=heads,
            num_key_value_heads=kv_heads,
            head_dim=head_dim,
            v_head_dim=head_dim,
            window=window if near else None,
        )
        ffn, ffn_rows = ffns[flag]
        return Layer(attention, ffn, (*rows, *ffn_rows))

    pairs = list(zip(sparse, windowed, strict=True))
    layers = {pair: layer(flag=pair[0], near=pair[1]) for pair in dict.fromkeys(pairs)}
    return frame.architecture([layers[pair] for pair in pairs])


def _kinds(fields: Fields, frame: Frame) -> tuple[list[bool], list[bool]]:
    """Return which layers hold experts and which have a window: listed, or counted off."""
    first = min(fields.count("first_k_dense_replace", most=MAX_LAYERS), frame.layers)
    every = fields.size("sliding_window_pattern", most=MAX_LAYERS)
    every_dense = fields.size("prefix_dense_sliding_window_pattern", most=MAX_LAYERS)
    mlps = fields.words("mlp_layer_types", frame.layers, allowed=("dense", "sparse"), default=None)
    types = fields.words("layer_types", frame.layers, default=None,
                         allowed=("full_attention", "sliding_attention"))  # fmt: skip
    sparse = [index >= first for index in range(frame.layers)]
    if mlps is not None:
        sparse = [kind == "sparse" for kind in mlps]
    if types is not None:
        return sparse, window_flags(types)
    # the second pattern starts anew after the dense layers
    near = [(index + 1) % every_dense != 0 for index in range(first)]
    return sparse, near + [(index + 1) % every != 0 for index in range(frame.layers - first)]


def _dense(fields: Fields, hidden: int) -> tuple[FeedForward, list[Row]]:
    width = fields.size("prefix_dense_intermediate_size", default=fields.size("intermediate_size"),
                        rule="intermediate_size")  # fmt: skip
    return DenseFfn(intermediate_size=width), dense_mlp(hidden, width)


def _moe(fields: Fields, hidden: int) -> tuple[FeedForward, list[Row]]:
    experts = fields.size("num_experts")
    width = fields.size("intermediate_size")
    shared = width * fields.count("num_shared_experts")
    moe = MoeFfn(
        num_experts=experts,
        num_experts_per_tok=fields.size("num_experts_per_tok"),
        moe_intermediate_size=width,
        shared_intermediate_size=shared,
    )
    rows = [*router(hidden, experts), *routed_experts(hidden, width, experts)]
    if shared:
        at = LAYER + "mlp.shared_experts."
        rows += dense_mlp(hidden, shared, at=at, account="shared_experts")
    return moe, rows
