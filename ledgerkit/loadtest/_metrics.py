"""What a server tells about itself while it is tested: Prometheus text of three engines."""

from __future__ import annotations

import asyncio
import math
import re
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from ledgerkit.loadtest._page import PageError, fetch

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

__all__ = ["Sampler", "Window", "parse"]

# vLLM v1 (docs/usage/metrics.md), SGLang (docs/references/production_metrics.md),
# llama.cpp (tools/server/README.md); the first name that a server exposes counts
_NAMES: dict[str, tuple[str, ...]] = {
    "running": (
        "vllm:num_requests_running",
        "sglang:num_running_reqs",
        "llamacpp:requests_processing",
    ),
    "waiting": (
        "vllm:num_requests_waiting",
        "sglang:num_queue_reqs",
        "llamacpp:requests_deferred",
    ),
    "kv_usage": (
        "vllm:kv_cache_usage_perc",
        "vllm:gpu_cache_usage_perc",
        "sglang:token_usage",
        "llamacpp:kv_cache_usage_ratio",
    ),
    "preemptions": ("vllm:num_preemptions_total", "sglang:num_retracted_reqs_total"),
    "prefix_hits": (
        "vllm:prefix_cache_hits_total",
        "vllm:gpu_prefix_cache_hits_total",
        "sglang:cached_tokens_total",
        "llamacpp:prompt_tokens_cached_total",
    ),
    "itl_sum": (
        "vllm:inter_token_latency_seconds_sum",
        "vllm:time_per_output_token_seconds_sum",
        "sglang:inter_token_latency_seconds_sum",
        "llamacpp:tokens_predicted_seconds_total",  # of each sequence, added up
    ),
    "itl_count": (
        "vllm:inter_token_latency_seconds_count",
        "vllm:time_per_output_token_seconds_count",
        "sglang:inter_token_latency_seconds_count",
        "llamacpp:tokens_predicted_total",
    ),
}
_PATIENCE_S = 5.0
_COUNTERS = frozenset({"preemptions", "prefix_hits", "itl_sum", "itl_count"})
_LABELS = r'\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\}'
_SAMPLE = re.compile(rf"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:{_LABELS})?\s+(\S+)")


def parse(text: str) -> dict[str, float]:
    """Read the gauges and counters that matter.

    Labels (ranks, models) are summed, but of cache usage the fullest rank counts.

    Examples
    --------
    >>> parse('vllm:num_requests_running{model_name="m"} 3.0')
    {'running': 3.0}
    """
    sums: dict[str, float] = {}
    most: dict[str, float] = {}
    for line in text.splitlines():
        sample = _SAMPLE.match(line)
        if sample is None:
            continue
        try:
            value = float(sample[2])
        except ValueError:
            continue
        if math.isfinite(value):
            sums[sample[1]] = sums.get(sample[1], 0.0) + value
            most[sample[1]] = max(most.get(sample[1], value), value)
    found = {}
    for name, candidates in _NAMES.items():
        values = most if name == "kv_usage" else sums
        for candidate in candidates:
            if candidate in values:
                found[name] = values[candidate]
                break
    return found


@dataclass
class Window:
    """What was sampled during one run of a cell; None where a server does not tell."""

    running_max: float | None = None
    kv_usage_peak: float | None = None
    preemptions: float | None = None
    prefix_hits: float | None = None
    peak_memory_bytes: float | None = None
    engine_itl_s: float | None = None


@dataclass
class Sampler:
    """Polls a metrics page, and a function of the user, in the background.

    Attributes
    ----------
    client : httpx.AsyncClient
    url : str or None
        The metrics page; None = do not ask.
    memory : callable, optional
        Returns the bytes in use on the fullest device, or None.
    every_s : float
    """

    client: httpx.AsyncClient
    url: str | None
    memory: Callable[[], float | None] | None = None
    every_s: float = 0.5
    _samples: list[dict[str, float]] = field(default_factory=list)
    _bytes: list[float] = field(default_factory=list)
    _task: asyncio.Task[None] | None = None
    _quiet: threading.Event = field(default_factory=threading.Event)
    memory_error: str | None = None
    """What the function of the user raised; it is not called again."""

    async def probe(self) -> bool:
        """Ask once; a server without metrics is not asked again."""
        if self.url is not None and not await self._sample():
            self.url = None
        return self.url is not None

    async def _sample(self) -> bool:
        if self.url is None:
            return False
        try:
            status, page = await fetch(self.client, self.url, _PATIENCE_S)
        except PageError:
            return False
        found = parse(page.decode("utf-8", "replace")) if status == 200 else {}
        if found:
            self._samples.append(found)
        return bool(found)

    def _watch_memory(self, memory: Callable[[], float | None], quiet: threading.Event) -> None:
        while not quiet.is_set():
            try:
                used = memory()
            except Exception as problem:  # noqa: BLE001  a function of the user may raise anything
                self.memory_error = f"{type(problem).__name__}: {problem}"
                return
            if used is not None and not quiet.is_set():
                self._bytes.append(float(used))
            quiet.wait(self.every_s)

    async def _poll(self) -> None:
        while True:
            await self._sample()
            await asyncio.sleep(self.every_s)

    async def __aenter__(self) -> Self:
        self._samples.clear()
        self._bytes = []
        if self.url is not None:
            await self._sample()
            self._task = asyncio.create_task(self._poll())
        if self.memory is not None and self.memory_error is None:
            self._quiet = threading.Event()
            # a thread that nobody waits for: a function that hangs must not hang the test
            threading.Thread(
                target=self._watch_memory, args=(self.memory, self._quiet), daemon=True
            ).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._quiet.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
            await self._sample()

    def window(self) -> Window:
        """Summarise the samples since the block was entered."""
        seen: dict[str, list[float]] = {}
        for sample in self._samples:
            for name, value in sample.items():
                seen.setdefault(name, []).append(value)
        grown = {name: seen[name][-1] - seen[name][0] for name in _COUNTERS if name in seen}
        tokens = grown.get("itl_count", 0.0)
        return Window(
            engine_itl_s=grown["itl_sum"] / tokens if tokens > 0 and "itl_sum" in grown else None,
            running_max=max(seen["running"]) if "running" in seen else None,
            kv_usage_peak=max(seen["kv_usage"]) if "kv_usage" in seen else None,
            preemptions=grown.get("preemptions"),
            prefix_hits=grown.get("prefix_hits"),
            peak_memory_bytes=max(self._bytes) if self._bytes else None,
        )
