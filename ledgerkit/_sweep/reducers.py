"""Reductions: frames, fronts, best points, histograms, each in bounded memory but frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ledgerkit._sweep.axes import TABLE_FIELDS, value_name
from ledgerkit._sweep.frames import Frames
from ledgerkit._sweep.prepared import Array, Index
from ledgerkit._sweep.task import Mask, costs_of
from ledgerkit._sweep.values import Values
from ledgerkit.errors import SweepError
from ledgerkit.kernels import reduce as kernels

Pieces = Sequence[tuple[Values, Mask | None]]

MOST_GROUPS = 1_000_000


def _all(values: Values, mask: Mask | None) -> Mask:
    return np.ones(values.piece.size, dtype=np.bool_) if mask is None else mask


class Count:
    """Points that count, and nothing else."""

    needs: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.points = 0

    def reduce(self, frames: Frames, pieces: Pieces, unit: int) -> int:
        """Number of points of a unit."""
        del frames, unit
        return sum(v.piece.size if mask is None else int(mask.sum()) for v, mask in pieces)

    def join(self, unit: int, part: int) -> None:
        """Add."""
        del unit
        self.points += part


class Collect:
    """All points, as a frame."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.needs = names
        self.parts: list[pl.DataFrame] = []

    def reduce(self, frames: Frames, pieces: Pieces, unit: int) -> pl.DataFrame:
        """Frame of a unit."""
        del unit
        found, ids = [], []
        for values, mask in pieces:
            frame = frames.frame(self.needs, [values])
            found.append(frame if mask is None else frame.filter(pl.Series(mask)))
            if not frames.plan.in_order:
                at = np.arange(values.piece.size) if mask is None else np.flatnonzero(mask)
                ids.append(values.piece.ids(at))
        if len(found) < 2:
            return found[0] if found else frames.empty(self.needs)
        joined = pl.concat(found, rechunk=True)
        return joined[np.argsort(np.concatenate(ids))] if ids else joined

    def join(self, unit: int, part: pl.DataFrame) -> None:
        """Keep."""
        del unit
        if part.height:
            self.parts.append(part)

    def result(self, frames: Frames) -> pl.DataFrame:
        """One frame, its chunks as they came."""
        if not self.parts:
            return frames.empty(self.needs)
        return pl.concat(self.parts, rechunk=False)


class Pareto:
    """Points that no other point beats in all objectives."""

    def __init__(self, objectives: Sequence[tuple[str, bool]]) -> None:
        self.objectives = tuple(objectives)
        self.needs = tuple(name for name, _ in objectives)
        self.costs: Array = np.empty((0, len(self.objectives)))
        self.ids: Index = np.empty(0, dtype=np.int64)
        self.missing = 0

    def reduce(self, frames: Frames, pieces: Pieces, unit: int) -> tuple[Array, Index, int]:
        """Front of a unit: costs, numbers, points without a value."""
        del frames, unit
        known = self.costs  # of lower units only: parts are joined in order
        missing = np.zeros(1, dtype=np.int64)
        found_costs, found_ids = [], []
        for values, mask in pieces:
            costs = costs_of(values, self.objectives)
            chosen = np.empty(values.piece.size, dtype=np.int64)
            count = kernels.front(costs, _all(values, mask), known, chosen, missing)
            at = np.sort(chosen[:count])
            found_costs.append(costs[:, at].T)
            found_ids.append(values.piece.ids(at))
        if not found_ids:
            return self.costs[:0], self.ids[:0], 0
        return np.concatenate(found_costs), np.concatenate(found_ids), int(missing[0])

    def join(self, unit: int, part: tuple[Array, Index, int]) -> None:
        """Front of both."""
        del unit
        costs, ids, missing = part
        self.missing += missing
        if not len(ids):
            return
        costs, ids = np.concatenate([self.costs, costs]), np.concatenate([self.ids, ids])
        order = np.argsort(ids)
        costs, ids = costs[order], ids[order]
        chosen = np.empty(len(ids), dtype=np.int64)
        count = kernels.front(
            np.ascontiguousarray(costs.T), np.ones(len(ids), dtype=np.bool_),
            np.empty((0, len(self.objectives))), chosen, np.zeros(1, dtype=np.int64),
        )  # fmt: skip
        at = np.sort(chosen[:count])
        self.costs, self.ids = np.ascontiguousarray(costs[at]), ids[at]

    def numbers(self) -> Index:
        """Numbers of the points of the front, by the first objective."""
        return self.ids[np.lexsort((self.ids, *self.costs.T[::-1]))]


class Best:
    """The k best points of each group."""

    def __init__(self, objective: tuple[str, bool], by: Sequence[str], k: int) -> None:
        self.objective, self.by, self.k = objective, tuple(by), k
        self.needs = (objective[0],)
        self.found: dict[tuple[Any, ...], list[tuple[float, int]]] = {}
        self.missing = 0

    def reduce(
        self, frames: Frames, pieces: Pieces, unit: int
    ) -> tuple[dict[tuple[Any, ...], list[tuple[float, int]]], int]:
        """Best of a unit: costs and numbers by group, points without a value."""
        del frames, unit
        missing = np.zeros(1, dtype=np.int64)
        found: dict[tuple[Any, ...], list[tuple[float, int]]] = {}
        for values, mask in pieces:
            costs = costs_of(values, [self.objective])[0]
            keys, groups = self._groups(values)
            best = np.full((len(keys), self.k), np.inf)
            at = np.full((len(keys), self.k), -1, dtype=np.int64)
            kernels.least(costs, _all(values, mask), groups, best, at, missing)
            for key, positions, row in zip(keys, at, best, strict=True):
                some = positions >= 0
                if some.any():
                    ids = values.piece.ids(positions[some])
                    found.setdefault(key, []).extend(
                        zip(row[some].tolist(), ids.tolist(), strict=True)
                    )
        return found, int(missing[0])

    def _groups(self, values: Values) -> tuple[list[tuple[Any, ...]], Index]:
        """Keys of the groups in a piece, and the group of each point."""
        piece = values.piece
        inner = [name for name in self.by if name not in TABLE_FIELDS]
        fixed = {
            name: value_name(getattr(values.prepared.table, name))
            if name in ("model", "hardware") else getattr(values.prepared.layout, name)
            for name in self.by if name in TABLE_FIELDS
        }  # fmt: skip
        if not inner:
            return [tuple(fixed[name] for name in self.by)], np.zeros(1, dtype=np.int64)
        distinct, groups = np.unique(
            np.stack([piece.axis(name) for name in inner]), axis=1, return_inverse=True
        )
        keys = []
        for column in distinct.T.tolist():
            own = fixed | dict(zip(inner, column, strict=True))
            keys.append(tuple(own[name] for name in self.by))
        return keys, groups.reshape(-1).astype(np.int64)

    def join(
        self, unit: int, part: tuple[dict[tuple[Any, ...], list[tuple[float, int]]], int]
    ) -> None:
        """Best of both."""
        del unit
        found, missing = part
        self.missing += missing
        for key, points in found.items():
            kept = sorted([*self.found.get(key, []), *points])
            self.found[key] = kept[: self.k]
        if len(self.found) > MOST_GROUPS:
            raise SweepError("by= makes too many groups", given=", ".join(self.by),
                             allowed=f"up to {MOST_GROUPS:,} groups")  # fmt: skip

    def numbers(self) -> Index:
        """Numbers of the points: by group as first seen, best first."""
        ids = [number for points in self.found.values() for _, number in points]
        return np.array(ids, dtype=np.int64)


class Histogram:
    """Counts by bin."""

    def __init__(self, column: str, edges: npt.NDArray[np.float64]) -> None:
        self.column, self.edges = column, edges
        self.needs = (column,)
        self.counts = np.zeros(len(edges) + 2, dtype=np.int64)

    def reduce(self, frames: Frames, pieces: Pieces, unit: int) -> Index:
        """Counts of a unit: below, bins, above, missing."""
        del frames, unit
        counts = np.zeros_like(self.counts)
        for values, mask in pieces:
            column = costs_of(values, [(self.column, False)])[0]
            kernels.count_into(column, _all(values, mask), self.edges, counts)
        return counts

    def join(self, unit: int, part: Index) -> None:
        """Add."""
        del unit
        self.counts += part


class Extent:
    """Least and largest value of a column."""

    def __init__(self, column: str) -> None:
        self.column = column
        self.needs = (column,)
        self.low, self.high = np.inf, -np.inf

    def reduce(self, frames: Frames, pieces: Pieces, unit: int) -> tuple[float, float]:
        """Extent of a unit."""
        del frames, unit
        low, high = np.inf, -np.inf
        for values, mask in pieces:
            column = costs_of(values, [(self.column, False)])[0]
            column = column[np.isfinite(column) if mask is None else mask & np.isfinite(column)]
            if len(column):
                low, high = min(low, float(column.min())), max(high, float(column.max()))
        return low, high

    def join(self, unit: int, part: tuple[float, float]) -> None:
        """Widen."""
        del unit
        self.low, self.high = min(self.low, part[0]), max(self.high, part[1])
