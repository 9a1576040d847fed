"""Against queueing theory: a birth–death chain, M/G/1, Little's law, block accounting."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import ledgerkit as lk
from ledgerkit._simulate.prepare import plan_cache, prepare
from ledgerkit._simulate.run import run
from ledgerkit._simulate.scheduler import Scheduler
from ledgerkit._simulate.verb import serve
from ledgerkit.kernels import columns as c
from ledgerkit.kernels import serving
from tests.simulate.test_twin import requests, table_of

MEAN = 300
SEATS = 64


def chain(rate, step_s):
    """Mean number in the system, and seconds per token, of the birth–death chain.

    With n requests, min(n, seats) decode, each step of τ(n) seconds gives one token to each, and
    answers are exponential with MEAN tokens.
    """
    weight, total, inside, active = 1.0, 1.0, 0.0, 0.0
    for n in range(1, 4000):
        busy = min(n, SEATS)
        weight *= rate * MEAN * step_s(busy) / busy
        total += weight
        inside += n * weight
        active += busy * weight
    return inside / total, active / total / (rate * MEAN)


@pytest.mark.parametrize("load", [0.4, 0.8])
def test_birth_death_chain(load):
    # a step depends on the running sequences alone: no graph padding, free launches of prompts
    table = table_of("llama-3.1-8b", "h100-sxm-80gb", engine="llama.cpp")
    scalars = {edge: rows.copy() for edge, rows in table.scalars.items()}
    for rows in scalars.values():
        rows[:, c.HOST_PREFILL_KERNEL_S] = 0.0
    table = replace(table, scalars=scalars)
    how = Scheduler(cache_allocation="paged", preemption="recompute", prefix_cache=False,
                    max_num_seqs=SEATS, max_num_batched_tokens=8192,
                    request_path_s=0.0)  # fmt: skip

    def step_s(n):
        work = lk.Workload(prompt_tokens=MEAN, output_tokens=2, concurrency=n)
        return lk.ledger("llama-3.1-8b", "h100-sxm-80gb", workload=work).tpot_s

    times = {n: step_s(n) for n in range(1, SEATS + 1)}
    rate = load * SEATS / (MEAN * times[SEATS])
    stream = lk.Arrivals.poisson(rate, requests=60_000, prompt_tokens=1,
                                 output_tokens=lk.Lengths.exponential(MEAN), seed=5)  # fmt: skip
    found = serve(table, how.filled(table), stream, overload="run", warm_up=0.0)
    inside, tpot = chain(rate, times.get)
    assert found.little()[0] == pytest.approx(inside, rel=0.03)
    steps = found.requests["output_tokens"] - 1
    mean = (found.requests["tpot_s"].fill_null(0) * steps).sum() / steps.sum()
    assert mean == pytest.approx(tpot, rel=0.01)


def test_prompts_alone_are_an_m_g_1_queue():
    # answers of one token and one seat: prompts are served one after the other
    lengths = lk.Lengths.empirical([512, 4096], [0.8, 0.2])
    table = table_of("llama-3.1-8b", "h100-sxm-80gb")
    alone = {
        n: lk.ledger("llama-3.1-8b", "h100-sxm-80gb",
                     workload=lk.Workload(prompt_tokens=n, output_tokens=1)).ttft_s
        for n in (512, 4096)
    }  # fmt: skip
    mean = 0.8 * alone[512] + 0.2 * alone[4096]
    square = 0.8 * alone[512] ** 2 + 0.2 * alone[4096] ** 2
    rate = 0.7 / mean
    stream = lk.Arrivals.poisson(rate, requests=120_000, prompt_tokens=lengths, output_tokens=1,
                                 seed=2)  # fmt: skip
    how = Scheduler(max_num_seqs=1, prefix_cache=False).filled(table)
    arrays = prepare(table, how, plan_cache(table, how, 5000), stream)
    run(arrays, None)
    fate = arrays.fate
    wait = float(np.mean(fate[:, serving.F_STARTED] - fate[:, serving.F_ARRIVED])) / 1e12
    assert wait == pytest.approx(rate * square / 2 / (1 - 0.7), rel=0.05)


@pytest.mark.parametrize("seed", range(4))
def test_littles_law_holds_to_float_precision(seed):
    found = lk.simulate(
        "llama-3.2-1b", "l4-24gb", arrivals=requests(seed, count=300, spacing=0.02), replicas=2,
        cache_tokens=512,
    )  # fmt: skip
    inside, arriving = found.little()
    assert inside == pytest.approx(arriving, rel=1e-12)


@pytest.mark.parametrize("prefix", [True, False])
def test_every_block_is_given_back(prefix):
    table = table_of()
    how = Scheduler(prefix_cache=prefix, cache_tokens=400).filled(table)
    asked = requests(3, count=200)
    arrays = prepare(table, how, plan_cache(table, how, 120), asked)
    while not run_some(arrays):
        used = arrays.ring.shape[1] - 1 - arrays.replicas[0, serving.R_FREE]
        running = int(arrays.replicas[0, serving.R_COUNT])
        order = arrays.slots[0, :running, serving.X_ORDER]
        held = arrays.slots[0, order, serving.X_BLOCKS]
        if prefix:
            tables = [set(arrays.table[0, slot, :n]) for slot, n in zip(order, held, strict=True)]
            assert used == len(set().union(*tables))
            counts = np.zeros(arrays.ring.shape[1], int)
            for one in tables:
                counts[list(one)] += 1
            assert (counts == arrays.ring[0, :, 0]).all()
        else:
            assert used == held.sum()
    assert arrays.replicas[0, serving.R_FREE] == arrays.ring.shape[1] - 1


def run_some(arrays, steps=7):
    from ledgerkit.kernels import simulator

    if not arrays.counters[serving.N_STRIDE]:
        simulator.start(arrays.replicas, arrays.slots, arrays.ring, arrays.counters, arrays.ops,
                        arrays.layout, arrays.whole, arrays.part)  # fmt: skip
    return simulator.run(*arrays.inputs(steps)) == simulator.DONE


@pytest.mark.parametrize(
    ("model", "device", "layout"),
    [
        ("llama-3.1-8b", "h100-sxm-80gb", {}),
        ("gemma-3-27b-it", "h200-sxm-141gb", {}),
        ("deepseek-v3", "h200-sxm-141gb", {"tp": 8}),
        ("deepseek-v3", "h200-sxm-141gb", {"dp_attention": 8, "ep": 8}),
        ("qwen3-next-80b-a3b-instruct", "h200-sxm-141gb", {"tp": 2}),
        ("llama-3.1-70b", "h100-sxm-80gb", {"tp": 2, "pp": 2}),
    ],
)
def test_a_request_alone_takes_what_the_ledger_says(model, device, layout):
    work = lk.Workload(prompt_tokens=3000, output_tokens=3)
    books = lk.ledger(model, device, lk.Deployment(**layout), work)
    loop = lk.Arrivals.closed_loop(1, requests=2, prompt_tokens=3000, output_tokens=3)
    found = lk.simulate(model, device, lk.Deployment(**layout), loop, request_path_s=0.0,
                        prefix_cache=False, warm_up=0)  # fmt: skip
    assert found.ttft_s == pytest.approx(books.ttft_s, rel=1e-7)
    # two decode steps, at contexts 3001 and 3002; the ledger prices the first
    assert found.tpot_s == pytest.approx(books.tpot_s, rel=1e-4)


def test_speculation_yields_the_geometric_series():
    loop = lk.Arrivals.closed_loop(4, requests=40, prompt_tokens=64, output_tokens=800)
    found = lk.simulate("llama-3.1-8b", "h100-sxm-80gb", arrivals=loop, draft_tokens=4,
                        acceptance=0.8)  # fmt: skip
    steps = found.timeline.height
    assert steps
    tokens = 40 * 799 / (int(found._arrays.gaps.sum()) / 0.9)
    assert tokens == pytest.approx((1 - 0.8**5) / (1 - 0.8), rel=0.02)
    assert math.isfinite(found.tpot_s)


@pytest.mark.parametrize("clients", [8, 64, 128])
def test_attention_ranks_that_prefill_one_prompt_at_a_time(clients):
    """Eight attention ranks with separate prefill, counted by hand.

    Nobody ends an answer while prompts are computed, so a step of prompts holds those of the
    clients that ended in the one decode step before: a Poisson number with mean clients/answer.
    Most such steps hold one prompt, which occupies one rank for its whole time.
    """
    model, device = "deepseek-v3", "h200-sxm-141gb"
    layout = lk.Deployment(dp_attention=8, ep=8, engine="sglang")
    prompt, answer = 4096, 512
    work = lk.Workload(prompt_tokens=prompt, output_tokens=answer, concurrency=clients)
    alone = lk.ledger(model, device, layout, work)
    with_prompts = 1.0 - math.exp(-clients / answer)
    by_hand = alone.tpot_s + with_prompts * alone.ttft_s
    loop = lk.Arrivals.closed_loop(
        clients, requests=20 * clients, prompt_tokens=lk.Lengths.lognormal(prompt, 0.1),
        output_tokens=lk.Lengths.lognormal(answer, 0.1), seed=1,
    )  # fmt: skip
    run = lk.simulate(model, device, layout, loop)
    assert run.scheduler.mixed_prefill is False
    assert run.tpot_s == pytest.approx(by_hand, rel=0.05)
