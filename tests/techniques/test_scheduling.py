"""Scheduling techniques: worked values, and what their books must contain."""

from __future__ import annotations

import math

import pytest

import ledgerkit as lk
from ledgerkit._scheduling.steps import verify_s
from ledgerkit.costs.scheduling import speculation
from ledgerkit.errors import TechniqueError
from tests.costs import world

H100 = lk.Hardware(slug="h100", memory_bytes=80_000_000_000, memory_bytes_per_s=3.35e12,
                   peak_flop_per_s={"bf16": 989e12}, scaleup_bytes_per_s=450e9,
                   pcie_bytes_per_s=55e9)  # fmt: skip


def transfer(technique, model="llama-3.1-8b", *, work=None, hardware="h100-sxm-80gb", **options):
    work = work or lk.Workload(prompt_tokens=8192, output_tokens=512, concurrency=16)
    return lk.transfer(technique, model=model, hardware=hardware, workload=work, **options)


def rows(found):
    return {(r["phase"], r["resource"], r["account"]): r for r in found.table.iter_rows(named=True)}


def test_a_prefix_pays_while_it_is_used_again_within_12_9_seconds():
    cached = transfer("prefix_cache", reuse_interval_s=10.0, recompute_s_per_token=28.2e-6,
                      pool_bytes=60e9)  # fmt: skip
    found = cached.break_even("reuse_interval_s", "time", phase="hold")
    assert (found.before, found.after) == ("gain", "loss")
    assert found.crossing == pytest.approx(12.9, abs=0.05)


def test_a_prefix_at_58_percent_of_the_peak_gives_the_same_seconds_per_token():
    cached = transfer("prefix_cache", hardware=H100, pool_bytes=60e9, reuse_interval_s=10.0,
                      efficiencies=world.efficiencies(0.58, 0.8))  # fmt: skip
    saved = -cached.table.filter(phase="hold", account="recompute")["change"].item()
    hit = cached.after.point.workload.cached_tokens
    assert saved / hit == pytest.approx(28.2e-6, rel=0.05)
    found = cached.break_even("reuse_interval_s", "time", phase="hold")
    assert found.crossing == pytest.approx(12.9, rel=0.05)


def test_a_prefix_saves_the_share_of_its_tokens_and_holds_its_cache():
    cached = rows(transfer("prefix_cache"))
    dense = cached["prefill", "compute", "dense"]
    assert 1 - dense["after"] / dense["before"] == pytest.approx(0.875)
    core = cached["prefill", "compute", "core"]
    assert 1 - core["after"] / core["before"] == pytest.approx(0.766, abs=0.001)
    assert cached["hold", "resident", "cache"]["change"] == 131_072 * 7_168


def test_a_radix_tree_holds_a_shared_prefix_once():
    radix = transfer("radix_attention")
    assert rows(radix)["hold", "resident", "cache"]["change"] == -131_072 * 7_168 * 15
    seats = radix.net.filter(name="max_concurrency")
    assert seats["after"].item() > 2 * seats["before"].item()


def test_drafting_yields_3_362_tokens_a_step_and_its_speed_is_the_closed_form():
    found = transfer("speculative_decoding", draft="llama-3.2-1b",
                     work=lk.Workload(prompt_tokens=1024, output_tokens=2))  # fmt: skip
    assert "3.362 tokens" in found.notes[0]
    steps = rows(found)["decode", "steps", "launch"]
    assert steps["before"] / steps["after"] == pytest.approx(3.3616)
    # rejected work: five tokens computed for 3.362 kept
    compute = {key[2]: r for key, r in rows(found).items() if key[:2] == ("decode", "compute")}
    own = math.fsum(r["after"] for account, r in compute.items() if account != "draft")
    assert own <= math.fsum(r["before"] for r in compute.values()) * (1 + 1e-9)


@pytest.fixture(scope="module")
def worked():
    """The example of the cost model: an 8B model, a 1B draft, its efficiencies passed in."""
    return transfer(
        "speculative_decoding", draft="llama-3.2-1b", acceptance=0.75, hardware=H100,
        work=lk.Workload(prompt_tokens=1024, output_tokens=1),
        efficiencies=world.efficiencies(0.7, 0.8, host_step_s=290 * 2e-6),
    )  # fmt: skip


@pytest.mark.parametrize(("sequences", "speedup"), [(1, 1.75), (128, 1.22), (256, 1.01)])
def test_drafting_for_an_8b_model(worked, sequences, speedup):
    # the example counts no activation traffic and no draft kernels: within a tenth
    net = worked.moved("concurrency", sequences).net.filter(name="tpot_s")
    assert net["before"].item() / net["after"].item() == pytest.approx(speedup, rel=0.12)


def test_drafting_stops_paying_near_256_sequences(worked):
    found = worked.break_even("concurrency", "time")
    assert (found.before, found.after) == ("gain", "loss")
    assert 128 < found.first < 320


def test_drafting_needs_some_acceptance():
    found = transfer("speculative_decoding", draft="llama-3.2-1b").break_even("acceptance")
    assert (found.before, found.after) == ("loss", "gain")
    assert 0 < found.crossing < 0.8


def test_mtp_books_its_block_and_1_85_tokens_a_step():
    found = transfer("mtp", "deepseek-v3", hardware="h200-sxm-141gb")
    assert "1.850 tokens" in found.notes[0]
    held = rows(found)["hold", "resident", "draft"]
    # the block's own tensors, and one more layer of latents; embedding and head are stored once
    block = lk.load_model("deepseek-v3").mtp
    stored = math.fsum(w.bytes for w in (*block.group.weights, *block.extra))
    assert 11.6e9 < stored < 12.1e9
    assert held["after"] == pytest.approx(stored + 1_152 * 8_704 * 16, rel=1e-12)
    net = found.net.filter(name="tokens_per_s")
    assert 1 < net["after"].item() / net["before"].item() < 1.85
    assert speculation.tokens_per_step(0.9, 1) == 1.9
    with pytest.raises(TechniqueError, match="no MTP"):
        transfer("mtp")


def test_static_batches_of_exponential_answers_run_four_times_as_many_steps():
    work = lk.Workload(prompt_tokens=1024, output_tokens=512, concurrency=32)
    static = transfer("continuous_batching", action="remove", work=work)
    table = static.table.filter(phase="decode", resource="steps")
    assert table["after"].sum() / table["before"].sum() == pytest.approx(4.06, abs=0.01)
    equal = transfer("continuous_batching", action="remove", lengths="fixed")
    # nothing is idle: only deciding before each step is saved
    assert equal.net.filter(name="tpot_s")["change"].item() < 0


def test_contiguous_caches_hold_55_sequences():
    work = lk.Workload(prompt_tokens=1000, output_tokens=500, concurrency=8)
    contiguous = transfer("paged_attention", action="remove", work=work, reserved_tokens=8192)
    row = contiguous.table.filter(phase="hold", account="fragmentation").row(0, named=True)
    assert row["after"] == (8192 - 1500) * 131_072 * 8
    seats = contiguous.net.filter(name="max_concurrency")
    room = contiguous.before.ledger.free_bytes + 8 * 1504 * 131_072
    assert seats["after"].item() == room // (8192 * 131_072)


def test_chunks_read_weights_and_cache_again_and_shorten_the_wait():
    work = lk.Workload(prompt_tokens=32_768, output_tokens=64, concurrency=8)
    chunks = transfer("chunked_prefill", work=work, chunk_tokens=512,
                      deployment=lk.Deployment(max_num_batched_tokens=32_768))  # fmt: skip
    found = rows(chunks)
    # 64 chunks: half of the prompt again for each pair of chunks
    assert found["prefill", "read", "cache"]["change"] == pytest.approx(135e9, rel=0.01)
    weights = sum(found["prefill", "read", a]["change"] for a in ("projections", "dense"))
    assert weights == pytest.approx(63 * (2_684_354_560 + 11_274_289_152), rel=0.01)
    assert found["decode", "time", "queue"]["change"] < -0.5
    # waiting for others is no part of an unloaded token
    assert chunks.net.filter(name="tpot_s")["change"].item() == 0


def test_offloaded_experts_take_209_ms_over_the_link_and_29_in_host_memory():
    options = {"hardware": H100, "deployment": lk.Deployment(weights="int4_g128"),
               "work": lk.Workload(prompt_tokens=64, output_tokens=2)}  # fmt: skip
    stream = transfer("expert_offload", "deepseek-v3", link_bytes_per_s=55e9, **options)
    offload = rows(stream)["decode", "time", "offload"]["after"]
    # 11.49 GB a token at 4.5 bits; here the scales of 128 elements are 16 bits: 4.125
    assert offload == pytest.approx(0.209 * 4.125 / 4.5, rel=0.01)
    place = transfer("expert_offload", "deepseek-v3", how="in_place", link_bytes_per_s=55e9,
                     host_bytes_per_s=400e9, **options)  # fmt: skip
    assert rows(place)["decode", "time", "offload"]["after"] == pytest.approx(
        0.0287 * 4.125 / 4.5, rel=0.06
    )
    found = stream.break_even("link_bytes_per_s", "time", between=(1e9, 1e15))
    assert (found.before, found.after) == ("loss", "gain")


def test_disaggregation_moves_the_cache_of_a_prompt():
    found = rows(transfer("pd_disaggregation", link_bytes_per_s=50e9))
    assert found["prefill", "communicate", "pp"]["after"] == 8192 * 131_072
    assert found["prefill", "time", "pp"]["after"] == pytest.approx(21.5e-3, rel=0.01)
    assert found["hold", "resident", "pp"]["after_replica"] == pytest.approx(16.06e9, rel=0.01)


def test_gathering_sends_more_than_deepep_dispatches():
    gathered = transfer("deepep", "deepseek-v3", hardware="h200-sxm-141gb", action="remove",
                        deployment=lk.Deployment(dp_attention=8, ep=8))  # fmt: skip
    sent = rows(gathered)["decode", "communicate", "ep"]
    # 2 · 7/8 of 2 B for all tokens against 3 B for each of 5.29 distinct ranks of a rank's own
    assert sent["after"] / sent["before"] == pytest.approx(2 * 7 / 8 * 2 * 8 / (5.29 * 3), rel=0.01)
    with pytest.raises(TechniqueError, match="not sent"):
        transfer("deepep", "deepseek-v3", action="remove", hardware="h200-sxm-141gb")


@pytest.mark.parametrize("technique", ["continuous_batching", "paged_attention", "deepep"])
def test_what_the_ledger_prices_already_is_refused(technique):
    with pytest.raises(TechniqueError, match="already"):
        transfer(technique, "deepseek-v3", hardware="h200-sxm-141gb",
                 deployment=lk.Deployment(dp_attention=8, ep=8))  # fmt: skip


@pytest.mark.parametrize(
    ("model", "layout"),
    [
        ("llama-3.1-8b", {}),
        ("deepseek-v3", {"tp": 8}),
        ("deepseek-v3", {"dp_attention": 8, "ep": 8}),
    ],
)
def test_a_verifying_step_is_that_of_the_cost_table(model, layout):
    found = transfer("speculative_decoding", model, hardware="h200-sxm-141gb", deployment=layout,
                     acceptance=0.6, draft_tokens=3)  # fmt: skip
    expected = speculation.tokens_per_step(0.6, 3)
    work = found.start.point.workload
    seconds = verify_s(found.start.point.table(), work.decode_context, work.concurrency, 4)
    assert found.after.net["tpot_s"] == pytest.approx(seconds / expected, rel=1e-9)
    compute = found.table.filter(phase="decode", resource="compute")
    old, new = (compute[f"{side}_replica"].sum() for side in ("before", "after"))
    # four tokens are computed for every expected one; a later one sees a few tokens more
    assert new / old == pytest.approx(4 / expected, rel=1e-3)
    held = found.table.filter(phase="hold")
    assert held["change"].abs().max() == 0


@pytest.mark.parametrize(("sequences", "growth"), [(1, 3.82), (16, 2.18), (32, 1.54), (512, 1.0)])
def test_verifying_four_tokens_reads_more_experts(sequences, growth):
    work = lk.Workload(prompt_tokens=256, output_tokens=2, concurrency=sequences)
    found = transfer("speculative_decoding", "deepseek-v3", hardware="h200-sxm-141gb", work=work,
                     deployment=lk.Deployment(tp=8), acceptance=0.5, draft_tokens=3)  # fmt: skip
    read = rows(found)["decode", "read", "routed_experts"]
    step = read["after"] * speculation.tokens_per_step(0.5, 3)
    assert step / read["before"] == pytest.approx(growth, abs=0.005)


def test_hybrids_hit_at_stored_states_only():
    found = transfer("prefix_cache", "qwen3-next-80b-a3b-instruct", hardware="h200-sxm-141gb",
                     deployment=lk.Deployment(tp=2))  # fmt: skip
    # a page of attention as large as a state: 1,056 tokens
    assert found.after.point.workload.cached_tokens == 7_168 // 1_056 * 1_056


def test_a_draft_on_pages_of_latents_keeps_ordinary_keys():
    stack = transfer(["mla", {"technique": "kv_quantization", "kv_dtype": "fp8_ds_mla"},
                      {"technique": "speculative_decoding", "draft": "llama-3.2-1b"}])  # fmt: skip
    held = rows(stack)["hold", "resident", "draft"]["after"]
    draft = lk.load_model("llama-3.2-1b")
    assert held == pytest.approx(draft.weight_bytes + 16 * draft.cache_bytes(8_704, "fp8"))
    with pytest.raises(TechniqueError, match="pipeline"):
        transfer("speculative_decoding", deployment=lk.Deployment(pp=2))
