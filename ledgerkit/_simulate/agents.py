"""Agent loops: a system prompt, many tool steps, and what is done about old tool messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ledgerkit._simulate.arrivals import Arrivals, Keep
from ledgerkit._simulate.lengths import LARGEST
from ledgerkit.errors import WorkloadError
from ledgerkit.spec._base import finite_number, whole_number

__all__ = ["agents"]

_MOST_SEGMENTS = 50_000_000
"""Pieces of prompts; each step repeats those before it."""


@dataclass(slots=True)
class _Prompts:
    """Segments of all prompts, and numbers for new content."""

    ids: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    start: list[int] = field(default_factory=lambda: [0])
    last: int = 0

    def new(self) -> int:
        """Content that nobody else has."""
        self.last += 1
        return self.last

    def add(self, parts: list[tuple[int, int]]) -> int:
        """Append a prompt; returns its tokens."""
        for content, size in parts:
            self.ids.append(content)
            self.tokens.append(size)
        self.start.append(len(self.ids))
        return sum(size for _, size in parts)


def agents(
    sessions: int, *, steps: int, concurrency: int, system_tokens: int, tool_tokens: int,
    output_tokens: int, tool_s: float = 1.0, keep: Keep = "all", keep_steps: int = 2,
    summary_tokens: int = 400, every: int = 5, seed: int = 0,
) -> Arrivals:  # fmt: skip
    """Make the requests of agent sessions; see ``Arrivals.agents``."""
    numbers: dict[str, Any] = {
        "sessions": sessions, "steps": steps, "concurrency": concurrency,
        "keep_steps": keep_steps, "every": every, "system_tokens": system_tokens,
        "tool_tokens": tool_tokens, "output_tokens": output_tokens,
        "summary_tokens": summary_tokens,
    }  # fmt: skip
    for name, value in numbers.items():
        most = LARGEST if name.endswith("_tokens") else _MOST_SEGMENTS
        whole_number(WorkloadError, name, value, most=most)
    if sessions * steps * steps > _MOST_SEGMENTS:
        raise WorkloadError(
            "sessions of so many steps are more than can be simulated", given=(sessions, steps),
            allowed=f"sessions * steps ** 2 up to {_MOST_SEGMENTS:,}",
            fix="ask for fewer sessions or steps",
        )  # fmt: skip
    tool_s = finite_number(WorkloadError, "tool_s", tool_s)
    if keep not in ("all", "trim", "summarise"):
        raise WorkloadError("unknown way to keep tool messages", given=keep,
                            allowed="all, trim, summarise", fix="use keep='all'")  # fmt: skip
    whole_number(WorkloadError, "seed", seed, 0)
    draw = np.random.default_rng(seed)
    prompts = _Prompts()
    system, stub = (prompts.new(), system_tokens), (prompts.new(), 8)
    prompt: list[int] = []
    output: list[int] = []
    before: list[int] = []
    answers: list[int] = []
    gap: list[float] = []
    last_of: list[int] = []
    for session in range(sessions):
        history: list[tuple[tuple[int, int], tuple[int, int]]] = []
        summary: tuple[int, int] | None = None
        message = (prompts.new(), max(1, round(tool_tokens * draw.uniform(0.5, 1.5))))
        for step in range(steps):
            own = [system] + ([summary] if summary else [])
            for age, (tool, answer) in enumerate(history):
                old = keep == "trim" and age < len(history) - keep_steps
                own += [stub if old else tool, answer]
            own.append(message)
            number, content = len(prompt), prompts.new()
            prompt.append(prompts.add(own))
            size = output_tokens
            output.append(size)
            answers.append(content)
            before.append(number - 1 if step else last_of[session - concurrency]
                          if session >= concurrency else -1)  # fmt: skip
            gap.append(tool_s * float(draw.exponential()) if before[-1] >= 0 else 0.0)
            history.append((message, (content, size)))
            message = (prompts.new(), max(1, round(tool_tokens * draw.uniform(0.5, 1.5))))
            if keep == "summarise" and len(history) >= every and step < steps - 1:
                # one more request reads everything once and writes the summary
                number, content = len(prompt), prompts.new()
                everything = [system] + ([summary] if summary else [])
                everything += [part for turn in history for part in turn]
                prompt.append(prompts.add([*everything, (prompts.new(), 32)]))
                output.append(summary_tokens)
                answers.append(content)
                before.append(number - 1)
                gap.append(0.0)
                summary, history = (content, summary_tokens), []
        last_of.append(len(prompt) - 1)
    first = np.array(before) < 0
    return Arrivals(
        arrival_s=np.where(first, 0.0, np.nan), prompt_tokens=np.array(prompt, np.int64),
        output_tokens=np.array(output, np.int64), predecessor=np.array(before, np.int64),
        gap_s=np.array(gap), segment_start=np.array(prompts.start, np.int64),
        segment_ids=np.array(prompts.ids, np.int64), segment_tokens=np.array(prompts.tokens,
                                                                             np.int64),
        answer_ids=np.array(answers, np.int64), concurrency=min(sessions, concurrency),
        label=f"agents: {sessions} sessions of {steps} steps, {min(sessions, concurrency)} at once",
    )  # fmt: skip
