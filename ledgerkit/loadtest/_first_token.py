"""The first token: how much of it is constant, and so no matter of any ledger."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ledgerkit.loadtest._fit import Interval, relative_fit

__all__ = ["FirstToken", "first_token"]

_REFERENCE_TOKENS = 1024.0
CONSTANT_LIMIT = 0.30
"""Share of TTFT at about 1K above which a constant term is suspicious (costmodel, section 7)."""


@dataclass(frozen=True)
class FirstToken:
    """``TTFT(n) = f0 + p1·n + p2·n²``, from cells with one request at a time."""

    constant_share: Interval
    """f0 over TTFT at ``at_tokens``."""
    at_tokens: float
    attention_over_linear: float | None
    """p2·n / p1 at ``longest_tokens``: attention work over linear work; None where p1 is 0."""
    longest_tokens: float

    @property
    def is_suspicious(self) -> bool:
        """True: the constant is above the limit with its whole interval."""
        return self.constant_share.low > CONSTANT_LIMIT


def first_token(cells: pl.DataFrame) -> FirstToken | None:
    """Fit TTFT over prompt length; None with fewer than three lengths or without repeats.

    Parameters
    ----------
    cells : polars.DataFrame
        Rows of ``CELL_COLUMNS``; only those with one request at a time are used, since others
        wait for each other.
    """
    alone = cells.filter(
        (pl.col("concurrency_requested") == 1)
        & (pl.col("ttft_p50_s") > 0)
        & pl.col("prompt_tokens").is_not_null()
    )
    if alone["prompt_tokens"].n_unique() < 3:
        return None
    tokens = alone["prompt_tokens"].to_numpy().astype(np.float64)
    times = alone["ttft_p50_s"].to_numpy().astype(np.float64)
    fit = relative_fit(np.stack([np.ones_like(tokens), tokens, tokens**2], axis=1), times)
    if fit is None:
        return None
    at = float(tokens[np.abs(np.log(tokens / _REFERENCE_TOKENS)).argmin()])
    longest = float(tokens.max())
    constant = fit.share(np.array([1.0, at, at * at]), np.array([1.0, 0.0, 0.0]))
    linear = float(fit.theta[1])
    ratio = float(fit.theta[2]) * longest / linear if linear > 0 else None
    return FirstToken(constant, at, ratio, longest)
