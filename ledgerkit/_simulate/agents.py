"""Agent loops: a system prompt, many tool steps, and what is done about old tool messages."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ledgerkit._simulate.arrivals import Arrivals, Keep
from ledgerkit.errors import WorkloadError

__all__ = ["agents"]


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
        "system_tokens": system_tokens, "tool_tokens": tool_tokens, "output_tokens": output_tokens,
        "keep_steps": keep_steps, "summary_tokens": summary_tokens, "every": every,
    }  # fmt: skip
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise WorkloadError(f"{name} is a whole number", given=value, allowed="1 or more")
    if not math.isfinite(tool_s) or tool_s < 0:
        raise WorkloadError("tool_s is a time", given=tool_s, allowed="0 or more seconds")
    if keep not in ("all", "trim", "summarise"):
        raise WorkloadError("unknown way to keep tool messages", given=keep,
                            allowed="all, trim, summarise")  # fmt: skip
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
