"""Inputs of a loaded point: each moves the result the way it must, or is refused."""

from __future__ import annotations

from itertools import pairwise

import pytest

import ledgerkit as lk
from ledgerkit.errors import CapacityError, DeploymentError, WorkloadError

MODEL, DEVICE, LAYOUT = "llama-3.1-70b", "h100-sxm-80gb", lk.Deployment(tp=4)
POINT = lk.Workload(prompt_tokens=4096, output_tokens=512, concurrency=16)


def _state(point=POINT, layout=LAYOUT, **how):
    return lk.steady_state(MODEL, DEVICE, layout, point, **how)


def test_more_clients_are_slower_for_each_and_faster_for_all():
    states = [_state(POINT.model_copy(update={"concurrency": n})) for n in (1, 2, 4, 8, 16, 32, 64)]
    for few, many in pairwise(states):
        assert many.tpot_s > few.tpot_s
        assert many.ttft_s > few.ttft_s
        assert many.tokens_per_s > few.tokens_per_s


def test_tokens_per_s_is_littles_law():
    state = _state()
    cycle = state.ttft_s + 511 * state.tpot_s
    assert state.e2e_s == pytest.approx(cycle)
    assert state.tokens_per_s == pytest.approx(16 * 512 / cycle)
    assert state.tokens_per_s_low < state.tokens_per_s < state.tokens_per_s_high


def test_clients_beyond_the_seats_queue_and_are_told():
    free, short = _state(seats=16), _state(seats=8)
    assert short.running == 8
    assert short.binds == "seats"
    assert short.ttft_s > free.ttft_s + 0.9 * 512 * short.tpot_s
    assert any("16 clients share 8 seats" in note for note in short.notes)
    assert not any("clients share" in note for note in free.notes)


def test_the_engine_limit_on_sequences_binds():
    state = _state(layout=LAYOUT.model_copy(update={"max_num_seqs": 4}))
    assert (state.seats, state.binds) == (4, "max_num_seqs")


def test_seats_follow_from_memory_and_the_cache_dtype():
    long = lk.Workload(prompt_tokens=100_000, output_tokens=1000, concurrency=1)
    wide = _state(long).seats
    narrow = _state(long, LAYOUT.model_copy(update={"kv_dtype": "fp8"})).seats
    assert 1.9 * wide <= narrow <= 2.1 * wide + 1
    # 131,072 B per token and device at tp 4, bf16: 80 layers x 2 heads x 2 x 128 x 2 B
    holds = 0.92 * 84_942_979_072 - 2e9 - 141.1e9 / 4
    assert wide == pytest.approx(holds / (81_920 * 100_500), abs=1)


def test_cached_tokens_and_hit_rate_agree():
    hits = _state(POINT.model_copy(update={"cached_tokens": 2048}))
    rate = _state(prefix_hit_rate=0.5)
    assert rate.ttft_s == hits.ttft_s < _state().ttft_s
    assert rate.tpot_s == hits.tpot_s < _state().tpot_s
    with pytest.raises(WorkloadError, match="twice"):
        _state(POINT.model_copy(update={"cached_tokens": 2048}), prefix_hit_rate=0.5)
    with pytest.raises(WorkloadError, match="prefix_hit_rate must be"):
        _state(prefix_hit_rate=1.5)


def test_mixed_or_separate_prefill_follows_the_engine_and_can_be_stated():
    mixed, apart = _state(), _state(layout=LAYOUT.model_copy(update={"engine": "sglang"}))
    stated = dict(_state(mixed_prefill=False).inputs.select("name", "origin").iter_rows())
    assert stated["mixed_prefill"] == "given"
    origins = dict(apart.inputs.select("name", "origin").iter_rows())
    assert "SGLang" in origins["mixed_prefill"]
    values = {s: dict(s.inputs.select("name", "value").iter_rows()) for s in (mixed, apart)}
    assert values[mixed]["mixed_prefill"] == "True"
    assert values[apart]["mixed_prefill"] == "False"


def test_every_input_of_the_result_is_stated():
    names = set(_state().inputs["name"])
    assert names >= {
        "arrival", "kv_dtype", "max_num_batched_tokens", "mixed_prefill", "max_num_seqs",
        "memory_fraction", "cached_tokens", "tokens_per_step", "draft_tokens", "length_variation",
        "wait_share", "request_path_s",
    }  # fmt: skip


def test_a_smaller_chunk_budget_costs_time():
    small = _state(layout=LAYOUT.model_copy(update={"max_num_batched_tokens": 512}))
    assert small.ttft_s > _state().ttft_s


def test_equal_lengths_stay_in_step_where_prefill_comes_first():
    layout = LAYOUT.model_copy(update={"engine": "sglang"})
    drawn, equal = _state(layout=layout), _state(layout=layout, length_variation=0)
    assert equal.ttft_s > drawn.ttft_s
    assert equal.tpot_s < drawn.tpot_s
    # under an engine that mixes they part all the same
    assert _state(length_variation=0).ttft_s == _state().ttft_s


def test_speculation_yields_tokens_and_costs_verification():
    plain, spec = _state(), _state(tokens_per_step=2.0, draft_tokens=3)
    assert plain.tpot_s / 2 < spec.tpot_s < plain.tpot_s
    assert spec.tpot_band.factor > plain.tpot_band.factor
    assert "speculation" in spec.tpot_band.reasons[0]
    draft = spec.entries.filter(account="draft")
    assert draft["amount_device"].sum() > 0
    with pytest.raises(WorkloadError, match="at most 1 per step"):
        _state(tokens_per_step=1.5)


def test_a_thin_poisson_stream_is_one_client():
    thin = _state(arrival="poisson", arrival_rate_per_s=1e-6)
    alone = _state(POINT.model_copy(update={"concurrency": 1}))
    assert thin.tpot_s == pytest.approx(alone.tpot_s, rel=1e-3)
    assert thin.ttft_s == pytest.approx(alone.ttft_s, rel=1e-3)
    assert thin.running == pytest.approx(1, abs=1e-3)


def test_poisson_runs_what_littles_law_says():
    state = _state(arrival="poisson", arrival_rate_per_s=1.2)
    assert state.running == pytest.approx(1 + 1.2 * 512 * state.tpot_s, rel=1e-9)
    assert state.tokens_per_s == 1.2 * 512
    slower = _state(arrival="poisson", arrival_rate_per_s=2.1)
    assert slower.ttft_s > state.ttft_s
    assert slower.tpot_s > state.tpot_s
    # capacity has a band: this stream is beyond its low end
    assert any("beyond capacity" in note for note in slower.notes)
    assert not any("beyond capacity" in note for note in state.notes)


def test_a_stream_beyond_capacity_is_refused_with_the_rate_that_is_not():
    with pytest.raises(WorkloadError, match="above capacity") as caught:
        _state(arrival="poisson", arrival_rate_per_s=100.0)
    most = float(caught.value.allowed.rsplit(" ", 1)[-1])
    assert 2 < most < 100
    # the closed loop that fills every seat does not do better
    full = _state(POINT.model_copy(update={"concurrency": _state().seats}), wait_share=0)
    assert most == pytest.approx(full.requests_per_s, rel=0.3)


@pytest.mark.parametrize(
    "how",
    [
        {"prefill_workers": 2},
        {"decode_workers": 2},
        {"prefill": lk.Deployment(tp=2)},
        {"prefill_workers": 0, "decode_workers": 1},
    ],
)
def test_half_a_disaggregation_is_refused(how):
    with pytest.raises(DeploymentError, match="number of workers"):
        _state(**how)


def test_disaggregated_decode_meets_no_prefill():
    apart = _state(prefill_workers=2, decode_workers=2)
    assert apart.interference_s == 0
    assert apart.devices == 16
    assert apart.tpot_s < _state().tpot_s
    assert apart.running == pytest.approx(
        16 * 512 * apart.tpot_s / (16 / apart.requests_per_s) / 2, rel=1e-6
    )


def test_too_few_prefill_workers_bind_and_shrink_the_decode_batch():
    heavy = lk.Workload(prompt_tokens=30000, output_tokens=64, concurrency=64)
    few, many = (_state(heavy, prefill_workers=n, decode_workers=1) for n in (1, 64))
    assert few.binds == "prefill_pool"
    assert many.binds != "prefill_pool"
    assert few.running < many.running
    assert few.ttft_s > 5 * many.ttft_s


def test_disaggregated_streams_are_refused_beyond_either_pool():
    for workers in ((1, 8), (8, 1)):
        with pytest.raises(WorkloadError, match="above capacity"):
            _state(
                prefill_workers=workers[0], decode_workers=workers[1], arrival="poisson",
                arrival_rate_per_s=200.0,
            )  # fmt: skip
    state = _state(prefill_workers=2, decode_workers=2, arrival="poisson", arrival_rate_per_s=2.0)
    assert state.tokens_per_s == 2.0 * 512


def test_weights_without_room_are_refused_unless_seats_are_known():
    with pytest.raises(CapacityError, match="not one sequence"):
        lk.steady_state("llama-3.1-70b", "h100-sxm-80gb", None, POINT)
    assert lk.steady_state("llama-3.1-70b", "h100-sxm-80gb", None, POINT, seats=16).running == 16


@pytest.mark.parametrize(
    ("how", "match"),
    [
        ({"arrival": "poisson"}, "arrival_rate_per_s"),
        ({"arrival_rate_per_s": 1.0}, "closed loop has no"),
        ({"arrival": "burst"}, "arrival"),
        ({"batch": 4}, "no field 'batch'"),
        ({"tokens_per_step": 0.5}, "tokens_per_step"),
    ],
)
def test_unknown_or_contradicting_inputs_are_named(how, match):
    with pytest.raises(WorkloadError, match=match):
        _state(**how)


def test_a_workload_is_needed_and_may_be_a_dict():
    with pytest.raises(WorkloadError, match="needs a workload"):
        lk.steady_state(MODEL, DEVICE, LAYOUT)
    given = {"prompt_tokens": 4096, "output_tokens": 512, "concurrency": 16}
    assert lk.steady_state(MODEL, DEVICE, {"tp": 4}, given).tpot_s == _state().tpot_s
