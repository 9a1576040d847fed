"""Older decoders under their public fields: each row names the file that they come from.

The totals are those of the published checkpoints (one is counted by hand), which a recount by the
model classes of transformers confirms; bytes per token are worked out by hand.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

import ledgerkit as lk
from ledgerkit.errors import ConfigError, UnsupportedArchitectureError


class Row(NamedTuple):
    """A public config, and what it must come to."""

    source: str
    config: dict[str, Any]
    parameters: int
    bytes_per_token: int
    """What a further token adds to a bf16 cache beyond every window."""


ROWS = (
    Row("mosaicml/mpt-7b",
        {"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32, "vocab_size": 50432,
         "max_seq_len": 2048, "expansion_ratio": 4, "no_bias": True, "learned_pos_emb": True,
         "norm_type": "low_precision_layernorm", "tokenizer_name": "EleutherAI/gpt-neox-20b",
         "init_config": {"name": "kaiming_normal_"}, "init_device": "cpu", "verbose": 0,
         "embedding_fraction": 1.0, "logit_scale": None,
         "attn_config": {"alibi": True, "alibi_bias_max": 8, "attn_impl": "torch", "attn_pdrop": 0,
                         "attn_type": "multihead_attention", "attn_uses_sequence_id": False,
                         "clip_qkv": None, "prefix_lm": False, "qk_ln": False,
                         "softmax_scale": None}},
        6_649_286_656, 32 * 2 * 32 * 128 * 2),
    Row("EleutherAI/gpt-neo-2.7B",
        {"model_type": "gpt_neo", "hidden_size": 2560, "num_layers": 32, "num_heads": 20,
         "intermediate_size": None, "vocab_size": 50257, "max_position_embeddings": 2048,
         "window_size": 256, "attention_types": [[["global", "local"], 16]],
         "attention_layers": ["global", "local"] * 16},
        2_651_307_520, 16 * 2 * 20 * 128 * 2),
    Row("Salesforce/codegen-350M-mono",
        {"model_type": "codegen", "n_embd": 1024, "n_layer": 20, "n_head": 16, "n_ctx": 2048,
         "n_positions": 2048, "n_inner": None, "rotary_dim": 32, "vocab_size": 51200,
         "tie_word_embeddings": False, "scale_attn_weights": True},
        356_712_448, 20 * 2 * 16 * 64 * 2),
    Row("facebook/xglm-564M",
        {"model_type": "xglm", "d_model": 1024, "ffn_dim": 4096, "num_layers": 24,
         "attention_heads": 16, "vocab_size": 256008, "max_position_embeddings": 2048,
         "activation_dropout": 0, "layerdrop": 0.0, "scale_embedding": True},
        564_463_616, 24 * 2 * 16 * 64 * 2),
    Row("microsoft/bitnet-b1.58-2B-4T-bf16",
        {"model_type": "bitnet", "hidden_size": 2560, "intermediate_size": 6912,
         "num_hidden_layers": 30, "num_attention_heads": 20, "num_key_value_heads": 5,
         "vocab_size": 128256, "max_position_embeddings": 4096, "tie_word_embeddings": True},
        2_412_820_480, 30 * 2 * 5 * 128 * 2),
    Row("adept/persimmon-8b-base",
        {"model_type": "persimmon", "hidden_size": 4096, "intermediate_size": 16384,
         "num_hidden_layers": 36, "num_attention_heads": 64, "vocab_size": 262144,
         "max_position_embeddings": 16384, "qk_layernorm": True, "tie_word_embeddings": False},
        2 * 262144 * 4096 + 2 * 4096  # counted by hand: tables and final norm, then the layers
        + 36 * (4 * 4096 * 4097 + 4096 * 16384 * 2 + 16384 + 4096 + 4 * 4096 + 4 * 64),
        36 * 2 * 64 * 64 * 2),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.source)
def test_counts_and_cache(row: Row) -> None:
    model = lk.load_model(row.config)
    assert model.parameter_count == row.parameters
    assert model.kv_bytes_per_token() == row.bytes_per_token


@pytest.mark.parametrize(("source", "change", "match"), [
    ("mosaicml/mpt-7b", {"no_bias": False}, "no_bias"),
    ("mosaicml/mpt-7b", {"expansion_ratio": 3}, "expansion_ratio"),
    ("mosaicml/mpt-7b", {"attn_config": {"attn_type": "multiquery_attention"}}, "attn_type"),
    ("mosaicml/mpt-7b", {"attn_config": {"alibi": False}}, "alibi"),
    ("EleutherAI/gpt-neo-2.7B", {"attention_types": [[["global", "local"], 12]]}, "each layer"),
    ("EleutherAI/gpt-neo-2.7B", {"attention_types": [[["strided"], 32]]}, "global and local"),
    ("EleutherAI/gpt-neo-2.7B", {"attention_layers": ["global"] * 32}, "contradicts"),
])  # fmt: skip
def test_what_would_change_the_shape_is_refused(
    source: str, change: dict[str, Any], match: str
) -> None:
    config = next(row.config for row in ROWS if row.source == source)
    with pytest.raises((ConfigError, UnsupportedArchitectureError), match=match):
        lk.load_model(config | change)
