"""The rules: from shares of time and their intervals to the article's verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ledgerkit.loadtest._anchors import Anchors
    from ledgerkit.loadtest._fit import Fit, Interval

__all__ = ["Judgement", "Verdict", "judge"]

Verdict = Literal["attention_kv", "weights", "mixed", "service", "undetermined"]
Suspect = Literal["weights", "compute", "scheduling"]

KV_DOMINATES = 0.5
KV_IS_MINOR = 0.2
STEP_DOMINATES = 0.5
WIDEST = 0.3
"""Width of the interval of the KV share above which nothing is said."""
NOISIEST = 0.3
"""Relative spread of single runs above which nothing is said."""
GAP_LIMIT = 0.15
"""Share of the client's time between tokens that the engine does not account for."""
LATE = 1.3
"""κ0 above which the constant is more than reading weights."""
SLOW_COMPUTE = 1.5


@dataclass(frozen=True)
class Judgement:
    """A verdict and the rule that gave it.

    Attributes
    ----------
    verdict : str
        ``attention_kv``, ``weights`` (weights, FFN or scheduling), ``mixed``, ``service`` or
        ``undetermined``.
    rule : str
        Key of the rule that applied.
    suspect : str or None
        Inside ``weights``: ``weights`` (reading them), ``compute`` or ``scheduling``, where model
        and hardware allow to tell.
    thresholds : tuple of float
        Limits of the KV share that the interval contains: what keeps the verdict open.
    """

    verdict: Verdict
    rule: str
    suspect: Suspect | None = None
    thresholds: tuple[float, ...] = ()


def judge(
    fit: Fit,
    at: tuple[float, float],
    *,
    gap: Interval | None = None,
    anchors: Anchors | None = None,
) -> Judgement:
    """Apply the rules in order; the first that holds decides.

    Parameters
    ----------
    fit : Fit
        The fitted surface.
    at : (context, concurrency)
        Operating point.
    gap : Interval, optional
        (client − engine) / client time between tokens, where the engine tells its own.
    anchors : Anchors, optional
        Measured over predicted coefficients, where model and hardware are known.
    """
    share = fit.share_of((2,), *at)
    edges = tuple(edge for edge in (KV_IS_MINOR, KV_DOMINATES) if share.low < edge < share.high)
    if gap is not None and gap.low > GAP_LIMIT:
        return Judgement("service", "engine_gap")
    if fit.lack_of_fit().is_bad:
        # without a model the basis may be the wrong one: experts, windows and top-k bend it
        if fit.basis.model is None:
            return Judgement("undetermined", "misfit_without_model")
        return Judgement("service", "misfit")
    if fit.sigma > NOISIEST:
        return Judgement("undetermined", "noisy", thresholds=edges)
    if share.width > WIDEST:
        return Judgement("undetermined", "wide_interval", thresholds=edges)
    if share.low >= KV_DOMINATES:
        return Judgement("attention_kv", "kv_dominates")
    if share.high > KV_IS_MINOR:
        return Judgement("mixed", "kv_straddles" if edges else "kv_between", thresholds=edges)
    return _without_cache(fit, at, anchors)


def _without_cache(fit: Fit, at: tuple[float, float], anchors: Anchors | None) -> Judgement:
    """Judge a step whose cache is minor, by what else it spends its time on."""
    routed = fit.basis.weights_kind == "distinct_experts"
    step = fit.share_of((0, 1) if routed else (0,), *at)
    if step.low >= STEP_DOMINATES:
        return Judgement("weights", "step_dominates", _split(anchors))
    if step.high < STEP_DOMINATES:
        compute = None if anchors is None else anchors.sequence
        if compute is not None and compute.low <= SLOW_COMPUTE:
            return Judgement("weights", "sequences_compute", "compute")
        return Judgement("service", "neither_helps")
    return Judgement("undetermined", "step_straddles")


def _split(anchors: Anchors | None) -> Suspect | None:
    constant = None if anchors is None else anchors.constant
    if constant is None:
        return None
    if constant.high <= LATE:
        return "weights"
    return "scheduling" if constant.low > LATE else None
