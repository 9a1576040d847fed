"""Module patterns of quantization configs: plain names, globs and ``re:`` expressions."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from typing import Any

from ledgerkit.errors import ConfigError

_DIGIT = re.compile(r"\d")
_LAYER = re.compile(r"(?:.*\.)?layers\.(\d+)(?:\.(.+))?$")
_MAX_PATTERN = 512


class ModulePatterns:
    """A list of module patterns, as ``modules_to_not_convert``, ``ignore`` and kin hold them.

    A plain name matches the module of that name, what is inside it, and every module whose path
    contains it as whole components (``mlp.gate`` matches ``model.layers.3.mlp.gate`` and not
    ``model.layers.3.mlp.gate_proj``). A name with ``*`` or ``?`` is a glob over the whole path or
    over the path of a parent. ``re:`` marks a regular expression anchored at the start.

    Modules are named with ``{layer}`` in place of their layer number, which is given apart: the
    files hold up to a thousand names, most of them for single layers. A module of a multimodal
    model has several names, one a line: tools write the prefix of the text model in several ways.

    Examples
    --------
    >>> patterns = ModulePatterns(["lm_head", "re:.*self_attn.*", "model.layers.3.mlp"])
    >>> patterns.match("model.layers.{layer}.self_attn.q_proj", 0)
    True
    >>> [patterns.match("model.layers.{layer}.mlp.up_proj", layer) for layer in (2, 3)]
    [False, True]
    """

    def __init__(self, patterns: Iterable[Any], path: str = "modules_to_not_convert") -> None:
        self._plain: set[str] = set()
        self._of_layer: dict[int, set[str]] = {}
        self._regexes: list[re.Pattern[str]] = []
        self._numbered: list[re.Pattern[str]] = []
        for pattern in patterns:
            if not isinstance(pattern, str) or len(pattern) > _MAX_PATTERN:
                raise ConfigError(f"quantization_config.{path} must hold module names",
                                  given=pattern)  # fmt: skip
            self._add(pattern, path)
        self._cache: dict[str, bool] = {}

    @property
    def by_layer(self) -> bool:
        """Whether some pattern names a layer by its number."""
        return bool(self._of_layer or self._numbered)

    def layer_key(self, layer: int) -> object:
        """Return what the answers for a layer depend on: layers of one key have equal answers."""
        if self._numbered:
            return layer
        return frozenset(self._of_layer.get(layer, ()))

    def _add(self, pattern: str, path: str) -> None:
        regexes = self._numbered if _DIGIT.search(pattern) else self._regexes
        if pattern.startswith("re:"):
            regexes.append(_compile(pattern[3:], path))
        elif any(sign in pattern for sign in "*?["):
            regexes.append(_compile(fnmatch.translate(pattern), path))
            regexes.append(_compile(fnmatch.translate(pattern + ".*"), path))
        elif pattern:
            layer = _LAYER.match(pattern.rstrip("."))
            if layer:
                self._of_layer.setdefault(int(layer[1]), set()).add(layer[2] or "")
            else:
                self._plain.add(pattern.rstrip("."))

    def match(self, module: str, layer: int) -> bool:
        """Whether one of the patterns covers this module of this layer."""
        found = self._cache.get(module)
        if found is None:
            found = self._cache[module] = self._match_any_layer(module)
        if found or not self.by_layer:
            return found
        names = self._of_layer.get(layer)
        inside = module.partition("\n")[0].partition("{layer}.")[2]
        if names and ("" in names or _holds_start(names, inside)):
            return True
        full = module.replace("{layer}", str(layer)).split("\n")
        return any(regex.match(name) for regex in self._numbered for name in full)

    def _match_any_layer(self, module: str) -> bool:
        for name in module.split("\n"):
            parts = name.split(".")
            if any(_holds_start(self._plain, ".".join(parts[i:])) for i in range(len(parts))):
                return True
            if any(regex.match(name.replace("{layer}", "0")) for regex in self._regexes):
                return True
        return False


def _holds_start(names: set[str], path: str) -> bool:
    """Whether the path, or a parent of it, is among the names."""
    while path:
        if path in names:
            return True
        path = path.rpartition(".")[0]
    return False


def _compile(expression: str, path: str) -> re.Pattern[str]:
    try:
        return re.compile(expression)
    except (re.error, RecursionError, OverflowError) as error:
        raise ConfigError(f"quantization_config.{path} holds an expression that is not valid",
                          given=f"{expression}: {error}") from None  # fmt: skip
