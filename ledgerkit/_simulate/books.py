"""From ticks of the kernel to the scheduling ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.kernels import batch, serving

if TYPE_CHECKING:
    import polars as pl

    from ledgerkit._simulate.prepare import Arrays
    from ledgerkit.costs.table import CostTable

IDLE = "idle"
PHASES = ("prefill", "decode")
OTHER: dict[int, tuple[str, str]] = {
    batch.B_LAUNCH: ("launch", "kernel launches"),
    batch.B_HOST: ("host", "between steps"),
    batch.B_STAGES: ("pp", "waiting for the busiest stage"),
    batch.B_PADDING: ("padding", "slots and tokens of padding"),
    batch.B_DRAFT: ("draft", "drafting and verifying"),
    batch.B_RECOMPUTE: ("recompute", "tokens computed again"),
    batch.B_SWAP: ("recompute", "cache moved to the host and back"),
    batch.B_IDLE: ("queue", IDLE),
}
"""Account and operation of what is booked besides operations and links."""


def entries(table: CostTable, arrays: Arrays, wall: int) -> pl.DataFrame:
    """Rows of the scheduling ledger; they sum to ``wall`` times the replicas."""
    import polars as pl  # heavy

    rows: list[tuple[Any, ...]] = []
    spent = arrays.rows.sum(axis=0)
    for phase, name in enumerate(PHASES):
        for i, op in enumerate(table.operations):
            for bound, account in enumerate((op.compute_account, op.byte_account)):
                rows.append((name, op.ledger, account, op.name, int(spent[phase, i, bound])))
    other = arrays.other.sum(axis=0)
    rows += [
        (None, "scheduling", link.account, link.name, int(other[batch.BOOKS + i]))
        for i, link in enumerate(table.links)
    ]
    late = int((wall - arrays.replicas[:, serving.R_CLOCK]).sum())
    for column, (name, op_name) in OTHER.items():
        time = int(other[column]) + (late if column == batch.B_IDLE else 0)
        rows.append((None, "scheduling", name, op_name, time))
    schema = {"phase": pl.String, "ledger": pl.String, "account": pl.String, "op": pl.String,
              "time_ps": pl.Int64}  # fmt: skip
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    keys = ["phase", "ledger", "account", "op"]
    whole = max(1, wall * len(arrays.replicas))
    return (
        frame.filter(pl.col("time_ps") != 0)
        .group_by(keys, maintain_order=True)
        .agg(pl.col("time_ps").sum())
        .with_columns(time_s=pl.col("time_ps") / batch.PER_SECOND, share=pl.col("time_ps") / whole)
    )
