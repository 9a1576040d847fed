"""Words of the charts of simulated runs."""

from __future__ import annotations

from typing import Final, Literal

STRINGS: Final[dict[str, dict[Literal["zh", "en"], str]]] = {
    "simulate.compiling": {
        "zh": "正在编译模拟器：每次安装只需一次，约半分钟（或先运行 python -m ledgerkit warmup）",
        "en": "Compiling the simulator: once per installation, about half a minute "
        "(python -m ledgerkit warmup does it ahead)",
    },
    "simulate.timeline.title": {
        "zh": "一次运行：批、队列与缓存",
        "en": "A run over time: batch, queue, cache",
    },
    "simulate.latency.title": {
        "zh": "延迟的累积分布",
        "en": "Latency: share of requests that stay below",
    },
    "simulate.books.title": {
        "zh": "时间花在哪里：调度的账",
        "en": "Where the time went: the books of a run",
    },
    "simulate.engines.title": {
        "zh": "同一模型、同一机器，不同引擎的账",
        "en": "Same model, same machine: the books of several engines",
    },
    "simulate.load.title": {
        "zh": "负载曲线：首 token 时间与合格吞吐",
        "en": "Load curve: time to first token, and goodput",
    },
    "simulate.ablation.title": {
        "zh": "去掉一种机制，同样的请求要多花多久",
        "en": "Without a mechanism, the same requests take longer by",
    },
    "simulate.crossover.title": {
        "zh": "投机解码：加速多少，看并发",
        "en": "Speculation: the gain depends on the batch",
    },
    "simulate.timeline.finding": {
        "zh": "最多同时运行 {running} 个、排队 {waiting} 个，缓存最高用到 {cache}",
        "en": "At most {running} running and {waiting} waiting; the cache is filled up to {cache}",
    },
    "simulate.latency.finding": {
        "zh": "一半请求的首 token 在 {half} 以内，99% 在 {most} 以内",
        "en": "First token within {half} for half of them, {most} for 99%",
    },
    "simulate.books.finding": {
        "zh": "最多：{part} {share}；空闲 {idle}",
        "en": "Most: {part} {share}; idle {idle}",
    },
    "simulate.engines.finding": {
        "zh": "两本模型账之外的开销：{least} 最少，{least_share}；{most} 最多，{most_share}",
        "en": "Outside the two ledgers of the model: {least} least, {least_share}; {most} most, "
        "{most_share}",
    },
    "simulate.load.finding": {
        "zh": "到每秒 {rate} 个请求为止，延迟还守得住",
        "en": "Latency holds up to {rate} requests/s",
    },
    "simulate.load.no_knee": {
        "zh": "所示范围内没有拐点",
        "en": "No knee in the range shown",
    },
    "simulate.ablation.finding": {
        "zh": "代价最大：{name}，{cost}",
        "en": "Costs most: {name}, {cost}",
    },
    "simulate.crossover.until": {
        "zh": "{name}：约 {clients} 个客户端以内划算",
        "en": "{name}: pays up to about {clients} clients",
    },
    "simulate.crossover.always": {
        "zh": "{name}：直到 {clients} 个客户端都划算",
        "en": "{name}: still pays at {clients} clients",
    },
    "simulate.crossover.never": {
        "zh": "{name}：始终不划算",
        "en": "{name}: never pays",
    },
    "simulate.subtitle": {
        "zh": "{model}，{machine}，{engine}；{load}",
        "en": "{model} on {machine}, {engine}; {load}",
    },
    "simulate.load.stream": {"zh": "每秒 {rate} 个请求", "en": "{rate} requests/s"},
    "simulate.load.loop": {"zh": "{clients} 个客户端", "en": "{clients} clients"},
    "simulate.axis.time": {"zh": "时间 / s", "en": "Time, s"},
    "simulate.axis.running": {"zh": "运行中的序列", "en": "Running sequences"},
    "simulate.axis.waiting": {"zh": "排队的请求", "en": "Waiting requests"},
    "simulate.axis.cache": {"zh": "缓存占用", "en": "Cache in use"},
    "simulate.axis.share_of_requests": {"zh": "请求占比", "en": "Share of requests"},
    "simulate.axis.share": {"zh": "时间占比", "en": "Share of time"},
    "simulate.axis.rate": {"zh": "到达率 / (请求/s)", "en": "Requests per second offered"},
    "simulate.axis.goodput": {
        "zh": "合格吞吐 / (请求/s)",
        "en": "Requests per second within the goal",
    },
    "simulate.axis.cost": {"zh": "多花的时间", "en": "More time"},
    "simulate.axis.clients": {"zh": "并发", "en": "Clients"},
    "simulate.axis.speedup": {
        "zh": "加速比（有投机 / 无投机）",
        "en": "Speed-up (with over without drafts)",
    },
    "simulate.axis.replica": {"zh": "副本", "en": "Replica"},
    "simulate.latency.ttft_s": {"zh": "首 token 时间 / s", "en": "Time to first token, s"},
    "simulate.latency.tpot_s": {"zh": "每 token 时间 / s", "en": "Time per output token, s"},
    "simulate.latency.e2e_s": {"zh": "整个回答 / s", "en": "Whole answer, s"},
    "simulate.goal": {"zh": "目标", "en": "goal"},
    "simulate.knee": {"zh": "拐点 {rate} 请求/s", "en": "knee at {rate} requests/s"},
    "simulate.part.attention_kv": {"zh": "Attention / KV", "en": "Attention / KV"},
    "simulate.part.ffn_mlp": {"zh": "FFN / MLP", "en": "FFN / MLP"},
    "simulate.part.communication": {"zh": "通信", "en": "communication"},
    "simulate.part.launch": {"zh": "启动", "en": "launches"},
    "simulate.part.host": {"zh": "主机", "en": "host"},
    "simulate.part.padding": {"zh": "填充", "en": "padding"},
    "simulate.part.recompute": {"zh": "重算", "en": "computed again"},
    "simulate.part.draft": {"zh": "草稿与验证", "en": "drafts"},
    "simulate.part.queue": {"zh": "空闲", "en": "idle"},
    "simulate.without.nothing": {"zh": "全部机制", "en": "everything on"},
    "simulate.without.prefix_cache": {"zh": "无前缀缓存", "en": "no prefix cache"},
    "simulate.without.paged_cache": {"zh": "无分页缓存", "en": "no pages"},
    "simulate.without.chunked_prefill": {"zh": "无分块预填充", "en": "no chunked prefill"},
    "simulate.without.continuous_batching": {"zh": "无连续批处理", "en": "static batches"},
}
"""Key to template by language."""
