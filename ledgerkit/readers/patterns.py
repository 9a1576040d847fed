"""Module patterns of quantization configs: plain names, globs and ``re:`` expressions."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable

from ledgerkit.errors import ConfigError

_DIGIT = re.compile(r"\d")
_MAX_PATTERN = 512


class ModulePatterns:
    """A list of module patterns, as ``modules_to_not_convert``, ``ignore`` and kin hold them.

    A plain name matches the module of that name, what is inside it, and every module whose path
    contains it as whole components (``mlp.gate`` matches ``model.layers.3.mlp.gate`` and not
    ``model.layers.3.mlp.gate_proj``). A name with ``*`` or ``?`` is a glob over the whole path or
    over the path of a parent. ``re:`` marks a regular expression anchored at the start.

    Examples
    --------
    >>> patterns = ModulePatterns(["lm_head", "re:.*self_attn.*", "mlp.gate"])
    >>> patterns.match("model.layers.0.self_attn.q_proj"), patterns.match("model.layers.0.mlp.up")
    (True, False)
    """

    def __init__(self, patterns: Iterable[str], path: str = "modules_to_not_convert") -> None:
        plain: set[str] = set()
        regexes: list[re.Pattern[str]] = []
        self.by_layer = False
        for pattern in patterns:
            if not isinstance(pattern, str) or len(pattern) > _MAX_PATTERN:
                raise ConfigError(f"quantization_config.{path} must hold module names",
                                  given=pattern)  # fmt: skip
            self.by_layer |= _DIGIT.search(pattern) is not None
            if pattern.startswith("re:"):
                regexes.append(_compile(pattern[3:], path))
            elif any(sign in pattern for sign in "*?["):
                regexes.append(_compile(fnmatch.translate(pattern), path))
                regexes.append(_compile(fnmatch.translate(pattern + ".*"), path))
            elif pattern:
                plain.add(pattern.rstrip("."))
        self._plain = plain
        self._regexes = tuple(regexes)
        self._cache: dict[str, bool] = {}

    def __bool__(self) -> bool:
        return bool(self._plain or self._regexes)

    def match(self, module: str) -> bool:
        """Whether one of the patterns covers this module."""
        found = self._cache.get(module)
        if found is None:
            found = self._cache[module] = self._match(module)
        return found

    def _match(self, module: str) -> bool:
        if self._plain:
            parts = module.split(".")
            for start in range(len(parts)):
                path = parts[start]
                if path in self._plain:
                    return True
                for part in parts[start + 1 :]:
                    path = f"{path}.{part}"
                    if path in self._plain:
                        return True
        return any(regex.match(module) for regex in self._regexes)


def _compile(expression: str, path: str) -> re.Pattern[str]:
    try:
        return re.compile(expression)
    except re.error as error:
        raise ConfigError(f"quantization_config.{path} holds an expression that is not valid",
                          given=f"{expression}: {error}") from None  # fmt: skip
