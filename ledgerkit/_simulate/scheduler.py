"""How an engine forms its batches: defaults of its profile, and what the caller changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from ledgerkit._steady.options import serving_constant
from ledgerkit.errors import DeploymentError
from ledgerkit.spec._base import Count, Frozen, Size, raise_from_validation

if TYPE_CHECKING:
    from ledgerkit.costs.table import CostTable

__all__ = ["Scheduler"]

SMALLEST_BLOCK = 16
"""Tokens; engines with smaller pages are simulated with these."""


class Scheduler(Frozen):
    """What the simulator does with requests; None = as the engine profile says.

    Examples
    --------
    >>> Scheduler(prefix_cache=False, replicas=2, router="least_loaded").replicas
    2
    """

    batching: Literal["continuous", "static"] | None = None
    """``static``: a batch starts together, padded to its longest, and ends with its last answer."""
    cache_allocation: Literal["paged", "contiguous"] | None = None
    """``contiguous``: ``reserve_tokens`` are taken for each request when it is admitted."""
    reserve_tokens: Size | None = None
    """Of a contiguous cache; None = the longest sequence of the arrivals."""
    block_size: Size | None = None
    """Tokens of a cache block; less than 16 are simulated as 16."""
    max_num_batched_tokens: Size | None = None
    """Tokens of one step per attention rank."""
    max_num_seqs: Size | None = None
    """Sequences that run at once per attention rank."""
    prefix_cache: bool | None = None
    chunked_prefill: bool | None = None
    mixed_prefill: bool | None = None
    """True: prompt chunks ride along with decode steps."""
    preemption: Literal["recompute", "swap", "none"] | None = None
    """``none``: a request is admitted when its whole answer has room. ``swap`` moves the cache of
    the newest sequence to host memory and back over PCIe."""
    graph_padding: bool | None = None
    """A decode batch between two captured sizes runs as the larger (True) or without a graph."""
    draft_tokens: Annotated[int, Field(ge=0, le=1024)] = 0
    """Drafted tokens that one step verifies for each sequence."""
    acceptance: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Probability that a drafted token is accepted, given that those before it were."""
    replicas: Annotated[int, Field(ge=1, le=1024)] = 1
    """Data-parallel replicas behind one router."""
    router: Literal["round_robin", "least_loaded", "prefix_aware"] = "least_loaded"
    """``prefix_aware``: where most of the prompt is cached; ties go to the least loaded."""
    cache_tokens: Annotated[int, Field(ge=1, le=1 << 32)] | None = None
    """Tokens of the cache of one attention rank, if known; None = what memory leaves."""
    request_path_s: Annotated[float, Field(ge=0, le=1e6)] | None = None
    """Seconds outside the engine: network, parsing, tokenization, first response."""
    seed: Count = 0
    """Of the acceptance of drafts."""

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise_from_validation(error, DeploymentError, "simulate", Scheduler.model_fields)

    @model_validator(mode="after")
    def _agrees(self) -> Scheduler:
        if self.acceptance and not self.draft_tokens:
            msg = "acceptance without draft_tokens: nothing is drafted"
            raise ValueError(msg)
        if self.batching == "static":
            if self.draft_tokens:
                msg = "a static batch does not speculate here: leave draft_tokens out"
                raise ValueError(msg)
            if self.prefix_cache:
                msg = "a static batch has no prefix cache here: leave prefix_cache out"
                raise ValueError(msg)
        return self

    def filled(self, table: CostTable) -> Scheduler:
        """Copy with every open field filled in from the deployment and its engine profile."""
        profile, layout = table.profile, table.deployment
        static = (self.batching or profile.batching) == "static"
        contiguous = (self.cache_allocation or profile.cache_allocation) == "contiguous"
        defaults = {
            "batching": profile.batching,
            "cache_allocation": profile.cache_allocation,
            "block_size": layout.block_size or profile.block_size,
            "max_num_batched_tokens": layout.max_num_batched_tokens
            or profile.max_num_batched_tokens,
            "max_num_seqs": layout.max_num_seqs or profile.max_num_seqs,
            "prefix_cache": profile.prefix_cache and not static,
            "chunked_prefill": profile.chunked_prefill,
            "mixed_prefill": profile.mixed_prefill,
            "preemption": "none" if static or contiguous else profile.preemption,
            "graph_padding": profile.graph_padding,
            "request_path_s": serving_constant("request_path_s").mid,
        }
        given = {name: value for name, value in self.model_dump().items() if value is not None}
        return Scheduler(**{**defaults, **given})
