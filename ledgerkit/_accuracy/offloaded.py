"""Published decode rates with the routed experts computed in host memory (KTransformers).

A step is what the device does without the experts, plus the experts of the host, see
``costs.scheduling.offload``. Two numbers of the host are in no table of kernels: the share of its
memory rate that quantized experts reach, and the wait of each layer. They are fitted on the
machines that run *other* models, so that no row predicts itself.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ledgerkit._accuracy.published import Figure
from ledgerkit._data import data_path
from ledgerkit._ledger import Ledger
from ledgerkit._refs import resolve
from ledgerkit.catalog.models import load_model
from ledgerkit.costs.scheduling.offload import expert_offload
from ledgerkit.costs.table import build
from ledgerkit.spec.deployment import Deployment, Workload
from ledgerkit.spec.feed_forward import MoeFfn
from ledgerkit.spec.precision import storage

__all__ = ["SET", "Host", "fit_host", "offloaded", "offloaded_rows"]

SET = "KTransformers offload"


@dataclass(frozen=True, slots=True)
class Host:
    """What a machine's host reaches."""

    memory_share: float
    """Of the peak rate of its memory."""
    layer_wait_s: float
    """Of each layer whose experts are on the host."""


@dataclass(frozen=True, slots=True)
class Row:
    """One published rate and the parts of its step."""

    machine: str
    model: str
    measured: float
    device_s: float
    """Seconds of a step without the routed experts."""
    layers: int
    experts: int
    per_token: int
    expert_bytes: float
    hidden_bytes: float
    host_bytes_per_s: float
    link_bytes_per_s: float
    context: int
    source: str
    comment: str

    def step_s(self, host: Host) -> float:
        """Seconds of one decode step."""
        found = expert_offload(
            layers=self.layers, experts=self.experts, per_token=self.per_token,
            expert_bytes=self.expert_bytes, tokens=1, how="in_place",
            link_bytes_per_s=self.link_bytes_per_s, hidden_bytes=self.hidden_bytes,
            host_bytes_per_s=self.host_bytes_per_s * host.memory_share,
            sync_s=host.layer_wait_s,
        )  # fmt: skip
        return self.device_s + found.seconds


def offloaded_rows() -> list[Row]:
    """Read ``data/offload.csv`` and price the device's part of each row."""
    with data_path("offload.csv").open(encoding="utf-8", newline="") as file:
        return [_row(row) for row in csv.DictReader(file)]


def fit_host(rows: list[Row]) -> Host:
    """Least squares of relative errors; a wait that would be negative is zero.

    Seconds of the experts = bytes / (share · rate) + layers · wait.
    """
    seconds = np.array([1.0 / row.measured - row.device_s for row in rows])
    moved = np.array([
        row.layers * row.per_token * row.expert_bytes / row.host_bytes_per_s for row in rows
    ])  # fmt: skip
    layers = np.array([float(row.layers) for row in rows])
    scale = np.array([row.measured for row in rows])
    terms: npt.NDArray[np.float64] = np.stack([moved, layers], axis=1) * scale[:, None]
    (inverse, wait), *_ = np.linalg.lstsq(terms, seconds * scale, rcond=None)
    if wait < 0:
        inverse, wait = float(np.sum(seconds * moved) / np.sum(moved * moved)), 0.0
    return Host(float(1.0 / inverse), float(wait))


def offloaded() -> list[Figure]:
    """Predict every row with the host of the machines that run other models."""
    rows = offloaded_rows()
    hosts = {
        name: fit_host([row for row in rows if row.model != name])
        for name in {row.model for row in rows}
    }
    return [
        Figure(
            SET, "decode_tokens_per_s",
            f"{row.model}, {row.machine}, {row.per_token} experts, {row.context} tokens",
            row.measured, 1.0 / row.step_s(hosts[row.model]), row.source, row.comment,
        )
        for row in rows
    ]  # fmt: skip


def _row(row: dict[str, str]) -> Row:
    model = load_model(row["model"]).replace(num_experts_per_tok=int(row["experts_per_token"]))
    weights = row["weights"] or None
    layout = Deployment(weights=weights, experts=weights, engine="ktransformers")
    work = Workload(
        prompt_tokens=int(row["prompt_tokens"]), output_tokens=int(row["output_tokens"])
    )
    model, hardware, layout, profile, efficiencies = resolve(model, row["hardware"], layout)
    books = Ledger(build(model, layout, hardware, efficiencies, profile), work)
    booked = books.entries.filter(phase="decode", resource="time", account="routed_experts")
    experts_s = float(booked["amount_device"].to_numpy().sum())
    sparse = {group: group.ffn for group in model.groups if isinstance(group.ffn, MoeFfn)}
    (group, ffn), *_ = sparse.items()
    size = sum(
        storage(weights or weight.dtype).bytes(weight.shape)
        for weight in group.weights if weight.routed
    )  # fmt: skip
    return Row(
        machine=row["machine"], model=row["model"], measured=float(row["decode_tokens_per_s"]),
        device_s=books.tpot_s - experts_s, layers=sum(len(group.layers) for group in sparse),
        experts=ffn.num_experts, per_token=ffn.num_experts_per_tok, expert_bytes=size,
        hidden_bytes=2.0 * model.hidden_size,
        host_bytes_per_s=float(row["host_bytes_per_s"]),
        link_bytes_per_s=float(hardware.pcie_bytes_per_s or 0.0), context=work.prompt_tokens,
        source=row["source"], comment=row["comment"],
    )  # fmt: skip
