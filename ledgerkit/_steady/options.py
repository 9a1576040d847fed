"""What a loaded point depends on besides model, hardware, deployment and workload."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from ledgerkit._data import data_path
from ledgerkit.costs.table import CostTable
from ledgerkit.errors import WorkloadError
from ledgerkit.spec._base import Count, Frozen, Size, raise_from_validation
from ledgerkit.spec.deployment import Workload
from ledgerkit.spec.efficiency import Band

__all__ = ["Assumption", "Serving", "assumptions", "serving_constant"]

Arrival = Literal["closed_loop", "poisson"]


class Serving(Frozen):
    """How requests arrive and how the engine treats them; None = the default that is stated.

    Examples
    --------
    >>> Serving(tokens_per_step=2.5, draft_tokens=3).tokens_per_step
    2.5
    """

    arrival: Arrival = "closed_loop"
    """``closed_loop``: each client sends its next request when an answer is complete, and all start
    at once. ``poisson``: requests arrive at ``arrival_rate_per_s``, whatever the server does."""
    arrival_rate_per_s: Annotated[float, Field(gt=0)] | None = None
    """Requests per second of a Poisson stream."""
    mixed_prefill: bool | None = None
    """Whether prompt chunks ride along with decode steps."""
    tokens_per_step: Annotated[float, Field(ge=1)] = 1.0
    """Tokens that one step yields for a sequence: more than 1 under speculation."""
    draft_tokens: Count = 0
    """Drafted tokens that one step verifies for each sequence."""
    length_variation: Annotated[float, Field(ge=0)] = 0.1
    """Coefficient of variation of the lengths; 0 = all requests have the same lengths."""
    wait_share: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share of the other clients' prefills that a request waits for (closed loop)."""
    request_path_s: Annotated[float, Field(ge=0)] | None = None
    """Seconds outside the engine's steps: network, parsing, tokenization, first response."""
    seats: Size | None = None
    """Sequences that run at once on a replica, if known; None = what memory and engine allow."""

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise_from_validation(error, WorkloadError, "steady_state")

    @model_validator(mode="after")
    def _rate_of_a_stream(self) -> Serving:
        if self.arrival == "poisson" and self.arrival_rate_per_s is None:
            msg = "poisson arrivals need arrival_rate_per_s"
            raise ValueError(msg)
        if self.arrival == "closed_loop" and self.arrival_rate_per_s is not None:
            msg = "a closed loop has no arrival_rate_per_s; give arrival='poisson'"
            raise ValueError(msg)
        if self.tokens_per_step > 1 + self.draft_tokens:
            msg = f"{self.draft_tokens} draft_tokens yield at most {1 + self.draft_tokens} per step"
            raise ValueError(msg)
        return self

    def mixes(self, table: CostTable) -> bool:
        """Whether prefill chunks ride along with decode steps on this engine."""
        given = self.mixed_prefill
        return table.profile.mixed_prefill if given is None else given

    def in_step(self, table: CostTable) -> bool:
        """Whether equal requests stay in step: equal lengths, and prefill comes first."""
        return self.length_variation == 0 and not self.mixes(table)

    def waits(self, table: CostTable) -> float:
        """Share of the other prefills that a request waits for."""
        if self.wait_share is not None:
            return self.wait_share
        name = "wait_share_in_step" if self.in_step(table) else "wait_share"
        return serving_constant(name).mid

    def path_s(self) -> float:
        """Request path in seconds."""
        if self.request_path_s is not None:
            return self.request_path_s
        return serving_constant("request_path_s").mid


@dataclass(frozen=True, slots=True)
class Assumption:
    """One input of a loaded point: its value, and whether anybody stated it."""

    name: str
    value: str | float | int | bool
    origin: str


@cache
def _constants() -> dict[str, tuple[Band, str]]:
    with data_path("serving.csv").open(encoding="utf-8", newline="") as file:
        return {
            row["quantity"]: (
                Band(low=float(row["low"]), mid=float(row["mid"]), high=float(row["high"])),
                row["source"],
            )
            for row in csv.DictReader(file)
        }


def serving_constant(name: str) -> Band:
    """Look up a default of the serving side in ``data/serving.csv``.

    Examples
    --------
    >>> serving_constant("wait_share").mid
    0.05
    """
    return _constants()[name][0]


def assumptions(table: CostTable, workload: Workload, serving: Serving) -> tuple[Assumption, ...]:
    """Every input that moves the result, with where its value came from."""
    deployment, profile = table.deployment, table.profile
    engine = f"default of the {profile.name} {profile.version} profile"

    def one(name: str, given: Any, value: Any, otherwise: str) -> Assumption:
        return Assumption(name, value, otherwise if given is None else "given")

    found = [
        Assumption("arrival", serving.arrival, "given or default: closed loop, burst start"),
        one("kv_dtype", None, deployment.kv_dtype, "of the deployment"),
        one("max_num_batched_tokens", deployment.max_num_batched_tokens, table.chunk_tokens,
            engine),
        one("mixed_prefill", serving.mixed_prefill, serving.mixes(table), engine),
        one("max_num_seqs", deployment.max_num_seqs,
            deployment.max_num_seqs or profile.max_num_seqs, engine),
        one("memory_fraction", deployment.memory_fraction,
            deployment.memory_fraction or profile.memory_fraction, engine),
        one("cached_tokens", None, workload.cached_tokens, "of the workload"),
        Assumption("tokens_per_step", serving.tokens_per_step, "given; 1 = no speculation"),
        Assumption("draft_tokens", serving.draft_tokens, "given; 0 = no speculation"),
        Assumption("length_variation", serving.length_variation, "given; default 0.1"),
    ]  # fmt: skip
    if serving.arrival == "poisson":
        found.append(Assumption("arrival_rate_per_s", serving.arrival_rate_per_s or 0.0, "given"))
    else:
        found.append(
            one("wait_share", serving.wait_share, serving.waits(table),
                "equal lengths and prefill first: requests stay in step" if serving.in_step(table)
                else "half of the burst start over ten rounds"),
        )  # fmt: skip
    found.append(
        one("request_path_s", serving.request_path_s, serving.path_s(), "default of a plain server")
    )
    if serving.seats is not None:
        found.append(Assumption("seats", serving.seats, "given"))
    return tuple(found)
