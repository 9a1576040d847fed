"""Strings of the five-step reading of a model: fields, structures, savings, costs, load test."""

from __future__ import annotations

from typing import Final, Literal

STRINGS: Final[dict[str, dict[Literal["zh", "en"], str]]] = {
    "reading.report.title": {"zh": "{name}：用三本账读一遍", "en": "{name}: read by three ledgers"},
    "reading.report.point": {
        "zh": "读数的工作点：{devices} × {hardware}（tp={tp}，pp={pp}），prompt {prompt}、输出 "
        "{output} token，并发 {concurrency}；{fits}。数值按最忙的一张卡。",
        "en": "Operating point: {devices} x {hardware} (tp={tp}, pp={pp}), prompt {prompt}, output "
        "{output} tokens, {concurrency} sequences at once; {fits}. Amounts are of the busiest "
        "device.",
    },
    "reading.report.times": {
        "zh": "这里首 token {ttft}，每 token {tpot}；decode 时间：Attention / KV {attention_kv}%，"
        "FFN / MLP {ffn_mlp}%，系统调度 {scheduling}%；显存 {memory} / {capacity}。",
        "en": "There the first token takes {ttft}, each further one {tpot}; decode time: "
        "attention/KV {attention_kv}%, FFN/MLP {ffn_mlp}%, scheduling {scheduling}%; memory "
        "{memory} of {capacity}.",
    },
    "reading.launches": {"zh": "启动与轮次 {change}", "en": "{change} launches and rounds"},
    "reading.and": {"zh": "；", "en": "; "},
    "reading.comma": {"zh": "，", "en": ", "},
    "reading.belief": {"zh": "{belief}：{verdict}。", "en": "{belief}: {verdict}."},
    "reading.step.1": {"zh": "第一步：基础结构", "en": "Step 1: basic structure"},
    "reading.step.2": {"zh": "第二步：归到三本账", "en": "Step 2: onto which ledger"},
    "reading.step.3": {"zh": "第三步：省了什么", "en": "Step 3: what it saves"},
    "reading.step.4": {"zh": "第四步：代价转移到了哪里", "en": "Step 4: where the cost went"},
    "reading.step.5": {"zh": "第五步：最小压测", "en": "Step 5: the minimal load test"},
    "reading.step.checks": {
        "zh": "常见误判，用数字核对",
        "en": "Common misreadings, by the numbers",
    },
    "reading.step.notes": {"zh": "读取时的说明", "en": "Remarks of the reader"},
    "reading.col.field": {"zh": "字段", "en": "Field"},
    "reading.col.value": {"zh": "值", "en": "Value"},
    "reading.col.origin": {"zh": "来自", "en": "From"},
    "reading.col.where": {"zh": "出处", "en": "Where"},
    "reading.col.structure": {"zh": "结构", "en": "Structure"},
    "reading.col.ledger": {"zh": "账本", "en": "Ledger"},
    "reading.col.against": {"zh": "对照", "en": "Against"},
    "reading.col.phase": {"zh": "阶段", "en": "Phase"},
    "reading.col.verb": {"zh": "动词", "en": "Verb"},
    "reading.col.change": {"zh": "变化", "en": "Change"},
    "reading.col.risk": {"zh": "风险", "en": "Risk"},
    "reading.col.cell": {"zh": "测点", "en": "Cell"},
    "reading.col.step": {"zh": "预计每步", "en": "Expected step"},
    "reading.col.ttft": {"zh": "预计首 token", "en": "Expected first token"},
    "reading.col.kv_share": {"zh": "预计 KV 占比", "en": "Expected KV share"},
    "reading.col.fits": {"zh": "放得下", "en": "Fits"},
    "reading.field.total": {"zh": "总参数", "en": "Total parameters"},
    "reading.field.total_published": {"zh": "总参数（官方）", "en": "Total, as published"},
    "reading.field.active": {"zh": "激活参数", "en": "Active parameters"},
    "reading.field.active_published": {"zh": "激活参数（官方）", "en": "Active, as published"},
    "reading.field.layers": {"zh": "层数", "en": "Layers"},
    "reading.field.heads": {"zh": "注意力头数", "en": "Attention heads"},
    "reading.field.kv_heads": {"zh": "KV 头数", "en": "KV heads"},
    "reading.field.attention": {"zh": "注意力机制", "en": "Attention mechanism"},
    "reading.field.context": {"zh": "最长上下文", "en": "Longest context"},
    "reading.field.experts": {"zh": "专家数", "en": "Experts"},
    "reading.field.topk": {"zh": "每 token 专家数", "en": "Experts per token"},
    "reading.field.precision": {"zh": "精度与权重大小", "en": "Precision and size of weights"},
    "reading.field.engine": {"zh": "支持的引擎", "en": "Engine that supports it"},
    "reading.active": {
        "zh": "{shown}（不含输入嵌入；含 {most}；两头都不含 {least}）",
        "en": "{shown} (without the input embedding; {most} with it; {least} without the head too)",
    },
    "reading.not_stated": {"zh": "没有写明", "en": "not stated"},
    "reading.origin.counted": {"zh": "逐张量数出", "en": "counted by tensor"},
    "reading.origin.published": {"zh": "公开来源", "en": "a public source"},
    "reading.origin.not_stated": {"zh": "没有来源", "en": "no source"},
    # structures
    "reading.has.mha": {
        "zh": "MHA（{heads} 头）× {layers} 层",
        "en": "MHA ({heads} heads) x {layers} layers",
    },
    "reading.has.gqa": {
        "zh": "GQA（{heads} 查询头共用 {kv_heads} KV 头）× {layers} 层",
        "en": "GQA ({heads} query heads share {kv_heads} KV heads) x {layers} layers",
    },
    "reading.has.mqa": {
        "zh": "MQA（{heads} 查询头共用 {kv_heads} KV 头）× {layers} 层",
        "en": "MQA ({heads} query heads share {kv_heads} KV head) x {layers} layers",
    },
    "reading.has.mla": {
        "zh": "MLA（每 token 存 {elements} 个元素）× {layers} 层",
        "en": "MLA ({elements} elements per token) x {layers} layers",
    },
    "reading.has.dsa": {
        "zh": "DSA（索引器选 {topk} 个 token）× {layers} 层",
        "en": "DSA (an indexer picks {topk} tokens) x {layers} layers",
    },
    "reading.has.block_sparse": {
        "zh": "块稀疏注意力（选 {topk} 个 token）× {layers} 层",
        "en": "block-sparse attention ({topk} tokens) x {layers} layers",
    },
    "reading.has.compressed": {
        "zh": "压缩注意力（压缩比 {ratios}）× {layers} 层",
        "en": "compressed attention (ratios {ratios}) x {layers} layers",
    },
    "reading.has.linear": {
        "zh": "线性注意力（{variant}）× {layers} 层，其余 {others} 层",
        "en": "linear attention ({variant}) x {layers} layers, {others} others",
    },
    "reading.has.window": {
        "zh": "滑动窗口 {window} × {layers} 层，其余 {others} 层",
        "en": "sliding window {window} x {layers} layers, {others} others",
    },
    "reading.has.chunked": {
        "zh": "分块注意力（{chunk}）× {layers} 层",
        "en": "chunked attention ({chunk}) x {layers} layers",
    },
    "reading.has.kv_sharing": {
        "zh": "跨层共享 KV：{layers} 层不存自己的 KV",
        "en": "KV shared across layers: {layers} layers store none of their own",
    },
    "reading.has.dense": {
        "zh": "Dense FFN（宽 {width}）× {layers} 层",
        "en": "dense FFN (width {width}) x {layers} layers",
    },
    "reading.has.moe": {
        "zh": "MoE（{experts} 个专家，每 token {topk} 个）× {layers} 层",
        "en": "MoE ({experts} experts, {topk} per token) x {layers} layers",
    },
    "reading.has.shared_experts": {
        "zh": "共享专家（宽 {width}）× {layers} 层",
        "en": "shared experts (width {width}) x {layers} layers",
    },
    "reading.has.dense_beside": {
        "zh": "专家旁的 Dense FFN（宽 {width}）× {layers} 层",
        "en": "dense FFN beside the experts (width {width}) x {layers} layers",
    },
    "reading.has.node_limited": {
        "zh": "限组路由（{groups} 组里选 {limit} 组）× {layers} 层",
        "en": "group-limited routing ({limit} of {groups} groups) x {layers} layers",
    },
    "reading.has.per_layer_embedding": {
        "zh": "逐层嵌入（表里 {elements} 个元素）",
        "en": "per-layer embedding (a table of {elements} elements)",
    },
    "reading.has.expert_quantization": {
        "zh": "专家量化（{dtype}）",
        "en": "quantized experts ({dtype})",
    },
    "reading.has.weight_quantization": {
        "zh": "权重量化（{dtype}）",
        "en": "quantized weights ({dtype})",
    },
    "reading.has.mtp": {
        "zh": "MTP（{layers} 块，{parameters} 参数，只用于草拟）",
        "en": "MTP ({layers} block(s), {parameters} parameters, for drafting only)",
    },
    # what stands in for a structure
    "reading.against.heads_own": {
        "zh": "每个头各存 K/V（MHA）",
        "en": "keys and values per head (MHA)",
    },
    "reading.against.all_tokens": {"zh": "看全部 token", "en": "attention to all tokens"},
    "reading.against.no_window": {"zh": "没有窗口", "en": "no window"},
    "reading.against.full_attention": {"zh": "全部用全局注意力", "en": "full attention everywhere"},
    "reading.against.own_cache": {"zh": "每层各存 KV", "en": "a cache for each layer"},
    "reading.against.equal_total": {"zh": "总参数相同的 Dense", "en": "dense of equal total size"},
    "reading.against.equal_active": {
        "zh": "激活参数相同的 Dense",
        "en": "dense of equal active size",
    },
    "reading.against.no_draft": {
        "zh": "不草拟（假定接受率 0.85）",
        "en": "no drafting (acceptance of 0.85 assumed)",
    },
    "reading.col.tpot": {"zh": "每 token", "en": "Each token"},
    "reading.col.memory": {"zh": "显存", "en": "Memory"},
    "reading.col.first": {"zh": "首 token", "en": "First token"},
    "reading.net": {"zh": "合起来：", "en": "All together:"},
    "reading.against.no_shared": {"zh": "没有共享专家", "en": "no shared experts"},
    "reading.against.bf16": {"zh": "bf16 权重", "en": "bf16 weights"},
    # stated risks
    "reading.risk.quality": {
        "zh": "质量：只能靠评测确认，账里没有这个数",
        "en": "quality: an evaluation decides, no ledger holds it",
    },
    "reading.risk.engineering": {
        "zh": "工程：多卡切分、通信和排障更复杂",
        "en": "engineering: layouts, communication and debugging get harder",
    },
    "reading.risk.framework": {
        "zh": "框架：需要专门的 kernel 和格式支持，先查引擎",
        "en": "framework: needs kernels and formats of its own, check the engine first",
    },
    "reading.risk.scheduling": {
        "zh": "调度：收益随并发、命中率或负载均衡变化",
        "en": "scheduling: what it gains depends on concurrency, hits or balance",
    },
    "reading.risk.recall": {
        "zh": "长上下文召回：远处的信息要靠其他层转达，须实测",
        "en": "long-range recall: distant facts come through other layers, test it",
    },
    "reading.risk.none": {"zh": "没有另外说明的风险", "en": "no further risk stated"},
    "reading.costs.none": {
        "zh": "在这个工作点没有超过 0.5% 的新增账目",
        "en": "no debit above 0.5 % at this point",
    },
    "reading.saves.none": {
        "zh": "在这个工作点没有超过 0.5% 的节省",
        "en": "no saving above 0.5 % at this point",
    },
    "reading.cannot": {"zh": "不能算：{reason}", "en": "not computable: {reason}"},
    "reading.no_counterfactual": {
        "zh": "没有可以计算的对照",
        "en": "no counterfactual that can be computed",
    },
    # misreadings
    "reading.verdict.refuted": {"zh": "误判", "en": "Misreading"},
    "reading.verdict.holds": {"zh": "在这里成立", "en": "Holds here"},
    "reading.verdict.absent": {"zh": "这个模型没有这个诱因", "en": "No cause for it here"},
    "reading.verdict.test": {"zh": "算不出来：请测", "en": "Not computable: test this"},
    "reading.belief.active_memory": {
        "zh": "激活参数小，所以显存门槛也小",
        "en": "Active parameters are few, so memory is small",
    },
    "reading.belief.long_context": {
        "zh": "支持长上下文，所以长上下文便宜",
        "en": "Long contexts are supported, so they are cheap",
    },
    "reading.belief.runs_locally": {
        "zh": "benchmark 高，所以本地也跑得顺",
        "en": "Benchmarks are high, so it runs well locally",
    },
    "reading.belief.moe_faster": {
        "zh": "MoE 总比 Dense 快",
        "en": "MoE is always faster than dense",
    },
    "reading.belief.window_recall": {
        "zh": "有滑动窗口也不影响长距离召回",
        "en": "A sliding window leaves long recall alone",
    },
    "reading.found.active_memory": {
        "zh": "每 token 用到 {active} 参数（{active_bytes}），但要驻留 {total} 参数（"
        "{weight_bytes}），是前者的 {ratio} 倍。",
        "en": "A token uses {active} parameters ({active_bytes}), but {total} ({weight_bytes}) "
        "stay "
        "in memory: {ratio} times as much.",
    },
    "reading.found.long_context": {
        "zh": "{context} 上下文的一条序列：cache {cache}，首 token {ttft}，每 token {tpot}，是 "
        "{short} 时的 {times} 倍；同时最多 {seats} 条；{fits}。",
        "en": "One sequence at {context}: cache {cache}, first token {ttft}, each further one "
        "{tpot}, "
        "{times} times that at {short}; {seats} of them at once; {fits}.",
    },
    "reading.found.short_context": {
        "zh": "最长上下文只有 {context}。",
        "en": "The longest context is only {context}.",
    },
    "reading.found.runs_locally": {
        "zh": "benchmark 分数不在账里。按 checkpoint 的精度，单机一条序列：{devices}。",
        "en": "No benchmark is in a ledger. At the precision of the checkpoint, one sequence on "
        "one "
        "machine: {devices}.",
    },
    "reading.found.local_yes": {
        "zh": "{device} 放得下，{rate}（prompt {prompt} 首 token {ttft}）",
        "en": "{device} holds it, {rate} (first token of a {prompt} prompt: {ttft})",
    },
    "reading.found.local_no": {
        "zh": "{device} 放不下（需要 {need}，有 {memory}）",
        "en": "{device} does not hold it (needs {need}, has {memory})",
    },
    "reading.found.local_uncertain": {
        "zh": "{device} 不一定放得下（需要约 {need}，有 {memory}）",
        "en": "{device} may not hold it (needs about {need}, has {memory})",
    },
    "reading.found.four_yes": {
        "zh": "，换成 q4_k 放得下，{rate}",
        "en": ", as q4_k it fits, {rate}",
    },
    "reading.found.four_uncertain": {
        "zh": "，换成 q4_k 也不一定放得下（需要约 {need}）",
        "en": ", as q4_k it may not fit (needs about {need})",
    },
    "reading.found.four_no": {
        "zh": "，换成 q4_k 也要 {need}",
        "en": ", as q4_k it still needs {need}",
    },
    "reading.found.moe_faster": {
        "zh": "每 token 时间与激活参数相同的 Dense 之比：{active}；与总参数相同的 Dense 之比："
        "{total}。",
        "en": "Time per token over that of a dense model of equal active size: {active}; of equal "
        "total size: {total}.",
    },
    "reading.found.moe_row": {
        "zh": "并发 {concurrency} 时 {ratio}",
        "en": "{ratio} at {concurrency}",
    },
    "reading.found.moe_none": {"zh": "没有专家。", "en": "It has no experts."},
    "reading.found.moe_test": {
        "zh": "对照的 Dense 模型在这个布局里建不起来：用压测比较。",
        "en": "The dense counterpart cannot be built in this layout: compare by a load test.",
    },
    "reading.found.recall_none": {
        "zh": "每层都直接看全部上下文。",
        "en": "Every layer sees the whole context directly.",
    },
    "reading.found.recall": {
        "zh": "{layers} / {all_layers} 层只直接看到一部分过去（窗口 {window}），{full} 层看全部。"
        "账里没有召回率：把一句事实放在离结尾 {depths} token 处提问，每处至少 20 次，和窗口以内的"
        "结果比较。",
        "en": "{layers} of {all_layers} layers see only part of the past directly (window "
        "{window}), "
        "{full} see all of it. No ledger holds recall: put a fact {depths} tokens before the end "
        "and ask for it, at least 20 times each, and compare with depths inside the window.",
    },
    "reading.no_window": {"zh": "无", "en": "none"},
    # load test
    "reading.test.intro": {
        "zh": "把下面的代码对着自己的服务器运行：先看上下文，再看并发。",
        "en": "Run this against your own server: contexts first, then sequences.",
    },
    "reading.test.rule": {
        "zh": "上下文敏感：Attention / KV 账更可疑；batch 敏感：权重读取 / FFN / 调度更可疑；都敏"
        "感：混合瓶颈；都不敏感：查服务链路。",
        "en": "Sensitive to context: attention/KV. To concurrency: weights, FFN, scheduling. To "
        "both: "
        "mixed. To neither: check the service chain.",
    },
    "reading.test.none": {
        "zh": "排不出压测：{reason}",
        "en": "No load test can be planned: {reason}",
    },
}
"""Key to template by language."""
