"""Iterations per second of ``lk.simulate``, in processor time, as a Markdown table.

Llama-3.1-8B on one H100, prompts of 1,024 tokens, answers of 256, a closed loop; prefix cache,
chunked prefill and preemption on, except where the table says otherwise. Every prompt is different:
its blocks are taken and given back, and hashed only when it is preempted, because nobody else can
ask for them. Where every prompt is asked twice, each block is hashed, looked up and found again.
The best of three runs.
"""

from __future__ import annotations

import resource
import time
from dataclasses import replace

import numpy as np

import ledgerkit as lk
from ledgerkit._refs import resolve
from ledgerkit._simulate.prepare import plan_cache, prepare
from ledgerkit._simulate.run import run
from ledgerkit._simulate.scheduler import Scheduler
from ledgerkit.costs.table import CostTable, build
from ledgerkit.kernels import serving

REQUESTS = 20_000
SETTINGS: dict[str, dict[str, object]] = {
    "all on": {},
    "all on, a cache of 60,000 tokens": {"cache_tokens": 60_000},
    "all on, every prompt asked twice": {},
    "all on, 512 of the 1,024 tokens shared by all": {},
    "without prefix cache": {"prefix_cache": False},
}


def loop_of(name: str, clients: int) -> lk.Arrivals:
    """Requests of a row of the table."""
    shared = 512 if "shared" in name else 0
    loop = lk.Arrivals.closed_loop(clients, requests=REQUESTS, prompt_tokens=1024,
                                   output_tokens=256, shared_prefix_tokens=shared)  # fmt: skip
    if "twice" in name:
        # the client's next question is the same: half of the contents are those of the round before
        again = loop.segment_ids.reshape(-1, 1).copy()
        rows = np.arange(REQUESTS)
        odd = rows // clients % 2 == 1
        again[odd] = again[rows[odd] - clients]
        loop = replace(loop, segment_ids=again.reshape(-1))
    return loop


def measure(table: CostTable, name: str, clients: int) -> tuple[int, int, float]:
    """(iterations, preemptions, processor seconds) of the best of three runs."""
    how = Scheduler(**SETTINGS[name]).filled(table)
    loop = loop_of(name, clients)
    best = float("inf")
    for _ in range(3):
        arrays = prepare(table, how, plan_cache(table, how, 1280), loop)
        started = time.process_time()
        run(arrays, None)
        best = min(best, time.process_time() - started)
    counters = arrays.counters
    return int(counters[serving.N_STEPS]), int(counters[serving.N_PREEMPTED]), best


def main() -> None:
    """Print the table."""
    model, hardware, layout, profile, efficiencies = resolve(
        "llama-3.1-8b", "h100-sxm-80gb", lk.Deployment()
    )
    table = build(model, layout, hardware, efficiencies, profile)
    measure(table, "all on", 1)  # compiles, or reads what was compiled
    print("| settings | clients | iterations | preemptions | M iterations/s | requests/s |")
    print("|---|---:|---:|---:|---:|---:|")
    for name in SETTINGS:
        for clients in (8, 16, 32, 64):
            steps, preempted, seconds = measure(table, name, clients)
            print(f"| {name} | {clients} | {steps:,} | {preempted:,} | {steps / seconds / 1e6:.2f} "
                  f"| {REQUESTS / seconds:,.0f} |", flush=True)  # fmt: skip
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"\nPeak memory {peak:,.0f} MB.")


if __name__ == "__main__":
    main()
