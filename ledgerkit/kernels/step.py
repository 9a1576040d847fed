"""The cost of engine steps: one point in detail, or many points in totals.

One file, because numba's cache does not see changes in imported helpers. Arrays are indexed one
axis at a time and measured by ``len``, so that the same source runs on nested lists, see ``_jit``.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ledgerkit.kernels._jit import kernel
from ledgerkit.kernels.columns import (
    A_FLOP,
    A_READ,
    A_TIME_COMPUTE,
    A_TIME_MEMORY,
    A_WRITE,
    AMOUNT_COUNT,
    AMOUNTS,
    C_BYTES,
    C_STEPS,
    C_TIME,
    CAPTURED,
    CHUNK,
    COUNT,
    EXPERTS,
    F_PAIR,
    F_TOKEN,
    H_HOST,
    H_KERNELS,
    H_LAUNCH,
    H_STAGES,
    HOST_AMOUNTS,
    HOST_PREFILL_KERNEL_S,
    HOST_SEQUENCE_S,
    HOST_STEP_S,
    KERNEL_S,
    KERNELS,
    KIND_ALL_REDUCE,
    KIND_EXCHANGE,
    L_ALPHA,
    L_ALPHA_TWO_SHOT,
    L_AMOUNT_COUNT,
    L_COUNT,
    L_GATHER_BYTES,
    L_KIND,
    L_RANKS,
    L_S_PER_BYTE,
    L_TOKEN_BYTES,
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
    TOPK,
    W_SEQUENCE,
    W_TOKEN,
    WINDOW,
)

Table = npt.NDArray[np.float64]


@kernel
def pairs(n: float, p: float, window: float, chunk: float) -> float:
    """Count (query, key) pairs of n new tokens after p cached ones, causal.

    ``window`` = most keys per query (inf = all; also exact for top-k); ``chunk`` > 0 = a query
    sees its own chunk only.
    """
    if chunk > 0.0:
        whole = math.floor(p / chunk)
        rest = p - whole * chunk
        before = whole * chunk * (chunk + 1.0) / 2.0 + rest * (rest + 1.0) / 2.0
        end = p + n
        whole = math.floor(end / chunk)
        rest = end - whole * chunk
        return whole * chunk * (chunk + 1.0) / 2.0 + rest * (rest + 1.0) / 2.0 - before
    m = min(max(window - p, 0.0), n)
    total = m * p + m * (m + 1.0) / 2.0
    if n > m:
        total += (n - m) * window
    return total


@kernel
def seen(n: float, p: float, window: float, topk: float, chunk: float) -> float:
    """Count the cached and new tokens that a step of one sequence reads from memory."""
    if chunk > 0.0:
        return p - math.floor(p / chunk) * chunk + n
    tokens = min(p, window - 1.0) + n
    return min(tokens, n * topk)


@kernel
def distinct(tokens: float, experts: float, log_miss: float) -> float:
    """Expected experts that ``tokens`` independent tokens hit, of ``experts`` on a device."""
    return experts * (1.0 - math.exp(tokens * log_miss))


@kernel
def _operation(
    row: Table, n: float, p: float, sequences: float, group_tokens: float, sampled: float,
    batches: float, out: Table,
) -> None:  # fmt: skip
    """Fill ``out[AMOUNTS]`` with one operation's amounts in one step."""
    scope = row[SCOPE]
    if scope == SCOPE_EXPERTS:
        tokens = group_tokens
    elif scope == SCOPE_SAMPLED:
        tokens = sampled
    elif scope == SCOPE_CONTEXT:
        tokens = sequences * (p + n)
    else:
        tokens = n * sequences
    for j in range(AMOUNTS):
        out[j] = 0.0
    if tokens == 0.0:
        return
    count = row[COUNT]
    flop = row[F_TOKEN] * tokens
    if row[F_PAIR] != 0.0:
        limit = min(row[WINDOW], row[TOPK] * row[RATIO])
        flop += row[F_PAIR] * sequences * pairs(n, p, limit, row[CHUNK]) / row[RATIO]
    read = row[R_STEP] + row[R_TOKEN] * tokens + row[R_SEQUENCE] * sequences
    if row[R_KV] != 0.0:
        kept = seen(n, p, row[WINDOW], row[TOPK] * row[RATIO], row[CHUNK])
        read += row[R_KV] * sequences * kept / row[RATIO]
    if row[R_EXPERT] != 0.0:
        read += row[R_EXPERT] * distinct(group_tokens, row[EXPERTS], row[LOG_MISS])
    write = row[W_TOKEN] * tokens + row[W_SEQUENCE] * sequences
    layers = row[AMOUNT_COUNT] * batches
    out[A_FLOP] = layers * flop
    out[A_READ] = layers * read
    out[A_WRITE] = layers * write
    compute_s = flop * row[S_PER_FLOP]
    memory_s = (read + write) * row[S_PER_BYTE]
    if compute_s >= memory_s:
        out[A_TIME_COMPUTE] = count * compute_s
    else:
        out[A_TIME_MEMORY] = count * memory_s


@kernel
def _link(row: Table, tokens: float, group_tokens: float, batches: float, out: Table) -> None:
    """Fill ``out[LINK_AMOUNTS]`` with one link's bytes, rounds and seconds in one step."""
    ranks = row[L_RANKS]
    per_byte = row[L_S_PER_BYTE]
    alpha = row[L_ALPHA]
    message = row[L_TOKEN_BYTES] * tokens
    kind = row[L_KIND]
    if kind == KIND_ALL_REDUCE:
        one_shot = (ranks - 1.0) * message
        two_shot = 2.0 * (ranks - 1.0) / ranks * message
        one_s = one_shot * per_byte
        two_s = row[L_ALPHA_TWO_SHOT] + two_shot * per_byte
        moved = one_shot if one_s <= two_s else two_shot
        seconds = alpha + min(one_s, two_s)
    elif kind == KIND_EXCHANGE:
        moved = min(message, row[L_GATHER_BYTES] * group_tokens)
        seconds = alpha + row[L_ALPHA_TWO_SHOT] + moved * per_byte
    else:
        moved = message
        seconds = alpha + moved * per_byte
    out[C_BYTES] = row[L_AMOUNT_COUNT] * batches * moved
    out[C_STEPS] = row[L_COUNT]
    out[C_TIME] = row[L_COUNT] * seconds


@kernel
def step(
    ops: Table, links: Table, scalars: Table, n: float, p: float, sequences: float,
    group_tokens: float, sampled: float, batches: float, op_sum: Table, link_sum: Table,
    host_sum: Table,
) -> float:  # fmt: skip
    """Add one engine step to the sums and return its seconds.

    Parameters
    ----------
    ops, links, scalars : float64 arrays
        Tables of one phase, see ``columns``.
    n, p : float
        Query tokens of each sequence, and cached tokens before them.
    sequences, group_tokens, sampled : float
        Of one micro-batch: sequences of the attention rank, tokens of the expert group, positions
        that are sampled.
    batches : float
        Micro-batches in flight: each passes all stages, and waits for the busiest one.
    op_sum : float64[n_ops, AMOUNTS]
    link_sum : float64[n_links, LINK_AMOUNTS]
    host_sum : float64[HOST_AMOUNTS]
    """
    one = np.empty(AMOUNTS)
    work = 0.0
    busiest = 0.0
    for i in range(len(ops)):
        _operation(ops[i], n, p, sequences, group_tokens, sampled, batches, one)
        for j in range(AMOUNTS):
            op_sum[i][j] += one[j]
        seconds: float = one[A_TIME_COMPUTE] + one[A_TIME_MEMORY]
        work += seconds
        busiest += seconds * (ops[i][AMOUNT_COUNT] / ops[i][COUNT])
    wire = np.empty(LINK_AMOUNTS)
    communication = 0.0
    for i in range(len(links)):
        _link(links[i], n * sequences, group_tokens, batches, wire)
        communication += wire[C_TIME]
    exposed = 1.0
    if communication > 0.0 and scalars[OVERLAP] > 0.0:
        exposed = 1.0 - scalars[OVERLAP] * min(work, communication) / communication
    for i in range(len(links)):
        _link(links[i], n * sequences, group_tokens, batches, wire)
        link_sum[i][C_BYTES] += wire[C_BYTES]
        link_sum[i][C_STEPS] += wire[C_STEPS]
        link_sum[i][C_TIME] += wire[C_TIME] * exposed
    stages: float = max(0.0, batches * busiest - work)
    busy: float = work + communication * exposed + stages
    if scalars[CAPTURED] == 1.0:
        launch = scalars[KERNELS] * scalars[KERNEL_S]
    else:
        launch = max(0.0, scalars[KERNELS] * scalars[HOST_PREFILL_KERNEL_S] - busy)
    host = scalars[HOST_STEP_S] + scalars[HOST_SEQUENCE_S] * sequences
    host_sum[H_LAUNCH] += launch
    host_sum[H_HOST] += host
    host_sum[H_STAGES] += stages
    host_sum[H_KERNELS] += scalars[KERNELS]
    total: float = busy + launch + host
    return total


@kernel
def prefill(
    ops: Table, links: Table, scalars: Table, prompt: float, cached: float, chunk: float,
    op_sum: Table, link_sum: Table, host_sum: Table,
) -> float:  # fmt: skip
    """Prefill one request alone, in chunks; the last chunk yields token 1. Returns seconds."""
    seconds = 0.0
    p = cached
    while p < prompt:
        n = min(chunk, prompt - p)
        sampled = 1.0 if p + n >= prompt else 0.0
        seconds += step(ops, links, scalars, n, p, 1.0, n, sampled, 1.0, op_sum, link_sum, host_sum)
        p += n
    return seconds


@kernel
def decode(
    ops: Table, links: Table, scalars: Table, context: float, sequences: float,
    group_tokens: float, batches: float, op_sum: Table, link_sum: Table, host_sum: Table,
) -> float:  # fmt: skip
    """Decode one token of every sequence at this context, the new token included."""
    return step(
        ops, links, scalars, 1.0, context - 1.0, sequences, group_tokens, sequences, batches,
        op_sum, link_sum, host_sum,
    )  # fmt: skip


@kernel
def _add(total: float, carry: float, value: float) -> tuple[float, float]:
    """Neumaier's compensated sum: totals equal the sum of the entries to the last bit or two."""
    t = total + value
    if abs(total) >= abs(value):
        carry += (total - t) + value
    else:
        carry += (value - t) + total
    return t, carry


@kernel
def book(
    op_sum: Table, link_sum: Table, host_sum: Table, op_ledger: npt.NDArray[np.int64],
    out: Table,
) -> None:  # fmt: skip
    """Sum amounts by ledger into ``out[3][5]``: flop, read, write, communicate, time.

    ``op_ledger[n_ops]`` is 0 for attention_kv and 1 for ffn_mlp; links and host are scheduling.
    """
    carry = np.empty((3, 5))
    for i in range(3):
        for j in range(5):
            out[i][j] = carry[i][j] = 0.0
    for i in range(len(op_sum)):
        ledger = op_ledger[i]
        for j in range(3):
            out[ledger][j], carry[ledger][j] = _add(out[ledger][j], carry[ledger][j], op_sum[i][j])
        for j in (A_TIME_COMPUTE, A_TIME_MEMORY):
            out[ledger][4], carry[ledger][4] = _add(out[ledger][4], carry[ledger][4], op_sum[i][j])
    for i in range(len(link_sum)):
        out[2][3], carry[2][3] = _add(out[2][3], carry[2][3], link_sum[i][C_BYTES])
        out[2][4], carry[2][4] = _add(out[2][4], carry[2][4], link_sum[i][C_TIME])
    for j in (H_LAUNCH, H_HOST, H_STAGES):
        out[2][4], carry[2][4] = _add(out[2][4], carry[2][4], host_sum[j])
    for i in range(3):
        for j in range(5):
            out[i][j] += carry[i][j]


@kernel
def _clear(op_sum: Table, link_sum: Table, host_sum: Table) -> None:
    """Set all sums to zero; loops compile faster than slices do."""
    for i in range(len(op_sum)):
        for j in range(AMOUNTS):
            op_sum[i][j] = 0.0
    for i in range(len(link_sum)):
        for j in range(LINK_AMOUNTS):
            link_sum[i][j] = 0.0
    for j in range(HOST_AMOUNTS):
        host_sum[j] = 0.0


@kernel
def totals(
    tables: Table, links: Table, scalars: Table, op_ledger: npt.NDArray[np.int64],
    prompts: Table, cached: Table, contexts: Table, sequences: Table, group_tokens: Table,
    batches: Table, chunks: Table, out: Table,
) -> None:  # fmt: skip
    """Totals by ledger for many points of one table.

    Parameters
    ----------
    tables : float64[2, n_ops, OP_COLUMNS]
        Operations of prefill and decode.
    links : float64[2, n_links, LINK_COLUMNS]
    scalars : float64[2, SCALARS]
    prompts, cached, contexts, sequences, group_tokens, batches, chunks : float64[n_points]
    out : float64[n_points, 2, 3, 5]
        Phase (prefill, decode) × ledger × (flop, read, write, communicate, time).
    """
    n_ops = len(tables[0])
    op_sum = np.empty((n_ops, AMOUNTS))
    link_sum = np.empty((len(links[0]), LINK_AMOUNTS))
    host_sum = np.empty(HOST_AMOUNTS)
    for i in range(len(prompts)):
        for phase in range(2):
            _clear(op_sum, link_sum, host_sum)
            ops, wires, host = tables[phase], links[phase], scalars[phase]
            if phase == 0:
                prefill(
                    ops, wires, host, prompts[i], cached[i], chunks[i], op_sum, link_sum, host_sum
                )
            else:  # as decode does; one function less to compile before the first ledger
                step(
                    ops, wires, host, 1.0, contexts[i] - 1.0, sequences[i], group_tokens[i],
                    sequences[i], batches[i], op_sum, link_sum, host_sum,
                )  # fmt: skip
            book(op_sum, link_sum, host_sum, op_ledger, out[i][phase])
