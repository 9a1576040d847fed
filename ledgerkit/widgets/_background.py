"""Panels whose figure takes a while: a run in a thread, with progress and a cancel button.

A cancel is answered at once, whatever the thread is doing; what it still finds is dropped.
"""

from __future__ import annotations

import html
import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar

import ipywidgets as w
import traitlets as t

from ledgerkit.widgets._base import Panel


class Background(Panel):
    """A panel with a run in the background.

    Subclasses give ``_task``, ``_finish``, ``_progress`` and ``_words``, and place
    ``_run_controls``.
    """

    state = t.Enum(("idle", "running", "cancelled", "done"), default_value="idle", help="the run")

    CANCELLED: ClassVar[type[Exception]]
    """What the task raises when it was told to stop."""

    _token: object = None
    _seconds = 0.0

    # what subclasses give -----------------------------------------------------------------------

    def _task(self, tell: Callable[[Any], bool]) -> Callable[[], Any]:
        """Prepare a run, which calls ``tell`` with its progress and stops when it says False."""
        raise NotImplementedError

    def _finish(self, result: Any) -> None:
        """Keep the result of a run."""
        raise NotImplementedError

    def _progress(self, progress: Any) -> tuple[float, str]:
        """Share that is done, and words for it."""
        raise NotImplementedError

    def _words(self) -> str:
        """What to say of an idle or a finished run."""
        raise NotImplementedError

    # the run ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start a run in the background; one that is under way is cancelled."""
        with self._lock:
            token = object()
            task = self._task(lambda progress: self._tell(token, progress))
            self._token = token
            self._enter("running")
        # a thread of its own: it must not keep redraws waiting, and ends with the run
        threading.Thread(
            target=self._work, args=(token, task), name="ledgerkit-run", daemon=True
        ).start()

    def cancel(self) -> None:
        """Stop the run; the last figure stays."""
        # no lock: a draw may hold it, and a cancel does not wait
        if self.state == "running":
            self._token = None
            self._enter("cancelled")

    def close(self) -> None:
        """Stop the run and close the widget."""
        self._token = None
        super().close()

    def _work(self, token: object, task: Callable[[], Any]) -> None:
        started = time.perf_counter()
        try:
            result = task()
        except self.CANCELLED:
            return
        except Exception as error:  # noqa: BLE001  # runs in a thread: shown, not raised
            with self._lock:
                if token is self._token:
                    self._enter("idle")
                    self._show_error(error)
            return
        with self._lock:
            if token is not self._token or self._closed:
                return
            self._seconds = time.perf_counter() - started
            self._finish(result)
            self._enter("done")
        self._refresh()

    def _tell(self, token: object, progress: Any) -> bool:
        """Show how far the run is; False stops it."""
        if token is not self._token or self._closed:
            return False
        share, words = self._progress(progress)
        self._bar.value, self._status.value = share, html.escape(words)
        return True

    # its controls -------------------------------------------------------------------------------

    def _run_controls(self) -> tuple[w.Widget, ...]:
        """Make the buttons, the bar and the line that says how far the run is."""
        self._start: Any = w.Button(description=self.text("widget.run"), button_style="primary")
        self._stop: Any = w.Button(description=self.text("widget.cancel"))
        for button, act in ((self._start, self.start), (self._stop, self.cancel)):
            button.layout.width = "auto"
            button.on_click(self._pressed(act))
        self._bar: Any = w.FloatProgress(value=0.0, max=1.0, layout=w.Layout(width="auto"))
        self._status: Any = w.HTML()
        self._status.add_class("ledgerkit-status")
        self._enter(self.state)
        return w.HBox([self._start, self._stop]), self._bar, self._status

    def _pressed(self, act: Callable[[], None]) -> Callable[[Any], None]:
        def press(_button: w.Button) -> None:
            with self._hands_on():
                act()

        return press

    def _enter(self, state: str) -> None:
        self.state = state
        running = state == "running"
        self._start.disabled, self._stop.disabled = running, not running
        self._bar.value = 1.0 if state == "done" else 0.0
        self._say()

    def _say(self) -> None:
        """Say what the run is doing, or what it would do."""
        if self.state in ("running", "cancelled"):
            words = self.text(f"widget.run.{self.state}")
        else:
            words = self._words()
        self._status.value = html.escape(words)

    def _outdated(self) -> None:
        """The settings have changed: say what the next run would do."""
        if self.state != "running":
            with self._hands_on():
                self.state = "idle"
                self._say()
                self._show_error(None)
