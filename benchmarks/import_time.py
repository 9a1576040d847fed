"""Time ``import ledgerkit`` in fresh interpreters, with the interpreter's own start subtracted."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

RUNS = 15


def seconds(code: str) -> list[float]:
    taken = []
    for _ in range(RUNS):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        taken.append(time.perf_counter() - started)
    return taken


def main() -> None:
    start = statistics.median(seconds("pass"))
    full = seconds("import ledgerkit")
    print(f"interpreter start   {start * 1e3:6.1f} ms")
    print(f"import ledgerkit    {(statistics.median(full) - start) * 1e3:6.1f} ms (median)")
    print(f"                    {(max(full) - start) * 1e3:6.1f} ms (slowest of {RUNS})")


if __name__ == "__main__":
    main()
