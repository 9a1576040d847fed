"""Entries of loaded points: they balance, explain themselves, and start from the ledger's."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ledgerkit as lk
from ledgerkit._explain import evaluate

LAYOUTS = {
    "llama-3.1-8b": (lk.Deployment(), lk.Deployment(tp=2, kv_dtype="fp8", engine="sglang")),
    "deepseek-v3": (
        lk.Deployment(tp=8, engine="sglang"),
        lk.Deployment(dp_attention=8, ep=8, engine="trtllm"),
        lk.Deployment(tp=8, pp=2),
    ),
    "gpt-oss-120b": (lk.Deployment(tp=2, engine="trtllm"),),
    "qwen3.5-397b-a17b": (lk.Deployment(tp=8, weights="fp8_block128"),),
}


@st.composite
def loaded(draw):
    model = draw(st.sampled_from(sorted(LAYOUTS)))
    layout = draw(st.sampled_from(LAYOUTS[model]))
    point = lk.Workload(
        prompt_tokens=draw(st.integers(1, 30000)),
        output_tokens=draw(st.integers(1, 3000)),
        concurrency=draw(st.integers(1, 300)),
    )
    how: dict[str, object] = {}
    kind = draw(st.sampled_from(["closed", "poisson", "draft", "pools"]))
    if kind == "poisson":
        how = {"arrival": "poisson", "arrival_rate_per_s": draw(st.floats(1e-3, 0.02))}
    if kind == "draft":
        how = {"tokens_per_step": 1.8, "draft_tokens": 2}
    if kind == "pools":
        how = {
            "prefill_workers": draw(st.integers(1, 4)),
            "decode_workers": draw(st.integers(1, 4)),
        }
    how["mixed_prefill"] = draw(st.booleans())
    how["length_variation"] = draw(st.sampled_from([0.0, 0.1, 1.0]))
    return lk.steady_state(model, "h200-sxm-141gb", layout, point, **how)


@given(loaded())
@settings(max_examples=60)
def test_books_balance_and_every_entry_recomputes(state):
    frame = state.entries.filter(resource="time")
    sums = {
        phase: math.fsum(frame.filter(phase=phase)["amount_device"])
        for phase in ("prefill", "decode")
    }
    step = state.tpot_s * state.serving.tokens_per_step
    assert abs(sums["prefill"] - state.ttft_s) <= 4 * math.ulp(state.ttft_s)
    assert abs(sums["decode"] - step) <= 4 * math.ulp(step)
    for entry in state._entries:
        value = evaluate(entry.formula.expression, entry.formula.values)
        assert value == pytest.approx(entry.amount_device, rel=1e-9, abs=1e-30)
        assert entry.low <= entry.amount_device <= entry.high or entry.resource != "time"
        assert entry.source


def test_one_client_without_a_request_path_is_the_ledger():
    point = lk.Workload(prompt_tokens=9000, output_tokens=300, cached_tokens=100)
    layout = lk.Deployment(tp=8, engine="sglang")
    books = lk.ledger("deepseek-v3", "h200-sxm-141gb", layout, point)
    state = lk.steady_state("deepseek-v3", "h200-sxm-141gb", layout, point, request_path_s=0)
    assert state.tpot_s == books.tpot_s
    assert state.ttft_s == books.ttft_s
    ours, theirs = (
        x.entries.drop("low", "high").sort("phase", "op", "resource", "account", "amount_device")
        for x in (state, books)
    )
    assert ours.equals(theirs)


def test_decode_of_a_load_is_the_ledger_plus_the_queue():
    point = lk.Workload(prompt_tokens=8192, output_tokens=1024, concurrency=32)
    layout = lk.Deployment(tp=4)
    books = lk.ledger("llama-3.1-70b", "h100-sxm-80gb", layout, point)
    state = lk.steady_state("llama-3.1-70b", "h100-sxm-80gb", layout, point)
    queue = state.entries.filter(phase="decode", account="queue")["amount_device"].sum()
    assert queue == pytest.approx(state.interference_s)
    assert state.tpot_s == pytest.approx(books.tpot_s + queue, rel=1e-12)
    assert queue > 0
    assert set(state.entries.columns) == set(books.entries.columns)


def test_waiting_books_to_scheduling_queue_and_the_path_to_the_host():
    point = lk.Workload(prompt_tokens=8192, output_tokens=1024, concurrency=64)
    state = lk.steady_state("llama-3.1-70b", "h100-sxm-80gb", lk.Deployment(tp=4), point, seats=16)
    waits = state.entries.filter(phase="prefill", account="queue")
    assert set(waits["op"]) == {
        "decode steps of others", "rest of the running step", "prefills of others", "no free seat",
    }  # fmt: skip
    assert set(waits["ledger"]) == {"scheduling"}
    assert state.waiting_s == pytest.approx(waits["amount_device"].sum())
    path = state.entries.filter(op="request path")
    assert path["account"].to_list() == ["host"]
    assert path["low"][0] < path["amount_device"][0] < path["high"][0]


def test_shares_of_the_step_sum_to_one_and_name_the_limit():
    point = lk.Workload(prompt_tokens=512, output_tokens=2048, concurrency=4)
    state = lk.steady_state("llama-3.1-70b", "h100-sxm-80gb", lk.Deployment(tp=4), point)
    assert math.fsum(state.shares.values()) == pytest.approx(1)
    assert state.binds == max(state.shares, key=state.shares.get) == "memory_bandwidth"
    heavy = point.model_copy(update={"prompt_tokens": 30000, "output_tokens": 64})
    busy = lk.steady_state("llama-3.1-70b", "h100-sxm-80gb", lk.Deployment(tp=4), heavy)
    assert busy.binds == "prefill"
