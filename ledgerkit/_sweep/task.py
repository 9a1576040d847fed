"""What is done with a unit of points; can be sent to another process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from ledgerkit._sweep.columns import CATEGORIES, COLUMNS
from ledgerkit._sweep.frames import Frames
from ledgerkit._sweep.plan import Lookup, Plan
from ledgerkit._sweep.prepared import Index, Prepared
from ledgerkit._sweep.values import Piece, Price, Values
from ledgerkit.kernels import reduce as kernels

Mask = npt.NDArray[np.bool_]
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Prices:
    """Which price a device has."""

    given: Mapping[str, float] | None = None
    """The user's own, by slug; they replace all others."""
    source: str | None = None
    """Only prices of this source."""

    def of(self, prepared: Prepared) -> Price | None:
        """Price of a table's device, if it has one."""
        device = prepared.table.hardware
        if self.given is not None:
            own = self.given.get(device.slug)
            return None if own is None else Price(own, "given by the user", None)
        if device.usd_per_hour is None:
            return None
        source = device.price_source or device.source
        if self.source is not None and source != self.source:
            return None
        return Price(device.usd_per_hour, source, device.price_date)


@dataclass(frozen=True, slots=True)
class Condition:
    """Which points count: a polars expression, or a limit of one column."""

    needs: tuple[str, ...]
    expression: pl.Expr | None = None
    column: str = ""
    most: float | None = None
    least: float | None = None
    among: tuple[int, ...] = ()

    def apply(self, frames: Frames, values: Values, allowed: Mask) -> None:
        """Clear points that do not count."""
        if self.expression is not None:
            frame = frames.frame(self.needs, [values])
            mask = frame.select(self.expression.alias("mask")).to_series()
            if len(mask) != len(allowed):
                mask = mask.new_from_index(0, len(allowed))
            allowed &= mask.fill_null(False).to_numpy()
        elif self.most is not None:
            kernels.within(values[self.column], self.most, allowed)
        elif self.least is not None:
            kernels.within(-values[self.column], -self.least, allowed)
        else:
            allowed &= np.isin(values.codes(self.column), self.among)


class Reducer(Protocol[R]):
    """What is kept of each unit, and how the parts are joined."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Columns that it looks at."""

    def reduce(self, frames: Frames, pieces: Sequence[tuple[Values, Mask | None]], unit: int) -> R:
        """Part of one unit; runs in any thread or process."""

    def join(self, unit: int, part: R) -> None:
        """Take in a part; called in the order of the units."""


@dataclass(slots=True)
class Task(Generic[R]):
    """A plan with conditions and a reducer."""

    plan: Plan
    conditions: tuple[Condition, ...]
    prices: Prices
    reducer: Reducer[R]
    frames: Frames = field(init=False)

    def __post_init__(self) -> None:
        self.frames = Frames(self.plan)

    def values(
        self, unit: int, tables: Lookup, stopped: Callable[[], bool], dropped: Counter[str]
    ) -> Iterator[tuple[Values, Mask | None]]:
        """Pieces of a unit with the points that count; None = all."""
        for piece in self.plan.pieces(unit, tables, dropped):
            values = self.open(piece, tables, stopped)
            if not self.conditions:
                yield values, None
                continue
            allowed = np.ones(piece.size, dtype=np.bool_)
            for condition in self.conditions:
                condition.apply(self.frames, values, allowed)
            yield values, allowed

    def open(self, piece: Piece, tables: Lookup, stopped: Callable[[], bool]) -> Values:
        """Columns of a piece."""
        prepared = tables[piece.setting]
        assert isinstance(prepared, Prepared)  # noqa: S101 - pieces come from tables that exist
        return Values(prepared, piece, self.prices.of(prepared), stopped)

    def __call__(
        self, unit: int, tables: Lookup, stopped: Callable[[], bool]
    ) -> tuple[R, Counter[str]]:
        """Reduce one unit."""
        dropped: Counter[str] = Counter()
        pieces = list(self.values(unit, tables, stopped, dropped))
        return self.reducer.reduce(self.frames, pieces, unit), dropped

    def rows(self, ids: Index, names: Sequence[str], tables: Lookup) -> pl.DataFrame:
        """Columns of points by number, in that order."""
        found = [
            self.frames.frame(names, [self.open(piece, tables, lambda: False)]).with_columns(
                pl.Series("__at", at)
            )
            for at, piece in self.plan.loose(ids, tables)
        ]
        if not found:
            return self.frames.empty(names)
        return pl.concat(found).sort("__at").drop("__at")


def costs_of(values: Values, objectives: Sequence[tuple[str, bool]]) -> npt.NDArray[np.float64]:
    """Objectives as costs, less is better: float64[n_costs, n]."""
    costs = np.empty((len(objectives), values.piece.size))
    for i, (name, maximize) in enumerate(objectives):
        column = values[name] if name in COLUMNS else values.piece.axis(name)
        if maximize:
            np.negative(column, out=costs[i])
        else:
            costs[i] = column
    return costs


def codes(column: str, wanted: Sequence[str]) -> tuple[int, ...]:
    """Codes of categories by name."""
    known = CATEGORIES[COLUMNS[column].kind]
    return tuple(known.index(one) for one in wanted)
