"""Cross-layer KV sharing: a layer reads the cache of an earlier one instead of its own.

Applied, of each run of ``share`` neighbouring layers of one kind, only the first keeps keys and
values; the others have no key and value projections. Removed, readers get the projections, key
norms and caches of the layers that they read.
"""

from __future__ import annotations

from functools import lru_cache

from ledgerkit._techniques.point import Point, whole
from ledgerkit._techniques.rebuild import changed, rebuild, regrouped, replaced
from ledgerkit.errors import TechniqueError
from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.model import LayerGroup, Model
from ledgerkit.spec.weights import Weight

_KEY_NORMS = (".k_norm.", ".key_layernorm.")


def apply_sharing(point: Point, *, share: int = 2) -> Point:
    """Let ``share`` neighbouring layers of a kind use one cache."""
    model = point.model
    if any(_reads(group) for group in model.groups):
        raise TechniqueError(
            f"{model.slug} shares caches between layers already", given=model.slug,
            fix="use action='remove' to see what that saves",
        )  # fmt: skip
    if not any(isinstance(group.attention, SoftmaxAttention) for group in model.groups):
        raise TechniqueError(f"{model.slug} has no keys and values to share", given=model.slug,
                             fix="take a model with softmax attention")  # fmt: skip
    return point.with_model(_shared(model, whole("share", share, 2)))


def remove_sharing(point: Point) -> Point:
    """Give each reader a cache of its own."""
    if not any(_reads(group) for group in point.model.groups):
        raise TechniqueError(
            f"{point.model.slug} has no shared caches to separate", given=point.model.slug,
            fix="apply 'kv_sharing' to see what it would save",
        )  # fmt: skip
    return point.with_model(_separate(point.model))


def _reads(group: LayerGroup) -> bool:
    return isinstance(group.attention, SoftmaxAttention) and not group.attention.stores_kv


def _is_key_or_value(weight: Weight) -> bool:
    return weight.account == "projections" and (
        weight.split == "kv_heads" or any(part in weight.name for part in _KEY_NORMS)
    )


@lru_cache(maxsize=64)
def _shared(model: Model, share: int) -> Model:
    groups: list[LayerGroup] = []
    order: dict[SoftmaxAttention, list[int]] = {}
    for group in model.groups:
        if isinstance(group.attention, SoftmaxAttention):
            order.setdefault(group.attention, []).extend(group.layers)
    readers = {
        layer for layers in order.values() for n, layer in enumerate(sorted(layers)) if n % share
    }
    for group in model.groups:
        attention = group.attention
        if not isinstance(attention, SoftmaxAttention):
            groups.append(group)
            continue
        for flag in (False, True):
            layers = tuple(layer for layer in group.layers if (layer in readers) == flag)
            if not layers:
                continue
            weights = group.weights
            if flag:
                weights = tuple(w for w in weights if not _is_key_or_value(w))
                attention = changed(attention, stores_kv=False)
            groups.append(LayerGroup(layers=layers, attention=attention, ffn=group.ffn,
                                     weights=weights))  # fmt: skip
    note = f"one of {share} neighbouring layers of a kind keeps keys and values, all read them"
    return regrouped(model, groups, f"cache shared by {share}", note)


@lru_cache(maxsize=64)
def _separate(model: Model) -> Model:
    stores = {
        group.attention: group
        for group in model.groups
        if isinstance(group.attention, SoftmaxAttention) and group.attention.stores_kv
    }

    def change(group: LayerGroup) -> LayerGroup:
        if not _reads(group):
            return group
        own = changed(group.attention, stores_kv=True)
        if own not in stores:
            raise TechniqueError(
                f"{model.slug}: no layer stores keys and values of this shape", given=model.slug,
                fix="take another model",
            )  # fmt: skip
        keys = [weight for weight in stores[own].weights if _is_key_or_value(weight)]
        return replaced(group, own, weights=[*group.weights, *keys])

    return rebuild(model, change, "own caches", "readers get the key and value projections back")
