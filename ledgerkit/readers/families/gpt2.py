"""GPT-2: learned positions, biases everywhere, one fused q, k, v matrix, stored transposed.

Source: ``models/gpt2`` of transformers 5.24. The checkpoints hold fp32.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerkit.readers.families._common import require
from ledgerkit.readers.fields import MAX_LAYERS, MAX_VOCAB, Fields
from ledgerkit.readers.rows import Architecture, Layer, Row, attention_row, ffn_row
from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.feed_forward import DenseFfn

DEFAULTS: dict[str, Mapping[str, Any]] = {
    "gpt2": {
        "vocab_size": 50257,
        "n_positions": 1024,
        "n_embd": 768,
        "n_layer": 12,
        "n_head": 12,
        "n_inner": None,
        "tie_word_embeddings": True,
    }
}


def read(fields: Fields, _model_type: str) -> Architecture:
    """Read a GPT-2 decoder."""
    hidden = fields.size("n_embd", "hidden_size")
    layers = fields.size("n_layer", "num_hidden_layers", most=MAX_LAYERS)
    heads = fields.size("n_head", "num_attention_heads")
    vocab = fields.size("vocab_size", most=MAX_VOCAB)
    context = fields.size("n_positions", "max_position_embeddings")
    inner = fields.size("n_inner", default=4 * hidden, rule="4 x n_embd")
    tie = fields.flag("tie_word_embeddings")
    require(hidden % heads == 0, "n_embd must be a multiple of n_head", (hidden, heads))
    # an old name of n_positions
    fields.ignore("duplicate", "n_ctx")
    fields.ignore("scalar", "scale_attn_weights", "scale_attn_by_inverse_layer_idx",
                  "reorder_and_upcast_attn")  # fmt: skip
    attention = SoftmaxAttention(num_attention_heads=heads, num_key_value_heads=heads,
                                 head_dim=hidden // heads, v_head_dim=hidden // heads)  # fmt: skip
    at = "h.{layer}."
    attn, mlp = at + "attn.", at + "mlp."
    rows: tuple[Row, ...] = (
        attention_row(at + "ln_1.weight", hidden, use="vector", split="none", account="norms"),
        attention_row(at + "ln_1.bias", hidden, use="vector", split="none", account="norms"),
        attention_row(attn + "c_attn.weight", hidden, 3 * hidden),
        attention_row(attn + "c_attn.bias", 3 * hidden, use="vector"),
        attention_row(attn + "c_proj.weight", hidden, hidden),
        attention_row(attn + "c_proj.bias", hidden, use="vector", split="none"),
        ffn_row(at + "ln_2.weight", hidden, use="vector", account="norms"),
        ffn_row(at + "ln_2.bias", hidden, use="vector", account="norms"),
        ffn_row(mlp + "c_fc.weight", hidden, inner, account="dense", split="tp"),
        ffn_row(mlp + "c_fc.bias", inner, account="dense", split="tp", use="vector"),
        ffn_row(mlp + "c_proj.weight", inner, hidden, account="dense", split="tp"),
        ffn_row(mlp + "c_proj.bias", hidden, account="dense", use="vector"),
    )
    vocabulary = [
        ffn_row("wte.weight", vocab, hidden, account="vocab", split="vocab",
                use="head" if tie else "lookup"),
        ffn_row("wpe.weight", context, hidden, account="vocab", use="lookup"),
        ffn_row("ln_f.weight", hidden, account="vocab", use="vector"),
        ffn_row("ln_f.bias", hidden, account="vocab", use="vector"),
    ]  # fmt: skip
    if not tie:
        vocabulary.append(ffn_row("lm_head.weight", vocab, hidden, account="vocab",
                                  split="vocab", use="head"))  # fmt: skip
    layer = Layer(attention, DenseFfn(intermediate_size=inner, matrices=2), rows)
    return Architecture(hidden, vocab, context, tie, [layer] * layers, vocabulary, dtype="fp32")
