"""Panels about one deployment: its traits, the controls that set them, and their Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import ipywidgets as w
import traitlets as t

from ledgerkit._compare import device_name
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
from ledgerkit.widgets._base import Panel, heading, select, steps
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
DEPLOYMENT = ("weights", "experts", "kv_dtype", "tp", "pp", "ep", "dp_attention")
WORKLOAD = ("prompt_tokens", "concurrency", "output_tokens")
FIELDS = ("model", "hardware", *DEPLOYMENT, *WORKLOAD)
GROUPS = (
    ("model", ("model",)), ("machine", ("hardware",)), ("deployment", DEPLOYMENT),
    ("workload", WORKLOAD),
)  # fmt: skip
_SHOWN_KV = tuple(name for name in KV_DTYPES if name not in ("fp32", "q5_0", "q5_1", "q4_1"))
_WORDS = {"hardware": "device", "prompt_tokens": "context"}


class DeploymentPanel(Panel):
    """A panel whose traits are one deployment.

    Subclasses list further controls in ``GROUPS`` and make them in ``_own_controls``.
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

    GROUPS: ClassVar[tuple[tuple[str, tuple[str, ...]], ...]] = GROUPS

    def __init__(
        self,
        name: str,
        model: Any,
        hardware: str,
        state: dict[str, Any],
        *,
        language: str | None,
        theme: str,
    ) -> None:
        super().__init__(name, language=language, theme=theme)
        self._controls: dict[str, Any] = {}
        self._models: dict[str, Model] = {}
        self._references: dict[str, Any] = {}
        try:
            self._start(model, hardware, state)
        except Exception:
            self.close()
            raise

    def _start(self, model: Any, hardware: str, state: dict[str, Any]) -> None:
        own = [name for _, names in self.GROUPS for name in names]
        unknown = sorted(set(state) - {*FIELDS, *own})
        if unknown:
            raise LedgerError(f"{type(self).__name__} has no such option", given=unknown,
                              allowed=", ".join(dict.fromkeys((*FIELDS, *own))),
                              fix=f"leave {unknown[0]} out")  # fmt: skip
        device = load_hardware(hardware)
        with self.hold_trait_notifications():
            self.model, self.hardware = self._keep(model), device.slug
            for trait, value in state.items():
                if not (trait == "tp" and value is None):
                    self.set_trait(trait, value)
            stated = {name: getattr(self, name) for name in WORKLOAD if name in state}
            limit = self._model().max_position_embeddings
            for trait, tokens in fitting_workload(limit, stated).items():
                self.set_trait(trait, tokens)
            if state.get("tp") is None:
                self.tp = self._smallest_tp()

    # state --------------------------------------------------------------------------------------

    def _keep(self, reference: Any) -> str:
        """Load a model once and remember what named it; returns its slug."""
        found = reference if isinstance(reference, Model) else load_model(reference)
        self._models[found.slug], self._references[found.slug] = found, reference
        return found.slug

    def _model(self) -> Model:
        if self.model not in self._models:
            self._keep(self.model)
        return self._models[self.model]

    def _deployment(self, **changes: Any) -> Deployment:
        return Deployment(**({name: getattr(self, name) for name in DEPLOYMENT} | changes))

    def _workload(self) -> Workload:
        return Workload(**{name: getattr(self, name) for name in WORKLOAD})

    def _books(self) -> Ledger:
        return ledger(self._model(), self.hardware, self._deployment(), self._workload())

    def _smallest_tp(self) -> int:
        """Smallest width that holds the workload; 1 where none does."""
        for width in PARALLEL[:4]:
            try:
                books = ledger(
                    self._model(), self.hardware, self._deployment(tp=width), self._workload()
                )
            except LedgerError:
                continue
            if books.fits == "yes":
                return width
        return 1

    def _point_code(self) -> list[str]:
        """Source of model, hardware, deployment and workload."""
        reference = self._references.get(self.model, self.model)
        return [
            model_code(reference), repr(self.hardware), deployment_code(self._deployment()),
            workload_code(self._workload()),
        ]  # fmt: skip

    def _ledger_code(self) -> str:
        return call("lk.ledger", self._point_code())

    # controls -----------------------------------------------------------------------------------

    def _own_controls(self) -> dict[str, Any]:
        """Controls of further traits, by trait."""
        return {}

    def _build(self) -> None:
        self._controls = {**self._deployment_controls(), **self._own_controls()}
        self._allow_experts()
        self._moved = {name: self._hand(name, {AS_CHECKPOINT: None}) for name in self._controls}
        for name, control in self._controls.items():
            control.observe(self._moved[name], names="value")
        side: list[w.Widget] = []
        for group, names in self.GROUPS:
            side.append(heading(self.text(f"widget.group.{group}")))
            side += [self._controls[name] for name in names]
        self._side.children = tuple(side)

    def _deployment_controls(self) -> dict[str, Any]:
        text = self.text
        dtypes = [(text("widget.as_checkpoint"), AS_CHECKPOINT)]
        dtypes += [(name, name) for name in WEIGHT_DTYPES]
        known = models()
        labels = list(zip(known["name"], known["slug"], strict=True))
        labels += [(m.name, slug) for slug, m in self._models.items() if slug not in known["slug"]]
        devices = [(device_name(slug), slug) for slug in hardware_frame()["slug"]]
        widths = [(str(width), width) for width in PARALLEL]
        lists: dict[str, list[tuple[str, Any]]] = {
            "model": labels, "hardware": devices, "weights": dtypes, "experts": dtypes,
            "kv_dtype": [(name, name) for name in _SHOWN_KV], "tp": widths, "pp": widths[:4],
            "ep": widths, "dp_attention": widths,
        }  # fmt: skip
        sliders: dict[str, list[tuple[str, int]]] = {
            name: _stops(name, getattr(self, name)) for name in WORKLOAD
        }
        made = {}
        placed = {name for _, names in self.GROUPS for name in names}
        for name, options in {**lists, **sliders}.items():
            if name not in placed:
                continue
            label, value = text(f"widget.{_WORDS.get(name, name)}"), self._shown(name)
            if name in sliders:
                made[name] = steps(options, value, label=label)
            else:
                long = name in ("model", "hardware")
                made[name] = select(_offer(options, value), value, label=label, long=long)
        return made

    def _shown(self, name: str) -> Any:
        """Value of a trait as its control shows it."""
        value = getattr(self, name)
        return AS_CHECKPOINT if value is None else value

    def _allow_experts(self) -> None:
        moe = any(isinstance(group.ffn, MoeFfn) for group in self._model().groups)
        self._controls["experts"].disabled = self._controls["ep"].disabled = not moe

    @t.observe(*FIELDS)
    def _deployment_changed(self, change: dict[str, Any]) -> None:
        if not self._controls:
            return
        self._follow(change["name"])
        if change["name"] == "model":
            self._allow_experts()
        self._refresh()

    def _follow(self, name: str) -> None:
        """Let the control show what the trait says."""
        control, shown = self._controls.get(name), self._shown(name)
        if control is None or control.value == shown:
            return
        if hasattr(control, "options"):
            offered = {value for _, value in control.options}
            if shown not in offered and name not in WORKLOAD:
                return
            if shown not in offered:
                self._stop_at(control, name, shown)
        control.value = shown

    def _stop_at(self, control: Any, name: str, value: int) -> None:
        """Give a slider another stop; where it is meanwhile is nobody's wish."""
        control.unobserve(self._moved[name], names="value")
        control.options = _stops(name, value)
        control.value = value
        control.observe(self._moved[name], names="value")


def fitting_workload(positions: int, stated: Mapping[str, Any]) -> dict[str, int]:
    """Tokens of prompt and answer that are not stated: the usual ones, or fewer that fit.

    Parameters
    ----------
    positions : int
        Tokens of the model's longest sequence.
    stated : mapping
        What the workload's other fields are, by name.

    Returns
    -------
    dict of str to int
        The usual tokens where nothing fits beside what is stated.

    Examples
    --------
    >>> fitting_workload(131072, {})
    {'output_tokens': 512, 'prompt_tokens': 8192}
    >>> fitting_workload(1024, {"output_tokens": 24})
    {'prompt_tokens': 1000}
    """
    traits = DeploymentPanel.class_traits()
    usual = {name: int(traits[name].default_value) for name in ("output_tokens", "prompt_tokens")}
    answer = stated.get("output_tokens", min(usual["output_tokens"], positions // 2))
    room = {
        "output_tokens": positions - stated.get("prompt_tokens", positions - positions // 2),
        "prompt_tokens": positions - answer,
    }
    return {
        name: min(most, room[name]) if room[name] >= 1 else most
        for name, most in usual.items()
        if name not in stated
    }


def _stops(name: str, value: int) -> list[tuple[str, int]]:
    """Stops of a slider with the value among them."""
    usual = {"prompt_tokens": CONTEXTS, "concurrency": CONCURRENCIES, "output_tokens": OUTPUTS}
    written = str if name == "concurrency" else numbers.context
    return [(written(stop), stop) for stop in sorted({*usual[name], value})]


def _offer(options: list[tuple[str, Any]], value: Any) -> list[tuple[str, Any]]:
    """Options with the value among them."""
    listed = {given for _, given in options}
    return options if value in listed else [*options, (str(value), value)]
