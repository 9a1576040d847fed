"""How a model keeps the past: mechanisms and growth laws of cache curves."""

from __future__ import annotations

from typing import Final, Literal

STRINGS: Final[dict[str, dict[Literal["zh", "en"], str]]] = {
    "cache.kind.mha": {"zh": "{count} 层 MHA", "en": "{count} MHA layers"},
    "cache.kind.mqa": {"zh": "{count} 层 MQA", "en": "{count} MQA layers"},
    "cache.kind.gqa": {"zh": "{count} 层 GQA", "en": "{count} GQA layers"},
    "cache.kind.mla": {"zh": "{count} 层 MLA", "en": "{count} MLA layers"},
    "cache.kind.dsa": {"zh": "{count} 层 MLA + 索引", "en": "{count} MLA layers with indexer"},
    "cache.kind.window": {"zh": "{count} 层窗口 {window}", "en": "{count} with window {window}"},
    "cache.kind.chunk": {"zh": "{count} 层分块 {window}", "en": "{count} with chunk {window}"},
    "cache.kind.state": {"zh": "{count} 层线性/状态", "en": "{count} with a state"},
    "cache.kind.compressed": {"zh": "{count} 层压缩 KV", "en": "{count} compressed layers"},
    "cache.kind.shared": {"zh": "{count} 层共享 KV", "en": "{count} that share a cache"},
    "cache.join": {"zh": " + ", "en": " + "},
    "cache.law.grows": {"zh": "{slope}/token", "en": "{slope}/token"},
    "cache.law.grows_and_fixed": {"zh": "{slope}/token + {fixed}", "en": "{slope}/token + {fixed}"},
    "cache.law.fixed": {"zh": "固定 {fixed}", "en": "{fixed}, whatever the context"},
}
"""Key to template by language."""
