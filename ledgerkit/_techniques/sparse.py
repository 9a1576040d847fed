"""Sparse attention: DeepSeek Sparse Attention, NSA and block-sparse selection.

*DSA* adds a lightning indexer to each layer: ``index_heads`` heads of ``index_head_dim`` over one
key per token pick ``topk`` tokens for the core; prefill then works on latents. *NSA* keeps keys and
values compressed over ``stride`` tokens, reads all of those, and attends to ``blocks`` blocks of
``block`` tokens and a ``window`` (the compressed branch is booked as the indexer, whose scores and
values it provides; the MLP that compresses is not booked). *Block-sparse* attention scores the mean
key of each block and attends to ``blocks`` of them; it has no weights.

Sources: DeepSeek-V3.2 inference code; arXiv 2502.11089 (NSA); arXiv 2502.13189 (MoBA).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ledgerkit._techniques.point import Point, whole
from ledgerkit._techniques.rebuild import changed, main_dtype, prefix, rebuild, replaced
from ledgerkit.errors import TechniqueError
from ledgerkit.spec.attention import Indexer, LatentAttention, SoftmaxAttention
from ledgerkit.spec.model import LayerGroup, Model
from ledgerkit.spec.weights import Weight


def apply_dsa(
    point: Point, *, topk: int = 2048, index_heads: int = 64, index_head_dim: int = 128
) -> Point:
    """Add a lightning indexer to every full layer."""
    indexer = Indexer(
        num_heads=whole("index_heads", index_heads),
        head_dim=whole("index_head_dim", index_head_dim), topk=whole("topk", topk),
    )  # fmt: skip
    _check_dense(point.model, LatentAttention, SoftmaxAttention)
    return point.with_model(_with_indexer(point.model, indexer, "DSA"))


def apply_nsa(
    point: Point, *, stride: int = 16, blocks: int = 16, block: int = 64, window: int = 512
) -> Point:
    """Add compressed, selected and window branches to every full softmax layer."""
    kept = whole("blocks", blocks) * whole("block", block) + whole("window", window)
    _check_dense(point.model, SoftmaxAttention)
    return point.with_model(_blockwise(point.model, whole("stride", stride), kept, "NSA"))


def apply_block_sparse(point: Point, *, block: int = 512, blocks: int = 8) -> Point:
    """Attend to the blocks with the best mean keys."""
    size = whole("block", block)
    _check_dense(point.model, SoftmaxAttention)
    return point.with_model(
        _blockwise(point.model, size, size * whole("blocks", blocks), "block-sparse")
    )


def remove_dsa(point: Point) -> Point:
    """Attend to all tokens again, and drop the indexers."""
    return point.with_model(_without_indexer(_checked(point.model, LatentAttention, "dsa")))


def remove_block_sparse(point: Point) -> Point:
    """Attend to all tokens again, and drop the block selection."""
    model = _checked(point.model, SoftmaxAttention, "block_sparse")
    return point.with_model(_without_indexer(model))


def _checked(model: Model, kind: type[Any], name: str) -> Model:
    if not any(
        isinstance(group.attention, kind) and group.attention.indexer is not None
        for group in model.groups
    ):
        raise TechniqueError(
            f"{model.slug} has no {name} to remove", given=model.slug,
            fix=f"apply {name!r} to see what it would save",
        )  # fmt: skip
    return model


def _dense(group: LayerGroup, *kinds: type[Any]) -> bool:
    attention = group.attention
    return isinstance(attention, kinds) and attention.indexer is None and attention.limit is None


def _check_dense(model: Model, *kinds: type[Any]) -> None:
    selects = any(getattr(group.attention, "indexer", None) for group in model.groups)
    if selects or not any(_dense(group, *kinds) for group in model.groups):
        raise TechniqueError(
            f"{model.slug} selects tokens already, or has no full attention of the needed kind",
            given=model.slug, fix="use action='remove' where the model has the technique",
        )  # fmt: skip


@lru_cache(maxsize=64)
def _with_indexer(model: Model, indexer: Indexer, label: str) -> Model:
    def change(group: LayerGroup) -> LayerGroup:
        if not _dense(group, LatentAttention, SoftmaxAttention):
            return group
        attention = group.attention
        query = getattr(attention, "q_lora_rank", None) or model.hidden_size
        dtype = main_dtype([w for w in group.weights if w.account == "projections"], model.dtype)
        at = prefix(group) + "self_attn.indexer."

        def row(name: str, shape: tuple[int, ...], use: Any = "linear", kind: str = "") -> Weight:
            return Weight(name=at + name, ledger="attention_kv", account="indexer", shape=shape,
                          use=use, dtype=kind or dtype)  # fmt: skip

        heads, width = indexer.num_heads, indexer.head_dim
        rows = [
            row("wq_b.weight", (heads * width, query)),
            row("wk.weight", (width, model.hidden_size)),
            row("k_norm.weight", (width,), "vector", model.dtype),
            row("k_norm.bias", (width,), "vector", model.dtype),
            row("weights_proj.weight", (heads, model.hidden_size), kind=model.dtype),
        ]
        return replaced(group, changed(attention, indexer=indexer), weights=[*group.weights, *rows])

    note = (
        f"{label}: indexer of {indexer.num_heads} heads of {indexer.head_dim}, "
        f"top {indexer.topk} tokens"
    )
    return rebuild(model, change, label, note)


@lru_cache(maxsize=64)
def _blockwise(model: Model, ratio: int, kept: int, label: str) -> Model:
    """Selection over one key (and, for NSA, value) per ``ratio`` tokens, by the query heads."""

    def change(group: LayerGroup) -> LayerGroup:
        attention = group.attention
        if not isinstance(attention, SoftmaxAttention) or not _dense(group, SoftmaxAttention):
            return group
        width = attention.head_dim + (attention.v_head_dim if label == "NSA" else 0)
        indexer = Indexer(
            num_heads=attention.num_attention_heads, head_dim=width, topk=kept,
            key_heads=attention.num_key_value_heads, ratio=ratio,
        )  # fmt: skip
        return replaced(group, changed(attention, indexer=indexer))

    note = f"{label}: one compressed key per {ratio} tokens, {kept} tokens attended to; no weights"
    if label == "NSA":
        # the paper names the networks and gives no sizes: a number here would be invented
        note += " (the paper gives no size for its compressing and gating networks)"
    return rebuild(model, change, label, note)


@lru_cache(maxsize=64)
def _without_indexer(model: Model) -> Model:
    def change(group: LayerGroup) -> LayerGroup:
        attention = group.attention
        if getattr(attention, "indexer", None) is None or not isinstance(
            attention, LatentAttention | SoftmaxAttention
        ):
            return group
        weights = [weight for weight in group.weights if weight.account != "indexer"]
        return replaced(group, changed(attention, indexer=None), weights=weights)

    return rebuild(model, change, "dense attention", "every token attends to all; no indexers")
