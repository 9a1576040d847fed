"""Scheduling mechanisms on the cost table: steps that mix, verify or draft, and closed forms."""

from __future__ import annotations

from ledgerkit._scheduling.verb import Mechanism, scheduling

__all__ = ["Mechanism", "scheduling"]
