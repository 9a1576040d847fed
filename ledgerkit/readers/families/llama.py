"""Llama and its close kin: one kind of layer, or one with and without a window.

Llama 1-3, SmolLM, Mistral, Qwen2/2.5, Qwen3, MiMo-7B. Sources: the model classes of transformers
5.24 (``models/llama``, ``mistral``, ``qwen2``, ``qwen3``) and the checkpoints' headers; MiMo-7B:
``XiaomiMiMo/MiMo`` (one MTP block after the layers).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerkit.readers.blocks import (
    attention_norm,
    dense_mlp,
    ffn_norm,
    gqa_projections,
    vocabulary,
)
from ledgerkit.readers.families._common import (
    Frame,
    read_frame,
    read_head_dim,
    read_heads,
    window_flags,
)
from ledgerkit.readers.fields import Fields
from ledgerkit.readers.rows import Architecture, Layer, MtpPlan, Row
from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.feed_forward import DenseFfn

DEFAULTS: dict[str, Mapping[str, Any]] = {
    "llama": {
        "max_position_embeddings": 2048,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
    },
    "mistral": {
        "num_key_value_heads": 8,
        "max_position_embeddings": 131072,
        "sliding_window": 4096,
        "tie_word_embeddings": False,
    },
    "qwen2": {
        "num_key_value_heads": 32,
        "max_position_embeddings": 32768,
        "use_sliding_window": False,
        "sliding_window": 4096,
        "max_window_layers": 28,
        "tie_word_embeddings": False,
    },
    "qwen3": {
        "num_key_value_heads": 32,
        "head_dim": 128,
        "max_position_embeddings": 32768,
        "attention_bias": False,
        "use_sliding_window": False,
        "sliding_window": 4096,
        "max_window_layers": 28,
        "tie_word_embeddings": False,
    },
    "mimo": {
        "max_position_embeddings": 32768,
        "use_sliding_window": False,
        "tie_word_embeddings": False,
        "num_nextn_predict_layers": 0,
    },
}


def read(fields: Fields, model_type: str) -> Architecture:
    """Read a decoder of equal layers."""
    frame = read_frame(fields)
    heads, kv_heads = read_heads(fields)
    head_dim = read_head_dim(fields, frame.hidden, heads)
    qkv_bias, o_bias = _biases(fields, model_type)
    mlp_bias = fields.flag("mlp_bias") if model_type == "llama" else False
    intermediate = fields.size("intermediate_size")
    rows = (
        *attention_norm(frame.hidden),
        *gqa_projections(
            frame.hidden, heads, kv_heads, head_dim, qkv_bias=qkv_bias, o_bias=o_bias,
            qk_norm=head_dim if model_type == "qwen3" else None,
        ),
        *ffn_norm(frame.hidden),
        *dense_mlp(frame.hidden, intermediate, bias=mlp_bias),
    )  # fmt: skip
    window, windowed = _windows(fields, model_type, frame)

    def layer(size: int | None) -> Layer:
        attention = SoftmaxAttention(
            num_attention_heads=heads, num_key_value_heads=kv_heads, head_dim=head_dim,
            v_head_dim=head_dim, window=size, qk_norm=model_type == "qwen3",
        )  # fmt: skip
        return Layer(attention, DenseFfn(intermediate_size=intermediate), rows)

    kinds = {False: layer(None), True: layer(window)}
    return Architecture(
        hidden_size=frame.hidden,
        vocab_size=frame.vocab,
        max_position_embeddings=frame.context,
        tie_word_embeddings=frame.tie,
        layers=[kinds[flag] for flag in windowed],
        globals=vocabulary(frame.hidden, frame.vocab, frame.tie),
        mtp=_mimo_mtp(fields, frame, kinds[False]) if model_type == "mimo" else None,
    )


def _biases(fields: Fields, model_type: str) -> tuple[bool, bool]:
    """Return whether q, k, v and whether o have biases."""
    if model_type == "mistral":
        fields.only("attention_bias", False, why="Mistral has no attention biases")
        fields.only("mlp_bias", False, why="Mistral has no MLP biases")
        return False, False
    if model_type in ("qwen2", "mimo"):
        # the classes always have q, k, v biases, and no field for them
        fields.only("attention_bias", True, why="this model type always has q, k, v biases")
        fields.only("qkv_bias", True, why="this model type always has q, k, v biases")
        return True, False
    bias = fields.flag("attention_bias")
    return bias, bias


def _windows(fields: Fields, model_type: str, frame: Frame) -> tuple[int | None, list[bool]]:
    """Return the window and which layers have it."""
    if model_type == "llama":
        fields.only("sliding_window", why="Llama layers have no window")
        fields.only("use_sliding_window", False, why="Llama layers have no window")
        fields.ignore("unused", "max_window_layers")
        return None, [False] * frame.layers
    if model_type == "mistral":
        window = fields.optional("sliding_window")
        fields.ignore("unused", "max_window_layers", "use_sliding_window")
        types = fields.words("layer_types", frame.layers, default=None,
                             allowed=("full_attention", "sliding_attention"))  # fmt: skip
        if types is not None:
            return window, [flag and window is not None for flag in window_flags(types)]
        return window, [window is not None] * frame.layers
    if not fields.flag("use_sliding_window"):
        fields.ignore("unused", "sliding_window", "max_window_layers")
        types = fields.words("layer_types", frame.layers, allowed=("full_attention",), default=None)
        return None, [False] * frame.layers
    window = fields.optional("sliding_window")
    types = fields.words("layer_types", frame.layers, default=None,
                         allowed=("full_attention", "sliding_attention"))  # fmt: skip
    if types is not None:
        fields.ignore("unused", "max_window_layers")
        return window, [flag and window is not None for flag in window_flags(types)]
    first = fields.count("max_window_layers")
    return window, [window is not None and index >= first for index in range(frame.layers)]


def _mimo_mtp(fields: Fields, frame: Frame, layer: Layer) -> MtpPlan | None:
    """MiMo-7B: a decoder layer behind two norms and a projection of the joined inputs."""
    blocks = fields.count("num_nextn_predict_layers")
    if not blocks:
        return None
    at = "model.mtp_layers.{layer}."
    rows = tuple(row._replace(name=row.name.replace("model.layers.{layer}.", at))
                 for row in layer.rows)  # fmt: skip
    return MtpPlan(blocks, Layer(layer.attention, layer.ffn, rows), 0,
                   joint_rows(frame.hidden, at, "input_proj",
                              ("token_layernorm", "hidden_layernorm", "final_layernorm")))  # fmt: skip


def joint_rows(
    hidden: int, at: str, projection: str, norms: tuple[str, ...]
) -> tuple[Row, ...]:
    """Return what an MTP block has beside its decoder layer."""
    return (
        draft_row(f"{at}{projection}.weight", hidden, 2 * hidden),
        *(draft_row(f"{at}{name}.weight", hidden, use="vector") for name in norms),
    )


def draft_row(name: str, *shape: int, use: str = "linear") -> Row:
    """Return a row that exists for drafting only; quantizers leave it alone."""
    return Row(name, "scheduling", "draft", shape, use=use, quantizable=False)  # type: ignore[arg-type]
