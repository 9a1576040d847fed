"""Parallel layouts: what dividing a model over devices saves on each, and what it sends."""

from __future__ import annotations

import math

from ledgerkit._techniques.point import Point, whole
from ledgerkit._techniques.sides import Overlay, Row, State
from ledgerkit.costs.scheduling.experts import expert_imbalance
from ledgerkit.errors import TechniqueError
from ledgerkit.spec.axes import PHASES, Phase
from ledgerkit.spec.feed_forward import MoeFfn


def apply_tp(point: Point, *, tp: int = 8) -> Point:
    """Divide heads and MLP widths over ``tp`` devices."""
    wanted = whole("tp", tp, 2)
    if wanted <= point.deployment.tp:
        raise TechniqueError(f"tp is {point.deployment.tp} already", given=wanted,
                             fix="give a larger tp, or action='remove'")  # fmt: skip
    return point.with_deployment(tp=wanted)


def remove_tp(point: Point) -> Point:
    """Put what the tensor-parallel ranks shared on one device."""
    if point.deployment.tp == 1:
        raise TechniqueError("there is no tensor parallelism to remove", given=1,
                             fix="use action='apply'")  # fmt: skip
    return point.with_deployment(tp=1, ep=math.gcd(point.deployment.ep,
                                                   point.deployment.dp_attention))  # fmt: skip


def apply_pp(point: Point, *, pp: int = 2) -> Point:
    """Divide the layers over ``pp`` stages."""
    wanted = whole("pp", pp, 2)
    if wanted <= point.deployment.pp:
        raise TechniqueError(f"pp is {point.deployment.pp} already", given=wanted,
                             fix="give a larger pp, or action='remove'")  # fmt: skip
    return point.with_deployment(pp=wanted)


def remove_pp(point: Point) -> Point:
    """Put all layers on one stage."""
    if point.deployment.pp == 1:
        raise TechniqueError("there is no pipeline to remove", given=1, fix="use action='apply'")
    return point.with_deployment(pp=1)


def apply_ep(state: State, *, ep: int | None = None, skew: float = 1.0) -> State:
    """Give each device whole experts; default: over all devices of a stage."""
    point = state.point
    _needs_experts(point)
    ranks = point.deployment.tp * point.deployment.dp_attention
    wanted = ranks if ep is None else whole("ep", ep, 2)
    if ranks == 1:
        raise TechniqueError("experts of one device cannot be spread", given="1 device",
                             fix="give the deployment tp or dp_attention")  # fmt: skip
    if wanted <= point.deployment.ep:
        raise TechniqueError(f"ep is {point.deployment.ep} already", given=wanted,
                             fix="give a larger ep, or action='remove'")  # fmt: skip
    return _waiting(state.moved(point.with_deployment(ep=wanted)), skew)


def _waiting(state: State, skew: float) -> State:
    """Book what the fullest rank makes the others wait for."""
    layout, work = state.point.deployment, state.point.workload
    sparse = [g.ffn for g in state.point.model.groups if isinstance(g.ffn, MoeFfn)]
    chosen = max(ffn.num_experts_per_tok for ffn in sparse)
    ridges = _ridges(state.point)

    def book(phase: Phase, rows: list[Row]) -> list[Row]:
        if phase == "hold":
            return rows
        tokens = work.concurrency if phase == "decode" else work.new_tokens
        amounts = {
            resource: math.fsum(
                row.amount for row in rows
                if row.account == "routed_experts" and row.resource == resource
            )
            for resource in ("time", "compute", "read")
        }  # fmt: skip
        read_bound = amounts["compute"] < ridges[PHASES.index(phase)] * amounts["read"]
        late = expert_imbalance(
            ranks=layout.ep, tokens=tokens, per_token=chosen, experts_s=amounts["time"], skew=skew,
            experts=max(ffn.num_experts for ffn in sparse) if read_bound else None,
        )  # fmt: skip
        return [*rows, Row(phase, late.ledger, late.account, late.op, "time", late.amount, None)]

    note = f"ranks wait for the fullest of {layout.ep}; static skew of the experts {skew:g}"
    return state.booked(Overlay(book, notes=(note,)))


def _ridges(point: Point) -> tuple[float, float]:
    """FLOP per byte of prefill and decode below which reading the experts takes the time."""
    table = point.table()
    at = next(
        i for i, one in enumerate(table.operations) if one.compute_account == "routed_experts"
    )
    prefill, decode = (price.per_byte("mid") / price.per_flop("mid") for price in table.prices[at])
    return prefill, decode


def remove_ep(state: State) -> State:
    """Slice every expert over all devices."""
    if state.point.deployment.ep == 1:
        raise TechniqueError("experts are not spread", given="ep=1", fix="use action='apply'")
    return state.moved(state.point.with_deployment(ep=1))


def apply_dp_attention(point: Point) -> Point:
    """Turn tensor-parallel attention ranks into data-parallel ones, experts over all of them."""
    layout = point.deployment
    if layout.tp == 1:
        raise TechniqueError("there are no tensor-parallel attention ranks to turn", given="tp=1",
                             fix="give the deployment tp")  # fmt: skip
    _needs_experts(point)
    ranks = layout.tp * layout.dp_attention
    return point.with_deployment(tp=1, dp_attention=ranks, ep=ranks)


def remove_dp_attention(point: Point) -> Point:
    """Turn data-parallel attention ranks into tensor-parallel ones."""
    layout = point.deployment
    if layout.dp_attention == 1:
        raise TechniqueError("attention is not data-parallel", given="dp_attention=1",
                             fix="use action='apply'")  # fmt: skip
    return point.with_deployment(tp=layout.tp * layout.dp_attention, dp_attention=1)


def _needs_experts(point: Point) -> None:
    if not any(isinstance(group.ffn, MoeFfn) for group in point.model.groups):
        raise TechniqueError(f"{point.model.slug} has no experts to spread",
                             given=point.model.slug, fix="take a model with experts")  # fmt: skip
