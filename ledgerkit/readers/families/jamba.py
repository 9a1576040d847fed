"""Jamba: Mamba-1 layers with attention in between, experts on every other layer.

Source: ``models/jamba`` of transformers 5.24. Experts are as wide as ``intermediate_size``.
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
    routed_experts,
    router,
    vocabulary,
)
from ledgerkit.readers.families._common import read_frame, read_head_dim, read_heads, require
from ledgerkit.readers.families._mamba import Mamba1, mamba1
from ledgerkit.readers.fields import MAX_LAYERS, Fields
from ledgerkit.readers.rows import Architecture, Layer, Row, attention_row
from ledgerkit.spec.attention import Attention, SoftmaxAttention, StateAttention
from ledgerkit.spec.feed_forward import DenseFfn, FeedForward, MoeFfn

DEFAULTS: dict[str, Mapping[str, Any]] = {
    "jamba": {
        "num_key_value_heads": 8,
        "max_position_embeddings": 262144,
        "tie_word_embeddings": False,
        "num_experts": 16,
        "num_experts_per_tok": 2,
        "expert_layer_period": 2,
        "expert_layer_offset": 1,
        "attn_layer_period": 8,
        "attn_layer_offset": 4,
        "mamba_d_state": 16,
        "mamba_d_conv": 4,
        "mamba_expand": 2,
        "mamba_dt_rank": "auto",
        "mamba_conv_bias": True,
        "mamba_proj_bias": False,
    }
}
AT = LAYER + "feed_forward."


def read(fields: Fields, _model_type: str) -> Architecture:
    """Read a Jamba decoder."""
    frame = read_frame(fields)
    hidden = frame.hidden
    fields.ignore("runtime", "use_mambapy", "use_associative_scan")
    fields.only("mamba_inner_layernorms", True, why="the class always has these norms")
    mixers: dict[bool, tuple[Attention, list[Row]]] = {
        True: _attention(fields, hidden),
        False: _mamba(fields, hidden),
    }
    width = fields.size("intermediate_size")
    experts = fields.size("num_experts", "num_local_experts")
    moe = MoeFfn(
        num_experts=experts,
        num_experts_per_tok=fields.size("num_experts_per_tok") if experts > 1 else 1,
        moe_intermediate_size=width,
    )
    fields.mark("num_experts_per_tok")
    norm = ffn_norm(hidden, LAYER + "pre_ff_layernorm")
    ffns: dict[bool, tuple[FeedForward, list[Row]]] = {
        True: (
            moe,
            [
                *norm,
                *router(hidden, experts, name=AT + "router.weight"),
                *routed_experts(hidden, width, experts, at=AT + "experts.{expert}."),
            ],
        ),
        False: (DenseFfn(intermediate_size=width), [*norm, *dense_mlp(hidden, width, at=AT)]),
    }
    attends = _periodic(fields, frame.layers, "attn_layer")
    sparse = _periodic(fields, frame.layers, "expert_layer")
    pairs = [(full, flag and experts > 1) for full, flag in zip(attends, sparse, strict=True)]
    layers = {
        (full, flag): Layer(
            mixers[full][0],
            ffns[flag][0],
            (*attention_norm(hidden), *mixers[full][1], *ffns[flag][1]),
        )
        for full, flag in dict.fromkeys(pairs)
    }
    table = vocabulary(hidden, frame.vocab, tie=frame.tie, norm="model.final_layernorm")
    return frame.architecture([layers[pair] for pair in pairs], table)


def _periodic(fields: Fields, layers: int, name: str) -> list[bool]:
    period = fields.size(name + "_period", most=MAX_LAYERS)
    offset = fields.count(name + "_offset", most=MAX_LAYERS)
    require(offset < period, f"{name}_offset must be below {name}_period", (offset, period))
    return [index % period == offset for index in range(layers)]


def _attention(fields: Fields, hidden: int) -> tuple[SoftmaxAttention, list[Row]]:
    heads, kv_heads = read_heads(fields)
    head_dim = read_head_dim(fields, hidden, heads)
    attention = SoftmaxAttention(
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
    )
    return attention, gqa_projections(hidden, heads, kv_heads, head_dim)


def _mamba(fields: Fields, hidden: int) -> tuple[StateAttention, list[Row]]:
    inner = fields.size("mamba_expand") * hidden
    state = fields.size("mamba_d_state")
    kernel = fields.size("mamba_d_conv")
    if fields.values.get("mamba_dt_rank", "auto") == "auto":
        rank = -(-hidden // 16)
        fields.mark("mamba_dt_rank")
        fields.record.use(fields.path + "mamba_dt_rank", rank, "derived", "hidden_size / 16")
    else:
        rank = fields.size("mamba_dt_rank")
    size = Mamba1(inner, state, kernel, rank, fields.flag("mamba_conv_bias"),
                  fields.flag("mamba_proj_bias"))  # fmt: skip
    at = LAYER + "mamba."
    attention, rows = mamba1(hidden, size, at)
    kept: dict[str, Any] = {"use": "vector", "account": "state", "split": "none"}
    rows += [
        attention_row(f"{at}{name}_layernorm.weight", width, **kept)
        for name, width in (("dt", rank), ("b", state), ("c", state))
    ]
    return attention, rows
