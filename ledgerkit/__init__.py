"""Books the cost of a Transformer deployment to attention/KV, FFN/MLP and scheduling ledgers.

``import ledgerkit as lk`` is cheap: every public name loads its module on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ledgerkit import charts, errors, loadtest, widgets
    from ledgerkit._cache_table import cache_table
    from ledgerkit._calibration import Calibration, calibrate
    from ledgerkit._capacity import Capacity, capacity
    from ledgerkit._compare import Comparison, compare
    from ledgerkit._ledger import Ledger, ledger
    from ledgerkit._reading import ModelReading, read_model
    from ledgerkit._scheduling import Mechanism, scheduling
    from ledgerkit._simulate import Arrivals, Lengths, Simulation, simulate
    from ledgerkit._steady_state import SteadyState, steady_state
    from ledgerkit._sweep import Sweep, geomspace, sweep, zip_axes
    from ledgerkit._techniques import Transfer, techniques, transfer
    from ledgerkit.catalog.engines import engines
    from ledgerkit.catalog.hardware import hardware, load_hardware
    from ledgerkit.catalog.models import load_model, models
    from ledgerkit.catalog.report import read_config_report
    from ledgerkit.charts import save_figure
    from ledgerkit.spec.deployment import Deployment, Workload
    from ledgerkit.spec.hardware import Hardware
    from ledgerkit.spec.model import Model
    from ledgerkit.text import set_language

__version__ = "0.1.0"

__all__ = [
    "Arrivals",
    "Calibration",
    "Capacity",
    "Comparison",
    "Deployment",
    "Hardware",
    "Ledger",
    "Lengths",
    "Mechanism",
    "Model",
    "ModelReading",
    "Simulation",
    "SteadyState",
    "Sweep",
    "Transfer",
    "Workload",
    "__version__",
    "cache_table",
    "calibrate",
    "capacity",
    "charts",
    "compare",
    "engines",
    "errors",
    "geomspace",
    "hardware",
    "ledger",
    "load_hardware",
    "load_model",
    "loadtest",
    "models",
    "read_config_report",
    "read_model",
    "save_figure",
    "scheduling",
    "set_language",
    "simulate",
    "steady_state",
    "sweep",
    "techniques",
    "transfer",
    "widgets",
    "zip_axes",
]

_HOMES = {
    "Arrivals": "ledgerkit._simulate",
    "Calibration": "ledgerkit._calibration",
    "Capacity": "ledgerkit._capacity",
    "Comparison": "ledgerkit._compare",
    "Deployment": "ledgerkit.spec.deployment",
    "Hardware": "ledgerkit.spec.hardware",
    "Lengths": "ledgerkit._simulate",
    "Ledger": "ledgerkit._ledger",
    "Mechanism": "ledgerkit._scheduling",
    "Model": "ledgerkit.spec.model",
    "ModelReading": "ledgerkit._reading",
    "Simulation": "ledgerkit._simulate",
    "SteadyState": "ledgerkit._steady_state",
    "Sweep": "ledgerkit._sweep",
    "Transfer": "ledgerkit._techniques",
    "Workload": "ledgerkit.spec.deployment",
    "cache_table": "ledgerkit._cache_table",
    "calibrate": "ledgerkit._calibration",
    "capacity": "ledgerkit._capacity",
    "compare": "ledgerkit._compare",
    "engines": "ledgerkit.catalog.engines",
    "geomspace": "ledgerkit._sweep",
    "hardware": "ledgerkit.catalog.hardware",
    "ledger": "ledgerkit._ledger",
    "load_hardware": "ledgerkit.catalog.hardware",
    "load_model": "ledgerkit.catalog.models",
    "models": "ledgerkit.catalog.models",
    "read_config_report": "ledgerkit.catalog.report",
    "read_model": "ledgerkit._reading",
    "save_figure": "ledgerkit.charts",
    "scheduling": "ledgerkit._scheduling",
    "set_language": "ledgerkit.text",
    "simulate": "ledgerkit._simulate",
    "steady_state": "ledgerkit._steady_state",
    "sweep": "ledgerkit._sweep",
    "techniques": "ledgerkit._techniques",
    "transfer": "ledgerkit._techniques",
    "zip_axes": "ledgerkit._sweep",
}
"""The module that defines each lazy name."""

_SUBPACKAGES = frozenset({"charts", "errors", "loadtest", "widgets"})
"""Public names that are modules themselves."""


def __getattr__(name: str) -> Any:
    """Load a public name on first use and keep it (PEP 562)."""
    if name in _SUBPACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    home = _HOMES.get(name)
    if home is None:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names without loading any."""
    return __all__
