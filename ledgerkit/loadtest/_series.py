"""One series alone: what it can say, and no more."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from ledgerkit.errors import LoadTestError
from ledgerkit.loadtest._findings import Finding
from ledgerkit.loadtest._fit import Interval, relative_fit
from ledgerkit.loadtest._inputs import positive
from ledgerkit.loadtest._student import t_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledgerkit.loadtest._basis import Floats

__all__ = ["SeriesDiagnosis", "diagnose_series"]

Axis = Literal["context", "concurrency"]
Measure = Literal["step_s", "tokens_per_s", "tokens_per_s_one", "ttft_s"]
SeriesVerdict = Literal[
    "context_sensitive", "concurrency_sensitive", "flat", "outlier", "undetermined"
]

SENSITIVE = 0.2
"""Sensitivity above which a series is called sensitive."""
_OUTLIER = math.log(1.3)
_OUTLIER_OVER_REST = 3.0
_FEWEST = 3
_MOST = 1e12


@dataclass(frozen=True)
class SeriesDiagnosis:
    """What one series of measurements says.

    Attributes
    ----------
    verdict : str
        ``context_sensitive``, ``concurrency_sensitive``, ``flat``, ``outlier`` or
        ``undetermined``.
    axis : {"context", "concurrency"}
    sensitivity : Interval or None
        Context: share of the time at the far end that grows with the context. Concurrency:
        elasticity of total throughput (1 = doubles with twice the sequences, 0 = does not rise).
    growth : float
        Time at the far end over time at the near end.
    outliers : tuple of float
        Places on the axis whose value contradicts their neighbours.
    without_outliers : str or None
        Verdict of the other points, where there is an outlier.
    findings : tuple of Finding
    points : tuple of (float, float)
        Place on the axis, seconds.
    """

    verdict: SeriesVerdict
    axis: Axis
    measure: Measure
    sensitivity: Interval | None
    growth: float
    outliers: tuple[float, ...]
    without_outliers: SeriesVerdict | None
    findings: tuple[Finding, ...]
    points: tuple[tuple[float, float], ...]

    def text(self, language: str | None = None) -> str:
        """The verdict in words.

        Parameters
        ----------
        language : {"zh", "en"}, optional
        """
        from ledgerkit.loadtest._words import describe_series

        return describe_series(self, language)

    def __repr__(self) -> str:
        return self.text()


def diagnose_series(
    x: Sequence[float],
    y: Sequence[float],
    *,
    axis: Axis,
    measure: Measure = "step_s",
    concurrency: float = 1,
) -> SeriesDiagnosis:
    """Judge a series over context alone or concurrency alone.

    A step time that is affine in the context has a share that grows with it; a throughput over
    concurrency has an elasticity. Whether the growing part is the cache, or the constant one the
    weights, takes both series (``diagnose``).

    Parameters
    ----------
    x : sequence of float
        Context in tokens, or sequences at once; repeats are welcome.
    y : sequence of float
        Measurements, in the unit that ``measure`` names.
    axis : {"context", "concurrency"}
    measure : {"step_s", "tokens_per_s", "tokens_per_s_one", "ttft_s"}
        Seconds of a decode step; tokens/s of all sequences or of one; seconds to the first token.
    concurrency : float
        Sequences at once of a context series in ``tokens_per_s``.

    Returns
    -------
    SeriesDiagnosis

    Raises
    ------
    LoadTestError
        Values that are no measurements, or another axis.

    Examples
    --------
    >>> depth = [0, 4096, 8192, 16384, 32768]
    >>> found = diagnose_series(
    ...     depth, [61.06, 54.77, 48.02, 40.23, 30.21], axis="context", measure="tokens_per_s"
    ... )
    >>> found.verdict, round(found.sensitivity.value, 2)
    ('context_sensitive', 0.51)
    """
    places, times = _checked(x, y, axis, measure, concurrency)
    growth = float(times[places == places.max()].mean() / times[places == places.min()].mean())
    outliers = _outliers(places, times)
    kept = ~np.isin(places, outliers)
    verdict, sensitivity, findings = _classify(places[kept], times[kept], axis, measure)
    return SeriesDiagnosis(
        verdict="outlier" if outliers else verdict,
        axis=axis,
        measure=measure,
        sensitivity=sensitivity,
        growth=growth,
        outliers=tuple(outliers),
        without_outliers=verdict if outliers else None,
        findings=tuple(findings),
        points=tuple(zip(places.tolist(), times.tolist(), strict=True)),
    )


def _checked(
    x: Sequence[float], y: Sequence[float], axis: str, measure: str, concurrency: float
) -> tuple[Floats, Floats]:
    if axis not in ("context", "concurrency"):
        raise LoadTestError("a series runs over context or over concurrency", given=axis,
                            allowed="context, concurrency")  # fmt: skip
    if measure not in ("step_s", "tokens_per_s", "tokens_per_s_one", "ttft_s"):
        raise LoadTestError("unknown measure of a series", given=measure,
                            allowed="step_s, tokens_per_s, tokens_per_s_one, ttft_s")  # fmt: skip
    if axis == "concurrency" and measure == "ttft_s":
        raise LoadTestError(
            "over concurrency a TTFT mixes waiting with prefill",
            given=measure,
            allowed="the decode step, or the throughput",
            fix="give the decode step or the throughput",
        )
    try:
        places, values = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise LoadTestError(
            "a series is two lists of numbers", given=(x, y), allowed="lists of numbers"
        ) from None
    concurrency = positive("concurrency", concurrency)
    if places.ndim != 1 or places.shape != values.shape or places.size < 2:
        raise LoadTestError(
            "a series needs as many values as places, two or more",
            given=f"{places.size} places, {values.size} values",
            allowed="two lists of equal length, two or more",
        )
    lowest = 0.0 if axis == "context" else 1.0
    good = ((places >= lowest) & (places <= _MOST)).all()
    good = good and ((values >= 1 / _MOST) & (values <= _MOST)).all()
    if not good or len(set(places.tolist())) < 2:
        raise LoadTestError(
            "measurements must be above 0 and within reason, at two or more places",
            given=list(zip(places.tolist(), values.tolist(), strict=True)),
            allowed="numbers above 0, at two or more places",
        )
    order = np.argsort(places, kind="stable")
    places, values = places[order], values[order]
    if measure == "tokens_per_s":
        return places, (places if axis == "concurrency" else concurrency) / values
    if measure == "tokens_per_s_one":
        return places, 1.0 / values
    return places, values


def _deviations(places: Floats, times: Floats) -> dict[float, float]:
    """How far each inner point is from the line between its neighbours, in log-log."""
    found = {}
    for i in range(1, len(places) - 1):
        left, right = math.log(places[i - 1] + 1.0), math.log(places[i + 1] + 1.0)
        part = (math.log(places[i] + 1.0) - left) / (right - left)
        between = (1 - part) * math.log(times[i - 1]) + part * math.log(times[i + 1])
        found[float(places[i])] = math.log(times[i]) - between
    return found


def _outliers(places: Floats, times: Floats) -> list[float]:
    """Inner points that stand out, one by one; ends may be the start of something new."""
    kinds = np.unique(places)
    means = np.array([np.median(times[places == kind]) for kind in kinds])
    found: list[float] = []
    while len(kinds) >= 5 - len(found) and len(found) < 2:
        deviations = _deviations(kinds, means)
        worst = max(deviations, key=lambda place: abs(deviations[place]))
        stays = kinds != worst
        rest = _deviations(kinds[stays], means[stays])
        others = max((abs(value) for value in rest.values()), default=0.0)
        limit = max(_OUTLIER, _OUTLIER_OVER_REST * others)
        if abs(deviations[worst]) <= limit:
            break
        found.append(worst)
        kinds, means = kinds[stays], means[stays]
    return found


def _classify(
    places: Floats, times: Floats, axis: Axis, measure: Measure
) -> tuple[SeriesVerdict, Interval | None, list[Finding]]:
    findings = []
    far, near = float(places.max()), float(places.min())
    if axis == "context" and near > 0:
        power = math.log(times[places == far].mean() / times[places == near].mean()) / math.log(
            far / near
        )
        if power > 1.15 and measure != "ttft_s":
            findings.append(Finding("steeper_than_proportional", "warning", (), {"power": power}))
    if len(set(places.tolist())) < _FEWEST:
        findings.append(Finding("two_points", "blocking"))
        return "undetermined", None, findings
    sensitivity = _far_share(places, times) if axis == "context" else _elasticity(places, times)
    if sensitivity is None:
        return "undetermined", None, findings
    if sensitivity.low > SENSITIVE:
        verdict: SeriesVerdict = (
            "context_sensitive" if axis == "context" else "concurrency_sensitive"
        )
        return verdict, sensitivity, findings
    return ("flat" if sensitivity.high <= SENSITIVE else "undetermined"), sensitivity, findings


def _far_share(places: Floats, times: Floats) -> Interval | None:
    fit = relative_fit(np.stack([np.ones_like(places), places], axis=1), times)
    if fit is None:
        return None
    return fit.share(np.array([1.0, places.max()]), np.array([0.0, 1.0]))


def _elasticity(places: Floats, times: Floats) -> Interval:
    """Slope of log throughput over log concurrency."""
    a = np.log(places) - np.log(places).mean()
    b = np.log(places / times)
    slope = float(a @ b / (a @ a))
    rest = len(a) - 2
    error = b - b.mean() - slope * a
    half = t_quantile(0.95, rest) * math.sqrt(float(error @ error) / rest / float(a @ a))
    return Interval(slope, slope - half, slope + half)
