"""How far measured servers are from the prediction: factors from groups that were held out.

Residuals are log-symmetric, so a band is a factor: ``[value / q, value · q]``. q is the quantile of
``|log(predicted / measured)|`` in which every group (model, device, engine) weighs the same, from
predictions whose constants never saw the group. A band is wider where nothing like the input was
measured, and narrower after a calibration.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from ledgerkit._data import data_path
from ledgerkit.spec.attention import (
    Attention,
    CompressedAttention,
    LatentAttention,
    SoftmaxAttention,
    StateAttention,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ledgerkit._steady.options import Serving
    from ledgerkit.costs.table import CostTable

Quantity = Literal["tpot", "ttft"]
LEVEL = 0.9

MEASURED_ENGINES = frozenset({"vllm", "sglang", "tensorrt-llm"})
MEASURED_RANKS = 16
"""Most ranks of a worker with measurements behind the band."""
_NEAR = ("device", "family")


@dataclass(frozen=True, slots=True)
class Spread:
    """A factor on both sides of a value, and why it is as wide as it is."""

    factor: float
    level: float
    reasons: tuple[str, ...]

    def around(self, value: float) -> tuple[float, float]:
        """Low and high end."""
        return value / self.factor, value * self.factor


@cache
def _factors() -> dict[tuple[str, str], float]:
    with data_path("bands.csv").open(encoding="utf-8", newline="") as file:
        return {
            (row["quantity"], row["where"]): float(row["factor"]) for row in csv.DictReader(file)
        }


def factor(quantity: Quantity, where: str) -> float:
    """Look a factor up in ``data/bands.csv``.

    Examples
    --------
    >>> factor("ttft", "outside") > factor("ttft", "inside") > factor("tpot", "inside") > 1
    True
    """
    return _factors()[quantity, where]


def balanced_quantile(groups: Iterable[Sequence[float]], level: float) -> float:
    """Quantile of values in which each group weighs one, however many values it has.

    Examples
    --------
    >>> balanced_quantile([[1.0] * 98 + [3.0] * 2, [2.0]], 0.9)
    2.0
    """
    weighted = sorted((value, 1.0 / len(group)) for group in groups for value in group)
    whole = math.fsum(weight for _, weight in weighted)
    reached = np.cumsum([weight for _, weight in weighted])
    first = int(np.searchsorted(reached, level * whole * (1 - 1e-12)))
    return weighted[min(first, len(weighted) - 1)][0]


def unmeasured(table: CostTable, serving: Serving) -> tuple[str, ...]:
    """Name what sets this point apart from every server that stands behind the bands."""
    ranks = table.deployment.devices
    found = {
        "its kind of attention": any(_strange(group.attention) for group in table.model.groups),
        f"the engine {table.profile.name}": table.profile.slug not in MEASURED_ENGINES,
        "a replica across nodes": any(link.link == "scale-out" for link in table.links),
        f"more than {MEASURED_RANKS} devices in a replica": ranks > MEASURED_RANKS,
        "speculation": serving.tokens_per_step > 1,
        "efficiencies of another family of devices": any(
            row.scope not in _NEAR for row in table.efficiencies.ops
        ),
    }
    return tuple(name for name, applies in found.items() if applies)


def _strange(attention: Attention) -> bool:
    match attention:
        case SoftmaxAttention():
            return attention.indexer is not None or attention.chunk is not None
        case LatentAttention():
            return attention.indexer is not None
        case StateAttention():
            return attention.variant != "gated_delta_net"
        case _:
            return isinstance(attention, CompressedAttention)


BLIND = "burst, lengths and first-use compilation of the load generator decide the first token"
POOLS = "start-up, transfer and routing between workers are in published first tokens, not in ours"


def spread(
    quantity: Quantity, reasons: tuple[str, ...], edges: tuple[float, float, float], *,
    calibrated: bool = False, pools: bool = False,
) -> Spread:  # fmt: skip
    """Factor for a point; ``edges`` are the low, mid and high ends that the cost table gives.

    Where nothing like the point was measured, the spread of the constants counts too if it is
    wider than the factor.
    """
    if calibrated and quantity == "tpot":
        return Spread(factor("tpot", "calibrated"), LEVEL, ("calibrated on this server",))
    where, told = "inside", ["engine version and setup unknown"]
    if quantity == "ttft":
        told.append(BLIND)
    if quantity == "ttft" and pools:
        where = "disaggregated"
        told.append(POOLS)
    if not reasons:
        return Spread(factor(quantity, where), LEVEL, tuple(told))
    low, mid, high = edges
    widest = max(factor(quantity, where), factor(quantity, "outside"), mid / low, high / mid)
    told[0] = "; ".join(f"not measured: {reason}" for reason in reasons)
    return Spread(widest, LEVEL, tuple(told))
