"""What binds first in memory."""

from __future__ import annotations

from typing import Final, Literal

STRINGS: Final[dict[str, dict[Literal["zh", "en"], str]]] = {
    "memory.binds.cache": {
        "zh": "先碰顶的是 KV cache：最多 {seats} 个序列",
        "en": "the cache binds first: at most {seats} sequences",
    },
    "memory.binds.seats": {
        "zh": "放不下：这样的序列最多 {seats} 个",
        "en": "does not fit: at most {seats} such sequences",
    },
}
"""Key to template by language."""
