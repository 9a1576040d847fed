"""Gemma 3n: per-layer embeddings, AltUp streams, LAuReL, shared caches.

Source: ``models/gemma3n`` of transformers 5.24. The last ``num_kv_shared_layers`` layers have no
key and value projections and read an earlier cache; the published checkpoints still hold such
tensors for them, unused and not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ledgerkit.readers.blocks import (
    LAYER,
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
    require,
)
from ledgerkit.readers.families.gemma4 import per_layer_rows, per_layer_tables
from ledgerkit.readers.fields import MAX_LAYERS, Fields
from ledgerkit.readers.rows import Architecture, Layer, Row, ffn_row
from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.feed_forward import DenseFfn

DEFAULTS: dict[str, Mapping[str, Any]] = {
    "gemma3n_text": {
        "vocab_size": 262400,
        "hidden_size": 2048,
        "intermediate_size": 16384,
        "num_hidden_layers": 35,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "max_position_embeddings": 32768,
        "tie_word_embeddings": True,
        "attention_bias": False,
        "sliding_window": 512,
        "layer_types": None,
        "vocab_size_per_layer_input": 262144,
        "hidden_size_per_layer_input": 256,
        "altup_num_inputs": 4,
        "num_kv_shared_layers": 15,
        "laurel_rank": 64,
    }
}
_EVERY = 5
_MAX_STREAMS = 256


class _Kind(NamedTuple):
    """What tells one layer from another."""

    full: bool
    shared: bool
    intermediate: int


def read(fields: Fields, _model_type: str) -> Architecture:
    """Read a Gemma 3n text model."""
    frame = read_frame(fields)
    hidden = frame.hidden
    heads, kv_heads = read_heads(fields)
    head_dim = read_head_dim(fields, hidden, heads)
    bias = fields.flag("attention_bias")
    window = fields.optional("sliding_window")
    streams = fields.size("altup_num_inputs", most=_MAX_STREAMS)
    rank = fields.size("laurel_rank")
    per_layer = fields.size("hidden_size_per_layer_input")
    fields.ignore(
        "scalar", "altup_active_idx", "altup_correct_scale", "activation_sparsity_pattern"
    )

    def layer(kind: _Kind) -> Layer:
        attention = SoftmaxAttention(
            num_attention_heads=heads,
            num_key_value_heads=kv_heads,
            head_dim=head_dim,
            v_head_dim=head_dim,
            window=None if kind.full else window,
            stores_kv=not kind.shared,
            qk_norm=True,
        )
        rows = (
            *attention_norm(hidden),
            *attention_norm(hidden, LAYER + "post_attention_layernorm"),
            *gqa_projections(
                hidden,
                heads,
                kv_heads,
                head_dim,
                qkv_bias=bias,
                o_bias=bias,
                qk_norm=head_dim,
                keys=not kind.shared,
            ),
            *ffn_norm(hidden, LAYER + "pre_feedforward_layernorm"),
            *ffn_norm(hidden, LAYER + "post_feedforward_layernorm"),
            *dense_mlp(hidden, kind.intermediate),
            *per_layer_rows(hidden, per_layer),
            *_residual_rows(hidden, streams, rank),
        )
        return Layer(attention, DenseFfn(intermediate_size=kind.intermediate), rows)

    kinds = _kinds(fields, frame)
    layers = {kind: layer(kind) for kind in dict.fromkeys(kinds)}
    table = [
        *vocabulary(hidden, frame.vocab, tie=frame.tie),
        *per_layer_tables(fields, frame, per_layer),
        *(
            ffn_row(f"model.{name}.{index}.weight", hidden, hidden, account="residual")
            for name in ("altup_projections", "altup_unembed_projections")
            for index in range(streams - 1)
        ),
    ]
    return frame.architecture([layers[kind] for kind in kinds], table)


def _kinds(fields: Fields, frame: Frame) -> list[_Kind]:
    types = fields.words(
        "layer_types", frame.layers, allowed=("full_attention", "sliding_attention")
    )
    if types is None:
        types = [
            "full_attention" if (index + 1) % _EVERY == 0 else "sliding_attention"
            for index in range(frame.layers)
        ]
        fields.record.use(
            fields.path + "layer_types", "4 sliding, 1 full", "derived", "the class default"
        )
    shared = fields.count("num_kv_shared_layers", most=MAX_LAYERS)
    first = frame.layers - shared
    require(first > 0, "num_kv_shared_layers must leave layers to share from", shared)
    for kind in set(types[first:]):
        require(
            kind in types[:first],
            f"no {kind} layer before the sharing ones has a cache to share",
            shared,
        )
    if isinstance(fields.values.get("intermediate_size"), (list, tuple)):
        widths = fields.integers("intermediate_size", frame.layers, least=1) or []
    else:
        widths = [fields.size("intermediate_size")] * frame.layers
    return [
        _Kind(kind == "full_attention", index >= first, width)
        for index, (kind, width) in enumerate(zip(types, widths, strict=True))
    ]


def _residual_rows(hidden: int, streams: int, rank: int) -> list[Row]:
    """Return AltUp (parallel residual streams) and LAuReL (a low-rank residual)."""
    altup, laurel = LAYER + "altup.", LAYER + "laurel."
    return [
        ffn_row(altup + "correct_output_scale", hidden, account="residual", use="vector"),
        ffn_row(altup + "correction_coefs.weight", streams, streams, account="residual"),
        ffn_row(altup + "prediction_coefs.weight", streams**2, streams, account="residual"),
        ffn_row(altup + "modality_router.weight", streams, hidden, account="residual"),
        ffn_row(altup + "router_norm.weight", hidden, account="residual", use="vector"),
        ffn_row(laurel + "linear_left.weight", rank, hidden, account="residual"),
        ffn_row(laurel + "linear_right.weight", hidden, rank, account="residual"),
        ffn_row(laurel + "post_laurel_norm.weight", hidden, account="residual", use="vector"),
    ]
