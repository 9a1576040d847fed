"""What the page can show: every model, device and precision with its books along the context."""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from ledgerkit._cache_table import cache_table
from ledgerkit._compare import deployment_text, device_name
from ledgerkit._ledger import ledger
from ledgerkit._sweep import sweep, zip_axes
from ledgerkit.catalog.hardware import load_hardware
from ledgerkit.catalog.models import load_model
from ledgerkit.errors import LedgerError
from ledgerkit.spec.deployment import Deployment, Workload
from ledgerkit.text import get

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

__all__ = ["HARDWARE", "MODELS", "Selection", "compute"]

K: Final = 1024
MODELS: Final = (
    "deepseek-v3",
    "deepseek-v3.2",
    "gemma-4-26b-a4b",
    "gemma-4-31b-it",
    "glm-4.5-air",
    "gpt-oss-120b",
    "kimi-k2.6",
    "kimi-linear-48b-a3b-instruct",
    "llama-3.1-8b",
    "llama-3.1-70b",
    "mimo-v2.5-pro",
    "minimax-m2.7",
    "qwen3-235b-a22b",
    "qwen3.5-397b-a17b",
)
HARDWARE: Final = (
    "a100-sxm-80gb",
    "h100-sxm-80gb",
    "h20-96gb",
    "h200-sxm-141gb",
    "b200-sxm-180gb",
    "mi300x-192gb",
    "rtx-4090-24gb",
)
PRECISIONS: Final[dict[str, dict[str, str | None]]] = {
    "checkpoint": {"weights": None, "kv_dtype": "bf16"},
    "fp8": {"weights": "fp8", "kv_dtype": "fp8"},
    "int4": {"weights": "int4_g128", "kv_dtype": "fp8"},
}
CONCURRENCIES: Final = (1, 8, 32, 128)
CONTEXTS: Final = tuple(round(K * 2 ** (step / 2) / 64) * 64 for step in range(15))
"""1K to 128K in half octaves, whole pages of 64 tokens."""
OUTPUT_TOKENS: Final = 512
REFERENCE: Final = (8 * K, 32)
"""Context and sequences that a layout must hold to be chosen."""
LAYOUTS: Final = ((1, 1, 1), (2, 1, 1), (4, 1, 1), (8, 1, 1), (16, 1, 1), (1, 8, 8), (1, 16, 16))
"""Candidates: tp, dp_attention, ep."""
PLANE: Final = (
    "attention_kv_s",
    "ffn_mlp_s",
    "scheduling_s",
    "tpot_s_low",
    "tpot_s_high",
    "resident_bytes_device",
)
"""Columns stored for each concurrency and context."""
_CELL: Final = ("concurrency", "prompt_tokens")
_ALONE: Final = ("ttft_s", "fits", "max_concurrency", "capacity_bytes")
_LAYOUT: Final = ["tp", "dp_attention", "ep"]
_STATE: Final = ["model", "hardware", "weights", "kv_dtype"]


@dataclass(frozen=True)
class Selection:
    """What the lists of the page offer.

    Parameters
    ----------
    models, hardware : tuple of str
        Slugs.
    """

    models: tuple[str, ...] = MODELS
    hardware: tuple[str, ...] = HARDWARE


def compute(selection: Selection) -> dict[str, Any]:
    """Compute every state of the page.

    The layout of a state is the one with the fewest devices that holds :data:`REFERENCE`; among
    equals the one with the shortest decode step. Where none of :data:`LAYOUTS` holds it, the one
    that needs the least memory per device is shown as not fitting.

    Parameters
    ----------
    selection : Selection
        Models and devices.

    Returns
    -------
    dict
        ``models``, ``hardware``, ``precisions``, ``concurrencies``, ``contexts``, ``states`` (key
        ``model|hardware|precision``; seconds and bytes to four digits, concurrency-major planes)
        and ``caches`` (bytes of one sequence by model and cache layout).
    """
    chosen = [
        {"model": model, "hardware": device, **fields, **layout}
        for model in selection.models
        for device in selection.hardware
        for fields in PRECISIONS.values()
        if (layout := _smallest(model, device, fields)) is not None
    ]
    columns = tuple(chosen[0])
    one_each = zip_axes(**{name: [state[name] for state in chosen] for name in columns})
    kept = (
        sweep(
            one_each,
            prompt_tokens=list(CONTEXTS),
            output_tokens=OUTPUT_TOKENS,
            concurrency=list(CONCURRENCIES),
        )
        .select(*columns, *_CELL, *PLANE, *_ALONE)
        .collect()
    )
    return {
        "models": [_model(slug) for slug in selection.models],
        "hardware": [_device(slug) for slug in selection.hardware],
        "precisions": [
            {"key": key, "name": _both(f"page.precision.{key}"), **fields}
            for key, fields in PRECISIONS.items()
        ],
        "concurrencies": list(CONCURRENCIES),
        "contexts": list(CONTEXTS),
        "output_tokens": OUTPUT_TOKENS,
        "states": _states(kept),
        "caches": _caches(selection.models),
    }


def _smallest(model: str, device: str, fields: Mapping[str, Any]) -> dict[str, int] | None:
    """Choose the layout of a state; None where the model takes none of them on this device."""
    context, concurrency = REFERENCE
    work = Workload(prompt_tokens=context, output_tokens=OUTPUT_TOKENS, concurrency=concurrency)
    unfit: list[tuple[float, dict[str, int]]] = []
    for devices in sorted({tp * ranks for tp, ranks, _ in LAYOUTS}):
        fit: list[tuple[float, dict[str, int]]] = []
        for tp, dp_attention, ep in LAYOUTS:
            if tp * dp_attention != devices:
                continue
            layout = {"tp": tp, "dp_attention": dp_attention, "ep": ep}
            try:
                books = ledger(model, device, Deployment(**fields, **layout), work)
            except LedgerError:  # heads, experts or links do not allow this layout
                continue
            if books.fits == "yes":
                fit.append((books.tpot_s, layout))
            else:
                unfit.append((books.resident_bytes_device, layout))
        if fit:
            return min(fit, key=itemgetter(0))[1]
    return min(unfit, key=itemgetter(0))[1] if unfit else None


def _both(key: str) -> dict[str, str]:
    return {language: get(key, language) for language in ("zh", "en")}


def _model(slug: str) -> dict[str, Any]:
    model = load_model(slug)
    return {"slug": slug, "name": model.name, "limit": model.max_position_embeddings}


def _device(slug: str) -> dict[str, Any]:
    return {
        "slug": slug,
        "name": device_name(slug),
        "memory_bytes": load_hardware(slug).memory_bytes,
    }


def _states(frame: pl.DataFrame) -> dict[str, Any]:
    keys = {(fields["weights"], fields["kv_dtype"]): key for key, fields in PRECISIONS.items()}
    states: dict[str, Any] = {}
    for group in frame.partition_by(_STATE, maintain_order=True):
        first = group.row(0, named=True)
        key = keys[first["weights"], first["kv_dtype"]]
        states[f"{first['model']}|{first['hardware']}|{key}"] = _state(group, first)
    return states


def _state(group: pl.DataFrame, first: dict[str, Any]) -> dict[str, Any]:
    cells = {(row["concurrency"], row["prompt_tokens"]): row for row in group.iter_rows(named=True)}
    order = [(batch, context) for batch in CONCURRENCIES for context in CONTEXTS]

    def plane(column: str, places: Sequence[tuple[int, int]]) -> list[float | None]:
        return [_short(cells[at][column]) if at in cells else None for at in places]

    fits = "".join(cells[at]["fits"][0] if at in cells else "-" for at in order)
    layout = {name: first[name] for name in ("tp", "dp_attention", "ep")}
    books = ledger(
        first["model"],
        first["hardware"],
        Deployment(weights=first["weights"], kv_dtype=first["kv_dtype"], **layout),
        Workload(prompt_tokens=K, output_tokens=OUTPUT_TOKENS),
    )
    zh, en = deployment_text(books)
    return {
        **layout,
        "text": {"zh": zh, "en": en},
        "capacity_bytes": first["capacity_bytes"],
        "fits": fits,
        "ttft_s": plane("ttft_s", [(CONCURRENCIES[0], context) for context in CONTEXTS]),
        "max_concurrency": [
            cells[1, context]["max_concurrency"] if (1, context) in cells else None
            for context in CONTEXTS
        ],
        **{column: plane(column, order) for column in PLANE},
    }


def _short(value: float) -> float:
    """Four significant digits: what is read off a page, at a third of the size."""
    return float(f"{value:.4g}")


def _caches(models: Sequence[str]) -> dict[str, dict[str, Any]]:
    layouts = sorted({str(fields["kv_dtype"]) for fields in PRECISIONS.values()})
    caches: dict[str, dict[str, Any]] = {}
    for layout in layouts:
        for group in cache_table(models, CONTEXTS, kv_dtype=layout).partition_by(
            "model", maintain_order=True
        ):
            first = group.row(0, named=True)
            caches[f"{first['model']}|{layout}"] = {
                "bytes": [_short(value) for value in group["cache_bytes"]],
                "law": {"zh": first["law_zh"], "en": first["law_en"]},
            }
    return caches
