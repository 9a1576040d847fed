"""Controls of ``SweepView``: lists, ranges and columns."""

from __future__ import annotations

from typing import Any

import ipywidgets as w

from ledgerkit._compare import device_name
from ledgerkit.catalog.hardware import hardware as hardware_frame
from ledgerkit.catalog.models import models as models_frame
from ledgerkit.spec.cache import KV_DTYPES
from ledgerkit.text import get, keys, numbers
from ledgerkit.widgets._base import Panel, select

K = 1024
CONTEXTS = tuple(K * 2**i for i in range(8))
CONCURRENCIES = tuple(2**i for i in range(13))
WIDTHS = (1, 2, 4, 8, 16)
AXES = ("tpot_s", "ttft_s", "tokens_per_s", "tokens_per_s_per_device", "tokens_per_s_per_user",
        "e2e_s", "resident_bytes_device", "max_concurrency", "usd_per_million_output_tokens",
        "tdp_energy_j_per_output_token")  # fmt: skip
COLORS = ("model", "hardware", "tp", "kv_dtype")


def sweep_controls(panel: Panel) -> dict[str, Any]:
    """Make the controls of a sweep, in the language of its panel and with its values."""
    state: Any = panel
    text = panel.text
    known = models_frame()
    lists: dict[str, list[tuple[str, Any]]] = {
        "models": list(zip(known["name"], known["slug"], strict=True)),
        "devices": [(device_name(slug), slug) for slug in hardware_frame()["slug"]],
        "tp": [(str(width), width) for width in WIDTHS],
        "kv_dtype": [(name, name) for name in KV_DTYPES],
    }
    rows = {"models": 7, "devices": 5, "tp": 5, "kv_dtype": 4}
    made: dict[str, Any] = {}
    for name, options in lists.items():
        value = tuple(getattr(state, name))
        offered = {one for _, one in options}
        # what is chosen stands first: a list of many shows few
        options.sort(key=lambda one: one[1] not in value and name in ("models", "devices"))
        label = text(f"widget.sweep.{name}") if name in ("models", "devices") else (
            text(f"widget.sweep.axis.{name}"))  # fmt: skip
        made[name] = w.SelectMultiple(
            options=[*options, *((str(one), one) for one in value if one not in offered)],
            value=value, rows=rows[name], tooltip=label, layout=w.Layout(width="auto"),
        )  # fmt: skip
    for name, values in (("prompt_tokens", CONTEXTS), ("concurrency", CONCURRENCIES)):
        label = text("widget.context" if name == "prompt_tokens" else "widget.concurrency")
        made[name] = w.SelectionRangeSlider(
            options=[(numbers.context(v) if v >= K else str(v), v) for v in values],
            value=tuple(min(values, key=lambda v: abs(v - end)) for end in getattr(state, name)),
            description=label, tooltip=label,
            layout=w.Layout(width="auto"), style={"description_width": "88px"},
        )  # fmt: skip
    made["steps"] = select([(str(n), n) for n in sorted({4, 8, 16, 32, 64, 100, state.steps})],
                           state.steps, label=text("widget.sweep.steps"))  # fmt: skip
    made["fits_only"] = w.Checkbox(value=state.fits_only, indent=False,
                                   description=text("widget.sweep.fits_only"))  # fmt: skip
    axes = [
        (_axis(name, panel.language), name) for name in dict.fromkeys((*AXES, state.x, state.y))
    ]
    for name in ("x", "y"):
        made[name] = select(
            axes, getattr(state, name), label=text(f"widget.sweep.{name}"), long=True
        )
    colors = [(text(f"widget.sweep.axis.{name}"), name) for name in COLORS]
    made["color"] = select(colors, state.color, label=text("widget.sweep.color"), long=True)
    return made


def _axis(name: str, language: str) -> str:
    key = f"sweep.axis.{name}"
    return get(key, language) if key in set(keys()) else name
