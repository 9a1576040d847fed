"""Progress of sweeps, and labels of their charts."""

from __future__ import annotations

from typing import Final, Literal

STRINGS: Final[dict[str, dict[Literal["zh", "en"], str]]] = {
    "sweep.progress": {
        "zh": "扫描 {share}，{points} 点，每秒 {rate} 点，剩余 {rest}",
        "en": "sweep {share}, {points} points, {rate} points/s, {rest} left",
    },
    "sweep.chart.title": {
        "zh": "扫描：{count} 个部署点",
        "en": "Sweep: {count} deployments",
    },
    "sweep.chart.front": {"zh": "帕累托前沿", "en": "Pareto front"},
    "sweep.chart.other": {"zh": "其余", "en": "Others"},
    "sweep.chart.sampled": {
        "zh": "显示 {total} 点中的 {shown} 点",
        "en": "{shown} of {total} points shown",
    },
    "sweep.chart.dropped": {
        "zh": "{count} 点无数值，未绘出",
        "en": "{count} points without a value are not drawn",
    },
    "sweep.axis.ttft_s": {"zh": "首 token 时间 TTFT / s", "en": "Time to first token, s"},
    "sweep.axis.tpot_s": {"zh": "每 token 时间 TPOT / s", "en": "Time per output token, s"},
    "sweep.axis.e2e_s": {"zh": "整个回答的时间 / s", "en": "Time of a whole answer, s"},
    "sweep.axis.tokens_per_s": {"zh": "吞吐 / (token/s)", "en": "Output tokens/s of the replica"},
    "sweep.axis.tokens_per_s_per_device": {
        "zh": "每卡吞吐 / (token/s)",
        "en": "Output tokens/s per device",
    },
    "sweep.axis.tokens_per_s_per_user": {
        "zh": "每用户速度 / (token/s)",
        "en": "Output tokens/s per user",
    },
    "sweep.axis.resident_bytes_device": {
        "zh": "单卡常驻显存 / B",
        "en": "Resident bytes of the fullest device",
    },
    "sweep.axis.free_bytes": {"zh": "单卡剩余显存 / B", "en": "Free bytes of the fullest device"},
    "sweep.axis.max_concurrency": {"zh": "最大并发", "en": "Most sequences at once"},
    "sweep.axis.usd_per_million_output_tokens": {
        "zh": "每百万输出 token 价格 / 美元",
        "en": "USD per million output tokens",
    },
    "sweep.axis.usd_per_million_input_tokens": {
        "zh": "每百万输入 token 价格 / 美元",
        "en": "USD per million input tokens",
    },
    "sweep.axis.tdp_energy_j_per_output_token": {
        "zh": "每输出 token 能耗上限（按 TDP）/ J",
        "en": "Energy per output token at rated power, J",
    },
    "sweep.axis.concurrency": {"zh": "并发", "en": "Concurrency"},
    "sweep.axis.prompt_tokens": {"zh": "提示 token 数", "en": "Prompt tokens"},
    "sweep.axis.output_tokens": {"zh": "输出 token 数", "en": "Output tokens"},
    "sweep.axis.cached_tokens": {"zh": "命中缓存的 token 数", "en": "Cached tokens"},
    "sweep.axis.devices": {"zh": "卡数", "en": "Devices"},
    "sweep.axis.model": {"zh": "模型", "en": "Model"},
    "sweep.axis.hardware": {"zh": "硬件", "en": "Hardware"},
}
"""Key to template by language."""
