"""Grouped-query attention with routed experts, told apart by one table.

OLMoE, FlexOlmo, Phi-3.5-MoE, dots.llm1, Solar Open, Sarvam, K-EXAONE, Trinity (AFMoE),
Laguna and Mellum. Source: the model classes of transformers 5.24 under those names, tensor names of
the checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

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
from ledgerkit.readers.families._common import (
    Frame,
    joint_rows,
    pattern_windows,
    read_frame,
    read_head_dim,
    read_heads,
    require,
    says,
)
from ledgerkit.readers.families.deepseek import read_expert_groups
from ledgerkit.readers.fields import MAX_LAYERS, Fields
from ledgerkit.readers.rows import Architecture, Layer, MtpPlan, Row, attention_row, ffn_row
from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.feed_forward import DenseFfn, MoeFfn

_MLP = LAYER + "mlp."


class Style(NamedTuple):
    """What tells one member from another: a fixed answer, or the field that says it."""

    qkv_bias: bool | str = "attention_bias"
    o_bias: bool | str = "attention_bias"
    qk_norm: Literal["", "head", "width", "flag"] = "head"
    """``width``: as many weights as the projection is wide; ``flag``: ``use_qk_norm`` says it."""
    attention_norms: tuple[str, ...] = ("input_layernorm",)
    ffn_norms: tuple[str, ...] = ("post_attention_layernorm",)
    norm_bias: bool = False
    first: str | None = "first_k_dense_replace"
    """Field with the number of dense layers in front; None = experts in every layer."""
    window: Literal["none", "all", "last", "pattern"] = "none"
    """``last``: layers from ``max_window_layers`` on."""
    width: str = "moe_intermediate_size"
    shared: str | None = "n_shared_experts"
    """Field with the number of shared experts (None = none), or with their whole width."""
    router: str = _MLP + "gate.weight"
    correction: str | None = _MLP + "gate.e_score_correction_bias"
    experts: str = _MLP + "experts.{expert}."
    names: tuple[str, ...] = ("gate_proj", "up_proj", "down_proj")
    gate: str | None = None
    """Projection that gates the output of attention."""


_BLOCK = LAYER + "block_sparse_moe."
STYLES = {
    "olmoe": Style(
        qk_norm="width", first=None, width="intermediate_size", shared=None, correction=None
    ),
    "flex_olmo": Style(
        qk_norm="width",
        attention_norms=("post_attention_layernorm",),
        ffn_norms=("post_feedforward_layernorm",),
        first=None,
        width="intermediate_size",
        shared=None,
        correction=None,
    ),
    "phimoe": Style(
        qk_norm="",
        norm_bias=True,
        first=None,
        window="all",
        width="intermediate_size",
        shared=None,
        correction=None,
        router=_BLOCK + "gate.weight",
        experts=_BLOCK + "experts.{expert}.",
        names=("w1", "w3", "w2"),
    ),
    "dots1": Style(window="last"),
    "solar_open": Style(o_bias=False, qk_norm="", first=None),
    "sarvam_moe": Style(o_bias=False, qk_norm="flag"),
    "exaone_moe": Style(
        qkv_bias=False,
        o_bias=False,
        window="pattern",
        shared="num_shared_experts",
        correction=_MLP + "e_score_correction_bias",
    ),
    "afmoe": Style(
        attention_norms=("input_layernorm", "post_attention_layernorm"),
        ffn_norms=("pre_mlp_layernorm", "post_mlp_layernorm"),
        first="num_dense_layers",
        window="pattern",
        shared="num_shared_experts",
        router=_MLP + "router.gate.weight",
        correction=_MLP + "expert_bias",
        gate="gate_proj",
    ),
    "laguna": Style(
        first="",
        window="pattern",
        shared="shared_expert_intermediate_size",
        correction=_MLP + "experts.e_score_correction_bias",
        gate="g_proj",
    ),
}
STYLES["mellum"] = Style(window="pattern", shared=None, correction=None)
_OPEN = {"attention_bias": False, "tie_word_embeddings": False}
_GROUPS = {"n_group": 1, "topk_group": 1}
DEFAULTS: dict[str, Mapping[str, Any]] = {
    "olmoe": {
        **_OPEN,
        "max_position_embeddings": 4096,
        "num_experts_per_tok": 8,
        "num_experts": 64,
    },
    "flex_olmo": {
        **_OPEN,
        "max_position_embeddings": 4096,
        "num_experts_per_tok": 5,
        "num_experts": 7,
    },
    "phimoe": {
        **_OPEN,
        "num_key_value_heads": 8,
        "max_position_embeddings": 131072,
        "sliding_window": None,
        "num_experts_per_tok": 2,
        "num_local_experts": 16,
        "lm_head_bias": False,
    },
    "dots1": {
        **_OPEN,
        **_GROUPS,
        "num_key_value_heads": 32,
        "max_position_embeddings": 2048,
        "first_k_dense_replace": 0,
        "sliding_window": 4096,
        "max_window_layers": 62,
    },
    "solar_open": {
        **_OPEN,
        **_GROUPS,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 131072,
        "n_shared_experts": 1,
        "n_routed_experts": 128,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 1280,
    },
    "sarvam_moe": {
        **_OPEN,
        **_GROUPS,
        "num_key_value_heads": 4,
        "head_dim": 64,
        "max_position_embeddings": 131072,
        "n_shared_experts": 1,
        "n_routed_experts": 128,
        "num_experts_per_tok": 6,
        "moe_intermediate_size": 1024,
        "first_k_dense_replace": 1,
        "use_qk_norm": True,
    },
    "exaone_moe": {
        **_GROUPS,
        "num_key_value_heads": 32,
        "max_position_embeddings": 2048,
        "tie_word_embeddings": False,
        "sliding_window": 4096,
        "sliding_window_pattern": 4,
        "first_k_dense_replace": 1,
        "num_shared_experts": 1,
        "num_experts": 64,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 1024,
    },
    "afmoe": {
        **_OPEN,
        "head_dim": 128,
        "max_position_embeddings": 16384,
        "num_dense_layers": 1,
        "num_shared_experts": 2,
        "num_experts": 64,
        "num_experts_per_tok": 6,
        "moe_intermediate_size": 1408,
        "sliding_window": 1024,
        "global_attn_every_n_layers": 4,
    },
    "laguna": {
        **_OPEN,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 131072,
        "sliding_window": 512,
        "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512,
        "num_experts": 256,
        "num_experts_per_tok": 8,
        "gating": True,
    },
}
DEFAULTS["mellum"] = {
    **_OPEN,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "max_position_embeddings": 131072,
    "sliding_window": 1024,
    "first_k_dense_replace": 0,
}
_COUNTS = ("n_routed_experts", "num_experts", "num_local_experts")
_BRANCHES = ("intermediate_size", "moe_intermediate_size", "num_experts_per_tok", "n_group",
             "topk_group")  # fmt: skip
"""Fields of dense or expert layers only: unused where a model has none of them."""
_SHARED = {
    "n_shared_experts": ("n_shared_experts", "num_shared_experts"),
    "num_shared_experts": ("num_shared_experts", "n_shared_experts"),
    "shared_expert_intermediate_size": ("shared_expert_intermediate_size",),
}
_DRAFTS = ("num_nextn_predict_layers", "num_mtp_layers")
_PATTERNS = ("sliding_window_pattern", "global_attn_every_n_layers")


def read(fields: Fields, model_type: str) -> Architecture:
    """Read a decoder with experts; layers differ in window, heads and kind of MLP."""
    style = STYLES[model_type]
    frame = read_frame(fields)
    heads, kv_heads = read_heads(fields)
    head_dim = read_head_dim(fields, frame.hidden, heads)
    _special(fields, model_type)
    if model_type == "olmoe":  # its norms are as wide as the residual stream
        require(heads * head_dim == frame.hidden, "this model type needs num_attention_heads x "
                "head_dim = hidden_size", (heads, head_dim, frame.hidden))  # fmt: skip
    qk_norm = style.qk_norm if style.qk_norm != "flag" else _flagged(fields)
    qkv_bias = says(fields, "attention_bias", answer=style.qkv_bias)
    o_bias = fields.flag(style.o_bias) if isinstance(style.o_bias, str) else style.o_bias
    per_head = fields.values.get("gating", True) in (True, "per-head")
    window, windowed = _windows(fields, style, frame)
    sparse = _sparse_layers(fields, style, frame)
    drafted = _drafted(fields) if model_type == "exaone_moe" else None
    flags = {*sparse, False} if drafted else set(sparse)  # an MTP block of K-EXAONE is dense
    ffns = {flag: _ffn(fields, style, frame.hidden, sparse=flag) for flag in flags}
    fields.ignore("unused", *_BRANCHES, *_COUNTS, *_SHARED.get(style.shared or "", ()))

    def layer(number: int, *, flag: bool, experts: bool) -> Layer:
        attention = SoftmaxAttention(
            num_attention_heads=number,
            num_key_value_heads=kv_heads,
            head_dim=head_dim,
            v_head_dim=head_dim,
            window=window if flag else None,
            qk_norm=bool(qk_norm),
            output_gate=style.gate is not None,
        )
        widths: dict[str, int | tuple[int, int]] = {
            "head": head_dim,
            "width": (number * head_dim, kv_heads * head_dim),
        }
        rows = [
            *_norms(style, frame.hidden, attention=True),
            *gqa_projections(frame.hidden, number, kv_heads, head_dim, qkv_bias=qkv_bias,
                             o_bias=o_bias, qk_norm=widths.get(qk_norm)),
        ]  # fmt: skip
        if style.gate is not None:
            rows.append(attention_row(f"{LAYER}self_attn.{style.gate}.weight",
                        number * (1 if per_head and style.gate == "g_proj" else head_dim),
                        frame.hidden))  # fmt: skip
        ffn, ffn_rows = ffns[experts]
        return Layer(attention, ffn, (*rows, *ffn_rows))

    kinds = list(zip(_head_counts(fields, frame, heads, kv_heads), windowed, sparse, strict=True))
    layers = {kind: layer(kind[0], flag=kind[1], experts=kind[2]) for kind in dict.fromkeys(kinds)}
    mtp = None
    if drafted:
        block = layer(heads, flag=drafted[0] == "sliding_attention", experts=False)
        rows = tuple(r._replace(name=r.name.replace("model.", "mtp.", 1)) for r in block.rows)
        norms = ("norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden")
        mtp = MtpPlan(len(drafted), Layer(block.attention, block.ffn, rows), 0,
                      joint_rows(frame.hidden, "mtp.", "fc", norms))  # fmt: skip
    return frame.architecture([layers[kind] for kind in kinds], _table(fields, style, frame), mtp)


def _drafted(fields: Fields) -> list[str]:
    """Return the attention of the MTP block; K-EXAONE's files state neither it nor the block.

    Source: ``exaone_moe_mtp.py`` of vLLM and SGLang; ``modeling_exaone_moe.py`` of TensorRT-LLM
    says that a file without the field has one block.
    """
    stated = any(name in fields.values for name in _DRAFTS)
    blocks = fields.count(*_DRAFTS, default=1, most=MAX_LAYERS)
    types = fields.words("mtp_layer_types", allowed=("full_attention", "sliding_attention"),
                         default=None)  # fmt: skip
    if not blocks:
        return []
    require(blocks == 1, "checkpoints of this model type hold one MTP block", blocks)
    if not stated:
        fields.record.assume("mtp_unstated", family="K-EXAONE", blocks=blocks)
    return types or ["full_attention"]


def _special(fields: Fields, model_type: str) -> None:
    """Take note of the fields that one model type alone has."""
    if model_type in ("olmoe", "phimoe", "afmoe"):
        fields.ignore("scalar", "clip_qkv", "mup_enabled")
        fields.ignore("router arithmetic", "route_scale", "route_norm")
    if model_type == "afmoe":
        fields.ignore("training", "load_balance_coeff")
        fields.ignore("router arithmetic", "score_func")
        for name in ("n_group", "topk_group", "num_expert_groups", "num_limited_groups"):
            fields.only(name, 1, why="the class has no groups of experts")
    elif model_type == "laguna":
        name, gating = fields.raw("gating")
        if not isinstance(gating, (bool, str)) or gating not in (True, "per-head", "per-element"):
            raise ConfigError(f"{name} must be true, per-head or per-element", given=gating)
        fields.ignore("scalar", "moe_router_logit_softcapping")
        fields.only("moe_apply_router_weight_on_input", False,
                    why="the class weighs the outputs of experts")  # fmt: skip
    elif model_type in ("solar_open", "sarvam_moe", "exaone_moe", "mellum"):
        if model_type != "exaone_moe" and fields.count(*_DRAFTS, default=0):
            fields.record.assume("mtp_not_counted", family=model_type)
        fields.ignore("router arithmetic", "topk_method")
        if model_type == "sarvam_moe":
            fields.only("use_qkv_bias", False, why="attention_bias says it")
        if model_type == "solar_open":
            fields.only("use_qk_norm", False, why="this model type has no q and k norms")
            fields.ignore("unused", "intermediate_size", "first_k_dense_replace")


def _flagged(fields: Fields) -> str:
    """Return the kind of q and k norms where a field says whether there are any."""
    return "head" if fields.flag("use_qk_norm") else ""


def _norms(style: Style, hidden: int, *, attention: bool) -> list[Row]:
    """Return the norms of the residual stream around one block."""
    names = style.attention_norms if attention else style.ffn_norms
    make = attention_norm if attention else ffn_norm
    rows = [row for name in names for row in make(hidden, LAYER + name)]
    if style.norm_bias:
        rows += [row._replace(name=row.name.replace(".weight", ".bias")) for row in rows]
    return rows


def _windows(fields: Fields, style: Style, frame: Frame) -> tuple[int | None, list[bool]]:
    """Return the window and which layers have it."""
    if style.window == "pattern":
        name = _PATTERNS[0] if _PATTERNS[0] in fields.defaults else _PATTERNS[1]
        if name in fields.defaults or fields.has("layer_types"):
            return pattern_windows(fields, frame.layers, name)
        fields.ignore("unused", "sliding_window")
        return None, [False] * frame.layers
    if style.window == "none":
        fields.only("sliding_window", why="layers of this model type have no window")
        return None, [False] * frame.layers
    if not fields.flag("use_sliding_window", default=True):
        fields.only("sliding_window", why="use_sliding_window says that there is none")
    window = fields.optional("sliding_window")
    if style.window == "all":
        return window, [window is not None] * frame.layers
    if fields.has("layer_types"):
        fields.ignore("duplicate", "max_window_layers")
        return pattern_windows(fields, frame.layers)
    first = fields.count("max_window_layers", most=MAX_LAYERS)
    return window, [window is not None and index >= first for index in range(frame.layers)]


def _sparse_layers(fields: Fields, style: Style, frame: Frame) -> list[bool]:
    """Return which layers hold experts."""
    if style.first is None:
        return [True] * frame.layers
    fields.only("moe_layer_freq", 1, why="the class has experts in every layer after the first")
    types = fields.words("mlp_layer_types", frame.layers, allowed=("dense", "sparse"), default=None)
    first = fields.count(style.first, most=MAX_LAYERS) if style.first else 1
    sparse = [index >= first for index in range(frame.layers)]
    if types is not None:
        sparse = [kind == "sparse" for kind in types]
    if "is_moe_layer" in fields.values:  # K-EXAONE says it once more
        fields.only("is_moe_layer", sparse, why="other layers hold experts by the other fields")
    return sparse


def _head_counts(fields: Fields, frame: Frame, heads: int, kv_heads: int) -> list[int]:
    """Return the query heads of each layer."""
    listed = fields.integers("num_attention_heads_per_layer", frame.layers, 1, default=None)
    counts = listed or [heads] * frame.layers
    require(all(count % kv_heads == 0 for count in counts), "num_attention_heads_per_layer must "
            "hold multiples of num_key_value_heads", (counts, kv_heads))  # fmt: skip
    return counts


def _ffn(
    fields: Fields, style: Style, hidden: int, *, sparse: bool
) -> tuple[DenseFfn | MoeFfn, list[Row]]:
    """Return the dense or the expert feed-forward block, with its rows and norms."""
    norms = _norms(style, hidden, attention=False)
    if not sparse:
        intermediate = fields.size("intermediate_size")
        return DenseFfn(intermediate_size=intermediate), [
            *norms, *dense_mlp(hidden, intermediate)
        ]  # fmt: skip
    experts = fields.size(*_COUNTS)
    width = fields.size(style.width)
    shared = 0
    if style.shared is not None:
        shared = fields.count(*_SHARED[style.shared])
        shared *= 1 if style.shared.endswith("size") else width
    groups, chosen = read_expert_groups(fields, experts) if "n_group" in fields.defaults else (1, 1)
    moe = MoeFfn(
        num_experts=experts,
        num_experts_per_tok=fields.size("num_experts_per_tok"),
        moe_intermediate_size=width,
        shared_intermediate_size=shared,
        n_group=groups,
        topk_group=chosen,
    )
    rows = [
        *norms,
        *router(hidden, experts, name=style.router, correction=style.correction),
        *routed_experts(hidden, width, experts, at=style.experts, names=style.names),
    ]
    if shared:
        at = _MLP + "shared_experts."
        rows += dense_mlp(hidden, shared, at=at, account="shared_experts")
    return moe, rows


def _table(fields: Fields, style: Style, frame: Frame) -> list[Row]:
    """Return embedding, final norm and head, which may have a bias."""
    rows = vocabulary(frame.hidden, frame.vocab, tie=frame.tie, norm_bias=style.norm_bias)
    if "lm_head_bias" in fields.defaults and fields.flag("lm_head_bias"):
        rows.append(ffn_row("lm_head.bias", frame.vocab, account="vocab", use="vector",
                            split="vocab"))  # fmt: skip
    return rows
