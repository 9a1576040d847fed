"""Closed forms of the scheduling ledger: one file per mechanism, each returns account entries.

Pure functions on plain numbers: what a mechanism needs to know of a model or a device is passed in.
"""

from __future__ import annotations

from ledgerkit.costs.scheduling.batching import Batching, continuous_batching
from ledgerkit.costs.scheduling.chunking import Chunking, balanced_chunk_tokens, chunked_prefill
from ledgerkit.costs.scheduling.entry import SchedulingEntry
from ledgerkit.costs.scheduling.exchange import (
    combine_bytes,
    dispatch_bytes,
    low_latency_buffers,
    low_latency_exchange,
    normal_exchange,
)
from ledgerkit.costs.scheduling.experts import (
    distinct_nodes,
    expert_imbalance,
    fullest_rank,
    fullest_reads,
    node_limited_routing,
    tile_rows,
)
from ledgerkit.costs.scheduling.graphs import GraphPadding, graph_padding, padded
from ledgerkit.costs.scheduling.lengths import OutputLengths
from ledgerkit.costs.scheduling.offload import Offload, expert_offload
from ledgerkit.costs.scheduling.paging import Paging, paged_cache
from ledgerkit.costs.scheduling.pipeline import bubble_share, pipeline_bubble
from ledgerkit.costs.scheduling.pools import disaggregation
from ledgerkit.costs.scheduling.prefix import (
    PrefixHit,
    break_even_reuse_s,
    hit_tokens,
    prefix_hit,
    radix_sharing,
    restore_s_per_token,
)
from ledgerkit.costs.scheduling.speculation import (
    Speculation,
    crossover,
    expert_growth,
    speculative_decoding,
    tokens_per_step,
)
from ledgerkit.costs.scheduling.trimming import Policy, Trimming, Turn, agent_turns, trimming

__all__ = [
    "Batching",
    "Chunking",
    "GraphPadding",
    "Offload",
    "OutputLengths",
    "Paging",
    "Policy",
    "PrefixHit",
    "SchedulingEntry",
    "Speculation",
    "Trimming",
    "Turn",
    "agent_turns",
    "balanced_chunk_tokens",
    "break_even_reuse_s",
    "bubble_share",
    "chunked_prefill",
    "combine_bytes",
    "continuous_batching",
    "crossover",
    "disaggregation",
    "dispatch_bytes",
    "distinct_nodes",
    "expert_growth",
    "expert_imbalance",
    "expert_offload",
    "fullest_rank",
    "fullest_reads",
    "graph_padding",
    "hit_tokens",
    "low_latency_buffers",
    "low_latency_exchange",
    "node_limited_routing",
    "normal_exchange",
    "padded",
    "paged_cache",
    "pipeline_bubble",
    "prefix_hit",
    "radix_sharing",
    "restore_s_per_token",
    "speculative_decoding",
    "tile_rows",
    "tokens_per_step",
    "trimming",
]
