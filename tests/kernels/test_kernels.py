"""Every kernel against its slow twin."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerkit.kernels import columns as c
from ledgerkit.kernels import step as kernels
from tests.kernels import naive

REL = 1e-12

limits = st.one_of(st.just(math.inf), st.integers(1, 90).map(float))
amounts = st.one_of(st.just(0.0), st.floats(1e-3, 1e12))
prices = st.floats(1e-16, 1e-9)


@st.composite
def operations(draw):
    layers = draw(st.integers(1, 80))
    # a layer has a window, a selection or chunks: chunked attention has no other limit
    chunk = draw(st.sampled_from((0.0, 0.0, 0.0, 5.0, 16.0)))
    experts = draw(st.sampled_from((0, 8, 64, 256)))
    ranks = draw(st.sampled_from((1, 2, 8))) if experts else 1
    return naive.Operation(
        layers=float(layers),
        own=float(draw(st.integers(0, layers))),
        scope="experts" if experts else draw(st.sampled_from(("rank", "sampled", "context"))),
        flop_per_token=draw(amounts),
        flop_per_pair=draw(amounts),
        weight_bytes=draw(amounts),
        read_per_token=draw(amounts),
        read_per_kept=draw(amounts),
        read_per_sequence=draw(amounts),
        bytes_per_expert=draw(amounts) if experts else 0.0,
        experts=experts,
        per_token=draw(st.integers(1, 8)) if experts else 0,
        ranks=ranks,
        write_per_token=draw(amounts),
        write_per_sequence=draw(amounts),
        window=math.inf if chunk else draw(limits),
        topk=math.inf if chunk else draw(limits),
        chunk=chunk,
        ratio=draw(st.sampled_from((1.0, 1.0, 4.0))),
        s_per_flop=draw(prices),
        s_per_byte=draw(prices),
        ledger=draw(st.sampled_from((0, 1))),
    )


@st.composite
def wires(draw):
    count = draw(st.integers(1, 160))
    return naive.Link(
        kind=draw(st.sampled_from(("all_reduce", "exchange", "send"))),
        count=float(count),
        own=float(draw(st.integers(0, count))),
        ranks=float(draw(st.sampled_from((2, 4, 8, 16)))),
        token_bytes=draw(st.floats(1, 1e6)),
        gather_bytes=draw(st.floats(1, 1e6)),
        alpha_s=draw(st.floats(0, 1e-4)),
        two_shot_s=draw(st.floats(0, 1e-4)),
        s_per_byte=draw(prices),
    )


hosts = st.builds(
    naive.Host,
    kernels=st.integers(1, 2000).map(float),
    kernel_s=st.floats(0, 1e-5),
    step_s=st.floats(0, 1e-3),
    sequence_s=st.floats(0, 1e-4),
    prefill_kernel_s=st.floats(0, 1e-4),
    overlap=st.sampled_from((0.0, 0.0, 0.5, 1.0)),
)
tables = st.tuples(
    st.lists(operations(), min_size=1, max_size=6), st.lists(wires(), max_size=3), hosts
)
SCOPES = {
    "rank": c.SCOPE_RANK,
    "experts": c.SCOPE_EXPERTS,
    "sampled": c.SCOPE_SAMPLED,
    "context": c.SCOPE_CONTEXT,
}
KINDS = {
    "all_reduce": c.KIND_ALL_REDUCE,
    "exchange": c.KIND_EXCHANGE,
    "send": c.KIND_SEND,
}


def arrays(ops, links, host, *, captured=False):
    """The same table, as kernels read it."""
    rows = np.zeros((len(ops), c.OP_COLUMNS))
    for row, op in zip(rows, ops, strict=True):
        row[c.COUNT], row[c.AMOUNT_COUNT], row[c.SCOPE] = op.layers, op.own, SCOPES[op.scope]
        row[c.F_TOKEN], row[c.F_PAIR] = op.flop_per_token, op.flop_per_pair
        row[c.R_STEP], row[c.R_TOKEN] = op.weight_bytes, op.read_per_token
        row[c.R_KV], row[c.R_SEQUENCE] = op.read_per_kept, op.read_per_sequence
        row[c.R_EXPERT] = op.bytes_per_expert
        row[c.EXPERTS] = op.experts / op.ranks
        missed = 1 - op.per_token / op.experts if op.experts else 1.0
        row[c.LOG_MISS] = math.log(missed) if missed else -math.inf
        row[c.W_TOKEN], row[c.W_SEQUENCE] = op.write_per_token, op.write_per_sequence
        row[c.WINDOW], row[c.TOPK], row[c.CHUNK] = op.window, op.topk, op.chunk
        row[c.RATIO] = op.ratio
        row[c.S_PER_FLOP], row[c.S_PER_BYTE] = op.s_per_flop, op.s_per_byte
    wires = np.zeros((len(links), c.LINK_COLUMNS))
    for row, link in zip(wires, links, strict=True):
        row[c.L_COUNT], row[c.L_AMOUNT_COUNT] = link.count, link.own
        row[c.L_KIND], row[c.L_RANKS] = KINDS[link.kind], link.ranks
        row[c.L_TOKEN_BYTES] = link.token_bytes
        row[c.L_GATHER_BYTES], row[c.L_ALPHA] = link.gather_bytes, link.alpha_s
        row[c.L_ALPHA_TWO_SHOT], row[c.L_S_PER_BYTE] = link.two_shot_s, link.s_per_byte
    scalars = np.zeros(c.SCALARS)
    scalars[c.KERNELS], scalars[c.KERNEL_S] = host.kernels, host.kernel_s
    scalars[c.HOST_STEP_S], scalars[c.HOST_SEQUENCE_S] = host.step_s, host.sequence_s
    scalars[c.HOST_PREFILL_KERNEL_S] = host.prefill_kernel_s
    scalars[c.OVERLAP], scalars[c.CAPTURED] = host.overlap, float(captured)
    return rows, wires, scalars


def empty(ops, links):
    return (
        np.zeros((len(ops), c.AMOUNTS)),
        np.zeros((len(links), c.LINK_AMOUNTS)),
        np.zeros(c.HOST_AMOUNTS),
    )


def compare(books, seconds, op_sum, link_sum, host_sum):
    """Amounts of a kernel against those of its twin."""
    near = lambda value: pytest.approx(value, rel=REL, abs=1e-300)  # noqa: E731
    for row, mine in zip(op_sum, books.ops, strict=True):
        assert list(row[[c.A_FLOP, c.A_READ, c.A_WRITE]]) == near(
            [mine["flop"], mine["read"], mine["write"]]
        )
        # where both bounds are equal to rounding, either may be called the binding one
        assert row[c.A_TIME_COMPUTE] + row[c.A_TIME_MEMORY] == near(
            mine["compute_s"] + mine["memory_s"]
        )
    for row, mine in zip(link_sum, books.links, strict=True):
        assert row[c.C_STEPS] == mine["rounds"]
        assert row[c.C_TIME] == pytest.approx(mine["seconds"], rel=1e-9, abs=1e-18)
        assert row[c.C_BYTES] == near(mine["bytes"])
    # differences of long and nearly equal times: to the rounding of what is subtracted
    scale = 1e-12 * seconds
    assert host_sum[c.H_LAUNCH] == pytest.approx(books.host["launch"], rel=REL, abs=scale)
    assert host_sum[c.H_STAGES] == pytest.approx(books.host["stages"], rel=REL, abs=scale)
    assert host_sum[c.H_HOST] == near(books.host["host"])
    assert host_sum[c.H_KERNELS] == near(books.host["kernels"])
    assert seconds == near(books.seconds)


def test_pairs_by_counting_queries():
    for p in (0, 1, 7, 16, 33):
        for n in (1, 2, 5, 16, 40):
            assert kernels.pairs(n, p, math.inf, 0.0) == naive.pairs(n, p)
            for limit in (1, 3, 8, 64):
                assert kernels.pairs(n, p, float(limit), 0.0) == naive.pairs(n, p, limit)
                assert kernels.pairs(n, p, math.inf, float(limit)) == naive.pairs(n, p, chunk=limit)


@given(n=st.integers(1, 200), p=st.integers(0, 300), window=limits, chunk=st.integers(0, 70))
def test_pairs(n, p, window, chunk):
    if chunk:
        window = math.inf
    assert kernels.pairs(n, p, window, float(chunk)) == naive.pairs(n, p, window, chunk)


@given(n=st.integers(1, 200), p=st.integers(0, 300), topk=st.integers(1, 150))
def test_topk_counts_pairs_like_a_window(n, p, topk):
    by_query = sum(len(naive.visible(p + i, math.inf, topk, 0)) for i in range(n))
    assert kernels.pairs(n, p, float(topk), 0.0) == by_query


@given(n=st.integers(1, 200), p=st.integers(0, 300), window=limits, topk=limits,
       chunk=st.integers(0, 70))  # fmt: skip
def test_seen(n, p, window, topk, chunk):
    if chunk:
        window = topk = math.inf
    found = kernels.seen(n, p, window, topk, float(chunk))
    assert found == naive.seen(n, p, window, topk, chunk)


@given(n=st.integers(1, 10**6), p=st.integers(0, 10**6), size=st.integers(1, 10**5))
def test_chunks_of_a_prompt_have_the_pairs_of_the_prompt(n, p, size):
    parts, done = [], 0
    for take in (min(size, n), n - min(size, n)):
        if take:
            parts.append(kernels.pairs(take, p + done, math.inf, 0.0))
            done += take
    assert sum(parts) == kernels.pairs(n, p, math.inf, 0.0)


@given(tokens=st.integers(1, 300), experts=st.sampled_from((8, 64, 128, 256, 896)),
       per_token=st.integers(1, 8), ranks=st.sampled_from((1, 2, 8)))  # fmt: skip
def test_distinct(tokens, experts, per_token, ranks):
    missed = 1 - per_token / experts
    log_miss = math.log(missed) if missed else -math.inf
    exact = naive.distinct(tokens, experts, per_token, ranks)
    assert kernels.distinct(tokens, experts / ranks, log_miss) == pytest.approx(
        float(exact), rel=REL
    )


def test_distinct_of_one_token_and_of_all_experts():
    assert kernels.distinct(1, 256, math.log(1 - 8 / 256)) == pytest.approx(8, rel=REL)
    assert kernels.distinct(5, 8, -math.inf) == 8


@settings(max_examples=150)
@given(table=tables, n=st.integers(1, 40), p=st.integers(0, 60), sequences=st.integers(1, 9),
       sampled=st.integers(0, 3), group=st.integers(1, 50), batches=st.integers(1, 4),
       captured=st.booleans())  # fmt: skip
def test_step(table, n, p, sequences, sampled, group, batches, captured):
    rows, wires, scalars = arrays(*table, captured=captured)
    sums = empty(*table[:2])
    seconds = kernels.step(
        rows, wires, scalars, float(n), float(p), float(sequences), float(group), float(sampled),
        float(batches), *sums,
    )  # fmt: skip
    at = naive.Step(n, p, sequences, group, sampled, batches, captured)
    compare(naive.step(*table, at), seconds, *sums)


@settings(max_examples=100)
@given(table=tables, prompt=st.integers(1, 90), cached=st.integers(0, 89), chunk=st.integers(1, 99))
def test_prefill(table, prompt, cached, chunk):
    cached = min(cached, prompt - 1)
    rows, wires, scalars = arrays(*table)
    sums = empty(*table[:2])
    seconds = kernels.prefill(
        rows, wires, scalars, float(prompt), float(cached), float(chunk), *sums
    )
    compare(naive.prefill(*table, prompt, cached, chunk), seconds, *sums)


@settings(max_examples=100)
@given(table=tables, context=st.integers(1, 200), sequences=st.integers(1, 9),
       group=st.integers(1, 50), batches=st.integers(1, 4))  # fmt: skip
def test_decode(table, context, sequences, group, batches):
    rows, wires, scalars = arrays(*table, captured=True)
    sums = empty(*table[:2])
    seconds = kernels.decode(
        rows, wires, scalars, float(context), float(sequences), float(group), float(batches), *sums
    )
    compare(naive.decode(*table, context, sequences, group, batches), seconds, *sums)


@settings(max_examples=100)
@given(table=tables, context=st.integers(1, 200))
def test_book_sums_to_the_last_bits(table, context):
    ops, links, _ = table
    rows, wires, scalars = arrays(*table)
    op_sum, link_sum, host_sum = empty(ops, links)
    kernels.decode(rows, wires, scalars, float(context), 3.0, 3.0, 1.0, op_sum, link_sum, host_sum)
    found = np.empty((3, 5))
    kernels.book(
        op_sum, link_sum, host_sum, np.array([op.ledger for op in ops], dtype=np.int64), found
    )
    books = naive.Books(
        ops=[
            dict(zip(("flop", "read", "write", "compute_s", "memory_s"), map(float, row),
                     strict=True))
            for row in op_sum
        ],
        links=[
            {"bytes": float(row[c.C_BYTES]), "seconds": float(row[c.C_TIME])} for row in link_sum
        ],
        host={
            "launch": float(host_sum[c.H_LAUNCH]),
            "host": float(host_sum[c.H_HOST]),
            "stages": float(host_sum[c.H_STAGES]),
        },
    )  # fmt: skip
    for mine, row in zip(naive.book(ops, books), found, strict=True):
        for exact, value in zip(mine.values(), row, strict=True):
            assert abs(exact - value) <= 4 * math.ulp(exact)


@settings(max_examples=60)
@given(table=tables, other=hosts, points=st.lists(
    st.tuples(st.integers(1, 60), st.integers(0, 59), st.integers(1, 99), st.integers(1, 9),
              st.integers(1, 20), st.integers(1, 3), st.integers(1, 70)),
    min_size=1, max_size=5))  # fmt: skip
def test_totals(table, other, points):
    """Phases have tables of their own; each point is priced as if it were alone."""
    ops, links, host = table
    rows, wires, scalars = arrays(*table)
    _, _, other_scalars = arrays(ops, links, other, captured=True)
    both = (
        np.stack([rows, rows[:, :]]), np.stack([wires, wires]), np.stack([scalars, other_scalars])
    )  # fmt: skip
    ledgers = np.array([op.ledger for op in ops], dtype=np.int64)
    points = [(prompt, min(cached, prompt - 1), *rest) for prompt, cached, *rest in points]
    columns = [np.array(column, dtype=np.float64) for column in zip(*points, strict=True)]
    out = np.empty((len(points), 2, 3, 5))
    kernels.totals(*both, ledgers, *columns, out)
    for i, (prompt, cached, context, sequences, group, batches, chunk) in enumerate(points):
        alone = np.empty((1, 2, 3, 5))
        kernels.totals(*both, ledgers, *(column[i : i + 1] for column in columns), alone)
        assert (alone[0] == out[i]).all()
        twins = (
            naive.prefill(ops, links, host, prompt, cached, chunk),
            naive.decode(ops, links, other, context, sequences, group, batches),
        )
        for phase, books in enumerate(twins):
            scale = 1e-12 * books.seconds
            for mine, row in zip(naive.book(ops, books), out[i, phase], strict=True):
                *others, time = mine.values()
                assert list(row[:4]) == pytest.approx(others, rel=REL, abs=1e-300)
                assert row[4] == pytest.approx(time, rel=REL, abs=scale)
