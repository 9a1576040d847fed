"""Measured coefficients over predicted ones: what the constant and the slope are made of.

A fit alone cannot tell reading weights from launching kernels: both are a constant. The books of
``lk.ledger`` predict what reading weights takes on this machine, so their ratio can.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ledgerkit._ledger import ledger
from ledgerkit.errors import LedgerError
from ledgerkit.loadtest._fit import Interval
from ledgerkit.spec.deployment import Deployment, Workload

if TYPE_CHECKING:
    from ledgerkit._ledger import Ledger
    from ledgerkit.loadtest._fit import Fit
    from ledgerkit.spec.hardware import Hardware
    from ledgerkit.spec.model import Model

__all__ = ["Anchors", "anchor", "predicted_ledger"]

CACHE_ACCOUNTS = ("core", "cache", "indexer", "state")
"""Accounts of the attention ledger that grow with the context or are per sequence."""
_NEGLIGIBLE = 0.01


def predicted_ledger(
    model: Model, hardware: Hardware, deployment: Deployment, context: float, concurrency: float
) -> Ledger | None:
    """Books at a measured cell; None where they cannot be drawn up (context too long, ...)."""
    point = Workload(
        prompt_tokens=max(1, round(context)),
        output_tokens=1,
        concurrency=max(1, round(concurrency)),
    )
    try:
        return ledger(model, hardware, deployment, point)
    except LedgerError:
        return None


@dataclass(frozen=True)
class _Seconds:
    """Predicted seconds of a decode step, by column of the fit."""

    cache: Interval
    weights: Interval
    """Everything but cache and scheduling: weights read, and their compute."""


def _seconds(books: Ledger) -> _Seconds:
    times = books.entries.filter(
        (pl.col("phase") == "decode")
        & (pl.col("resource") == "time")
        & (pl.col("ledger") != "scheduling")
    )
    of_cache = (pl.col("ledger") == "attention_kv") & pl.col("account").is_in(CACHE_ACCOUNTS)
    parts = [
        Interval(*(float(part[name].sum()) for name in ("amount_device", "low", "high")))
        for part in (times.filter(of_cache), times.filter(~of_cache))
    ]
    return _Seconds(*parts)


@dataclass(frozen=True)
class Anchors:
    """Ratios of measured to predicted time; 1 = as predicted.

    The ends join the interval of the fit with the band of the prediction.

    Attributes
    ----------
    constant : Interval or None
        κ0: the constant of a step over reading the weights. Above 1.3: launches, communication
        or host.
    sequence : Interval or None
        What grows with the sequences (or with the experts that they touch) over its prediction;
        None where the prediction is negligible.
    cache : Interval or None
        κa: reading the cache over its prediction.
    """

    constant: Interval | None
    sequence: Interval | None
    cache: Interval | None
    model: Model
    hardware: Hardware
    deployment: Deployment

    def step_times(self, cells: pl.DataFrame) -> list[Interval | None]:
        """Predicted seconds of a decode step of cells (``context_tokens``, ``concurrency``)."""
        found: list[Interval | None] = []
        for context, many in cells.select("context_tokens", "concurrency").iter_rows():
            books = predicted_ledger(self.model, self.hardware, self.deployment, context, many)
            found.append(
                None
                if books is None
                else Interval(books.tpot_s, books.tpot_s_low, books.tpot_s_high)
            )
        return found


def _ratio(measured: Interval, predicted: Interval) -> Interval | None:
    if predicted.low <= 0:
        return None
    return Interval(
        measured.value / predicted.value,
        measured.low / predicted.high,
        measured.high / predicted.low,
    )


def _scaled(measured: Interval, factor: float) -> Interval:
    return Interval(measured.value * factor, measured.low * factor, measured.high * factor)


def anchor(
    fit: Fit, model: Model, hardware: Hardware, deployment: Deployment, at: tuple[float, float]
) -> Anchors | None:
    """Compare the coefficients of a fit with the books of the same deployment.

    Returns
    -------
    Anchors or None
        None where no books can be drawn up at the operating point.
    """
    alone = predicted_ledger(model, hardware, deployment, at[0], 1)
    there = predicted_ledger(model, hardware, deployment, *at)
    if alone is None or there is None:
        return None
    one, here = _seconds(alone), _seconds(there)
    row = fit.basis.columns(np.array([at[0]]), np.array([at[1]]))[0]
    cache = _scaled(fit.relative.coefficient(2), float(row[2]))
    constant = fit.relative.coefficient(0)
    weights = one.weights
    if fit.basis.weights_kind == "distinct_experts":
        # a step of one sequence reads its experts too, and those are in the second column
        first = float(fit.basis.weights(np.array([1.0]))[0])
        constant = _plus(constant, _scaled(fit.relative.coefficient(1), first))
    most = float(np.max(fit.design[:, 1]))
    fewest = float(np.min(fit.design[:, 1]))
    sequence = _sequence(fit, model, hardware, deployment, at[0], (fewest, most), here)
    return Anchors(
        _ratio(constant, weights), sequence, _ratio(cache, here.cache), model, hardware, deployment
    )


def _plus(a: Interval, b: Interval) -> Interval:
    return Interval(a.value + b.value, a.low + b.low, a.high + b.high)


def _sequence(
    fit: Fit,
    model: Model,
    hardware: Hardware,
    deployment: Deployment,
    context: float,
    ends: tuple[float, float],
    here: _Seconds,
) -> Interval | None:
    """Growth of a step with the sequences, the cache left out, over its prediction."""
    columns = fit.basis.weights(np.arange(1.0, 1025.0))
    few, many = (float(np.abs(columns - end).argmin() + 1) for end in ends)
    if many <= few:
        return None
    books = [predicted_ledger(model, hardware, deployment, context, b) for b in (few, many)]
    if books[0] is None or books[1] is None:
        return None
    low, high = (_seconds(book).weights for book in books if book is not None)
    grown = high.value - low.value
    if grown < _NEGLIGIBLE * here.weights.value:
        return None
    # one efficiency holds for both ends, so the band keeps its relative width
    predicted = Interval(grown, grown * high.low / high.value, grown * high.high / high.value)
    return _ratio(_scaled(fit.relative.coefficient(1), ends[1] - ends[0]), predicted)
