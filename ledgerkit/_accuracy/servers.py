"""What calibrating on a few points of a server does to its other points."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ledgerkit._accuracy.score import Score, score
from ledgerkit._accuracy.setups import BURST_VARIATION
from ledgerkit._calibration import Calibration, calibrate
from ledgerkit._steady.bands import balanced_quantile
from ledgerkit._steady.result import SteadyState

if TYPE_CHECKING:
    from ledgerkit._accuracy.rows import Row
    from ledgerkit._accuracy.setups import Setup
    from ledgerkit._accuracy.study import Study

__all__ = ["Calibrated", "calibrated"]

ENOUGH = 5
"""Points below which nothing is left to predict."""


@dataclass(frozen=True, slots=True)
class Calibrated:
    """Errors on the points of a server that were not calibrated on."""

    points: int
    servers: int
    before: Score
    after: Score
    factor: float
    """Conformal factor for a 90 % band after the calibration, servers weighing the same."""


def calibrated(study: Study, points: int, *, across_layouts: bool = False) -> Calibrated | None:
    """Calibrate every server of a study on some of its points, and predict the others.

    A server is one model, device, engine, version, precision, layout and client. Its points are
    sorted by clients and prompt; calibration takes them evenly from the middle outwards.

    ``across_layouts`` carries a calibration to other layouts of the same setup.
    """
    setups = study.setups
    servers: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for i, row in enumerate(study.judged):
        servers[
            study.names["combination"][i], row.version, row.precision, row.origin,
            *(() if across_layouts else (row.layout_key, row.measured)),
        ].append(i)  # fmt: skip
    before, after, measured, owner = [], [], [], []
    for number, members in enumerate(servers.values()):
        if len(members) < ENOUGH:
            continue
        members.sort(key=lambda i: (study.judged[i].concurrency, study.judged[i].prompt_tokens))
        places = (np.arange(points) + 0.5) / points * len(members)
        known = {members[int(place)] for place in places}
        found = _calibrate([(study.judged[i], setups[i]) for i in sorted(known)])
        for i in members:
            if i in known:
                continue
            plain, informed = (_tpot(study.judged[i], setups[i], c) for c in (None, found))
            before.append(plain)
            after.append(informed)
            measured.append(study.judged[i].tpot_s)
            owner.append(number)
    if not measured:
        return None
    real = np.array(measured)
    groups: dict[int, list[float]] = defaultdict(list)
    for number, residual in zip(owner, np.abs(np.log(np.array(after) / real)), strict=True):
        groups[number].append(float(residual))
    return Calibrated(
        points, len(groups), score(np.array(before), real), score(np.array(after), real),
        float(np.exp(balanced_quantile(groups.values(), 0.9))),
    )  # fmt: skip


def _variation(row: Row) -> float:
    return 0.0 if row.fixed_lengths else BURST_VARIATION


def _calibrate(known: list[tuple[Row, Setup]]) -> Calibration:
    row, setup = known[0]
    measured = [
        {
            "prompt_tokens": s.workload.prompt_tokens,
            "output_tokens": s.workload.output_tokens,
            "concurrency": s.workload.concurrency,
            "tpot_s": r.tpot_s,
        }
        for r, s in known
    ]
    return calibrate(
        measured, setup.model, setup.hardware, setup.deployment, length_variation=_variation(row)
    )


def _tpot(row: Row, setup: Setup, found: Calibration | None) -> float:
    from ledgerkit._steady.options import Serving

    serving = Serving(length_variation=_variation(row))
    return SteadyState(setup.table(), setup.workload, serving, calibration=found).tpot_s
