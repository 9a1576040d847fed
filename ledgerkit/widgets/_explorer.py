"""``Explorer``: one deployment, live."""

from __future__ import annotations

from typing import Any

import ipywidgets as w
import traitlets as t

from ledgerkit._compare import compare, device_name
from ledgerkit._ledger import Ledger, ledger
from ledgerkit.catalog.hardware import hardware as hardware_frame
from ledgerkit.catalog.hardware import load_hardware
from ledgerkit.catalog.models import load_model, models
from ledgerkit.errors import LedgerError
from ledgerkit.spec.cache import KV_DTYPES
from ledgerkit.spec.deployment import Deployment, Workload
from ledgerkit.spec.feed_forward import MoeFfn
from ledgerkit.spec.model import Model
from ledgerkit.spec.precision import WEIGHT_DTYPES
from ledgerkit.text import numbers
from ledgerkit.widgets._accounts import (
    account_table,
    booked_accounts,
    explanations,
    key_numbers,
)
from ledgerkit.widgets._base import Panel, dispose, heading, select, steps
from ledgerkit.widgets._code import call, deployment_code, model_code, workload_code

K = 1024
CONTEXTS = tuple(round(K * 2 ** (i / 2) / 64) * 64 for i in range(15))
"""1K to 128K in half octaves, whole pages of 64 tokens."""
CONCURRENCIES = tuple(2**i for i in range(11))
OUTPUTS = tuple(2**i for i in range(6, 14))
PARALLEL = (1, 2, 4, 8, 16, 32)
TRAILS = {"prompt_tokens": tuple(K * 2**i for i in range(8)), "concurrency": CONCURRENCIES[:8]}
AS_CHECKPOINT = "checkpoint"
"""Value of the precision lists that stands for None, which a drop-down list cannot show."""
_SHOWN_KV = tuple(name for name in KV_DTYPES if name not in ("fp32", "q5_0", "q5_1", "q4_1"))
_DEPLOYMENT_FIELDS = ("weights", "experts", "kv_dtype", "tp", "pp", "ep", "dp_attention")
_WORKLOAD_FIELDS = ("prompt_tokens", "concurrency", "output_tokens")
_FIELDS = ("model", "hardware", *_DEPLOYMENT_FIELDS, *_WORKLOAD_FIELDS)


class Explorer(Panel):
    """Controls at the left; triangle, bars, memory and key numbers that follow them.

    Parameters
    ----------
    model : str, Path, dict or Model
        A slug, a path, a config dict or a model.
    hardware : str
        Slug of a device.
    weights, experts, kv_dtype, tp, pp, ep, dp_attention
        As in ``Deployment``. With ``tp=None`` the smallest tensor-parallel width that fits.
    prompt_tokens, output_tokens, concurrency : int
        As in ``Workload``.
    trail : {"prompt_tokens", "concurrency"}
        What the trail in the triangle follows.
    language : {"zh", "en"}, optional
    theme : {"article", "dark"}

    Attributes
    ----------
    ledger : Ledger
        The books of what is shown. The state is in the traits ``model``, ``hardware``, ``tp`` ...;
        setting one redraws.
    code : str
        Python that recreates the view.
    error : str
        Message of the last problem; the last good figure stays.

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

    model = t.Unicode(help="slug of the model")
    hardware = t.Unicode(help="slug of the device")
    weights = t.Unicode(None, allow_none=True, help="storage format; None = as the checkpoint")
    experts = t.Unicode(None, allow_none=True, help="storage format of experts")
    kv_dtype = t.Unicode("bf16", help="cache layout")
    tp = t.Int(1, min=1, help="tensor-parallel ranks")
    pp = t.Int(1, min=1, help="pipeline stages")
    ep = t.Int(1, min=1, help="expert-parallel groups")
    dp_attention = t.Int(1, min=1, help="attention data-parallel ranks")
    prompt_tokens = t.Int(8 * K, min=1, help="tokens of a prompt")
    output_tokens = t.Int(512, min=1, help="tokens of an answer")
    concurrency = t.Int(32, min=1, help="sequences that decode at once")
    trail = t.Enum(tuple(TRAILS), default_value="prompt_tokens", help="axis of the trail")
    account = t.Unicode("", help="account whose time is explained; empty for none")

    def __init__(
        self,
        model: Any = "deepseek-v3",
        hardware: str = "h200-sxm-141gb",
        *,
        tp: int | None = None,
        trail: str = "prompt_tokens",
        language: str | None = None,
        theme: str = "article",
        **state: Any,
    ) -> None:
        super().__init__("explorer", language=language, theme=theme)
        unknown = sorted(set(state) - set(_FIELDS))
        if unknown:
            raise LedgerError("Explorer has no such option", given=unknown,
                              allowed=", ".join(_FIELDS))  # fmt: skip
        first = model if isinstance(model, Model) else load_model(model)
        self._models: dict[str, Model] = {first.slug: first}
        self._references: dict[str, Any] = {first.slug: model}
        device = load_hardware(hardware)
        self.ledger: Ledger | None = None
        self._numbers, self._accounts, self._formula = w.HTML(), w.HTML(), w.HTML()
        self._explainer = w.VBox()
        with self.hold_trait_notifications():
            self.model, self.hardware, self.trail = first.slug, device.slug, trail
            for name, value in state.items():
                self.set_trait(name, value)
            self.tp = tp or self._smallest_tp(first)
        self._build()
        self._refresh()

    # state -----------------------------------------------------------------------------------

    def _model(self) -> Model:
        if self.model not in self._models:
            self._models[self.model] = load_model(self.model)
        return self._models[self.model]

    def _deployment(self, **changes: Any) -> Deployment:
        return Deployment(**({name: getattr(self, name) for name in _DEPLOYMENT_FIELDS} | changes))

    def _workload(self) -> Workload:
        return Workload(**{name: getattr(self, name) for name in _WORKLOAD_FIELDS})

    def _smallest_tp(self, model: Model) -> int:
        """Smallest width that holds the workload; 1 where none does."""
        for width in PARALLEL[:4]:
            try:
                books = ledger(model, self.hardware, self._deployment(tp=width), self._workload())
            except LedgerError:
                continue
            if books.fits == "yes":
                return width
        return 1

    # view ------------------------------------------------------------------------------------

    def _build(self) -> None:
        text = self.text
        dtypes = [(text("widget.as_checkpoint"), AS_CHECKPOINT)]
        dtypes += [(name, name) for name in WEIGHT_DTYPES]
        known = models()
        labels = list(zip(known["name"], known["slug"], strict=True))
        labels += [(m.name, slug) for slug, m in self._models.items() if slug not in known["slug"]]
        devices = [(device_name(slug), slug) for slug in hardware_frame()["slug"]]
        widths = [(str(width), width) for width in PARALLEL]
        outputs = [(numbers.context(v) if v >= K else str(v), v) for v in OUTPUTS]
        trails = [(text(f"widget.trail.{axis}"), axis) for axis in TRAILS]
        lists: dict[str, list[tuple[str, Any]]] = {
            "model": labels, "hardware": devices, "weights": dtypes, "experts": dtypes,
            "kv_dtype": [(name, name) for name in _SHOWN_KV], "tp": widths, "pp": widths[:4],
            "ep": widths, "dp_attention": widths, "trail": trails,
        }  # fmt: skip
        words = {"hardware": "device", "prompt_tokens": "context"}
        self._controls: dict[str, w.ValueWidget] = {
            name: select(
                _offer(options, self._shown(name)), self._shown(name),
                label=text(f"widget.{words.get(name, name)}"),
            )
            for name, options in lists.items()
        }  # fmt: skip
        sliders: dict[str, list[tuple[str, int]]] = {
            "prompt_tokens": [(numbers.context(v), v) for v in CONTEXTS],
            "concurrency": [(str(v), v) for v in CONCURRENCIES], "output_tokens": outputs,
        }  # fmt: skip
        for name, options in sliders.items():
            self._controls[name] = steps(
                options, getattr(self, name), label=text(f"widget.{words.get(name, name)}")
            )
        self._allow_experts()
        for name, control in self._controls.items():
            control.observe(self._hand(name, {AS_CHECKPOINT: None}), names="value")
        groups = (
            ("model", ("model",)), ("machine", ("hardware",)), ("deployment", _DEPLOYMENT_FIELDS),
            ("workload", _WORKLOAD_FIELDS), ("view", ("trail",)),
        )  # fmt: skip
        side: list[w.Widget] = []
        for group, names in groups:
            side += [heading(text(f"widget.group.{group}")), *(self._controls[n] for n in names)]
        self._side.children = tuple(side)
        chooser = select([("", "")], "", label=text("widget.explain_account"))
        chooser.observe(self._hand("account"), names="value")
        old = [one for one in self._explainer.children if isinstance(one, w.Dropdown)]
        self._chooser: w.Dropdown = chooser
        self._explainer.children = (self._numbers, chooser, self._formula, self._python)
        self._detail.children = (self._accounts, self._explainer)
        dispose(old)

    def _shown(self, name: str) -> Any:
        """Value of a trait as its control shows it."""
        value = getattr(self, name)
        return AS_CHECKPOINT if value is None else value

    def _allow_experts(self) -> None:
        moe = any(isinstance(group.ffn, MoeFfn) for group in self._model().groups)
        self._controls["experts"].disabled = self._controls["ep"].disabled = not moe

    @t.observe(*_FIELDS, "trail")
    def _state_changed(self, change: dict[str, Any]) -> None:
        if not hasattr(self, "_controls"):
            return
        control = self._controls[change["name"]]
        shown = self._shown(change["name"])
        if control.value != shown and shown in {value for _, value in control.options}:
            control.value = shown
        if change["name"] == "model":
            self._allow_experts()
        self._refresh()

    @t.observe("account")
    def _explain(self, _change: dict[str, Any]) -> None:
        if self.ledger is not None:
            self._formula.value = explanations(self.ledger, self.account, self.language)

    def _draw(self) -> None:
        books = ledger(self._model(), self.hardware, self._deployment(), self._workload())
        values = TRAILS[self.trail]
        view = compare([books], trail=(self.trail, values))
        chart = view.chart(kind="explorer", language=self.language, theme=self.theme)
        self.ledger = books
        self._show(chart, self._python_code(), table=view.table, entries=view.entries,
                   memory=view.memory)  # fmt: skip
        self._numbers.value = key_numbers(books, self.language)
        self._accounts.value = account_table(books, self.language, self.theme)
        accounts = {account: self.text(f"account.{book}.{account}")
                    for book, account, row in booked_accounts(books) if "time" in row}  # fmt: skip
        options = [(self.text("widget.explain.none"), "")]
        options += [(words, name) for name, words in accounts.items()]
        if tuple(options) != tuple(self._chooser.options):
            kept = self.account if self.account in accounts else ""
            self._chooser.options = options
            self._chooser.value = kept
        self._formula.value = explanations(books, self.account, self.language)

    def _python_code(self) -> str:
        reference = self._references.get(self.model, self.model)
        books = call(
            "lk.ledger",
            [model_code(reference), repr(self.hardware), deployment_code(self._deployment()),
             workload_code(self._workload())],
        )  # fmt: skip
        values = list(TRAILS[self.trail])
        return (
            f"import ledgerkit as lk\n\nbooks = {books}\n"
            f"view = lk.compare([books], trail=({self.trail!r}, {values}))\n"
            f"view.chart(kind='explorer', language={self.language!r}, theme={self.theme!r})\n"
        )


def _offer(options: list[tuple[str, Any]], value: Any) -> list[tuple[str, Any]]:
    """Options with the value among them."""
    listed = {given for _, given in options}
    return options if value in listed else [*options, (str(value), value)]
