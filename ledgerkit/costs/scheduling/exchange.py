r"""DeepEP: normal kernels with one copy per rank, low-latency kernels with one per expert.

Per token of width d: dispatch in fp8 with a scale of 128 elements and 16 B of routing,
:math:`d + d/128 \cdot 4 + 16`; combine in bf16, :math:`2 d`. Normal kernels send one copy to each
of the R distinct ranks; low-latency kernels send k copies and need buffers for the worst case.

Source: DeepEP (docs/legacy.md; ``Buffer.get_low_latency_rdma_size_hint``). Worked, d = 7,168:
7,408 B and 14,336 B for each (token, expert): 128 tokens of 8 experts 7.59 and 14.68 MB; buffers of
288 experts and 128 tokens 2.1 GB.
"""

from __future__ import annotations

from ledgerkit.costs.communication import distinct_ranks
from ledgerkit.costs.scheduling.entry import SchedulingEntry, Value, check

_SCALE_GROUP, _SCALE_BYTES, _ROUTING_BYTES = 128, 4.0, 16.0
SOURCE = "fp8 with scales out, bf16 back (deepseek-ai/DeepEP)"


def dispatch_bytes(hidden_size: int) -> float:
    """Bytes of one token's dispatch to one destination.

    Examples
    --------
    >>> dispatch_bytes(7168)
    7408.0
    """
    check("hidden_size", hidden_size, 1)
    return hidden_size + hidden_size / _SCALE_GROUP * _SCALE_BYTES + _ROUTING_BYTES


def combine_bytes(hidden_size: int) -> float:
    """Bytes of one token's way back from one destination.

    Examples
    --------
    >>> combine_bytes(7168)
    14336.0
    """
    check("hidden_size", hidden_size, 1)
    return 2.0 * hidden_size


def normal_exchange(
    *, tokens: int, ranks: int, experts: int, per_token: int, hidden_size: int
) -> tuple[SchedulingEntry, SchedulingEntry]:
    """Dispatch and combine of one layer and step with normal kernels, bytes sent by a rank.

    Examples
    --------
    >>> out, back = normal_exchange(
    ...     tokens=4096, ranks=8, experts=256, per_token=8, hidden_size=7168
    ... )
    >>> round(out.amount / 1e6), round(back.amount / 1e6)
    (141, 272)
    """
    check("tokens", tokens, 1)
    reached = distinct_ranks(ranks, experts, per_token)
    values: dict[str, Value] = {
        "tokens": tokens, "ranks": ranks, "experts": experts, "each": experts // ranks,
        "k": per_token,
    }  # fmt: skip
    copies = "tokens * (ranks - 1) * (1 - comb(experts - each, k) / comb(experts, k))"
    sent = tokens * reached * (1.0 - 1.0 / ranks)
    return _pair("normal", sent, copies, values, hidden_size)


def low_latency_exchange(
    *, tokens: int, per_token: int, hidden_size: int
) -> tuple[SchedulingEntry, SchedulingEntry]:
    """Dispatch and combine of one layer and step with low-latency kernels: k copies.

    Examples
    --------
    >>> out, back = low_latency_exchange(tokens=128, per_token=8, hidden_size=7168)
    >>> round(out.amount / 1e6, 2), round(back.amount / 1e6, 2)
    (7.59, 14.68)
    """
    check("tokens", tokens, 1)
    values: dict[str, Value] = {"tokens": tokens, "k": per_token}
    return _pair("low latency", float(tokens * per_token), "tokens * k", values, hidden_size)


def _pair(
    kind: str, copies: float, expression: str, values: dict[str, Value], hidden_size: int
) -> tuple[SchedulingEntry, SchedulingEntry]:
    values = {**values, "hidden": hidden_size}
    return (
        SchedulingEntry(
            f"dispatch, {kind}", "decode", "scheduling", "ep", "communicate",
            copies * dispatch_bytes(hidden_size), "step",
            f"{expression} * (hidden + hidden / 128 * 4 + 16)", values, SOURCE,
        ),
        SchedulingEntry(
            f"combine, {kind}", "decode", "scheduling", "ep", "communicate",
            copies * combine_bytes(hidden_size), "step", f"{expression} * 2 * hidden", values,
            SOURCE,
        ),
    )  # fmt: skip


def low_latency_buffers(*, most_tokens: int, experts: int, hidden_size: int) -> SchedulingEntry:
    """Bytes that low-latency kernels keep on a device, for the worst routing, twice.

    Examples
    --------
    >>> round(low_latency_buffers(most_tokens=128, experts=288, hidden_size=7168).amount / 2**30, 1)
    2.0
    """
    check("most_tokens", most_tokens, 1)
    check("experts", experts, 1)
    return SchedulingEntry(
        "low-latency buffers", "hold", "scheduling", "ep", "resident",
        2 * 2 * experts * most_tokens * combine_bytes(hidden_size), "device",
        "2 * (sent + received) * experts * tokens * 2 * hidden",
        {"sent": 1, "received": 1, "experts": experts, "tokens": most_tokens,
         "hidden": hidden_size}, SOURCE,
    )  # fmt: skip
