"""Who computes what in the next step: running sequences first, then the queue in order.

A sequence has no phase: it has tokens to compute, of a prompt or of its own answer, and one more
after each token.

Source: the scheduler of vLLM (vllm/v1/core/sched/scheduler.py): running first, the newest
preempted when blocks run out, nobody admitted in a step that preempted.
"""

from __future__ import annotations

import numpy as np

from ledgerkit.kernels._jit import kernel
from ledgerkit.kernels.batch import (
    B_SWAP,
    P_PADDED,
    P_SAMPLED,
    Table,
    Ticks,
    add_decode,
    add_prompt,
)
from ledgerkit.kernels.blocks import Ids, Keys, Small, find, next_key, publish, release, share, take
from ledgerkit.kernels.serving import (
    F_BEHIND,
    F_EMITTED,
    F_HIT,
    F_KEPT,
    F_KEPT_NEED,
    F_PREEMPTED,
    F_REACHED,
    F_STARTED,
    N_AGAIN,
    N_ASKED,
    N_HIT,
    N_PREEMPTED,
    N_PROMPT,
    PREEMPT_SWAP,
    Q_ANSWER,
    Q_COMMON,
    Q_END,
    Q_OUTPUT,
    Q_PROMPT,
    Q_START,
    R_BLOCKED,
    R_CLOCK,
    R_COUNT,
    R_FREE,
    R_GLIDERS,
    R_HEAD,
    R_SPARE,
    R_TAIL,
    R_WAITING,
    S_BLOCK,
    S_CAP,
    S_CHUNKED,
    S_DRAFT,
    S_EXTRA,
    S_PREEMPT,
    S_PREFIX,
    S_RESERVE,
    S_SEATS,
    X_BLOCKS,
    X_CHAIN,
    X_COMMON,
    X_DONE,
    X_NEED,
    X_NOW,
    X_OFFSET,
    X_ORDER,
    X_PAD,
    X_PUBLISHED,
    X_REQUEST,
    X_SEGMENT,
    X_SPARE,
    matched,
    reserved,
)

_NEVER_AGAIN = 1 << 40
_ALL = 1 << 40


@kernel
def grow(
    s: Ticks, rep: Ticks, slots: Ticks, table: Small, ring: Small, names: Keys, buckets: Small,
    r: int, slot: int, target: int,
) -> None:  # fmt: skip
    """Take blocks for a slot until it has ``target``."""
    have = slots[r, slot, X_BLOCKS]
    if s[S_PREFIX] == 1:
        take(ring, names, buckets, table, r, slot, have, target)
    rep[r, R_FREE] -= target - have
    slots[r, slot, X_BLOCKS] = target


@kernel
def leave(s: Ticks, rep: Ticks, slots: Ticks, table: Small, ring: Small, r: int, slot: int) -> None:
    """Give back the blocks and the slot; the tail of a sequence is reused before its start."""
    have = slots[r, slot, X_BLOCKS]
    if s[S_PREFIX] == 1:
        rep[r, R_FREE] += release(ring, table, r, slot, have)
    else:
        rep[r, R_FREE] += have
    slots[r, rep[r, R_SPARE], X_SPARE] = slot
    rep[r, R_SPARE] += 1
    rep[r, R_BLOCKED] = 0


@kernel
def publish_full(
    asked: Ticks, segments: Ids, s: Ticks, slots: Ticks, table: Small, names: Keys, buckets: Small,
    cursor: Ids, r: int, slot: int, computed: int,
) -> None:  # fmt: skip
    """Let others find the blocks that are full after this step, if they can ask for them."""
    request, count = slots[r, slot, X_REQUEST], slots[r, slot, X_PUBLISHED]
    computed = min(computed, slots[r, slot, X_COMMON])
    if (count + 1) * s[S_BLOCK] > computed:
        return
    cursor[0], cursor[1] = slots[r, slot, X_SEGMENT], slots[r, slot, X_OFFSET]
    full, extra = computed // s[S_BLOCK], s[S_EXTRA]
    chain = publish(
        names, buckets, table, segments, cursor, r, slot, extra + count, extra + full, s[S_BLOCK],
        asked[request, Q_END], asked[request, Q_ANSWER], np.uint64(slots[r, slot, X_CHAIN]),
    )  # fmt: skip
    slots[r, slot, X_PUBLISHED] = full
    slots[r, slot, X_SEGMENT], slots[r, slot, X_OFFSET] = cursor[0], cursor[1]
    slots[r, slot, X_CHAIN] = np.int64(chain)


@kernel
def _preempt(
    asked: Ticks, segments: Ids, fate: Ticks, s: Ticks, rates: Table, rep: Ticks, slots: Ticks,
    table: Small, ring: Small, names: Keys, buckets: Small, n: Ticks, other: Ticks, cursor: Ids,
    r: int,
) -> int:  # fmt: skip
    """Send the newest running sequence back to the head of the queue; returns ticks it takes."""
    rep[r, R_COUNT] -= 1
    slot = slots[r, rep[r, R_COUNT], X_ORDER]
    request, done = slots[r, slot, X_REQUEST], slots[r, slot, X_DONE]
    took = 0
    if s[S_PREEMPT] == PREEMPT_SWAP:
        fate[request, F_KEPT], fate[request, F_KEPT_NEED] = done, slots[r, slot, X_NEED]
        took = int(done * rates[1])
        other[r, B_SWAP] += took
    if s[S_PREFIX] == 1 and slots[r, slot, X_COMMON] < _ALL:
        # it may come back for the blocks that nobody else can ask for
        slots[r, slot, X_COMMON] = _ALL
        publish_full(asked, segments, s, slots, table, names, buckets, cursor, r, slot, done)
    fate[request, F_REACHED] = max(fate[request, F_REACHED], done)
    fate[request, F_PREEMPTED] += 1
    n[N_PREEMPTED] += 1
    leave(s, rep, slots, table, ring, r, slot)
    fate[request, F_BEHIND] = rep[r, R_HEAD] if rep[r, R_WAITING] > 0 else -1
    if rep[r, R_WAITING] == 0:
        rep[r, R_TAIL] = request
    rep[r, R_HEAD] = request
    rep[r, R_WAITING] += 1
    return took


@kernel
def schedule(
    asked: Ticks, segments: Ids, fate: Ticks, s: Ticks, rates: Table, rep: Ticks, slots: Ticks,
    table: Small, ring: Small, names: Keys, buckets: Small, n: Ticks, other: Ticks, keys: Table,
    cursor: Ids, r: int, budget: int, prompts: bool, decodes: bool, d: Table, p: Table,
) -> tuple[int, bool, int]:  # fmt: skip
    """Give running sequences behind the gliders their tokens, oldest first.

    Returns (budget, preempted, ticks).
    """
    size, extra, draft = s[S_BLOCK], s[S_EXTRA], s[S_DRAFT]
    preempted, swapped = False, 0
    reuse = s[S_PREFIX] == 1
    i = rep[r, R_GLIDERS]
    while i < rep[r, R_COUNT]:
        slot = slots[r, i, X_ORDER]
        done, need = slots[r, slot, X_DONE], slots[r, slot, X_NEED]
        i += 1
        want = 0
        if done < need:
            if prompts:
                want = min(need - done, budget, s[S_CAP])
        elif decodes and budget > draft:
            want = 1 + draft
        if want == 0:
            continue
        target = (done + want + size - 1) // size + extra
        lost = False
        while target - slots[r, slot, X_BLOCKS] > rep[r, R_FREE]:
            victim = slots[r, rep[r, R_COUNT] - 1, X_ORDER]
            swapped += _preempt(
                asked, segments, fate, s, rates, rep, slots, table, ring, names, buckets, n, other,
                cursor, r,
            )  # fmt: skip
            preempted = True
            if victim == slot:
                lost = True
                break
        if lost:
            break
        if target > slots[r, slot, X_BLOCKS]:
            grow(s, rep, slots, table, ring, names, buckets, r, slot, target)
        slots[r, slot, X_NOW] = want
        budget -= want
        computed = done + 1
        if done < need:
            computed = done + want
            again = max(0, min(computed, fate[slots[r, slot, X_REQUEST], F_REACHED]) - done)
            n[N_PROMPT] += want
            n[N_AGAIN] += again
            add_prompt(keys, p, float(want), float(done), float(again))
            if computed == need:
                p[P_SAMPLED] += 1.0
            rep[r, R_BLOCKED] = 0
        else:
            add_decode(keys, d, float(done + 1), float(draft), 1.0)
        if reuse and (slots[r, slot, X_PUBLISHED] + 1) * size <= min(
            computed, slots[r, slot, X_COMMON]
        ):
            publish_full(
                asked, segments, s, slots, table, names, buckets, cursor, r, slot, computed
            )
    return budget, preempted, swapped


@kernel
def _seat(
    asked: Ticks, fate: Ticks, s: Ticks, rep: Ticks, slots: Ticks, r: int, request: int
) -> int:
    """Move the head of the queue to a slot."""
    rep[r, R_HEAD] = fate[request, F_BEHIND]
    rep[r, R_WAITING] -= 1
    rep[r, R_SPARE] -= 1
    slot = slots[r, rep[r, R_SPARE], X_SPARE]
    slots[r, rep[r, R_COUNT], X_ORDER] = slot
    rep[r, R_COUNT] += 1
    slots[r, slot, X_REQUEST] = request
    slots[r, slot, X_BLOCKS] = 0
    slots[r, slot, X_PAD] = 0
    # what only this request can ask for is published when it is preempted, as few ever are;
    # with drafts, what is stored when that happens is not what was published before
    alone = fate[request, F_PREEMPTED] == 0 and s[S_DRAFT] == 0
    slots[r, slot, X_COMMON] = asked[request, Q_COMMON] if alone else _ALL
    return int(slot)


@kernel
def admit(
    asked: Ticks, segments: Ids, fate: Ticks, s: Ticks, rates: Table, rep: Ticks, slots: Ticks,
    table: Small, ring: Small, names: Keys, buckets: Small, n: Ticks, other: Ticks, keys: Table,
    cursor: Ids, r: int, budget: int, p: Table,
) -> int:  # fmt: skip
    """Admit waiting requests in order; returns ticks that swapping in takes."""
    size, extra = s[S_BLOCK], s[S_EXTRA]
    swapped = 0
    while rep[r, R_WAITING] > 0 and budget > 0 and rep[r, R_COUNT] < s[S_SEATS]:
        if 0 < rep[r, R_BLOCKED] <= budget:
            break
        request = rep[r, R_HEAD]
        done, hits, idle, chain = fate[request, F_KEPT], 0, 0, np.uint64(0)
        back = done > 0
        need = fate[request, F_KEPT_NEED]
        if not back:
            need = asked[request, Q_PROMPT] + fate[request, F_EMITTED]
            cursor[0], cursor[1] = asked[request, Q_START], 0
            if s[S_PREFIX] == 1:
                hits, chain, idle = matched(
                    asked, segments, s, ring, names, buckets, r, request, need, cursor
                )
            done = hits * size
        want = min(max(0, need - done), budget, s[S_CAP])
        if s[S_CHUNKED] == 0 and want < need - done and fate[request, F_EMITTED] == 0:
            break
        most = max(done + max(want, 1), reserved(asked, s, request))
        target = (most + size - 1) // size + extra
        if target - hits > rep[r, R_FREE] - idle:
            rep[r, R_BLOCKED] = budget * s[S_PREFIX]
            break
        slot = _seat(asked, fate, s, rep, slots, r, request)
        slots[r, slot, X_DONE], slots[r, slot, X_NEED] = done, need
        slots[r, slot, X_PUBLISHED], slots[r, slot, X_NOW] = hits, want
        if s[S_PREFIX] == 1:
            slots[r, slot, X_SEGMENT], slots[r, slot, X_OFFSET] = cursor[0], cursor[1]
            slots[r, slot, X_CHAIN] = np.int64(chain)
            _take_over(asked, segments, s, rep, slots, table, ring, names, buckets, cursor, r, slot)
        if target > slots[r, slot, X_BLOCKS]:
            grow(s, rep, slots, table, ring, names, buckets, r, slot, target)
        if fate[request, F_STARTED] < 0:
            fate[request, F_STARTED] = rep[r, R_CLOCK]
            fate[request, F_HIT] = done
            n[N_HIT] += done
            n[N_ASKED] += need
        if back:
            took = int(done * rates[1])
            other[r, B_SWAP] += took
            swapped += took
            fate[request, F_KEPT] = 0
            slots[r, slot, X_PUBLISHED] = _NEVER_AGAIN
        if want == 0:
            continue
        budget -= want
        again = max(0, min(done + want, fate[request, F_REACHED]) - done)
        n[N_PROMPT] += want
        n[N_AGAIN] += again
        add_prompt(keys, p, float(want), float(done), float(again))
        if done + want == need:
            p[P_SAMPLED] += 1.0
        if s[S_PREFIX] == 1 and not back and (hits + 1) * size <= done + want:
            publish_full(
                asked, segments, s, slots, table, names, buckets, cursor, r, slot, done + want
            )
    return swapped


@kernel
def _take_over(
    asked: Ticks, segments: Ids, s: Ticks, rep: Ticks, slots: Ticks, table: Small, ring: Small,
    names: Keys, buckets: Small, cursor: Ids, r: int, slot: int,
) -> None:  # fmt: skip
    """Refer to the cached blocks of a sequence, before any other block is taken."""
    request, hits = slots[r, slot, X_REQUEST], slots[r, slot, X_PUBLISHED]
    chain = np.uint64(0)
    cursor[0], cursor[1] = asked[request, Q_START], 0
    for j in range(hits):
        chain = next_key(
            s[S_BLOCK], cursor, chain, asked[request, Q_END], segments, asked[request, Q_ANSWER]
        )
        block = find(names, buckets, r, chain)
        rep[r, R_FREE] -= share(ring, r, block)
        table[r, slot, s[S_EXTRA] + j] = block
    take(ring, names, buckets, table, r, slot, s[S_EXTRA] * 0, s[S_EXTRA])
    rep[r, R_FREE] -= s[S_EXTRA]
    slots[r, slot, X_BLOCKS] = s[S_EXTRA] + hits


@kernel
def gather(
    asked: Ticks, fate: Ticks, s: Ticks, rep: Ticks, slots: Ticks, blocks: int, n: Ticks,
    keys: Table, r: int, d: Table, p: Table,
) -> None:  # fmt: skip
    """One step of a static batch: it starts together, padded, and ends with its last answer."""
    if rep[r, R_COUNT] > 0:
        for i in range(rep[r, R_COUNT]):
            slot = slots[r, i, X_ORDER]
            request = slots[r, slot, X_REQUEST]
            useful = 1 if fate[request, F_EMITTED] < asked[request, Q_OUTPUT] else 0
            slots[r, slot, X_NOW] = useful
            context = slots[r, slot, X_PAD] + slots[r, slot, X_DONE] + 1
            add_decode(keys, d, float(context), 0.0, float(useful))
        return
    prompt = answer = each = 0
    while rep[r, R_WAITING] > 0 and rep[r, R_COUNT] < s[S_SEATS]:
        request = rep[r, R_HEAD]
        longest = max(prompt, asked[request, Q_PROMPT])
        last = max(answer, asked[request, Q_OUTPUT])
        most = max(longest + last - 1, s[S_RESERVE])
        need = (most + s[S_BLOCK] - 1) // s[S_BLOCK] + s[S_EXTRA]
        if rep[r, R_COUNT] > 0 and (rep[r, R_COUNT] + 1) * need > blocks:
            break
        prompt, answer, each = longest, last, need
        slot = _seat(asked, fate, s, rep, slots, r, request)
        own = asked[request, Q_PROMPT]
        slots[r, slot, X_DONE], slots[r, slot, X_NEED], slots[r, slot, X_NOW] = 0, own, own
        fate[request, F_STARTED] = rep[r, R_CLOCK]
        n[N_PROMPT] += own
        n[N_ASKED] += own
    for i in range(rep[r, R_COUNT]):
        slot = slots[r, i, X_ORDER]
        pad = prompt - slots[r, slot, X_NEED]
        slots[r, slot, X_BLOCKS], slots[r, slot, X_PAD] = each, pad
        add_prompt(keys, p, float(prompt), 0.0, 0.0)
        p[P_PADDED] += float(pad)
        p[P_SAMPLED] += 1.0
    rep[r, R_FREE] -= each * rep[r, R_COUNT]
