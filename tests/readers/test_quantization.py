"""Storage formats from ``quantization_config``: which module gets which, and its bytes."""

from __future__ import annotations

import pytest

from ledgerkit.errors import ConfigError, LedgerError, UnsupportedArchitectureError
from ledgerkit.readers.config import read_config
from ledgerkit.readers.patterns import ModulePatterns
from ledgerkit.spec.precision import storage

LLAMA = {
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "torch_dtype": "float16",
}
MOE = {
    "model_type": "qwen3_moe",
    "hidden_size": 256,
    "moe_intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "vocab_size": 1000,
    "torch_dtype": "bfloat16",
}


def read(config, **quantization):
    return read_config({**config, "quantization_config": quantization})


def formats(model):
    """(short tensor name, layer) → storage format."""
    found = {}
    for group in model.groups:
        for weight in group.weights:
            name = weight.name.replace("model.layers.{layer}.", "").removesuffix(".weight")
            for layer in group.layers:
                found[name, layer] = weight.dtype
    for weight in model.globals:
        found[weight.name.removesuffix(".weight"), None] = weight.dtype
    return found


def test_fp8_blocks_leave_norms_embedding_head_and_listed_modules():
    found = formats(
        read(
            LLAMA,
            quant_method="fp8",
            fmt="e4m3",
            weight_block_size=[128, 128],
            modules_to_not_convert=["model.layers.2.self_attn.o_proj", "model.layers.3"],
        )
    )
    assert found["self_attn.q_proj", 0] == "fp8_block128"
    assert found["self_attn.o_proj", 1] == "fp8_block128"
    assert found["self_attn.o_proj", 2] == "fp16"
    assert found["mlp.up_proj", 2] == "fp8_block128"
    assert found["mlp.up_proj", 3] == "fp16"
    assert found["input_layernorm", 0] == "fp16"
    assert found["lm_head", None] == found["model.embed_tokens", None] == "fp16"


def test_fp8_per_tensor():
    static = formats(read(LLAMA, quant_method="fp8", activation_scheme="static"))
    assert static["mlp.up_proj", 0] == "fp8_static"
    dynamic = formats(read(LLAMA, quant_method="fp8", activation_scheme="dynamic"))
    assert dynamic["mlp.up_proj", 0] == "fp8"


def test_a_router_stays_plain_when_gate_is_listed_or_not():
    for skip in ([], ["gate"], ["model.layers.0.mlp.gate", "model.layers.1.mlp.gate"]):
        found = formats(
            read(MOE, quant_method="fp8", weight_block_size=[128, 128], modules_to_not_convert=skip)
        )
        assert found["mlp.gate", 0] == "bf16"
        assert found["mlp.experts.{expert}.gate_proj", 1] == "fp8_block128"


def test_awq_bytes_by_hand():
    model = read(LLAMA, quant_method="awq", bits=4, group_size=128, zero_point=True)
    found = {w.name: w for w in model.groups[0].weights}
    # 512 x 256: codes 65,536 B; two groups of 128 per row with a scale of 2 B and a zero of 1/2 B
    assert found["model.layers.{layer}.mlp.up_proj.weight"].bytes == 65_536 + 512 * 2 * 2.5
    assert formats(model)["lm_head", None] == "fp16"


def test_gptq_bytes_by_hand():
    model = read(
        LLAMA,
        quant_method="gptq",
        bits=4,
        group_size=128,
        desc_act=True,
        dynamic={"-:.*k_proj": {}, "+:.*v_proj": {"bits": 8, "group_size": 64}},
    )
    found = {w.name.rpartition("self_attn.")[2]: w for w in model.groups[0].weights}
    # 256 x 256: codes 32,768 B, two groups per row of 2.5 B, a group index of 4 B per input
    assert found["q_proj.weight"].bytes == 32_768 + 256 * 2 * 2.5 + 4 * 256
    assert found["k_proj.weight"].dtype == "fp16"
    assert found["v_proj.weight"].dtype == "int8_asym_g64_gidx"


def test_gptq_quantizes_only_listed_modules():
    model = read(
        LLAMA,
        quant_method="gptq",
        bits=4,
        group_size=-1,
        modules_in_block_to_quantize=[["self_attn.q_proj"], ["mlp.up_proj"]],
    )
    found = formats(model)
    assert found["self_attn.q_proj", 0] == "int4_asym_channel_gidx"
    assert found["self_attn.o_proj", 0] == "fp16"


def test_bitsandbytes():
    nf4 = read(LLAMA, quant_method="bitsandbytes", load_in_4bit=True, bnb_4bit_quant_type="nf4")
    weight = next(w for w in nf4.groups[0].weights if "up_proj" in w.name)
    # one fp32 scale for 64 elements and a code book of 16 fp32
    assert weight.bytes == 512 * 256 / 2 + 512 * 256 / 64 * 4 + 64
    eight = read(LLAMA, quant_method="bitsandbytes", load_in_8bit=True)
    assert formats(eight)["mlp.up_proj", 0] == "int8"
    with pytest.raises(ConfigError):
        read(LLAMA, quant_method="bitsandbytes")


def test_modelopt():
    fp4 = read(
        MOE,
        quant_method="modelopt",
        quant_algo="NVFP4",
        ignore=["lm_head", "model.layers.0.self_attn*", "*mlp.gate*"],
    )
    found = formats(fp4)
    assert found["self_attn.q_proj", 0] == "bf16"
    assert found["self_attn.q_proj", 1] == "nvfp4_static"
    assert found["mlp.experts.{expert}.down_proj", 0] == "nvfp4_static"
    assert found["lm_head", None] == "bf16"
    mixed = read(
        LLAMA,
        quant_method="modelopt",
        quant_algo="MIXED_PRECISION",
        quantized_layers={
            "model.layers.1.mlp.up_proj": {"quant_algo": "FP8"},
            "model.layers.2.mlp.up_proj": {"quant_algo": "NVFP4", "group_size": 16},
        },
    )
    found = formats(mixed)
    assert [found["mlp.up_proj", layer] for layer in range(4)] == [
        "fp16",
        "fp8_static",
        "nvfp4_static",
        "fp16",
    ]


def group(targets, **weights):
    return {"targets": targets, "weights": weights}


def test_compressed_tensors_groups():
    model = read(
        LLAMA,
        quant_method="compressed-tensors",
        format="mixed-precision",
        ignore=["lm_head"],
        config_groups={
            "a": group(
                [r"re:.*self_attn\.(q|k|v)_proj"], type="float", num_bits=8, strategy="channel"
            ),
            "b": group(["Linear"], type="int", num_bits=4, strategy="group", group_size=32),
        },
    )
    found = formats(model)
    assert found["self_attn.k_proj", 0] == "fp8_channel_bf16scale"
    assert found["self_attn.o_proj", 0] == "int4_g32"
    assert found["lm_head", None] == "fp16"


@pytest.mark.parametrize(
    ("packed", "weights", "inputs", "expected"),
    [
        # 256 x 256 codes of half a byte, 2 scales of 2 B per row, and 4 B for each input
        ("pack-quantized", {"num_bits": 4, "strategy": "group", "group_size": 128,
                            "actorder": "group"}, None, 32_768 + 256 * 4 + 256 * 4),
        ("pack-quantized", {"num_bits": 4, "strategy": "group", "group_size": 128,
                            "actorder": "weight"}, None, 32_768 + 256 * 4),
        # a scale of the weights and one of the inputs, 2 B each
        ("float-quantized", {"num_bits": 8, "type": "float", "strategy": "tensor"},
         {"dynamic": False}, 65_536 + 4),
        ("float-quantized", {"num_bits": 8, "type": "float", "strategy": "tensor"},
         {"dynamic": True}, 65_536 + 2),
    ],
)  # fmt: skip
def test_compressed_tensors_beside_the_codes(packed, weights, inputs, expected):
    parts = {"targets": ["Linear"], "weights": weights, "input_activations": inputs}
    model = read(
        LLAMA,
        quant_method="compressed-tensors",
        format=packed,
        ignore=["lm_head"],
        config_groups={"a": parts},
    )
    found = next(w for w in model.groups[0].weights if "q_proj.weight" in w.name)
    assert (found.shape, found.bytes) == ((256, 256), expected)


@pytest.mark.parametrize(
    ("packed", "bits"),
    [("marlin-24", 4), ("sparse-24-bitmask", 8), ("int-quantized", 4), ("pack-quantized", 3)],
)
def test_compressed_tensors_of_another_layout_are_refused(packed, bits):
    weights = {"num_bits": bits, "strategy": "group", "group_size": 128}
    with pytest.raises(UnsupportedArchitectureError):
        read(
            LLAMA,
            quant_method="compressed-tensors",
            format=packed,
            config_groups={"a": group(["Linear"], **weights)},
        )


@pytest.mark.parametrize(
    "pattern",
    [
        "model.layers.*.self_attn*",
        "model.language_model.layers.*.self_attn*",
        "language_model.model.layers.*.self_attn*",
        r"re:language_model\.model\.layers\.\d+\.self_attn",
        r"re:^model\.language_model\.layers\.[0-3]\.self_attn",
        "model.language_model.layers.1.self_attn",
    ],
)
def test_patterns_with_the_prefix_of_a_multimodal_model(pattern):
    """Tools write the modules of the text part under several names."""
    text = {name: value for name, value in LLAMA.items() if name != "architectures"}
    model = read(
        {"model_type": "llava", "text_config": text, "vision_config": {}},
        quant_method="modelopt",
        quant_algo="FP8",
        ignore=["lm_head", "vision_tower*", pattern],
    )
    found = {
        (w.name.rpartition("layers.{layer}.")[2], layer): w.dtype
        for group in model.groups
        for w in group.weights
        for layer in group.layers
    }
    assert found["self_attn.q_proj.weight", 1] == "fp16"
    assert found["mlp.up_proj.weight", 1] == "fp8_static"


def test_awq_under_the_names_of_its_own_file():
    model = read(LLAMA, quant_method="awq", w_bit=4, q_group_size=64, version="GEMM")
    assert formats(model)["mlp.up_proj", 0] == "int4_asym_g64"
    with pytest.raises(ConfigError, match="contradict"):
        read(LLAMA, quant_method="awq", w_bit=4, q_group_size=64, group_size=128)


def test_compressed_tensors_quantizes_a_head_that_is_not_ignored():
    weights = {"type": "int", "num_bits": 8, "strategy": "channel", "symmetric": True}
    untied = read(
        LLAMA, quant_method="compressed-tensors", config_groups={"a": group(["Linear"], **weights)}
    )
    assert formats(untied)["lm_head", None] == "int8_bf16scale"
    tied = read(
        {**LLAMA, "tie_word_embeddings": True},
        quant_method="compressed-tensors",
        config_groups={"a": group(["Linear"], **weights)},
    )
    assert formats(tied)["model.embed_tokens", None] == "fp16"


def test_targets_that_match_nothing_are_refused():
    with pytest.raises(UnsupportedArchitectureError, match="targets match no module"):
        read(
            LLAMA,
            quant_method="compressed-tensors",
            config_groups={
                "a": group([r"re:.*ffn\.w1"], type="float", num_bits=8, strategy="tensor")
            },
        )


@pytest.mark.parametrize(
    "quantization",
    [
        {},
        {"quant_method": "unheard_of"},
        {"quant_method": None},
        {"quant_method": 4},
        {"quant_method": "awq", "version": "gemv"},
        {"quant_method": "awq", "bits": 5},
        {"quant_method": "gptq"},
        {"quant_method": "gptq", "bits": True},
        {"quant_method": "gptq", "bits": 4, "format": "marlin"},
        {"quant_method": "gptq", "bits": 4, "is_marlin_format": True},
        {"quant_method": "gptq", "bits": 4, "group_size": 0},
        {"quant_method": "gptq", "bits": 4, "dynamic": 3},
        {"quant_method": "fp8", "weight_block_size": [64, 64]},
        {"quant_method": "fp8", "weight_block_size": 128},
        {"quant_method": "fp8", "modules_to_not_convert": "lm_head"},
        {"quant_method": "fp8", "modules_to_not_convert": [3]},
        {"quant_method": "fp8", "modules_to_not_convert": ["re:("]},
        {"quant_method": "modelopt"},
        {"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"},
        {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"},
        {"quant_method": "compressed-tensors"},
        {"quant_method": "compressed-tensors", "config_groups": {"a": {}}},
        {
            "quant_method": "compressed-tensors",
            "config_groups": {"a": {"weights": {"num_bits": 1}}},
        },
        {"quant_method": "mxfp4"},  # for experts, and this model has none
        {
            "quant_method": "compressed-tensors",
            "config_groups": {"a": {"targets": ["Linear"], "weights": {"num_bits": 8}}},
            "quantization_status": "frozen",  # and no format: simulated, stored unquantized
        },
        {"quant_method": "auto-round", "bits": 4, "packing_format": "auto_round:auto_awq"},
    ],
)
def test_what_is_not_known_is_refused(quantization):
    with pytest.raises(LedgerError):
        read(LLAMA, **quantization)


@pytest.mark.parametrize("status", ["frozen", "compressed"])
def test_a_stated_format_is_how_the_weights_are_stored(status):
    weights = {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True}
    model = read(
        LLAMA,
        quant_method="compressed-tensors",
        config_groups={"group_0": {"targets": ["Linear"], "weights": weights}},
        format="int-quantized",
        ignore=["lm_head"],
        quantization_status=status,
    )
    assert "int8_bf16scale" in {w.dtype for group in model.groups for w in group.weights}


@pytest.mark.parametrize(
    ("quantization", "allowed"),
    [
        ({"quant_method": "gptq", "bits": 5}, "2, 3, 4, 8"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 0}, "whole numbers from 1 to 1,048,575"),
        ({"quant_method": "gptq", "bits": 4, "desc_act": "x"}, "true, false, null"),
        ({"quant_method": "gptq", "bits": 4, "sym": 1}, "true, false, null"),
        ({"quant_method": "awq", "bits": 4, "zero_point": "x"}, "true, false, null"),
        ({"quant_method": "fp8", "activation_scheme": "zz"}, "static, dynamic, null"),
        ({"quant_method": "fp8", "activation_scheme": ["static"]}, "static, dynamic, null"),
    ],
)
def test_what_is_allowed_is_said_in_words(quantization, allowed):
    with pytest.raises(ConfigError, match="quantization_config") as caught:
        read(LLAMA, **quantization)
    assert caught.value.allowed == allowed
    assert caught.value.fix.startswith("correct ")
    assert "given: " in str(caught.value)


def test_patterns_match_whole_components():
    patterns = ModulePatterns(["mlp.gate", "lm_head", "re:.*k_proj", "model.layers.*.norm"])
    at = "model.layers.{layer}."
    assert patterns.match(at + "mlp.gate", 3)
    assert not patterns.match(at + "mlp.gate_proj", 3)
    assert patterns.match("lm_head", 0)
    assert patterns.match(at + "self_attn.k_proj", 0)
    assert patterns.match(at + "norm", 11)
    assert not patterns.by_layer


def test_formats_exist_for_every_name_the_readers_use():
    for name in (
        "fp8",
        "fp8_static",
        "fp8_channel",
        "fp8_block128",
        "fp8_block128_e8m0",
        "fp8_bf16scale",
        "fp8_channel_bf16scale",
        "fp8_block128_bf16scale",
        "int8",
        "int8_bf16scale",
        "nvfp4",
        "nvfp4_static",
        "mxfp4",
        "mxfp8",
        "nf4",
        "nf4_double",
        "int4_g128",
        "int4_asym_g128_gidx",
        "int3_asym_channel",
    ):
        assert storage(name).bytes((256, 512)) > 0
