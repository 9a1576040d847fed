"""Closed forms of scheduling: worked numbers, brute force, and formulas that redo the amounts."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit._explain import evaluate
from ledgerkit.costs import scheduling as s
from ledgerkit.costs.scheduling.lengths import OutputLengths as Lengths
from ledgerkit.errors import DeploymentError, WorkloadError
from ledgerkit.spec.axes import ACCOUNTS, UNITS

KV_8B, POOL = 131_072, 60e9


def llama_paging(lengths=None, **changed):
    given_ = {
        "kv_bytes_per_token": KV_8B, "prompt_tokens": 1000, "max_model_len": 8192,
        "lengths": lengths or Lengths.exponential(500), "block_size": 16, "pool_bytes": POOL,
        "layers": 32,
    }  # fmt: skip
    return s.paged_cache(**given_ | changed)


def some_of_each():
    yield from s.continuous_batching(
        Lengths.lognormal(300, 2), 16, lambda b: 1 + b / 8, 0.01
    ).entries
    yield from s.continuous_batching(Lengths.empirical([5, 9, 200]), 4, lambda _: 1.0).entries
    yield from llama_paging().entries
    yield from s.prefix_hit(
        prompt_tokens=9000, match_tokens=7777, block_size=16, projection_flop_per_token=3e9,
        ffn_flop_per_token=11e9, flop_per_pair=5e5, kv_bytes_per_token=KV_8B, saved_s=0.2,
        lookup_s=1e-3,
    ).entries  # fmt: skip
    yield s.radix_sharing(kv_bytes_per_token=KV_8B, shared_tokens=40, own_tokens=7, requests=9)
    yield from s.chunked_prefill(
        prompt_tokens=10_001, chunk_tokens=512, cached_tokens=17, weight_bytes=15e9,
        kv_bytes_per_token=KV_8B, expand_flop_per_token=2e9, whole_s=0.3, chunk_s=0.02,
    ).entries  # fmt: skip
    yield from s.speculative_decoding(
        acceptance=[0.9, 0.7, 0.5], draft_tokens=3, step_s=0.01, verify_s=0.012, draft_step_s=1e-3,
        reject_s=1e-4, flop_per_token=1e10, draft_resident_bytes=2e9,
        lookahead_bytes_per_token=KV_8B,
    ).entries  # fmt: skip
    yield s.node_limited_routing(
        nodes=8, node_limit=4, experts=256, per_token=8, token_bytes=21_744, tokens=128
    )
    yield s.expert_imbalance(ranks=32, tokens=1024, per_token=8, experts_s=1e-3, skew=1.3)
    yield s.expert_imbalance(ranks=32, tokens=40, per_token=8, experts_s=1e-3, experts=256)
    yield from s.normal_exchange(tokens=64, ranks=16, experts=256, per_token=8, hidden_size=7168)
    yield from s.low_latency_exchange(tokens=64, per_token=8, hidden_size=7168)
    yield s.low_latency_buffers(most_tokens=128, experts=288, hidden_size=7168)
    yield from s.graph_padding(
        sequences=9, sizes=(1, 2, 4, 8, 16), flop_per_token=1e9, step_s=0.01, padded_step_s=0.011,
        kernels=320, host_kernel_s=6e-6, kernel_s=1.5e-6,
    ).entries  # fmt: skip
    for how in ("stream", "in_place"):
        yield from s.expert_offload(
            layers=58, experts=256, per_token=8, expert_bytes=24.8e6, tokens=3, how=how,
            link_bytes_per_s=55e9, host_bytes_per_s=400e9, host_flop_per_s=2e13,
            expert_flop_per_token=7e8, hidden_bytes=14_336, sync_s=1e-5, device_s=4e-3,
        ).entries  # fmt: skip
    yield from s.disaggregation(
        prompt_tokens=8192, cache_bytes=8192 * KV_8B, link_bytes_per_s=50e9, latency_s=1e-4,
        hidden_share=0.5, stall_s=0.1, weight_bytes=16e9,
    )  # fmt: skip
    yield s.pipeline_bubble(stages=4, micro_batches=4, stage_s=0.01)


@pytest.mark.parametrize("entry", list(some_of_each()), ids=lambda e: f"{e.op}-{e.resource}")
def test_an_entry_follows_from_its_formula(entry):
    assert evaluate(entry.expression, entry.values) == pytest.approx(entry.amount, rel=1e-12)
    assert entry.account in ACCOUNTS[entry.ledger]
    assert entry.unit == UNITS[entry.resource]
    assert entry.amount
    assert entry.source


def test_every_mechanism_books_a_cost_as_well_as_a_saving():
    for found in (
        s.continuous_batching(Lengths.exponential(9), 4, lambda _: 1.0, 0.01).entries,
        llama_paging().entries,
        s.speculative_decoding(
            acceptance=0.8, draft_tokens=4, step_s=1, verify_s=1.1, draft_step_s=0.1
        ).entries,
    ):
        assert {entry.amount > 0 for entry in found} == {True, False}


# lengths and batching --------------------------------------------------------------------------


def test_mean_length_of_a_running_request():
    assert Lengths.exponential(500).resident == pytest.approx(500, abs=1)
    assert Lengths.fixed(500).resident == 250.5
    # length-biased, so twice the mean and more where the spread is wide
    assert Lengths.lognormal(500, 2).resident == pytest.approx(1250.5)


@pytest.mark.parametrize(
    ("lengths", "draw"),
    [
        (Lengths.uniform(100), lambda r: r.uniform(0, 200)),
        (Lengths.exponential(100), lambda r: r.expovariate(1 / 100)),
        (Lengths.lognormal(100, 0.7), lambda r: r.lognormvariate(
            math.log(100) - math.log(1.49) / 2, math.sqrt(math.log(1.49)))),
        (Lengths.empirical([3, 40, 60, 400]), lambda r: r.choice([3, 40, 60, 400])),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)  # fmt: skip
def test_busy_slots_of_a_static_batch(lengths, draw):
    r, slots, runs = random.Random(1), 6, 20_000
    steps = [0.0] * slots
    for _ in range(runs):
        ends = sorted(draw(r) for _ in range(slots))
        for i, (before, end) in enumerate(zip([0.0, *ends], ends, strict=False)):
            steps[slots - i - 1] += (end - before) / runs
    found = lengths.busy_steps(slots)
    assert list(found) == pytest.approx(steps, rel=0.05)
    assert sum(b * n for b, n in enumerate(found, 1)) == pytest.approx(slots * lengths.mean)
    assert found.sum() == pytest.approx(lengths.longest(slots))


def test_gain_of_continuous_batching():
    exponential = Lengths.exponential(128)
    assert [
        round(s.continuous_batching(exponential, b).gain, 2) for b in (8, 32, 128)
    ] == [2.72, 4.06, 5.43]  # fmt: skip
    assert s.continuous_batching(Lengths.fixed(128), 32).gain == 1
    assert s.continuous_batching(Lengths.fixed(128), 32).entries == ()
    assert s.continuous_batching(Lengths.uniform(128), 10**4).gain == pytest.approx(2, abs=1e-3)
    # heavy tails: draws of 32 average 7.70 (a million of them, standard error 0.008)
    assert s.continuous_batching(Lengths.lognormal(128, 2), 32).gain == pytest.approx(
        7.70, abs=0.02
    )
    # where steps shorten as slots drain, less is lost; where they cost nothing then, nothing is
    drained = s.continuous_batching(exponential, 32, lambda busy: 10 + busy)
    assert 1 < drained.gain < 4.06
    assert s.continuous_batching(exponential, 32, float).gain == pytest.approx(1)


@given(st.lists(st.integers(1, 500), min_size=1, max_size=40), st.integers(1, 40))
def test_longest_is_between_mean_and_maximum(samples, slots):
    found = Lengths.empirical(samples).longest(slots)
    assert sum(samples) / len(samples) * (1 - 1e-9) <= found <= max(samples) * (1 + 1e-9)


# cache -----------------------------------------------------------------------------------------


def test_pages_hold_more_sequences_than_reservations():
    found = llama_paging()
    assert (found.contiguous_sequences, found.paged_sequences) == (55, 303)
    assert found.paged_use > 0.99
    # between the shares that the vLLM paper measured: 20.4 to 38.2 % of reserved memory in use
    assert 0.15 < found.contiguous_use < 0.382


def test_break_even_of_holding_a_prefix():
    assert s.break_even_reuse_s(28.2e-6, KV_8B, POOL) == pytest.approx(12.9, abs=0.05)
    restored = s.restore_s_per_token(KV_8B, 55e9)
    assert restored == pytest.approx(2.38e-6, rel=0.005)
    assert 28.2e-6 / restored == pytest.approx(12, abs=0.2)


def test_radix_counts_a_shared_prefix_once():
    entry = s.radix_sharing(kv_bytes_per_token=2, shared_tokens=100, own_tokens=10, requests=5)
    assert entry.amount == 2 * (100 + 5 * 10) - 2 * 5 * 110


def test_chunks_read_again_what_came_before():
    found = s.chunked_prefill(
        prompt_tokens=32_768, chunk_tokens=512, weight_bytes=15.01e9, kv_bytes_per_token=KV_8B
    )
    again, weights = (entry.amount for entry in found.entries)
    assert again == pytest.approx(135e9, rel=0.005)
    # one pass of the weights is not an extra
    assert weights + 15.01e9 == pytest.approx(961e9, rel=0.005)
    one = s.chunked_prefill(
        prompt_tokens=512, chunk_tokens=512, weight_bytes=1, kv_bytes_per_token=1
    )
    assert one.entries == ()


def test_mla_expands_its_latents_again_in_each_chunk():
    expand = 61 * 2 * 512 * 128 * (128 + 128)
    found = s.chunked_prefill(
        prompt_tokens=32_768, chunk_tokens=2048, weight_bytes=0, kv_bytes_per_token=0,
        expand_flop_per_token=expand,
    )  # fmt: skip
    once = expand * 32_768
    (again,) = found.entries
    assert once == pytest.approx(67e12, rel=0.005)
    assert again.amount + once == pytest.approx(570e12, rel=0.005)


# speculation -----------------------------------------------------------------------------------


def test_tokens_of_a_verifying_step():
    assert s.tokens_per_step(0.8, 4) == pytest.approx((1 - 0.8**5) / 0.2)
    assert s.tokens_per_step(0.8, 4) == pytest.approx(3.362, abs=5e-4)
    assert [s.tokens_per_step(a, 1) for a in (0.85, 0.9)] == pytest.approx([1.85, 1.9])
    assert s.tokens_per_step(1.0, 3) == 4
    assert s.tokens_per_step(0.5, 0) == 1
    # measured lengths 1.89 (two drafts) and 2.08 (four) need a falling acceptance
    assert s.tokens_per_step([0.62, 0.435], 2) == pytest.approx(1.89, abs=0.005)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_tokens_of_a_step_are_at_least_one_and_at_most_all(rates):
    assert 1 <= s.tokens_per_step(rates, len(rates)) <= len(rates) + 1


def test_time_entries_sum_to_the_change_of_a_token():
    found = s.speculative_decoding(
        acceptance=0.75, draft_tokens=4, step_s=10e-3, verify_s=11e-3, draft_step_s=1.2e-3,
        reject_s=2e-4,
    )  # fmt: skip
    net = math.fsum(entry.amount for entry in found.entries if entry.resource == "time")
    assert 10e-3 + net == pytest.approx(10e-3 / found.speedup)
    # a draft at a tenth of the step, verifying for free: 2.40; without the bonus token 1.69
    free = s.speculative_decoding(
        acceptance=0.8, draft_tokens=4, step_s=1, verify_s=1, draft_step_s=0.1
    )
    assert free.speedup == pytest.approx(2.40, abs=0.005)
    assert (free.tokens_per_step - 1) / 1.4 == pytest.approx(1.69, abs=0.005)


def test_one_mtp_token_gains_what_was_reported():
    # 85 to 90 % accepted and 1.8 times the tokens: the step becomes 3 to 6 % longer
    for rate in (0.85, 0.9):
        found = s.speculative_decoding(
            acceptance=rate, draft_tokens=1, step_s=1, verify_s=1.02, draft_step_s=1 / 61
        )
        assert found.speedup == pytest.approx(1.8, rel=0.05)


def test_verifying_reads_more_experts():
    growth = [s.expert_growth(256, 8, b, 3) for b in (1, 16, 32, 128)]
    assert growth == pytest.approx([3.82, 2.18, 1.54, 1.0], abs=0.02)


def test_crossover():
    assert s.crossover(lambda b: 3 - b / 50, 1000) == 100
    assert s.crossover(lambda _: 1.5, 64) is None
    assert s.crossover(lambda _: 0.9, 64) == 1
    assert s.crossover(lambda b: 2 - b / 63, 63) == 63


# experts, links, devices -----------------------------------------------------------------------


def test_ranks_and_nodes_of_a_token():
    assert s.distinct_nodes(8, 256, 8) == pytest.approx(5.29, abs=0.005)
    limited = s.distinct_nodes(8, 256, 8, 4)
    r, reached = random.Random(3), 0
    for _ in range(20_000):
        reached += len({expert // 32 for expert in r.sample(range(128), 8)})
    assert limited == pytest.approx(reached / 20_000, abs=0.01)
    assert s.distinct_nodes(8, 256, 8, 8) == s.distinct_nodes(8, 256, 8)


def test_fullest_of_many_ranks():
    assert s.fullest_rank(32, 1024, 8) == pytest.approx(1.16, abs=0.005)
    assert s.fullest_rank(1, 1024, 8) == 1
    assert s.fullest_rank(32, 1024, 8, 1.5) == pytest.approx(1.5 * s.fullest_rank(32, 1024, 8))
    r, most = random.Random(5), 0.0
    for _ in range(60):
        loads = [0] * 32
        for _ in range(1024):
            for expert in r.sample(range(256), 8):
                loads[expert // 8] += 1
        most += max(loads) / 256 / 60
    assert s.fullest_rank(32, 1024, 8) == pytest.approx(most, abs=0.04)


def test_the_rank_with_most_experts_hit():
    r, rounds = random.Random(7), 400
    for tokens, abs_ in ((4, 0.35), (32, 0.12), (128, 0.02)):
        most = 0.0
        for _ in range(rounds):
            hit = {expert for _ in range(tokens) for expert in r.sample(range(256), 8)}
            by_rank = [sum(expert // 32 == rank for expert in hit) for rank in range(8)]
            most += max(by_rank) / (len(hit) / 8) / rounds
        assert s.fullest_reads(8, tokens, 8, 256) == pytest.approx(most, abs=abs_)
    assert s.fullest_reads(8, 1e6, 8, 256) == 1
    assert s.fullest_reads(1, 4, 8, 256) == 1


def test_tiles_of_a_grouped_gemm():
    rows = [s.tile_rows(t, 256, 8, 64) for t in (1, 64, 256, 1024)]
    assert rows == pytest.approx([64, 27.8, 8, 2.0], rel=0.02)
    assert s.tile_rows(640, 8, 8, 64) == 1


def test_deepep_messages():
    low = [
        entry.amount for entry in s.low_latency_exchange(tokens=128, per_token=8, hidden_size=7168)
    ]
    assert low == [128 * 8 * 7408, 128 * 8 * 14336]
    # rates that the published latencies of 77 and 114 us amount to
    assert low[0] / 77e-6 == pytest.approx(98e9, rel=0.01)
    assert low[1] / 114e-6 == pytest.approx(127e9, rel=0.015)
    normal = s.normal_exchange(tokens=128, ranks=64, experts=256, per_token=8, hidden_size=7168)
    assert normal[0].amount < low[0]
    buffers = s.low_latency_buffers(most_tokens=128, experts=288, hidden_size=7168)
    assert buffers.amount / 2**30 == pytest.approx(2.0, abs=0.05)


def test_offloaded_experts():
    given_ = {"layers": 58, "experts": 256, "per_token": 8, "expert_bytes": 24.77e6}
    one = s.expert_offload(**given_, tokens=1, how="stream", link_bytes_per_s=55e9)
    assert one.experts_read == pytest.approx(464)
    assert one.seconds == pytest.approx(209e-3, rel=0.005)
    place = s.expert_offload(
        **given_, tokens=1, how="in_place", link_bytes_per_s=55e9, host_bytes_per_s=400e9
    )
    assert place.seconds == pytest.approx(28.7e-3, rel=0.005)
    # many tokens: streaming all experts once beats a host of 20 TFLOP/s from a few thousand on
    many = {**given_, "link_bytes_per_s": 55e9, "host_bytes_per_s": 400e9, "host_flop_per_s": 2e13,
            "expert_flop_per_token": 2 * 8 * 3 * 7168 * 2048}  # fmt: skip
    short = [
        s.expert_offload(**many, tokens=512, how=how).seconds for how in ("stream", "in_place")
    ]
    assert short == pytest.approx([6.7, 1.05], rel=0.02)
    long = [
        s.expert_offload(**many, tokens=8192, how=how).seconds for how in ("stream", "in_place")
    ]
    assert long[0] < long[1]


def test_graph_sizes():
    sizes = (1, 2, 4, 8, 16, 24)
    assert [s.padded(b, sizes) for b in (1, 3, 9, 24, 25)] == [1, 4, 16, 24, 25]
    beyond = s.graph_padding(sequences=25, sizes=sizes, flop_per_token=1e9, kernels=10,
                             host_kernel_s=6e-6)  # fmt: skip
    assert not beyond.captured
    assert beyond.entries == ()


def test_bubble():
    assert s.bubble_share(4, 4) == pytest.approx(0.429, abs=5e-4)
    assert s.bubble_share(1, 3) == 0


# bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda: s.tokens_per_step(1.1, 2),
        lambda: s.tokens_per_step(math.nan, 2),
        lambda: s.tokens_per_step([0.5], 2),
        lambda: s.hit_tokens(11, 10, 16),
        lambda: s.hit_tokens(5, 10, 0),
        lambda: llama_paging(max_model_len=1200),
        lambda: s.chunked_prefill(
            prompt_tokens=4, cached_tokens=4, chunk_tokens=2, weight_bytes=0, kv_bytes_per_token=0
        ),
        lambda: s.fullest_rank(8, 10, 2, skew=0.5),
        lambda: s.expert_growth(8, 9, 1, 1),
        lambda: s.bubble_share(0, 1),
        lambda: s.break_even_reuse_s(-1, 1, 1),
        lambda: Lengths.exponential(0),
    ],
)  # fmt: skip
def test_numbers_out_of_range_are_named(call):
    with pytest.raises(DeploymentError, match="out of range"):
        call()


def test_lengths_that_are_none():
    for samples in ([], [0], [math.inf]):
        with pytest.raises(WorkloadError, match="measured lengths"):
            Lengths.empirical(samples)
