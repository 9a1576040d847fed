"""Break-evens of the cost model, solved numerically from two ledgers."""

from __future__ import annotations

import math

import pytest

import ledgerkit as lk

CONTEXT = ("core", "cache", "indexer", "state")


def transfer(technique, model, *, work=None, deployment=None, hardware="h200-sxm-141gb", **options):
    work = work or lk.Workload(prompt_tokens=8192, output_tokens=1)
    return lk.transfer(
        technique, model=model, hardware=hardware, deployment=deployment, workload=work, **options
    )


@pytest.fixture(scope="module")
def sparse():
    """DeepSeek-V3.2 against the same model without its indexers."""
    layout = lk.Deployment(kv_dtype="fp8_ds_mla")
    return -transfer("dsa", "deepseek-v3.2", deployment=layout, action="remove")


def test_sparse_attention_pays_in_prefill_from_16350_tokens(sparse):
    assert sparse.break_even("context", "compute", CONTEXT, phase="prefill").first == 16_350


def test_sparse_attention_pays_in_decode_from_2178_tokens_by_flop_and_2564_by_bytes(sparse):
    assert sparse.break_even("context", "compute", CONTEXT).first == 2_178
    assert sparse.break_even("context", "read", CONTEXT).first == 2_564
    # with the projections of the indexer
    assert sparse.break_even("context", "compute", CONTEXT, weights=True).first == 2_284


def test_sparse_attention_at_128k(sparse):
    at = sparse.moved("context", 131_072)
    flop, read = (
        [side.total("decode", resource, frozenset(CONTEXT), weights=False)
         for side in (at.before, at.after)]
        for resource in ("compute", "read")
    )  # fmt: skip
    assert flop[0] / flop[1] == pytest.approx(13.3, abs=0.05)
    assert read[0] / read[1] == pytest.approx(4.6, abs=0.05)
    held = [side.total("hold", "resident", frozenset(CONTEXT), weights=False)
            for side in (at.before, at.after)]  # fmt: skip
    assert held[1] / held[0] - 1 == pytest.approx(0.201, abs=0.0005)


def test_mla_expands_from_171_query_tokens_on():
    absorbed = transfer(
        "mla_absorption", "deepseek-v3",
        deployment=lk.Deployment(max_num_batched_tokens=32_768),
        work=lk.Workload(prompt_tokens=131_584, output_tokens=1, cached_tokens=131_072),
    )  # fmt: skip
    found = absorbed.break_even("query_tokens", "compute", phase="prefill")
    assert (found.before, found.after, found.first) == ("gain", "loss", 171)
    heads, rank, nope, rope, value = 128, 512, 128, 64, 128
    limit = rank * (nope + value) / ((2 * rank + rope) - (nope + rope + value))
    assert limit == pytest.approx(170.7, abs=0.05)
    assert found.crossing == pytest.approx(limit, rel=2e-3)
    assert heads  # cancels


def test_linear_layers_save_memory_from_1048_tokens_on():
    linear = -transfer("hybrid_linear", "qwen3-next-80b-a3b-instruct", action="remove")
    found = linear.break_even("context", "resident", CONTEXT)
    assert (found.before, found.after) == ("loss", "gain")
    assert found.crossing == 1_048
    # the state does not grow, so the crossing is where one full layer holds as much
    assert found.crossing == 2_146_304 / 2_048


def test_mla_keeps_71_times_fewer_elements_and_pays_3_4_times_the_flop():
    mla = -transfer("mla", "deepseek-v3", action="remove")
    rows = {(r["phase"], r["resource"], r["account"]): r for r in mla.table.iter_rows(named=True)}
    cache = rows["hold", "resident", "cache"]
    assert cache["before"] / cache["after"] == pytest.approx(128 * (192 + 128) / 576)
    core = rows["decode", "compute", "core"]
    assert core["after"] / core["before"] == pytest.approx(278_528 / 81_920)
    # full k and v projections in place of kv_a and kv_b
    layers, hidden = 61, 7_168
    new = layers * 128 * (192 + 128) * hidden
    old = layers * (576 * hidden + 512 * 128 * 256 + 512)
    model = lk.load_model("deepseek-v3").parameter_count
    assert mla.before.point.model.parameter_count - model == new - old


def test_nsa_touches_11_6_times_fewer_tokens_at_64k():
    model = lk.load_model("llama-3.1-8b")
    nsa = transfer("nsa", model, work=lk.Workload(prompt_tokens=65_536, output_tokens=1))
    read = [side.total("decode", "read", frozenset(CONTEXT), weights=False)
            for side in (nsa.before, nsa.after)]  # fmt: skip
    touched = 65_536 / 16 + 16 * 64 + 512
    assert read[0] / read[1] == pytest.approx(65_536 / touched, rel=1e-9)
    assert read[0] / read[1] == pytest.approx(11.6, abs=0.05)
    held = [side.total("hold", "resident", frozenset(CONTEXT), weights=False)
            for side in (nsa.before, nsa.after)]  # fmt: skip
    assert held[1] / held[0] == pytest.approx(1 + 1 / 16, rel=1e-4)


def test_fp8_cache_of_mla_is_656_bytes_a_token():
    work = lk.Workload(prompt_tokens=8_000, output_tokens=192)
    fp8 = transfer("kv_quantization", "deepseek-v3", work=work)
    row = fp8.table.filter(phase="hold", account="cache").row(0, named=True)
    assert row["before"] == 61 * 1_152 * 8_192
    assert row["after"] == 61 * 656 * 8_192


def test_mla_under_tensor_parallelism_is_copied_and_dp_attention_removes_the_copies():
    work = lk.Workload(prompt_tokens=8_000, output_tokens=192, concurrency=8)
    dp = transfer("dp_attention", "deepseek-v3", deployment=lk.Deployment(tp=8, ep=8), work=work)
    row = dp.table.filter(phase="hold", ledger="scheduling", account="tp").row(0, named=True)
    # seven copies of the latent of every token go, and the whole projections come
    latents = 7 * 61 * 1_152 * 8_192 * 8
    assert row["before_replica"] >= latents
    cache = dp.table.filter(phase="hold", account="cache").row(0, named=True)
    assert cache["after"] == cache["before"] / 8
    assert cache["after_replica"] == cache["before_replica"]
    assert dp.debits.filter(account="ep").height


def test_kimi_dense_at_equal_active_parameters():
    moe = -transfer("moe", "kimi-k2.6", deployment=lk.Deployment(tp=8), action="remove")
    dense, sparse = moe.before.point.model, moe.after.point.model
    router = 60 * 384 * 7_168 + 60 * 384
    assert sparse.active_parameter_count - dense.active_parameter_count == router
    assert dense.parameter_count < sparse.parameter_count / 20
    rows = {(r["phase"], r["resource"], r["account"]): r for r in moe.table.iter_rows(named=True)}
    assert rows["hold", "resident", "routed_experts"]["side"] == "debit"
    assert rows["hold", "resident", "dense"]["side"] == "credit"
    equal = -transfer("moe", "kimi-k2.6", deployment=lk.Deployment(tp=8), action="remove",
                      against="equal_total")  # fmt: skip
    total = rows["decode", "compute", "routed_experts"]
    assert equal.total("decode", "compute")[0] > 10 * total["after"]


def test_gemma_without_its_window_keeps_everything():
    work = lk.Workload(prompt_tokens=131_072, output_tokens=1)
    window = -transfer("sliding_window", "gemma-4-26b-a4b", work=work, action="remove")
    row = window.table.filter(phase="hold", account="cache").row(0, named=True)
    local, wide = 25 * 8 * 512 * 2, 5 * 2 * 1024 * 2
    assert row["before"] == (local + wide) * 131_073
    assert row["after"] == local * 1_024 + wide * 131_073


def test_cross_layer_sharing_stores_less_and_reads_as_much():
    shared = -transfer("kv_sharing", "gemma-3n-e4b-it", action="remove",
                       work=lk.Workload(prompt_tokens=16_384, output_tokens=1))  # fmt: skip
    rows = {
        (r["phase"], r["resource"], r["account"]): r for r in shared.table.iter_rows(named=True)
    }
    assert rows["decode", "read", "cache"]["change"] == 0
    held = rows["hold", "resident", "cache"]
    # 16 of 28 window layers and 4 of 7 full ones store; the full ones hold 32 times the window
    assert held["after"] / held["before"] == pytest.approx((16 * 512 + 4 * 16_385)
                                                           / (28 * 512 + 7 * 16_385))  # fmt: skip


def test_a_gate_at_equal_parameters_is_two_thirds_as_wide():
    gate = -transfer("gated_ffn", "llama-3.1-8b", action="remove")
    plain = gate.before.point.model.groups[0].ffn
    assert plain.intermediate_size == 14_336 * 3 // 2
    assert plain.matrices == 2
    assert gate.before.point.model.parameter_count == gate.after.point.model.parameter_count


def test_grouped_heads_divide_cache_and_projections():
    gqa = -transfer("gqa", "llama-3.1-8b", action="remove")
    held = gqa.table.filter(phase="hold", account="cache").row(0, named=True)
    assert held["before"] == 4 * held["after"]
    added = gqa.before.point.model.parameter_count - gqa.after.point.model.parameter_count
    assert added == 32 * 2 * (32 - 8) * 128 * 4_096
    mqa = transfer("mqa", "llama-3.1-8b")
    held = mqa.table.filter(phase="hold", account="cache").row(0, named=True)
    assert held["before"] == 8 * held["after"]
    mha = transfer("mha", "deepseek-v3")
    assert mha.after.point.model.parameter_count == (
        transfer("mla", "deepseek-v3", action="remove").after.point.model.parameter_count
    )
    assert math.isclose(mha.net.filter(name="tpot_s")["change"].item(), (
        transfer("mla", "deepseek-v3", action="remove").net.filter(name="tpot_s")["change"].item()
    ))  # fmt: skip
