"""What is stated about each technique: names, where the cost goes, risks, needs."""

from __future__ import annotations

import csv
from functools import lru_cache
from typing import Any

from ledgerkit._data import data_path

__all__ = ["stated"]

_LISTS = ("saves", "pays")


@lru_cache(maxsize=1)
def stated() -> dict[str, dict[str, Any]]:
    """Row of the table of techniques by id, in the order of the ledgers.

    Examples
    --------
    >>> stated()["mla"]["ledger"]
    'attention_kv'
    """
    with data_path("techniques.csv").open(encoding="utf-8", newline="") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    for row in rows:
        row |= {name: [part for part in row[name].split(";") if part] for name in _LISTS}
    return {row["id"]: row for row in rows}
