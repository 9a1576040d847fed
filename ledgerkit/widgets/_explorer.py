"""``Explorer``: one deployment, live."""

from __future__ import annotations

import html
import os
from typing import Any, ClassVar

import ipywidgets as w
import traitlets as t

from ledgerkit._compare import compare
from ledgerkit._ledger import Ledger
from ledgerkit.catalog.models import model_slugs
from ledgerkit.charts.panel import explorer_specification
from ledgerkit.widgets._accounts import (
    account_table,
    booked_accounts,
    explanations,
    key_numbers,
)
from ledgerkit.widgets._base import dispose, select
from ledgerkit.widgets._deployment import FIELDS, GROUPS, TRAILS, DeploymentPanel
from ledgerkit.widgets._link import read_link, write_link


class Explorer(DeploymentPanel):
    """Controls at the left; triangle, bars, memory and key numbers that follow them.

    Parameters
    ----------
    model : str, Path, dict or Model
        A slug, a path, a config dict or a model.
    hardware : str
        Slug of a device.
    language : {"zh", "en"}, optional
    theme : {"article", "dark"}
    **state : object
        ``weights``, ``experts``, ``kv_dtype``, ``tp``, ``pp``, ``ep``, ``dp_attention`` as in
        ``Deployment`` (without ``tp`` the smallest tensor-parallel width that fits),
        ``prompt_tokens``, ``output_tokens``, ``concurrency`` as in ``Workload`` (tokens that are
        not given fit the model's positions), and ``trail``:
        ``"prompt_tokens"`` or ``"concurrency"``, what the trail in the triangle follows.

    Attributes
    ----------
    ledger : Ledger
        The books of what is shown. The state is in the traits ``model``, ``hardware``, ``tp`` ...;
        setting one redraws.
    code : str
        Python that recreates the view.
    error : str
        Message of the last problem; the last good figure stays.

    link : str
        The state as the query of an address; empty for a model that the catalogue lacks, and
        while the controls show what cannot be drawn. A page of Voilà that is made with
        :meth:`from_link` opens with it.

    Raises
    ------
    LedgerError
        An unknown model, device or option.

    Examples
    --------
    >>> explorer = Explorer("llama-3.1-8b", "h100-sxm-80gb", prompt_tokens=8192)
    >>> explorer.concurrency = 8
    >>> explorer.ledger.fits
    'yes'
    >>> explorer.close()
    """

    trail = t.Enum(tuple(TRAILS), default_value="prompt_tokens", help="axis of the trail")
    account = t.Unicode("", help="account whose time is explained; empty for none")

    link = t.Unicode("", help="the state as the query of an address")

    GROUPS: ClassVar = (*GROUPS, ("view", ("trail",)))

    def __init__(
        self,
        model: Any = "deepseek-v3",
        hardware: str = "h200-sxm-141gb",
        *,
        language: str | None = None,
        theme: str = "article",
        **state: Any,
    ) -> None:
        super().__init__("explorer", model, hardware, state, language=language, theme=theme)
        self.ledger: Ledger | None = None
        self._numbers, self._accounts, self._formula = w.HTML(), w.HTML(), w.HTML()
        self._address = w.HTML()
        self._explainer = w.VBox()
        self._build()
        self._refresh()

    @classmethod
    def from_link(cls, query: str | None = None, **defaults: Any) -> Explorer:
        """Open with the state that is in the address of the page.

        What the address says wrongly is told, and the default is shown.

        Parameters
        ----------
        query : str, optional
            By default what Voilà got: ``QUERY_STRING`` of the kernel's environment.
        **defaults : object
            As the class takes them; a link that names a model, a device or a layout takes none of
            the layout from here.

        Returns
        -------
        Explorer

        Examples
        --------
        >>> explorer = Explorer.from_link("?model=qwen3-8b&hardware=l4-24gb&concurrency=4")
        >>> explorer.model, explorer.concurrency
        ('qwen3-8b', 4)
        >>> explorer.close()
        """
        given = os.environ.get("QUERY_STRING", "") if query is None else query
        found = read_link(given, {"model": "deepseek-v3", "hardware": "h200-sxm-141gb"} | defaults)
        made = cls(**found.state)
        problems = found.problems(made.language)
        if problems:
            made._show_notice(" ".join(problems))
        return made

    def _own_controls(self) -> dict[str, Any]:
        trails = [(self.text(f"widget.trail.{axis}"), axis) for axis in TRAILS]
        return {"trail": select(trails, self.trail, label=self.text("widget.trail"))}

    def _build(self) -> None:
        super()._build()
        chooser = select([("", "")], "", label=self.text("widget.explain_account"))
        chooser.observe(self._hand("account"), names="value")
        old = [one for one in self._explainer.children if isinstance(one, w.Dropdown)]
        self._chooser: w.Dropdown = chooser
        self._explainer.children = (
            self._numbers, chooser, self._formula, self._python, self._address,
        )  # fmt: skip
        self._detail.children = (self._accounts, self._explainer)
        dispose(old)

    @t.observe("trail")
    def _trail_changed(self, _change: dict[str, Any]) -> None:
        if self._controls:
            self._follow("trail")
            self._refresh()

    @t.observe("account")
    def _explain(self, _change: dict[str, Any]) -> None:
        if self.ledger is not None:
            self._formula.value = explanations(self.ledger, self.account, self.language)

    def _draw(self) -> None:
        try:
            self._draw_books(self._books())
        except Exception:
            self._hand_out("")  # the old one would open another view than the controls show
            raise

    def _draw_books(self, books: Ledger) -> None:
        values = TRAILS[self.trail]
        view = compare([books], trail=(self.trail, values))
        chart = explorer_specification(
            view.table, view.entries, view.memory, language=self.language, theme=self.theme
        )
        self.ledger = books
        code = (
            f"import ledgerkit as lk\n\nbooks = {self._ledger_code()}\n"
            f"view = lk.compare([books], trail=({self.trail!r}, {list(values)}))\n"
            f"view.chart(kind='explorer', language={self.language!r}, theme={self.theme!r})\n"
        )
        self._show(chart, code, table=view.table, entries=view.entries, memory=view.memory)
        state = {name: getattr(self, name) for name in (*FIELDS, "trail", "language", "theme")}
        self._hand_out(write_link(state) if self.model in model_slugs() else "")
        self._numbers.value = key_numbers(books, self.language)
        self._accounts.value = account_table(books, self.language, self.theme)
        accounts = {
            account: self.text(f"account.{book}.{account}")
            for book, account, row in booked_accounts(books)
            if "time" in row
        }
        options = [(self.text("widget.explain.none"), "")]
        options += [(words, name) for name, words in accounts.items()]
        if tuple(options) != tuple(self._chooser.options):
            kept = self.account if self.account in accounts else ""
            self._chooser.options = options
            self._chooser.value = kept
        self._formula.value = explanations(books, self.account, self.language)

    def _hand_out(self, link: str) -> None:
        """Let all places of the link follow; empty for a model of one's own and after an error."""
        self.link = self._toolbar.link = link
        self._address.value = (
            f"<details><summary>{html.escape(self.text('widget.link'))}</summary>"
            f"<pre data-code>{html.escape(link)}</pre></details>" if link else ""
        )  # fmt: skip
