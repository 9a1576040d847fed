"""Sequences that decode all the time, as a crowd: their sums move on, and a few are looked at.

In most steps nothing happens to a decoding sequence but one more token. Sequences at the head of
the running order therefore *glide*: sums over them grow by what one step adds, and each says in
which step it needs attention: another block, a block to publish, a full window, its last token.
What comes out is the same to the last bit as from the loop over all sequences in ``scheduler``.
"""

from __future__ import annotations

from ledgerkit.kernels._jit import kernel
from ledgerkit.kernels.batch import (
    K_TOP,
    K_WINDOW,
    Table,
    Ticks,
)
from ledgerkit.kernels.blocks import Ids, Keys, Small
from ledgerkit.kernels.scheduler import grow, leave, publish_full
from ledgerkit.kernels.serving import (
    F_EMITTED,
    F_FINISHED,
    F_LAST,
    N_FINISHED,
    Q_OUTPUT,
    R_COUNT,
    R_DUE,
    R_FREE,
    R_GLIDE,
    R_GLIDERS,
    R_LAST,
    R_WARM,
    S_BLOCK,
    S_EXTRA,
    S_PREFIX,
    S_WARM,
    X_BLOCKS,
    X_COMMON,
    X_DONE,
    X_DUE,
    X_NEED,
    X_ORDER,
    X_PUBLISHED,
    X_REQUEST,
    X_SYNC,
    follow,
)

_LATE = 1 << 60


@kernel
def _steps_left(
    asked: Ticks, fate: Ticks, s: Ticks, slots: Ticks, keys: Table, r: int, slot: int, ahead: int
) -> int:
    """Steps before a sequence needs attention, ``ahead`` steps after its last sync."""
    request = slots[r, slot, X_REQUEST]
    done = slots[r, slot, X_DONE] + ahead
    found = asked[request, Q_OUTPUT] - fate[request, F_EMITTED] - ahead - 1
    found = min(found, (slots[r, slot, X_BLOCKS] - s[S_EXTRA]) * s[S_BLOCK] - done)
    if s[S_PREFIX] == 1:
        full = (slots[r, slot, X_PUBLISHED] + 1) * s[S_BLOCK]
        if full <= slots[r, slot, X_COMMON]:
            found = min(found, full - done - 1)
    for k in range(keys.shape[0]):
        cap = min(keys[k, K_WINDOW], keys[k, K_TOP])
        if done + 1 <= cap < 1e15:
            found = min(found, int(cap) - done - 1)
    return int(found)


@kernel
def join(
    asked: Ticks, fate: Ticks, s: Ticks, rep: Ticks, slots: Ticks, keys: Table, crowd: Table,
    r: int, end: int,
) -> None:  # fmt: skip
    """Let those glide that had a token in the step that ended, and stand behind the gliders."""
    count = keys.shape[0]
    while rep[r, R_GLIDERS] < rep[r, R_COUNT]:
        at = rep[r, R_GLIDERS]
        slot = slots[r, at, X_ORDER]
        request = slots[r, slot, X_REQUEST]
        done = slots[r, slot, X_DONE]
        if done < slots[r, slot, X_NEED] or fate[request, F_LAST] != end:
            break
        if at == 0:
            rep[r, R_LAST], rep[r, R_DUE], rep[r, R_WARM] = end, _LATE, 0
        elif rep[r, R_LAST] != end:
            break
        slots[r, slot, X_SYNC] = rep[r, R_GLIDE]
        ahead = rep[r, R_GLIDE] - slots[r, slot, X_SYNC]
        due = rep[r, R_GLIDE] + _steps_left(asked, fate, s, slots, keys, r, slot, ahead)
        slots[r, at, X_DUE] = due
        rep[r, R_DUE] = min(rep[r, R_DUE], due)
        rep[r, R_GLIDERS] = at + 1
        if request >= s[S_WARM]:
            rep[r, R_WARM] += 1
        crowd[r, 0] += done + 1.0
        for k in range(count):
            cap = min(keys[k, K_WINDOW], keys[k, K_TOP])
            crowd[r, 1 + k] += min(done + 1.0, cap)
            if done + 1.0 <= cap:
                crowd[r, 1 + count + k] += 1.0


@kernel
def settle(fate: Ticks, rep: Ticks, slots: Ticks, crowd: Table, r: int) -> None:
    """Write down where every glider is; nobody glides any more."""
    for i in range(rep[r, R_GLIDERS]):
        slot = slots[r, i, X_ORDER]
        ahead = rep[r, R_GLIDE] - slots[r, slot, X_SYNC]
        slots[r, slot, X_DONE] += ahead
        fate[slots[r, slot, X_REQUEST], F_EMITTED] += ahead
        fate[slots[r, slot, X_REQUEST], F_LAST] = rep[r, R_LAST]
    rep[r, R_GLIDERS] = 0
    for k in range(crowd.shape[1]):
        crowd[r, k] = 0.0


@kernel
def attend(
    asked: Ticks, segments: Ids, fate: Ticks, s: Ticks, rep: Ticks, slots: Ticks, table: Small,
    ring: Small, names: Keys, buckets: Small, keys: Table, crowd: Table, cursor: Ids, r: int,
) -> bool:  # fmt: skip
    """Give blocks to those that need one in this step; False = there are not enough."""
    now, count = rep[r, R_GLIDE], keys.shape[0]
    size, extra = s[S_BLOCK], s[S_EXTRA]
    for i in range(rep[r, R_GLIDERS]):
        if slots[r, i, X_DUE] > now:
            continue
        slot = slots[r, i, X_ORDER]
        ahead = now - slots[r, slot, X_SYNC]
        done = slots[r, slot, X_DONE] + ahead
        target = done // size + 1 + extra
        if target > slots[r, slot, X_BLOCKS]:
            if rep[r, R_FREE] == 0:
                return False
            grow(s, rep, slots, table, ring, names, buckets, r, slot, target)
        if s[S_PREFIX] == 1 and (slots[r, slot, X_PUBLISHED] + 1) * size <= min(
            done + 1, slots[r, slot, X_COMMON]
        ):
            publish_full(
                asked, segments, s, slots, table, names, buckets, cursor, r, slot, done + 1
            )
        request = slots[r, slot, X_REQUEST]
        for k in range(count):
            if done + 1.0 == min(keys[k, K_WINDOW], keys[k, K_TOP]):
                crowd[r, 1 + count + k] -= 1.0
        if fate[request, F_EMITTED] + ahead + 1 < asked[request, Q_OUTPUT]:
            slots[r, i, X_DUE] = now + 1 + _steps_left(
                asked, fate, s, slots, keys, r, slot, ahead + 1
            )  # fmt: skip
    return True


@kernel
def depart(
    asked: Ticks, fate: Ticks, s: Ticks, rep: Ticks, slots: Ticks, table: Small, ring: Small,
    heap: Ticks, n: Ticks, keys: Table, crowd: Table, r: int, end: int,
) -> None:  # fmt: skip
    """Let those leave that had their last token in the glide step that ended."""
    now, count, many = rep[r, R_GLIDE] - 1, keys.shape[0], rep[r, R_GLIDERS]
    kept, soonest = 0, _LATE
    for i in range(many):
        slot = slots[r, i, X_ORDER]
        if slots[r, i, X_DUE] > now:
            soonest = min(soonest, slots[r, i, X_DUE])
            slots[r, kept, X_ORDER] = slot
            slots[r, kept, X_DUE] = slots[r, i, X_DUE]
            kept += 1
            continue
        request = slots[r, slot, X_REQUEST]
        done = slots[r, slot, X_DONE] + now + 1 - slots[r, slot, X_SYNC]
        crowd[r, 0] -= done + 1.0
        for k in range(count):
            cap = min(keys[k, K_WINDOW], keys[k, K_TOP])
            crowd[r, 1 + k] -= min(done + 1.0, cap)
            if done + 1.0 <= cap:
                crowd[r, 1 + count + k] -= 1.0
        if request >= s[S_WARM]:
            rep[r, R_WARM] -= 1
        fate[request, F_EMITTED] = asked[request, Q_OUTPUT]
        fate[request, F_LAST] = fate[request, F_FINISHED] = end
        n[N_FINISHED] += 1
        follow(asked, heap, n, request, end)
        leave(s, rep, slots, table, ring, r, slot)
    rep[r, R_DUE] = soonest
    rep[r, R_GLIDERS] = kept
