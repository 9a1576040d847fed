"""Disaggregated rows, predicted with constants that were fitted to aggregated ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit._accuracy.prepared import Constants, max_seats, serving_of
from ledgerkit._calibration import priced
from ledgerkit._refs import resolve
from ledgerkit._steady.streams import Pools, disaggregated
from ledgerkit.costs.table import CostTable, build
from ledgerkit.errors import DeploymentError

if TYPE_CHECKING:
    from ledgerkit._accuracy.rows import Row
    from ledgerkit._accuracy.setups import Setup
    from ledgerkit.spec.deployment import Deployment

__all__ = ["predict_pools"]


def predict_pools(row: Row, setup: Setup, constants: Constants) -> tuple[float, float]:
    """Predict (TPOT, TTFT) of a disaggregated row, seconds."""
    if setup.prefill is None or row.prefill_workers is None or row.decode_workers is None:
        raise DeploymentError(
            "the row does not say how many workers there were",
            given=row.line,
            allowed="rows with a count of workers",
        )
    host = {
        "host_step_s": constants.host_step_s,
        "host_sequence_s": constants.host_sequence_s,
        "host_prefill_kernel_s": constants.host_prefill_kernel_s,
    }

    def table(deployment: Deployment) -> CostTable:
        model, hardware, layout, profile, efficiencies = resolve(
            setup.model, setup.hardware, deployment
        )
        return priced(build(model, layout, hardware, efficiencies, profile), host)

    decode = table(setup.deployment)
    serving = serving_of(row, constants)
    if not serving.in_step(decode):
        serving = serving.model_copy(update={"wait_share": constants.wait_share})
    pools = Pools(table(setup.prefill), row.prefill_workers, row.decode_workers)
    _, times = disaggregated(
        decode, pools, setup.workload, serving, max_seats(decode, setup), "mid"
    )
    waits = times.wait_prefill_s + times.wait_pool_s
    return times.step_s, serving.path_s() + times.alone_s + waits
