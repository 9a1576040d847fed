"""The steps of a transfer, and what it means to move along an axis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ledgerkit._techniques.point import Point
from ledgerkit._techniques.sides import State
from ledgerkit.errors import TechniqueError
from ledgerkit.spec.axes import Phase

__all__ = ["Step", "moved_point", "run"]


@dataclass(frozen=True, slots=True)
class Step:
    """One technique with its settings."""

    technique: str
    action: Literal["apply", "remove"]
    settings: Mapping[str, Any]
    change: Callable[..., State]
    """(state, **settings) -> state."""
    rank: int = 0
    """Steps of a higher rank are booked on what those of lower rank lead to."""

    def __call__(self, state: State) -> State:
        return self.change(state, **self.settings)


def run(steps: Iterable[Step], start: State) -> State:
    """Take the steps: those that change model and deployment first, then those on the books."""
    state = start
    for step in sorted(steps, key=lambda step: step.rank):
        state = step(state)
    return state


def moved_point(point: Point, axis: str, value: float, phase: Phase) -> Point:
    """Point with one number of its workload, or the rate of its link, changed."""
    work = point.workload
    if axis == "context":
        # decode is priced in the middle of the answer, memory at its end
        less = {"prefill": 0, "decode": work.output_tokens // 2, "hold": work.output_tokens}[phase]
        return point.with_workload(prompt_tokens=int(value) - less)
    if axis == "query_tokens":
        return point.with_workload(prompt_tokens=work.cached_tokens + int(value))
    if axis in ("concurrency", "output_tokens", "cached_tokens", "prompt_tokens"):
        return point.with_workload(**{axis: int(value)})
    if axis == "link_bytes_per_s":
        name = "scaleup_bytes_per_s" if point.hardware.scaleup_bytes_per_s else "pcie_bytes_per_s"
        return point.with_hardware(**{name: float(value)})
    raise TechniqueError(
        "unknown axis", given=axis,
        allowed="context, prompt_tokens, query_tokens, concurrency, output_tokens, cached_tokens, "
        "link_bytes_per_s, or a number among the technique's settings",
        fix="use axis='context'",
    )  # fmt: skip
