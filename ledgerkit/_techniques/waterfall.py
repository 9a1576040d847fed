"""A stack of techniques, bar by bar: what each does alone, and what they do to each other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ledgerkit._compare import deployment_text
from ledgerkit._techniques.sides import Side, State
from ledgerkit._techniques.stated import stated
from ledgerkit._techniques.steps import run
from ledgerkit.errors import LedgerError, TechniqueError
from ledgerkit.spec.axes import UNITS, Phase, Resource

if TYPE_CHECKING:
    import polars as pl

    from ledgerkit._techniques.double_entry import Transfer

__all__ = ["waterfall"]


def waterfall(transfer: Transfer, phase: Phase, resource: Resource) -> pl.DataFrame:
    """Bars from the ledger before to the ledger after.

    See ``Transfer.waterfall``.
    """
    import polars as pl

    if transfer.backwards:
        raise TechniqueError("a stack is read in the order of its techniques", given="reversed",
                             fix="take the transfer before it was reversed")  # fmt: skip
    if resource not in UNITS:
        raise TechniqueError("unknown resource", given=resource, allowed=", ".join(UNITS),
                             fix="use resource='time'")  # fmt: skip

    def total(state: State) -> float:
        return Side(state).total(phase, resource)

    names = stated()
    start = total(transfer.start)
    rows: list[dict[str, Any]] = [_row("start", "start", start, None, start, phase, resource)]
    level = start
    known: list[float] = []
    for n, step in enumerate(transfer.steps, 1):
        after = total(run(transfer.steps[:n], transfer.start))
        in_order = after - level
        try:
            alone = total(step(transfer.start)) - start
        except LedgerError:
            # it needs what an earlier technique brings
            alone = None
        level = after
        known.append(in_order if alone is None else alone)
        row = _row(step.technique, "technique", alone, in_order, after, phase, resource)
        found = names[step.technique]
        sign = "" if step.action == "apply" else "− "
        row |= {"label_zh": sign + found["name_zh"], "label_en": sign + found["name_en"]}
        rows.append(row)
    interaction = (level - start) - math.fsum(known)
    rows.append(_row("interaction", "interaction", interaction, None, level, phase, resource))
    rows.append(_row("end", "end", level, None, level, phase, resource))
    work, (zh, en) = transfer.start.point.workload, deployment_text(transfer.before.ledger)
    where = {
        "model": transfer.start.point.model.name, "prompt_tokens": work.prompt_tokens,
        "concurrency": work.concurrency, "deployment_zh": zh, "deployment_en": en,
    }  # fmt: skip
    rows = [row | where for row in rows]
    schema = {"alone": pl.Float64, "in_order": pl.Float64, "after": pl.Float64}
    return pl.DataFrame(rows, schema_overrides=schema)


def _row(
    name: str, kind: str, alone: float | None, in_order: float | None, after: float,
    phase: Phase, resource: Resource,
) -> dict[str, Any]:  # fmt: skip
    return {
        "technique": name, "kind": kind, "label_zh": "", "label_en": "", "alone": alone,
        "in_order": in_order, "after": after, "phase": phase, "resource": resource,
        "unit": UNITS[resource],
    }  # fmt: skip
