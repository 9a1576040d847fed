"""Read an HF ``config.json``: exactly, or not at all."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ledgerkit.errors import ConfigError, LedgerError, UnsupportedArchitectureError
from ledgerkit.readers.assemble import Assembler
from ledgerkit.readers.families import family
from ledgerkit.readers.fields import Fields
from ledgerkit.readers.quantization import read_quantization
from ledgerkit.readers.record import Record
from ledgerkit.readers.variants import apply_replacements
from ledgerkit.readers.wrappers import CLASS_SIZES, unwrap
from ledgerkit.spec._base import raise_from_validation
from ledgerkit.spec.model import Model

__all__ = ["read_config", "read_json", "read_with_record"]

_MAX_DEPTH = 64
_MAX_FILE_BYTES = 16 << 20
_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "half": "fp16",
           "float": "fp32"}  # fmt: skip
_HAS_HEAD = re.compile(
    r".*For(CausalLM|ConditionalGeneration)|.*LMHeadModel|MTPForCausalLM|ChatGLMModel"
    r"|InternVLChatModel"
)


def read_config(
    config: Mapping[str, Any] | str | Path, slug: str | None = None, source: str | None = None
) -> Model:
    """Read a ``config.json`` into a ``Model``.

    Parameters
    ----------
    config : Mapping, str or Path
        The config, a file, or a directory that holds a ``config.json``.
    slug : str, optional
        Short name; None = from the file.
    source : str, optional
        Public address of the config; None = the path.

    Returns
    -------
    Model

    Raises
    ------
    ConfigError
        A field is missing, contradicts another one, or holds an absurd value.
    UnsupportedArchitectureError
        The model type, or a field that shapes the architecture, is not known.

    Examples
    --------
    >>> config = dict(
    ...     model_type="llama",
    ...     hidden_size=4096,
    ...     intermediate_size=14336,
    ...     num_hidden_layers=32,
    ...     num_attention_heads=32,
    ...     num_key_value_heads=8,
    ...     vocab_size=128256,
    ...     max_position_embeddings=131072,
    ...     torch_dtype="bfloat16",
    ... )
    >>> read_config(config).parameter_count
    8030261248
    """
    return read_with_record(config, slug, source)[0]


def read_with_record(
    config: Mapping[str, Any] | str | Path, slug: str | None = None, source: str | None = None
) -> tuple[Model, Record]:
    """Like ``read_config``, with the record of what each field did."""
    if isinstance(config, (str, Path)):
        path = Path(config)
        path = path / "config.json" if path.is_dir() else path
        source = source or str(config)
        slug = slug or _slug(path.parent.name if path.name == "config.json" else path.stem)
        config = read_json(path)
    if not isinstance(config, Mapping):
        raise ConfigError("a config must be a mapping of field names to values",
                          given=config, allowed="a dict, or the path of a config.json",
                          fix="pass json.load(file)")  # fmt: skip
    try:
        return _read(config, slug, source)
    except LedgerError:
        raise
    except ValidationError as error:
        raise_from_validation(error, ConfigError, "config")
        raise
    except RecursionError:
        raise _too_deep("the config") from None


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object strictly: UTF-8, no repeated names, no NaN, at most 16 MiB."""
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise ConfigError(
                "the file is too large for a config", given=f"{path}: {path.stat().st_size} bytes",
                allowed=f"up to {_MAX_FILE_BYTES} bytes", fix="name the config.json of the model",
            )  # fmt: skip
        text = path.read_text(encoding="utf-8-sig")  # editors on Windows write a mark before it
    except OSError as error:
        raise ConfigError("the config cannot be read", given=str(path),
                          allowed="a file that can be read",
                          fix=error.strerror or str(error)) from None  # fmt: skip
    except UnicodeDecodeError:
        raise ConfigError("the config is not UTF-8 text", given=str(path), allowed="UTF-8",
                          fix="save it as UTF-8") from None  # fmt: skip
    return parse_json(text, str(path))


def parse_json(text: str, where: str) -> dict[str, Any]:
    """Parse the text of a JSON object strictly."""
    try:
        found = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ConfigError("the config is not valid JSON", given=f"{where}: {error}",
                          allowed="one JSON object",
                          fix="correct it at this place") from None  # fmt: skip
    except RecursionError:
        raise _too_deep(where) from None
    except LedgerError:
        raise
    except ValueError as error:  # a number of thousands of digits
        raise ConfigError("the config holds a number that cannot be read", given=where,
                          allowed="numbers of a config", fix=str(error)) from None  # fmt: skip
    if not isinstance(found, dict):
        raise ConfigError("a config.json must hold an object", given=where,
                          allowed="one JSON object",
                          fix="name the config.json of the model")  # fmt: skip
    if _is_deep(found):
        raise _too_deep(where)
    return found


def _too_deep(where: str) -> ConfigError:
    return ConfigError("the config is nested too deeply", given=where,
                       allowed=f"up to {_MAX_DEPTH} levels",
                       fix="name the config.json of the model")  # fmt: skip


def _is_deep(found: Any) -> bool:
    """Whether values are nested beyond what any config does; how deep json goes is Python's."""
    level = [found]
    for _ in range(_MAX_DEPTH):
        level = [
            inner
            for value in level
            for inner in (value.values() if isinstance(value, dict) else value)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ConfigError("the config states a field twice", given=", ".join(twice),
                          allowed="each field once", fix="leave one of them out")  # fmt: skip
    return found


def _no_constant(name: str) -> Any:
    # time_step_limit of Mamba-2 configs is [0, Infinity]
    if name == "Infinity":
        return float("inf")
    raise ConfigError("the config holds a number that is none", given=name,
                      allowed="finite numbers", fix="correct or leave out this field")  # fmt: skip


def _read(config: Mapping[str, Any], slug: str | None, source: str | None) -> tuple[Model, Record]:
    record = Record()
    config = apply_replacements(config, record)
    values, wrapper, towers = unwrap(config, record)
    model_type = values.get("model_type")
    read, defaults = family(model_type)
    _check_architectures(config)
    if wrapper is not None:
        defaults = {**CLASS_SIZES.get(str(model_type), {}), **defaults}
    fields = Fields(values, record, defaults, f"{wrapper.key}." if wrapper else "")
    fields.mark("model_type", "quantization_config")
    dtype = _dtype(fields)
    plan = read(fields, str(model_type))
    fields.finish()
    plain = dtype or plan.dtype
    if plain is None:
        plain = "bf16"
        record.assume("no_dtype")
    quantization = read_quantization(values.get("quantization_config"), plain)
    if quantization.label != "none":
        record.use(fields.path + "quantization_config", quantization.label, "config")
    assembler = Assembler(quantization, wrapper.rename if wrapper else str)
    for tower, _ in towers:
        record.assume("tower", tower=tower)
    parts = assembler.assemble(plan)
    if quantization.unused:
        raise UnsupportedArchitectureError(
            "quantization_config has groups whose targets match no module of this model, so that "
            "its bytes are not known", given=", ".join(sorted(quantization.unused)),
            allowed="targets that are modules of the model",
            fix="drop quantization_config to see the model in its plain dtype",
        )  # fmt: skip
    name = config.get("_name") or slug or str(model_type)
    model = Model(
        slug=_slug(slug or str(config.get("_name") or model_type)) + _variant(config),
        name=str(name) + _variant(config),
        model_type=str(config.get("model_type")),
        source=source or str(config.get("_source") or "a dict"),
        fidelity=str(config.get("_fidelity") or "as given"),
        inferred=_inferred(config, record),
        hidden_size=plan.hidden_size,
        vocab_size=plan.vocab_size,
        max_position_embeddings=plan.max_position_embeddings,
        tie_word_embeddings=plan.tie_word_embeddings,
        dtype=plain,
        quantization=quantization.label,
        other_parameters=tuple(towers + plan.other_parameters),
        notes=record.notes("en"),
        **parts,
    )
    # the variant reader belongs to the reading, not to the description
    model._config = {**config, "_slug": slug, "_source": model.source}  # noqa: SLF001
    model._reader = _reread  # noqa: SLF001
    return model, record


def _inferred(config: Mapping[str, Any], record: Record) -> tuple[str, ...]:
    """Fields that the source did not state: by its own notes, or taken from class defaults."""
    stated = config.get("_inferred")
    noted = [str(name) for name in stated] if isinstance(stated, (list, tuple)) else []
    defaults = [use.path for use in record.used if use.origin == "class default"]
    return tuple(dict.fromkeys(noted + defaults))


def _reread(config: Mapping[str, Any]) -> Model:
    values = dict(config)
    slug = values.pop("_slug", None)
    return read_config(values, slug, values.get("_source"))


def _check_architectures(config: Mapping[str, Any]) -> None:
    stated = config.get("architectures")
    if stated is None:
        return
    if not isinstance(stated, (list, tuple)) or not all(isinstance(n, str) for n in stated):
        raise ConfigError("architectures must be a list of class names", given=stated,
                          allowed="a list of text", fix="leave architectures out")  # fmt: skip
    for name in stated:
        if not _HAS_HEAD.fullmatch(name):
            raise UnsupportedArchitectureError(
                "architectures names a class that is not a language model with its head",
                given=name, allowed="...ForCausalLM, ...ForConditionalGeneration",
                fix="take the config of the language model",
            )  # fmt: skip


def _dtype(fields: Fields) -> str | None:
    if not (fields.has("torch_dtype") or fields.has("dtype")):
        fields.mark("torch_dtype", "dtype")
        return None
    name, value = fields.raw("dtype", "torch_dtype")
    text = value.removeprefix("torch.") if isinstance(value, str) else value
    if not isinstance(text, str) or text not in _DTYPES:
        raise ConfigError(f"{name} is no dtype that weights are stored in", given=value,
                          allowed=", ".join(_DTYPES), fix=f"correct {name}")  # fmt: skip
    return _DTYPES[text]


def _slug(name: str) -> str:
    return name.rpartition("/")[2].lower() or "model"


def _variant(config: Mapping[str, Any]) -> str:
    changed = config.get("_adapted")
    return f" ({changed})" if changed else ""
