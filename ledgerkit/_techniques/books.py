"""Sums of two sides by phase, resource, ledger and account, and the frame of their differences."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ledgerkit._techniques.sides import Row, Side
from ledgerkit.spec.axes import LEDGERS, PHASES, UNITS, Account, Ledger, Phase, Resource, Verb

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Sums", "frame", "sums"]

Key = tuple[Phase, Resource, Ledger, Account]
Sums = dict[Key, tuple[float, float, float | None, float | None]]
"""Before and after by key, on the busiest device and on the replica."""

_VERBS: dict[Resource, Verb] = {
    "compute": "compute_less",
    "read": "read_less",
    "write": "read_less",
    "resident": "store_less",
    "communicate": "communicate_less",
    "steps": "schedule_better",
}


def sums(before: Side, after: Side) -> Sums:
    """Sum the rows of both sides."""
    keys: dict[Key, None] = {}
    books: list[dict[Key, list[Row]]] = []
    for side in (before, after):
        book: dict[Key, list[Row]] = {}
        for phase in PHASES:
            for row in side.rows(phase):
                key = (row.phase, row.resource, row.ledger, row.account)
                book.setdefault(key, []).append(row)
                keys[key] = None
        books.append(book)
    order: dict[str, int] = {name: n for n, name in enumerate((*PHASES, *UNITS, *LEDGERS))}
    found: Sums = {}
    for key in sorted(keys, key=lambda k: (order[k[0]], order[k[1]], order[k[2]])):
        old, new = (book.get(key, []) for book in books)
        found[key] = (_device(old), _device(new), _replica(old), _replica(new))
    return found


def _device(rows: Iterable[Row]) -> float:
    return math.fsum(row.amount for row in rows)


def _replica(rows: Iterable[Row]) -> float | None:
    amounts = [row.replica for row in rows]
    return None if None in amounts else math.fsum(a for a in amounts if a is not None)


def frame(found: Sums) -> pl.DataFrame:
    """One row per key, see ``Transfer.table``."""
    import polars as pl

    totals: dict[tuple[Phase, Resource], float] = {}
    for (phase, resource, _, _), (old, _, _, _) in found.items():
        totals[phase, resource] = totals.get((phase, resource), 0.0) + old
    rows = []
    for (phase, resource, ledger, account), values in found.items():
        old, new, old_all, new_all = values
        whole = totals[phase, resource]
        change = new - old
        rows.append(
            {
                "phase": phase,
                "resource": resource,
                "unit": UNITS[resource],
                "verb": _verb(resource, ledger),
                "ledger": ledger,
                "account": account,
                "before": old,
                "after": new,
                "change": change,
                "share_of_before": change / whole if whole else None,
                "side": "credit" if change < 0 else "debit" if change > 0 else "none",
                "before_replica": old_all,
                "after_replica": new_all,
                "change_replica": (
                    None if old_all is None or new_all is None else new_all - old_all
                ),
            }
        )
    text = ("phase", "resource", "unit", "verb", "ledger", "account", "side")
    names = list(rows[0])
    return pl.DataFrame(
        rows, schema={name: pl.String if name in text else pl.Float64 for name in names}
    )


def _verb(resource: Resource, ledger: str) -> Verb | None:
    if resource == "time":
        return "schedule_better" if ledger == "scheduling" else None
    return _VERBS[resource]
