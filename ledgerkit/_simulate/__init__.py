"""The scheduler, iteration by iteration: what ``lk.simulate`` is made of."""

from __future__ import annotations

from ledgerkit._simulate.arrivals import Arrivals
from ledgerkit._simulate.lengths import Lengths
from ledgerkit._simulate.result import Simulation
from ledgerkit._simulate.verb import simulate

__all__ = ["Arrivals", "Lengths", "Simulation", "simulate"]
