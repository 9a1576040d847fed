"""The same sweep on two worker processes, one of them killed while it works."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ledgerkit as lk
from ledgerkit.errors import SweepCancelledError, SweepError

distributed = pytest.importorskip("distributed")

AXES = {
    "model": ["llama-3.1-8b", "deepseek-v3"], "hardware": "h200-sxm-141gb", "tp": [1, 3, 8],
    "prompt_tokens": range(1, 20_001, 7), "output_tokens": [16, 256],
    "concurrency": range(1, 120),
}  # fmt: skip


@pytest.fixture
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
            silence_logs=50, host="127.0.0.1",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        yield client


def killer(client: Any) -> Any:
    """Progress callback that kills one worker process once some points are done."""
    killed: list[int] = []

    def tell(progress: Any) -> None:
        if progress.points and not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    tell.killed = killed  # type: ignore[attr-defined]
    return tell


@pytest.mark.slow
def test_a_lost_worker_changes_nothing(client: Any, tmp_path: Path) -> None:
    tell = killer(client)
    here = lk.sweep(**AXES, progress=False)
    there = lk.sweep(**AXES, run_on="dask", client=client, progress=tell)
    front = there.pareto("tpot_s", "tokens_per_s_per_device")
    assert tell.killed
    assert front.equals(here.pareto("tpot_s", "tokens_per_s_per_device"))

    fits = pl.col("fits") == "yes"
    names = ("model", "tp", "concurrency", "prompt_tokens", "tpot_s")
    again = killer(client)
    path = (
        lk.sweep(**AXES, run_on="dask", client=client, progress=again)
        .where(fits).select(*names).sink_parquet(tmp_path / "cluster")
    )  # fmt: skip
    assert again.killed
    assert again.killed != tell.killed
    assert pl.read_parquet(path).equals(here.where(fits).select(*names).collect())

    best = lk.sweep(**AXES, run_on="dask", client=client, progress=False)
    limits = {"tpot_s": 0.02, "fits": "yes"}
    assert best.best("tokens_per_s", by="model", subject_to=limits).equals(
        here.best("tokens_per_s", by="model", subject_to=limits)
    )
    with pytest.raises(SweepCancelledError):
        lk.sweep(**AXES, run_on="dask", client=client, progress=lambda _: False).collect()


def test_a_client_that_is_none_is_refused() -> None:
    with pytest.raises(SweepError, match="no client"):
        lk.sweep(**AXES, run_on="dask", client="scheduler:8786").pareto("tpot_s", "ttft_s")
