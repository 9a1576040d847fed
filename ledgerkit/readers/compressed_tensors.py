"""``compressed-tensors`` checkpoints (llm-compressor, Kimi-K2): formats by group of modules.

Scales have the dtype of the model, two bytes. Packed integers store their shape beside them (8
bytes a tensor in Kimi-K2.6, 16 elsewhere), which is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerkit.errors import ConfigError, UnsupportedArchitectureError
from ledgerkit.readers.patterns import ModulePatterns
from ledgerkit.readers.quantization import Quantization, skip_list
from ledgerkit.readers.rows import Row

__all__ = ["read_compressed_tensors"]

_FORMATS = ("pack-quantized", "int-quantized", "float-quantized", "naive-quantized",
            "nvfp4-pack-quantized", "mxfp4-pack-quantized", "mxfp8-quantized",
            "mixed-precision")  # fmt: skip
_WHOLE_BYTES = ("int-quantized", "naive-quantized")
"""Formats that store an element in a byte of its own, however few bits it has."""


def read_compressed_tensors(config: Mapping[str, Any], plain: str) -> Quantization:
    """Read the ``config_groups`` of a compressed-tensors checkpoint."""
    skip = skip_list(config, "ignore")
    groups = config.get("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        raise ConfigError("quantization_config.config_groups must name at least one group",
                          given=groups)  # fmt: skip
    _refuse_sparsity(config)
    rules = [_rule(name, group, config.get("format")) for name, group in groups.items()]

    def choose(module: str, layer: int, _: Row) -> str | None:
        if skip.match(module, layer):
            return None
        for name, every, patterns, found in rules:
            if every or patterns.match(module, layer):
                quantization.unused.discard(name)
                return found
        return None

    labels = dict.fromkeys(found for *_, found in rules)
    quantization = Quantization(
        plain,
        "compressed-tensors " + " + ".join(labels),
        choose,
        patterns=(skip, *(patterns for _, _, patterns, _ in rules)),
        head=True,
        groups=tuple(name for name, every, _, _ in rules if not every),
    )
    return quantization


def _refuse_sparsity(config: Mapping[str, Any]) -> None:
    sparsity = config.get("sparsity_config")
    if isinstance(sparsity, Mapping) and sparsity.get("format", "dense") != "dense":
        raise UnsupportedArchitectureError("sparse compressed-tensors checkpoints are not read",
                                           given=dict(sparsity))  # fmt: skip
    packed, status = config.get("format"), config.get("quantization_status")
    # files of 2024 say "frozen" beside the format in which they are compressed all the same
    if packed == "dense" or status == "initialized" or (status == "frozen" and packed is None):
        raise UnsupportedArchitectureError(
            "this compressed-tensors checkpoint is stored unquantized",
            given={"format": packed, "quantization_status": status},
            fix="drop quantization_config",
        )


def _rule(name: Any, group: Any, usual: Any) -> tuple[str, bool, ModulePatterns, str]:
    """Return (group, whether it takes every linear layer, its patterns, its format)."""
    path = f"quantization_config.config_groups.{name}"
    if not isinstance(group, Mapping):
        raise ConfigError(f"{path} must be a mapping", given=group)
    targets = group.get("targets") or []
    if not isinstance(targets, (list, tuple)):
        raise ConfigError(f"{path}.targets must be a list", given=targets)
    every = "Linear" in targets
    patterns = ModulePatterns([target for target in targets if target != "Linear"], "targets")
    weights = group.get("weights")
    if not isinstance(weights, Mapping):
        raise ConfigError(f"{path}.weights must be a mapping", given=weights)
    inputs = group.get("input_activations")
    static = isinstance(inputs, Mapping) and inputs.get("dynamic") in (False, "local")
    packed = group.get("format") or usual or ""
    if packed and packed not in _FORMATS:
        raise UnsupportedArchitectureError("this format of compressed-tensors is not read",
                                           given=packed, allowed=", ".join(_FORMATS),
                                           fix="drop quantization_config")  # fmt: skip
    return (
        str(name),
        every,
        patterns,
        _storage_name(weights, path + ".weights", packed, static=static),
    )


def _storage_name(weights: Mapping[str, Any], path: str, packed: str, *, static: bool) -> str:
    """Return the storage format of one group."""
    strategy, size = weights.get("strategy"), weights.get("group_size")
    if strategy is None:  # the library's own rule
        strategy = "group" if size else "tensor"
    kind, bits = weights.get("type", "int"), weights.get("num_bits", 8)
    if kind == "float":
        fp4 = "nvfp4_static" if static else "nvfp4"
        found = _float(bits, strategy, size, fp4, packed, weights.get("block_structure"))
        if found == "fp8_bf16scale" and static:
            found = "fp8"  # two scales of two bytes are as large as its one of four
    else:
        found = _integer(bits, strategy, size, packed, weights.get("symmetric", True))
        if found is not None and weights.get("actorder") in (True, "group", "dynamic"):
            found += "_gidx"  # such a checkpoint stores the group of each input
    if found is None:
        raise UnsupportedArchitectureError(
            f"{path}: the bytes of this format are not known", given=dict(weights),
            allowed="int group or channel, fp8 tensor, channel or block, mxfp8, mxfp4, nvfp4",
        )  # fmt: skip
    return found


def _float(bits: Any, strategy: Any, size: Any, fp4: str, packed: str, block: Any) -> str | None:
    match bits, strategy:
        case 8, "tensor":
            return "fp8_bf16scale"
        case 8, "channel":
            return "fp8_channel_bf16scale"
        case 8, "block" if block is None or block in ([128, 128], (128, 128), "128x128"):
            return "fp8_block128_bf16scale"
        case 8, "group" if size == 32:
            return "mxfp8"
        case 4, "group" if size == 32 or "mxfp4" in packed:
            return "mxfp4"
        case 4, "group" | "tensor_group" if size == 16:
            return fp4
    return None


def _integer(bits: Any, strategy: Any, size: Any, packed: str, symmetric: Any) -> str | None:
    # 32 // bits elements share an int32, so that other widths waste some of it
    if isinstance(bits, bool) or bits not in (2, 4, 8):
        return None
    if bits != 8 and packed in _WHOLE_BYTES:
        return None
    sign = "" if symmetric is True else "_asym"
    if strategy == "channel":
        plain = bits == 8 and symmetric is True and "pack" not in packed
        return "int8_bf16scale" if plain else f"int{bits}{sign}_channel"
    if strategy == "group" and isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return f"int{bits}{sign}_g{size}"
    return None
