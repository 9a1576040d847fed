"""Prefix cache and radix tree: prefill that is not done again, for cache that stays.

A hit covers whole blocks and leaves a token to compute; the workload's ``cached_tokens`` say so.
The prefix of one prompt is held besides what the running sequences hold. With a
``reuse_interval_s``, phase ``hold`` has two entries of time: what one use saves, and the share of
the cache's room that the prefix takes while it waits, in seconds of the device. A radix tree holds
a prefix that all running sequences begin with once.
"""

from __future__ import annotations

import math

from ledgerkit._techniques.point import Point
from ledgerkit._techniques.sides import Overlay, Row, Side, State
from ledgerkit.catalog.engines import load_engine
from ledgerkit.costs.scheduling import prefix
from ledgerkit.errors import TechniqueError
from ledgerkit.spec.attention import StateAttention
from ledgerkit.spec.axes import Account, Phase

_STATE_BLOCK = 16
LOOKUP_SHARE = 0.2 / 74.3
"""Host time of a radix tree over that of the requests (arXiv 2312.07104)."""


def apply_prefix_cache(
    state: State,
    *,
    match_share: float = 0.875,
    reuse_interval_s: float | None = None,
    recompute_s_per_token: float | None = None,
    pool_bytes: float | None = None,
) -> State:
    """Find ``match_share`` of each prompt in the prefix cache."""
    point, hit = _hit(state.point, match_share)
    one = _prefix_bytes(point, hit)

    def book(phase: Phase, rows: list[Row]) -> list[Row]:
        if phase == "prefill":
            return [*rows, _lookup(state.point)]
        if phase != "hold":
            return rows
        found = [*rows, _resident("cache", "prefix held between uses", one, point)]
        if reuse_interval_s is not None:
            found += _room(state.point, point, hit, one, reuse_interval_s, recompute_s_per_token,
                           pool_bytes)  # fmt: skip
        return found

    note = f"{hit} of {point.workload.prompt_tokens} prompt tokens found, in whole blocks"
    return state.moved(point).booked(Overlay(book, notes=(note,)))


def apply_radix(state: State, *, match_share: float = 0.875) -> State:
    """Let all running sequences begin with one prefix, which is held once."""
    point, hit = _hit(state.point, match_share)
    sequences = point.workload.sequences_per_rank(point.deployment)
    one = _prefix_bytes(point, hit)
    whole_prefix = prefix.radix_sharing(
        kv_bytes_per_token=one / hit, shared_tokens=hit, own_tokens=0, requests=sequences
    )

    def book(phase: Phase, rows: list[Row]) -> list[Row]:
        if phase == "prefill":
            return [*rows, _lookup(state.point)]
        if phase != "hold":
            return rows
        return [*rows, _resident("cache", whole_prefix.op, whole_prefix.amount, point)]

    free = _room_bytes(point)
    # each sequence beyond the first brings what is its own
    own = (_one_sequence_bytes(point) - one) or math.inf
    seats = math.floor(max(0.0, free - one) / own) * point.deployment.dp_attention
    note = f"{hit} of {point.workload.prompt_tokens} prompt tokens are shared by all sequences"
    return state.moved(point).booked(Overlay(book, {"max_concurrency": float(seats)}, (note,)))


def remove_prefix(state: State) -> State:
    """Compute every prompt from its first token on."""
    if not state.point.workload.cached_tokens:
        raise TechniqueError("no prompt token is cached", given="cached_tokens=0",
                             fix="use action='apply'")  # fmt: skip
    point = state.point.with_workload(cached_tokens=0)
    one = _prefix_bytes(state.point, state.point.workload.cached_tokens)

    def book(phase: Phase, rows: list[Row]) -> list[Row]:
        if phase != "hold":
            return rows
        return [*rows, _resident("cache", "prefix held between uses", -one, point)]

    return state.moved(point).booked(Overlay(book))


def _hit(point: Point, match_share: float) -> tuple[Point, int]:
    work = point.workload
    if work.cached_tokens:
        raise TechniqueError(
            "the workload has cached tokens already", given=work.cached_tokens,
            fix="give a workload without, or use action='remove'",
        )  # fmt: skip
    if not 0 < match_share <= 1:
        raise TechniqueError("match_share is out of range", given=match_share,
                             allowed="above 0, up to 1", fix="give match_share=0.875")  # fmt: skip
    profile = load_engine(point.deployment.engine).for_device(point.hardware)
    if not profile.prefix_cache:
        raise TechniqueError(f"{profile.slug} has no prefix cache", given=profile.slug,
                             fix="use another engine")  # fmt: skip
    block = point.deployment.block_size or profile.block_size
    hybrid = any(isinstance(group.attention, StateAttention) for group in point.model.groups)
    if hybrid:
        block = max(block, _state_block(point))
    hit = prefix.hit_tokens(math.floor(work.prompt_tokens * match_share), work.prompt_tokens, block)
    if hit < 1:
        raise TechniqueError(
            f"nothing is found: a block has {block} tokens", given=work.prompt_tokens,
            fix="give a longer prompt or a larger match_share",
        )  # fmt: skip
    return point.with_workload(cached_tokens=hit), hit


def _state_block(point: Point) -> int:
    """Tokens between two stored states: a page of attention as large as a state, in 16s."""
    states = [
        2.0 * group.attention.conv_elements() + 4.0 * group.attention.state_elements
        for group in point.model.groups
        if isinstance(group.attention, StateAttention)
    ]
    tokens = [
        group.attention.elements_per_token * 2.0
        for group in point.model.groups
        if group.attention.elements_per_token
    ]
    return _STATE_BLOCK * math.ceil(max(states) / (_STATE_BLOCK * max(tokens))) if tokens else 1


def _prefix_bytes(point: Point, tokens: int) -> float:
    """Bytes on a device of the cache of a prefix."""
    own = point.model.cache_bytes(tokens, point.deployment.kv_dtype)
    held = Side(State(point.with_workload(prompt_tokens=tokens + 1, cached_tokens=0,
                                          output_tokens=1, concurrency=1)))  # fmt: skip
    on_device = sum(
        row.amount for row in held.rows("hold") if not row.weights and row.ledger == "attention_kv"
    )
    whole = point.model.cache_bytes(tokens + 2, point.deployment.kv_dtype)
    return on_device * own / whole if whole else 0.0


def _one_sequence_bytes(point: Point) -> float:
    one, two = (
        Side(State(point.with_workload(concurrency=n * point.deployment.dp_attention)))
        .total("hold", "resident")
        for n in (1, 2)
    )  # fmt: skip
    return two - one


def _room_bytes(point: Point) -> float:
    """Room for cache on a device: capacity less weights and reserve."""
    side = Side(State(point))
    taken = (row for row in side.rows("hold") if row.weights or row.account == "padding")
    return side.ledger.capacity_bytes - math.fsum(row.amount for row in taken)


def _lookup(point: Point) -> Row:
    """Host time of finding and keeping the tree, as a share of prefill without it."""
    return Row("prefill", "scheduling", "host", "finding the prefix", "time",
               LOOKUP_SHARE * point.books().ttft_s, None)  # fmt: skip


def _resident(account: Account, op: str, amount: float, point: Point) -> Row:
    return Row("hold", "attention_kv", account, op, "resident", amount,
               amount * point.deployment.devices)  # fmt: skip


def _room(
    before: Point, after: Point, hit: int, one: float, interval_s: float,
    per_token_s: float | None, pool: float | None,
) -> list[Row]:  # fmt: skip
    """Device time that one reuse saves, and that holding keeps from other sequences."""
    if per_token_s is None:
        saved = before.books().ttft_s - after.books().ttft_s
    else:
        saved = per_token_s * hit
    room = _room_bytes(after) if pool is None else pool
    if room <= 0:
        raise TechniqueError("there is no room for a cache", given=room,
                             fix="give pool_bytes, or a deployment that fits")  # fmt: skip
    return [
        Row("hold", "scheduling", "recompute", "prefix not computed again", "time", -saved, None),
        Row("hold", "scheduling", "queue", "room kept from others", "time",
            interval_s * one / room, None),
    ]  # fmt: skip
