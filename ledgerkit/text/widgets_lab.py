"""Labels of the widgets for techniques and for the scheduler."""

from __future__ import annotations

from typing import Final, Literal

STRINGS: Final[dict[str, dict[Literal["zh", "en"], str]]] = {
    "widget.lab.title": {"zh": "技术实验台", "en": "Technique lab"},
    "widget.lab.added": {"zh": "加上（可多选）", "en": "put in (several)"},
    "widget.lab.removed": {"zh": "先去掉（可多选）", "en": "take out first (several)"},
    "widget.lab.figure": {"zh": "图", "en": "figure"},
    "widget.lab.bars": {"zh": "省下与多付", "en": "credits and debits"},
    "widget.lab.triangle": {"zh": "三角图中的箭头", "en": "arrow in the triangle"},
    "widget.lab.waterfall": {"zh": "逐项叠加", "en": "one after the other"},
    "widget.lab.empty": {
        "zh": "选一项技术，看它省下什么、账单转移到哪里。",
        "en": "Choose a technique to see what it saves and where it moves the bill.",
    },
    "widget.lab.net": {"zh": "净效果", "en": "Net effect"},
    "widget.lab.before": {"zh": "之前", "en": "before"},
    "widget.lab.after": {"zh": "之后", "en": "after"},
    "widget.lab.change": {"zh": "变化", "en": "change"},
    "widget.lab.net.ttft_s": {"zh": "首 token 时间", "en": "time to first token"},
    "widget.lab.net.tpot_s": {"zh": "每 token 时间", "en": "time per token"},
    "widget.lab.net.e2e_s": {"zh": "整个回答的时间", "en": "time of a whole answer"},
    "widget.lab.net.tokens_per_s": {"zh": "整机吞吐", "en": "whole replica"},
    "widget.lab.net.tokens_per_s_device": {"zh": "每卡吞吐", "en": "per device"},
    "widget.lab.net.resident_bytes_device": {"zh": "每卡显存", "en": "memory per device"},
    "widget.lab.net.max_concurrency": {"zh": "最多并发", "en": "most sequences"},
    "widget.lab.net.usd_per_million_tokens": {
        "zh": "每百万 token 价格",
        "en": "price of a million tokens",
    },
}
"""Key to template by language."""
