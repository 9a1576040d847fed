"""MiniMax-M2 and M3: grouped-query attention with q/k norms, experts; M3 adds block selection.

Sources: ``models/minimax_m2`` and ``minimax_m3_vl`` of transformers 5.24; the headers of
MiniMax-M2.7 and M3, which hold no MTP tensors although the configs name MTP modules. In M2 the q
and k norms run over the whole projection, in M3 per head.
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
from ledgerkit.spec.attention import Indexer, SoftmaxAttention
from ledgerkit.spec.feed_forward import DenseFfn, MoeFfn

_M3 = {
    "num_key_value_heads": 4,
    "head_dim": 128,
    "max_position_embeddings": 524288,
    "tie_word_embeddings": False,
    "use_qk_norm": True,
    "qk_norm_type": "per_head",
    "use_routing_bias": True,
    "num_experts_per_tok": 4,
    "num_local_experts": 128,
    "dense_intermediate_size": 12288,
    "shared_intermediate_size": 3072,
    "index_n_heads": 4,
    "index_head_dim": 128,
    "index_block_size": 128,
    "index_topk_blocks": 16,
}
DEFAULTS: dict[str, Mapping[str, Any]] = {
    "minimax_m2": {
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 196608,
        "tie_word_embeddings": False,
        "use_qk_norm": True,
        "qk_norm_type": "per_layer",
        "use_routing_bias": True,
        "num_experts_per_tok": 8,
        "num_local_experts": 256,
        "shared_intermediate_size": 0,
    },
    "minimax_m3": _M3,
    "minimax_m3_vl_text": _M3,
}
MOE = LAYER + "block_sparse_moe."


def read(fields: Fields, model_type: str) -> Architecture:
    """Read a MiniMax-M2 or M3 decoder."""
    frame = read_frame(fields)
    hidden = frame.hidden
    heads, kv_heads = read_heads(fields)
    head_dim = read_head_dim(fields, hidden, heads)
    m3 = model_type != "minimax_m2"
    if fields.has("num_mtp_modules") or fields.has("num_nextn_predict_layers"):
        fields.record.assume("mtp_not_stored")
    fields.ignore("unused", "use_mtp", "mtp_transformer_layers", "num_mtp_modules",
                  "num_nextn_predict_layers")  # fmt: skip
    fields.only("attention_output_gate", False, why="the output gate is not implemented")
    fields.ignore("epsilon", "use_gemma_norm")
    for part in ("full_attention", "linear_attention", "mlp"):
        fields.ignore("scalar", f"layernorm_{part}_alpha", f"layernorm_{part}_beta")
    if not m3:  # every layer has experts, none a dense or a shared MLP
        fields.ignore("unused", "mlp_intermediate_size", "shared_moe_mode")
    norm = _qk_norm(fields, heads, kv_heads, head_dim)
    rows = (
        *attention_norm(hidden),
        *gqa_projections(hidden, heads, kv_heads, head_dim, qk_norm=norm),
    )
    plain = SoftmaxAttention(
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
        qk_norm=True,
    )
    indexer, selecting = _selection(fields, frame) if m3 else (None, [False] * frame.layers)
    ffns = {True: _moe(fields, hidden), False: _dense(fields, hidden) if m3 else None}
    if not m3:
        kinds = fields.integers("attn_type_list", frame.layers, default=None)
        require(
            kinds is None or set(kinds) == {1}, "attn_type_list must hold 1 (softmax) only", kinds
        )

    def layer(*, select: bool, sparse: bool) -> Layer:
        attention = plain
        extra: tuple[Row, ...] = ()
        if select and indexer is not None:
            attention = plain.model_copy(update={"indexer": indexer})
            extra = _indexer_rows(hidden, indexer)
        ffn = ffns[sparse]
        require(ffn is not None, "a dense layer needs dense_intermediate_size", sparse)
        return Layer(attention, ffn[0], (*rows, *extra, *ffn[1]))  # type: ignore[index]

    pairs = list(zip(selecting, _sparse_layers(fields, frame), strict=True))
    layers = {
        (select, flag): layer(select=select, sparse=flag) for select, flag in dict.fromkeys(pairs)
    }
    return frame.architecture([layers[pair] for pair in pairs])


def _qk_norm(fields: Fields, heads: int, kv_heads: int, head_dim: int) -> int | tuple[int, int]:
    fields.only("use_qk_norm", True, why="this model type always has q and k norms")
    kind = fields.text("qk_norm_type", allowed=("per_layer", "per_head"))
    return head_dim if kind == "per_head" else (heads * head_dim, kv_heads * head_dim)


def _selection(fields: Fields, frame: Frame) -> tuple[Indexer, list[bool]]:
    """Return the block indexer, and which layers select blocks."""
    part = fields.section("sparse_attention_config")
    types = fields.words(
        "layer_types",
        frame.layers,
        allowed=("minimax_m3_sparse", "full_attention"),
        default=None,
    )
    fields.ignore("unused", "index_local_blocks")
    if part is None:
        indexer = Indexer(
            num_heads=fields.size("index_n_heads"),
            head_dim=fields.size("index_head_dim"),
            topk=fields.size("index_topk_blocks") * fields.size("index_block_size"),
        )
        flags = [kind == "minimax_m3_sparse" for kind in types or ["full"] * frame.layers]
        return indexer, flags
    fields.ignore("duplicate", "index_n_heads", "index_head_dim", "index_block_size",
                  "index_topk_blocks")  # fmt: skip
    part.ignore("unused", "sparse_score_type", "sparse_init_block", "sparse_local_block",
                "sparse_disable_index_value")  # fmt: skip
    indexer = Indexer(
        num_heads=part.size("sparse_num_index_heads"),
        head_dim=part.size("sparse_index_dim"),
        topk=part.size("sparse_topk_blocks") * part.size("sparse_block_size"),
    )
    used = part.flag("use_sparse_attention", default=True)
    freq = part.integers("sparse_attention_freq", frame.layers)
    part.finish()
    if types is not None:
        return indexer, [used and kind == "minimax_m3_sparse" for kind in types]
    require(freq is not None, "sparse_attention_freq must have one entry for each layer", freq)
    return indexer, [used and bool(flag) for flag in freq or ()]


def _indexer_rows(hidden: int, indexer: Indexer) -> tuple[Row, ...]:
    at, width = LAYER + "self_attn.index_", indexer.head_dim
    return (
        attention_row(at + "q_proj.weight", indexer.num_heads * width, hidden, split="none",
                      account="indexer"),
        attention_row(at + "k_proj.weight", width, hidden, split="none", account="indexer"),
        attention_row(at + "q_norm.weight", width, split="none", use="vector", account="indexer"),
        attention_row(at + "k_norm.weight", width, split="none", use="vector", account="indexer"),
    )  # fmt: skip


def _dense(fields: Fields, hidden: int) -> tuple[DenseFfn, list[Row]]:
    width = fields.size("dense_intermediate_size")
    return DenseFfn(intermediate_size=width), [*ffn_norm(hidden), *dense_mlp(hidden, width)]


def _moe(fields: Fields, hidden: int) -> tuple[MoeFfn, list[Row]]:
    experts = fields.size("num_local_experts", "num_experts", "n_routed_experts")
    width = fields.size("moe_intermediate_size", "intermediate_size")
    shared = fields.count("shared_intermediate_size")
    if shared:
        fields.only("n_shared_experts", 1, why="shared_intermediate_size is the width of one")
    fields.ignore("unused", "n_shared_experts")
    moe = MoeFfn(
        num_experts=experts,
        num_experts_per_tok=fields.size("num_experts_per_tok"),
        moe_intermediate_size=width,
        shared_intermediate_size=shared,
    )
    bias = MOE + "e_score_correction_bias" if fields.flag("use_routing_bias") else None
    rows = [
        *ffn_norm(hidden),
        *router(hidden, experts, name=MOE + "gate.weight", correction=bias, dtype="fp32"),
        *routed_experts(
            hidden, width, experts, at=MOE + "experts.{expert}.", names=("w1", "w3", "w2")
        ),
    ]
    if shared:
        rows += shared_expert(hidden, shared, at=MOE + "shared_experts.")
    return moe, rows


def _sparse_layers(fields: Fields, frame: Frame) -> list[bool]:
    types = fields.words("mlp_layer_types", frame.layers, allowed=("dense", "sparse"), default=None)
    freq = fields.integers("moe_layer_freq", frame.layers, default=None)
    first = fields.count("first_k_dense_replace", default=0)
    if types is not None:
        return [kind == "sparse" for kind in types]
    if freq is None and first:
        return [index >= first for index in range(frame.layers)]
    return [bool(flag) for flag in freq] if freq is not None else [True] * frame.layers
