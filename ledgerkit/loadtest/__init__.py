"""The minimal load test: plan it, run it, read it, believe it only as far as it goes.

``plan`` chooses the cells, ``run`` measures them on any OpenAI-compatible server, ``read`` takes
what other tools measured, and ``diagnose`` says which ledger the time went to.
"""

from __future__ import annotations

from ledgerkit.loadtest._diagnose import diagnose
from ledgerkit.loadtest._diagnosis import Diagnosis
from ledgerkit.loadtest._limits import Limits
from ledgerkit.loadtest._local import LocalServer, serve_local
from ledgerkit.loadtest._plan import Cell, Plan, plan
from ledgerkit.loadtest._profile import profile_local
from ledgerkit.loadtest._read import read, recorded
from ledgerkit.loadtest._run import run, run_async
from ledgerkit.loadtest._schema import CELL_COLUMNS, REQUEST_COLUMNS, Results
from ledgerkit.loadtest._series import SeriesDiagnosis, diagnose_series

__all__ = [
    "CELL_COLUMNS",
    "REQUEST_COLUMNS",
    "Cell",
    "Diagnosis",
    "Limits",
    "LocalServer",
    "Plan",
    "Results",
    "SeriesDiagnosis",
    "diagnose",
    "diagnose_series",
    "plan",
    "profile_local",
    "read",
    "recorded",
    "run",
    "run_async",
    "serve_local",
]
