"""Least squares for a handful of constants: Levenberg and Marquardt, robust if asked to be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Vector: TypeAlias = npt.NDArray[np.float64]
_STEP = 1e-6
_ROUNDS = 100
_ENOUGH = 1e-10


@dataclass(frozen=True, slots=True)
class Minimum:
    """Where the sum of squares is smallest."""

    x: Vector
    covariance: Vector
    """Inverse of JᵀJ at the minimum: the posterior's if residuals are in standard deviations."""
    cost: float


def least_squares(
    residuals: Callable[[Vector], Vector], start: Vector, *, soft: float | None = None
) -> Minimum:
    """Minimize ``sum(residuals(x)²)``, or its soft-L1 form beyond ``soft``.

    Parameters
    ----------
    residuals : callable
        Vector to vector; should be of order one near the minimum.
    start : float64[n]
    soft : float, optional
        Residual at which squares turn into absolute values:
        ``2 soft² (sqrt(1 + (r / soft)²) − 1)`` instead of ``r²``.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([0.0, 1.0, 2.0, 3.0])
    >>> y = 2.0 * np.exp(0.5 * x)
    >>> found = least_squares(lambda p: p[0] * np.exp(p[1] * x) - y, np.array([1.0, 0.1]))
    >>> found.x.round(6).tolist()
    [2.0, 0.5]
    """

    def cost_of(r: Vector) -> float:
        if soft is None:
            return float(r @ r)
        return float(2.0 * soft**2 * np.sum(np.sqrt(1.0 + (r / soft) ** 2) - 1.0))

    x, damping = start.astype(np.float64), 1e-3
    r = residuals(x)
    cost = cost_of(r)
    normal = np.eye(len(x))
    for _ in range(_ROUNDS):
        jacobian = np.empty((len(r), len(x)))
        for i in range(len(x)):
            moved = x.copy()
            moved[i] += _STEP
            jacobian[:, i] = (residuals(moved) - r) / _STEP
        weight = np.ones_like(r) if soft is None else 1.0 / np.sqrt(1.0 + (r / soft) ** 2)
        normal = jacobian.T @ (weight[:, None] * jacobian)
        gradient = jacobian.T @ (weight * r)
        improved = False
        while damping < 1e8:
            scale = damping * np.maximum(np.diag(normal), 1e-12)
            step = -np.linalg.solve(normal + np.diag(scale), gradient)
            tried = residuals(x + step)
            tried_cost = cost_of(tried)
            if np.isfinite(tried_cost) and tried_cost < cost:
                improved = cost - tried_cost > _ENOUGH * cost
                x, r, cost, damping = x + step, tried, tried_cost, damping / 5.0
                break
            damping *= 4.0
        if not improved:
            break
    return Minimum(x, np.asarray(np.linalg.pinv(normal), dtype=np.float64), cost)
