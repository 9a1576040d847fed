"""``compressed-tensors`` checkpoints (llm-compressor, Kimi-K2): formats by group of modules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerkit.errors import ConfigError, UnsupportedArchitectureError
from ledgerkit.readers.patterns import ModulePatterns
from ledgerkit.readers.quantization import Quantization
from ledgerkit.readers.rows import Row

_PLAIN_FORMATS = ("dense",)


def read_compressed_tensors(config: Mapping[str, Any], plain: str) -> Quantization:
    """Read the ``config_groups`` of a compressed-tensors checkpoint."""
    ignore = config.get("ignore") or []
    if not isinstance(ignore, (list, tuple)):
        raise ConfigError("quantization_config.ignore must be a list", given=ignore)
    skip = ModulePatterns(ignore, "ignore")
    groups = config.get("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        raise ConfigError("quantization_config.config_groups must name at least one group",
                          given=groups)  # fmt: skip
    if config.get("sparsity_config"):
        raise UnsupportedArchitectureError("sparse compressed-tensors checkpoints are not read",
                                           given=config["sparsity_config"])  # fmt: skip
    rules: list[tuple[bool, ModulePatterns, str]] = []
    by_layer = skip.by_layer
    for name, group in groups.items():
        if not isinstance(group, Mapping):
            raise ConfigError(f"quantization_config.config_groups.{name} must be a mapping",
                              given=group)  # fmt: skip
        targets = group.get("targets") or []
        if not isinstance(targets, (list, tuple)):
            raise ConfigError(f"quantization_config.config_groups.{name}.targets must be a list",
                              given=targets)  # fmt: skip
        every = "Linear" in targets
        patterns = ModulePatterns([t for t in targets if t != "Linear"], "targets")
        by_layer |= patterns.by_layer
        fmt = group.get("format") or config.get("format")
        rules.append((every, patterns, _storage_name(group.get("weights"), fmt, name)))

    def choose(module: str, layer: int, _: Row) -> str | None:
        if skip.match(module, layer):
            return None
        for every, patterns, storage_name in rules:
            if every or patterns.match(module, layer):
                return storage_name
        return None

    labels = dict.fromkeys(storage_name for _, _, storage_name in rules)
    return Quantization(plain, "compressed-tensors " + " + ".join(labels), choose,
                        by_layer=by_layer)  # fmt: skip


def _storage_name(weights: Any, fmt: Any, group: str) -> str:
    """Return the storage format of one group."""
    path = f"quantization_config.config_groups.{group}.weights"
    if not isinstance(weights, Mapping):
        raise ConfigError(f"{path} must be a mapping", given=weights)
    kind, bits = weights.get("type", "int"), weights.get("num_bits", 8)
    strategy, size = weights.get("strategy"), weights.get("group_size")
    if strategy is None:  # the library's own rule
        strategy = "group" if size else "tensor"
    symmetric = weights.get("symmetric", True)
    block = weights.get("block_structure")
    found: str | None = None
    match kind, bits, strategy:
        case "float", 8, "tensor":
            found = "fp8"
        case "float", 8, "channel":
            found = "fp8_channel"
        case "float", 8, "block" if block is None or list(block) == [128, 128]:
            found = "fp8_block128"
        case "float", 8, "group" if size == 32:
            found = "mxfp8"
        case "float", 4, "group" if size == 32:
            found = "mxfp4"
        case "float", 4, "group" | "tensor_group" if size == 16:
            found = "nvfp4"
        case "int", 8, "channel" if symmetric:
            found = "int8"
        case "int", int(), "group" if isinstance(size, int) and size > 0 and 2 <= bits <= 8:
            found = f"int{bits}{'' if symmetric else '_asym'}_g{size}"
    if found is None:
        raise UnsupportedArchitectureError(
            f"{path}: the bytes of this format are not known", given=dict(weights),
            allowed="int group or channel, fp8 tensor, channel or block, mxfp8, mxfp4, nvfp4",
        )  # fmt: skip
    if fmt in _PLAIN_FORMATS:
        raise UnsupportedArchitectureError("a compressed-tensors checkpoint in format 'dense' is "
                                           "stored unquantized", given=fmt,
                                           fix="drop quantization_config")  # fmt: skip
    return found
