"""Times of decode steps from simulated streams whose step is known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.loadtest._steps import Trace, steady_step


def stream(start, first, step, count, prompt=1000.0, per_piece=1):
    times = tuple(first + step * i for i in range(count))
    return Trace(start, times, prompt, float(count * per_piece))


@given(st.integers(1, 16), st.floats(0.001, 0.5), st.integers(3, 60))
def test_a_clean_burst_gives_its_step(many, step, count):
    found = steady_step([stream(0.0, 1.0, step, count) for _ in range(many)])
    assert found.step_s == pytest.approx(step, rel=1e-9)
    assert (found.concurrency, found.clean) == (many, True)
    assert found.median_s == pytest.approx(step, rel=1e-6)
    assert found.context_tokens == pytest.approx(1000 + count / 2)


def test_prefill_of_others_is_left_out():
    # the second prompt is prefilled while the first decodes, at ten times the step
    slow = tuple(1.0 + 1.0 * i for i in range(5))
    fast = tuple(5.1 + 0.1 * i for i in range(40))
    found = steady_step([Trace(0.0, slow + fast, 100, 45), stream(0.0, 5.0, 0.1, 40)])
    assert found.step_s == pytest.approx(0.1, rel=1e-6)
    assert found.concurrency == 2


def test_a_server_that_queues_shows_what_it_really_runs():
    # four requests, two seats: the second pair starts when the first has ended
    first = [stream(0.0, 1.0, 0.1, 50) for _ in range(2)]
    second = [stream(0.0, 6.0, 0.1, 50) for _ in range(2)]
    found = steady_step(first + second)
    assert found.concurrency == 2
    assert found.step_s == pytest.approx(0.1)


def test_pieces_with_several_tokens_are_counted_per_token():
    found = steady_step([stream(0.0, 1.0, 0.1, 30, per_piece=3)])
    assert found.step_s == pytest.approx(0.1 / 3)


def test_requests_that_never_overlap_are_marked():
    found = steady_step([stream(0.0, 1.0, 0.1, 20), stream(0.0, 1.05, 0.1, 20)])
    assert found.clean
    apart = [stream(0.0, 1.0, 0.01, 20), stream(0.0, 5.0, 0.01, 20)]
    assert steady_step(apart).concurrency == 1
    waiting = [*apart, Trace(0.0, (60.0, 61.0), 10, 2)]
    assert steady_step(waiting) is not None


def test_nothing_to_time():
    assert steady_step([]) is None
    assert steady_step([Trace(0.0, (1.0,), 10, 1)]) is None
