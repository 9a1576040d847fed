"""Step-3.5 and Step-3.7: window and full layers of different heads, head-wise gates, experts.

Source: ``models/step3p7`` of transformers 5.24. ``attention_other_setting`` overrides the heads of
window layers; lists per layer may have entries for MTP blocks at their end. MTP blocks:
``step3p5_mtp.py`` of vLLM; each has a head of its own, chosen by the drafting step.
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
    shared_expert,
)
from ledgerkit.readers.families._common import Frame, draft_row, joint_rows, read_frame, require
from ledgerkit.readers.families.step3 import moe_layer_numbers, stacked_experts
from ledgerkit.readers.fields import MAX_CONTEXT, MAX_LAYERS, Fields
from ledgerkit.readers.rows import Architecture, Layer, MtpPlan, Row, attention_row, ffn_row
from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.feed_forward import DenseFfn, MoeFfn

_STEP = {
    "vocab_size": 128815,
    "hidden_size": 4096,
    "intermediate_size": 11264,
    "num_hidden_layers": 45,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 128000,
    "tie_word_embeddings": False,
    "num_experts_per_tok": 8,
    "n_routed_experts": 288,
    "moe_intermediate_size": 1280,
    "share_expert_dim": 1280,
    "sliding_window": None,
    "num_sliding_attention_heads": None,
    "num_nextn_predict_layers": 0,
    "attention_bias": False,
    "mlp_bias": False,
    "gating": True,
}
DEFAULTS: dict[str, Mapping[str, Any]] = {"step3p5": _STEP, "step3p7_text": _STEP}
_FIRST_MOE = 3
_TYPES = ("full_attention", "sliding_attention")
_EXPERTS = ("n_routed_experts", "moe_num_experts", "num_local_experts", "num_experts")


def read(fields: Fields, _model_type: str) -> Architecture:
    """Read a Step-3.7 text model."""
    frame = read_frame(fields)
    if fields.has("max_position_embeddings"):
        fields.ignore("duplicate", "max_seq_len")
    elif fields.has("max_seq_len"):
        frame = frame._replace(context=fields.size("max_seq_len", most=MAX_CONTEXT))
    _fixed(fields)
    hidden = frame.hidden
    blocks = fields.count("num_nextn_predict_layers", most=MAX_LAYERS)
    fields.ignore("scalar", "swiglu_limits", "swiglu_limits_shared", "query_pre_attn_scalar")
    fields.only("use_bidirectional_attention", False, why="not a decoder")
    fields.only("per_layer_config", {}, why="overrides of single layers are not read")
    types = _padded(fields, "layer_types", _TYPES, frame, blocks)
    types = types or ["full_attention"] * frame.layers
    drafted = _drafted_types(fields, frame, blocks)
    kinds = {kind: _attention(fields, hidden, sliding=kind == "sliding_attention")
             for kind in dict.fromkeys(types + drafted)}  # fmt: skip
    fields.mark("sliding_window", "num_sliding_attention_heads", "attention_other_setting")
    sparse = _sparse_layers(fields, frame, blocks)
    ffns = {flag: (_moe if flag else _dense)(fields, hidden) for flag in set(sparse)}
    mtp = _mtp(fields, frame, kinds, drafted)
    fields.ignore("unused", *_EXPERTS, "moe_intermediate_size", "num_experts_per_tok",
                  "moe_top_k", "share_expert_dim", "intermediate_size", "mlp_bias")  # fmt: skip
    pairs = list(zip(types, sparse, strict=True))
    layers = {
        (kind, flag): Layer(
            kinds[kind][0],
            ffns[flag][0],
            (*attention_norm(hidden), *kinds[kind][1], *ffn_norm(hidden), *ffns[flag][1]),
        )
        for kind, flag in dict.fromkeys(pairs)
    }
    return frame.architecture([layers[pair] for pair in pairs], mtp=mtp)


def _fixed(fields: Fields) -> None:
    """Take note of what the public files say of parts that all models of this type share."""
    fields.only("use_head_wise_attn_gate", True, why="attention is gated head by head")
    fields.only("sink", False, why="attention sinks are not implemented for Step")
    fields.only("att_impl_type", "GQA", why="attention is grouped-query attention")
    fields.only("moe_layer_offset", 0, why="moe_layers_enum says which layers hold experts")
    fields.only("moe_every_n_layer", 1, why="moe_layers_enum says which layers hold experts")
    fields.ignore("unused", "use_qk_norm")  # the class has q and k norms whatever it says
    fields.ignore("rotary", "yarn_only_types", "use_rope_layers")
    fields.ignore("router arithmetic", "moe_router_activation", "need_fp32_gate")
    fields.ignore("scalar", "zero_centered")


def _drafted_types(fields: Fields, frame: Frame, blocks: int) -> list[str]:
    """Return the attention of each MTP block: listed by itself, or behind the layers' own list."""
    if not blocks:
        fields.ignore("unused", "mtp_layer_types")
        return []
    types = fields.words("mtp_layer_types", blocks, allowed=_TYPES, default=None)
    listed = fields.values.get("layer_types")
    if types is None and isinstance(listed, list) and len(listed) == frame.layers + blocks:
        types = [str(kind) for kind in listed[frame.layers :]]
    return types or []


def _mtp(
    fields: Fields, frame: Frame, kinds: Mapping[str, tuple[SoftmaxAttention, list[Row]]],
    drafted: list[str],
) -> MtpPlan | None:  # fmt: skip
    """Return the MTP blocks: dense layers, each with two norms, a projection and its own head."""
    dense = fields.words("mtp_mlp_layer_types", allowed=("dense", "sparse"), default=None)
    blocks = fields.count("num_nextn_predict_layers", most=MAX_LAYERS)
    if not blocks:
        return None
    if len(set(drafted)) != 1 or "sparse" in (dense or ()):
        # one kind of block is published: dense, all of one attention
        fields.record.assume("mtp_not_counted", family="Step-3.7")
        return None
    attention, rows = kinds[drafted[0]]
    ffn, ffn_rows = _dense(fields, frame.hidden)
    head = LAYER + "transformer.shared_head."
    extra = (
        *joint_rows(frame.hidden, LAYER, "eh_proj", ("enorm", "hnorm")),
        draft_row(head + "norm.weight", frame.hidden, use="vector"),
        draft_row(head + "output.weight", frame.vocab, frame.hidden, use="head"),
    )
    layer = Layer(
        attention,
        ffn,
        (*attention_norm(frame.hidden), *rows, *ffn_norm(frame.hidden), *ffn_rows),
    )
    return MtpPlan(blocks, layer, frame.layers, extra)


def _padded(
    fields: Fields, name: str, allowed: tuple[str, ...], frame: Frame, blocks: int
) -> list[str] | None:
    """Return a list per layer, without the entries of MTP blocks at its end."""
    words = fields.words(name, allowed=allowed, default=None)
    if words is None:
        return None
    require(len(words) in (frame.layers, frame.layers + blocks),
            f"{name} must have one entry for each layer", len(words))  # fmt: skip
    return words[: frame.layers]


def _sparse_layers(fields: Fields, frame: Frame, blocks: int) -> list[bool]:
    types = _padded(fields, "mlp_layer_types", ("dense", "sparse"), frame, blocks)
    if types is not None:
        fields.ignore("duplicate", "moe_layers_enum")
        return [kind == "sparse" for kind in types]
    if not fields.has("moe_layers_enum"):
        fields.mark("moe_layers_enum")
        first = fields.count("first_k_dense_replace", default=_FIRST_MOE, most=MAX_LAYERS)
        return [index >= first for index in range(frame.layers)]
    listed = moe_layer_numbers(fields, frame.layers + blocks)
    return [index in listed for index in range(frame.layers)]


def _attention(fields: Fields, hidden: int, *, sliding: bool) -> tuple[SoftmaxAttention, list[Row]]:
    heads = fields.size("num_attention_heads")
    kv_heads = fields.size("num_key_value_heads", "num_attention_groups")
    head_dim = fields.size("head_dim")
    window = None
    if sliding:
        window = fields.optional("sliding_window")
        other = fields.section("attention_other_setting")
        stated = fields.optional("num_sliding_attention_heads")
        if stated is not None:
            heads = stated
        elif other is not None:
            heads = other.size("num_attention_heads", default=heads, rule="as full layers")
            kv_heads = other.size("num_key_value_heads", "num_attention_groups", default=kv_heads,
                                  rule="as full layers")  # fmt: skip
            head_dim = other.size("head_dim", default=head_dim, rule="as full layers")
            other.ignore("unused", "attention_type", "true_head_dim")
            other.finish()
    require(heads % kv_heads == 0, "num_attention_heads must be a multiple of the key/value heads",
            (heads, kv_heads))  # fmt: skip
    bias = fields.flag("attention_bias")
    gate = fields.values.get("gating", True)
    fields.mark("gating")
    require(gate in (True, "per-head", "per-channel", False), "gating is not known", gate)
    rows = gqa_projections(hidden, heads, kv_heads, head_dim, qkv_bias=bias, o_bias=bias,
                           qk_norm=head_dim)  # fmt: skip
    if gate:
        width = heads if gate in (True, "per-head") else heads * head_dim
        rows.append(attention_row(LAYER + "self_attn.g_proj.weight", width, hidden))
    attention = SoftmaxAttention(
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
        window=window,
        output_gate=bool(gate),
        qk_norm=True,
    )
    return attention, rows


def _dense(fields: Fields, hidden: int) -> tuple[DenseFfn, list[Row]]:
    width = fields.size("intermediate_size")
    rows = dense_mlp(hidden, width, bias=fields.flag("mlp_bias"))
    return DenseFfn(intermediate_size=width), rows


def _moe(fields: Fields, hidden: int) -> tuple[MoeFfn, list[Row]]:
    experts = fields.size(*_EXPERTS)
    width = fields.size("moe_intermediate_size")
    shared = fields.size("share_expert_dim")
    fields.ignore("unused", "n_shared_experts", "use_moe")
    fields.only("use_moe_router_bias", True, why="the router always has a bias")
    fields.only("mlp_bias", False, why="biases in shared experts are not implemented")
    moe = MoeFfn(
        num_experts=experts,
        num_experts_per_tok=fields.size("num_experts_per_tok", "moe_top_k"),
        moe_intermediate_size=width,
        shared_intermediate_size=shared,
    )
    rows = [
        *stacked_experts(hidden, width, experts),
        ffn_row(LAYER + "moe.router_bias", experts, account="router", use="buffer", dtype="fp32"),
        *shared_expert(hidden, shared, at=LAYER + "share_expert."),
    ]
    return moe, rows
