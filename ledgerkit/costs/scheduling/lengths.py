r"""Output lengths: what a mechanism that lives on their spread needs to know.

* mean resident output of a running request, with the age bias (a long answer is seen running more
  often than a short one): :math:`E[O (O + 1)] / (2 E[O])`, not :math:`E[O] / 2`;
* expected longest of B answers, and how many of B slots are still busy at each step.

Source: renewal theory (length-biased sampling); order statistics. Worked: exponential answers of
mean 500 hold 500 tokens; the longest of 32 of them is :math:`H_{32} = 4.06` means long.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from ledgerkit.costs.scheduling.entry import check
from ledgerkit.errors import WorkloadError
from ledgerkit.spec._base import LARGEST

Array = npt.NDArray[np.float64]
_WIDTH, _POINTS = 9.0, 4001


@dataclass(frozen=True)
class OutputLengths:
    """A distribution of output tokens.

    Made by ``fixed``, ``uniform``, ``exponential``, ``lognormal`` or ``empirical``.
    """

    kind: Literal["fixed", "uniform", "exponential", "lognormal", "empirical"]
    mean: float
    """Tokens."""
    variation: float
    """Coefficient of variation."""
    samples: tuple[float, ...] = ()

    @classmethod
    def fixed(cls, mean: float) -> OutputLengths:
        """All answers are equally long."""
        check("mean", mean, 1.0)
        return cls("fixed", float(mean), 0.0)

    @classmethod
    def uniform(cls, mean: float) -> OutputLengths:
        """From nothing to twice the mean."""
        check("mean", mean, 1.0)
        return cls("uniform", float(mean), 1.0 / math.sqrt(3.0))

    @classmethod
    def exponential(cls, mean: float) -> OutputLengths:
        """Each token may be the last with the same probability."""
        check("mean", mean, 1.0)
        return cls("exponential", float(mean), 1.0)

    @classmethod
    def lognormal(cls, mean: float, variation: float) -> OutputLengths:
        """Many short answers and a long tail; ``variation`` is standard deviation over mean."""
        check("mean", mean, 1.0)
        check("variation", variation, 1e-9)
        return cls("lognormal", float(mean), float(variation))

    @classmethod
    def empirical(cls, samples: Sequence[float]) -> OutputLengths:
        """Lengths as they were measured.

        Raises
        ------
        WorkloadError
            There are none, or one is not a length.
        """
        try:
            found = tuple(sorted(float(sample) for sample in samples))
        except (TypeError, ValueError, OverflowError):
            found = ()
        if not found or not all(1.0 <= sample <= LARGEST for sample in found):
            raise WorkloadError(
                "measured lengths are numbers of tokens", given=samples,
                allowed=f"1 to {LARGEST}, at least one of them", fix="leave empty answers out",
            )  # fmt: skip
        mean = math.fsum(found) / len(found)
        square = math.fsum(sample**2 for sample in found) / len(found)
        return cls("empirical", mean, math.sqrt(max(0.0, square / mean**2 - 1.0)), found)

    @property
    def resident(self) -> float:
        """Output tokens that a running request holds on average, age bias included.

        Examples
        --------
        >>> OutputLengths.exponential(500).resident, OutputLengths.lognormal(500, 2).resident
        (500.5, 1250.5)
        """
        return (self.mean * (1.0 + self.variation**2) + 1.0) / 2.0

    def longest(self, slots: int) -> float:
        """Expected longest of ``slots`` answers, in tokens.

        Examples
        --------
        >>> [round(OutputLengths.exponential(100).longest(b) / 100, 2) for b in (8, 32, 128)]
        [2.72, 4.06, 5.43]
        """
        return float(self.busy_steps(slots).sum())

    def busy_steps(self, slots: int) -> Array:
        """Steps at which exactly 1, 2 … ``slots`` of a static batch's slots still work.

        Parameters
        ----------
        slots : int
            Requests of the batch.

        Returns
        -------
        float64[slots]
            Sums to ``longest(slots)``; weighted by 1, 2 … it sums to ``slots · mean``.

        Examples
        --------
        >>> OutputLengths.fixed(100).busy_steps(3)
        array([  0.,   0., 100.])
        """
        check("slots", slots, 1)
        busy = np.arange(1, slots + 1, dtype=np.float64)
        match self.kind:
            case "fixed":
                return np.where(busy == slots, self.mean, 0.0)
            case "uniform":
                return np.full(slots, 2.0 * self.mean / (slots + 1.0))
            case "exponential":
                return self.mean / busy
            case "lognormal":
                return self._lognormal(slots)
        ends = np.array(self.samples)
        done = np.arange(len(ends)) / len(ends)
        found: Array = _still_busy(slots, done, 1.0 - done) @ np.diff(ends, prepend=0.0)
        return found

    def _lognormal(self, slots: int) -> Array:
        sigma = math.sqrt(math.log(1.0 + self.variation**2))
        centre = math.log(self.mean) - sigma**2 / 2.0
        z = np.linspace(-_WIDTH, _WIDTH + sigma, _POINTS)
        left = np.array([0.5 * math.erfc(-x / math.sqrt(2.0)) for x in z])
        right = np.array([0.5 * math.erfc(x / math.sqrt(2.0)) for x in z])
        tokens = np.exp(centre + sigma * z)
        weights = np.gradient(z) * sigma * tokens
        weights[[0, -1]] /= 2.0
        found = _still_busy(slots, left, right) @ weights
        found[-1] += tokens[0]  # before the first answer could have ended
        return found


def _still_busy(slots: int, done: Array, left: Array) -> Array:
    """Probability that exactly 1, 2 … slots work, where each has ended with ``done``."""
    busy = np.arange(1, slots + 1, dtype=np.float64)[:, None]
    ways = np.array(
        [math.lgamma(slots + 1) - math.lgamma(b + 1) - math.lgamma(slots - b + 1)
         for b in range(1, slots + 1)]
    )[:, None]  # fmt: skip
    with np.errstate(divide="ignore", invalid="ignore"):
        # where nothing can have ended, all slots work: 0 · log 0 is 0
        ended = np.where(busy == slots, 0.0, (slots - busy) * np.log(done))
        alive = busy * np.log(left)
    return np.exp(ways + ended + alive)
