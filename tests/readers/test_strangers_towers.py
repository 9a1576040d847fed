"""Text parts of multimodal models: tensors, sizes and what the towers add to the file."""

from __future__ import annotations

from typing import Any

import pytest

import ledgerkit as lk
from ledgerkit.errors import UnsupportedArchitectureError
from tests.readers.test_strangers import NANO_9B

MISTRAL_7B = 7_241_732_096
"""Elements of the published headers of Mistral-7B-v0.1, with 32,000 words."""
IDEFICS2 = {
    "model_type": "idefics2", "image_token_id": 32001, "tie_word_embeddings": False,
    "perceiver_config": {"model_type": "idefics2", "resampler_depth": 3},
    "text_config": {"model_type": "mistral", "max_position_embeddings": 32768,
                    "num_key_value_heads": 8, "sliding_window": None, "vocab_size": 32003},
    "vision_config": {"model_type": "idefics2"},
}  # fmt: skip
OCR = {
    "model_type": "glm_ocr_text", "vocab_size": 59392, "hidden_size": 1536, "head_dim": 128,
    "intermediate_size": 4608, "num_hidden_layers": 16, "num_attention_heads": 16,
    "num_key_value_heads": 8, "max_position_embeddings": 131072, "attention_bias": False,
}  # fmt: skip


def wrapped(model_type: str, text: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model_type": model_type, "text_config": text, "vision_config": {}, **more}


def test_idefics2_is_mistral_with_three_more_words() -> None:
    model = lk.load_model(IDEFICS2)
    assert model.parameter_count == MISTRAL_7B + 3 * 2 * 4096
    assert model.kv_bytes_per_token() == 32 * 2 * 8 * 128 * 2


def test_glm_ocr_by_hand() -> None:
    model = lk.load_model(wrapped("glm_ocr", OCR, tie_word_embeddings=False))
    attention = 2 * 1536 * 2048 + 2 * 1536 * 1024
    assert model.parameter_count == (
        2 * 59392 * 1536 + 1536 + 16 * (attention + 3 * 1536 * 4608 + 4 * 1536)
    )


def test_the_mtp_block_of_glm_ocr_is_said_to_be_left_out() -> None:
    stated = wrapped("glm_ocr", OCR | {"num_nextn_predict_layers": 1})
    assert "GLM-OCR" in str(lk.read_config_report(stated))


@pytest.mark.parametrize("model_type", [
    "deepseek_vl", "deepseek_vl_hybrid", "fast_vlm", "perception_lm", "video_llama_3",
])  # fmt: skip
def test_a_tower_changes_nothing_in_the_text_model(model_type: str) -> None:
    text = {"model_type": "qwen2", "vocab_size": 151936, "hidden_size": 896,
            "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
            "num_key_value_heads": 2, "tie_word_embeddings": True}  # fmt: skip
    found = lk.load_model(wrapped(model_type, text, tie_word_embeddings=True))
    assert found.parameter_count == 494_032_768  # as published for Qwen2-0.5B
    assert found.kv_bytes_per_token() == 24 * 2 * 2 * 64 * 2


def test_aria_by_hand() -> None:
    text = {"model_type": "aria_text", "hidden_size": 2560, "intermediate_size": 1664,
            "num_hidden_layers": 28, "num_attention_heads": 20, "num_key_value_heads": 20,
            "moe_num_experts": 64, "moe_topk": 6, "moe_num_shared_experts": 2,
            "vocab_size": 100352, "max_position_embeddings": 65536}  # fmt: skip
    model = lk.load_model(wrapped("aria", text, projector_patch_to_query_dict={"1225": 128}))
    outer = 2 * 100352 * 2560 + 2560 + 28 * (4 * 2560**2 + 2 * 2560 + 64 * 2560)
    expert = 3 * 2560 * 1664
    assert model.parameter_count == outer + 28 * 66 * expert
    looked_up = 100352 * 2560  # a token reads one row of the embedding
    assert model.active_parameter_count == outer - looked_up + 28 * 8 * expert


def test_the_text_model_of_nemotron_omni_under_both_names() -> None:
    text = NANO_9B
    plain = lk.load_model(text)
    for key in ("text_config", "llm_config"):
        config = {"model_type": "nemotron_h_omni", key: text, "vision_config": {},
                  "sound_config": {}, "projector_hidden_size": 20480}  # fmt: skip
        model = lk.load_model(config)
        assert model.parameter_count == plain.parameter_count
        changed = lk.load_model(config | {"_replace": {"vocab_size": 131073}})
        assert changed.parameter_count == plain.parameter_count + 2 * 4480


MOLMO_2 = {
    "model_type": "molmo2_text", "hidden_size": 4096, "intermediate_size": 12288,
    "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
    "vocab_size": 151936, "additional_vocab_size": 128, "qkv_bias": False, "use_qk_norm": True,
    "qk_norm_type": "qwen3", "norm_after": False, "max_position_embeddings": 36864,
}  # fmt: skip


def test_molmo_2_is_qwen3_with_further_words_that_its_head_does_not_know() -> None:
    model = lk.load_model(wrapped("molmo2", MOLMO_2, adapter_config={}))
    assert model.parameter_count == 8_190_735_360 + 128 * 4096  # as published for Qwen3-8B
    names = {weight.name for group in model.groups for weight in group.weights}
    assert {name.rpartition("blocks.")[0] for name in names} == {"model.transformer."}


def test_a_tied_head_of_molmo_2_is_refused() -> None:
    config = wrapped("molmo2", MOLMO_2 | {"tie_word_embeddings": True})
    with pytest.raises(UnsupportedArchitectureError, match="head of its own"):
        lk.load_model(config)


def test_phi4_multimodal_is_phi4_mini() -> None:
    config = {"model_type": "phi4_multimodal", "hidden_size": 3072, "intermediate_size": 8192,
              "num_hidden_layers": 32, "num_attention_heads": 24, "num_key_value_heads": 8,
              "vocab_size": 200064, "max_position_embeddings": 131072, "sliding_window": 262144,
              "tie_word_embeddings": True, "vision_config": {}, "audio_config": {}}  # fmt: skip
    assert lk.load_model(config).parameter_count == 3_836_021_760  # as published for Phi-4-mini


@pytest.mark.parametrize(("model_type", "match"), [
    ("falcon_h1", "side by side"), ("zamba2", "share"), ("jetmoe", "query heads"),
    ("longcat_flash", "compute nothing"), ("diffllama", "twice"), ("doge", "mask"),
])  # fmt: skip
def test_a_layer_that_cannot_be_expressed_is_refused_by_its_reason(
    model_type: str, match: str
) -> None:
    with pytest.raises(UnsupportedArchitectureError, match=match):
        lk.load_model({"model_type": model_type, "hidden_size": 64})
