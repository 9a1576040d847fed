"""Errors by group, coverage of bands, and why the worst groups are where they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ledgerkit._steady.bands import balanced_quantile
from ledgerkit._steady.formula import Numbers

__all__ = ["Group", "Score", "coverage", "groups", "score", "split_quantiles", "worst"]


@dataclass(frozen=True, slots=True)
class Score:
    """Relative errors of predictions, in percent."""

    rows: int
    median: float
    mean: float
    p90: float
    bias: float
    """Median with its sign: positive = predicted too long."""


def score(predicted: Numbers, measured: Numbers) -> Score:
    """Score predictions.

    Examples
    --------
    >>> import numpy as np
    >>> one = score(np.array([1.1, 0.9, 1.3]), np.ones(3))
    >>> round(one.median, 6), round(one.bias, 6)
    (10.0, 10.0)
    """
    error = 100.0 * (predicted / measured - 1.0)
    size = np.abs(error)
    return Score(
        len(error), float(np.median(size)), float(size.mean()), float(np.quantile(size, 0.9)),
        float(np.median(error)),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that share something."""

    name: str
    tpot: Score
    ttft: Score | None


def groups(
    names: Sequence[str], tpot: tuple[Numbers, Numbers], ttft: tuple[Numbers, Numbers],
    ttft_judged: Numbers,
) -> list[Group]:  # fmt: skip
    """Score each group; pairs are (predicted, measured)."""
    found = []
    where = np.array(names)
    for name in sorted(set(names)):
        inside = where == name
        first = inside & (ttft_judged > 0)
        found.append(
            Group(
                name,
                score(tpot[0][inside], tpot[1][inside]),
                score(ttft[0][first], ttft[1][first]) if first.any() else None,
            )
        )
    return found


def coverage(predicted: Numbers, measured: Numbers, factor: float) -> float:
    """Share of rows inside ``[predicted / factor, predicted · factor]``."""
    return float(np.mean(np.abs(np.log(predicted / measured)) <= math.log(factor)))


def _residuals(predicted: Numbers, measured: Numbers, names: Numbers) -> list[list[float]]:
    size = np.abs(np.log(predicted / measured))
    return [size[names == name].tolist() for name in sorted(set(names.tolist()))]


def split_quantiles(
    predicted: Numbers, measured: Numbers, names: Sequence[str], folds: Sequence[str], level: float
) -> tuple[float, Numbers]:
    """Conformal factor from all groups, and for each row from the groups of the other folds.

    Parameters
    ----------
    predicted, measured : float64[rows]
        Predictions whose constants never saw the fold of the row.
    names, folds : sequences of str
        Group of each row (each weighs one), and what is held out together.

    Returns
    -------
    (float, float64[rows])
    """
    where, held = np.array(names), np.array(folds)
    own = np.empty(len(where))
    for fold in sorted(set(folds)):
        others = held != fold
        if others.any():
            rest = _residuals(predicted[others], measured[others], where[others])
            own[~others] = math.exp(balanced_quantile(rest, level))
    everything = _residuals(predicted, measured, where)
    if len(set(folds)) == 1:
        own[:] = math.exp(balanced_quantile(everything, level))
    return math.exp(balanced_quantile(everything, level)), own


@dataclass(frozen=True, slots=True)
class Reason:
    """One of the worst groups, and what its residuals look like."""

    group: Group
    offset: float
    """Mean of the logarithms of predicted over measured TPOT."""
    scatter: float
    """Standard deviation of them."""
    with_load: float
    """Correlation of them with the logarithm of the clients."""
    largest: str
    """What most of the predicted TPOT goes to."""
    share: float


def worst(
    found: list[Group], names: Sequence[str], residuals: Numbers, clients: Numbers,
    parts: Callable[[Numbers], tuple[str, float]], number: int = 10,
) -> list[Reason]:  # fmt: skip
    """Rank groups by the median error of TPOT, and describe how they are wrong."""
    where = np.array(names)
    ranked = sorted(found, key=lambda group: group.tpot.median, reverse=True)[:number]
    reasons = []
    for group in ranked:
        inside = where == group.name
        left, load = residuals[inside], np.log(clients[inside])
        moves = len(left) > 2 and load.std() > 0 and left.std() > 0
        with_load = float(np.corrcoef(left, load)[0, 1]) if moves else 0.0
        largest, share = parts(inside)
        reasons.append(
            Reason(group, float(left.mean()), float(left.std()), with_load, largest, share)
        )
    return reasons
