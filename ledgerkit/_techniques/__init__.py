"""Techniques as transfers: applied or removed, and booked as the difference of two ledgers."""

from __future__ import annotations

from ledgerkit._techniques.break_even import BreakEven
from ledgerkit._techniques.catalogue import techniques
from ledgerkit._techniques.double_entry import Transfer
from ledgerkit._techniques.verb import transfer

__all__ = ["BreakEven", "Transfer", "techniques", "transfer"]
