"""MiMo-V2-Flash and MiMo-V2.5: window and full layers of different key heads, values narrower.

Sources: ``modeling_mimo_v2_flash.py`` and ``modeling_mimo_v2.py`` of the checkpoints, and the
headers of MiMo-V2.5-Pro (1,023,244,718,976 stored elements with 3 MTP blocks and fp8 scales).
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
)
from ledgerkit.readers.families._common import Frame, joint_rows, read_frame, require
from ledgerkit.readers.fields import Fields
from ledgerkit.readers.rows import Architecture, Layer, MtpPlan, Row, attention_row
from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.feed_forward import DenseFfn, MoeFfn

_COMMON = {
    "tie_word_embeddings": False,
    "attention_bias": False,
    "add_swa_attention_sink_bias": False,
    "add_full_attention_sink_bias": False,
    # no file states it; the published checkpoints of both model types carry three blocks
    "num_nextn_predict_layers": 3,
}
DEFAULTS: dict[str, Mapping[str, Any]] = {
    "mimo_v2": _COMMON,
    # the class of transformers has no fields for these: it fixes them
    "mimo_v2_flash": {**_COMMON, "add_swa_attention_sink_bias": True},
}


def read(fields: Fields, model_type: str) -> Architecture:
    """Read a MiMo-V2 decoder."""
    frame = read_frame(fields)
    hidden = frame.hidden
    layouts = ("separate", "fused_qkv") if model_type == "mimo_v2" else ("separate",)
    fused = fields.text("attention_projection_layout", allowed=layouts,
                        default="separate") == "fused_qkv"  # fmt: skip
    window = fields.optional("sliding_window", "sliding_window_size")
    # as wide as the window, and not used by the attention itself
    fields.ignore("unused", "attention_chunk_size", "hybrid_block_size")
    pattern = _pattern(fields, frame, "hybrid_layer_pattern", "layer_types", "sliding_attention")
    require(set(pattern) <= {0, 1},
            "hybrid_layer_pattern must hold 0 (full) and 1 (window)", pattern)  # fmt: skip
    kinds = {kind: _attention(fields, frame, kind, window, fused=fused) for kind in (0, 1)}
    dense, moe = _ffns(fields, frame)
    flags = _pattern(fields, frame, "moe_layer_freq", "mlp_layer_types", "sparse")
    require(set(flags) <= {0, 1},
            "moe_layer_freq must hold 0 (dense) and 1 (experts)", flags)  # fmt: skip
    layers = {
        (kind, flag): Layer(
            kinds[kind][0], ffn[0], (*attention_norm(hidden), *kinds[kind][1], *ffn[1])
        )
        for kind in (0, 1)
        for flag, ffn in ((0, dense), (1, moe))
    }
    return frame.architecture(
        [layers[pair] for pair in zip(pattern, flags, strict=True)],
        mtp=_mtp(fields, frame, layers[1, 0]),
    )


def _pattern(fields: Fields, frame: Frame, numbers: str, words: str, one: str) -> list[int]:
    """Return 0 or 1 for each layer, from a list of numbers or from one of words."""
    others = {"sliding_attention": "full_attention", "sparse": "dense"}
    types = fields.words(words, frame.layers, allowed=(one, others[one]), default=None)
    if types is not None and not fields.has(numbers):
        fields.mark(numbers)
        return [int(kind == one) for kind in types]
    found = fields.integers(numbers, frame.layers)
    require(found is not None, f"{numbers} must have one entry for each layer", found)
    return found or []


_FIXED = {"num_attention_heads": 1, "num_key_value_heads": 2, "head_dim": 1, "v_head_dim": 1}
"""How a size of window layers follows from full layers where a file states neither."""


def _size(fields: Fields, prefix: str, name: str, factor: int) -> int:
    full = fields.size(name)
    if not prefix:
        return full
    if "layer_types" in fields.values:  # written by the class, which knows no field of its own
        return fields.size(prefix + name, default=factor * full, rule=f"{factor} x {name}")
    return fields.size(prefix + name)


def _attention(
    fields: Fields, frame: Frame, kind: int, window: int | None, *, fused: bool
) -> tuple[SoftmaxAttention, list[Row]]:
    """Return full (0) or window (1) attention."""
    prefix = "swa_" if kind else ""
    heads, kv_heads, head_dim, v_head_dim = (
        _size(fields, prefix, name, fixed) for name, fixed in _FIXED.items()
    )
    require(heads % kv_heads == 0,
            f"{prefix}num_attention_heads must be a multiple of {prefix}num_key_value_heads",
            (heads, kv_heads))  # fmt: skip
    bias = fields.flag("attention_bias")
    sinks = fields.flag("add_swa_attention_sink_bias" if kind else "add_full_attention_sink_bias")
    attention = SoftmaxAttention(
        num_attention_heads=heads, num_key_value_heads=kv_heads, head_dim=head_dim,
        v_head_dim=v_head_dim, window=window if kind else None,
    )  # fmt: skip
    rows = gqa_projections(frame.hidden, heads, kv_heads, head_dim, v_head_dim, qkv_bias=bias)
    if fused:
        rows = _fuse(
            rows, frame.hidden, kv_heads, heads * head_dim, head_dim, v_head_dim, bias=bias
        )
    if sinks:
        rows.append(attention_row(LAYER + "self_attn.attention_sink_bias", heads, use="vector"))
    return attention, rows


def _fuse(
    rows: list[Row], hidden: int, kv_heads: int, q_width: int, head_dim: int, v_head_dim: int,
    *, bias: bool,
) -> list[Row]:  # fmt: skip
    """Join q, k, v in one tensor that is laid out by KV group.

    The fp8 scales of MiMo-V2.5-Pro (216 rows of them for 27,136 rows) show the groups: eight parts
    of 3,392 rows, each padded to whole blocks.
    """
    part = q_width // kv_heads + head_dim + v_head_dim
    at = LAYER + "self_attn.qkv_proj"
    joined = [attention_row(at + ".weight", part, hidden, copies=kv_heads)]
    if bias:
        joined.append(attention_row(at + ".bias", part, copies=kv_heads, use="vector"))
    return joined + [row for row in rows if "o_proj" in row.name]


def _ffns(
    fields: Fields, frame: Frame
) -> tuple[tuple[DenseFfn, list[Row]], tuple[MoeFfn, list[Row]]]:
    """Return the dense and the expert feed-forward block."""
    hidden = frame.hidden
    norm = ffn_norm(hidden)
    intermediate = fields.size("intermediate_size")
    experts = fields.size("n_routed_experts")
    width = fields.size("moe_intermediate_size")
    fields.only("n_shared_experts", 0, why="this model type has no shared experts")
    moe = MoeFfn(
        num_experts=experts,
        num_experts_per_tok=fields.size("num_experts_per_tok"),
        moe_intermediate_size=width,
        n_group=fields.size("n_group", default=1, rule="one group"),
        topk_group=fields.size("topk_group", default=1, rule="one group"),
    )
    correction = LAYER + "mlp.gate.e_score_correction_bias"
    rows = [
        *norm,
        *router(hidden, experts, correction=correction, dtype="fp32"),
        *routed_experts(hidden, width, experts),
    ]
    dense = DenseFfn(intermediate_size=intermediate)
    return (dense, [*norm, *dense_mlp(hidden, intermediate)]), (moe, rows)


def _mtp(fields: Fields, frame: Frame, layer: Layer) -> MtpPlan | None:
    """Return the MTP blocks: a window layer with a dense MLP."""
    blocks = fields.count("num_nextn_predict_layers")
    if not blocks:
        return None
    if "num_nextn_predict_layers" not in fields.values:
        fields.record.assume("mtp_unstated", family="MiMo-V2", blocks=blocks)
    at = "model.mtp.layers.{layer}."
    rows = tuple(
        row._replace(name=row.name.replace(LAYER, at)
                     .replace("post_attention_layernorm", "pre_mlp_layernorm"))
        for row in layer.rows
    )  # fmt: skip
    # the o projection stays in plain dtype: "model.decoder.self_attn.o_proj" is not converted
    rows = tuple(row._replace(quantizable=False) if "o_proj" in row.name else row for row in rows)
    return MtpPlan(blocks, Layer(layer.attention, layer.ffn, rows), 0,
                   joint_rows(frame.hidden, at, "eh_proj",
                              ("enorm", "hnorm", "final_layernorm")))  # fmt: skip
