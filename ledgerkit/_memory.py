"""What fills a device: the rows behind the picture of memory against capacity."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ledgerkit.text import get
from ledgerkit.text.numbers import count

if TYPE_CHECKING:
    from ledgerkit._entries import Entry
    from ledgerkit._ledger import Ledger

COMPONENTS = ("attention_weights", "ffn_weights", "cache", "reserve")


def component(entry: Entry) -> str:
    """Name the part of memory that a resident entry belongs to."""
    if entry.ledger == "scheduling":
        return "reserve"
    if entry.op != "weights":
        return "cache"
    return "attention_weights" if entry.ledger == "attention_kv" else "ffn_weights"


def memory_rows(label: str, books: Ledger) -> list[dict[str, Any]]:
    """Bytes of the fullest device by component, and how far they are from the limit.

    Returns
    -------
    list of dict
        Keys: label, component (attention_weights, ffn_weights, cache, reserve, free), bytes_device,
        capacity_bytes (of the device), limit_bytes (what the engine may use), max_concurrency,
        binds_zh, binds_en. ``free`` is 0 where it does not fit.
    """
    sums = dict.fromkeys(COMPONENTS, 0.0)
    for entry in books.resident_entries():
        sums[component(entry)] += entry.amount_device
    sums["free"] = max(0.0, books.capacity_bytes - math.fsum(sums.values()))
    binds = "seats" if books.fits == "no" or books.max_concurrency == 0 else "cache"
    fields = {"seats": count(books.max_concurrency)}
    return [
        {
            "label": label,
            "component": name,
            "bytes_device": size,
            "capacity_bytes": float(books.hardware.memory_bytes),
            "limit_bytes": books.capacity_bytes,
            "max_concurrency": books.max_concurrency,
            "binds_zh": get(f"memory.binds.{binds}", "zh", **fields),
            "binds_en": get(f"memory.binds.{binds}", "en", **fields),
        }
        for name, size in sums.items()
    ]
