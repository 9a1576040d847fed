"""DBRX: grouped-query attention with one fused projection, sixteen experts of which four are used.

Source: ``models/dbrx`` of transformers 5.24. The experts of a layer are stored in three matrices.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerkit.readers.blocks import LAYER, attention_norm, ffn_norm, router, vocabulary
from ledgerkit.readers.families._common import require
from ledgerkit.readers.fields import MAX_CONTEXT, MAX_LAYERS, MAX_VOCAB, Fields
from ledgerkit.readers.rows import Architecture, Layer, attention_row, ffn_row
from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.feed_forward import MoeFfn

DEFAULTS: dict[str, Mapping[str, Any]] = {"dbrx": {}}
_ATTENTION = {"kv_n_heads": 1}
_FFN = {"ffn_hidden_size": 3584, "moe_num_experts": 4, "moe_top_k": 1}
_AT = LAYER.replace("model.layers", "transformer.blocks")


def read(fields: Fields, _model_type: str) -> Architecture:
    """Read a DBRX decoder."""
    hidden = fields.size("d_model", "hidden_size")
    heads = fields.size("n_heads", "num_attention_heads")
    require(hidden % heads == 0, "d_model must be a multiple of n_heads", (hidden, heads))
    head_dim = hidden // heads
    layers = fields.size("n_layers", "num_hidden_layers", most=MAX_LAYERS)
    context = fields.size("max_seq_len", "max_position_embeddings", most=MAX_CONTEXT)
    vocab = fields.size("vocab_size", most=MAX_VOCAB)
    fields.only("tie_word_embeddings", False, why="the class has a head of its own")
    fields.ignore("training", "emb_pdrop")
    # a config without the two parts is read as its class reads it: with small defaults
    attention_part = fields.section("attn_config", _ATTENTION) or Fields(
        {}, fields.record, _ATTENTION, f"{fields.path}attn_config."
    )
    kv_heads = attention_part.size("kv_n_heads")
    fields.only("num_key_value_heads", kv_heads, why="attn_config.kv_n_heads says it")
    attention_part.ignore("scalar", "clip_qkv")
    attention_part.finish()
    require(heads % kv_heads == 0, "n_heads must be a multiple of attn_config.kv_n_heads",
            (heads, kv_heads))  # fmt: skip
    part = fields.section("ffn_config", _FFN) or Fields(
        {}, fields.record, _FFN, f"{fields.path}ffn_config."
    )
    part.only("hidden_size", hidden, why="the experts are as wide as the model")
    part.ignore("training", "moe_jitter_eps", "moe_loss_weight", "uniform_expert_assignment")
    part.ignore("router arithmetic", "moe_normalize_expert_weights")
    part.ignore("activation", "ffn_act_fn")
    moe = MoeFfn(
        num_experts=part.size("moe_num_experts"),
        num_experts_per_tok=part.size("moe_top_k"),
        moe_intermediate_size=part.size("ffn_hidden_size"),
    )
    part.finish()
    experts, width = moe.num_experts, moe.moe_intermediate_size
    norms, at = _AT + "norm_attn_norm.", _AT + "norm_attn_norm.attn."
    rows = (
        *attention_norm(hidden, norms + "norm_1"),
        attention_row(at + "Wqkv.weight", hidden, hidden),
        attention_row(at + "Wqkv.weight", 2 * kv_heads * head_dim, hidden, split="kv_heads"),
        attention_row(at + "out_proj.weight", hidden, hidden),
        *ffn_norm(hidden, norms + "norm_2"),
        *router(hidden, experts, name=_AT + "ffn.router.layer.weight"),
        *(
            ffn_row(f"{_AT}ffn.experts.mlp.{name}", width, hidden, account="routed_experts",
                    split="experts", copies=experts, routed=True)
            for name in ("w1", "v1", "w2")
        ),
    )  # fmt: skip
    attention = SoftmaxAttention(num_attention_heads=heads, num_key_value_heads=kv_heads,
                                 head_dim=head_dim, v_head_dim=head_dim)  # fmt: skip
    table = vocabulary(hidden, vocab, tie=False, embedding="transformer.wte.weight",
                       norm="transformer.norm_f")  # fmt: skip
    return Architecture(
        hidden, vocab, context, False, [Layer(attention, moe, rows)] * layers, table
    )
