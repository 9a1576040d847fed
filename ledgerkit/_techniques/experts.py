"""MoE, shared experts and gates: other feed-forward blocks of the same layers.

*MoE removed*, a layer has one dense MLP: ``against="equal_active"`` (default) as wide as what a
token uses (``num_experts_per_tok`` experts, shared experts and a dense MLP beside them), so that
active parameters stay, or ``"equal_total"`` as wide as all experts, so that the size stays. *MoE
applied* to a dense MLP of width f: ``experts`` experts of f / ``per_token`` with ``per_token``
active (equal active parameters), and a router.

*Shared experts removed*: their width is routed, as that many more experts per token of the same
pool. *Applied*: one of ``num_experts_per_tok`` becomes shared.

*A gate removed* (SwiGLU, GeGLU): two matrices instead of three, 3/2 as wide
(``against="equal_parameters"``) or as wide as they are (``"equal_width"``).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ledgerkit._techniques.point import Point, whole
from ledgerkit._techniques.rebuild import changed, main_dtype, prefix, rebuild, replaced
from ledgerkit.errors import TechniqueError
from ledgerkit.spec.axes import Account
from ledgerkit.spec.feed_forward import DenseFfn, MoeFfn
from ledgerkit.spec.model import LayerGroup, Model
from ledgerkit.spec.weights import Weight

_BLOCK: tuple[Account, ...] = ("dense", "routed_experts", "shared_experts", "router")
_TILE = 128


def _has_moe(model: Model) -> bool:
    return any(isinstance(group.ffn, MoeFfn) for group in model.groups)


def remove_moe(point: Point, *, against: str = "equal_active") -> Point:
    """Replace experts by one dense MLP."""
    if not _has_moe(point.model):
        raise TechniqueError(
            f"{point.model.slug} has no experts to remove", given=point.model.slug,
            fix="apply 'moe' to see what they would save",
        )  # fmt: skip
    _one_of("against", against, ("equal_active", "equal_total"))
    return point.with_deployment(ep=1, experts=None).with_model(_dense(point.model, against))


def apply_moe(point: Point, *, experts: int = 64, per_token: int = 8) -> Point:
    """Replace dense MLPs by experts of the same active parameters."""
    if _has_moe(point.model):
        raise TechniqueError(
            f"{point.model.slug} has experts already", given=point.model.slug,
            fix="use action='remove' to see what they save",
        )  # fmt: skip
    if not any(isinstance(group.ffn, DenseFfn) for group in point.model.groups):
        raise TechniqueError(f"{point.model.slug} has no feed-forward blocks",
                             given=point.model.slug, fix="take another model")  # fmt: skip
    count, chosen = whole("experts", experts), whole("per_token", per_token)
    if chosen > count:
        raise TechniqueError("per_token must not be more than experts", given=chosen,
                             allowed=f"1 to {count}", fix="give more experts")  # fmt: skip
    return point.with_model(_moe(point.model, count, chosen))


def remove_shared(point: Point) -> Point:
    """Route what the shared experts did."""
    if not any(
        isinstance(group.ffn, MoeFfn) and group.ffn.shared_intermediate_size
        for group in point.model.groups
    ):
        raise TechniqueError(
            f"{point.model.slug} has no shared experts to remove", given=point.model.slug,
            fix="apply 'shared_experts' to a model with routed experts only",
        )  # fmt: skip
    return point.with_model(_all_routed(point.model))


def apply_shared(point: Point) -> Point:
    """Make one of the experts of a token a shared one."""
    if not any(
        isinstance(group.ffn, MoeFfn)
        and not group.ffn.shared_intermediate_size
        and group.ffn.num_experts_per_tok > 1
        for group in point.model.groups
    ):
        raise TechniqueError(
            f"{point.model.slug} has shared experts already, or no experts to share",
            given=point.model.slug, fix="use action='remove' where the model has them",
        )  # fmt: skip
    return point.with_model(_one_shared(point.model))


def remove_gate(point: Point, *, against: str = "equal_parameters") -> Point:
    """Two matrices for each MLP instead of three."""
    _one_of("against", against, ("equal_parameters", "equal_width"))
    return point.with_model(_gates(point.model, 2, against))


def apply_gate(point: Point, *, against: str = "equal_parameters") -> Point:
    """Three matrices for each MLP instead of two."""
    _one_of("against", against, ("equal_parameters", "equal_width"))
    return point.with_model(_gates(point.model, 3, against))


def _one_of(name: str, given: str, allowed: tuple[str, ...]) -> None:
    if given not in allowed:
        raise TechniqueError(f"unknown {name}", given=given, allowed=", ".join(allowed),
                             fix=f"use {name}={allowed[0]!r}")  # fmt: skip


def mlp(
    group: LayerGroup, hidden: int, width: int, matrices: int, account: Account, dtype: str,
    *, copies: int = 1,
) -> list[Weight]:  # fmt: skip
    """Rows of an MLP, or of ``copies`` routed ones."""
    routed = account == "routed_experts"
    names = ("gate_proj", "up_proj", "down_proj")[3 - matrices :]
    middle = {"routed_experts": "experts.{expert}.", "shared_experts": "shared_experts."}
    at = prefix(group) + "mlp." + middle.get(account, "")
    return [
        Weight(
            name=f"{at}{name}.weight", ledger="ffn_mlp", account=account,
            shape=(hidden, width) if name == "down_proj" else (width, hidden), copies=copies,
            split="experts" if routed else "tp", dtype=dtype, routed=routed,
        )
        for name in names
    ]  # fmt: skip


def _others(group: LayerGroup, *accounts: Account) -> list[Weight]:
    return [w for w in group.weights if w.ledger != "ffn_mlp" or w.account not in accounts]


def _dtype(group: LayerGroup, model: Model, *accounts: Account) -> str:
    return main_dtype([w for w in group.weights if w.account in accounts and len(w.shape) > 1],
                      model.dtype)  # fmt: skip


@lru_cache(maxsize=64)
def _dense(model: Model, against: str) -> Model:
    def change(group: LayerGroup) -> LayerGroup:
        ffn = group.ffn
        if not isinstance(ffn, MoeFfn):
            return group
        count = ffn.num_experts_per_tok if against == "equal_active" else ffn.num_experts
        # experts behind a narrower hidden state count as what they hold
        inner = ffn.expert_hidden_size or model.hidden_size
        routed = count * ffn.moe_intermediate_size * inner // model.hidden_size
        width = routed + ffn.shared_intermediate_size + ffn.dense_intermediate_size
        dtype = _dtype(group, model, "routed_experts")
        rows = mlp(group, model.hidden_size, width, ffn.matrices, "dense", dtype)
        dense = DenseFfn(intermediate_size=width, matrices=ffn.matrices)
        return replaced(group, ffn=dense, weights=[*_others(group, *_BLOCK), *rows])

    words = {"equal_active": "active parameters", "equal_total": "total parameters"}[against]
    note = f"one dense MLP of equal {words} in place of experts, in the experts' dtype; no router"
    return rebuild(model, change, f"dense, {against.replace('_', ' ')}", note)


@lru_cache(maxsize=64)
def _moe(model: Model, experts: int, per_token: int) -> Model:
    def change(group: LayerGroup) -> LayerGroup:
        ffn = group.ffn
        if not isinstance(ffn, DenseFfn):
            return group
        width = ffn.intermediate_size // per_token
        if ffn.intermediate_size % per_token:
            raise TechniqueError(
                f"per_token must divide intermediate_size = {ffn.intermediate_size}",
                given=per_token, allowed=f"divisors of {ffn.intermediate_size}",
                fix="use per_token=8 or 4",
            )  # fmt: skip
        dtype = _dtype(group, model, "dense")
        rows = [
            Weight(name=prefix(group) + "mlp.gate.weight", ledger="ffn_mlp", account="router",
                   shape=(experts, model.hidden_size), dtype=model.dtype),
            *mlp(group, model.hidden_size, width, ffn.matrices, "routed_experts", dtype,
                 copies=experts),
        ]  # fmt: skip
        moe = MoeFfn(num_experts=experts, num_experts_per_tok=per_token,
                     moe_intermediate_size=width, matrices=ffn.matrices)  # fmt: skip
        return replaced(group, ffn=moe, weights=[*_others(group, "dense"), *rows])

    note = (
        f"{experts} experts, {per_token} per token, each 1/{per_token} as wide as the dense MLP: "
        "equal active parameters"
    )
    return rebuild(model, change, f"MoE {experts}/{per_token}", note)


@lru_cache(maxsize=64)
def _all_routed(model: Model) -> Model:
    def change(group: LayerGroup) -> LayerGroup:
        ffn = group.ffn
        if not isinstance(ffn, MoeFfn) or not ffn.shared_intermediate_size:
            return group
        more = max(1, round(ffn.shared_intermediate_size / ffn.moe_intermediate_size))
        moe: Any = changed(ffn, num_experts_per_tok=ffn.num_experts_per_tok + more,
                           shared_intermediate_size=0)  # fmt: skip
        kept = [
            w for w in _others(group, "shared_experts")
            if not (w.account == "router" and w.shape[0] == 1)
        ]  # fmt: skip
        return replaced(group, ffn=moe, weights=kept)

    note = "the width of the shared experts is routed: more experts per token of the same pool"
    return rebuild(model, change, "no shared experts", note)


@lru_cache(maxsize=64)
def _one_shared(model: Model) -> Model:
    def change(group: LayerGroup) -> LayerGroup:
        ffn = group.ffn
        if (
            not isinstance(ffn, MoeFfn)
            or ffn.shared_intermediate_size
            or ffn.num_experts_per_tok == 1
        ):
            return group
        width = ffn.moe_intermediate_size
        moe: Any = changed(ffn, num_experts_per_tok=ffn.num_experts_per_tok - 1,
                           shared_intermediate_size=width)  # fmt: skip
        dtype = _dtype(group, model, "routed_experts")
        rows = mlp(group, model.hidden_size, width, ffn.matrices, "shared_experts", dtype)
        return replaced(group, ffn=moe, weights=[*group.weights, *rows])

    note = "one of the experts of a token is shared: active parameters stay, one more is stored"
    return rebuild(model, change, "shared expert", note)


@lru_cache(maxsize=64)
def _gates(model: Model, wanted: int, against: str) -> Model:
    """Model whose dense MLPs have this many matrices."""
    has = {g.ffn.matrices for g in model.groups if isinstance(g.ffn, DenseFfn)}
    if has != {5 - wanted}:
        what = "dense MLPs" if not has else f"MLPs of {', '.join(map(str, sorted(has)))} matrices"
        raise TechniqueError(
            f"{model.slug} has {what if has else 'no dense MLPs'}: nothing to change to {wanted}",
            given=model.slug, fix="use the other action, or a dense model",
        )  # fmt: skip

    def change(group: LayerGroup) -> LayerGroup:
        ffn = group.ffn
        if not isinstance(ffn, DenseFfn):
            return group
        width = ffn.intermediate_size
        if against == "equal_parameters":
            # widths stay multiples of a tile, as trained models have them
            width = round(width * ffn.matrices / wanted / _TILE) * _TILE
        rows = mlp(group, model.hidden_size, width, wanted, "dense",
                   _dtype(group, model, "dense"))  # fmt: skip
        dense = DenseFfn(intermediate_size=width, matrices=wanted)
        return replaced(group, ffn=dense, weights=[*_others(group, "dense"), *rows])

    label = "plain MLP" if wanted == 2 else "gated MLP"
    note = f"{label} of {against.replace('_', ' ')}; width a multiple of {_TILE}"
    if against == "equal_parameters":
        note += "; equal FLOP and bytes: what differs is quality"
    return rebuild(model, change, label, note)
