"""ERNIE 4.5 mixtures of experts.

Source: ``models/ernie4_5_moe`` of transformers 5.24. Experts from ``moe_layer_start_index`` to
``moe_layer_end_index`` on every ``moe_layer_interval``-th layer, with a correction bias per expert.
MTP blocks: ``ernie_mtp.py`` of vLLM; names of their tensors from the published 21B checkpoint.
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
    shared_expert,
    vocabulary,
)
from ledgerkit.readers.families._common import (
    Frame,
    draft_row,
    read_frame,
    read_head_dim,
    read_heads,
)
from ledgerkit.readers.fields import MAX_LAYERS, Fields
from ledgerkit.readers.rows import Architecture, Layer, MtpPlan, Row, ffn_row
from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.feed_forward import DenseFfn, MoeFfn

DEFAULTS: dict[str, Mapping[str, Any]] = {
    "ernie4_5_moe": {
        "num_key_value_heads": 4,
        "max_position_embeddings": 131072,
        "tie_word_embeddings": True,
        "use_bias": False,
        "moe_intermediate_size": 1536,
        "moe_k": 6,
        "moe_num_experts": 64,
        "moe_num_shared_experts": 2,
        "moe_layer_start_index": 1,
        "moe_layer_end_index": -1,
        "moe_layer_interval": 1,
    }
}


def read(fields: Fields, _model_type: str) -> Architecture:
    """Read an ERNIE 4.5 mixture of experts."""
    frame = read_frame(fields)
    hidden = frame.hidden
    heads, kv_heads = read_heads(fields)
    head_dim = read_head_dim(fields, hidden, heads)
    bias = fields.flag("use_bias")
    fields.ignore("router arithmetic", "moe_norm_min", "moe_use_aux_free", "moe_gate_act")
    fields.ignore("runtime", "moe_capacity", "moe_gate", "moe_use_size_all2all",
                  "use_rmsnorm", "compression_ratio", "fuse_rope")  # fmt: skip
    attention = SoftmaxAttention(
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
    )
    rows = (
        *attention_norm(hidden),
        *gqa_projections(hidden, heads, kv_heads, head_dim, qkv_bias=bias, o_bias=bias),
        *ffn_norm(hidden),
    )
    flags = _moe_layers(fields, frame)
    kinds = {}
    for flag in set(flags):
        ffn, ffn_rows = (_moe if flag else _dense)(fields, hidden, bias=bias)
        kinds[flag] = Layer(attention, ffn, (*rows, *ffn_rows))
    mtp = _mtp(fields, frame, attention, rows, bias=bias)
    fields.ignore("unused", "intermediate_size", "moe_intermediate_size", "moe_k",
                  "moe_num_shared_experts")  # fmt: skip
    table = vocabulary(hidden, frame.vocab, tie=frame.tie)
    if bias:
        table.append(ffn_row("lm_head.bias", frame.vocab, account="vocab", split="vocab",
                             use="vector"))  # fmt: skip
    return frame.architecture([kinds[flag] for flag in flags], table, mtp)


def _mtp(
    fields: Fields, frame: Frame, attention: SoftmaxAttention, rows: tuple[Row, ...], *, bias: bool
) -> MtpPlan | None:
    """Return the MTP blocks: dense layers, each behind two norms and a projection.

    The final norm, the embedding and the head are the model's own.
    """
    blocks = fields.count("num_nextn_predict_layers", default=0, most=MAX_LAYERS)
    if not blocks:
        return None
    if bias:  # no published checkpoint says whether the projection has one, too
        fields.record.assume("mtp_not_counted", family="ERNIE 4.5")
        return None
    ffn, ffn_rows = _dense(fields, frame.hidden, bias=bias)
    block = tuple(
        row._replace(name=row.name.replace(LAYER, "model.mtp_block.{layer}."))
        for row in (*rows, *ffn_rows)
    )
    extra = (
        draft_row("model.mtp_linear_proj.{layer}.weight", frame.hidden, 2 * frame.hidden),
        *(draft_row(f"model.mtp_{name}_norm.{{layer}}.weight", frame.hidden, use="vector")
          for name in ("emb", "hidden")),
    )  # fmt: skip
    return MtpPlan(blocks, Layer(attention, ffn, block), 0, extra)


def _moe_layers(fields: Fields, frame: Frame) -> list[bool]:
    first = fields.count("moe_layer_start_index", most=MAX_LAYERS)
    last = -1
    if fields.values.get("moe_layer_end_index", -1) == -1:
        fields.mark("moe_layer_end_index")
    else:
        last = fields.count("moe_layer_end_index", most=MAX_LAYERS)
    every = fields.size("moe_layer_interval", most=MAX_LAYERS)
    last = frame.layers - 1 if last == -1 else last
    if not fields.count("moe_num_experts"):
        return [False] * frame.layers
    return [first <= i <= last and (i + 1) % every == 0 for i in range(frame.layers)]


def _dense(fields: Fields, hidden: int, *, bias: bool) -> tuple[DenseFfn, list[Row]]:
    width = fields.size("intermediate_size")
    return DenseFfn(intermediate_size=width), dense_mlp(hidden, width, bias=bias)


def _moe(fields: Fields, hidden: int, *, bias: bool) -> tuple[MoeFfn, list[Row]]:
    experts = fields.size("moe_num_experts")
    width = fields.size("moe_intermediate_size")
    shared = fields.count("moe_num_shared_experts") * width
    moe = MoeFfn(
        num_experts=experts,
        num_experts_per_tok=fields.size("moe_k"),
        moe_intermediate_size=width,
        shared_intermediate_size=shared,
    )
    rows = [
        *router(hidden, experts),
        ffn_row(LAYER + "mlp.moe_statics.e_score_correction_bias", 1, experts, account="router",
                use="buffer", dtype="fp32"),
        *routed_experts(hidden, width, experts),
    ]  # fmt: skip
    if shared:
        at = LAYER + "mlp.shared_experts."
        rows += dense_mlp(hidden, shared, at=at, bias=bias, account="shared_experts") if bias else (
            shared_expert(hidden, shared, at=at))  # fmt: skip
    return moe, rows
