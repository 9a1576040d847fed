"""Segments of a bar that is 100% of its own total: accounts inside ledgers, with their seams."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ledgerkit.charts.theme import GROUPS
from ledgerkit.spec.axes import LEDGERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ledgerkit.spec.axes import Ledger

__all__ = ["Segment", "group_of", "grouped", "segments"]

LEDGER_GAP: Final = 3.0
ACCOUNT_GAP: Final = 0.8
_MOST: Final = 5


@dataclass(frozen=True)
class Segment:
    """One coloured part of a bar.

    Parameters
    ----------
    ledger, group : str
        What it is; the group is a key of :data:`ledgerkit.charts.theme.GROUPS`.
    left, right : float
        Edges in px, seams taken off.
    amount, share : float
        Amount in its unit, and as a fraction of the bar.
    """

    ledger: Ledger
    group: str
    left: float
    right: float
    amount: float
    share: float


def group_of(ledger: Ledger, account: str) -> str:
    """Name the group that draws an account.

    Parameters
    ----------
    ledger, account : str
        As in ``Ledger.entries``.

    Returns
    -------
    str
        ``"other"`` for an account that no group names.

    Examples
    --------
    >>> group_of("scheduling", "ep")
    'communication'
    """
    for group, accounts in GROUPS[ledger].items():
        if account in accounts:
            return group
    return "other"


def grouped(
    amounts: Iterable[tuple[Ledger, str, float]],
) -> dict[Ledger, dict[str, float]]:
    """Sum amounts by ledger and group, in drawing order, at most five groups a ledger.

    Parameters
    ----------
    amounts : iterable of (ledger, account, amount)
        Entries of one resource.

    Returns
    -------
    dict
        Every ledger, with the groups that have a positive amount.

    Examples
    --------
    >>> grouped([("scheduling", "tp", 1.0), ("scheduling", "ep", 2.0)])["scheduling"]
    {'communication': 3.0}
    """
    parts: dict[Ledger, dict[str, list[float]]] = {ledger: {} for ledger in LEDGERS}
    for ledger, account, amount in amounts:
        parts[ledger].setdefault(group_of(ledger, account), []).append(amount)
    result: dict[Ledger, dict[str, float]] = {}
    for ledger, groups in parts.items():
        sums = {group: math.fsum(values) for group, values in groups.items()}
        sums = {group: value for group, value in sums.items() if value > 0}
        named = sorted((group for group in sums if group != "other"), key=lambda g: -sums[g])
        crowded = named[_MOST - 1 :] if len(sums) > _MOST else []
        rest = math.fsum([sums.get("other", 0.0), *(sums[group] for group in crowded)])
        kept = {group: sums[group] for group in GROUPS[ledger] if group in named}
        kept = {group: value for group, value in kept.items() if group not in crowded}
        result[ledger] = kept | ({"other": rest} if rest > 0 else {})
    return result


def segments(
    amounts: Mapping[Ledger, Mapping[str, float]], left: float, right: float
) -> list[Segment]:
    """Place the parts of a bar.

    Boundaries keep their exact place: half of each seam is taken from either side, and never more
    than half of a part, so that a trace stays visible.

    Parameters
    ----------
    amounts : mapping
        Ledger to group to amount.
    left, right : float
        Ends of the bar in px.

    Returns
    -------
    list of Segment
        From left to right; empty when nothing is booked.

    Examples
    --------
    >>> [round(s.right) for s in segments({"ffn_mlp": {"dense": 3.0}}, 0, 100)]
    [100]
    """
    flat = [
        (ledger, group, amount)
        for ledger, groups in amounts.items()
        for group, amount in groups.items()
        if amount > 0
    ]
    total = math.fsum(amount for _, _, amount in flat)
    placed: list[Segment] = []
    done = 0.0
    for index, (ledger, group, amount) in enumerate(flat):
        start = left + (right - left) * min(1.0, done / total)
        done += amount
        end = left + (right - left) * min(1.0, done / total)
        gap_before = _gap(flat[index - 1][0], ledger) if index else 0.0
        gap_after = _gap(ledger, flat[index + 1][0]) if index + 1 < len(flat) else 0.0
        most = (end - start) / 4
        placed.append(
            Segment(
                ledger,
                group,
                start + min(gap_before / 2, most),
                end - min(gap_after / 2, most),
                amount,
                amount / total,
            )
        )
    return placed


def _gap(one: Ledger, other: Ledger) -> float:
    return ACCOUNT_GAP if one == other else LEDGER_GAP
