r"""Tool messages of an agent: keep all, trim old ones, or summarise.

An agent alternates answers of a tokens and tool messages of t tokens after a first prompt.
*Keeping* everything only ever appends, so that each step computes t new tokens and the prefix cache
serves the rest, but the context grows by a + t per step. *Trimming* leaves a stub where an old tool
message was: what follows the stub has moved, and is computed again. *Summarising* writes r tokens
that take the place of all messages so far. The less often either is done, the more of the cache
survives.

Source: prefix caches match from the first token on (vLLM, SGLang); arithmetic of the positions.
Worked: prompt 1,000, answers 100, tools 900, 10 steps: the last context is 10,000 tokens when all
is kept; 2,800 with the last message only, for 1,000 tokens instead of 900 computed in each step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ledgerkit.costs.scheduling.entry import SchedulingEntry, Value, booked, check

Policy = Literal["keep", "trim", "summarise"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One model call of an agent, in tokens."""

    context: int
    """Of the prompt."""
    cached: int
    """Of the context, what the prefix cache holds."""
    written: int
    """Of the answer."""

    @property
    def computed(self) -> int:
        """Tokens that prefill computes."""
        return self.context - self.cached


@dataclass(frozen=True, slots=True)
class Trimming:
    """What a policy saves and costs against keeping everything, over all steps of one agent."""

    turns: tuple[Turn, ...]
    kept: tuple[Turn, ...]
    """The same steps with everything kept."""
    entries: tuple[SchedulingEntry, ...]


def agent_turns(
    policy: Policy, *, steps: int, prompt_tokens: int, answer_tokens: int, tool_tokens: int,
    keep: int = 4, stub_tokens: int = 0, every: int = 1, summary_tokens: int = 512,
) -> tuple[Turn, ...]:  # fmt: skip
    """Contexts of an agent's model calls.

    Parameters
    ----------
    policy : {"keep", "trim", "summarise"}
        What happens to old messages.
    steps : int
        Model calls; a tool message follows each but the last.
    prompt_tokens, answer_tokens, tool_tokens : int
        Of the first prompt, of each answer and of each tool message.
    keep : int
        Trim: tool messages at the end that stay whole.
    stub_tokens : int
        Trim: tokens that a trimmed message leaves.
    every : int
        Trim, summarise: steps between two times that it is done.
    summary_tokens : int
        Summarise: tokens of a summary, written by a call of its own.

    Returns
    -------
    tuple of Turn

    Examples
    --------
    >>> chat = dict(steps=4, prompt_tokens=1000, answer_tokens=100, tool_tokens=900)
    >>> [turn.context for turn in agent_turns("keep", **chat)]
    [1000, 2000, 3000, 4000]
    >>> [turn.computed for turn in agent_turns("keep", **chat)]
    [1000, 900, 900, 900]
    >>> [turn.context for turn in agent_turns("trim", keep=1, **chat)]
    [1000, 2000, 2100, 2200]
    >>> [turn.computed for turn in agent_turns("trim", keep=1, **chat)]
    [1000, 900, 1000, 1000]
    """
    sizes = {"steps": steps, "prompt_tokens": prompt_tokens, "answer_tokens": answer_tokens,
             "every": every, "summary_tokens": summary_tokens}  # fmt: skip
    for name, value in sizes.items():
        check(name, value, 1)
    for name, value in (("tool_tokens", tool_tokens), ("keep", keep), ("stub_tokens", stub_tokens)):
        check(name, value, 0)
    check("stub_tokens", stub_tokens, 0, tool_tokens)
    tools: list[int] = []  # tool messages as they stand in the context
    head, since, turns = prompt_tokens, 0, []
    cached = 0
    for step in range(steps):
        if policy == "summarise" and step - since >= every and tools:
            before = head + sum(tools) + answer_tokens * len(tools)
            turns.append(Turn(before, min(cached, before - 1), summary_tokens))
            cached, head = prompt_tokens, prompt_tokens + summary_tokens
            tools, since = [], step
        if policy == "trim" and step % every == 0:
            old = [
                i
                for i, size in enumerate(tools[: max(0, len(tools) - keep)])
                if size != stub_tokens
            ]
            if old:
                cached = head + sum(tools[: old[0]]) + answer_tokens * (old[0] + 1)
                tools = [stub_tokens if i in old else size for i, size in enumerate(tools)]
        context = head + sum(tools) + answer_tokens * len(tools)
        turns.append(Turn(context, min(cached, context - 1), answer_tokens))
        cached = context + answer_tokens
        tools.append(tool_tokens)
    return tuple(turns)


def trimming(
    turns: tuple[Turn, ...], kept: tuple[Turn, ...], *, flop_per_token: float,
    flop_per_pair: float, kv_bytes_per_token: float,
) -> Trimming:  # fmt: skip
    """Book a policy against keeping everything.

    Parameters
    ----------
    turns, kept : tuple of Turn
        From ``agent_turns``, with the policy and with ``"keep"``.
    flop_per_token : float
        FLOP of the weights for one token.
    flop_per_pair : float
        FLOP of one (query, key) pair in all layers.
    kv_bytes_per_token : float
        Cache bytes of one token.

    Examples
    --------
    >>> chat = dict(steps=10, prompt_tokens=1000, answer_tokens=100, tool_tokens=900)
    >>> found = trimming(
    ...     agent_turns("trim", keep=1, **chat),
    ...     agent_turns("keep", **chat),
    ...     flop_per_token=1.0,
    ...     flop_per_pair=0.0,
    ...     kv_bytes_per_token=1.0,
    ... )
    >>> [round(entry.amount) for entry in found.entries]
    [800, -7200, -3240000]
    """
    values: dict[str, Value] = {}
    for name, many in (("new", turns), ("old", kept)):
        values |= {
            f"computed_{name}": tuple(float(turn.computed) for turn in many),
            f"pairs_{name}": tuple(_pairs(turn) for turn in many),
            f"seen_{name}": tuple(float(_seen(turn)) for turn in many),
            f"peak_{name}": max(turn.context + turn.written for turn in many),
            f"written_{name}": sum(turn.written for turn in many),
        }

    def change(name: str) -> float:
        new, old = values[f"{name}_new"], values[f"{name}_old"]
        if isinstance(new, tuple) and isinstance(old, tuple):
            return math.fsum(new) - math.fsum(old)
        return float(new) - float(old)  # type: ignore[arg-type]

    def summed(name: str) -> str:
        return f"(sum(x for x in {name}_new) - sum(x for x in {name}_old))"

    constants: dict[str, Value] = {
        "flop_per_token": flop_per_token, "flop_per_pair": flop_per_pair,
        "kv_bytes": kv_bytes_per_token,
    }  # fmt: skip

    def of(*names: str) -> dict[str, Value]:
        return {k: v for k, v in {**values, **constants}.items() if k.startswith(names)}

    source = "a prefix cache matches from the first token to the first that changed"
    entries = booked(
        SchedulingEntry(
            "tokens computed again", "prefill", "scheduling", "recompute", "compute",
            flop_per_token * change("computed"), "sequence",
            f"flop_per_token * {summed('computed')}", of("computed", "flop_per_token"), source,
        ),
        SchedulingEntry(
            "pairs", "prefill", "attention_kv", "core", "compute",
            flop_per_pair * change("pairs"), "sequence", f"flop_per_pair * {summed('pairs')}",
            of("pairs", "flop_per_pair"), "causal pairs of the computed tokens",
        ),
        SchedulingEntry(
            "longest context", "hold", "attention_kv", "cache", "resident",
            kv_bytes_per_token * change("peak"), "sequence", "kv_bytes * (peak_new - peak_old)",
            of("peak", "kv_bytes"), "cache bytes of the longest context",
        ),
        SchedulingEntry(
            "context read while answering", "decode", "attention_kv", "cache", "read",
            kv_bytes_per_token * change("seen"), "sequence", f"kv_bytes * {summed('seen')}",
            of("seen", "kv_bytes"), "each step of an answer reads the context before it",
        ),
        SchedulingEntry(
            "writing summaries", "decode", "scheduling", "recompute", "steps",
            change("written"), "sequence", "written_new - written_old", of("written"),
            "a summary is an answer of its own",
        ),
    )  # fmt: skip
    return Trimming(turns, kept, entries)


def _pairs(turn: Turn) -> float:
    n, p = turn.computed, turn.cached
    return n * p + n * (n + 1) / 2.0


def _seen(turn: Turn) -> float:
    """Tokens that the steps of the answer read, the one they write included."""
    return turn.written * turn.context + turn.written * (turn.written + 1) / 2.0
