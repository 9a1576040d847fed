"""Decoders that differ from Llama in their norms, MLP or layout, told apart by one table.

Gemma 1, OLMo 1-3, Command R (Cohere), StarCoder2, StableLM, EXAONE 4, GLM-4, GLM-OCR,
Nemotron/Minitron, Apertus, Arcee, BitNet, Helium, Jais 2, HyperCLOVA X, VaultGemma and nanochat.
Source: the model classes of transformers 5.24 under those names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from ledgerkit.readers.blocks import LAYER, dense_mlp, gqa_projections, vocabulary
from ledgerkit.readers.families._common import (
    Frame,
    pattern_windows,
    read_frame,
    read_head_dim,
    read_heads,
    require,
    says,
)
from ledgerkit.readers.fields import Fields
from ledgerkit.readers.rows import Architecture, Layer, Row, attention_row, ffn_row
from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.feed_forward import DenseFfn


class Style(NamedTuple):
    """What tells one member from another: a fixed answer, or the field that says it."""

    qkv_bias: bool | str = "attention_bias"
    o_bias: bool | str = "attention_bias"
    mlp_bias: bool | str = False
    mlp: tuple[str, ...] = ("gate_proj", "up_proj", "down_proj")
    qk_norm: Literal["", "head", "width"] = ""
    """Weights of the q and k norms: as many as a head is wide, or as the projection is."""
    attention_norms: tuple[str, ...] = ("input_layernorm",)
    ffn_norms: tuple[str, ...] = ("post_attention_layernorm",)
    norm_bias: bool = False
    final_norm: str | None = "model.norm"
    window: Literal["none", "all", "pattern"] = "none"
    """``all``: every layer, if ``sliding_window`` is stated; ``pattern``: all but every n-th."""


_POST: dict[str, Any] = {
    "attention_norms": ("post_attention_layernorm",),
    "ffn_norms": ("post_feedforward_layernorm",),
}
_TWO = ("up_proj", "down_proj")
_FUSED = ("gate_up_proj", "down_proj")
STYLES = {
    "gemma": Style(),
    "olmo": Style(attention_norms=(), ffn_norms=(), final_norm=None),
    "olmo2": Style(qk_norm="width", **_POST),
    "olmo3": Style(qk_norm="width", window="pattern", **_POST),
    "cohere": Style(ffn_norms=()),
    "cohere2": Style(ffn_norms=(), window="pattern"),
    "starcoder2": Style(
        "use_bias", "use_bias", "use_bias", ("c_fc", "c_proj"), norm_bias=True, window="all"
    ),
    "stablelm": Style("use_qkv_bias", o_bias=False, norm_bias=True),
    "exaone4": Style(qkv_bias=False, o_bias=False, qk_norm="head", window="pattern", **_POST),
    "glm": Style(o_bias=False, mlp=_FUSED),
    "glm4": Style(
        o_bias=False,
        mlp=_FUSED,
        attention_norms=("input_layernorm", "post_self_attn_layernorm"),
        ffn_norms=("post_attention_layernorm", "post_mlp_layernorm"),
    ),
    "glm4v_text": Style(
        qkv_bias=True,
        o_bias=False,
        mlp=_FUSED,
        attention_norms=("input_layernorm", "post_self_attn_layernorm"),
        ffn_norms=("post_attention_layernorm", "post_mlp_layernorm"),
    ),
    "glm_ocr_text": Style(
        qkv_bias=False,
        o_bias=False,
        mlp=_FUSED,
        attention_norms=("input_layernorm", "post_self_attn_layernorm"),
        ffn_norms=("post_attention_layernorm", "post_mlp_layernorm"),
    ),
    "nemotron": Style(mlp_bias="mlp_bias", mlp=_TWO, norm_bias=True),
    "apertus": Style(
        mlp=_TWO,
        qk_norm="head",
        attention_norms=("attention_layernorm",),
        ffn_norms=("feedforward_layernorm",),
    ),
    "arcee": Style(mlp_bias="mlp_bias", mlp=_TWO),
    "bitnet": Style(),
    "helium": Style(o_bias=False, mlp_bias="mlp_bias"),
    "jais2": Style(mlp_bias="mlp_bias", mlp=_TWO, norm_bias=True),
    "hyperclovax": Style(
        mlp_bias="mlp_bias",
        attention_norms=("input_layernorm", "post_norm1"),
        ffn_norms=("post_attention_layernorm", "post_norm2"),
    ),
    "vaultgemma": Style(ffn_norms=("pre_feedforward_layernorm",), window="pattern"),
    "molmo2_text": Style(o_bias=False, qk_norm="head"),
    "nanochat": Style(  # its norms have no weights
        mlp=("fc1", "fc2"), attention_norms=(), ffn_norms=(), final_norm=None
    ),
}
STYLES["apertus1p5_text"] = STYLES["apertus"]
_OPEN = {"attention_bias": False, "tie_word_embeddings": False}
_GLM = {
    "num_key_value_heads": 2,
    "head_dim": 128,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "attention_bias": True,
}
DEFAULTS: dict[str, Mapping[str, Any]] = {
    "gemma": {
        "num_key_value_heads": 16,
        "head_dim": 256,
        "max_position_embeddings": 8192,
        "attention_bias": False,
        "tie_word_embeddings": True,
    },
    "olmo": {**_OPEN, "max_position_embeddings": 2048},
    "olmo2": {**_OPEN, "max_position_embeddings": 2048},
    "olmo3": {
        **_OPEN,
        "max_position_embeddings": 2048,
        "sliding_window": 4096,
        "sliding_window_pattern": 4,
    },
    "cohere": {
        "max_position_embeddings": 8192,
        "attention_bias": False,
        "tie_word_embeddings": True,
        "use_qk_norm": False,
    },
    "cohere2": {
        "max_position_embeddings": 8192,
        "attention_bias": False,
        "tie_word_embeddings": True,
        "sliding_window": 4096,
        "sliding_window_pattern": 4,
    },
    "starcoder2": {
        "num_key_value_heads": 2,
        "max_position_embeddings": 4096,
        "sliding_window": None,
        "use_bias": True,
        "tie_word_embeddings": True,
    },
    "stablelm": {
        "num_key_value_heads": 32,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": False,
        "use_qkv_bias": False,
        "qk_layernorm": False,
        "use_parallel_residual": False,
    },
    "exaone4": {
        "num_key_value_heads": 32,
        "max_position_embeddings": 2048,
        "tie_word_embeddings": False,
        "sliding_window": 4096,
        "sliding_window_pattern": 4,
    },
    "glm": _GLM,
    "glm4": _GLM,
    "glm4v_text": {
        "num_key_value_heads": 2,
        "max_position_embeddings": 32768,
        "tie_word_embeddings": False,
    },
    "glm_ocr_text": {
        "num_key_value_heads": 8,
        "max_position_embeddings": 131072,
        "tie_word_embeddings": False,
    },
    "nemotron": {**_OPEN, "mlp_bias": False, "max_position_embeddings": 4096},
    "apertus": {**_OPEN, "max_position_embeddings": 65536, "hidden_act": "xielu"},
    "bitnet": {**_OPEN, "num_key_value_heads": 5, "max_position_embeddings": 2048},
    "apertus1p5_text": {
        **_OPEN,
        "max_position_embeddings": 65536,
        "hidden_act": "xielu",
        "output_vocab_size": None,
    },
    "arcee": {**_OPEN, "mlp_bias": False, "max_position_embeddings": 4096},
    "helium": {
        **_OPEN,
        "num_key_value_heads": 20,
        "head_dim": 128,
        "mlp_bias": False,
        "max_position_embeddings": 4096,
    },
    "jais2": {
        "max_position_embeddings": 8192,
        "tie_word_embeddings": False,
        "attention_bias": True,
        "mlp_bias": True,
    },
    "hyperclovax": {
        **_OPEN,
        "mlp_bias": False,
        "max_position_embeddings": 2048,
        "use_post_norm": True,
    },
    "vaultgemma": {
        "num_key_value_heads": 4,
        "head_dim": 256,
        "max_position_embeddings": 8192,
        "attention_bias": False,
        "tie_word_embeddings": True,
        "sliding_window": 4096,
        "sliding_window_pattern": 2,
    },
    "nanochat": {**_OPEN, "max_position_embeddings": 2048},
}
_AT = LAYER + "self_attn."
FURTHER_WORDS = "model.embed_tokens.further"
"""Rows of Molmo 2's embedding that its head does not know."""


def read(fields: Fields, model_type: str) -> Architecture:
    """Read a decoder whose layers differ in their window alone."""
    _special(fields, model_type)
    if model_type == "glm_ocr_text" and fields.count("num_nextn_predict_layers", default=0):
        fields.record.assume("mtp_not_counted", family="GLM-OCR")
    style = _style(fields, model_type)
    frame = read_frame(fields)
    hidden = frame.hidden
    heads, kv_heads = read_heads(fields)
    head_dim = read_head_dim(fields, hidden, heads)
    intermediate = fields.size("intermediate_size")
    fields.only("kv_channels", head_dim, why="head_dim says another width")
    if model_type in ("bitnet", "helium", "stablelm"):
        require(heads * head_dim == hidden, "this model type needs num_attention_heads x head_dim "
                "= hidden_size", (heads, head_dim, hidden))  # fmt: skip
    o_bias = _o_bias(fields, style)
    rows = (
        *_norms(style, hidden, attention=True),
        *gqa_projections(
            hidden,
            heads,
            kv_heads,
            head_dim,
            qkv_bias=says(fields, "attention_bias", answer=style.qkv_bias),
            o_bias=o_bias,
            qk_norm={
                "": None,
                "head": head_dim,
                "width": (heads * head_dim, kv_heads * head_dim),
            }[style.qk_norm],
        ),
        *_split_qk_norms(fields, model_type, heads, kv_heads, head_dim),
        *_inner_norms(model_type, hidden, intermediate),
        *_norms(style, hidden, attention=False),
        *_mlp(fields, style, hidden, intermediate),
        *_activation(fields, model_type),
    )
    window, flags = _windows(fields, style, frame)
    matrices: Literal[2, 3] = 2 if style.mlp not in (Style().mlp, _FUSED) else 3

    def layer(size: int | None) -> Layer:
        attention = SoftmaxAttention(
            num_attention_heads=heads,
            num_key_value_heads=kv_heads,
            head_dim=head_dim,
            v_head_dim=head_dim,
            window=size,
            qk_norm=any("self_attn.q_" in row.name and "norm" in row.name for row in rows),
        )
        return Layer(attention, DenseFfn(intermediate_size=intermediate, matrices=matrices), rows)

    kinds = {False: layer(None), True: layer(window)}
    table = vocabulary(hidden, frame.vocab, tie=frame.tie, norm=style.final_norm,
                       norm_bias=style.norm_bias)  # fmt: skip
    if model_type == "molmo2_text" and (extra := fields.count("additional_vocab_size")):
        table.append(ffn_row(FURTHER_WORDS, extra, hidden, account="vocab", use="lookup"))
    return frame.architecture([kinds[flag] for flag in flags], _head(fields, frame, table))


def _head(fields: Fields, frame: Frame, table: list[Row]) -> list[Row]:
    """Return the vocabulary with a head that may stop before the codes of images and sound."""
    if "output_vocab_size" not in fields.defaults:
        return table
    kept = fields.size("output_vocab_size", default=frame.vocab, rule="vocab_size")
    require(kept == frame.vocab or (kept < frame.vocab and not frame.tie), "output_vocab_size must "
            "not exceed vocab_size, and a shorter head cannot be tied", kept)  # fmt: skip
    return [row._replace(shape=(kept, frame.hidden)) if row.name == "lm_head.weight" else row
            for row in table]  # fmt: skip


def _style(fields: Fields, model_type: str) -> Style:
    """Return the style, which a field of its own may change."""
    style = STYLES[model_type]
    if model_type == "molmo2_text":
        kind = fields.text("qk_norm_type", allowed=("qwen3", "olmo"))
        return style._replace(qk_norm="width") if kind == "olmo" else style
    if model_type == "stablelm" and fields.flag("use_parallel_residual"):
        return style._replace(ffn_norms=())
    if model_type == "hyperclovax" and not fields.flag("use_post_norm"):
        plain = Style()
        return style._replace(attention_norms=plain.attention_norms, ffn_norms=plain.ffn_norms)
    return style


def _special(fields: Fields, model_type: str) -> None:
    """Take note of the fields that one model type alone has."""
    if model_type == "gemma":
        fields.only("use_bidirectional_attention", False, why="attention in both directions has no "
                    "decode phase")  # fmt: skip
    elif model_type == "olmo":
        fields.ignore("scalar", "clip_qkv")
    elif model_type == "starcoder2":
        fields.only("norm_type", "layer_norm", why="this model type has layer norms")
        fields.only("mlp_type", "default", why="this model type has a two-matrix MLP")
    elif model_type == "olmo3" and not fields.has("layer_types"):
        fields.only("sliding_window_pattern", 4, why="this model type has one full layer in four")
    elif model_type == "apertus":
        fields.only("qk_norm", True, why="this model type always has q and k norms")
        fields.only("post_norm", False, why="this model type has its norms before the blocks")
    elif model_type == "vaultgemma" and not fields.has("layer_types"):
        fields.only("sliding_window_pattern", 2, why="this model type has a window on every other "
                    "layer")  # fmt: skip
    elif model_type.startswith("cohere"):
        for name in ("use_gated_activation", "use_parallel_block", "use_embedding_sharing"):
            fields.only(name, True, why=f"this model type is fixed to {name} = true")
        fields.ignore("duplicate", "layer_switch", "order_of_interleaved_layers")
        fields.ignore("runtime", "use_parallel_embedding")
        fields.ignore("rotary", "position_embedding_type")
        if model_type == "cohere2":
            fields.only("use_qk_norm", False, why="this model type has no q and k norms")


def _o_bias(fields: Fields, style: Style) -> bool:
    """Return whether the output projection has a bias; no field says it alone."""
    return fields.flag(style.o_bias) if isinstance(style.o_bias, str) else style.o_bias


def _norms(style: Style, hidden: int, *, attention: bool) -> list[Row]:
    """Return the norms of the residual stream around one block."""
    names = style.attention_norms if attention else style.ffn_norms
    parts = ("weight", "bias") if style.norm_bias else ("weight",)
    full = [f"{LAYER}{name}.{part}" for name in names for part in parts]
    if attention:
        return [attention_row(name, hidden, use="vector", split="none", account="norms")
                for name in full]  # fmt: skip
    return [ffn_row(name, hidden, use="vector", account="norms") for name in full]


def _inner_norms(model_type: str, hidden: int, intermediate: int) -> list[Row]:
    """Return the norms before the last projection of both blocks (BitNet)."""
    if model_type != "bitnet":
        return []
    return [
        attention_row(_AT + "attn_sub_norm.weight", hidden, use="vector", account="norms"),
        ffn_row(LAYER + "mlp.ffn_sub_norm.weight", intermediate, use="vector", account="norms",
                split="tp"),
    ]  # fmt: skip


def _split_qk_norms(
    fields: Fields, model_type: str, heads: int, kv_heads: int, head_dim: int
) -> list[Row]:
    """Return q and k norms with weights for every head, where a field asks for them."""
    if model_type == "cohere" and fields.flag("use_qk_norm"):
        return [
            attention_row(_AT + "q_norm.weight", heads, head_dim, use="vector"),
            attention_row(_AT + "k_norm.weight", kv_heads, head_dim, use="vector",
                          split="kv_heads"),
        ]  # fmt: skip
    if model_type == "stablelm" and fields.flag("qk_layernorm"):
        return [
            attention_row(_AT + "q_layernorm.norms.{expert}.weight", head_dim, use="vector",
                          copies=heads),
            attention_row(_AT + "k_layernorm.norms.{expert}.weight", head_dim, use="vector",
                          copies=kv_heads, split="kv_heads"),
        ]  # fmt: skip
    return []


def _mlp(fields: Fields, style: Style, hidden: int, intermediate: int) -> list[Row]:
    """Return the MLP; gate and up may be one stored tensor."""
    bias = says(fields, "mlp_bias", answer=style.mlp_bias)
    if style.mlp != _FUSED:
        return dense_mlp(hidden, intermediate, names=style.mlp, bias=bias)
    at = LAYER + "mlp."
    return [
        ffn_row(at + "gate_up_proj.weight", 2 * intermediate, hidden, account="dense", split="tp"),
        ffn_row(at + "down_proj.weight", hidden, intermediate, account="dense", split="tp"),
    ]


def _activation(fields: Fields, model_type: str) -> list[Row]:
    """Return the learned numbers of an activation (xIELU)."""
    if not model_type.startswith("apertus"):
        return []
    if fields.text("hidden_act", allowed=("xielu", "silu", "gelu", "relu2")) != "xielu":
        return []
    at = LAYER + "mlp.act_fn."
    return [
        *(ffn_row(at + name, 1, account="dense", use="vector") for name in ("alpha_p", "alpha_n")),
        *(ffn_row(at + name, 1, account="dense", use="buffer") for name in ("beta", "eps")),
    ]


def _windows(fields: Fields, style: Style, frame: Frame) -> tuple[int | None, list[bool]]:
    """Return the window and which layers have it."""
    if style.window == "none":
        fields.only("sliding_window", why="layers of this model type have no window")
        fields.words("layer_types", frame.layers, allowed=("full_attention",), default=None)
        return None, [False] * frame.layers
    if style.window == "all":
        window = fields.optional("sliding_window")
        return window, [window is not None] * frame.layers
    return pattern_windows(
        fields, frame.layers, "sliding_window_pattern", "_sliding_window_pattern"
    )
