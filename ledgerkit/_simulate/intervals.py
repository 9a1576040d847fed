"""Statistics of a run, and how far they are certain."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ledgerkit.kernels.batch import PER_SECOND
from ledgerkit.kernels.serving import PER_OCTAVE

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Statistic = Callable[[Floats], float]

BATCHES = 20
_SMALLEST = 40
_T_975 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 10: 2.262, 20: 2.093}
"""Student's t at 97.5 % for so many batches."""


def statistics(quantiles: tuple[float, ...]) -> list[tuple[str, Statistic]]:
    """Mean and quantiles by name."""

    def quantile(share: float) -> Statistic:
        return lambda values: float(np.quantile(values, share))

    found: list[tuple[str, Statistic]] = [("mean", lambda values: float(np.mean(values)))]
    return found + [(f"p{q * 100:.0f}", quantile(q)) for q in quantiles]


def batch_interval(values: Floats, of: Statistic) -> tuple[float | None, float | None]:
    """95 % interval around a statistic of correlated times, by sectioning.

    The spread is that of the statistic over consecutive batches; the centre is that of all values.

    Source: S. Asmussen and P. Glynn, Stochastic Simulation, 2007, section III.5.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = batch_interval(np.arange(400.0) % 7, lambda v: float(v.mean()))
    >>> low < 3.0 < high
    True
    """
    if len(values) < _SMALLEST:
        return None, None
    count = BATCHES if len(values) >= 20 * BATCHES else 10 if len(values) >= 100 else 4
    parts = np.array([of(part) for part in np.array_split(values, count)])
    centre = of(values)
    width = _T_975[count] * math.sqrt(float(np.mean((parts - centre) ** 2)) / (count - 1))
    return max(0.0, centre - width), centre + width


def _centres(count: int) -> Floats:
    """Seconds in the middle of each bin of gaps."""
    found: Floats = 1e6 * np.exp2((np.arange(count) + 0.5) / PER_OCTAVE) / PER_SECOND
    return found


def histogram_quantile(gaps: Ints, share: float) -> float:
    """Quantile of the gaps between tokens; NaN without any."""
    total = int(gaps.sum())
    if not total:
        return math.nan
    rank = max(1, math.ceil(share * total))
    at = int(np.searchsorted(np.cumsum(gaps), rank))
    return float(_centres(len(gaps))[at])


def histogram_mean(gaps: Ints) -> float | None:
    """Mean gap between tokens; None without any."""
    total = int(gaps.sum())
    return float((gaps * _centres(len(gaps))).sum() / total) if total else None
