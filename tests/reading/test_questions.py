"""Questions that people asked in public, as far as they are arithmetic, answered by the toolkit."""

from __future__ import annotations

import pytest

import ledgerkit as lk
from ledgerkit._readings.misreadings import active_bytes
from ledgerkit._scheduling.inputs import Inputs
from ledgerkit.spec.cache import layer_cache_bytes

GIB, MIB = 2**30, 2**20
WORK = lk.Workload(prompt_tokens=4096, output_tokens=16, concurrency=8)


def test_weights_in_int8_do_not_make_the_cache_int8():
    """vllm-project/vllm#22291: not 1.53 MB per token; 0.16 GB were measured for 3,072."""
    model = lk.load_model("qwen2.5-7b")
    assert model.kv_bytes_per_token() == 57_344
    assert model.cache_bytes(3072) == pytest.approx(0.16e9, rel=0.11)


def test_two_numbers_of_bytes_per_token():
    """alvarobartt/hf-mem#60: 36,864 B grow without end, 73,728 while the windows fill."""
    model = lk.load_model("gpt-oss-120b")
    assert model.kv_bytes_per_token() == 36_864
    assert model.cache_bytes(1) == 73_728
    # the engine divides its pool by the second
    assert 5.38 * GIB / model.cache_bytes(1) == pytest.approx(78_384, rel=1e-3)


def test_the_cache_of_the_longest_context():
    """vllm-project/vllm#27508: 4.54 GiB needed for 131,072 tokens, 4.50 of them without windows."""
    model = lk.load_model("gpt-oss-120b")
    grown = model.kv_bytes_per_token() * 131_072
    assert grown / GIB == 4.5
    # windows reserve 127 cached tokens and a step of 1,024 more
    windows = (model.cache_bytes(1) - model.kv_bytes_per_token()) * (127 + 1024)
    assert (grown + windows) / GIB == pytest.approx(4.54, abs=0.005)


def test_a_stage_needs_the_cache_of_its_layers():
    """vllm-project/vllm#34076: 24 GiB in all; 8 and 16 on stages of 16 and 32 layers."""
    model = lk.load_model("qwen3-30b-a3b")
    whole = model.cache_bytes(262_144)
    (group,) = {type(g.attention): g for g in model.groups}.values()
    layer = layer_cache_bytes(group.attention, 262_144)
    assert (whole / GIB, 16 * layer / GIB, 32 * layer / GIB) == (24, 8, 16)


def test_one_model_two_engines_same_bytes_per_token():
    """vllm-project/vllm#21348: both hold 48,128 B per token and device, of different pools."""
    books = lk.ledger("qwen3-235b-a22b-fp8", "h100-sxm-80gb", lk.Deployment(tp=4), WORK)
    per_token = Inputs(books._table, WORK).kv_bytes_per_token
    assert per_token == 48_128
    assert 178_880 * per_token / GIB == pytest.approx(8.11, rel=0.015)
    assert 367_404 * per_token / GIB == pytest.approx(16.46, rel=1e-3)


def test_why_capacity_rose_tenfold():
    """vllm-project/vllm#43308: every layer had the page of the largest; then windows got their own.

    The ratio of the two rates is 12; the windows' own 839 MB per sequence make it ten.
    """
    model = lk.load_model("gemma-4-31b-it")
    largest = max(layer_cache_bytes(group.attention, 1) for group in model.groups)
    assert largest * model.num_hidden_layers == 983_040
    assert 983_040 / model.kv_bytes_per_token() == 12


def test_tensor_parallel_ranks_copy_the_latent():
    """vllm-project/vllm#51454: eight copies under tp=8, one under attention data parallelism."""
    cache = {}
    for layout in (lk.Deployment(tp=8), lk.Deployment(dp_attention=8, ep=8)):
        books = lk.ledger("deepseek-v3", "h200-sxm-141gb", layout, WORK)
        cache[layout.tp] = sum(
            e.amount_device for e in books.resident_entries() if e.account == "cache"
        )
    assert cache[8] / cache[1] == 8


def test_latents_and_what_they_expand_to():
    """gpustack/gguf-parser-go#8: 4.29 GiB of latents at 65,536 tokens, 305 GiB expanded."""
    model = lk.load_model("deepseek-v3")
    assert model.cache_bytes(65_536, "fp16") / GIB == pytest.approx(4.29, abs=0.005)
    expanded = lk.transfer(
        "mla", model=model, hardware="h200-sxm-141gb", deployment=lk.Deployment(tp=8),
        workload=WORK, action="remove",
    ).after.point.model  # fmt: skip
    assert expanded.cache_bytes(65_536, "fp16") / GIB == pytest.approx(305, abs=0.5)


def test_a_cache_in_32_bits_is_twice_as_large():
    """abetlen/llama-cpp-python#66: 1,560 MiB instead of 780."""
    model = lk.load_model(
        {"model_type": "llama", "hidden_size": 6656, "intermediate_size": 17920,
         "num_hidden_layers": 60, "num_attention_heads": 52, "num_key_value_heads": 52,
         "vocab_size": 32000, "max_position_embeddings": 2048, "torch_dtype": "float16"}
    )  # fmt: skip
    assert model.cache_bytes(512, "fp32") == 1560 * MIB
    assert model.cache_bytes(512, "fp16") == 780 * MIB


def test_a_context_of_32k_takes_four_gib():
    """ollama/ollama#6817: the default had been 2,048, so that 32K meant more and not less."""
    model = lk.load_model("llama-3.1-8b")
    assert model.cache_bytes(32_768) == 4 * GIB
    assert model.cache_bytes(2048) == 0.25 * GIB


def test_reading_all_experts_is_an_implementation():
    """tinygrad/tinygrad#17316: 83 GB per token read where one token needs a tenth."""
    model = lk.load_model("qwen3.5-35b-a3b")
    assert model.weight_bytes == pytest.approx(70e9, rel=0.02)
    assert active_bytes(model) < model.weight_bytes / 10
    books = lk.ledger(
        model, "h200-sxm-141gb", workload=lk.Workload(prompt_tokens=64, output_tokens=2)
    )
    assert books.total("decode", "read") < 8e9
