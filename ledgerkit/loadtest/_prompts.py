"""Prompts of a wanted length that no prefix cache has seen.

The first words of every prompt are a salt of its own, so that not even the first cache block is
shared. Where the server takes token ids, the length is exact; for text it is calibrated by what
the server counts.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, replace

__all__ = ["Prompts"]

# fmt: off
_WORDS = (
    "the", "river", "keeps", "its", "own", "time", "and", "every", "stone", "under", "water",
    "turns", "a", "little", "while", "town", "above", "sleeps", "or", "wakes", "by", "bells",
    "that", "nobody", "rings", "for", "same", "reason", "twice", "so", "child", "counts", "boats",
    "from", "bridge", "writes", "down", "which", "came", "first", "was", "red", "one", "carried",
    "apples", "had", "no", "name", "at", "all",
)
# fmt: on
_LOWEST_ID = 1000  # below it live special tokens and single bytes


@dataclass(frozen=True)
class Prompts:
    """A source of prompts.

    Attributes
    ----------
    seed : int
        Of the plan.
    salt : str
        Of this test: the same plan sends other prompts the next time.
    vocab_size : int or None
        With it, prompts are token ids; without, text.
    tokens_per_word, overhead_tokens : float
        What the server counts for text: ``overhead + words · tokens_per_word``.
    """

    seed: int
    salt: str = ""
    vocab_size: int | None = None
    tokens_per_word: float = 1.0
    overhead_tokens: float = 0.0

    def _random(self, *name: object) -> random.Random:
        key = hashlib.sha256(repr((self.seed, self.salt, *name)).encode()).digest()
        return random.Random(key)  # noqa: S311  reproducible prompts, no secrets

    def token_ids(self, tokens: int, *name: object) -> list[int]:
        """Exactly ``tokens`` ids, different for every name.

        Examples
        --------
        >>> source = Prompts(seed=0, vocab_size=49152)
        >>> len(source.token_ids(100, "1K x 1", 0, 0))
        100
        >>> source.token_ids(3, "a") == source.token_ids(3, "a")
        True
        """
        top = self.vocab_size or 2 * _LOWEST_ID
        low = min(_LOWEST_ID, top // 4)
        draw = self._random("ids", *name)
        return [draw.randrange(low, max(low + 1, int(top * 0.9))) for _ in range(tokens)]

    def text(self, tokens: int, *name: object) -> str:
        """Text of about ``tokens`` tokens, salted at its start.

        Examples
        --------
        >>> Prompts(seed=0).text(20, "1K x 1", 0, 0) == Prompts(seed=0).text(20, "1K x 1", 0, 1)
        False
        """
        words = max(1, round((tokens - self.overhead_tokens) / self.tokens_per_word))
        draw = self._random("text", *name)
        chosen = [draw.choice(_WORDS) for _ in range(words)]
        # a random order of common words is salt enough: 16 of 50 words give 10^27 first blocks
        return " ".join(chosen)

    def calibrated(self, counted: dict[int, int]) -> Prompts:
        """Learn the server's count from two prompts: words sent → tokens counted.

        Examples
        --------
        >>> Prompts(seed=0).calibrated({64: 70, 256: 262}).overhead_tokens
        6.0
        """
        (few, low), (many, high) = sorted(counted.items())
        slope = (high - low) / (many - few)
        if not 0.2 <= slope <= 5.0:
            return self
        return replace(self, tokens_per_word=slope, overhead_tokens=low - slope * few)
