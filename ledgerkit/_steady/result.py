"""The result of ``lk.steady_state``."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Literal, cast

import numpy as np

from ledgerkit._amounts import run_phase
from ledgerkit._entries import Entry, entries_frame
from ledgerkit._steady import bands
from ledgerkit._steady.books import Solved, loaded_entries
from ledgerkit._steady.formula import closed_loop
from ledgerkit._steady.options import Assumption, Serving, assumptions
from ledgerkit._steady.streams import Pools, disaggregated, poisson
from ledgerkit._steady.work import Points, Seats, load, seats
from ledgerkit.costs.table import EDGES, CostTable, Edge
from ledgerkit.errors import LedgerError, WorkloadError
from ledgerkit.kernels import columns as c
from ledgerkit.spec.axes import LEDGERS, Phase, Resource
from ledgerkit.spec.deployment import Deployment, Workload

if TYPE_CHECKING:
    import polars as pl

    from ledgerkit._calibration import Calibration
    from ledgerkit.spec.hardware import Hardware
    from ledgerkit.spec.model import Model

__all__ = ["SteadyState"]

Binds = Literal[
    "memory_bandwidth", "compute", "communication", "host", "prefill", "draft", "seats",
    "max_num_seqs", "prefill_pool",
]  # fmt: skip


class SteadyState:
    """One deployment under a steady load.

    Made by ``lk.steady_state``; nothing in it changes afterwards. Times are means over requests.
    A band is conformal: from groups of measured servers that no constant was fitted to
    (``ACCURACY.md``); the spread of single entries is that of their constants.
    """

    def __init__(
        self,
        table: CostTable,
        workload: Workload,
        serving: Serving,
        *,
        pools: Pools | None = None,
        calibration: Calibration | None = None,
    ) -> None:
        self._factor, notes = 1.0, list(table.notes)
        if calibration is not None:
            differs = calibration.differs(table)
            notes += [differs] if differs else []
            self._factor = calibration.tpot_factor
            table, serving = calibration.price(table), calibration.serve(serving)
        self._table, self._pools, self._calibration = table, pools, calibration
        self.model: Model = table.model
        self.hardware: Hardware = table.hardware
        self.deployment: Deployment = table.deployment
        self.workload: Workload = workload
        self.serving: Serving = serving
        self.assumptions: tuple[Assumption, ...] = assumptions(table, workload, serving)
        self._seats: Seats = seats(table, workload.decode_context, serving.seats)
        self._solved: dict[Edge, Solved] = {"mid": self._solve("mid")}
        for edge in EDGES[1:]:
            try:
                self._solved[edge] = self._solve(edge)
            except WorkloadError:
                # capacity itself has a band: a stream can be beyond one end of it
                self._solved[edge] = self._solved["mid"]
                notes.append(f"at the {edge} end of the constants the stream is beyond capacity")
        reasons = bands.unmeasured(table, serving)
        calibrated = calibration is not None and calibration.covers(table)
        apart = pools is not None
        self.tpot_band = bands.spread("tpot", reasons, self._edges("tpot"), calibrated=calibrated)
        self.ttft_band = bands.spread("ttft", reasons, self._edges("ttft"), pools=apart)
        if self._waiting_clients > 0:
            notes.append(
                f"{workload.concurrency} clients share {self.seats} seats: the first token waits "
                "for a seat, and its time is that of the queue, not of the engine"
            )
        notes += [f"band of tpot_s: {reason}" for reason in self.tpot_band.reasons]
        notes += [f"band of ttft_s: {reason}" for reason in self.ttft_band.reasons]
        self.notes: tuple[str, ...] = tuple(notes)

    def _solve(self, edge: Edge) -> Solved:
        table, workload, serving = self._table, self.workload, self.serving
        if self._pools is not None:
            points, pools = disaggregated(
                table, self._pools, workload, serving, self._seats.count, edge
            )
            return Solved(points, load(table, points, serving, edge, self._factor), None, pools)
        if serving.arrival == "poisson":
            return Solved(
                *poisson(table, workload, serving, self._seats.count, edge, self._factor), None
            )
        one = [np.array([float(x)]) for x in (
            workload.prompt_tokens, workload.cached_tokens, workload.output_tokens,
            workload.concurrency, min(workload.concurrency, self._seats.count),
        )]  # fmt: skip
        points = Points.whole(table, *one)
        priced = load(table, points, serving, edge, self._factor)
        return Solved(points, priced, closed_loop(priced), None)

    def __repr__(self) -> str:
        return (
            f"SteadyState({self.model.slug} on {self.devices} x {self.hardware.slug}: "
            f"ttft {self.ttft_s * 1e3:.0f} ms, tpot {self.tpot_s * 1e3:.2f} ms, "
            f"{self.tokens_per_s:.0f} tokens/s, {self.running:.3g} running of {self.seats} seats; "
            f"binds: {self.binds})"
        )

    # times -----------------------------------------------------------------------------------

    def _times(self, edge: Edge) -> tuple[float, float]:
        """(TTFT, TPOT) at one edge of the constants."""
        solved = self._solved[edge]
        if solved.times is not None:
            return float(solved.times.ttft_s[0]), float(solved.times.tpot_s[0])
        pools = solved.pools
        if pools is None:
            raise LedgerError("a point was not solved", given=edge, allowed="low, mid, high",
                              fix="please report this point")  # fmt: skip
        parts = (self.serving.path_s(), pools.alone_s, pools.wait_prefill_s, pools.wait_pool_s)
        return math.fsum(parts), pools.step_s / self.serving.tokens_per_step

    def _edges(self, quantity: Literal["ttft", "tpot"]) -> tuple[float, float, float]:
        low, mid, high = (self._times(edge)[quantity == "tpot"] for edge in ("low", "mid", "high"))
        return min(low, mid), mid, max(mid, high)

    @property
    def ttft_s(self) -> float:
        """Seconds to the first token under load, waiting included."""
        return self._times("mid")[0]

    @property
    def ttft_s_low(self) -> float:
        """Low end of the 90 % band of ``ttft_s``."""
        return self.ttft_band.around(self.ttft_s)[0]

    @property
    def ttft_s_high(self) -> float:
        """High end of the 90 % band of ``ttft_s``."""
        return self.ttft_band.around(self.ttft_s)[1]

    @property
    def tpot_s(self) -> float:
        """Seconds between tokens of one answer under load, prefills of others included."""
        return self._times("mid")[1]

    @property
    def tpot_s_low(self) -> float:
        """Low end of the 90 % band of ``tpot_s``."""
        return self.tpot_band.around(self.tpot_s)[0]

    @property
    def tpot_s_high(self) -> float:
        """High end of the 90 % band of ``tpot_s``."""
        return self.tpot_band.around(self.tpot_s)[1]

    @property
    def e2e_s(self) -> float:
        """Seconds of a whole answer under load."""
        return self.ttft_s + (self.workload.output_tokens - 1) * self.tpot_s

    @property
    def requests_per_s(self) -> float:
        """Answers per second: of the replica, or of all workers of a disaggregated point."""
        if self.serving.arrival_rate_per_s is not None:
            return self.serving.arrival_rate_per_s
        pools = self._solved["mid"].pools
        return self.workload.concurrency / (self.e2e_s if pools is None else pools.cycle_s)

    @property
    def tokens_per_s(self) -> float:
        """Output tokens per second of all answers."""
        return self.requests_per_s * self.workload.output_tokens

    @property
    def tokens_per_s_low(self) -> float:
        """Low end of the band of ``tokens_per_s``; a Poisson stream sets it, without a band."""
        return self._rate(self.tpot_band.factor, self.ttft_band.factor)

    @property
    def tokens_per_s_high(self) -> float:
        """High end of the band of ``tokens_per_s``."""
        return self._rate(1 / self.tpot_band.factor, 1 / self.ttft_band.factor)

    def _rate(self, slower: float, later: float) -> float:
        if self.serving.arrival == "poisson":
            return self.tokens_per_s
        decode = (self.workload.output_tokens - 1) * self.tpot_s
        cycle = self.workload.concurrency / self.requests_per_s
        first = max(0.0, cycle - decode)
        # time in the queue is made of answers, so it is as uncertain as they are
        queue = min(first, self._queue_s)
        stretched = (decode + queue) * slower + (first - queue) * later
        return self.workload.concurrency * self.workload.output_tokens / stretched

    @property
    def _queue_s(self) -> float:
        solved = self._solved["mid"]
        if solved.times is not None:
            return float(solved.times.wait_seat_s[0])
        return solved.pools.wait_pool_s if solved.pools is not None else 0.0

    @property
    def interference_s(self) -> float:
        """Seconds that prefills of others add to a mean decode step."""
        times = self._solved["mid"].times
        return 0.0 if times is None else float(times.interference_s[0])

    @property
    def waiting_s(self) -> float:
        """Seconds of ``ttft_s`` in which the request waits for others."""
        return math.fsum(
            entry.amount_device
            for entry in self._entries
            if entry.phase == "prefill" and entry.resource == "time" and entry.account == "queue"
        )

    # load ------------------------------------------------------------------------------------

    @property
    def seats(self) -> int:
        """Sequences that a replica (a decode worker) can run at once."""
        return self._seats.count

    @property
    def running(self) -> float:
        """Sequences that a replica (a decode worker) runs at once, on average."""
        return float(self._solved["mid"].points.running[0])

    @property
    def devices(self) -> int:
        """Devices of the replica, or of all workers."""
        if self._pools is None:
            return self.deployment.devices
        prefill = self._pools.prefill_workers * self._pools.prefill.deployment.devices
        return prefill + self._pools.decode_workers * self.deployment.devices

    @property
    def _waiting_clients(self) -> float:
        pools = self._solved["mid"].pools
        if self.serving.arrival == "poisson":
            return 0.0
        if pools is not None:
            return float(pools.binds == "seats")
        return self.workload.concurrency - self.running

    @cached_property
    def shares(self) -> dict[str, float]:
        """What the time between tokens goes to; fractions of one."""
        points = self._solved["mid"].points
        amounts = run_phase(self._table, 1, points.work_point(self.workload))
        parts = {
            "memory_bandwidth": float(amounts.ops[:, c.A_TIME_MEMORY].sum()),
            "compute": float(amounts.ops[:, c.A_TIME_COMPUTE].sum()),
            "communication": float(amounts.links[:, c.C_TIME].sum()),
            "host": float(amounts.host[[c.H_LAUNCH, c.H_HOST, c.H_STAGES]].sum()),
            "prefill": self.interference_s,
            "draft": float(self._solved["mid"].load.draft_s[0]),
        }
        whole = math.fsum(parts.values())
        return {name: value / whole for name, value in parts.items()}

    @property
    def binds(self) -> Binds:
        """Which limit binds: seats or workers if clients wait for them, else the largest share."""
        pools = self._solved["mid"].pools
        if self._waiting_clients > 0:
            return "max_num_seqs" if self._seats.limit == "max_num_seqs" else "seats"
        if pools is not None and pools.binds == "prefill_pool":
            return "prefill_pool"
        return cast("Binds", max(self.shares, key=self.shares.__getitem__))

    # books -----------------------------------------------------------------------------------

    @cached_property
    def _entries(self) -> list[Entry]:
        prefill = self._table if self._pools is None else self._pools.prefill
        found = loaded_entries(prefill, self._table, self.workload, self.serving, self._solved)
        return found if self._calibration is None else self._calibration.book(found)

    @cached_property
    def entries(self) -> pl.DataFrame:
        """Every entry as a polars frame, in the columns of ``Ledger.entries``.

        Seconds of prefill sum to ``ttft_s``, those of decode to ``tpot_s * tokens_per_step``.
        Of a disaggregated point, prefill is of a prefill worker and decode of a decode worker.
        """
        return entries_frame(self._entries)

    def by_ledger(self, phase: Phase = "decode", resource: Resource = "time") -> dict[str, float]:
        """Sums of one resource in one phase on the busiest device, by ledger."""
        return {
            name: math.fsum(
                entry.amount_device
                for entry in self._entries
                if (entry.phase, entry.resource, entry.ledger) == (phase, resource, name)
            )
            for name in LEDGERS
        }

    def total(self, phase: Phase = "decode", resource: Resource = "time") -> float:
        """Sum of one resource in one phase on the busiest device."""
        return math.fsum(self.by_ledger(phase, resource).values())

    def share(self, phase: Phase = "decode", resource: Resource = "time") -> dict[str, float]:
        """Share of each ledger, 0 to 1."""
        sums = self.by_ledger(phase, resource)
        whole = math.fsum(sums.values())
        return {name: value / whole if whole else 0.0 for name, value in sums.items()}

    @property
    def inputs(self) -> pl.DataFrame:
        """Every input that moves the result, its value, and who stated it."""
        import polars as pl  # heavy

        return pl.DataFrame(
            [(one.name, str(one.value), one.origin) for one in self.assumptions],
            schema=["name", "value", "origin"], orient="row",
        )  # fmt: skip
