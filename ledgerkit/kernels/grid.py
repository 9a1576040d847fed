"""The same amounts as ``step``, for whole grids of workloads of one table.

What does not depend on the context is summed once for each concurrency; the few operations that do
come last in every table, so a grid goes on with them from that state and adds in the same order as
``step.book``. The result is the same bit for bit, and the inner loop is a few multiply-adds.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ledgerkit.kernels._jit import kernel
from ledgerkit.kernels.columns import (
    A_TIME_COMPUTE,
    A_TIME_MEMORY,
    AMOUNT_COUNT,
    AMOUNTS,
    C_TIME,
    COUNT,
    EXPERTS,
    F_PAIR,
    F_TOKEN,
    HOST_AMOUNTS,
    HOST_SEQUENCE_S,
    HOST_STEP_S,
    KERNEL_S,
    KERNELS,
    LINK_AMOUNTS,
    LOG_MISS,
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
from ledgerkit.kernels.step import _add, _link, _operation, book, decode, distinct, pairs, seen
from ledgerkit.kernels.step import prefill as prefill_one

Table = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint8]

# what the host needs to know of one concurrency ----------------------------------------------
S_ATTENTION, S_FFN, S_LINKS = 0, 2, 4
"""Sum and carry of the seconds of each ledger; of scheduling, the links without overlap."""
S_WORK, S_BUSIEST, S_COMMUNICATION, S_LAUNCH, S_HOST, S_BATCHES, S_SEQUENCES = (
    6,
    7,
    8,
    9,
    10,
    11,
    12,
)
STATE = 13

# coefficients of one operation that depends on the context, at one concurrency ---------------
K_FLOP, K_PAIR, K_READ, K_KV, K_EXPERT, K_WRITE = 0, 1, 2, 3, 4, 5
K_FLOP_CONTEXT, K_READ_CONTEXT, K_WRITE_CONTEXT = 6, 7, 8
COEFFICIENTS = 9

# amounts of one phase: 3 ledgers x (flop, read, write, communicate, time), then seconds by bound
B_COMPUTE, B_MEMORY, B_LINK, B_HOST = 0, 1, 2, 3
BOUNDS = 4

BLOCK = 512
"""Rows whose sums stay in the first-level cache."""


@kernel
def prefill_totals(
    ops: Table, links: Table, scalars: Table, op_ledger: Index, prompts: Table, cached: Table,
    chunk: float, out: Table,
) -> None:  # fmt: skip
    """Totals of prefill, ``out[n, 3, 5]``, of n (prompt, cached) pairs."""
    op_sum = np.empty((ops.shape[0], AMOUNTS))
    link_sum = np.empty((links.shape[0], LINK_AMOUNTS))
    host_sum = np.empty(HOST_AMOUNTS)
    for i in range(prompts.shape[0]):
        op_sum[:] = 0.0
        link_sum[:] = 0.0
        host_sum[:] = 0.0
        prefill_one(ops, links, scalars, prompts[i], cached[i], chunk, op_sum, link_sum, host_sum)
        book(op_sum, link_sum, host_sum, op_ledger, out[i])


@kernel
def decode_totals(
    ops: Table, links: Table, scalars: Table, op_ledger: Index, contexts: Table, sequences: Table,
    group_tokens: Table, batches: Table, out: Table, bounds: Table,
) -> None:  # fmt: skip
    """All totals of decode, ``out[n, 3, 5]``, and seconds by what bounds them, ``bounds[n, 4]``."""
    op_sum = np.empty((ops.shape[0], AMOUNTS))
    link_sum = np.empty((links.shape[0], LINK_AMOUNTS))
    host_sum = np.empty(HOST_AMOUNTS)
    for i in range(contexts.shape[0]):
        op_sum[:] = 0.0
        link_sum[:] = 0.0
        host_sum[:] = 0.0
        decode(
            ops, links, scalars, contexts[i], sequences[i], group_tokens[i], batches[i],
            op_sum, link_sum, host_sum,
        )  # fmt: skip
        book(op_sum, link_sum, host_sum, op_ledger, out[i])
        bounds[i, B_COMPUTE] = op_sum[:, A_TIME_COMPUTE].sum()
        bounds[i, B_MEMORY] = op_sum[:, A_TIME_MEMORY].sum()
        bounds[i, B_LINK] = link_sum[:, C_TIME].sum()
        bounds[i, B_HOST] = out[i, 2, 4] - bounds[i, B_LINK]


@kernel
def fill_rows(views: Table, rows: Table) -> None:
    """What one sequence costs at each context: ``rows[1 + 2 n_views, n]``.

    Row 0 holds the contexts. The kernel fills in pairs and read tokens for each of
    ``views[n_views, 4]``, the distinct (window, topk, chunk, ratio) of the operations.
    """
    for v in range(views.shape[0]):
        window, topk, chunk, ratio = views[v, 0], views[v, 1], views[v, 2], views[v, 3]
        limit = min(window, topk * ratio)
        pair, kept = rows[1 + 2 * v], rows[2 + 2 * v]
        for i in range(rows.shape[1]):
            p = rows[0, i] - 1.0
            pair[i] = pairs(1.0, p, limit, chunk)
            kept[i] = seen(1.0, p, window, topk * ratio, chunk)


@kernel
def decode_states(
    ops: Table, links: Table, scalars: Table, op_ledger: Index, first: int, sequences: Table,
    group_tokens: Table, batches: Table, states: Table, coefficients: Table, wires: Table,
) -> None:  # fmt: skip
    """Sums over everything that does not depend on the context, one row for each concurrency.

    Parameters
    ----------
    first : int
        Operations from here on depend on the context.
    sequences, group_tokens, batches : float64[n]
    states : float64[n, STATE]
    coefficients : float64[n, n_ops - first, COEFFICIENTS]
    wires : float64[n, n_links]
        Seconds of each link if nothing hides them.
    """
    one = np.empty(AMOUNTS)
    wire = np.empty(LINK_AMOUNTS)
    for i in range(sequences.shape[0]):
        s, group, rounds = sequences[i], group_tokens[i], batches[i]
        state = states[i]
        state[:] = 0.0
        for k in range(first):
            _operation(ops[k], 1.0, 0.0, s, group, s, rounds, one)
            seconds = one[A_TIME_COMPUTE] + one[A_TIME_MEMORY]
            at = S_ATTENTION if op_ledger[k] == 0 else S_FFN
            state[at], state[at + 1] = _add(state[at], state[at + 1], seconds)
            state[S_WORK] += seconds
            state[S_BUSIEST] += seconds * (ops[k, AMOUNT_COUNT] / ops[k, COUNT])
        for k in range(links.shape[0]):
            _link(links[k], s, group, rounds, wire)
            wires[i, k] = wire[C_TIME]
            state[S_COMMUNICATION] += wire[C_TIME]
            state[S_LINKS], state[S_LINKS + 1] = _add(
                state[S_LINKS], state[S_LINKS + 1], wire[C_TIME]
            )
        state[S_LAUNCH] = scalars[KERNELS] * scalars[KERNEL_S]
        state[S_HOST] = scalars[HOST_STEP_S] + scalars[HOST_SEQUENCE_S] * s
        state[S_BATCHES] = rounds
        state[S_SEQUENCES] = s
        for k in range(first, ops.shape[0]):
            _coefficients(ops[k], s, group, coefficients[i, k - first])


@kernel
def _coefficients(row: Table, s: float, group: float, out: Table) -> None:
    """Fill in what one operation costs at this concurrency, apart from the context."""
    out[:] = 0.0
    scope = row[SCOPE]
    tokens = group if scope == SCOPE_EXPERTS else s
    out[K_PAIR] = row[F_PAIR] * s
    out[K_KV] = row[R_KV] * s
    if row[R_EXPERT] != 0.0:
        out[K_EXPERT] = row[R_EXPERT] * distinct(group, row[EXPERTS], row[LOG_MISS])
    if scope == SCOPE_CONTEXT:
        out[K_FLOP_CONTEXT] = row[F_TOKEN]
        out[K_READ_CONTEXT] = row[R_TOKEN]
        out[K_WRITE_CONTEXT] = row[W_TOKEN]
        return
    if scope == SCOPE_SAMPLED:
        tokens = s
    out[K_FLOP] = row[F_TOKEN] * tokens
    out[K_READ] = row[R_STEP] + row[R_TOKEN] * tokens + row[R_SEQUENCE] * s
    out[K_WRITE] = row[W_TOKEN] * tokens + row[W_SEQUENCE] * s


@kernel
def _exact(a: float, b: float, c: float) -> float:
    """Correctly rounded a + b + c, as ``math.fsum`` gives it."""
    h = b + c
    t = h - b
    low = (b - (h - t)) + (c - t)
    total = a + h
    t = total - a
    error = (a - (total - t)) + (h - t)
    v = error + low
    t = v - error
    rest = (error - (v - t)) + (low - t)
    z = total + v
    t = z - total
    d = (total - (z - t)) + (v - t)
    # a tie that the last bits decide
    if (d > 0.0 and rest > 0.0) or (d < 0.0 and rest < 0.0):
        y = 2.0 * d
        x = z + y
        if y == x - z:
            z = x
    return z


@kernel
def decode_seconds(
    ops: Table, scalars: Table, op_ledger: Index, first: int, view_of: Index, states: Table,
    coefficients: Table, wires: Table, rows: Table, segments: Index, ledgers: Table, total: Table,
) -> None:  # fmt: skip
    """Seconds of decode by ledger, and in total, at every point of a grid.

    Parameters
    ----------
    view_of : int64[n_ops - first]
        View of each operation that depends on the context, see ``fill_rows``.
    states, coefficients, wires : float64 arrays
        As ``decode_states`` fills them.
    rows : float64[1 + 2 n_views, n_rows]
    segments : int64[n_segments, 3]
        Concurrency, first row, and row after the last: points are written segment by segment.
    ledgers : float64[3, n_points]
        Seconds of each ledger; left alone if it has no columns.
    total : float64[n_points]
        Their sum.
    """
    sums = np.empty((8, BLOCK))
    split = ledgers.shape[1] > 0
    at = 0
    for j in range(segments.shape[0]):
        line, start = segments[j, 0], segments[j, 1]
        state = states[line]
        # one micro-batch never waits for a stage
        whole = scalars[OVERLAP] > 0.0 or state[S_BATCHES] != 1.0
        a, ac, f, fc, work, busiest, seconds, rest = sums
        while start < segments[j, 2]:
            size = min(BLOCK, segments[j, 2] - start)
            a[:size] = state[S_ATTENTION]
            ac[:size] = state[S_ATTENTION + 1]
            f[:size] = state[S_FFN]
            fc[:size] = state[S_FFN + 1]
            work[:size] = state[S_WORK]
            busiest[:size] = state[S_BUSIEST]
            for k in range(view_of.shape[0]):
                row = ops[first + k]
                _operation_seconds(
                    row, coefficients[line, k], state[S_SEQUENCES], view_of[k],
                    rows[:, start : start + size], seconds,
                )  # fmt: skip
                if op_ledger[first + k] == 0:
                    _add_all(a, ac, seconds, size)
                else:
                    _add_all(f, fc, seconds, size)
                if whole:
                    share = row[AMOUNT_COUNT] / row[COUNT]
                    for i in range(size):
                        work[i] += seconds[i]
                        busiest[i] += seconds[i] * share
            value = _scheduling(scalars, state, wires[line], 0.0, 0.0)
            for i in range(size):
                if whole:
                    value = _scheduling(scalars, state, wires[line], work[i], busiest[i])
                rest[i] = value
            for i in range(size):
                a[i] += ac[i]
                f[i] += fc[i]
                total[at + i] = _exact(a[i], f[i], rest[i])
            if split:
                ledgers[0, at : at + size] = a[:size]
                ledgers[1, at : at + size] = f[:size]
                ledgers[2, at : at + size] = rest[:size]
            at += size
            start += size


@kernel
def _operation_seconds(row: Table, k: Table, s: float, view: int, rows: Table, out: Table) -> None:
    """Seconds of one operation at each context; the same steps as ``step._operation``."""
    contexts, pair, kept = rows[0], rows[1 + 2 * view], rows[2 + 2 * view]
    count, per_flop, per_byte, ratio = row[COUNT], row[S_PER_FLOP], row[S_PER_BYTE], row[RATIO]
    if row[SCOPE] == SCOPE_CONTEXT:
        for i in range(pair.shape[0]):
            tokens = s * contexts[i]
            flop = k[K_FLOP_CONTEXT] * tokens + k[K_PAIR] * pair[i] / ratio
            read = row[R_STEP] + k[K_READ_CONTEXT] * tokens + row[R_SEQUENCE] * s
            read = read + k[K_KV] * kept[i] / ratio + k[K_EXPERT]
            write = k[K_WRITE_CONTEXT] * tokens + row[W_SEQUENCE] * s
            out[i] = count * max(flop * per_flop, (read + write) * per_byte)
    elif ratio == 1.0:
        for i in range(pair.shape[0]):
            flop = k[K_FLOP] + k[K_PAIR] * pair[i]
            read = k[K_READ] + k[K_KV] * kept[i] + k[K_EXPERT]
            out[i] = count * max(flop * per_flop, (read + k[K_WRITE]) * per_byte)
    else:
        for i in range(pair.shape[0]):
            flop = k[K_FLOP] + k[K_PAIR] * pair[i] / ratio
            read = k[K_READ] + k[K_KV] * kept[i] / ratio + k[K_EXPERT]
            out[i] = count * max(flop * per_flop, (read + k[K_WRITE]) * per_byte)


@kernel
def _add_all(total: Table, carry: Table, value: Table, size: int) -> None:
    """``_add`` on every element; branches as choices, so that the loop is a vector loop."""
    for i in range(size):
        s, x = total[i], value[i]
        t = s + x
        first = (s - t) + x
        second = (x - t) + s
        carry[i] += first if abs(s) >= abs(x) else second
        total[i] = t


@kernel
def _scheduling(scalars: Table, state: Table, wires: Table, work: float, busiest: float) -> float:
    """Seconds of the scheduling ledger: links, launches, host, stages, as ``step`` and ``book``."""
    stages = max(0.0, state[S_BATCHES] * busiest - work)
    communication = state[S_COMMUNICATION]
    total, carry = state[S_LINKS], state[S_LINKS + 1]
    if communication > 0.0 and scalars[OVERLAP] > 0.0:
        exposed = 1.0 - scalars[OVERLAP] * min(work, communication) / communication
        total, carry = 0.0, 0.0
        for i in range(wires.shape[0]):
            total, carry = _add(total, carry, wires[i] * exposed)
    total, carry = _add(total, carry, state[S_LAUNCH])
    total, carry = _add(total, carry, state[S_HOST])
    total, carry = _add(total, carry, stages)
    return total + carry


@kernel
def exact_sums(parts: Table, out: Table) -> None:
    """Correctly rounded sum of the three ledgers, ``parts[n, 3]``."""
    for i in range(out.shape[0]):
        out[i] = _exact(parts[i, 0], parts[i, 1], parts[i, 2])


@kernel
def held_bytes(base: Table, one: Table, rank_sequences: Table, segments: Index, out: Table) -> None:
    """Bytes on the fullest device, without the reserve, at every point of the segments.

    ``base[stages]`` and ``one[stages, n_rows]`` (of one sequence) are those of ``Residence``;
    ``rank_sequences[n_lines]`` the sequences of the fullest attention rank.
    """
    at = 0
    for j in range(segments.shape[0]):
        s, start = rank_sequences[segments[j, 0]], segments[j, 1]
        size = segments[j, 2] - start
        for i in range(size):
            out[at + i] = base[0] + s * one[0, start + i]
        for stage in range(1, base.shape[0]):
            for i in range(size):
                out[at + i] = max(out[at + i], base[stage] + s * one[stage, start + i])
        at += size


@kernel
def fit_codes(
    held: Table, low: float, low_capacity: float, high: float, high_capacity: float, out: Codes
) -> None:
    """0 where it fits with the larger reserve, 1 where not even with the smaller, else 2."""
    for i in range(held.shape[0]):
        if held[i] + high <= high_capacity:
            out[i] = 0
        elif held[i] + low > low_capacity:
            out[i] = 1
        else:
            out[i] = 2
