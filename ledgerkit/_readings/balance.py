"""Savings and costs of each structure: transfers against a named counterfactual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ledgerkit._readings.point import ReadingPoint
from ledgerkit._readings.structures import Structure
from ledgerkit._techniques import Transfer, transfer
from ledgerkit.errors import LedgerError

LEAST_SHARE = 0.005
"""Changes below this share of the total before are left out."""
_SHOWN = (("prefill", "compute"), ("decode", "compute"), ("decode", "read"), ("hold", "resident"),
          ("decode", "communicate"), ("decode", "steps"))  # fmt: skip


@dataclass(frozen=True)
class Balance:
    """A structure of the model against what stands in for it."""

    structure: Structure
    counterfactual: str
    """Key of its name: ``reading.against.*``."""
    transfer: Transfer | None
    """From the counterfactual to the model; None where it cannot be built."""
    reason: str = ""
    """Why it cannot."""

    def rows(self) -> list[dict[str, Any]]:
        """Changes by phase, resource and ledger that are worth a line, per device and step."""
        if self.transfer is None:
            return []
        sums: dict[tuple[str, str, str], list[float]] = {}
        before: dict[tuple[str, str], float] = {}
        for row in self.transfer.table.iter_rows(named=True):
            key = (row["phase"], row["resource"])
            if key not in _SHOWN:
                continue
            before[key] = before.get(key, 0.0) + row["before"]
            amounts = sums.setdefault((*key, row["ledger"]), [0.0, 0.0, 0.0])
            for i, value in enumerate((row["before"], row["after"], row["change"])):
                amounts[i] += value
        order = {pair: i for i, pair in enumerate(_SHOWN)}
        found = []
        for (phase, resource, ledger), (old, new, change) in sums.items():
            whole = before[phase, resource]
            if abs(change) <= LEAST_SHARE * max(whole, new):
                continue
            found.append(
                {
                    "structure": self.structure.id, "against": self.counterfactual,
                    "phase": phase, "resource": resource, "ledger": ledger,
                    "before": old, "after": new, "change": change,
                    "share_of_total": change / whole if whole else None,
                }
            )  # fmt: skip
        return sorted(found, key=lambda row: order[row["phase"], row["resource"]])


def balances(point: ReadingPoint, found: tuple[Structure, ...]) -> tuple[Balance, ...]:
    """Remove every structure that can be removed, one at a time, and turn the books round.

    Drafting is off unless it is switched on, so that it is applied instead.
    """
    made = []
    for structure in found:
        for name, technique, settings in structure.counterfactuals:
            own = dict(settings)
            action = own.pop("action", "remove")
            try:
                books = transfer(
                    technique, model=point.model, hardware=point.hardware,
                    deployment=point.deployment, workload=point.workload, action=action, **own,
                )  # fmt: skip
            except LedgerError as error:
                made.append(Balance(structure, name, None, str(error)))
            else:
                books = books if action == "apply" else books.reversed()
                made.append(Balance(structure, name, books))
    return tuple(made)
