"""Llama 4 text models: chunked attention with full layers in between, one expert per token.

Source: ``models/llama4`` of transformers 5.24. Dense layers are ``intermediate_size_mlp`` wide,
experts and the shared expert ``intermediate_size``. Layers without rotary embedding attend fully.
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
    shared_expert,
)
from ledgerkit.readers.families._common import (
    Frame,
    read_frame,
    read_head_dim,
    read_heads,
    require,
)
from ledgerkit.readers.families.qwen_moe import fused_experts
from ledgerkit.readers.fields import MAX_LAYERS, Fields
from ledgerkit.readers.rows import Architecture, Layer, Row
from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.feed_forward import DenseFfn, MoeFfn

DEFAULTS: dict[str, Mapping[str, Any]] = {
    "llama4_text": {
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 131072,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "intermediate_size": 8192,
        "intermediate_size_mlp": 16384,
        "num_experts_per_tok": 1,
        "num_local_experts": 16,
        "interleave_moe_layer_step": 1,
        "moe_layers": None,
        "no_rope_layers": None,
        "no_rope_layer_interval": 4,
        "attention_chunk_size": 8192,
        "layer_types": None,
    }
}
AT = LAYER + "feed_forward."


def read(fields: Fields, _model_type: str) -> Architecture:
    """Read a Llama 4 text model."""
    frame = read_frame(fields)
    hidden = frame.hidden
    heads, kv_heads = read_heads(fields)
    head_dim = read_head_dim(fields, hidden, heads)
    bias = fields.flag("attention_bias")
    # the q and k norms have no weights
    fields.ignore("unused", "use_qk_norm", "for_llm_compressor")
    chunk = fields.optional("attention_chunk_size")
    rows = (
        *attention_norm(hidden),
        *gqa_projections(hidden, heads, kv_heads, head_dim, qkv_bias=bias, o_bias=bias),
        *ffn_norm(hidden),
    )
    sparse = _moe_layers(fields, frame)
    ffns = {flag: (_moe if flag else _dense)(fields, hidden) for flag in set(sparse)}
    fields.ignore("unused", "intermediate_size_mlp", "intermediate_size", "num_local_experts",
                  "num_experts_per_tok")  # fmt: skip

    def layer(*, chunked: bool, flag: bool) -> Layer:
        attention = SoftmaxAttention(
            num_attention_heads=heads,
            num_key_value_heads=kv_heads,
            head_dim=head_dim,
            v_head_dim=head_dim,
            chunk=chunk if chunked else None,
        )
        ffn, ffn_rows = ffns[flag]
        return Layer(attention, ffn, (*rows, *ffn_rows))

    pairs = list(zip(_chunked_layers(fields, frame), sparse, strict=True))
    layers = {
        (chunked, flag): layer(chunked=chunked, flag=flag) for chunked, flag in dict.fromkeys(pairs)
    }
    return frame.architecture([layers[pair] for pair in pairs])


def _chunked_layers(fields: Fields, frame: Frame) -> list[bool]:
    """Return which layers attend in chunks: those with rotary embedding."""
    types = fields.words(
        "layer_types", frame.layers, allowed=("chunked_attention", "full_attention")
    )
    rotary = fields.integers("no_rope_layers", frame.layers if fields.values.get("no_rope_layers")
                             else None)  # fmt: skip
    every = fields.size("no_rope_layer_interval", most=MAX_LAYERS)
    if types is not None:
        return [kind == "chunked_attention" for kind in types]
    if rotary:
        return [flag != 0 for flag in rotary]
    return [(index + 1) % every != 0 for index in range(frame.layers)]


def _moe_layers(fields: Fields, frame: Frame) -> list[bool]:
    """Return which layers hold experts: listed, or every n-th."""
    listed = fields.integers("moe_layers")
    step = fields.count("interleave_moe_layer_step", most=MAX_LAYERS)
    if listed is None:  # 0: no layer holds experts (Llama Guard 4)
        listed = list(range(step - 1, frame.layers, step)) if step else []
    require(
        all(index < frame.layers for index in listed), "moe_layers names a missing layer", listed
    )
    return [index in set(listed) for index in range(frame.layers)]


def _dense(fields: Fields, hidden: int) -> tuple[DenseFfn, list[Row]]:
    width = fields.size("intermediate_size_mlp")
    return DenseFfn(intermediate_size=width), dense_mlp(hidden, width, at=AT)


def _moe(fields: Fields, hidden: int) -> tuple[MoeFfn, list[Row]]:
    experts = fields.size("num_local_experts", "num_experts")
    width = fields.size("intermediate_size")
    moe = MoeFfn(
        num_experts=experts,
        num_experts_per_tok=fields.size("num_experts_per_tok"),
        moe_intermediate_size=width,
        shared_intermediate_size=width,
    )
    rows = [
        *router(hidden, experts, name=AT + "router.weight"),
        *fused_experts(hidden, width, experts, at=AT + "experts.", transposed=True),
        *shared_expert(hidden, width, at=AT + "shared_expert."),
    ]
    return moe, rows
