"""Both sides of a transfer along an axis: the frame behind the break-even chart."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ledgerkit._compare import deployment_text
from ledgerkit._techniques.break_even import BreakEven, counts, sample
from ledgerkit._techniques.sides import Side
from ledgerkit._techniques.stated import stated
from ledgerkit.errors import LedgerError

if TYPE_CHECKING:
    import polars as pl

    from ledgerkit._techniques.double_entry import Transfer

__all__ = ["curve"]


def curve(transfer: Transfer, turn: BreakEven) -> pl.DataFrame:
    """Amounts of both sides between the ends of a break-even.

    See ``Transfer.curve``.
    """
    import polars as pl

    accounts = None if turn.accounts is None else frozenset(turn.accounts)
    point = transfer.start.point
    zh, en = deployment_text(transfer.before.ledger)
    rows: list[tuple[float, float, float, float, float]] = []
    for value in sample(turn.low, turn.high, whole=counts(transfer, turn.axis)):
        try:
            there = transfer.moved(turn.axis, value, turn.phase)
            old, new = (
                side.total(turn.phase, turn.resource, accounts, weights=accounts is None)
                for side in (there.before, there.after)
            )
            rows.append((value, old, new, *_parts(there.after, turn)))
        except LedgerError:
            # beyond what the deployment takes: the curve ends there
            continue
    # nothing was paid before, and what is saved stands in the books with a minus: a prefix that
    # is kept for its next use. Then its two parts are compared
    alone = not any(old for _, old, *_ in rows)
    columns = [(v, saved, paid) if alone else (v, old, new) for v, old, new, saved, paid in rows]
    names = [stated()[step.technique] for step in transfer.steps]
    schema = {"value": pl.Float64, "before": pl.Float64, "after": pl.Float64}
    return pl.DataFrame(columns, schema=schema, orient="row").with_columns(
        pl.lit(turn.crossing, dtype=pl.Float64).alias("crossing"),
        pl.lit(turn.first, dtype=pl.Float64).alias("first"),
        *(
            pl.lit(text).alias(name)
            for name, text in {
                "sides": "saved_paid" if alone else "before_after",
                "axis": turn.axis,
                "resource": turn.resource,
                "phase": turn.phase,
                "accounts": ", ".join(turn.accounts or ()),
                "model": point.model.name,
                "before_label": transfer.before.point.model.name,
                "after_label": transfer.after.point.model.name,
                "title_zh": " + ".join(name["name_zh"] for name in names),
                "title_en": " + ".join(name["name_en"] for name in names),
                "deployment_zh": zh,
                "deployment_en": en,
                "sentence_zh": turn.words("zh"),
                "sentence_en": turn.words("en"),
            }.items()
        ),
        pl.lit(point.workload.prompt_tokens).alias("prompt_tokens"),
        pl.lit(point.workload.concurrency).alias("concurrency"),
    )


def _parts(side: Side, turn: BreakEven) -> tuple[float, float]:
    """What the rows of a side save and pay."""
    amounts = [
        row.amount
        for row in side.rows(turn.phase)
        if row.resource == turn.resource and (not turn.accounts or row.account in turn.accounts)
    ]
    return math.fsum(-a for a in amounts if a < 0), math.fsum(a for a in amounts if a > 0)
