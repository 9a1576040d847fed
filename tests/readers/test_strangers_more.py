"""Further models under their public fields: each row names the file that they come from.

The totals are those of the published checkpoints (elements of the safetensors headers, text part
of multimodal models), which a recount by the model classes of transformers confirms; bytes per
token are worked out by hand.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

import ledgerkit as lk
from ledgerkit.errors import ConfigError, UnsupportedArchitectureError


class Row(NamedTuple):
    """A public config, and what it must come to."""

    source: str
    """Repository on the hub whose ``config.json`` holds these fields."""
    config: dict[str, Any]
    parameters: int
    bytes_per_token: int
    """What a further token adds to a bf16 cache beyond every window."""
    fixed_bytes: int = 0
    """Recurrent state in fp32, and the columns that convolutions keep in bf16."""


def decoder(model_type: str, sizes: str, **more: Any) -> dict[str, Any]:
    """Return a config from: hidden, MLP, layers, heads, key heads, vocabulary, context."""
    names = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
             "num_key_value_heads", "vocab_size", "max_position_embeddings")  # fmt: skip
    numbers = map(int, sizes.split())
    return {"model_type": model_type, **dict(zip(names, numbers, strict=True)), **more}


UNTIED = {"tie_word_embeddings": False}
COMMAND_R = decoder("cohere", "8192 22528 40 64 64 256000 8192", model_max_length=131072,
                    use_qk_norm=False)  # fmt: skip
COMMAND_A = decoder(
    "cohere2", "12288 36864 64 96 8 256000 131072", head_dim=128, sliding_window=4096,
    sliding_window_pattern=4, layer_switch=4, order_of_interleaved_layers="local_attn_first",
    position_embedding_type="rope_gptj", rotary_pct=1.0, use_embedding_sharing=True,
    use_gated_activation=True, use_parallel_block=True, use_parallel_embedding=True,
)  # fmt: skip
OLMO_3 = decoder("olmo3", "5120 27648 64 40 8 100278 65536", sliding_window=4096,
                 layer_types=(["sliding_attention"] * 3 + ["full_attention"]) * 16,
                 **UNTIED)  # fmt: skip
SMALL_3 = decoder("mistral", "5120 32768 40 32 8 131072 131072", head_dim=128, sliding_window=None)
PIXTRAL_TEXT = {"head_dim": 128, "hidden_size": 5120, "intermediate_size": 14336,
                "is_composition": True, "max_position_embeddings": 1024000,
                "model_type": "mistral", "num_hidden_layers": 40, "num_key_value_heads": 8,
                "sliding_window": None, "vocab_size": 131072}  # fmt: skip
QWEN3_8B = decoder("qwen3", "4096 12288 36 32 8 151936 40960", head_dim=128, debug=False, ep_size=1,
                   micro_forward=False, skip_checkpoint=False, use_deepep=False,
                   use_sliding_window=False, sliding_window=None, max_window_layers=36)  # fmt: skip
LFM2 = decoder(
    "lfm2", "2048 12288 16 32 8 65536 128000", block_auto_adjust_ff_dim=True, block_dim=2048,
    block_ff_dim=12288, block_ffn_dim_multiplier=1.0, block_multiple_of=256, block_norm_eps=1e-5,
    block_use_swiglu=True, conv_L_cache=3, conv_bias=False, conv_dim=2048, conv_dim_out=2048,
    full_attn_idxs=[2, 5, 8, 10, 12, 14], num_heads=32, use_pos_enc=True,
)  # fmt: skip
LFM2_MOE = decoder(
    "lfm2_moe", "2048 7168 24 32 8 65536 128000", conv_L_cache=3, moe_intermediate_size=1792,
    num_dense_layers=2, num_experts=32, num_experts_per_tok=4, use_expert_bias=True,
    layer_types=["full_attention" if i in (2, 6, 10, 14, 18, 21) else "conv" for i in range(24)],
)  # fmt: skip
MAMBA = {"hidden_size": 4096, "state_size": 128, "num_hidden_layers": 64, "num_heads": 128,
         "head_dim": 64, "n_groups": 8, "conv_kernel": 4, "expand": 2, "intermediate_size": 8192,
         "vocab_size": 32768, "time_step_rank": 256, "time_step_init_scheme": "random",
         "use_bias": False, "use_conv_bias": True, "tie_word_embeddings": False}  # fmt: skip
BAMBA = decoder(
    "bamba", "4096 14336 32 32 8 128256 262144", attn_layer_indices=[9, 18, 27],
    attn_rotary_emb=64, mamba_d_conv=4, mamba_d_head=64, mamba_d_state=128, mamba_expand=2,
    mamba_n_groups=1, mamba_n_heads=128, mamba_conv_bias=True, mamba_proj_bias=False, **UNTIED,
)  # fmt: skip
LATENT = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
NEW_TYPES = (
    Row("LiquidAI/LFM2-1.2B", LFM2, 1_170_340_608, 6 * 2 * 8 * 64 * 2, 10 * 2048 * 2 * 2),
    Row("LiquidAI/LFM2-350M",
        LFM2 | {"hidden_size": 1024, "intermediate_size": 6656, "block_ff_dim": 6656,
                "block_dim": 1024, "conv_dim": 1024, "conv_dim_out": 1024,
                "num_attention_heads": 16, "num_heads": 16},
        354_483_968, 6 * 2 * 8 * 64 * 2, 10 * 1024 * 2 * 2),
    # 8,339,929,856 parameters, and one correction bias per expert of 22 layers
    Row("LiquidAI/LFM2-8B-A1B", LFM2_MOE, 8_339_929_856 + 22 * 32, 6 * 2 * 8 * 64 * 2,
        18 * 2048 * 2 * 2),
    Row("mistralai/Mamba-Codestral-7B-v0.1", {"model_type": "mamba2", **MAMBA}, 7_285_403_648, 0,
        64 * (128 * 64 * 128 * 4 + (8192 + 2 * 8 * 128) * 3 * 2)),
    # the file says expand = 16 as well: the width of the mixers holds
    Row("tiiuae/falcon-mamba-7b",
        {"model_type": "falcon_mamba", "hidden_size": 4096, "intermediate_size": 8192, "expand": 16,
         "state_size": 16, "conv_kernel": 4, "num_hidden_layers": 64, "time_step_rank": 256,
         "use_bias": False, "use_conv_bias": True, "vocab_size": 65024, **UNTIED},
        7_272_665_088, 0, 64 * (8192 * 16 * 4 + 8192 * 3 * 2)),
    Row("state-spaces/mamba-2.8b-hf",
        {"model_type": "mamba", "hidden_size": 2560, "d_model": 2560, "intermediate_size": 5120,
         "d_inner": 5120, "expand": 2, "state_size": 16, "conv_kernel": 4, "num_hidden_layers": 64,
         "n_layer": 64, "time_step_rank": 160, "ssm_cfg": {}, "fused_add_norm": True,
         "pad_vocab_size_multiple": 8, "vocab_size": 50280},
        2_768_345_600, 0, 64 * (5120 * 16 * 4 + 5120 * 3 * 2)),
    Row("ibm-ai-platform/Bamba-9B-v1", BAMBA, 9_780_235_392, 3 * 2 * 8 * 128 * 2,
        29 * (128 * 64 * 128 * 4 + (8192 + 2 * 128) * 3 * 2)),
    Row("databricks/dbrx-base",
        {"model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40, "vocab_size": 100352,
         "max_seq_len": 32768,
         "attn_config": {"clip_qkv": 8, "kv_n_heads": 8, "model_type": ""},
         "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4,
                        "model_type": ""}},
        131_596_523_520, 40 * 2 * 8 * 128 * 2),
    Row("naver-hyperclovax/HyperCLOVAX-SEED-Think-14B",
        decoder("hyperclovax", "6144 14336 38 48 8 110592 131072", head_dim=128,
                attention_bias=False, mlp_bias=False, use_post_norm=True,
                attention_multiplier=0.0078125, end_token_id=100257, **UNTIED),
        14_748_112_896, 38 * 2 * 8 * 128 * 2),
    Row("karpathy/nanochat-d20",
        decoder("nanochat", "1280 5120 20 10 10 65536 2048", attention_bias=False, **UNTIED),
        560_988_160, 20 * 2 * 10 * 128 * 2),
    Row("baichuan-inc/Baichuan2-7B-Chat",
        {"model_type": "baichuan", "hidden_size": 4096, "intermediate_size": 11008,
         "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 125696,
         "model_max_length": 4096, "z_loss_weight": 0, "tie_word_embeddings": False},
        7_505_973_248, 32 * 2 * 32 * 128 * 2),
    Row("baichuan-inc/Baichuan2-13B-Chat",
        {"model_type": "baichuan", "hidden_size": 5120, "intermediate_size": 13696,
         "num_hidden_layers": 40, "num_attention_heads": 40, "vocab_size": 125696,
         "model_max_length": 4096, "z_loss_weight": 0, "tie_word_embeddings": False},
        13_896_668_160, 40 * 2 * 40 * 128 * 2),
    Row("openbmb/MiniCPM-2B-sft-bf16",
        decoder("minicpm", "2304 5760 40 36 36 122753 4096", scale_emb=12, dim_model_base=256,
                scale_depth=1.4),
        2_724_880_896, 40 * 2 * 36 * 64 * 2),
    Row("tencent/Youtu-LLM-2B",
        decoder("youtu", "2048 6144 32 16 16 128256 131072", q_lora_rank=1536, mlp_bias=False,
                tie_word_embeddings=True, **LATENT),
        1_961_560_064, 32 * 576 * 2),
)  # fmt: skip
ROWS = (
    Row("01-ai/Yi-1.5-34B", decoder("llama", "7168 20480 60 56 8 64000 4096", **UNTIED),
        34_388_917_248, 60 * 2 * 8 * 128 * 2),
    Row("tiiuae/Falcon3-10B-Base",
        decoder("llama", "3072 23040 40 12 4 131072 32768", head_dim=256, activation="swiglu",
                **UNTIED),
        10_305_653_760, 40 * 2 * 4 * 256 * 2),
    Row("deepseek-ai/deepseek-coder-33b-instruct",
        decoder("llama", "7168 19200 62 56 8 32256 16384", **UNTIED),
        33_342_991_360, 62 * 2 * 8 * 128 * 2),
    Row("HuggingFaceTB/SmolLM3-3B",
        decoder("smollm3", "2048 11008 36 16 4 128256 65536", no_rope_layer_interval=4,
                no_rope_layers=[1, 1, 1, 0] * 9, layer_types=["full_attention"] * 36,
                max_window_layers=28, use_sliding_window=False),
        3_075_098_624, 36 * 2 * 4 * 128 * 2),
    Row("allenai/OLMo-2-0325-32B", decoder("olmo2", "5120 27648 64 40 8 100352 4096", **UNTIED),
        32_234_279_936, 64 * 2 * 8 * 128 * 2),
    Row("allenai/Olmo-3-1125-32B", OLMO_3, 32_233_522_176, 16 * 2 * 8 * 128 * 2),
    Row("CohereLabs/c4ai-command-r-v01", COMMAND_R, 34_980_831_232, 40 * 2 * 64 * 128 * 2),
    Row("CohereLabs/c4ai-command-r-plus",
        COMMAND_R | {"hidden_size": 12288, "intermediate_size": 33792, "num_attention_heads": 96,
                     "num_hidden_layers": 64, "num_key_value_heads": 8, "use_qk_norm": True},
        103_810_674_688, 64 * 2 * 8 * 128 * 2),
    Row("CohereLabs/c4ai-command-a-03-2025", COMMAND_A, 111_057_580_032, 16 * 2 * 8 * 128 * 2),
    Row("stabilityai/stablelm-2-1_6b",
        decoder("stablelm", "2048 5632 24 32 32 100352 4096", use_qkv_bias=True, norm_eps=1e-5,
                partial_rotary_factor=0.25, **UNTIED),
        1_644_515_328, 24 * 2 * 32 * 64 * 2),
    Row("LGAI-EXAONE/EXAONE-4.0-1.2B",
        decoder("exaone4", "2048 4096 30 32 8 102400 65536", head_dim=64, sliding_window=None,
                sliding_window_pattern=None, layer_types=["full_attention"] * 30,
                tie_word_embeddings=True),
        1_279_391_488, 30 * 2 * 8 * 64 * 2),
    Row("ByteDance-Seed/Seed-OSS-36B-Instruct",
        decoder("seed_oss", "5120 27648 64 80 8 155136 524288", head_dim=128, attention_bias=True,
                attention_out_bias=False, mlp_bias=False, residual_dropout=0.1, **UNTIED),
        36_151_104_512, 64 * 2 * 8 * 128 * 2),
    Row("internlm/internlm3-8b-instruct",
        decoder("internlm3", "4096 10240 48 32 2 128512 32768", head_dim=128, bias=False,
                qkv_bias=False, **UNTIED),
        8_804_241_408, 48 * 2 * 2 * 128 * 2),
    Row("zai-org/GLM-4-32B-0414",
        decoder("glm4", "6144 23040 61 48 2 151552 32768", head_dim=128, attention_bias=False,
                partial_rotary_factor=0.5, **UNTIED),
        32_566_081_536, 61 * 2 * 2 * 128 * 2),
    Row("mistralai/Mistral-Nemo-Instruct-2407",
        decoder("mistral", "5120 14336 40 32 8 131072 1024000", head_dim=128, sliding_window=None,
                **UNTIED),
        12_247_782_400, 40 * 2 * 8 * 128 * 2),
    Row("mistralai/Mistral-Small-3.2-24B-Instruct-2506",
        {"model_type": "mistral3", "image_token_index": 10, "multimodal_projector_bias": False,
         "spatial_merge_size": 2, "vision_feature_layer": -1, "text_config": SMALL_3,
         "vision_config": {"model_type": "pixtral"}},
        23_572_403_200, 40 * 2 * 8 * 128 * 2),
    # the text part leaves out the number of heads: it is the one of its class
    Row("mistral-community/pixtral-12b",
        {"model_type": "llava", "image_seq_length": 1, "projector_hidden_act": "gelu",
         "text_config": PIXTRAL_TEXT, "vision_config": {"model_type": "pixtral"},
         "vision_feature_layer": -1, "vision_feature_select_strategy": "full"},
        12_247_782_400, 40 * 2 * 8 * 128 * 2),
    Row("llava-hf/llava-1.5-7b-hf",
        {"model_type": "llava", "image_token_index": 32000, "projector_hidden_act": "gelu",
         "text_config": {"_name_or_path": "lmsys/vicuna-7b-v1.5", "model_type": "llama",
                         "architectures": ["LlamaForCausalLM"], "max_position_embeddings": 4096,
                         "vocab_size": 32064},
         "tie_word_embeddings": False, "vision_config": {}, "vision_feature_layer": -2},
        6_738_939_904, 32 * 2 * 32 * 128 * 2),
    Row("OpenGVLab/InternVL3_5-8B",
        {"model_type": "internvl_chat", "downsample_ratio": 0.5, "force_image_size": 448,
         "hidden_size": 4096, "llm_config": QWEN3_8B, "template": "internvl2_5",
         "tie_word_embeddings": False, "vision_config": {}},
        8_190_735_360, 36 * 2 * 8 * 128 * 2),
    Row("microsoft/Phi-3.5-MoE-instruct",
        decoder("phimoe", "4096 6400 32 32 8 32064 131072", num_local_experts=16,
                num_experts_per_tok=2, attention_bias=True, lm_head_bias=True,
                sliding_window=131072, input_jitter_noise=0.01, **UNTIED),
        41_873_153_344, 0),  # a window on every layer, as long as the context
    Row("bigscience/bloom-7b1",
        {"model_type": "bloom", "n_embed": 4096, "n_inner": None, "n_layer": 30,
         "num_attention_heads": 32, "seq_length": 2048, "vocab_size": 250880},
        7_069_016_064, 30 * 2 * 32 * 128 * 2),
    Row("facebook/opt-30b",
        {"model_type": "opt", "ffn_dim": 28672, "hidden_size": 7168, "num_attention_heads": 56,
         "num_hidden_layers": 48, "vocab_size": 50272, "max_position_embeddings": 2048,
         "word_embed_proj_dim": 7168, "do_layer_norm_before": True, "layerdrop": 0.0},
        29_974_540_288, 48 * 2 * 56 * 128 * 2),
    Row("tiiuae/falcon-11B",
        {"model_type": "falcon", "activation": "gelu", "bias": False, "ff_factor": 4,
         "ffn_hidden_size": 16384, "hidden_size": 4096, "max_position_embeddings": 8192,
         "multi_query": True, "new_decoder_architecture": True, "num_attention_heads": 32,
         "num_hidden_layers": 60, "num_kv_heads": 8, "num_ln_in_parallel_attn": 1,
         "parallel_attn": True, "vocab_size": 65024, **UNTIED},
        11_102_822_400, 60 * 2 * 8 * 128 * 2),
)  # fmt: skip


@pytest.mark.parametrize("row", [*ROWS, *NEW_TYPES], ids=lambda row: row.source)
def test_counts_and_cache(row: Row) -> None:
    model = lk.load_model(row.config)
    assert model.parameter_count == row.parameters
    assert model.kv_bytes_per_token() == row.bytes_per_token
    assert model.cache_bytes(0) == row.fixed_bytes


def test_what_files_do_not_say_is_not_guessed() -> None:
    """Both were found by leaving fields out and comparing with the model classes."""
    config = lk.load_model("deepseek-v4-pro")._config
    for name, value, match in (
        ("compress_ratios", None, "how each layer compresses"),
        ("n_shared_experts", 2, "n_shared_experts"),
    ):
        with pytest.raises((ConfigError, UnsupportedArchitectureError), match=match):
            lk.load_model(dict(config) | {name: value})
    mimo = dict(lk.load_model("mimo-v2-flash")._config)
    with pytest.raises(UnsupportedArchitectureError, match="n_shared_experts"):
        lk.load_model(mimo | {"n_shared_experts": 1})


def test_layers_that_no_field_describes_are_shown_as_missing() -> None:
    compressed = dict(lk.load_model("deepseek-v4-pro")._config) | {"compress_ratios": None}
    for config in (compressed, LFM2 | {"full_attn_idxs": None}):
        with pytest.raises(ConfigError) as caught:
            lk.load_model(config)
        assert caught.value.given["layer_types"] is None
        assert caught.value.allowed.endswith("for each layer")


def test_the_text_part_of_lfm2_vl() -> None:
    config = {"model_type": "lfm2_vl", "downsample_factor": 2, "image_token_id": 396,
              "max_tiles": 10, "text_config": LFM2, "vision_config": {}}  # fmt: skip
    assert lk.load_model(config).parameter_count == lk.load_model(LFM2).parameter_count


@pytest.mark.parametrize(("source", "change", "match"), [
    ("tiiuae/Falcon3-10B-Base", {"activation": "relu"}, "activation"),
    ("tiiuae/falcon-11B", {"ff_factor": 3}, "ff_factor"),
    ("CohereLabs/c4ai-command-a-03-2025", {"use_qk_norm": True}, "use_qk_norm"),
    ("LiquidAI/LFM2-1.2B", {"conv_dim": 1024}, "conv_dim"),
    ("LiquidAI/LFM2-1.2B", {"full_attn_idxs": None}, "layer_types"),
    ("LiquidAI/LFM2-1.2B", {"tie_embedding": False, "tie_word_embeddings": True}, "tie_embedding"),
    ("ibm-ai-platform/Bamba-9B-v1", {"mamba_d_head": 32}, "mamba_d_head"),
    ("ibm-ai-platform/Bamba-9B-v1", {"layer_types": ["mamba"] * 32}, "contradict"),
    ("databricks/dbrx-base", {"tie_word_embeddings": True}, "tie_word_embeddings"),
    ("openbmb/MiniCPM-2B-sft-bf16", {"sparse_config": {"topk": 64}}, "sparse_config"),
    ("openbmb/MiniCPM-2B-sft-bf16", {"num_experts": 8}, "num_experts"),
])  # fmt: skip
def test_what_would_change_the_shape_is_refused(
    source: str, change: dict[str, Any], match: str
) -> None:
    config = next(row.config for row in (*ROWS, *NEW_TYPES) if row.source == source)
    with pytest.raises((ConfigError, UnsupportedArchitectureError), match=match):
        lk.load_model(config | change)
