"""LFM2: short convolutions with gates, grouped-query attention in some layers, dense or experts.

Source: ``models/lfm2`` and ``models/lfm2_moe`` of transformers 5.24. A convolution keeps the last
columns of its input and no other state. The width of a dense MLP is adjusted unless the config says
no: two thirds of it, rounded up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerkit.errors import ConfigError
from ledgerkit.readers.blocks import (
    LAYER,
    attention_norm,
    dense_mlp,
    ffn_norm,
    gqa_projections,
    routed_experts,
    router,
    vocabulary,
)
from ledgerkit.readers.families._common import read_frame, read_head_dim, read_heads, require
from ledgerkit.readers.fields import MAX_LAYERS, Fields
from ledgerkit.readers.rows import Architecture, Layer, Row, attention_row
from ledgerkit.spec.attention import SoftmaxAttention, StateAttention
from ledgerkit.spec.feed_forward import DenseFfn, FeedForward, MoeFfn

_COMMON: dict[str, Any] = {
    "num_key_value_heads": 8,
    "max_position_embeddings": 128000,
    "tie_word_embeddings": True,
    "conv_bias": False,
    "conv_L_cache": 3,
}
DEFAULTS: dict[str, Mapping[str, Any]] = {
    "lfm2": {
        **_COMMON,
        "block_multiple_of": 256,
        "block_ffn_dim_multiplier": 1.0,
        "block_auto_adjust_ff_dim": True,
    },
    "lfm2_moe": {
        **_COMMON,
        "num_dense_layers": 2,
        "num_experts": 32,
        "num_experts_per_tok": 4,
        "use_expert_bias": True,
    },
}
MLP = LAYER + "feed_forward."
NAMES = ("w1", "w3", "w2")


def read(fields: Fields, model_type: str) -> Architecture:
    """Read an LFM2 decoder."""
    frame = read_frame(fields)._replace(tie=fields.flag("tie_word_embeddings", "tie_embedding"))
    hidden = frame.hidden
    heads, kv_heads = read_heads(fields)
    fields.only("num_heads", heads, why="num_attention_heads says another number")
    for name in ("block_dim", "conv_dim", "conv_dim_out"):
        fields.only(name, hidden, why="the convolutions are as wide as the model")
    fields.only("block_use_swiglu", True, why="the MLP of this model type is gated by SiLU")
    fields.ignore("initialisation", "block_mlp_init_scale", "block_out_init_scale",
                  "block_use_xavier_init", "conv_use_xavier_init")  # fmt: skip
    fields.ignore("rotary", "theta", "use_pos_enc")
    fields.ignore("epsilon", "block_norm_eps")
    head_dim = read_head_dim(fields, hidden, heads)
    softmax = SoftmaxAttention(num_attention_heads=heads, num_key_value_heads=kv_heads,
                               head_dim=head_dim, v_head_dim=head_dim, qk_norm=True)  # fmt: skip
    projections = gqa_projections(hidden, heads, kv_heads, head_dim, qk_norm=head_dim,
                                  norm_names=("q_layernorm", "k_layernorm"))  # fmt: skip
    projections = [row._replace(name=row.name.replace("o_proj", "out_proj")) for row in projections]
    mixers: dict[bool, tuple[SoftmaxAttention | StateAttention, list[Row]]] = {
        True: (softmax, projections),
        False: convolution(fields, hidden),
    }
    attends = _attention_layers(fields, frame.layers)
    dense = frame.layers
    if model_type == "lfm2_moe":
        dense = fields.count("num_dense_layers", most=MAX_LAYERS)
    sparse = [index >= dense for index in range(frame.layers)]
    ffns = {flag: (_moe if flag else _dense)(fields, hidden, model_type) for flag in set(sparse)}
    fields.ignore("unused", "intermediate_size", "moe_intermediate_size", "num_experts",
                  "num_experts_per_tok", "use_expert_bias")  # fmt: skip
    pairs = list(zip(attends, sparse, strict=True))
    layers = {
        (full, flag): Layer(
            mixers[full][0],
            ffns[flag][0],
            (
                *attention_norm(hidden, LAYER + "operator_norm"),
                *mixers[full][1],
                *ffn_norm(hidden, LAYER + "ffn_norm"),
                *ffns[flag][1],
            ),
        )
        for full, flag in dict.fromkeys(pairs)
    }
    table = vocabulary(hidden, frame.vocab, tie=frame.tie, norm="model.embedding_norm")
    return frame.architecture([layers[pair] for pair in pairs], table)


def _attention_layers(fields: Fields, layers: int) -> list[bool]:
    """Return which layers attend: listed by kind, or by number."""
    kinds = fields.words("layer_types", layers, allowed=("conv", "full_attention"), default=None)
    listed = fields.integers("full_attn_idxs", default=None)
    if kinds is None and listed is None:
        raise ConfigError("the config does not say which layers attend and which convolve",
                          given={"layer_types": None, "full_attn_idxs": None},
                          allowed="a type for each layer",
                          fix="state layer_types")  # fmt: skip
    named = [index in set(listed or ()) for index in range(layers)]
    attends = named if kinds is None else [kind == "full_attention" for kind in kinds]
    if listed is not None:
        require(max(listed, default=0) < layers and named == attends,
                "full_attn_idxs and layer_types contradict each other", listed)  # fmt: skip
    return attends


def convolution(fields: Fields, hidden: int) -> tuple[StateAttention, list[Row]]:
    """Return a gated short convolution: three streams in, one out."""
    kernel = fields.size("conv_L_cache")
    attention = StateAttention(
        variant="short_conv",
        num_heads=hidden,
        key_dim=1,
        value_dim=1,
        conv_channels=hidden,
        conv_kernel=kernel,
    )
    at = LAYER + "conv."
    kept: dict[str, Any] = {"use": "vector", "account": "state"}
    rows = [
        attention_row(at + "in_proj.weight", 3 * hidden, hidden),
        attention_row(at + "conv.weight", hidden, 1, kernel, **kept),
        attention_row(at + "out_proj.weight", hidden, hidden),
    ]
    if fields.flag("conv_bias"):
        rows += [
            attention_row(at + "in_proj.bias", 3 * hidden, use="vector"),
            attention_row(at + "conv.bias", hidden, **kept),
            attention_row(at + "out_proj.bias", hidden, use="vector", split="none"),
        ]
    return attention, rows


def _dense(fields: Fields, hidden: int, model_type: str) -> tuple[FeedForward, list[Row]]:
    width = fields.size("block_ff_dim", "intermediate_size")
    if model_type == "lfm2" and fields.flag("block_auto_adjust_ff_dim"):
        part = fields.size("block_multiple_of")
        width = int(fields.number("block_ffn_dim_multiplier") * int(2 * width / 3))
        width = -(-width // part) * part
        fields.record.use(fields.path + "intermediate_size", width, "derived",
                          "two thirds, rounded up to block_multiple_of")  # fmt: skip
    fields.mark("block_multiple_of", "block_ffn_dim_multiplier")
    require(width > 0, "the adjusted width of the MLP must be above 0", width)
    rows = dense_mlp(hidden, width, at=MLP, names=NAMES)
    return DenseFfn(intermediate_size=width), rows


def _moe(fields: Fields, hidden: int, _model_type: str) -> tuple[FeedForward, list[Row]]:
    experts = fields.size("num_experts")
    width = fields.size("moe_intermediate_size")
    moe = MoeFfn(
        num_experts=experts,
        num_experts_per_tok=fields.size("num_experts_per_tok"),
        moe_intermediate_size=width,
    )
    bias = MLP + "expert_bias" if fields.flag("use_expert_bias") else None
    rows: list[Row] = [
        *router(hidden, experts, name=MLP + "gate.weight", correction=bias),
        *routed_experts(hidden, width, experts, at=MLP + "experts.{expert}.", names=NAMES),
    ]
    return moe, rows
