"""Words of the figures: titles, subtitles, axes, keys, notes, captions and alternative text."""

from __future__ import annotations

from typing import Final, Literal

STRINGS: Final[dict[str, dict[Literal["zh", "en"], str]]] = {
    # the ledger triangle
    "triangle.title.article": {
        "zh": "decode 一步的时间，落在哪本账？",
        "en": "Decode time: which ledger does it fall on?",
    },
    "triangle.title.phone": {
        "zh": "decode 时间落在哪本账？",
        "en": "Where does decode time fall?",
    },
    "triangle.subtitle.same": {
        "zh": "{workload}；{axis} {first}→{last} 由细到粗，大标记为 {mark}"
        "（1K\u00a0=\u00a01024\u00a0token）",
        "en": "{workload}; {axis} {first}→{last} runs thin to thick, large mark = {mark} "
        "(1K\u00a0=\u00a01024\u00a0tokens)",
    },
    "triangle.subtitle.own": {
        "zh": "{workload}；{axis} {first}→{last} 由细到粗，大标记为各自的工作点"
        "（1K\u00a0=\u00a01024\u00a0token）",
        "en": "{workload}; {axis} {first}→{last} runs thin to thick, large mark = own operating "
        "point (1K\u00a0=\u00a01024\u00a0tokens)",
    },
    "triangle.subtitle.point": {
        "zh": "{workload}；{axis} {position}（1K\u00a0=\u00a01024\u00a0token）",
        "en": "{workload}; {axis} {position} (1K\u00a0=\u00a01024\u00a0tokens)",
    },
    "triangle.fixed.concurrency": {
        "zh": "{value} 条并发序列",
        "en": "{value} concurrent sequences",
    },
    "triangle.fixed.concurrency.mixed": {
        "zh": "并发见脚注",
        "en": "concurrency as noted below",
    },
    "triangle.fixed.prompt": {"zh": "prompt {value}", "en": "prompt {value}"},
    "triangle.fixed.prompt.mixed": {"zh": "prompt 各自不同", "en": "prompts differ"},
    "triangle.axis.prompt_tokens": {"zh": "prompt", "en": "prompt"},
    "triangle.axis.concurrency": {"zh": "并发", "en": "concurrency"},
    "triangle.axis.output_tokens": {"zh": "输出", "en": "output"},
    "triangle.edge.attention_kv": {"zh": "Attention / KV 占比 →", "en": "Attention / KV share →"},
    "triangle.edge.ffn_mlp": {"zh": "← FFN / MLP 占比", "en": "← FFN / MLP share"},
    "triangle.edge.scheduling": {"zh": "← 系统调度占比", "en": "← scheduling share"},
    "triangle.edge.scheduling_up": {"zh": "系统调度占比 ↑", "en": "scheduling share ↑"},
    "triangle.largest.attention_kv": {
        "zh": "Attention / KV 更大 →",
        "en": "Attention / KV larger →",
    },
    "triangle.largest.ffn_mlp": {"zh": "← FFN / MLP 更大", "en": "← FFN / MLP larger"},
    "triangle.zoom.title": {
        "zh": "放大框内：系统调度 0 到 {top}",
        "en": "The framed part: scheduling 0 to {top}",
    },
    "triangle.zoom.stretch": {
        "zh": "纵向再拉伸 {factor} 倍，刻度照读",
        "en": "stretched {factor}× upward; read the scales",
    },
    "triangle.table.one": {
        "zh": "{position}：占比 %，每步 ms",
        "en": "{position}: share %, ms/step",
    },
    "triangle.table.mixed": {
        "zh": "大标记处：占比 %，每步 ms",
        "en": "At the mark: share %, ms/step",
    },
    "triangle.aid.title": {"zh": "怎么读", "en": "How to read"},
    "triangle.aid.text": {
        "zh": "离哪个角近，那本账就大\n三个占比合计 100%",
        "en": "Nearer a corner = more of the bill there; shares sum to 100%",
    },
    "triangle.aid.phone": {
        "zh": "离哪个角近，那本账就大",
        "en": "Nearer a corner = more of the bill",
    },
    "triangle.choose": {"zh": "选一个模型", "en": "choose a model"},
    "two.axis": {"zh": "Attention / KV 占比 →", "en": "Attention / KV share →"},
    # the ledger bars
    "bars.title": {"zh": "同一套部署，三种账单", "en": "One deployment, three bills"},
    "bars.subtitle": {
        "zh": "prompt {prompt}，{concurrency} 条并发序列，decode 一步；每行各自为 100%（SI 单位）",
        "en": "prompt {prompt}, {concurrency} sequences, one decode step; each row is 100% of its "
        "own total (SI)",
    },
    "bars.subtitle.own": {
        "zh": "各自的工作点，decode 一步；每行各自为 100%（SI 单位）",
        "en": "each at its own operating point, one decode step; each row is 100% of its own "
        "total (SI)",
    },
    "bars.total": {"zh": "合计", "en": "total"},
    "bars.row.time": {"zh": "时间", "en": "time"},
    "bars.row.read": {"zh": "读", "en": "read"},
    "bars.row.resident": {"zh": "显存", "en": "memory"},
    # cache against context
    "cache.title": {
        "zh": "上下文越长，一条序列的 KV cache 占多少字节",
        "en": "Cache bytes of one sequence as the context grows",
    },
    "cache.subtitle.live": {
        "zh": "每条序列在用的字节（不含引擎预留）；两轴都取对数，SI 单位",
        "en": "bytes in use per sequence, engine reserve left out; both axes logarithmic, SI units",
    },
    "cache.subtitle.reserved": {
        "zh": "引擎为每条序列预留的字节；两轴都取对数，SI 单位",
        "en": "bytes that the engine sets aside per sequence; both axes logarithmic, SI units",
    },
    "cache.axis": {
        "zh": "上下文（token，1K\u00a0=\u00a01024）→",
        "en": "context (tokens, 1K\u00a0=\u00a01024) →",
    },
    "cache.capacity": {"zh": "每条可用 {amount}", "en": "{amount} for each sequence"},
    "cache.fits": {"zh": "放得下 {context}", "en": "fits {context}"},
    "cache.same.two": {"zh": "{mechanism}，两者相同", "en": "{mechanism}, the two coincide"},
    "cache.same.all": {"zh": "{mechanism}，几条相同", "en": "{mechanism}, all coincide"},
    # memory against capacity
    "memory.title": {
        "zh": "显存够不够：每张卡上放了什么",
        "en": "Does it fit: what sits on each device",
    },
    "memory.subtitle": {
        "zh": "最满的一张卡，字节数（SI）；条长为占容量的比例，灰色为空余",
        "en": "bytes of the fullest device (SI), drawn as a share of its capacity; grey is free",
    },
    "memory.device": {
        "zh": "{deployment}；每卡 {capacity}（{gib}）",
        "en": "{deployment}; {capacity} ({gib}) per device",
    },
    "memory.capacity_only": {
        "zh": "每卡 {capacity}（{gib}）",
        "en": "{capacity} ({gib}) per device",
    },
    "memory.usable": {"zh": "可用 {share}", "en": "usable {share}"},
    "memory.capacity": {"zh": "容量", "en": "capacity"},
    "memory.most": {"zh": "最多 {count} 条", "en": "at most {count} seq."},
    "memory.free": {"zh": "空 {amount}", "en": "free {amount}"},
    "memory.attention_weights": {"zh": "Attention / KV：权重", "en": "Attention / KV: weights"},
    "memory.ffn_weights": {"zh": "FFN / MLP：权重", "en": "FFN / MLP: weights"},
    "memory.cache": {"zh": "Attention / KV：cache", "en": "Attention / KV: cache"},
    "memory.reserve": {"zh": "系统调度：预留", "en": "Scheduling: reserve"},
    # the Explorer's panel
    "panel.tpot": {"zh": "每 token 时间", "en": "time per token"},
    "panel.sequence": {"zh": "单条速度", "en": "one sequence"},
    "panel.replica": {"zh": "整个副本", "en": "whole replica"},
    "panel.ttft": {"zh": "TTFT（prompt {prompt}）", "en": "TTFT, {prompt} prompt"},
    "panel.basis": {
        "zh": "时间为估算值；字节按整个副本合计，显存为最满的一张卡。",
        "en": "Times are estimates; bytes are summed over the replica, memory is the fullest "
        "device.",
    },
    # notes under figures
    "foot.deployment": {"zh": "{label}：{deployment}", "en": "{label}: {deployment}"},
    "foot.deployment.own": {
        "zh": "{label}：{deployment}，{concurrency} 条并发",
        "en": "{label}: {deployment}, {concurrency} sequences",
    },
    "foot.decode_point": {
        "zh": "时间为估算值；decode 按 prompt 加一半输出处计。",
        "en": "Times are estimates; decode at prompt plus half of the output.",
    },
    "foot.decode_point.output": {
        "zh": "时间为估算值；decode 按 prompt 加一半输出处计，输出 {output} token。",
        "en": "Times are estimates; decode at prompt plus half of {output} output tokens.",
    },
    "foot.bars": {
        "zh": "时间为估算值，取最忙的一张卡；字节按整个副本合计。",
        "en": "Times are estimates for the busiest device; bytes are summed over the replica.",
    },
    "foot.cache": {
        "zh": "点线是容量；红圈处曲线碰到容量，即放得下的最长上下文。",
        "en": "Dotted: capacity. Red ring: the curve meets it, the longest context that fits.",
    },
    "foot.memory": {
        "zh": "虚线：引擎可用上限。预留包括激活、通信缓冲与碎片。",
        "en": "Dashed: what the engine may use. Reserve: activations, buffers, fragmentation.",
    },
    "foot.two_ledgers": {
        "zh": "各点的系统调度占比都不到 5%，三角形会贴在底边上，所以只画两本账。",
        "en": "Scheduling stays under 5% everywhere: a triangle would lie flat, so two bars stand "
        "in for it.",
    },
    "foot.coincide": {
        "zh": "{under} 与 {over} 的轨迹重合：宽线在下，窄线在上。",
        "en": "{under} and {over} coincide: the wide trail lies under the narrow one.",
    },
    "foot.not_fitting": {
        "zh": "虚线段、空心标记：这台机器的显存放不下。",
        "en": "Dashed trail, hollow mark: does not fit in the memory of that machine.",
    },
    "foot.dropped": {
        "zh": "{count} 行含缺失值或非有限值，未画出。",
        "en": "Rows left out because a value is missing or not finite: {count}.",
    },
    "foot.no_time": {
        "zh": "{labels}：decode 时间为 0，没有占比可画。",
        "en": "{labels}: no decode time, so no shares to draw.",
    },
    "list.separator": {"zh": "、", "en": ", "},
    # captions and alternative text
    "finding.moves": {
        "zh": "{axis} 从 {first} 到 {last}，{label} 的 Attention / KV 占比"
        "从 {before} 变为 {after}，变化最大。",
        "en": "From {axis} {first} to {last} the Attention / KV share of {label} moves most, from "
        "{before} to {after}.",
    },
    "finding.moves.one": {
        "zh": "{axis} 从 {first} 到 {last}，{label} 的 Attention / KV 占比"
        "从 {before} 变为 {after}。",
        "en": "From {axis} {first} to {last} the Attention / KV share of {label} goes from "
        "{before} to {after}.",
    },
    "finding.largest": {
        "zh": "{label} 最大的一本账是 {ledger}（{share}）。",
        "en": "The largest ledger of {label} is {ledger} ({share}).",
    },
    "alt.figure": {
        "zh": "{title} {operating_point}。{items}。{finding}",
        "en": "{title} {operating_point}. {items}. {finding}",
    },
    "alt.shares": {
        "zh": "{label}：Attention / KV {a}%，FFN / MLP {f}%，系统调度 {s}%，共 {total}",
        "en": "{label}: Attention / KV {a}%, FFN / MLP {f}%, scheduling {s}%, {total}",
    },
    "finding.cache": {
        "zh": "{label} 最长放得下 {context}。",
        "en": "{label} fits up to {context}.",
    },
    "alt.cache": {
        "zh": "{label}（{mechanism}）：{context} 时 {amount}",
        "en": "{label} ({mechanism}): {amount} at {context}",
    },
    "finding.memory": {
        "zh": "{label}：{state}，最多 {count} 条。",
        "en": "{label}: {state}, at most {count} sequences.",
    },
    "finding.memory.state": {"zh": "{label}：{state}。", "en": "{label}: {state}."},
    "alt.memory": {
        "zh": "{label} 每卡 {used} / {capacity}",
        "en": "{label}: {used} of {capacity} on each device",
    },
    "alt.row": {"zh": "{label} 的{resource}", "en": "{label}, {resource}"},
    "alt.separator": {"zh": "；", "en": "; "},
    # tooltips
    "tip.model": {"zh": "模型", "en": "model"},
    "tip.ledger": {"zh": "账", "en": "ledger"},
    "tip.context": {"zh": "上下文", "en": "context"},
    "tip.cache": {"zh": "cache", "en": "cache"},
    "tip.law": {"zh": "规律", "en": "law"},
    "tip.component": {"zh": "部分", "en": "part"},
    "tip.resource": {"zh": "口径", "en": "resource"},
    "tip.account": {"zh": "账目", "en": "account"},
    "tip.amount": {"zh": "数额", "en": "amount"},
    "tip.share": {"zh": "占比", "en": "share"},
    "tip.step": {"zh": "每步时间", "en": "time per step"},
    "tip.memory": {"zh": "显存", "en": "memory"},
    "tip.prompt_tokens": {"zh": "prompt", "en": "prompt"},
    "tip.concurrency": {"zh": "并发", "en": "concurrency"},
    "tip.output_tokens": {"zh": "输出 token", "en": "output tokens"},
}
"""Key to template by language."""
