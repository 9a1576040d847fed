"""The columns of one piece: points of one table."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ledgerkit._sweep.columns import AMOUNTS
from ledgerkit._sweep.loaded import Loaded, loaded, seats
from ledgerkit._sweep.prepared import Array, Index, Prepared
from ledgerkit.costs.memory import resident_by_ledger
from ledgerkit.costs.table import Edge
from ledgerkit.kernels import grid as kernels
from ledgerkit.spec.axes import LEDGERS

Codes = npt.NDArray[np.uint8]

SPLIT = frozenset(name for ledger in LEDGERS for name in (f"{ledger}_s", f"decode_{ledger}_s"))

_AMOUNT = re.compile(rf"(prefill|decode)_({'|'.join(LEDGERS)})_({'|'.join(AMOUNTS)})")
_HELD = re.compile(rf"hold_({'|'.join(LEDGERS)})_bytes")


@dataclass(frozen=True, slots=True)
class Price:
    """What a device costs, and who says so."""

    usd_per_hour: float
    source: str
    date: str | None


@dataclass(slots=True)
class Piece:
    """Points of one table.

    A grid has ``concurrency`` by line and the other fields by row, and is every pair of them, line
    by line. Loose points (``paired``) have all fields by row.
    """

    setting: int
    """Number of the table in the sweep."""
    concurrency: Index
    prompt_tokens: Index
    cached_tokens: Index
    output_tokens: Index
    paired: bool
    first_pair: int | None = None
    """Where the piece's (prompt, cached) pairs begin among those of the sweep."""
    pair_of: Index | None = None
    """Of each row, its pair after ``first_pair``."""
    ids: Callable[[Index], Index] = field(default=lambda at: at)
    """From positions in the piece to numbers of points in the sweep."""

    @property
    def size(self) -> int:
        """Number of points."""
        return len(self.prompt_tokens) * (1 if self.paired else len(self.concurrency))

    def axis(self, name: str) -> Index:
        """Values of a workload field at every point."""
        values: Index = getattr(self, name)
        if self.paired:
            return values
        if name == "concurrency":
            return np.repeat(values, len(self.prompt_tokens))
        return np.tile(values, len(self.concurrency))


class Values:
    """Columns of a piece, each computed once."""

    def __init__(
        self, prepared: Prepared, piece: Piece, price: Price | None, stopped: Callable[[], bool]
    ) -> None:
        self.prepared, self.piece, self.price, self._stopped = prepared, piece, price, stopped
        self._kept: dict[Any, Any] = {}
        self._order: Index | None = None
        self._split = False
        rows = len(piece.prompt_tokens)
        if piece.paired:
            # loose points of one concurrency become one segment
            self._order = np.argsort(piece.concurrency, kind="stable")
            ordered = piece.concurrency[self._order]
            starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
            self.lines = ordered[starts]
            self.segments = np.stack(
                [np.arange(len(starts)), starts, np.r_[starts[1:], rows]], axis=1
            ).astype(np.int64)
        else:
            self.lines = piece.concurrency
            count = len(self.lines)
            self.segments = np.stack(
                [np.arange(count), np.zeros(count), np.full(count, rows)], axis=1
            ).astype(np.int64)

    def __getitem__(self, name: str) -> Array:
        """Numeric column by name."""
        if name not in self._kept:
            self._kept[name] = self._compute(name)
        found: Array = self._kept[name]
        return found

    def codes(self, name: str) -> Codes:
        """Codes of a category by name."""
        if name not in self._kept:
            self._kept[name] = getattr(self, f"_{name}")()
        found: Codes = self._kept[name]
        return found

    def text(self, name: str) -> str | None:
        """Text that all points share."""
        if self.price is None:
            return None
        return self.price.source if name == "price_source" else self.price.date

    def _compute(self, name: str) -> Array:
        if name in ("attention_kv_s", "ffn_mlp_s", "scheduling_s"):
            name = f"decode_{name}"
        if amount := _AMOUNT.fullmatch(name):
            return self._amount(*amount.groups())
        if held := _HELD.fullmatch(name):
            return self._held_by_ledger(held[1])
        if name.startswith(("ttft_s", "tpot_s")):
            quantity, _, edge = name.partition("_s")
            return self._seconds(quantity, edge.lstrip("_") or "mid")  # type: ignore[arg-type]
        found: Array = getattr(self, f"_{name}")()
        return found

    # orders: rows of the piece, points of the piece ----------------------------------------

    def _of_rows(self, values: Array) -> Array:
        """Spread values of rows over the points."""
        return values if self.piece.paired else np.tile(values, len(self.lines))

    def _constant(self, value: float) -> Array:
        return np.full(self.piece.size, value)

    def _kernel_rows(self, values: Array) -> Array:
        """Values of rows in the order of the segments."""
        return values if self._order is None else values[self._order]

    def _points(self, values: Array) -> Array:
        """Values in the order of the segments, put in the order of the points."""
        if self._order is None:
            return values
        found = np.empty_like(values)
        found[..., self._order] = values
        return found

    def _contexts(self, *, hold: bool = False) -> Array:
        piece = self.piece
        output = piece.output_tokens if hold else piece.output_tokens // 2
        return (piece.prompt_tokens + output).astype(np.float64)

    # time ----------------------------------------------------------------------------------

    def _decode(self, edge: Edge, *, split: bool = False) -> tuple[Array, Array]:
        """Seconds of decode by ledger (without columns if nobody needs them), and in total."""
        split = split or self._split
        found: tuple[Array, Array] | None = self._kept.get(("decode", edge))
        if found is None or (split and not found[0].size):
            contexts = self._kernel_rows(self._contexts())
            ledgers, total = self.prepared.decode(
                edge, self.lines, contexts, self.segments, split=split
            )
            found = (self._points(ledgers) if split else ledgers, self._points(total))
            self._kept["decode", edge] = found
        return found

    def expect(self, names: Sequence[str]) -> None:
        """Tell which columns will be asked for, so that nothing is computed twice."""
        self._split = self._split or any(name in SPLIT for name in names)

    def _prefill(self, edge: Edge, *, whole: bool = False, bare: bool = False) -> Array:
        """Prefill of each row: seconds (with or without the host's), or all totals."""
        key = ("prefill", edge, whole, bare)
        if key not in self._kept:
            piece = self.piece
            pair_of = piece.pair_of
            if pair_of is None:
                both = np.stack([piece.prompt_tokens, piece.cached_tokens])
                pairs, pair_of = np.unique(both, axis=1, return_inverse=True)
                prompts, cached = pairs[0], pairs[1]
            else:
                _, at = np.unique(pair_of, return_index=True)
                span = int(pair_of[-1]) + 1
                prompts, cached = np.full(span, np.nan), np.zeros(span)
                prompts[pair_of[at]] = piece.prompt_tokens[at]
                cached[pair_of[at]] = piece.cached_tokens[at]
            found = self.prepared.prefill(
                edge, prompts.astype(np.float64), cached.astype(np.float64), self._stopped,
                whole=whole, bare=bare, first_pair=piece.first_pair,
            )  # fmt: skip
            self._kept[key] = found[pair_of.reshape(-1)]
        kept: Array = self._kept[key]
        return kept

    def _seconds(self, quantity: str, edge: Edge) -> Array:
        if quantity == "tpot":
            return self._decode(edge)[1]
        return self._of_rows(self._prefill(edge))

    def _e2e_s(self) -> Array:
        after = (self.piece.output_tokens - 1).astype(np.float64)
        found: Array = self["ttft_s"] + self._of_rows(after) * self["tpot_s"]
        return found

    def _tokens_per_s(self) -> Array:
        tpot = self["tpot_s"]
        if self.piece.paired:
            return self.piece.concurrency.astype(np.float64) / tpot
        many = self.piece.concurrency.astype(np.float64)
        each: Array = many[:, None] / tpot.reshape(len(many), -1)
        return each.reshape(-1)

    def _tokens_per_s_per_device(self) -> Array:
        found: Array = self["tokens_per_s"] / self.prepared.layout.devices
        return found

    def _tokens_per_s_per_user(self) -> Array:
        found: Array = 1.0 / self["tpot_s"]
        return found

    def _amount(self, phase: str, ledger: str, amount: str) -> Array:
        at, column = LEDGERS.index(ledger), list(AMOUNTS).index(amount)
        found: Array
        if phase == "prefill":
            found = self._of_rows(self._prefill("mid", whole=True)[:, at, column])
        elif amount == "s":
            # a copy, so that one ledger does not keep the others in memory
            found = self._decode("mid", split=True)[0][at].copy()
        else:
            found = self._decode_whole()[0][:, at, column]
        return found

    def _decode_whole(self) -> tuple[Array, Array]:
        if "whole" not in self._kept:
            self._kept["whole"] = self.prepared.decode_whole(
                self.piece.axis("concurrency"), self._of_rows(self._contexts())
            )
        found: tuple[Array, Array] = self._kept["whole"]
        return found

    def _decode_bound(self) -> Codes:
        found: Codes = self._decode_whole()[1].argmax(axis=1).astype(np.uint8)
        return found

    # load ----------------------------------------------------------------------------------

    def _loaded(self) -> Loaded:
        if "loaded" not in self._kept:
            self._kept["loaded"] = self._solve()
        found: Loaded = self._kept["loaded"]
        return found

    def _solve(self) -> Loaded:
        """Solve the closed loop; points at which not one sequence fits are NaN."""
        names = ("concurrency", "prompt_tokens", "cached_tokens", "output_tokens")
        many, prompts, cached, outputs = (self.piece.axis(name) for name in names)
        running = np.minimum(many, self._of_rows(seats(self.prepared, self._contexts())))
        # at least one, so that the kernel has something to do where nothing fits
        beside = Piece(
            self.piece.setting, np.nan_to_num(running, nan=1.0).astype(np.int64), prompts, cached,
            outputs, paired=True,
        )  # fmt: skip
        step_s = Values(self.prepared, beside, None, self._stopped)["tpot_s"]
        return loaded(
            self.prepared, [axis.astype(np.float64) for axis in (many, prompts, cached, outputs)],
            running, step_s,
            self._of_rows(self._prefill("mid", bare=True)), self["ttft_s"],
        )  # fmt: skip

    def _loaded_ttft_s(self) -> Array:
        return self._loaded().ttft_s

    def _loaded_tpot_s(self) -> Array:
        return self._loaded().tpot_s

    def _loaded_tokens_per_s(self) -> Array:
        return self._loaded().tokens_per_s

    # memory --------------------------------------------------------------------------------

    def _held(self) -> Array:
        if "held" not in self._kept:
            contexts = self._kernel_rows(self._contexts(hold=True))
            self._kept["held"] = self._points(
                self.prepared.held(self.lines, contexts, self.segments)
            )
        found: Array = self._kept["held"]
        return found

    def _held_by_ledger(self, ledger: str) -> Array:
        """Bytes of one ledger on the fullest device; the reserve is scheduling's."""
        per_rank, *_ = self.prepared.batches(self.piece.axis("concurrency"))
        contexts = self._of_rows(self._contexts(hold=True))
        table = self.prepared.table
        sums = resident_by_ledger(table.holdings, contexts, per_rank, table.reserve.mid)
        return sums[ledger]  # type: ignore[index]

    def _resident_bytes_device(self) -> Array:
        return self._held() + self.prepared.table.reserve.mid

    def _capacity_bytes(self) -> Array:
        return self._constant(self.prepared.capacity_bytes)

    def _free_bytes(self) -> Array:
        found: Array = self.prepared.capacity_bytes - self["resident_bytes_device"]
        return found

    def _fits(self) -> Codes:
        held, table = self._held(), self.prepared.table
        low, high = table.reserve.low, table.reserve.high
        found = np.empty(len(held), dtype=np.uint8)
        kernels.fit_codes(
            held, low, table.capacity_bytes("low"), high, table.capacity_bytes("high"),
            found,
        )  # fmt: skip
        return found

    def _seats(self) -> Array:
        if "seats" not in self._kept:
            self._kept["seats"] = self.prepared.seats(self._contexts(hold=True))
        found: Array = self._kept["seats"]
        return found

    def _max_concurrency(self) -> Array:
        return self._of_rows(self._seats())

    def _concurrency_limit(self) -> Codes:
        prepared = self.prepared
        most = prepared.layout.max_num_seqs or prepared.table.profile.max_num_seqs
        seats = self._seats()
        codes = np.where(seats == 0, 0, np.where(seats < most * prepared.layout.dp_attention, 1, 2))
        codes = codes.astype(np.uint8)
        return codes if self.piece.paired else np.tile(codes, len(self.lines))

    # money and energy ----------------------------------------------------------------------

    def _devices(self) -> Array:
        return self._constant(float(self.prepared.layout.devices))

    def _tdp_energy_j_per_output_token(self) -> Array:
        watts = self.prepared.table.hardware.tdp_w
        if watts is None:
            return self._constant(np.nan)
        found: Array = watts * self.prepared.layout.devices / self["tokens_per_s"]
        return found

    def _usd_per_hour(self) -> Array:
        return self._constant(np.nan if self.price is None else self.price.usd_per_hour)

    def _usd_per_s(self) -> float:
        """Price of the whole replica."""
        if self.price is None:
            return np.nan
        return self.price.usd_per_hour * self.prepared.layout.devices / 3600.0

    def _usd_per_million_output_tokens(self) -> Array:
        found: Array = self._usd_per_s() * 1e6 / self["tokens_per_s"]
        return found

    def _usd_per_million_input_tokens(self) -> Array:
        piece = self.piece
        prompts = self._of_rows(piece.prompt_tokens.astype(np.float64))
        found: Array = self._usd_per_s() * 1e6 * self["ttft_s"] / prompts
        return found
