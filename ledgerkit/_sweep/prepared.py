"""One cost table, made ready for grids."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ledgerkit._steady.options import Serving
from ledgerkit._steady.work import without_host
from ledgerkit._sweep.axes import resolved
from ledgerkit.costs.memory import Residence
from ledgerkit.costs.table import CostTable, Edge, build
from ledgerkit.errors import LedgerError
from ledgerkit.kernels import columns as c
from ledgerkit.kernels import grid as kernels

if TYPE_CHECKING:
    from ledgerkit._calibration import Calibration
    from ledgerkit._sweep.plan import Plan

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

_PREFILL_BLOCK = 512
"""(prompt, cached) pairs that are priced without a look at the stop sign."""


class Stopped(Exception):  # noqa: N818
    """Raised in a worker thread when the run was cancelled."""


class Prepared:
    """A table, its limits, and prefill prices that are computed once."""

    def __init__(
        self, table: CostTable, pairs: int, calibration: Calibration | None = None
    ) -> None:
        self.serving, self.tpot_factor = Serving(), 1.0
        if calibration is not None:
            table, self.serving = calibration.price(table), calibration.serve(self.serving)
            self.tpot_factor = calibration.tpot_factor
        self.table = table
        self.layout = table.deployment
        self.residence = Residence.of(table.holdings)
        self.longest = self.layout.max_model_len or table.model.max_position_embeddings
        seats = self.layout.max_num_seqs
        self.most_sequences = None if seats is None else seats * self.layout.dp_attention
        self.capacity_bytes = table.capacity_bytes()
        self.first = sum(not op.decode.device.depends_on_context for op in table.operations)
        late = table.ops["mid"][1, self.first :]
        keys = [tuple(row[[c.WINDOW, c.TOPK, c.CHUNK, c.RATIO]]) for row in late]
        distinct = list(dict.fromkeys(keys))
        self.views = np.array(distinct, dtype=np.float64).reshape(-1, 4)
        self.view_of = np.array([distinct.index(key) for key in keys], dtype=np.int64)
        self._pairs = pairs
        self._lock = threading.Lock()
        self._prefill: dict[tuple[Edge, bool, bool], Array] = {}

    def prefill(
        self, edge: Edge, prompts: Array, cached: Array, stopped: Callable[[], bool], *,
        whole: bool = False, bare: bool = False, first_pair: int | None = None,
    ) -> Array:  # fmt: skip
        """Prefill of (prompt, cached) pairs: seconds[n], or the totals[n, 3, 5] if ``whole``.

        ``bare``: without the time of the host.

        Prompts that are NaN are left out. With ``first_pair`` the pairs are a run of the sweep's
        own, which are kept.
        """
        width = 15 if whole else 1
        if first_pair is None:
            kept = np.full((len(prompts), width), np.nan)
            first_pair = 0
        else:
            with self._lock:
                kept = self._prefill.get((edge, whole, bare), np.empty((0, 0)))
                if not kept.size:
                    kept = self._prefill[edge, whole, bare] = np.full((self._pairs, width), np.nan)
        table = self.table
        scalars = table.scalars[edge][0]
        if bare:
            scalars = without_host(scalars)
        found = kept[first_pair : first_pair + len(prompts)]
        wanted = ~np.isnan(prompts)
        for start in range(0, len(prompts), _PREFILL_BLOCK):
            part = found[start : start + _PREFILL_BLOCK]
            todo = np.flatnonzero(np.isnan(part[:, -1]) & wanted[start : start + _PREFILL_BLOCK])
            if not len(todo):
                continue
            if stopped():
                raise Stopped
            where = start + todo
            out = np.empty((len(todo), 3, 5))
            kernels.prefill_totals(
                table.ops[edge][0], table.link_rows[edge][0], scalars,
                table.op_ledger, prompts[where], cached[where], float(table.chunk_tokens), out,
            )  # fmt: skip
            if whole:
                part[todo] = out.reshape(-1, 15)
            else:
                seconds = np.empty(len(todo))
                kernels.exact_sums(np.ascontiguousarray(out[:, :, 4]), seconds)
                part[todo, 0] = seconds
        return found.reshape(-1, 3, 5) if whole else found[:, 0]

    def batches(self, concurrency: Index) -> tuple[Array, Array, Array, Array]:
        """Sequences of a rank, then of a micro-batch, tokens of its experts, micro-batches."""
        many = concurrency.astype(np.float64)
        per_rank = np.ceil(many / self.layout.dp_attention)
        batches = np.minimum(float(self.layout.pp), per_rank)
        return per_rank, np.ceil(per_rank / batches), np.ceil(many / batches), batches

    def rows(self, contexts: Array) -> Array:
        """What one sequence costs at each decode context, for the kernel."""
        rows = np.empty((1 + 2 * len(self.views), len(contexts)))
        rows[0] = contexts
        kernels.fill_rows(self.views, rows)
        return rows

    def decode(
        self, edge: Edge, lines: Index, contexts: Array, segments: Index, *, split: bool
    ) -> tuple[Array, Array]:
        """Seconds of decode at every point of the segments.

        Returns
        -------
        ledgers : float64[3, points]
            Without columns unless ``split``.
        total : float64[points]
        """
        table = self.table
        _, sequences, group, batches = self.batches(lines)
        late = len(table.operations) - self.first
        states = np.empty((len(lines), kernels.STATE))
        coefficients = np.empty((len(lines), late, kernels.COEFFICIENTS))
        wires = np.empty((len(lines), len(table.links)))
        ops, scalars = table.ops[edge][1], table.scalars[edge][1]
        kernels.decode_states(
            ops, table.link_rows[edge][1], scalars, table.op_ledger, self.first, sequences, group,
            batches, states, coefficients, wires,
        )  # fmt: skip
        points = int((segments[:, 2] - segments[:, 1]).sum())
        ledgers, total = np.empty((3, points if split else 0)), np.empty(points)
        kernels.decode_seconds(
            ops, scalars, table.op_ledger, self.first, self.view_of, states, coefficients, wires,
            self.rows(contexts), segments, ledgers, total,
        )  # fmt: skip
        return ledgers, total

    def decode_whole(self, concurrency: Index, contexts: Array) -> tuple[Array, Array]:
        """All totals[n, 3, 5] and seconds by bound[n, 4] of single points."""
        table = self.table
        _, sequences, group, batches = self.batches(concurrency)
        out, bounds = np.empty((len(contexts), 3, 5)), np.empty((len(contexts), kernels.BOUNDS))
        kernels.decode_totals(
            table.ops["mid"][1], table.link_rows["mid"][1], table.scalars["mid"][1],
            table.op_ledger, contexts, sequences, group, batches, out, bounds,
        )  # fmt: skip
        return out, bounds

    def held(self, lines: Index, contexts: Array, segments: Index) -> Array:
        """Bytes on the fullest device without the reserve, at every point of the segments."""
        per_rank, *_ = self.batches(lines)
        out = np.empty(int((segments[:, 2] - segments[:, 1]).sum()))
        one = self.residence.sequence_bytes(contexts)
        kernels.held_bytes(self.residence.base, one, per_rank, segments, out)
        return out

    def seats(self, contexts: Array) -> Array:
        """Most sequences of each length that the replica holds; as ``Ledger.max_concurrency``."""
        one = self.residence.sequence_bytes(contexts)
        base = self.residence.base[:, None]
        room = self.capacity_bytes - self.table.reserve.mid
        with_one = base + one
        grows = with_one > base
        share = np.where(grows, with_one - base, 1.0)
        seats = np.where(grows, (room - base) / share, np.inf).min(axis=0)
        most = float(self.table.profile.max_num_seqs)
        whole = np.where(np.isinf(seats), most, np.maximum(0.0, np.floor(seats)))
        return whole * self.layout.dp_attention


@dataclass(frozen=True, slots=True)
class Refused:
    """A setting that cannot be built, and why."""

    reason: str


class Tables:
    """The tables of a sweep, few at a time."""

    def __init__(self, plan: Plan) -> None:
        self._settings, self._calibration = plan.setting, plan.calibration
        self._pairs = pairs = plan.pairs
        self._kept: OrderedDict[int, Prepared | Refused] = OrderedDict()
        self._lock = threading.Lock()
        # a table and its prefill prices: at most 64 MB of prices are kept
        self._room = int(min(128, max(3, 64e6 // (128 * pairs))))

    def __getitem__(self, index: int) -> Prepared | Refused:
        with self._lock:
            found = self._kept.get(index)
            if found is not None:
                self._kept.move_to_end(index)
                return found
        made = self._make(index)
        with self._lock:
            made = self._kept.setdefault(index, made)
            while len(self._kept) > self._room:
                self._kept.popitem(last=False)
        return made

    def _make(self, index: int) -> Prepared | Refused:
        try:
            model, hardware, deployment, profile, efficiencies = resolved(self._settings(index))
            table = build(model, deployment, hardware, efficiencies, profile)
        except LedgerError as error:
            return Refused(error.what)
        return Prepared(table, self._pairs, self._calibration)
