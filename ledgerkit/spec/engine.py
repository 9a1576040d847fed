"""Engine profiles: what a serving engine does by default, as data."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ledgerkit.spec._base import Frozen, Size


class EngineProfile(Frozen):
    """Defaults of one engine, with the version they were read from and the source."""

    slug: str
    name: str
    version: str
    source: str
    batching: Literal["continuous", "static"] = "continuous"
    max_num_batched_tokens: Size
    max_num_seqs: Size
    block_size: Size
    memory_fraction: Annotated[float, Field(gt=0, le=1)]
    memory_fraction_of: Literal["total", "free", "none"] = "total"
    mixed_prefill: bool = True
    """True: prompt chunks ride along with decode steps; False: they run in steps of their own."""
    prefix_cache: bool = True
    overlap: Annotated[float, Field(ge=0, le=1)] = 0.0
    """ρ: share of communication hidden behind compute."""
    notes: str = ""
