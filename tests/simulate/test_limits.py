"""What a run does not simulate is refused or told; nothing of it is silent."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import ledgerkit as lk
from ledgerkit._simulate import notice
from ledgerkit._sweep.progress import Display
from ledgerkit.errors import CapacityError, WorkloadError

MODEL, HARDWARE = "llama-3.1-8b", "h100-sxm-80gb"


def frame(times, prompt=64, output=8):
    n = len(times)
    return pl.DataFrame(
        {"arrival_s": times, "prompt_tokens": [prompt] * n, "output_tokens": [output] * n}
    )


def test_times_that_the_clock_cannot_count_are_refused():
    """What is far from the first request: 64 bits of picoseconds end after 106 days."""
    with pytest.raises(WorkloadError, match="later than the clock") as caught:
        lk.simulate(MODEL, HARDWARE, arrivals=frame([0.0, 1.78e9]))
    assert "a part of the trace" in str(caught.value)
    since_1970 = lk.simulate(MODEL, HARDWARE, arrivals=frame([1.78e9, 1.78e9 + 1]))
    assert 1.0 < since_1970.wall_s < 2.0, "time counts from the first request"
    loop = lk.Arrivals.closed_loop(1, requests=2, prompt_tokens=8, output_tokens=2, think_s=5e6)
    with pytest.raises(WorkloadError, match="later than the clock"):
        lk.simulate(MODEL, HARDWARE, arrivals=loop)
    far = lk.simulate(MODEL, HARDWARE, arrivals=frame([0.0, 3.9e6]))
    assert far.wall_s == pytest.approx(3.9e6, rel=1e-6)


def test_a_run_that_outlasts_the_clock_ends_with_an_error():
    """Fifty pauses of a month each: every one is allowed, their sum is not."""
    loop = lk.Arrivals.closed_loop(1, requests=50, prompt_tokens=8, output_tokens=2, think_s=2.6e6)
    with pytest.raises(WorkloadError, match="longer than its clock"):
        lk.simulate(MODEL, HARDWARE, arrivals=loop)


def test_a_trace_above_capacity_is_run_and_told():
    """5,000 requests in ten seconds: what was answered is near the capacity of a stream."""
    fast = lk.simulate(MODEL, HARDWARE, arrivals=frame(np.arange(5000) / 500.0, 1024, 128))
    told = [note for note in fast.notes if "unanswered when the last one came" in note]
    assert len(told) == 1
    stream = lk.Arrivals.poisson(10.0, requests=5000, prompt_tokens=1024, output_tokens=128)
    most = lk.simulate(MODEL, HARDWARE, arrivals=stream).capacity_per_s
    assert fast.requests_per_s == pytest.approx(most, rel=0.1)
    assert "500 requests/s came" in told[0]
    calm = lk.simulate(MODEL, HARDWARE, arrivals=frame(np.arange(500) / 10.0, 1024, 128))
    assert not any("unanswered" in note for note in calm.notes)


def test_experts_in_host_memory_are_refused_by_name_where_they_do_not_fit():
    loop = lk.Arrivals.closed_loop(1, requests=2, prompt_tokens=8, output_tokens=2)
    with pytest.raises(CapacityError, match="experts in host memory are not simulated"):
        lk.simulate("deepseek-v3", HARDWARE, lk.Deployment(engine="ktransformers"), loop)
    fits = lk.simulate("qwen3-30b-a3b", HARDWARE, lk.Deployment(engine="ktransformers"), loop)
    assert any("experts in host memory are not simulated" in note for note in fits.notes)


def test_small_pages_and_states_are_told():
    loop = lk.Arrivals.closed_loop(2, requests=4, prompt_tokens=64, output_tokens=2)
    told = lk.simulate(MODEL, HARDWARE, arrivals=loop, block_size=1).notes
    assert "pages of 1 tokens are simulated as blocks of 16" in told
    shared = lk.Arrivals.closed_loop(
        2, requests=8, prompt_tokens=5000, output_tokens=2, shared_prefix_tokens=4096
    )
    hybrid = lk.simulate("granite-4.0-h-tiny", HARDWARE, arrivals=shared)
    block = hybrid.plan.block_tokens
    assert any(f"whole blocks of {block} tokens" in note for note in hybrid.notes)
    # seven of eight prompts find the whole blocks of the shared start
    most = 7 * (4096 // block) * block / (8 * 5000)
    assert hybrid.hit_rate == pytest.approx(most)
    without = lk.simulate("granite-4.0-h-tiny", HARDWARE, arrivals=shared, prefix_cache=False)
    assert not any("recurrent state" in note for note in without.notes)


@pytest.mark.parametrize(("cold", "silent", "lines"), [(True, False, 1), (True, True, 0),
                                                      (False, False, 0)])  # fmt: skip
def test_a_cold_start_is_announced_once(monkeypatch, cold, silent, lines):
    said = []
    monkeypatch.setattr(notice, "is_cold", lambda: cold)
    monkeypatch.setattr(Display, "say", lambda _, line: said.append(line))
    with notice.told_if_cold(silent=silent):
        pass
    assert len(said) == lines
    assert all("warmup" in line for line in said)


def test_kept_code_is_not_cold(monkeypatch, tmp_path):
    class Unloaded:
        loaded = False

    monkeypatch.setattr(notice.simulator, "run", Unloaded)
    monkeypatch.setattr(notice, "cache_directory", lambda: tmp_path)
    assert notice.is_cold()
    (tmp_path / "kernels_1").mkdir()
    (tmp_path / "kernels_1" / "simulator.run-1.py311.1.nbc").touch()
    assert not notice.is_cold()


def test_a_run_that_answers_nobody_says_so():
    long = lk.Arrivals.poisson(1.0, requests=5, prompt_tokens=200_000, output_tokens=8)
    run = lk.simulate("llama-3.1-8b", "h100-sxm-80gb", arrivals=long)
    assert (run.rejected, run.requests_per_s) == (5, 0.0)
    assert "5 rejected" in repr(run)
