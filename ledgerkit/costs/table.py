"""The cost table: all operations, links and holdings of one deployment, priced for one device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from ledgerkit.costs import launches, layout
from ledgerkit.costs.activations import activation_operations
from ledgerkit.costs.attention_compressed import compressed_operations
from ledgerkit.costs.attention_latent import latent_operations
from ledgerkit.costs.attention_softmax import softmax_operations
from ledgerkit.costs.attention_state import state_operations
from ledgerkit.costs.communication import links as communication_links
from ledgerkit.costs.linear import (
    expanded_formats,
    global_operations,
    layer_operations,
    simpler_formats,
)
from ledgerkit.costs.memory import Holding, Residence, cache_room, holdings
from ledgerkit.costs.operations import Link, Operation, Work, merge
from ledgerkit.costs.reserve import reserve_bytes
from ledgerkit.costs.stages import Stage, busiest_stage
from ledgerkit.costs.vocabulary import vocabulary_operations
from ledgerkit.kernels import columns as c
from ledgerkit.spec.attention import (
    CompressedAttention,
    LatentAttention,
    SoftmaxAttention,
    StateAttention,
)
from ledgerkit.spec.deployment import Deployment
from ledgerkit.spec.efficiency import Band, Efficiencies
from ledgerkit.spec.engine import EngineProfile
from ledgerkit.spec.hardware import Hardware
from ledgerkit.spec.model import LayerGroup, Model

Edge = Literal["low", "mid", "high"]
EDGES: tuple[Edge, ...] = ("mid", "low", "high")
Level = Literal["device", "ranks", "tp_once", "once"]
"""Amounts of the busiest device; of a device that had all layers; the same with copies counted
once over the tensor-parallel ranks; and over the attention data-parallel ranks, too."""
Array = npt.NDArray[np.float64]

_IN_16_BITS = ("attention_decode", "latent_decode", "elementwise")
_LEDGER_INDEX = {"attention_kv": 0, "ffn_mlp": 1}


@dataclass(frozen=True, slots=True)
class Price:
    """What one unit of work of an operation costs in seconds, and why."""

    peak_flop_per_s: float
    eta_compute: Band
    bytes_per_s: float
    eta_memory: Band
    source: str

    def per_flop(self, edge: Edge) -> float:
        """Seconds per FLOP; the low edge of time has the high efficiency."""
        return 1.0 / (self.peak_flop_per_s * _opposite(self.eta_compute, edge))

    def per_byte(self, edge: Edge) -> float:
        """Seconds per byte of memory."""
        return 1.0 / (self.bytes_per_s * _opposite(self.eta_memory, edge))


@dataclass(frozen=True, slots=True, eq=False)
class CostTable:
    """Everything the kernels and the entries need for one (model, deployment, hardware)."""

    model: Model
    deployment: Deployment
    hardware: Hardware
    efficiencies: Efficiencies
    profile: EngineProfile
    operations: tuple[Operation, ...]
    links: tuple[Link, ...]
    holdings: tuple[Holding, ...]
    reserve: Band
    """Bytes of each device that the engine keeps for itself."""
    kernels: int
    prices: tuple[tuple[Price, Price], ...]
    """Of each operation in prefill and decode."""
    op_ledger: npt.NDArray[np.int64]
    ops: dict[Edge, Array]
    """float64[2, n_ops, OP_COLUMNS]: phase (prefill, decode) × operation."""
    link_rows: dict[Edge, Array]
    """float64[2, n_links, LINK_COLUMNS]."""
    scalars: dict[Edge, Array]
    """float64[2, SCALARS]."""
    notes: tuple[str, ...]

    @property
    def chunk_tokens(self) -> int:
        """Tokens of one prefill chunk."""
        return self.deployment.max_num_batched_tokens or self.profile.max_num_batched_tokens

    def capacity_bytes(self, edge: Edge = "mid") -> float:
        """Bytes of a device that weights, cache and the engine's reserve may fill."""
        fixed = float(Residence.of(self.holdings).base.max())
        return fixed + self.reserve_at(edge) + self.cache_room(fixed, edge)

    def reserve_at(self, edge: Edge) -> float:
        """Bytes of each device that the engine keeps for itself."""
        return float(getattr(self.reserve, edge))

    def cache_room(self, fixed_bytes: float, edge: Edge = "mid") -> float:
        """Bytes of a device that are left for the cache beside ``fixed_bytes`` of weights."""
        return cache_room(
            self.hardware, self.deployment, self.profile, fixed_bytes, self.reserve_at(edge)
        )

    def crowded(self, concurrency: int) -> tuple[str, ...]:
        """Say that an engine would let some of so many sequences wait, by a default of its own.

        A limit that the deployment states is an error instead, see ``check_workload``.
        """
        seats = self.profile.max_num_seqs * self.deployment.dp_attention
        if self.deployment.max_num_seqs is not None or concurrency <= seats:
            return ()
        told = f"{self.profile.name} runs {seats} sequences at once by default: {concurrency} are "
        return (told + "priced as if all ran, the rest would wait in a queue",)

    def amounts_rows(self, level: Level, phase: int) -> Array:
        """Operation rows for amounts of all layers (prices do not matter)."""
        rows = [_share(op, phase, level).coefficients(op.count) for op in self.operations]
        return np.array(rows, dtype=np.float64)


def _share(operation: Operation, phase: int, level: Level) -> Work:
    share = operation.decode if phase else operation.prefill
    work: Work = getattr(share, "device" if level == "ranks" else level)
    return work


def _opposite(band: Band, edge: Edge) -> float:
    return {"low": band.high, "mid": band.mid, "high": band.low}[edge]


def _edge(band: Band, edge: Edge) -> float:
    value: float = getattr(band, edge)
    return value


@lru_cache(maxsize=64)
def build(
    model: Model,
    deployment: Deployment,
    hardware: Hardware,
    efficiencies: Efficiencies,
    profile: EngineProfile,
) -> CostTable:
    """Build and price the table of one deployment.

    Raises
    ------
    DeploymentError, HardwareError, UnsupportedDtypeError
        The layout cannot be built, a link is missing, a dtype does not exist.
    """
    layout.check(model, deployment)
    stage = busiest_stage(model, deployment)
    # what depends on the context comes last: a grid sums the rest once, in the same order
    operations = sorted(
        merge(_all_operations(model, deployment, hardware, stage)),
        key=lambda operation: operation.decode.device.depends_on_context,
    )
    links = communication_links(model, deployment, hardware, stage)
    prices = tuple(
        (
            _price(op.prefill_class, hardware, efficiencies),
            _price(op.decode_class, hardware, efficiencies),
        )
        for op in operations
    )
    kernels = launches.step_kernels(model, deployment)
    return CostTable(
        model=model,
        deployment=deployment,
        hardware=hardware,
        efficiencies=efficiencies,
        profile=profile,
        operations=tuple(operations),
        links=tuple(links),
        holdings=tuple(holdings(model, deployment, profile)),
        reserve=reserve_bytes(model, deployment, profile),
        kernels=kernels,
        prices=prices,
        op_ledger=np.array([_LEDGER_INDEX[op.ledger] for op in operations], dtype=np.int64),
        ops={edge: _op_rows(operations, prices, edge) for edge in EDGES},
        link_rows={edge: _link_rows(links, efficiencies, edge) for edge in EDGES},
        scalars={edge: _scalars(kernels, efficiencies, profile, edge) for edge in EDGES},
        notes=_notes(operations, model, deployment, hardware, profile),
    )


def _all_operations(
    model: Model, deployment: Deployment, hardware: Hardware, stage: Stage
) -> Iterator[Operation]:
    for group in model.groups:
        for operation in (
            *layer_operations(group, deployment, hardware),
            *_attention_operations(group, deployment),
            *activation_operations(group, model.hidden_size, deployment),
        ):
            yield replace(operation, stage_count=stage.count(group))
    for operation in (
        *global_operations(model, deployment, hardware),
        *vocabulary_operations(model, deployment),
    ):
        here = stage.is_first if operation.at_entry else stage.is_last
        yield replace(operation, stage_count=float(here))


def _attention_operations(group: LayerGroup, deployment: Deployment) -> list[Operation]:
    attention, count = group.attention, group.count
    match attention:
        case SoftmaxAttention():
            return softmax_operations(attention, count, deployment)
        case LatentAttention():
            return latent_operations(attention, count, deployment)
        case StateAttention():
            return state_operations(attention, count, deployment)
        case CompressedAttention():
            return compressed_operations(attention, count, deployment)
        case _:
            return []


def _price(op_class: tuple[str, str], hardware: Hardware, efficiencies: Efficiencies) -> Price:
    kind, dtype = op_class
    row = efficiencies.op(kind, dtype)  # type: ignore[arg-type]
    # decode attention is looked up by the dtype of the cache, and multiplies in 16 bits
    peak_dtype = hardware.compute_dtype("bf16" if kind in _IN_16_BITS else dtype)
    return Price(
        peak_flop_per_s=hardware.peaks[peak_dtype],
        eta_compute=row.eta_compute,
        bytes_per_s=hardware.memory_bytes_per_s,
        eta_memory=row.eta_memory,
        source=row.source,
    )


def _op_rows(
    operations: list[Operation], prices: tuple[tuple[Price, Price], ...], edge: Edge
) -> Array:
    rows = np.empty((2, len(operations), c.OP_COLUMNS))
    for i, operation in enumerate(operations):
        for phase in range(2):
            row = _share(operation, phase, "device").coefficients(
                operation.count, operation.stage_count
            )
            row[c.S_PER_FLOP] = prices[i][phase].per_flop(edge)
            row[c.S_PER_BYTE] = prices[i][phase].per_byte(edge)
            rows[phase, i] = row
    return rows


def _link_rows(links: list[Link], efficiencies: Efficiencies, edge: Edge) -> Array:
    wire = efficiencies.link
    across = wire.eta_scale_out or wire.eta_link
    rows = np.empty((2, len(links), c.LINK_COLUMNS))
    for i, link in enumerate(links):
        row = rows[0, i]
        row[c.L_COUNT] = link.count
        row[c.L_KIND] = link.kind
        row[c.L_RANKS] = link.ranks
        row[c.L_TOKEN_BYTES] = link.token_bytes
        row[c.L_GATHER_BYTES] = link.gather_bytes
        row[c.L_ALPHA] = _edge(wire.alpha_s, edge) * link.latency_factor
        row[c.L_ALPHA_TWO_SHOT] = _edge(wire.alpha_two_shot_s, edge) * link.latency_factor
        eta = across if link.link == "scale-out" else wire.eta_link
        row[c.L_S_PER_BYTE] = 1.0 / (link.bytes_per_s * _opposite(eta, edge))
        row[c.L_AMOUNT_COUNT] = link.stage_count
        rows[1, i] = row
        rows[0, i, c.L_TOKEN_BYTES] *= link.prefill_share
    return rows


def _scalars(kernels: int, efficiencies: Efficiencies, profile: EngineProfile, edge: Edge) -> Array:
    row = np.zeros((2, c.SCALARS))
    row[:, c.KERNELS] = kernels
    row[:, c.KERNEL_S] = _edge(efficiencies.kernel_latency_s, edge)
    row[:, c.HOST_STEP_S] = _edge(efficiencies.host_step_s, edge)
    row[:, c.HOST_SEQUENCE_S] = _edge(efficiencies.host_sequence_s, edge)
    row[:, c.HOST_PREFILL_KERNEL_S] = _edge(efficiencies.host_prefill_kernel_s, edge)
    row[:, c.OVERLAP] = profile.overlap
    row[1, c.CAPTURED] = 1.0
    return row


def _notes(
    operations: list[Operation], model: Model, deployment: Deployment, hardware: Hardware,
    profile: EngineProfile,
) -> tuple[str, ...]:  # fmt: skip
    notes = [
        f"{hardware.slug} has no {wanted} units: {name} weights are multiplied in {found}"
        for name, (wanted, found) in expanded_formats(model, deployment, hardware).items()
    ]
    notes += [
        f"rows of {', '.join(map(str, rows))} elements are no whole number of blocks: llama.cpp "
        f"keeps them in {name}"
        for name, rows in simpler_formats(model, deployment).items()
    ]
    wanted = {
        dtype
        for op in operations
        for kind, dtype in (op.prefill_class, op.decode_class)
        if kind not in _IN_16_BITS
    }
    for dtype in sorted(wanted):
        found = hardware.compute_dtype(dtype)
        if found != dtype:
            notes.append(f"{hardware.slug} has no {dtype} units: {dtype} work runs in {found}")
    if deployment.kv_dtype.startswith("fp8") and "fp8" not in hardware.peaks:
        notes.append(f"{hardware.slug} has no fp8 units: the fp8 cache is expanded when it is read")
    compressed = any(isinstance(group.attention, CompressedAttention) for group in model.groups)
    mixed = any(
        group.attention.limit is not None or isinstance(group.attention, StateAttention)
        for group in model.groups
    )
    copied = {
        group.attention.num_groups
        for group in model.groups
        if isinstance(group.attention, StateAttention)
        and group.attention.variant == "mamba2"
        and group.attention.num_groups % deployment.tp
    }
    notes += [
        f"{groups} groups of B and C on tp = {deployment.tp} ranks: engines copy them to each "
        "rank, they are booked as divided"
        for groups in sorted(copied)
    ]
    unknown = compressed or (mixed and not profile.page_groups)
    if unknown and profile.cache_allocation == "paged":
        notes.append(f"how {profile.name} shares its pool among windows and states is not known: "
                     "the ideal bytes are booked, in whole pages")  # fmt: skip
    return tuple(notes)
