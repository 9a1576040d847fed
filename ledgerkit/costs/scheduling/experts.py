r"""Experts over ranks and nodes: whom a token reaches, and how long the fullest rank takes.

* distinct groups that hold an expert of a token: :math:`G (1 - C(E - E/G, k) / C(E, k))`; with
  node-limited routing the experts come from M of the G nodes, and G and E are those of M nodes;
* the fullest rank: :math:`1 + \sqrt{2 \ln G / μ}` times the mean of :math:`μ = T k / G` routed
  tokens, times the static skew of the experts themselves;
* a grouped GEMM runs whole tiles: :math:`\lceil t_e / b \rceil b` rows for t_e tokens.

Source: DeepSeek-V3 report (node-limited routing), DeepEP (``get_expected_topk``), extreme values of
sums. Worked: 256 experts, 8 per token: 5.29 of 8 nodes, at most 4 when limited to 4; 32 ranks,
1,024 tokens: 1.16 times the mean.
"""

from __future__ import annotations

import math

from ledgerkit.costs.communication import distinct_ranks
from ledgerkit.costs.scheduling.entry import SchedulingEntry, Value, check


def distinct_nodes(
    nodes: int, experts: int, per_token: int, node_limit: int | None = None
) -> float:
    """Expected nodes that hold at least one of a token's experts.

    Parameters
    ----------
    nodes, experts, per_token : int
        Experts are spread evenly over the nodes.
    node_limit : int, optional
        Node-limited routing: most nodes that a token's experts may be on.

    Examples
    --------
    >>> round(distinct_nodes(8, 256, 8), 2), round(distinct_nodes(8, 256, 8, node_limit=4), 2)
    (5.29, 3.63)
    """
    check("nodes", nodes, 1, experts)
    if node_limit is None or node_limit >= nodes:
        return distinct_ranks(nodes, experts, per_token)
    check("node_limit", node_limit, 1)
    return distinct_ranks(node_limit, experts // nodes * node_limit, per_token)


def node_limited_routing(
    *, nodes: int, node_limit: int, experts: int, per_token: int, token_bytes: float, tokens: int
) -> SchedulingEntry:
    """Bytes between nodes that the limit saves in one step and layer, each way out once.

    Parameters
    ----------
    nodes, node_limit : int
        Nodes of the expert group, and most of them that a token may use.
    experts, per_token : int
        Routed experts of a layer, and those that a token uses.
    token_bytes : float
        Dispatch and combine of one token to one node.
    tokens : int
        Tokens of a rank.

    Examples
    --------
    >>> saved = node_limited_routing(
    ...     nodes=8, node_limit=4, experts=256, per_token=8, token_bytes=21744, tokens=128
    ... )
    >>> round(saved.amount / 1e6, 1)
    -4.1
    """
    free = distinct_nodes(nodes, experts, per_token)
    limited = distinct_nodes(nodes, experts, per_token, node_limit)
    away = (nodes - 1) / nodes
    return SchedulingEntry(
        "copies to other nodes", "decode", "scheduling", "ep", "communicate",
        tokens * token_bytes * away * (limited - free), "step",
        "tokens * token_bytes * (nodes - 1) / nodes"
        " * (node_limit * (1 - comb(near - each, k) / comb(near, k))"
        " - nodes * (1 - comb(experts - each, k) / comb(experts, k)))",
        {"tokens": tokens, "token_bytes": token_bytes, "nodes": nodes, "node_limit": node_limit,
         "experts": experts, "each": experts // nodes, "near": experts // nodes * node_limit,
         "k": per_token},
        "expected distinct nodes of a token, evenly routed",
    )  # fmt: skip


def fullest_rank(ranks: int, tokens: float, per_token: int, skew: float = 1.0) -> float:
    """Routed tokens of the fullest rank over those of the mean one.

    Parameters
    ----------
    ranks : int
        Of the expert group.
    tokens : float
        Of the whole group, in one step.
    per_token : int
        Experts of a token.
    skew : float
        Load of the fullest rank over the mean that comes from the experts themselves, 1 = none;
        replicas of hot experts lower it.

    Examples
    --------
    >>> round(fullest_rank(32, 1024, 8), 2)
    1.16
    """
    check("ranks", ranks, 1)
    check("tokens", tokens, 1e-9)
    check("skew", skew, 1.0)
    mean = tokens * per_token / ranks
    return (1.0 + math.sqrt(2.0 * math.log(ranks) / mean)) * skew


def fullest_reads(ranks: int, tokens: float, per_token: int, experts: int) -> float:
    """Experts that the fullest rank reads over those of the mean one.

    Where few tokens meet many experts a rank's time follows the experts that are hit, whatever the
    number of their tokens; of its E/G experts each is hit with :math:`q = 1 - (1 - k/E)^T`.

    Examples
    --------
    >>> round(fullest_reads(32, 32, 8, 256), 2), round(fullest_reads(32, 1024, 8, 256), 2)
    (1.57, 1.0)
    """
    check("ranks", ranks, 1, experts)
    check("tokens", tokens, 1e-9)
    check("experts_per_token", per_token, 1, experts)
    each = experts / ranks
    hit = float(1.0 - (1.0 - per_token / experts) ** tokens)
    spread = math.sqrt(2.0 * math.log(ranks) * each * hit * (1.0 - hit))
    return min(1.0 + spread / (each * hit), 1.0 / hit)


def expert_imbalance(
    *,
    ranks: int,
    tokens: float,
    per_token: int,
    experts_s: float,
    skew: float = 1.0,
    experts: int | None = None,
) -> SchedulingEntry:
    """Seconds by which the fullest rank prolongs the experts of a step.

    Parameters
    ----------
    ranks, tokens, per_token, skew
        As in ``fullest_rank``.
    experts_s : float
        Seconds of the routed experts at the mean load.
    experts : int, optional
        Experts of a layer, where reading their weights takes the time; then the fullest rank is
        that with most experts hit, and a skew of their tokens does not matter. None = arithmetic
        takes the time.

    Examples
    --------
    >>> entry = expert_imbalance(ranks=32, tokens=1024, per_token=8, experts_s=1e-3)
    >>> round(entry.amount * 1e6)
    165
    """
    check("experts_s", experts_s, 0.0)
    values: dict[str, Value] = {
        "experts_s": experts_s, "ranks": ranks, "tokens": tokens, "k": per_token,
    }  # fmt: skip
    if experts is None:
        factor = fullest_rank(ranks, tokens, per_token, skew)
        values["skew"] = skew
        text = "((1 + sqrt(2 * log(ranks) * ranks / (tokens * k))) * skew - 1)"
    else:
        factor = fullest_reads(ranks, tokens, per_token, experts)
        each, hit = experts / ranks, 1.0 - (1.0 - per_token / experts) ** tokens
        values |= {"each": each, "hit": hit}
        text = "min(sqrt(2 * log(ranks) * each * hit * (1 - hit)) / (each * hit), 1 / hit - 1)"
    return SchedulingEntry(
        "waiting for the fullest rank", "decode", "scheduling", "ep", "time",
        experts_s * (factor - 1.0), "step", f"experts_s * {text}", values,
        "largest of many nearly normal loads; static skew of the experts",
    )  # fmt: skip


def tile_rows(tokens: float, experts: int, per_token: int, tile: int) -> float:
    """Rows that a grouped GEMM runs for each routed row, evenly routed: 1 = no padding.

    The number of tokens of an expert is binomial; each expert that is hit runs whole tiles.

    Examples
    --------
    >>> [round(tile_rows(t, 256, 8, 64), 1) for t in (1, 64, 256, 1024)]
    [64.0, 27.8, 8.0, 2.0]
    """
    check("tile", tile, 1)
    check("experts_per_token", per_token, 1, experts)
    many = int(tokens)
    check("tokens", many, 1)
    rate = per_token / experts
    rows = math.fsum(
        math.ceil(n / tile) * tile * _binomial(many, n, rate) for n in range(1, many + 1)
    )
    return rows / (many * rate)


def _binomial(many: int, n: int, rate: float) -> float:
    if rate == 1.0:
        return float(n == many)
    ways = math.lgamma(many + 1) - math.lgamma(n + 1) - math.lgamma(many - n + 1)
    return math.exp(ways + n * math.log(rate) + (many - n) * math.log1p(-rate))
