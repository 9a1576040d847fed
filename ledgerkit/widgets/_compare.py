"""``Compare``: several deployments side by side, one of them at hand."""

from __future__ import annotations

import html
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import ipywidgets as w
import traitlets as t

from ledgerkit._compare import Comparison, compare, device_name
from ledgerkit.errors import LedgerError
from ledgerkit.spec.deployment import Deployment, Workload
from ledgerkit.text import numbers
from ledgerkit.widgets._base import heading, select
from ledgerkit.widgets._code import call, deployment_code, model_code, workload_code
from ledgerkit.widgets._deployment import (
    DEPLOYMENT,
    FIELDS,
    GROUPS,
    TRAILS,
    WORKLOAD,
    DeploymentPanel,
)
from ledgerkit.widgets._tables import note_list

FIGURES = ("triangle", "bars", "memory")
MOST = 6
"""As many as there are colours to tell apart."""
_START: tuple[dict[str, Any], ...] = (
    {"model": "deepseek-v3", "hardware": "h200-sxm-141gb", "tp": 1, "ep": 8, "dp_attention": 8},
    {"model": "kimi-k2.6", "hardware": "h200-sxm-141gb", "tp": 1, "ep": 8, "dp_attention": 8},
    {"model": "gemma-4-26b-a4b", "hardware": "h100-sxm-80gb", "tp": 1},
)


class Compare(DeploymentPanel):
    """Deployments side by side: the selected one follows the controls, all share the workload.

    Parameters
    ----------
    deployments : iterable of dict, optional
        Each with ``model``, ``hardware`` and, if wished, fields of ``Deployment``, at most six.
        Without ``tp`` the smallest tensor-parallel width that fits.
    language : {"zh", "en"}, optional
    theme : {"article", "dark"}
    **state : object
        ``prompt_tokens``, ``output_tokens``, ``concurrency`` of all; ``figure``: ``"triangle"``,
        ``"bars"`` or ``"memory"``; ``trail``: ``"prompt_tokens"`` or ``"concurrency"``.

    Attributes
    ----------
    rows : list of dict
        The deployments; ``pinned`` ones keep their workload and do not change.
    selected : int
        The row that the traits ``model``, ``tp`` ... show and change.
    comparison : Comparison
        What is drawn.

    Raises
    ------
    LedgerError
        An unknown model, device or option, or more than six deployments.

    Examples
    --------
    >>> both = Compare(
    ...     [{"model": slug, "hardware": "h100-sxm-80gb"} for slug in ("llama-3.1-8b", "qwen3-8b")]
    ... )
    >>> both.comparison.labels
    ('Llama 3.1 8B', 'Qwen3 8B')
    >>> both.close()
    """

    trail = t.Enum(tuple(TRAILS), default_value="prompt_tokens", help="axis of the trails")
    figure = t.Enum(FIGURES, default_value="triangle", help="which chart is shown")
    selected = t.Int(0, min=0, help="row that the controls show")
    rows = t.List(t.Dict(), help="deployments side by side")

    GROUPS: ClassVar = (*GROUPS, ("view", ("figure", "trail")))

    def __init__(
        self,
        deployments: Iterable[Mapping[str, Any]] | None = None,
        *,
        language: str | None = None,
        theme: str = "article",
        **state: Any,
    ) -> None:
        given = [dict(one) for one in (_START if deployments is None else deployments)]
        if not 1 <= len(given) <= MOST:
            raise LedgerError("Compare shows a few deployments", given=len(given),
                              allowed=f"1 to {MOST}")  # fmt: skip
        shared = {name: value for name, value in state.items() if name not in DEPLOYMENT}
        first, *others = given
        missing = [one for one in given if not {"model", "hardware"} <= set(one)]
        if missing:
            raise LedgerError("a deployment needs a model and a device", given=missing[0],
                              fix="give 'model' and 'hardware'")  # fmt: skip
        super().__init__(
            "compare", first.pop("model"), first.pop("hardware"), {**shared, **first},
            language=language, theme=theme,
        )  # fmt: skip
        self.comparison: Comparison | None = None
        # of this thread alone: another may draw while a reader chooses
        self._own = threading.local()
        self._table = w.HTML()
        self.rows = [self._row()]
        for one in others:
            self._append(one)
        self._load(0)
        self._build()
        self._refresh()

    # rows ---------------------------------------------------------------------------------------

    def add(self, **deployment: Any) -> None:
        """Add a deployment and select it; without fields a copy of the selected one.

        Parameters
        ----------
        **deployment : object
            ``model``, ``hardware`` and fields of ``Deployment``.

        Raises
        ------
        LedgerError
            There are six already.
        """
        with self._lock:
            self._append(deployment)
        self._refresh()

    def pin(self) -> None:
        """Keep a copy of the selected deployment as it is now, for reference."""
        with self._lock:
            self._store()
            self._check_room()
            self.rows = [*self.rows, {**self.rows[self.selected], "pinned": True}]
        self._refresh()

    def remove(self) -> None:
        """Take the selected deployment away; the last one stays."""
        with self._lock:
            if len(self.rows) == 1:
                return
            self.rows = [row for number, row in enumerate(self.rows) if number != self.selected]
            self._load(min(self.selected, len(self.rows) - 1))
        self._refresh()

    def _append(self, fields: Mapping[str, Any]) -> None:
        self._check_room()
        self._store()
        row = {**self._row(), **fields, "pinned": False}
        unknown = sorted(set(row) - {*FIELDS, "pinned"})
        if unknown:
            raise LedgerError("a deployment has unknown fields", given=unknown,
                              allowed=", ".join(FIELDS))  # fmt: skip
        if "model" in fields:
            row["model"] = self._keep(fields["model"])
            row |= {name: getattr(Deployment(), name) for name in DEPLOYMENT if name not in fields}
        self.rows = [*self.rows, row]
        self._load(len(self.rows) - 1)
        if "model" in fields and "tp" not in fields:
            self.tp = self._smallest_tp()
            self._store()

    def _check_room(self) -> None:
        if len(self.rows) >= MOST:
            raise LedgerError("there is no room for more deployments", given=len(self.rows) + 1,
                              allowed=f"up to {MOST}", fix="remove one")  # fmt: skip

    def _row(self) -> dict[str, Any]:
        return {**{name: getattr(self, name) for name in FIELDS}, "pinned": False}

    def _store(self) -> None:
        """Write the traits into the selected row, and the workload into all that follow it."""
        here = self.rows[self.selected]
        if here.get("pinned"):
            return
        work = {name: getattr(self, name) for name in WORKLOAD}
        rows = [row if row["pinned"] else {**row, **work} for row in self.rows]
        rows[self.selected] = self._row()
        if rows != self.rows:
            self.rows = rows

    def _load(self, number: int) -> None:
        """Show a row in the traits."""
        with self._switching():
            self.selected = number
            with self.hold_trait_notifications():
                for name in FIELDS:
                    self.set_trait(name, self.rows[number][name])

    @contextmanager
    def _switching(self) -> Iterator[None]:
        """Inside, this thread changes what is shown, and no reader does."""
        self._own.switching = True
        try:
            yield
        finally:
            self._own.switching = False

    def _is_switching(self) -> bool:
        return bool(getattr(self._own, "switching", False))

    # view ---------------------------------------------------------------------------------------

    def _own_controls(self) -> dict[str, Any]:
        figures = [(self.text(f"widget.compare.{name}"), name) for name in FIGURES]
        trails = [(self.text(f"widget.trail.{axis}"), axis) for axis in TRAILS]
        return {
            "figure": select(figures, self.figure, label=self.text("widget.compare.figure")),
            "trail": select(trails, self.trail, label=self.text("widget.trail")),
        }

    def _build(self) -> None:
        super()._build()
        self._list: w.Select = w.Select(
            options=[], rows=MOST, description="", layout=w.Layout(width="auto"),
            tooltip=self.text("widget.compare.list"),
        )  # fmt: skip
        self._list.observe(self._chosen, names="value")
        buttons = []
        for name in ("add", "pin", "remove"):
            key = "widget.pin" if name == "pin" else f"widget.compare.{name}"
            button = w.Button(description=self.text(key), layout=w.Layout(width="auto"))
            button.on_click(self._pressed(name))
            buttons.append(button)
        self._side.children = (
            heading(self.text("widget.group.deployments")), self._list, w.HBox(buttons),
            *self._side.children,
        )  # fmt: skip
        self._detail.children = (self._table, self._python)
        self._detail.add_class("ledgerkit-wide")
        self._relist()

    def _pressed(self, name: str) -> Any:
        def act(_button: w.Button) -> None:
            with self._hands_on():
                getattr(self, name)()

        return act

    def _chosen(self, change: dict[str, Any]) -> None:
        if change["new"] is None or change["new"] == self.selected or self._is_switching():
            return
        with self._hands_on(), self._lock:
            self._store()
            self._load(change["new"])
        self._enable()

    def _relist(self) -> None:
        """List the rows as they are."""
        with self._switching():
            options = [(label, number) for number, label in enumerate(self._labels())]
            if tuple(options) != tuple(self._list.options):
                self._list.options = options
            self._list.value = self.selected
        self._enable()

    def _enable(self) -> None:
        """A pinned row is not for changing."""
        pinned = bool(self.rows[self.selected]["pinned"])
        for name in FIELDS:
            self._controls[name].disabled = pinned
        if not pinned:
            self._allow_experts()

    def _labels(self) -> list[str]:
        """Distinct names: of the model, then with the device, then numbered."""
        names = [self._models[row["model"]].name for row in self.rows]
        found: list[str] = []
        for row, name in zip(self.rows, names, strict=True):
            label = self.text("widget.compare.pinned", label=name) if row["pinned"] else name
            if label in found:
                label = f"{label}, {device_name(row['hardware'])}"
            number = 2
            while label in found:
                label, number = f"{label.partition(' #')[0]} #{number}", number + 1
            found.append(label)
        return found

    @t.observe("trail", "figure")
    def _view_changed(self, change: dict[str, Any]) -> None:
        if self._controls:
            self._follow(change["name"])
            self._refresh()

    def _refresh(self, *changes: Any) -> None:
        if not self._is_switching():
            super()._refresh(*changes)

    def _draw(self) -> None:
        self._model()
        self._store()
        self._relist()
        points, sources = [], []
        for label, row in zip(self._labels(), self.rows, strict=True):
            deployment = Deployment(**{name: row[name] for name in DEPLOYMENT})
            workload = Workload(**{name: row[name] for name in WORKLOAD})
            points.append({
                "model": self._models[row["model"]], "hardware": row["hardware"],
                "deployment": deployment, "workload": workload, "label": label,
            })  # fmt: skip
            reference = self._references[row["model"]]
            source = call("dict", [
                f"model={model_code(reference)}", f"hardware={row['hardware']!r}",
                f"deployment={deployment_code(deployment)}",
                f"workload={workload_code(workload)}", f"label={label!r}",
            ])  # fmt: skip
            sources.append(source)
        values = TRAILS[self.trail]
        view = compare(points, trail=(self.trail, values))
        chart = view.chart(kind=self.figure, language=self.language, theme=self.theme)
        self.comparison = view
        made = call(
            "lk.compare",
            [f"[\n{_indented(sources)}]", f"trail=({self.trail!r}, {list(values)})"],
        )
        options = f"language={self.language!r}, theme={self.theme!r}"
        self._show(
            chart,
            f"import ledgerkit as lk\n\nview = {made}\nview.chart(kind={self.figure!r}, "
            f"{options})\n",
        )
        self._table.value = comparison_table(self, view)


def _indented(sources: Iterable[str]) -> str:
    return "".join(f"    {line}\n" for one in sources for line in f"{one},".splitlines())


def comparison_table(panel: Compare, view: Comparison) -> str:
    """Key numbers side by side, as HTML."""
    heads = ("tpot", "ttft", "sequence", "replica", "memory", "seats")
    head = "".join(
        f"<th scope='col'>{html.escape(label)}</th>" for label in view.labels
    )  # fmt: skip
    columns = [
        (
            numbers.duration(books.tpot_s), numbers.duration(books.ttft_s),
            numbers.rate(1.0 / books.tpot_s), numbers.rate(books.tokens_per_s),
            f"{numbers.byte_size(books.resident_bytes_device)} / "
            f"{numbers.byte_size(books.capacity_bytes)}, "
            + panel.text(f"explorer.fits.{books.fits}"),
            numbers.count(books.max_concurrency),
        )
        for books in view.ledgers
    ]  # fmt: skip
    rows = "".join(
        f"<tr data-key='{key}'><th scope='row'>{html.escape(panel.text(f'explorer.{key}'))}</th>"
        + "".join(f"<td>{html.escape(column[place])}</td>" for column in columns)
        + "</tr>"
        for place, key in enumerate(heads)
    )
    return (
        f"<h4>{html.escape(panel.text('widget.key_numbers'))}</h4><table><thead><tr><td></td>{head}"
        f"</tr></thead><tbody>{rows}</tbody></table>{note_list(view.notes, panel.language)}"
    )
