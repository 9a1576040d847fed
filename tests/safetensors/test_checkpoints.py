"""Checkpoints of tiny models: prediction equals file, tensor class by tensor class."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from ledgerkit.errors import CheckpointError, ConfigError
from ledgerkit.readers.config import read_config
from ledgerkit.readers.safetensors import read_safetensors
from ledgerkit.readers.safetensors_names import expand

BASE: dict[str, Any] = {
    "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 96, "vocab_size": 128, "max_position_embeddings": 256, "bos_token_id": 1,
    "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
MOE = {"num_experts_per_tok": 2, "moe_intermediate_size": 32}
LATENT = {"q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
          "v_head_dim": 16, "num_key_value_heads": 4, "n_routed_experts": 4, "n_group": 2,
          "topk_group": 1, "first_k_dense_replace": 1, **MOE}  # fmt: skip
MODELS: dict[str, dict[str, Any]] = {
    "llama": {},
    "mistral": {},
    "qwen2": {},
    "qwen3": {"head_dim": 32},
    "phi3": {},
    "gemma2": {"head_dim": 16},
    "gemma3_text": {"head_dim": 16},
    "mixtral": {"num_local_experts": 4},
    "qwen3_moe": {"num_experts": 4, "head_dim": 16, **MOE},
    "gpt_oss": {"num_local_experts": 4, "head_dim": 16},
    "deepseek_v3": LATENT,
    "gemma4_text": {
        "head_dim": 16, "global_head_dim": 32, "num_hidden_layers": 6, "num_kv_shared_layers": 2,
        "hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 128,
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention"] * 2,
    },
}  # fmt: skip
ROUTER_IN_FP32 = {"deepseek_v3"}
"""Model classes that keep the router in fp32 where the config says bf16; so do their files."""


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory):
    """Save a tiny random model as transformers does."""
    torch = pytest.importorskip("torch")
    from transformers import AutoModelForCausalLM
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    where = tmp_path_factory.mktemp("saved")

    def save(model_type: str, **options: Any) -> Path:
        path = where / model_type
        if not path.exists():
            config = CONFIG_MAPPING[model_type](**{**BASE, **MODELS[model_type]})
            model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
            model.save_pretrained(path, **options)
        return path

    return save


@pytest.mark.oracle
@pytest.mark.parametrize("model_type", MODELS)
def test_prediction_equals_file(model_type: str, saved):
    from safetensors import safe_open

    path = saved(model_type)
    found = read_safetensors(path)
    with safe_open(path / "model.safetensors", "pt") as oracle:
        sizes = {name: oracle.get_tensor(name).nbytes for name in oracle.keys()}  # noqa: SIM118
    assert {tensor.name: tensor.bytes for tensor in found.tensors} == sizes
    assert found.bytes == sum(sizes.values())
    assert found.unbooked == ()
    text = [row for row in found.classes if not row.mtp]
    for row in text:
        assert row.found_tensors == row.predicted_tensors, row
    differing = {row.name for row in text if row.difference_bytes}
    if model_type in ROUTER_IN_FP32:
        assert differing == {"model.layers.{layer}.mlp.gate.weight"}
    else:
        assert found.agrees
        assert found.bytes == found.model.weight_bytes
        assert found.bytes_by_account == found.model.weight_bytes_by_account
    assert sum(row.found_bytes for row in found.classes) == found.bytes


@pytest.mark.oracle
def test_a_sharded_checkpoint_by_directory_index_and_file(saved, tmp_path: Path):
    import shutil

    import torch
    from transformers import AutoModelForCausalLM

    whole = saved("qwen3_moe")
    model = AutoModelForCausalLM.from_pretrained(whole, dtype=torch.bfloat16)
    model.save_pretrained(tmp_path, max_shard_size="100KB")
    index = tmp_path / "model.safetensors.index.json"
    by_directory, by_index = read_safetensors(tmp_path), read_safetensors(index)
    assert len(by_directory.files) > 2
    assert by_directory.classes == by_index.classes == read_safetensors(whole).classes
    alone = read_safetensors(tmp_path / by_directory.files[0])
    assert not alone.agrees
    assert alone.bytes < by_directory.bytes
    for broken, message in (
        ({"weight_map": {}}, "no weight_map"),
        ({"weight_map": {"w": "../other.safetensors"}}, "same directory"),
        ({"weight_map": {"w": 3}}, "same directory"),
        ({"weight_map": {"w": by_directory.files[0]}}, "disagree on"),
    ):
        index.write_text(json.dumps(broken))
        with pytest.raises(CheckpointError, match=message):
            read_safetensors(tmp_path)
    index.unlink()
    shutil.copy(tmp_path / by_directory.files[0], tmp_path / "again.safetensors")
    with pytest.raises(CheckpointError, match="occurs in two files"):
        read_safetensors(tmp_path)


@pytest.mark.oracle
def test_the_table_has_a_row_for_each_class(saved):
    found = read_safetensors(saved("qwen3_moe"))
    table = found.table
    assert table.height == len(found.classes)
    assert table["difference_bytes"].to_list() == [0.0] * table.height
    experts = table.filter(table["name"].str.contains("down_proj")).row(0, named=True)
    assert experts["predicted_shape"] == experts["found_shape"] == [64, 32]
    assert experts["predicted_tensors"] == 3 * 4
    assert (experts["ledger"], experts["account"]) == ("ffn_mlp", "routed_experts")


# -- headers written by hand ----------------------------------------------------------------------

BITS = {"F32": 32, "BF16": 16, "F8_E4M3": 8, "U8": 8, "I8": 8, "I32": 32, "I64": 64}
LLAMA = {"model_type": "llama", "hidden_size": 256, "intermediate_size": 512,
         "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
         "vocab_size": 128, "max_position_embeddings": 256, "torch_dtype": "bfloat16"}  # fmt: skip
Stored = dict[str, tuple[str, tuple[int, ...]]]


def write(where: Path, config: dict[str, Any], tensors: Stored) -> Path:
    """Write a checkpoint of zeros."""
    header, offset = {}, 0
    for name, (dtype, shape) in tensors.items():
        size = BITS[dtype] // 8
        for extent in shape:
            size *= extent
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    raw = json.dumps(header).encode()
    (where / "model.safetensors").write_bytes(struct.pack("<Q", len(raw)) + raw + bytes(offset))
    (where / "config.json").write_text(json.dumps(config))
    return where


def plain(config: dict[str, Any]) -> Stored:
    """All tensors that a config predicts, unquantized; only correction biases are in fp32."""
    names, classes = expand(read_config({**config, "quantization_config": None}))
    dtypes = {"bf16": "BF16", "fp32": "F32"}
    return {
        name: (dtypes[classes[target.key].weights[0][0].dtype], classes[target.key].shape)
        for name, target in names.items()
    }


def is_linear(name: str, shape: tuple[int, ...]) -> bool:
    return len(shape) == 2 and "layers" in name and "gate.weight" not in name


def quantized(tensors: Stored, replace) -> Stored:
    """Replace each matrix of a layer by what a quantized format stores of it."""
    found: Stored = {}
    for name, (dtype, shape) in tensors.items():
        if is_linear(name, shape):
            at = name.removesuffix(".weight")
            found |= {at + ending: entry for ending, entry in replace(*shape).items()}
        else:
            found[name] = (dtype, shape)
    return found


FORMATS = {
    "fp8 blocks": (
        {"quant_method": "fp8", "weight_block_size": [128, 128], "fmt": "e4m3",
         "activation_scheme": "dynamic"},
        lambda rows, columns: {
            ".weight": ("F8_E4M3", (rows, columns)),
            ".weight_scale_inv": ("F32", (-(-rows // 128), -(-columns // 128)))},
        0,
    ),
    "awq": (
        {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True,
         "version": "gemm"},
        lambda rows, columns: {
            ".qweight": ("I32", (columns, rows // 8)),
            ".qzeros": ("I32", (-(-columns // 128), rows // 8)),
            ".scales": ("BF16", (-(-columns // 128), rows))},
        0,
    ),
    "compressed int4": (
        {"quant_method": "compressed-tensors", "format": "pack-quantized",
         "ignore": ["lm_head"], "config_groups": {"group_0": {
             "targets": ["Linear"], "input_activations": None, "output_activations": None,
             "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32,
                         "symmetric": True}}}},
        lambda rows, columns: {
            ".weight_packed": ("I32", (rows, columns // 8)),
            ".weight_scale": ("BF16", (rows, columns // 32)),
            ".weight_shape": ("I64", (2,))},
        16,  # the shape of the unpacked tensor
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_quantized_layers_are_one_class_with_their_scales(name: str, tmp_path: Path):
    quantization, replace, more = FORMATS[name]
    stored = quantized(plain(LLAMA), replace)
    config = {**LLAMA, "quantization_config": quantization}
    found = read_safetensors(write(tmp_path, config, stored))
    assert found.unbooked == ()
    assert all(row.found_tensors == row.predicted_tensors for row in found.classes)
    per_tensor = {row.name: row.difference_bytes / row.found_tensors for row in found.differing}
    layers = [row.name for row in found.classes if is_linear(row.name, row.predicted_shape)]
    assert per_tensor == (dict.fromkeys(layers, more) if more else {})
    assert found.bytes == sum(row.found_bytes for row in found.classes)


def test_gpt_oss_in_mxfp4(tmp_path: Path):
    """Experts as blocks of 16 bytes and one scale for 32 elements; the rest in bf16."""
    config = {"model_type": "gpt_oss", "hidden_size": 64, "intermediate_size": 96,
              "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
              "head_dim": 16, "vocab_size": 128, "num_local_experts": 4, "num_experts_per_tok": 2,
              "max_position_embeddings": 256, "torch_dtype": "bfloat16",
              "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": [
                  "model.layers.*.self_attn", "model.layers.*.mlp.router",
                  "model.embed_tokens", "lm_head"]}}  # fmt: skip
    stored = plain(config)
    for name in [n for n in stored if n.endswith(("gate_up_proj", "down_proj"))]:
        _, (experts, rows, columns) = stored.pop(name)
        stored[name + "_blocks"] = ("U8", (experts, rows, columns // 32, 16))
        stored[name + "_scales"] = ("U8", (experts, rows, columns // 32))
    found = read_safetensors(write(tmp_path, config, stored))
    assert found.agrees
    routed = found.bytes_by_account["ffn_mlp", "routed_experts"]
    biases = 2 * 4 * (2 * 96 + 64) * 2
    assert routed == 2 * 4 * 3 * 96 * 64 * 17 // 32 + biases


DEEPSEEK = {
    "model_type": "deepseek_v3", **BASE, **LATENT, "num_nextn_predict_layers": 1,
    "torch_dtype": "bfloat16",
}  # fmt: skip


def test_mtp_blocks_are_told_from_the_model(tmp_path: Path):
    """The block repeats embedding and head, which the config counts once."""
    stored = plain(DEEPSEEK)
    stored |= {"model.layers.3.embed_tokens.weight": ("BF16", (128, 64)),
               "model.layers.3.shared_head.head.weight": ("BF16", (128, 64))}  # fmt: skip
    found = read_safetensors(write(tmp_path, DEEPSEEK, stored))
    assert found.agrees
    assert {tensor.name.split(".")[2] for tensor in found.mtp} == {"3"}
    assert found.model.mtp is not None
    correction = 4 * 2  # four elements, in fp32
    elements = found.model.mtp.parameter_count + 2 * 128 * 64
    assert sum(t.bytes for t in found.mtp) == 2 * elements + correction
    assert sum(found.bytes_by_account.values()) == found.model.weight_bytes
    without = {name: entry for name, entry in stored.items() if ".layers.3." not in name}
    assert read_safetensors(write(tmp_path, DEEPSEEK, without)).agrees
    half = dict(list(stored.items())[:-5])
    assert not read_safetensors(write(tmp_path, DEEPSEEK, half)).agrees


def test_towers_are_told_from_the_model(tmp_path: Path):
    config = {"model_type": "gemma3", "text_config": {
        "model_type": "gemma3_text", "hidden_size": 64, "num_hidden_layers": 2, "head_dim": 16,
        "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2,
        "vocab_size": 128, "sliding_window": 64}, "vision_config": {"hidden_size": 32},
        "torch_dtype": "bfloat16"}  # fmt: skip
    tower: Stored = {
        "vision_tower.vision_model.encoder.layers.0.mlp.fc1.weight": ("BF16", (64, 32)),
        "vision_tower.vision_model.post_layernorm.weight": ("BF16", (32,)),
        "multi_modal_projector.mm_input_projection_weight": ("BF16", (32, 64)),
    }
    found = read_safetensors(write(tmp_path, config, plain(config) | tower))
    assert found.agrees
    assert {name: len(part) for name, part in found.towers.items()} == {
        "vision_tower": 2, "multi_modal_projector": 1}  # fmt: skip
    assert found.bytes - found.model.weight_bytes == 2 * (64 * 32 + 32 + 32 * 64)
    # the same text model under the names of a later release
    moved = {name.replace("language_model.model.", "model.language_model."): entry
             for name, entry in plain(config).items()}  # fmt: skip
    assert read_safetensors(write(tmp_path, config, moved)).agrees


def test_fused_and_single_experts_are_the_same_class(tmp_path: Path):
    config = {
        "model_type": "qwen3_moe",
        **BASE,
        **MODELS["qwen3_moe"],
        "torch_dtype": "bfloat16",
    }
    fused: Stored = {n: e for n, e in plain(config).items() if "experts" not in n}
    for layer in range(3):
        at = f"model.layers.{layer}.mlp.experts."
        fused |= {
            at + "gate_up_proj": ("BF16", (4, 64, 64)),
            at + "down_proj": ("BF16", (4, 64, 32)),
        }
    found = read_safetensors(write(tmp_path, config, fused))
    assert found.agrees
    gate = next(row for row in found.classes if "gate_proj" in row.name)
    assert gate.found_bytes == 3 * 4 * 32 * 64 * 2


def test_what_is_missing_or_unknown_is_listed(tmp_path: Path):
    stored = plain(LLAMA)
    del stored["model.layers.1.mlp.up_proj.weight"]
    stored |= {
        "model.layers.0.self_attn.rotary_emb.inv_freq": ("F32", (32,)),
        "model.layers.0.mystery.weight": ("BF16", (8, 8)),
        "model.layers.0.self_attn.k_scale": ("F32", (1,)),
    }
    found = read_safetensors(write(tmp_path, LLAMA, stored))
    reasons = {tensor.name.rpartition("layers.0.")[2]: reason for tensor, reason in found.unbooked}
    assert reasons == {
        "self_attn.rotary_emb.inv_freq": "rotary angles: constants that follow from the config",
        "mystery.weight": "the config predicts no such tensor",
        "self_attn.k_scale": "scale of a quantized cache",
    }
    (missing,) = found.differing
    assert (missing.found_tensors, missing.predicted_tensors) == (1, 2)
    assert missing.difference_bytes == -512 * 256 * 2
    assert not found.agrees


def test_a_second_copy_of_a_tied_embedding_is_named(tmp_path: Path):
    config = {**LLAMA, "tie_word_embeddings": True}
    stored = plain(config) | {"lm_head.weight": ("BF16", (128, 256))}
    found = read_safetensors(write(tmp_path, config, stored))
    assert [reason for _, reason in found.unbooked] == ["a second copy of the tied embedding"]


def test_another_dtype_and_another_width_show_in_the_difference(tmp_path: Path):
    stored = plain(LLAMA)
    stored["model.norm.weight"] = ("F32", (256,))
    stored["lm_head.weight"] = ("BF16", (160, 256))
    rows = {row.name: row for row in read_safetensors(write(tmp_path, LLAMA, stored)).differing}
    assert rows.keys() == {"model.norm.weight", "lm_head.weight"}
    norm, head = rows["model.norm.weight"], rows["lm_head.weight"]
    assert (norm.predicted_dtype, norm.found_dtype, norm.difference_bytes) == ("bf16", "F32", 512)
    assert (head.predicted_shape, head.found_shape) == ((128, 256), (160, 256))


def test_what_cannot_be_read_is_refused(tmp_path: Path):
    with pytest.raises(CheckpointError, match="no safetensors files"):
        read_safetensors(tmp_path)
    with pytest.raises(CheckpointError, match="cannot be read"):
        read_safetensors(tmp_path / "model.safetensors", LLAMA)
    with pytest.raises(CheckpointError, match="give a directory"):
        read_safetensors(tmp_path / "model.bin")
    with pytest.raises(CheckpointError, match="cannot be read"):
        read_safetensors(tmp_path / "model.safetensors.index.json")
    write(tmp_path, LLAMA, plain(LLAMA))
    (tmp_path / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"no config\.json"):
        read_safetensors(tmp_path)
    assert read_safetensors(tmp_path, LLAMA).agrees
    with pytest.raises(ConfigError):
        read_safetensors(tmp_path, {"model_type": "llama"})
