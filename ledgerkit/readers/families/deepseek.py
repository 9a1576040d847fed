"""DeepSeek V2, V3, R1 and Kimi-K2: latent attention and fine-grained experts.

Sources: ``deepseek-ai/DeepSeek-V3`` (README_WEIGHTS), ``modeling_deepseek.py`` of the checkpoints,
``models/deepseek_v2`` and ``deepseek_v3`` of transformers 5.24.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerkit.readers.blocks import (
    LAYER,
    attention_norm,
    dense_mlp,
    ffn_norm,
    mla_projections,
    routed_experts,
    router,
    shared_expert,
    vocabulary,
)
from ledgerkit.readers.families._common import Frame, read_frame, require
from ledgerkit.readers.families.llama import joint_rows
from ledgerkit.readers.fields import MAX_LAYERS, Fields
from ledgerkit.readers.rows import Architecture, Layer, MtpPlan, Row
from ledgerkit.spec.attention import LatentAttention
from ledgerkit.spec.feed_forward import DenseFfn, MoeFfn

_V3 = {
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "n_shared_experts": 1,
    "n_group": 8,
    "topk_group": 4,
    "first_k_dense_replace": 3,
    "moe_layer_freq": 1,
    "num_nextn_predict_layers": 0,
}
DEFAULTS: dict[str, Mapping[str, Any]] = {
    "deepseek_v2": {
        "max_position_embeddings": 2048,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "n_shared_experts": None,
        "n_group": None,
        "topk_group": None,
        "first_k_dense_replace": 0,
        "moe_layer_freq": 1,
        "num_nextn_predict_layers": 0,
    },
    "deepseek_v3": _V3,
    "kimi_k2": _V3,
}


def read(fields: Fields, model_type: str) -> Architecture:
    """Read a DeepSeek-style decoder."""
    frame = read_frame(fields)
    attention, attention_rows = read_latent(fields, frame)
    has_bias = model_type != "deepseek_v2" and _has_correction(fields)
    dense, moe = read_ffns(fields, frame, correction=has_bias)
    kinds = {
        False: Layer(attention, dense[0], (*attention_rows, *dense[1])),
        True: Layer(attention, moe[0], (*attention_rows, *moe[1])),
    }
    flags = moe_layers(fields, frame)
    return Architecture(
        hidden_size=frame.hidden,
        vocab_size=frame.vocab,
        max_position_embeddings=frame.context,
        tie_word_embeddings=frame.tie,
        layers=[kinds[flag] for flag in flags],
        globals=vocabulary(frame.hidden, frame.vocab, frame.tie),
        mtp=read_mtp(fields, frame, kinds[flags[-1]]),
    )


def read_latent(fields: Fields, frame: Frame) -> tuple[LatentAttention, tuple[Row, ...]]:
    """Return latent attention and its rows, norm included."""
    heads = fields.size("num_attention_heads")
    # head_dim and num_key_value_heads say nothing about latent attention
    fields.ignore("unused", "num_key_value_heads", "head_dim", "qk_head_dim")
    attention = LatentAttention(
        num_attention_heads=heads,
        q_lora_rank=fields.optional("q_lora_rank"),
        kv_lora_rank=fields.size("kv_lora_rank"),
        qk_nope_head_dim=fields.size("qk_nope_head_dim"),
        qk_rope_head_dim=fields.count("qk_rope_head_dim"),
        v_head_dim=fields.size("v_head_dim"),
    )
    rows = (
        *attention_norm(frame.hidden),
        *mla_projections(
            frame.hidden, heads, attention.q_lora_rank, attention.kv_lora_rank,
            attention.qk_nope_head_dim, attention.qk_rope_head_dim, attention.v_head_dim,
            bias=fields.flag("attention_bias"),
        ),
    )  # fmt: skip
    return attention, rows


def _has_correction(fields: Fields) -> bool:
    """Routing without an auxiliary loss stores a correction bias for each expert."""
    return not fields.has("topk_method") or fields.text(
        "topk_method", allowed=("noaux_tc", "greedy", "group_limited_greedy")
    ) == "noaux_tc"  # fmt: skip


def read_ffns(
    fields: Fields, frame: Frame, *, correction: bool
) -> tuple[tuple[DenseFfn, list[Row]], tuple[MoeFfn | DenseFfn, list[Row]]]:
    """Return the dense and the expert feed-forward block, each with its rows."""
    hidden = frame.hidden
    intermediate = fields.size("intermediate_size")
    norm = ffn_norm(hidden)
    dense = (
        DenseFfn(intermediate_size=intermediate),
        [*norm, *dense_mlp(hidden, intermediate)],
    )
    experts = fields.count("n_routed_experts", "num_experts", "num_local_experts", default=0)
    if not experts:
        return dense, dense
    width = fields.size("moe_intermediate_size")
    shared = fields.count("n_shared_experts") * width
    groups = fields.size("n_group", default=1, rule="one group")
    chosen = fields.size("topk_group", default=1, rule="one group")
    require(chosen <= groups and experts % groups == 0,
            "n_group must divide n_routed_experts and hold at least topk_group groups",
            {"n_routed_experts": experts, "n_group": groups, "topk_group": chosen})  # fmt: skip
    moe = MoeFfn(
        num_experts=experts,
        num_experts_per_tok=fields.size("num_experts_per_tok"),
        moe_intermediate_size=width,
        shared_intermediate_size=shared,
        n_group=groups,
        topk_group=chosen,
    )
    rows = [
        *norm,
        *router(hidden, experts,
                correction=LAYER + "mlp.gate.e_score_correction_bias" if correction else None),
        *routed_experts(hidden, width, experts),
        *(shared_expert(hidden, shared) if shared else ()),
    ]  # fmt: skip
    return dense, (moe, rows)


def moe_layers(fields: Fields, frame: Frame) -> list[bool]:
    """Return which layers hold experts: from ``first_k_dense_replace`` on, every n-th."""
    first = fields.count("first_k_dense_replace", most=MAX_LAYERS)
    every = fields.size("moe_layer_freq", most=MAX_LAYERS)
    if not fields.count("n_routed_experts", "num_experts", "num_local_experts", default=0):
        return [False] * frame.layers
    return [index >= first and index % every == 0 for index in range(frame.layers)]


def read_mtp(fields: Fields, frame: Frame, layer: Layer) -> MtpPlan | None:
    """Return the MTP blocks: a decoder layer behind two norms and a projection."""
    blocks = fields.count("num_nextn_predict_layers", most=MAX_LAYERS)
    if not blocks:
        return None
    return MtpPlan(
        blocks, layer, frame.layers,
        joint_rows(frame.hidden, LAYER, "eh_proj", ("enorm", "hnorm", "shared_head.norm")),
    )  # fmt: skip
