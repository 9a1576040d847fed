"""Words of transfers: break-even sentences, charts of techniques, and the taxonomy page."""

from __future__ import annotations

from typing import Final, Literal

STRINGS: Final[dict[str, dict[Literal["zh", "en"], str]]] = {
    "transfer.axis.context": {"zh": "上下文", "en": "context"},
    "transfer.axis.prompt_tokens": {"zh": "prompt token 数", "en": "prompt tokens"},
    "transfer.axis.query_tokens": {"zh": "一次处理的新 token 数", "en": "query tokens"},
    "transfer.axis.concurrency": {"zh": "并发", "en": "concurrency"},
    "transfer.axis.output_tokens": {"zh": "输出 token 数", "en": "output tokens"},
    "transfer.axis.cached_tokens": {"zh": "命中缓存的 token 数", "en": "cached tokens"},
    "transfer.axis.acceptance": {"zh": "接受率", "en": "acceptance"},
    "transfer.axis.link_bytes_per_s": {"zh": "链路带宽（B/s）", "en": "link rate (B/s)"},
    "transfer.axis.reuse_interval_s": {"zh": "复用间隔（s）", "en": "reuse interval (s)"},
    "transfer.always.gain": {
        "zh": "{resource}，{phase}，并发 {concurrency}：{axis} 从 {low} 到 {high} 都省",
        "en": "{resource}, {phase}, concurrency {concurrency}: a gain for every {axis} from {low} "
        "to {high}",
    },
    "transfer.always.loss": {
        "zh": "{resource}，{phase}，并发 {concurrency}：{axis} 从 {low} 到 {high} 都亏",
        "en": "{resource}, {phase}, concurrency {concurrency}: a loss for every {axis} from {low} "
        "to {high}",
    },
    "transfer.always.even": {
        "zh": "{resource}，{phase}，并发 {concurrency}：{axis} 从 {low} 到 {high} 没有差别",
        "en": "{resource}, {phase}, concurrency {concurrency}: no difference for {axis} from {low} "
        "to {high}",
    },
    "transfer.turns.loss_gain": {
        "zh": "{resource}，{phase}，并发 {concurrency}：{axis} 从 {value} 起省，低于它则亏",
        "en": "{resource}, {phase}, concurrency {concurrency}: from {axis} {value} on a gain, "
        "below a loss",
    },
    "transfer.turns.gain_loss": {
        "zh": "{resource}，{phase}，并发 {concurrency}：{axis} 从 {value} 起亏，低于它则省",
        "en": "{resource}, {phase}, concurrency {concurrency}: from {axis} {value} on a loss, "
        "below a gain",
    },
}
"""Key to template by language."""
