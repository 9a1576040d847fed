"""Hunyuan V4: latent attention with gates, sinks and shared indexers, in several residual streams.

Source: ``models/hy_v4`` of transformers 5.24, tensor names of the checkpoints by its conversion.
Each block reads its input out of the streams and adds its output to each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerkit.readers.blocks import LAYER, vocabulary
from ledgerkit.readers.families._common import read_frame, require
from ledgerkit.readers.families.deepseek import (
    indexer_rows,
    latent_rows,
    moe_layers,
    read_ffns,
    read_indexer,
    read_latent,
)
from ledgerkit.readers.fields import Fields
from ledgerkit.readers.rows import Architecture, Layer, Row, attention_row, ffn_row

DEFAULTS: dict[str, Mapping[str, Any]] = {
    "hy_v4": {
        "max_position_embeddings": 262144,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 192,
        "qk_rope_head_dim": 64,
        "v_head_dim": 256,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 768,
        "n_group": 1,
        "topk_group": 1,
        "first_k_dense_replace": 1,
        "moe_layer_freq": 1,
        "index_n_heads": 16,
        "index_head_dim": 128,
        "index_topk": 2048,
        "hc_mult": 4,
    }
}
_AT = LAYER + "self_attn."
_EXACT = ("indexer.weights_proj.weight", "indexer.k_norm.weight", "indexer.k_norm.bias",
          "mlp.gate.weight")  # fmt: skip
"""Rows that checkpoints keep in fp32."""


def read(fields: Fields, model_type: str) -> Architecture:
    """Read a Hunyuan V4 decoder; layers differ in their MLP and in whether they own an indexer."""
    frame = read_frame(fields)
    hidden = frame.hidden
    indexer = read_indexer(fields)
    latent = read_latent(fields)
    require(latent.q_lora_rank is not None, "the indexer of this model type reads the query latent:"
            " q_lora_rank must be stated", latent.q_lora_rank)  # fmt: skip
    fields.ignore("scalar", "hc_magnitude", "learnable_sink_init")
    fields.words("layer_types", frame.layers, allowed=("indexed_attention",), default=None)
    if fields.count("num_nextn_predict_layers", "num_mtp_layers", default=0):
        fields.record.assume("mtp_not_counted", family=model_type)
    owns = _owners(fields, frame.layers)
    heads = latent.num_attention_heads
    streams = fields.size("hc_mult")
    rows = (
        *latent_rows(fields, frame, latent),
        attention_row(_AT + "linear_gate.weight", heads * latent.v_head_dim, hidden),
        attention_row(_AT + "learnable_sink_param", heads, use="vector", dtype="fp32"),
        *_mixes(LAYER + "hc_attn_layer.hc_pre.hc_", hidden, streams, 2 * streams, 2),
        *_mixes(LAYER + "hc_mlp_layer.hc_pre.hc_", hidden, streams, 2 * streams, 2),
    )
    ffns = read_ffns(fields, frame, correction=True)

    def layer(*, flag: bool, own: bool) -> Layer:
        ffn, ffn_rows = ffns[flag]
        extra = indexer_rows(hidden, latent.q_lora_rank, indexer, "full" if own else "shared")
        kind = latent.model_copy(update={"indexer": indexer.model_copy(update={"owned": own})})
        return Layer(kind, ffn, tuple(
            row._replace(dtype="fp32") if row.name.endswith(_EXACT) else row
            for row in (*rows, *extra, *ffn_rows)
        ))  # fmt: skip

    pairs = list(zip(moe_layers(fields, frame), owns, strict=True))
    layers = {pair: layer(flag=pair[0], own=pair[1]) for pair in dict.fromkeys(pairs)}
    table = [
        *vocabulary(hidden, frame.vocab, tie=frame.tie),
        *_mixes("model.hc_head.hc_head_", hidden, streams, streams, 1),
    ]
    return frame.architecture([layers[pair] for pair in pairs], table)


def _owners(fields: Fields, layers: int) -> list[bool]:
    """Return which layers own an indexer: listed, or the first and every fourth after it."""
    types = fields.words("indexer_types", layers, allowed=("full", "shared"), default=None)
    if types is None:
        return [index == 0 or index % 4 == 1 for index in range(layers)]
    require(types[0] == "full", "the first layer must own its indexer", types[0])
    return [kind == "full" for kind in types]


def _mixes(at: str, hidden: int, streams: int, mixes: int, scales: int) -> list[Row]:
    """Return what mixes residual streams: scores of all of them, in fp32."""
    shapes = {"fn": (mixes, streams * hidden), "base": (mixes,), "scale": (scales,)}
    return [ffn_row(at + name, *shape, account="residual", dtype="fp32",
                    use="vector" if len(shape) == 1 else "linear")
            for name, shape in shapes.items()]  # fmt: skip
