"""Cache and state elements recounted from the tensors that tiny random models really keep."""

from __future__ import annotations

import importlib.util

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledgerkit.readers.config import read_config
from ledgerkit.spec.attention import NoAttention, StateAttention
from tests.oracle.drawings import DRAWINGS
from tests.oracle.test_recount import oracle_config

pytestmark = pytest.mark.oracle

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("transformers") is None:
    pytest.skip("the oracle needs torch and transformers", allow_module_level=True)

TOKENS = 40
NOT_RUN = {"deepseek_v4": "its compressor keeps partial windows: see test_cache_elements"}


def runnable(model_type, fields):
    """Steer a drawn config around faults of the library's forward pass."""
    fields = {**fields, "max_position_embeddings": 128}
    match model_type:
        case "dbrx" | "mpt":
            del fields["max_position_embeddings"]
        case "gpt2" | "gptj" | "codegen" | "gpt_bigcode":
            del fields["max_position_embeddings"]
            fields["n_positions"] = 64
        case "falcon":  # other layouts fail to reshape or cache repeated heads
            fields |= {"new_decoder_architecture": False, "multi_query": True, "num_kv_heads": 1,
                       "num_ln_in_parallel_attn": None}  # fmt: skip
        case "gemma4_text":  # shared layers need the per-layer inputs
            fields["hidden_size_per_layer_input"] = 8
        case "nemotron_h":  # a cache of states alone has no length
            fields["hybrid_override_pattern"] = "*" + fields["hybrid_override_pattern"]
        case "kimi_linear":
            layers = fields["num_hidden_layers"]
            linear = fields["linear_attn_config"]
            fields["linear_attn_config"] = {
                **linear,
                "full_attn_layers": [1],
                "kda_layers": list(range(2, layers + 1)),
            }
        case (
            "lfm2"
            | "lfm2_moe"
            | "lfm3"
            | "granitemoehybrid"
            | "qwen3_5_text"
            | "qwen3_5_moe_text"
            | "qwen3_next"
            | "bailing_hybrid"
        ):
            rest = "conv" if model_type == "lfm3" else "linear_attention"
            kinds = fields.get("layer_types") or [rest] * fields["num_hidden_layers"]
            fields["layer_types"] = ["full_attention", *kinds[1:]]
        case "bamba":
            fields["attn_layer_indices"] = [0]
        case "jamba":
            fields |= {"attn_layer_period": 2, "attn_layer_offset": 0}
    return fields


def kept_elements(layer):
    """Elements of every floating-point tensor that one layer of the cache holds."""
    import torch

    total = 0
    for value in vars(layer).values():
        held = value.values() if isinstance(value, dict) else [value]
        total += sum(
            tensor.numel()
            for tensor in held
            if isinstance(tensor, torch.Tensor) and tensor.dtype.is_floating_point
        )
    return total


def predicted(attention):
    """Elements after ``TOKENS`` tokens; the library keeps window - 1 of them."""
    if isinstance(attention, NoAttention):
        return 0
    if isinstance(attention, StateAttention):
        return attention.state_elements + attention.conv_elements("transformers")
    kept = TOKENS if attention.limit is None else min(TOKENS, attention.limit - 1)
    indexer = attention.indexer
    keys = 0 if indexer is None else TOKENS * indexer.elements_per_token
    return kept * attention.elements_per_token + keys


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model_type", sorted(set(DRAWINGS) - set(NOT_RUN)))
@settings(max_examples=2, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_cache_tensors_of_a_forward_pass(model_type, data):
    import torch
    from transformers import AutoModelForCausalLM

    fields = runnable(model_type, data.draw(st.composite(DRAWINGS[model_type])()))
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(oracle_config(model_type, fields)).eval()
    with torch.no_grad():
        result = model(torch.ones(1, TOKENS, dtype=torch.long), use_cache=True)
    measured = [kept_elements(layer) for layer in result.past_key_values.layers]
    ours = read_config({"model_type": model_type, **fields})
    expected = [0] * ours.num_hidden_layers
    for group in ours.groups:
        for index in group.layers:
            expected[index] = predicted(group.attention)
    assert measured == expected, fields
