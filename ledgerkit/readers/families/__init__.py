"""One readable file for each family of architectures.

``FAMILIES`` maps a ``model_type`` to the module that reads it; modules are imported on first use.
Each has ``DEFAULTS`` (the class defaults of its model types, for fields that files leave out) and
``read(fields, model_type)``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ledgerkit.errors import UnsupportedArchitectureError

if TYPE_CHECKING:
    from ledgerkit.readers.fields import Fields
    from ledgerkit.readers.rows import Architecture

__all__ = ["FAMILIES", "family"]

_MODULES: dict[str, tuple[str, ...]] = {
    "deepseek": ("deepseek_v2", "deepseek_v3", "kimi_k2"),
    "falcon": ("falcon",),
    "gemma": ("gemma2", "gemma3_text"),
    "gemma4": ("gemma4_text", "gemma4_unified_text"),
    "gpt2": ("gpt2",),
    "gpt_oss": ("gpt_oss",),
    "llama": ("llama", "mistral", "qwen2", "qwen3", "mimo"),
    "mimo_v2": ("mimo_v2", "mimo_v2_flash"),
    "mixtral": ("mixtral",),
    "qwen_moe": ("qwen3_moe",),
}
FAMILIES: dict[str, str] = {kind: name for name, kinds in _MODULES.items() for kind in kinds}
"""Model type → module."""

Read = Callable[["Fields", str], "Architecture"]


def family(model_type: Any) -> tuple[Read, Mapping[str, Any]]:
    """Return the reader of a model type and its class defaults.

    Raises
    ------
    UnsupportedArchitectureError
        No family reads this model type.
    """
    name = FAMILIES.get(model_type) if isinstance(model_type, str) else None
    if name is None:
        raise UnsupportedArchitectureError(
            "no reader knows this model_type", given=model_type,
            allowed=", ".join(sorted(FAMILIES)),
        )  # fmt: skip
    module = importlib.import_module(f"ledgerkit.readers.families.{name}")
    return module.read, module.DEFAULTS[model_type]
