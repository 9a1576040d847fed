"""The one place that decides how kernels are compiled, and where compiled code is kept.

A kernel is one source with two tiers. ``compiled`` is what everything with many points runs.
``plain`` is the same source as ordinary Python on lists of floats, equal to the last bit: loading
numba takes most of a second, so a single point is sooner interpreted than compiled code is loaded.

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
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property, update_wrapper
from pathlib import Path
from types import FunctionType
from typing import Any, Generic, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")

_ONE_AT_A_TIME = threading.RLock()
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
def _numba_cache_in(directory: Path | None) -> Iterator[None]:
    """Numba reads its cache directory when a function is decorated: ours only, for that moment."""
    from numba import config  # heavy

    settings: Any = config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = str(directory) if directory else before
    try:
        yield
    finally:
        settings.CACHE_DIR = before


class _Lists:
    """What kernels ask of numpy, for the plain tier: arrays are nested lists of floats."""

    @staticmethod
    def empty(shape: int | tuple[int, int]) -> list[Any]:
        if isinstance(shape, int):
            return [0.0] * shape
        return [[0.0] * shape[1] for _ in range(shape[0])]


class Kernel(Generic[P, R]):
    """A function of numbers and arrays, in its two tiers."""

    def __init__(self, function: Callable[P, R]) -> None:
        update_wrapper(self, function)
        self._function = cast("FunctionType", function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the compiled tier."""
        return self.compiled(*args, **kwargs)

    @property
    def loaded(self) -> bool:
        """Whether the compiled tier has been asked for in this process."""
        return "_compiled" in self.__dict__

    @property
    def compiled(self) -> Callable[P, R]:
        """Serial, nogil, cached; division by zero gives infinity as in numpy."""
        with _ONE_AT_A_TIME:
            return self._compiled

    @cached_property
    def _compiled(self) -> Callable[P, R]:
        from numba import njit  # heavy

        # no kernel is handed to C, and leaving those wrappers out saves a tenth of the compile time
        options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
        directory = cache_directory()
        function = self._with_globals(lambda kernel: kernel.compiled)
        with _numba_cache_in(directory):
            compiled = njit(cache=directory is not None, **options)(function)
        return cast("Callable[P, R]", compiled)

    @cached_property
    def plain(self) -> Callable[P, R]:
        """Ordinary Python; arrays are nested lists of floats, and calls stay in this tier."""
        return self._with_globals(lambda kernel: kernel.plain, np=_Lists)

    def _with_globals(
        self, tier: Callable[[Kernel[..., Any]], Any], **others: Any
    ) -> Callable[P, R]:
        """Copy the function, its kernels replaced by those of one tier."""
        own = self._function
        used = {name: own.__globals__[name] for name in own.__code__.co_names
                if name in own.__globals__}  # fmt: skip
        tiered = {k: tier(v) if isinstance(v, Kernel) else v for k, v in used.items()}
        base = {"__name__": own.__module__, "__builtins__": own.__globals__["__builtins__"]}
        copy = FunctionType(own.__code__, base | tiered | others, own.__name__, own.__defaults__)
        copy.__qualname__, copy.__module__ = own.__qualname__, own.__module__
        copy.__annotations__, copy.__kwdefaults__ = own.__annotations__, own.__kwdefaults__
        return cast("Callable[P, R]", copy)


def kernel(function: Callable[P, R]) -> Kernel[P, R]:
    """Make a kernel of a function."""
    return Kernel(function)
