"""Falcon: multi-query attention (or few KV heads in the new architecture), two-matrix MLP.

Source: ``models/falcon`` of transformers 5.24. With ``multi_query`` there is one KV head, whatever
``num_kv_heads`` says; ``new_decoder_architecture`` switches to ``num_kv_heads``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerkit.readers.blocks import vocabulary
from ledgerkit.readers.families._common import require
from ledgerkit.readers.fields import MAX_LAYERS, MAX_VOCAB, Fields
from ledgerkit.readers.rows import Architecture, Layer, Row, attention_row, ffn_row
from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.feed_forward import DenseFfn

DEFAULTS: dict[str, Mapping[str, Any]] = {
    "falcon": {
        "max_position_embeddings": 2048,
        "new_decoder_architecture": False,
        "multi_query": True,
        "parallel_attn": True,
        "bias": False,
        "num_kv_heads": None,
        "num_ln_in_parallel_attn": None,
        "ffn_hidden_size": None,
        "tie_word_embeddings": True,
        "alibi": False,
    }
}
AT = "transformer.h.{layer}."


def read(fields: Fields, _model_type: str) -> Architecture:
    """Read a Falcon decoder."""
    hidden = fields.size("hidden_size", "n_embed")
    layers = fields.size("num_hidden_layers", "n_layer", most=MAX_LAYERS)
    heads = fields.size("num_attention_heads", "n_head")
    vocab = fields.size("vocab_size", most=MAX_VOCAB)
    context = fields.size("max_position_embeddings")
    tie = fields.flag("tie_word_embeddings")
    bias = fields.flag("bias")
    inner = fields.size("ffn_hidden_size", default=4 * hidden, rule="4 x hidden_size")
    require(hidden % heads == 0, "hidden_size must be a multiple of num_attention_heads",
            (hidden, heads))  # fmt: skip
    fields.ignore("activation", "activation")
    if fields.has("ff_factor"):  # Falcon 2 says its width twice
        fields.only("ff_factor", inner // hidden, why="ffn_hidden_size says another width")
    fields.ignore("unused", "apply_residual_connection_post_layernorm")
    fields.ignore("rotary", "alibi")
    head_dim = hidden // heads
    new = fields.flag("new_decoder_architecture")
    kv_heads = heads
    if new:
        kv_heads = fields.size("num_kv_heads", default=heads, rule="num_attention_heads")
        fields.ignore("unused", "multi_query")
    else:
        if fields.flag("multi_query"):
            kv_heads = 1
            fields.ignore("unused", "num_kv_heads")
        fields.ignore("unused", "num_kv_heads")
    require(heads % kv_heads == 0, "num_attention_heads must be a multiple of num_kv_heads",
            (heads, kv_heads))  # fmt: skip
    attention = SoftmaxAttention(num_attention_heads=heads, num_key_value_heads=kv_heads,
                                 head_dim=head_dim, v_head_dim=head_dim)  # fmt: skip
    at = AT + "self_attention."
    rows: list[Row] = [
        *_norms(fields, hidden, new=new),
        attention_row(at + "query_key_value.weight", hidden, hidden),
        attention_row(at + "query_key_value.weight", 2 * kv_heads * head_dim, hidden,
                      split="kv_heads"),
        attention_row(at + "dense.weight", hidden, hidden),
        ffn_row(AT + "mlp.dense_h_to_4h.weight", inner, hidden, account="dense", split="tp"),
        ffn_row(AT + "mlp.dense_4h_to_h.weight", hidden, inner, account="dense", split="tp"),
    ]  # fmt: skip
    if bias:
        rows += [
            attention_row(at + "query_key_value.bias", hidden, use="vector"),
            attention_row(at + "query_key_value.bias", 2 * kv_heads * head_dim, use="vector",
                          split="kv_heads"),
            attention_row(at + "dense.bias", hidden, use="vector", split="none"),
            ffn_row(AT + "mlp.dense_h_to_4h.bias", inner, account="dense", split="tp",
                    use="vector"),
            ffn_row(AT + "mlp.dense_4h_to_h.bias", hidden, account="dense", use="vector"),
        ]  # fmt: skip
    layer = Layer(attention, DenseFfn(intermediate_size=inner, matrices=2), tuple(rows))
    table = vocabulary(hidden, vocab, tie=tie, embedding="transformer.word_embeddings.weight",
        norm="transformer.ln_f", norm_bias=True,
    )  # fmt: skip
    return Architecture(hidden, vocab, context, tie, [layer] * layers, table)


def _norms(fields: Fields, hidden: int, *, new: bool) -> list[Row]:
    """Return the layer norms: one shared by both blocks, or one for each."""
    count = fields.optional("num_ln_in_parallel_attn", default=None)
    parallel = fields.flag("parallel_attn")
    two = (2 if count is None and new else count) == 2
    if parallel and two:
        names = ("ln_attn", "ln_mlp")
    elif parallel:
        names = ("input_layernorm", "")
    else:
        names = ("input_layernorm", "post_attention_layernorm")
    kinds = (".weight", ".bias")
    rows = [attention_row(AT + names[0] + kind, hidden, use="vector", split="none",
                          account="norms") for kind in kinds]  # fmt: skip
    if names[1]:
        rows += [ffn_row(AT + names[1] + kind, hidden, use="vector", account="norms")
                 for kind in kinds]  # fmt: skip
    return rows
