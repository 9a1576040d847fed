"""Strings of the reading report: what each config field decides, and what a reader assumed."""

from __future__ import annotations

from typing import Final, Literal

STRINGS: Final[dict[str, dict[Literal["zh", "en"], str]]] = {
    "reading.title": {"zh": "配置读取报告：{name}", "en": "Config reading report: {name}"},
    "reading.summary": {
        "zh": "{layers} 层，{parameters} 参数，每 token {kv} B KV（bf16），"
        "权重 {weights} B，量化：{quantization}",
        "en": "{layers} layers, {parameters} parameters, {kv} B of KV per token (bf16), "
        "{weights} B of weights, quantization: {quantization}",
    },
    "reading.source": {"zh": "来源：{source}", "en": "Source: {source}"},
    "reading.used": {"zh": "读到的字段", "en": "Fields that were read"},
    "reading.ignored": {
        "zh": "与成本无关而忽略的字段",
        "en": "Fields ignored as irrelevant to cost",
    },
    "reading.assumed": {"zh": "假设与说明", "en": "Assumptions and remarks"},
    "reading.none": {"zh": "无", "en": "none"},
    "reading.layer_groups": {"zh": "层的分组", "en": "Groups of layers"},
    "reading.origin.config": {"zh": "配置", "en": "config"},
    "reading.origin.class_default": {"zh": "类默认值", "en": "class default"},
    "reading.origin.derived": {"zh": "推导", "en": "derived"},
    "reading.origin.replaced": {"zh": "替换", "en": "replaced"},
    "reading.rule": {"zh": "由 {rule} 得出", "en": "from {rule}"},
    # what a field decides
    "reading.decides.hidden": {"zh": "残差流宽度", "en": "width of the residual stream"},
    "reading.decides.layers": {"zh": "层数", "en": "number of layers"},
    "reading.decides.vocab": {
        "zh": "词表大小：嵌入和输出头",
        "en": "vocabulary: embedding and head",
    },
    "reading.decides.context": {"zh": "最长上下文", "en": "longest context"},
    "reading.decides.tie": {
        "zh": "嵌入与输出头是否共用一张表",
        "en": "whether embedding and head are one table",
    },
    "reading.decides.heads": {"zh": "注意力头数", "en": "attention heads"},
    "reading.decides.kv_heads": {
        "zh": "KV 头数：KV cache 与 k、v 投影",
        "en": "KV heads: cache and k, v projections",
    },
    "reading.decides.head_dim": {"zh": "每个头的宽度", "en": "width of a head"},
    "reading.decides.latent": {
        "zh": "MLA 潜向量与投影的宽度",
        "en": "widths of the MLA latent and its projections",
    },
    "reading.decides.window": {"zh": "窗口或分块：KV 留多少", "en": "window or chunk: KV kept"},
    "reading.decides.layer_kinds": {"zh": "每层是什么类型", "en": "what kind each layer is"},
    "reading.decides.indexer": {
        "zh": "索引器：键与选出的 token 数",
        "en": "indexer: keys and selection",
    },
    "reading.decides.state": {"zh": "循环状态与短卷积", "en": "recurrent state and convolution"},
    "reading.decides.compression": {"zh": "KV 压缩", "en": "compression of KV"},
    "reading.decides.bias": {"zh": "是否有偏置", "en": "whether there are biases"},
    "reading.decides.norm": {"zh": "q、k 的归一化", "en": "norms of q and k"},
    "reading.decides.gate": {"zh": "注意力输出门", "en": "gate on the attention output"},
    "reading.decides.sink": {"zh": "sink 参数", "en": "sink parameters"},
    "reading.decides.dense": {"zh": "Dense FFN 的宽度", "en": "width of the dense FFN"},
    "reading.decides.experts": {"zh": "专家数", "en": "number of experts"},
    "reading.decides.topk": {"zh": "每个 token 激活几个专家", "en": "experts that a token uses"},
    "reading.decides.expert_width": {"zh": "专家的宽度", "en": "width of an expert"},
    "reading.decides.shared": {"zh": "共享专家", "en": "shared experts"},
    "reading.decides.routing": {"zh": "路由的分组与偏置", "en": "groups and bias of routing"},
    "reading.decides.moe_layers": {"zh": "哪些层有专家", "en": "which layers have experts"},
    "reading.decides.sharing": {"zh": "跨层共享 KV", "en": "KV shared across layers"},
    "reading.decides.per_layer": {"zh": "逐层嵌入", "en": "per-layer embedding"},
    "reading.decides.residual": {"zh": "残差通路", "en": "residual paths"},
    "reading.decides.mtp": {"zh": "MTP 块", "en": "MTP blocks"},
    "reading.decides.dtype": {"zh": "未量化张量的类型", "en": "dtype of unquantized tensors"},
    "reading.decides.quantization": {"zh": "权重的存储格式", "en": "storage formats of weights"},
    "reading.decides.other": {"zh": "结构", "en": "the architecture"},
    # why a field was left out
    "reading.reason.provenance": {
        "zh": "只说明代码或文件出处",
        "en": "names the code or the file only",
    },
    "reading.reason.runtime": {"zh": "只是库的运行开关", "en": "switches how a library runs it"},
    "reading.reason.tokenizer": {
        "zh": "token 编号或分词设置",
        "en": "a token id or tokenizer setting",
    },
    "reading.reason.initialisation": {
        "zh": "只用于初始化",
        "en": "used only to initialise weights",
    },
    "reading.reason.training": {"zh": "只用于训练", "en": "used only in training"},
    "reading.reason.generation": {"zh": "生成的默认设置", "en": "a default of text generation"},
    "reading.reason.rotary": {
        "zh": "旋转位置编码：不存权重，不占缓存",
        "en": "rotary embedding: no stored weights, no cache",
    },
    "reading.reason.epsilon": {"zh": "归一化里的常数", "en": "a constant inside a norm"},
    "reading.reason.activation": {
        "zh": "逐元素函数：矩阵不变",
        "en": "an elementwise function: same matrices",
    },
    "reading.reason.router_arithmetic": {
        "zh": "只缩放路由权重",
        "en": "scales or normalises routing weights",
    },
    "reading.reason.scalar": {"zh": "标量系数或截断", "en": "a scalar factor or clamp"},
    "reading.reason.tower": {
        "zh": "视觉或音频塔，不在三本账内",
        "en": "a vision or audio tower, outside the three ledgers",
    },
    "reading.reason.neutral": {
        "zh": "取值等于关闭",
        "en": "stated with the value that switches it off",
    },
    "reading.reason.null": {"zh": "空值：没有这个特性", "en": "null: the feature is absent"},
    "reading.reason.unused": {"zh": "这类模型不使用", "en": "not used by this model type"},
    "reading.reason.duplicate": {
        "zh": "与另一个字段重复",
        "en": "says again what another field says",
    },
    "reading.reason.metadata": {"zh": "ledgerkit 自己的备注", "en": "a note of ledgerkit itself"},
    # assumptions and remarks
    "reading.note.no_dtype": {
        "zh": "配置没有写类型：未量化张量按 bf16 计",
        "en": "the config states no dtype: unquantized tensors are taken as bf16",
    },
    "reading.note.tower": {
        "zh": "{tower} 塔不在三本账内，未计",
        "en": "the {tower} tower is outside the three ledgers and not counted",
    },
    "reading.note.flat": {
        "zh": "文件没有 {part}：整份当作文本模型读取",
        "en": "the file has no {part}: it is read as the text model itself",
    },
    "reading.note.tie": {
        "zh": "两处 tie_word_embeddings 不一致：以整份文件的 {value} 为准",
        "en": "two values of tie_word_embeddings: the one of the whole file, {value}, is taken",
    },
    "reading.note.variant": {"zh": "变体：{changes}", "en": "a variant: {changes}"},
    "reading.note.fitted": {
        "zh": "{name} 按原有规律调整为 {layers} 层",
        "en": "{name} was fitted to {layers} layers by its own pattern",
    },
    "reading.note.no_window": {
        "zh": "去掉窗口：原来的窗口层按原尺寸变为全局注意力",
        "en": "without windows: layers that had one attend fully, their sizes kept",
    },
    "reading.note.mtp_not_counted": {
        "zh": "MTP 块没有计入：{family} 的检查点布局不公开",
        "en": "MTP blocks are not counted: their layout in {family} checkpoints is not known",
    },
    "reading.note.mtp_not_stored": {
        "zh": "配置写有 MTP 模块，但公开的检查点里没有",
        "en": "the config names MTP modules, but the published checkpoints do not hold them",
    },
    "reading.note.mtp_unstated": {
        "zh": "{family} 的检查点带 {blocks} 个 MTP 块，配置没有写",
        "en": "{family} checkpoints carry {blocks} MTP block(s); the config does not say so",
    },
    "reading.note.last_full": {
        "zh": "最后一层改为全局注意力，与模型类一致",
        "en": "the last layer is made a full one, as the model class does",
    },
}
