r"""Prefix and radix cache: prefill that is not done again.

A hit covers whole blocks and leaves at least one token to compute:
:math:`h = \min(\lfloor match / b \rfloor b,\; n - 1)`. It saves the linear work of h tokens and
the pairs among them, and holds their cache. Keeping one token for τ seconds occupies
:math:`kv / pool` of the device for that time: with s seconds to recompute it, holding pays while

.. math:: τ < s \cdot pool / kv.

A radix tree counts a shared prefix once. Models with a recurrent state hit only at stored states:
``block_size`` is then the distance between them.

Source: SGLang (arXiv 2312.07104), vLLM prefix caching. Worked: Llama-3.1-8B at 28.2 µs of device
time per prompt token and a pool of 60 GB: 12.9 s; a hit of 87.5 % of the tokens saves 76.6 % of the
pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

from ledgerkit.costs.scheduling.entry import SchedulingEntry, Value, booked, check
from ledgerkit.spec.axes import Account


@dataclass(frozen=True, slots=True)
class PrefixHit:
    """What a hit in the prefix cache saves and holds, per prompt."""

    hit_tokens: int
    linear_share_saved: float
    """Of the linear work of the prompt."""
    pair_share_saved: float
    """Of its attention pairs."""
    entries: tuple[SchedulingEntry, ...]


def hit_tokens(match_tokens: int, prompt_tokens: int, block_size: int) -> int:
    """Prompt tokens that a hit covers: whole blocks, at least one token left.

    Examples
    --------
    >>> hit_tokens(1000, 1024, 16), hit_tokens(1024, 1024, 16)
    (992, 1023)
    """
    check("prompt_tokens", prompt_tokens, 1)
    check("match_tokens", match_tokens, 0, prompt_tokens)
    check("block_size", block_size, 1)
    return min(match_tokens // block_size * block_size, prompt_tokens - 1)


def prefix_hit(
    *,
    prompt_tokens: int,
    match_tokens: int,
    block_size: int,
    projection_flop_per_token: float,
    ffn_flop_per_token: float,
    flop_per_pair: float,
    kv_bytes_per_token: float,
    saved_s: float | None = None,
    lookup_s: float = 0.0,
    ffn_account: Account = "dense",
) -> PrefixHit:
    """Book one hit.

    Parameters
    ----------
    prompt_tokens, match_tokens : int
        Of the prompt, and how many of them are cached.
    block_size : int
        Tokens of a block, or between two stored states.
    projection_flop_per_token, ffn_flop_per_token : float
        FLOP of weights per prompt token, by ledger.
    flop_per_pair : float
        FLOP of one (query, key) pair in all layers that see the whole context.
    kv_bytes_per_token : float
        Cache bytes of one token.
    saved_s : float, optional
        Prefill seconds that the hit saves.
    lookup_s : float
        Host seconds of finding it.
    ffn_account : str
        ``dense``, or ``routed_experts`` of a MoE model.

    Examples
    --------
    >>> found = prefix_hit(
    ...     prompt_tokens=8192,
    ...     match_tokens=7168,
    ...     block_size=16,
    ...     projection_flop_per_token=2.7e9,
    ...     ffn_flop_per_token=11.3e9,
    ...     flop_per_pair=524288,
    ...     kv_bytes_per_token=131072,
    ... )
    >>> round(found.linear_share_saved, 3), round(found.pair_share_saved, 3)
    (0.875, 0.766)
    """
    hit = hit_tokens(match_tokens, prompt_tokens, block_size)
    pairs_saved, pairs_all = (n * (n + 1) / 2.0 for n in (hit, prompt_tokens))
    covered = "min(floor(match_tokens / block) * block, prompt_tokens - 1)"
    values: dict[str, Value] = {
        "match_tokens": match_tokens, "block": block_size, "prompt_tokens": prompt_tokens,
    }  # fmt: skip
    entries = [
        SchedulingEntry(
            "projections not applied again", "prefill", "attention_kv", "projections", "compute",
            -projection_flop_per_token * hit, "prompt", f"-projection_flop * {covered}",
            {**values, "projection_flop": projection_flop_per_token},
            "2 FLOP per weight and token",
        ),
        SchedulingEntry(
            "FFN not applied again", "prefill", "ffn_mlp", ffn_account, "compute",
            -ffn_flop_per_token * hit, "prompt", f"-ffn_flop * {covered}",
            {**values, "ffn_flop": ffn_flop_per_token}, "2 FLOP per weight and token",
        ),
        SchedulingEntry(
            "pairs not computed again", "prefill", "attention_kv", "core", "compute",
            -flop_per_pair * pairs_saved, "prompt", f"-flop_per_pair * pairs({covered}, 0)",
            {**values, "flop_per_pair": flop_per_pair}, "causal pairs inside the hit",
        ),
        SchedulingEntry(
            "cached prefix", "hold", "attention_kv", "cache", "resident",
            kv_bytes_per_token * hit, "prompt", f"kv_bytes * {covered}",
            {**values, "kv_bytes": kv_bytes_per_token}, "cache bytes of the hit, held between uses",
        ),
        SchedulingEntry(
            "lookup", "prefill", "scheduling", "host", "time", lookup_s, "prompt", "lookup_s",
            {"lookup_s": lookup_s}, "hashing and matching on the host",
        ),
    ]  # fmt: skip
    if saved_s is not None:
        entries.append(
            SchedulingEntry(
                "prefill not done again", "prefill", "scheduling", "recompute", "time", -saved_s,
                "prompt", "-saved_s", {"saved_s": saved_s},
                "prefill time without the hit less that with it",
            )
        )  # fmt: skip
    return PrefixHit(hit, hit / prompt_tokens, pairs_saved / pairs_all, booked(*entries))


def break_even_reuse_s(
    recompute_s_per_token: float, kv_bytes_per_token: float, pool_bytes: float
) -> float:
    """Longest interval between two uses for which holding a prefix pays, in seconds.

    Holds where the pool binds: a token that is held keeps another sequence out.

    Examples
    --------
    >>> round(break_even_reuse_s(28.2e-6, 131072, 60e9), 1)
    12.9
    """
    check("recompute_s_per_token", recompute_s_per_token, 0.0)
    check("kv_bytes_per_token", kv_bytes_per_token, 1e-9)
    check("pool_bytes", pool_bytes, 0.0)
    return recompute_s_per_token * pool_bytes / kv_bytes_per_token


def restore_s_per_token(kv_bytes_per_token: float, link_bytes_per_s: float) -> float:
    """Seconds to fetch one token's cache from a slower store instead of recomputing it.

    Examples
    --------
    >>> round(restore_s_per_token(131072, 55e9) * 1e6, 2)
    2.38
    """
    check("link_bytes_per_s", link_bytes_per_s, 1e-9)
    return kv_bytes_per_token / link_bytes_per_s


def radix_sharing(
    *, kv_bytes_per_token: float, shared_tokens: int, own_tokens: int, requests: int
) -> SchedulingEntry:
    """Bytes that a radix tree does not hold twice when requests begin alike.

    Examples
    --------
    >>> radix_sharing(
    ...     kv_bytes_per_token=131072, shared_tokens=4000, own_tokens=500, requests=10
    ... ).amount
    -4718592000.0
    """
    check("requests", requests, 1)
    check("shared_tokens", shared_tokens, 0)
    check("own_tokens", own_tokens, 0)
    return SchedulingEntry(
        "shared prefix held once", "hold", "attention_kv", "cache", "resident",
        -kv_bytes_per_token * shared_tokens * (requests - 1.0), "batch",
        "kv_bytes * (shared_tokens + requests * own_tokens)"
        " - kv_bytes * requests * (shared_tokens + own_tokens)",
        {"kv_bytes": kv_bytes_per_token, "shared_tokens": shared_tokens, "own_tokens": own_tokens,
         "requests": requests}, "a radix tree counts shared prefixes once",
    )  # fmt: skip
