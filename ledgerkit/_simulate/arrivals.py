"""What is asked of a deployment, and when: streams, closed loops, agent loops, frames, traces."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from ledgerkit._simulate import traces
from ledgerkit._simulate.lengths import Lengths, as_lengths
from ledgerkit.errors import WorkloadError
from ledgerkit.spec._base import finite_number, whole_number

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Arrivals"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_TICKS = 1e12
LONGEST_S = 4e6
"""46 days; the clock counts picoseconds in 64 bits, which end after 106 days."""
Keep = Literal["all", "trim", "summarise"]
_MOST = 50_000_000
_SLOWEST = 1e-9
_MOST_VARIED = 1e3


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """Requests in the order of arrival: made by its class methods, nothing in it changes.

    A prompt is a list of segments; prompts that begin with the same segments share that prefix.

    Examples
    --------
    >>> import ledgerkit as lk
    >>> stream = lk.Arrivals.poisson(4.0, requests=1000, prompt_tokens=1024, output_tokens=256)
    >>> stream.requests, 3.8 < stream.rate_per_s < 4.2
    (1000, True)
    """

    arrival_s: Floats
    """NaN: some time after another request."""
    prompt_tokens: Ints
    output_tokens: Ints
    predecessor: Ints
    """Request that has to be answered before this one is sent; -1 = none."""
    gap_s: Floats
    """Seconds between that answer and this request."""
    segment_start: Ints
    """int64[requests + 1]"""
    segment_ids: Ints
    segment_tokens: Ints
    answer_ids: Ints
    """Content of the answers, as later prompts name it."""
    label: str = "requests"
    offered_per_s: float | None = None
    """Rate of a stream that a generator made; None for loops, frames and traces."""
    concurrency: int | None = None
    """Clients of a closed loop."""

    # makers ----------------------------------------------------------------------------------

    @classmethod
    def poisson(
        cls, rate_per_s: float, *, requests: int, prompt_tokens: int | str | Lengths,
        output_tokens: int | str | Lengths, shared_prefix_tokens: int = 0, prefixes: int = 1,
        seed: int = 0,
    ) -> Arrivals:  # fmt: skip
        """Stream of independent requests, ``rate_per_s`` on average.

        Parameters
        ----------
        rate_per_s : float
            Requests per second.
        requests : int
            How many.
        prompt_tokens, output_tokens : int, preset or Lengths
            ``shared_prefix_tokens`` are part of the prompt.
        shared_prefix_tokens, prefixes : int
            Every prompt begins with one of so many prefixes of so many tokens.
        seed : int

        Examples
        --------
        >>> import ledgerkit as lk
        >>> stream = lk.Arrivals.poisson(2.0, requests=10, prompt_tokens=64, output_tokens=8)
        >>> int(stream.prompt_tokens.sum())
        640
        """
        return cls.gamma(
            rate_per_s, 1.0, requests=requests, prompt_tokens=prompt_tokens,
            output_tokens=output_tokens, shared_prefix_tokens=shared_prefix_tokens,
            prefixes=prefixes, seed=seed,
        )  # fmt: skip

    @classmethod
    def gamma(
        cls, rate_per_s: float, variation: float, *, requests: int,
        prompt_tokens: int | str | Lengths, output_tokens: int | str | Lengths,
        shared_prefix_tokens: int = 0, prefixes: int = 1, seed: int = 0,
    ) -> Arrivals:  # fmt: skip
        """Stream whose gaps are gamma distributed: ``variation`` above 1 makes bursts.

        ``variation`` is the coefficient of variation of the gaps; 1 is Poisson. The rest as
        :meth:`poisson`.
        """
        rate = _number("rate_per_s", rate_per_s, _SLOWEST, _TICKS)
        cv = _number("variation", variation, 1 / _MOST_VARIED, _MOST_VARIED)
        draw = np.random.default_rng(_whole("seed", seed, 0))
        shape = 1.0 / cv**2
        count = _whole("requests", requests, most=_MOST)
        times = np.cumsum(draw.gamma(shape, 1.0 / (shape * rate), count))
        kind = "Poisson" if cv == 1 else f"gamma (cv {cv:g})"
        return _independent(
            times, prompt_tokens, output_tokens, shared_prefix_tokens, prefixes, draw,
            label=f"{kind}, {rate:g} requests/s", offered_per_s=rate,
        )  # fmt: skip

    @classmethod
    def closed_loop(
        cls, concurrency: int, *, requests: int, prompt_tokens: int | str | Lengths,
        output_tokens: int | str | Lengths, shared_prefix_tokens: int = 0, prefixes: int = 1,
        think_s: float = 0.0, seed: int = 0,
    ) -> Arrivals:  # fmt: skip
        """Clients that send their next request ``think_s`` after an answer; all start at once.

        Examples
        --------
        >>> import ledgerkit as lk
        >>> loop = lk.Arrivals.closed_loop(8, requests=64, prompt_tokens=128, output_tokens=16)
        >>> loop.predecessor[:10].tolist()
        [-1, -1, -1, -1, -1, -1, -1, -1, 0, 1]
        """
        count, clients = (
            _whole("requests", requests, most=_MOST),
            _whole("concurrency", concurrency, most=_MOST),
        )
        think_s = _number("think_s", think_s)
        draw = np.random.default_rng(_whole("seed", seed, 0))
        made = _independent(
            np.zeros(count), prompt_tokens, output_tokens, shared_prefix_tokens, prefixes, draw,
            label=f"closed loop, {clients} clients", concurrency=clients,
        )  # fmt: skip
        before = np.maximum(np.arange(count) - clients, -1)
        return replace(
            made, predecessor=before, arrival_s=np.where(before < 0, 0.0, np.nan),
            gap_s=np.full(count, think_s),
        )  # fmt: skip

    @classmethod
    def agents(
        cls, sessions: int, *, steps: int, concurrency: int, system_tokens: int, tool_tokens: int,
        output_tokens: int, tool_s: float = 1.0, keep: Keep = "all", keep_steps: int = 2,
        summary_tokens: int = 400, every: int = 5, seed: int = 0,
    ) -> Arrivals:  # fmt: skip
        """Agent sessions: each step sends the whole history, and waits for a tool.

        Parameters
        ----------
        sessions, steps, concurrency : int
            Sessions of so many steps, so many at a time.
        system_tokens : int
            Shared by all sessions.
        tool_tokens : int
            Mean of a tool message; drawn evenly from half to one and a half of it.
        output_tokens : int
            Of each step.
        tool_s : float
            Mean of the exponential time that a tool takes.
        keep : {"all", "trim", "summarise"}
            Old tool messages stay; are replaced by a stub of 8 tokens once ``keep_steps`` newer
            ones are there, which changes the prompt in the middle; or the history is summarised
            after ``every`` steps by one more request that writes ``summary_tokens``.
        seed : int

        Examples
        --------
        >>> import ledgerkit as lk
        >>> loop = lk.Arrivals.agents(
        ...     4,
        ...     steps=3,
        ...     concurrency=2,
        ...     system_tokens=1000,
        ...     tool_tokens=500,
        ...     output_tokens=200,
        ... )
        >>> loop.requests, bool(loop.prompt_tokens[2] > loop.prompt_tokens[0])
        (12, True)
        """
        from ledgerkit._simulate.agents import agents

        return agents(
            sessions, steps=steps, concurrency=concurrency, system_tokens=system_tokens,
            tool_tokens=tool_tokens, output_tokens=output_tokens, tool_s=tool_s, keep=keep,
            keep_steps=keep_steps, summary_tokens=summary_tokens, every=every, seed=seed,
        )  # fmt: skip

    @classmethod
    def from_frame(cls, frame: pl.DataFrame, *, rate_scale: float = 1.0) -> Arrivals:
        """Requests of a polars frame.

        Parameters
        ----------
        frame : polars.DataFrame
            ``arrival_s``, ``prompt_tokens``, ``output_tokens``; optionally ``prefix`` (any value)
            with ``prefix_tokens``: prompts with the same prefix share so many tokens.
        rate_scale : float
            2 = the same requests twice as fast.

        Raises
        ------
        WorkloadError
            A column is missing, or a row is malformed: the first one is named.
        """
        return _of_rows(traces.read_frame(frame), rate_scale, "frame")

    @classmethod
    def from_trace(
        cls, path: str | Path, *, rate_scale: float = 1.0, most: int | None = None
    ) -> Arrivals:
        """Requests of a trace file: Azure's (CSV) or Mooncake's (JSON lines).

        Parameters
        ----------
        path : path
            ``TIMESTAMP, ContextTokens, GeneratedTokens``, or objects with ``timestamp`` in ms,
            ``input_length``, ``output_length``, ``hash_ids`` of blocks of 512 tokens.
        rate_scale : float
            2 = the same requests twice as fast.
        most : int, optional
            Read only so many requests.

        Raises
        ------
        WorkloadError
            The file is of no known format, or a row is malformed: its line is named.
        """
        return _of_rows(traces.read_trace(Path(path), most), rate_scale, Path(path).name)

    # what it says ----------------------------------------------------------------------------

    @property
    def requests(self) -> int:
        """How many."""
        return len(self.prompt_tokens)

    @property
    def chained(self) -> int:
        """Requests that follow another one."""
        return int((self.predecessor >= 0).sum())

    @property
    def rate_per_s(self) -> float:
        """Requests per second of the stream; NaN for loops."""
        known = self.arrival_s[np.isfinite(self.arrival_s)]
        span = float(known[-1] - known[0]) if len(known) > 1 else 0.0
        return (len(known) - 1) / span if span > 0 and not self.chained else math.nan

    def reuse_ceiling(self, block_tokens: int = 512) -> float:
        """Share of whole prompt blocks that an unlimited prefix cache would hold, 0 to 1.

        Every block counts, also the last part of a prompt; answers are not reused.

        Examples
        --------
        >>> import ledgerkit as lk
        >>> stream = lk.Arrivals.poisson(
        ...     1.0, requests=2, prompt_tokens=2048, output_tokens=1, shared_prefix_tokens=1024
        ... )
        >>> stream.reuse_ceiling()
        0.25
        """
        return traces.reuse_ceiling(self, block_tokens)

    def _common_tokens(self) -> Ints:
        """Tokens before the first content that occurs once: no other request has the rest."""
        start, count = self.segment_start, len(self.segment_ids)
        _, which, often = np.unique(
            np.concatenate([self.segment_ids, self.answer_ids]),
            return_inverse=True, return_counts=True,
        )  # fmt: skip
        lone = often[which] == 1
        own = np.append(np.nonzero(lone[:count])[0], count)
        first = np.minimum(own[np.searchsorted(own, start[:-1])], start[1:])
        before = np.concatenate([[0], np.cumsum(self.segment_tokens)])
        found = before[first] - before[start[:-1]]
        endless = (first == start[1:]) & ~lone[count:]
        return np.where(endless, 1 << 40, found).astype(np.int64)

    def asked(self) -> Ints:
        """Table of the requests for the kernel."""
        from ledgerkit.kernels import serving  # numba

        found = np.full((self.requests, serving.ASKED), -1, np.int64)
        known = np.isfinite(self.arrival_s)
        latest = float(max(self.arrival_s[known].max(initial=0.0), self.gap_s.max(initial=0.0)))
        if latest > LONGEST_S:
            raise WorkloadError(
                "requests come later than the clock of a run can tell", given=f"{latest:.6g} s",
                allowed=f"up to {LONGEST_S:,.0f} s",
                fix="count seconds from the first request, or simulate a part of the trace",
            )  # fmt: skip
        found[known, serving.Q_ARRIVAL] = np.rint(self.arrival_s[known] * _TICKS)
        found[:, serving.Q_PROMPT] = self.prompt_tokens
        found[:, serving.Q_OUTPUT] = self.output_tokens
        children = np.nonzero(self.predecessor >= 0)[0]
        found[self.predecessor[children], serving.Q_SUCCESSOR] = children
        found[:, serving.Q_GAP] = np.rint(self.gap_s * _TICKS)
        found[:, serving.Q_START] = self.segment_start[:-1]
        found[:, serving.Q_END] = self.segment_start[1:]
        found[:, serving.Q_ANSWER] = self.answer_ids
        found[:, serving.Q_COMMON] = self._common_tokens()
        return found


_number = partial(finite_number, WorkloadError)
_whole = partial(whole_number, WorkloadError)


def _independent(
    times: Floats, prompts: Any, outputs: Any, shared: int, prefixes: int,
    draw: np.random.Generator, **told: Any,
) -> Arrivals:  # fmt: skip
    """Requests that have nothing in common but the beginning of the prompt."""
    n = len(times)
    prompt = as_lengths(prompts).draw(draw, n)
    output = as_lengths(outputs).draw(draw, n)
    shared = _whole("shared_prefix_tokens", shared, 0)
    if shared and int(prompt.min()) <= shared:
        raise WorkloadError(
            "shared_prefix_tokens are part of every prompt, which has at least one more",
            given=shared, allowed=f"0 to {int(prompt.min()) - 1}",
            fix="share fewer tokens, or ask for longer prompts",
        )  # fmt: skip
    which = draw.integers(0, _whole("prefixes", prefixes, most=_MOST), n)
    return of_prefixes(times, prompt, output, which, np.full(n, shared), **told)


def of_prefixes(
    times: Floats, prompt: Ints, output: Ints, which: Ints, shared: Ints, **told: Any
) -> Arrivals:
    """Requests whose prompts begin with prefix number ``which``, ``shared`` tokens of it."""
    n = len(times)
    parts = 1 + (shared > 0)
    start = np.concatenate([[0], np.cumsum(parts)]).astype(np.int64)
    ids, tokens = np.empty(start[-1], np.int64), np.empty(start[-1], np.int64)
    own = int(which.max(initial=0)) + 1
    ids[start[1:] - 1] = own + np.arange(n)
    tokens[start[1:] - 1] = prompt - shared
    begins = start[:-1][shared > 0]
    ids[begins], tokens[begins] = which[shared > 0], shared[shared > 0]
    return Arrivals(
        arrival_s=times, prompt_tokens=prompt, output_tokens=output,
        predecessor=np.full(n, -1, np.int64), gap_s=np.zeros(n), segment_start=start,
        segment_ids=ids, segment_tokens=tokens, answer_ids=own + n + np.arange(n), **told,
    )  # fmt: skip


def _of_rows(rows: traces.Rows, rate_scale: float, label: str) -> Arrivals:
    scale = _number("rate_scale", rate_scale, _SLOWEST, _TICKS)
    times = rows.arrival_s / scale
    told = label if scale == 1 else f"{label} x {scale:g}"
    if rows.segments is None:
        return of_prefixes(
            times, rows.prompt_tokens, rows.output_tokens, rows.prefix, rows.prefix_tokens,
            label=told,
        )  # fmt: skip
    n = len(times)
    start, ids, tokens = rows.segments
    answers = int(ids.max(initial=0)) + 1 + np.arange(n)
    return Arrivals(
        arrival_s=times, prompt_tokens=rows.prompt_tokens, output_tokens=rows.output_tokens,
        predecessor=np.full(n, -1, np.int64), gap_s=np.zeros(n),
        segment_start=start, segment_ids=ids, segment_tokens=tokens, answer_ids=answers, label=told,
    )  # fmt: skip
