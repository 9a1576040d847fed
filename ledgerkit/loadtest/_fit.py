"""Fitting a decode step's time, and intervals for the shares that follow from the fit.

Errors of a timing are relative, so rows are divided by the fitted time (iteratively reweighted
least squares). Dividing by the *measured* time instead would favour rows that came out short.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ledgerkit.loadtest._student import f_upper, t_quantile

if TYPE_CHECKING:
    from ledgerkit.loadtest._basis import Basis, Floats

__all__ = ["BOOTSTRAP_RUNS", "Fit", "Interval", "fit_steps"]

_ROUNDS = 60
_CONVERGED = 1e-10
_FLOOR = 0.05  # a fit may not fall below this share of the measured time while it iterates
_WORST_CONDITION = 1e5
BOOTSTRAP_RUNS = 10
"""Runs below which a bootstrap over runs covers far less than it says (70 to 87 % of 95 %)."""


@dataclass(frozen=True)
class Interval:
    """A value with its 95 % interval, all as fractions.

    Examples
    --------
    >>> Interval(0.64, 0.61, 0.67).width
    0.06
    """

    value: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """High minus low."""
        return round(self.high - self.low, 12)


@dataclass(frozen=True)
class LackOfFit:
    """Whether cell means leave the fitted surface by more than repeats differ."""

    f: float | None
    p: float | None
    """Probability of such an F if the surface were right; None without repeats."""
    worst_cell: str
    worst_residual: float
    """Relative residual of that cell's mean."""

    @property
    def is_bad(self) -> bool:
        """True: the misfit is real (p < 0.001) and large (above 10 %)."""
        significant = self.p is not None and self.p < 1e-3
        return significant and abs(self.worst_residual) > 0.10


def _reweighted(design: Floats, times: Floats, multiplicity: Floats) -> tuple[Floats, Floats]:
    """Solve ``design · θ ≈ times`` in relative error, for one or many sets of multiplicities."""
    scale = np.abs(design).max(axis=0)
    scaled = design / scale
    fitted = np.broadcast_to(times, multiplicity.shape)
    theta = np.zeros((*multiplicity.shape[:-1], design.shape[1]))
    for _ in range(_ROUNDS):
        weight = multiplicity / fitted**2
        normal = np.einsum("...n,ni,nj->...ij", weight, scaled, scaled)
        right = np.einsum("...n,ni,n->...i", weight, scaled, times)
        renewed = np.linalg.solve(normal, right[..., None])[..., 0]
        fitted = np.maximum(renewed @ scaled.T, _FLOOR * times)
        moved = np.abs(renewed - theta).max()
        theta = renewed
        if moved <= _CONVERGED * np.abs(theta).max():
            break
    return theta / scale, fitted


def _non_negative(design: Floats, times: Floats, fitted: Floats) -> Floats:
    """Best θ ≥ 0 in the metric of ``fitted``: with three columns every subset can be tried."""
    size = design.shape[1]
    a, z = design / fitted[:, None], times / fitted
    best, best_error = np.zeros(size), math.inf
    for count in range(size, 0, -1):
        for chosen in itertools.combinations(range(size), count):
            columns = list(chosen)
            part, *_ = np.linalg.lstsq(a[:, columns], z, rcond=None)
            error = float(np.square(a[:, columns] @ part - z).sum())
            if (part >= 0).all() and error < best_error:
                best, best_error = np.zeros(size), error
                best[columns] = part
    return best


@dataclass(frozen=True)
class RelativeFit:
    """Coefficients of a linear model whose errors are relative.

    ``theta`` are ≥ 0; ``free`` and ``covariance`` belong to the fit without that bound, on which
    intervals rest: the bound would make them too short.
    """

    theta: Floats
    free: Floats
    covariance: Floats
    sigma: float
    """Relative standard deviation of one row."""
    dof: int
    level: float = 0.95

    @property
    def t(self) -> float:
        """Half-width of an interval in standard errors."""
        return t_quantile(self.level, self.dof)

    def share(self, row: Floats, picked: Floats) -> Interval:
        """Share of the picked terms in ``row · θ``, by the delta method, in [0, 1]."""
        value = float((row * self.theta * picked).sum() / (row * self.theta).sum())
        total = float(row @ self.free)
        share = float((row * self.free * picked).sum() / total)
        slope = (picked - share) * row / total  # d(share)/d(theta)
        half = self.t * math.sqrt(max(float(slope @ self.covariance @ slope), 0.0))
        low, high = np.clip([share - half, share + half], 0.0, 1.0)
        return Interval(value, min(float(low), value), max(float(high), value))

    def coefficient(self, index: int) -> Interval:
        """One coefficient with its interval, cut at 0."""
        half = self.t * math.sqrt(max(float(self.covariance[index, index]), 0.0))
        value, free = float(self.theta[index]), float(self.free[index])
        return Interval(value, min(max(free - half, 0.0), value), max(free + half, value))


def relative_fit(design: Floats, times: Floats) -> RelativeFit | None:
    """Fit ``design · θ`` to times with relative errors; None when the rows cannot tell θ.

    Parameters
    ----------
    design : array (rows, columns) of float
    times : array (rows,) of float
        Seconds, above 0.
    """
    dof = len(times) - design.shape[1]
    if dof < 1 or not is_estimable(design):
        return None
    free, fitted = _reweighted(design, times, np.ones(len(times)))
    theta = free if (free >= 0).all() else _non_negative(design, times, fitted)
    relative = design / fitted[:, None]
    sigma2 = float(np.square(times / fitted - relative @ free).sum()) / dof
    scale = np.abs(relative).max(axis=0)
    inverse = np.linalg.inv((relative / scale).T @ (relative / scale))
    covariance = sigma2 * inverse / np.outer(scale, scale)
    return RelativeFit(theta, free, covariance, math.sqrt(sigma2), dof)


@dataclass(frozen=True)
class Fit:
    """A fitted surface t(c, b) with its uncertainty."""

    basis: Basis
    relative: RelativeFit
    design: Floats
    times: Floats
    cells: tuple[str, ...]
    runs: tuple[int, ...]

    @property
    def theta(self) -> Floats:
        """Coefficients of the basis, ≥ 0."""
        return self.relative.theta

    @property
    def sigma(self) -> float:
        """Relative standard deviation of one run of one cell."""
        return self.relative.sigma

    @cached_property
    def residuals(self) -> Floats:
        """Measured over fitted, minus 1, by row."""
        return np.asarray(self.times / (self.design @ self.theta) - 1.0)

    def predict(self, context: Floats, concurrency: Floats) -> Floats:
        """Fitted seconds of a decode step."""
        return np.asarray(self.basis.columns(context, concurrency) @ self.theta)

    def share_of(self, columns: tuple[int, ...], context: float, concurrency: float) -> Interval:
        """Share of time of some columns together, at one operating point."""
        row = self.basis.columns(np.array([context]), np.array([concurrency]))[0]
        picked = np.zeros_like(row)
        picked[list(columns)] = 1.0
        return self.relative.share(row, picked)

    def lack_of_fit(self) -> LackOfFit:
        """Compare the spread of cell means around the surface with the spread inside cells."""
        names = np.array(self.cells)
        residuals = self.times / (self.design @ self.relative.free) - 1.0
        kinds = np.unique(names)
        means = np.array([residuals[names == kind].mean() for kind in kinds])
        sizes = np.array([(names == kind).sum() for kind in kinds])
        worst = int(np.abs(means).argmax())
        inside = len(names) - len(kinds)
        between = len(kinds) - self.design.shape[1]
        f = p = None
        if inside > 0 and between > 0:
            spread = sum(
                float(np.square(residuals[names == kind] - mean).sum())
                for kind, mean in zip(kinds, means, strict=True)
            )
            if spread > 0:
                f = float((sizes * means**2).sum()) / between / (spread / inside)
                p = f_upper(f, between, inside)
        return LackOfFit(f, p, str(kinds[worst]), float(means[worst]))

    def outliers(self, probability: float = 1e-3) -> list[int]:
        """Rows that contradict all others (deleted residuals, Bonferroni over the rows)."""
        fitted = self.design @ self.relative.free
        a = self.design / fitted[:, None]
        leverage = np.einsum("ni,ij,nj->n", a, np.linalg.pinv(a.T @ a), a)
        error = self.times / fitted - 1.0
        rest = self.relative.dof - 1
        if rest < 3:
            return []
        left = np.maximum(1.0 - leverage, 1e-9)
        without = (np.square(error).sum() - error**2 / left) / rest
        deleted = error / np.sqrt(np.maximum(without, 1e-300) * left)
        limit = t_quantile(1.0 - probability / len(error), rest)
        found = [i for i, size in enumerate(np.abs(deleted)) if size > limit]
        return sorted(found, key=lambda i: -abs(float(deleted[i])))

    def bootstrap(
        self, context: float, concurrency: float, *, draws: int = 2000, seed: int = 0
    ) -> tuple[Floats, Floats]:
        """Interval ends of the three shares from resampling whole runs.

        Percentiles are widened for the number of runs (Hesterberg 2015, expanded percentile), since
        plain ones are too short by √((R − 1)/R) and by normal against t quantiles.
        """
        names = np.array(self.runs)
        kinds = np.unique(names)
        count = len(kinds)
        if count < BOOTSTRAP_RUNS:
            msg = f"a bootstrap over runs needs {BOOTSTRAP_RUNS} runs, here are {count}"
            raise ValueError(msg)
        drawn = np.random.default_rng(seed).integers(count, size=(draws, count))
        tally = (drawn[:, :, None] == np.arange(count)).sum(axis=1).astype(np.float64)
        multiplicity = tally[:, np.searchsorted(kinds, names)]
        theta, _ = _reweighted(self.design, self.times, multiplicity)
        row = self.basis.columns(np.array([context]), np.array([concurrency]))[0]
        shares = theta * row / (theta @ row)[:, None]
        wide = math.sqrt(count / (count - 1)) * t_quantile(self.relative.level, count - 1)
        tail = 0.5 * math.erfc(wide / math.sqrt(2.0))
        low, high = np.quantile(shares, [tail, 1.0 - tail], axis=0)
        return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def is_estimable(design: Floats) -> bool:
    """Whether the rows can tell the three columns apart."""
    norms = np.linalg.norm(design, axis=0)
    if not (norms > 0).all():
        return False
    values = np.linalg.svd(design / norms, compute_uv=False)
    return bool(values[-1] * _WORST_CONDITION > values[0])


def fit_steps(
    basis: Basis,
    context: Floats,
    concurrency: Floats,
    times: Floats,
    cells: tuple[str, ...],
    runs: tuple[int, ...],
) -> Fit | None:
    """Fit one row per run of a cell; None when the rows cannot tell the columns apart.

    Parameters
    ----------
    basis : Basis
        What the time is made of.
    context, concurrency : array of float
        Mean tokens in the cache, and sequences that decoded at once, by row.
    times : array of float
        Seconds of a decode step, by row.
    cells : tuple of str
        Which rows repeat each other.
    runs : tuple of int
        Number of the run, by row.
    """
    design = basis.columns(context, concurrency)
    relative = relative_fit(design, times)
    return None if relative is None else Fit(basis, relative, design, times, cells, runs)
