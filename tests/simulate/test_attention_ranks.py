"""Attention ranks with prompts in steps of their own, counted by hand.

All ranks step together and wait for the slowest; a rank without a prompt computes nothing while
another has one. The closed form (``lk.steady_state``) takes the square root of the ranks to be at
work instead; ``benchmarks/simulate_agreement.md`` shows what that makes of a whole run.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import ledgerkit as lk

MODEL, HARDWARE = "deepseek-v2-lite", "h100-sxm-80gb"
TWO = lk.Deployment(dp_attention=2, ep=2, engine="sglang")
PROMPT = 2000


def serve(times, prompt, output, **how):
    frame = pl.DataFrame({"arrival_s": times, "prompt_tokens": prompt, "output_tokens": output})
    return lk.simulate(MODEL, HARDWARE, TWO, frame, request_path_s=0.0, **how)


def seconds(run, **which):
    return run.entries.filter(**which)["time_ps"].sum() / 1e12


def alone_s():
    work = lk.Workload(prompt_tokens=PROMPT, output_tokens=1)
    return lk.ledger(MODEL, HARDWARE, TWO, work).ttft_s


def test_one_prompt_occupies_one_rank_and_the_other_waits():
    """A lone prompt takes what the ledger says for one rank: nothing is halved or square-rooted."""
    run = serve([0.0], [PROMPT], [1])
    assert run.wall_s == pytest.approx(alone_s(), rel=1e-9)
    apart = serve([0.0, 1.0], [PROMPT] * 2, [1, 1])
    assert apart.wall_s - 1.0 == pytest.approx(alone_s(), rel=1e-9)


def test_two_prompts_that_meet_share_one_step():
    """Attention runs on both ranks at once; experts multiply the tokens of both."""
    one, two = serve([0.0], [PROMPT], [1]), serve([0.0, 0.0], [PROMPT] * 2, [1, 1])
    assert two.iterations == 1
    attention = {"ledger": "attention_kv", "phase": "prefill"}
    assert seconds(two, **attention) == pytest.approx(seconds(one, **attention), rel=1e-9)
    experts = {"account": "routed_experts"}
    assert seconds(two, **experts) == pytest.approx(2 * seconds(one, **experts), rel=1e-6)
    assert one.wall_s < two.wall_s < 2 * one.wall_s


def test_a_prompt_on_one_rank_stalls_the_answers_of_all():
    """A decodes; B's prompt comes on the other rank: A has no token until that step is over."""
    lone = serve([0.0], [PROMPT], [40])
    late = lone.wall_s - 20.5 * lone.tpot_s
    both = serve([0.0, late], [PROMPT] * 2, [40, 2])
    first = both.requests["e2e_s"][0] - lone.wall_s
    # the step of the prompt, and one token of two sequences, one on each rank, instead of one
    step = serve([0.0, 0.0], [PROMPT] * 2, [2, 2]).requests["tpot_s"][0]
    assert first == pytest.approx(alone_s() + step - lone.tpot_s, rel=0.02)


def test_seats_are_per_rank_and_the_fuller_rank_sets_the_step():
    """One seat for each of two ranks: the third of three waits; three decode as slowly as four."""
    run = serve([0.0] * 3, [PROMPT] * 3, [20] * 3, max_num_seqs=1)
    waits = np.sort(run.requests["wait_s"].to_numpy())
    assert (waits[:2] == 0.0).all()
    assert waits[2] > 15 * run.tpot_s
    attention = {"ledger": "attention_kv", "phase": "decode"}
    per_step = {
        n: seconds(serve([0.0] * n, [PROMPT] * n, [20] * n), **attention) for n in (1, 2, 3, 4)
    }
    assert per_step[1] == pytest.approx(per_step[2], rel=1e-9)
    assert per_step[3] == pytest.approx(per_step[4], rel=1e-9)
    assert per_step[3] > per_step[2]
