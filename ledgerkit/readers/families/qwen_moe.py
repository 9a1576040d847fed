"""Qwen1.5/2-MoE, Qwen3-MoE and the text parts of Qwen3-VL-MoE and Qwen3-Omni.

Sources: ``models/qwen2_moe``, ``qwen3_moe`` and ``qwen3_vl_moe`` of transformers 5.24. Qwen2-MoE
has q, k, v biases and a shared expert behind a one-wide gate; Qwen3 has q/k norms instead.
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
from ledgerkit.readers.families._common import Frame, read_frame, read_head_dim, read_heads
from ledgerkit.readers.fields import MAX_LAYERS, Fields
from ledgerkit.readers.rows import Architecture, Layer, Row, ffn_row
from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.feed_forward import DenseFfn, MoeFfn

_QWEN3 = {
    "num_key_value_heads": 4,
    "max_position_embeddings": 32768,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "use_sliding_window": False,
    "sliding_window": 4096,
    "decoder_sparse_step": 1,
    "moe_intermediate_size": 768,
    "num_experts_per_tok": 8,
    "num_experts": 128,
    "mlp_only_layers": None,
}
DEFAULTS: dict[str, Mapping[str, Any]] = {
    "qwen2_moe": {
        "num_key_value_heads": 16,
        "max_position_embeddings": 32768,
        "tie_word_embeddings": False,
        "qkv_bias": True,
        "use_sliding_window": False,
        "sliding_window": 4096,
        "max_window_layers": 28,
        "decoder_sparse_step": 1,
        "moe_intermediate_size": 1408,
        "shared_expert_intermediate_size": 5632,
        "num_experts_per_tok": 4,
        "num_experts": 60,
        "mlp_only_layers": None,
    },
    "qwen3_moe": _QWEN3,
    "qwen3_omni_moe_text": _QWEN3,
    "qwen3_vl_moe_text": {
        **_QWEN3,
        "num_key_value_heads": 16,
        "max_position_embeddings": 128000,
        "moe_intermediate_size": 1408,
        "num_experts_per_tok": 4,
        "num_experts": 60,
    },
}
BRANCHES = ("intermediate_size", "moe_intermediate_size", "num_experts_per_tok",
            "shared_expert_intermediate_size")  # fmt: skip
"""Fields of dense or expert layers only: unused where a model has none of them."""


def read(fields: Fields, model_type: str) -> Architecture:
    """Read a Qwen mixture of experts."""
    frame = read_frame(fields)
    hidden = frame.hidden
    heads, kv_heads = read_heads(fields)
    head_dim = read_head_dim(fields, hidden, heads)
    qwen2 = model_type == "qwen2_moe"
    bias = fields.flag("qkv_bias" if qwen2 else "attention_bias")
    if not qwen2:
        # Qwen3-Coder's file states what its class does in any case
        fields.only("qkv_bias", False, why="this model type has its biases in attention_bias")
        fields.only("use_qk_norm", True, why="this model type always has q and k norms")
    shared = (
        *attention_norm(hidden),
        *gqa_projections(
            hidden,
            heads,
            kv_heads,
            head_dim,
            qkv_bias=bias,
            o_bias=bias and not qwen2,
            qk_norm=None if qwen2 else head_dim,
        ),
        *ffn_norm(hidden),
    )
    windows = _windows(fields, frame, qwen2=qwen2)
    flags = sparse_layers(fields, frame)
    ffns = {flag: read_ffn(fields, hidden, model_type, sparse=flag) for flag in set(flags)}
    fields.ignore("unused", *BRANCHES)

    def layer(window: int | None, *, flag: bool) -> Layer:
        attention = SoftmaxAttention(
            num_attention_heads=heads,
            num_key_value_heads=kv_heads,
            head_dim=head_dim,
            v_head_dim=head_dim,
            window=window,
            qk_norm=not qwen2,
        )
        ffn, rows = ffns[flag]
        return Layer(attention, ffn, (*shared, *rows))

    pairs = list(zip(windows, flags, strict=True))
    layers = {pair: layer(pair[0], flag=pair[1]) for pair in dict.fromkeys(pairs)}
    return frame.architecture([layers[pair] for pair in pairs])


def _windows(fields: Fields, frame: Frame, *, qwen2: bool) -> list[int | None]:
    """Return the window of each layer."""
    types = fields.words(
        "layer_types",
        frame.layers,
        default=None,
        allowed=("full_attention", "sliding_attention"),
    )
    if not fields.flag("use_sliding_window"):
        fields.ignore("unused", "sliding_window", "max_window_layers")
        return [None] * frame.layers
    window = fields.optional("sliding_window")
    if types is not None:
        fields.ignore("unused", "max_window_layers")
        return [window if kind == "sliding_attention" else None for kind in types]
    if not qwen2:
        fields.ignore("unused", "max_window_layers")
        return [window] * frame.layers
    # the class gives a window to every other one of the first max_window_layers layers
    first = fields.count("max_window_layers")
    return [window if index % 2 == 0 and index < first else None for index in range(frame.layers)]


def sparse_layers(fields: Fields, frame: Frame) -> list[bool]:
    """Return which layers hold experts."""
    dense = set(fields.integers("mlp_only_layers") or ())
    step = fields.size("decoder_sparse_step", most=MAX_LAYERS)
    experts = fields.count("num_experts", "num_local_experts")
    return [
        experts > 0 and index not in dense and (index + 1) % step == 0
        for index in range(frame.layers)
    ]


def read_ffn(
    fields: Fields, hidden: int, model_type: str, *, sparse: bool
) -> tuple[DenseFfn | MoeFfn, list[Row]]:
    """Return the dense or the expert feed-forward block, with its rows."""
    if not sparse:
        intermediate = fields.size("intermediate_size")
        return DenseFfn(intermediate_size=intermediate), dense_mlp(hidden, intermediate)
    experts = fields.size("num_experts", "num_local_experts")
    width = fields.size("moe_intermediate_size")
    shared = 0
    rows = router(hidden, experts)
    if model_type == "qwen3_vl_moe_text":
        rows += fused_experts(hidden, width, experts, transposed=True)
    elif model_type == "qwen3_5_moe_text":
        rows += fused_experts(hidden, width, experts)
    else:
        rows += routed_experts(hidden, width, experts)
    if model_type not in ("qwen3_moe", "qwen3_vl_moe_text", "qwen3_omni_moe_text"):
        shared = fields.size("shared_expert_intermediate_size")
        at = LAYER + "mlp.shared_expert"
        rows += shared_expert(hidden, shared, at=at + ".", gate=at + "_gate.weight")
    moe = MoeFfn(
        num_experts=experts,
        num_experts_per_tok=fields.size("num_experts_per_tok"),
        moe_intermediate_size=width,
        shared_intermediate_size=shared,
    )
    return moe, rows


def fused_experts(
    hidden: int,
    width: int,
    experts: int,
    *,
    at: str = LAYER + "mlp.experts.",
    transposed: bool = False,
) -> list[Row]:
    """Return experts stored in two tensors for all of them; transposed = inputs first."""
    shapes = {"gate_up_proj": (2 * width, hidden), "down_proj": (hidden, width)}
    return [
        ffn_row(
            at + name,
            *(shape[::-1] if transposed else shape),
            account="routed_experts",
            split="experts",
            copies=experts,
            routed=True,
        )
        for name, shape in shapes.items()
    ]
