"""MTP blocks of families whose files say little: tensors counted by hand, sums as published."""

from __future__ import annotations

import pytest

import ledgerkit as lk
from ledgerkit._scheduling.steps import draft_of_mtp

STEP = {
    "model_type": "step3p5", "hidden_size": 4096, "intermediate_size": 11264,
    "num_hidden_layers": 45, "num_attention_heads": 64, "num_attention_groups": 8,
    "head_dim": 128, "vocab_size": 128896, "max_position_embeddings": 262144,
    "moe_num_experts": 288, "moe_top_k": 8, "moe_intermediate_size": 1280,
    "share_expert_dim": 1280, "sliding_window": 512, "use_head_wise_attn_gate": True,
    "num_nextn_predict_layers": 3, "use_moe_router_bias": True, "torch_dtype": "bfloat16",
    "attention_other_setting": {
        "attention_type": "sliding_attention", "num_attention_heads": 96,
        "num_attention_groups": 8, "head_dim": 128,
    },
    "layer_types": (["full_attention"] + ["sliding_attention"] * 3) * 12,
    "moe_layers_enum": ",".join(str(layer) for layer in range(3, 45)),
}  # fmt: skip
"""Step-3.5-Flash, huggingface.co/stepfun-ai/Step-3.5-Flash."""

HY3 = {
    "model_type": "hy_v3", "hidden_size": 4096, "intermediate_size": 13312,
    "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128,
    "vocab_size": 120832, "num_experts": 192, "num_experts_per_tok": 8, "num_shared_experts": 1,
    "moe_intermediate_size": 1536, "first_k_dense_replace": 1, "num_nextn_predict_layers": 1,
    "max_position_embeddings": 262144, "torch_dtype": "bfloat16",
}  # fmt: skip
"""Hy3, huggingface.co/tencent/Hy3-preview."""

ERNIE = {
    "model_type": "ernie4_5_moe", "hidden_size": 2560, "intermediate_size": 12288,
    "num_hidden_layers": 28, "num_attention_heads": 20, "num_key_value_heads": 4,
    "vocab_size": 103424, "moe_num_experts": 64, "moe_k": 6, "moe_intermediate_size": 1536,
    "moe_num_shared_experts": 2, "moe_layer_start_index": 1, "moe_layer_end_index": 27,
    "moe_layer_interval": 1, "use_bias": False, "tie_word_embeddings": True,
    "num_nextn_predict_layers": 1, "max_position_embeddings": 131072, "torch_dtype": "bfloat16",
}  # fmt: skip
"""ERNIE-4.5-21B-A3B-PT, huggingface.co/baidu/ERNIE-4.5-21B-A3B-PT."""

NEMOTRON = {
    "model_type": "nemotron_h", "hidden_size": 2688, "num_attention_heads": 32,
    "num_key_value_heads": 2, "head_dim": 128, "vocab_size": 131072, "intermediate_size": 1856,
    "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
    "ssm_state_size": 128, "mamba_num_heads": 64, "mamba_head_dim": 64, "n_groups": 8,
    "conv_kernel": 4, "n_routed_experts": 128, "num_experts_per_tok": 6,
    "moe_intermediate_size": 1856, "moe_shared_expert_intermediate_size": 3712,
    "max_position_embeddings": 262144, "torch_dtype": "bfloat16",
    "num_nextn_predict_layers": 1, "mtp_hybrid_override_pattern": "*E",
}  # fmt: skip
"""Nemotron-3 Nano's layers with the MTP block of Nemotron 3.5 Lightning, which has its sizes."""

EXAONE = {
    "model_type": "exaone_moe", "hidden_size": 6144, "intermediate_size": 18432,
    "num_hidden_layers": 48, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128,
    "vocab_size": 153600, "num_experts": 128, "num_experts_per_tok": 8,
    "moe_intermediate_size": 2048, "num_shared_experts": 1, "sliding_window": 128,
    "sliding_window_pattern": 4, "max_position_embeddings": 262144, "torch_dtype": "bfloat16",
}  # fmt: skip
"""K-EXAONE-236B-A23B, huggingface.co/LGAI-EXAONE/K-EXAONE-236B-A23B."""


def gqa(hidden: int, heads: int, kv_heads: int, head_dim: int) -> int:
    return 2 * hidden * heads * head_dim + 2 * hidden * kv_heads * head_dim


def test_step_has_dense_window_blocks_with_heads_of_their_own() -> None:
    model = lk.load_model(STEP)
    assert model.mtp is not None
    h = 4096
    block = gqa(h, 96, 8, 128) + 96 * h + 3 * h * 11264 + 2 * h * h + 128896 * h
    block += 2 * 128 + 5 * h  # q and k norms; two of the layer, enorm, hnorm and the head's
    assert model.mtp.parameter_count == 3 * block
    assert round(block / 1e9, 2) == 0.81  # the model card's head
    assert model.mtp.group.attention.window == 512


def test_hy3_has_a_block_with_experts() -> None:
    model = lk.load_model(HY3)
    assert model.mtp is not None
    h = 4096
    experts = 193 * 3 * h * 1536 + 192 * h + 192
    block = gqa(h, 64, 8, 128) + experts + 2 * h * h + 2 * 128 + 5 * h
    assert model.mtp.parameter_count == block
    assert round(model.parameter_count / 1e9) == 295
    assert round(block / 1e9, 1) == 3.8  # both as the model card says


def test_ernie_has_a_dense_block() -> None:
    model = lk.load_model(ERNIE)
    assert model.mtp is not None
    h = 2560
    assert model.mtp.parameter_count == gqa(h, 20, 4, 128) + 3 * h * 12288 + 2 * h * h + 4 * h
    names = {w.name for w in (*model.mtp.group.weights, *model.mtp.extra)}
    assert "model.mtp_block.{layer}.mlp.up_proj.weight" in names
    assert "model.mtp_linear_proj.{layer}.weight" in names
    assert not any("mtp_not" in note or "not counted" in note for note in model.notes)


def test_nemotron_has_an_attention_and_an_expert_layer() -> None:
    model = lk.load_model(NEMOTRON)
    assert model.mtp is not None
    h = 2688
    experts = 2 * h * (128 * 1856 + 3712) + 128 * h + 128
    block = gqa(h, 32, 2, 128) + experts + 2 * h * h + 5 * h
    assert model.mtp.parameter_count == block
    assert round(block / 1e9, 3) == 1.335  # stated for the checkpoint's mtp tensors
    names = {w.name for w in (*model.mtp.group.weights, *model.mtp.extra)}
    assert {
        "mtp.layers.0.mixer.q_proj.weight",
        "mtp.layers.1.mixer.gate.weight",
        "mtp.layers.0.eh_proj.weight",
        "mtp.layers.1.final_layernorm.weight",
    } <= names


@pytest.mark.parametrize("change", [{"mtp_hybrid_override_pattern": "ME"},
                                    {"num_nextn_predict_layers": 2}])  # fmt: skip
def test_a_nemotron_block_of_another_kind_is_said_not_to_be_counted(change: dict) -> None:
    model = lk.load_model({**NEMOTRON, **change})
    assert model.mtp is None
    assert any("MTP blocks are not counted" in note for note in model.notes)


def test_exaone_has_a_dense_block_that_its_file_does_not_state() -> None:
    model = lk.load_model(EXAONE)
    assert model.mtp is not None
    h = 6144
    block = gqa(h, 64, 8, 128) + 3 * h * 18432 + 2 * h * h + 2 * 128 + 5 * h
    assert model.mtp.parameter_count == block
    assert any("1 MTP block" in note for note in model.notes)
    assert lk.load_model({**EXAONE, "num_nextn_predict_layers": 0}).mtp is None


def test_a_draft_with_a_head_of_its_own_does_not_use_the_models() -> None:
    model = lk.load_model(STEP)
    assert model.mtp is not None
    draft = draft_of_mtp(model)
    assert draft is not None
    heads = [w for w, _ in draft.booked_weights() if w.shape == (128896, 4096)]
    assert [(w.use, w.split, w.account) for w in heads] == [
        ("lookup", "vocab", "vocab"), ("head", "vocab", "dense"),
    ]  # fmt: skip
    assert heads[1].name.endswith("shared_head.output.weight")
    one = model.mtp.parameter_count // 3
    assert draft.parameter_count == one + 128896 * 4096 + 4096  # embedding and final norm
