"""``df.ledger``: the verbs of a sweep on a polars frame of points."""

from __future__ import annotations

from typing import Any

import polars as pl

from ledgerkit._sweep.lazy import Sweep
from ledgerkit._sweep.verb import sweep


class LedgerNamespace:
    """Verbs on a frame whose rows are points; see ``lk.sweep``."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def sweep(self, **options: Any) -> Sweep:
        """Sweep the rows of this frame; options as in ``lk.sweep``."""
        return sweep(self._frame, **options)

    def collect(self, *columns: str, **options: Any) -> pl.DataFrame:
        """Price the rows of this frame."""
        found = self.sweep(**options)
        return (found.select(*columns) if columns else found).collect()

    def pareto(self, *objectives: str, **options: Any) -> pl.DataFrame:
        """Rows that no other row beats."""
        return self.sweep(**options).pareto(*objectives)


def register() -> None:
    """Add the namespace to polars, once in a process."""
    if getattr(pl.DataFrame, "ledger", None) is None:
        pl.api.register_dataframe_namespace("ledger")(LedgerNamespace)
