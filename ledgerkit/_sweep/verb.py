"""``lk.sweep``: from axes or a frame to a sweep."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from ledgerkit._sweep.axes import Axes, ZippedAxes
from ledgerkit._sweep.engine import Options
from ledgerkit._sweep.lazy import Sweep
from ledgerkit._sweep.plan import GridPlan, Plan
from ledgerkit._sweep.points import FramePlan
from ledgerkit._sweep.prepared import Tables
from ledgerkit._sweep.prices import checked_prices
from ledgerkit._sweep.run import OnProgress, default_threads
from ledgerkit.errors import SweepError

if TYPE_CHECKING:
    from ledgerkit._calibration import Calibration

__all__ = ["sweep"]

_MOST_THREADS = 1024


def sweep(
    *points: ZippedAxes | pl.DataFrame | pl.LazyFrame,
    prices: Mapping[str, float] | None = None,
    price_source: str | None = None,
    run_on: Literal["threads", "dask"] = "threads",
    client: Any = None,
    threads: int | None = None,
    progress: bool | OnProgress = True,
    calibration: Calibration | None = None,
    **axes: Any,
) -> Sweep:
    """Price many deployments: all combinations of values, or the rows of a frame.

    Every column has the same value, bit for bit, as ``lk.ledger`` has at that point. Sequences
    beyond ``max_concurrency`` are priced as if all ran: an engine lets them wait.

    Parameters
    ----------
    *points : ZippedAxes or polars frame
        Fields that change together (``lk.zip_axes``); or one frame, whose columns are fields.
    prices : mapping, optional
        USD per hour of one device by slug; replaces the prices of the catalogue.
    price_source : str, optional
        Use only prices of this source; see ``usd_per_hour_source`` in ``lk.hardware()``.
    run_on : {"threads", "dask"}
    client : distributed.Client
        Where ``run_on="dask"`` runs.
    threads : int, optional
        Default: one for each processor.
    progress : bool or callable
        Show progress of long runs; or call with a ``Progress``, where ``False`` as the answer
        cancels.
    calibration : Calibration, optional
        Constants of the user's own server, see ``lk.calibrate``; for all points, with a warning
        where they were measured on another model or device.
    **axes : value or sequence
        Fields of ``Deployment`` and ``Workload``, ``model`` and ``hardware``; a value, list, tuple,
        range, array, Series or ``lk.geomspace``.

    Returns
    -------
    Sweep

    Raises
    ------
    SweepError
        Unknown, empty, missing or doubled axes. Combinations that cannot be built are no error:
        see ``Sweep.dropped``.

    Examples
    --------
    >>> import ledgerkit as lk
    >>> found = lk.sweep(
    ...     model="llama-3.1-8b",
    ...     hardware=["h100-sxm-80gb", "h200-sxm-141gb"],
    ...     prompt_tokens=8192,
    ...     output_tokens=256,
    ...     concurrency=lk.geomspace(1, 64, 7),
    ... ).best("tokens_per_s", by="hardware", subject_to={"tpot_s": 0.02, "fits": "yes"})
    >>> found["hardware"].to_list()
    ['h100-sxm-80gb', 'h200-sxm-141gb']
    """
    plan, given = _planned(points, axes, calibration)
    _check_calibration(plan)
    if run_on not in ("threads", "dask"):
        raise SweepError("unknown run_on", given=run_on, allowed="threads, dask",
                         fix="use run_on='threads'")  # fmt: skip
    if run_on == "dask" and client is None:
        raise SweepError("run_on='dask' needs the client of a cluster", given=client,
                         allowed="a distributed.Client",
                         fix="pass client=distributed.Client(...)")  # fmt: skip
    if threads is not None and (type(threads) is not int or not 1 <= threads <= _MOST_THREADS):
        raise SweepError("threads must be a whole number, at least 1", given=threads,
                         allowed=f"1 to {_MOST_THREADS}, or None",
                         fix="leave threads out")  # fmt: skip
    if not isinstance(progress, bool) and not callable(progress):
        raise SweepError("progress is True, False or a function", given=progress,
                         allowed="True, False, a function", fix="leave progress out")  # fmt: skip
    options = Options(run_on, client, threads or default_threads(), progress)
    return Sweep(
        plan, Tables(plan), given, options,
        checked_prices(plan, prices, price_source),
    )  # fmt: skip


def _check_calibration(plan: Plan) -> None:
    from ledgerkit._calibration import Calibration

    calibration = plan.calibration
    if calibration is None:
        return
    if not isinstance(calibration, Calibration):
        raise SweepError("calibration must be one that lk.calibrate made", given=calibration,
                         allowed="lk.Calibration or None",
                         fix="pass lk.calibrate(...)")  # fmt: skip
    others = [
        name
        for field, own in (("model", calibration.model), ("hardware", calibration.hardware))
        for name in plan.names(field)
        if name != own
    ]
    if others:
        warnings.warn(
            f"calibrated on {calibration.model} and {calibration.hardware}; the same constants "
            f"price {', '.join(others)}",
            stacklevel=3,
        )


def _planned(
    points: Sequence[Any], axes: Mapping[str, Any], calibration: Calibration | None
) -> tuple[Plan, tuple[str, ...]]:
    frames = [one for one in points if isinstance(one, pl.DataFrame | pl.LazyFrame)]
    others = [one for one in points if not isinstance(one, pl.DataFrame | pl.LazyFrame)]
    wrong = [one for one in others if not isinstance(one, ZippedAxes)]
    if wrong:
        raise SweepError("a sweep takes zip_axes(...) or a frame, then axes by name",
                         given=wrong[0], allowed="lk.zip_axes(...), one polars frame",
                         fix="give axes by name: model=..., hardware=...")  # fmt: skip
    if not frames:
        grid = Axes.parse(others, axes)
        return GridPlan(grid, calibration), grid.given
    if len(frames) > 1 or others or axes:
        raise SweepError("a frame holds all fields of its points",
                         given=", ".join(axes) or "more frames or zipped axes",
                         allowed="one frame and nothing else",
                         fix="add the fields to the frame: frame.with_columns(...)")  # fmt: skip
    frame = frames[0].collect() if isinstance(frames[0], pl.LazyFrame) else frames[0]
    plan = FramePlan(frame, calibration)
    return plan, plan.given
