"""Measure this machine's memory bandwidth and matrix rate, as a device that predictions can use."""

from __future__ import annotations

import os
import platform
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ledgerkit.errors import LoadTestError
from ledgerkit.loadtest._inputs import positive
from ledgerkit.spec.hardware import Hardware

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["profile_local"]

_FAR_BEYOND_CACHES = 1 << 28  # bytes of each of two arrays
_MATRIX = 1024
_LIMIT_FILE = Path("/sys/fs/cgroup/memory.max")


def profile_local(
    *,
    threads: int | None = None,
    seconds: float = 2.0,
    array_bytes: int = _FAR_BEYOND_CACHES,
    slug: str = "local-cpu",
) -> Hardware:
    """Measure the CPU of this machine.

    The bandwidth is that of reading two arrays far larger than the caches, on all threads; the
    matrix rate that of the linked BLAS in fp32. Both are the best of several rounds: a machine that
    is busy with other things will show less.

    Parameters
    ----------
    threads : int, optional
        Threads that read memory; default: the CPUs that this process may use.
    seconds : float
        Time for each of the two measurements.
    array_bytes : int
        Size of each of two arrays; must be far beyond the caches.
    slug : str
        Name of the device.

    Returns
    -------
    Hardware
        With measured, not nominal, rates; memory is what this process may use.

    Raises
    ------
    LoadTestError
        A number makes no sense, or the memory of this machine cannot be read.

    Examples
    --------
    >>> device = profile_local(seconds=0.05, array_bytes=1 << 22)
    >>> device.slug, device.memory_bytes_per_s > 1e8, device.peaks["fp32"] > 1e8
    ('local-cpu', True, True)
    """
    many = threads if threads is not None else _cpus()
    seconds = positive("seconds", seconds)
    for name, value, least in (("threads", many, 1), ("array_bytes", array_bytes, 1 << 20)):
        if type(value) is not int or value < least:
            raise LoadTestError(
                f"{name} must be a whole number, {least} or more",
                given=value,
                allowed="whole numbers from that on",
            )
    bandwidth, rounds = _read_bandwidth(many, seconds, array_bytes)
    rate = _matrix_rate(seconds)
    return Hardware(
        slug=slug,
        vendor=platform.machine() or "unknown",
        family="cpu",
        memory_bytes=_memory_bytes(),
        memory_bytes_per_s=bandwidth,
        peak_flop_per_s={"fp32": rate},
        source="measured by lk.loadtest.profile_local",
        confidence="measured",
        notes=f"{many} threads, best of {rounds} rounds over 2 arrays of {array_bytes} B",
    )


def _cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _best(work: Callable[[], object], seconds: float) -> tuple[float, int]:
    """Shortest time of a round, of at least three, and how many there were."""
    work()
    best, rounds = float("inf"), 0
    end = time.perf_counter() + seconds
    while rounds < 3 or time.perf_counter() < end:
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
        rounds += 1
    return best, rounds


def _read_bandwidth(threads: int, seconds: float, array_bytes: int) -> tuple[float, int]:
    size = max(array_bytes // 4 // threads, 1)
    pairs = [(np.ones(size, np.float32), np.ones(size, np.float32)) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:

        def work() -> None:  # a dot product reads both arrays once, and numpy lets threads run
            list(pool.map(lambda pair: float(np.vdot(*pair)), pairs))

        best, rounds = _best(work, seconds)
    return 2.0 * 4.0 * size * threads / best, rounds


def _matrix_rate(seconds: float) -> float:
    a = np.ones((_MATRIX, _MATRIX), np.float32)
    out = np.empty_like(a)
    best, _ = _best(lambda: np.matmul(a, a, out=out), seconds)
    return 2.0 * _MATRIX**3 / best


def _memory_bytes() -> int:
    """Bytes that this process may use: of the machine, or of its control group."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        raise LoadTestError(
            "this system does not tell its memory",
            allowed="systems that tell their memory",
            fix="describe the device as a dict for lk.load_hardware",
        ) from None
    if _LIMIT_FILE.is_file():
        limit = _LIMIT_FILE.read_text().strip()
        if limit.isdigit():
            total = min(total, int(limit))
    return int(total)
