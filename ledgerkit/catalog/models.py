"""Built-in models, and how a reference becomes a ``Model``.

Each built-in model is one small file under ``data/models`` in ``config.json`` field names, and goes
through the same reader as a user's file. Other distributions add models by an entry point of the
group ``ledgerkit.models``: a callable without arguments that returns one config, or a mapping of
slugs to configs.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledgerkit._data import data_directory
from ledgerkit.errors import CatalogError, LedgerError
from ledgerkit.readers.config import read_config, read_json
from ledgerkit.spec.model import Model

if TYPE_CHECKING:
    import polars as pl

__all__ = ["load_model", "model_slugs", "models"]

ModelRef = Model | Mapping[str, Any] | str | Path
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+(@[\w./-]+)?")
_GROUP = "ledgerkit.models"


def is_there(ref: str) -> bool:
    try:
        return Path(ref).exists()
    except (OSError, ValueError):  # longer than a name may be, or no name at all
        return False


def load_model(ref: ModelRef) -> Model:
    """Load a model: built in, from a file, or from the hub.

    Parameters
    ----------
    ref : str, Path, Mapping or Model
        A slug of ``lk.models()``; a ``config.json``, a directory that holds one, or its content as
        a dict; a ``.gguf`` file; a hub id such as ``"Qwen/Qwen3-8B"`` (extra ``hub``). A ``Model``
        is returned as it is.

    Returns
    -------
    Model

    Raises
    ------
    CatalogError
        The reference names no built-in model, file or hub id.
    ConfigError
        The config is incomplete or contradicts itself.
    UnsupportedArchitectureError
        The architecture is not one that a reader knows.

    Examples
    --------
    >>> load_model("deepseek-v3").parameter_count
    671026419200
    """
    if isinstance(ref, Model):
        return ref
    if isinstance(ref, Mapping):
        return read_config(ref)
    if isinstance(ref, Path):
        if "\0" in str(ref):
            raise CatalogError("no file has a name with a null byte", given=str(ref),
                               allowed="the path of a file", fix="correct the path")  # fmt: skip
        return _from_path(ref)
    if not isinstance(ref, str):
        raise CatalogError("a model reference must be a slug, a path, a dict or a Model",
                           given=ref, allowed="a slug of lk.models(), a path, a dict, a Model",
                           fix="pass a name of lk.models()")  # fmt: skip
    slug = ref.lower() if ref.lower() in _files() else _aliases().get(ref.lower())
    if slug is not None:
        return _built_in(slug)
    if ref and is_there(ref):
        return _from_path(Path(ref))
    if ref.endswith((".gguf", ".json", "/")) or ref.startswith((".", "/", "~")):
        raise CatalogError("there is no such file or directory", given=ref,
                           allowed="a file or directory that is there",
                           fix="correct the path")  # fmt: skip
    if _HUB_ID.fullmatch(ref):
        from ledgerkit.readers.hub import read_hub

        return read_hub(ref)
    raise CatalogError("no built-in model has this name, and no file either", given=ref,
                       allowed=_suggestions(ref),
                       fix="lk.models() lists the built-in models")  # fmt: skip


def _from_path(path: Path) -> Model:
    """Read a file or a directory."""
    if path.suffix == ".gguf":
        from ledgerkit.readers.gguf import read_gguf

        return read_gguf(path)
    if path.is_dir() and not (path / "config.json").is_file():
        files = sorted(path.glob("*.gguf"))
        if len(files) == 1:
            return _from_path(files[0])
        raise CatalogError("the directory holds no config.json", given=str(path),
                           allowed="a config.json, or one .gguf file",
                           fix="name the file itself")  # fmt: skip
    return read_config(path)


def _suggestions(ref: str) -> str:
    """Return the names closest to one that was not found."""
    close = difflib.get_close_matches(ref.lower(), list(_aliases()), n=5, cutoff=0.5)
    return ", ".join(dict.fromkeys(_aliases()[name] for name in close)) or "a slug of lk.models()"


@cache
def _files() -> dict[str, Path]:
    """Return the file of each built-in model by slug; none is read."""
    return {path.stem: path for path in sorted((data_directory() / "models").glob("*.json"))}


@cache
def _configs() -> dict[str, Mapping[str, Any]]:
    """Return every catalogued config by slug: built-in ones first, then registered ones."""
    found: dict[str, Mapping[str, Any]] = {slug: read_json(path) for slug, path in _files().items()}
    for slug, config in _registered():
        if slug in found:
            raise CatalogError("a registered model has the name of another one", given=slug,
                               allowed="names of their own",
                               fix="rename it in the distribution that registers it")  # fmt: skip
        found[slug] = config
    return found


def _registered() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the configs that other distributions registered."""
    for point in metadata.entry_points(group=_GROUP):
        try:
            content = point.load()()
        except LedgerError:
            raise
        except Exception as error:
            raise CatalogError(f"the entry point {point.name!r} of {_GROUP} does not load",
                               given=f"{type(error).__name__}: {error}",
                               allowed="a mapping of configs, or a function that returns one",
                               fix=f"repair or remove {point.value}") from error  # fmt: skip
        if not isinstance(content, Mapping):
            raise CatalogError(f"the entry point {point.name!r} of {_GROUP} must return configs",
                               given=type(content).__name__, allowed="a config, or configs by name",
                               fix=f"correct or remove {point.value}")  # fmt: skip
        if "model_type" in content:
            yield point.name.lower(), content
        else:
            for slug, config in content.items():
                yield str(slug).lower(), config


@cache
def _aliases() -> dict[str, str]:
    """Return every accepted name in lower case: slugs, hub ids and other common names."""
    names: dict[str, str] = {}
    for slug, config in _configs().items():
        for name in (config.get("_hub_id"), *(config.get("_aliases") or ())):
            if name:
                names.setdefault(str(name).lower(), slug)
    return names | {slug: slug for slug in _configs()}


def model_slugs() -> tuple[str, ...]:
    """Return the slugs of all catalogued models.

    Examples
    --------
    >>> "kimi-k2.6" in model_slugs()
    True
    """
    return tuple(_configs())


def built_in_config(name: str) -> tuple[str, Mapping[str, Any]] | None:
    """Slug and config of a catalogued model, by any of its names; None = there is none."""
    slug = _aliases().get(name.lower())
    return None if slug is None else (slug, _configs()[slug])


@lru_cache(maxsize=512)
def _built_in(slug: str) -> Model:
    # a first ledger does not wait for the files of all other models
    path = _files().get(slug)
    return read_config(_configs()[slug] if path is None else read_json(path), slug)


def models() -> pl.DataFrame:
    """Return the catalogue of models.

    Returns
    -------
    polars.DataFrame
        One row per model: ``slug, name, model_type, parameters, active_parameters,
        active_parameters_with_embedding, active_parameters_without_vocab, mtp_parameters, layers,
        attention, max_context_tokens, experts, experts_per_token, kv_bytes_per_token`` (bf16),
        ``weight_bytes, quantization, official_total, official_active, official_source,
        official_parameters, difference, difference_reason_en, difference_reason_zh, source,
        fidelity, inferred``. ``difference`` = our count − the official total.

    Examples
    --------
    >>> frame = models()
    >>> frame.filter(frame["slug"] == "deepseek-v3")["kv_bytes_per_token"].item()
    70272.0
    """
    import polars as pl

    return pl.DataFrame([_row(slug) for slug in model_slugs()], infer_schema_length=None)


def _row(slug: str) -> dict[str, Any]:
    model, config = _built_in(slug), _configs()[slug]
    official = config.get("_official") or {}
    stated = official.get("parameters")
    moe = next((g.ffn for g in model.groups if g.ffn.kind == "moe"), None)
    return {
        "slug": slug,
        "name": model.name,
        "model_type": model.model_type,
        "parameters": model.parameter_count,
        "active_parameters": model.active_parameter_count,
        "active_parameters_with_embedding": model.active_parameter_count_with_embedding,
        "active_parameters_without_vocab": model.active_parameter_count_without_vocab,
        "mtp_parameters": model.mtp.parameter_count if model.mtp else 0,
        "layers": model.num_hidden_layers,
        "attention": attention_text(model),
        "max_context_tokens": model.max_position_embeddings,
        "experts": moe.num_experts if moe else None,
        "experts_per_token": moe.num_experts_per_tok if moe else None,
        "kv_bytes_per_token": model.kv_bytes_per_token(),
        "weight_bytes": model.weight_bytes,
        "quantization": model.quantization,
        "official_total": official.get("total"),
        "official_active": official.get("active"),
        "official_source": official.get("source"),
        "official_parameters": stated,
        "difference": None if stated is None else model.parameter_count - int(stated),
        "difference_reason_en": official.get("reason_en"),
        "difference_reason_zh": official.get("reason_zh"),
        "source": model.source,
        "fidelity": model.fidelity,
        "inferred": json.dumps(list(model.inferred)),
    }


def attention_text(model: Model) -> str:
    """Return the attention mechanisms of a model in the field's short names.

    Examples
    --------
    >>> attention_text(load_model("gemma-4-26b-a4b"))
    '25 × GQA window 1024 + 5 × GQA'
    """
    counts: dict[str, int] = {}
    for group in model.groups:
        text = _mechanism(group.attention)
        counts[text] = counts.get(text, 0) + group.count
    if len(counts) == 1:
        return next(iter(counts))
    return " + ".join(f"{count} × {text}" for text, count in counts.items())


def _mechanism(attention: Any) -> str:
    match attention.kind:
        case "softmax":
            heads, kv_heads = attention.num_attention_heads, attention.num_key_value_heads
            text = "MHA" if kv_heads == heads else "MQA" if kv_heads == 1 else "GQA"
            if attention.window is not None:
                text += f" window {attention.window}"
            if attention.chunk is not None:
                text += f" chunk {attention.chunk}"
            if not attention.stores_kv:
                text += " shared cache"
        case "latent":
            text = "MLA"
        case "compressed":
            text = f"compressed 1/{attention.ratio}" if attention.ratio else "window"
        case "state":
            text = str(attention.variant)
        case _:
            return "none"
    return text + (" + indexer" if getattr(attention, "indexer", None) is not None else "")
