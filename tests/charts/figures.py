"""Every figure in its usual and its hard cases, by name: what the layout tests go through."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import ledgerkit as lk
from ledgerkit import charts
from tests.charts import samples

FOUR = [path.label for path in samples.FOUR]


def _triangle(paths: list[samples.Path], **how: Any) -> Callable[..., Any]:
    frame = {name: how.pop(name) for name in ("axis", "values", "operating") if name in how}
    return lambda **options: charts.ledger_triangle(
        samples.comparison(paths, **frame), **how, **options
    )


def _panel(paths: list[samples.Path], **how: Any) -> Callable[..., Any]:
    labels = [path.label for path in paths]
    cases = [(label, *samples.CASES[0][1:]) for label in labels]
    return lambda **options: charts.explorer_panel(
        samples.comparison(paths),
        samples.entries(labels),
        samples.memory(*cases),
        **how,
        **options,
    )


def _bars(paths: list[samples.Path], **how: Any) -> Callable[..., Any]:
    return lambda **options: charts.ledger_bars(
        samples.entries([path.label for path in paths]),
        table=samples.comparison(paths),
        **how,
        **options,
    )


@lru_cache(maxsize=8)
def _transfer(technique: str | tuple[str, ...], model: str, action: str = "apply") -> Any:
    return lk.transfer(
        technique, model=model, hardware="h200-sxm-141gb", action=action,
        workload=lk.Workload(prompt_tokens=8192, output_tokens=512, concurrency=8),
    )  # fmt: skip


def _mla() -> Any:
    return _transfer("mla", "deepseek-v3", "remove").reversed()


FIGURES: dict[str, Callable[..., Any]] = {
    "triangle-zoom": _triangle(samples.FOUR),
    "triangle-whole": _triangle(samples.scaled(samples.FOUR, 2.2)),
    "triangle-two-ledgers": _triangle(samples.scaled(samples.FOUR, 0.18)),
    "triangle-six": _triangle(samples.SIX),
    "triangle-six-whole": _triangle(samples.scaled(samples.SIX, 2.0)),
    "triangle-six-two-ledgers": _triangle(samples.scaled(samples.SIX, 0.18)),
    "triangle-twins": _triangle(samples.TWINS),
    "triangle-one": _triangle([samples.GEMMA]),
    "triangle-point": _triangle([samples.GEMMA], values=(8192,)),
    "triangle-corners": _triangle(samples.CORNERS),
    "triangle-focus": _triangle(samples.FOUR, focus="Kimi-K2.6"),
    "triangle-concurrency": _triangle(
        samples.FOUR, axis="concurrency", values=(1, 4, 16, 64, 256), operating=32
    ),
    "triangle-cluster": _triangle(
        [
            samples.Path(f"Model {index}", f"m{index}", (0.2 + 0.01 * index, 0.3), (0.1, 0.09))
            for index in range(6)
        ]
    ),
    "triangle-empty": lambda **options: charts.ledger_triangle(
        samples.comparison(samples.FOUR).clear(), **options
    ),
    "triangle-phone": _triangle(samples.FOUR, preset="phone"),
    "triangle-phone-whole": _triangle(samples.scaled(samples.SIX, 2.0), preset="phone"),
    "triangle-phone-two-ledgers": _triangle(samples.scaled(samples.SIX, 0.18), preset="phone"),
    "bars": _bars(samples.FOUR),
    "bars-six": _bars(samples.SIX),
    "bars-phone": _bars(samples.SIX, preset="phone"),
    "bars-alone": lambda **options: charts.ledger_bars(
        samples.entries(["One"], only=("time",)), **options
    ),
    "cache": lambda **options: charts.cache_curves(samples.caches(), **options),
    "cache-phone": lambda **options: charts.cache_curves(
        samples.caches(), preset="phone", **options
    ),
    "memory": lambda **options: charts.memory_bars(samples.memory(*samples.CASES), **options),
    "memory-phone": lambda **options: charts.memory_bars(
        samples.memory(*samples.CASES), preset="phone", **options
    ),
    "transfer": lambda **options: _mla().chart(**options),
    "transfer-prefill": lambda **options: _mla().chart(phase="prefill", **options),
    "transfer-flagged": lambda **options: _transfer("mqa", "llama-3.1-8b").chart(**options),
    "transfer-arrow": lambda **options: _mla().chart("triangle", **options),
    "break-even": lambda **options: _mla().chart("break_even", resource="compute", **options),
    "waterfall": lambda **options: _transfer(
        ("mla", "kv_quantization", "weight_fp8", "tensor_parallelism"), "llama-3.1-8b"
    ).chart("waterfall", **options),
    "taxonomy": lambda **options: charts.taxonomy_page(lk.techniques(), **options),
    "panel": _panel([samples.DEEPSEEK]),
    "panel-zoom": _panel(samples.FOUR, form="zoom", focus="Kimi-K2.6"),
    "panel-whole": _panel(samples.scaled(samples.SIX, 2.0)),
    "panel-two-ledgers": _panel(samples.scaled([samples.GEMMA], 0.18)),
    "panel-phone": _panel([samples.SIX[1]], preset="phone"),
}


def all_figures() -> Iterator[tuple[str, str]]:
    """Name and language of every figure."""
    for name in FIGURES:
        for language in ("zh", "en"):
            yield name, language


def words_of(chart: Any) -> list[str]:
    """All words of a figure, in drawing order."""
    return [
        row["text"]
        for layer in chart.to_dict()["layer"]
        if layer["mark"]["type"] == "text"
        for row in layer["data"]["values"]
    ]


def marks_of(chart: Any, kind: str) -> list[dict[str, Any]]:
    """All rows of one mark, what a layer's mark says filled in."""
    found = []
    for layer in chart.to_dict()["layer"]:
        mark = layer["mark"]
        if mark["type"] == kind:
            found += [mark | row for row in layer["data"]["values"]]
    return found
