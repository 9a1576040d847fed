"""Which storage format each tensor of a checkpoint has, from its ``quantization_config``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ledgerkit.errors import ConfigError, UnsupportedArchitectureError
from ledgerkit.readers.patterns import ModulePatterns
from ledgerkit.readers.rows import Row

__all__ = ["Quantization", "flag", "read_quantization", "skip_list", "whole"]

_BLOCK = 128
_BY_USE = ("linear", "expand")
Choose = Callable[[str, int, Row], "str | None"]


class Quantization:
    """The storage formats of a checkpoint.

    Parameters
    ----------
    plain : str
        Format of the tensors that are not quantized.
    label : str
        What the quantization is called.
    choose : callable
        (module, layer, row) → format name, or None where a module keeps the plain dtype; the
        module's name has ``{layer}`` in place of the number.
    patterns : tuple of ModulePatterns
        All module patterns that the answer depends on.
    head : bool
        Whether an output head counts as a linear layer like others.
    """

    def __init__(
        self,
        plain: str,
        label: str = "none",
        choose: Choose | None = None,
        *,
        patterns: tuple[ModulePatterns, ...] = (),
        head: bool = False,
        groups: tuple[str, ...] = (),
    ) -> None:
        self.plain = plain
        self.label = label
        self._by_layer = tuple(part for part in patterns if part.by_layer)
        self._choose = choose
        self._head = head
        self.unused = set(groups)
        """Groups of the config that no module has matched so far."""

    def layer_key(self, layer: int) -> tuple[object, ...]:
        """Return what the formats of a layer depend on, beside its rows."""
        return tuple(part.layer_key(layer) for part in self._by_layer)

    def format_of(self, row: Row, module: str, layer: int) -> str:
        """Return the storage format of a row in one layer."""
        if row.dtype is not None:
            return row.dtype
        if self._choose is None or not self._quantizable(row):
            return self.plain
        return self._choose(module, layer, row) or self.plain

    def _quantizable(self, row: Row) -> bool:
        if row.quantizable is not None:
            return row.quantizable
        if row.use == "head":  # a tied table is an embedding
            return self._head and "embed" not in row.name
        return row.use in _BY_USE


def read_quantization(config: Mapping[str, Any] | None, plain: str) -> Quantization:
    """Read a ``quantization_config``.

    Parameters
    ----------
    config : Mapping or None
        As published; None = not quantized.
    plain : str
        Dtype of the tensors that are not quantized.

    Raises
    ------
    UnsupportedArchitectureError
        A method, or a setting of one, whose bytes are not known.
    """
    if config is None:
        return Quantization(plain)
    if not isinstance(config, Mapping):
        raise ConfigError("quantization_config must be a mapping", given=config,
                          allowed="names and values, or null",
                          fix="leave quantization_config out")  # fmt: skip
    from ledgerkit.readers.quantization_methods import METHODS

    methods = {"fp8": _fp8, "mxfp4": _mxfp4, **METHODS}
    method = config.get("quant_method")
    reader = methods.get(method) if isinstance(method, str) else None
    if reader is None:
        raise UnsupportedArchitectureError(
            "quantization_config.quant_method is one that no reader knows", given=method,
            allowed=", ".join(sorted(methods)),
            fix="drop quantization_config to see the model in its plain dtype",
        )  # fmt: skip
    return reader(config, plain)


def skip_list(config: Mapping[str, Any], *names: str) -> ModulePatterns:
    """Return the modules that stay in the plain dtype."""
    patterns: list[Any] = []
    for name in names:
        value = config.get(name)
        if value is None:
            continue
        if not isinstance(value, (list, tuple)):
            raise ConfigError(f"quantization_config.{name} must be a list", given=value)
        patterns += value
    return ModulePatterns(patterns, names[0])


def flag(config: Mapping[str, Any], name: str, *, default: bool) -> bool:
    """Return a yes or no of the quantization config; null = the default."""
    value = config.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise ConfigError(f"quantization_config.{name} must be true or false", given=value,
                          allowed="true, false, null", fix=f"correct {name}")  # fmt: skip
    return value


def whole(config: Mapping[str, Any], name: str, allowed: tuple[int, ...] | range) -> int:
    """Return a whole number of the quantization config."""
    value = config.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value not in allowed:
        said = (f"whole numbers from {allowed[0]} to {allowed[-1]:,}" if isinstance(allowed, range)
                else ", ".join(map(str, allowed)))  # fmt: skip
        raise ConfigError(f"quantization_config.{name} is not one that exists", given=value,
                          allowed=said, fix=f"correct {name}")  # fmt: skip
    return value


def _fp8(config: Mapping[str, Any], plain: str) -> Quantization:
    """fp8 of DeepSeek-V3 and of the ``fp8`` method of transformers and vLLM."""
    block = config.get("weight_block_size")
    skip = skip_list(config, "modules_to_not_convert", "ignored_layers", "exclude_modules")
    scheme = config.get("activation_scheme")
    if scheme not in (None, "static", "dynamic"):
        raise ConfigError("quantization_config.activation_scheme is not one that exists",
                          given=scheme, allowed="static, dynamic, null",
                          fix="correct activation_scheme")  # fmt: skip
    static = scheme == "static"
    if block is None:
        name, label = ("fp8_static" if static else "fp8"), "fp8 per tensor"
    elif isinstance(block, (list, tuple)) and list(block) == [_BLOCK, _BLOCK]:
        name, label = "fp8_block128", "fp8 128x128 block"
    else:
        raise UnsupportedArchitectureError("quantization_config.weight_block_size is not known",
                                           given=block, allowed="[128, 128] or null")  # fmt: skip

    def choose(module: str, layer: int, _: Row) -> str | None:
        return None if skip.match(module, layer) else name

    return Quantization(plain, label, choose, patterns=(skip,))


def _mxfp4(config: Mapping[str, Any], plain: str) -> Quantization:
    """mxfp4 of gpt-oss: the experts and nothing else."""
    skip = skip_list(config, "modules_to_not_convert")

    def choose(module: str, layer: int, row: Row) -> str | None:
        if row.account != "routed_experts":
            return None
        quantization.unused.clear()
        return None if skip.match(module, layer) else "mxfp4"

    quantization = Quantization(plain, "mxfp4 experts", choose, patterns=(skip,),
                                groups=("experts",))  # fmt: skip
    return quantization
