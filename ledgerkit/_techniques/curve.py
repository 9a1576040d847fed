"""Both sides of a transfer along an axis: the frame behind the break-even chart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit._compare import deployment_text
from ledgerkit._techniques.break_even import BreakEven, counts, sample
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
    rows = []
    for value in sample(turn.low, turn.high, whole=counts(transfer, turn.axis)):
        try:
            there = transfer.moved(turn.axis, value, turn.phase)
            old, new = (
                side.total(turn.phase, turn.resource, accounts, weights=accounts is None)
                for side in (there.before, there.after)
            )
        except LedgerError:
            # beyond what the deployment takes: the curve ends there
            continue
        rows.append({"value": value, "before": old, "after": new})
    names = [stated()[step.technique] for step in transfer.steps]
    return pl.DataFrame(rows).with_columns(
        pl.lit(turn.crossing, dtype=pl.Float64).alias("crossing"),
        pl.lit(turn.first, dtype=pl.Float64).alias("first"),
        *(
            pl.lit(text).alias(name)
            for name, text in {
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
