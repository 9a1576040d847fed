"""The static explorer page."""

from __future__ import annotations

from typing import Final, Literal

STRINGS: Final[dict[str, dict[Literal["zh", "en"], str]]] = {
    "page.title": {
        "zh": "decode 一步的时间，落在哪本账？",
        "en": "Decode time: which ledger does it fall on?",
    },
    "page.lead": {
        "zh": "选一个模型、一种设备和一种精度，看 Attention / KV、FFN / MLP、系统调度三本账"
        "各付多少，以及上下文变长时怎么移动。",
        "en": "Choose a model, a device and a precision: what attention/KV, FFN/MLP and system "
        "scheduling pay of a decode step, and how that moves as the context grows.",
    },
    "page.model": {"zh": "模型", "en": "Model"},
    "page.against": {"zh": "对照", "en": "Compare with"},
    "page.nothing": {"zh": "不对照", "en": "nothing"},
    "page.hardware": {"zh": "设备", "en": "Hardware"},
    "page.precision": {"zh": "精度", "en": "Precision"},
    "page.concurrency": {"zh": "并发序列", "en": "Sequences at once"},
    "page.context": {"zh": "上下文", "en": "Context"},
    "page.language": {"zh": "语言", "en": "Language"},
    "page.theme": {"zh": "外观", "en": "Theme"},
    "page.theme.article": {"zh": "浅色", "en": "light"},
    "page.theme.dark": {"zh": "深色", "en": "dark"},
    "page.precision.checkpoint": {
        "zh": "同 checkpoint，bf16 KV cache",
        "en": "as the checkpoint, bf16 KV cache",
    },
    "page.precision.fp8": {"zh": "fp8 权重，fp8 KV cache", "en": "fp8 weights, fp8 KV cache"},
    "page.precision.int4": {"zh": "int4 权重，fp8 KV cache", "en": "int4 weights, fp8 KV cache"},
    "page.controls": {"zh": "选择", "en": "Choices"},
    "page.triangle": {"zh": "账本三角图", "en": "Ledger triangle"},
    "page.triangle.note": {
        "zh": "轨迹从最短的上下文走到最长的，由细到粗；大标记是所选的上下文；空心表示放不下。",
        "en": "A trail runs from the shortest context to the longest, thin to thick; the large "
        "mark is the chosen context; hollow means that it does not fit.",
    },
    "page.time": {"zh": "decode 一步的时间", "en": "Time of a decode step"},
    "page.time.note": {
        "zh": "{label}：三本账叠起来是一步的时间；虚线是估计的上下界；竖线是所选的上下文。",
        "en": "{label}: the three ledgers add up to the step; dashed lines are the band of the "
        "estimate; the upright line is the chosen context.",
    },
    "page.cache": {"zh": "一条序列的 KV cache 和状态", "en": "KV cache and state of one sequence"},
    "page.cache.note": {
        "zh": "双对数；灰线是其他模型。精确值，由 config 直接算出。",
        "en": "Both axes logarithmic; grey lines are the other models. Exact, from the config.",
    },
    "page.axis.context": {"zh": "上下文（1K = 1024 token）", "en": "context (1K = 1024 tokens)"},
    "page.axis.time": {"zh": "毫秒", "en": "ms"},
    "page.axis.cache": {"zh": "每条序列的字节", "en": "bytes per sequence"},
    "page.numbers": {"zh": "数字", "en": "Numbers"},
    "page.quantity": {"zh": "量", "en": "Quantity"},
    "page.row.layout": {"zh": "部署", "en": "deployment"},
    "page.row.step": {"zh": "decode 一步", "en": "decode step"},
    "page.row.band": {"zh": "上下界", "en": "band"},
    "page.row.rate": {"zh": "整机吞吐", "en": "throughput of the replica"},
    "page.row.first": {"zh": "首 token（单独一个请求）", "en": "first token, alone"},
    "page.row.memory": {"zh": "显存（最满的一张卡）", "en": "memory, fullest device"},
    "page.row.fits": {"zh": "放得下吗", "en": "does it fit"},
    "page.row.seats": {"zh": "最多并发", "en": "most sequences"},
    "page.row.cache": {"zh": "KV cache（一条序列）", "en": "KV cache of one sequence"},
    "page.fits.y": {"zh": "放得下", "en": "fits"},
    "page.fits.n": {"zh": "放不下", "en": "does not fit"},
    "page.fits.u": {"zh": "不一定放得下", "en": "may not fit"},
    "page.of": {"zh": "{used}，可用 {room}", "en": "{used} of {room} usable"},
    "page.band": {"zh": "{low} 到 {high}", "en": "{low} to {high}"},
    "page.beyond": {
        "zh": "{label} 的上下文到不了 {context}",
        "en": "{label} does not reach {context} of context",
    },
    "page.none": {
        "zh": "{label} 不能这样部署在 {device} 上。",
        "en": "{label} has no such deployment on {device}.",
    },
    "page.finding": {
        "zh": "{label}，{context} 上下文、{batch} 条序列：decode 一步 {time}，"
        "Attention / KV {a}%、FFN / MLP {f}%、系统调度 {s}%。"
        "从 {first} 到 {last}，Attention / KV 的占比从 {from}% 变到 {to}%。",
        "en": "{label} at {context} of context and {batch} sequences: a decode step takes {time}, "
        "attention/KV {a}%, FFN/MLP {f}%, scheduling {s}%. From {first} to {last}, the share of "
        "attention/KV goes from {from}% to {to}%.",
    },
    "page.python": {"zh": "同样的数，用 Python", "en": "The same numbers in Python"},
    "page.copy": {"zh": "复制", "en": "Copy"},
    "page.link": {"zh": "复制链接", "en": "Copy link"},
    "page.copied": {"zh": "已复制", "en": "Copied"},
    "page.foot": {
        "zh": "ledgerkit {version} 预先算好，本页不联网。时间是带上下界的估计，不是实测；"
        "cache 由 config 直接推出。部署取张数最少、能容纳 {batch} 条 {context} 序列的一种"
        "（候选：TP 1 到 16，或 DP-attention 与专家并行 8、16）。输出 {output} token。",
        "en": "Computed ahead by ledgerkit {version}; this page needs no network. Times are "
        "estimates with a band, not measurements; cache bytes follow from the config. The "
        "deployment is the one with the fewest devices that holds {batch} sequences of {context} "
        "(candidates: TP 1 to 16, or attention data parallelism with expert parallelism, 8 or "
        "16). Answers of {output} tokens.",
    },
}
"""Key to template by language."""
