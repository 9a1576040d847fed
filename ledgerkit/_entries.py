"""The rows of a ledger: who pays what, in which phase, and by which formula."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ledgerkit._amounts import run_phase, run_step
from ledgerkit._explain import Value, chunks
from ledgerkit._expressions import DECODE, PREFILL, Formula, OperationFormulas, link_formula
from ledgerkit.costs.memory import Holding, stage_bytes
from ledgerkit.costs.operations import Operation
from ledgerkit.costs.table import CostTable
from ledgerkit.kernels import columns as c
from ledgerkit.spec.axes import PHASES, UNITS, Account, Basis, Ledger, Phase, Resource
from ledgerkit.spec.deployment import Workload
from ledgerkit.spec.workpoint import WorkPoint

if TYPE_CHECKING:
    import polars as pl

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the books."""

    phase: Phase
    ledger: Ledger
    account: Account
    op: str
    resource: Resource
    link: str | None
    amount_device: float
    amount_replica: float | None
    low: float
    high: float
    basis: Basis
    formula: Formula
    source: str

    @property
    def unit(self) -> str:
        """Unit of the amount."""
        return UNITS[self.resource]


def all_entries(table: CostTable, workload: Workload) -> list[Entry]:
    """Every entry of one deployment and workload."""
    point = WorkPoint.of(table.deployment, workload)
    mean = WorkPoint.mean(table.deployment, workload)
    entries: list[Entry] = []
    for phase in (PREFILL, DECODE):
        entries += phase_entries(table, phase, point, mean)
    entries += list(resident_entries(table, workload))
    return entries


def phase_entries(table: CostTable, phase: int, point: WorkPoint, mean: WorkPoint) -> list[Entry]:
    """Entries of prefill (0) or decode (1): busiest device at ``point``, sums at ``mean``."""
    book = _PhaseBook(table, phase, point, mean)
    return [*book.operations(), *book.communication(), *book.host()]


def entries_frame(entries: list[Entry]) -> pl.DataFrame:
    """Entries as a polars frame, one row each."""
    import polars as pl  # heavy

    columns = ("phase", "ledger", "account", "op", "resource", "link", "amount_device",
               "amount_replica", "low", "high", "unit", "basis")  # fmt: skip
    data: dict[str, Any] = {name: [getattr(entry, name) for entry in entries] for name in columns}
    data["expression"] = [entry.formula.expression for entry in entries]
    data["source"] = [entry.source for entry in entries]
    numbers = ("amount_device", "amount_replica", "low", "high")
    return pl.DataFrame(
        data, schema={name: pl.Float64 if name in numbers else pl.String for name in data}
    )


class _PhaseBook:
    """Entries of prefill or decode."""

    def __init__(self, table: CostTable, phase: int, point: WorkPoint, mean: WorkPoint) -> None:
        self.table, self.phase, self.point = table, phase, point
        self.name: Phase = PHASES[phase]
        self.mid = run_phase(table, phase, point)
        self.low = run_phase(table, phase, point, "low")
        self.high = run_phase(table, phase, point, "high")
        where = mean if phase == DECODE else point
        self.ranks = run_phase(table, phase, where, level="ranks")
        self.tp_once = run_phase(table, phase, where, level="tp_once")
        self.once = (
            self.tp_once if phase == PREFILL else run_phase(table, phase, where, level="once")
        )

    def _devices(self, operation: Operation | None) -> float:
        """Devices of a stage that the replica total of an operation sums over.

        In decode all of them work. In prefill one request sits on one attention rank; only the
        experts are spread over all ranks. Replica rows count all layers, so stages do not multiply.
        """
        layout = self.table.deployment
        share = operation.prefill.device if operation else None
        spread = share is not None and share.scope == c.SCOPE_EXPERTS
        everywhere = self.phase == DECODE or spread
        return float(layout.tp * (layout.dp_attention if everywhere else 1))

    def operations(self) -> Iterator[Entry]:
        """FLOP, bytes and seconds of the operations, and copies that the layout causes."""
        for i, operation in enumerate(self.table.operations):
            formulas = OperationFormulas(self.table, i, self.phase, self.point)
            devices = self._devices(operation)
            for resource, column in (("compute", c.A_FLOP), ("read", c.A_READ),
                                     ("write", c.A_WRITE)):  # fmt: skip
                amount = float(self.mid.ops[i, column])
                unique = devices * float(self.once.ops[i, column])
                if amount == unique == 0:
                    continue
                account = (
                    operation.compute_account if resource == "compute" else operation.byte_account
                )
                yield Entry(
                    self.name, operation.ledger, account, operation.name, resource, None,  # type: ignore[arg-type]
                    amount, unique, amount, amount, self._basis(operation, resource),
                    formulas.amount(resource), operation.source,
                )  # fmt: skip
                yield from self._copies(i, operation, resource, column, devices)
            yield from self._seconds(i, operation, formulas)

    def _basis(self, operation: Operation, resource: str) -> Basis:
        """Routing is assumed where experts of several tokens meet, or ranks share them."""
        if operation.compute_account != "routed_experts" or self.table.deployment.ep > 1:
            return operation.basis
        point = self.point
        tokens = point.group_tokens if self.phase == DECODE else point.new_tokens
        return "exact" if resource == "compute" or tokens == 1 else operation.basis

    def _copies(
        self, i: int, operation: Operation, resource: str, column: int, devices: float
    ) -> Iterator[Entry]:
        whole, tp_once, once = (
            devices * float(rows.ops[i, column]) for rows in (self.ranks, self.tp_once, self.once)
        )
        excesses: tuple[tuple[Account, float], ...] = (
            ("tp", whole - tp_once),
            ("ep", tp_once - once),
        )
        for account, excess in excesses:
            if excess <= whole * 1e-12:
                continue
            yield Entry(
                self.name, "scheduling", account, f"{operation.name} copies", resource, None,  # type: ignore[arg-type]
                0.0, excess, 0.0, 0.0, operation.basis, Formula("0", {}),
                "copies beyond one, caused by the layout",
            )  # fmt: skip

    def _seconds(
        self, i: int, operation: Operation, formulas: OperationFormulas
    ) -> Iterator[Entry]:
        compute_s, memory_s = (
            float(self.mid.ops[i, k]) for k in (c.A_TIME_COMPUTE, c.A_TIME_MEMORY)
        )
        total = compute_s + memory_s
        if total == 0:
            return
        low, high = (
            float(rows.ops[i, c.A_TIME_COMPUTE] + rows.ops[i, c.A_TIME_MEMORY]) / total
            for rows in (self.low, self.high)
        )
        if operation.compute_account == operation.byte_account:
            parts: tuple[tuple[Account, float, str], ...] = (
                (operation.byte_account, total, "either"),
            )
        else:
            parts = (
                (operation.compute_account, compute_s, "compute"),
                (operation.byte_account, memory_s, "memory"),
            )
        for account, seconds, bound in parts:
            if seconds:
                price = self.table.prices[i][self.phase]
                yield Entry(
                    self.name, operation.ledger, account, operation.name, "time", None, seconds,
                    None, seconds * low, seconds * high, "estimated", formulas.time(bound),
                    price.source,
                )  # fmt: skip

    def communication(self) -> Iterator[Entry]:
        """Bytes, rounds and exposed seconds of the links."""
        for i, link in enumerate(self.table.links):
            row = self.mid.links[i]
            raw = self._unhidden(i)
            exposed = float(row[c.C_TIME]) / raw if raw else 1.0
            if abs(exposed - 1.0) < 1e-12:  # rounding of a sum of chunks
                exposed = 1.0
            for resource, column in (("communicate", c.C_BYTES), ("steps", c.C_STEPS),
                                     ("time", c.C_TIME)):  # fmt: skip
                amount = float(row[column])
                low, high = float(self.low.links[i, column]), float(self.high.links[i, column])
                replica = None
                if resource == "communicate":
                    replica = float(self.ranks.links[i, c.C_BYTES]) * self._devices(None)
                yield Entry(
                    self.name, "scheduling", link.account, link.name, resource, link.link,  # type: ignore[arg-type]
                    amount, replica,
                    min(low, amount) if resource == "time" else amount,
                    max(high, amount) if resource == "time" else amount,
                    "exact" if resource == "steps" else "estimated",
                    link_formula(self.table, i, self.phase, self.point, resource, exposed),
                    link.source,
                )  # fmt: skip

    def _unhidden(self, i: int) -> float:
        """Seconds of a link if nothing hid them."""
        if not self.table.profile.overlap:
            return float(self.mid.links[i, c.C_TIME])
        scalars = self.table.scalars["mid"].copy()
        scalars[:, c.OVERLAP] = 0.0
        return sum(
            float(run_step(self.table, self.point, scalars[self.phase], self.phase, step)
                  .links[i, c.C_TIME])
            for step in self._steps()
        )  # fmt: skip

    def _steps(self) -> Iterator[tuple[float, float, float, float, float, float]]:
        point = self.point
        if self.phase == DECODE:
            yield (
                1.0, point.context - 1.0, point.sequences, point.group_tokens, point.sequences,
                point.micro_batches,
            )  # fmt: skip
            return
        for n, p in chunks(point.prompt_tokens, point.cached_tokens, self.table.chunk_tokens):
            yield n, p, 1.0, n, float(p + n >= point.prompt_tokens), 1.0

    def host(self) -> Iterator[Entry]:
        """Launches, the host gap, and what unequal stages cost."""
        table, scalars = self.table, self.table.scalars["mid"][self.phase]
        values: dict[str, Value] = {
            "kernels": float(scalars[c.KERNELS]),
            "kernel_s": float(scalars[c.KERNEL_S]),
            "host_prefill_kernel_s": float(scalars[c.HOST_PREFILL_KERNEL_S]),
            "host_step_s": float(scalars[c.HOST_STEP_S]),
            "host_sequence_s": float(scalars[c.HOST_SEQUENCE_S]),
            "sequences": self.point.sequences,
            "micro_batches": self.point.micro_batches,
            **self._stage_seconds(),
            "prompt_tokens": self.point.prompt_tokens,
            "cached_tokens": self.point.cached_tokens,
            "chunk_tokens": table.chunk_tokens,
        }
        each_chunk = " for n, p in chunks(prompt_tokens, cached_tokens, chunk_tokens))"
        if self.phase == DECODE:
            steps = "kernels"
            launch, host = "kernels * kernel_s", "host_step_s + host_sequence_s * sequences"
        else:
            steps = "sum(kernels" + each_chunk
            values["busy_s"] = self._busy_chunks()
            launch = "sum(max(0, kernels * host_prefill_kernel_s - busy) for busy in busy_s)"
            host = "sum(host_step_s + host_sequence_s" + each_chunk
        rows: tuple[tuple[Account, str, Resource, int, str, str], ...] = (
            ("launch", "kernels", "steps", c.H_KERNELS, steps, "kernels counted per block"),
            ("launch", "kernels", "time", c.H_LAUNCH, launch,
             table.efficiencies.source or "latency of a captured kernel"),
            ("host", "engine step", "time", c.H_HOST, host,
             table.efficiencies.source or "host gap of a step"),
            ("pp", "stage imbalance", "time", c.H_STAGES,
             "max(0, micro_batches * busiest_stage_s - all_stages_s)",
             "each micro-batch waits for the busiest stage"),
        )  # fmt: skip
        for account, op, resource, column, expression, source in rows:
            amount = float(self.mid.host[column])
            low = high = amount
            if resource == "time":
                low = min(amount, float(self.low.host[column]))
                high = max(amount, float(self.high.host[column]))
            if not high:
                continue
            formula = Formula(
                expression, {k: v for k, v in values.items() if k in _names(expression)}
            )
            basis: Basis = "exact" if resource == "steps" else "estimated"
            yield Entry(
                self.name, "scheduling", account, op, resource, None, amount,
                None, low, high, basis, formula, source,
            )  # fmt: skip

    def _stage_seconds(self) -> dict[str, Value]:
        """Seconds of one micro-batch in all stages, and in the busiest one."""
        seconds = self.mid.ops[:, [c.A_TIME_COMPUTE, c.A_TIME_MEMORY]].sum(axis=1)
        rows = self.table.ops["mid"][self.phase]
        share = rows[:, c.AMOUNT_COUNT] / rows[:, c.COUNT]
        return {
            "all_stages_s": float(seconds.sum()),
            "busiest_stage_s": float((seconds * share).sum()),
        }

    def _busy_chunks(self) -> tuple[float, ...]:
        """Busy seconds of each prefill chunk, which the host's launch time is compared with."""
        table = self.table
        scalars = table.scalars["mid"][self.phase].copy()
        scalars[[c.KERNELS, c.HOST_STEP_S, c.HOST_SEQUENCE_S]] = 0.0
        return tuple(
            run_step(table, self.point, scalars, self.phase, step).seconds for step in self._steps()
        )


def _names(expression: str) -> set[str]:
    return set(re.findall(r"[a-z_]+", expression))


def resident_entries(table: CostTable, workload: Workload) -> Iterator[Entry]:
    """What stays on the fullest device, and on all devices of the replica."""
    deployment = table.deployment
    context = workload.hold_context
    sequences = float(workload.sequences_per_rank(deployment))
    mean = workload.concurrency / deployment.dp_attention
    stages = stage_bytes(list(table.holdings), context, sequences)
    fullest = stages.index(max(stages))
    ranks = deployment.tp * deployment.dp_attention
    for h in table.holdings:
        layers = h.layers_by_stage[fullest]
        device = layers * h.bytes_of_layer(context, sequences)
        everywhere = sum(h.layers_by_stage) * h.bytes_of_layer(context, mean) * ranks
        tp_once = everywhere / h.tp_copies
        dp_once = tp_once / h.dp_copies
        once = dp_once / h.pp_copies
        if everywhere == 0:
            continue
        yield Entry(
            "hold", h.ledger, h.account, h.name, "resident", None, device, once, device, device,
            h.basis, _holding_formula(h, layers, context, sequences), h.source,
        )  # fmt: skip
        copies: tuple[tuple[Account, float], ...] = (
            ("tp", everywhere - tp_once),
            ("ep", tp_once - dp_once),
            ("pp", dp_once - once),
        )
        for account, excess in copies:
            if excess > everywhere * 1e-12:
                yield Entry(
                    "hold", "scheduling", account, f"{h.name} copies", "resident", None, 0.0,
                    excess, 0.0, 0.0, h.basis, Formula("0", {}),
                    "copies beyond one, caused by the layout",
                )  # fmt: skip
    reserve = table.reserve
    yield Entry(
        "hold", "scheduling", "padding", "engine reserve", "resident", None, reserve.mid,
        reserve.mid * deployment.devices, reserve.low, reserve.high, "estimated",
        Formula("reserve_bytes", {"reserve_bytes": reserve.mid}),
        "activations, graphs and communication buffers",
    )  # fmt: skip


def _holding_formula(h: Holding, layers: int, context: int, sequences: float) -> Formula:
    values: dict[str, Value] = {"layers": layers}
    terms = []
    if h.fixed:
        values["weight_bytes"] = h.fixed
        terms.append("weight_bytes")
    if h.per_sequence:
        values |= {"sequences": sequences, "bytes_per_sequence": h.per_sequence}
        terms.append("sequences * bytes_per_sequence")
    if h.per_token:
        values |= {"sequences": sequences, "bytes_per_token": h.per_token, "context": context}
        if h.block > 1:
            values["block"] = h.block
            kept = "fill(context, block)"
        elif h.limit == math.inf and h.ratio == 1:
            kept = "context"
        else:
            values |= {"limit": h.limit, "ratio": h.ratio}
            kept = "kept(context, limit, ratio)"
        terms.append(f"sequences * bytes_per_token * {kept}")
    return Formula(f"layers * ({' + '.join(terms)})", values)
