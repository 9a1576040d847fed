"""Where two ledgers cost the same: a scan for changes of sign, then bisection."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from ledgerkit.errors import LedgerError, TechniqueError
from ledgerkit.spec.axes import Phase, Resource
from ledgerkit.text import get
from ledgerkit.text.numbers import context, count, si

if TYPE_CHECKING:
    from ledgerkit._techniques.double_entry import Transfer

__all__ = ["BreakEven", "axis_value", "counts", "find", "sample"]

_TOKENS = ("context", "prompt_tokens", "query_tokens", "output_tokens", "cached_tokens")
_WHOLE = (*_TOKENS, "concurrency")
_SAMPLES = 25
_BISECTIONS = 60

Sign = Literal["gain", "loss", "even"]


@dataclass(frozen=True, slots=True)
class BreakEven:
    """Where a technique turns, along one axis."""

    axis: str
    resource: Resource
    phase: Phase
    accounts: tuple[str, ...] | None
    crossing: float | None
    """Where both ledgers cost the same; None = nowhere between ``low`` and ``high``."""
    first: float | None
    """The first value with the sign after the crossing: on axes that count, a whole number."""
    before: Sign
    """Below the crossing."""
    after: Sign
    """Above it."""
    low: float
    high: float
    more: tuple[float, ...]
    """Further crossings."""
    concurrency: int
    prompt_tokens: int

    def words(self, language: str | None = None) -> str:
        """One sentence.

        Examples
        --------
        >>> BreakEven(
        ...     "context",
        ...     "compute",
        ...     "decode",
        ...     None,
        ...     2177.1,
        ...     2178.0,
        ...     "loss",
        ...     "gain",
        ...     1.0,
        ...     4096.0,
        ...     (),
        ...     8,
        ...     1024,
        ... ).words("en")
        'compute, decode, concurrency 8: from context 2,178 on a gain, below a loss'
        """
        fields = {
            "axis": _axis_word(self.axis, language),
            "resource": get(f"resource.{self.resource}", language),
            "phase": get(f"phase.{self.phase}", language),
            "point": self._point(language),
            "low": axis_value(self.axis, self.low, exact=True),
            "high": axis_value(self.axis, self.high, exact=True),
        }
        if self.first is None:
            return get(f"transfer.always.{self.before}", language, **fields)
        return get(f"transfer.turns.{self.before}_{self.after}", language,
                   value=axis_value(self.axis, self.first, exact=True), **fields)  # fmt: skip

    def _point(self, language: str | None) -> str:
        """Where the other axis stands: the prompt where concurrency moves."""
        if self.axis == "concurrency":
            return get("transfer.at.prompt", language, value=context(self.prompt_tokens))
        return get("transfer.at.concurrency", language, value=count(self.concurrency))

    def __str__(self) -> str:
        return self.words()


def _axis_word(axis: str, language: str | None) -> str:
    try:
        return get(f"transfer.axis.{axis}", language)
    except KeyError:
        return axis


def axis_value(axis: str, value: float, *, exact: bool = False) -> str:
    """Write a value along an axis, with its unit; ``exact``: 2,634 tokens, not 2.6K.

    Examples
    --------
    >>> axis_value("context", 8192), axis_value("context", 2634, exact=True)
    ('8K', '2,634')
    >>> axis_value("link_bytes_per_s", 64e9), axis_value("reuse_interval_s", 10.7)
    ('64.0 GB/s', '10.7 s')
    """
    if axis.endswith("_bytes_per_s"):
        return si(value, "B/s")
    if axis.endswith("_s"):
        return f"{value:,.3g} s" if value < 1000 else f"{count(value)} s"
    if axis in _TOKENS and not exact:
        return context(value)
    return count(value) if float(value).is_integer() else f"{value:.4g}"


def find(
    transfer: Transfer,
    axis: str,
    resource: Resource,
    phase: Phase,
    accounts: frozenset[str] | None,
    between: tuple[float, float] | None,
    *,
    weights: bool,
) -> BreakEven:
    """Scan an axis on a geometric grid and bisect where the sign changes.

    Two crossings between neighbouring samples are not seen: give ``between`` to look closer.
    """
    whole = counts(transfer, axis)
    low, high = between or _range(transfer, axis, phase)
    if not low < high:
        raise TechniqueError("a break-even needs a range", given=(low, high),
                             allowed="low < high", fix="give between=(low, high)")  # fmt: skip

    def difference(value: float) -> float | None:
        """After minus before; None where the point cannot be built."""
        try:
            there = transfer.moved(axis, value, phase)
        except TechniqueError:
            raise
        except LedgerError:
            return None
        old, new = (
            side.total(phase, resource, accounts, weights=weights)
            for side in (there.before, there.after)
        )
        # what is left of equal sums added in another order is no difference
        return 0.0 if abs(new - old) <= 1e-12 * max(abs(new), abs(old)) else new - old

    grid = sample(low, high, whole=whole)
    known = [(x, d) for x in grid if (d := difference(x)) is not None]
    if not known:
        raise TechniqueError(f"nothing can be evaluated along {axis}", given=(low, high),
                             fix="give between=(low, high)")  # fmt: skip
    signs = [(x, d) for x, d in known if d]
    crossings: list[tuple[float, float]] = []
    for (x0, d0), (x1, d1) in pairwise(signs):
        if (d0 < 0) != (d1 < 0):
            crossings.append(_bisect(difference, (x0, d0), (x1, d1), whole=whole))
    first_sign: Sign = _sign(signs[0][1]) if signs else "even"
    opposite: Sign = "loss" if first_sign == "gain" else "gain"
    return BreakEven(
        axis=axis, resource=resource, phase=phase,
        accounts=None if accounts is None else tuple(sorted(accounts)),
        crossing=crossings[0][0] if crossings else None,
        first=crossings[0][1] if crossings else None,
        before=first_sign, after=opposite if crossings else first_sign,
        low=known[0][0], high=known[-1][0],
        more=tuple(value for value, _ in crossings[1:]),
        concurrency=transfer.start.point.workload.concurrency,
        prompt_tokens=transfer.start.point.workload.prompt_tokens,
    )  # fmt: skip


def _sign(difference: float) -> Sign:
    return "gain" if difference < 0 else "loss"


def _range(transfer: Transfer, axis: str, phase: Phase) -> tuple[float, float]:
    """All that the model allows, or three orders of magnitude around a setting."""
    point = transfer.start.point
    work, layout = point.workload, point.deployment
    most = (layout.max_model_len or point.model.max_position_embeddings) - work.output_tokens
    # decode is priced in the middle of the answer, memory at its end
    more = {"prefill": 0, "decode": work.output_tokens // 2, "hold": work.output_tokens}[phase]
    first = 1 + work.cached_tokens
    seats = layout.max_num_seqs
    known: dict[str, tuple[float, float]] = {
        "context": (first + more, most + more),
        "prompt_tokens": (first, most),
        "query_tokens": (1, most - work.cached_tokens),
        "output_tokens": (1, most + work.output_tokens - work.prompt_tokens),
        "cached_tokens": (0, work.prompt_tokens - 1),
        "concurrency": (1, seats * layout.dp_attention if seats else 4096),
        "link_bytes_per_s": (1e8, 1e13),
        "acceptance": (0.0, 1.0),
        "reuse_interval_s": (0.01, 1e5),
    }
    if axis in known:
        low, high = known[axis]
        return float(low), float(high)
    for step in transfer.steps:
        value = step.settings.get(axis)
        if isinstance(value, int | float) and value > 0:
            return max(value / 1000.0, float(type(value) is int)), value * 1000.0
    raise TechniqueError("unknown axis", given=axis, fix="use axis='context'")


def counts(transfer: Transfer, axis: str) -> bool:
    """Whether only whole numbers make sense along an axis."""
    own = [step.settings[axis] for step in transfer.steps if axis in step.settings]
    return axis in _WHOLE or any(type(value) is int for value in own)


def sample(low: float, high: float, *, whole: bool) -> list[float]:
    """Where to look along an axis: geometric where it can be, with both ends.

    Examples
    --------
    >>> sample(1, 3, whole=True)
    [1.0, 2.0, 3.0]
    """
    if low > 0 and high / low > 4:
        ratio = high / low
        found = [low * ratio ** (n / (_SAMPLES - 1)) for n in range(_SAMPLES)]
    else:
        found = [low + (high - low) * n / (_SAMPLES - 1) for n in range(_SAMPLES)]
    found[0], found[-1] = low, high
    if whole:
        found = [float(value) for value in sorted({round(value) for value in found})]
    return found


def _bisect(
    difference: Callable[[float], float | None],
    left: tuple[float, float],
    right: tuple[float, float],
    *,
    whole: bool,
) -> tuple[float, float]:
    """Crossing and first value beyond it."""
    (x0, d0), (x1, d1) = left, right
    for _ in range(_BISECTIONS):
        if (whole and x1 - x0 <= 1) or x1 - x0 <= 1e-9 * abs(x1):
            break
        middle = math.floor((x0 + x1) / 2) if whole else (x0 + x1) / 2
        there = difference(middle)
        if there is None:
            break
        if there == 0:
            return middle, middle + 1 if whole else middle
        if (there < 0) == (d0 < 0):
            x0, d0 = middle, there
        else:
            x1, d1 = middle, there
    return x0 + (x1 - x0) * d0 / (d0 - d1), x1
