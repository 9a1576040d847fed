"""Frames behind the charts of the accuracy report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ledgerkit._accuracy.score import coverage
from ledgerkit._steady.bands import factor

if TYPE_CHECKING:
    import polars as pl

    from ledgerkit._accuracy.study import Study

__all__ = ["group_frame", "row_frame"]


def row_frame(study: Study) -> pl.DataFrame:
    """Predicted and measured seconds: one row per group of alike rows and quantity.

    A group shares model, device, engine, shape and clients; its seconds are geometric means.
    Columns: quantity, model, group, measured_s, predicted_s, rows, factor, covered.
    """
    import polars as pl

    held, (tpot, ttft) = study.held_out["model"], study.measured
    judged = study.targets.ttft_judged > 0
    names = list(
        zip(
            study.names["combination"], study.names["shape"], study.names["concurrency"],
            study.names["model"], strict=True,
        )
    )  # fmt: skip
    found: list[dict[str, Any]] = []
    for quantity, predicted, measured, kept in (
        ("tpot", held.tpot_s, tpot, np.ones(len(tpot), dtype=bool)),
        ("ttft", held.ttft_s, ttft, judged),
    ):
        band = factor("tpot" if quantity == "tpot" else "ttft", "inside")
        covered = coverage(predicted[kept], measured[kept], band)
        for key in dict.fromkeys(names):
            inside = np.array([name == key for name in names]) & kept
            if not inside.any():
                continue
            found.append({
                "quantity": quantity, "model": key[3], "group": " · ".join(key[:3]),
                "measured_s": float(np.exp(np.log(measured[inside]).mean())),
                "predicted_s": float(np.exp(np.log(predicted[inside]).mean())),
                "rows": int(inside.sum()), "factor": band, "covered": covered,
            })  # fmt: skip
    return pl.DataFrame(found)


def group_frame(study: Study) -> pl.DataFrame:
    """Predicted over measured TPOT by combination.

    Columns: group, model, rows, low (10th percentile), median, high (90th), factor.
    """
    import polars as pl

    ratio = study.held_out["model"].tpot_s / study.measured[0]
    names = np.array(study.names["combination"])
    models = dict(zip(study.names["combination"], study.names["model"], strict=True))
    rows = []
    for name in sorted(set(names.tolist())):
        low, median, high = np.quantile(ratio[names == name], (0.1, 0.5, 0.9))
        rows.append({
            "group": name, "model": models[name], "rows": int((names == name).sum()),
            "low": float(low), "median": float(median), "high": float(high),
            "factor": factor("tpot", "inside"),
        })  # fmt: skip
    return pl.DataFrame(rows)
