"""Tails of Student's t and Fisher's F, so that intervals need numpy alone.

Both are the regularised incomplete beta function (DLMF 8.17), evaluated by its continued fraction
with Lentz's method.
"""

from __future__ import annotations

import math
from functools import lru_cache

_TINY = 1e-300
_EPSILON = 1e-15
_MAX_TERMS = 400


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularised incomplete beta function I_x(a, b).

    Parameters
    ----------
    a, b : float
        Shape, above 0.
    x : float
        Upper limit, 0 to 1.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> round(incomplete_beta(2.0, 3.0, 0.4), 6)  # 1 - 0.6^4 - 4 * 0.4 * 0.6^3
    0.5248
    """
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    if x > (a + 1.0) / (a + b + 2.0):  # the fraction converges fast on the other side
        return 1.0 - incomplete_beta(b, a, 1.0 - x)
    log_front = (
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    return math.exp(log_front) * _fraction(a, b, x) / a


def _fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    d = 1.0 / d
    value = d
    for m in range(1, _MAX_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        step = 1.0
        for term in (even, odd):
            d = 1.0 / _away_from_zero(1.0 + term * d)
            c = _away_from_zero(1.0 + term / c)
            step = d * c
            value *= step
        if abs(step - 1.0) < _EPSILON:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def t_two_sided(t: float, dof: float) -> float:
    """Probability that Student's t is at least ``|t|`` away from zero.

    Examples
    --------
    >>> round(t_two_sided(2.262157, 9), 6)
    0.05
    """
    return incomplete_beta(dof / 2.0, 0.5, dof / (dof + t * t))


def f_upper(f: float, dof_top: float, dof_bottom: float) -> float:
    """Probability that Fisher's F is at least ``f``.

    Examples
    --------
    >>> round(f_upper(3.49029, 3, 12), 4)
    0.05
    """
    if f <= 0.0:
        return 1.0
    return incomplete_beta(dof_bottom / 2.0, dof_top / 2.0, dof_bottom / (dof_bottom + dof_top * f))


@lru_cache(maxsize=1024)
def t_quantile(level: float, dof: float) -> float:
    """Half-width of a two-sided interval in standard errors.

    Parameters
    ----------
    level : float
        Coverage, 0 to 1, e.g. 0.95.
    dof : float
        Degrees of freedom, above 0.

    Returns
    -------
    float
        The t with ``P(|T| <= t) = level``.

    Examples
    --------
    >>> round(t_quantile(0.95, 9), 4), round(t_quantile(0.95, 45), 4)
    (2.2622, 2.0141)
    """
    outside = 1.0 - level
    low, high = 0.0, 2.0
    while t_two_sided(high, dof) > outside:
        low, high = high, 2.0 * high
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if t_two_sided(middle, dof) > outside:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
