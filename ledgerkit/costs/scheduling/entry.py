"""What a scheduling mechanism books: credits, debits and the formula of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ledgerkit.errors import DeploymentError
from ledgerkit.spec.axes import UNITS, Account, Basis, Ledger, Phase, Resource, Verb

Value = float | int | tuple[float, ...]
Per = Literal["batch", "prompt", "sequence", "step", "token", "device"]

VERBS: dict[Resource, Verb] = {
    "compute": "compute_less",
    "read": "read_less",
    "write": "read_less",
    "resident": "store_less",
    "communicate": "communicate_less",
    "steps": "schedule_better",
    "time": "schedule_better",
}
"""Under which verb a resource is saved."""


@dataclass(frozen=True, slots=True)
class SchedulingEntry:
    """One amount that a mechanism adds (positive, a debit) or saves (negative, a credit).

    ``expression`` is arithmetic over ``values``: the evaluator of ``Ledger.explain`` computes
    ``amount`` again from them.
    """

    op: str
    phase: Phase
    ledger: Ledger
    account: Account
    resource: Resource
    amount: float
    per: Per
    """What the amount is of: one batch of requests, one prompt, one step, one output token ..."""
    expression: str
    values: dict[str, Value]
    source: str
    basis: Basis = "estimated"

    @property
    def unit(self) -> str:
        """Unit of the amount."""
        return UNITS[self.resource]

    @property
    def verb(self) -> Verb:
        """What the mechanism does less of, or more of where the amount is positive."""
        return VERBS[self.resource]


def booked(*entries: SchedulingEntry) -> tuple[SchedulingEntry, ...]:
    """Leave out what nobody pays."""
    return tuple(entry for entry in entries if entry.amount)


def check(field: str, value: Any, least: float, most: float = float("inf")) -> None:
    """Refuse a number outside its range, NaN included, and what is no number.

    Raises
    ------
    DeploymentError
        The message names the field.

    Examples
    --------
    >>> check("acceptance", 0.8, 0.0, 1.0)
    """
    try:
        inside = bool(least <= value <= most)
    except (TypeError, ValueError):  # text, None, an array
        inside = False
    if not inside:
        bound = f"{least:g} or more" if most == float("inf") else f"{least:g} to {most:g}"
        raise DeploymentError(f"{field} is out of range", given=value, allowed=bound,
                              fix=f"correct {field}")  # fmt: skip
