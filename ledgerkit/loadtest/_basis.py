"""The three columns that a decode step's time is fitted on.

``t = t0 + w · W(b) + a · A(c, b)``: a constant, what grows with the sequences whatever their
context, and what grows with the cache that is read. Without a model W = b and A = b · c. With one,
W is the bytes of distinct experts, and A the bytes that attention reads: windows stop growing,
sparse attention reads its top-k, recurrent states are constant.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from ledgerkit.spec.attention import (
    CompressedAttention,
    Indexer,
    LatentAttention,
    SoftmaxAttention,
    StateAttention,
)
from ledgerkit.spec.cache import (
    compressed_entry_bytes,
    compressor_bytes,
    index_key_bytes,
    latent_bytes,
    state_bytes,
    vector_bytes,
)
from ledgerkit.spec.deployment import Deployment
from ledgerkit.spec.feed_forward import MoeFfn

if TYPE_CHECKING:
    from ledgerkit.spec.attention import Attention
    from ledgerkit.spec.model import Model

__all__ = ["Basis", "attention_read_bytes", "distinct_experts"]

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def distinct_experts(num_experts: int, num_experts_per_tok: int, tokens: Floats) -> Floats:
    """Experts that ``tokens`` independent tokens touch: E · (1 − (1 − k/E)^b).

    Exact for independent uniform routing (costmodel: D(T)); skewed routing touches fewer.

    Examples
    --------
    >>> distinct_experts(256, 8, np.array([1.0, 32.0])).round(1)
    array([  8. , 163.3])
    """
    share = num_experts_per_tok / num_experts
    spread: Floats = (
        num_experts * -np.expm1(tokens * np.log1p(-share))
        if share < 1
        else (num_experts * np.minimum(tokens, 1.0))
    )
    return spread


def attention_read_bytes(attention: Attention, context: Floats, kv_dtype: str = "bf16") -> Floats:
    """Bytes that one layer reads for one sequence in one decode step.

    Parameters
    ----------
    attention : Attention
        The layer's attention; a layer that reads another layer's cache reads all of it.
    context : array of float
        Tokens in the cache.
    kv_dtype : str
        Cache layout.

    Returns
    -------
    array of float
        Bytes, same shape as ``context``; a recurrent state counts twice (read and written).

    Examples
    --------
    >>> full = SoftmaxAttention(
    ...     num_attention_heads=32, num_key_value_heads=8, head_dim=128, v_head_dim=128
    ... )
    >>> attention_read_bytes(full, np.array([1.0, 8192.0])).astype(int).tolist()
    [4096, 33554432]
    """
    kept = context
    match attention:
        case SoftmaxAttention():
            token = attention.num_key_value_heads * (
                vector_bytes(attention.head_dim, kv_dtype)
                + vector_bytes(attention.v_head_dim, kv_dtype)
            )
            if attention.limit is not None:
                kept = np.minimum(context, float(attention.limit))
            return _selected(kept, token, attention.indexer, context, kv_dtype)
        case LatentAttention():
            token = latent_bytes(attention, kv_dtype)
            return _selected(kept, token, attention.indexer, context, kv_dtype)
        case CompressedAttention():
            entry = compressed_entry_bytes(attention, kv_dtype)
            read = np.minimum(context, float(attention.window)) * entry
            if attention.ratio:
                entries = np.floor(context / attention.ratio)
                read = read + _selected(entries, entry, attention.indexer, entries, kv_dtype)
                # waiting tokens are written one by one and read when they become an entry
                read = read + 2.0 * compressor_bytes(attention) / attention.ratio
            return read
        case StateAttention():
            return np.full_like(context, 2.0 * state_bytes(attention))
        case _:
            return np.zeros_like(context)


def _selected(
    kept: Floats, token: float, indexer: Indexer | None, indexed: Floats, kv_dtype: str
) -> Floats:
    if indexer is None:
        return kept * token
    keys = index_key_bytes(indexer, kv_dtype) * indexed
    chosen: Floats = np.minimum(kept, float(indexer.topk)) * token + keys
    return chosen


@dataclass(frozen=True)
class Basis:
    """Columns of the fit, and what they stand for.

    Examples
    --------
    >>> Basis().columns(np.array([1024.0]), np.array([4.0])).tolist()
    [[1.0, 4.0, 4096.0]]
    """

    model: Model | None = None
    deployment: Deployment = field(default_factory=Deployment)

    @property
    def weights_kind(self) -> Literal["sequences", "distinct_experts"]:
        """Whether W counts sequences or the bytes of distinct experts."""
        return "distinct_experts" if self._routed() else "sequences"

    @property
    def attention_kind(self) -> Literal["tokens", "bytes"]:
        """Whether A counts tokens or bytes."""
        return "tokens" if self.model is None else "bytes"

    def _routed(self) -> list[tuple[MoeFfn, float]]:
        """Groups with routed experts, with the bytes of one expert in all layers of the group."""
        groups = []
        for group in self.model.groups if self.model is not None else ():
            if isinstance(group.ffn, MoeFfn):
                stored = sum(weight.bytes for weight in group.weights if weight.routed)
                groups.append((group.ffn, group.count * stored / group.ffn.num_experts))
        return groups

    def weights(self, concurrency: Floats) -> Floats:
        """W(b): sequences, or bytes of distinct experts in all layers of the replica."""
        routed = self._routed()
        if not routed:
            return concurrency
        return np.asarray(
            sum(
                size * distinct_experts(ffn.num_experts, ffn.num_experts_per_tok, concurrency)
                for ffn, size in routed
            )
        )

    def attention(self, context: Floats, concurrency: Floats) -> Floats:
        """A(c, b): cached tokens, or bytes read, of all sequences of the fullest rank."""
        ranks = self.deployment.dp_attention
        rank = concurrency if ranks == 1 else np.ceil(concurrency / ranks)
        if self.model is None:
            return rank * context
        read = sum(
            group.count * attention_read_bytes(group.attention, context, self.deployment.kv_dtype)
            for group in self.model.groups
        )
        return np.asarray(rank * read)

    def columns(self, context: Floats, concurrency: Floats) -> Floats:
        """Design matrix, one row per cell: 1, W(b), A(c, b)."""
        context = np.asarray(context, dtype=np.float64)
        concurrency = np.asarray(concurrency, dtype=np.float64)
        return np.stack(
            [
                np.ones_like(context),
                self.weights(concurrency),
                self.attention(context, concurrency),
            ],
            axis=-1,
        )
