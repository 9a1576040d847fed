"""One side of a transfer: a ledger, and what a scheduling technique books on top of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from ledgerkit._entries import Entry, phase_entries
from ledgerkit._ledger import Ledger
from ledgerkit._techniques.point import Point
from ledgerkit.costs.linear import SOURCE as FROM_WEIGHTS
from ledgerkit.costs.table import Array, CostTable
from ledgerkit.kernels import columns as c
from ledgerkit.spec.axes import PHASES, Account, Phase, Resource
from ledgerkit.spec.axes import Ledger as LedgerName
from ledgerkit.spec.workpoint import WorkPoint

_RESIDENT_WEIGHTS = "weights"


class Row(NamedTuple):
    """What one operation pays: the part of an entry that a difference needs."""

    phase: Phase
    ledger: LedgerName
    account: Account
    op: str
    resource: Resource
    amount: float
    """Of the busiest device."""
    replica: float | None
    """Of all devices; None for time and steps."""
    weights: bool = False
    """Whether it follows from a weight: a matrix, its bytes, its residence."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """What a scheduling technique changes in the books of a deployment.

    ``book`` gets the rows of a phase and returns those that take their place.
    """

    book: Callable[[Phase, list[Row]], list[Row]]
    values: Mapping[str, float] = field(default_factory=dict)
    """Net values that do not follow from rows, such as ``max_concurrency``."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """A point and what is booked on top."""

    point: Point
    overlays: tuple[Overlay, ...] = ()
    gathers: bool = False
    """True: experts are reached by gathering all tokens on all ranks."""

    def moved(self, point: Point) -> State:
        """The same books of another point."""
        return replace(self, point=point)

    def booked(self, overlay: Overlay) -> State:
        """The same point with more in the books."""
        return replace(self, overlays=(*self.overlays, overlay))

    def ledger(self) -> Ledger:
        """Open the ledger that the overlays are booked on."""
        if not self.gathers:
            return self.point.books()
        return Ledger(without_dispatch(self.point.table()), self.point.workload)


class Side:
    """The books of one side, by phase, account and resource."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.point = state.point
        self.ledger: Ledger = state.ledger()
        self._rows: dict[Phase, tuple[Row, ...]] = {}

    def __repr__(self) -> str:
        return f"Side({self.ledger!r})"

    def rows(self, phase: Phase) -> tuple[Row, ...]:
        """Rows of a phase; decode is per output token of every sequence."""
        if phase not in self._rows:
            found = [_row(entry) for entry in self._entries(phase)]
            for overlay in self.state.overlays:
                found = overlay.book(phase, found)
            self._rows[phase] = tuple(found)
        return self._rows[phase]

    def _entries(self, phase: Phase) -> list[Entry]:
        if phase == "hold":
            return self.ledger.resident_entries()
        table, point = self.ledger._table, self.point  # noqa: SLF001
        return phase_entries(
            table, PHASES.index(phase), WorkPoint.of(point.deployment, point.workload),
            WorkPoint.mean(point.deployment, point.workload),
        )  # fmt: skip

    def total(
        self,
        phase: Phase,
        resource: Resource,
        accounts: frozenset[str] | None = None,
        *,
        weights: bool = True,
    ) -> float:
        """Sum of a resource on the busiest device, of some accounts, with or without weights."""
        if accounts is None and weights and not self.state.overlays:
            return self.ledger.total(phase, resource)  # without making entries
        return math.fsum(
            row.amount
            for row in self.rows(phase)
            if row.resource == resource
            and (accounts is None or row.account in accounts)
            and (weights or not row.weights)
        )

    def _unloaded_s(self, phase: Phase) -> float:
        """Seconds of a phase, without waiting for other requests."""
        if not self.state.overlays:
            return self.ledger.total(phase, "time")
        return math.fsum(
            row.amount
            for row in self.rows(phase)
            if row.resource == "time" and row.account != "queue"
        )

    @cached_property
    def net(self) -> dict[str, float]:
        """What a user notices: seconds, tokens per second, bytes, sequences, price."""
        workload, devices = self.point.workload, self.point.deployment.devices
        ttft, tpot = self._unloaded_s("prefill"), self._unloaded_s("decode")
        rate = workload.concurrency / tpot if tpot else math.nan
        price = self.point.hardware.usd_per_hour
        found = {
            "ttft_s": ttft,
            "tpot_s": tpot,
            "e2e_s": ttft + (workload.output_tokens - 1) * tpot,
            "tokens_per_s": rate,
            "tokens_per_s_device": rate / devices,
            "resident_bytes_device": self.total("hold", "resident"),
            "max_concurrency": float(self.ledger.max_concurrency),
        }
        if price is not None and rate > 0:
            found["usd_per_million_tokens"] = price * devices / 3600 / rate * 1e6
        for overlay in self.state.overlays:
            found |= overlay.values
        return found


def without_dispatch(table: CostTable) -> CostTable:
    """Table whose expert exchanges gather all tokens, whatever experts they need."""

    def gathered(rows: Array) -> Array:
        changed = rows.copy()
        for i, link in enumerate(table.links):
            if link.kind == c.KIND_EXCHANGE:
                changed[:, i, c.L_TOKEN_BYTES] = math.inf
        return changed

    links = tuple(
        replace(link, token_bytes=math.inf) if link.kind == c.KIND_EXCHANGE else link
        for link in table.links
    )
    rows = {edge: gathered(rows) for edge, rows in table.link_rows.items()}
    return replace(table, links=links, link_rows=rows)


def _row(entry: Entry) -> Row:
    from_weights = entry.source == FROM_WEIGHTS or (
        entry.phase == "hold" and entry.op == _RESIDENT_WEIGHTS
    )
    return Row(
        entry.phase, entry.ledger, entry.account, entry.op, entry.resource, entry.amount_device,
        entry.amount_replica, from_weights,
    )  # fmt: skip
