"""The arrow of a technique in the ledger triangle: where it takes a deployment."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import polars as pl

from ledgerkit._compare import compare
from ledgerkit.charts.triangle import ledger_triangle
from ledgerkit.spec.axes import LEDGERS

if TYPE_CHECKING:
    from ledgerkit._techniques.double_entry import Transfer
    from ledgerkit._techniques.sides import Side
    from ledgerkit.charts._chart import LedgerChart

__all__ = ["draw_triangle"]


def draw_triangle(transfer: Transfer, **options: Any) -> LedgerChart:
    """Draw where a technique takes a deployment; options as in ``ledger_triangle``."""
    labels = [side.point.model.name for side in (transfer.before, transfer.after)]
    if labels[0] == labels[1]:
        # names of techniques are the same in both languages, so that a figure can be redrawn
        has_it = (transfer.steps[0].action == "apply") != transfer.backwards
        labels[has_it] += f" + {transfer.technique.replace('_', ' ')}"
    sides = (transfer.before, transfer.after)
    table = pl.concat([_row(side, label, n) for n, (side, label) in enumerate(
        zip(sides, labels, strict=True))])  # fmt: skip
    return ledger_triangle(table, arrows=[(labels[0], labels[1])], **options)


def _row(side: Side, label: str, order: int) -> pl.DataFrame:
    """One row as in a comparison, with what is booked on top of the ledger."""
    table = compare([side.ledger]).table
    seconds = {
        ledger: math.fsum(
            row.amount
            for row in side.rows("decode")
            if (row.ledger, row.resource) == (ledger, "time") and row.account != "queue"
        )
        for ledger in LEDGERS
    }
    whole = math.fsum(seconds.values())
    return table.with_columns(
        pl.lit(label).alias("label"),
        pl.lit(whole).alias("decode_time_s"),
        *(pl.lit(amount / whole).alias(f"{name}_share") for name, amount in seconds.items()),
        pl.lit(order).alias("order"),
    )
