"""Ling 3 (``bailing_hybrid``): Kimi Delta Attention, and latent attention with a gate per head.

Source: ``models/bailing_hybrid`` of transformers 5.24, tensor names of the checkpoints by its
conversion. One layer of each group attends fully; forget and output gates have full rank.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerkit.readers.blocks import LAYER, attention_norm, vocabulary
from ledgerkit.readers.families._common import Frame, read_frame
from ledgerkit.readers.families.deepseek import latent_rows, moe_layers, read_ffns, read_latent
from ledgerkit.readers.fields import MAX_CONTEXT, MAX_LAYERS, Fields
from ledgerkit.readers.rows import Architecture, Layer, Row, attention_row
from ledgerkit.spec.attention import Attention, StateAttention

DEFAULTS: dict[str, Mapping[str, Any]] = {
    "bailing_hybrid": {
        "max_position_embeddings": 262144,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "q_lora_rank": None,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "num_local_experts": 512,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 768,
        "n_group": 8,
        "topk_group": 4,
        "first_k_dense_replace": 2,
        "moe_layer_freq": 1,
        "num_mtp_layers": 1,
        "head_dim": 128,
        "short_conv_kernel_size": 4,
        "layer_group_size": 6,
    }
}
_AT = LAYER + "attention."


def read(fields: Fields, model_type: str) -> Architecture:
    """Read a Ling 3 decoder."""
    context = fields.size("max_position_embeddings", "model_max_length", most=MAX_CONTEXT)
    frame = read_frame(fields)._replace(context=context)
    fields.only("tie_word_embeddings", False, why="the class has a head of its own")
    fields.ignore("scalar", "kda_safe_gate", "kda_lower_bound")
    fields.only("moe_layer_freq", 1, why="the class has experts in every layer after the first")
    if fields.count("num_mtp_layers", "num_nextn_predict_layers"):
        fields.record.assume("mtp_not_counted", family=model_type)
    delta = _delta_attention(fields, frame.hidden)  # reads head_dim before it is set aside
    latent = read_latent(fields)
    gated = [
        *latent_rows(fields, frame, latent),
        attention_row(_AT + "g_proj.weight", latent.num_attention_heads, frame.hidden),
    ]
    mixers: dict[bool, tuple[Attention, list[Row]]] = {True: (latent, gated), False: delta}
    ffns = read_ffns(fields, frame, correction=True)
    pairs = list(zip(_full_layers(fields, frame), moe_layers(fields, frame), strict=True))
    layers = {
        (full, flag): Layer(
            mixers[full][0],
            ffns[flag][0],
            tuple(_named(row) for row in (*mixers[full][1], *ffns[flag][1])),
        )
        for full, flag in dict.fromkeys(pairs)
    }
    table = vocabulary(frame.hidden, frame.vocab, tie=frame.tie,
                       embedding="model.word_embeddings.weight")  # fmt: skip
    return frame.architecture([layers[pair] for pair in pairs], table)


def _named(row: Row) -> Row:
    """Name a row as the checkpoints do; the router is kept in fp32."""
    name = row.name.replace("self_attn.o_proj", "attention.dense")
    name = name.replace("self_attn.", "attention.")
    name = name.replace("gate.e_score_correction_bias", "gate.expert_bias")
    exact = name.endswith("mlp.gate.weight")
    return row._replace(name=name, dtype="fp32" if exact else row.dtype)


def _full_layers(fields: Fields, frame: Frame) -> list[bool]:
    """Return which layers attend fully: listed, or the last of each group."""
    types = fields.words("layer_types", frame.layers, default=None,
                         allowed=("linear_attention", "full_attention"))  # fmt: skip
    every = fields.size("layer_group_size", most=MAX_LAYERS)
    if types is not None:
        return [kind == "full_attention" for kind in types]
    return [(index + 1) % every == 0 for index in range(frame.layers)]


def _delta_attention(fields: Fields, hidden: int) -> tuple[StateAttention, list[Row]]:
    """Return delta attention; files as the library saves them hold its sizes under other names."""
    heads = fields.size("linear_num_heads", default=fields.size("num_attention_heads"),
                        rule="num_attention_heads")  # fmt: skip
    width = fields.size("linear_head_dim", default=fields.size("head_dim"), rule="head_dim")
    kernel = fields.size("linear_conv_kernel_dim", default=fields.size("short_conv_kernel_size"),
                         rule="short_conv_kernel_size")  # fmt: skip
    inner = heads * width
    attention = StateAttention(
        variant="kda",
        num_heads=heads,
        key_dim=width,
        value_dim=width,
        num_groups=heads,
        conv_channels=3 * inner,
        conv_kernel=kernel,
    )
    kept: dict[str, Any] = {"use": "vector", "account": "state"}
    rows = [
        *attention_norm(hidden),
        *(attention_row(f"{_AT}{part}_proj.weight", inner, hidden) for part in "qkvfg"),
        *(
            attention_row(f"{_AT}{part}_conv1d.weight", inner, 1, kernel, dtype="fp32", **kept)
            for part in "qkv"
        ),
        attention_row(_AT + "A_log", heads, dtype="fp32", **kept),
        attention_row(_AT + "dt_bias", inner, dtype="fp32", **kept),
        attention_row(_AT + "b_proj.weight", heads, hidden),
        attention_row(_AT + "o_norm.weight", width, split="none", **kept),
        attention_row(_AT + "o_proj.weight", hidden, inner),
    ]
    return attention, rows
