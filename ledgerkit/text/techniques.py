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
    "transfer.axis.link_bytes_per_s": {"zh": "链路带宽", "en": "link rate"},
    "transfer.axis.reuse_interval_s": {"zh": "复用间隔", "en": "reuse interval"},
    "transfer.at.concurrency": {"zh": "并发 {value}", "en": "concurrency {value}"},
    "transfer.at.prompt": {"zh": "prompt {value}", "en": "prompt {value}"},
    "transfer.always.gain": {
        "zh": "{resource}，{phase}，{point}：{axis}从 {low} 到 {high} 都省",
        "en": "{resource}, {phase}, {point}: a gain for every {axis} from {low} to {high}",
    },
    "transfer.always.loss": {
        "zh": "{resource}，{phase}，{point}：{axis}从 {low} 到 {high} 都亏",
        "en": "{resource}, {phase}, {point}: a loss for every {axis} from {low} to {high}",
    },
    "transfer.always.even": {
        "zh": "{resource}，{phase}，{point}：{axis}从 {low} 到 {high} 没有差别",
        "en": "{resource}, {phase}, {point}: no difference for {axis} from {low} to {high}",
    },
    "transfer.turns.loss_gain": {
        "zh": "{resource}，{phase}，{point}：{axis}从 {value} 起省，低于它则亏",
        "en": "{resource}, {phase}, {point}: from {axis} {value} on a gain, below a loss",
    },
    "transfer.turns.gain_loss": {
        "zh": "{resource}，{phase}，{point}：{axis}从 {value} 起亏，低于它则省",
        "en": "{resource}, {phase}, {point}: from {axis} {value} on a loss, below a gain",
    },
    # the transfer chart
    "transfer.title": {"zh": "账单去了哪里：{title}", "en": "Where the bill goes: {title}"},
    "transfer.point": {
        "zh": "{model}，{deployment}；prompt {prompt}，并发 {concurrency}",
        "en": "{model}, {deployment}; prompt {prompt}, concurrency {concurrency}",
    },
    "transfer.scale.device": {
        "zh": "每卡；decode 为每个输出 token；条长 = 占改前该项总量的比例，满格 {scale}",
        "en": "per device; decode per output token; bars = share of the total before, full {scale}",
    },
    "transfer.phase.prefill": {"zh": "prefill", "en": "prefill"},
    "transfer.phase.decode": {"zh": "decode", "en": "decode"},
    "transfer.unit.compute": {"zh": "FLOP", "en": "FLOP"},
    "transfer.unit.read": {"zh": "读写字节", "en": "bytes read and written"},
    "transfer.unit.resident": {"zh": "驻留字节", "en": "resident bytes"},
    "transfer.unit.communicate": {"zh": "通信字节", "en": "bytes sent"},
    "transfer.unit.steps": {"zh": "串行步", "en": "serial steps"},
    "transfer.unit.time": {"zh": "等待", "en": "waiting"},
    "transfer.net": {"zh": "净", "en": "Net"},
    "transfer.net.decode": {"zh": "每个输出 token 的 decode 时间", "en": "decode time per token"},
    "transfer.net.prefill": {"zh": "首 token 时间（TTFT）", "en": "time to first token (TTFT)"},
    "transfer.note.capacity": {"zh": "容量", "en": "Capacity"},
    "transfer.capacity": {
        "zh": "改前 {before}，{before_fits}；改后 {after}，{after_fits}（每卡可用 {limit}）",
        "en": "before {before}: {before_fits}; after {after}: {after_fits} ({limit} usable)",
    },
    "transfer.none.cost": {
        "zh": "没有入账的代价：请检查模型，代价可能只在账外",
        "en": "no cost booked: check the model; the cost may be outside the books",
    },
    "transfer.none.change": {
        "zh": "两本账相同：这里没有任何变化",
        "en": "both ledgers are equal: nothing changes here",
    },
    "transfer.new": {"zh": "新增", "en": "new"},
    "transfer.foot": {
        "zh": "基准：估算值，按公式与器件效率计算。账外的风险只陈述，不给数字。",
        "en": "Basis: estimated, from formulas and device efficiencies. Risks outside the books "
        "are stated, without numbers.",
    },
    "transfer.finding": {
        "zh": "{what}：{change}。",
        "en": "{what}: {change}.",
    },
    # the waterfall of a stack
    "waterfall.title": {
        "zh": "叠加的技术：各省多少，相互影响多少",
        "en": "A stack of techniques: what each does, and their interaction",
    },
    "waterfall.start": {"zh": "改前", "en": "before"},
    "waterfall.end": {"zh": "改后", "en": "after"},
    "waterfall.interaction": {"zh": "相互影响", "en": "interaction"},
    "waterfall.scale": {
        "zh": "{resource}，{phase}，每卡；每条 = 单独使用时的变化",
        "en": "{resource}, {phase}, per device; each bar = the change when used alone",
    },
    "waterfall.foot": {
        "zh": "单独的变化与相互影响之和 = 总变化。基准：估算值。",
        "en": "Changes alone plus interaction = the whole change. Basis: estimated.",
    },
    "waterfall.needs": {
        "zh": "带 * 的技术依赖前面的技术，取叠加顺序中的变化。",
        "en": "A technique with * needs an earlier one and is taken in order.",
    },
    # break-even curves
    "break_even.title": {
        "zh": "{title}：从哪里开始划算？",
        "en": "{title}: from where does it pay?",
    },
    "break_even.axis": {
        "zh": "{resource}（{phase}，每卡）",
        "en": "{resource} ({phase}, per device)",
    },
    "break_even.before": {"zh": "改前：{label}", "en": "before: {label}"},
    "break_even.after": {"zh": "改后：{label}", "en": "after: {label}"},
    "break_even.saved": {"zh": "省下：{label}", "en": "saved: {label}"},
    "break_even.paid": {"zh": "多付：{label}", "en": "paid: {label}"},
    "break_even.accounts": {
        "zh": "只计账户 {accounts}，不含权重",
        "en": "accounts {accounts} only, without weights",
    },
    "break_even.foot": {
        "zh": "两轴为对数刻度。基准：估算值。",
        "en": "Both axes are logarithmic. Basis: estimated.",
    },
    "break_even.mark": {"zh": "平衡点 {value}", "en": "break-even {value}"},
    "break_even.never": {
        "zh": "所示范围内没有平衡点",
        "en": "no break-even in the range shown",
    },
    # the taxonomy page
    "taxonomy.title": {
        "zh": "三本账上的技术：省了什么，账单去了哪里",
        "en": "Techniques on three ledgers: what each saves, where the bill goes",
    },
    "taxonomy.saves": {"zh": "省", "en": "saves"},
    "taxonomy.pays": {"zh": "付（颜色 = 付账的账本）", "en": "pays (colour = ledger that pays)"},
    "taxonomy.square": {
        "zh": "方块 = 付账的账本；没有方块 = 代价在账外",
        "en": "square = ledger that pays; none: outside the books",
    },
    "taxonomy.verb.compute_less": {"zh": "算", "en": "comp."},
    "taxonomy.verb.read_less": {"zh": "读", "en": "read"},
    "taxonomy.verb.store_less": {"zh": "存", "en": "store"},
    "taxonomy.verb.communicate_less": {"zh": "通信", "en": "comm."},
    "taxonomy.verb.schedule_better": {"zh": "调度", "en": "sched."},
    "taxonomy.cost": {"zh": "代价转移到", "en": "where the cost goes"},
    "taxonomy.foot.signs": {
        "zh": "符号由 lk.transfer 在参考部署上算出，每卡、每个输出 token，小于 1% 不标；"
        "大小随负载变化。",
        "en": "Signs computed by lk.transfer on reference deployments, per device and token, from "
        "1% on.",
    },
    "taxonomy.foot.ask": {
        "zh": "看到一个新技术，先问它属于哪本账，再问账单去了哪里。",
        "en": "For any new technique, first ask which ledger it belongs to, then where the bill "
        "goes.",
    },
    "taxonomy.finding": {
        "zh": "{count} 项技术，其中 {outside} 项的代价在账外。",
        "en": "{count} techniques; for {outside} of them the cost is outside the books.",
    },
}
"""Key to template by language."""
