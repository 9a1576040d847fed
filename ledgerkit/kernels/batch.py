"""Price one iteration of an engine: prompts and decoding sequences in one step, of any lengths.

The rows are those of ``step``. Times are whole picoseconds, so that parts sum to wall time exactly.

A step of one kind costs what ``step`` says. In a mixed step weights are read once, by the decoding
sequences; what the prompts add is their arithmetic and their own bytes, one after the other: on
measured servers prompts do not hide behind the reads of decode (``ACCURACY.md``).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ledgerkit.kernels._jit import kernel
from ledgerkit.kernels.columns import (
    AMOUNT_COUNT,
    C_TIME,
    COUNT,
    EXPERTS,
    F_PAIR,
    F_TOKEN,
    HOST_PREFILL_KERNEL_S,
    HOST_SEQUENCE_S,
    HOST_STEP_S,
    KERNEL_S,
    KERNELS,
    L_TOKEN_BYTES,
    LINK_AMOUNTS,
    LOG_MISS,
    OP_COLUMNS,
    OVERLAP,
    R_EXPERT,
    R_KV,
    R_SEQUENCE,
    R_STEP,
    R_TOKEN,
    RATIO,
    S_PER_BYTE,
    S_PER_FLOP,
    SCOPE,
    SCOPE_CONTEXT,
    SCOPE_EXPERTS,
    SCOPE_SAMPLED,
    W_SEQUENCE,
    W_TOKEN,
)
from ledgerkit.kernels.step import _link, distinct, pairs, seen

Table = npt.NDArray[np.float64]
Ticks = npt.NDArray[np.int64]

PER_SECOND = 1e12
"""Ticks of a second."""

# sums over the decoding sequences of a step; then keys: useful, executed, verified
D_SEQUENCES, D_SLOTS, D_CONTEXT, D_KEYS = 0, 1, 2, 3
# sums over the prompts of a step; then pairs and seen tokens of each key
P_TOKENS, P_SEQUENCES, P_LONGEST, P_SAMPLED, P_CONTEXT, P_AGAIN, P_PADDED, P_KEYS = range(8)
# what is booked besides operations and links
B_LAUNCH, B_HOST, B_STAGES, B_PADDING, B_DRAFT, B_RECOMPUTE, B_SWAP, B_IDLE = range(8)
BOOKS = 8


# tables by the number of decoding sequences -----------------------------------------------------
T_RUNS, T_PLAIN, T_VERIFY = 0, 1, 2
"""Rows of ``whole``, int64[3, slots + 1]: slots that so many sequences run as (0 = without a
captured graph); ticks of the rows that the context does not change, plain and verifying drafts."""
T_WORK, T_BUSIEST = 0, 1
"""Rows of ``part``, float64[2, slots + 1]: seconds of those rows, and of the busiest stage."""
K_WINDOW, K_TOP, K_CHUNK = 0, 1, 2
"""Columns of ``keys``, float64[n, 3]: what rows see tokens through. Column ``OP_KEY`` of a row
names its key, -1 where the context does not matter."""
OP_KEY = OP_COLUMNS
L_RANKS, L_STAGES, L_LAYERS, L_DRAFT, L_FIRST = range(5)
"""``layout``, float64[5]: attention ranks, stages, layers, drafts, first row with a context."""


@kernel
def ticks(seconds: float) -> int:
    """Round to whole ticks."""
    return int(np.rint(seconds * PER_SECOND))


@kernel
def row_seconds(
    ops: Table, i: int, tokens: float, sequences: float, group: float, sampled: float,
    context: float, pair_sum: float, seen_sum: float, beside: float,
) -> tuple[float, float]:  # fmt: skip
    """Seconds of arithmetic and of bytes of one row; ``beside`` > 0: weights are read anyway.

    ``beside`` is the number of tokens of the expert group that decode in the same step.
    """
    scope = ops[i, SCOPE]
    if scope == SCOPE_EXPERTS:
        count = group
    elif scope == SCOPE_SAMPLED:
        count = sampled
    elif scope == SCOPE_CONTEXT:
        count = context
    else:
        count = tokens
    if count == 0.0:
        return 0.0, 0.0
    flop = ops[i, F_TOKEN] * count
    if ops[i, F_PAIR] != 0.0:
        flop += ops[i, F_PAIR] * pair_sum / ops[i, RATIO]
    moved = ops[i, R_TOKEN] * count + ops[i, R_SEQUENCE] * sequences
    if beside == 0.0:
        moved += ops[i, R_STEP]
    if ops[i, R_KV] != 0.0:
        moved += ops[i, R_KV] * seen_sum / ops[i, RATIO]
    if ops[i, R_EXPERT] != 0.0:
        more = distinct(group + beside, ops[i, EXPERTS], ops[i, LOG_MISS])
        if beside > 0.0:
            more -= distinct(beside, ops[i, EXPERTS], ops[i, LOG_MISS])
        moved += ops[i, R_EXPERT] * more
    moved += ops[i, W_TOKEN] * count + ops[i, W_SEQUENCE] * sequences
    layers = ops[i, COUNT]
    return layers * flop * ops[i, S_PER_FLOP], layers * moved * ops[i, S_PER_BYTE]


@kernel
def spread(n: float, ranks: float, stages: float) -> tuple[float, float, float]:
    """Sequences of one micro-batch on the fullest rank, tokens of its group, micro-batches."""
    per_rank = float(math.ceil(n / ranks))
    batches = min(stages, per_rank)
    return float(math.ceil(per_rank / batches)), float(math.ceil(n / batches)), batches


@kernel
def tabulate(ops: Table, layout: Table, whole: Ticks, part: Table) -> None:
    """Fill the tables by the number of decoding sequences."""
    decode = ops[1]
    for n in range(1, whole.shape[1]):
        mine, group, _ = spread(float(n), layout[L_RANKS], layout[L_STAGES])
        for kind in range(2):
            q = 1.0 + kind * layout[L_DRAFT]
            total = 0
            for i in range(int(layout[L_FIRST])):
                a, b = row_seconds(
                    decode, i, q * mine, mine, q * group, q * mine, q * mine, 0.0, 0.0, 0.0
                )
                total += ticks(max(a, b))
                if kind == 0:
                    part[T_WORK, n] += max(a, b)
                    part[T_BUSIEST, n] += max(a, b) * decode[i, AMOUNT_COUNT] / decode[i, COUNT]
            whole[T_PLAIN + kind, n] = total


@kernel
def expand(ops: Table, layout: Table, rows: Ticks, steps: Ticks) -> None:
    """Book the tabulated rows of all steps; done once, after the last."""
    decode = ops[1]
    for r in range(steps.shape[0]):
        for n in range(1, steps.shape[1]):
            if steps[r, n] == 0:
                continue
            mine, group, _ = spread(float(n), layout[L_RANKS], layout[L_STAGES])
            for i in range(int(layout[L_FIRST])):
                a, b = row_seconds(decode, i, mine, mine, group, mine, mine, 0.0, 0.0, 0.0)
                rows[r, 1, i, 0 if a >= b else 1] += steps[r, n] * ticks(max(a, b))


@kernel
def _context_rows(
    ops: Table, layout: Table, d: Table, which: float, scale: float, q: float, n: float,
    group: float, rows: Ticks, r: int, booked: float,
) -> tuple[int, float, float]:  # fmt: skip
    """Ticks of the decode rows that depend on the context; seconds of all and of the busiest."""
    total = 0
    work = busiest = 0.0
    decode = ops[1]
    at = D_KEYS + int(which) * ((d.shape[0] - D_KEYS) // 3)
    for i in range(int(layout[L_FIRST]), ops.shape[1]):
        key = int(decode[i, OP_KEY])
        seen_sum = d[at + key] * scale if key >= 0 else 0.0
        # q queries of one sequence see nearly the same tokens, and share the read
        a, b = row_seconds(
            decode, i, q * n, n, q * group, q * n, d[D_CONTEXT] * scale, q * seen_sum, seen_sum, 0.0
        )
        t = ticks(max(a, b))
        total += t
        work += max(a, b)
        busiest += max(a, b) * decode[i, AMOUNT_COUNT] / decode[i, COUNT]
        if booked > 0.0:
            rows[r, 1, i, 0 if a >= b else 1] += t
    return total, work, busiest


@kernel
def _wires(
    links: Table, scalars: Table, decode_tokens: float, decode_group: float, tokens: float,
    group: float, work: float, other: Ticks, r: int, booked: float,
) -> int:  # fmt: skip
    """Ticks of communication that compute does not hide: one message for the whole step."""
    count = links.shape[1]
    found = 0
    if count == 0:
        return 0
    out = np.empty(LINK_AMOUNTS)
    row = np.empty(links.shape[2])
    seconds = np.empty(count)
    communication = 0.0
    mine = decode_tokens + tokens
    for i in range(count):
        for j in range(row.shape[0]):
            row[j] = links[1, i, j]
        row[L_TOKEN_BYTES] = (
            links[1, i, L_TOKEN_BYTES] * decode_tokens + links[0, i, L_TOKEN_BYTES] * tokens
        ) / mine
        _link(row, mine, decode_group + group, 1.0, out)
        seconds[i] = out[C_TIME]
        communication += out[C_TIME]
    exposed = 1.0
    if scalars[1, OVERLAP] > 0.0 and communication > 0.0:
        exposed = 1.0 - scalars[1, OVERLAP] * min(work, communication) / communication
    for i in range(count):
        t = ticks(seconds[i] * exposed)
        found += t
        if booked > 0.0:
            other[r, BOOKS + i] += t
    return found


@kernel
def _prompts(
    ops: Table, p: Table, keys: int, scale: float, beside: float, group: float, rows: Ticks,
    other: Ticks, r: int,
) -> tuple[int, float, float]:  # fmt: skip
    """Ticks of the rows of prompts; what is computed again or for padding is booked as that."""
    total = 0
    work = busiest = 0.0
    again, padded = p[P_AGAIN] / p[P_TOKENS], p[P_PADDED] / p[P_TOKENS]
    prompt = ops[0]
    for i in range(ops.shape[1]):
        key = int(prompt[i, OP_KEY])
        pair_sum = p[P_KEYS + key] * scale if key >= 0 else 0.0
        seen_sum = p[P_KEYS + keys + key] * scale if key >= 0 else 0.0
        a, b = row_seconds(
            prompt, i, p[P_TOKENS] * scale, p[P_SEQUENCES] * scale, group, p[P_SAMPLED] * scale,
            p[P_CONTEXT] * scale, pair_sum, seen_sum, beside,
        )  # fmt: skip
        t = ticks(max(a, b))
        work += max(a, b)
        busiest += max(a, b) * prompt[i, AMOUNT_COUNT] / prompt[i, COUNT]
        total += t
        if again > 0.0:
            less = int(t * again)
            other[r, B_RECOMPUTE] += less
            t -= less
        if padded > 0.0:
            less = int(t * padded)
            other[r, B_PADDING] += less
            t -= less
        rows[r, 0, i, 0 if a >= b else 1] += t
    return total, work, busiest


@kernel
def price(
    ops: Table, links: Table, scalars: Table, keys: int, layout: Table, whole: Ticks, part: Table,
    d: Table, p: Table, rows: Ticks, other: Ticks, steps: Ticks, r: int,
) -> int:  # fmt: skip
    """Price one step of replica ``r``, book it, and return its ticks.

    Parameters
    ----------
    d : float64[3 + 3 * keys]
        Decoding: useful sequences, slots that run (more in a static batch), context tokens; sums
        over the keys of tokens that useful sequences see, that slots see, and with drafts.
    p : float64[7 + 2 * keys]
        Prompts: tokens, sequences, the longest chunk, sampled positions, context tokens, tokens
        that had been computed before, tokens of padding; pairs and seen tokens of the keys.
    rows, other, steps : int64 arrays
        Books: [replicas, phase, operation, bound by arithmetic or bytes]; [replicas, others and
        links]; [replicas, decoding sequences], the steps whose tabulated rows are booked later.
    """
    ranks, stages, draft = layout[L_RANKS], layout[L_STAGES], layout[L_DRAFT]
    n, slots = int(d[D_SEQUENCES]), int(d[D_SLOTS])
    pure = p[P_TOKENS] == 0.0
    mine = group = 0.0
    batches = 1.0
    total = 0
    work = busiest = 0.0
    captured = True
    q = 1.0 + draft
    if slots > 0:
        mine, group, batches = spread(float(n), ranks, stages)
        scale = mine / n
        t, work, busiest = _context_rows(ops, layout, d, 0.0, scale, 1.0, mine, group, rows, r, 1.0)
        plain = t + whole[T_PLAIN, n]
        work += part[T_WORK, n]
        busiest += part[T_BUSIEST, n]
        steps[r, n] += 1
        runs = slots
        if pure:
            captured = whole[T_RUNS, slots] > 0
            runs = max(slots, whole[T_RUNS, slots])
        extra = whole[T_PLAIN, runs] - whole[T_PLAIN, n]
        if slots > n:
            wide, everyone, _ = spread(float(slots), ranks, stages)
            t2, _, _ = _context_rows(
                ops, layout, d, 1.0, wide / slots, 1.0, wide, everyone, rows, r, 0.0
            )
            extra += t2 - t
        other[r, B_PADDING] += extra
        total = plain + extra
        if draft > 0.0:
            t3, _, _ = _context_rows(ops, layout, d, 2.0, scale, q, mine, group, rows, r, 0.0)
            more = t3 - t + whole[T_VERIFY, n] - whole[T_PLAIN, n]
            more += int(draft * plain / layout[L_LAYERS])
            other[r, B_DRAFT] += more
            total += more
    prompt_tokens = prompt_group = share = 0.0
    if not pure:
        split = min(stages, p[P_SEQUENCES])
        share = max(1.0 / (ranks * split), p[P_LONGEST] / p[P_TOKENS])
        prompt_tokens, prompt_group = p[P_TOKENS] * share, p[P_TOKENS] / split
        t4, more_work, more_busy = _prompts(
            ops, p, keys, share, q * group, prompt_group, rows, other, r
        )
        total += t4
        work += more_work
        busiest += more_busy
        batches = max(batches, split)
    wires = _wires(links, scalars, mine, group, prompt_tokens, prompt_group, work, other, r, 1.0)
    total += wires
    if draft > 0.0 and slots > 0:
        more = _wires(
            links, scalars, q * mine, q * group, prompt_tokens, prompt_group, work, other, r, 0.0
        ) - wires  # fmt: skip
        other[r, B_DRAFT] += more
        total += more
    bubble = ticks(max(0.0, batches * busiest - work))
    other[r, B_STAGES] += bubble
    total += bubble
    # launches, and the host between steps
    phase = 1 if n > 0 else 0
    floor = ticks(scalars[phase, KERNELS] * scalars[0, HOST_PREFILL_KERNEL_S])
    sequences = mine + p[P_SEQUENCES] * share
    host = ticks(scalars[phase, HOST_STEP_S] + scalars[phase, HOST_SEQUENCE_S] * sequences)
    if n == 0 or not captured:
        launch = max(0, floor - total)
    else:
        launch = ticks(scalars[phase, KERNELS] * scalars[phase, KERNEL_S])
        if not pure:
            launch += max(0, floor - total - launch - host)
    other[r, B_LAUNCH] += launch
    other[r, B_HOST] += host
    return total + launch + host


@kernel
def add_decode(keys: Table, d: Table, context: float, draft: float, useful: float) -> None:
    """Add one sequence whose next token sees ``context`` tokens, itself included.

    ``useful`` is 0 for a slot of a static batch whose answer is complete.
    """
    count = keys.shape[0]
    d[D_SLOTS] += 1.0
    if useful > 0.0:
        d[D_SEQUENCES] += 1.0
        d[D_CONTEXT] += context
    for k in range(count):
        window, top, chunk = keys[k, K_WINDOW], keys[k, K_TOP], keys[k, K_CHUNK]
        if chunk > 0.0:
            x = seen(1.0, context - 1.0, window, top, chunk)
        else:
            x = min(context, window, top)
        if useful > 0.0:
            d[D_KEYS + k] += x
        d[D_KEYS + count + k] += x
        if draft > 0.0:
            d[D_KEYS + 2 * count + k] += seen(1.0 + draft, context - 1.0, window, top, chunk)


@kernel
def add_prompt(keys: Table, p: Table, n: float, before: float, again: float) -> None:
    """Add a chunk of ``n`` tokens after ``before`` others, ``again`` of them a second time."""
    count = keys.shape[0]
    p[P_TOKENS] += n
    p[P_SEQUENCES] += 1.0
    p[P_LONGEST] = max(p[P_LONGEST], n)
    p[P_CONTEXT] += before + n
    p[P_AGAIN] += again
    for k in range(count):
        window, top, chunk = keys[k, K_WINDOW], keys[k, K_TOP], keys[k, K_CHUNK]
        p[P_KEYS + k] += pairs(n, before, min(window, top), chunk)
        p[P_KEYS + count + k] += seen(n, before, window, top, chunk)
