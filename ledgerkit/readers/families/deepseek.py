"""DeepSeek V2-V3.2, Kimi-K2, GLM-5, Mistral 4, A.X K1, Sarvam, MiniCPM3, Youtu: latent attention.

Sources: ``deepseek-ai/DeepSeek-V3`` (README_WEIGHTS), ``modeling_deepseek.py`` of the checkpoints,
``models/deepseek_v2``, ``deepseek_v3``, ``deepseek_v32``, ``glm_moe_dsa``, ``glm4_moe_lite``,
``axk1``, ``sarvam_mla``, ``minicpm3`` and ``youtu`` (no experts) and ``mistral4`` of transformers
5.24, and the headers of DeepSeek-V3,
V3.2, Kimi-K2.6 and GLM-5.2.

With DeepSeek Sparse Attention every layer has an indexer; in GLM-5.2 only layers whose
``indexer_types`` entry is ``full`` own one, the others reuse the selection before them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

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
from ledgerkit.readers.families._common import Frame, joint_rows, read_frame, require
from ledgerkit.readers.fields import MAX_LAYERS, Fields
from ledgerkit.readers.rows import Architecture, Layer, MtpPlan, Row, attention_row
from ledgerkit.spec.attention import Indexer, LatentAttention
from ledgerkit.spec.axes import Account
from ledgerkit.spec.feed_forward import DenseFfn, MoeFfn

_COMMON = {
    "tie_word_embeddings": False,
    "attention_bias": False,
    "mlp_bias": False,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "n_shared_experts": 1,
    "n_group": 1,
    "topk_group": 1,
    "moe_layer_freq": 1,
    "num_nextn_predict_layers": 0,
}
_V3 = {
    **_COMMON,
    "max_position_embeddings": 4096,
    "n_group": 8,
    "topk_group": 4,
    "first_k_dense_replace": 3,
}
_GLM = {
    **_COMMON,
    "max_position_embeddings": 202752,
    "q_lora_rank": 2048,
    "qk_nope_head_dim": 192,
    "v_head_dim": 256,
    "first_k_dense_replace": 3,
    "index_n_heads": 32,
    "index_head_dim": 128,
    "index_topk": 2048,
    "index_topk_freq": 1,
    "index_skip_topk_offset": 2,
}
DEFAULTS: dict[str, Mapping[str, Any]] = {
    "deepseek_v2": {
        **_COMMON,
        "max_position_embeddings": 2048,
        "n_shared_experts": 2,
        "first_k_dense_replace": 0,
    },
    "deepseek_v3": _V3,
    "kimi_k2": _V3,
    "deepseek_v32": {
        **_V3,
        "max_position_embeddings": 163840,
        "index_n_heads": 64,
        "index_head_dim": 128,
        "index_topk": 2048,
    },
    "glm_moe_dsa": _GLM,
    "glm4_moe_lite": {
        **_COMMON,
        "max_position_embeddings": 202752,
        "q_lora_rank": 768,
        "qk_nope_head_dim": 192,
        "v_head_dim": 256,
        "first_k_dense_replace": 1,
    },
    "mistral4": {
        **_COMMON,
        "hidden_size": 4096,
        "vocab_size": 131072,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "intermediate_size": 12288,
        "moe_intermediate_size": 2048,
        "n_routed_experts": 128,
        "num_experts_per_tok": 4,
        "max_position_embeddings": 1048576,
        "q_lora_rank": 1024,
        "kv_lora_rank": 256,
        "qk_nope_head_dim": 64,
        "first_k_dense_replace": 0,
    },
    "minicpm3": {
        **_COMMON,
        "max_position_embeddings": 32768,
        "tie_word_embeddings": True,
        "q_lora_rank": 768,
        "kv_lora_rank": 256,
        "qk_nope_head_dim": 64,
        "qk_rope_head_dim": 32,
        "v_head_dim": None,
        "first_k_dense_replace": 0,
    },
}
DEFAULTS |= {
    "axk1": {**_V3, "max_position_embeddings": 32768, "first_k_dense_replace": 1},
    "sarvam_mla": {
        **_COMMON,
        "q_lora_rank": None,
        "max_position_embeddings": 4096,
        "first_k_dense_replace": 1,
    },
    "youtu": {
        **_COMMON,
        "max_position_embeddings": 131072,
        "tie_word_embeddings": True,
        "first_k_dense_replace": 0,
    },
}
_EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts")
_INDEXED = ("deepseek_v32", "glm_moe_dsa")
Owns = Literal["full", "shared"]


def read(fields: Fields, model_type: str) -> Architecture:
    """Read a DeepSeek-style decoder."""
    frame = read_frame(fields)
    attention = read_latent(fields)
    rows = latent_rows(fields, frame, attention)
    fields.only("mlp_bias", False, why="biases in the MLP are not implemented")
    correction = model_type not in ("deepseek_v2", "mistral4") and _has_correction(fields)
    ffns = dict(zip((False, True), read_ffns(fields, frame, correction=correction), strict=True))
    if model_type == "axk1":
        ffns[True][1].extend(ffn_norm(frame.hidden, LAYER + "mlp.post_mlp_layernorm"))
    sparse = moe_layers(fields, frame)
    owns = indexer_owners(fields, frame, model_type)
    indexer = read_indexer(fields) if model_type in _INDEXED else None

    def layer(own: Owns, *, flag: bool) -> Layer:
        kind = attention
        extra: tuple[Row, ...] = ()
        if indexer is not None:
            kind = attention.model_copy(
                update={"indexer": indexer.model_copy(update={"owned": own == "full"})}
            )
            extra = indexer_rows(frame.hidden, attention.q_lora_rank, indexer, own)
        return Layer(kind, ffns[flag][0], (*rows, *extra, *ffns[flag][1]))

    pairs = list(zip(sparse, owns, strict=True))
    layers = {pair: layer(pair[1], flag=pair[0]) for pair in dict.fromkeys(pairs)}
    table = vocabulary(frame.hidden, frame.vocab, tie=frame.tie)
    mtp = read_mtp(fields, frame, layer("full", flag=sparse[-1]))
    if model_type == "deepseek_v32":
        return fp32_norms(frame.architecture([layers[pair] for pair in pairs], table, mtp))
    return frame.architecture([layers[pair] for pair in pairs], table, mtp)


def fp32_norms(plan: Architecture) -> Architecture:
    """Store all norms in fp32, as the DeepSeek-V3.2 checkpoints do."""

    def rows(old: tuple[Row, ...]) -> tuple[Row, ...]:
        return tuple(r._replace(dtype="fp32") if r.use == "vector" else r for r in old)

    known = {id(layer): Layer(layer.attention, layer.ffn, rows(layer.rows))
             for layer in plan.layers}  # fmt: skip
    plan.layers = [known[id(layer)] for layer in plan.layers]
    plan.globals = list(rows(tuple(plan.globals)))
    if plan.mtp is not None:
        old = plan.mtp.layer
        plan.mtp = MtpPlan(
            plan.mtp.num_layers,
            Layer(old.attention, old.ffn, rows(old.rows)),
            plan.mtp.first_index,
            rows(plan.mtp.extra),
        )
    return plan


def read_latent(fields: Fields) -> LatentAttention:
    """Return latent attention, without an indexer."""
    # head_dim and num_key_value_heads say nothing about latent attention
    fields.ignore("unused", "num_key_value_heads", "head_dim", "qk_head_dim", "q_head_dim")
    return LatentAttention(
        num_attention_heads=fields.size("num_attention_heads"),
        q_lora_rank=fields.optional("q_lora_rank"),
        kv_lora_rank=fields.size("kv_lora_rank"),
        qk_nope_head_dim=fields.size("qk_nope_head_dim"),
        qk_rope_head_dim=fields.count("qk_rope_head_dim"),
        v_head_dim=_value_width(fields),
    )


def _value_width(fields: Fields) -> int:
    """Return the width of a value head; MiniCPM3 has hidden_size / heads where none is stated."""
    if fields.has("v_head_dim") or fields.defaults.get("v_head_dim", 0) is not None:
        return fields.size("v_head_dim")
    heads = fields.size("num_attention_heads")
    return fields.size("v_head_dim", default=fields.size("hidden_size") // heads,
                       rule="hidden_size / num_attention_heads")  # fmt: skip


def latent_rows(fields: Fields, frame: Frame, attention: LatentAttention) -> tuple[Row, ...]:
    """Return the rows of latent attention, norm included."""
    return (
        *attention_norm(frame.hidden),
        *mla_projections(
            frame.hidden,
            attention.num_attention_heads,
            attention.q_lora_rank,
            attention.kv_lora_rank,
            attention.qk_nope_head_dim,
            attention.qk_rope_head_dim,
            attention.v_head_dim,
            bias=fields.flag("attention_bias"),
        ),
    )


def read_indexer(fields: Fields) -> Indexer:
    """Return the lightning indexer."""
    return Indexer(
        num_heads=fields.size("index_n_heads"),
        head_dim=fields.size("index_head_dim"),
        topk=fields.size("index_topk"),
    )


def indexer_owners(fields: Fields, frame: Frame, model_type: str) -> list[Owns]:
    """Return which layers own an indexer: listed, or every n-th after the first few."""
    fields.words(
        "layer_types", frame.layers, allowed=("indexed_attention", "full_attention"), default=None
    )
    if model_type not in ("glm_moe_dsa", "mistral_large4_text"):
        return ["full"] * frame.layers
    # drafting reuses the selection as well: no other weights
    fields.ignore("runtime", "index_share_for_mtp_iteration")
    types = fields.words("indexer_types", frame.layers, allowed=("full", "shared"), default=None)
    letters = fields.values.get("index_topk_pattern")
    if types is None and letters is not None:
        words = {"F": "full", "S": "shared"}
        if isinstance(letters, str):
            letters = [words.get(letter, letter) for letter in letters]
        holder = Fields({"index_topk_pattern": letters}, fields.record, path=fields.path)
        types = holder.words("index_topk_pattern", frame.layers, allowed=("full", "shared"))
    fields.mark("index_topk_pattern", "index_topk_freq", "index_skip_topk_offset")
    if types is None:
        every = fields.size("index_topk_freq", most=MAX_LAYERS)
        offset = fields.count("index_skip_topk_offset", most=MAX_LAYERS)
        types = [
            "full" if max(index - offset + 1, 0) % every == 0 else "shared"
            for index in range(frame.layers)
        ]
    require(types[0] == "full", "the first layer must own its indexer", types[0])
    return types  # type: ignore[return-value]


def indexer_rows(
    hidden: int, q_lora_rank: int | None, indexer: Indexer, own: Owns
) -> tuple[Row, ...]:
    """Return the rows of the lightning indexer, whole on every tensor-parallel rank."""
    if own == "shared":
        return ()
    at = LAYER + "self_attn.indexer."
    heads, width = indexer.num_heads, indexer.head_dim
    account: Account = "indexer"
    return (
        attention_row(at + "wq_b.weight", heads * width, q_lora_rank or hidden, split="none",
                      account=account),
        attention_row(at + "wk.weight", width, hidden, split="none", account=account),
        attention_row(at + "k_norm.weight", width, split="none", use="vector", account=account),
        attention_row(at + "k_norm.bias", width, split="none", use="vector", account=account),
        # stays in the plain dtype in fp8 checkpoints
        attention_row(at + "weights_proj.weight", heads, hidden, split="none", account=account,
                      quantizable=False),
    )  # fmt: skip


def _has_correction(fields: Fields) -> bool:
    """Routing without an auxiliary loss stores a correction bias for each expert."""
    if not fields.has("topk_method"):
        fields.mark("topk_method")
        return True
    allowed = ("noaux_tc", "greedy", "group_limited_greedy")
    return fields.text("topk_method", allowed=allowed) == "noaux_tc"


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
    experts = fields.count(*_EXPERTS, default=0)
    if not experts:
        return dense, dense
    width = fields.size("moe_intermediate_size")
    shared = fields.count("n_shared_experts", "num_shared_experts") * width
    groups, chosen = read_expert_groups(fields, experts)
    moe = MoeFfn(
        num_experts=experts,
        num_experts_per_tok=fields.size("num_experts_per_tok", "num_experts_per_token"),
        moe_intermediate_size=width,
        shared_intermediate_size=shared,
        n_group=groups,
        topk_group=chosen,
    )
    bias = LAYER + "mlp.gate.e_score_correction_bias" if correction else None
    rows = [
        *norm,
        *router(hidden, experts, correction=bias),
        *routed_experts(hidden, width, experts),
        *(shared_expert(hidden, shared) if shared else ()),
    ]
    return dense, (moe, rows)


def read_expert_groups(fields: Fields, experts: int) -> tuple[int, int]:
    """Return the groups of experts, and how many of them a token may use."""
    groups = fields.size("n_group", "num_expert_group", default=1, rule="one group")
    chosen = fields.size("topk_group", default=1, rule="one group")
    require(
        chosen <= groups and experts % groups == 0,
        "n_group must divide the number of experts and hold at least topk_group groups",
        {"experts": experts, "n_group": groups, "topk_group": chosen},
    )
    return groups, chosen


def moe_layers(fields: Fields, frame: Frame) -> list[bool]:
    """Return which layers hold experts: listed, or from ``first_k_dense_replace`` on every n-th."""
    types = fields.words("mlp_layer_types", frame.layers, allowed=("dense", "sparse"), default=None)
    first = fields.count("first_k_dense_replace", most=MAX_LAYERS)
    if str(fields.values.get("model_type")).startswith("glm"):
        fields.only("moe_layer_freq", 1, why="GLM has experts in every layer after the first")
    every = fields.size("moe_layer_freq", most=MAX_LAYERS)
    if not fields.count(*_EXPERTS, default=0):
        return [False] * frame.layers
    if types is not None:
        return [kind == "sparse" for kind in types]
    return [index >= first and index % every == 0 for index in range(frame.layers)]


def read_mtp(fields: Fields, frame: Frame, layer: Layer) -> MtpPlan | None:
    """Return the MTP blocks: a decoder layer behind two norms and a projection."""
    blocks = fields.count("num_nextn_predict_layers", "num_mtp_layers", most=MAX_LAYERS)
    if not blocks:
        return None
    extra = joint_rows(frame.hidden, LAYER, "eh_proj", ("enorm", "hnorm", "shared_head.norm"))
    return MtpPlan(blocks, layer, frame.layers, extra)
