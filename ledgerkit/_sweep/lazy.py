"""The object that ``lk.sweep`` returns: lazy, and reduced as it runs."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from ledgerkit._sweep.axes import FIELDS
from ledgerkit._sweep.columns import COLUMNS, DEFAULT_COLUMNS
from ledgerkit._sweep.conditions import check_names, direction, from_expression, from_limits
from ledgerkit._sweep.engine import Options, execute
from ledgerkit._sweep.frames import Frames
from ledgerkit._sweep.plan import Plan
from ledgerkit._sweep.prepared import Index, Tables
from ledgerkit._sweep.prices import check_one_source
from ledgerkit._sweep.reducers import Best, Collect, Count, Extent, Histogram, Pareto
from ledgerkit._sweep.task import Condition, Prices, Reducer, Task
from ledgerkit.errors import SweepError

if TYPE_CHECKING:
    import altair as alt

__all__ = ["Sweep"]

_CHART_OPTIONS = {"color", "facet", "language", "theme", "max_points", "log"}
MEMORY_BYTES = 2_000_000_000
"""What ``collect`` may fill."""


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """Points to be priced; made by ``lk.sweep``. Nothing runs before a result is asked for.

    ``where`` and ``select`` return new sweeps; ``collect``, ``pareto``, ``best``, ``top``,
    ``histogram`` and ``sink_parquet`` run.
    """

    plan: Plan
    tables: Tables
    _given: tuple[str, ...]
    options: Options
    prices: Prices
    conditions: tuple[Condition, ...] = ()
    _columns: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        return f"Sweep({self.points:,} points: {', '.join(self._given)})"

    # what there is -------------------------------------------------------------------------

    @property
    def points(self) -> int:
        """Points of all axes, those that will be dropped included."""
        return self.plan.points

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the result: the given fields and the selected outputs."""
        return self._columns or (*self._given, *DEFAULT_COLUMNS)

    @property
    def dropped(self) -> pl.DataFrame:
        """Points that cannot be built or served, by reason: ``reason, points``.

        Points that ``where`` excludes are not counted.
        """
        dropped = self._execute(Count(), conditions=())
        rows = sorted(dropped.items(), key=lambda item: (-item[1], item[0]))
        return pl.DataFrame(
            [{"reason": reason, "points": points} for reason, points in rows if points],
            schema={"reason": pl.String, "points": pl.Int64},
        )

    @staticmethod
    def outputs() -> pl.DataFrame:
        """All columns that a sweep can compute: ``column, unit, meaning, better``."""
        return pl.DataFrame(
            [{"column": c.name, "unit": c.unit, "meaning": c.meaning, "better": c.better}
             for c in COLUMNS.values()]
        )  # fmt: skip

    # lazy ----------------------------------------------------------------------------------

    def where(self, *conditions: pl.Expr) -> Sweep:
        """Keep points for which all expressions hold.

        Parameters
        ----------
        *conditions : pl.Expr
            Over any field or output, each point judged on its own.

        Raises
        ------
        SweepError
            Unknown columns, or an expression over several rows.
        """
        frames = Frames(self.plan)
        checked = tuple(from_expression(one, "where", frames) for one in conditions)
        return replace(self, conditions=(*self.conditions, *checked))

    def select(self, *names: str) -> Sweep:
        """Choose the columns of the result, see ``outputs``.

        Raises
        ------
        SweepError
            A name is unknown or given twice.
        """
        if not names:
            raise SweepError("select needs at least one column", allowed="one column or more")
        return replace(self, _columns=check_names(names, "select"))

    # results -------------------------------------------------------------------------------

    def collect(self, *, memory_bytes: int = MEMORY_BYTES) -> pl.DataFrame:
        """All points, one row each.

        Parameters
        ----------
        memory_bytes : int
            Refuse when the frame could be larger.

        Returns
        -------
        polars.DataFrame
            Rows by model, hardware, deployment fields, concurrency, prompt, cached and output
            tokens, the last changing fastest; values as given.

        Raises
        ------
        SweepError
            Too many points for the memory.
        """
        if not _whole(memory_bytes, 1, 1 << 62):
            raise SweepError(
                "memory_bytes must be a whole number above 0",
                given=memory_bytes,
                allowed="1 or more",
            )
        size = self.points * sum(_bytes(name) for name in self.columns)
        if size > memory_bytes:
            raise SweepError(
                f"{self.points:,} points of {len(self.columns)} columns need {size / 1e9:,.1f} GB",
                given=f"memory_bytes={memory_bytes:,}",
                allowed="a result that fits into memory_bytes",
                fix="reduce them as they are computed: .pareto(), .best(), .top() or .histogram(); "
                "write them with .sink_parquet(); or narrow them with .select()",
            )
        reducer = Collect(self.columns)
        task = self.task(reducer)
        execute(task, self.tables, self.options, partial=lambda: reducer.result(task.frames))
        return reducer.result(task.frames)

    def pareto(self, *objectives: str, sense: Mapping[str, str] | None = None) -> pl.DataFrame:
        """Points that no other point beats in all objectives.

        Parameters
        ----------
        *objectives : str
            Numeric columns.
        sense : mapping, optional
            Column to ``"low"`` or ``"high"``, where the usual direction is not wanted.

        Returns
        -------
        polars.DataFrame
            By the first objective. Of equal points the first is kept.

        Raises
        ------
        SweepError
            Fewer than two objectives, or prices of more than one source.
        """
        check_names(objectives, "pareto")
        if len(objectives) < 2:
            raise SweepError(
                "pareto needs at least two objectives",
                given=objectives,
                allowed="two columns or more",
                fix="for one, use .best() or .top()",
            )
        _check_sense(sense, objectives)
        check_one_source(self.plan, self.prices, objectives)
        reducer = Pareto([direction(name, sense) for name in objectives])
        return self._rows(reducer, reducer.numbers, objectives)

    def best(
        self, objective: str, *, by: str | Sequence[str] = (), subject_to: Any = None,
        sense: Literal["low", "high"] | None = None,
    ) -> pl.DataFrame:  # fmt: skip
        """Best point of each group.

        Parameters
        ----------
        objective : str
            Numeric column.
        by : str or sequence of str
            Fields that make the groups; none: one point of all.
        subject_to : dict or pl.Expr, optional
            A limit by column (at most, where less is better, else at least; or categories), such
            as ``{"tpot_s": 0.05, "fits": "yes"}``, or any expression.
        sense : {"low", "high"}, optional
            Which side is good, where the usual one is not wanted.

        Returns
        -------
        polars.DataFrame
            One row for each group that has a point, groups in the order of the sweep.
        """
        return self.top(1, objective, by=by, subject_to=subject_to, sense=sense)

    def top(
        self, k: int, objective: str, *, by: str | Sequence[str] = (), subject_to: Any = None,
        sense: Literal["low", "high"] | None = None,
    ) -> pl.DataFrame:  # fmt: skip
        """Best ``k`` points of each group, best first; options as in ``best``."""
        if not _whole(k, 1, 100_000):
            raise SweepError("top needs a whole number of points", given=k, allowed="1 to 100,000")
        groups = (by,) if isinstance(by, str) else tuple(by)
        check_names((objective,), "objective")
        check_names(groups, "by")
        outputs = [name for name in groups if name not in FIELDS]
        if outputs:
            raise SweepError("by= takes fields of a point", given=", ".join(outputs),
                             allowed=", ".join(FIELDS))  # fmt: skip
        check_one_source(self.plan, self.prices, (objective,))
        reducer = Best(direction(objective, {objective: sense} if sense else None), groups, k)
        limits = from_limits(subject_to, Frames(self.plan))
        return self._rows(reducer, reducer.numbers, (objective, *groups), limits)

    def histogram(
        self, column: str, *, bins: int = 40, edges: Sequence[float] | None = None,
        log: bool = False,
    ) -> pl.DataFrame:  # fmt: skip
        """Count points by the value of a column.

        Parameters
        ----------
        column : str
            Numeric column.
        bins : int
            Between the least and the largest value, which a run of its own finds.
        edges : sequence of float, optional
            Rising edges, instead of ``bins``.
        log : bool
            Bins of equal ratio.

        Returns
        -------
        polars.DataFrame
            ``low, high, points``; values outside of ``edges`` are in an open first or last row.
        """
        check_names((column,), "histogram")
        direction(column, {column: "low"})
        if edges is None:
            if not _whole(bins, 1, 100_000):
                raise SweepError(
                    "histogram needs a whole number of bins", given=bins, allowed="1 or more"
                )
            extent = Extent(column)
            self._execute(extent)
            limits = self._limits(extent, log=log)
            space = np.geomspace if log else np.linspace
            cuts = np.asarray(space(*limits, bins + 1), dtype=np.float64)
            cuts[0], cuts[-1] = limits
        else:
            try:
                cuts = np.asarray(edges, dtype=np.float64)
            except (TypeError, ValueError):
                cuts = np.empty(0)
            if cuts.ndim != 1 or len(cuts) < 2 or not (np.diff(cuts) > 0).all():
                raise SweepError(
                    "edges must be numbers that rise, at least two",
                    given=edges,
                    allowed="two rising numbers or more",
                )
        reducer = Histogram(column, cuts)
        self._execute(reducer)
        low, high = np.r_[-np.inf, cuts], np.r_[cuts, np.inf]
        frame = pl.DataFrame({"low": low, "high": high, "points": reducer.counts[:-1]})
        inner = pl.col("low").is_finite() & pl.col("high").is_finite()
        return frame.filter(inner | (pl.col("points") > 0))

    @staticmethod
    def _limits(extent: Extent, *, log: bool) -> tuple[float, float]:
        low, high = extent.low, extent.high
        if low > high:
            raise SweepError(
                f"no point has a value of {extent.column}", allowed="columns with values"
            )
        if log and low <= 0:
            raise SweepError(
                "a logarithmic histogram needs values above 0", given=low, allowed="values above 0"
            )
        if low == high:
            return low, float(np.nextafter(high, np.inf))
        return low, high

    def sink_parquet(self, path: str | Path) -> Path:
        """Write all points to a Parquet file, in bounded memory.

        An interrupted run continues where it stopped when it is called again, and yields the same
        file, byte by byte.

        Parameters
        ----------
        path : str or Path
            A file (``.parquet``), or a directory that becomes a dataset of parts.

        Returns
        -------
        Path

        Raises
        ------
        SweepError
            The place cannot be written, or holds parts of another sweep.
        """
        from ledgerkit._sweep.sink import sink

        return sink(self, _destination(path))

    def chart(self, x: str, y: str, **options: Any) -> alt.TopLevelMixin:
        """Draw the points over two columns, with their Pareto front.

        Parameters
        ----------
        x, y : str
            Numeric columns.
        **options : object
            ``color``, ``facet``, ``language``, ``theme``, ``max_points``, ``log``: see
            ``ledgerkit.charts.sweep.draw_points``.
        """
        from ledgerkit import _plot  # the one allowed upward call

        unknown = sorted(options.keys() - _CHART_OPTIONS)
        if unknown:
            raise SweepError("the chart of a sweep has no such option", given=", ".join(unknown),
                             allowed=", ".join(sorted(_CHART_OPTIONS)))  # fmt: skip
        if not _whole(options.get("max_points", 1), 1, 1 << 62):
            raise SweepError("max_points must be a whole number above 0",
                             given=options["max_points"], allowed="1 or more")  # fmt: skip
        chart: alt.TopLevelMixin = _plot.draw("sweep", "points", self, x=x, y=y, **options)
        return chart

    # running -------------------------------------------------------------------------------

    def task(
        self, reducer: Reducer[Any], conditions: tuple[Condition, ...] | None = None
    ) -> Task[Any]:
        chosen = self.conditions if conditions is None else conditions
        return Task(self.plan, chosen, self.prices, reducer)

    def _execute(
        self, reducer: Reducer[Any], conditions: tuple[Condition, ...] | None = None
    ) -> Counter[str]:
        return execute(self.task(reducer, conditions), self.tables, self.options)

    def _rows(
        self, reducer: Pareto | Best, numbers: Any, wanted: Sequence[str],
        limits: tuple[Condition, ...] = (),
    ) -> pl.DataFrame:  # fmt: skip
        names = self._columns or tuple(dict.fromkeys((*self.columns, *wanted)))
        task = self.task(reducer, (*self.conditions, *limits))

        def result() -> pl.DataFrame:
            found: Index = numbers()
            return task.rows(found, names, self.tables)

        execute(task, self.tables, self.options, partial=result)
        if reducer.missing:
            warnings.warn(
                f"{reducer.missing:,} points have no value of {', '.join(reducer.needs)} and were "
                "left out",
                stacklevel=3,
            )
        return result()


def _check_sense(sense: Any, objectives: Sequence[str]) -> None:
    if sense is not None and (not isinstance(sense, Mapping) or sense.keys() - set(objectives)):
        raise SweepError("sense= says 'low' or 'high' by objective", given=sense,
                         allowed=", ".join(objectives))  # fmt: skip


def _destination(path: Any) -> Path:
    if not isinstance(path, str | Path) or not str(path):
        raise SweepError("the destination is named by its path", given=path,
                         allowed="a file that ends in .parquet, or a directory")  # fmt: skip
    return Path(path)


def _whole(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _bytes(name: str) -> int:
    """Size of one value of a column, about."""
    if name in COLUMNS:
        return COLUMNS[name].bytes_per_point
    return 8 if name in ("concurrency", "prompt_tokens", "cached_tokens", "output_tokens") else 4
