"""From a cost table, a scheduler and arrivals to the arrays that the kernels work on."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ledgerkit._simulate.scheduler import SMALLEST_BLOCK, Scheduler
from ledgerkit.costs.memory import Residence
from ledgerkit.errors import CapacityError
from ledgerkit.kernels import batch, serving
from ledgerkit.kernels import columns as c

if TYPE_CHECKING:
    from ledgerkit._simulate.arrivals import Arrivals
    from ledgerkit.costs.table import CostTable, Edge

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

TIMELINE_ROWS = 4096
_WHOLE = 1 << 40
"""Tokens of a block of a cache that does not grow with the context."""
_PREEMPTION = {"none": serving.PREEMPT_NEVER, "recompute": serving.PREEMPT_RECOMPUTE,
               "swap": serving.PREEMPT_SWAP}  # fmt: skip
_ROUTER = {"round_robin": serving.ROUND_ROBIN, "least_loaded": serving.LEAST_LOADED,
           "prefix_aware": serving.PREFIX_AWARE}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CachePlan:
    """The cache of one replica, in blocks."""

    blocks: int
    block_tokens: int
    extra_blocks: int
    """Blocks that a sequence holds besides: recurrent state, full sliding windows."""
    token_bytes: float
    """Bytes that one more token of context takes on the fullest device."""


def plan_cache(table: CostTable, how: Scheduler, longest: int) -> CachePlan:
    """Divide what memory leaves into blocks.

    ``longest`` is the longest sequence that will come, in tokens.

    Raises
    ------
    CapacityError
        Weights leave no room for a single block.
    """
    residence = Residence.of(table.holdings)
    growing = np.zeros_like(residence.base)
    fixed = residence.per_sequence.copy()
    for limit, ratio, block, per_token in residence.terms:
        if block > 1:
            continue  # rounding is what blocks do
        if limit == math.inf:
            growing = growing + per_token / ratio
        else:
            fixed = fixed + per_token * math.floor(min(limit, longest) / ratio)
    rooms = np.array([
        table.cache_room(float(base))
        for base in residence.base
    ])  # fmt: skip
    wanted = fixed + growing * longest
    at = int(np.argmin(rooms / np.maximum(wanted, 1e-9)))
    size = _block_tokens(table, how)
    ranks = table.deployment.dp_attention
    if growing[at] <= 0:
        unit = float(fixed[at])
        if unit <= 0:  # nothing is kept: seats are the only limit
            return CachePlan(1 << 20, _WHOLE, 0, 0.0)
        many = math.floor(rooms[at] / unit) if how.cache_tokens is None else how.cache_tokens
        plan = CachePlan(many * ranks, _WHOLE, 0, 0.0)
    else:
        unit = float(growing[at]) * size
        extra = math.ceil(fixed[at] / unit - 1e-9)
        if how.cache_tokens is None:
            many = math.floor(rooms[at] / unit)
        else:
            many = how.cache_tokens // size
        plan = CachePlan(many * ranks, size, extra, float(growing[at]))
    if plan.blocks < 1:
        raise CapacityError(
            f"no room for a cache beside the weights of {table.model.slug} on "
            f"{table.deployment.devices} x {table.hardware.slug}",
            given=f"{float(residence.base.max()) / 1e9:.1f} GB of weights per device",
            allowed="weights that leave room for a sequence",
            fix=_more_room(table),
        )  # fmt: skip
    return plan


def _more_room(table: CostTable) -> str:
    if table.profile.expert_offload:
        return (
            "experts in host memory are not simulated: price them with "
            "lk.scheduling('expert_offload', ...), or use more devices or fewer bits"
        )
    return "use more devices or fewer bits, or state cache_tokens= if you know that it runs"


def _block_tokens(table: CostTable, how: Scheduler) -> int:
    """Tokens of a block; with a recurrent state, enough for one state, as engines page hybrids."""
    size = max(SMALLEST_BLOCK, how.block_size or SMALLEST_BLOCK)
    held = table.holdings
    state = max((h.per_sequence for h in held), default=0.0)
    token = max((h.per_token for h in held if h.block == 1 and h.limit == math.inf), default=0.0)
    if how.prefix_cache and state and token:
        size = max(size, math.ceil(state / token / SMALLEST_BLOCK) * SMALLEST_BLOCK)
    return size


def captured_sizes(table: CostTable, how: Scheduler, seats: int) -> Ints:
    """Slots that n decoding sequences run as, for n = 0 to all seats; 0 = without a graph."""
    sizes, profile = np.array(table.profile.graph_capture_sizes, np.int64), table.profile
    ranks, stages = table.deployment.dp_attention, table.deployment.pp
    found = np.arange(seats + 1)
    if not len(sizes):
        # variable sizes; a library that steps through Python captures none
        return found * 0 if profile.batching == "static" else found
    for n in range(1, seats + 1):
        mine, _, batches = batch.spread(float(n), float(ranks), float(stages))
        at = int(np.searchsorted(sizes, mine))
        if at == len(sizes) or (not how.graph_padding and sizes[at] != mine):
            found[n] = 0
        elif sizes[at] != mine:
            found[n] = int(sizes[at] * ranks * batches)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Arrays:
    """Everything one run works on, in the order in which ``simulator.run`` takes it."""

    asked: Ints
    segments: Ints
    fate: Ints
    settings: Ints
    rates: Floats
    replicas: Ints
    slots: Ints
    table: npt.NDArray[np.int32]
    ring: npt.NDArray[np.int32]
    names: npt.NDArray[np.uint64]
    buckets: npt.NDArray[np.int32]
    heap: Ints
    counters: Ints
    areas: Floats
    gaps: Ints
    timeline: Ints
    crowd: Floats
    ops: Floats
    links: Floats
    scalars: Floats
    keys: Floats
    layout: Floats
    whole: Ints
    part: Floats
    rows: Ints
    other: Ints
    steps: Ints

    def inputs(self, iterations: int) -> tuple[Any, ...]:
        """Arguments of ``simulator.run``."""
        return (*(getattr(self, field.name) for field in fields(self)), iterations)


def price_arrays(
    table: CostTable, how: Scheduler, edge: Edge = "mid"
) -> tuple[Floats, Floats, Floats]:
    """Rows of operations with the keys that they see tokens through; keys; layout."""
    ops = table.ops[edge]
    whole = ops[:, :, [c.WINDOW, c.TOPK, c.RATIO, c.CHUNK]]
    through = np.stack([whole[..., 0], whole[..., 1] * whole[..., 2], whole[..., 3]], axis=-1)
    matters = (ops[:, :, c.F_PAIR] != 0) | (ops[:, :, c.R_KV] != 0)
    kinds = list(dict.fromkeys(tuple(row) for row in through[matters].tolist()))
    key = np.full(ops.shape[:2], -1.0)
    for phase, i in zip(*np.nonzero(matters), strict=True):
        key[phase, i] = kinds.index(tuple(through[phase, i].tolist()))
    moving = matters[1] | (ops[1, :, c.SCOPE] == c.SCOPE_CONTEXT)
    first = int(np.argmax(moving)) if moving.any() else ops.shape[1]
    layout = table.deployment
    about = [layout.dp_attention, layout.pp, table.model.num_hidden_layers, how.draft_tokens, first]
    return (
        np.ascontiguousarray(np.concatenate([ops, key[:, :, None]], axis=2)),
        np.array(kinds, np.float64).reshape(-1, 3),
        np.array(about, np.float64),
    )


def settings_of(
    table: CostTable, how: Scheduler, plan: CachePlan, arrivals: Arrivals, warm: int
) -> Ints:
    """Settings of the kernel; ``how`` is filled in."""
    longest = int((arrivals.prompt_tokens + arrivals.output_tokens).max())
    limit = table.deployment.max_model_len or table.model.max_position_embeddings
    ranks, budget = table.deployment.dp_attention, how.max_num_batched_tokens or 1
    seats = min((how.max_num_seqs or 1) * ranks, arrivals.requests, plan.blocks)
    reserve = 0
    if how.cache_allocation == "contiguous":
        reserve = how.reserve_tokens or min(longest, limit)
    elif how.preemption == "none":
        reserve = -1
    static = how.batching == "static"
    found = np.zeros(serving.SETTINGS, np.int64)
    found[serving.S_BUDGET] = min(budget * ranks, 1 << 40)
    found[serving.S_CAP] = min(budget, 1 << 40)
    found[serving.S_SEATS] = seats
    found[serving.S_BLOCK] = plan.block_tokens
    found[serving.S_EXTRA] = plan.extra_blocks
    found[serving.S_CHUNKED] = bool(how.chunked_prefill) or static
    found[serving.S_MIXED] = bool(how.mixed_prefill)
    found[serving.S_STATIC] = static
    found[serving.S_PREFIX] = bool(how.prefix_cache) and plan.block_tokens < _WHOLE
    found[serving.S_PREEMPT] = _PREEMPTION[how.preemption or "none"]
    found[serving.S_RESERVE] = reserve
    found[serving.S_DRAFT] = how.draft_tokens
    found[serving.S_SEED] = how.seed
    found[serving.S_ROUTER] = _ROUTER[how.router]
    found[serving.S_LONGEST] = limit
    found[serving.S_WARM] = warm
    return found


def prepare(
    table: CostTable, how: Scheduler, plan: CachePlan, arrivals: Arrivals, warm: int = 0
) -> Arrays:
    """Lay out the arrays of a run; ``how`` is filled in."""
    settings = settings_of(table, how, plan, arrivals, warm)
    n, seats, replicas = arrivals.requests, int(settings[serving.S_SEATS]), how.replicas
    ops, keys, layout = price_arrays(table, how)
    links = np.ascontiguousarray(table.link_rows["mid"])
    captured = captured_sizes(table, how, seats)
    whole = np.zeros((3, max(seats, int(captured.max())) + 1), np.int64)
    whole[batch.T_RUNS, : seats + 1] = captured
    reused = bool(settings[serving.S_PREFIX])
    longest = int((arrivals.prompt_tokens + arrivals.output_tokens).max())
    # a request that is beyond the model or the whole cache is rejected when it comes
    longest = min(longest, int(settings[serving.S_LONGEST]))
    most = max(longest, int(settings[serving.S_RESERVE])) + how.draft_tokens
    held = min(-(-most // plan.block_tokens) + plan.extra_blocks, plan.blocks)
    wide = held + 1 if reused else 1
    many = plan.blocks if reused else 0
    asked = arrivals.asked()
    # an answer reaches its client, and the next request the engine, after the request path
    path = round((how.request_path_s or 0.0) * batch.PER_SECOND)
    asked[arrivals.predecessor >= 0, serving.Q_GAP] += path
    fate = np.zeros((n, serving.FATE), np.int64)
    fate[:, [serving.F_ARRIVED, serving.F_STARTED, serving.F_FIRST, serving.F_FINISHED]] = -1
    move = plan.token_bytes / (table.hardware.pcie_bytes_per_s or math.inf) * batch.PER_SECOND
    return Arrays(
        asked=asked,
        segments=np.stack([arrivals.segment_ids, arrivals.segment_tokens], axis=1),
        fate=fate,
        settings=settings,
        rates=np.array([how.acceptance, move]),
        replicas=np.zeros((replicas, serving.REPLICA), np.int64),
        slots=np.zeros((replicas, seats, serving.SLOT), np.int64),
        table=np.zeros((replicas, seats, wide), np.int32),
        ring=np.zeros((replicas, plan.blocks + 1, 3), np.int32),
        names=np.zeros((replicas, many), np.uint64),
        buckets=np.zeros((replicas, 1 << max(4, (4 * many).bit_length())), np.int32),
        heap=np.zeros((2, arrivals.chained + 1), np.int64),
        counters=np.zeros(serving.COUNTERS, np.int64),
        areas=np.zeros((replicas, serving.AREAS)),
        gaps=np.zeros(serving.GAP_BINS, np.int64),
        timeline=np.zeros((TIMELINE_ROWS, 6), np.int64),
        crowd=np.zeros((replicas, 1 + 2 * len(keys))),
        ops=ops,
        links=links,
        scalars=np.ascontiguousarray(table.scalars["mid"]),
        keys=keys,
        layout=layout,
        whole=whole,
        part=np.zeros((2, whole.shape[1])),
        rows=np.zeros((replicas, 2, ops.shape[1], 2), np.int64),
        other=np.zeros((replicas, batch.BOOKS + links.shape[1]), np.int64),
        steps=np.zeros((replicas, whole.shape[1]), np.int64),
    )
