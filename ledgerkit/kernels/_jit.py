"""The one place that decides how kernels are compiled, and where compiled code is kept.

Serial and ``nogil``: callers run chunks in threads, which is safe in every notebook front end,
while numba's own thread pool aborts the process when two threads enter it. No fastmath: sums keep
their order and infinities stay infinities.

Numba's disk cache is keyed by the content of one file and does not see changes in imported helpers.
The cache directory is therefore named after the content of *all* kernel files: an edit in any of
them starts a new directory. It lies below ``NUMBA_CACHE_DIR`` if that is set, else in the user's
cache directory, else (read-only homes) among the temporary files; where nothing can be written,
kernels are compiled in each process.
"""

from __future__ import annotations

import getpass
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba import njit

P = ParamSpec("P")
R = TypeVar("R")

_SOURCES = Path(__file__).resolve().parent


def sources_digest(directory: Path = _SOURCES) -> str:
    """Digest of the names and contents of all kernel files."""
    digest = hashlib.sha256()
    for path in sorted(directory.glob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


@cache
def cache_directory() -> Path | None:
    """Directory for compiled kernels of exactly these sources; None where none is writable."""
    name = f"ledgerkit-{sources_digest()}"
    for parent in _candidates():
        directory = parent / name
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(directory, os.W_OK | os.X_OK):
            return directory
    return None


def _candidates() -> Iterator[Path]:
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        yield Path(given)
        return
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    if base:
        expanded = Path(os.path.expandvars(base))
        with suppress(RuntimeError):  # no home directory
            yield expanded.expanduser() / "ledgerkit"
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in some containers
        user = "user"
    # others must not be able to plant code there
    private = Path(tempfile.gettempdir()) / f"ledgerkit-{user}"
    try:
        private.mkdir(mode=0o700, exist_ok=True)
        owned = sys.platform == "win32" or private.stat().st_uid == os.getuid()
    except OSError:
        return
    if owned and not private.is_symlink():
        yield private


@contextmanager
def _numba_cache_in(directory: Path) -> Iterator[None]:
    """Numba reads its cache directory when a function is decorated: ours only, for that moment."""
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = str(directory)
    try:
        yield
    finally:
        config.CACHE_DIR = before


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel: serial, nogil, cached, division by zero gives infinity as in numpy."""
    directory = cache_directory()
    # no kernel is handed to C, and leaving those wrappers out saves a tenth of the compile time
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    if directory is None:
        compiled: Any = njit(**options)(function)
    else:
        with _numba_cache_in(directory):
            compiled = njit(cache=True, **options)(function)
    return cast("Callable[P, R]", compiled)
