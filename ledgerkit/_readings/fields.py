"""Step 1: the basic fields of a model, each with where it came from."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from ledgerkit._data import data_path
from ledgerkit._readings.structures import several, structures
from ledgerkit.readers.report import topic
from ledgerkit.spec.attention import CompressedAttention, LatentAttention, SoftmaxAttention
from ledgerkit.spec.feed_forward import MoeFfn
from ledgerkit.text import get
from ledgerkit.text.numbers import byte_size, count

if TYPE_CHECKING:
    from ledgerkit.readers.record import Record
    from ledgerkit.spec.model import Model

NOT_STATED = "not_stated"
COUNTED = "counted"


@dataclass(frozen=True)
class Field:
    """One basic field of a model.

    ``origin`` is ``config``, ``class default``, ``derived``, ``replaced``, ``counted`` (from the
    tensors that the config implies), ``published`` or ``not_stated``.
    """

    name: str
    """Key of ``reading.field.*``."""
    value: str
    number: float | None
    origin: str
    where: str
    """Config field or source; empty where it is counted."""


@cache
def _support() -> dict[str, tuple[tuple[str, str], ...]]:
    """(engine, source) of each architecture that a source states."""
    found: dict[str, list[tuple[str, str]]] = {}
    with data_path("engine_support.csv").open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            found.setdefault(row["architecture"], []).append((row["engine"], row["source"]))
    return {name: tuple(rows) for name, rows in found.items()}


def engine_support(config: Mapping[str, Any] | None) -> tuple[tuple[str, str], ...]:
    """Engines that a source names for the config's architecture, each with that source.

    Examples
    --------
    >>> [engine for engine, _ in engine_support({"architectures": ["GptOssForCausalLM"]})]
    ['sglang', 'transformers', 'vllm']
    >>> engine_support({"architectures": ["NobodyKnowsForCausalLM"]})
    ()
    """
    names = (config or {}).get("architectures") or ()
    known = _support()
    return tuple(row for name in names if isinstance(name, str) for row in known.get(name, ()))


def basic_fields(
    model: Model,
    record: Record | None,
    config: Mapping[str, Any] | None,
    language: str | None = None,
) -> tuple[Field, ...]:
    """The fields that the article asks for first."""
    ffns = [g.ffn for g in model.groups if isinstance(g.ffn, MoeFfn)]
    heads, kv_heads = _heads(model)
    stated = _Origins(record)
    official = (config or {}).get("_official") or {}
    fields = [
        Field("total", count(model.parameter_count), model.parameter_count, COUNTED, ""),
        *_published("total", official),
        _active(model, language),
        *_published("active", official),
        Field("layers", str(model.num_hidden_layers), model.num_hidden_layers,
              *stated.of("layers")),
        Field("heads", heads or "–", None, *stated.of("heads")),
        Field("kv_heads", kv_heads or "–", None, *stated.of("kv_heads", "latent")),
        Field("attention", attention_text(model, language), None,
              *stated.of("latent", "window", "indexer", "state", "layer_kinds", "compression")),
        Field("context", count(model.max_position_embeddings), model.max_position_embeddings,
              *stated.of("context")),
        Field("experts", several(f.num_experts for f in ffns) or "–", None,
              *stated.of("experts")),
        Field("topk", several(f.num_experts_per_tok for f in ffns) or "–", None,
              *stated.of("topk")),
        Field("precision", _precision(model), model.weight_bytes,
              *stated.of("quantization", "dtype")),
    ]  # fmt: skip
    rows = engine_support(config)
    if rows:
        fields += [Field("engine", engine, None, "published", source) for engine, source in rows]
    else:
        fields.append(Field("engine", get("reading.not_stated", language), None, NOT_STATED, ""))
    return tuple(fields)


class _Origins:
    """Where the fields of a topic were read."""

    def __init__(self, record: Record | None) -> None:
        self.uses = list(record.used) if record else []

    def of(self, *topics: str) -> tuple[str, str]:
        """(origin, config fields) of the first topic that the config says anything about."""
        for wanted in topics:
            uses = [use for use in self.uses if topic(use.path) == wanted]
            stated = [use for use in uses if use.value is not None] or uses
            if stated:
                names = dict.fromkeys(use.path for use in stated)
                return stated[0].origin, ", ".join(names)
        return (COUNTED, "") if not self.uses else ("derived", "")


def _active(model: Model, language: str | None) -> Field:
    text = get(
        "reading.active", language, shown=count(model.active_parameter_count),
        most=count(model.active_parameter_count_with_embedding),
        least=count(model.active_parameter_count_without_vocab),
    )  # fmt: skip
    return Field("active", text, model.active_parameter_count, COUNTED, "")


def _published(name: str, official: Mapping[str, Any]) -> list[Field]:
    if not official.get(name):
        return []
    return [Field(f"{name}_published", str(official[name]), None, "published",
                  str(official.get("source", "")))]  # fmt: skip


def _heads(model: Model) -> tuple[str, str]:
    heads, kv_heads = [], []
    for group in model.groups:
        attention = group.attention
        if isinstance(attention, SoftmaxAttention):
            heads.append(attention.num_attention_heads)
            kv_heads.append(attention.num_key_value_heads)
        elif isinstance(attention, LatentAttention | CompressedAttention):
            heads.append(attention.num_attention_heads)
            kv_heads.append(1)
    return several(heads), several(kv_heads)


def attention_text(model: Model, language: str | None = None) -> str:
    """Attention mechanisms with their numbers of layers."""
    parts = [
        get(f"reading.has.{s.id}", language, layers=s.layers, **s.numbers)
        for s in structures(model)
        if s.ledger == "attention_kv"
    ]
    return get("reading.and", language).join(parts) or "–"


def _precision(model: Model) -> str:
    formats: dict[str, float] = {}
    for weight, layers in model.booked_weights():
        formats[weight.dtype] = formats.get(weight.dtype, 0.0) + weight.bytes * layers
    whole = sum(formats.values())
    parts = [
        f"{dtype} {100 * size / whole:.0f}%"
        for dtype, size in sorted(formats.items(), key=lambda item: -item[1])
        if size >= 0.005 * whole
    ]
    return f"{byte_size(whole)} ({', '.join(parts)})"
