"""The closed form against a plain-Python twin, and against what must hold whatever the numbers."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit._steady.fitting import least_squares
from ledgerkit._steady.formula import Load, closed_loop, queue_wait

seconds = st.floats(1e-5, 10.0)


def _load(**values: float) -> Load:
    defaults = {
        "concurrency": 8, "running": 8, "steps": 100, "tokens_per_step": 1, "step_s": 0.01,
        "draft_s": 0, "prompt_s": 0.1, "chunks": 1, "launch_s": 0, "separate_host_s": 0,
        "alone_s": 0.1, "mixed": 1, "wait_share": 0, "request_path_s": 0, "factor": 1,
    }  # fmt: skip
    assert set(defaults) == {f.name for f in fields(Load)}
    return Load(**{k: np.array([float(v)]) for k, v in {**defaults, **values}.items()})


def _twin(load: Load) -> tuple[float, float]:
    """(TPOT, TTFT) written out for one point, with branches instead of minima and maxima."""
    v = {f.name: float(getattr(load, f.name)[0]) for f in fields(Load)}
    others = v["running"] - 1
    rounds = others / v["steps"] * (1 - v["wait_share"]) * v["chunks"]
    chunk = v["prompt_s"] / v["chunks"]
    if rounds > 1:
        chunk *= rounds
    if v["mixed"]:
        added = chunk
        if v["launch_s"] > chunk + v["step_s"]:
            added = v["launch_s"] - v["step_s"]
    else:
        added = max(chunk, v["launch_s"]) + v["separate_host_s"]
    if rounds < 1:
        added *= rounds
    step = v["step_s"] + v["factor"] * added
    shared = v["chunks"] - 0.5 if v["mixed"] else 0.5
    first = v["request_path_s"] + v["alone_s"] + v["wait_share"] * others * v["prompt_s"]
    first += others / v["running"] * (shared * v["step_s"] + step / 2)
    first += (v["concurrency"] - v["running"]) / v["running"] * v["steps"] * step
    return step / v["tokens_per_step"], first


@given(
    running=st.integers(1, 500), queued=st.integers(0, 500), steps=st.integers(1, 4000),
    step_s=seconds, prompt_s=seconds, chunks=st.integers(1, 20), launch_s=st.floats(0, 1),
    host=st.floats(0, 0.01), mixed=st.integers(0, 1), wait=st.floats(0, 1),
    factor=st.floats(0.5, 2),
)  # fmt: skip
def test_closed_loop_equals_its_twin(
    running, queued, steps, step_s, prompt_s, chunks, launch_s, host, mixed, wait, factor
):
    load = _load(
        concurrency=running + queued, running=running, steps=steps, step_s=step_s,
        prompt_s=prompt_s, chunks=chunks, launch_s=launch_s, separate_host_s=host, mixed=mixed,
        wait_share=wait, factor=factor,
    )  # fmt: skip
    times = closed_loop(load)
    tpot, ttft = _twin(load)
    assert times.tpot_s[0] == pytest.approx(tpot, rel=1e-12)
    assert times.ttft_s[0] == pytest.approx(ttft, rel=1e-12)


@given(
    running=st.integers(1, 300), steps=st.integers(1, 2000), prompt_s=seconds, step_s=seconds,
    chunks=st.integers(1, 9), mixed=st.integers(0, 1), wait=st.floats(0, 1),
)  # fmt: skip
def test_work_is_conserved(running, steps, prompt_s, step_s, chunks, mixed, wait):
    """Each request pays one prefill of every other one: while it waits, or between its tokens."""
    load = _load(
        concurrency=running, running=running, steps=steps, prompt_s=prompt_s, step_s=step_s,
        chunks=chunks, mixed=mixed, wait_share=wait,
    )  # fmt: skip
    times = closed_loop(load)
    paid = times.wait_prefill_s[0] + steps * times.interference_s[0]
    assert paid == pytest.approx((running - 1) * prompt_s, rel=1e-9, abs=1e-9)


def test_a_single_client_meets_nobody():
    times = closed_loop(_load(concurrency=1, running=1, launch_s=5.0))
    assert times.tpot_s[0] == 0.01
    assert times.ttft_s[0] == 0.1


def test_published_interference_of_one_setup():
    """DeepSeek-R1 on eight H200 under SGLang: 8k instead of 1k of prompt adds C/1024 x 250 ms."""
    for clients, added_ms in ((4, 0.98), (16, 3.8), (32, 8.7), (64, 17.3)):
        times = closed_loop(
            _load(concurrency=clients, running=clients, steps=1024, prompt_s=0.26, mixed=0)
        )
        assert 1e3 * times.interference_s[0] == pytest.approx(added_ms, rel=0.25)


@pytest.mark.parametrize(
    ("busy", "variation", "expected"), [(0.5, 0.0, 0.5), (0.8, 1.0, 4.0), (0.9, 1.0, 9.0)]
)
def test_one_server_waits_as_pollaczek_and_khinchine_say(busy, variation, expected):
    assert queue_wait(busy, 1.0, variation) == pytest.approx(expected)


def test_more_servers_wait_less():
    """Erlang C for two servers at 80 % waits 1.78 services; Sakasegawa is within 5 %."""
    assert queue_wait(0.8, 1.0, 1.0, servers=2) == pytest.approx(1.778, rel=0.05)


def test_least_squares_finds_the_normal_equations():
    rng = np.random.default_rng(7)
    design, truth = rng.normal(size=(40, 3)), np.array([1.0, -2.0, 0.5])
    data = design @ truth + 0.01 * rng.normal(size=40)
    found = least_squares(lambda x: design @ x - data, np.zeros(3))
    exact, *_ = np.linalg.lstsq(design, data, rcond=None)
    assert found.x == pytest.approx(exact, abs=1e-8)
    assert found.covariance == pytest.approx(np.linalg.inv(design.T @ design), rel=1e-4)


def test_soft_residuals_forgive_outliers():
    x = np.arange(20.0)
    data = 2.0 * x
    data[5] = 500.0
    plain, soft = (
        least_squares(lambda p: p[0] * x - data, np.ones(1), soft=limit).x[0]
        for limit in (None, 0.1)
    )
    assert abs(soft - 2.0) < 0.05 < abs(plain - 2.0)


def test_soft_l1_minimum_is_the_minimum():
    data = np.array([0.0, 0.1, 0.2, 5.0])

    def cost(m: float) -> float:
        return sum(2 * 0.3**2 * (math.sqrt(1 + ((m - d) / 0.3) ** 2) - 1) for d in data)

    found = least_squares(lambda p: p[0] - data, np.array([1.0]), soft=0.3).x[0]
    grid = np.linspace(-1, 5, 60001)
    assert found == pytest.approx(grid[np.argmin([cost(m) for m in grid])], abs=2e-4)
