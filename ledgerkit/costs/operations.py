"""Operations and links: what a layer does in a step, as coefficients that the kernels read."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from ledgerkit.kernels import columns as c
from ledgerkit.spec.axes import Account, Basis, Ledger
from ledgerkit.spec.efficiency import OpClass

_SUMMED = (
    "flop_per_token", "flop_per_pair", "read_per_step", "read_per_token", "read_per_kv_token",
    "read_per_sequence", "read_per_expert", "write_per_token", "write_per_sequence",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Work:
    """Coefficients of one operation of one layer, in one phase, on one device.

    See ``ledgerkit.kernels.columns`` for the formula that they enter.
    """

    scope: int = c.SCOPE_RANK
    flop_per_token: float = 0.0
    flop_per_pair: float = 0.0
    read_per_step: float = 0.0
    read_per_token: float = 0.0
    read_per_kv_token: float = 0.0
    read_per_sequence: float = 0.0
    read_per_expert: float = 0.0
    experts: float = 0.0
    """Experts on the device."""
    miss: float = 1.0
    """Probability that one token misses an expert: 1 − k/E."""
    write_per_token: float = 0.0
    write_per_sequence: float = 0.0
    window: float = math.inf
    topk: float = math.inf
    chunk: float = 0.0
    ratio: float = 1.0

    @property
    def depends_on_context(self) -> bool:
        """Whether amounts of a decode step change with the context."""
        return bool(self.flop_per_pair or self.read_per_kv_token or self.scope == c.SCOPE_CONTEXT)

    def __add__(self, other: Work) -> Work:
        summed = {name: getattr(self, name) + getattr(other, name) for name in _SUMMED}
        return replace(self, **summed)

    def scaled(self, factor: float) -> Work:
        """All amounts times a factor."""
        return replace(self, **{name: getattr(self, name) * factor for name in _SUMMED})

    def coefficients(self, count: float, amount_count: float | None = None) -> list[float]:
        """One row of the operation table, without the two prices."""
        row = [0.0] * c.OP_COLUMNS
        row[c.COUNT] = float(count)
        row[c.AMOUNT_COUNT] = float(count if amount_count is None else amount_count)
        row[c.SCOPE] = float(self.scope)
        row[c.F_TOKEN] = self.flop_per_token
        row[c.F_PAIR] = self.flop_per_pair
        row[c.R_STEP] = self.read_per_step
        row[c.R_TOKEN] = self.read_per_token
        row[c.R_KV] = self.read_per_kv_token
        row[c.R_SEQUENCE] = self.read_per_sequence
        row[c.R_EXPERT] = self.read_per_expert
        row[c.EXPERTS] = self.experts
        row[c.LOG_MISS] = math.log(self.miss) if self.miss > 0 else -math.inf
        row[c.W_TOKEN] = self.write_per_token
        row[c.W_SEQUENCE] = self.write_per_sequence
        row[c.WINDOW] = self.window
        row[c.TOPK] = self.topk
        row[c.CHUNK] = self.chunk
        row[c.RATIO] = self.ratio
        return row


@dataclass(frozen=True, slots=True)
class Share:
    """What one device does, and what is left of it when copies are counted once.

    ``device`` is the busiest device; ``tp_once`` counts copies over the tensor-parallel ranks once;
    ``once`` counts copies over the attention data-parallel ranks once, too. The differences are
    what the layout causes, and book to the scheduling ledger at replica scope.
    """

    device: Work
    tp_once: Work
    once: Work

    @classmethod
    def same(cls, work: Work) -> Share:
        """Nothing is held twice."""
        return cls(work, work, work)

    @classmethod
    def replicated(cls, work: Work, tp_copies: float) -> Share:
        """Every tensor-parallel rank does the same work (attention ranks differ in tokens)."""
        once = work.scaled(1.0 / tp_copies)
        return cls(work, once, once)

    def __add__(self, other: Share) -> Share:
        return Share(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Share)))


@dataclass(frozen=True, slots=True)
class Operation:
    """One kind of work that ``count`` layers do alike."""

    name: str
    ledger: Ledger
    compute_account: Account
    byte_account: Account
    count: float
    prefill: Share
    decode: Share
    prefill_class: tuple[OpClass, str]
    """Operation class and dtype class that look up the efficiency and the peak."""
    decode_class: tuple[OpClass, str]
    source: str
    basis: Basis = "exact"
    """Of FLOP and bytes; seconds are always estimated."""
    at_entry: bool = False
    """True: outside the layers, and done by the first pipeline stage (embedding)."""
    stage_count: float = 0.0
    """Of the ``count`` layers, those in the busiest pipeline stage."""


@dataclass(frozen=True, slots=True)
class Link:
    """One kind of communication that a step does ``count`` times."""

    name: str
    account: Account
    kind: int
    link: str
    """Which wire: ``scale-up``, ``scale-out`` or ``pcie``."""
    count: float
    stage_count: float
    """Of the ``count`` messages, those that the busiest device takes part in."""
    ranks: float
    token_bytes: float
    gather_bytes: float
    bytes_per_s: float
    latency_factor: float
    """Latencies across nodes are longer than inside a domain."""
    source: str
    prefill_share: float = 1.0
    """Of ``token_bytes``, what a prefill step sends."""


def merge(operations: Iterable[Operation]) -> list[Operation]:
    """Join operations that differ only in their counts (equal layers of different groups)."""
    merged: dict[Operation, tuple[float, float]] = {}
    for operation in operations:
        key = replace(operation, count=0.0, stage_count=0.0)
        count, stage_count = merged.get(key, (0.0, 0.0))
        merged[key] = (count + operation.count, stage_count + operation.stage_count)
    return [
        replace(key, count=count, stage_count=stage_count)
        for key, (count, stage_count) in merged.items()
    ]
