"""Widgets: live views of the ledgers for notebooks and Voilà.

Importing this package loads ipywidgets, and Altair is loaded by the first figure that needs it;
``import ledgerkit`` loads neither.
"""

from ledgerkit.widgets._compare import Compare
from ledgerkit.widgets._config import ConfigDrop
from ledgerkit.widgets._doctor import LoadTestDoctor
from ledgerkit.widgets._explorer import Explorer
from ledgerkit.widgets._scheduler import SchedulerView
from ledgerkit.widgets._sweep import SweepView
from ledgerkit.widgets._techniques import TechniqueLab

__all__ = [
    "Compare",
    "ConfigDrop",
    "Explorer",
    "LoadTestDoctor",
    "SchedulerView",
    "SweepView",
    "TechniqueLab",
]
