"""What the layers of one device keep, as the allocators of engines see it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ledgerkit.costs.layout import kv_copies, stage_layers
from ledgerkit.errors import CapacityError
from ledgerkit.spec.attention import (
    Attention,
    CompressedAttention,
    LatentAttention,
    NoAttention,
    SoftmaxAttention,
    StateAttention,
)
from ledgerkit.spec.cache import compressor_bytes, index_key_bytes, state_bytes, token_bytes
from ledgerkit.spec.deployment import Deployment
from ledgerkit.spec.model import Model


@dataclass(frozen=True, slots=True)
class LayerKind:
    """Equal cache layers of one device.

    A layer keeps ``token_bytes`` for each of its tokens (all, or the last ``window``), or a state
    of ``state_bytes`` for a whole sequence.
    """

    name: str
    layers: int
    token_bytes: float = 0.0
    window: int | None = None
    state_bytes: float = 0.0

    def kept(self, tokens: int) -> int:
        """Tokens of one sequence that stay."""
        return tokens if self.window is None else min(tokens, self.window)

    def sequence_bytes(self, tokens: int) -> float:
        """Ideal bytes of one sequence in all these layers."""
        return self.layers * (self.kept(tokens) * self.token_bytes + self.state_bytes)


def layer_kinds(model: Model, deployment: Deployment, stage: int | None = None) -> list[LayerKind]:
    """Cache layers of one device of a pipeline stage.

    Parameters
    ----------
    model : Model
    deployment : Deployment
    stage : int, optional
        Pipeline stage; None = the one with the most bytes per sequence.

    Returns
    -------
    list of LayerKind
        Per tensor-parallel rank: KV heads divide, one at least; latents do not divide.
    """
    stages = stage_layers(model.num_hidden_layers, deployment.pp)
    chosen = range(deployment.pp) if stage is None else (stage,)
    candidates = [_merge(_kinds(model, deployment, stages[i])) for i in chosen]
    far = model.max_position_embeddings
    return max(candidates, key=lambda kinds: sum(k.sequence_bytes(far) for k in kinds))


def _merge(kinds: Iterator[LayerKind]) -> list[LayerKind]:
    counts: dict[LayerKind, int] = {}
    for kind in kinds:
        key = replace(kind, layers=0)
        counts[key] = counts.get(key, 0) + kind.layers
    return [replace(key, layers=layers) for key, layers in counts.items()]


def _kinds(model: Model, deployment: Deployment, layers: range) -> Iterator[LayerKind]:
    for group in model.groups:
        count = sum(i in layers for i in group.layers)
        if count:
            yield from _of_attention(group.attention, count, deployment)


def _of_attention(attention: Attention, count: int, deployment: Deployment) -> Iterator[LayerKind]:
    tp, kv_dtype = deployment.tp, deployment.kv_dtype
    match attention:
        case SoftmaxAttention():
            share = kv_copies(attention.num_key_value_heads, tp) / tp
            size = token_bytes(attention, kv_dtype) * share
            if size:
                name = "full" if attention.limit is None else "window"
                yield LayerKind(name, count, size, attention.limit)
        case LatentAttention():
            yield LayerKind("latent", count, token_bytes(attention, kv_dtype))
        case StateAttention():
            yield LayerKind("state", count, state_bytes=state_bytes(attention) / tp)
        case CompressedAttention():
            entry = token_bytes(attention, kv_dtype)
            yield LayerKind("window", count, entry, attention.window)
            if attention.ratio:
                yield LayerKind("compressed", count, entry / attention.ratio)
                # the tokens that are not yet one entry
                yield LayerKind("compressor", count, state_bytes=compressor_bytes(attention))
        case NoAttention():
            return
    indexer = getattr(attention, "indexer", None)
    if indexer is not None and indexer.owned:
        ratio = attention.ratio if isinstance(attention, CompressedAttention) else 1
        yield LayerKind("index", count, index_key_bytes(indexer, kv_dtype) / ratio)


def compressed_layers() -> CapacityError:
    """Return the refusal of DeepSeek-V4 layers: no log shows where an engine's pool keeps them."""
    return CapacityError(
        "how engines share their pool with compressed attention is not known",
        given="DeepSeek-V4 layers",
        allowed="models without compressed attention",
        fix="read ideal bytes: Model.cache_bytes, lk.ledger",
    )
