"""A.X K2: latent attention with an indexer and an output gate, norms with low-rank gates.

Source: ``models/axk2`` of transformers 5.24, tensor names of the checkpoints by its conversion.
One projection gives query and gate, out of the query latent before and after its norm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerkit.readers.blocks import vocabulary
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
from ledgerkit.readers.rows import Architecture, Layer, Row

DEFAULTS: dict[str, Mapping[str, Any]] = {
    "axk2": {
        "max_position_embeddings": 131072,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "q_lora_rank": 384,
        "kv_lora_rank": 128,
        "qk_nope_head_dim": 64,
        "qk_rope_head_dim": 32,
        "v_head_dim": 64,
        "n_routed_experts": 128,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 512,
        "n_group": None,
        "topk_group": None,
        "first_k_dense_replace": 1,
        "moe_layer_freq": 1,
        "index_n_heads": 16,
        "index_head_dim": 128,
        "index_topk": 2048,
        "gated_norm_rank": 16,
    }
}


def read(fields: Fields, model_type: str) -> Architecture:
    """Read an A.X K2 decoder."""
    frame = read_frame(fields)
    hidden = frame.hidden
    indexer = read_indexer(fields)
    latent = read_latent(fields).model_copy(update={"indexer": indexer})
    rank = latent.q_lora_rank
    require(rank is not None, "the indexer and the output gate of this model type read the query "
            "latent: q_lora_rank must be stated", rank)  # fmt: skip
    fields.words("layer_types", frame.layers, allowed=("indexed_attention",), default=None)
    if fields.count("num_nextn_predict_layers", "num_mtp_layers", default=0):
        fields.record.assume("mtp_not_counted", family=model_type)
    gate = fields.size("gated_norm_rank")
    width = latent.qk_nope_head_dim + latent.qk_rope_head_dim + latent.v_head_dim
    fused = (latent.num_attention_heads * width, 2 * (rank or 0))
    attention = [
        row._replace(shape=fused) if row.name.endswith("q_b_proj.weight") else row
        for row in latent_rows(fields, frame, latent)
    ]
    attention += [
        row._replace(dtype="fp32") if row.name.endswith("weights_proj.weight") else row
        for row in indexer_rows(hidden, rank, indexer, "full")
    ]
    rows = _gated(attention, hidden, gate)
    dense, moe = read_ffns(fields, frame, correction=True)
    layers = {
        False: Layer(latent, dense[0], (*rows, *dense[1])),
        True: Layer(latent, moe[0], (*rows, *_gated(moe[1], hidden, gate))),
    }
    table = vocabulary(hidden, frame.vocab, tie=frame.tie)
    return frame.architecture([layers[flag] for flag in moe_layers(fields, frame)], table)


def _gated(rows: list[Row], hidden: int, rank: int) -> list[Row]:
    """Put the norm at the head of ``rows`` in front of its gate, a small MLP of two matrices."""
    norm, *rest = rows
    at = norm.name.removesuffix("weight")
    small = norm._replace(use="linear", quantizable=False)
    return [
        norm._replace(name=at + "norm.weight"),
        small._replace(name=at + "W_down.weight", shape=(rank, hidden)),
        small._replace(name=at + "W_up.weight", shape=(hidden, rank)),
        *rest,
    ]
