"""Engine profiles: what a serving engine does by default, as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from ledgerkit.errors import DeploymentError
from ledgerkit.spec._base import Count, Frozen, Size, raise_from_validation
from ledgerkit.spec.efficiency import Band

if TYPE_CHECKING:
    from ledgerkit.spec.hardware import Hardware

__all__ = ["UNLIMITED", "DeviceTier", "EngineProfile", "Workspace"]

UNLIMITED = 2**31 - 1
"""What a profile states for a limit that the engine does not have; tables show it as missing."""

Fraction = Annotated[float, Field(gt=0, le=1)]


class DeviceTier(Frozen):
    """Defaults that an engine changes with the memory of the device."""

    min_memory_bytes: Count
    """The tier holds for devices with at least this much memory, below the next tier."""
    except_slugs: tuple[str, ...] = ()
    """Beginnings of the names of devices that fall through to the tier below."""
    max_num_batched_tokens: Size | None = None
    max_num_seqs: Size | None = None
    memory_fraction: Fraction | None = None
    graph_capture_sizes: tuple[Size, ...] | None = None


class Workspace(Frozen):
    """What an engine keeps of each device besides weights and cache, from its own logs."""

    logit_bytes: Band
    """Bytes for each seat and entry of the vocabulary."""
    other_bytes: Band
    """Driver and libraries; at the high end also captured graphs, which some builds count."""
    parallel_bytes: Band
    """What communication adds where there are several ranks."""
    mxfp4_repacking: Band
    """What loading adds to the stored bytes of MXFP4 weights, as a fraction of them."""
    source: str


class EngineProfile(Frozen):
    """Defaults of one engine, with the version they were read from and the source.

    The fields hold for a server on a device with 80 GB, unless ``tiers`` say otherwise for
    another: :meth:`for_device` applies them.
    """

    slug: str
    name: str
    version: str
    aliases: tuple[str, ...] = ()
    """Other names that people use."""
    source: str
    batching: Literal["continuous", "static"] = "continuous"
    max_num_batched_tokens: Size
    """Tokens of one engine step: the longest prefill chunk."""
    max_num_seqs: Size
    """Most sequences that run at once per attention rank."""
    chunked_prefill: bool = True
    """False: a prompt longer than the budget is refused, not cut."""
    cache_allocation: Literal["paged", "contiguous"] = "paged"
    """Contiguous: room for the longest sequence is taken when a request, or the server, starts."""
    block_size: Size
    """Tokens of a cache block; of a contiguous cache, the multiple that its length is padded to."""
    memory_fraction: Fraction
    memory_fraction_of: Literal["total", "free", "none"] = "total"
    """Of all memory, of what is free after the weights are loaded, or no such limit."""
    memory_fraction_covers: Literal["everything", "weights_and_cache", "cache"] = "everything"
    """What has to fit into the fraction; activations and graphs take the rest if not covered."""
    mixed_prefill: bool = True
    """True: prompt chunks ride along with decode steps; False: they run in steps of their own."""
    prefix_cache: bool = True
    preemption: Literal["recompute", "none"] = "recompute"
    """What happens to a running request when the cache is full; none: it is never let in."""
    overlap: Annotated[float, Field(ge=0, le=1)] = 0.0
    """ρ: share of communication hidden behind compute."""
    graph_capture_sizes: tuple[Size, ...] = ()
    """Decode batch sizes with a captured graph; a batch between two of them runs as the larger."""
    graph_padding: bool = True
    """False: a batch between two captured sizes runs without a graph."""
    speculation: tuple[str, ...] = ()
    """Forms of speculative decoding that the engine has; all are off by default."""
    expert_offload: tuple[Literal["stream", "in_place"], ...] = ()
    """Routed experts in host memory: streamed to the device, or computed by the host in place."""
    window_pool_ratio: Fraction | None = None
    """Windows have a pool of their own, with this many tokens per token of the main one; None =
    all layers share one pool of pages."""
    state_pool_ratio: Annotated[float, Field(gt=0)] | None = None
    """Bytes of the states' own pool for each byte of the others; goes with the one above."""
    page_groups: bool = True
    """Layers that keep different tokens share one pool of equal pages, group by group, as in vLLM;
    False = how this engine shares its pool among them is not known."""
    workspace: Workspace | None = None
    """None: its needs have not been measured."""
    tiers: tuple[DeviceTier, ...] = ()
    """By memory of the device, largest first."""
    notes: str = ""

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise_from_validation(error, DeploymentError, "EngineProfile")

    @model_validator(mode="after")
    def _descending(self) -> EngineProfile:
        bounds = [tier.min_memory_bytes for tier in self.tiers]
        if bounds != sorted(set(bounds), reverse=True):
            msg = "tiers go from the largest memory to the smallest, each once"
            raise ValueError(msg)
        if (self.window_pool_ratio is None) != (self.state_pool_ratio is None):
            msg = "window_pool_ratio and state_pool_ratio go together"
            raise ValueError(msg)
        sizes = list(self.graph_capture_sizes)
        if sizes != sorted(set(sizes)):
            msg = "graph_capture_sizes rise"
            raise ValueError(msg)
        return self

    def for_device(self, hardware: Hardware) -> EngineProfile:
        """Profile with the defaults that the engine picks on this device.

        Examples
        --------
        >>> import ledgerkit as lk
        >>> from ledgerkit.catalog.engines import load_engine
        >>> load_engine("vllm").for_device(lk.load_hardware("l4-24gb")).max_num_batched_tokens
        2048
        """
        for tier in self.tiers:
            if hardware.memory_bytes < tier.min_memory_bytes:
                continue
            if hardware.slug.startswith(tier.except_slugs):
                continue
            changed = tier.model_dump(
                exclude={"min_memory_bytes", "except_slugs"}, exclude_none=True
            )
            return self.model_copy(update=changed)
        return self
