"""An engine, iteration by iteration: queue, batch, cache, clock.

One event is one iteration of one replica: pull arrivals, schedule running sequences, admit others
in the order of their arrival, price the batch, move the clock, emit tokens. Everything is serial
and made of arrays of numbers, so a run depends on nothing but its inputs.
"""

from __future__ import annotations

import math

import numpy as np

from ledgerkit.kernels._jit import kernel
from ledgerkit.kernels.batch import (
    D_CONTEXT,
    D_KEYS,
    D_SEQUENCES,
    D_SLOTS,
    K_CHUNK,
    P_KEYS,
    P_TOKENS,
    Table,
    Ticks,
    price,
    tabulate,
)
from ledgerkit.kernels.blocks import Ids, Keys, Small, reset, uniform
from ledgerkit.kernels.gliding import attend, depart, join, settle
from ledgerkit.kernels.scheduler import admit, gather, leave, schedule
from ledgerkit.kernels.serving import (
    A_HELD,
    A_RUNNING,
    A_STORED,
    A_SYSTEM,
    A_WAITING,
    F_EMITTED,
    F_FINISHED,
    F_FIRST,
    F_LAST,
    GAP_BINS,
    N_EMITTED,
    N_FINISHED,
    N_HEAP,
    N_OPEN,
    N_ROWS,
    N_STEPS,
    N_STRIDE,
    PER_OCTAVE,
    Q_ARRIVAL,
    Q_OUTPUT,
    R_CLOCK,
    R_COUNT,
    R_DUE,
    R_FREE,
    R_GLIDE,
    R_GLIDERS,
    R_LAST,
    R_PEAK,
    R_SPARE,
    R_STEPS,
    R_WAITING,
    R_WARM,
    S_BLOCK,
    S_BUDGET,
    S_DRAFT,
    S_MIXED,
    S_SEED,
    S_STATIC,
    S_WARM,
    X_DONE,
    X_NEED,
    X_NOW,
    X_ORDER,
    X_REQUEST,
    X_SPARE,
    arrive,
    follow,
    pop,
)

RUNNING, DONE, STUCK, LATE = 0, 1, 2, 3
LAST = 4_000_000_000_000_000_000
"""Ticks after which a run ends: twice as many, and 64 bits overflow."""
_NEVER = 1 << 62
_EMPTY_STEPS = 8


@kernel
def gap_bin(gap: int) -> int:
    """Bin of a gap between two tokens."""
    return min(GAP_BINS - 1, max(0, int(math.log2(max(gap, 1) / 1e6) * PER_OCTAVE)))


@kernel
def _commit(
    asked: Ticks, fate: Ticks, s: Ticks, rates: Table, rep: Ticks, slots: Ticks, table: Small,
    ring: Small, heap: Ticks, n: Ticks, gaps: Ticks, r: int, first: int, end: int,
) -> int:  # fmt: skip
    """Emit the tokens of those behind the gliders, let finished requests go.

    ``first`` is where they stand in the running order; returns the tokens that they store.
    """
    static, draft, warm = s[S_STATIC] == 1, s[S_DRAFT], s[S_WARM]
    stored = alive = 0
    kept = rep[r, R_GLIDERS]
    last_gap, last_bin = -1, 0
    for i in range(first, rep[r, R_COUNT]):
        slot = slots[r, i, X_ORDER]
        request, now = slots[r, slot, X_REQUEST], slots[r, slot, X_NOW]
        finished = False
        if now > 0:
            slots[r, slot, X_NOW] = 0
            emitted, output = fate[request, F_EMITTED], asked[request, Q_OUTPUT]
            count = 1
            if slots[r, slot, X_DONE] < slots[r, slot, X_NEED]:
                slots[r, slot, X_DONE] += now
                count = 1 if slots[r, slot, X_DONE] == slots[r, slot, X_NEED] else 0
            else:
                while count <= draft and uniform(s[S_SEED], request, emitted + count) < rates[0]:
                    count += 1
                count = min(count, output - emitted)
                slots[r, slot, X_DONE] += count
            if count > 0:
                if fate[request, F_FIRST] < 0:
                    fate[request, F_FIRST] = end
                elif request >= warm:
                    gap = end - fate[request, F_LAST]
                    if gap != last_gap:
                        last_gap, last_bin = gap, gap_bin(gap)
                    gaps[last_bin] += 1
                fate[request, F_LAST] = end
                fate[request, F_EMITTED] = emitted + count
                n[N_EMITTED] += count
                finished = emitted + count == output
        elif static:
            slots[r, slot, X_DONE] += 1
        if finished:
            fate[request, F_FINISHED] = end
            n[N_FINISHED] += 1
            follow(asked, heap, n, request, end)
            if not static:
                leave(s, rep, slots, table, ring, r, slot)
                continue
        if static and fate[request, F_EMITTED] < asked[request, Q_OUTPUT]:
            alive += 1
        stored += slots[r, slot, X_DONE]
        slots[r, kept, X_ORDER] = slot
        kept += 1
    if static and alive == 0:
        for i in range(kept):
            leave(s, rep, slots, table, ring, r, slots[r, i, X_ORDER])
        kept = 0
    rep[r, R_COUNT] = kept
    return int(stored)


@kernel
def _note(
    n: Ticks, timeline: Ticks, rep: Ticks, r: int, running: int, held: int, tokens: int
) -> None:
    """Write a row of the timeline; when it is full, every second row goes."""
    if n[N_STEPS] % n[N_STRIDE] == 0 and n[N_ROWS] == timeline.shape[0]:
        for i in range(timeline.shape[0] // 2):
            for j in range(timeline.shape[1]):
                timeline[i, j] = timeline[2 * i, j]
        n[N_ROWS] = timeline.shape[0] // 2
        n[N_STRIDE] *= 2
    if n[N_STEPS] % n[N_STRIDE] == 0:
        row = n[N_ROWS]
        timeline[row, 0], timeline[row, 1] = rep[r, R_CLOCK], r
        timeline[row, 2], timeline[row, 3] = running, rep[r, R_WAITING]
        timeline[row, 4], timeline[row, 5] = held, tokens
        n[N_ROWS] += 1
    n[N_STEPS] += 1


@kernel
def start(
    rep: Ticks, slots: Ticks, ring: Small, n: Ticks, ops: Table, layout: Table, whole: Ticks,
    part: Table,
) -> None:  # fmt: skip
    """Tabulate prices, free all blocks and slots."""
    tabulate(ops, layout, whole, part)
    reset(ring)
    seats = slots.shape[1]
    for r in range(rep.shape[0]):
        for i in range(seats):
            slots[r, i, X_SPARE] = seats - 1 - i
        rep[r, R_SPARE] = seats
        rep[r, R_FREE] = ring.shape[1] - 1
    n[N_STRIDE] = 1


@kernel
def _coming(asked: Ticks, heap: Ticks, n: Ticks) -> int:
    """Time of the next arrival."""
    while n[N_OPEN] < asked.shape[0] and asked[n[N_OPEN], Q_ARRIVAL] < 0:
        n[N_OPEN] += 1
    time = _NEVER
    if n[N_OPEN] < asked.shape[0]:
        time = asked[n[N_OPEN], Q_ARRIVAL]
    if n[N_HEAP] > 0:
        time = min(time, heap[0, 0])
    return time


@kernel
def _earliest(rep: Ticks) -> tuple[int, int]:
    """Replica with work whose clock is behind the others', and its time; -1 = none."""
    found, time = -1, _NEVER
    for i in range(rep.shape[0]):
        if rep[i, R_COUNT] + rep[i, R_WAITING] > 0 and rep[i, R_CLOCK] < time:
            found, time = i, rep[i, R_CLOCK]
    return found, time


@kernel
def run(
    asked: Ticks, segments: Ids, fate: Ticks, s: Ticks, rates: Table, rep: Ticks, slots: Ticks,
    table: Small, ring: Small, names: Keys, buckets: Small, heap: Ticks, n: Ticks, areas: Table,
    gaps: Ticks, timeline: Ticks, crowd: Table, ops: Table, links: Table, scalars: Table,
    keys: Table,
    layout: Table, whole: Ticks, part: Table, rows: Ticks, other: Ticks, steps: Ticks, limit: int,
) -> int:  # fmt: skip
    """Simulate at most ``limit`` iterations; call again until it returns ``DONE``.

    Parameters
    ----------
    asked, segments, fate, s, rates, rep, slots, heap, n, areas
        See ``serving``; ``rates``, float64[2]: acceptance of a drafted token, and ticks to move one
        token of the cache to or from the host.
    table, ring, names, buckets
        See ``blocks``; ``table``, int32[replicas, seats, most blocks].
    gaps : int64[GAP_BINS]
    timeline : int64[rows, 6]
        Time, replica, running, waiting, used blocks, tokens.
    crowd : float64[replicas, 1 + 2 * keys]
        Sums over the gliders: context, tokens seen through each key, sequences that still grow.
    ops, links, scalars, keys, layout, whole, part, rows, other, steps
        See ``batch``.
    """
    count = keys.shape[0]
    d, p = np.zeros(D_KEYS + 3 * count), np.zeros(P_KEYS + 2 * count)
    cursor = np.zeros(4, np.int64)
    mixed, static, blocks = s[S_MIXED] == 1, s[S_STATIC] == 1, ring.shape[1] - 1
    may_glide = not static and s[S_DRAFT] == 0
    for k in range(count):
        may_glide = may_glide and keys[k, K_CHUNK] == 0.0
    iterations = empty = 0
    last_gap, last_bin = -1, 0
    while iterations < limit:
        coming = _coming(asked, heap, n)
        r, clock = _earliest(rep)
        if coming <= clock and coming < _NEVER:
            if n[N_HEAP] > 0 and heap[0, 0] == coming:
                request = pop(heap, n)
            else:
                request = n[N_OPEN]
                n[N_OPEN] += 1
            arrive(
                asked, segments, fate, s, rep, ring, names, buckets, heap, n, areas, other, cursor,
                request, coming,
            )  # fmt: skip
            continue
        if r < 0:
            return LATE if n[N_HEAP] > 0 else DONE
        for i in range(d.shape[0]):
            d[i] = 0.0
        for i in range(p.shape[0]):
            p[i] = 0.0
        took, gliding = 0, False
        if static:
            gather(asked, fate, s, rep, slots, blocks, n, keys, r, d, p)
        else:
            # without mixed steps: prompts if there are any, else one token for everybody
            for turn in range(2 - s[S_MIXED]):
                if turn == 1 and p[P_TOKENS] > 0.0:
                    break
                decodes = mixed or turn == 1
                budget = s[S_BUDGET]
                preempted = False
                if decodes and rep[r, R_GLIDERS] > 0:
                    # calls cost more than what most of them find to do: none without need
                    gliding = rep[r, R_GLIDERS] <= budget
                    if gliding and rep[r, R_DUE] <= rep[r, R_GLIDE]:
                        gliding = attend(
                            asked, segments, fate, s, rep, slots, table, ring, names, buckets, keys,
                            crowd, cursor, r,
                        )  # fmt: skip
                    if gliding:
                        budget -= rep[r, R_GLIDERS]
                        d[D_SEQUENCES] = d[D_SLOTS] = float(rep[r, R_GLIDERS])
                        d[D_CONTEXT] = crowd[r, 0]
                        for k in range(count):
                            d[D_KEYS + k] = d[D_KEYS + count + k] = crowd[r, 1 + k]
                    else:
                        settle(fate, rep, slots, crowd, r)
                if rep[r, R_COUNT] > rep[r, R_GLIDERS]:
                    budget, preempted, swapped = schedule(
                        asked, segments, fate, s, rates, rep, slots, table, ring, names, buckets, n,
                        other, keys, cursor, r, budget, turn == 0, decodes, d, p,
                    )  # fmt: skip
                    took += swapped
                if turn == 0 and not preempted and rep[r, R_WAITING] > 0:
                    took += admit(
                        asked, segments, fate, s, rates, rep, slots, table, ring, names, buckets, n,
                        other, keys, cursor, r, budget, p,
                    )  # fmt: skip
        running, waiting = rep[r, R_COUNT], rep[r, R_WAITING]
        tokens = p[P_TOKENS] + d[D_SLOTS]
        if tokens > 0.0:
            took += price(
                ops, links, scalars, count, layout, whole, part, d, p, rows, other, steps, r
            )
        held = blocks - rep[r, R_FREE]
        rep[r, R_PEAK] = max(rep[r, R_PEAK], held)
        rep[r, R_CLOCK] += took
        rep[r, R_STEPS] += 1
        end = rep[r, R_CLOCK]
        _note(n, timeline, rep, r, running, held, int(tokens))
        first = rep[r, R_GLIDERS]
        if gliding:
            gap = end - rep[r, R_LAST]
            if gap != last_gap:
                last_gap, last_bin = gap, gap_bin(gap)
            gaps[last_bin] += rep[r, R_WARM]
            n[N_EMITTED] += rep[r, R_GLIDERS]
            crowd[r, 0] += rep[r, R_GLIDERS]
            for k in range(count):
                crowd[r, 1 + k] += crowd[r, 1 + count + k]
            rep[r, R_GLIDE] += 1
            rep[r, R_LAST] = end
            if rep[r, R_DUE] < rep[r, R_GLIDE]:
                depart(asked, fate, s, rep, slots, table, ring, heap, n, keys, crowd, r, end)
        stored = crowd[r, 0] - rep[r, R_GLIDERS]
        if first < running:
            stored += _commit(
                asked, fate, s, rates, rep, slots, table, ring, heap, n, gaps, r, first, end
            )
            if may_glide:
                join(asked, fate, s, rep, slots, keys, crowd, r, end)
        else:
            rep[r, R_COUNT] = rep[r, R_GLIDERS]
        areas[r, A_SYSTEM] += float(running + waiting) * took
        areas[r, A_WAITING] += float(waiting) * took
        areas[r, A_RUNNING] += float(running) * took
        areas[r, A_STORED] += stored * took
        areas[r, A_HELD] += float(held * s[S_BLOCK]) * took
        empty = empty + 1 if tokens == 0.0 and took == 0 else 0
        if empty > _EMPTY_STEPS:
            return STUCK
        if end > LAST:
            return LATE
        iterations += 1
    return RUNNING
