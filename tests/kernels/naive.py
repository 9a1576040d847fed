"""Slow twins of the kernels, written from the formulas: loops over queries, dicts, exact fractions.

Nothing here knows a column number or how a kernel is arranged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction


def visible(query: int, window: float, topk: float, chunk: float) -> set[int]:
    """Keys that a query may attend to: itself and what came before, as far as limits allow.

    Which ``topk`` keys a query takes is not known; the latest ones stand for them.
    """
    first = 0
    if chunk:
        first = query - query % int(chunk)
    keys = set(range(first, query + 1))
    limit = min(window, topk)
    if math.isfinite(limit):
        keys = {key for key in keys if key > query - limit}
    return keys


def pairs(n: int, p: int, window: float = math.inf, chunk: float = 0.0) -> int:
    """Count (query, key) pairs one query at a time."""
    return sum(len(visible(p + i, window, math.inf, chunk)) for i in range(n))


def seen(
    n: int, p: int, window: float = math.inf, topk: float = math.inf, chunk: float = 0.0
) -> int:
    """Tokens that at least one query of the step may attend to, at most ``topk`` for each."""
    keys: set[int] = set()
    for i in range(n):
        keys |= visible(p + i, window, math.inf, chunk)
    return min(len(keys), n * int(topk)) if math.isfinite(topk) else len(keys)


def distinct(tokens: int, experts: int, per_token: int, ranks: int = 1) -> Fraction:
    """Expected experts of one rank that independent tokens hit, each taking k of E at random."""
    missed_by_one = Fraction(experts - per_token, experts)
    return Fraction(experts, ranks) * (1 - missed_by_one**tokens)


@dataclass
class Operation:
    """One kind of work of ``layers`` equal layers, of which ``own`` are on the device."""

    layers: float = 1.0
    own: float = 1.0
    scope: str = "rank"
    flop_per_token: float = 0.0
    flop_per_pair: float = 0.0
    weight_bytes: float = 0.0
    read_per_token: float = 0.0
    read_per_kept: float = 0.0
    read_per_sequence: float = 0.0
    bytes_per_expert: float = 0.0
    experts: int = 0
    per_token: int = 0
    ranks: int = 1
    write_per_token: float = 0.0
    write_per_sequence: float = 0.0
    window: float = math.inf
    topk: float = math.inf
    chunk: float = 0.0
    ratio: float = 1.0
    s_per_flop: float = 0.0
    s_per_byte: float = 0.0
    ledger: int = 0


@dataclass
class Link:
    """One kind of communication that happens ``count`` times, ``own`` of them on the device."""

    kind: str = "all_reduce"
    count: float = 1.0
    own: float = 1.0
    ranks: float = 2.0
    token_bytes: float = 0.0
    gather_bytes: float = 0.0
    alpha_s: float = 0.0
    two_shot_s: float = 0.0
    s_per_byte: float = 0.0


@dataclass
class Host:
    """Launches and gaps."""

    kernels: float = 0.0
    kernel_s: float = 0.0
    step_s: float = 0.0
    sequence_s: float = 0.0
    prefill_kernel_s: float = 0.0
    overlap: float = 0.0


@dataclass
class Step:
    """What one engine step does."""

    n: int
    p: int
    sequences: int
    group_tokens: int
    sampled: int
    batches: int = 1
    captured: bool = False


@dataclass
class Books:
    """Amounts of each operation, link and of the host; seconds of the steps."""

    ops: list[dict[str, float]] = field(default_factory=list)
    links: list[dict[str, float]] = field(default_factory=list)
    host: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    def add(self, other: Books) -> None:
        """Add the amounts of a further step."""
        if not self.host:
            self.ops, self.links, self.host = other.ops, other.links, other.host
        else:
            for mine, theirs in zip(
                [*self.ops, *self.links, self.host],
                [*other.ops, *other.links, other.host],
                strict=True,
            ):
                for key, value in theirs.items():
                    mine[key] += value
        self.seconds += other.seconds


def operation(op: Operation, at: Step) -> dict[str, float]:
    """Amounts of one operation in one step."""
    amounts = dict.fromkeys(("flop", "read", "write", "compute_s", "memory_s"), 0.0)
    tokens = {
        "rank": at.n * at.sequences,
        "experts": at.group_tokens,
        "sampled": at.sampled,
        "context": at.sequences * (at.p + at.n),
    }[op.scope]
    if not tokens:
        return amounts
    # compressed entries: limits are in entries, and one entry stands for ``ratio`` tokens
    limit = min(op.window, op.topk * op.ratio)
    flop = op.flop_per_token * tokens
    flop += op.flop_per_pair * at.sequences * pairs(at.n, at.p, limit, op.chunk) / op.ratio
    read = op.weight_bytes + op.read_per_token * tokens + op.read_per_sequence * at.sequences
    kept = seen(at.n, at.p, op.window, op.topk * op.ratio, op.chunk)
    read += op.read_per_kept * at.sequences * kept / op.ratio
    if op.bytes_per_expert:
        hit = distinct(at.group_tokens, op.experts, op.per_token, op.ranks)
        read += op.bytes_per_expert * float(hit)
    write = op.write_per_token * tokens + op.write_per_sequence * at.sequences
    amounts["flop"] = op.own * at.batches * flop
    amounts["read"] = op.own * at.batches * read
    amounts["write"] = op.own * at.batches * write
    compute_s, memory_s = flop * op.s_per_flop, (read + write) * op.s_per_byte
    bound = "compute_s" if compute_s >= memory_s else "memory_s"
    amounts[bound] = op.layers * max(compute_s, memory_s)
    return amounts


def link(wire: Link, at: Step) -> dict[str, float]:
    """Bytes, rounds and seconds of one link in one step, nothing hidden."""
    ranks, tokens = wire.ranks, at.n * at.sequences
    message = wire.token_bytes * tokens
    if wire.kind == "all_reduce":
        one_shot, two_shot = (ranks - 1) * message, 2 * (ranks - 1) / ranks * message
        choices = [
            (one_shot * wire.s_per_byte, one_shot),
            (wire.two_shot_s + two_shot * wire.s_per_byte, two_shot),
        ]
        seconds, moved = min(choices, key=lambda choice: choice[0])
        seconds += wire.alpha_s
    elif wire.kind == "exchange":
        moved = min(message, wire.gather_bytes * at.group_tokens)
        seconds = wire.alpha_s + wire.two_shot_s + moved * wire.s_per_byte
    else:
        moved = message
        seconds = wire.alpha_s + moved * wire.s_per_byte
    return {
        "bytes": wire.own * at.batches * moved,
        "rounds": wire.count,
        "seconds": wire.count * seconds,
    }


def step(ops: list[Operation], links: list[Link], host: Host, at: Step) -> Books:
    """Price one engine step."""
    books = Books(ops=[operation(op, at) for op in ops], links=[link(wire, at) for wire in links])
    seconds = [row["compute_s"] + row["memory_s"] for row in books.ops]
    work = math.fsum(seconds)
    communication = math.fsum(row["seconds"] for row in books.links)
    hidden = host.overlap * min(work, communication)
    for row in books.links:
        row["seconds"] *= 1 - hidden / communication if communication else 1
    busiest = math.fsum(s * op.own / op.layers for s, op in zip(seconds, ops, strict=True))
    waiting = max(0.0, at.batches * busiest - work)
    busy = work + communication - hidden + waiting
    if at.captured:
        launch = host.kernels * host.kernel_s
    else:
        launch = max(0.0, host.kernels * host.prefill_kernel_s - busy)
    gap = host.step_s + host.sequence_s * at.sequences
    books.host = {"launch": launch, "host": gap, "stages": waiting, "kernels": host.kernels}
    books.seconds = busy + launch + gap
    return books


def prefill(
    ops: list[Operation], links: list[Link], host: Host, prompt: int, cached: int, chunk: int
) -> Books:
    """Prefill one request alone, chunk by chunk."""
    books = Books()
    done = cached
    while done < prompt:
        n = min(chunk, prompt - done)
        at = Step(n=n, p=done, sequences=1, group_tokens=n, sampled=int(done + n == prompt))
        books.add(step(ops, links, host, at))
        done += n
    return books


def decode(
    ops: list[Operation], links: list[Link], host: Host, context: int, sequences: int,
    group_tokens: int, batches: int = 1,
) -> Books:  # fmt: skip
    """Decode one token of every sequence."""
    at = Step(n=1, p=context - 1, sequences=sequences, group_tokens=group_tokens,
              sampled=sequences, batches=batches, captured=True)  # fmt: skip
    return step(ops, links, host, at)


def book(ops: list[Operation], books: Books) -> list[dict[str, float]]:
    """Totals of the three ledgers: exact sums of what the parts say."""
    ledgers: list[dict[str, list[float]]] = [
        {name: [] for name in ("flop", "read", "write", "communicate", "time")} for _ in range(3)
    ]
    for op, row in zip(ops, books.ops, strict=True):
        for name in ("flop", "read", "write"):
            ledgers[op.ledger][name].append(row[name])
        ledgers[op.ledger]["time"] += [row["compute_s"], row["memory_s"]]
    for row in books.links:
        ledgers[2]["communicate"].append(row["bytes"])
        ledgers[2]["time"].append(row["seconds"])
    ledgers[2]["time"] += [books.host[name] for name in ("launch", "host", "stages")]
    return [{name: math.fsum(values) for name, values in ledger.items()} for ledger in ledgers]
