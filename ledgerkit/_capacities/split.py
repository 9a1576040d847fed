"""Pools of their own for windows and for states (SGLang).

The memory for the cache is divided once, at start. With F tokens in the pool of the layers that
keep everything, windowed layers get ``window_pool_ratio · F`` tokens, and states get
``state_pool_ratio`` bytes for each byte of all others.

Source: sgl-project/sglang, ``ServerArgs.swa_full_tokens_ratio`` (0.8) and
``mamba_full_memory_ratio`` (0.9). Seen in a log of Qwen3.5-9B on two devices: 327,310 tokens take
4.99 GiB, and 186 states 4.46 GiB.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ledgerkit._capacities.kinds import LayerKind, compressed_layers


@dataclass(frozen=True, slots=True)
class SplitPools:
    """How one device divides its memory, by what layers keep."""

    growing_bytes: float
    """Bytes per token of the layers that keep all tokens."""
    window_bytes: float
    """Bytes per token of the windowed layers, as if they kept it."""
    window: int
    """Longest window in tokens; 0 = no windowed layer."""
    state_bytes: float
    """Bytes of the states of one sequence."""
    window_ratio: float
    state_ratio: float

    @classmethod
    def of(cls, kinds: list[LayerKind], window_ratio: float, state_ratio: float) -> SplitPools:
        """Gather the layers of a device.

        Raises
        ------
        CapacityError
            Compressed layers, whose place in these pools no log shows.
        """
        if any(kind.name == "compressor" for kind in kinds):
            raise compressed_layers()
        windowed = [kind for kind in kinds if kind.window is not None]
        return cls(
            growing_bytes=sum(
                k.layers * k.token_bytes for k in kinds if k.window is None and not k.state_bytes
            ),
            window_bytes=sum(k.layers * k.token_bytes for k in windowed),
            window=max((kind.window or 0 for kind in windowed), default=0),
            state_bytes=sum(kind.layers * kind.state_bytes for kind in kinds),
            window_ratio=window_ratio,
            state_ratio=state_ratio,
        )

    def tokens(self, pool_bytes: float) -> int:
        """Tokens of the pool of the layers that keep everything: what the log states."""
        per_token = self.growing_bytes or self.window_bytes
        if self.growing_bytes and self.window_bytes:
            per_token += self.window_ratio * self.window_bytes
        if not per_token:
            return 0
        return max(0, math.floor((pool_bytes - self._state_room(pool_bytes)) / per_token))

    def slots(self, pool_bytes: float) -> int | None:
        """Sequences whose states the pool holds; None without states."""
        if not self.state_bytes:
            return None
        # one more slot is made than is used: padded batches write there
        return max(0, math.floor(self._state_room(pool_bytes) / self.state_bytes) - 1)

    def concurrency(self, pool_bytes: float, tokens: int) -> float:
        """Sequences of this length that all pools hold."""
        limits: list[float] = []
        growing = self.tokens(pool_bytes)
        if self.growing_bytes:
            limits.append(growing / tokens)
        if self.window_bytes:
            held = growing * (self.window_ratio if self.growing_bytes else 1.0)
            limits.append(math.floor(held) / min(tokens, self.window))
        slots = self.slots(pool_bytes)
        if slots is not None:
            limits.append(float(slots))
        return min(limits, default=math.inf)

    def longest(self, pool_bytes: float, most: int) -> int:
        """Most tokens of a single sequence, at most ``most`` where nothing grows."""
        slots = self.slots(pool_bytes)
        if slots == 0:
            return 0
        return self.tokens(pool_bytes) if self.growing_bytes else most

    def _state_room(self, pool_bytes: float) -> float:
        if not self.state_bytes:
            return 0.0
        if not self.growing_bytes + self.window_bytes:
            return pool_bytes
        return pool_bytes * self.state_ratio / (1 + self.state_ratio)
