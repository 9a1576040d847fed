"""Llama and its close kin: one kind of layer, or one with and without a window.

Llama 1-3, SmolLM, Mistral, Ministral/Devstral, Qwen2/2.5, Qwen3, the text parts of their VL models,
MiMo-7B, ERNIE 4.5 dense, PaddleOCR-VL, Hunyuan dense, SmolLM3, InternLM3, CWM, Seed-OSS,
Granite dense (with windows and sinks too). Sources: the model classes of transformers 5.24 under
those names and the checkpoints' headers; MiMo-7B:
``XiaomiMiMo/MiMo`` (one MTP block after the layers).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from ledgerkit.readers.blocks import (
    LAYER,
    attention_norm,
    dense_mlp,
    ffn_norm,
    gqa_projections,
)
from ledgerkit.readers.families._common import (
    Frame,
    hunyuan_extras,
    joint_rows,
    read_frame,
    read_head_dim,
    read_heads,
    says,
    window_flags,
)
from ledgerkit.readers.fields import Fields
from ledgerkit.readers.rows import Architecture, Layer, MtpPlan, attention_row
from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.feed_forward import DenseFfn


class Style(NamedTuple):
    """What tells one member from another: a fixed answer, or the field that says it."""

    qkv_bias: bool | str = False
    o_bias: bool | str = False
    mlp_bias: bool | str = False
    qk_norm: bool | str = False
    window: Literal["none", "all", "flag", "fourth"] = "none"
    """``all``: every layer has ``sliding_window`` if that is stated; ``flag``: layers from
    ``max_window_layers`` on, if ``use_sliding_window`` says so; ``fourth``: all but every fourth,
    from the first on."""
    norm_names: tuple[str, str] = ("q_norm", "k_norm")
    sinks: bool = False
    """Whether attention has a learned sink for each head."""


_BIAS = Style("attention_bias", "attention_bias", "mlp_bias")
_QWEN2 = Style(qkv_bias=True, window="flag")
_QWEN3 = Style("attention_bias", "attention_bias", qk_norm=True, window="flag")
_HUNYUAN = Style(
    "attention_bias",
    "attention_bias",
    qk_norm=True,
    norm_names=("query_layernorm", "key_layernorm"),
)
STYLES = {
    "llama": _BIAS,
    "smollm3": _BIAS._replace(window="flag"),
    "internlm3": _BIAS,
    "cwm": Style(mlp_bias="mlp_bias", window="fourth"),
    "granite": _BIAS,
    "granite_swa": _BIAS._replace(window="fourth", sinks=True),
    "iquestcoder": _BIAS,
    "mistral": Style(window="all"),
    "ministral": Style(window="all"),
    "ministral3": Style(window="all"),
    "qwen2": _QWEN2,
    "qwen2_vl_text": _QWEN2,
    "qwen2_5_vl_text": _QWEN2,
    "qwen2_5_omni_text": _QWEN2,
    "mimo": _QWEN2,
    "qwen3": _QWEN3,
    "qwen3_vl_text": Style("attention_bias", "attention_bias", qk_norm=True),
    "ernie4_5": Style("use_bias", "use_bias", "use_bias"),
    "paddleocr_vl_text": Style("use_bias", "use_bias", "use_bias"),
    "hunyuan_v1_dense": _HUNYUAN,
    "hunyuan_vl_text": _HUNYUAN,
    "seed_oss": Style("attention_bias", "attention_out_bias", "mlp_bias"),
}
_NO_BIAS = {"attention_bias": False, "mlp_bias": False, "tie_word_embeddings": False}
_FLAGGED = {"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28}
_QWEN2_VL = {
    **_FLAGGED,
    "num_key_value_heads": 8,
    "max_window_layers": 80,
    "max_position_embeddings": 32768,
    "tie_word_embeddings": False,
}
_MISTRAL = {
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
    "sliding_window": 4096,
    "tie_word_embeddings": False,
}
_ERNIE = {
    "num_key_value_heads": 2,
    "head_dim": 128,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": True,
    "use_bias": False,
}
DEFAULTS: dict[str, Mapping[str, Any]] = {
    "llama": {**_NO_BIAS, "max_position_embeddings": 2048},
    "granite": {**_NO_BIAS, "max_position_embeddings": 2048},
    "granite_swa": {
        **_NO_BIAS,
        "num_key_value_heads": 4,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": True,
        "sliding_window": 128,
    },
    "iquestcoder": {
        **_NO_BIAS,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 131072,
    },
    "smollm3": {
        **_NO_BIAS,
        "num_key_value_heads": 4,
        "max_position_embeddings": 32768,
        "tie_word_embeddings": True,
        "use_sliding_window": False,
        "sliding_window": None,
        "max_window_layers": 0,
    },
    "internlm3": {
        **_NO_BIAS,
        "num_key_value_heads": 2,
        "head_dim": 128,
        "max_position_embeddings": 32768,
    },
    "cwm": {
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 131072,
        "sliding_window": 8192,
        "mlp_bias": False,
        "tie_word_embeddings": False,
    },
    "mistral": _MISTRAL,
    "ministral": _MISTRAL,
    "ministral3": {
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 262144,
        "sliding_window": None,
        "tie_word_embeddings": False,
    },
    "qwen2": {
        **_FLAGGED,
        "num_key_value_heads": 32,
        "max_position_embeddings": 32768,
        "tie_word_embeddings": False,
    },
    "qwen3": {
        **_FLAGGED,
        "num_key_value_heads": 32,
        "head_dim": 128,
        "max_position_embeddings": 32768,
        "attention_bias": False,
        "tie_word_embeddings": False,
    },
    "qwen3_vl_text": {
        "num_key_value_heads": 32,
        "head_dim": 128,
        "max_position_embeddings": 128000,
        "attention_bias": False,
        "tie_word_embeddings": False,
    },
    "qwen2_vl_text": _QWEN2_VL,
    "qwen2_5_vl_text": _QWEN2_VL,
    "qwen2_5_omni_text": {
        **_FLAGGED,
        "num_key_value_heads": 4,
        "max_position_embeddings": 32768,
        "tie_word_embeddings": False,
    },
    "mimo": {
        **_FLAGGED,
        "max_position_embeddings": 32768,
        "tie_word_embeddings": False,
        "num_nextn_predict_layers": 0,
    },
    "ernie4_5": _ERNIE,
    "paddleocr_vl_text": _ERNIE,
    "hunyuan_v1_dense": {
        "max_position_embeddings": 2048,
        "tie_word_embeddings": False,
        "attention_bias": False,
    },
    "hunyuan_vl_text": {
        "max_position_embeddings": 2048,
        "tie_word_embeddings": True,
        "attention_bias": False,
    },
    "seed_oss": {
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 524288,
        "tie_word_embeddings": False,
        "attention_bias": True,
        "attention_out_bias": False,
        "mlp_bias": False,
    },
}


def read(fields: Fields, model_type: str) -> Architecture:
    """Read a decoder of equal layers."""
    style = STYLES[model_type]
    frame = read_frame(fields)
    heads, kv_heads = read_heads(fields)
    head_dim = read_head_dim(fields, frame.hidden, heads)
    fields.ignore("rotary", "no_rope_layers", "no_rope_layer_interval", "layer_rope_theta")
    fields.only("activation", "swiglu", "silu", why="the MLP of this model type is gated by SiLU")
    if style is _HUNYUAN:
        _hunyuan(fields, head_dim)
    if model_type == "iquestcoder":
        fields.only("clip_qkv", why="no checkpoint of this model type has it")
    if model_type == "internlm3":
        for name in ("qkv_bias", "bias"):
            fields.only(name, False, why="attention_bias and mlp_bias say it")
    chunks = fields.section("dual_chunk_attention_config")
    if chunks is not None:  # Qwen2.5-1M: other positions, the same pairs of tokens
        chunks.ignore("rotary", "chunk_size", "local_size")
        chunks.finish()
    intermediate = fields.size("intermediate_size")
    rows = (
        *attention_norm(frame.hidden),
        *gqa_projections(
            frame.hidden,
            heads,
            kv_heads,
            head_dim,
            qkv_bias=says(fields, "attention_bias", answer=style.qkv_bias),
            o_bias=says(fields, "attention_out_bias", answer=style.o_bias),
            qk_norm=head_dim if style.qk_norm else None,
            norm_names=style.norm_names,
        ),
        *((attention_row(LAYER + "self_attn.sinks", heads, use="vector"),) if style.sinks else ()),
        *ffn_norm(frame.hidden),
        *dense_mlp(
            frame.hidden, intermediate, bias=says(fields, "mlp_bias", answer=style.mlp_bias)
        ),
    )
    window, windowed = _windows(fields, style.window, frame)

    def layer(size: int | None) -> Layer:
        attention = SoftmaxAttention(
            num_attention_heads=heads,
            num_key_value_heads=kv_heads,
            head_dim=head_dim,
            v_head_dim=head_dim,
            window=size,
            qk_norm=bool(style.qk_norm),
        )
        return Layer(attention, DenseFfn(intermediate_size=intermediate), rows)

    kinds = {False: layer(None), True: layer(window)}
    mtp = _mimo_mtp(fields, frame, kinds[False]) if model_type == "mimo" else None
    return frame.architecture([kinds[flag] for flag in windowed], mtp=mtp)


def _hunyuan(fields: Fields, head_dim: int) -> None:
    """Take note of what the files of dense Hunyuan models say of the mixtures of experts."""
    fields.only("use_qk_norm", True, why="this model type always has q and k norms")
    fields.only("attention_head_dim", head_dim, why="it contradicts head_dim")
    fields.only("num_experts", 1, why="this model type has no experts")
    fields.only("use_mixed_mlp_moe", False, why="this model type has no experts")
    fields.ignore("unused", "moe_topk", "num_shared_expert", "moe_intermediate_size",
                  "moe_layer_num_skipped", "moe_drop_tokens", "moe_random_routing_dropped_token",
                  "norm_topk_prob")  # fmt: skip
    hunyuan_extras(fields)


def _windows(fields: Fields, rule: str, frame: Frame) -> tuple[int | None, list[bool]]:
    """Return the window and which layers have it."""
    if rule == "none" or (rule == "flag" and not fields.flag("use_sliding_window")):
        if rule == "none":
            fields.only("sliding_window", why="layers of this model type have no window")
            fields.only("use_sliding_window", False, why="this model type has no windows")
        fields.ignore("unused", "sliding_window", "max_window_layers")
        fields.words("layer_types", frame.layers, allowed=("full_attention",), default=None)
        return None, [False] * frame.layers
    window = fields.optional("sliding_window")
    types = fields.words(
        "layer_types",
        frame.layers,
        default=None,
        allowed=("full_attention", "sliding_attention"),
    )
    if types is not None:
        fields.ignore("unused", "max_window_layers", "use_sliding_window")
        return window, [flag and window is not None for flag in window_flags(types)]
    if rule == "fourth":
        return window, [window is not None and index % 4 != 0 for index in range(frame.layers)]
    if rule == "all":
        fields.ignore("unused", "max_window_layers", "use_sliding_window")
        return window, [window is not None] * frame.layers
    first = fields.count("max_window_layers")
    return window, [window is not None and index >= first for index in range(frame.layers)]


def _mimo_mtp(fields: Fields, frame: Frame, layer: Layer) -> MtpPlan | None:
    """MiMo-7B: a decoder layer behind two norms and a projection of the joined inputs."""
    blocks = fields.count("num_nextn_predict_layers")
    if not blocks:
        return None
    at = "model.mtp_layers.{layer}."
    rows = tuple(
        row._replace(name=row.name.replace("model.layers.{layer}.", at)) for row in layer.rows
    )
    norms = ("token_layernorm", "hidden_layernorm", "final_layernorm")
    extra = joint_rows(frame.hidden, at, "input_proj", norms)
    return MtpPlan(blocks, Layer(layer.attention, layer.ffn, rows), 0, extra)
