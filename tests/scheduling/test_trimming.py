"""Contexts of an agent, against a prefix cache that compares token by token."""

from __future__ import annotations

from itertools import chain, count, takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledgerkit as lk
from ledgerkit.costs import scheduling as s
from ledgerkit.errors import DeploymentError

CHAT = {"steps": 60, "prompt_tokens": 4000, "answer_tokens": 300, "tool_tokens": 2000}


class Tool(list):
    """A tool message among the messages."""


class Agent:
    """Every token is a number of its own; cached is the longest prefix of any earlier call."""

    def __init__(self, prompt):
        self.fresh = count()
        self.start = self.new(prompt)
        self.messages, self.past, self.turns = [], [], []

    def new(self, n):
        return [next(self.fresh) for _ in range(n)]

    def call(self, written):
        context = list(chain(self.start, *self.messages))
        same = (
            sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1],
                                     zip(context, earlier, strict=False)))
            for earlier in self.past
        )  # fmt: skip
        said = self.new(written)
        cached = min(max(same, default=0), len(context) - 1)
        self.turns.append((len(context), cached, written))
        self.past.append(context + said)
        return said

    def trim(self, keep, stub):
        tools = [i for i, message in enumerate(self.messages) if isinstance(message, Tool)]
        for i in tools[: max(0, len(tools) - keep)]:
            if len(self.messages[i]) != stub:
                self.messages[i] = Tool(self.new(stub))


def naive(policy, steps, prompt, answer, tool, keep, stub, every, summary):
    agent, since = Agent(prompt), 0
    for step in range(steps):
        if policy == "summarise" and step - since >= every:
            agent.call(summary)
            # the same words at another place are other cache entries
            agent.messages, since = [agent.new(summary)], step
        if policy == "trim" and step % every == 0:
            agent.trim(keep, stub)
        agent.messages += [agent.call(answer), Tool(agent.new(tool))]
    return agent.turns


@given(
    policy=st.sampled_from(["keep", "trim", "summarise"]), steps=st.integers(1, 9),
    prompt=st.integers(1, 20), answer=st.integers(1, 6), tool=st.integers(0, 9),
    keep=st.integers(0, 5), stub=st.integers(0, 3), every=st.integers(1, 4),
    summary=st.integers(1, 7),
)  # fmt: skip
def test_turns_are_those_of_a_real_prefix_cache(
    policy, steps, prompt, answer, tool, keep, stub, every, summary
):
    stub = min(stub, tool)
    found = s.agent_turns(
        policy, steps=steps, prompt_tokens=prompt, answer_tokens=answer, tool_tokens=tool,
        keep=keep, stub_tokens=stub, every=every, summary_tokens=summary,
    )  # fmt: skip
    assert [(t.context, t.cached, t.written) for t in found] == naive(
        policy, steps, prompt, answer, tool, keep, stub, every, summary
    )


def test_what_is_done_rarely_keeps_more_of_the_cache():
    kept = s.agent_turns("keep", **CHAT)
    computed = {
        every: sum(t.computed for t in s.agent_turns("trim", keep=4, every=every, **CHAT))
        for every in (1, 5, 20)
    }
    assert computed[1] > computed[5] > computed[20] > sum(t.computed for t in kept)
    summed = s.agent_turns("summarise", every=20, **CHAT)
    assert max(t.context for t in summed) < max(t.context for t in kept) / 2


def test_an_agent_on_a_model():
    work = lk.Workload(prompt_tokens=4000, output_tokens=300)
    kept = lk.scheduling(
        "agent_context", "kimi-k2.6", "h200-sxm-141gb", lk.Deployment(tp=8), work,
        tool_tokens=2000, steps=60, policy="keep",
    )  # fmt: skip
    assert kept.entries.is_empty()
    trimmed = lk.scheduling(
        "agent_context", "kimi-k2.6", "h200-sxm-141gb", lk.Deployment(tp=8), work,
        tool_tokens=2000, steps=60, keep=4, every=10,
    )  # fmt: skip
    values = trimmed.values
    assert values["longest_context_trim"] < values["longest_context_keep"] == 4000 + 59 * 2300 + 300
    assert values["computed_tokens_trim"] > values["computed_tokens_keep"]
    paid = trimmed.entries.filter(op="tokens computed again")["amount"].item()
    saved = trimmed.entries.filter(op="context read while answering")["amount"].item()
    assert paid > 0 > saved
    assert values["seconds_keep"] == pytest.approx(kept.values["seconds_keep"])


def test_a_context_beyond_the_model_has_no_seconds():
    found = lk.scheduling(
        "agent_context", "llama-2-7b", "h200-sxm-141gb", None,
        lk.Workload(prompt_tokens=1000, output_tokens=100), tool_tokens=900, keep=1,
    )  # fmt: skip
    assert "seconds_keep" not in found.values
    assert found.values["seconds_trim"] > 0


@pytest.mark.parametrize("name", ["steps", "prompt_tokens", "answer_tokens", "every"])
def test_numbers_that_make_no_sense(name):
    with pytest.raises(DeploymentError, match=name):
        s.agent_turns("trim", **CHAT | {name: 0})
