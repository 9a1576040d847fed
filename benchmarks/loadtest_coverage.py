"""Do the intervals of ``lk.loadtest.diagnose`` cover what they say, and are its verdicts right?

Simulates load tests whose truth is known, diagnoses them through the public verb, and writes the
table beside this file:

    python benchmarks/loadtest_coverage.py --runs 4000
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

# frames of 48 rows: threads would only wait for each other
os.environ.setdefault("POLARS_MAX_THREADS", "1")

import numpy as np
import polars as pl

import ledgerkit as lk
from ledgerkit.loadtest._basis import Basis

SEED = 20260707
CONTEXTS = (1024, 8192, 32768, 131072)
CONCURRENCIES = (1, 4, 8, 16)
DEFINITE = ("attention_kv", "weights", "service")


@dataclass(frozen=True)
class Case:
    """A class of truths, a basis, a design and a noise."""

    truth: str
    model: str | None
    noise: float
    corners: bool = False
    runs: int = 3
    interval: str = "delta"

    def design(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        if self.corners:
            return (CONTEXTS[0], CONTEXTS[-1]), (CONCURRENCIES[0], CONCURRENCIES[-1])
        return CONTEXTS, CONCURRENCIES


def draw_shares(truth: str, basis: Basis, random: np.random.Generator) -> np.ndarray:
    """Shares of time at the operating point: constant, with the sequences, cache."""
    routed = basis.weights_kind == "distinct_experts"
    if truth == "attention_kv":
        cache = random.uniform(0.5, 0.95)
        growing = random.uniform(0.0, 0.5) * (1 - cache)
    elif truth == "mixed":
        cache = random.uniform(0.2, 0.5)
        growing = random.uniform(0.0, 0.5) * (1 - cache)
    elif truth == "weights":
        cache = random.uniform(0.01, 0.2)
        growing = (
            random.uniform(0.0, 0.9) * (1 - cache) if routed else random.uniform(0.0, 0.5 - cache)
        )
    else:  # service: more sequences buy nothing, or the engine is not what the client waits for
        cache = random.uniform(0.01, 0.2)
        growing = random.uniform(0.5, 0.95 - cache) if truth == "service" else 0.1
    return np.array([1.0 - cache - growing, growing, cache])


def simulate(case: Case, basis: Basis, random: np.random.Generator) -> tuple[pl.DataFrame, dict]:
    """Rows of one load test, and its truth."""
    contexts, many = case.design()
    at = (float(random.choice(contexts)), float(random.choice(many)))
    shares = draw_shares(case.truth, basis, random)
    row = basis.columns(np.array([at[0]]), np.array([at[1]]))[0]
    theta = shares / row
    cells = [(float(c), float(b)) for c in contexts for b in many]
    steps = basis.columns(*np.array(cells).T) @ theta * 0.01
    rows = []
    for run in range(case.runs):
        for i in random.permutation(len(cells)):
            c, b = cells[i]
            rows.append(
                {
                    "prompt_tokens": c, "context_tokens": c, "concurrency_requested": b,
                    "concurrency": b, "run": run, "order": len(rows),
                    "itl_s": steps[i] * (1.0 + case.noise * random.standard_normal()),
                }
            )  # fmt: skip
    frame = pl.DataFrame(rows)
    if case.truth == "service_gap":
        gap = random.uniform(0.25, 0.6)
        wobble = 1.0 + case.noise * random.standard_normal(frame.height)
        frame = frame.with_columns(engine_itl_s=pl.col("itl_s") * (1 - gap) * pl.Series(wobble))
    return frame, {"at": at, "share": float(shares[2])}


def run_case(case: Case, count: int, seed: int) -> dict:
    """Simulate and diagnose ``count`` load tests."""
    model = None if case.model is None else lk.load_model(case.model)
    basis = Basis(model)
    random = np.random.default_rng(seed)
    covered = wrong = 0
    verdicts: dict[str, int] = {}
    right = "service" if case.truth.startswith("service") else case.truth
    for _ in range(count):
        rows, truth = simulate(case, basis, random)
        found = lk.loadtest.diagnose(rows, model=model, at=truth["at"], interval=case.interval)
        share = found.attention_kv_share
        covered += share.low <= truth["share"] <= share.high
        verdicts[found.verdict] = verdicts.get(found.verdict, 0) + 1
        # mixed on an interval that crosses a limit is caution, inside the limits it is a claim
        claims = found.verdict in DEFINITE or found.judgement.rule == "kv_between"
        wrong += claims and found.verdict != right
    return {
        "truth": case.truth, "basis": case.model or "b, b*c", "noise": case.noise,
        "cells": len(case.design()[0]) * len(case.design()[1]), "runs": case.runs,
        "interval": case.interval, "simulated": count, "covered": covered / count,
        "right": verdicts.get(right, 0) / count, "mixed": verdicts.get("mixed", 0) / count,
        "undetermined": verdicts.get("undetermined", 0) / count, "wrong": wrong / count,
    }  # fmt: skip


def cases() -> list[Case]:
    """All rows of the table."""
    found = []
    for noise in (0.03, 0.10):
        found += [
            Case(truth, None, noise, corners)
            for corners in (False, True)
            for truth in ("attention_kv", "mixed", "weights", "service", "service_gap")
        ]
        found += [
            Case(truth, model, noise)
            for model in ("qwen3-30b-a3b", "gemma-3-27b-it", "gpt-oss-20b", "deepseek-v3.2")
            for truth in ("attention_kv", "mixed", "weights")
        ]
    found += [replace(Case("mixed", None, 0.10, corners=True), runs=12, interval=kind)
              for kind in ("delta", "bootstrap")]  # fmt: skip
    return found


def report(rows: list[dict], count: int) -> str:
    """The table as Markdown."""
    error = 100 * (0.95 * 0.05 / count) ** 0.5
    head = f"""# Coverage of the load test's intervals, and its wrong verdicts

Made by `python benchmarks/loadtest_coverage.py --runs {count}` (seed {SEED}): so many simulated
load tests per row, all through `lk.loadtest.diagnose`.

Times follow `t = t0 + w W(b) + a A(c, b)` on the basis of the row (sequences and tokens; or, by a
model: distinct experts, windows, both, experts with top-k attention), with independent relative
noise on every run of a cell. `covered`: the 95 % interval of the KV share at the operating point
holds the truth. `wrong`: a definite verdict of another class (mixed counts as definite where its
interval lies inside 20 to 50 %; elsewhere it is the cautious reading of an interval that crosses a
limit). `open`: undetermined. Truths are drawn up to the limits of their class, which is why many
are judged mixed. `service`: throughput does not rise with the sequences; in `service_gap` a quarter
or more of the client's time between tokens is not the engine's.

The standard error of a row of {count:,} tests is {error:.2f} points of coverage.

| truth | basis | noise | cells × runs | interval | tests | covered | right | mixed | open | wrong |
|---|---|--:|--:|---|--:|--:|--:|--:|--:|--:|
"""
    table = "\n".join(
        f"| {r['truth']} | {r['basis']} | {r['noise']:.0%} | {r['cells']} × {r['runs']} | "
        f"{r['interval']} | {r['simulated']:,} | {r['covered']:.2%} | {r['right']:.1%} | "
        f"{r['mixed']:.1%} | {r['undetermined']:.1%} | {r['wrong']:.2%} |"
        for r in rows
    )
    pooled = [
        f"- {truth}, noise {noise:.0%}: {part(rows, truth, noise)}"
        for noise in (0.03, 0.10)
        for truth in dict.fromkeys(row["truth"] for row in rows)
    ]
    return f"{head}{table}\n\n## By class, all bases and designs\n\n" + "\n".join(pooled) + "\n"


def part(rows: list[dict], truth: str, noise: float) -> str:
    """Pool the rows of a class at one noise."""
    mine = [row for row in rows if row["truth"] == truth and row["noise"] == noise]
    count = sum(row["simulated"] for row in mine)
    covered, wrong = (
        sum(row[name] * row["simulated"] for row in mine) / count for name in ("covered", "wrong")
    )
    return f"{count:,} simulated, {covered:.2%} covered, {wrong:.2%} wrong"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=4000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    given = parser.parse_args()
    started = time.monotonic()
    todo = cases()
    with ProcessPoolExecutor(given.workers) as pool:
        jobs = [pool.submit(run_case, case, given.runs, SEED + i) for i, case in enumerate(todo)]
        rows = []
        for job in jobs:
            rows.append(job.result())
            print(
                f"{len(rows)}/{len(jobs)} {time.monotonic() - started:.0f} s {rows[-1]}", flush=True
            )
    given.out.write_text(report(rows, given.runs), encoding="utf-8")


if __name__ == "__main__":
    main()
