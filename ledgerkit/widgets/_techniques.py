"""``TechniqueLab``: techniques on and off, what they save, what they cost, where the bill moves."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import ipywidgets as w
import polars as pl
import traitlets as t

from ledgerkit._techniques import Transfer, techniques, transfer
from ledgerkit.errors import LedgerError
from ledgerkit.text import numbers
from ledgerkit.widgets._base import heading, select
from ledgerkit.widgets._code import call
from ledgerkit.widgets._deployment import GROUPS, DeploymentPanel
from ledgerkit.widgets._tables import note_list

FIGURES = ("bars", "triangle", "waterfall")
_ROWS = 9
_WRITTEN: dict[str, Callable[[float], str]] = {
    "s": numbers.duration, "B": numbers.byte_size, "1/s": numbers.rate, "1": numbers.count,
    "USD": lambda value: f"{value:,.3g} USD",
}  # fmt: skip


class TechniqueLab(DeploymentPanel):
    """A stack of techniques on a deployment, as credits, debits and an arrow in the triangle.

    Parameters
    ----------
    model, hardware : str, Path, dict or Model; str
        The deployment before.
    added, removed : sequence of str
        ``id`` of ``lk.techniques()``: put in, in this order, after others were taken out.
    language : {"zh", "en"}, optional
    theme : {"article", "dark"}
    **state : object
        Fields of ``Deployment`` and ``Workload``; ``figure``: ``"bars"``, ``"triangle"`` or
        ``"waterfall"``.

    Attributes
    ----------
    transfer : Transfer or None
        Credits, debits, break-evens.
    error : str
        Why a technique does not go with the model; the last figure stays.

    Raises
    ------
    LedgerError
        An unknown technique, model, device or option.

    Examples
    --------
    >>> lab = TechniqueLab("llama-3.1-8b", "h100-sxm-80gb", added=["kv_quantization"])
    >>> lab.transfer.total("decode", "time")[1] < lab.transfer.total("decode", "time")[0]
    True
    >>> lab.close()
    """

    added = t.List(t.Unicode(), help="techniques that are put in, by id")
    removed = t.List(t.Unicode(), help="techniques that are taken out first, by id")
    figure = t.Enum(FIGURES, default_value="bars", help="which chart is shown")

    GROUPS: ClassVar = (("view", ("figure",)), *GROUPS)

    def __init__(
        self,
        model: Any = "deepseek-v3",
        hardware: str = "h200-sxm-141gb",
        *,
        added: Sequence[str] = ("kv_quantization",),
        removed: Sequence[str] = (),
        language: str | None = None,
        theme: str = "article",
        **state: Any,
    ) -> None:
        super().__init__("lab", model, hardware, state, language=language, theme=theme)
        self.transfer: Transfer | None = None
        self._known = techniques()
        self._net, self._notes = w.HTML(), w.HTML()
        try:
            self._check("can_apply", added)
            self._check("can_remove", removed)
        except LedgerError:
            self.close()
            raise
        self.added, self.removed = list(added), list(removed)
        self._build()
        self._refresh()

    def _offered(self, can: str) -> pl.DataFrame:
        return self._known.filter(pl.col(can), pl.col("kind") != "baseline")

    def _check(self, can: str, given: Sequence[str]) -> None:
        offered = self._offered(can)["id"].to_list()
        unknown = [one for one in given if one not in offered]
        if unknown:
            raise LedgerError("there is no such technique here", given=unknown,
                              allowed=", ".join(offered))  # fmt: skip

    def _own_controls(self) -> dict[str, Any]:
        figures = [(self.text(f"widget.lab.{name}"), name) for name in FIGURES]
        return {
            "figure": select(figures, self.figure, label=self.text("widget.lab.figure"), long=True)
        }

    def _build(self) -> None:
        super()._build()
        lists: list[w.Widget] = []
        self._lists: dict[str, Any] = {}
        for name, can in (("added", "can_apply"), ("removed", "can_remove")):
            label = self.text(f"widget.lab.{name}")
            options = [
                (f"{self.text(f'ledger.short.{ledger}')} · {words}", slug)
                for slug, words, ledger in self._offered(can)
                .select("id", f"name_{self.language}", "ledger")
                .iter_rows()
            ]
            chosen = w.SelectMultiple(
                options=options, value=tuple(getattr(self, name)), rows=_ROWS, tooltip=label,
                layout=w.Layout(width="auto"),
            )  # fmt: skip
            chosen.observe(self._listed(name), names="value")
            self._lists[name] = chosen
            lists += [heading(label), chosen]
        self._side.children = (*lists, *self._side.children)
        self._detail.children = (self._net, self._notes, self._python)
        self._detail.add_class("ledgerkit-wide")

    def _listed(self, name: str) -> Callable[[Any], None]:
        def moved(change: dict[str, Any]) -> None:
            before = getattr(self, name)
            # what was chosen before keeps its place in the stack
            stack = [one for one in before if one in change["new"]]
            with self._hands_on():
                setattr(self, name, stack + [one for one in change["new"] if one not in stack])

        return moved

    @t.observe("added", "removed", "figure")
    def _stack_changed(self, change: dict[str, Any]) -> None:
        if not self._controls:
            return
        name = change["name"]
        if name == "figure":
            self._follow(name)
        elif set(self._lists[name].value) != set(change["new"]):
            self._check("can_apply" if name == "added" else "can_remove", change["new"])
            self._lists[name].value = tuple(change["new"])
        self._refresh()

    def _draw(self) -> None:
        stack: list[Any] = [{"technique": one, "action": "remove"} for one in self.removed]
        stack += self.added
        if not stack:
            self.transfer = None
            self._show(None, "")
            empty = html.escape(self.text("widget.lab.empty"))
            self._net.value, self._notes.value = f"<p>{empty}</p>", ""
            return
        found = transfer(
            stack, model=self._model(), hardware=self.hardware, deployment=self._deployment(),
            workload=self._workload(),
        )  # fmt: skip
        chart = found.chart(self.figure, language=self.language, theme=self.theme)
        self.transfer = found
        names = ("model", "hardware", "deployment", "workload")
        point = [f"{name}={code}" for name, code in zip(names, self._point_code(), strict=True)]
        self._net.value = self._net_table(found)
        self._notes.value = self._remarks(found)
        options = f"language={self.language!r}, theme={self.theme!r}"
        self._show(
            chart,
            "import ledgerkit as lk\n\n"
            f"moved = {call('lk.transfer', [repr(stack), *point])}\n"
            f"moved.chart({self.figure!r}, {options})\n",
        )

    def _net_table(self, found: Transfer) -> str:
        """Before and after, as HTML."""
        text = self.text
        heads = "".join(
            f"<th scope='col'>{html.escape(text(f'widget.lab.{name}'))}</th>"
            for name in ("before", "after", "change")
        )
        rows = []
        for name, unit, before, after in found.net.select(
            "name", "unit", "before", "after"
        ).iter_rows():
            written = _WRITTEN[unit]
            shown = [written(value) if value is not None else "–" for value in (before, after)]
            part = numbers.percent(after / before - 1, signed=True) if before and after else "–"
            cells = "".join(f"<td>{html.escape(one)}</td>" for one in (*shown, part))
            label = html.escape(text(f"widget.lab.net.{name}"))
            rows.append(f"<tr data-key='{name}'><th scope='row'>{label}</th>{cells}</tr>")
        fits = " → ".join(text(f"explorer.fits.{one}") for one in found.fits)
        rows.append(
            f"<tr><th scope='row'>{html.escape(text('widget.memory_device'))}</th>"
            f"<td></td><td></td><td>{html.escape(fits)}</td></tr>"
        )
        return (
            f"<h4>{html.escape(text('widget.lab.net'))}</h4><table><thead><tr><td></td>{heads}"
            f"</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        )

    def _remarks(self, found: Transfer) -> str:
        """Break-even, stated risks and what the counterfactual assumes, as HTML."""
        row = found.summary().row(0, named=True)
        parts = [
            ("note.break_even", row[f"break_even_{self.language}"]),
            ("note.not_booked", row[f"risk_{self.language}"]),
        ]
        words = "".join(
            f"<p><b>{html.escape(self.text(key))}</b> {html.escape(value)}</p>"
            for key, value in parts
            if value
        )
        return words + note_list(found.notes, self.language)
