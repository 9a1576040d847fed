"""Time what a ledger is made of once everything is loaded: table, totals, entries, many points."""

from __future__ import annotations

import time

import numpy as np

import ledgerkit as lk
from ledgerkit._entries import all_entries, entries_frame
from ledgerkit._refs import resolve
from ledgerkit.costs.table import build
from ledgerkit.kernels import step as kernels

MODELS = ("llama-3.1-8b", "gemma-4-26b-a4b", "deepseek-v3")
POINTS = 100_000


def quickest(work, runs: int = 30) -> float:
    """CPU seconds of the quickest run: what it takes when nobody disturbs."""
    best = float("inf")
    for _ in range(runs):
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    return best


def many_points(table) -> float:
    """Points per second of totals mode, prefill of one chunk and decode together."""
    rng = np.random.default_rng(1)
    prompts = rng.integers(1, table.chunk_tokens, POINTS).astype(float)
    sequences = rng.integers(1, 512, POINTS).astype(float)
    out = np.empty((POINTS, 2, 3, 5))
    ones = np.ones(POINTS)

    def run() -> None:
        kernels.totals(
            table.ops["mid"], table.link_rows["mid"], table.scalars["mid"], table.op_ledger,
            prompts, 0 * ones, prompts + 64, sequences, sequences, ones,
            ones * table.chunk_tokens, out,
        )  # fmt: skip

    run()
    return POINTS / quickest(run, 3)


def main() -> None:
    work = lk.Workload(prompt_tokens=8192, output_tokens=512, concurrency=32)
    deployment = lk.Deployment(tp=8)
    for name in MODELS:
        model, hardware, _, profile, fractions = resolve(name, "h200-sxm-141gb", deployment)
        arguments = (model, deployment, hardware, fractions, profile)
        table = build(*arguments)
        one_ledger = quickest(
            lambda name=name: lk.ledger(name, "h200-sxm-141gb", deployment, work).tpot_s
        )
        entries = quickest(lambda table=table: all_entries(table, work))
        made = all_entries(table, work)
        frame = quickest(lambda made=made: entries_frame(made))
        new_table = quickest(lambda arguments=arguments: build.__wrapped__(*arguments))
        print(
            f"{name}: table {new_table * 1e3:.2f} ms; further ledger {one_ledger * 1e3:.3f} ms; "
            f"{len(made)} entries {entries * 1e3:.2f} ms, their frame {frame * 1e3:.2f} ms; "
            f"{many_points(table) / 1e6:.2f} million points/s on one core"
        )


if __name__ == "__main__":
    main()
