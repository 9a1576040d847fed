"""Quantization: weights, experts and cache in other storage formats; scales are counted.

The formats are those of ``Deployment``; nothing else changes. Work to expand or quantize values is
priced where the efficiencies of a device know the format, otherwise it is a stated risk.
"""

from __future__ import annotations

from ledgerkit._techniques.point import Point
from ledgerkit.costs.linear import served_dtype
from ledgerkit.errors import TechniqueError
from ledgerkit.spec.attention import LatentAttention
from ledgerkit.spec.deployment import Deployment
from ledgerkit.spec.model import Model

_PLAIN = ("bf16", "fp16", "fp32")


def apply_kv(point: Point, *, kv_dtype: str | None = None) -> Point:
    """Store the cache in 8 bits or fewer; default ``fp8_ds_mla`` for MLA, else ``fp8``."""
    latent = all(
        isinstance(group.attention, LatentAttention)
        for group in point.model.groups
        if group.attention.elements_per_token
    )
    wanted = kv_dtype or ("fp8_ds_mla" if latent else "fp8")
    if point.deployment.kv_dtype == wanted:
        raise TechniqueError(f"the cache is {wanted} already", given=wanted,
                             fix="give another kv_dtype, or action='remove'")  # fmt: skip
    return point.with_deployment(kv_dtype=wanted)


def remove_kv(point: Point) -> Point:
    """Store the cache in bf16."""
    if point.deployment.kv_dtype in _PLAIN:
        raise TechniqueError("the cache is not quantized", given=point.deployment.kv_dtype,
                             fix="use action='apply'")  # fmt: skip
    return point.with_deployment(kv_dtype="bf16")


def apply_weights(point: Point, *, dtype: str) -> Point:
    """Store projections, dense MLPs and experts in ``dtype``; embeddings, head and norms stay."""
    new = point.with_deployment(weights=dtype, experts=None)
    _check_change(point, new, dtype)
    return new


def remove_weights(point: Point) -> Point:
    """Store the matrices in bf16."""
    new = point.with_deployment(weights="bf16", experts=None)
    _check_change(point, new, "bf16")
    return new


def apply_experts(point: Point, *, dtype: str = "mxfp4") -> Point:
    """Store routed and shared experts in ``dtype``; attention and router stay."""
    new = point.with_deployment(experts=dtype)
    _check_change(point, new, dtype)
    return new


def remove_experts(point: Point) -> Point:
    """Store routed and shared experts in bf16."""
    new = point.with_deployment(experts="bf16")
    _check_change(point, new, "bf16")
    return new


def served(model: Model, deployment: Deployment) -> list[str]:
    """Storage format of each weight class, in order."""
    return [served_dtype(weight, deployment) for weight, _ in model.booked_weights()]


def _check_change(old: Point, new: Point, dtype: str) -> None:
    experts = any(weight.routed for weight, _ in old.model.booked_weights())
    if new.deployment.experts and not experts:
        raise TechniqueError(f"{old.model.slug} has no experts to re-type", given=dtype,
                             fix="use a weight quantization")  # fmt: skip
    if served(old.model, old.deployment) == served(new.model, new.deployment):
        raise TechniqueError(
            f"{old.model.slug} is served like that already", given=dtype,
            fix="give another format, or the other action",
        )  # fmt: skip
