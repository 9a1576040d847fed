"""``lk.calibrate``: what a server of the user's own was measured to do, as constants."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ledgerkit import __version__
from ledgerkit._refs import resolve
from ledgerkit._steady import fitting
from ledgerkit._steady.formula import closed_loop
from ledgerkit._steady.options import Serving, serving_constant
from ledgerkit._steady.work import Points, load, seats
from ledgerkit.costs.table import EDGES, CostTable, Price, build
from ledgerkit.errors import LoadTestError
from ledgerkit.kernels import columns as c
from ledgerkit.spec._base import Frozen
from ledgerkit.spec.deployment import Deployment, Workload
from ledgerkit.spec.efficiency import Band

if TYPE_CHECKING:
    import polars as pl

    from ledgerkit._entries import Entry
    from ledgerkit._steady.formula import Numbers
    from ledgerkit.loadtest._schema import Results
    from ledgerkit.spec.hardware import Hardware
    from ledgerkit.spec.model import Model

__all__ = ["Calibration", "Learned", "calibrate"]

TPOT_NOISE, TTFT_NOISE = 0.03, 0.3
"""Standard deviations of the logarithms of single measurements: repeats of one setup differ by
0.2 to 3 % in TPOT and by up to a factor of two in TTFT."""
PRIORS: dict[str, float] = {
    "tpot_factor": 0.20, "host_step_s": 0.50, "host_sequence_s": 0.70,
    "host_prefill_kernel_s": 0.40, "wait_share": 0.50, "request_path_s": 0.60,
}  # fmt: skip
"""Standard deviations of the logarithms before anything is measured: of the factor, the offsets of
measured setups; of the others, about twice their range over fits that leave a group out, because
one server differs more from another than groups do."""
_ONLY_WITH_TTFT = ("wait_share", "request_path_s")


class Learned(Frozen):
    """One constant: what it was, what it is now, and how much the measurements say about it."""

    name: str
    prior: float
    value: float
    prior_spread: float
    """Factor on both sides before the measurements (one standard deviation)."""
    spread: float
    """Factor on both sides after them."""

    @property
    def learned(self) -> float:
        """Share of the prior variance that the measurements removed: 0 nothing, 1 everything."""
        before, after = math.log(self.prior_spread), math.log(self.spread)
        return max(0.0, 1.0 - (after / before) ** 2)


class Measured(Frozen):
    """One measured point of a server."""

    prompt_tokens: int
    output_tokens: int
    concurrency: int
    cached_tokens: int = 0
    tpot_s: float | None = None
    """Seconds between the tokens of one answer, prefills of others included."""
    itl_s: float | None = None
    """Seconds of a decode step while nothing is prefilled."""
    ttft_s: float | None = None


class Calibration(Frozen):
    """Constants of one server; pass it as ``calibration=`` to the verbs that take one.

    Made by ``lk.calibrate`` or ``Calibration.load``; nothing in it changes afterwards.
    """

    model: str
    hardware: str
    deployment: Deployment
    measured: tuple[Measured, ...]
    learned: tuple[Learned, ...]
    residual: float
    """Root mean square of the logarithms of predicted over measured TPOT after the calibration."""
    provenance: tuple[tuple[str, str], ...] = ()
    ledgerkit_version: str = __version__

    def __repr__(self) -> str:
        values = ", ".join(f"{one.name} {one.value:.4g}" for one in self.learned)
        return (
            f"Calibration({self.model} on {self.deployment.devices} x {self.hardware}, "
            f"{len(self.measured)} points: {values})"
        )

    __str__ = __repr__

    def value(self, name: str) -> float | None:
        """Look a calibrated constant up; None where it was not calibrated."""
        return next((one.value for one in self.learned if one.name == name), None)

    @property
    def tpot_factor(self) -> float:
        """Measured over predicted seconds of a decode step."""
        return self.value("tpot_factor") or 1.0

    @property
    def table(self) -> pl.DataFrame:
        """Every constant with its prior, its spread, and how much was learned about it (0 to 1)."""
        import polars as pl  # heavy

        return pl.DataFrame([{**one.model_dump(), "learned": one.learned} for one in self.learned])

    @property
    def label(self) -> str:
        """Where the constants come from, in one line."""
        told = "; ".join(f"{key} {value}" for key, value in self.provenance)
        many = f"{len(self.measured)} measured point" + "s" * (len(self.measured) > 1)
        return f"calibrated on {many}" + (f" ({told})" if told else "")

    def price(self, table: CostTable) -> CostTable:
        """Price a cost table with the calibrated constants."""
        return priced(table, {one.name: one.value for one in self.learned})

    def serve(self, serving: Serving) -> Serving:
        """Fill in what the caller left open."""
        open_fields = {
            name: self.value(name)
            for name in _ONLY_WITH_TTFT
            if getattr(serving, name) is None and self.value(name) is not None
        }
        return serving.model_copy(update=open_fields)

    def book(self, entries: list[Entry]) -> list[Entry]:
        """Mark the seconds that rest on the measurements."""
        host = self.value("host_step_s") is not None
        return [
            replace(entry, basis="calibrated", source=f"{entry.source}; {self.label}")
            if entry.resource == "time"
            and (entry.phase == "decode" or (host and entry.account in ("host", "launch")))
            else entry
            for entry in entries
        ]

    def differs(self, table: CostTable) -> str | None:
        """Say how a deployment differs from the one that was measured; None = it is that one."""
        there = (self.model, self.hardware, self.deployment)
        here = (table.model.slug, table.hardware.slug, table.deployment)
        if there == here:
            return None
        names = ("model", "hardware", "deployment")
        changed = [n for n, a, b in zip(names, there, here, strict=True) if a != b]
        return f"calibrated on another {' and '.join(changed)}"

    def covers(self, table: CostTable) -> bool:
        """Whether this is the model and the device that were measured, in whatever layout."""
        return (self.model, self.hardware) == (table.model.slug, table.hardware.slug)

    def save(self, path: str | Path) -> Path:
        """Write the calibration as JSON, measured points and provenance included."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.model_dump(), indent=1, ensure_ascii=False)
        target.write_text(text + "\n", encoding="utf-8")
        return target

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what ``save`` wrote.

        Raises
        ------
        LoadTestError
            The file is not a calibration.
        """
        try:
            return cls(**json.loads(Path(path).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise LoadTestError("this file does not hold a calibration", given=path,
                                allowed="what Calibration.save wrote",
                                fix="save the calibration again") from error  # fmt: skip


def _slower(price: Price, factor: float) -> Price:
    def part(band: Band) -> Band:
        return Band(low=band.low / factor, mid=band.mid / factor, high=band.high / factor)

    return replace(price, eta_compute=part(price.eta_compute), eta_memory=part(price.eta_memory))


def priced(table: CostTable, constants: dict[str, float]) -> CostTable:
    """Copy a table with other host constants, and decode times by a factor."""
    factor = constants.get("tpot_factor", 1.0)
    host = {"host_step_s": c.HOST_STEP_S, "host_sequence_s": c.HOST_SEQUENCE_S,
            "host_prefill_kernel_s": c.HOST_PREFILL_KERNEL_S}  # fmt: skip
    ops, links, scalars = ({e: rows[e].copy() for e in EDGES}
                           for rows in (table.ops, table.link_rows, table.scalars))  # fmt: skip
    for edge in EDGES:
        for name, column in host.items():
            if name in constants:
                scalars[edge][:, column] = constants[name]
        scalars[edge][1, [c.KERNEL_S, c.HOST_STEP_S, c.HOST_SEQUENCE_S]] *= factor
        ops[edge][1][:, [c.S_PER_FLOP, c.S_PER_BYTE]] *= factor
        links[edge][1][:, [c.L_ALPHA, c.L_ALPHA_TWO_SHOT, c.L_S_PER_BYTE]] *= factor
    prices = tuple((before, _slower(after, factor)) for before, after in table.prices)
    return replace(table, ops=ops, link_rows=links, scalars=scalars, prices=prices)


def calibrate(
    measured: Results | pl.DataFrame | list[dict[str, Any]] | dict[str, Any],
    model: Model | str | dict[str, Any],
    hardware: Hardware | str | dict[str, Any],
    deployment: Deployment | dict[str, Any] | None = None,
    *,
    provenance: dict[str, str] | None = None,
    **serving: Any,
) -> Calibration:
    """Turn measured points of one server into a calibration.

    One point scales the seconds between tokens (on public measurements this brings the median
    error on other loads of the same server from 9 to 6 %). More points also fit the host's
    constants, from priors: ``Calibration.table`` says how much was learned about each.

    Parameters
    ----------
    measured : load-test results, frame, dict or list of dicts
        ``prompt_tokens``, ``output_tokens``, ``concurrency`` and ``tpot_s`` (or ``itl_s``, a decode
        step while nothing is prefilled), optionally ``ttft_s`` and ``cached_tokens``; seconds.
    model, hardware, deployment
        What was measured, as for ``lk.ledger``.
    provenance : dict, optional
        Who measured what, when, with which engine version: kept with the calibration.
    **serving
        How the points were measured, as for ``lk.steady_state`` (``length_variation=0`` ...).

    Returns
    -------
    Calibration

    Raises
    ------
    LoadTestError
        No point has a usable time.

    Examples
    --------
    >>> import ledgerkit as lk
    >>> point = {"prompt_tokens": 1024, "output_tokens": 512, "concurrency": 16, "tpot_s": 0.012}
    >>> lk.calibrate(point, "llama-3.1-8b", "h100-sxm-80gb").tpot_factor > 1
    True
    """
    model, hardware, deployment, profile, efficiencies = resolve(model, hardware, deployment)
    table = build(model, deployment, hardware, efficiencies, profile)
    points, told = _points(measured)
    if provenance is not None:
        if not isinstance(provenance, dict):
            raise LoadTestError("provenance is a dict of words", given=provenance,
                                allowed="{'who': ..., 'engine': ...}",
                                fix="leave provenance out")  # fmt: skip
        told |= {str(key): str(value) for key, value in provenance.items()}
    if not points:
        raise LoadTestError(
            "nothing to calibrate on: no point has a positive tpot_s or itl_s", given=measured,
            allowed="points with seconds above 0",
            fix="give prompt_tokens, output_tokens, concurrency and tpot_s of at least one point",
        )  # fmt: skip
    how = Serving(**serving)
    problem = _Problem(table, points, how)
    learned, residual = problem.solve()
    return Calibration(
        model=model.slug, hardware=hardware.slug, deployment=deployment, measured=points,
        learned=learned, residual=residual,
        provenance=tuple(sorted(told.items())),
    )  # fmt: skip


class _Problem:
    """Residuals of the measured points as a function of the constants."""

    def __init__(self, table: CostTable, points: tuple[Measured, ...], serving: Serving) -> None:
        self.table, self.serving = table, serving

        def column(name: str) -> Numbers:
            return np.array([getattr(p, name) or math.nan for p in points], dtype=np.float64)

        loads = [
            Workload(**p.model_dump(include={"prompt_tokens", "output_tokens", "concurrency",
                                             "cached_tokens"}))
            for p in points
        ]  # fmt: skip
        running = np.array(
            [float(min(w.concurrency, seats(table, w.decode_context, serving.seats).count))
             for w in loads]
        )  # fmt: skip
        self.points = Points.whole(
            table, column("prompt_tokens"), np.array([float(p.cached_tokens) for p in points]),
            column("output_tokens"), column("concurrency"), running,
        )  # fmt: skip
        self.tpot, self.itl, self.ttft = (column(n) for n in ("tpot_s", "itl_s", "ttft_s"))
        scalars = table.scalars["mid"][1]
        self.start: dict[str, float] = {"tpot_factor": 1.0}
        if len(points) > 1:
            self.start |= {
                "host_step_s": float(scalars[c.HOST_STEP_S]),
                "host_sequence_s": float(scalars[c.HOST_SEQUENCE_S]),
                "host_prefill_kernel_s": float(scalars[c.HOST_PREFILL_KERNEL_S]),
            }
            if np.isfinite(self.ttft).any():
                self.start |= {
                    "wait_share": serving.waits(table) or serving_constant("wait_share").mid,
                    "request_path_s": serving.path_s() or serving_constant("request_path_s").mid,
                }

    def logs(self, constants: dict[str, float]) -> tuple[Numbers, Numbers, Numbers]:
        """Logarithms of predicted over measured TPOT, step and TTFT; NaN where not measured."""
        serving = self.serving.model_copy(
            update={k: constants[k] for k in _ONLY_WITH_TTFT if k in constants}
        )
        factor = constants.get("tpot_factor", 1.0)
        priced_load = load(priced(self.table, constants), self.points, serving, factor=factor)
        times = closed_loop(priced_load)
        return (
            np.log(times.tpot_s / self.tpot),
            np.log(priced_load.step_s / self.itl),
            np.log(times.ttft_s / self.ttft),
        )

    def solve(self) -> tuple[tuple[Learned, ...], float]:
        """Fit, and say how well."""
        names, before = list(self.start), np.array(list(self.start.values()))
        widths = np.array([PRIORS[name] for name in names])
        single = len(names) == 1

        def residuals(x: Numbers) -> Numbers:
            logs = self.logs(dict(zip(names, before * np.exp(x), strict=True)))
            noise = (TPOT_NOISE, TPOT_NOISE, TTFT_NOISE)
            told = [r[np.isfinite(r)] / sigma for r, sigma in zip(logs, noise, strict=True)]
            # one point is taken at its word: no prior pulls it back
            return np.concatenate(told[:2] if single else [*told, x / widths])

        found = fitting.least_squares(residuals, np.zeros(len(names)))
        after = before * np.exp(found.x)
        spreads = np.exp(np.sqrt(np.diag(found.covariance)))
        rows = zip(names, before, after, np.exp(widths), spreads, strict=True)
        learned = tuple(
            Learned(name=n, prior=float(b), value=float(v), prior_spread=float(w), spread=float(s))
            for n, b, v, w, s in rows
        )
        tpot, itl, _ = self.logs(dict(zip(names, after, strict=True)))
        left = np.concatenate([tpot[np.isfinite(tpot)], itl[np.isfinite(itl)]])
        return learned, float(np.sqrt(np.mean(left**2)))


def _points(measured: Any) -> tuple[tuple[Measured, ...], dict[str, str]]:
    """Read points from whatever holds them."""
    told: dict[str, str] = {}
    if hasattr(measured, "cells") and hasattr(measured, "provenance"):
        told = {
            k: str(v) for k, v in measured.provenance.items() if isinstance(v, str | int | float)
        }
        rows = measured.cells.to_dicts()
    elif hasattr(measured, "to_dicts"):
        rows = measured.to_dicts()
    else:
        rows = [measured] if isinstance(measured, dict) else measured
    if not isinstance(rows, list | tuple) or not all(isinstance(row, dict) for row in rows):
        raise LoadTestError("measured points are a frame, a dict or a list of dicts",
                            given=measured, allowed="load-test results, frame, dict, list of dicts",
                            fix="pass lk.loadtest.read(path)")  # fmt: skip
    found = []
    for row in rows:
        tpot, itl = _positive(row, "tpot_s"), _positive(row, "itl_s")
        if tpot is None and itl is None:
            continue
        try:
            found.append(
                Measured(
                    prompt_tokens=round(row["prompt_tokens"]),
                    output_tokens=round(row["output_tokens"]),
                    concurrency=max(1, round(row["concurrency"])),
                    cached_tokens=round(row.get("cached_tokens") or 0),
                    tpot_s=None if itl is not None else tpot, itl_s=itl,
                    ttft_s=_positive(row, "ttft_s") or _positive(row, "ttft_p50_s"),
                )
            )  # fmt: skip
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise LoadTestError(
                "a measured point needs prompt_tokens, output_tokens and concurrency", given=row,
                allowed="whole numbers of at least 1", fix="correct or leave out this point",
            ) from error  # fmt: skip
    return tuple(found), told


def _positive(row: dict[str, Any], name: str) -> float | None:
    value = row.get(name)
    try:
        seconds = math.nan if value is None else float(value)
        is_number = not isinstance(value, bool | str | bytes)
    except (TypeError, ValueError, OverflowError):
        is_number = False
    if not is_number:
        raise LoadTestError(f"{name} of a measured point is no number", given=value,
                            allowed="seconds above 0", fix=f"correct {name}")  # fmt: skip
    return seconds if math.isfinite(seconds) and seconds > 0 else None
