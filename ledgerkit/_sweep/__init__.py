"""``lk.sweep``: the same numbers as ``lk.ledger``, at millions of points a second."""

from __future__ import annotations

from ledgerkit._sweep import namespace
from ledgerkit._sweep.axes import geomspace, zip_axes
from ledgerkit._sweep.lazy import Sweep
from ledgerkit._sweep.verb import sweep

__all__ = ["Sweep", "geomspace", "sweep", "zip_axes"]

namespace.register()
