"""Counterfactual models: the same layers with another attention or another feed-forward block."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ledgerkit.errors import TechniqueError
from ledgerkit.spec.attention import Attention
from ledgerkit.spec.feed_forward import FeedForward
from ledgerkit.spec.model import LayerGroup, Model
from ledgerkit.spec.weights import Weight

Regroup = Callable[[LayerGroup], LayerGroup]


def rebuild(model: Model, change: Regroup, label: str, note: str) -> Model:
    """Model with other layers; equal layers are joined again.

    Parameters
    ----------
    model : Model
        As it is.
    change : callable
        Group of layers to the group that takes its place.
    label : str
        Stands behind the model's name.
    note : str
        What the counterfactual assumes, with its dimensions.

    Raises
    ------
    TechniqueError
        Nothing changes.
    """
    return regrouped(model, [change(group) for group in model.groups], label, note)


def regrouped(model: Model, groups: Iterable[LayerGroup], label: str, note: str) -> Model:
    """Model with these layer groups."""
    kinds: dict[tuple[Attention, FeedForward, tuple[Weight, ...]], list[int]] = {}
    for group in groups:
        key = (group.attention, group.ffn, group.weights)
        kinds.setdefault(key, []).extend(group.layers)
    joined = tuple(
        LayerGroup(layers=tuple(sorted(layers)), attention=attention, ffn=ffn, weights=weights)
        for (attention, ffn, weights), layers in kinds.items()
    )
    if set(joined) == set(model.groups):
        raise TechniqueError(f"{model.slug} stays as it is: {label} changes no layer",
                             given=model.slug, fix="give other settings")  # fmt: skip
    # not model_copy: that would keep the cached counts of the old layers
    fields: dict[str, Any] = {name: getattr(model, name) for name in Model.model_fields}
    fields |= {
        "groups": joined,
        "slug": f"{model.slug}+{label}",
        "name": f"{model.name} ({label})",
        "fidelity": "counterfactual",
        "notes": (*model.notes, note),
    }
    return Model(**fields)


def replaced(
    group: LayerGroup,
    attention: Attention | None = None,
    ffn: FeedForward | None = None,
    weights: Iterable[Weight] | None = None,
) -> LayerGroup:
    """Group with another attention, feed-forward block or other weights."""
    return LayerGroup(
        layers=group.layers,
        attention=attention if attention is not None else group.attention,
        ffn=ffn if ffn is not None else group.ffn,
        weights=tuple(weights) if weights is not None else group.weights,
    )


def resized(weight: Weight, shape: tuple[int, ...], **fields: Any) -> Weight:
    """Weight of another shape."""
    own = {name: getattr(weight, name) for name in Weight.model_fields}
    return Weight(**(own | {"shape": shape} | fields))


def changed(kind: Any, **fields: Any) -> Any:
    """Attention or feed-forward kind with other fields, validated again."""
    own = {name: getattr(kind, name) for name in type(kind).model_fields}
    return type(kind)(**(own | fields))


def prefix(group: LayerGroup) -> str:
    """Where the tensors of a layer are named, up to the layer number."""
    return group.weights[0].name.partition("{layer}.")[0] + "{layer}."


def main_dtype(weights: Iterable[Weight], fallback: str) -> str:
    """Storage format of most elements of some weights."""
    sizes: dict[str, int] = {}
    for weight in weights:
        sizes[weight.dtype] = sizes.get(weight.dtype, 0) + weight.elements
    return max(sizes, key=sizes.__getitem__) if sizes else fallback
