r"""Prefill and decode on devices of their own: the cache moves once.

A prompt of n tokens sends :math:`kv \cdot n` bytes (and the states of recurrent layers) to the
decode side. What it buys is that no prompt stalls a decode step.

Source: DistServe, Mooncake. Worked: Llama-3.1-8B, 8,192 tokens: 1.07 GB, 21.5 ms at 50 GB/s.
"""

from __future__ import annotations

from ledgerkit.costs.scheduling.entry import SchedulingEntry, Value, booked, check


def disaggregation(
    *,
    prompt_tokens: int,
    cache_bytes: float,
    link_bytes_per_s: float,
    latency_s: float = 0.0,
    hidden_share: float = 0.0,
    stall_s: float = 0.0,
    weight_bytes: float = 0.0,
) -> tuple[SchedulingEntry, ...]:
    """Book the move of one prompt's cache, and what it saves.

    Parameters
    ----------
    prompt_tokens : int
        Of the prompt.
    cache_bytes : float
        Cache and states of one sequence of this prompt.
    link_bytes_per_s : float
        Between the two pools, of one device.
    latency_s : float
        Of the transfer.
    hidden_share : float
        Of the transfer, what later layers' prefill hides.
    stall_s : float
        Seconds by which this prompt would have prolonged the decode of others.
    weight_bytes : float
        Weights of the second copy of the model, per replica.

    Returns
    -------
    tuple of SchedulingEntry

    Examples
    --------
    >>> moved, late = disaggregation(
    ...     prompt_tokens=8192, cache_bytes=8192 * 131072, link_bytes_per_s=50e9
    ... )
    >>> round(moved.amount / 1e9, 2), round(late.amount * 1e3, 1)
    (1.07, 21.5)
    """
    check("prompt_tokens", prompt_tokens, 1)
    check("link_bytes_per_s", link_bytes_per_s, 1e-9)
    check("hidden_share", hidden_share, 0.0, 1.0)
    values: dict[str, Value] = {
        "cache_bytes": cache_bytes, "link_bytes_per_s": link_bytes_per_s, "latency_s": latency_s,
        "hidden": hidden_share,
    }  # fmt: skip
    source = "cache bytes of the prompt, sent once"
    late = latency_s + cache_bytes / link_bytes_per_s * (1.0 - hidden_share)
    return booked(
        SchedulingEntry(
            "cache to the decode side", "prefill", "scheduling", "pp", "communicate", cache_bytes,
            "prompt", "cache_bytes", {"cache_bytes": cache_bytes}, source, "exact",
        ),
        SchedulingEntry(
            "cache to the decode side", "prefill", "scheduling", "pp", "time", late, "prompt",
            "latency_s + cache_bytes / link_bytes_per_s * (1 - hidden)", values, source,
        ),
        SchedulingEntry(
            "decode not stalled", "decode", "scheduling", "queue", "time", -stall_s, "prompt",
            "-stall_s", {"stall_s": stall_s}, "prefill of others between two tokens",
        ),
        SchedulingEntry(
            "second copy of the weights", "hold", "scheduling", "pp", "resident", weight_bytes,
            "device", "weight_bytes", {"weight_bytes": weight_bytes}, "both sides hold the model",
        ),
    )  # fmt: skip
