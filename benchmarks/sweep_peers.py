"""The same grid of decode points of Llama-3.1-8B in ``lk.sweep`` and in other tools, one after the
other in one run, as a Markdown table.

Run ``python benchmarks/sweep_peers.py PEER_PYTHON``, where PEER_PYTHON is the interpreter of an
environment of its own, because the tools pin old versions of shared libraries::

    python -m venv .peers && .peers/bin/pip install llm-analysis servcalc ridgepoint==0.1.2

Rates are per second of processor time of one thread, best of several passes, so that other load on
the machine counts little. ``aiconfigurator`` is measured too where it is installed there. What
cannot be imported is listed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

PROMPTS = tuple(range(128, 8193, 128))
CONCURRENCY = (1, 2, 4, 8, 16, 32, 64)
OUTPUT = 256


def ours() -> dict[str, dict[str, float]]:
    """Rates of ledgerkit: the peers' grid, and one that is large enough to be measured."""
    import ledgerkit as lk

    def rate(concurrency: object, prompts: object) -> tuple[float, float]:
        best_s, points, value = float("inf"), 0, 0.0
        for _ in range(7):
            sweep = lk.sweep(
                model="llama-3.1-8b", hardware="h100-sxm-80gb", prompt_tokens=prompts,
                output_tokens=OUTPUT, concurrency=concurrency, threads=1, progress=False,
            ).select("tpot_s", "tokens_per_s", "resident_bytes_device", "fits")  # fmt: skip
            started = time.process_time()
            frame = sweep.collect()
            best_s = min(best_s, time.process_time() - started)
            points, value = frame.height, frame["tpot_s"][0]
        return points / best_s, value

    small, value = rate(CONCURRENCY, PROMPTS)
    large, _ = rate(range(1, 251), range(1, 8001))
    alone, _ = rate(1, range(1, 100_001))
    return {
        "ledgerkit, the same 448 points": {"per_s": small, "tpot_s": value},
        "ledgerkit, 2 M points of that range": {"per_s": large, "tpot_s": value},
        "ledgerkit, one sequence (100,000 points)": {"per_s": alone, "tpot_s": value},
    }


def main(python: str) -> None:
    """Print the table."""
    runner = Path(__file__).with_name("sweep_peers_runner.py")
    question = {"prompts": PROMPTS, "concurrency": CONCURRENCY, "output": OUTPUT}
    done = subprocess.run(
        [python, str(runner)], input=json.dumps(question), capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    theirs = json.loads(done.stdout.splitlines()[-1])
    mine = ours()
    reference = mine["ledgerkit, 2 M points of that range"]["per_s"]
    alone = mine["ledgerkit, one sequence (100,000 points)"]["per_s"]
    print("| tool | points per second of processor time, 1 thread "
          "| ledgerkit (2 M points, or one sequence) is faster by "
          "| TPOT of the first point, ms |")  # fmt: skip
    print("|---|---:|---:|---:|")
    for name, got in {**mine, **theirs}.items():
        if "missing" in got:
            print(f"| {name} | not measured: {got['missing']} | | |")
            continue
        ratio = ""
        if not name.startswith("ledgerkit"):
            base = alone if got.get("one_sequence") else reference
            ratio = f"{base / got['per_s']:,.0f} x"
        tpot = f"{got['tpot_s'] * 1e3:.2f}" if got.get("tpot_s") else ""
        print(f"| {name} | {got['per_s']:,.0f} | {ratio} | {tpot} |")


if __name__ == "__main__":
    main(sys.argv[1])
