"""Cache against context: how large one sequence grows, by which mechanism, by which law."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ledgerkit.catalog.models import load_model
from ledgerkit.errors import LedgerError
from ledgerkit.spec._base import at_least_one, whole_number
from ledgerkit.spec.attention import (
    CompressedAttention,
    LatentAttention,
    NoAttention,
    SoftmaxAttention,
    StateAttention,
)
from ledgerkit.spec.model import LayerGroup, Model
from ledgerkit.text import get
from ledgerkit.text.numbers import byte_size, count

if TYPE_CHECKING:
    import polars as pl

__all__ = ["cache_table", "mechanism"]


def cache_table(
    models: Iterable[Model | str], contexts: Iterable[int], *, kv_dtype: str = "bf16"
) -> pl.DataFrame:
    """Ideal live cache bytes of one sequence, by model and context.

    Parameters
    ----------
    models : iterable of Model or reference
    contexts : iterable of int
        Tokens. Contexts beyond a model's positions are left out of its rows.
    kv_dtype : str
        Cache layout.

    Returns
    -------
    polars.DataFrame
        Columns: label, model, context_tokens, cache_bytes, mechanism_zh, mechanism_en, law_zh,
        law_en (how the bytes grow).

    Examples
    --------
    >>> cache_table(["deepseek-v3"], [1024])["cache_bytes"].item()
    71958528.0
    """
    import polars as pl

    rows: list[dict[str, Any]] = []
    wanted = [
        whole_number(LedgerError, "contexts", context, 0)
        for context in at_least_one(LedgerError, "contexts", contexts, "numbers of tokens")
    ]
    for ref in at_least_one(LedgerError, "models", models, "models or their names"):
        model = ref if isinstance(ref, Model) else load_model(ref)
        texts = {
            f"{name}_{language}": describe(model, kv_dtype, language)
            for name, describe in (("mechanism", _mechanism), ("law", _law))
            for language in ("zh", "en")
        }
        rows += [
            {"label": model.name, "model": model.slug, "context_tokens": context,
             "cache_bytes": model.cache_bytes(context, kv_dtype), **texts}
            for context in wanted
            if context <= model.max_position_embeddings
        ]  # fmt: skip
    if not rows:
        raise LedgerError("no model reaches any of these contexts", given=wanted,
                          allowed="contexts up to the positions of a model",
                          fix="ask for shorter contexts")  # fmt: skip
    return pl.DataFrame(rows)


def _mechanism(model: Model, _kv_dtype: str, language: str) -> str:
    return mechanism(model.groups, language)


def mechanism(groups: Iterable[LayerGroup], language: str) -> str:
    """Say how groups of layers keep their past; empty for layers without attention.

    Examples
    --------
    >>> from ledgerkit import load_model
    >>> mechanism(load_model("llama-3.1-8b").groups, "en")
    '32 GQA layers'
    """
    counts: dict[tuple[str, int], int] = {}
    for group in groups:
        kind = _kind(group)
        if kind is not None:
            counts[kind] = counts.get(kind, 0) + group.count
    ordered = sorted(counts.items(), key=lambda item: item[0][0] in ("window", "chunk", "shared"))
    return get("cache.join", language).join(
        get(f"cache.kind.{name}", language, count=layers, window=count(window))
        for (name, window), layers in ordered
    )


def _kind(group: LayerGroup) -> tuple[str, int] | None:
    match group.attention:
        case SoftmaxAttention(stores_kv=False):
            return "shared", 0
        case SoftmaxAttention(window=int() as window):
            return "window", window
        case SoftmaxAttention(chunk=int() as chunk):
            return "chunk", chunk
        case SoftmaxAttention(num_attention_heads=heads, num_key_value_heads=kv_heads):
            return ("mha" if heads == kv_heads else "mqa" if kv_heads == 1 else "gqa"), 0
        case LatentAttention(indexer=None):
            return "mla", 0
        case LatentAttention():
            return "dsa", 0
        case StateAttention():
            return "state", 0
        case CompressedAttention():
            return "compressed", 0
        case NoAttention():
            return None


def _law(model: Model, kv_dtype: str, language: str) -> str:
    slope = model.kv_bytes_per_token(kv_dtype)
    far = 1 << 40
    fixed = model.cache_bytes(far, kv_dtype) - slope * far
    fields = {"slope": byte_size(slope), "fixed": byte_size(fixed)}
    if not slope:
        return get("cache.law.fixed", language, **fields)
    return get("cache.law.grows_and_fixed" if fixed else "cache.law.grows", language, **fields)
