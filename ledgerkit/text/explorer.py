"""Key numbers of the Explorer."""

from __future__ import annotations

from typing import Final, Literal

STRINGS: Final[dict[str, dict[Literal["zh", "en"], str]]] = {
    "explorer.as_text": {"zh": "数字（文字版）", "en": "Numbers as text"},
    "explorer.tpot": {"zh": "每 token 时间 (TPOT)", "en": "time per token (TPOT)"},
    "explorer.ttft": {
        "zh": "首 token 时间 (TTFT，无排队)",
        "en": "time to first token (TTFT, alone)",
    },
    "explorer.sequence": {"zh": "单请求", "en": "one sequence"},
    "explorer.replica": {"zh": "整机", "en": "whole replica"},
    "explorer.memory": {"zh": "显存（最满的一张卡）", "en": "memory (fullest device)"},
    "explorer.seats": {"zh": "最多并发", "en": "most sequences"},
    "explorer.fits.yes": {"zh": "放得下", "en": "fits"},
    "explorer.fits.no": {"zh": "放不下", "en": "does not fit"},
    "explorer.fits.uncertain": {"zh": "不一定放得下", "en": "may not fit"},
}
"""Key to template by language."""
