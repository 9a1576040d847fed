"""Models under other names, and fields that their public files really carry.

The totals are those of the published checkpoints; bytes per token are worked out by hand.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

import ledgerkit as lk
from ledgerkit.errors import ConfigError, UnsupportedArchitectureError
from ledgerkit.readers.report import read_config_report

INTERNLM2_20B: dict[str, Any] = {
    "model_type": "internlm2", "architectures": ["InternLM2ForCausalLM"], "bias": False,
    "hidden_size": 6144, "intermediate_size": 16384, "max_position_embeddings": 32768,
    "num_attention_heads": 48, "num_hidden_layers": 48, "num_key_value_heads": 8,
    "vocab_size": 92544, "tie_word_embeddings": False, "attn_implementation": "eager",
}  # fmt: skip
GLM_4_9B_CHAT: dict[str, Any] = {
    "model_type": "chatglm", "architectures": ["ChatGLMModel"], "add_bias_linear": False,
    "add_qkv_bias": True, "apply_query_key_layer_scaling": True,
    "apply_residual_connection_post_layernorm": False, "attention_softmax_in_fp32": True,
    "bias_dropout_fusion": True, "ffn_hidden_size": 13696, "fp32_residual_connection": False,
    "hidden_size": 4096, "kv_channels": 128, "layernorm_epsilon": 1.5625e-07,
    "multi_query_attention": True, "multi_query_group_num": 2, "num_attention_heads": 32,
    "num_hidden_layers": 40, "num_layers": 40, "original_rope": True, "padded_vocab_size": 151552,
    "post_layer_norm": True, "rmsnorm": True, "rope_ratio": 500, "seq_length": 131072,
    "vocab_size": 151552, "tie_word_embeddings": False,
}  # fmt: skip
LING_MINI: dict[str, Any] = {
    "model_type": "bailing_moe", "architectures": ["BailingMoeV2ForCausalLM"],
    "hidden_size": 2048, "num_hidden_layers": 20, "num_attention_heads": 16,
    "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 5120,
    "moe_intermediate_size": 512, "num_experts": 256, "num_experts_per_tok": 8,
    "num_shared_experts": 1, "first_k_dense_replace": 1, "n_group": 8, "topk_group": 4,
    "vocab_size": 157184, "max_position_embeddings": 32768, "tie_word_embeddings": False,
    "use_qkv_bias": False, "use_bias": False, "use_qk_norm": True, "use_rmsnorm": True,
    "moe_router_enable_expert_bias": True, "score_function": "sigmoid", "router_dtype": "fp32",
}  # fmt: skip
HUNYUAN_7B: dict[str, Any] = {
    "model_type": "hunyuan_v1_dense", "attention_bias": False, "attention_head_dim": 128,
    "cla_share_factor": 2, "dense_list": [4096, 0], "head_dim": 128, "hidden_size": 4096,
    "intermediate_size": 14336, "max_position_embeddings": 32768, "mlp_bias": False,
    "norm_type": "rms", "num_attention_heads": 32, "num_experts": 1, "num_hidden_layers": 32,
    "num_key_value_heads": 8, "org_vocab_size": 128167, "tie_word_embeddings": True,
    "use_cla": False, "use_qk_norm": True, "vocab_size": 128167, "vit_type": None,
}  # fmt: skip
DEEPSEEK_16B: dict[str, Any] = {
    "model_type": "deepseek_v3", "hidden_size": 2048, "intermediate_size": 11264,
    "moe_intermediate_size": 1408, "num_hidden_layers": 27, "num_attention_heads": 16,
    "num_key_value_heads": 16, "n_shared_experts": 2, "n_routed_experts": 64,
    "num_experts_per_tok": 6, "kv_lora_rank": 512, "q_lora_rank": None, "qk_rope_head_dim": 64,
    "v_head_dim": 128, "qk_nope_head_dim": 128, "topk_method": "noaux_tc", "n_group": 1,
    "topk_group": 1, "first_k_dense_replace": 1, "moe_layer_freq": 1, "vocab_size": 163840,
    "max_position_embeddings": 131072, "tie_word_embeddings": False,
}  # fmt: skip
QWEN25_7B: dict[str, Any] = {
    "model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944,
    "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
    "max_position_embeddings": 32768, "use_sliding_window": False, "sliding_window": 32768,
    "max_window_layers": 28, "tie_word_embeddings": False, "vocab_size": 152064,
}  # fmt: skip
QWEN3_30B: dict[str, Any] = {
    "model_type": "qwen3_omni_moe_text", "hidden_size": 2048, "num_hidden_layers": 48,
    "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
    "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8,
    "intermediate_size": 768, "vocab_size": 152064, "max_position_embeddings": 65536,
    "decoder_sparse_step": 1, "mlp_only_layers": [], "tie_word_embeddings": False,
}  # fmt: skip
NANO_9B: dict[str, Any] = {
    "model_type": "nemotron_h", "hidden_size": 4480, "intermediate_size": 15680,
    "hybrid_override_pattern": "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-",
    "num_hidden_layers": 56, "mamba_head_dim": 80, "mamba_num_heads": 128, "n_groups": 8,
    "ssm_state_size": 128, "num_attention_heads": 40, "num_key_value_heads": 8,
    "num_query_groups": 8, "head_dim": 128, "vocab_size": 131072, "conv_kernel": 4,
    "max_position_embeddings": 131072, "tie_word_embeddings": False, "use_conv_bias": True,
}  # fmt: skip
MINIMAX_M2: dict[str, Any] = {
    "model_type": "minimax_m2", "attn_type_list": [1] * 62, "head_dim": 128, "hidden_size": 3072,
    "intermediate_size": 1536, "layernorm_full_attention_beta": 1.0,
    "layernorm_linear_attention_beta": 1.0, "layernorm_mlp_beta": 1.0, "max_model_len": 196608,
    "max_position_embeddings": 196608, "mlp_intermediate_size": 8192, "num_attention_heads": 48,
    "num_experts_per_tok": 8, "num_hidden_layers": 62, "num_key_value_heads": 8,
    "num_local_experts": 256, "qk_norm_type": "per_layer", "rotary_dim": 64,
    "shared_intermediate_size": 0, "shared_moe_mode": "sigmoid", "tie_word_embeddings": False,
    "use_qk_norm": True, "use_routing_bias": True, "vocab_size": 200064,
}  # fmt: skip
DOTS1: dict[str, Any] = {
    "model_type": "dots1", "hidden_size": 4096, "intermediate_size": 10944,
    "moe_intermediate_size": 1408, "first_k_dense_replace": 1, "moe_layer_freq": 1,
    "n_routed_experts": 128, "n_shared_experts": 2, "num_attention_heads": 32,
    "num_experts_per_tok": 6, "num_hidden_layers": 62, "num_key_value_heads": 32,
    "use_sliding_window": False, "sliding_window": None, "max_window_layers": 62,
    "vocab_size": 152064, "max_position_embeddings": 32768, "tie_word_embeddings": False,
}  # fmt: skip
CASES: dict[str, tuple[dict[str, Any], int, int]] = {
    "InternLM2-20B": (INTERNLM2_20B, 19_861_149_696, 48 * 2 * 8 * 128 * 2),
    "GLM-4-9B-Chat": (GLM_4_9B_CHAT, 9_399_951_360, 40 * 2 * 2 * 128 * 2),
    "Ling-mini-2.0": (LING_MINI, 16_255_643_392, 20 * 2 * 4 * 128 * 2),
    "Hunyuan-7B": (HUNYUAN_7B, 7_504_568_320, 32 * 2 * 8 * 128 * 2),
    "MiniMax-M2": (MINIMAX_M2, 228_689_764_864, 62 * 2 * 8 * 128 * 2),
    "Nemotron-Nano-9B-v2": (NANO_9B, 8_888_227_328, 4 * 2 * 8 * 128 * 2),
    "dots.llm1": (DOTS1, 142_774_381_696, 62 * 2 * 32 * 128 * 2),
    "Qwen2.5-14B-1M": (
        QWEN25_7B | {"hidden_size": 5120, "intermediate_size": 13824, "num_hidden_layers": 48,
                     "num_attention_heads": 40, "num_key_value_heads": 8,
                     "max_position_embeddings": 1010000, "sliding_window": 1010000,
                     "max_window_layers": 48, "dual_chunk_attention_config": {
                         "chunk_size": 262144, "local_size": 8192,
                         "original_max_position_embeddings": 262144}},
        14_770_033_664, 48 * 2 * 8 * 128 * 2,
    ),
    "Kimi-VL-A3B": (
        {"model_type": "kimi_vl", "architectures": ["KimiVLForConditionalGeneration"],
         "media_placeholder_token_id": 163605, "text_config": DEEPSEEK_16B,
         "vision_config": {"model_type": "moonvit"}},
        15_960_110_208, 27 * 576 * 2,
    ),
    "InternVL-8B": (
        {"model_type": "internvl_chat", "architectures": ["InternVLChatModel"],
         "downsample_ratio": 0.5, "dynamic_image_size": True, "hidden_size": 3584,
         "llm_config": QWEN25_7B, "template": "internvl2_5", "vision_config": {}},
        7_615_616_512, 28 * 2 * 4 * 128 * 2,
    ),
    "Qwen3-Omni-30B": (
        {"model_type": "qwen3_omni_moe", "enable_audio_output": True, "talker_config": {},
         "thinker_config": {"model_type": "qwen3_omni_moe_thinker", "text_config": QWEN3_30B,
                            "audio_config": {}, "vision_config": {}}},
        30_532_646_912, 48 * 2 * 4 * 128 * 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_counts_and_cache(name: str) -> None:
    config, parameters, bytes_per_token = CASES[name]
    model = lk.load_model(config)
    assert model.parameter_count == parameters
    assert model.kv_bytes_per_token() == bytes_per_token


def names(config: dict[str, Any]) -> set[str]:
    model = lk.load_model(config)
    return {w.name for group in model.groups for w in group.weights} | {
        w.name for w in model.globals
    }


def test_tensors_have_the_names_of_the_checkpoint() -> None:
    assert {"model.layers.{layer}.attention.wqkv.weight", "output.weight",
            "model.layers.{layer}.feed_forward.w2.weight"} <= names(INTERNLM2_20B)  # fmt: skip
    at = "transformer.encoder.layers.{layer}."
    assert {at + "self_attention.query_key_value.bias", at + "mlp.dense_h_to_4h.weight",
            "transformer.output_layer.weight"} <= names(GLM_4_9B_CHAT)  # fmt: skip
    at = "model.layers.{layer}."
    assert {at + "mlp.gate.expert_bias", "model.word_embeddings.weight",
            at + "attention.query_layernorm.weight"} <= names(LING_MINI)  # fmt: skip
    assert "thinker.lm_head.weight" in names(CASES["Qwen3-Omni-30B"][0])
    assert "language_model.lm_head.weight" in names(CASES["Kimi-VL-A3B"][0])


def test_the_report_speaks_of_the_fields_of_the_file() -> None:
    frame = read_config_report(GLM_4_9B_CHAT).to_frame("en")
    paths = set(frame["path"])
    assert {"ffn_hidden_size", "multi_query_group_num", "kv_channels"} <= paths
    assert not paths & {"intermediate_size", "num_key_value_heads", "head_dim"}


@pytest.mark.parametrize(("config", "change", "match"), [
    (GLM_4_9B_CHAT, {"num_layers": 39}, "contradict"),
    (GLM_4_9B_CHAT, {"rmsnorm": False}, "rmsnorm"),
    (GLM_4_9B_CHAT, {"pre_seq_len": 128}, "pre_seq_len"),
    (LING_MINI, {"use_qk_norm": None}, "use_qk_norm"),
    (LING_MINI, {"moe_shared_expert_intermediate_size": 1024}, "another width"),
    (LING_MINI, {"norm_head": True}, "norm_head"),
    (INTERNLM2_20B, {"latent": 3}, "latent"),
    (HUNYUAN_7B, {"num_experts": 16}, "num_experts"),
    (HUNYUAN_7B, {"use_cla": True}, "use_cla"),
    (NANO_9B, {"num_query_groups": 4}, "num_query_groups"),
    (DOTS1, {"moe_layer_freq": 2}, "moe_layer_freq"),
    (DOTS1, {"sliding_window": 4096}, "sliding_window"),
    (QWEN25_7B, {"dual_chunk_attention_config": {"sparse_attention_enabled": True}}, "sparse"),
])  # fmt: skip
def test_what_would_change_the_shape_is_refused(
    config: dict[str, Any], change: dict[str, Any], match: str
) -> None:
    with pytest.raises((ConfigError, UnsupportedArchitectureError), match=match):
        lk.load_model(config | change)


@pytest.mark.parametrize("model_type", [["qwen2"], {"name": "qwen2"}, 3, "llava"])
def test_a_text_part_of_no_known_type_is_refused(model_type: object) -> None:
    text = QWEN25_7B | {"model_type": model_type}
    with pytest.raises((ConfigError, UnsupportedArchitectureError)):
        lk.load_model({"model_type": "llava", "text_config": text | {"text_config": 3}})


def test_an_absurd_number_of_streams_is_refused_at_once() -> None:
    config = {"model_type": "gemma3n_text", "altup_num_inputs": 40_000_000}
    start = time.perf_counter()
    with pytest.raises(ConfigError, match="altup_num_inputs"):
        lk.load_model(config)
    assert time.perf_counter() - start < 1


def test_fields_that_the_model_class_reads_otherwise_are_refused() -> None:
    """Each was found by comparing counts with the model classes on changed configs."""
    tiny = {"hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "vocab_size": 50}
    two = {"num_key_value_heads": 2, "head_dim": 16}
    experts = {"num_local_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 24}
    olmoe = {"model_type": "olmoe", "num_experts": 4, "num_experts_per_tok": 2,
             "intermediate_size": 24}  # fmt: skip
    linear = {"num_heads": 4, "head_dim": 16, "short_conv_kernel_size": 4,
              "full_attn_layers": [4], "kda_layers": [1, 2, 3]}  # fmt: skip
    for config, match in (
        ({"model_type": "minimax_m2", **two, **experts, "use_qk_norm": False}, "use_qk_norm"),
        ({"model_type": "minimax_m2", **two, **experts, "moe_intermediate_size": 12},
         "contradict"),
        ({"model_type": "minimax_m3", **two, **experts, "n_shared_experts": 2,
          "mlp_layer_types": ["sparse"] * 4}, "n_shared_experts"),
        ({"model_type": "glm4_moe", **two, "n_routed_experts": 4, "intermediate_size": 96,
          "moe_intermediate_size": 24, "num_experts_per_tok": 2, "moe_layer_freq": 2},
         "moe_layer_freq"),
        ({**olmoe, "head_dim": 8}, "hidden_size"),
        ({"model_type": "olmo3", "intermediate_size": 96, "sliding_window_pattern": 2},
         "one full layer in four"),
        ({"model_type": "kimi_linear", "linear_attn_config": linear, "kv_lora_rank": 16,
          "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 16, "intermediate_size": 96,
          "moe_intermediate_size": 24, "num_experts": 4, "num_experts_per_token": 2,
          "layer_types": ["full_attention"] * 4}, "contradict"),
    ):  # fmt: skip
        with pytest.raises((ConfigError, UnsupportedArchitectureError), match=match):
            lk.load_model(tiny | config)
