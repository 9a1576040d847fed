"""Recounts by transformers on the meta device, from configs drawn within each family's rules."""

from __future__ import annotations

import importlib.util

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledgerkit.errors import LedgerError
from ledgerkit.readers.config import read_config
from ledgerkit.readers.families import FAMILIES
from ledgerkit.readers.wrappers import CLASS_SIZES
from tests.oracle.drawings import DRAWINGS

pytestmark = pytest.mark.oracle

NO_CLASS = {
    "baichuan": "remote code; checked against the published total",
    "bailing_moe": "remote code; checked against published totals",
    "bailing_moe_v2": "another name of bailing_moe",
    "chatglm": "remote code; checked against the published total",
    "internlm2": "remote code; checked against the published total",
    "qwen2_5_omni_text": "built through its thinker class below",
    "qwen3_omni_moe_text": "built through its thinker class below",
    "glm4v_moe_text": "built through its multimodal class below",
    "glm4v_text": "built through its multimodal class below",
    "glm_ocr_text": "built through its multimodal class below",
    "hunyuan_vl_text": "built through its multimodal class below",
    "paddleocr_vl_text": "built through its multimodal class below",
    "molmo2_text": "built through its multimodal class below",
    "phi4_multimodal": "built through its multimodal class below",
    "qwen2_5_vl_text": "built through its multimodal class below",
    "qwen2_vl_text": "built through its multimodal class below",
    "gemma4_unified_text": "reads like gemma4_text; its class takes no experts and no tables",
    "kimi_k2": "remote code; reads like deepseek_v3",
    "mimo": "remote code; checked against the published checkpoint total",
    "mimo_v2": "remote code; checked against the published checkpoint headers",
    "minicpm": "remote code; checked against the published total",
    "minimax": "its class keeps computed decay buffers: compared without them below",
    "minimax_m1": "remote code; reads like minimax",
    "minimax_m3": "remote code; reads like minimax_m3_vl_text",
    "minimax_text_01": "remote code; reads like minimax",
    "mistral4": "no causal class in the library; built through its text class below",
    "mistral_large4_text": "no causal class of its own; built through its text class below",
    "nemotron-nas": "remote code; checked by hand counts",
    "qwen3_vl_moe_text": "no causal class of its own; reads like qwen3_moe",
    "qwen3_vl_text": "no causal class of its own; reads like qwen3",
    "step3_text": "remote code; checked by hand counts",
    "step3p5": "built through its multimodal class below",
    "step3p7_text": "built through its multimodal class below",
}
"""Model types that the oracle cannot build from a text config, and what checks them instead."""

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("transformers") is None:
    pytest.skip("the oracle needs torch and transformers", allow_module_level=True)


def build(config):
    """A model without memory for its weights."""
    import torch
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


def count(model, skip=()):
    """Parameters, tied ones once, and stored buffers."""
    total = sum(parameter.numel() for parameter in model.parameters())
    for module in model.modules():
        for name, buffer in module.named_buffers(recurse=False):
            stored = name not in module._non_persistent_buffers_set
            if stored and name not in skip:
                total += buffer.numel()
    return total


def oracle_config(model_type, fields):
    from transformers import AutoConfig

    return AutoConfig.for_model(model_type, **fields)


def test_every_family_has_an_oracle_or_a_reason():
    assert set(FAMILIES) == set(DRAWINGS) | set(NO_CLASS)
    assert not set(DRAWINGS) & set(NO_CLASS)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model_type", sorted(DRAWINGS))
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_counts_are_equal_on_drawn_configs(model_type, data):
    fields = data.draw(st.composite(DRAWINGS[model_type])())
    expected = count(build(oracle_config(model_type, fields)))
    ours = read_config({"model_type": model_type, **fields})
    assert ours.parameter_count == expected, fields


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model_type", sorted(DRAWINGS))
@settings(max_examples=3, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_counts_are_equal_on_configs_as_the_library_saves_them(model_type, data):
    """Its own ``config.json`` has more and other fields than the drawn one."""
    fields = data.draw(st.composite(DRAWINGS[model_type])())
    config = oracle_config(model_type, fields)
    saved = {**config.to_dict(), "architectures": None}
    try:
        ours = read_config(saved)
    except LedgerError as error:
        pytest.fail(f"{error}\n{saved}")
    assert ours.parameter_count == count(build(config)), saved


@pytest.mark.parametrize("model_type", sorted(CLASS_SIZES))
def test_sizes_that_a_text_part_leaves_out_are_those_of_its_class(model_type):
    config = oracle_config(model_type, {})
    assert CLASS_SIZES[model_type] == {name: getattr(config, name)
                                       for name in CLASS_SIZES[model_type]}  # fmt: skip


def text_class(module, name):
    import importlib

    return getattr(importlib.import_module(f"transformers.models.{module}"), name)


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_mistral4_through_its_text_class(data):
    import torch

    fields = data.draw(st.composite(DRAWINGS["deepseek_v3"])())
    config = oracle_config("mistral4", fields)
    with torch.device("meta"):
        model = text_class("mistral4", "Mistral4ForCausalLM")(config)
    ours = read_config({"model_type": "mistral4", **fields})
    assert ours.parameter_count == count(model), fields


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_mistral_large4_through_its_text_class(data):
    import torch

    fields = data.draw(st.composite(DRAWINGS["glm_moe_dsa"])())
    del fields["q_lora_rank"]
    if data.draw(st.booleans()):
        layers = fields["num_hidden_layers"]
        del fields["indexer_types"]
        rotary = [data.draw(st.integers(0, 1)) for _ in range(layers)]
        fields |= {"index_topk_freq": 2, "index_skip_topk_offset": 1, "no_rope_layers": rotary}
    config = oracle_config("mistral_large4_text", fields)
    with torch.device("meta"):
        body = text_class("mistral_large4", "MistralLarge4TextModel")(config)
    head = 0 if fields["tie_word_embeddings"] else fields["vocab_size"] * fields["hidden_size"]
    for stated in (fields, {**config.to_dict(), "architectures": None}):
        ours = read_config({"model_type": "mistral_large4_text", **stated})
        assert ours.parameter_count == count(body) + head, fields


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", ["qwen3_vl", "qwen3_vl_moe"])
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_vision_language_text_models_through_their_text_class(module, data):
    import torch

    model_type = f"{module}_text"
    drawing = DRAWINGS["qwen3_moe" if module.endswith("moe") else "llama"]
    fields = data.draw(st.composite(drawing)())
    fields.pop("mlp_bias", None)
    config = oracle_config(model_type, fields | {"pad_token_id": 0})
    name = "Qwen3VLMoeTextModel" if module.endswith("moe") else "Qwen3VLTextModel"
    with torch.device("meta"):
        body = text_class(module, name)(config)
    head = 0 if fields["tie_word_embeddings"] else fields["vocab_size"] * fields["hidden_size"]
    ours = read_config({"model_type": model_type, **fields})
    assert ours.parameter_count == count(body) + head, fields


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_minimax_without_its_decay_buffers(data):
    fields = data.draw(st.composite(DRAWINGS["mixtral"])())
    fields.pop("sliding_window")
    layers = fields["num_hidden_layers"]
    fields["layer_types"] = [
        data.draw(st.sampled_from(["full_attention", "linear_attention"])) for _ in range(layers)
    ]
    model = build(oracle_config("minimax", fields))
    decay = ("slope_rate", "query_decay", "key_decay", "diagonal_decay")
    ours = read_config({"model_type": "minimax", **fields})
    assert ours.parameter_count == count(model, skip=decay), fields


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_step3p7_through_its_multimodal_class(data):
    import torch

    fields = data.draw(st.composite(DRAWINGS["hy_v3"])())
    experts = fields.pop("num_experts")
    fields.pop("num_shared_experts")
    layers = fields["num_hidden_layers"]
    fields |= {
        "n_routed_experts": experts,
        "num_local_experts": experts,
        "share_expert_dim": 40,
        "sliding_window": 8,
        "mlp_bias": False,
        "pad_token_id": 0,
        "num_sliding_attention_heads": fields["num_attention_heads"] * 2,
        "layer_types": [
            data.draw(st.sampled_from(["full_attention", "sliding_attention"]))
            for _ in range(layers)
        ],
    }
    config = text_class("step3p7", "Step3p7TextConfig")(**fields)
    with torch.device("meta"):
        body = text_class("step3p7", "Step3p7TextModel")(config)
    head = 0 if fields["tie_word_embeddings"] else fields["vocab_size"] * fields["hidden_size"]
    ours = read_config({"model_type": "step3p5", **fields})
    assert ours.parameter_count == count(body) + head, fields


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=3, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_phi4_multimodal_without_its_towers(data):
    fields = data.draw(st.composite(DRAWINGS["phi3"])())
    config = oracle_config("phi4_multimodal", fields)
    model = build(config)
    towers = count(model.model.embed_tokens_extend)
    ours = read_config({**config.to_dict(), "architectures": None})
    assert ours.parameter_count == count(model) - towers, fields


WRAPPED = {
    "aria": ("aria_text", "aria_text"),
    "cohere2_vision": ("cohere2", "cohere2"),
    "deepseek_vl": ("llama", "llama"),
    "deepseek_vl_hybrid": ("llama", "llama"),
    "exaone4_5": ("exaone4", "exaone4"),
    "fast_vlm": ("qwen2", "qwen2"),
    "gemma3": ("gemma3_text", "gemma3_text"),
    "glm46v": ("glm4v_text", "helium"),
    "glm4v": ("glm4v_text", "helium"),
    "glm4v_moe": ("glm4v_moe_text", "glm4_moe"),
    "glm_ocr": ("glm_ocr_text", "helium"),
    "hunyuan_vl": ("hunyuan_vl_text", "hunyuan_v1_dense"),
    "idefics2": ("mistral", "mistral"),
    "idefics3": ("llama", "llama"),
    "internvl": ("qwen2", "qwen2"),
    "internvl of another": ("qwen3", "qwen3"),
    "lfm2_vl": ("lfm2", "lfm2"),
    "llava": ("llama", "llama"),
    "llava of another": ("mistral", "mistral"),
    "llava_next": ("mistral", "mistral"),
    "llava_onevision": ("qwen2", "qwen2"),
    "mistral3": ("mistral", "mistral"),
    "molmo2": ("molmo2_text", "hunyuan_v1_dense"),
    "nemotron_h_omni": ("nemotron_h", "nemotron_h"),
    "paddleocr_vl": ("paddleocr_vl_text", "ernie4_5"),
    "perception_lm": ("llama", "llama"),
    "video_llama_3": ("qwen2", "qwen2"),
    "qwen2_5_omni_thinker": ("qwen2_5_omni_text", "qwen2"),
    "qwen3_omni_moe_thinker": ("qwen3_omni_moe_text", "qwen3_moe"),
    "qwen2_5_vl": ("qwen2_5_vl_text", "qwen2"),
    "qwen2_vl": ("qwen2_vl_text", "qwen2"),
    "smolvlm": ("llama", "llama"),
    "video_llava": ("llama", "llama"),
    "vipllava": ("llama", "llama"),
    "voxtral": ("llama", "llama"),
}
"""Multimodal model type -> its text model, and the drawing that fits it."""
NO_TOWERS = {"fast_vlm", "nemotron_h_omni", "perception_lm"}
"""Their towers need a further package, or a head is inside: the text model is built by itself."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("wrapper", sorted(WRAPPED))
@settings(max_examples=2, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_text_models_of_multimodal_configs_as_the_library_saves_them(wrapper, data):
    import torch
    from transformers import AutoModel

    text_type, drawing = WRAPPED[wrapper]
    fields = data.draw(st.composite(DRAWINGS[drawing])())
    fields["hidden_size"] = 64
    if text_type.startswith(("glm4v", "glm_ocr")):
        fields = {name: value for name, value in fields.items()
                  if name not in ("attention_bias", "mlp_bias", "use_qk_norm")}  # fmt: skip
        fields["head_dim"] = 64 // fields["num_attention_heads"]
    if text_type == "molmo2_text":
        fields |= {"tie_word_embeddings": False,
                   "qk_norm_type": data.draw(st.sampled_from(["olmo", "qwen3"])),
                   "additional_vocab_size": data.draw(st.sampled_from([0, 8]))}  # fmt: skip
    text = {"model_type": text_type, **fields}
    tied = fields["tie_word_embeddings"]
    config = oracle_config(wrapper.split()[0], {"text_config": text, "tie_word_embeddings": tied})
    built = config.text_config if wrapper in NO_TOWERS else config
    with torch.device("meta"):
        model = AutoModel.from_config(built)
    names = ("text_model", "language_model")
    body = next((getattr(model, name) for name in names if hasattr(model, name)), model)
    head = 0 if tied else fields["vocab_size"] * 64
    ours = read_config({**config.to_dict(), "architectures": None})
    assert ours.parameter_count == count(body) + head, config
