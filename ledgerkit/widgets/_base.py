"""What all widgets share: header with buttons, a figure, a place for errors, one redraw at a time.

Callbacks of the page may run on the main thread or on a subshell's (JupyterLab sends comms over
subshells) and must return at once; so they only ask for a redraw, and a thread draws the newest
state. A trait that Python sets is drawn before the assignment returns.
"""

from __future__ import annotations

import html
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ipywidgets as w
import traitlets as t

from ledgerkit.charts import save_figure
from ledgerkit.errors import LedgerError
from ledgerkit.text import check_language, get, get_language
from ledgerkit.widgets._figure import Figure
from ledgerkit.widgets._style import style_sheet
from ledgerkit.widgets._toolbar import Toolbar

LANGUAGES = ("zh", "en")
THEMES = ("article", "dark")
_DRAWERS = ThreadPoolExecutor(2, thread_name_prefix="ledgerkit-widgets")


class Panel(w.VBox):
    """A widget with a language, a theme, a figure with its code, and serialized redraws.

    A subclass fills ``_side`` and ``_detail`` in ``_build`` and calls ``_show`` in ``_draw``.
    """

    language = t.Enum(LANGUAGES, default_value="en", help="zh or en").tag(sync=False)
    theme = t.Enum(THEMES, default_value="article", help="article or dark").tag(sync=False)
    error = t.Unicode("", help="Message of the last problem; empty when all is well.")
    code = t.Unicode("", help="Python that recreates the view.")

    def __init__(self, name: str, *, language: str | None, theme: str, brush: str = "") -> None:
        super().__init__()
        self._name = name
        self._lock = threading.RLock()
        self._by_hand = threading.local()
        self._wanted = self._drawn = 0
        self._asked = self._closed = False
        self._chart: Any = None
        self._frames: dict[str, Any] = {}
        self.set_trait("language", check_language(language or get_language()))
        self.set_trait("theme", theme)
        self._toolbar = Toolbar(self._save_later)
        self._figure = Figure(brush=brush)
        self._figure.observe(self._renderer_failed, names="problem")
        self._title, self._message, self._python = w.HTML(), w.HTML(), w.HTML()
        self._side = _box("ledgerkit-side")
        self._stage = _box("ledgerkit-stage", self._figure)
        self._detail = _box("ledgerkit-detail", self._python)
        self._languages = _toggles([("中文", "zh"), ("English", "en")], self.language, "language")
        self._themes = _toggles([("☀", "article"), ("☾", "dark")], self.theme, "theme")
        self._languages.observe(self._hand("language"), names="value")
        self._themes.observe(self._hand("theme"), names="value")
        tools = w.HBox([self._toolbar, self._themes, self._languages])
        tools.add_class("ledgerkit-tools")
        head = w.HBox([self._title, tools])
        head.add_class("ledgerkit-head")
        body = _box("ledgerkit-body", self._side, self._stage, self._detail)
        panel = _box("ledgerkit-panel", w.HTML(style_sheet()), head, self._message, body)
        self.children = (panel,)
        self.add_class("ledgerkit")
        self._dress()

    # what subclasses give -----------------------------------------------------------------------

    def _build(self) -> None:
        """Make the controls, in the widget's language."""
        raise NotImplementedError

    def _draw(self) -> None:
        """Compute and ``_show`` what the traits say."""
        raise NotImplementedError

    # what they use ------------------------------------------------------------------------------

    def text(self, key: str, **fields: object) -> str:
        """Return a string of the tables in the widget's language.

        Parameters
        ----------
        key : str
            Key of a table of ``ledgerkit.text``.
        **fields : object
            Values of its fields.
        """
        return get(key, self.language, **fields)

    @property
    def chart(self) -> Any:
        """The figure that is shown, as an Altair chart; None where there is none yet."""
        if isinstance(self._chart, dict):
            from ledgerkit.charts import LedgerChart  # heavy: it loads Altair

            self._chart = LedgerChart(**self._chart)
        return self._chart

    def save(self, path: str | Path, **options: Any) -> Path:
        """Write the figure that is shown to a file; options as in ``lk.save_figure``.

        Parameters
        ----------
        path : str or Path
            Its suffix names the format.
        **options : object
            ``scale``, ``source`` ...

        Returns
        -------
        Path

        Raises
        ------
        LedgerError
            Nothing is shown yet.
        """
        if self._chart is None:
            raise LedgerError("there is no figure to save yet", fix="let the widget draw one first")
        return save_figure(_with_data(self.chart, self._frames), path, **options)

    def close(self) -> None:
        """Close the widget and everything in it."""
        if getattr(self, "_closed", True):
            return
        self._closed = True
        dispose(self.children)
        self.layout.close()
        super().close()

    def _show(self, chart: Any, code: str, **frames: Any) -> None:
        """Show a chart and the code that makes it; frames are its data, where it has none.

        The chart may be a specification: painting does not wait for Altair.
        """
        self._chart, self._frames = chart, frames
        self._figure.show(chart)
        self._toolbar.code, self._toolbar.drawn = code, chart is not None
        summary = html.escape(self.text("widget.python"))
        self._python.value = (
            f"<details><summary>{summary}</summary><pre>{html.escape(code)}</pre></details>"
            if code else ""
        )  # fmt: skip
        self.code = code  # last: who waits for it finds the rest done

    def _hand(self, name: str, unlisted: dict[Any, Any] | None = None) -> Callable[[Any], None]:
        """Return a callback that sets a trait from a control and leaves the drawing to a thread."""
        meaning = unlisted or {}

        def moved(change: dict[str, Any]) -> None:
            with self._hands_on():
                setattr(self, name, meaning.get(change["new"], change["new"]))

        return moved

    @contextmanager
    def _hands_on(self) -> Iterator[None]:
        """Inside, redraws are left to a thread and problems are shown, because a reader acts."""
        before = getattr(self._by_hand, "now", False)
        self._by_hand.now = True
        try:
            yield
        except Exception as error:  # noqa: BLE001  # a silent callback would freeze the figure
            self._show_error(error)
        finally:
            self._by_hand.now = before

    def _refresh(self, *_: Any) -> None:
        """Draw the newest state: at once, or in a thread when a reader's hand asks."""
        self._wanted += 1
        if getattr(self._by_hand, "now", False):
            if not self._asked:
                self._asked = True
                _DRAWERS.submit(self._catch_up)
            return
        self._catch_up()

    def _catch_up(self) -> None:
        with self._lock:
            self._asked = False
            wanted = self._wanted
            if wanted <= self._drawn or self._closed:
                return
            self._drawn = wanted
            try:
                self._draw()
            except Exception as error:  # noqa: BLE001  # a silent callback would freeze the figure
                self._show_error(error)
            else:
                self._show_error(None)

    def _show_error(self, error: Exception | None) -> None:
        if error is None:
            self.error = self._message.value = ""
            self._stage.remove_class("ledgerkit-stale")
            return
        plain = isinstance(error, LedgerError)
        self.error = str(error) if plain else f"{type(error).__name__}: {error}"
        note = self.text("widget.not_updated")
        self._stage.add_class("ledgerkit-stale")
        self._message.value = (
            f'<div role="alert" class="ledgerkit-error"><b>{html.escape(note)}</b> '
            f"{html.escape(self.error)}</div>"
        )

    def _show_notice(self, words: str) -> None:
        """Say something about the figure that is shown; the next redraw takes it away."""
        self.error = words
        self._message.value = (
            f'<div role="alert" class="ledgerkit-error">{html.escape(words)}</div>' if words else ""
        )

    def _renderer_failed(self, change: dict[str, Any]) -> None:
        if change["new"]:
            self._show_error(LedgerError(self.text("widget.error", message=change["new"])))

    # header -------------------------------------------------------------------------------------

    def _dress(self) -> None:
        """Words and colours of the header."""
        for name in THEMES:
            (self.add_class if name == self.theme else self.remove_class)(f"ledgerkit-{name}")
        title = self.text(f"widget.{self._name}.title")
        self._title.value = f"<h3>{html.escape(title)}</h3>"
        self._toolbar.labels = {
            "copy": self.text("widget.copy_python"), "save": self.text("widget.save_figure"),
            "format": self.text("widget.format"), "copied": self.text("widget.copied"),
            "uncopied": self.text("widget.uncopied"), "low": self.text("widget.low"),
            "high": self.text("widget.high"), "link": self.text("widget.copy_link"),
        }  # fmt: skip
        light, dark = (self.text(f"widget.theme.{name}") for name in ("light", "dark"))
        self._themes.tooltips = [light, dark]
        self._languages.value, self._themes.value = self.language, self.theme

    @t.observe("language", "theme")
    def _redress(self, change: dict[str, Any]) -> None:
        if not self._side_built():
            return
        self._dress()
        if change["name"] == "language":
            old = self._side.children
            self._build()
            dispose([child for child in old if child not in self._side.children])
        self._refresh()

    def _side_built(self) -> bool:
        return hasattr(self, "_side") and bool(self._side.children)

    def _save_later(self, kind: str) -> None:
        _DRAWERS.submit(self._save_now, kind)

    def _save_now(self, kind: str) -> None:
        name = f"ledgerkit-{self._name}.{kind}"
        try:
            with tempfile.TemporaryDirectory() as directory:
                content = self.save(Path(directory) / name).read_bytes()
        except Exception as error:  # noqa: BLE001  # runs in a thread: shown, not raised
            self._show_error(error)
            return
        self._toolbar.hand_over(name, content)


def _with_data(chart: Any, frames: dict[str, Any]) -> Any:
    """The chart with the data that it was drawn from, so that a file of it can be drawn again."""
    if not frames:
        return chart
    from ledgerkit.charts import LedgerChart  # heavy: it loads Altair

    spec = chart.to_dict()
    data = {name: frame.to_dict(as_series=False) for name, frame in frames.items()}
    facts = spec["usermeta"]["ledgerkit"] | {"data": data}
    return LedgerChart(**spec | {"usermeta": spec["usermeta"] | {"ledgerkit": facts}})


def dispose(widgets: Iterable[w.Widget]) -> None:
    """Close widgets with all that they hold; ipywidgets keeps what is not closed for ever."""
    for one in widgets:
        dispose(getattr(one, "children", ()))
        for name in ("layout", "style"):
            held = getattr(one, name, None)
            if isinstance(held, w.Widget):
                held.close()
        one.close()


def _box(name: str, *children: w.Widget) -> w.VBox:
    box = w.VBox(list(children))
    box.add_class(name)
    return box


def _toggles(options: list[tuple[str, str]], value: str, name: str) -> w.ToggleButtons:
    toggles = w.ToggleButtons(options=options, value=value, style={"button_width": "auto"})
    toggles.add_class(f"ledgerkit-{name}")
    return toggles


def heading(words: str) -> w.HTML:
    """Build the heading of a group of controls."""
    return w.HTML(f"<h4>{html.escape(words)}</h4>")


def select(
    options: Iterable[tuple[str, Any]], value: Any, *, label: str, long: bool = False
) -> w.Dropdown:
    """Build a labelled drop-down list; the label of long options leaves them its room."""
    return w.Dropdown(
        options=list(options), value=value, description=label, tooltip=label,
        layout=w.Layout(width="auto"), style={"description_width": "52px" if long else "88px"},
    )  # fmt: skip


def steps(options: Iterable[tuple[str, int]], value: int, *, label: str) -> w.SelectionSlider:
    """Build a slider over listed values, one of them chosen and shown at the right."""
    return w.SelectionSlider(
        options=list(options), value=value, description=label, tooltip=label,
        continuous_update=True, layout=w.Layout(width="auto"),
        style={"description_width": "88px"},
    )  # fmt: skip
