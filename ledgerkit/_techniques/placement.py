"""Where experts live and how tokens reach them: offload to host memory, DeepEP.

*Offload* keeps the routed experts of all layers in host memory. ``how="stream"`` moves the distinct
experts of each step over the host link and computes them on the device; ``"in_place"`` computes
them in the host's memory (``host_bytes_per_s``, default 400 GB/s, ``host_flop_per_s``, default
20 TFLOP/s) and moves hidden states. Each device does so for its share of the experts.

*DeepEP removed*: every rank gathers all tokens (bf16, all-gather and reduce-scatter), and the
low-latency buffers go. The ledger prices the dispatch to the distinct ranks of DeepEP.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ledgerkit._techniques.point import Point
from ledgerkit._techniques.sides import Overlay, Row, State
from ledgerkit.costs.linear import served_bytes
from ledgerkit.costs.scheduling.exchange import low_latency_buffers
from ledgerkit.costs.scheduling.offload import Offload, expert_offload
from ledgerkit.errors import TechniqueError
from ledgerkit.spec.axes import Phase
from ledgerkit.spec.feed_forward import MoeFfn

_HIDDEN_BYTES = 2.0
_BUFFER_TOKENS = 128


def apply_offload(
    state: State,
    *,
    how: str = "stream",
    link_bytes_per_s: float | None = None,
    host_bytes_per_s: float | None = None,
    host_flop_per_s: float = 20e12,
) -> State:
    """Keep routed experts in host memory."""
    point = state.point
    if how not in ("stream", "in_place"):
        raise TechniqueError("unknown way to use offloaded experts", given=how,
                             allowed="stream, in_place", fix="use how='stream'")  # fmt: skip
    if not any(isinstance(group.ffn, MoeFfn) for group in point.model.groups):
        raise TechniqueError(f"{point.model.slug} has no experts to offload",
                             given=point.model.slug, fix="take a model with experts")  # fmt: skip
    rate = link_bytes_per_s or point.hardware.pcie_bytes_per_s
    if rate is None:
        raise TechniqueError(f"the host link of {point.hardware.slug} is unknown",
                             given=point.hardware.slug, fix="give link_bytes_per_s")  # fmt: skip
    memory = host_bytes_per_s or point.hardware.host_memory_bytes_per_s or 400e9
    work, layout = point.workload, point.deployment
    chunk = point.table().chunk_tokens
    new = work.new_tokens
    chunks = [min(chunk, new - done) for done in range(0, new, chunk)]
    ranks = layout.tp * layout.dp_attention

    def steps(tokens: int) -> list[Offload]:
        return _offloads(point, how, tokens, rate, memory, host_flop_per_s)

    def book(phase: Phase, rows: list[Row]) -> list[Row]:
        kept = [
            row
            for row in rows
            if not (row.account == "routed_experts" and row.resource in ("read", "resident"))
        ]
        if phase == "hold":
            return kept
        passes = [work.concurrency] if phase == "decode" else chunks
        moved = seconds = 0.0
        for tokens in passes:
            for found in steps(tokens):
                seconds += found.seconds
                moved += math.fsum(e.amount for e in found.entries if e.resource == "communicate")
        if how == "in_place":  # the host multiplies, too
            kept = [row for row in kept if row.account != "routed_experts"]
        kept += [
            Row(phase, "ffn_mlp", "offload", "host link", "communicate", moved, moved * ranks),
            Row(phase, "ffn_mlp", "offload", "experts by way of the host", "time", seconds, None),
        ]
        # what bounds them is the link or the host, not the device
        return [r for r in kept if not (r.account == "routed_experts" and r.resource == "time")]

    note = f"routed experts in host memory, {how.replace('_', ' ')}; link {rate:.3g} B/s"
    return state.booked(Overlay(book, notes=(note,)))


def _offloads(
    point: Point, how: str, tokens: int, rate: float, memory: float, flop: float
) -> list[Offload]:
    """One pass of all layers: each group of equal layers, on one device's share of the experts."""
    layout, model = point.deployment, point.model
    ranks = layout.tp * layout.dp_attention
    found = []
    for group in model.groups:
        ffn = group.ffn
        if not isinstance(ffn, MoeFfn):
            continue
        routed = [weight for weight in group.weights if weight.routed]
        size = math.fsum(served_bytes(weight, layout) for weight in routed)
        elements = math.fsum(weight.elements for weight in routed)
        found.append(
            expert_offload(
                layers=group.count, experts=ffn.num_experts, per_token=ffn.num_experts_per_tok,
                expert_bytes=size / ffn.num_experts / ranks, tokens=tokens, how=how,  # type: ignore[arg-type]
                link_bytes_per_s=rate, host_bytes_per_s=memory, host_flop_per_s=flop,
                expert_flop_per_token=2.0 * elements / ffn.num_experts * ffn.num_experts_per_tok
                / ranks,
                hidden_bytes=model.hidden_size * _HIDDEN_BYTES,
            )
        )  # fmt: skip
    return found


def apply_deepep(state: State) -> State:
    """Refuse: a ledger prices dispatch to the distinct ranks."""
    _needs_exchange(state.point)
    raise TechniqueError(
        "the ledger prices DeepEP's dispatch already", given=state.point.model.slug,
        fix="use action='remove' and reverse the transfer",
    )  # fmt: skip


def remove_deepep(state: State) -> State:
    """Gather all tokens on all ranks instead of dispatching them."""
    point = state.point
    _needs_exchange(point)
    experts = max(g.ffn.num_experts for g in point.model.groups if isinstance(g.ffn, MoeFfn))
    most = max(_BUFFER_TOKENS, point.workload.sequences_per_rank(point.deployment))
    buffers = low_latency_buffers(
        most_tokens=most, experts=experts, hidden_size=point.model.hidden_size
    )

    def book(phase: Phase, rows: list[Row]) -> list[Row]:
        if phase != "hold":
            return rows
        devices = point.deployment.devices
        return [*rows, Row("hold", "scheduling", "ep", buffers.op, "resident", -buffers.amount,
                           -buffers.amount * devices)]  # fmt: skip

    note = f"all-gather and reduce-scatter instead of dispatch; no buffers of {most} tokens"
    return replace(state, gathers=True).booked(Overlay(book, notes=(note,)))


def _needs_exchange(point: Point) -> None:
    moe = any(isinstance(group.ffn, MoeFfn) for group in point.model.groups)
    if not moe or point.deployment.dp_attention < 2 or point.deployment.ep < 2:
        raise TechniqueError(
            "tokens are not sent to experts in this deployment", given=point.deployment.ep,
            fix="give dp_attention and ep, such as dp_attention=8, ep=8",
        )  # fmt: skip
