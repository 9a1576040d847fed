"""Distributions of prompt and answer lengths."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ledgerkit._data import data_path
from ledgerkit.errors import WorkloadError
from ledgerkit.spec._base import finite_number, whole_number

__all__ = ["Lengths", "as_lengths"]

Ints = npt.NDArray[np.int64]
LARGEST = 1 << 40


@dataclass(frozen=True, slots=True)
class Lengths:
    """Lengths in tokens, at least 1: draws are rounded and, if ``largest`` is given, capped.

    Examples
    --------
    >>> import numpy as np
    >>> draws = Lengths.exponential(128, largest=512).draw(np.random.default_rng(0), 4)
    >>> draws.tolist()
    [87, 131, 3, 1]
    """

    components: tuple[tuple[float, str, float, float], ...]
    """Mixture: weight, kind (fixed, exponential, lognormal, value), scale, shape."""
    largest: int = LARGEST

    @classmethod
    def fixed(cls, tokens: int) -> Lengths:
        """Every length is the same."""
        return cls(((1.0, "fixed", _tokens("tokens", tokens), 0.0),))

    @classmethod
    def exponential(cls, mean: float, *, largest: int = LARGEST) -> Lengths:
        """Exponential with this mean before rounding and capping."""
        return cls(((1.0, "exponential", _tokens("mean", mean), 0.0),), _capped(largest))

    @classmethod
    def lognormal(cls, mean: float, variation: float, *, largest: int = LARGEST) -> Lengths:
        """Lognormal with this mean and coefficient of variation, before rounding and capping."""
        wide = finite_number(WorkloadError, "variation", variation, 0.0, 1e3, above=True)
        sigma = math.sqrt(math.log(1.0 + wide**2))
        median = _tokens("mean", mean) / math.exp(sigma**2 / 2.0)
        return cls(((1.0, "lognormal", median, sigma),), _capped(largest))

    @classmethod
    def empirical(cls, tokens: Sequence[float], weights: Sequence[float] | None = None) -> Lengths:
        """Draw from observed lengths."""
        try:
            lengths = list(tokens)
            counts = [1.0] * len(lengths) if weights is None else list(weights)
        except TypeError:
            raise WorkloadError("lengths to draw from are a list", given=tokens,
                                allowed="numbers of tokens, and their weights",
                                fix="pass [512, 4096]") from None  # fmt: skip
        if not lengths:
            raise WorkloadError("no lengths to draw from", given=tokens, allowed="at least one",
                                fix="pass the lengths that were seen")  # fmt: skip
        if len(counts) != len(lengths):
            raise WorkloadError("one weight for each length", given=len(counts),
                                allowed=str(len(lengths)), fix="leave weights out")  # fmt: skip
        return cls(tuple(
            (_weight(w), "fixed", _tokens("tokens", t), 0.0)
            for t, w in zip(lengths, counts, strict=True)
        ))  # fmt: skip

    @classmethod
    def preset(cls, name: str) -> Lengths:
        """Built-in distribution, fitted to a public trace: see ``data/length_presets.csv``.

        Names: ``azure-code-prompt``, ``azure-code-output``, ``azure-conversation-prompt``,
        ``azure-conversation-output``.
        """
        known = _presets()
        if name not in tuple(known):
            raise WorkloadError("unknown preset of lengths", given=name, allowed=", ".join(known),
                                fix="use one of these names")  # fmt: skip
        return known[name]

    def draw(self, generator: np.random.Generator, count: int) -> Ints:
        """Draw ``count`` lengths."""
        if len(self.components) == 1:
            which = np.zeros(count, np.int64)
        else:
            weights = np.array([part[0] for part in self.components])
            edges = np.cumsum(weights / weights.sum())
            which = np.minimum(np.searchsorted(edges, generator.random(count), side="right"),
                               len(weights) - 1)  # fmt: skip
        scale = np.array([part[2] for part in self.components])[which]
        if all(part[1] == "fixed" for part in self.components):
            found = scale
        elif self.components[0][1] == "exponential":
            found = scale * generator.exponential(1.0, count)
        else:
            shape = np.array([part[3] for part in self.components])[which]
            found = scale * np.exp(shape * generator.standard_normal(count))
        draws: Ints = np.clip(np.rint(found), 1, self.largest).astype(np.int64)
        return draws


def _weight(value: Any) -> float:
    return finite_number(WorkloadError, "weights", value, above=True)


def _capped(largest: Any) -> int:
    return whole_number(WorkloadError, "largest", largest, most=LARGEST)


def _tokens(name: str, value: Any) -> float:
    return finite_number(WorkloadError, name, value, 0.0, float(LARGEST), above=True)


@cache
def _presets() -> dict[str, Lengths]:
    found: dict[str, list[tuple[float, str, float, float]]] = {}
    largest: dict[str, int] = {}
    with data_path("length_presets.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            part = (float(row["weight"]), "lognormal", float(row["median_tokens"]),
                    float(row["sigma"]))  # fmt: skip
            found.setdefault(row["preset"], []).append(part)
            largest[row["preset"]] = int(row["largest_tokens"])
    return {name: Lengths(tuple(parts), largest[name]) for name, parts in found.items()}


def as_lengths(given: Any) -> Lengths:
    """Take a number, the name of a preset or ``Lengths``."""
    if isinstance(given, Lengths):
        return given
    if isinstance(given, str):
        return Lengths.preset(given)
    what = {"allowed": f"1 to {LARGEST} tokens, the name of a preset, lk.Lengths",
            "fix": "give a whole number of tokens"}  # fmt: skip
    if isinstance(given, bool) or not isinstance(given, int | float | np.integer):
        raise WorkloadError("lengths are a number, the name of a preset or lk.Lengths",
                            given=given, **what)  # fmt: skip
    if not 1 <= given <= LARGEST or given != int(given):
        raise WorkloadError("a length is a whole number of tokens", given=given, **what)
    return Lengths.fixed(int(given))
