"""``lk.simulate``: an engine under load, iteration by iteration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ledgerkit._refs import as_calibration, resolve
from ledgerkit._simulate import capacity
from ledgerkit._simulate.arrivals import Arrivals
from ledgerkit._simulate.prepare import plan_cache, prepare
from ledgerkit._simulate.result import Simulation
from ledgerkit._simulate.run import OnProgress, run
from ledgerkit._simulate.scheduler import Scheduler
from ledgerkit.costs.table import CostTable, build
from ledgerkit.errors import DeploymentError, WorkloadError
from ledgerkit.spec._base import finite_number

if TYPE_CHECKING:
    import polars as pl

    from ledgerkit._calibration import Calibration
    from ledgerkit.spec.deployment import Deployment
    from ledgerkit.spec.hardware import Hardware
    from ledgerkit.spec.model import Model

__all__ = ["simulate"]

_WARM_UP = 0.1


def simulate(
    model: Model | str | dict[str, Any],
    hardware: Hardware | str | dict[str, Any],
    deployment: Deployment | dict[str, Any] | None = None,
    arrivals: Arrivals | pl.DataFrame | str | Path | None = None,
    *,
    calibration: Calibration | None = None,
    warm_up: float | None = None,
    overload: Literal["refuse", "run"] = "refuse",
    progress: OnProgress | None = None,
    **scheduler: Any,
) -> Simulation:
    """Serve requests with a simulated engine, one iteration after the other.

    Iterations are priced with the cost table of ``lk.ledger``: a prompt alone takes its ``ttft_s``,
    a decode step its ``tpot_s``. Runs with the same arguments give the same result.

    Parameters
    ----------
    model, hardware, deployment
        As for ``lk.ledger``; the deployment is one replica.
    arrivals : Arrivals, polars.DataFrame or path
        ``lk.Arrivals.poisson``, ``.gamma``, ``.closed_loop``, ``.agents``; a frame as for
        ``.from_frame``; the path of a trace as for ``.from_trace``.
    calibration : Calibration, optional
        Constants of the user's own server, see ``lk.calibrate``.
    warm_up : float, optional
        Share of the requests, the first ones, that latencies leave out; default 0.1 for generated
        arrivals, 0 for frames and traces.
    overload : {"refuse", "run"}
        What to do with a generated stream whose rate is above capacity: an error that states the
        capacity, or the run of its finite number of requests. A stream too short to tell the
        capacity is run, and ``notes`` say so.
    progress : callable, optional
        Called with ``requests``, ``total_requests``, ``iterations``, ``elapsed_s`` a few times a
        second; ``False`` cancels the run.
    **scheduler
        Fields of ``Simulation.scheduler``: ``prefix_cache``, ``chunked_prefill``, ``preemption``,
        ``batching``, ``cache_allocation``, ``draft_tokens``, ``acceptance``, ``replicas``,
        ``router``, ... What is not given follows from the engine profile.

    Returns
    -------
    Simulation

    Raises
    ------
    WorkloadError
        Arrivals that make no sense, or a stream beyond capacity.
    LedgerError
        As ``lk.ledger``; a cache without room.
    SimulationCancelledError
        ``progress`` returned False.

    Notes
    -----
    A mixed step reads weights once, and adds the arithmetic of the prompts to the step of the
    decoding sequences; attention ranks and pipeline stages share the sequences evenly; experts are
    routed at random, as everywhere.

    Examples
    --------
    >>> import ledgerkit as lk
    >>> stream = lk.Arrivals.poisson(4.0, requests=400, prompt_tokens=1024, output_tokens=128)
    >>> run = lk.simulate("llama-3.1-8b", "h100-sxm-80gb", arrivals=stream)
    >>> int(run.entries["time_ps"].sum()) == round(run.wall_s * 1e12)
    True
    >>> run.percentile("ttft_s", 0.99) > run.percentile("ttft_s", 0.5)
    True
    """
    model, hardware, deployment, profile, efficiencies = resolve(model, hardware, deployment)
    table = build(model, deployment, hardware, efficiencies, profile)
    notes = list(table.notes)
    if progress is not None and not callable(progress):
        raise WorkloadError("progress is a function, or None", given=progress,
                            allowed="a function of one argument",
                            fix="leave progress out")  # fmt: skip
    calibration = as_calibration(calibration)
    if calibration is not None:
        differs = calibration.differs(table)
        notes += [differs] if differs else []
        table = calibration.price(table)
        path = calibration.value("request_path_s")
        if path is not None:
            scheduler.setdefault("request_path_s", path)
    if overload not in ("refuse", "run"):
        raise WorkloadError("unknown way to treat overload", given=overload, allowed="refuse, run",
                            fix="use overload='run'")  # fmt: skip
    how = Scheduler(**scheduler).filled(table)
    asked = as_arrivals(arrivals)
    return serve(table, how, asked, warm_up=warm_up, overload=overload, progress=progress,
                 notes=notes)  # fmt: skip


def as_arrivals(given: Any) -> Arrivals:
    """Take arrivals, a frame or the path of a trace."""
    if isinstance(given, Arrivals):
        return given
    if isinstance(given, str | Path):
        return Arrivals.from_trace(given)
    if given is None:
        raise WorkloadError("a simulation needs arrivals", given=given,
                            allowed="lk.Arrivals, frame or path",
                            fix="pass lk.Arrivals.poisson(...)")  # fmt: skip
    return Arrivals.from_frame(given)


def serve(
    table: CostTable, how: Scheduler, arrivals: Arrivals, *, warm_up: float | None = None,
    overload: str = "refuse", progress: OnProgress | None = None, notes: list[str] | None = None,
) -> Simulation:  # fmt: skip
    """Run arrivals on a priced table; ``how`` is filled in."""
    if how.preemption == "swap" and table.hardware.pcie_bytes_per_s is None:
        raise DeploymentError(
            f"{table.hardware.slug} has no PCIe rate: nothing can be swapped",
            given="swap",
            allowed="devices with a rate of their host link",
            fix="use preemption='recompute', or describe the device with pcie_bytes_per_s",
        )
    if warm_up is None:
        generated = arrivals.offered_per_s is not None or arrivals.concurrency is not None
        warm_up = _WARM_UP if generated else 0.0
    if finite_number(WorkloadError, "warm_up", warm_up, most=1.0) == 1.0:
        raise WorkloadError("warm_up leaves no request", given=warm_up, allowed="0 up to below 1",
                            fix="use a smaller warm_up")  # fmt: skip
    told = list(notes or [])
    longest = int((arrivals.prompt_tokens + arrivals.output_tokens).max())
    limit = table.deployment.max_model_len or table.model.max_position_embeddings
    plan = plan_cache(table, how, min(longest, limit))
    most = None
    if arrivals.offered_per_s is not None:
        most = capacity.requests_per_s(table, how, plan, arrivals)
        if most is not None and arrivals.offered_per_s > most:
            if overload == "refuse":
                raise capacity.too_much(arrivals.offered_per_s, most)
            told.append(
                f"the stream of {arrivals.offered_per_s:.4g} requests/s is above the capacity of "
                f"about {most:.4g}: waits grow with the length of the run"
            )
        if most is None and overload == "refuse":
            told.append(
                f"a stream of {arrivals.requests:,} request{'s' * (arrivals.requests > 1)} is too "
                "short to tell the capacity: a rate above it is not refused"
            )
    arrays = prepare(table, how, plan, arrivals, int(warm_up * arrivals.requests))
    run(arrays, progress)
    told += _simplified(table, how, plan.block_tokens)
    grew = capacity.backlog(arrivals, arrays) if most is None else None
    told += [grew] if grew else []
    return Simulation(table, how, plan, arrivals, arrays, capacity_per_s=most, notes=tuple(told))


def _simplified(table: CostTable, how: Scheduler, block: int) -> list[str]:
    """What the run leaves out, where it matters."""
    found = []
    if how.block_size is not None and block != how.block_size:
        found.append(f"pages of {how.block_size} tokens are simulated as blocks of {block}")
    if how.prefix_cache and any(h.per_sequence for h in table.holdings):
        found.append(
            f"a recurrent state is found again at whole blocks of {block} tokens; what the states "
            "kept for that take of the cache is not counted"
        )
    if table.profile.expert_offload == ("in_place",):
        found.append("experts in host memory are not simulated: all weights are on the devices")
    if how.draft_tokens:
        found.append("drafts are accepted independently, with one probability")
    return found
