"""ACCURACY.md from a study: tables and the words around them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ledgerkit import text
from ledgerkit._accuracy.prepared import PATHS, Constants
from ledgerkit._accuracy.score import (
    Group,
    Reason,
    Score,
    coverage,
    groups,
    score,
    split_quantiles,
    worst,
)
from ledgerkit._accuracy.study import FOLDS, HeldOut, Study
from ledgerkit._steady.bands import LEVEL, factor
from ledgerkit._steady.options import serving_constant

if TYPE_CHECKING:
    from ledgerkit._accuracy.published import Figure
    from ledgerkit._accuracy.servers import Calibrated

__all__ = ["AXES", "BandLine", "Gate", "band_lines", "gates", "render"]

AXES = ("model", "device", "engine", "precision", "concurrency", "shape", "combination")
STRONG, WIDE, MOST = 0.75, 0.06, 0.5
"""Correlation, scatter and share from which a worst group is read one way or another."""


def table(head: str, rows: Iterable[Sequence[str]]) -> str:
    """Set a Markdown table; ``head`` separates its columns with bars."""
    names = [name for name in head.split("|") if name]
    lines = ["| " + " | ".join(names) + " |", "|---|" + "--:|" * (len(names) - 1)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def _errors(one: Score | None) -> tuple[str, str]:
    if one is None:
        return "–", "–"
    return f"{one.median:.1f} / {one.mean:.1f} ({one.p90:.0f})", f"{one.bias:+.1f}"


@dataclass(frozen=True, slots=True)
class Gate:
    """One promise, and what came out."""

    name: str
    value: str
    met: bool


@dataclass(frozen=True, slots=True)
class BandLine:
    """How a band does on groups that it never saw."""

    held_out: str
    quantity: str
    quantile: float
    own_coverage: float
    shipped: float
    coverage: float
    worst: tuple[str, float]


def _scored(study: Study, held: HeldOut) -> tuple[Score, Score]:
    judged = study.targets.ttft_judged > 0
    tpot, ttft = study.measured
    return score(held.tpot_s, tpot), score(held.ttft_s[judged], ttft[judged])


def band_lines(study: Study) -> list[BandLine]:
    """Coverage of the bands by what was held out."""
    found = []
    judged = study.targets.ttft_judged > 0
    for axis in ("model", "combination"):
        held = study.held_out[axis]
        for quantity, predicted, measured, rows in (
            ("tpot", held.tpot_s, study.measured[0], np.ones(len(judged), dtype=bool)),
            ("ttft", held.ttft_s, study.measured[1], judged),
        ):
            names = [n for n, kept in zip(study.names["combination"], rows, strict=True) if kept]
            folds = [n for n, kept in zip(study.names[axis], rows, strict=True) if kept]
            p, m = predicted[rows], measured[rows]
            quantile, own = split_quantiles(p, m, names, folds, LEVEL)
            shipped = factor("tpot" if quantity == "tpot" else "ttft", "inside")
            by_group = {
                name: coverage(p[np.array(names) == name], m[np.array(names) == name], shipped)
                for name in set(names)
            }
            low = min(sorted(by_group), key=by_group.__getitem__)
            found.append(
                BandLine(
                    axis, quantity.upper(), quantile,
                    float(np.mean(np.abs(np.log(p / m)) <= np.log(own))), shipped,
                    coverage(p, m, shipped), (low, by_group[low]),
                )
            )  # fmt: skip
    return found


def gates(study: Study, language: str | None = None) -> list[Gate]:
    """Check what the report promises, on predictions whose constants never saw the model."""
    tpot, ttft = _scored(study, study.held_out["model"])
    lines = {line.quantity: line for line in band_lines(study) if line.held_out == "model"}
    covered = [lines[name].coverage for name in ("TPOT", "TTFT")]
    refused = sum(study.refused.values())
    checks = (
        ("tpot_median", f"{tpot.median:.1f}%", tpot.median <= 10),
        ("tpot_mean", f"{tpot.mean:.1f}%", tpot.mean <= 14),
        ("ttft_median", f"{ttft.median:.1f}%", ttft.median <= 32),
        ("bias", f"{tpot.bias:+.1f}%, {ttft.bias:+.1f}%", max(abs(tpot.bias), abs(ttft.bias)) <= 5),
        ("band", " / ".join(f"{share:.1%}" for share in covered),
         all(0.85 <= share <= 0.95 for share in covered)),
        ("refused", str(refused), refused == 0),
    )  # fmt: skip
    return [
        Gate(text.get(f"accuracy.gate.{name}", language), value, ok) for name, value, ok in checks
    ]


def render(
    study: Study, language: str, *, source: str, figures: Sequence[str] = (),
    published: Sequence[Figure] = (), calibrations: Sequence[tuple[str, Calibrated]] = (),
) -> str:  # fmt: skip
    """Write the page."""
    page = _Page(study, language)
    parts = [
        *page.head(source),
        *(f"![]({name})" for name in figures),
        *page.result(), *page.gates(), *page.bands(), *page.errors(), *page.worst(), *page.pools(),
        *page.constants(), *page.calibrations(calibrations), *page.published(published),
        *page.rules(), *page.closing(),
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


class _Page:
    """Sections of the report."""

    def __init__(self, study: Study, language: str) -> None:
        self.study, self.language = study, language

    def say(self, key: str, **fields: object) -> str:
        return text.get(f"accuracy.{key}", self.language, **fields)

    def _score_head(self, first: str) -> str:
        names = ("rows", "tpot", "tpot_bias", "ttft", "ttft_bias")
        return "|".join([first, *(self.say(f"col.{name}") for name in names)])

    def _group_rows(self, found: Iterable[Group]) -> list[list[str]]:
        return [
            [group.name, str(group.tpot.rows), *_errors(group.tpot), *_errors(group.ttft)]
            for group in found
        ]

    def head(self, source: str) -> list[str]:
        study = self.study
        counts = self.say(
            "rows", listed=f"{study.listed:,}", distinct=f"{len(study.rows):,}",
            judged=f"{len(study.judged):,}", pools=len(study.pool_rows),
            refused=sum(study.refused.values()),
        )  # fmt: skip
        return [self.say("title"), self.say("intro", source=source), counts]

    def result(self) -> list[str]:
        study = self.study
        lines = [(self.say("line.shipped"), study.shipped),
                 (self.say("line.in_sample"), study.in_sample)]  # fmt: skip
        lines += [
            (self.say("line.held", axis=self.say(f"axis.{axis}"), folds=study.held_out[axis].folds),
             study.held_out[axis])
            for axis in FOLDS
        ]  # fmt: skip
        rows = []
        for name, held in lines:
            tpot, ttft = _scored(study, held)
            rows.append([name, str(tpot.rows), *_errors(tpot), *_errors(ttft)])
        if study.pool_rows:
            tpot, ttft = (
                score(p, m)
                for p, m in zip((study.pool_tpot_s, study.pool_ttft_s), study.pools_measured,
                                strict=True)
            )  # fmt: skip
            rows.append([self.say("line.pools"), str(tpot.rows), *_errors(tpot), *_errors(ttft)])
        return [self.say("result.head"), table(self._score_head(" "), rows)]

    def gates(self) -> list[str]:
        rows = [
            [gate.name, gate.value, self.say("gate.met" if gate.met else "gate.missed")]
            for gate in gates(self.study, self.language)
        ]
        return [self.say("gates.head"), table(self.say("gates.columns") + " |", rows)]

    def bands(self) -> list[str]:
        rows = [
            [
                self.say(f"axis.{line.held_out}"), line.quantity, f"{line.quantile:.2f}",
                f"{line.own_coverage:.1%}", f"{line.shipped:.2f}", f"{line.coverage:.1%}",
                f"{line.worst[0]}: {line.worst[1]:.0%}",
            ]
            for line in band_lines(self.study)
        ]  # fmt: skip
        return [self.say("bands.head"), self.say("bands.text"),
                table(self.say("bands.columns"), rows)]  # fmt: skip

    def _by(self, axis: str) -> list[Group]:
        held, measured = self.study.held_out["model"], self.study.measured
        return groups(
            self.study.names[axis], (held.tpot_s, measured[0]), (held.ttft_s, measured[1]),
            self.study.targets.ttft_judged,
        )  # fmt: skip

    def errors(self) -> list[str]:
        found = [self.say("by.text")]
        for axis in AXES:
            name = self.say(f"axis.{axis}")
            found += [self.say("by.head", axis=name).replace("## ", "### ", 1),
                      table(self._score_head(name), self._group_rows(self._by(axis)))]  # fmt: skip
        return found

    def worst(self) -> list[str]:
        study = self.study
        left = np.log(study.held_out["model"].tpot_s / study.measured[0])
        clients = np.array([float(row.concurrency) for row in study.judged])
        found = worst(self._by("combination"), study.names["combination"], left, clients,
                      study.parts)  # fmt: skip
        rows = []
        for one in found:
            looks, reading = self._look(one)
            rows.append([
                one.group.name, str(one.group.tpot.rows), f"{one.group.tpot.median:.0f}%",
                f"{one.group.tpot.bias:+.0f}%", looks,
                f"{self.say(f'part.{one.largest}')} {one.share:.0%}", reading,
            ])  # fmt: skip
        return [self.say("worst.head"), table(self.say("worst.columns"), rows)]

    def _look(self, one: Reason) -> tuple[str, str]:
        scatter = f"{100 * (np.exp(one.scatter) - 1):.0f}"
        if one.largest == "prefill" and one.offset > WIDE:
            return self.say("worst.offset", scatter=scatter), self.say("reason.prefill")
        if abs(one.with_load) > STRONG and one.scatter > WIDE:
            looks = self.say("worst.slope", corr=f"{one.with_load:+.2f}")
            return looks, self.say("reason.slope")
        if abs(one.offset) > one.scatter:
            side = "long" if one.offset > 0 else "short"
            return self.say("worst.offset", scatter=scatter), self.say(f"reason.offset_{side}")
        return self.say("worst.scatter", scatter=scatter), self.say("reason.mixed")

    def pools(self) -> list[str]:
        study = self.study
        if not study.pool_rows:
            return []
        tpot, ttft = study.pools_measured
        covered = [
            f"{100 * coverage(p, m, band):.0f}"
            for p, m, band in (
                (study.pool_tpot_s, tpot, factor("tpot", "inside")),
                (study.pool_ttft_s, ttft, factor("ttft", "disaggregated")),
            )
        ]
        found = [self.say("pools.head"), self.say("pools.text", tpot=covered[0], ttft=covered[1])]
        for axis in ("device", "engine", "precision", "attention ranks"):
            rows = groups(study.pool_names[axis], (study.pool_tpot_s, tpot),
                          (study.pool_ttft_s, ttft), np.ones(len(tpot)))  # fmt: skip
            found.append(table(self._score_head(self.say(f"axis.{axis}")), self._group_rows(rows)))
        return found

    def constants(self) -> list[str]:
        study = self.study
        every = [fold for axis in FOLDS for fold in study.folds[axis]]
        shipped = _shipped(study)
        rows = []
        for i, (name, unit, scale) in enumerate(_names()):
            values = [one.vector()[i] * scale for one in every]
            rows.append([
                name, unit, f"{study.constants.vector()[i] * scale:.3g}",
                f"{min(values):.3g} – {max(values):.3g}", shipped[i],
            ])  # fmt: skip
        count = f"{len(study.judged):,}"
        return [self.say("constants.head"), self.say("constants.text", rows=count),
                table(self.say("constants.columns"), rows)]  # fmt: skip

    def calibrations(self, found: Sequence[tuple[str, Calibrated]]) -> list[str]:
        if not found:
            return []
        rows = [
            [label, str(one.servers), _errors(one.before)[0], _errors(one.after)[0],
             f"×/÷ {one.factor:.2f}"]
            for label, one in found
        ]  # fmt: skip
        return [self.say("calibrate.head"), self.say("calibrate.text"),
                table(self.say("calibrate.columns"), rows)]  # fmt: skip

    def published(self, figures: Sequence[Figure]) -> list[str]:
        if not figures:
            return []
        found = [self.say("published.head"), self.say("published.text")]
        keys = dict.fromkeys((one.set, one.quantity) for one in figures)
        rows = []
        for name, quantity in keys:
            ratios = np.array(
                [f.seconds_ratio for f in figures if (f.set, f.quantity) == (name, quantity)]
            )
            band = factor("ttft" if "ttft" in quantity else "tpot", "outside")
            inside = float(np.mean(np.abs(np.log(ratios)) <= np.log(band)))
            why = self.say(f"why.{name}") if inside < 1 else ""
            rows.append([
                name, quantity, str(len(ratios)), f"{np.median(ratios):.2f}",
                f"{ratios.min():.2f} – {ratios.max():.2f}", f"{inside:.0%}", why,
            ])  # fmt: skip
        found.append(table(self.say("published.columns"), rows))
        for name in dict.fromkeys(one.set for one in figures):
            each = [
                [one.setup, one.quantity, f"{one.measured:.4g}", f"{one.predicted:.4g}",
                 f"{one.seconds_ratio:.2f}", one.comment]
                for one in figures if one.set == name
            ]  # fmt: skip
            sources = "; ".join(dict.fromkeys(one.source for one in figures if one.set == name))
            found.append(
                f"<details><summary>{name}</summary>\n\n{sources}\n\n"
                + table(self.say("published.each"), each) + "\n\n</details>"
            )  # fmt: skip
        return found

    def rules(self) -> list[str]:
        study = self.study
        counts = {"R0": study.listed - len(study.rows), **study.excluded}
        first = sum(not row.ttft_judged for row in study.judged)
        if first:
            counts["R6"] = first
        lines = [
            f"- **{rule}** ({counts[rule]}): {self.say(f'rule.{rule}')}"
            for rule in sorted(counts)
            if counts[rule]
        ]
        found = [self.say("rules.head"), self.say("rules.text"), "\n".join(lines)]
        if study.repaired:
            found.append(self.say("repaired", count=study.repaired))
        if study.refused:
            why = "\n".join(f"- {count}: {reason}" for reason, count in study.refused.most_common())
            found += [self.say("refused"), why]
        else:
            found.append(self.say("none_refused"))
        return found

    def closing(self) -> list[str]:
        return [
            self.say("blind.head"), self.say("blind.text", ttft=f"{factor('ttft', 'inside'):.1f}"),
            self.say("attempts.head"), self.say("attempts.text"),
        ]  # fmt: skip


def _names() -> list[tuple[str, str, float]]:
    paths = [
        (f"request path, {engine}" + (f", {client} client" if client else ""), "ms", 1e3)
        for engine, client in PATHS
    ]
    return [
        ("host gap per step", "ms", 1e3), ("per sequence and step", "µs", 1e6),
        ("per kernel of an uncaptured step", "µs", 1e6), ("wait share", "", 1.0), *paths,
    ]  # fmt: skip


def _shipped(study: Study) -> list[str]:
    """Defaults of a user's own server, as the package ships them."""
    host = study.setups[0].table().efficiencies
    path, wait = serving_constant("request_path_s"), serving_constant("wait_share")
    bands = [
        (host.host_step_s, 1e3), (host.host_sequence_s, 1e6), (host.host_prefill_kernel_s, 1e6),
        (wait, 1.0), *([(path, 1e3)] * len(PATHS)),
    ]  # fmt: skip
    return [f"{b.mid * s:.3g} ({b.low * s:.3g} – {b.high * s:.3g})" for b, s in bands][
        : len(Constants.__dataclass_fields__) - 1 + len(PATHS)
    ]
