"""Time the first ledger of a process, with a cold and a warm kernel cache, and each further one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

FURTHER = 200

PROCESS = """
import sys, time
started = time.perf_counter()
import ledgerkit as lk
work = [lk.Workload(prompt_tokens=1024 + i, output_tokens=128) for i in range({further} + 1)]
deployment = lk.Deployment(tp=8)
lk.ledger("deepseek-v3", "h200-sxm-141gb", deployment, work[0]).tpot_s
first = time.perf_counter() - started
started = time.perf_counter()
for one in work[1:]:
    lk.ledger("deepseek-v3", "h200-sxm-141gb", deployment, one).tpot_s
print(first, (time.perf_counter() - started) / {further})
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as cache:
        env = os.environ | {"NUMBA_CACHE_DIR": cache}
        for name in ("cold cache", "warm cache"):
            started = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-c", PROCESS.format(further=FURTHER)],
                env=env,
                check=True,
                capture_output=True,
                text=True,
            )
            process = time.perf_counter() - started
            first, further = map(float, done.stdout.split())
            print(
                f"{name}: first ledger {first:.2f} s, imports included; "
                f"each further {further * 1e3:.2f} ms; whole process {process:.2f} s"
            )


if __name__ == "__main__":
    main()
