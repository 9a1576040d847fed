"""The kernels against the twin, event by event: every time of every request, every block."""

from __future__ import annotations

import numpy as np
import pytest

import ledgerkit as lk
from ledgerkit._refs import resolve
from ledgerkit._simulate.arrivals import Arrivals, of_prefixes
from ledgerkit._simulate.prepare import plan_cache, prepare
from ledgerkit._simulate.run import run
from ledgerkit._simulate.scheduler import Scheduler
from ledgerkit.costs.table import build
from ledgerkit.kernels import batch, serving
from tests.simulate.twin import Twin


def table_of(model="llama-3.2-1b", hardware="l4-24gb", **deployment):
    model, hardware, deployment, profile, efficiencies = resolve(
        model, hardware, lk.Deployment(**deployment)
    )
    return build(model, deployment, hardware, efficiencies, profile)


def requests(seed, count=14, most_prompt=90, most_output=20, spacing=0.004, groups=2):
    draw = np.random.default_rng(seed)
    prompt = draw.integers(3, most_prompt, count)
    shared = np.minimum(draw.choice([0, 32, 48], count), prompt - 1)
    made = of_prefixes(
        np.sort(draw.exponential(spacing, count).cumsum()), prompt,
        draw.integers(1, most_output, count), draw.integers(0, groups, count), shared,
    )  # fmt: skip
    return chained(made, draw) if seed % 3 == 0 else made


def chained(made, draw):
    """Every third request follows another one, whose answer is part of its prompt."""
    for i in range(3, made.requests, 3):
        made.predecessor[i], made.arrival_s[i] = i - 2, np.nan
        made.gap_s[i] = draw.exponential(0.01)
        at = made.segment_start[i + 1] - 1
        made.segment_ids[at] = made.answer_ids[i - 2]
    return made


def compare(table, how, arrivals):
    how = how.filled(table)
    longest = int((arrivals.prompt_tokens + arrivals.output_tokens).max())
    plan = plan_cache(table, how, longest)
    arrays = prepare(table, how, plan, arrivals)
    assert run(arrays, None)
    twin = Twin(table, how, plan, arrivals).run()
    fate = arrays.fate
    for q in twin.sequences:
        mine = fate[q.number]
        told = [q.arrived, q.started, q.first, q.finished]
        assert bool(mine[serving.F_FINISHED] < 0) == q.rejected
        if q.rejected:
            continue
        assert np.allclose(mine[:4], told, rtol=1e-9, atol=2000), (q.number, mine[:4], told)
        assert [mine[serving.F_HIT], mine[serving.F_PREEMPTED], mine[serving.F_REPLICA]] == [
            q.hit, q.preempted, q.replica,
        ]  # fmt: skip
    for r, replica in enumerate(twin.replicas):
        assert arrays.replicas[r, serving.R_STEPS] == replica.steps
        assert arrays.replicas[r, serving.R_PEAK] == replica.peak
        assert arrays.replicas[r, serving.R_FREE] == plan.blocks
    gaps = sum(len(q.gaps) for q in twin.sequences)
    assert arrays.gaps.sum() == gaps
    other = arrays.other.sum(axis=0)
    names = {"recompute": batch.B_RECOMPUTE, "padding": batch.B_PADDING, "draft": batch.B_DRAFT,
             "swap": batch.B_SWAP, "idle": batch.B_IDLE, "launch": batch.B_LAUNCH}  # fmt: skip
    for name, column in names.items():
        assert other[column] == pytest.approx(twin.parts[name], rel=1e-6, abs=5e5), name
    clocks = arrays.replicas[:, serving.R_CLOCK]
    spent = arrays.rows.sum(axis=(1, 2, 3)) + arrays.other.sum(axis=1)
    assert (spent == clocks).all(), "the books sum to wall time, to the picosecond"
    return twin


TIGHT = {"cache_tokens": 256, "max_num_seqs": 6, "max_num_batched_tokens": 48}
CASES = {
    "plain": {"prefix_cache": False},
    "prefix cache": {},
    "small budget": {"max_num_batched_tokens": 24},
    "few seats": {"max_num_seqs": 2},
    "preemption": TIGHT,
    "preemption without reuse": {**TIGHT, "prefix_cache": False},
    "swap": {**TIGHT, "preemption": "swap"},
    "no preemption": {**TIGHT, "preemption": "none"},
    "contiguous": {**TIGHT, "cache_allocation": "contiguous", "reserve_tokens": 128},
    "whole prompts": {"chunked_prefill": False, "max_num_batched_tokens": 64},
    "separate steps": {"mixed_prefill": False},
    "separate steps, tight": {**TIGHT, "mixed_prefill": False},
    "static": {"batching": "static", "max_num_seqs": 5},
    "static, tight": {"batching": "static", "cache_tokens": 512},
    "speculation": {"draft_tokens": 3, "acceptance": 0.7, **TIGHT},
    "two replicas": {"replicas": 2},
    "three replicas by turns": {"replicas": 3, "router": "round_robin", **TIGHT},
    "by prefix": {"replicas": 2, "router": "prefix_aware", **TIGHT},
}


@pytest.mark.parametrize("name", CASES)
def test_kernel_and_twin_agree(name):
    table = table_of()
    seen = [compare(table, Scheduler(**CASES[name]), requests(seed)) for seed in range(6)]
    if "cache_tokens" in CASES[name] and name.startswith(("preemption", "swap", "separate")):
        assert sum(q.preempted for twin in seen for q in twin.sequences) > 0


def conversations(seed, sessions=4, turns=4, pad=40):
    """Every turn asks again all that was said; a text may be shared, or come twice."""
    draw = np.random.default_rng(seed)
    start, ids, tokens, before, answers, prompts = [0], [], [], [], [], []
    for turn in range(turns):
        for session in range(sessions):
            own = 1000 + 100 * session
            said = [(7, 24), *((own + t, pad) for t in range(turn + 1))]
            said += [(own + 50 + t, 16) for t in range(turn)] + [(7, 16)] * (session % 2)
            ids += [i for i, _ in said]
            tokens += [n for _, n in said]
            start.append(len(ids))
            before.append(-1 if turn == 0 else len(before) - sessions)
            answers.append(own + 50 + turn)
            prompts.append(sum(n for _, n in said))
    n = len(before)
    return Arrivals(
        arrival_s=np.where(np.array(before) < 0, np.arange(n) * 0.001, np.nan),
        prompt_tokens=np.array(prompts), output_tokens=draw.integers(4, 40, n),
        predecessor=np.array(before), gap_s=np.zeros(n), segment_start=np.array(start),
        segment_ids=np.array(ids), segment_tokens=np.array(tokens), answer_ids=np.array(answers),
        label="conversations",
    )  # fmt: skip


@pytest.mark.parametrize("cache_tokens", [384, 512, 4096])
def test_kernel_and_twin_agree_on_conversations(cache_tokens):
    """Common and lone contents in one prompt, found again after a preemption."""
    table, seen = table_of(), []
    for seed in range(3):
        how = Scheduler(cache_tokens=cache_tokens, max_num_seqs=6, max_num_batched_tokens=96)
        seen.append(compare(table, how, conversations(seed)))
    hits = sum(q.hit for twin in seen for q in twin.sequences)
    again = sum(q.preempted for twin in seen for q in twin.sequences)
    assert (hits > 0, again > 0) == (True, cache_tokens < 1024)


def test_tokens_that_others_may_have_too_counted_by_hand():
    """A text that occurs once ends what others can ask for, whatever comes behind it."""
    made = of_prefixes(
        np.zeros(3), np.array([50, 60, 20]), np.array([4, 4, 4]), np.array([0, 0, 1]),
        np.array([32, 32, 16]),
    )  # fmt: skip
    assert made.asked()[:, serving.Q_COMMON].tolist() == [32, 32, 0]
    told = conversations(0, sessions=2, turns=2, pad=40).asked()[:, serving.Q_COMMON]
    # first turns: the prompt and the answer come again; the last ones end in a text of their own
    assert told[:2].tolist() == [1 << 40] * 2
    assert told[2:].tolist() == [24 + 40] * 2


MODELS = {
    "windows": ("gemma-3-1b-it", "l4-24gb", {}),
    "latent, experts, attention ranks": (
        "deepseek-v2-lite", "h100-sxm-80gb", {"dp_attention": 2, "ep": 2}),
    "tensor parallel": ("llama-3.1-8b", "h100-sxm-80gb", {"tp": 2}),
    "stages": ("llama-3.1-8b", "h100-sxm-80gb", {"pp": 2}),
    "state": ("granite-4.0-h-tiny", "h100-sxm-80gb", {}),
    "engine without mixed steps": ("qwen3-0.6b", "l4-24gb", {"engine": "sglang"}),
    "engine without preemption": ("qwen3-0.6b", "l4-24gb", {"engine": "tensorrt-llm"}),
    "engine of slots": ("qwen3-0.6b", "l4-24gb", {"engine": "llama.cpp"}),
    "library": ("qwen3-0.6b", "l4-24gb", {"engine": "transformers"}),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_kernel_and_twin_agree_on_other_models(name):
    model, hardware, deployment = MODELS[name]
    table = table_of(model, hardware, **deployment)
    compare(table, Scheduler(), requests(1, most_prompt=60))
    compare(table, Scheduler(max_num_batched_tokens=40), requests(3, most_prompt=60))
