"""Reductions over columns of points, so that a billion points never exist at once.

All objectives are costs: less is better (the host negates the others). Ties keep the point with the
lower number, so that results do not depend on the order in which chunks arrive.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ledgerkit.kernels._jit import kernel

Table = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@kernel
def front(costs: Table, allowed: Mask, known: Table, chosen: Index, missing: Index) -> int:
    """Points that no other point beats: fills ``chosen`` and returns how many.

    Parameters
    ----------
    costs : float64[n_costs, n]
    allowed : bool[n]
        Points that count.
    known : float64[m, n_costs]
        A front from elsewhere, with lower numbers: what it beats or equals is left out.
    chosen : int64[n]
        Filled with positions, in no order.
    missing : int64[1]
        Incremented for each allowed point with a cost that is NaN.
    """
    n_costs, n = costs.shape
    count = 0
    beaten_by = 0
    for i in range(n):
        if not allowed[i]:
            continue
        nan = False
        for c in range(n_costs):
            nan = nan or np.isnan(costs[c, i])
        if nan:
            missing[0] += 1
            continue
        beaten = False
        # the last winner first: neighbours are mostly beaten by one point
        if beaten_by < count:
            beaten = _covers(costs, chosen[beaten_by], i)
        if not beaten:
            for j in range(known.shape[0]):
                covers = True
                for c in range(n_costs):
                    covers = covers and known[j, c] <= costs[c, i]
                if covers:
                    beaten = True
                    break
        if not beaten:
            for j in range(count):
                if _covers(costs, chosen[j], i):
                    beaten = True
                    beaten_by = j
                    break
        if beaten:
            continue
        kept = 0
        for j in range(count):
            if not _covers(costs, i, chosen[j]):
                chosen[kept] = chosen[j]
                kept += 1
        chosen[kept] = i
        count = kept + 1
        beaten_by = kept
    return count


@kernel
def _covers(costs: Table, a: int, b: int) -> bool:
    """Whether point a is at least as good as point b in all costs."""
    for c in range(costs.shape[0]):  # noqa: SIM110 - compiled
        if costs[c, a] > costs[c, b]:
            return False
    return True


@kernel
def least(
    costs: Table, allowed: Mask, groups: Index, values: Table, at: Index, missing: Index
) -> None:
    """Keep the k lowest costs of each group, in order.

    Parameters
    ----------
    costs : float64[n]
    groups : int64[n]
        Group of each point; one element if all are in the first.
    values : float64[n_groups, k]
        Costs so far, rising; inf where there are fewer.
    at : int64[n_groups, k]
        Their positions; -1 where there are fewer.
    missing : int64[1]
        Incremented for each allowed point whose cost is NaN.
    """
    k = values.shape[1]
    single = groups.shape[0] == 1
    for i in range(costs.shape[0]):
        if not allowed[i]:
            continue
        cost = costs[i]
        if np.isnan(cost):
            missing[0] += 1
            continue
        group = groups[0] if single else groups[i]
        if at[group, k - 1] >= 0 and cost >= values[group, k - 1]:
            continue
        j = k - 1
        while j > 0 and (at[group, j - 1] < 0 or cost < values[group, j - 1]):
            values[group, j] = values[group, j - 1]
            at[group, j] = at[group, j - 1]
            j -= 1
        values[group, j] = cost
        at[group, j] = i


@kernel
def count_into(values: Table, allowed: Mask, edges: Table, counts: Index) -> None:
    """Count points by bin: below, in each ``[edges[i], edges[i + 1])``, above, NaN.

    The last bin includes its right edge. ``counts`` has ``len(edges) + 2`` elements.
    """
    last = edges.shape[0] - 1
    for i in range(values.shape[0]):
        if not allowed[i]:
            continue
        value = values[i]
        if np.isnan(value):
            counts[last + 2] += 1
        elif value < edges[0]:
            counts[0] += 1
        elif value > edges[last]:
            counts[last + 1] += 1
        else:
            low, high = 0, last
            while high - low > 1:
                middle = (low + high) // 2
                if value >= edges[middle]:
                    low = middle
                else:
                    high = middle
            counts[low + 1] += 1


@kernel
def within(values: Table, most: float, allowed: Mask) -> None:
    """Clear ``allowed`` where a value is above ``most`` or NaN."""
    for i in range(values.shape[0]):
        allowed[i] = allowed[i] and values[i] <= most
