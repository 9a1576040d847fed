"""MHA, MQA and GQA: how many KV heads the query heads share.

The counterfactual keeps query heads and head widths; key and value projections (and their biases)
grow or shrink with the number of KV heads. A layer that reads another layer's cache
(cross-layer sharing) has no such projections and changes its head count only.
"""

from __future__ import annotations

from functools import lru_cache

from ledgerkit._techniques.latent import mha_of_latent
from ledgerkit._techniques.point import Point, whole
from ledgerkit._techniques.rebuild import changed, rebuild, replaced, resized
from ledgerkit.errors import TechniqueError
from ledgerkit.spec.attention import LatentAttention, SoftmaxAttention
from ledgerkit.spec.model import LayerGroup, Model
from ledgerkit.spec.weights import Weight

_FUSED = ("qkv_proj.", "c_attn.", "query_key_value.")


def apply_gqa(point: Point, *, kv_heads: int = 8) -> Point:
    """Let ``heads / kv_heads`` query heads share a KV head."""
    heads = whole("kv_heads", kv_heads)
    if not any(
        isinstance(g.attention, SoftmaxAttention) and g.attention.num_key_value_heads > heads
        for g in point.model.groups
    ):
        raise _has_no_more(point.model, heads)
    return point.with_model(with_kv_heads(point.model, heads, f"GQA {heads}"))


def apply_mqa(point: Point) -> Point:
    """Let all query heads share one KV head."""
    if not any(
        isinstance(g.attention, SoftmaxAttention) and g.attention.num_key_value_heads > 1
        for g in point.model.groups
    ):
        raise _has_no_more(point.model, 1)
    return point.with_model(with_kv_heads(point.model, 1, "MQA"))


def apply_mha(point: Point) -> Point:
    """Give each query head keys and values of its own, in place of GQA, MQA or MLA."""
    model = point.model
    if any(isinstance(group.attention, LatentAttention) for group in model.groups):
        return point.with_model(mha_of_latent(model))
    if not _shares(model):
        raise TechniqueError(
            f"{model.slug} has MHA already, or no softmax attention", given=model.slug,
            fix="take a model with GQA, MQA or MLA",
        )  # fmt: skip
    return point.with_model(with_kv_heads(model, None, "MHA"))


def remove_gqa(point: Point) -> Point:
    """Give each query head keys and values of its own again."""
    if not _shares(point.model):
        raise TechniqueError(
            f"{point.model.slug} has no shared KV heads to separate", given=point.model.slug,
            fix="take a model with GQA or MQA, or remove 'mla' where the model has that",
        )  # fmt: skip
    return point.with_model(with_kv_heads(point.model, None, "MHA"))


def _shares(model: Model) -> bool:
    return any(
        isinstance(group.attention, SoftmaxAttention)
        and group.attention.num_key_value_heads < group.attention.num_attention_heads
        for group in model.groups
    )


def _has_no_more(model: Model, heads: int) -> TechniqueError:
    has = sorted(
        {
            group.attention.num_key_value_heads
            for group in model.groups
            if isinstance(group.attention, SoftmaxAttention)
        }
    )
    words = f"{', '.join(map(str, has))} KV heads" if has else "no softmax attention"
    return TechniqueError(
        f"{model.slug} has {words}: nothing is left to share", given=heads,
        fix="give fewer kv_heads, or remove the technique to see what it saves",
    )  # fmt: skip


@lru_cache(maxsize=64)
def with_kv_heads(model: Model, kv_heads: int | None, label: str) -> Model:
    """Model whose softmax layers have this many KV heads; None = one for each query head."""

    def change(group: LayerGroup) -> LayerGroup:
        attention = group.attention
        if not isinstance(attention, SoftmaxAttention):
            return group
        old = attention.num_key_value_heads
        new = attention.num_attention_heads if kv_heads is None else kv_heads
        if new == old or (kv_heads is not None and old < new):
            return group
        if attention.num_attention_heads % new:
            raise TechniqueError(
                "kv_heads must divide the number of query heads", given=new,
                allowed=f"divisors of {attention.num_attention_heads}", fix="use kv_heads=1",
            )  # fmt: skip
        weights = [_with_heads(weight, attention, new) for weight in group.weights]
        return replaced(group, changed(attention, num_key_value_heads=new), weights=weights)

    note = f"{label}: same query heads and head widths; key and value projections resized"
    return rebuild(model, change, label, note)


def _with_heads(weight: Weight, attention: SoftmaxAttention, new: int) -> Weight:
    old = attention.num_key_value_heads
    if weight.ledger != "attention_kv" or weight.account != "projections":
        return weight
    if weight.split == "kv_heads":
        return resized(weight, (weight.shape[0] * new // old, *weight.shape[1:]))
    if any(part in weight.name for part in _FUSED) and weight.split == "tp":
        # one tensor for queries, keys and values; where keys have a row of their own (above),
        # the query part is exactly as tall as the query heads
        query = attention.num_attention_heads * attention.head_dim
        if weight.shape[0] > query:
            added = (new - old) * (attention.head_dim + attention.v_head_dim)
            return resized(weight, (weight.shape[0] + added, *weight.shape[1:]))
    return weight
