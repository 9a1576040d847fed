"""Words of the load test: verdicts with their evidence, pitfalls, cells, figures."""

from __future__ import annotations

from typing import Final, Literal

STRINGS: Final[dict[str, dict[Literal["zh", "en"], str]]] = {
    # what a verdict says, beyond its word in terms.py
    "loadtest.share": {
        "zh": "{cell} 处，KV 占 decode 时间 {value}，95% 区间：{low} 到 {high}。",
        "en": "At {cell}, KV takes {value} of decode time; 95% interval: {low} to {high}.",
    },
    "loadtest.shares_rest": {
        "zh": "其余：每步固定 {step}，随{kind}增长 {sequence}。",
        "en": "The rest: {step} constant per step, {sequence} growing with {kind}.",
    },
    "loadtest.kind.sequences": {"zh": "并发数", "en": "the sequences"},
    "loadtest.kind.distinct_experts": {"zh": "被激活的不同专家数", "en": "the distinct experts"},
    "loadtest.cell": {
        "zh": "{context} × batch {concurrency}",
        "en": "{context} × batch {concurrency}",
    },
    "loadtest.rule.kv_dominates": {
        "zh": "上下文敏感：KV 占比的下限不低于 50%。",
        "en": "Context-sensitive: the lower bound of the KV share is 50% or more.",
    },
    "loadtest.rule.kv_between": {
        "zh": "两者都敏感：KV 占比的区间在 20% 与 50% 之间。",
        "en": "Sensitive to both: the interval of the KV share lies between 20% and 50%.",
    },
    "loadtest.rule.kv_straddles": {
        "zh": "两者都敏感：KV 占比的区间跨过了 {edges} 这条线，只能保守地判为混合。",
        "en": "Sensitive to both: the interval of the KV share crosses {edges}, so mixed is the "
        "cautious reading.",
    },
    "loadtest.rule.step_dominates": {
        "zh": "batch 敏感：KV 占比的上限不超过 20%，而多数时间与并发数无关，一步由所有请求分摊。",
        "en": "Batch-sensitive: the upper bound of the KV share is 20% or less, and most of a step "
        "is shared by all sequences.",
    },
    "loadtest.rule.sequences_compute": {
        "zh": "KV 占比的上限不超过 20%，而一步的时间随并发数增长，与预测的计算量相符：算力受限。",
        "en": "The upper bound of the KV share is 20% or less; a step grows with the sequences as "
        "the predicted compute does: compute-bound.",
    },
    "loadtest.rule.neither_helps": {
        "zh": "两者都不敏感：上下文几乎不起作用，加大 batch 也换不来总吞吐。",
        "en": "Sensitive to neither: the context hardly matters, and more sequences buy no "
        "throughput.",
    },
    "loadtest.rule.engine_gap": {
        "zh": "客户端看到的 token 间隔里，{value} 不在引擎的步时间之内（区间 {low} 到 {high}）。",
        "en": "Of the time between tokens that the client sees, {value} is not the engine's step "
        "(interval {low} to {high}).",
    },
    "loadtest.rule.misfit": {
        "zh": "按该模型应有的形状拟合后，{cell} 仍偏离 {residual}：时间不按序列数和 cache 增长，"
        "先查引擎的实现（kernel 的档位、填充）和服务链路。",
        "en": "Fitted on the model's own shape, {cell} is still off by {residual}: time does not "
        "follow sequences and cache. Look at the engine (steps of its kernels, padding) and the "
        "service chain first.",
    },
    "loadtest.rule.misfit_without_model": {
        "zh": "拟合在 {cell} 偏离 {residual}。MoE、窗口和 top-k 都会弯曲曲线：请给出 model=。",
        "en": "The fit is off by {residual} at {cell}. Experts, windows and top-k bend the curve: "
        "give model=.",
    },
    "loadtest.rule.noisy": {
        "zh": "单次运行之间相差 {sigma}，噪声太大。",
        "en": "Single runs differ by {sigma}: too noisy.",
    },
    "loadtest.rule.wide_interval": {
        "zh": "KV 占比的区间宽于 30 个百分点，什么也说明不了。",
        "en": "The interval of the KV share is wider than 30 points and says nothing.",
    },
    "loadtest.rule.step_straddles": {
        "zh": "KV 占比很小，但固定部分与随并发增长的部分还分不出大小。",
        "en": "The KV share is small, but the constant and the growing part cannot be ranked yet.",
    },
    "loadtest.rule.one_context": {
        "zh": "只有一种上下文长度，看不出对上下文是否敏感。",
        "en": "There is one context length only, so nothing can be said about context.",
    },
    "loadtest.rule.one_concurrency": {
        "zh": "只有一种并发数，看不出对 batch 是否敏感。",
        "en": "There is one concurrency only, so nothing can be said about batch.",
    },
    "loadtest.rule.few_runs": {
        "zh": "每个测点不足 3 次，误差无从估计。",
        "en": "Fewer than 3 runs per cell: the error is unknown.",
    },
    "loadtest.rule.not_estimable": {
        "zh": "这些测点分不开三项：上下文与并发没有分别变化。",
        "en": "These cells cannot tell the three terms apart: context and concurrency do not vary "
        "separately.",
    },
    "loadtest.rule.no_rows": {"zh": "没有可用的测点。", "en": "There are no usable cells."},
    "loadtest.rule.blocked": {
        "zh": "数据里有使判断失效的问题，见下。",
        "en": "The data have a flaw that rules out a verdict; see below.",
    },
    "loadtest.suspect.weights": {
        "zh": "固定部分与读权重的预测相符（κ0 = {value}）：是权重读取。",
        "en": "The constant matches the predicted weight reads (κ0 = {value}): reading weights.",
    },
    "loadtest.suspect.scheduling": {
        "zh": "固定部分是读权重预测的 {value} 倍（κ0）：启动、通信或主机，是系统调度账。",
        "en": "The constant is {value} times the predicted weight reads (κ0): launches, "
        "communication or host, the scheduling ledger.",
    },
    "loadtest.suspect.compute": {
        "zh": "随并发增长的部分是计算量预测的 {value} 倍。",
        "en": "What grows with the sequences is {value} times the predicted compute.",
    },
    "loadtest.suspect.sequences": {
        "zh": "若是每个序列的计算受限（CPU、极大的 batch），看起来也一样；"
        "给出 model= 和 hardware= 才能区分。",
        "en": "A compute limit per sequence (CPUs, very large batches) looks the same; model= and "
        "hardware= tell them apart.",
    },
    "loadtest.suspect.unknown": {
        "zh": "权重读取与启动、通信、主机都表现为每步固定时间；给出 model= 和 hardware= 才能区分。",
        "en": "Weight reads, launches, communication and host all look like a constant; model= and "
        "hardware= are needed to tell them apart.",
    },
    "loadtest.suspect.open": {
        "zh": "固定部分是读权重预测的 {low} 到 {high} 倍（κ0），还不能在权重与调度之间下结论。",
        "en": "The constant is {low} to {high} times the predicted weight reads (κ0), which does "
        "not decide between weights and scheduling.",
    },
    "loadtest.kappa_a.high": {
        "zh": "读 KV 的时间是预测的 {value} 倍（κa）：查 KV dtype、TP 下的重复和注意力 kernel。",
        "en": "Reading the cache takes {value} times the prediction (κa): check the KV dtype, "
        "copies under TP and the attention kernel.",
    },
    "loadtest.kappa_a.low": {
        "zh": "读 KV 的时间只有预测的 {value} 倍（κa）：查窗口、稀疏、前缀缓存命中。",
        "en": "Reading the cache takes only {value} times the prediction (κa): look for windows, "
        "sparsity or prefix hits.",
    },
    "loadtest.kappa_a.ok": {
        "zh": "读 KV 的时间是预测的 {value} 倍（κa），无异常。",
        "en": "Reading the cache takes {value} times the prediction (κa): nothing odd.",
    },
    "loadtest.next": {"zh": "需补测：{cells}。", "en": "Still to measure: {cells}."},
    "loadtest.next.cell": {"zh": "{cell}（{runs} 次）", "en": "{cell} (runs: {runs})"},
    "loadtest.next.settles": {
        "zh": "预计区间缩到 {width}，足以定论。",
        "en": "That should narrow the interval to {width}, which is enough.",
    },
    "loadtest.next.narrows": {
        "zh": "预计区间缩到 {width}，未必足够：真值可能就在线上。",
        "en": "That should narrow the interval to {width}, which may not be enough: the truth may "
        "lie on the line.",
    },
    "loadtest.findings": {"zh": "数据里看到的问题：", "en": "Seen in the data:"},
    "loadtest.excluded": {"zh": "已剔除。", "en": "Left out."},
    "loadtest.finding.no_step_time": {
        "zh": "{rows} 次运行没有 decode 时间。",
        "en": "{rows} runs have no decode time.",
    },
    "loadtest.finding.no_coordinates": {
        "zh": "{rows} 次运行缺上下文或并发数。",
        "en": "{rows} runs lack context or concurrency.",
    },
    "loadtest.finding.preemption": {
        "zh": "{rows} 次运行中有请求被抢占并重算。",
        "en": "Requests were preempted and recomputed in {rows} runs.",
    },
    "loadtest.finding.unverified_concurrency": {
        "zh": "并发数未经核实，按请求值计。",
        "en": "Concurrency was not verified; the requested one is used.",
    },
    "loadtest.finding.achieved_concurrency": {
        "zh": "实际并发与请求的不同（{cells}），按实际并发计。",
        "en": "Achieved and requested concurrency differ ({cells}); the achieved one is used.",
    },
    "loadtest.finding.failed_requests": {
        "zh": "{cells} 有失败的请求。",
        "en": "Requests failed in {cells}.",
    },
    "loadtest.finding.prefix_hits": {
        "zh": "{cells} 命中了前缀缓存：TTFT 不可用。",
        "en": "The prefix cache was hit in {cells}: TTFT is void.",
    },
    "loadtest.finding.ttft_does_not_grow": {
        "zh": "prompt 长了 {span} 倍而 TTFT 只长了 {growth} 倍：多半命中了前缀缓存。",
        "en": "TTFT grew {growth} times while prompts grew {span} times: prefix hits are likely.",
    },
    "loadtest.finding.prompt_not_as_asked": {
        "zh": "{cells} 的 prompt 长度按服务器的计数与请求的相差 10% 以上：计数有误或被截断。",
        "en": "The server counts prompts of {cells} over 10% off what was asked: a wrong count, or "
        "they were cut.",
    },
    "loadtest.finding.output_not_fixed": {
        "zh": "{cells} 的输出长度不固定：请让服务器忽略结束符。",
        "en": "Output lengths differ in {cells}: make the server ignore the end token.",
    },
    "loadtest.finding.few_steady_tokens": {
        "zh": "{cells} 每个请求的平稳 decode token 不足 {needed} 个。",
        "en": "Fewer than {needed} steady decode tokens per sequence in {cells}.",
    },
    "loadtest.finding.prefill_in_decode": {
        "zh": "{cells} 的平均间隔比中位数大 10% 以上：decode 里混进了 prefill。",
        "en": "The mean time between tokens is over 10% above the median in {cells}: prefill "
        "chunks ride along.",
    },
    "loadtest.finding.uneven_steps": {
        "zh": "{cells} 的平均间隔比中位数大 10% 以上，而当时没有 prefill：机器上还有别的负载。",
        "en": "The mean time between tokens is over 10% above the median in {cells}, though "
        "nothing was prefilled: the machine did other things too.",
    },
    "loadtest.finding.tokens_from_chunks": {
        "zh": "{cells} 没有 usage，token 数按数据块计。",
        "en": "No usage in {cells}: tokens were counted by chunks.",
    },
    "loadtest.finding.several_tokens_per_chunk": {
        "zh": "{cells} 一个数据块带多个 token（Speculative Decoding 或合并发送），"
        "已按 token 折算。",
        "en": "Chunks carry several tokens in {cells} (speculation or buffering); times are per "
        "token.",
    },
    "loadtest.finding.graph_padding": {
        "zh": "{cells} 的并发数不是 CUDA graph 捕获的大小，会按更大的 batch 运行。",
        "en": "The concurrency of {cells} is no captured graph size and runs as a larger one.",
    },
    "loadtest.finding.small_misfit": {
        "zh": "拟合在 {cells} 有确实但不大的偏差：{residual}。",
        "en": "The fit is off by {residual} at {cells}: real, but small.",
    },
    "loadtest.finding.at_bound": {
        "zh": "有一项落在 0 上：测点分辨不出它。",
        "en": "A term sits at 0: these cells do not resolve it.",
    },
    "loadtest.finding.drift": {
        "zh": "测试期间漂移了 {drift}（频率、温度或邻居）。",
        "en": "Times drifted by {drift} over the test (clocks, heat or neighbours).",
    },
    "loadtest.finding.ordered": {
        "zh": "测点按负载大小依次运行，漂移与负载无法分开：请打乱顺序。",
        "en": "Cells ran in order of load, so drift cannot be told from load: shuffle them.",
    },
    "loadtest.finding.outlier": {
        "zh": "{cells} 第 {run} 次与其余全部相悖（{residual}）。",
        "en": "Run {run} of {cells} contradicts all others ({residual}).",
    },
    "loadtest.finding.extrapolated": {
        "zh": "工作点在测点之外，是外推。",
        "en": "The operating point lies beyond the measured cells: an extrapolation.",
    },
    "loadtest.finding.ttft_constant": {
        "zh": "{tokens} prompt 的 TTFT 有 {share} 是常数：首 token 先查服务链路。",
        "en": "Of the TTFT at {tokens}, {share} is constant: for the first token, check the "
        "service chain.",
    },
    "loadtest.finding.no_steady_window": {
        "zh": "{cells} 没有一段时间是全部请求都在 decode：增加输出长度。",
        "en": "At no time did all requests of {cells} decode together: ask for longer output.",
    },
    # a series alone
    "loadtest.series.context_sensitive": {"zh": "对上下文敏感", "en": "context-sensitive"},
    "loadtest.series.concurrency_sensitive": {"zh": "对 batch 敏感", "en": "concurrency-sensitive"},
    "loadtest.series.flat": {"zh": "不敏感", "en": "flat"},
    "loadtest.series.outlier": {"zh": "有离群点", "en": "outlier"},
    "loadtest.series.undetermined": {"zh": "尚不能判断", "en": "undetermined"},
    "loadtest.series.context": {
        "zh": "远端有 {value} 的时间随上下文增长（95% 区间：{low} 到 {high}），"
        "两端时间相差 {growth} 倍。",
        "en": "At the far end {value} of the time grows with the context (95% interval: {low} to "
        "{high}); end to end the time grows {growth} times.",
    },
    "loadtest.series.concurrency": {
        "zh": "并发加倍，总吞吐约乘 {factor}（弹性 {value}，95% 区间：{low} 到 {high}），"
        "两端每步时间相差 {growth} 倍。",
        "en": "Twice the sequences give about {factor} times the throughput (elasticity {value}, "
        "95% interval: {low} to {high}); end to end a step grows {growth} times.",
    },
    "loadtest.series.only": {
        "zh": "单独一组看不出是哪本账：还需要另一组。",
        "en": "One series cannot name the ledger: the other one is needed too.",
    },
    "loadtest.series.outliers": {
        "zh": "{places} 处的值与相邻点相悖；其余的点：{rest}。",
        "en": "The value at {places} contradicts its neighbours; the other points: {rest}.",
    },
    "loadtest.finding.two_points": {
        "zh": "少于三个位置，定不出误差。",
        "en": "Fewer than three places: there is no error to judge by.",
    },
    "loadtest.finding.steeper_than_proportional": {
        "zh": "增长快于正比（指数 {power}）：读 KV 做不到，查 kernel、换页或限频。",
        "en": "Growth is steeper than proportional (power {power}): reading a cache cannot do "
        "that; look at kernels, swapping or throttling.",
    },
    # a plan
    "loadtest.plan.cells": {
        "zh": "{count} 个测点，各 {runs} 次，共 {bursts} 轮；"
        "每个请求输出 {output} 个 token：{cells}。",
        "en": "{count} cells, {runs} runs each, {bursts} bursts in all; {output} output tokens per "
        "request: {cells}.",
    },
    "loadtest.plan.memory": {"zh": "显存放不下，不测：{cells}。", "en": "Will not fit: {cells}."},
    "loadtest.plan.length": {
        "zh": "超过模型或引擎的长度上限，不测：{cells}。",
        "en": "Longer than model or engine allow: {cells}.",
    },
    "loadtest.plan.seats": {
        "zh": "超过 max_num_seqs，不测：{cells}。",
        "en": "More sequences than max_num_seqs: {cells}.",
    },
    "loadtest.plan.time": {"zh": "时间不够，不测：{cells}。", "en": "No time for: {cells}."},
    "loadtest.plan.uncertain": {
        "zh": "不一定放得下，留意实际并发：{cells}。",
        "en": "May not fit, watch the achieved concurrency: {cells}.",
    },
    "loadtest.plan.duration": {"zh": "预计用时约 {time}。", "en": "Expected to take about {time}."},
    "loadtest.plan.minutes": {"zh": "{minutes} 分钟", "en": "{minutes} min"},
    "loadtest.plan.cost": {
        "zh": "预计费用约 {usd} 美元（{date} 的价格）。",
        "en": "Expected to cost about {usd} USD (prices of {date}).",
    },
    # figures
    "loadtest.separator": {"zh": "，", "en": ", "},
    "loadtest.change.kv_fp8": {
        "zh": "KV cache 改用 fp8：该点 decode 时间约 {change}",
        "en": "KV cache in fp8: decode time at this point about {change}",
    },
    "loadtest.change.kv_less": {
        "zh": "KV 每少读 10%：该点 decode 时间约 {change}",
        "en": "Each 10% of the cache not read: decode time at this point about {change}",
    },
    "loadtest.change.batch": {
        "zh": "batch 加到 {many}：该上下文下总吞吐约 {change}",
        "en": "Raise batch to {many}: throughput at this context about {change}",
    },
    "loadtest.change.service": {
        "zh": "比较引擎自己的步时间与客户端看到的间隔，再查代理、网关与分词",
        "en": "Compare the engine's own step time with what the client sees; then proxies, "
        "gateways, tokenizing",
    },
    "loadtest.verdict.title": {
        "zh": "压测判断：瓶颈在哪本账",
        "en": "Load-test verdict: which ledger is the bottleneck",
    },
    "loadtest.verdict.subtitle": {
        "zh": "白点：实测每步毫秒；底色：拟合的 KV 时间占比；黑圈：工作点",
        "en": "Dots: measured ms per step; shade: fitted KV share; ring: operating point",
    },
    "loadtest.verdict.subtitle.plain": {
        "zh": "白点：实测每步毫秒；黑圈：工作点；拟合不足以画出占比",
        "en": "Dots: measured ms per step; ring: operating point; no fit good enough for a map",
    },
    "loadtest.verdict.head": {"zh": "判断", "en": "Verdict"},
    "loadtest.verdict.why": {"zh": "依据", "en": "Why"},
    "loadtest.verdict.change": {"zh": "先改什么", "en": "First thing to change"},
    "loadtest.verdict.next": {"zh": "需补测", "en": "Still to measure"},
    "loadtest.axis.batch": {
        "zh": "↑ batch（同时解码的序列）",
        "en": "↑ batch (sequences decoding at once)",
    },
    "loadtest.axis.context": {
        "zh": "上下文（token，1K = 1024）→",
        "en": "context (tokens, 1K = 1024) →",
    },
    "loadtest.region.kv": {"zh": "KV", "en": "KV"},
    "loadtest.region.mixed": {"zh": "混合", "en": "mixed"},
    "loadtest.region.rest": {"zh": "权重读取 / FFN / 调度", "en": "weights, FFN, scheduling"},
    "loadtest.region.full": {"zh": "显存放不下", "en": "does not fit"},
    "loadtest.scale": {"zh": "KV 占 decode 时间", "en": "KV share of decode time"},
    "loadtest.foot": {
        "zh": "实线 50%，虚线 20%。占比的 95% 区间来自 {runs} 次运行的拟合（相对误差 {sigma}）。",
        "en": "Solid line 50%, dashed 20%. The 95% interval follows from a fit to {runs} runs "
        "(relative error {sigma}).",
    },
    "loadtest.ratio.title": {
        "zh": "实测与预测差多少",
        "en": "How far is the measurement from the prediction?",
    },
    "loadtest.ratio.subtitle": {
        "zh": "每步时间，实测 ÷ 预测；灰带：预测自身的范围",
        "en": "Step time, measured over predicted; grey: the prediction's own band",
    },
    "loadtest.ratio.measured": {"zh": "实测 ms", "en": "measured ms"},
    "loadtest.ratio.predicted": {"zh": "预测 ms", "en": "predicted ms"},
    "loadtest.curves.title": {
        "zh": "时间随上下文和 batch 怎么变",
        "en": "How does time follow context and batch?",
    },
    "loadtest.curves.step": {"zh": "每步时间（ms）", "en": "step time (ms)"},
    "loadtest.curves.share": {"zh": "KV 占比", "en": "KV share"},
    "loadtest.curves.foot": {
        "zh": "点：实测均值与 95% 区间；线：拟合；带：95% 区间。横轴为对数。",
        "en": "Dots: measured means with 95% intervals; lines: fit; bands: 95% intervals. "
        "Horizontal axes are logarithmic.",
    },
    "loadtest.curves.at_batch": {"zh": "batch {value}", "en": "batch {value}"},
    "loadtest.curves.at_context": {"zh": "上下文 {value}", "en": "context {value}"},
    "loadtest.ticks.batch": {"zh": "batch →", "en": "batch →"},
    "loadtest.nothing": {"zh": "没有可画的测点", "en": "nothing was measured"},
}
