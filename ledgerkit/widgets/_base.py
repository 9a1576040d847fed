"""What all widgets share: a chart that needs no network, a place for errors, one lock.

Callbacks may run on the main thread or on a subshell's (JupyterLab sends comms over subshells), so
that a widget serializes its own redraws and always draws the newest state.
"""

from __future__ import annotations

import html
import threading
from collections.abc import Iterable
from typing import Any

import altair as alt
import ipywidgets as w
import traitlets as t

from ledgerkit.errors import LedgerError
from ledgerkit.text import check_language, get, get_language

LANGUAGES = ("zh", "en")
THEMES = ("article", "dark")
_OFFLINE = threading.Lock()
_offline_ready = False


def offline_chart(chart: alt.LayerChart) -> alt.JupyterChart:
    """Wrap a chart in a Jupyter widget that carries its own renderer.

    Altair's default fetches the renderer from a content network and stays blank without one.
    """
    global _offline_ready  # noqa: PLW0603  # Altair keeps the renderer on the class, once
    with _OFFLINE:
        if not _offline_ready:
            alt.JupyterChart.enable_offline()
            _offline_ready = True
    return alt.JupyterChart(
        chart, debounce_wait=10, embed_options={"renderer": "svg", "actions": False}
    )


class Panel(w.VBox):
    """A widget with a language, a theme, a message line and serialized redraws."""

    language = t.Enum(LANGUAGES, default_value="en", help="zh or en").tag(sync=False)
    theme = t.Enum(THEMES, default_value="article", help="article or dark").tag(sync=False)
    error = t.Unicode("", help="Message of the last problem; empty when all is well.")

    def __init__(self, *, language: str | None, theme: str = "article") -> None:
        super().__init__()
        self._lock = threading.RLock()
        self._wanted = 0
        self._drawn = 0
        self.set_trait("language", check_language(language or get_language()))
        self.set_trait("theme", theme)
        self._message = w.HTML()
        self.add_class("ledgerkit")

    def text(self, key: str, **fields: object) -> str:
        """Return a string of the tables in the widget's language."""
        return get(key, self.language, **fields)

    def _refresh(self, *_: Any) -> None:
        """Redraw with the newest state; changes that arrive meanwhile are drawn once."""
        self._wanted += 1
        wanted = self._wanted
        with self._lock:
            if wanted <= self._drawn:
                return
            self._drawn = self._wanted
            try:
                self._draw()
            except LedgerError as error:
                self._show_error(str(error))
            except Exception as error:  # noqa: BLE001  # a silent callback would freeze the figure
                self._show_error(f"{type(error).__name__}: {error}")
            else:
                self._show_error("")

    def _draw(self) -> None:
        raise NotImplementedError

    def _show_error(self, message: str) -> None:
        self.error = message
        if not message:
            self._message.value = ""
            return
        note = self.text("widget.not_updated")
        self._message.value = (
            '<div role="alert" class="ledgerkit-error" style="border-left:4px solid #A3191F;'
            'padding:6px 10px;line-height:1.4">'
            f"<b>{html.escape(note)}</b> {html.escape(message)}</div>"
        )


def select(
    options: Iterable[tuple[str, Any]], value: Any, *, label: str, tooltip: str = ""
) -> w.Dropdown:
    """Build a labelled drop-down list."""
    return w.Dropdown(
        options=list(options), value=value, description=label, tooltip=tooltip or label,
        layout=w.Layout(width="auto"), style={"description_width": "92px"},
    )  # fmt: skip


def steps(options: Iterable[tuple[str, int]], value: int, *, label: str) -> w.SelectionSlider:
    """Build a slider over listed values, its value shown at the right."""
    listed = list(options)
    nearest = min((v for _, v in listed), key=lambda v: abs(v - value))
    return w.SelectionSlider(
        options=listed, value=nearest, description=label, continuous_update=True,
        layout=w.Layout(width="auto"), style={"description_width": "92px"},
    )  # fmt: skip
