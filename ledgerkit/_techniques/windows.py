"""Sliding windows, and hybrids of window and global layers.

Applied, softmax layers see the last ``window`` tokens; with ``every`` > 0 each ``every``-th layer
stays global (6: five local layers, then a global one). Weights do not change. Removed, window
layers see everything again, with their own heads and widths.
"""

from __future__ import annotations

from functools import lru_cache

from ledgerkit._techniques.point import Point, whole
from ledgerkit._techniques.rebuild import changed, rebuild, regrouped, replaced
from ledgerkit.errors import TechniqueError
from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.model import LayerGroup, Model


def apply_window(point: Point, *, window: int = 1024) -> Point:
    """Give every softmax layer a window."""
    return point.with_model(with_window(_unwindowed(point), whole("window", window), 0))


def apply_window_hybrid(point: Point, *, window: int = 1024, every: int = 6) -> Point:
    """Give all softmax layers but every ``every``-th a window."""
    size, step = whole("window", window), whole("every", every, 2)
    return point.with_model(with_window(_unwindowed(point), size, step))


def remove_window(point: Point) -> Point:
    """Let window layers see all tokens."""
    if not any(_limited(group) for group in point.model.groups):
        raise TechniqueError(
            f"{point.model.slug} has no window to remove", given=point.model.slug,
            fix="apply 'sliding_window' to see what a window would save",
        )  # fmt: skip
    return point.with_model(_without_window(point.model))


def _limited(group: LayerGroup) -> bool:
    return isinstance(group.attention, SoftmaxAttention) and group.attention.limit is not None


def _unwindowed(point: Point) -> Model:
    model = point.model
    if any(_limited(group) for group in model.groups):
        raise TechniqueError(
            f"{model.slug} has windows already", given=model.slug,
            fix="use action='remove' to see what they save",
        )  # fmt: skip
    if not any(isinstance(group.attention, SoftmaxAttention) for group in model.groups):
        raise TechniqueError(f"{model.slug} has no softmax attention to give a window",
                             given=model.slug, fix="take another model")  # fmt: skip
    return model


@lru_cache(maxsize=64)
def with_window(model: Model, window: int, every: int) -> Model:
    """Model with windows; ``every`` = 0 leaves no layer global."""
    softmax = sorted(
        layer
        for group in model.groups
        if isinstance(group.attention, SoftmaxAttention)
        for layer in group.layers
    )
    local = {layer for n, layer in enumerate(softmax, 1) if not every or n % every}
    groups: list[LayerGroup] = []
    for group in model.groups:
        if not isinstance(group.attention, SoftmaxAttention):
            groups.append(group)
            continue
        for flag in (True, False):
            layers = tuple(layer for layer in group.layers if (layer in local) == flag)
            if layers:
                attention = changed(group.attention, window=window) if flag else group.attention
                groups.append(
                    LayerGroup(layers=layers, attention=attention, ffn=group.ffn,
                               weights=group.weights)
                )  # fmt: skip
    if every:
        label, rest = (
            f"window {window}, 1 global in {every}",
            f"layer {every}, {2 * every} ... global",
        )
    else:
        label, rest = f"window {window}", "no layer global"
    return regrouped(model, groups, label, f"window of {window} tokens, {rest}; same weights")


@lru_cache(maxsize=64)
def _without_window(model: Model) -> Model:
    def change(group: LayerGroup) -> LayerGroup:
        if not _limited(group):
            return group
        return replaced(group, changed(group.attention, window=None, chunk=None))

    note = "window layers see all tokens, with their own heads and widths; same weights"
    return rebuild(model, change, "no window", note)
