"""``ConfigDrop``: paste or upload a ``config.json`` and see what it reads as."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from typing import Any

import ipywidgets as w
import traitlets as t

from ledgerkit._cache_table import cache_table, mechanism
from ledgerkit._reading import read_model
from ledgerkit._readings.words import parameters
from ledgerkit.catalog.models import load_model, models
from ledgerkit.catalog.report import read_config_report
from ledgerkit.charts import cache_curves
from ledgerkit.errors import ConfigError, LedgerError
from ledgerkit.readers.report import ConfigReport
from ledgerkit.spec.cache import KV_DTYPES
from ledgerkit.spec.feed_forward import MoeFfn
from ledgerkit.spec.model import LayerGroup, Model
from ledgerkit.text import numbers
from ledgerkit.widgets._base import Panel, heading, select
from ledgerkit.widgets._code import call, model_code

K = 1024
NOTHING = ""
"""Value of the reference list for no reference."""


class ConfigDrop(Panel):
    """Reads a model's ``config.json``: parameters, cache, layers, and what each field decided.

    Parameters
    ----------
    config : dict or str, optional
        The content of a ``config.json``, as an object or as text.
    reference : str, optional
        Slug of a model whose cache is drawn beside it.
    kv_dtype : str
        Cache layout.
    language : {"zh", "en"}, optional
    theme : {"article", "dark"}

    Attributes
    ----------
    config : str
        The text that is read; setting it reads it.
    model : Model or None
        What it reads as.
    report : ConfigReport or None
        What each field decided.
    error : str
        Why it cannot be read: names the fields that nothing here knows.

    Examples
    --------
    >>> drop = ConfigDrop('{"model_type": "zork"}')
    >>> drop.error[:32]
    'no reader knows this model_type '
    >>> drop.close()
    """

    config = t.Unicode("", help="content of a config.json")
    reference = t.Unicode("deepseek-v3", help="slug of a model beside it; empty for none")
    kv_dtype = t.Enum(tuple(KV_DTYPES), default_value="bf16", help="cache layout")

    def __init__(
        self,
        config: Mapping[str, Any] | str = "",
        *,
        reference: str = "deepseek-v3",
        kv_dtype: str = "bf16",
        language: str | None = None,
        theme: str = "article",
        **unknown: Any,
    ) -> None:
        for name, value in unknown.items():
            raise LedgerError(f"ConfigDrop has no option {name!r}", given=value,
                              allowed="config, reference, kv_dtype, language, theme",
                              fix=f"leave {name} out")  # fmt: skip
        if not isinstance(config, str | Mapping):
            raise LedgerError("a config is a dict or the text of a config.json", given=config,
                              allowed="a dict, or text", fix="pass json.load(file)")  # fmt: skip
        super().__init__("config", language=language, theme=theme)
        self.model: Model | None = None
        self.report: ConfigReport | None = None
        self._about, self._fields, self._steps = w.HTML(), w.HTML(), w.HTML()
        self._built = False
        try:
            self.set_trait("reference", reference)
            self.set_trait("kv_dtype", kv_dtype)
        except t.TraitError:
            self.close()
            raise
        given = config if isinstance(config, str) else json.dumps(dict(config), indent=1)
        self.set_trait("config", given)
        self._build()
        self._built = True
        self._refresh()

    def _build(self) -> None:
        text = self.text
        self._paste: w.Textarea = w.Textarea(
            value=self.config, placeholder='{"model_type": …}', tooltip=text("widget.config.paste"),
            continuous_update=False, layout=w.Layout(width="auto", height="220px"),
        )  # fmt: skip
        self._paste.observe(self._hand("config"), names="value")
        upload = w.FileUpload(
            accept=".json", multiple=False, description=text("widget.config.upload"),
            tooltip=text("widget.config.upload"), layout=w.Layout(width="auto"),
        )  # fmt: skip
        upload.observe(self._uploaded, names="value")
        known = models()
        references = [(text("widget.config.none"), NOTHING)]
        references += list(zip(known["name"], known["slug"], strict=True))
        reference = select(
            references, self.reference, label=text("widget.config.reference"), long=True
        )
        reference.observe(self._hand("reference"), names="value")
        layouts = [(name, name) for name in KV_DTYPES]
        layout = select(layouts, self.kv_dtype, label=text("widget.kv_dtype"))
        layout.observe(self._hand("kv_dtype"), names="value")
        self._side.children = (
            heading(text("widget.config.paste")), self._paste, upload,
            heading(text("widget.group.view")), reference, layout,
        )  # fmt: skip
        self._detail.children = (self._about, self._fields, self._steps, self._python)
        self._detail.add_class("ledgerkit-wide")

    def _uploaded(self, change: dict[str, Any]) -> None:
        with self._hands_on():
            for file in change["new"]:
                self.config = bytes(file["content"]).decode("utf-8-sig")

    @t.observe("config", "reference", "kv_dtype")
    def _changed(self, change: dict[str, Any]) -> None:
        if not self._built:
            return
        if change["name"] == "config" and self._paste.value != self.config:
            self._paste.value = self.config
        self._refresh()

    def _draw(self) -> None:
        if not self.config.strip():
            self.model = self.report = None
            self._show(None, "")
            empty = html.escape(self.text("widget.config.empty"))
            self._about.value = f"<p>{empty}</p>"
            self._fields.value = self._steps.value = ""
            return
        config = self._parsed()
        report = read_config_report(config)
        model = report.model
        contexts = [K * 2**i for i in range(11) if K * 2**i <= model.max_position_embeddings]
        shown: list[Model | str] = [model]
        sources = ["model"]
        if self.reference:
            beside = load_model(self.reference)
            if beside.name != model.name:
                shown.append(beside)
                sources.append(repr(self.reference))
        contexts = contexts or [model.max_position_embeddings]
        chart = cache_curves(
            cache_table(shown, contexts, kv_dtype=self.kv_dtype),
            language=self.language, theme=self.theme,
        )  # fmt: skip
        table = call(
            "lk.cache_table",
            [f"[{', '.join(sources)}]", str(contexts), f"kv_dtype={self.kv_dtype!r}"],
        )
        options = f"language={self.language!r}, theme={self.theme!r}"
        code = (
            f"import ledgerkit as lk\n\nmodel = {call('lk.load_model', [model_code(config)])}\n"
            f"frame = {table}\nlk.charts.cache_curves(frame, {options})\n"
        )
        self.model, self.report = model, report
        self._show(chart, code)
        self._about.value = _about(self, model)
        self._fields.value = _fields(self, report)
        self._steps.value = _steps(self, config)

    def _parsed(self) -> dict[str, Any]:
        try:
            config = json.loads(self.config)
        except RecursionError as problem:
            raise ConfigError(
                "the config is nested too deeply", given=self.config[:80],
                allowed="a config.json", fix="paste the config.json of a model",
            ) from problem  # fmt: skip
        except json.JSONDecodeError as problem:
            message = self.text(
                "widget.config.not_json", problem=problem.msg, line=problem.lineno,
                column=problem.colno,
            )  # fmt: skip
            raise ConfigError(message) from problem
        if not isinstance(config, dict):
            raise ConfigError(
                self.text("widget.config.not_object", kind=type(config).__name__),
            )
        return config


def _about(panel: ConfigDrop, model: Model) -> str:
    """Size, cache and layers of a model as HTML."""
    text = panel.text
    context = min(32 * K, model.max_position_embeddings)
    total, active = model.parameter_count, model.active_parameter_count
    rows = (
        ("total", parameters(total), numbers.count(total)),
        ("active", parameters(active), numbers.count(active)),
        ("weights", numbers.byte_size(model.weight_bytes), ""),
        ("cache", numbers.byte_size(model.cache_bytes(context, panel.kv_dtype)), ""),
        ("context", numbers.context(model.max_position_embeddings), ""),
    )
    cells = "".join(
        f"<tr data-key='{key}'><th scope='row'>"
        f"{html.escape(text(f'widget.config.{key}', context=numbers.context(context)))}</th>"
        f"<td><b>{html.escape(value)}</b></td><td>{html.escape(exact)}</td></tr>"
        for key, value, exact in rows
    )
    groups = "".join(
        f"<tr><td>{html.escape(_layers(panel, group))}</td></tr>" for group in model.groups
    )
    return (
        f"<h4>{html.escape(model.name)}</h4><table class='ledgerkit-numbers'>{cells}</table>"
        f"<h4>{html.escape(text('widget.config.groups'))}</h4><table>{groups}</table>"
    )


def _layers(panel: ConfigDrop, group: LayerGroup) -> str:
    """What a group of equal layers is made of."""
    attention = mechanism([group], panel.language) or panel.text(
        "widget.config.no_attention", count=group.count
    )
    ffn = group.ffn
    experts = {}
    if isinstance(ffn, MoeFfn):
        experts = {"experts": ffn.num_experts, "chosen": ffn.num_experts_per_tok}
    return f"{attention} + " + panel.text(f"widget.config.ffn.{ffn.kind}", **experts)


def _steps(panel: ConfigDrop, config: dict[str, Any]) -> str:
    """The five steps of ``lk.read_model``, as HTML; what they lack is said in their place."""
    try:
        page = read_model(config).to_html(panel.language)
        body = page.partition("<body>")[2].partition("</body>")[0]
    except LedgerError as error:
        body = f"<p class='ledgerkit-note'>{html.escape(str(error))}</p>"
    return (
        f"<details><summary>{html.escape(panel.text('widget.config.steps'))}</summary>"
        f"<div class='ledgerkit-left'>{body}</div></details>"
    )


def _fields(panel: ConfigDrop, report: ConfigReport) -> str:
    """What each field decided, as HTML."""
    frame = report.to_frame(panel.language)
    heads = "".join(
        f"<th scope='col'>{html.escape(panel.text(f'widget.config.{name}'))}</th>"
        for name in ("field", "value", "meaning")
    )
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in frame.select("path", "value", "meaning").iter_rows()
    )
    return (
        f"<details><summary>{html.escape(panel.text('widget.config.fields'))}</summary>"
        f"<table class='ledgerkit-left'><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody>"
        "</table></details>"
    )
