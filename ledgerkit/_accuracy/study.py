"""From a file of rows to every number of the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ledgerkit._accuracy import fit as fitting
from ledgerkit._accuracy.pools import predict_pools
from ledgerkit._accuracy.prepared import Constants, Prepared, prepare
from ledgerkit._accuracy.rows import Row, read_rows
from ledgerkit._accuracy.rules import distinct, exclude
from ledgerkit._accuracy.setups import Setup, Setups
from ledgerkit.errors import LedgerError, LoadTestError

if TYPE_CHECKING:
    from ledgerkit._steady.formula import Numbers

__all__ = ["FOLDS", "HeldOut", "Study", "study"]

FOLDS = ("model", "device", "engine", "combination")
"""What is held out, each in turn."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Predictions whose constants never saw the group of the row; seconds."""

    tpot_s: Numbers
    ttft_s: Numbers
    folds: int


@dataclass
class Study:
    """Rows, predictions and fits."""

    source: str
    listed: int
    repaired: int
    rows: list[Row]
    """Distinct measurements, judged or not."""
    judged: list[Row]
    """Aggregated rows that were predicted, in the order of every array."""
    setups: list[Setup]
    names: dict[str, list[str]]
    """Group of each judged row by axis: model, device, engine, precision, ..."""
    prepared: Prepared
    targets: fitting.Targets
    shipped: HeldOut
    """With round numbers for the host constants: nothing was fitted."""
    in_sample: HeldOut
    constants: Constants
    held_out: dict[str, HeldOut]
    folds: dict[str, list[Constants]]
    refused: Counter[str]
    pool_rows: list[Row] = field(default_factory=list)
    pool_names: dict[str, list[str]] = field(default_factory=dict)
    pool_tpot_s: Any = None
    pool_ttft_s: Any = None

    @property
    def measured(self) -> tuple[Numbers, Numbers]:
        """Measured (TPOT, TTFT) of the judged rows, seconds."""
        return self.targets.tpot_s, self.targets.ttft_s

    @property
    def pools_measured(self) -> tuple[Numbers, Numbers]:
        """Measured (TPOT, TTFT) of the disaggregated rows, seconds."""
        rows = self.pool_rows
        return np.array([row.tpot_s for row in rows]), np.array([row.ttft_s for row in rows])

    def parts(self, inside: Numbers) -> tuple[str, float]:
        """Name the largest part of the predicted TPOT of some rows, and its share."""
        load, times = self.prepared.load(self.constants), self.prepared.times(self.constants)
        seconds = {
            "work": self.prepared.work_s,
            "host": load.step_s - self.prepared.work_s,
            "prefill": times.interference_s,
        }
        shares = {name: float(np.mean((s / times.step_s)[inside])) for name, s in seconds.items()}
        largest = max(shares, key=shares.__getitem__)
        return largest, shares[largest]

    @property
    def excluded(self) -> Counter[str]:
        """Distinct rows by the rule that keeps them from being judged."""
        return Counter(row.judged for row in self.rows if row.judged)


def _precision(row: Row) -> str:
    return row.precision or "as the checkpoint"


def _clients(row: Row) -> str:
    for most in (8, 32, 128):
        if row.concurrency <= most:
            return {8: "1-8", 32: "9-32", 128: "33-128"}[most]
    return "> 128"


def _shape(row: Row) -> str:
    def size(tokens: int) -> str:
        for most, name in ((512, "≤ 512"), (1024, "1k"), (4096, "2-4k"), (8192, "8k")):
            if tokens <= most:
                return name
        return "> 8k"

    return f"{size(row.prompt_tokens)} in, {size(row.output_tokens)} out"


def _axes(rows: list[Row], models: list[str]) -> dict[str, list[str]]:
    return {
        "model": models,
        "device": [row.system for row in rows],
        "engine": [row.engine for row in rows],
        "precision": [_precision(row) for row in rows],
        "concurrency": [_clients(row) for row in rows],
        "shape": [_shape(row) for row in rows],
        "combination": [
            f"{model} · {row.system} · {row.engine}"
            for model, row in zip(models, rows, strict=True)
        ],
    }


def study(path: Path, configs: Path | None = None, *, few_rows: int | None = None) -> Study:
    """Read, judge, price, fit and predict a file of rows.

    Raises
    ------
    LoadTestError
        The file cannot be read, or no row of it can be predicted.
    """
    setups = Setups(configs)
    everything = read_rows(path)
    rows = distinct(everything, setups.identity)
    if few_rows is None:
        exclude(rows, everything)
    else:
        exclude(rows, everything, few_rows=few_rows)
    refused: Counter[str] = Counter()
    built: list[tuple[Row, Setup]] = []
    for row in rows:
        if row.judged:
            continue
        try:
            setup = setups.setup(row)
            setup.table()  # a layout that cannot be built is refused here
            built.append((row, setup))
        except LedgerError as error:
            refused[f"{row.model_path} on {row.system}: {error}"] += 1
    single = [(row, setup) for row, setup in built if not row.disaggregated]
    if not single:
        raise LoadTestError(
            "no row of this file can be predicted",
            given=str(path),
            allowed="rows of models and devices that are built in",
            fix="; ".join(list(refused)[:3]) or None,
        )
    judged = [row for row, _ in single]
    families: dict[Hashable, str] = {}
    models = [
        families.setdefault(setups.identity(row), setup.model.slug.rsplit("__", 1)[-1])
        for row, setup in single
    ]
    names = _axes(judged, models)
    prepared = prepare(judged, [setup for _, setup in single])
    targets = fitting.Targets.of(
        np.array([row.tpot_s for row in judged]), np.array([row.ttft_s for row in judged]),
        np.array([float(row.ttft_judged) for row in judged]), names["combination"],
    )  # fmt: skip
    everyone = np.ones(len(judged))
    constants = (
        fitting.fit(prepared, targets, everyone)
        if len(set(names["model"])) >= fitting.FEWEST
        else fitting.START
    )
    held, folds = {}, {}
    for axis in FOLDS:
        tpot, ttft, found = fitting.held_out(prepared, targets, names[axis])
        held[axis], folds[axis] = HeldOut(tpot, ttft, len(found)), found

    def whole(used: Constants) -> HeldOut:
        times = prepared.times(used)
        return HeldOut(times.tpot_s, times.ttft_s, 0)

    result = Study(
        source=path.name, listed=len(everything), repaired=sum(row.repaired for row in everything),
        rows=rows, judged=judged, setups=[setup for _, setup in single], names=names,
        prepared=prepared, targets=targets, shipped=whole(fitting.START),
        in_sample=whole(constants),
        constants=constants, held_out=held, folds=folds, refused=refused,
    )  # fmt: skip
    _add_pools(result, [(r, s) for r, s in built if r.disaggregated], families, setups)
    return result


def _add_pools(
    result: Study, pairs: list[tuple[Row, Setup]], families: dict[Hashable, str], setups: Setups
) -> None:
    tpot, ttft, models = [], [], []
    for row, setup in pairs:
        try:
            one = predict_pools(row, setup, result.constants)
        except LedgerError as error:
            result.refused[f"{row.model_path} on {row.system}: {error}"] += 1
            continue
        result.pool_rows.append(row)
        tpot.append(one[0])
        ttft.append(one[1])
        slug = setup.model.slug.rsplit("__", 1)[-1]
        models.append(families.setdefault(setups.identity(row), slug))
    result.pool_tpot_s, result.pool_ttft_s = np.array(tpot), np.array(ttft)
    result.pool_names = _axes(result.pool_rows, models)
    result.pool_names["attention ranks"] = [
        str(row.layout.dp_attention) for row in result.pool_rows
    ]
