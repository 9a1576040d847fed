"""What the simulator keeps: requests, what became of them, replicas, queue; arrivals and routing.

Everything is a column of a table of numbers:

``asked``, int64[requests, 9]
    What is asked, in the order of arrival.
``fate``, int64[requests, 13]
    What became of it; times are ticks, -1 = did not happen.
``rep``, int64[replicas, 15] and ``slots``, int64[replicas, seats, 15]
    What the replicas do, and the sequences that they run.
"""

from __future__ import annotations

import numpy as np

from ledgerkit.kernels._jit import kernel
from ledgerkit.kernels.batch import B_IDLE, Table, Ticks
from ledgerkit.kernels.blocks import Ids, Keys, Small, find, next_key

# settings -------------------------------------------------------------------------------------
(S_BUDGET, S_CAP, S_SEATS, S_BLOCK, S_EXTRA, S_CHUNKED, S_MIXED, S_STATIC, S_PREFIX, S_PREEMPT,
 S_RESERVE, S_DRAFT, S_SEED, S_ROUTER, S_LONGEST, S_WARM) = range(16)  # fmt: skip
SETTINGS = 16
"""Tokens of a step and of one chunk; seats; tokens of a block; blocks that a sequence holds
besides; chunked prefill, mixed steps, static batches, prefix cache (0 or 1); preemption; tokens
that are reserved (0 = as they come, -1 = the whole answer); drafts; seed; router; longest sequence;
requests before measuring starts."""
PREEMPT_NEVER, PREEMPT_RECOMPUTE, PREEMPT_SWAP = 0, 1, 2
ROUND_ROBIN, LEAST_LOADED, PREFIX_AWARE = 0, 1, 2
# asked ----------------------------------------------------------------------------------------
Q_ARRIVAL, Q_PROMPT, Q_OUTPUT, Q_SUCCESSOR, Q_GAP, Q_START, Q_END, Q_ANSWER, Q_COMMON = range(9)
ASKED = 9
"""Ticks of the arrival (-1 = some time after another request), tokens, the request that follows
this one (-1 = none), ticks between the answer before and the arrival, segments of the prompt,
content of the answer as later prompts name it, and tokens at the start that others may have too."""
# fate -----------------------------------------------------------------------------------------
(F_ARRIVED, F_STARTED, F_FIRST, F_FINISHED, F_HIT, F_PREEMPTED, F_REPLICA, F_EMITTED, F_LAST,
 F_REACHED, F_KEPT, F_KEPT_NEED, F_BEHIND) = range(13)  # fmt: skip
FATE = 13
"""Four times, cached tokens at the first admission, preemptions, replica, tokens so far, time of
the last one, most tokens that were ever computed, tokens in host memory and those to reach, and the
next request in the queue."""
# replicas -------------------------------------------------------------------------------------
(R_CLOCK, R_COUNT, R_HEAD, R_TAIL, R_WAITING, R_BLOCKED, R_STEPS, R_PEAK, R_SPARE, R_FREE,
 R_GLIDERS, R_GLIDE, R_DUE, R_LAST, R_WARM) = range(15)  # fmt: skip
REPLICA = 15
"""Time; running; head, tail and length of the queue; the smallest budget for which
its head waits for blocks (0 = it does not); iterations;
most blocks in use; unused slots; free blocks. Of the gliders: how
many; steps so far; the step that needs attention; time of the last one; how many are measured."""
# slots ----------------------------------------------------------------------------------------
(X_REQUEST, X_DONE, X_NEED, X_BLOCKS, X_PUBLISHED, X_NOW, X_PAD, X_SEGMENT, X_OFFSET, X_CHAIN,
 X_SYNC, X_COMMON, X_ORDER, X_DUE, X_SPARE) = range(15)  # fmt: skip
SLOT = 15
"""Request; tokens computed, and to compute before the next one is sampled; blocks held, and known
to others; tokens of this step; padding; where the next hash begins; the glide step at
which these were true; tokens whose blocks are published as they fill. The last three columns are
lists: slots that run, in the order of admission,
the glide step in which each needs attention, and unused slots."""
# areas under curves of a replica, in ticks times something --------------------------------------
A_SYSTEM, A_WAITING, A_RUNNING, A_STORED, A_HELD = range(5)
AREAS = 5
# counters of the run --------------------------------------------------------------------------
(N_ARRIVED, N_HEAP, N_FINISHED, N_REJECTED, N_PREEMPTED, N_STEPS, N_NEXT, N_PROMPT, N_HIT, N_AGAIN,
 N_EMITTED, N_STRIDE, N_ROWS, N_ASKED, N_OPEN) = range(15)  # fmt: skip
COUNTERS = 15
PER_OCTAVE, GAP_BINS = 64, 2304
"""Bins of the gaps between tokens: from 1 µs, 64 for each factor of two."""


@kernel
def push(heap: Ticks, n: Ticks, time: int, request: int) -> None:
    """Put a coming arrival on the heap."""
    i = n[N_HEAP]
    n[N_HEAP] += 1
    while i > 0:
        up = (i - 1) // 2
        if heap[0, up] < time or (heap[0, up] == time and heap[1, up] <= request):
            break
        heap[0, i], heap[1, i] = heap[0, up], heap[1, up]
        i = up
    heap[0, i], heap[1, i] = time, request


@kernel
def pop(heap: Ticks, n: Ticks) -> int:
    """Take the next arrival from the heap."""
    found = heap[1, 0]
    size = n[N_HEAP] - 1
    n[N_HEAP] = size
    time, request = heap[0, size], heap[1, size]
    i = 0
    while 2 * i + 1 < size:
        j = 2 * i + 1
        if j + 1 < size and (
            heap[0, j + 1] < heap[0, j]
            or (heap[0, j + 1] == heap[0, j] and heap[1, j + 1] < heap[1, j])
        ):
            j += 1
        if heap[0, j] > time or (heap[0, j] == time and heap[1, j] >= request):
            break
        heap[0, i], heap[1, i] = heap[0, j], heap[1, j]
        i = j
    heap[0, i], heap[1, i] = time, request
    return int(found)


@kernel
def follow(asked: Ticks, heap: Ticks, n: Ticks, request: int, time: int) -> None:
    """Let the request arrive that waited for this one."""
    successor = asked[request, Q_SUCCESSOR]
    if successor >= 0:
        push(heap, n, time + asked[successor, Q_GAP], successor)


@kernel
def reserved(asked: Ticks, s: Ticks, request: int) -> int:
    """Tokens for which blocks are taken when a request is admitted; 0 = as they are computed."""
    if s[S_RESERVE] < 0:
        return int(asked[request, Q_PROMPT] + asked[request, Q_OUTPUT] - 1 + s[S_DRAFT])
    return int(s[S_RESERVE])


@kernel
def never_fits(asked: Ticks, s: Ticks, blocks: int, request: int) -> bool:
    """Whether a request is beyond the model, the budget of a step or the whole cache."""
    longest = asked[request, Q_PROMPT] + asked[request, Q_OUTPUT]
    if longest > s[S_LONGEST]:
        return True
    if s[S_CHUNKED] == 0 and asked[request, Q_PROMPT] > s[S_CAP]:
        return True
    most = max(longest - 1 + s[S_DRAFT], reserved(asked, s, request))
    return bool((most + s[S_BLOCK] - 1) // s[S_BLOCK] + s[S_EXTRA] > blocks)


@kernel
def matched(
    asked: Ticks, segments: Ids, s: Ticks, ring: Small, names: Keys, buckets: Small, r: int,
    request: int, total: int, cursor: Ids,
) -> tuple[int, np.uint64, int]:  # fmt: skip
    """Blocks at the start of a sequence that are cached; their hash; how many of them are free.

    ``cursor[4]``: afterwards the first two say where the block behind them begins.
    """
    size = s[S_BLOCK]
    chain, found, idle = np.uint64(0), 0, 0
    cursor[0] = cursor[2] = asked[request, Q_START]
    cursor[1] = cursor[3] = 0
    while (found + 1) * size < total:
        key = next_key(
            size, cursor[2:], chain, asked[request, Q_END], segments, asked[request, Q_ANSWER]
        )
        block = find(names, buckets, r, key)
        if block < 0:
            break
        if ring[r, block, 0] == 0:
            idle += 1
        chain, found = key, found + 1
        cursor[0], cursor[1] = cursor[2], cursor[3]
    return found, chain, idle


@kernel
def _route(
    asked: Ticks, segments: Ids, s: Ticks, rep: Ticks, ring: Small, names: Keys, buckets: Small,
    n: Ticks, cursor: Ids, request: int,
) -> int:  # fmt: skip
    """Replica for a new request."""
    count = rep.shape[0]
    if count == 1:
        return 0
    if s[S_ROUTER] == ROUND_ROBIN:
        n[N_NEXT] += 1
        return int((n[N_NEXT] - 1) % count)
    best, best_hit, best_load = 0, -1, 0
    for r in range(count):
        load = rep[r, R_COUNT] + rep[r, R_WAITING]
        hit = 0
        if s[S_ROUTER] == PREFIX_AWARE and s[S_PREFIX] == 1:
            hit, _, _ = matched(
                asked, segments, s, ring, names, buckets, r, request, asked[request, Q_PROMPT],
                cursor,
            )  # fmt: skip
        if hit > best_hit or (hit == best_hit and load < best_load):
            best, best_hit, best_load = r, hit, load
    return best


@kernel
def arrive(
    asked: Ticks, segments: Ids, fate: Ticks, s: Ticks, rep: Ticks, ring: Small, names: Keys,
    buckets: Small, heap: Ticks, n: Ticks, areas: Table, other: Ticks, cursor: Ids, request: int,
    time: int,
) -> None:  # fmt: skip
    """Send a request to a replica, and put it at the end of the queue there."""
    fate[request, F_ARRIVED] = time
    n[N_ARRIVED] += 1
    r = _route(asked, segments, s, rep, ring, names, buckets, n, cursor, request)
    fate[request, F_REPLICA] = r
    if never_fits(asked, s, ring.shape[1] - 1, request):
        n[N_REJECTED] += 1
        follow(asked, heap, n, request, time)
        return
    if rep[r, R_COUNT] + rep[r, R_WAITING] == 0 and time > rep[r, R_CLOCK]:
        other[r, B_IDLE] += time - rep[r, R_CLOCK]
        rep[r, R_CLOCK] = time
    areas[r, A_SYSTEM] += rep[r, R_CLOCK] - time
    areas[r, A_WAITING] += rep[r, R_CLOCK] - time
    fate[request, F_BEHIND] = -1
    if rep[r, R_WAITING] == 0:
        rep[r, R_HEAD] = request
        rep[r, R_BLOCKED] = 0
    else:
        fate[rep[r, R_TAIL], F_BEHIND] = request
    rep[r, R_TAIL] = request
    rep[r, R_WAITING] += 1
