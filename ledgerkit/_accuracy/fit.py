"""Host constants from measured rows, with groups held out.

The only constants that serving rows decide. Each row weighs ``1 / sqrt(rows of its model, device
and engine)``, residuals are logarithms, soft-L1 beyond 0.1; the first token, which the load
generator decides, weighs 0.35.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from ledgerkit._accuracy.prepared import Constants, Prepared
from ledgerkit._steady.fitting import least_squares
from ledgerkit._steady.formula import Numbers

__all__ = ["START", "Targets", "fit", "held_out"]

START = Constants(0.6e-3, 10e-6, 34e-6, 0.09, (0.08, 0.03, 0.25, 0.05))
"""Round numbers that a fit starts from."""
TTFT_WEIGHT = 0.35
SOFT = 0.1
FEWEST = 3
"""Groups below which nothing is held out: the shipped constants are used."""


@dataclass(frozen=True, slots=True)
class Targets:
    """What was measured, and how much it counts."""

    tpot_s: Numbers
    ttft_s: Numbers
    weight: Numbers
    ttft_judged: Numbers

    @classmethod
    def of(
        cls, tpot_s: Numbers, ttft_s: Numbers, judged: Numbers, combinations: Sequence[Hashable]
    ) -> Targets:
        """Weigh rows by the size of their combination."""
        sizes = Counter(combinations)
        weight = np.array([sizes[one] ** -0.5 for one in combinations])
        return cls(tpot_s, ttft_s, weight, judged)


def fit(prepared: Prepared, targets: Targets, chosen: Numbers) -> Constants:
    """Fit the eight constants to the chosen rows (a mask)."""
    rows = chosen > 0
    start = START.vector()
    tpot_weight = np.sqrt(targets.weight)[rows]
    ttft_weight = np.sqrt(TTFT_WEIGHT * targets.weight * targets.ttft_judged)[rows]

    def residuals(x: Numbers) -> Numbers:
        times = prepared.times(Constants.of(start * np.exp(x)))
        tpot = np.log(times.tpot_s / targets.tpot_s)[rows]
        ttft = np.log(times.ttft_s / targets.ttft_s)[rows]
        # a pull too weak to move a constant that rows decide keeps the others where they are
        return np.concatenate([tpot * tpot_weight, ttft * ttft_weight, 1e-3 * x])

    found = least_squares(residuals, np.zeros(len(start)), soft=SOFT)
    return Constants.of(start * np.exp(found.x))


def held_out(
    prepared: Prepared, targets: Targets, groups: Sequence[Hashable]
) -> tuple[Numbers, Numbers, list[Constants]]:
    """Predict each group with constants that never saw it.

    Returns
    -------
    (float64[rows], float64[rows], list of Constants)
        TPOT and TTFT in seconds, and the constants of every fold.
    """
    names = sorted(set(groups), key=str)
    tpot, ttft = np.empty(len(groups)), np.empty(len(groups))
    folds = []
    for name in names:
        inside = np.array([group == name for group in groups])
        constants = (
            fit(prepared, targets, (~inside).astype(float)) if len(names) >= FEWEST else START
        )
        times = prepared.times(constants)
        tpot[inside], ttft[inside] = times.tpot_s[inside], times.ttft_s[inside]
        folds.append(constants)
    return tpot, ttft, folds
