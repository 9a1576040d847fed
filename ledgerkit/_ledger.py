"""``lk.ledger``: everything that one deployment pays at one point."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ledgerkit._amounts import run_totals
from ledgerkit._entries import Entry, all_entries, entries_frame, resident_entries
from ledgerkit._explain import Value, evaluate
from ledgerkit._expressions import finite
from ledgerkit._refs import as_calibration, as_workload, resolve
from ledgerkit.costs.memory import resident_by_ledger, stage_bytes
from ledgerkit.costs.table import CostTable, build
from ledgerkit.errors import LedgerError, WorkloadError
from ledgerkit.spec.axes import LEDGERS, PHASES, UNITS, Phase, Resource
from ledgerkit.spec.deployment import Deployment, Workload
from ledgerkit.spec.hardware import Hardware
from ledgerkit.spec.model import Model
from ledgerkit.spec.workpoint import WorkPoint

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

    from ledgerkit._calibration import Calibration

__all__ = ["Explanation", "Ledger", "ledger"]

_TIME = 4
_TOTAL_COLUMNS: dict[Resource, int] = {
    "compute": 0, "read": 1, "write": 2, "communicate": 3, "time": 4,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Explanation:
    """How one amount comes about: expression, values, source."""

    label: str
    amount: float
    unit: str
    expression: str
    values: dict[str, Value]
    basis: str
    source: str

    def evaluate(self) -> float:
        """Compute the amount again, from the expression and its values."""
        return evaluate(self.expression, self.values)

    def __str__(self) -> str:
        where = "\n".join(f"    {name} = {value!r}" for name, value in finite(self.values).items())
        return (
            f"{self.label}: {self.amount:.6g} {self.unit} ({self.basis})\n"
            f"  = {self.expression}\n  with\n{where}\n  source: {self.source}"
        )


class Ledger:
    """The books of one deployment at one workload.

    Made by ``lk.ledger``; nothing in it changes afterwards.
    """

    def __init__(
        self, table: CostTable, workload: Workload, calibration: Calibration | None = None
    ) -> None:
        self._uncalibrated, self._calibration = table, calibration
        self._table = table = table if calibration is None else calibration.price(table)
        self.model: Model = table.model
        self.hardware: Hardware = table.hardware
        self.deployment: Deployment = table.deployment
        self.workload: Workload = workload
        self.notes: tuple[str, ...] = table.notes + table.crowded(workload.concurrency)
        self._totals = run_totals(table, WorkPoint.of(table.deployment, workload))

    def __repr__(self) -> str:
        share = ", ".join(f"{k} {v:.0%}" for k, v in self.share().items())
        return (
            f"Ledger({self.model.slug} on {self.deployment.devices} x {self.hardware.slug}: "
            f"tpot {self.tpot_s * 1e3:.2f} ms, ttft {self.ttft_s * 1e3:.0f} ms; decode time: "
            f"{share}; fits: {self.fits})"
        )

    def at(self, workload: Workload | dict[str, Any]) -> Ledger:
        """Open the books of the same deployment at another workload.

        Raises
        ------
        WorkloadError
            The workload is beyond the model or the deployment.
        """
        workload = as_workload(workload, "a ledger")
        check_workload(self.model, self.deployment, workload)
        return Ledger(self._uncalibrated, workload, self._calibration)

    # time ------------------------------------------------------------------------------------

    def _seconds(self, phase: int, edge: Literal["mid", "low", "high"]) -> float:
        return math.fsum(float(self._totals[edge][phase, i, _TIME]) for i in range(len(LEDGERS)))

    @property
    def ttft_s(self) -> float:
        """Seconds to the first token of one request alone (no queue)."""
        return self._seconds(0, "mid")

    @property
    def ttft_s_low(self) -> float:
        """Low end of ``ttft_s``."""
        return self._seconds(0, "low")

    @property
    def ttft_s_high(self) -> float:
        """High end of ``ttft_s``."""
        return self._seconds(0, "high")

    @property
    def tpot_s(self) -> float:
        """Seconds per output token of one sequence, while all of them decode."""
        return self._seconds(1, "mid")

    @property
    def tpot_s_low(self) -> float:
        """Low end of ``tpot_s``."""
        return self._seconds(1, "low")

    @property
    def tpot_s_high(self) -> float:
        """High end of ``tpot_s``."""
        return self._seconds(1, "high")

    @property
    def tokens_per_s(self) -> float:
        """Output tokens per second of the replica."""
        return self.workload.concurrency / self.tpot_s

    @property
    def tokens_per_s_low(self) -> float:
        """Low end of ``tokens_per_s``."""
        return self.workload.concurrency / self.tpot_s_high

    @property
    def tokens_per_s_high(self) -> float:
        """High end of ``tokens_per_s``."""
        return self.workload.concurrency / self.tpot_s_low

    @property
    def e2e_s(self) -> float:
        """Seconds of a whole answer: first token, then ``output_tokens − 1`` steps."""
        return self.ttft_s + (self.workload.output_tokens - 1) * self.tpot_s

    # memory ----------------------------------------------------------------------------------

    @cached_property
    def _held_bytes(self) -> float:
        """Weights, cache, state and page rounding on the fullest device."""
        sequences = float(self.workload.sequences_per_rank(self.deployment))
        context = self.workload.hold_context
        return max(stage_bytes(list(self._table.holdings), context, sequences))

    @property
    def resident_bytes_device(self) -> float:
        """Bytes on the fullest device, the engine's reserve included."""
        return self._held_bytes + self._table.reserve.mid

    @property
    def capacity_bytes(self) -> float:
        """Bytes of a device that the engine may use."""
        return self._table.capacity_bytes()

    @property
    def free_bytes(self) -> float:
        """Room left on the fullest device; negative when it does not fit."""
        return self.capacity_bytes - self.resident_bytes_device

    @property
    def fits(self) -> Literal["yes", "no", "uncertain"]:
        """Whether the deployment fits, at both ends of the reserve's band."""
        table, held = self._table, self._held_bytes
        if held + table.reserve.high <= table.capacity_bytes("high"):
            return "yes"
        if held + table.reserve.low > table.capacity_bytes("low"):
            return "no"
        return "uncertain"

    @cached_property
    def max_concurrency(self) -> int:
        """Most sequences of this length that the replica holds at once; 0 = weights too large."""
        holdings, context = list(self._table.holdings), self.workload.hold_context
        fixed = stage_bytes(holdings, context, 0.0)
        one = stage_bytes(holdings, context, 1.0)
        room = self.capacity_bytes - self._table.reserve.mid
        if max(fixed) > room:
            return 0
        seats = min(
            (room - base) / (with_one - base) if with_one > base else math.inf
            for base, with_one in zip(fixed, one, strict=True)
        )
        if seats == math.inf:
            seats = self.deployment.max_num_seqs or self._table.profile.max_num_seqs
        return math.floor(seats) * self.deployment.dp_attention

    # books -----------------------------------------------------------------------------------

    @cached_property
    def _entries(self) -> list[Entry]:
        found = all_entries(self._table, self.workload)
        return found if self._calibration is None else self._calibration.book(found)

    def resident_entries(self) -> list[Entry]:
        """Entries of the hold phase; cheaper than ``entries`` when only memory is asked for."""
        return list(resident_entries(self._table, self.workload))

    @cached_property
    def entries(self) -> pl.DataFrame:
        """Every entry as a polars frame.

        Columns: phase, ledger, account, op, resource, link, amount_device (busiest device),
        amount_replica (sum over devices; null for time and steps), low, high, unit, basis,
        expression, source. Never sum across phases.
        """
        return entries_frame(self._entries)

    def total(
        self,
        phase: Phase = "decode",
        resource: Resource = "time",
        scope: Literal["device", "replica"] = "device",
    ) -> float:
        """Sum of one resource in one phase.

        Parameters
        ----------
        phase : {"prefill", "decode", "hold"}
        resource : str
            ``time``, ``compute``, ``read``, ``write``, ``communicate``, ``steps``, ``resident``.
        scope : {"device", "replica"}
            The busiest device, or the sum over the devices of the replica.

        Returns
        -------
        float
            In the unit of the resource: s, FLOP or B.

        Examples
        --------
        >>> import ledgerkit as lk
        >>> books = lk.ledger(
        ...     "llama-3.1-8b",
        ...     "h100-sxm-80gb",
        ...     workload=lk.Workload(prompt_tokens=8192, output_tokens=1),
        ... )
        >>> round(books.total("decode", "compute") / 1e9, 2)
        19.3
        """
        return math.fsum(self.by_ledger(phase, resource, scope).values())

    def by_ledger(
        self,
        phase: Phase = "decode",
        resource: Resource = "time",
        scope: Literal["device", "replica"] = "device",
    ) -> dict[str, float]:
        """Sums of one resource in one phase, by ledger."""
        _check_axis("phase", phase, PHASES)
        _check_axis("resource", resource, tuple(UNITS))
        _check_axis("scope", scope, ("device", "replica"))
        if scope == "replica" and resource in ("time", "steps"):
            raise LedgerError(
                f"{resource} of a replica is not a sum over its devices", given=scope,
                allowed="device", fix="use scope='device'",
            )  # fmt: skip
        if phase != "hold" and scope == "device" and resource in _TOTAL_COLUMNS:
            column = _TOTAL_COLUMNS[resource]
            rows = self._totals["mid"][PHASES.index(phase)]
            return {name: float(rows[i, column]) for i, name in enumerate(LEDGERS)}
        if phase == "hold" and scope == "device" and resource == "resident":
            context = np.array([float(self.workload.hold_context)])
            many = np.array([float(self.workload.sequences_per_rank(self.deployment))])
            held = self._table.holdings, context, many, self._table.reserve.mid
            sums = resident_by_ledger(*held)
            return {name: float(size[0]) for name, size in sums.items()}
        amounts: dict[str, list[float]] = {name: [] for name in LEDGERS}
        for entry in self._entries:
            if entry.phase == phase and entry.resource == resource:
                value = entry.amount_device if scope == "device" else entry.amount_replica
                amounts[entry.ledger].append(value or 0.0)
        return {name: math.fsum(values) for name, values in amounts.items()}

    def share(self, phase: Phase = "decode", resource: Resource = "time") -> dict[str, float]:
        """Share of each ledger, 0 to 1; all 0 where nothing is booked.

        Examples
        --------
        >>> import ledgerkit as lk
        >>> books = lk.ledger(
        ...     "llama-3.1-8b",
        ...     "h100-sxm-80gb",
        ...     workload=lk.Workload(prompt_tokens=8192, output_tokens=1),
        ... )
        >>> max(books.share(), key=books.share().get)
        'ffn_mlp'
        """
        sums = self.by_ledger(phase, resource)
        total = math.fsum(sums.values())
        return {name: value / total if total else 0.0 for name, value in sums.items()}

    def explain(
        self,
        account: str | None = None,
        *,
        phase: Phase = "decode",
        resource: Resource = "time",
        op: str | None = None,
    ) -> tuple[Explanation, ...]:
        """Explain entries: expression, values and source of each.

        Parameters
        ----------
        account : str, optional
            ``core``, ``cache``, ``routed_experts`` ...; None = all.
        phase, resource : str
        op : str, optional
            Name in the ``op`` column.

        Raises
        ------
        LedgerError
            Nothing is booked there.
        """
        _check_axis("phase", phase, PHASES)
        _check_axis("resource", resource, tuple(UNITS))
        found = tuple(
            explain_entry(entry)
            for entry in self._entries
            if entry.phase == phase
            and entry.resource == resource
            and account in (None, entry.account)
            and op in (None, entry.op)
            and entry.amount_device
        )
        if not found:
            booked = [e for e in self._entries if (e.phase, e.resource) == (phase, resource)]
            raise LedgerError(
                f"nothing is booked to {account or op} in {phase} as {resource}",
                given=account or op, allowed=", ".join(sorted({e.account for e in booked})) or None,
                fix="look at .entries for what is booked where",
            )  # fmt: skip
        return found

    def chart(self, **options: Any) -> alt.TopLevelMixin:
        """Draw the bars of this ledger; options as in ``lk.charts.ledger_bars``."""
        from ledgerkit import _plot  # the one allowed upward call

        return _plot.ledger_chart(self, **options)  # type: ignore[no-any-return]


def explain_entry(entry: Entry) -> Explanation:
    """Turn an entry into its explanation."""
    return Explanation(
        label=f"{entry.phase} · {entry.ledger}.{entry.account} · {entry.op} · {entry.resource}",
        amount=entry.amount_device, unit=entry.unit, expression=entry.formula.expression,
        values=entry.formula.values, basis=entry.basis, source=entry.source,
    )  # fmt: skip


def _check_axis(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise LedgerError(f"unknown {name}", given=value, allowed=", ".join(allowed),
                          fix=f"use {name}={allowed[0]!r}")  # fmt: skip


def ledger(
    model: Model | str | dict[str, Any],
    hardware: Hardware | str | dict[str, Any],
    deployment: Deployment | dict[str, Any] | None = None,
    workload: Workload | dict[str, Any] | None = None,
    *,
    calibration: Calibration | None = None,
) -> Ledger:
    """Open the books of one deployment at one point.

    Parameters
    ----------
    model : Model, slug, path or config dict
    hardware : Hardware, slug or dict
    deployment : Deployment or dict, optional
        Default: one device, checkpoint dtypes, bf16 cache, vLLM profile.
    workload : Workload or dict
    calibration : Calibration, optional
        Constants of the user's own server, see ``lk.calibrate``.

    Returns
    -------
    Ledger

    Raises
    ------
    LedgerError
        A name is unknown, the layout cannot be built, or the workload is beyond the model. A model
        that does not fit is not an error: see ``Ledger.fits`` and ``Ledger.free_bytes``.

    Examples
    --------
    >>> import ledgerkit as lk
    >>> books = lk.ledger(
    ...     "deepseek-v3",
    ...     "h200-sxm-141gb",
    ...     lk.Deployment(tp=8),
    ...     lk.Workload(prompt_tokens=8192, output_tokens=512, concurrency=32),
    ... )
    >>> books.fits
    'yes'
    """
    model, hardware, deployment, profile, efficiencies = resolve(model, hardware, deployment)
    workload = as_workload(workload, "a ledger")
    check_workload(model, deployment, workload)
    table = build(model, deployment, hardware, efficiencies, profile)
    return Ledger(table, workload, as_calibration(calibration))


def check_workload(model: Model, deployment: Deployment, workload: Workload) -> None:
    """Refuse workloads that the model or the deployment cannot take."""
    limit = deployment.max_model_len or model.max_position_embeddings
    if workload.hold_context > limit:
        whose = "max_model_len" if deployment.max_model_len else f"the positions of {model.slug}"
        raise WorkloadError(
            f"prompt_tokens + output_tokens is beyond {whose}", given=workload.hold_context,
            allowed=f"up to {limit}", fix="ask for fewer tokens",
        )  # fmt: skip
    seats = deployment.max_num_seqs
    if seats is not None and workload.concurrency > seats * deployment.dp_attention:
        raise WorkloadError(
            "concurrency is above max_num_seqs: the rest would wait in a queue",
            given=workload.concurrency, allowed=f"up to {seats * deployment.dp_attention}",
            fix="raise max_num_seqs or lower concurrency",
        )  # fmt: skip
