"""Questions asked in public whose answer is arithmetic, to the quoted precision."""

from __future__ import annotations

import csv

import pytest

import ledgerkit as lk

GIB = 2**30


@pytest.fixture(scope="module")
def questions(shared):
    with (shared / "facts" / "questions.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {row["source"]: row["right_explanation_arithmetic"] for row in rows}


def work(**fields):
    return lk.Workload(**({"output_tokens": 1} | fields))


def test_keys_and_values_of_qwen_2_5_7b(questions):
    assert "57,344 B; *3072=0.176 GB" in questions["vllm-project/vllm#22291"]
    model = lk.load_model("qwen2.5-7b")
    assert model.cache_bytes(1) == 57_344
    assert model.cache_bytes(3072) / 1e9 == pytest.approx(0.176, abs=0.0005)


def test_a_further_token_of_gpt_oss_120b(questions):
    assert "36,864" in questions["alvarobartt/hf-mem#60"]
    model = lk.load_model("gpt-oss-120b")
    assert model.kv_bytes_per_token() == 36_864
    # without windows, all 36 layers grow: what the log line counts
    full = lk.transfer("sliding_window", model=model, hardware="h100-sxm-80gb", action="remove",
                       workload=work(prompt_tokens=1024))  # fmt: skip
    assert full.after.point.model.kv_bytes_per_token() == 36 * 2_048


def test_gpt_oss_120b_at_131072_tokens(questions):
    assert "18*131072*2048 B=4.5 GiB" in questions["vllm-project/vllm#27508"]
    model = lk.load_model("gpt-oss-120b")
    assert model.kv_bytes_per_token() * 131_072 / GIB == pytest.approx(4.5, abs=0.005)


def test_stages_hold_the_cache_of_their_own_layers(questions):
    text = questions["vllm-project/vllm#34076"]
    assert "48 layers*2048 B*262144=24 GiB" in text
    model = lk.load_model("qwen3-30b-a3b")  # 48 layers of 2,048 B
    assert model.num_hidden_layers == 48
    assert model.cache_bytes(262_144) / GIB == 24.0
    split = lk.transfer("pipeline_parallelism", model=model, hardware="h100-sxm-80gb",
                        workload=work(prompt_tokens=32_768))  # fmt: skip
    held = split.table.filter(phase="hold", account="cache").row(0, named=True)
    assert held["after"] == held["before"] / 2
    assert held["after_replica"] == held["before_replica"]


def test_a_gpu_of_qwen3_235b_in_tensor_parallel(questions):
    assert "48,128 B/tok/GPU" in questions["vllm-project/vllm#21348"]
    split = lk.transfer("tensor_parallelism", model="qwen3-235b-a22b-fp8", tp=4,
                        hardware="h100-sxm-80gb", workload=work(prompt_tokens=8191))  # fmt: skip
    held = split.table.filter(phase="hold", account="cache").row(0, named=True)
    assert held["after"] / 8192 == 48_128


def test_expanded_keys_and_latents_of_deepseek_v3(questions):
    text = questions["gpustack/gguf-parser-go#8"]
    assert "305 GiB" in text
    assert "4.29 GiB" in text
    mla = lk.transfer("mla", model="deepseek-v3", hardware="h200-sxm-141gb", action="remove",
                      workload=work(prompt_tokens=65_535))  # fmt: skip
    held = mla.table.filter(phase="hold", account="cache").row(0, named=True)
    assert held["before"] / GIB == pytest.approx(4.29, abs=0.005)
    assert held["after"] / GIB == pytest.approx(305, abs=0.5)


def test_eight_ranks_hold_eight_latents(questions):
    assert "TP8 stores 8 copies; DP8 stores 1" in questions["vllm-project/vllm#51454"]
    layout = lk.Deployment(tp=8, ep=8)
    turned = lk.transfer("dp_attention", model="deepseek-v3", hardware="h200-sxm-141gb",
                         deployment=layout,
                         workload=work(prompt_tokens=8191, concurrency=8))  # fmt: skip
    held = turned.table.filter(phase="hold", account="cache").row(0, named=True)
    assert held["before"] == 8 * held["after"]
    seats = turned.net.filter(name="max_concurrency")
    # eight times as many, less what the attention weights on every rank take
    room = [
        side.ledger.free_bytes + amount
        for side, amount in ((turned.before, held["before"]), (turned.after, held["after"]))
    ]
    assert room[1] < room[0]
    ratio = seats["after"].item() / seats["before"].item()
    assert ratio == pytest.approx(8 * room[1] / room[0], rel=0.02)


def test_contexts_of_llama_3_1_8b(questions):
    assert "32768*131072 B=4.0 GiB" in questions["ollama/ollama#6817"]
    assert lk.load_model("llama-3.1-8b").cache_bytes(32_768) / GIB == 4.0


def test_a_pool_of_tokens_is_so_many_requests(questions):
    assert "8.15 full requests" in questions["sgl-project/sglang#29575"]
    assert pytest.approx(8.15, abs=0.005) == 2_086_558 / 256_000
    # the same division, by the ledger: sequences of equal length that fill what is free
    books = lk.ledger("llama-3.1-8b", "h100-sxm-80gb", {"block_size": 1},
                      work(prompt_tokens=8191))  # fmt: skip
    pool = books.free_bytes + books.model.cache_bytes(8192)
    assert books.max_concurrency == int(pool // books.model.cache_bytes(8192))


def test_all_experts_of_a_step_or_those_of_a_token(questions):
    assert "reads all experts" in questions["tinygrad/tinygrad#17316"]
    moe = lk.transfer("moe", model="qwen3.5-35b-a3b", hardware="h100-sxm-80gb", action="remove",
                      against="equal_total", workload=work(prompt_tokens=64))  # fmt: skip
    read = [side.total("decode", "read") / 1e9 for side in (moe.before, moe.after)]
    # 35 billion parameters in bf16 at 320 GB/s are the 260 ms a token that were seen
    assert round(read[1], -1) == 70
    model = lk.load_model("qwen3.5-35b-a3b")
    embedding = model.vocab_size * model.hidden_size
    assert read[1] == pytest.approx(2 * (model.parameter_count - embedding) / 1e9, rel=0.01)
    assert read[0] < read[1] / 8
