"""Hunyuan mixtures of experts (Hunyuan-A13B): lists per layer, shared MLP beside the experts.

Source: ``models/hunyuan_v1_moe`` of transformers 5.24 and ``modeling_hunyuan.py`` of the
checkpoint. ``moe_topk``, ``moe_intermediate_size`` and ``num_shared_expert`` may be lists with one
entry per layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerkit.errors import UnsupportedArchitectureError
from ledgerkit.readers.blocks import (
    LAYER,
    attention_norm,
    ffn_norm,
    gqa_projections,
    routed_experts,
    router,
    shared_expert,
)
from ledgerkit.readers.families._common import (
    Frame,
    hunyuan_extras,
    read_frame,
    read_heads,
    require,
)
from ledgerkit.readers.fields import Fields
from ledgerkit.readers.rows import Architecture, Layer, Row
from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.feed_forward import MoeFfn

DEFAULTS: dict[str, Mapping[str, Any]] = {
    "hunyuan_v1_moe": {
        "max_position_embeddings": 2048,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "num_experts": 1,
        "moe_topk": 1,
        "num_shared_expert": 1,
    }
}
_OFF = ("mlp_bias", "moe_drop_tokens_dense")


def read(fields: Fields, _model_type: str) -> Architecture:
    """Read a Hunyuan mixture of experts."""
    frame = read_frame(fields)
    hidden = frame.hidden
    heads, kv_heads = read_heads(fields)
    require(
        hidden % heads == 0 or fields.has("head_dim") or fields.has("attention_head_dim"),
        "hidden_size must be a multiple of num_attention_heads when no head_dim is stated",
        (hidden, heads),
    )
    head_dim = fields.size(
        "head_dim",
        "attention_head_dim",
        default=hidden // heads,
        rule="hidden_size / num_attention_heads",
    )
    for name in _OFF:
        fields.only(name, False, why="not implemented for Hunyuan")
    fields.only("use_mixed_mlp_moe", True, why="the class always has a shared MLP")
    fields.only("use_qk_norm", True, why="the class always has q and k norms")
    fields.only("moe_layer_num_skipped", 0, why="dense first layers are not implemented")
    fields.ignore("unused", "moe_drop_tokens", "moe_random_routing_dropped_token")
    hunyuan_extras(fields)
    bias = fields.flag("attention_bias")
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
            hidden,
            heads,
            kv_heads,
            head_dim,
            qkv_bias=bias,
            o_bias=bias,
            qk_norm=head_dim,
            norm_names=("query_layernorm", "key_layernorm"),
        ),
        *ffn_norm(hidden),
    )
    intermediate = fields.size("intermediate_size")
    sizes = list(
        zip(
            _per_layer(fields, frame, "num_experts"),
            _per_layer(fields, frame, "moe_topk", "num_experts_per_tok"),
            _expert_widths(fields, frame, intermediate),
            _per_layer(fields, frame, "num_shared_expert"),
            strict=True,
        )
    )
    layers = {}
    for size in dict.fromkeys(sizes):
        moe, ffn_rows = _moe(hidden, intermediate, *size)
        layers[size] = Layer(attention, moe, (*rows, *ffn_rows))
    return frame.architecture([layers[size] for size in sizes])


def _expert_widths(fields: Fields, frame: Frame, intermediate: int) -> list[int]:
    """Return the width of the experts; the checkpoints have one width for all MLPs."""
    widths = _per_layer(fields, frame, "moe_intermediate_size", default=intermediate)
    if set(widths) != {intermediate}:
        raise UnsupportedArchitectureError(
            "experts whose width is not intermediate_size are not known for Hunyuan",
            given=widths, allowed=str(intermediate),
        )  # fmt: skip
    return widths


def _per_layer(fields: Fields, frame: Frame, *names: str, default: Any = None) -> list[int]:
    """Return a size for each layer, stated once or as a list."""
    stated = next((name for name in names if fields.has(name)), names[0])
    fields.mark(*names)
    if isinstance(fields.values.get(stated), (list, tuple)):
        return fields.integers(stated, frame.layers, least=1) or []
    if default is not None and not fields.has(stated):
        return [default] * frame.layers
    return [fields.size(stated)] * frame.layers


def _moe(
    hidden: int, intermediate: int, experts: int, topk: int, width: int, shared: int
) -> tuple[MoeFfn, list[Row]]:
    moe = MoeFfn(
        num_experts=experts,
        num_experts_per_tok=topk,
        moe_intermediate_size=width,
        shared_intermediate_size=intermediate * shared,
    )
    rows = [
        *router(hidden, experts, name=LAYER + "mlp.gate.wg.weight", dtype="fp32"),
        *routed_experts(hidden, width, experts),
        *shared_expert(hidden, intermediate * shared, at=LAYER + "mlp.shared_mlp."),
    ]
    return moe, rows
