"""Books the cost of a Transformer deployment to attention/KV, FFN/MLP and scheduling ledgers.

``import ledgerkit as lk`` is cheap: every public name loads its module on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ledgerkit import charts, errors, widgets
    from ledgerkit._cache_table import cache_table
    from ledgerkit._compare import Comparison, compare
    from ledgerkit._ledger import Ledger, ledger
    from ledgerkit.catalog.engines import engines
    from ledgerkit.catalog.hardware import hardware, load_hardware
    from ledgerkit.catalog.models import load_model, models
    from ledgerkit.spec.deployment import Deployment, Workload
    from ledgerkit.spec.hardware import Hardware
    from ledgerkit.spec.model import Model
    from ledgerkit.text import set_language

__version__ = "0.1.0"

__all__ = [
    "Comparison",
    "Deployment",
    "Hardware",
    "Ledger",
    "Model",
    "Workload",
    "__version__",
    "cache_table",
    "charts",
    "compare",
    "engines",
    "errors",
    "hardware",
    "ledger",
    "load_hardware",
    "load_model",
    "models",
    "set_language",
    "widgets",
]

_HOMES = {
    "Comparison": "ledgerkit._compare",
    "Deployment": "ledgerkit.spec.deployment",
    "Hardware": "ledgerkit.spec.hardware",
    "Ledger": "ledgerkit._ledger",
    "Model": "ledgerkit.spec.model",
    "Workload": "ledgerkit.spec.deployment",
    "cache_table": "ledgerkit._cache_table",
    "compare": "ledgerkit._compare",
    "engines": "ledgerkit.catalog.engines",
    "hardware": "ledgerkit.catalog.hardware",
    "ledger": "ledgerkit._ledger",
    "load_hardware": "ledgerkit.catalog.hardware",
    "load_model": "ledgerkit.catalog.models",
    "models": "ledgerkit.catalog.models",
    "set_language": "ledgerkit.text",
}
"""The module that defines each lazy name."""

_SUBPACKAGES = frozenset({"charts", "errors", "widgets"})
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
