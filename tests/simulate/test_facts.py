"""What mechanisms gained on real servers, in direction and size; the benchmark has the reasons."""

from __future__ import annotations

from benchmarks import simulate_agreement, simulate_facts


def test_contiguous_caches_waste_most_of_what_they_hold():
    contiguous, pages = simulate_facts.stored_share()
    assert 0.15 < contiguous < 0.43
    assert pages > 0.96


def test_continuous_batching_is_several_times_as_fast():
    assert 3 < simulate_facts.static_batches() < 23


def test_prefix_hits_shorten_the_first_token_by_less_than_the_prompt():
    assert 1.3 < simulate_facts.prefix_hits() < 1 / (1 - 0.74)


def test_one_drafted_token_gains_less_than_it_yields():
    assert 1.2 < simulate_facts.one_draft() < 1.87


def test_the_closed_form_and_the_simulator_agree():
    for point in simulate_agreement.POINTS[:4]:
        found = simulate_agreement.compare(*point)
        assert abs(found["tpot_run"] / found["tpot_closed"] - 1) < 0.06, point
        assert abs(found["rate_run"] / found["rate_closed"] - 1) < 0.08, point
