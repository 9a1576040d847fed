"""``lk.steady_state``: one deployment under load, in closed form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit._ledger import check_workload
from ledgerkit._refs import as_calibration, as_workload, resolve
from ledgerkit._steady.options import Serving
from ledgerkit._steady.result import SteadyState
from ledgerkit._steady.streams import Pools, check_pools
from ledgerkit.costs.table import build
from ledgerkit.errors import WorkloadError
from ledgerkit.spec._base import finite_number
from ledgerkit.spec.deployment import Deployment, Workload

if TYPE_CHECKING:
    from ledgerkit._calibration import Calibration
    from ledgerkit.spec.hardware import Hardware
    from ledgerkit.spec.model import Model

__all__ = ["SteadyState", "steady_state"]


def steady_state(
    model: Model | str | dict[str, Any],
    hardware: Hardware | str | dict[str, Any],
    deployment: Deployment | dict[str, Any] | None = None,
    workload: Workload | dict[str, Any] | None = None,
    *,
    prefill: Deployment | dict[str, Any] | None = None,
    prefill_workers: int | None = None,
    decode_workers: int | None = None,
    prefix_hit_rate: float | None = None,
    calibration: Calibration | None = None,
    **serving: Any,
) -> SteadyState:
    """Answer how a deployment does under a steady load, in closed form.

    The same cost table as ``lk.ledger``; what the load adds books to ``scheduling.queue``.

    Parameters
    ----------
    model, hardware, deployment, workload
        As for ``lk.ledger``. In a closed loop ``workload.concurrency`` is the number of clients
        over all workers; with Poisson arrivals it is not used. Lengths are means.
    prefill : Deployment or dict, optional
        Layout of the prefill workers of a disaggregated point; default: as ``deployment``, which
        is then that of the decode workers.
    prefill_workers, decode_workers : int, optional
        Numbers of workers; stated together, they make the point disaggregated.
    prefix_hit_rate : float, optional
        Share of the prompt tokens that the prefix cache holds, instead of
        ``workload.cached_tokens``.
    calibration : Calibration, optional
        Constants of the user's own server, see ``lk.calibrate``.
    **serving
        ``arrival`` ("closed_loop" or "poisson"), ``arrival_rate_per_s``, ``mixed_prefill``,
        ``tokens_per_step`` and ``draft_tokens`` (speculation), ``length_variation``,
        ``wait_share``, ``request_path_s``, ``seats``. What is not given follows from the engine
        profile; ``SteadyState.inputs`` states every value.

    Returns
    -------
    SteadyState

    Raises
    ------
    LedgerError
        As ``lk.ledger``; a disaggregated point without worker counts; a Poisson stream beyond
        capacity; weights that leave no room for a sequence. A closed loop beyond the seats is not
        an error: the queue is in ``ttft_s``, and ``notes`` say so.

    Examples
    --------
    >>> import ledgerkit as lk
    >>> point = lk.Workload(prompt_tokens=8192, output_tokens=1024, concurrency=32)
    >>> loaded = lk.steady_state(
    ...     "deepseek-v3", "h200-sxm-141gb", lk.Deployment(tp=8, engine="sglang"), point
    ... )
    >>> loaded.tpot_s_low < loaded.tpot_s < loaded.tpot_s_high
    True
    >>> loaded.share()["scheduling"] > 0.3
    True
    """
    model, hardware, deployment, profile, efficiencies = resolve(model, hardware, deployment)
    calibration = as_calibration(calibration)
    workload = _with_hits(as_workload(workload, "a steady state"), prefix_hit_rate)
    check_workload(model, deployment, workload.model_copy(update={"concurrency": 1}))
    how = Serving(**serving)
    pools = None
    if check_pools(prefill, prefill_workers, decode_workers):
        _, _, layout, front, _ = resolve(model, hardware, prefill or deployment)
        pools = Pools(
            build(model, layout, hardware, efficiencies, front),
            prefill_workers or 0, decode_workers or 0,
        )  # fmt: skip
    table = build(model, deployment, hardware, efficiencies, profile)
    return SteadyState(table, workload, how, pools=pools, calibration=calibration)


def _with_hits(workload: Workload, rate: float | None) -> Workload:
    if rate is None:
        return workload
    if workload.cached_tokens:
        raise WorkloadError("prefix_hit_rate and cached_tokens say the same thing twice",
                            given=rate, allowed="one of them",
                            fix="leave prefix_hit_rate out")  # fmt: skip
    rate = finite_number(WorkloadError, "prefix_hit_rate", rate, most=1.0)
    cached = min(workload.prompt_tokens - 1, round(rate * workload.prompt_tokens))
    return workload.model_copy(update={"cached_tokens": cached})
