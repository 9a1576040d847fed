"""Figures: pure functions from a frame to an Altair chart, in one visual language.

Themes, presets and colours are in :mod:`ledgerkit.charts.theme`; every chart takes ``language=``,
``theme=`` and ``preset=``. :func:`ledgerkit.save_figure` writes what they return.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ledgerkit.charts._loadtest_lines import loadtest_curves, loadtest_ratio
from ledgerkit.charts._save import describe, open_figure, save_figure
from ledgerkit.charts.accuracy import accuracy_groups, accuracy_scatter
from ledgerkit.charts.bars import ledger_bars
from ledgerkit.charts.break_even import break_even_curves
from ledgerkit.charts.cache import cache_curves
from ledgerkit.charts.loadtest import loadtest_verdict
from ledgerkit.charts.memory import memory_bars
from ledgerkit.charts.panel import explorer_panel
from ledgerkit.charts.taxonomy import taxonomy_page
from ledgerkit.charts.transfer import transfer_bars
from ledgerkit.charts.triangle import ledger_triangle
from ledgerkit.charts.waterfall import stack_waterfall

if TYPE_CHECKING:
    from ledgerkit.charts._chart import LedgerChart
    from ledgerkit.charts.simulation import (
        simulation_books,
        simulation_latency,
        simulation_timeline,
    )
    from ledgerkit.charts.simulation_studies import (
        simulation_ablation,
        simulation_crossover,
        simulation_engines,
        simulation_load,
    )
    from ledgerkit.charts.sweep import sweep_points

__all__ = [
    "LedgerChart",
    "accuracy_groups",
    "accuracy_scatter",
    "break_even_curves",
    "cache_curves",
    "describe",
    "explorer_panel",
    "ledger_bars",
    "ledger_triangle",
    "loadtest_curves",
    "loadtest_ratio",
    "loadtest_verdict",
    "memory_bars",
    "open_figure",
    "save_figure",
    "simulation_ablation",
    "simulation_books",
    "simulation_crossover",
    "simulation_engines",
    "simulation_latency",
    "simulation_load",
    "simulation_timeline",
    "stack_waterfall",
    "sweep_points",
    "taxonomy_page",
    "transfer_bars",
]


# their modules load Altair, which takes longer than a widget needs to paint
_HEAVY = {
    "LedgerChart": "_chart",
    "simulation_ablation": "simulation_studies",
    "simulation_books": "simulation",
    "simulation_crossover": "simulation_studies",
    "simulation_engines": "simulation_studies",
    "simulation_latency": "simulation",
    "simulation_load": "simulation_studies",
    "simulation_timeline": "simulation",
    "sweep_points": "sweep",
}


def __getattr__(name: str) -> Any:
    """Load what needs Altair when it is asked for."""
    if name in _HEAVY:
        return getattr(importlib.import_module(f"{__name__}.{_HEAVY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
