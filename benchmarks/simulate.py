"""Iterations per second of ``lk.simulate``, in processor time, as a Markdown table.

Llama-3.1-8B on one H100, prompts of 1,024 tokens, answers of 256, a closed loop; prefix cache,
chunked prefill and preemption on, except where the table says otherwise. Every prompt is different,
so that each of its blocks is hashed, looked up, taken and given back. The best of three runs.
"""

from __future__ import annotations

import resource
import time

import ledgerkit as lk
from ledgerkit._refs import resolve
from ledgerkit._simulate.prepare import plan_cache, prepare
from ledgerkit._simulate.run import run
from ledgerkit._simulate.scheduler import Scheduler
from ledgerkit.costs.table import build
from ledgerkit.kernels import serving

REQUESTS = 20_000
SETTINGS = {
    "all on": {},
    "all on, a cache of 60,000 tokens": {"cache_tokens": 60_000},
    "without prefix cache": {"prefix_cache": False},
}


def measure(table: object, settings: dict[str, object], clients: int) -> tuple[int, int, float]:
    """(iterations, preemptions, processor seconds) of the best of three runs."""
    how = Scheduler(**settings).filled(table)
    loop = lk.Arrivals.closed_loop(clients, requests=REQUESTS, prompt_tokens=1024,
                                   output_tokens=256)  # fmt: skip
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
    measure(table, {}, 1)  # compiles, or reads what was compiled
    print("| settings | clients | iterations | preemptions | M iterations/s | requests/s |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, settings in SETTINGS.items():
        for clients in (8, 16, 32, 64):
            steps, preempted, seconds = measure(table, settings, clients)
            print(f"| {name} | {clients} | {steps:,} | {preempted:,} | {steps / seconds / 1e6:.2f} "
                  f"| {REQUESTS / seconds:,.0f} |", flush=True)  # fmt: skip
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"\nPeak memory {peak:,.0f} MB.")


if __name__ == "__main__":
    main()
