"""From measured cells to a verdict with its evidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ledgerkit.catalog.engines import load_engine
from ledgerkit.errors import LoadTestError
from ledgerkit.loadtest._anchors import anchor
from ledgerkit.loadtest._basis import Basis
from ledgerkit.loadtest._diagnosis import Diagnosis
from ledgerkit.loadtest._findings import Finding, examine, examine_fit, examine_ttft_growth
from ledgerkit.loadtest._first_token import first_token
from ledgerkit.loadtest._fit import BOOTSTRAP_RUNS, Fit, Interval, fit_steps
from ledgerkit.loadtest._inputs import deployment_of, load_both, positive
from ledgerkit.loadtest._schema import CELL_COLUMNS, Results, cell_name, shaped
from ledgerkit.loadtest._settle import MIN_RUNS, NextCell, Room, next_cells, starting_cells
from ledgerkit.loadtest._student import t_quantile
from ledgerkit.loadtest._verdict import Judgement, judge
from ledgerkit.spec.deployment import Deployment
from ledgerkit.spec.model import Model

__all__ = ["diagnose"]

_TIMES = ("itl_s", "tpot_p50_s", "tokens_per_s_one", "tokens_per_s")
"""Columns that tell the time of a decode step, best first."""


def diagnose(
    results: Results | pl.DataFrame | str | Path,
    *,
    model: Any = None,
    hardware: Any = None,
    deployment: Deployment | dict[str, Any] | None = None,
    at: tuple[float, float] | None = None,
    interval: str = "delta",
) -> Diagnosis:
    """Say which ledger a deployment pays, from a load test, only as far as the data goes.

    Parameters
    ----------
    results : Results, polars.DataFrame, or path
        What ``run`` or ``read`` returned, a saved file, or rows with at least ``prompt_tokens``
        (or ``context_tokens``), ``concurrency_requested`` (or ``concurrency``), ``run`` and
        ``itl_s`` (or ``tpot_p50_s``, ``tokens_per_s_one``, ``tokens_per_s``).
    model, hardware : ref or object, optional
        Model: the right basis (experts, windows, top-k). Both: anchors, predicted times.
    deployment : Deployment or dict, optional
        As served; default: one device.
    at : (context, concurrency), optional
        Operating point of the shares; default: the measured cell in the middle of the grid.
    interval : {"delta", "bootstrap"}
        ``bootstrap`` resamples whole runs and needs ten of them.

    Returns
    -------
    Diagnosis

    Raises
    ------
    LoadTestError
        Rows or columns that cannot be judged at all.

    Examples
    --------
    >>> rows = [
    ...     {
    ...         "prompt_tokens": c,
    ...         "concurrency_requested": b,
    ...         "run": r,
    ...         "itl_s": (6.0 + 0.02 * b + 5e-5 * b * c) * 1e-3 * (1 + 0.01 * (-1) ** (r + b)),
    ...     }
    ...     for c in (1024, 32768)
    ...     for b in (1, 16)
    ...     for r in range(3)
    ... ]
    >>> found = diagnose(pl.DataFrame(rows), at=(32768, 16))
    >>> found.verdict, round(found.attention_kv_share.value, 2)
    ('attention_kv', 0.81)
    """
    model, hardware = load_both(model, hardware)
    if interval not in ("delta", "bootstrap"):
        raise LoadTestError("unknown interval method", given=interval,
                            allowed="delta, bootstrap")  # fmt: skip
    deployment = deployment_of(deployment)
    layout = deployment or Deployment()
    rows = _rows(results).with_row_index("_row")
    cells, findings = examine(rows, _graph_sizes(deployment))
    findings += examine_ttft_growth(cells)
    basis = Basis(model, layout)
    point = _operating_point(cells, at)
    ttft = first_token(cells)
    fit, cells, dropped = _fit_without_outliers(basis, cells)
    findings += dropped
    if ttft is not None and ttft.is_suspicious:
        findings.append(
            Finding("ttft_constant", "warning", (), {
                "share": ttft.constant_share.value, "tokens": ttft.at_tokens})
        )  # fmt: skip
    left_out = rows.filter(~pl.col("_row").is_in(cells["_row"].implode())).drop("_row")
    cells = cells.drop("_row")
    known: dict[str, Any] = {
        "context_tokens": point[0], "concurrency": point[1], "ttft": ttft, "cells": cells,
        "left_out": left_out,
        "fit": fit, "model": model, "hardware": hardware, "deployment": layout,
    }  # fmt: skip
    gap = _gap(cells)
    room = _room(cells, model, layout)
    missing = _missing(cells, fit, room)
    if fit is None:
        return Diagnosis(
            judgement=missing[0], next_cells=missing[1], findings=_sorted(findings),
            attention_kv_share=None, sequence_share=None, step_share=None, anchors=None, gap=gap,
            **known,
        )  # fmt: skip
    findings += examine_fit(fit, cells["order"].to_list())
    findings += _outside(cells, point)
    anchors = None
    if model is not None and hardware is not None:
        anchors = anchor(fit, model, hardware, layout, point)
    judgement = judge(fit, point, gap=gap, anchors=anchors)
    cells_next: tuple[NextCell, ...] = ()
    if missing[0].rule != "enough":
        judgement, cells_next = missing
    elif any(finding.severity == "blocking" for finding in findings):
        judgement = Judgement("undetermined", "blocked")
    elif judgement.thresholds or judgement.verdict == "undetermined":
        cells_next = next_cells(fit, point, judgement.thresholds, room=room)
    shares = [fit.share_of((column,), *point) for column in (2, 1, 0)]
    if interval == "bootstrap":
        shares = _bootstrap(fit, point, shares)
    return Diagnosis(
        judgement=judgement, next_cells=cells_next, findings=_sorted(findings),
        attention_kv_share=shares[0], sequence_share=shares[1], step_share=shares[2],
        anchors=anchors, gap=gap, interval_method=interval, **known,
    )  # fmt: skip


def _graph_sizes(deployment: Deployment | None) -> tuple[int, ...]:
    """Batch sizes that run as they are; empty where nothing is known of the engine."""
    if deployment is None:
        return ()
    return load_engine(deployment.engine).graph_capture_sizes


def _rows(results: Results | pl.DataFrame | str | Path) -> pl.DataFrame:
    given: Any
    if isinstance(results, str | Path):
        from ledgerkit.loadtest._read import read

        given = read(results).cells
    else:
        given = results.cells if isinstance(results, Results) else results
    if isinstance(given, pl.LazyFrame):
        given = given.collect()
    if not isinstance(given, pl.DataFrame):
        raise LoadTestError("a diagnosis needs results", given=type(given).__name__,
                            allowed="Results, a polars frame, or the path of a file")  # fmt: skip
    if not set(_TIMES) & set(given.columns):
        raise LoadTestError("the rows say nothing of the time of a decode step",
                            given=given.columns, allowed=" or ".join(_TIMES))  # fmt: skip
    many = pl.coalesce("concurrency", "concurrency_requested")
    frame = shaped(given, CELL_COLUMNS).with_columns(
        itl_s=pl.coalesce(
            "itl_s", "tpot_p50_s", 1.0 / pl.col("tokens_per_s_one"), many / pl.col("tokens_per_s")
        ),
        concurrency_requested=pl.coalesce("concurrency_requested", "concurrency"),
        prompt_tokens=pl.coalesce("prompt_tokens", "context_tokens"),
        run=pl.col("run").fill_null(0),
    )
    if frame.select("concurrency_requested", "prompt_tokens").null_count().sum_horizontal()[0]:
        raise LoadTestError(
            "rows without prompt_tokens or concurrency_requested cannot be placed",
            allowed="rows with both",
            fix="give both for every row",
        )
    named = [
        name or cell_name(tokens, many)
        for name, tokens, many in frame.select(
            "cell", "prompt_tokens", "concurrency_requested"
        ).iter_rows()
    ]
    return frame.with_columns(pl.Series("cell", named, pl.String))


def _operating_point(cells: pl.DataFrame, at: Any) -> tuple[float, float]:
    if at is not None:
        if not isinstance(at, Sequence) or isinstance(at, str) or len(at) != 2:
            raise LoadTestError("an operating point is (context tokens, concurrency)", given=at,
                                allowed="at=(8192, 8)")  # fmt: skip
        context, many = (positive("each part of the operating point", part) for part in at)
        return context, many
    if not cells.height:
        return 1.0, 1.0
    places = cells.select("prompt_tokens", "context_tokens", "concurrency").to_numpy()
    logs = np.log(places[:, 1:])
    middle = (logs.min(axis=0) + logs.max(axis=0)) / 2
    nearest = int(np.square(logs - middle).sum(axis=1).argmin())
    return float(places[nearest, 1]), float(places[nearest, 2])


def _fit(basis: Basis, cells: pl.DataFrame) -> Fit | None:
    if not cells.height:
        return None
    return fit_steps(
        basis,
        cells["context_tokens"].to_numpy(),
        cells["concurrency"].to_numpy(),
        cells["itl_s"].to_numpy(),
        tuple(cells["cell"].to_list()),
        tuple(cells["run"].to_list()),
    )


def _fit_without_outliers(
    basis: Basis, cells: pl.DataFrame
) -> tuple[Fit | None, pl.DataFrame, list[Finding]]:
    """Fit, leave out rows that contradict all others, and fit again, saying so."""
    found: list[Finding] = []
    fit = _fit(basis, cells)
    most = max(1, cells.height // 10)
    while fit is not None and _runs(cells) >= MIN_RUNS and len(found) < most:
        odd = fit.outliers()
        if not odd:
            break
        row = cells.row(odd[0], named=True)
        found.append(
            Finding("outlier", "excluded", (row["cell"],), {
                "rows": 1, "run": row["run"], "residual": float(fit.residuals[odd[0]])})
        )  # fmt: skip
        cells = pl.concat([cells[: odd[0]], cells[odd[0] + 1 :]])
        fit = _fit(basis, cells)
    return fit, cells, found


def _runs(cells: pl.DataFrame) -> float:
    """Runs of a typical cell."""
    median = cells.group_by("cell").len()["len"].median()
    return float(median) if isinstance(median, int | float) else 0.0


def _missing(
    cells: pl.DataFrame, fit: Fit | None, room: Room
) -> tuple[Judgement, tuple[NextCell, ...]]:
    """What the design lacks before any rule may be applied."""
    contexts = set(cells["prompt_tokens"].to_list())
    many = set(cells["concurrency_requested"].to_list())
    runs = _runs(cells)
    rule = "enough"
    if not cells.height:
        rule = "no_rows"
    elif len(contexts) < 2:
        rule = "one_context"
    elif len(many) < 2:
        rule = "one_concurrency"
    elif runs < MIN_RUNS:
        rule = "few_runs"
    elif fit is None:
        rule = "not_estimable"
    if rule == "enough":
        return Judgement("undetermined", rule), ()
    return Judgement("undetermined", rule), starting_cells(contexts, many, int(runs), room)


def _room(cells: pl.DataFrame, model: Model | None, layout: Deployment) -> Room:
    """What further cells may ask of the server."""
    limits = [layout.max_model_len, None if model is None else model.max_position_embeddings]
    seats = layout.max_num_seqs
    return Room(
        tokens=min((limit for limit in limits if limit is not None), default=None),
        sequences=None if seats is None else seats * layout.dp_attention,
        measured=tuple(sorted({int(c) for c in cells["prompt_tokens"].to_list()})),
    )


def _gap(cells: pl.DataFrame) -> Interval | None:
    """Share of the client's time between tokens that the engine does not account for."""
    told = cells.filter(pl.col("engine_itl_s") > 0).with_columns(
        client=pl.coalesce("itl_mean_s", "itl_s")
    )
    if told.height < MIN_RUNS:
        return None
    share = (1.0 - told["engine_itl_s"] / told["client"]).to_numpy()
    half = t_quantile(0.95, len(share) - 1) * float(share.std(ddof=1)) / math.sqrt(len(share))
    middle = float(share.mean())
    return Interval(middle, middle - half, middle + half)


def _outside(cells: pl.DataFrame, at: tuple[float, float]) -> list[Finding]:
    """An operating point beyond the measured cells is an extrapolation."""
    beyond = {
        name: value
        for name, value in zip(("context_tokens", "concurrency"), at, strict=True)
        if not 0.8 * cells[name].min() <= value <= 1.25 * cells[name].max()  # type: ignore[operator]
    }
    if not beyond:
        return []
    return [Finding("extrapolated", "warning", (), {"context": at[0], "concurrency": at[1]})]


def _bootstrap(fit: Fit, at: tuple[float, float], shares: list[Interval]) -> list[Interval]:
    runs = len(set(fit.runs))
    if runs < BOOTSTRAP_RUNS:
        raise LoadTestError(
            "a bootstrap over runs covers far less than it says with few runs", given=runs,
            allowed=f"{BOOTSTRAP_RUNS} runs or more", fix='use interval="delta"',
        )  # fmt: skip
    low, high = fit.bootstrap(*at)
    return [
        Interval(share.value, min(float(low[i]), share.value), max(float(high[i]), share.value))
        for share, i in zip(shares, (2, 1, 0), strict=True)
    ]


_SEVERITY = {"blocking": 0, "excluded": 1, "warning": 2, "note": 3}


def _sorted(findings: list[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda finding: _SEVERITY[finding.severity]))
