"""Hybrids of linear (or state-space) layers and full attention.

Applied, each layer but every ``every``-th becomes a gated delta net with ``value_heads`` states of
``key_dim`` by ``value_dim`` (default: as many as query heads, half as many key heads), a short
convolution of 4 and the projections of Qwen3-Next. Removed, each state layer becomes the model's
own full-attention layer: its heads, widths and weights.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ledgerkit._techniques.point import Point, whole
from ledgerkit._techniques.rebuild import main_dtype, prefix, rebuild, regrouped, replaced
from ledgerkit.errors import TechniqueError
from ledgerkit.spec.attention import LatentAttention, SoftmaxAttention, StateAttention
from ledgerkit.spec.model import LayerGroup, Model
from ledgerkit.spec.weights import Weight

_KERNEL = 4


def apply_linear(
    point: Point, *, every: int = 4, value_heads: int | None = None, head_dim: int = 128
) -> Point:
    """Keep every ``every``-th layer, make the others gated delta nets."""
    model = point.model
    if any(isinstance(group.attention, StateAttention) for group in model.groups):
        raise TechniqueError(
            f"{model.slug} has linear layers already", given=model.slug,
            fix="use action='remove' to see what they save",
        )  # fmt: skip
    if value_heads is not None:
        whole("value_heads", value_heads)
    step, width = whole("every", every, 2), whole("head_dim", head_dim)
    return point.with_model(_hybrid(model, step, value_heads, width))


def remove_linear(point: Point) -> Point:
    """Make every state layer a full-attention layer of the same model."""
    model = point.model
    if not any(isinstance(group.attention, StateAttention) for group in model.groups):
        raise TechniqueError(
            f"{model.slug} has no linear layers to remove", given=model.slug,
            fix="apply 'hybrid_linear' to see what they would save",
        )  # fmt: skip
    return point.with_model(_full(model))


def _attends(group: LayerGroup) -> bool:
    return isinstance(group.attention, SoftmaxAttention | LatentAttention)


@lru_cache(maxsize=64)
def _full(model: Model) -> Model:
    pattern = next(
        (g for g in model.groups if _attends(g) and getattr(g.attention, "limit", None) is None),
        None,
    )
    if pattern is None:
        raise TechniqueError(
            f"{model.slug} has no full-attention layer to copy", given=model.slug,
            fix="take a hybrid model",
        )  # fmt: skip
    attends = [weight for weight in pattern.weights if weight.ledger == "attention_kv"]

    def change(group: LayerGroup) -> LayerGroup:
        if not isinstance(group.attention, StateAttention):
            return group
        others = [weight for weight in group.weights if weight.ledger != "attention_kv"]
        return replaced(group, pattern.attention, weights=[*attends, *others])

    return rebuild(model, change, "full attention",
                   "state layers become full-attention layers like the model's own")  # fmt: skip


@lru_cache(maxsize=64)
def _hybrid(model: Model, every: int, value_heads: int | None, width: int) -> Model:
    mixers = sorted(n for group in model.groups if _attends(group) for n in group.layers)
    kept = {layer for n, layer in enumerate(mixers, 1) if n % every == 0}
    if not mixers:
        raise TechniqueError(f"{model.slug} has no attention to replace", given=model.slug,
                             fix="take another model")  # fmt: skip
    groups: list[LayerGroup] = []
    for group in model.groups:
        if not _attends(group):
            groups.append(group)
            continue
        for flag in (True, False):
            layers = tuple(layer for layer in group.layers if (layer in kept) == flag)
            if not layers:
                continue
            part = LayerGroup(layers=layers, attention=group.attention, ffn=group.ffn,
                              weights=group.weights)  # fmt: skip
            groups.append(part if flag else _delta_net(part, model, value_heads, width))
    note = (
        f"all layers but each {every}th are gated delta nets with states of {width} x {width}, "
        "projections as in Qwen3-Next"
    )
    return regrouped(model, groups, f"1 full in {every}", note)


def _delta_net(group: LayerGroup, model: Model, value_heads: int | None, width: int) -> LayerGroup:
    heads: int = value_heads or group.attention.num_attention_heads  # type: ignore[union-attr]
    key_heads = max(1, heads // 2)
    keys, values = key_heads * width, heads * width
    channels = 2 * keys + values
    state = StateAttention(
        variant="gated_delta_net", num_heads=heads, key_dim=width, value_dim=width,
        num_groups=key_heads, conv_channels=channels, conv_kernel=_KERNEL,
    )  # fmt: skip
    dtype = main_dtype([w for w in group.weights if w.account == "projections"], model.dtype)
    at = prefix(group) + "linear_attn."

    def row(name: str, shape: tuple[int, ...], account: Any = "projections", use: Any = "linear",
            split: Any = "tp") -> Weight:  # fmt: skip
        return Weight(name=at + name, ledger="attention_kv", account=account, shape=shape, use=use,
                      split=split, dtype=dtype if use == "linear" else model.dtype)  # fmt: skip

    rows = [
        row("in_proj_qkvz.weight", (channels + values, model.hidden_size)),
        row("in_proj_ba.weight", (2 * heads, model.hidden_size)),
        row("conv1d.weight", (channels, 1, _KERNEL), "state", "vector"),
        row("A_log", (heads,), "state", "vector"),
        row("dt_bias", (heads,), "state", "vector"),
        row("norm.weight", (width,), "state", "vector", "none"),
        row("out_proj.weight", (model.hidden_size, values)),
    ]
    own = ("projections", "indexer", "state")
    others = [w for w in group.weights if w.ledger != "attention_kv" or w.account not in own]
    return replaced(group, state, weights=[*rows, *others])
