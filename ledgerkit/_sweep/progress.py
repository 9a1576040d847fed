"""Progress of a long run, in a notebook or on a terminal."""

from __future__ import annotations

import sys
from typing import Any

from ledgerkit import text
from ledgerkit._sweep.run import Progress

_QUIET_S = 1.0
"""Short runs show nothing."""


class Display:
    """Writes one line that changes: HTML in a notebook, standard error on a terminal."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._shown_s = 0.0
        self._wrote = False

    def __call__(self, progress: Progress) -> None:
        """Show the state, at most twice a second."""
        if progress.elapsed_s < _QUIET_S or progress.elapsed_s - self._shown_s < 0.5:
            return
        self._shown_s = progress.elapsed_s
        self.say(describe(progress))

    def say(self, line: str) -> None:
        """Show a line in place of the last one."""
        if _in_notebook():
            self._show(line)
        elif sys.stderr.isatty():
            sys.stderr.write(f"\r{line}\x1b[K")
            sys.stderr.flush()
            self._wrote = True

    def _show(self, line: str) -> None:
        from IPython.display import display

        bundle = {"text/plain": line}
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(bundle, raw=True)

    def close(self) -> None:
        """End the line."""
        if self._wrote:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)


def describe(progress: Progress, language: str | None = None) -> str:
    """Put progress in words: share, points, rate, time that is left."""
    rest = progress.remaining_s
    return text.get(
        "sweep.progress", language, share=f"{progress.fraction:.0%}",
        points=f"{progress.points:,}", rate=f"{progress.points_per_s:,.0f}",
        rest="?" if rest == float("inf") else f"{rest:.0f} s",
    )  # fmt: skip


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and getattr(shell, "kernel", None) is not None
