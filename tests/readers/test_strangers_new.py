"""Model types of 2026 under the sizes that their configuration classes name as defaults.

Each source is the checkpoint that ``configuration_*.py`` of transformers 5.24 gives for a class.
The totals are those of the model class built from these fields; bytes are worked out by hand.
"""

from __future__ import annotations

from typing import Any

import pytest

import ledgerkit as lk
from ledgerkit.errors import ConfigError, UnsupportedArchitectureError
from tests.readers.test_strangers_more import UNTIED, Row, decoder

APERTUS = decoder("apertus1p5_text", "4096 14336 32 32 32 266752 65536", hidden_act="xielu",
                  **UNTIED)  # fmt: skip
LFM3 = decoder("lfm3", "2048 7680 24 16 4 128000 128000", head_dim=128, conv_L_cache=7,
               sliding_window=256)  # fmt: skip
AXK2 = decoder(
    "axk2", "2048 5120 48 32 32 163840 131072", moe_intermediate_size=512, n_routed_experts=128,
    num_experts_per_tok=8, n_shared_experts=1, q_lora_rank=384, kv_lora_rank=128,
    qk_nope_head_dim=64, qk_rope_head_dim=32, v_head_dim=64, index_topk=2048, index_head_dim=128,
    index_n_heads=16, gated_norm_rank=16, **UNTIED,
)  # fmt: skip
LING = decoder(
    "bailing_hybrid", "2560 6144 42 32 32 157184 262144", moe_intermediate_size=768,
    num_experts=512, num_experts_per_token=8, num_shared_experts=1, kv_lora_rank=512,
    q_lora_rank=None, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, head_dim=128,
    num_expert_group=8, topk_group=4, first_k_dense_replace=2, layer_group_size=6,
    short_conv_kernel_size=4, num_nextn_predict_layers=1, **UNTIED,
)  # fmt: skip
HY4 = decoder(
    "hy_v4", "2816 6912 34 32 32 120832 262144", moe_intermediate_size=768, n_routed_experts=256,
    num_experts_per_tok=8, n_shared_experts=1, q_lora_rank=1536, kv_lora_rank=512,
    qk_nope_head_dim=192, qk_rope_head_dim=64, v_head_dim=256, index_topk=2048, index_head_dim=128,
    index_n_heads=16, hc_mult=4, hc_magnitude=2.0, learnable_sink_init=0.0, **UNTIED,
)  # fmt: skip
COMMAND = decoder("cohere2_moe", "8192 22528 40 64 64 256000 8192", head_dim=128, num_experts=8,
                  num_experts_per_tok=2, sliding_window=4096)  # fmt: skip
LARGE = decoder(
    "mistral_large4_text", "6144 24576 72 64 64 204800 1048576", moe_intermediate_size=6144,
    n_routed_experts=128, num_experts_per_tok=4, n_shared_experts=1, kv_lora_rank=512,
    qk_nope_head_dim=64, qk_rope_head_dim=64, v_head_dim=128, index_topk=2048, index_head_dim=128,
    index_n_heads=32, first_k_dense_replace=1, **UNTIED,
)  # fmt: skip
ROWS = (
    Row("ibm-granite/granite-swash-2b",
        decoder("granite_swa", "2560 8192 24 20 4 100352 8192", sliding_window=128,
                layer_rope_theta=[0, *[10000.0] * 23]),
        2_144_463_840, 6 * 2 * 4 * 128 * 2),
    Row("JetBrains/Mellum2-12B-A2.5B-Base",
        decoder("mellum", "2304 7168 28 32 4 98304 131072", head_dim=128, num_experts=64,
                num_experts_per_tok=8, moe_intermediate_size=896, **UNTIED),
        12_149_923_072, 28 * 2 * 4 * 128 * 2),
    Row("LiquidAI/LFM3-1.7B", LFM3, 1_728_801_536, 6 * 2 * 4 * 128 * 2, 13 * 2048 * 6 * 2),
    Row("swiss-ai/Apertus-v1.5-8B", APERTUS, 8_091_086_976, 32 * 2 * 32 * 128 * 2),
    Row("skt/A.X-K2", AXK2, 20_314_500_992, 48 * (128 + 32 + 128) * 2),
    Row("tencent/Hy4-preview", HY4, 58_278_201_581, (34 * (512 + 64) + 10 * 128) * 2),
    Row("inclusionAI/Ling-3.0-Flash", LING, 124_414_211_552, 7 * (512 + 64) * 2,
        35 * (32 * 128 * 128 * 4 + 3 * 4096 * 3 * 2)),
    # one layer in four keeps no rotary part of the key
    Row("mistralai/Mistral-Large-4-1T-A52B", LARGE, 1_050_118_202_912,
        (54 * 64 + 72 * (512 + 128)) * 2),
    Row("CohereLabs/command-a-plus-05-2026", COMMAND, 190_004_928_512, 10 * 2 * 64 * 128 * 2),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.source)
def test_counts_and_cache(row: Row) -> None:
    model = lk.load_model(row.config)
    assert model.parameter_count == row.parameters
    assert model.kv_bytes_per_token() == row.bytes_per_token
    assert model.cache_bytes(0) == row.fixed_bytes


def test_a_pruned_head_of_apertus_in_its_multimodal_file() -> None:
    text = APERTUS | {"output_vocab_size": 131272}
    model = lk.load_model({"model_type": "apertus1p5", "image_token_offset": 131272,
                           "audio_token_offset": 262344, "text_config": text,
                           "tie_word_embeddings": False, "vision_config": {}})  # fmt: skip
    assert model.parameter_count == 8_091_086_976 - (266752 - 131272) * 4096


@pytest.mark.parametrize(("config", "change", "match"), [
    (APERTUS, {"output_vocab_size": 266753}, "output_vocab_size"),
    (APERTUS, {"output_vocab_size": 4096, "tie_word_embeddings": True}, "output_vocab_size"),
    (AXK2, {"q_lora_rank": None}, "q_lora_rank"),
    (AXK2, {"layer_types": ["full_attention"] * 48}, "layer_types"),
    (HY4, {"q_lora_rank": None}, "q_lora_rank"),
    (HY4, {"indexer_types": ["shared"] * 34}, "first layer"),
    (LING, {"tie_word_embeddings": True}, "tie_word_embeddings"),
    (LING, {"group_norm_size": 4}, "group_norm_size"),
    (LARGE, {"kv_source_layers": [0, 0, *range(2, 72)]}, "kv_source_layers"),
    (LARGE, {"q_lora_rank": 1024}, "q_lora_rank"),
    (COMMAND, {"use_qk_norm": True}, "use_qk_norm"),
    (LFM3, {"layer_types": ["mamba"] * 24}, "layer_types"),
])  # fmt: skip
def test_what_would_change_the_shape_is_refused(
    config: dict[str, Any], change: dict[str, Any], match: str
) -> None:
    with pytest.raises((ConfigError, UnsupportedArchitectureError), match=match):
        lk.load_model(config | change)


@pytest.mark.parametrize(("model_type", "match"), [
    ("dots3_note_text", "window of latents"),
    ("zaya", "convolves"),
])  # fmt: skip
def test_what_layers_cannot_say_here_is_refused_by_its_reason(model_type: str, match: str) -> None:
    with pytest.raises(UnsupportedArchitectureError, match=match):
        lk.load_model({"model_type": model_type})
