r"""Speculative decoding and MTP: fewer steps for larger ones.

With γ draft tokens of which the i-th is accepted with probability :math:`α_i` once those before it
were, a step yields

.. math:: E = \sum_{j=0}^{γ} \prod_{i \le j} α_i = (1 - α^{γ+1}) / (1 - α)

tokens, the bonus token of the verifying step included. The gain in decode time is
:math:`E \, t(B) / (t(B; γ + 1) + γ \, t_{draft}(B) + t_{reject})`. Sparse experts are worst at one
sequence: γ + 1 tokens read :math:`D((γ + 1) B) / D(B)` times as many.

Source: Leviathan et al. (arXiv 2211.17192). Worked: α = 0.8, γ = 4: 3.362 tokens (2.362 without the
bonus token); one MTP token at α 0.85 to 0.90: 1.85 to 1.90; 256 experts, 8 per token, verifying 4:
3.82 times the expert bytes at B = 1, 2.18 at 16, 1.54 at 32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ledgerkit.costs.scheduling.entry import SchedulingEntry, Value, booked, check
from ledgerkit.errors import DeploymentError

Acceptance = float | Sequence[float]


@dataclass(frozen=True, slots=True)
class Speculation:
    """What drafting is worth at one point."""

    tokens_per_step: float
    """Expected, bonus token included."""
    speedup: float
    """Seconds of a token without drafting over those with it."""
    entries: tuple[SchedulingEntry, ...]


def acceptances(acceptance: Acceptance, draft_tokens: int) -> tuple[float, ...]:
    """Acceptance of each draft position, given that those before it were accepted.

    Examples
    --------
    >>> acceptances(0.8, 3), acceptances([0.9, 0.7], 2)
    ((0.8, 0.8, 0.8), (0.9, 0.7))
    """
    check("draft_tokens", draft_tokens, 0)
    try:
        found = (
            (float(acceptance),) * draft_tokens
            if isinstance(acceptance, int | float)
            else tuple(float(value) for value in acceptance)
        )
    except (TypeError, ValueError, OverflowError):
        raise DeploymentError(
            "acceptance is a share, or one for each draft token", given=acceptance,
            allowed="numbers of 0 to 1", fix="give acceptance=0.8",
        ) from None  # fmt: skip
    check("number of acceptances", len(found), draft_tokens, draft_tokens)
    for value in found:
        check("acceptance", value, 0.0, 1.0)
    return found


def tokens_per_step(acceptance: Acceptance, draft_tokens: int) -> float:
    """Expected tokens of one verifying step, bonus token included.

    Examples
    --------
    >>> round(tokens_per_step(0.8, 4), 3), round(tokens_per_step([0.85], 1), 2)
    (3.362, 1.85)
    """
    return math.fsum(_reached(acceptances(acceptance, draft_tokens)))


def _reached(rates: tuple[float, ...]) -> tuple[float, ...]:
    """Probability that 0, 1 … γ draft tokens in a row are accepted."""
    found = [1.0]
    for rate in rates:
        found.append(found[-1] * rate)
    return tuple(found)


def speculative_decoding(
    *,
    acceptance: Acceptance,
    draft_tokens: int,
    step_s: float,
    verify_s: float,
    draft_step_s: float,
    reject_s: float = 0.0,
    flop_per_token: float = 0.0,
    draft_resident_bytes: float = 0.0,
    lookahead_bytes_per_token: float = 0.0,
) -> Speculation:
    """Compare decoding with and without a draft, per output token of one step's sequences.

    Parameters
    ----------
    acceptance : float or sequence of float
        Of each draft position, given that those before it were accepted.
    draft_tokens : int
        γ.
    step_s, verify_s : float
        Seconds of a decode step, and of one that verifies γ drafts for each sequence.
    draft_step_s : float
        Seconds of one draft step.
    reject_s : float
        Seconds of the rejection sampler.
    flop_per_token : float
        FLOP of the model for one token.
    draft_resident_bytes : float
        Weights and cache of the draft.
    lookahead_bytes_per_token : float
        Cache bytes of one token: γ slots stay free for what may be rejected.

    Returns
    -------
    Speculation

    Examples
    --------
    >>> found = speculative_decoding(
    ...     acceptance=0.8, draft_tokens=4, step_s=10e-3, verify_s=10e-3, draft_step_s=1e-3
    ... )
    >>> round(found.speedup, 2)
    2.4
    """
    rates = acceptances(acceptance, draft_tokens)
    for name, value in (("step_s", step_s), ("verify_s", verify_s)):
        check(name, value, 1e-12)
    for name, value in (("draft_step_s", draft_step_s), ("reject_s", reject_s)):
        check(name, value, 0.0)
    reached = _reached(rates)
    expected = math.fsum(reached)
    values: dict[str, Value] = {"reached": reached}
    total = "sum(share for share in reached)"
    drafts = {**values, "draft_tokens": draft_tokens}
    paid = verify_s + draft_tokens * draft_step_s + reject_s
    source = "expected tokens of a verifying step, bonus token included (arXiv 2211.17192)"
    entries = booked(
        SchedulingEntry(
            "steps not run", "decode", "scheduling", "launch", "steps", 1.0 / expected - 1.0,
            "token", f"1 / {total} - 1", values, source,
        ),
        SchedulingEntry(
            "time of steps not run", "decode", "scheduling", "launch", "time",
            step_s / expected - step_s, "token", f"step_s / {total} - step_s",
            {**values, "step_s": step_s}, source,
        ),
        SchedulingEntry(
            "verifying", "decode", "scheduling", "draft", "time", (verify_s - step_s) / expected,
            "token", f"(verify_s - step_s) / {total}",
            {**values, "verify_s": verify_s, "step_s": step_s},
            "a step with more query tokens for each sequence",
        ),
        SchedulingEntry(
            "drafting", "decode", "scheduling", "draft", "time",
            draft_tokens * draft_step_s / expected, "token",
            f"draft_tokens * draft_step_s / {total}",
            {**drafts, "draft_step_s": draft_step_s}, "draft steps run one after another",
        ),
        SchedulingEntry(
            "rejection", "decode", "scheduling", "draft", "time", reject_s / expected, "token",
            f"reject_s / {total}", {**values, "reject_s": reject_s}, "rejection sampler",
        ),
        SchedulingEntry(
            "rejected tokens", "decode", "scheduling", "draft", "compute",
            flop_per_token * ((draft_tokens + 1) / expected - 1.0), "token",
            f"flop_per_token * ((draft_tokens + 1) / {total} - 1)",
            {**drafts, "flop_per_token": flop_per_token}, "work on tokens that are thrown away",
        ),
        SchedulingEntry(
            "draft weights and cache", "hold", "scheduling", "draft", "resident",
            draft_resident_bytes, "device", "draft_bytes", {"draft_bytes": draft_resident_bytes},
            "stored bytes of the draft", "exact",
        ),
        SchedulingEntry(
            "slots for tokens not yet accepted", "hold", "scheduling", "draft", "resident",
            draft_tokens * lookahead_bytes_per_token, "sequence", "draft_tokens * kv_bytes",
            {"draft_tokens": draft_tokens, "kv_bytes": lookahead_bytes_per_token},
            "the cache of rejected tokens is written before it is given up",
        ),
    )  # fmt: skip
    return Speculation(expected, expected * step_s / paid, entries)


def expert_growth(experts: int, per_token: int, sequences: int, draft_tokens: int) -> float:
    """Factor by which verifying multiplies the distinct experts of a step.

    Examples
    --------
    >>> [round(expert_growth(256, 8, b, 3), 2) for b in (1, 16, 32, 512)]
    [3.82, 2.18, 1.54, 1.0]
    """
    check("experts_per_token", per_token, 1, experts)
    check("sequences", sequences, 1)
    miss = 1.0 - per_token / experts
    return (1.0 - miss ** (sequences * (draft_tokens + 1))) / (1.0 - miss**sequences)


def crossover(speedup: Callable[[int], float], most: int) -> int | None:
    """Fewest sequences at which drafting no longer pays; None where it pays up to ``most``.

    Parameters
    ----------
    speedup : callable
        Of the number of sequences. Between the numbers that are tried it is taken to fall.
    most : int
        Sequences that the deployment holds.

    Examples
    --------
    >>> crossover(lambda sequences: 2.0 - sequences / 100, 256)
    100
    """
    check("most", most, 1)
    tried = [1]
    while tried[-1] < most:
        tried.append(min(2 * tried[-1], most))
    below = next((b for b in tried if speedup(b) <= 1.0), None)
    if below is None or below == 1:
        return below
    low, high = tried[tried.index(below) - 1], below
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if speedup(middle) <= 1.0 else (middle, high)
    return high
