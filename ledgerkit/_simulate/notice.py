"""A word on the first run after an installation, which compiles for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ledgerkit import text
from ledgerkit._sweep.progress import Display
from ledgerkit.kernels import simulator
from ledgerkit.kernels._jit import cache_directory


def is_cold() -> bool:
    """Whether the simulator has to be compiled: not in this process yet, and not kept on disk."""
    if simulator.run.loaded:
        return False
    directory = cache_directory()
    return directory is None or not any(directory.rglob("simulator.run-*.nbc"))


@contextmanager
def told_if_cold(*, silent: bool) -> Iterator[None]:
    """Say that kernels are compiled while they are; ``silent`` where the caller shows progress."""
    if silent or not is_cold():
        yield
        return
    shown = Display()
    shown.say(text.get("simulate.compiling"))
    try:
        yield
    finally:
        shown.close()
