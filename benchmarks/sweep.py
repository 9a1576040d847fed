"""Points per second and peak memory of ``lk.sweep``, as a Markdown table.

Run ``python benchmarks/sweep.py [largest]``: sizes rise from 10^3 to ``largest`` (default 10^8).
Each row is a process of its own; a rate is the best of its repetitions, the first call apart.
DeepSeek-V3 on 8 x H200, both phases, five columns: ttft_s, tpot_s, tokens_per_s,
resident_bytes_device, fits.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time

COLUMNS = ("ttft_s", "tpot_s", "tokens_per_s", "resident_bytes_device", "fits")
FRAME_LIMIT = 10_000_000


def axes(points: int) -> dict[str, object]:
    """Grid of about so many points: concurrency x prompt x output."""
    side = max(1, round((points / 10) ** 0.5))
    return {
        "model": "deepseek-v3", "hardware": "h200-sxm-141gb", "dp_attention": 8, "ep": 8,
        "prompt_tokens": range(1, 1 + 3 * max(1, points // 10 // side), 3),
        "output_tokens": range(64, 704, 64), "concurrency": range(1, side + 1),
    }  # fmt: skip


def measure(kind: str, points: int, threads: int) -> dict[str, float]:
    """Rates of one setting, in this process."""
    import ledgerkit as lk

    def once() -> tuple[float, int]:
        sweep = lk.sweep(**axes(points), threads=threads, progress=False)
        started = time.perf_counter()
        if kind == "frame":
            names = ("concurrency", "prompt_tokens", "output_tokens", *COLUMNS)
            sweep.select(*names).collect(memory_bytes=10**10)
        elif kind == "pareto":
            sweep.pareto("ttft_s", "tokens_per_s")
        else:
            limits = {"tpot_s": 0.05, "ttft_s": 2.0, "fits": "yes"}
            sweep.best("tokens_per_s", subject_to=limits)
        return time.perf_counter() - started, sweep.points

    def timed() -> tuple[float, float, int]:
        cpu = time.process_time()
        seconds, count = once()
        return seconds, time.process_time() - cpu, count

    first_s, cpu_s, count = timed()
    best_s = first_s
    for _ in range(0 if count > 2e8 else 5):
        seconds, cpu, _ = timed()
        best_s, cpu_s = min(best_s, seconds), min(cpu_s, cpu)
    return {
        "points": count, "first_s": first_s, "best_s": best_s, "cpu_s": cpu_s,
        "rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }  # fmt: skip


def separately(kind: str, points: int, threads: int, cache: str | None = None) -> dict[str, float]:
    """Measure in a process of its own."""
    environment = {**os.environ, **({"NUMBA_CACHE_DIR": cache} if cache else {})}
    done = subprocess.run(
        [sys.executable, __file__, "--one", kind, str(points), str(threads)],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    return json.loads(done.stdout)


def main(largest: int) -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as cache:
        cold = separately("pareto", 1_000, 1, cache)
        warm = separately("pareto", 1_000, 1, cache)
    print(f"First reduction of a process: {cold['first_s']:.1f} s with an empty kernel cache, "
          f"{warm['first_s']:.2f} s with a filled one.\n")  # fmt: skip
    print("| result | threads | points | seconds | M points/s | M points/s of processor time "
          "and thread | peak RSS, MB |")  # fmt: skip
    print("|---|---:|---:|---:|---:|---:|---:|")
    for kind in ("frame", "pareto", "best"):
        for threads in (1, 2):
            points = 1_000
            while points <= (min(largest, FRAME_LIMIT) if kind == "frame" else largest):
                got = separately(kind, points, threads)
                rate, per_cpu = got["points"] / got["best_s"], got["points"] / got["cpu_s"]
                print(f"| {kind} | {threads} | {got['points']:,} | {got['best_s']:.4f} "
                      f"| {rate / 1e6:.2f} | {per_cpu / 1e6:.2f} "
                      f"| {got['rss_bytes'] / 1e6:,.0f} |", flush=True)  # fmt: skip
                points *= 10


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
    else:
        main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**8)
