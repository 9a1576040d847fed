"""Frames that the figures of a diagnosis are drawn from, words in both languages."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ledgerkit._compare import device_name
from ledgerkit.loadtest._anchors import predicted_ledger
from ledgerkit.loadtest._words import (
    cell_text,
    change_text,
    evidence,
    finding_text,
    next_text,
)
from ledgerkit.text import LANGUAGES, get

if TYPE_CHECKING:
    from ledgerkit.loadtest._diagnosis import Diagnosis

__all__ = ["cell_frame", "curve_frame", "room_frame", "share_frame", "verdict_frame"]

COLUMNS, ROWS = 60, 39
"""Cells of the map."""
WORST_FIT = 0.10
"""Misfit above which no map is drawn."""


def extent(found: Diagnosis) -> tuple[float, float, float, float]:
    """Log2 limits of a map: contexts, then concurrencies, with room around what was measured."""
    cells, planned = found.table, found.next_cells
    contexts = [*cells["context_tokens"], found.context_tokens, *(c.prompt_tokens for c in planned)]
    many = [*cells["concurrency"], found.concurrency, *(c.concurrency for c in planned)]
    low_c, high_c = math.log2(max(min(contexts), 1.0)), math.log2(max(contexts))
    low_b, high_b = math.log2(min(many)), math.log2(max(many))
    right = high_c + 0.25
    if found.model is not None:  # nothing is longer than the model allows
        right = max(min(right, math.log2(found.model.max_position_embeddings)), high_c + 0.02)
    return low_c - 0.25, right, low_b - 0.25, max(high_b + 1.0, low_b + 2.0)


def verdict_frame(found: Diagnosis) -> pl.DataFrame:
    """One row: the verdict, its share, limits of the map, and sentences in zh and en."""
    share = found.attention_kv_share
    low_c, high_c, low_b, high_b = extent(found)
    row: dict[str, Any] = {
        "verdict": found.verdict,
        "context_tokens": found.context_tokens,
        "concurrency": found.concurrency,
        "share": None if share is None else share.value,
        "low": None if share is None else share.low,
        "high": None if share is None else share.high,
        "runs": found.cells.height,
        "sigma": None if found.fit is None else found.fit.sigma,
        "log2_context_low": low_c, "log2_context_high": high_c,
        "log2_concurrency_low": low_b, "log2_concurrency_high": high_b,
    }  # fmt: skip
    for language in LANGUAGES:
        row[f"setup_{language}"] = _setup(found, language)
        row[f"at_{language}"] = cell_text(found.context_tokens, found.concurrency, language)
        row[f"evidence_{language}"] = "\n".join(evidence(found, language))
        row[f"next_{language}"] = "\n".join(next_text(found.next_cells, language))
        row[f"change_{language}"] = change_text(found, language)
        row[f"findings_{language}"] = "\n".join(
            finding_text(finding, language)
            for finding in found.findings
            if finding.severity != "note"
        )
    return pl.DataFrame([row], infer_schema_length=None)


def _setup(found: Diagnosis, language: str) -> str:
    parts = []
    if found.model is not None:
        parts.append(found.model.name)
    if found.hardware is not None:
        devices = found.deployment.devices if found.deployment is not None else 1
        parts.append(f"{devices} × {device_name(found.hardware.slug)}")
    return get("loadtest.separator", language).join(parts)


def cell_frame(found: Diagnosis) -> pl.DataFrame:
    """Cells by ``kind``: measured, still to measure (next), and runs left out (dropped)."""
    rows = [
        {
            "kind": "measured",
            "cell": row["cell"],
            "context_tokens": row["context_tokens"],
            "concurrency": row["concurrency"],
            "measured_s": row["measured_s"],
            "runs": row["runs"],
            "is_operating_point": math.isclose(
                row["context_tokens"], found.context_tokens, rel_tol=0.02
            )
            and math.isclose(row["concurrency"], found.concurrency, rel_tol=0.02),
        }
        for row in found.table.iter_rows(named=True)
    ]
    rows += [
        {
            "kind": "next",
            "cell": cell.cell,
            "context_tokens": float(cell.prompt_tokens),
            "concurrency": float(cell.concurrency),
            "measured_s": None,
            "runs": cell.runs,
            "is_operating_point": False,
        }
        for cell in found.next_cells
    ]
    rows += [
        {
            "kind": "dropped",
            "cell": row["cell"],
            "context_tokens": row["context_tokens"] or row["prompt_tokens"],
            "concurrency": row["concurrency"] or row["concurrency_requested"],
            "measured_s": None,
            "runs": 1,
            "is_operating_point": False,
        }
        for row in found.left_out.iter_rows(named=True)
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def share_frame(found: Diagnosis) -> pl.DataFrame:
    """KV share over the map; empty where the fit is too bad for one."""
    empty = pl.DataFrame(
        schema={"context_tokens": pl.Float64, "concurrency": pl.Float64, "share": pl.Float64}
    )
    if found.fit is None or abs(found.fit.lack_of_fit().worst_residual) > WORST_FIT:
        return empty
    low_c, high_c, low_b, high_b = extent(found)
    c = 2 ** (low_c + (np.arange(COLUMNS) + 0.5) * (high_c - low_c) / COLUMNS)
    b = 2 ** (low_b + (np.arange(ROWS) + 0.5) * (high_b - low_b) / ROWS)
    contexts, many = (axis.ravel() for axis in np.meshgrid(c, b))
    parts = found.fit.basis.columns(contexts, many) * found.fit.theta
    return pl.DataFrame(
        {
            "context_tokens": contexts,
            "concurrency": many,
            "share": (parts[:, 2] / parts.sum(axis=1)).round(4),
        }
    )


def room_frame(found: Diagnosis, points: int = 41) -> pl.DataFrame:
    """Most sequences that fit, over the contexts of the map; empty without model and device."""
    schema = {"context_tokens": pl.Float64, "max_concurrency": pl.Float64}
    if found.model is None or found.hardware is None or found.deployment is None:
        return pl.DataFrame(schema=schema)
    ranks = found.deployment.dp_attention
    low_c, high_c, *_ = extent(found)
    rows = []
    for exponent in np.linspace(low_c, high_c, points):
        one, two = (
            predicted_ledger(found.model, found.hardware, found.deployment, 2**exponent, many)
            for many in (ranks, 2 * ranks)
        )
        if one is None or two is None:
            continue
        each = two.resident_bytes_device - one.resident_bytes_device
        if each > 0:  # whole seats would draw stairs
            seats = ranks * (1.0 + one.free_bytes / each)
            rows.append((float(2**exponent), max(seats, 0.0)))
    return pl.DataFrame(rows, schema=schema, orient="row")


def curve_frame(found: Diagnosis, points: int = 41) -> pl.DataFrame:
    """Step time and KV share along both axes through the operating point, with intervals.

    Columns: ``axis`` (context, concurrency), ``kind`` (fitted, measured), ``place``, ``step_s``,
    ``step_low_s``, ``step_high_s``, ``share``, ``share_low``, ``share_high``.
    """
    rows: list[dict[str, Any]] = []
    low_c, high_c, low_b, high_b = extent(found)
    at = (found.context_tokens, found.concurrency)
    for axis, place, (low, high) in (
        ("context", 0, (low_c, high_c)),
        ("concurrency", 1, (low_b, high_b)),
    ):
        if found.fit is not None:
            values = 2 ** np.linspace(low, high, points)
            other = np.full_like(values, at[1 - place])
            pair = (values, other) if place == 0 else (other, values)
            shares = found.shares(*pair)
            half = found.fit.relative.t * _errors(found, *pair)
            for value, spread, share in zip(
                values, half, shares.iter_rows(named=True), strict=True
            ):
                rows.append(
                    {
                        "axis": axis, "kind": "fitted", "place": float(value),
                        "step_s": share["step_s"],
                        "step_low_s": max(share["step_s"] - spread, 0.0),
                        "step_high_s": share["step_s"] + spread,
                        "share": share["attention_kv_share"],
                        "share_low": share["low"], "share_high": share["high"],
                    }
                )  # fmt: skip
        names = ("context_tokens", "concurrency")
        rows += [
            {
                "axis": axis, "kind": "measured", "place": cell[names[place]],
                "step_s": cell["measured_s"], "step_low_s": cell["measured_low_s"],
                "step_high_s": cell["measured_high_s"],
                "share": None, "share_low": None, "share_high": None,
            }
            for cell in found.table.iter_rows(named=True)
            if math.isclose(cell[names[1 - place]], at[1 - place], rel_tol=0.05)
        ]  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


def _errors(found: Diagnosis, contexts: Any, many: Any) -> Any:
    """Standard errors of fitted step times."""
    if found.fit is None:
        return np.zeros(len(contexts))
    columns = found.fit.basis.columns(contexts, many)
    covariance = found.fit.relative.covariance
    return np.sqrt(np.maximum(np.einsum("pi,ij,pj->p", columns, covariance, columns), 0.0))
