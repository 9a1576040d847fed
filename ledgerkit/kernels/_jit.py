"""The one place that decides how kernels are compiled.

Serial and ``nogil``: callers run chunks in threads, which is safe in every notebook front end,
while numba's own thread pool aborts the process when two threads enter it. No fastmath: sums keep
their order and infinities stay infinities. The disk cache is keyed by the *content of one file*
and does not see changes in imported helpers, so every kernel lives in the same file as the
helpers it calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from numba import njit

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel: serial, nogil, cached, division by zero gives infinity as in numpy."""
    compiled: Any = njit(nogil=True, cache=True, error_model="numpy")(function)
    return cast("Callable[P, R]", compiled)
