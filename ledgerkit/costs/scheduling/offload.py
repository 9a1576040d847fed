r"""Experts in host memory: streamed to the device, or computed where they are.

* stream: the distinct experts of a step cross the host link, :math:`D(T) \, b / β`;
* in place: the host computes them, :math:`\max(D(T) \, b / BW_{dram},\; FLOP / P_{cpu})`, and the
  hidden states cross the link twice.

Source: KTransformers; arithmetic of distinct experts. Worked: DeepSeek-V3 at 4 bit, one token:
11.5 GB, 209 ms over PCIe 5 (55 GB/s), 28.7 ms at 400 GB/s of host memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ledgerkit.costs.scheduling.entry import SchedulingEntry, Value, booked, check


@dataclass(frozen=True, slots=True)
class Offload:
    """What keeping routed experts in host memory saves and costs, per step."""

    experts_read: float
    """Distinct experts of a step, in all layers."""
    seconds: float
    """Of the routed experts."""
    entries: tuple[SchedulingEntry, ...]


def expert_offload(
    *,
    layers: int,
    experts: int,
    per_token: int,
    expert_bytes: float,
    tokens: int,
    how: Literal["stream", "in_place"],
    link_bytes_per_s: float,
    host_bytes_per_s: float = 0.0,
    host_flop_per_s: float = 0.0,
    expert_flop_per_token: float = 0.0,
    hidden_bytes: float = 0.0,
    sync_s: float = 0.0,
    device_s: float = 0.0,
) -> Offload:
    """Book the routed experts of one step.

    Parameters
    ----------
    layers, experts, per_token : int
        Layers with experts, experts of a layer, experts of a token.
    expert_bytes : float
        Stored bytes of one expert.
    tokens : int
        Of the step.
    how : {"stream", "in_place"}
        Move the weights, or the hidden states.
    link_bytes_per_s : float
        Between host and device, one way.
    host_bytes_per_s, host_flop_per_s : float
        Of the host, for ``in_place``.
    expert_flop_per_token : float
        FLOP of all experts of one token in one layer.
    hidden_bytes : float
        Of one token's hidden state.
    sync_s : float
        Seconds of waiting for each other, per layer.
    device_s : float
        Seconds that the same experts take in device memory.

    Returns
    -------
    Offload

    Raises
    ------
    DeploymentError
        A rate is missing or a number is out of range.

    Examples
    --------
    >>> found = expert_offload(
    ...     layers=58,
    ...     experts=256,
    ...     per_token=8,
    ...     expert_bytes=24.77e6,
    ...     tokens=1,
    ...     how="stream",
    ...     link_bytes_per_s=55e9,
    ... )
    >>> round(found.seconds * 1e3)
    209
    """
    check("experts_per_token", per_token, 1, experts)
    check("tokens", tokens, 1)
    check("link_bytes_per_s", link_bytes_per_s, 1e-9)
    hit = layers * experts * (1.0 - (1.0 - per_token / experts) ** tokens)
    values: dict[str, Value] = {
        "layers": layers, "experts": experts, "miss": 1.0 - per_token / experts,
        "tokens": tokens, "expert_bytes": expert_bytes,
    }  # fmt: skip
    read = "layers * expert_bytes * distinct(tokens, experts, miss)"
    moved = hit * expert_bytes
    if how == "stream":
        values["link_bytes_per_s"] = link_bytes_per_s
        crossing, crossing_text = moved, read
        seconds, text = moved / link_bytes_per_s, f"{read} / link_bytes_per_s"
    else:
        check("host_bytes_per_s", host_bytes_per_s, 1e-9)
        flop = layers * tokens * expert_flop_per_token
        crossing = 2.0 * layers * tokens * hidden_bytes
        crossing_text = "2 * layers * tokens * hidden_bytes"
        values |= {"host_bytes_per_s": host_bytes_per_s, "hidden_bytes": hidden_bytes,
                   "link_bytes_per_s": link_bytes_per_s}  # fmt: skip
        work_s, work = moved / host_bytes_per_s, f"{read} / host_bytes_per_s"
        if flop:
            check("host_flop_per_s", host_flop_per_s, 1e-9)
            values |= {"host_flop_per_s": host_flop_per_s, "expert_flop": expert_flop_per_token}
            work_s = max(work_s, flop / host_flop_per_s)
            work = f"max({work}, layers * tokens * expert_flop / host_flop_per_s)"
        seconds = work_s + crossing / link_bytes_per_s
        text = f"{work} + {crossing_text} / link_bytes_per_s"
    seconds += layers * sync_s
    values |= {"sync_s": sync_s, "device_s": device_s}
    source = "distinct experts of a step; bytes over rate"
    entries = booked(
        SchedulingEntry(
            "experts not in device memory", "hold", "ffn_mlp", "routed_experts", "resident",
            -layers * experts * expert_bytes, "device", "-layers * experts * expert_bytes",
            values, "stored bytes of the routed experts", "exact",
        ),
        SchedulingEntry(
            "experts not read from device memory", "decode", "ffn_mlp", "routed_experts", "read",
            -moved, "step", f"-({read})", values, source,
        ),
        SchedulingEntry(
            "host link", "decode", "ffn_mlp", "offload", "communicate", crossing, "step",
            crossing_text, values, source,
        ),
        SchedulingEntry(
            "experts by the host", "decode", "ffn_mlp", "offload", "time", seconds - device_s,
            "step", f"{text} + layers * sync_s - device_s", values, source,
        ),
    )  # fmt: skip
    return Offload(hit, seconds, entries)
