"""Mistral Large 4: latent attention without a query latent, indexers, scaled softmax.

Source: ``models/mistral_large4`` of transformers 5.24, tensor names of the checkpoints by its
conversion. Layers without rotary positions keep no part of the key beside the latent. Layers that
read the latents of an earlier one are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ledgerkit.readers.blocks import LAYER, vocabulary
from ledgerkit.readers.families._common import Frame, read_frame, require
from ledgerkit.readers.families.deepseek import (
    Owns,
    indexer_owners,
    indexer_rows,
    latent_rows,
    moe_layers,
    read_ffns,
    read_indexer,
    read_latent,
)
from ledgerkit.readers.fields import MAX_LAYERS, Fields
from ledgerkit.readers.rows import Architecture, Layer, Row, attention_row

if TYPE_CHECKING:
    from ledgerkit.spec.axes import Account
    from ledgerkit.spec.weights import Split

DEFAULTS: dict[str, Mapping[str, Any]] = {
    "mistral_large4_text": {
        "max_position_embeddings": 1048576,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "q_lora_rank": None,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 64,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "n_routed_experts": 128,
        "n_shared_experts": 1,
        "num_experts_per_tok": 4,
        "moe_intermediate_size": 6144,
        "n_group": 1,
        "topk_group": 1,
        "first_k_dense_replace": 1,
        "moe_layer_freq": 1,
        "index_n_heads": 32,
        "index_head_dim": 128,
        "index_topk": 2048,
        "index_topk_freq": 1,
        "index_skip_topk_offset": 2,
        "no_rope_layer_interval": 4,
    }
}
_TENSORS = (
    ("self_attn.", "attention."),
    (".q_proj.", ".wq."),
    ("kv_a_proj_with_mqa", "wkv_a_with_mqa"),
    ("kv_b_proj", "wkv_b"),
    ("kv_a_layernorm", "kv_a_norm"),
    (".o_proj.", ".wo."),
    ("input_layernorm", "attention_norm"),
    ("post_attention_layernorm", "ffn_norm"),
    ("mlp.gate.", "gate."),
    ("mlp.experts.", "experts."),
    ("mlp.shared_experts.", "shared_experts."),
    (".mlp.", ".feed_forward."),
    ("gate_proj", "w1"),
    ("up_proj", "w3"),
    ("down_proj", "w2"),
    ("model.embed_tokens", "tok_embeddings"),
    ("lm_head", "output"),
    ("model.", ""),
)


def read(fields: Fields, model_type: str) -> Architecture:
    """Read the text model of a Mistral Large 4."""
    frame = read_frame(fields)
    hidden = frame.hidden
    fields.only("q_lora_rank", why="this model type projects queries in one step")
    fields.only("moe_layer_freq", 1, why="the class has experts in every layer after the first")
    fields.only("kv_source_layers", list(range(frame.layers)), why="layers that read the latents "
                "of an earlier one are not implemented")  # fmt: skip
    latent = read_latent(fields)
    indexer = read_indexer(fields)
    heads = latent.num_attention_heads
    near = latent.model_copy(
        update={
            "qk_nope_head_dim": latent.qk_nope_head_dim + latent.qk_rope_head_dim,
            "qk_rope_head_dim": 0,
        }
    )
    ffns = read_ffns(fields, frame, correction=False)

    def layer(own: Owns, *, rotary: bool, flag: bool) -> Layer:
        kind = latent if rotary else near
        rows = (
            *latent_rows(fields, frame, kind),
            *_scaling("self_attn.", heads),
            *indexer_rows(hidden, None, indexer, own),
        )
        if own == "full":
            rows += (*_scaling("self_attn.indexer.", indexer.num_heads), *_query_norm(hidden))
        owned = indexer.model_copy(update={"owned": own == "full"})
        ffn, ffn_rows = ffns[flag]
        return Layer(kind.model_copy(update={"indexer": owned}), ffn,
                     tuple(_named(row) for row in (*rows, *ffn_rows)))  # fmt: skip

    kinds = list(zip(indexer_owners(fields, frame, model_type), _rotary(fields, frame),
                     moe_layers(fields, frame), strict=True))  # fmt: skip
    layers = {kind: layer(kind[0], rotary=kind[1], flag=kind[2]) for kind in dict.fromkeys(kinds)}
    table = [_named(row) for row in vocabulary(hidden, frame.vocab, tie=frame.tie)]
    # learned rotary frequencies, one set for all layers
    table.append(attention_row("lerope.alpha", latent.qk_rope_head_dim // 2, use="vector",
                               split="none", dtype="fp32"))  # fmt: skip
    return frame.architecture([layers[kind] for kind in kinds], table)


def _rotary(fields: Fields, frame: Frame) -> list[bool]:
    """Return which layers have rotary positions: listed as 1, or all but every n-th."""
    every = fields.size("no_rope_layer_interval", most=MAX_LAYERS)
    listed = fields.integers("no_rope_layers", frame.layers, default=None)
    if listed is None:
        return [(index + 1) % every != 0 for index in range(frame.layers)]
    require(set(listed) <= {0, 1}, "no_rope_layers must be made of 0 and 1", listed)
    return [value == 1 for value in listed]


def _scaling(at: str, heads: int) -> tuple[Row, ...]:
    """Return a learned scale and bias of the softmax for each head."""
    account: Account = "indexer" if "indexer" in at else "projections"
    split: Split = "none" if account == "indexer" else "tp"
    return tuple(attention_row(f"{LAYER}{at}ssmax_scaling.{name}", heads, use="vector",
                               account=account, split=split) for name in "sb")  # fmt: skip


def _query_norm(hidden: int) -> tuple[Row, ...]:
    at = LAYER + "self_attn.indexer.q_input_norm."
    return tuple(attention_row(at + name, hidden, use="vector", account="indexer", split="none")
                 for name in ("weight", "bias"))  # fmt: skip


def _named(row: Row) -> Row:
    """Name a row as the checkpoints do."""
    name = row.name
    for usual, own in _TENSORS:
        name = name.replace(usual, own)
    return row._replace(name=name)
