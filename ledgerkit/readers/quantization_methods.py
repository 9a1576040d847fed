"""Quantization methods of other tools: AWQ, GPTQ, AutoRound, bitsandbytes, ModelOpt, fbgemm.

Layouts are those of the tools' own checkpoints. AWQ and GPTQ store zero points even when they are
symmetric, GPTQ a group index per input as well. Sources: ``AutoGPTQ``, ``AutoAWQ``,
``bitsandbytes``, NVIDIA ``Model-Optimizer`` and the quantizer classes of transformers 5.24.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ledgerkit.errors import ConfigError, UnsupportedArchitectureError
from ledgerkit.readers.compressed_tensors import read_compressed_tensors
from ledgerkit.readers.patterns import ModulePatterns
from ledgerkit.readers.quantization import Quantization, flag, skip_list, whole
from ledgerkit.readers.rows import Row

__all__ = ["METHODS"]

_BITS = (2, 3, 4, 8)
_MAX_GROUP = 1 << 20
_GPTQ_LAYOUTS = ("gptq", "gptq_v2")


def _group(config: Mapping[str, Any], bits: int, suffix: str = "") -> str:
    """Return the name of a grouped integer format with zero points."""
    size = config.get("group_size", 128)
    if size in (-1, None):
        return f"int{bits}_asym_channel{suffix}"
    size = whole({"group_size": size}, "group_size", range(1, _MAX_GROUP))
    return f"int{bits}_asym_g{size}{suffix}"


def _check_flags(config: Mapping[str, Any], *names: str) -> None:
    """Refuse flags that are none, though no byte depends on them."""
    for name in names:
        flag(config, name, default=False)


def _renamed(config: Mapping[str, Any], names: Mapping[str, str]) -> Mapping[str, Any]:
    """Return a config with fields under their usual names; two names must agree."""
    found = dict(config)
    for other, usual in names.items():
        value = found.pop(other, None)
        if value is not None and found.setdefault(usual, value) != value:
            raise ConfigError(f"quantization_config.{other} and {usual} contradict each other",
                              given=(value, found[usual]), fix="leave one out")  # fmt: skip
    return found


def _awq(config: Mapping[str, Any], plain: str) -> Quantization:
    """AutoAWQ, in its usual layout ``gemm``."""
    # the tool's own quant_config.json has other names for the two numbers
    config = _renamed(config, {"w_bit": "bits", "q_group_size": "group_size"})
    _check_flags(config, "zero_point")  # zero points are stored either way
    version = str(config.get("version") or "gemm").lower()
    if version != "gemm":
        raise UnsupportedArchitectureError("this layout of AWQ is not known",
                                           given=version, allowed="gemm")  # fmt: skip
    name = _group(config, whole(config, "bits", (4,)) if "bits" in config else 4)
    skip = skip_list(config, "modules_to_not_convert")

    def choose(module: str, layer: int, _: Row) -> str | None:
        return None if skip.match(module, layer) else name

    return Quantization(plain, f"AWQ {name}", choose, patterns=(skip,))


def _gptq(config: Mapping[str, Any], plain: str) -> Quantization:
    """GPTQ, with rules per module under ``dynamic``."""
    _check_flags(config, "desc_act", "sym")
    bits = whole(config, "bits", _BITS)
    name = _group(config, bits, "_gidx")
    for name_of in ("checkpoint_format", "format"):
        layout = str(config.get(name_of) or "gptq")
        if layout not in _GPTQ_LAYOUTS:
            raise UnsupportedArchitectureError(
                f"quantization_config.{name_of}: this layout of GPTQ is not known", given=layout,
                allowed=", ".join(_GPTQ_LAYOUTS),
            )  # fmt: skip
    if flag(config, "is_marlin_format", default=False):
        raise UnsupportedArchitectureError("quantization_config.is_marlin_format: this layout of "
                                           "GPTQ is not known", given=True)  # fmt: skip
    listed = config.get("modules_in_block_to_quantize")
    only = None
    if listed is not None:
        if not isinstance(listed, (list, tuple)):
            raise ConfigError("quantization_config.modules_in_block_to_quantize must be a list",
                              given=listed)  # fmt: skip
        flat = [m for part in listed for m in (part if isinstance(part, (list, tuple)) else [part])]
        only = ModulePatterns(flat, "modules_in_block_to_quantize")
    rules = _dynamic(config, bits)
    head = flag(config, "lm_head", default=False)

    def choose(module: str, layer: int, row: Row) -> str | None:
        for patterns, own in rules:
            if patterns.match(module, layer):
                return own
        if only is not None and row.use != "head" and not only.match(module, layer):
            return None
        return name

    patterns = (*(part for part, _ in rules), *((only,) if only is not None else ()))
    return Quantization(plain, f"GPTQ {name}", choose, patterns=patterns, head=head)


def _dynamic(config: Mapping[str, Any], bits: int) -> list[tuple[ModulePatterns, str | None]]:
    """Return the rules of ``dynamic``: module pattern → format, or None for no quantization."""
    dynamic = config.get("dynamic")
    if dynamic is None:
        return []
    if not isinstance(dynamic, Mapping):
        raise ConfigError("quantization_config.dynamic must be a mapping", given=dynamic)
    rules: list[tuple[ModulePatterns, str | None]] = []
    for pattern, changes in dynamic.items():
        sign = str(pattern)[:2]
        patterns = ModulePatterns(["re:" + str(pattern).removeprefix("-:").removeprefix("+:")],
                                  "dynamic")  # fmt: skip
        if sign == "-:":
            rules.append((patterns, None))
            continue
        if not isinstance(changes, Mapping):
            raise ConfigError(f"quantization_config.dynamic[{pattern!r}] must be a mapping",
                              given=changes)  # fmt: skip
        own = {"bits": bits, "group_size": config.get("group_size", 128), **changes}
        rules.append((patterns, _group(own, whole(own, "bits", _BITS), "_gidx")))
    return rules


def _auto_round(config: Mapping[str, Any], plain: str) -> Quantization:
    """AutoRound in a GPTQ layout: zero points, no group index."""
    packing = str(config.get("packing_format") or config.get("backend") or "")
    if "gptq" not in packing:
        raise UnsupportedArchitectureError(
            "this packing of AutoRound is not known", given=packing, allowed="auto_round:auto_gptq"
        )
    if config.get("extra_config"):
        raise UnsupportedArchitectureError("AutoRound settings per module are not read",
                                           given=config["extra_config"])  # fmt: skip
    name = _group(config, whole(config, "bits", _BITS))
    return Quantization(plain, f"AutoRound {name}", lambda *_: name)


def _bitsandbytes(config: Mapping[str, Any], plain: str) -> Quantization:
    """Bitsandbytes as serialised; the JSON of each tensor's state (about 150 B) is left out."""
    four = flag(config, "load_in_4bit", default=False) or flag(
        config, "_load_in_4bit", default=False
    )
    eight = flag(config, "load_in_8bit", default=False) or flag(
        config, "_load_in_8bit", default=False
    )
    if four == eight:
        raise ConfigError("quantization_config must load in 4 bit or in 8 bit",
                          given={"load_in_4bit": four, "load_in_8bit": eight})  # fmt: skip
    skip = skip_list(config, "llm_int8_skip_modules")
    if eight:
        name = "int8"
    else:
        kind = config.get("bnb_4bit_quant_type", "fp4")
        if kind not in ("nf4", "fp4"):
            raise ConfigError("quantization_config.bnb_4bit_quant_type is not known", given=kind)
        name = "nf4_double" if flag(config, "bnb_4bit_use_double_quant", default=False) else "nf4"

    def choose(module: str, layer: int, _: Row) -> str | None:
        return None if skip.match(module, layer) else name

    return Quantization(plain, f"bitsandbytes {name}", choose, patterns=(skip,))


_ALGORITHMS = {
    "FP8": "fp8_static",
    "NVFP4": "nvfp4_static",
    "FP8_PER_CHANNEL_PER_TOKEN": "fp8_channel",
    "FP8_PB_WO": "fp8_block128",
}


def _algorithm(name: Any) -> str:
    found = _ALGORITHMS.get(name) if isinstance(name, str) else None
    if found is None:
        raise UnsupportedArchitectureError(
            "quantization_config.quant_algo is not known",
            given=name,
            allowed=", ".join(sorted(_ALGORITHMS)),
        )
    return found


def _modelopt(config: Mapping[str, Any], plain: str) -> Quantization:
    """NVIDIA Model-Optimizer: one algorithm, or one for each module under ``quantized_layers``."""
    inner = config.get("quantization")
    if isinstance(inner, Mapping):  # the form of hf_quant_config.json
        config = {**inner, **{k: v for k, v in config.items() if k != "quantization"}}
    skip = skip_list(config, "ignore", "exclude_modules")
    algorithm = config.get("quant_algo")
    if algorithm == "MIXED_PRECISION":
        return _mixed(config, plain, skip)
    name = _algorithm(algorithm)

    def choose(module: str, layer: int, _: Row) -> str | None:
        return None if skip.match(module, layer) else name

    return Quantization(plain, f"ModelOpt {algorithm}", choose, patterns=(skip,), head=True)


def _mixed(config: Mapping[str, Any], plain: str, skip: ModulePatterns) -> Quantization:
    layers = config.get("quantized_layers")
    if not isinstance(layers, Mapping) or not layers:
        raise ConfigError("quantization_config.quantized_layers must name modules", given=layers)
    names: dict[str, list[str]] = {}
    for module, own in layers.items():
        if not isinstance(own, Mapping):
            raise ConfigError(f"quantization_config.quantized_layers[{module!r}] must be a mapping",
                              given=own)  # fmt: skip
        names.setdefault(_algorithm(own.get("quant_algo")), []).append(str(module))
    rules = [(ModulePatterns(modules, "quantized_layers"), name) for name, modules in names.items()]

    def choose(module: str, layer: int, _: Row) -> str | None:
        if skip.match(module, layer):
            return None
        for patterns, name in rules:
            if patterns.match(module, layer):
                quantization.unused.discard(name)
                return name
        return None

    quantization = Quantization(
        plain,
        "ModelOpt " + " + ".join(names),
        choose,
        patterns=(skip, *(part for part, _ in rules)),
        head=True,
        groups=tuple(names),
    )
    return quantization


def _fbgemm(config: Mapping[str, Any], plain: str) -> Quantization:
    """fbgemm_fp8 of Meta: one fp32 scale per row."""
    skip = skip_list(config, "modules_to_not_convert")

    def choose(module: str, layer: int, _: Row) -> str | None:
        return None if skip.match(module, layer) else "fp8_channel"

    return Quantization(plain, "fbgemm fp8 per channel", choose, patterns=(skip,))


METHODS: dict[str, Callable[[Mapping[str, Any], str], Quantization]] = {
    "auto-round": _auto_round,
    "awq": _awq,
    "bitsandbytes": _bitsandbytes,
    "compressed-tensors": read_compressed_tensors,
    "fbgemm_fp8": _fbgemm,
    "gptq": _gptq,
    "modelopt": _modelopt,
}
"""Name of the method → its reader."""
