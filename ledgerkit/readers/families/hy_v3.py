"""Hy3 (Hunyuan 3): q/k norms per head, experts behind a correction bias, dense first layers.

Source: ``models/hy_v3`` of transformers 5.24; MTP blocks: ``hy_v3_mtp.py`` of vLLM.
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
from ledgerkit.readers.families._common import (
    Frame,
    joint_rows,
    read_frame,
    read_head_dim,
    read_heads,
)
from ledgerkit.readers.fields import MAX_LAYERS, Fields
from ledgerkit.readers.rows import Architecture, Layer, MtpPlan
from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.feed_forward import DenseFfn, MoeFfn

DEFAULTS: dict[str, Mapping[str, Any]] = {
    "hy_v3": {
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 131072,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
        "num_experts": 192,
        "num_experts_per_tok": 8,
        "num_shared_experts": 1,
        "moe_intermediate_size": 1536,
        "first_k_dense_replace": 1,
        "num_nextn_predict_layers": 0,
    }
}


def read(fields: Fields, _model_type: str) -> Architecture:
    """Read a Hy3 decoder."""
    frame = read_frame(fields)
    hidden = frame.hidden
    heads, kv_heads = read_heads(fields)
    head_dim = read_head_dim(fields, hidden, heads)
    bias, mlp_bias = fields.flag("attention_bias"), fields.flag("mlp_bias")
    fields.ignore("router arithmetic", "enable_moe_fp32_combine", "route_norm")
    fields.only("use_qk_norm", True, why="the class always has q and k norms")
    fields.only("qk_norm", True, why="the class always has q and k norms")
    attention = SoftmaxAttention(
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
        qk_norm=True,
    )
    rows = (
        *attention_norm(hidden),
        *gqa_projections(
            hidden, heads, kv_heads, head_dim, qkv_bias=bias, o_bias=bias, qk_norm=head_dim
        ),
        *ffn_norm(hidden),
    )
    types = fields.words("mlp_layer_types", frame.layers, allowed=("dense", "sparse"), default=None)
    first = fields.count("first_k_dense_replace", most=MAX_LAYERS)
    flags = (
        [index >= first for index in range(frame.layers)]
        if types is None
        else [kind == "sparse" for kind in types]
    )
    layers = {}
    if False in flags:
        width = fields.size("intermediate_size")
        ffn_rows = dense_mlp(hidden, width, bias=mlp_bias)
        layers[False] = Layer(attention, DenseFfn(intermediate_size=width), (*rows, *ffn_rows))
    if True in flags:
        experts = fields.size("num_experts", "num_local_experts", "n_routed_experts")
        width = fields.size("moe_intermediate_size", "expert_hidden_dim")
        shared = fields.count("num_shared_experts", "n_shared_experts") * width
        moe = MoeFfn(
            num_experts=experts,
            num_experts_per_tok=fields.size("num_experts_per_tok"),
            moe_intermediate_size=width,
            shared_intermediate_size=shared,
        )
        ffn_rows = [
            *router(
                hidden, experts, correction=LAYER + "mlp.e_score_correction_bias", dtype="fp32"
            ),
            *routed_experts(hidden, width, experts),
        ]
        if shared:
            at = LAYER + "mlp.shared_experts."
            ffn_rows += dense_mlp(hidden, shared, at=at, bias=mlp_bias, account="shared_experts")
        layers[True] = Layer(attention, moe, (*rows, *ffn_rows))
    fields.ignore("unused", "intermediate_size", "num_experts", "moe_intermediate_size",
                  "num_shared_experts", "num_experts_per_tok")  # fmt: skip
    return frame.architecture([layers[flag] for flag in flags], mtp=_mtp(fields, frame, layers))


def _mtp(fields: Fields, frame: Frame, layers: Mapping[bool, Layer]) -> MtpPlan | None:
    """Return the MTP blocks: a layer with experts behind two norms and a projection."""
    blocks = fields.count("num_nextn_predict_layers", most=MAX_LAYERS)
    if not blocks:
        return None
    if True not in layers:
        fields.record.assume("mtp_not_counted", family="Hy3")
        return None
    norms = ("enorm", "hnorm", "final_layernorm")
    return MtpPlan(blocks, layers[True], frame.layers,
                   joint_rows(frame.hidden, LAYER, "eh_proj", norms))  # fmt: skip
