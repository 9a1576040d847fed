"""The result of a diagnosis: verdict, shares with intervals, findings and tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ledgerkit.errors import LoadTestError
from ledgerkit.loadtest._schema import cell_name
from ledgerkit.loadtest._student import t_quantile

if TYPE_CHECKING:
    from ledgerkit.loadtest._anchors import Anchors
    from ledgerkit.loadtest._findings import Finding
    from ledgerkit.loadtest._first_token import FirstToken
    from ledgerkit.loadtest._fit import Fit, Interval
    from ledgerkit.loadtest._settle import NextCell
    from ledgerkit.loadtest._verdict import Judgement, Verdict
    from ledgerkit.spec.deployment import Deployment
    from ledgerkit.spec.hardware import Hardware
    from ledgerkit.spec.model import Model

__all__ = ["Diagnosis"]


@dataclass(frozen=True)
class Diagnosis:
    """What a load test says about a deployment, and how sure it is.

    Attributes
    ----------
    judgement : Judgement
        Verdict, and the rule that gave it.
    context_tokens, concurrency : float
        Operating point of every share.
    attention_kv_share, sequence_share, step_share : Interval or None
        Shares of decode time: reading the cache; what grows with the sequences (or with the
        experts that they touch); the constant of a step. None where nothing could be fitted.
    findings : tuple of Finding
        Pitfalls, worst first.
    next_cells : tuple of NextCell
        Measurements that would settle an open verdict.
    anchors : Anchors or None
        Measured over predicted coefficients; needs model and hardware.
    gap : Interval or None
        (client − engine) / client time between tokens, where the engine tells its own.
    ttft : FirstToken or None
        How much of the first token is constant.
    cells, left_out : polars.DataFrame
        The rows that were used, and those that were not.
    fit : Fit or None
    """

    judgement: Judgement
    context_tokens: float
    concurrency: float
    attention_kv_share: Interval | None
    sequence_share: Interval | None
    step_share: Interval | None
    findings: tuple[Finding, ...]
    next_cells: tuple[NextCell, ...]
    anchors: Anchors | None
    gap: Interval | None
    ttft: FirstToken | None
    cells: pl.DataFrame
    left_out: pl.DataFrame
    fit: Fit | None
    model: Model | None = None
    hardware: Hardware | None = None
    deployment: Deployment | None = None
    interval_method: str = "delta"

    @property
    def verdict(self) -> Verdict:
        """``attention_kv``, ``weights``, ``mixed``, ``service`` or ``undetermined``."""
        return self.judgement.verdict

    @property
    def cell(self) -> str:
        """Name of the operating point."""
        return cell_name(self.context_tokens, self.concurrency)

    @cached_property
    def table(self) -> pl.DataFrame:
        """Per cell: measured step time, fitted and predicted time, and their ratios.

        Columns: ``cell, prompt_tokens, context_tokens, concurrency_requested, concurrency, runs,
        measured_s, measured_low_s, measured_high_s, fitted_s, residual, predicted_s,
        predicted_low_s, predicted_high_s, measured_over_predicted``; seconds per decode step,
        intervals 95 % of the mean of runs.
        """
        grouped = self.cells.group_by("cell", maintain_order=True).agg(
            pl.col(
                "prompt_tokens", "context_tokens", "concurrency_requested", "concurrency"
            ).mean(),
            pl.len().alias("runs"),
            pl.col("itl_s").mean().alias("measured_s"),
            pl.col("itl_s").std().alias("spread_s"),
        )
        half = [
            t_quantile(0.95, runs - 1) * spread / math.sqrt(runs) if runs > 1 else None
            for runs, spread in grouped.select("runs", "spread_s").iter_rows()
        ]
        fitted: list[float | None] = [None] * grouped.height
        if self.fit is not None:
            fitted = self.fit.predict(
                grouped["context_tokens"].to_numpy(), grouped["concurrency"].to_numpy()
            ).tolist()
        predicted: list[Interval | None] = [None] * grouped.height
        if self.anchors is not None:
            predicted = self.anchors.step_times(grouped)
        return (
            grouped.with_columns(
                pl.Series("half_s", half, pl.Float64),
                pl.Series("fitted_s", fitted, pl.Float64),
                *(
                    pl.Series(name, [p and getattr(p, end) for p in predicted], pl.Float64)
                    for name, end in (
                        ("predicted_s", "value"),
                        ("predicted_low_s", "low"),
                        ("predicted_high_s", "high"),
                    )
                ),
            )
            .with_columns(
                (pl.col("measured_s") - pl.col("half_s")).clip(0.0).alias("measured_low_s"),
                (pl.col("measured_s") + pl.col("half_s")).alias("measured_high_s"),
                (pl.col("measured_s") / pl.col("fitted_s") - 1.0).alias("residual"),
                (pl.col("measured_s") / pl.col("predicted_s")).alias("measured_over_predicted"),
            )
            .select(
                "cell", "prompt_tokens", "context_tokens", "concurrency_requested", "concurrency",
                "runs", "measured_s", "measured_low_s", "measured_high_s", "fitted_s", "residual",
                "predicted_s", "predicted_low_s", "predicted_high_s", "measured_over_predicted",
            )
            .sort("concurrency_requested", "prompt_tokens")
        )  # fmt: skip

    def shares(self, context_tokens: Any, concurrency: Any) -> pl.DataFrame:
        """Shares of decode time at other points, with 95 % intervals.

        Parameters
        ----------
        context_tokens, concurrency : array_like of float
            Points, of equal length.

        Returns
        -------
        polars.DataFrame
            ``context_tokens, concurrency, step_s, attention_kv_share, low, high``.

        Raises
        ------
        LoadTestError
            Nothing could be fitted.
        """
        if self.fit is None:
            raise LoadTestError(
                "there is no fit, so there are no shares",
                allowed="a diagnosis with a fit",
                fix="measure the cells in .next_cells",
            )
        try:
            contexts = np.atleast_1d(np.asarray(context_tokens, dtype=np.float64))
            many = np.atleast_1d(np.asarray(concurrency, dtype=np.float64))
        except (TypeError, ValueError):
            contexts, many = np.zeros(1), np.zeros(0)
        good = contexts.ndim == 1 and contexts.shape == many.shape
        if not (good and all(((x > 0) & np.isfinite(x)).all() for x in (contexts, many))):
            raise LoadTestError(
                "points are two lists of numbers above 0, of equal length",
                given=(context_tokens, concurrency),
                allowed="equally many numbers above 0",
            )
        points = [
            self.fit.share_of((2,), float(c), float(b)) for c, b in zip(contexts, many, strict=True)
        ]
        return pl.DataFrame(
            {
                "context_tokens": contexts,
                "concurrency": many,
                "step_s": self.fit.predict(contexts, many),
                "attention_kv_share": [point.value for point in points],
                "low": [point.low for point in points],
                "high": [point.high for point in points],
            }
        )

    def text(self, language: str | None = None) -> str:
        """The verdict with its evidence, in words.

        Parameters
        ----------
        language : {"zh", "en"}, optional
        """
        from ledgerkit.loadtest._words import describe

        return describe(self, language)

    def __repr__(self) -> str:
        return self.text()

    def chart(
        self, kind: str = "verdict", *, language: str | None = None, theme: str | None = None
    ) -> Any:
        """Draw the verdict, the fit, or measured over predicted times.

        Parameters
        ----------
        kind : {"verdict", "ratio", "sensitivity"}
        language : {"zh", "en"}, optional
        theme : {"article", "slide", "dark"}, optional
        """
        from ledgerkit._plot import draw

        return draw("loadtest", kind, self, language=language, theme=theme)
