"""The result of ``lk.simulate``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from ledgerkit._simulate import books, intervals
from ledgerkit.errors import WorkloadError
from ledgerkit.kernels import serving
from ledgerkit.kernels.batch import PER_SECOND
from ledgerkit.spec._base import finite_number
from ledgerkit.spec.axes import LEDGERS

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

    from ledgerkit._simulate.arrivals import Arrivals
    from ledgerkit._simulate.prepare import Arrays, CachePlan
    from ledgerkit._simulate.scheduler import Scheduler
    from ledgerkit.costs.table import CostTable

__all__ = ["Simulation"]

Floats = npt.NDArray[np.float64]
Metric = Literal["ttft_s", "tpot_s", "itl_s", "e2e_s", "wait_s"]
METRICS: tuple[Metric, ...] = ("ttft_s", "tpot_s", "itl_s", "e2e_s", "wait_s")
QUANTILES = (0.5, 0.9, 0.99)


class Simulation:
    """What became of every request, and of every second of the devices.

    Made by ``lk.simulate``; nothing in it changes afterwards. Latencies are of the measured
    requests: those after the warm-up that were answered.
    """

    def __init__(
        self, table: CostTable, how: Scheduler, plan: CachePlan, arrivals: Arrivals,
        arrays: Arrays, *, capacity_per_s: float | None, notes: tuple[str, ...],
    ) -> None:  # fmt: skip
        self.table, self._arrays, self.plan = table, arrays, plan
        self.model, self.hardware, self.deployment = table.model, table.hardware, table.deployment
        self.scheduler = how
        """Every setting, with the defaults of the engine profile filled in."""
        self.arrivals = arrivals
        self.capacity_per_s = capacity_per_s
        """Requests per second that the deployment can answer for ever; None = not asked for."""
        counters, rejected = arrays.counters, int(arrays.counters[serving.N_REJECTED])
        self.iterations = int(counters[serving.N_STEPS])
        """Engine steps of all replicas."""
        self.rejected = rejected
        """Requests that can never be served: too long for the model, the budget or the cache."""
        self.preemptions = int(counters[serving.N_PREEMPTED])
        self.recomputed_tokens = int(counters[serving.N_AGAIN])
        told = list(notes)
        if rejected:
            told.append(f"{rejected:,} requests were rejected: longer than the model, the step "
                        "budget (without chunked prefill) or the whole cache allow")  # fmt: skip
        self.notes: tuple[str, ...] = tuple(told)

    def __repr__(self) -> str:
        if not self._answered.any():
            return f"Simulation({self.model.slug}: no request answered, {self.rejected} rejected)"
        return (
            f"Simulation({self.model.slug} on {self.scheduler.replicas} x "
            f"{self.deployment.devices} x {self.hardware.slug}, {self.arrivals.label}: "
            f"{self.requests_per_s:.3g} requests/s, ttft p50 "
            f"{self.percentile('ttft_s', 0.5) * 1e3:.0f} ms, tpot p50 "
            f"{self.percentile('tpot_s', 0.5) * 1e3:.2f} ms; {self.preemptions} preemptions, "
            f"cache hits {self.hit_rate:.0%})"
        )

    @property
    def warm_up(self) -> float:
        """Share of the requests, the first ones, that latencies leave out."""
        return int(self._arrays.settings[serving.S_WARM]) / self.arrivals.requests

    @property
    def answered(self) -> int:
        """Requests that were answered."""
        return int(self._answered.sum())

    # requests --------------------------------------------------------------------------------

    def _fate(self, column: int) -> npt.NDArray[np.int64]:
        found: npt.NDArray[np.int64] = self._arrays.fate[:, column]
        return found

    @cached_property
    def _answered(self) -> npt.NDArray[np.bool_]:
        answered: npt.NDArray[np.bool_] = self._fate(serving.F_FINISHED) >= 0
        return answered

    @cached_property
    def _measured(self) -> npt.NDArray[np.bool_]:
        warm = int(self._arrays.settings[serving.S_WARM])
        measured: npt.NDArray[np.bool_] = self._answered & (np.arange(len(self._answered)) >= warm)
        return measured

    def _some_measured(self) -> npt.NDArray[np.bool_]:
        """Refuse to state what no request has."""
        if not self._measured.any():
            raise WorkloadError(
                "no measured request was answered", given=f"{self.rejected} rejected",
                allowed="runs that answer at least one request after the warm-up",
                fix="ask for more requests, shorter ones, or a smaller warm_up",
            )  # fmt: skip
        return self._measured

    @cached_property
    def _times(self) -> dict[str, Floats]:
        """Seconds of every request; NaN where it was not answered."""
        arrived, started, first, finished = (
            np.where(self._answered, self._fate(i), 0) / PER_SECOND
            for i in (serving.F_ARRIVED, serving.F_STARTED, serving.F_FIRST, serving.F_FINISHED)
        )
        path = self.scheduler.request_path_s or 0.0
        tokens = self.arrivals.output_tokens
        spread = (finished - first) / np.maximum(tokens - 1, 1)
        times = {
            "ttft_s": first - arrived + path,
            "tpot_s": np.where(tokens > 1, spread, np.nan),
            "e2e_s": finished - arrived + path,
            "wait_s": started - arrived,
        }
        return {name: np.where(self._answered, t, np.nan) for name, t in times.items()}

    @cached_property
    def requests(self) -> pl.DataFrame:
        """One row for each request, in the order of ``arrivals``; seconds, null = not answered."""
        import polars as pl  # heavy

        frame = pl.DataFrame({
            "request": np.arange(self.arrivals.requests),
            "arrival_s": self._fate(serving.F_ARRIVED) / PER_SECOND,
            "replica": self._fate(serving.F_REPLICA),
            "prompt_tokens": self.arrivals.prompt_tokens,
            "output_tokens": self.arrivals.output_tokens,
            "cached_tokens": self._fate(serving.F_HIT),
            "preemptions": self._fate(serving.F_PREEMPTED),
            "is_answered": self._answered,
            "is_measured": self._measured,
            **self._times,
        })  # fmt: skip
        return frame.with_columns(pl.col(*self._times).fill_nan(None))

    def _sample(self, metric: str) -> Floats:
        if metric not in tuple(self._times):
            raise WorkloadError("unknown latency", given=metric, allowed=", ".join(METRICS),
                                fix="use one of these")  # fmt: skip
        values = self._times[metric][self._some_measured()]
        return values[np.isfinite(values)]

    def percentile(self, metric: Metric, share: float) -> float:
        """Value that ``share`` (0 to 1) of the measured requests, or token gaps, stay below.

        ``itl_s`` is read from bins 1.1 % wide.

        Raises
        ------
        WorkloadError
            No such latency, or the share is no share.
        """
        share = finite_number(WorkloadError, "share", share, most=1.0)
        if metric == "itl_s":
            self._some_measured()
            return intervals.histogram_quantile(self._arrays.gaps, share)
        values = self._sample(metric)
        return float(np.quantile(values, share)) if len(values) else math.nan

    @cached_property
    def latency(self) -> pl.DataFrame:
        """Mean, p50, p90 and p99 of each latency, with 95 % intervals.

        Columns: ``metric``, ``statistic``, ``value``, ``low``, ``high`` in seconds, and ``count``.
        Intervals are those of about twenty batches of consecutive requests, which queue together
        and are not independent; null for gaps between tokens and for fewer than 40 requests.
        """
        import polars as pl  # heavy

        rows: list[tuple[Any, ...]] = []
        for metric in METRICS:
            if metric == "itl_s":
                gaps = self._arrays.gaps
                count = int(gaps.sum())
                rows.append((metric, "mean", intervals.histogram_mean(gaps), None, None, count))
                rows += [
                    (metric, f"p{q * 100:.0f}", self.percentile(metric, q), None, None, count)
                    for q in QUANTILES
                ]
                continue
            values = self._sample(metric)
            for name, of in intervals.statistics(QUANTILES):
                low, high = intervals.batch_interval(values, of)
                value = float(of(values)) if len(values) else None
                rows.append((metric, name, value, low, high, len(values)))
        return pl.DataFrame(
            rows, schema={"metric": pl.String, "statistic": pl.String, "value": pl.Float64,
                          "low": pl.Float64, "high": pl.Float64, "count": pl.Int64},
            orient="row",
        )  # fmt: skip

    @property
    def ttft_s(self) -> float:
        """Mean seconds to the first token."""
        return float(np.mean(self._sample("ttft_s")))

    @property
    def tpot_s(self) -> float:
        """Mean over requests of the seconds between the tokens of an answer; NaN for one token."""
        values = self._sample("tpot_s")
        return float(np.mean(values)) if len(values) else math.nan

    @property
    def e2e_s(self) -> float:
        """Mean seconds of a whole answer."""
        return float(np.mean(self._sample("e2e_s")))

    # rates -----------------------------------------------------------------------------------

    @cached_property
    def _window(self) -> tuple[int, float]:
        """(answers, seconds) between the warm-up and the moment when a loop runs dry."""
        ends = np.sort(self._fate(serving.F_FINISHED)[self._answered]) / PER_SECOND
        # a client has its answer the request path later: seen from there, too, Little's law holds
        ends = ends + (self.scheduler.request_path_s or 0.0)
        if not len(ends):
            return 0, math.inf  # every request was rejected
        warm = int(self._arrays.settings[serving.S_WARM])
        last = len(ends) - (self.arrivals.concurrency or 0)
        if self.arrivals.chained and last - warm > 1:
            return last - 1 - warm, float(ends[last - 1] - ends[warm])
        return len(ends), float(ends[-1] - self._fate(serving.F_ARRIVED).min() / PER_SECOND)

    @property
    def requests_per_s(self) -> float:
        """Answers per second of all replicas."""
        count, seconds = self._window
        return count / seconds if seconds > 0 else math.inf

    @property
    def tokens_per_s(self) -> float:
        """Output tokens per second of all replicas."""
        if not self.answered:
            return 0.0
        return self.requests_per_s * float(self.arrivals.output_tokens[self._answered].mean())

    def goodput(
        self, *, ttft_s: float = math.inf, tpot_s: float = math.inf, e2e_s: float = math.inf
    ) -> dict[str, float]:
        """Answers per second that keep every limit, and their share of the measured requests.

        A rejected request keeps none.
        """
        limits = {"ttft_s": ttft_s, "tpot_s": tpot_s, "e2e_s": e2e_s}
        for metric, limit in limits.items():
            finite_number(WorkloadError, f"{metric} of a goal", limit, most=math.inf, above=True)
        if not self.answered:
            return {"share": 0.0, "requests_per_s": 0.0}
        measured = self._some_measured()
        kept = np.ones(int(measured.sum()), bool)
        for metric, limit in limits.items():
            values = self._times[metric][measured]
            kept &= ~(values > limit)
        share = float(kept.mean()) * float(self._answered.mean())
        return {"share": share, "requests_per_s": float(kept.mean()) * self.requests_per_s}

    # cache -----------------------------------------------------------------------------------

    @property
    def hit_rate(self) -> float:
        """Share of the prompt tokens that were found in the prefix cache."""
        asked = int(self._arrays.counters[serving.N_ASKED])
        return int(self._arrays.counters[serving.N_HIT]) / asked if asked else 0.0

    def _mean(self, area: int) -> float:
        """Mean over wall time of a sum over all replicas."""
        return float(self._arrays.areas[:, area].sum()) / max(1, self._wall)

    @property
    def summary(self) -> dict[str, float]:
        """Single numbers of the run: load, queue, cache."""
        plan, replicas = self.plan, self.scheduler.replicas
        held, stored = self._mean(serving.A_HELD), self._mean(serving.A_STORED)
        capacity = plan.blocks * plan.block_tokens * replicas
        peak = self._arrays.replicas[:, serving.R_PEAK].max() / plan.blocks
        return {
            "wall_s": self.wall_s, "iterations": self.iterations,
            "requests_per_s": self.requests_per_s, "tokens_per_s": self.tokens_per_s,
            "running": self._mean(serving.A_RUNNING), "waiting": self._mean(serving.A_WAITING),
            "cache_occupancy": held / capacity, "cache_occupancy_peak": float(peak),
            "cache_stored_share": stored / held if held else 0.0, "hit_rate": self.hit_rate,
            "preemptions": self.preemptions, "recomputed_tokens": self.recomputed_tokens,
            "rejected": self.rejected,
        }  # fmt: skip

    @cached_property
    def timeline(self) -> pl.DataFrame:
        """State at steps, evenly thinned to at most 4,096 rows.

        Columns: ``time_s`` (end of the step), ``replica``, ``running``, ``waiting``,
        ``cache_occupancy`` (0 to 1), ``tokens`` (of this step).
        """
        import polars as pl  # heavy

        rows = self._arrays.timeline[: int(self._arrays.counters[serving.N_ROWS])]
        return pl.DataFrame({
            "time_s": rows[:, 0] / PER_SECOND, "replica": rows[:, 1], "running": rows[:, 2],
            "waiting": rows[:, 3], "cache_occupancy": rows[:, 4] / self.plan.blocks,
            "tokens": rows[:, 5],
        })  # fmt: skip

    # books -----------------------------------------------------------------------------------

    @property
    def _wall(self) -> int:
        """Picoseconds from the start to the end of the last replica."""
        return int(self._arrays.replicas[:, serving.R_CLOCK].max())

    @property
    def wall_s(self) -> float:
        """Seconds from the start of the run to its last token."""
        return self._wall / PER_SECOND

    @cached_property
    def entries(self) -> pl.DataFrame:
        """The scheduling ledger: where the time of all replicas went.

        Columns: ``phase`` (null for what belongs to none), ``ledger``, ``account``, ``op``,
        ``time_ps`` (whole picoseconds, which sum to wall time times replicas exactly), ``time_s``,
        ``share``.
        """
        return books.entries(self.table, self._arrays, self._wall)

    def by_ledger(self) -> dict[str, float]:
        """Seconds of each ledger."""
        sums = dict(self.entries.group_by("ledger").agg(time="time_ps").rows())
        return {name: float(sum(sums.get(name, []))) / PER_SECOND for name in LEDGERS}

    def share(self, *, idle: bool = False) -> dict[str, float]:
        """Share of each ledger, 0 to 1; without the time in which there was nothing to do.

        Parameters
        ----------
        idle : bool
            True: idle time counts, in ``scheduling``.
        """
        sums = self.by_ledger()
        if not idle:
            waited = int(self.entries.filter(op=books.IDLE)["time_ps"].sum())
            sums["scheduling"] -= waited / PER_SECOND
        whole = math.fsum(sums.values())
        return {name: value / whole if whole else 0.0 for name, value in sums.items()}

    def little(self) -> tuple[float, float]:
        """Check Little's law: mean requests in the system, and arrival rate times mean stay."""
        stays = (self._fate(serving.F_FINISHED) - self._fate(serving.F_ARRIVED))[self._answered]
        return self._mean(serving.A_SYSTEM), math.fsum(stays.tolist()) / max(1, self._wall)

    # the same requests again -----------------------------------------------------------------

    def load_curve(self, rates_per_s: Sequence[float], **goal: float) -> pl.DataFrame:
        """Serve the same requests at other rates.

        Parameters
        ----------
        rates_per_s : sequence of float
        **goal
            Limits as for ``goodput``.

        Returns
        -------
        polars.DataFrame
            One row for each rate: ``rate_per_s``, rates, percentiles, ``goodput_per_s``, shares.

        Raises
        ------
        WorkloadError
            The arrivals are a loop, or a rate is no rate.
        """
        from ledgerkit._simulate import studies

        return studies.load_curve(self, rates_per_s, **goal)

    def ablation(
        self, mechanisms: Mapping[str, Mapping[str, Any]] | None = None, **goal: float
    ) -> pl.DataFrame:
        """Serve the same requests without each mechanism, to see what it is worth.

        Parameters
        ----------
        mechanisms : mapping, optional
            Name to the settings that differ; default: without prefix cache, without pages, without
            chunked prefill, with static batches.
        **goal
            Limits as for ``goodput``.

        Returns
        -------
        polars.DataFrame
            One row for each: ``without``, columns as in ``load_curve``, and ``cost``, the share by
            which the whole run takes longer.
        """
        from ledgerkit._simulate import studies

        return studies.ablation(self, mechanisms, **goal)

    def engines(self, names: Sequence[str], **goal: float) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Serve the same requests with the defaults of other engines.

        Returns
        -------
        (polars.DataFrame, polars.DataFrame)
            One row for each engine, columns as in ``load_curve``; and all scheduling ledgers, with
            a column ``engine``.
        """
        from ledgerkit._simulate import studies

        return studies.engines(self, names, **goal)

    def chart(self, kind: str = "timeline", **options: Any) -> alt.TopLevelMixin:
        """Draw ``timeline``, ``latency`` or ``books``; options of ``lk.charts`` functions."""
        from ledgerkit import _plot  # the one allowed upward call

        return _plot.draw("simulation", kind, self, **options)  # type: ignore[no-any-return]
