"""Figures: pure functions from a frame to an Altair chart, in one visual language."""

from __future__ import annotations

from ledgerkit.charts.bars import ledger_bars
from ledgerkit.charts.cache import cache_curves
from ledgerkit.charts.memory import memory_bars
from ledgerkit.charts.triangle import ledger_triangle

__all__ = ["cache_curves", "ledger_bars", "ledger_triangle", "memory_bars"]
