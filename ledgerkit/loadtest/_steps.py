"""From the arrival times of tokens to the time of a decode step.

A mean over everything mixes prefill into decode. Here a step is timed only while the number of
decoding requests does not change and no request still waits for its first token.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Steady", "Trace", "cell_row", "steady_step"]


@dataclass(frozen=True)
class Trace:
    """One finished request on the test's clock: sent at ``start_s``, pieces at ``times_s``."""

    start_s: float
    times_s: tuple[float, ...]
    prompt_tokens: float
    output_tokens: float

    @property
    def tokens_per_piece(self) -> float:
        """Tokens of a streamed piece (speculation and buffering send several at once)."""
        return self.output_tokens / len(self.times_s) if self.times_s else 1.0


@dataclass(frozen=True)
class Steady:
    """A decode step while nothing else happened."""

    step_s: float
    """Seconds per token of one sequence."""
    median_s: float
    p99_s: float
    concurrency: int
    context_tokens: float
    tokens: float
    """Tokens per sequence that were timed."""
    clean: bool
    """False: at no time did all requests in flight decode, so prefill may be mixed in."""


def _spans(traces: Sequence[Trace]) -> list[tuple[float, float, int, int]]:
    """Stretches of constant load: (from, to, decoding, waiting for a first token)."""
    edges = sorted({t for r in traces for t in (r.start_s, r.times_s[0], r.times_s[-1])})
    spans = []
    for begin, end in itertools.pairwise(edges):
        middle = (begin + end) / 2
        decoding = sum(r.times_s[0] <= middle < r.times_s[-1] for r in traces)
        waiting = sum(r.start_s <= middle < r.times_s[0] for r in traces)
        spans.append((begin, end, decoding, waiting))
    return spans


def steady_step(traces: Sequence[Trace]) -> Steady | None:
    """Time a decode step at the load that lasted longest.

    Parameters
    ----------
    traces : sequence of Trace
        Requests of one run of a cell that were answered.

    Returns
    -------
    Steady or None
        None where no request has two pieces.

    Examples
    --------
    >>> two = [Trace(0.0, tuple(1.0 + 0.1 * i for i in range(11)), 100, 11)] * 2
    >>> found = steady_step(two)
    >>> round(found.step_s, 6), found.concurrency, found.clean
    (0.1, 2, True)
    """
    traces = [trace for trace in traces if len(trace.times_s) > 1]
    spans = [span for span in _spans(traces) if span[2] > 0]
    if not spans:
        return None
    quiet = [span for span in spans if span[3] == 0]
    work: dict[int, float] = {}
    for begin, end, decoding, _ in quiet or spans:
        work[decoding] = work.get(decoding, 0.0) + (end - begin) * decoding
    level = max(work, key=lambda many: (work[many], many))
    chosen = [span for span in quiet or spans if span[2] == level]
    return _timed(traces, chosen, level, clean=bool(quiet))


def _timed(
    traces: Sequence[Trace],
    spans: list[tuple[float, float, int, int]],
    level: int,
    *,
    clean: bool,
) -> Steady | None:
    spent = tokens = context = 0.0
    gaps: list[float] = []
    for begin, end, _, _ in spans:
        for trace in traces:
            times = np.array(trace.times_s)
            inside = times[(times >= begin) & (times <= end)]
            if len(inside) < 2:
                continue
            made = (len(inside) - 1) * trace.tokens_per_piece
            done = float((times < inside[0]).sum() + len(inside) / 2) * trace.tokens_per_piece
            spent += float(inside[-1] - inside[0])
            tokens += made
            context += made * (trace.prompt_tokens + done)
            gaps += (np.diff(inside) / trace.tokens_per_piece).tolist()
    if tokens <= 0 or spent <= 0:
        return None
    return Steady(
        step_s=spent / tokens,
        median_s=float(np.median(gaps)),
        p99_s=float(np.quantile(gaps, 0.99)),
        concurrency=level,
        context_tokens=context / tokens,
        tokens=tokens / level,
        clean=clean,
    )


def cell_row(
    rows: Sequence[dict[str, Any]], names: dict[str, Any], told: dict[str, Any]
) -> dict[str, Any]:
    """Summarise the requests of one run of a cell.

    Parameters
    ----------
    rows : sequence of dict
        Requests (``REQUEST_COLUMNS``).
    names : dict
        ``cell``, ``run``, ``order`` and what was asked for.
    told : dict
        What the server told about itself.
    """
    good = [row for row in rows if row["status"] == "ok"]
    traces = [
        Trace(
            row["start_s"],
            tuple(row["start_s"] + at for at in row["chunk_times_s"]),
            float(row["prompt_tokens"] or names["prompt_tokens"]),
            float(row["output_tokens"] or len(row["chunk_times_s"])),
        )
        for row in good
    ]
    hits = told.pop("prefix_hits", None)
    row: dict[str, Any] = {**names, **told, "requests": len(rows), "failed": len(rows) - len(good)}
    if not traces:
        return row
    steady = steady_step(traces)
    if steady is not None:
        row |= {
            "itl_s": steady.step_s,
            "itl_median_s": steady.median_s,
            "itl_p99_s": steady.p99_s,
            "itl_method": "steady window" if steady.clean else "no steady window",
            "concurrency": float(steady.concurrency),
            "context_tokens": steady.context_tokens,
            "steady_tokens": steady.tokens,
            "tokens_per_s": steady.concurrency / steady.step_s,
            "tokens_per_s_one": 1.0 / steady.step_s,
        }
    tpots = [
        (trace.times_s[-1] - trace.times_s[0]) / (trace.output_tokens - trace.tokens_per_piece)
        for trace in traces
        if trace.output_tokens > trace.tokens_per_piece
    ]
    outputs = [trace.output_tokens for trace in traces]
    cached = [float(r["cached_tokens"]) for r in good if r["cached_tokens"] is not None]
    row |= {
        **_tails("ttft", [r["ttft_s"] for r in good if r["ttft_s"] is not None]),
        **_tails("e2e", [r["e2e_s"] for r in good if r["e2e_s"] is not None]),
        **_tails("tpot", tpots),
        "itl_mean_s": float(np.mean(tpots)) if tpots else None,
        "prompt_tokens_counted": float(np.mean([trace.prompt_tokens for trace in traces])),
        "output_tokens": float(np.mean(outputs)),
        "output_tokens_min": min(outputs),
        "output_tokens_max": max(outputs),
        "cached_tokens": float(np.mean(cached)) if cached else hits and hits / len(good),
        "tokens_from": "usage" if all(r["tokens_from"] == "usage" for r in good) else "chunks",
        "tokens_per_chunk": float(np.mean([trace.tokens_per_piece for trace in traces])),
    }
    return row


def _tails(name: str, values: list[float]) -> dict[str, float]:
    if not values:
        return {}
    return {
        f"{name}_p50_s": float(np.quantile(values, 0.5)),
        f"{name}_p99_s": float(np.quantile(values, 0.99)),
    }
