r"""Chunked prefill: a bounded stall for work that is done again.

A prompt of n tokens in m chunks of c. Running sequences wait for a chunk instead of a prompt; each
chunk reads all weights again, and the cache of the chunks before it,
:math:`kv \cdot c \, m (m - 1) / 2`; MLA expands the visible latents again.

Source: Sarathi-Serve; vLLM (``_compute_prefill_context``). Worked: Llama-3.1-8B, 32K tokens in
chunks of 512: 135 GB of cache and 946 GB of weights beyond one pass; MLA of DeepSeek-V3 in chunks
of 2K expands 8.5 times as much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ledgerkit.costs.scheduling.entry import SchedulingEntry, Value, booked, check


@dataclass(frozen=True, slots=True)
class Chunking:
    """What chunks cost and save, per prompt."""

    chunks: int
    reread_tokens: float
    """Cached tokens that later chunks read again."""
    entries: tuple[SchedulingEntry, ...]


def chunked_prefill(
    *,
    prompt_tokens: int,
    chunk_tokens: int,
    weight_bytes: float,
    kv_bytes_per_token: float,
    expand_flop_per_token: float = 0.0,
    whole_s: float | None = None,
    chunk_s: float | None = None,
    cached_tokens: int = 0,
) -> Chunking:
    """Compare prefill in chunks with prefill in one piece.

    Parameters
    ----------
    prompt_tokens, chunk_tokens : int
        Of the prompt, and of one chunk.
    weight_bytes : float
        Bytes of weights that a step reads.
    kv_bytes_per_token : float
        Cache bytes of one token.
    expand_flop_per_token : float
        FLOP of expanding one latent (MLA); 0 elsewhere.
    whole_s, chunk_s : float, optional
        Seconds of a step with the whole prompt, and of the longest step with a chunk: what a
        running sequence waits for.
    cached_tokens : int
        Tokens of the prompt that are not computed.

    Returns
    -------
    Chunking

    Examples
    --------
    >>> found = chunked_prefill(
    ...     prompt_tokens=32768, chunk_tokens=512, weight_bytes=15.01e9, kv_bytes_per_token=131072
    ... )
    >>> [round(entry.amount / 1e9) for entry in found.entries]
    [135, 946]
    """
    check("cached_tokens", cached_tokens, 0)
    check("prompt_tokens", prompt_tokens, cached_tokens + 1)
    check("chunk_tokens", chunk_tokens, 1)
    starts = range(cached_tokens, prompt_tokens, chunk_tokens)
    count = len(starts)
    again = float(sum(start - cached_tokens for start in starts))
    expanded = float(sum(min(start + chunk_tokens, prompt_tokens) for start in starts))
    span: dict[str, Value] = {
        "prompt_tokens": prompt_tokens, "cached_tokens": cached_tokens,
        "chunk_tokens": chunk_tokens,
    }  # fmt: skip
    each = "for n, p in chunks(prompt_tokens, cached_tokens, chunk_tokens)"
    entries = [
        SchedulingEntry(
            "cache of earlier chunks", "prefill", "attention_kv", "cache", "read",
            kv_bytes_per_token * again, "prompt", f"kv_bytes * sum(p - cached_tokens {each})",
            {**span, "kv_bytes": kv_bytes_per_token}, "each chunk reads what came before it",
        ),
        SchedulingEntry(
            "weights again", "prefill", "scheduling", "recompute", "read",
            weight_bytes * (count - 1), "prompt",
            "weight_bytes * (ceil((prompt_tokens - cached_tokens) / chunk_tokens) - 1)",
            {**span, "weight_bytes": weight_bytes}, "each chunk is a step and reads all weights",
        ),
        SchedulingEntry(
            "latents expanded again", "prefill", "scheduling", "recompute", "compute",
            expand_flop_per_token * (expanded - prompt_tokens), "prompt",
            f"expand_flop * (sum(n + p {each}) - prompt_tokens)",
            {**span, "expand_flop": expand_flop_per_token},
            "each chunk expands all visible latents",
        ),
    ]  # fmt: skip
    if whole_s is not None and chunk_s is not None:
        entries.append(
            SchedulingEntry(
                "stall of a running sequence", "decode", "scheduling", "queue", "time",
                chunk_s - whole_s, "token", "chunk_s - whole_s",
                {"chunk_s": chunk_s, "whole_s": whole_s},
                "longest time between two tokens while a prompt comes in",
            )
        )  # fmt: skip
    return Chunking(count, again, booked(*entries))


def balanced_chunk_tokens(
    *, peak_flop_per_s: float, memory_bytes_per_s: float, bytes_per_weight: float
) -> int:
    """Tokens of a step at which arithmetic takes as long as reading the weights.

    Below it a chunk costs as much as a larger one would.

    Examples
    --------
    >>> balanced_chunk_tokens(
    ...     peak_flop_per_s=989e12, memory_bytes_per_s=3.35e12, bytes_per_weight=2
    ... )
    296
    """
    return math.ceil(peak_flop_per_s * bytes_per_weight / (2.0 * memory_bytes_per_s))
