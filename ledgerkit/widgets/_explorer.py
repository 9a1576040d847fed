"""``Explorer``: one deployment, live."""

from __future__ import annotations

import html
from typing import Any

import ipywidgets as w
import traitlets as t

from ledgerkit._compare import compare
from ledgerkit._ledger import Ledger, ledger
from ledgerkit.catalog.hardware import hardware as hardware_frame
from ledgerkit.catalog.hardware import load_hardware
from ledgerkit.catalog.models import load_model, models
from ledgerkit.charts import explorer_panel
from ledgerkit.errors import LedgerError
from ledgerkit.spec.cache import KV_DTYPES
from ledgerkit.spec.deployment import Deployment, Workload
from ledgerkit.spec.feed_forward import MoeFfn
from ledgerkit.spec.model import Model
from ledgerkit.spec.precision import WEIGHT_DTYPES
from ledgerkit.text import numbers
from ledgerkit.widgets._base import LANGUAGES, Panel, offline_chart, select, steps

K = 1024
CONTEXTS = tuple(round(K * 2 ** (i / 2) / 64) * 64 for i in range(15))
"""1K to 128K in half octaves, whole pages of 64 tokens."""
CONCURRENCIES = tuple(2**i for i in range(11))
OUTPUTS = tuple(2**i for i in range(6, 14))
PARALLEL = (1, 2, 4, 8, 16, 32)
TRAIL = tuple(K * 2**i for i in range(8))
AS_CHECKPOINT = "checkpoint"
"""Value of the precision lists that stands for None, which a drop-down list cannot show."""
_SHOWN_KV = tuple(name for name in KV_DTYPES if name not in ("fp32", "q5_0", "q5_1", "q4_1"))
_DEPLOYMENT_FIELDS = ("weights", "experts", "kv_dtype", "tp", "pp", "ep", "dp_attention")
_FIELDS = ("model", "hardware", *_DEPLOYMENT_FIELDS, "prompt_tokens", "output_tokens",
           "concurrency")  # fmt: skip


class Explorer(Panel):
    """Controls at the left; triangle, bars, memory and key numbers that follow them.

    Parameters
    ----------
    model : str or Model
        A slug, a path, a config dict or a model.
    hardware : str
        Slug of a device.
    weights, experts, kv_dtype, tp, pp, ep, dp_attention
        As in ``Deployment``. With ``tp=None`` the smallest tensor-parallel width that fits.
    prompt_tokens, output_tokens, concurrency : int
        As in ``Workload``.
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

    def __init__(
        self,
        model: str | Model | dict[str, Any] = "deepseek-v3",
        hardware: str = "h200-sxm-141gb",
        *,
        tp: int | None = None,
        language: str | None = None,
        theme: str = "article",
        **state: Any,
    ) -> None:
        super().__init__(language=language, theme=theme)
        unknown = sorted(set(state) - set(_FIELDS))
        if unknown:
            raise LedgerError("Explorer has no such option", given=unknown,
                              allowed=", ".join(_FIELDS))  # fmt: skip
        self._models: dict[str, Model] = {}
        first = model if isinstance(model, Model) else load_model(model)
        self._models[first.slug] = first
        device = load_hardware(hardware)
        self.ledger: Ledger | None = None
        self.code = ""
        with self.hold_trait_notifications():
            self.model, self.hardware = first.slug, device.slug
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
        return Workload(
            prompt_tokens=self.prompt_tokens, output_tokens=self.output_tokens,
            concurrency=self.concurrency,
        )  # fmt: skip

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
        devices = [(slug, slug) for slug in hardware_frame()["slug"]]
        widths = [(str(width), width) for width in PARALLEL]
        moe = any(isinstance(group.ffn, MoeFfn) for group in self._model().groups)
        self._controls: dict[str, w.ValueWidget] = {
            "model": select(labels, self.model, label=text("widget.model")),
            "hardware": select(devices, self.hardware, label=text("widget.device")),
            "weights": select(dtypes, self.weights or AS_CHECKPOINT, label=text("widget.weights")),
            "experts": select(dtypes, self.experts or AS_CHECKPOINT, label=text("widget.experts")),
            "kv_dtype": select(
                [(name, name) for name in _SHOWN_KV], self.kv_dtype, label=text("widget.kv_dtype")
            ),
            "tp": select(widths, self.tp, label=text("widget.tp")),
            "pp": select(widths[:4], self.pp, label=text("widget.pp")),
            "ep": select(widths, self.ep, label=text("widget.ep")),
            "dp_attention": select(widths, self.dp_attention, label=text("widget.dp_attention")),
            "prompt_tokens": steps(
                [(numbers.context(v), v) for v in CONTEXTS], self.prompt_tokens,
                label=text("widget.context"),
            ),
            "concurrency": steps(
                [(str(v), v) for v in CONCURRENCIES], self.concurrency,
                label=text("widget.concurrency"),
            ),
            "output_tokens": steps(
                [(numbers.context(v) if v >= K else str(v), v) for v in OUTPUTS],
                self.output_tokens, label=text("widget.output_tokens"),
            ),
        }  # fmt: skip
        self._controls["experts"].disabled = not moe
        self._controls["ep"].disabled = not moe
        for name, control in self._controls.items():
            control.observe(self._from_control(name), names="value")
        self._title = w.HTML(
            f"<h3 style='margin:0'>{html.escape(text('widget.explorer.title'))}</h3>"
        )
        self._switch = w.ToggleButtons(
            options=[(text(f"widget.language.{code}"), code) for code in LANGUAGES],
            value=self.language, tooltips=["中文", "English"], style={"button_width": "72px"},
        )  # fmt: skip
        self._switch.observe(self._switch_language, names="value")
        self._numbers = getattr(self, "_numbers", None) or w.HTML()
        self._python = getattr(self, "_python", None) or w.HTML()
        groups = (
            ("model", ("model",)),
            ("machine", ("hardware",)),
            ("deployment", _DEPLOYMENT_FIELDS),
            ("workload", ("prompt_tokens", "concurrency", "output_tokens")),
        )
        left: list[w.Widget] = []
        for heading, names in groups:
            left.append(w.HTML(f"<b>{html.escape(text(f'widget.group.{heading}'))}</b>"))
            left += [self._controls[name] for name in names]
        self._side = w.VBox(left, layout=w.Layout(flex="1 1 276px", min_width="276px"))
        self._stage = getattr(self, "_stage", None) or w.VBox(
            layout=w.Layout(flex="3 1 600px", min_width="0")
        )
        self.children = (
            w.HBox([self._title, self._switch],
                   layout=w.Layout(justify_content="space-between", flex_flow="row wrap")),
            self._message,
            w.HBox([self._side, self._stage],
                   layout=w.Layout(flex_flow="row wrap", align_items="flex-start")),
            self._numbers,
            self._python,
        )  # fmt: skip

    def _from_control(self, name: str) -> Any:
        def set_trait(change: dict[str, Any]) -> None:
            setattr(self, name, None if change["new"] == AS_CHECKPOINT else change["new"])

        return set_trait

    def _switch_language(self, change: dict[str, Any]) -> None:
        self.language = change["new"]

    @t.observe("language")
    def _relabel(self, _change: dict[str, Any]) -> None:
        if hasattr(self, "_controls"):
            self._build()
            self._refresh()

    @t.observe("theme", *_FIELDS)
    def _state_changed(self, change: dict[str, Any]) -> None:
        if not hasattr(self, "_controls"):
            return
        control = self._controls.get(change["name"])
        shown = AS_CHECKPOINT if change["new"] is None else change["new"]
        if control is not None and control.value != shown:
            offered = {value for _, value in control.options}
            if shown in offered:
                control.value = shown
        if change["name"] == "model":
            moe = any(isinstance(group.ffn, MoeFfn) for group in self._model().groups)
            self._controls["experts"].disabled = self._controls["ep"].disabled = not moe
        self._refresh()

    def _draw(self) -> None:
        model = self._model()
        comparison = compare(
            [ledger(model, self.hardware, self._deployment(), self._workload())],
            trail=("prompt_tokens", TRAIL),
        )
        books = comparison.ledgers[0]
        chart = explorer_panel(
            comparison.table, comparison.entries, comparison.memory,
            language=self.language, theme=self.theme,
        )  # fmt: skip
        if self._stage.children:
            self._stage.children[0].chart = chart
        else:
            self._stage.children = (offline_chart(chart),)
        self.ledger = books
        self.code = python_code(self)
        self._numbers.value = _key_numbers(self, books)
        self._python.value = (
            f"<details><summary>{html.escape(self.text('widget.copy_python'))}</summary>"
            f"<pre>{html.escape(self.code)}</pre></details>"
        )


def _key_numbers(panel: Explorer, books: Ledger) -> str:
    """Key numbers as a table that a screen reader reads in order."""
    language, text = panel.language, panel.text
    fits = text(f"explorer.fits.{books.fits}")
    rows = (
        ("tpot", numbers.duration(books.tpot_s),
         numbers.duration_band(books.tpot_s_low, books.tpot_s_high, language)),
        ("ttft", numbers.duration(books.ttft_s),
         numbers.duration_band(books.ttft_s_low, books.ttft_s_high, language)),
        ("sequence", numbers.rate(1.0 / books.tpot_s), ""),
        ("replica", numbers.rate(books.tokens_per_s), ""),
        ("memory", numbers.byte_size(books.resident_bytes_device),
         f"/ {numbers.byte_size(books.capacity_bytes)} · {fits}"),
        ("seats", numbers.count(books.max_concurrency), ""),
    )  # fmt: skip
    cells = "".join(
        f"<tr data-key='{key}'><th scope='row' style='text-align:left;padding-right:16px'>"
        f"{html.escape(text(f'explorer.{key}'))}</th><td style='text-align:right'><b>"
        f"{html.escape(value)}</b></td><td style='padding-left:12px'>{html.escape(band)}</td></tr>"
        for key, value, band in rows
    )
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in books.notes)
    summary = html.escape(text("explorer.as_text"))
    return (
        f"<details><summary>{summary}</summary>"
        f"<table class='ledgerkit-numbers' aria-live='polite'>{cells}</table></details>"
        + (f"<ul>{notes}</ul>" if notes else "")
    )


def python_code(panel: Explorer) -> str:
    """Python that recreates the view, without hidden defaults for what differs from them."""
    defaults = Deployment()
    layout = [
        f"{name}={getattr(panel, name)!r}"
        for name in _DEPLOYMENT_FIELDS
        if getattr(panel, name) != getattr(defaults, name)
    ]
    return (
        "import ledgerkit as lk\n\n"
        "books = lk.ledger(\n"
        f"    {panel.model!r},\n"
        f"    {panel.hardware!r},\n"
        f"    lk.Deployment({', '.join(layout)}),\n"
        f"    lk.Workload(prompt_tokens={panel.prompt_tokens}, "
        f"output_tokens={panel.output_tokens}, concurrency={panel.concurrency}),\n"
        ")\n"
        "books.chart()\n"
    )
