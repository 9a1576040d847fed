"""Models that are not built in, from the fields of their public configs.

The totals are those of the published checkpoints, written down independently of the reader.
"""

from __future__ import annotations

from typing import Any

import pytest

import ledgerkit as lk
from ledgerkit.errors import UnsupportedArchitectureError

QWEN3_4B: dict[str, Any] = {
    "model_type": "qwen3", "hidden_size": 2560, "intermediate_size": 9728, "num_hidden_layers": 36,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
    "max_position_embeddings": 40960, "tie_word_embeddings": True, "attention_bias": False,
    "max_window_layers": 36, "use_sliding_window": False, "sliding_window": None,
}  # fmt: skip
QWEN3_CODER_480B: dict[str, Any] = {
    "model_type": "qwen3_moe", "hidden_size": 6144, "intermediate_size": 8192,
    "moe_intermediate_size": 2560, "num_hidden_layers": 62, "num_attention_heads": 96,
    "num_key_value_heads": 8, "head_dim": 128, "num_experts": 160, "num_experts_per_tok": 8,
    "decoder_sparse_step": 1, "mlp_only_layers": [], "norm_topk_prob": True, "vocab_size": 151936,
    "max_position_embeddings": 262144, "tie_word_embeddings": False, "qkv_bias": False,
    "shared_expert_intermediate_size": 0, "use_qk_norm": True,
}  # fmt: skip
CASES: dict[str, tuple[dict[str, Any], int, float]] = {
    "Qwen3-4B": (QWEN3_4B, 4_022_468_096, 147_456),
    "Qwen3-14B": (
        QWEN3_4B | {"hidden_size": 5120, "intermediate_size": 17408, "num_hidden_layers": 40,
                    "num_attention_heads": 40, "tie_word_embeddings": False,
                    "max_window_layers": 40},
        14_768_307_200, 163_840,
    ),
    "Qwen3-Coder-480B": (QWEN3_CODER_480B, 480_154_875_392, 253_952),
    "gemma-2-9b": (
        {"model_type": "gemma2", "hidden_size": 3584, "intermediate_size": 14336,
         "num_hidden_layers": 42, "num_attention_heads": 16, "num_key_value_heads": 8,
         "head_dim": 256, "vocab_size": 256000, "max_position_embeddings": 8192,
         "sliding_window": 4096},
        9_241_705_984, 172_032,
    ),
    "Llama-3.2-3B": (
        {"model_type": "llama", "hidden_size": 3072, "intermediate_size": 8192,
         "num_hidden_layers": 28, "num_attention_heads": 24, "num_key_value_heads": 8,
         "head_dim": 128, "vocab_size": 128256, "max_position_embeddings": 131072,
         "tie_word_embeddings": True},
        3_212_749_824, 114_688,
    ),
    "Mixtral-8x22B": (
        {"model_type": "mixtral", "hidden_size": 6144, "intermediate_size": 16384,
         "num_hidden_layers": 56, "num_attention_heads": 48, "num_key_value_heads": 8,
         "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32000,
         "max_position_embeddings": 65536, "sliding_window": None, "tie_word_embeddings": False},
        140_620_634_112, 229_376,
    ),
    "Moonlight-16B": (
        {"model_type": "deepseek_v3", "hidden_size": 2048, "intermediate_size": 11264,
         "moe_intermediate_size": 1408, "num_hidden_layers": 27, "num_attention_heads": 16,
         "num_key_value_heads": 16, "n_shared_experts": 2, "n_routed_experts": 64,
         "num_experts_per_tok": 6, "kv_lora_rank": 512, "q_lora_rank": None,
         "qk_rope_head_dim": 64, "v_head_dim": 128, "qk_nope_head_dim": 128,
         "topk_method": "noaux_tc", "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1,
         "moe_layer_freq": 1, "vocab_size": 163840, "max_position_embeddings": 8192,
         "tie_word_embeddings": False, "num_nextn_predict_layers": 0},
        15_960_110_208, 31_104,
    ),
    "Llama-4-Maverick": (
        {"model_type": "llama4", "text_config": {
            "model_type": "llama4_text", "hidden_size": 5120, "intermediate_size": 8192,
            "intermediate_size_mlp": 16384, "num_hidden_layers": 48, "num_attention_heads": 40,
            "num_key_value_heads": 8, "head_dim": 128, "num_local_experts": 128,
            "num_experts_per_tok": 1, "interleave_moe_layer_step": 2,
            "attention_chunk_size": 8192, "vocab_size": 202048,
            "max_position_embeddings": 1048576, "tie_word_embeddings": False,
            "use_qk_norm": False, "no_rope_layers": []}},
        400_711_848_960, 49_152,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_counts_of_models_that_are_not_built_in(name: str) -> None:
    config, parameters, bytes_per_token = CASES[name]
    model = lk.load_model(config)
    assert model.parameter_count == parameters
    assert model.kv_bytes_per_token() == bytes_per_token


@pytest.mark.parametrize(
    ("field", "value"), [("qkv_bias", True), ("use_qk_norm", False), ("latent_width", 7)]
)
def test_a_field_that_would_change_the_shape_is_refused(field: str, value: object) -> None:
    with pytest.raises(UnsupportedArchitectureError, match=field):
        lk.load_model(QWEN3_CODER_480B | {field: value})
