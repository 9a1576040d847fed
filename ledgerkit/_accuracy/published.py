"""Figures that others published, each predicted by the verb that answers it.

``data/published.csv`` holds them in our words, each with its source: one-device decode and prefill
against context and concurrency, saturated servers, deployments across nodes, all-to-all exchange.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ledgerkit._data import data_path
from ledgerkit._ledger import Ledger
from ledgerkit._refs import resolve
from ledgerkit._steady.options import Serving
from ledgerkit._steady.result import SteadyState
from ledgerkit._steady.streams import saturated_prompt_s
from ledgerkit._steady.work import seats
from ledgerkit.catalog.models import load_model
from ledgerkit.costs.table import CostTable, build
from ledgerkit.kernels import columns as c
from ledgerkit.spec.deployment import Deployment, Workload
from ledgerkit.spec.model import Model

__all__ = ["Figure", "published"]

MOST = 4096
"""Sequences of a replica beyond which no saturated server is searched for."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One published figure and its prediction, in the unit of the quantity."""

    set: str
    quantity: str
    setup: str
    measured: float
    predicted: float
    source: str
    comment: str

    @property
    def seconds_ratio(self) -> float:
        """Predicted over measured time; a rate is the inverse of a time."""
        ratio = self.predicted / self.measured
        return ratio if self.quantity.endswith("_s") and "per_s" not in self.quantity else 1 / ratio


def published() -> list[Figure]:
    """Predict every figure of ``data/published.csv``."""
    with data_path("published.csv").open(encoding="utf-8", newline="") as file:
        return [_figure(row) for row in csv.DictReader(file)]


def _figure(row: dict[str, str]) -> Figure:
    table, workload = _table(row), _workload(row)
    predicted = _QUANTITIES[row["quantity"]](table, workload)
    layout = table.deployment
    names = (("tp", layout.tp), ("pp", layout.pp), ("ep", layout.ep), ("dp", layout.dp_attention))
    ranks = " ".join(f"{name}{size}" for name, size in names if size > 1) or "one device"
    setup = (
        f"{row['model']}, {row['hardware']}, {ranks}, {workload.prompt_tokens} + "
        f"{workload.output_tokens} tokens, {workload.concurrency} at once"
    )
    return Figure(
        row["set"], row["quantity"], setup, float(row["measured"]), predicted, row["source"],
        row["comment"],
    )  # fmt: skip


def _workload(row: dict[str, str]) -> Workload:
    names = ("prompt_tokens", "output_tokens", "cached_tokens", "concurrency")
    return Workload(**{name: int(row[name]) for name in names})


def _table(row: dict[str, str]) -> CostTable:
    deployment = Deployment(
        weights=row["weights"] or None, experts=row["experts"] or None, kv_dtype=row["kv_dtype"],
        tp=int(row["tp"]), pp=int(row["pp"]), ep=int(row["ep"]),
        dp_attention=int(row["dp_attention"]), engine=row["engine"],
    )  # fmt: skip
    source = load_model(row["model"])
    model, hardware, deployment, profile, efficiencies = resolve(
        _with_head(source, row["head"]) if row["head"] else source, row["hardware"], deployment
    )
    if row["overlap"] != "0":
        profile = profile.model_copy(update={"overlap": float(row["overlap"])})
    return build(model, deployment, hardware, efficiencies, profile)


def _with_head(model: Model, dtype: str) -> Model:
    """Model whose tables are quantized too, as in the files of llama.cpp."""
    tables = tuple(
        weight.model_copy(update={"dtype": dtype}) if len(weight.shape) > 1 else weight
        for weight in model.globals
    )
    return model.model_copy(update={"globals": tables})


def _decode_rate(table: CostTable, workload: Workload) -> float:
    return Ledger(table, workload).tokens_per_s


def _prefill_rate(table: CostTable, workload: Workload) -> float:
    return workload.new_tokens / Ledger(table, workload).ttft_s


def _per_device(rate: Callable[[CostTable, Workload], float]) -> Callable[..., float]:
    return lambda table, workload: rate(table, workload) / table.deployment.devices


def _pool_rate(table: CostTable, workload: Workload) -> float:
    return workload.new_tokens / saturated_prompt_s(table, workload, "mid")


def _loaded(table: CostTable, workload: Workload) -> SteadyState:
    return SteadyState(table, workload, Serving())


def _best_rate(table: CostTable, workload: Workload) -> float:
    """Highest rate over the clients that a benchmark might have chosen."""
    most = min(seats(table, workload.decode_context).count, MOST)
    counts = sorted(
        {max(1, round(most * 2 ** (-i / 2))) for i in range(2 * int(math.log2(most)) + 1)}
    )
    return max(
        _loaded(table, workload.model_copy(update={"concurrency": n})).tokens_per_s for n in counts
    )


def _exchange_s(table: CostTable, workload: Workload) -> float:
    """Seconds of one dispatch and combine, from the cost table's own link."""
    from ledgerkit._amounts import run_phase
    from ledgerkit.spec.workpoint import WorkPoint

    links = run_phase(table, 1, WorkPoint.of(table.deployment, workload)).links
    which = next(i for i, link in enumerate(table.links) if link.kind == c.KIND_EXCHANGE)
    count = table.link_rows["mid"][1, which, c.L_COUNT]
    return float(np.divide(links[which, c.C_TIME], count))


_QUANTITIES: dict[str, Callable[[CostTable, Workload], float]] = {
    "decode_tokens_per_s": _decode_rate,
    "prefill_tokens_per_s": _prefill_rate,
    "decode_tokens_per_s_per_device": _per_device(_decode_rate),
    "prefill_tokens_per_s_per_device": _per_device(_pool_rate),
    "best_tokens_per_s_per_device": _per_device(_best_rate),
    "tpot_s": lambda table, workload: _loaded(table, workload).tpot_s,
    "ttft_s": lambda table, workload: _loaded(table, workload).ttft_s,
    "exchange_s": _exchange_s,
}
