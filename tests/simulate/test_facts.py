"""What mechanisms gained on real servers, in direction and size; the benchmark has the reasons."""

from __future__ import annotations

import pytest

from benchmarks import simulate_agreement, simulate_facts


def test_contiguous_caches_waste_most_of_what_they_hold():
    contiguous, pages = simulate_facts.stored_share()
    assert 0.15 < contiguous < 0.43
    assert pages > 0.96


def test_continuous_batching_is_several_times_as_fast():
    # between the published ratios over a static engine whose steps are as fast
    assert 2 < simulate_facts.static_batches() < 5.8


def test_prefix_hits_shorten_the_first_token_by_less_than_the_prompt():
    assert 1.3 < simulate_facts.prefix_hits() < 1 / (1 - 0.74)


def test_one_drafted_token_gains_less_than_it_yields():
    assert 1.2 < simulate_facts.one_draft() < 1.87


def test_packed_experts_gain_and_gain_more_in_decode():
    prefill, decode = (simulate_facts.balanced_experts(phase) for phase in ("prefill", "decode"))
    assert 1.2 < prefill < decode
    # without skew there is nothing to pack
    plain, packed = simulate_facts.fullest_over_mean(32, 288, 0.0, draws=2)
    assert (plain, packed) == pytest.approx((1.0, 1.0))
    assert simulate_facts.balanced_experts("decode", 0.25) < decode


def test_the_closed_form_and_the_simulator_agree():
    for point in simulate_agreement.POINTS[:4]:
        found = simulate_agreement.compare(*point)
        assert abs(found["tpot_run"] / found["tpot_closed"] - 1) < 0.06, point
        assert abs(found["rate_run"] / found["rate_closed"] - 1) < 0.08, point
