"""Notes of ledgers, transfers and runs in Chinese.

A note is made where its fact is known, in English, and stays so in results: they are compared and
saved. What shows notes to a reader asks here for the reader's language.
"""

from __future__ import annotations

import re
from typing import Final

from ledgerkit.text import check_language, get_language

__all__ = ["note_in"]

_PATTERNS: Final = (
    # devices and precision
    (r"(.+) has no (.+) units: (.+) weights are multiplied in (.+)",
     r"\1 没有 \2 单元：\3 权重以 \4 相乘"),
    (r"(.+) has no fp8 units: the fp8 cache is expanded when it is read",
     r"\1 没有 fp8 单元：fp8 cache 在读取时展开"),
    (r"(.+) has no (.+) units: (.+) work runs in (.+)", r"\1 没有 \2 单元：\3 的计算以 \4 进行"),
    ((r"(\d+) groups of B and C on tp = (\d+) ranks: engines copy them to each rank, they are "
      r"booked as divided"),
     r"\1 组 B、C 分到 tp = \2 张卡：引擎会在每张卡上各存一份，这里按均分记账"),
    ((r"how (.+) shares its pool among windows and states is not known: the ideal bytes are "
      r"booked, in whole pages"),
     r"不知道 \1 如何在窗口与状态之间分配显存池：按理想字节、整页记账"),
    (r"rows of (.+) elements are no whole number of blocks: llama.cpp keeps them in (.+)",
     r"每行 \1 个元素不是整数个块：llama.cpp 以 \2 保存这些权重"),
    ((r"(.+) runs (\d+) sequences at once by default: (\d+) are priced as if all ran, the rest "
      r"would wait in a queue"),
     r"\1 默认同时最多运行 \2 个序列：这里按 \3 个全部运行计价，实际上其余的要排队"),
    # trails of a comparison
    (r"(.+): the trail ends at (\S+) prompt_tokens, (\S+) (\S+) (?:are|is) its limit",
     r"\1：轨迹止于 \2 个 prompt token，上限是 \3 \4"),
    (r"(.+): the trail ends at (\S+) (\S+), (.+) its limit", r"\1：轨迹止于 \2（\3）：\4 是上限"),
    (r"(.+): the trail begins above its (\S+) cached_tokens",
     r"\1：轨迹从它的 \2 个已缓存 token 之上开始"),
    # attention
    ((r"(.+) for MLA: same heads and query path; keys of qk_nope_head_dim \+ qk_rope_head_dim, "
     r"values of v_head_dim; full k and v projections in place of kv_a and kv_b"),
     (r"以 \1 代替 MLA：头数与查询路径不变；键宽 qk_nope_head_dim + qk_rope_head_dim，值宽 "
     r"v_head_dim；完整的 k、v 投影代替 kv_a、kv_b")),
    (r"(.+): same query heads and head widths; key and value projections resized",
     r"\1：查询头数与头宽不变，只改键、值投影的大小"),
    ((r"MLA for softmax attention: latent of (.+) \+ (.+) rotary elements, qk_nope_head_dim = "
     r"head_dim, same value heads, query path not compressed"),
     (r"以 MLA 代替 softmax 注意力：潜向量 \1 + \2 个旋转分量，qk_nope_head_dim = head_dim，"
     r"值头不变，查询路径不压缩")),
    (r"prefill chunks attend to latents", "预填充分块直接对潜向量做注意力"),
    (r"window of (.+) tokens, no layer global; same weights",
     r"窗口 \1 个 token，没有全局层；权重不变"),
    (r"window of (.+) tokens, layer (.+) global; same weights",
     r"窗口 \1 个 token，第 \2 层为全局层；权重不变"),
    (r"window layers see all tokens, with their own heads and widths; same weights",
     "窗口层改看全部 token，头数与头宽不变；权重不变"),
    (r"(.+): indexer of (.+) heads of (.+), top (.+) tokens",
     r"\1：索引器 \2 个头、每头 \3 维，取前 \4 个 token"),
    (r"every token attends to all; no indexers", "每个 token 看全部 token；没有索引器"),
    (r"(.+): one compressed key per (.+) tokens, (.+) tokens attended to; no weights",
     r"\1：每 \2 个 token 一个压缩键，注意 \3 个 token；没有权重"),
    ((r"(.+): one compressed key per (.+) tokens, (.+) tokens attended to; no weights \(the paper "
     r"gives no size for its compressing and gating networks\)"),
     (r"\1：每 \2 个 token 一个压缩键，注意 \3 个 token；不计权重"
      r"（论文没有给出压缩与门控网络的大小）")),
    ((r"all layers but each (\d+)\w\w are gated delta nets with states of (.+) x (.+), projections "
     r"as in Qwen3-Next"),
     r"除每第 \1 层外都是 gated delta net，状态 \2 × \3，投影同 Qwen3-Next"),
    (r"state layers become full-attention layers like the model's own",
     "状态层换成与该模型自己的全注意力层相同的层"),
    (r"one of (.+) neighbouring layers of a kind keeps keys and values, all read them",
     r"同类的 \1 个相邻层只有一层存键和值，各层都读"),
    # feed-forward
    (r"one dense MLP of equal (.+) in place of experts, in the experts' dtype; no router",
     r"以一个 \1 相等的稠密 MLP 代替专家，dtype 同专家；没有路由"),
    (r"(.+) of (equal .+); width a multiple of (\d+)", r"\1（\2）；宽度取 \3 的倍数"),
    ((r"(.+) of (equal .+); width a multiple of (\d+); equal FLOP and bytes: what differs is "
      r"quality"),
     r"\1（\2）；宽度取 \3 的倍数；FLOP 与字节都相等，差别在质量"),
    (r"(.+) experts, (.+) per token, each 1/(.+) as wide as the dense MLP: equal active parameters",
     r"\1 个专家，每 token 用 \2 个，各为稠密 MLP 的 1/\3 宽：激活参数相等"),
    (r"one of the experts of a token is shared: active parameters stay, one more is stored",
     "每个 token 的专家中有一个变为共享：激活参数不变，多存一个"),
    (r"the width of the shared experts is routed: more experts per token of the same pool",
     "共享专家的宽度改为路由：同一批专家里每 token 多用几个"),
    (r"routed experts in host memory, (.+); link (.+) B/s",
     r"路由专家放在主机内存，方式 \1；链路 \2 B/s"),
    (r"ranks wait for the fullest of (.+); static skew of the experts (.+)",
     r"各 rank 等 \1 个中最满的一个；专家的静态偏斜 \2"),
    # scheduling
    (r"static batches of (.+); (.+) answers of (.+) tokens on average",
     r"静态批 \1 个；回答长度分布 \2，平均 \3 个 token"),
    (r"each sequence reserves (.+) tokens and uses (.+) at its end",
     r"每个序列预留 \1 个 token，到结束时用了 \2 个"),
    (r"(.+) of (.+) prompt tokens found, in whole blocks",
     r"\2 个 prompt token 中命中 \1 个（按整块）"),
    (r"(.+) of (.+) prompt tokens are shared by all sequences",
     r"\2 个 prompt token 中有 \1 个为全部序列共享"),
    (r"prefill in chunks of (.+) tokens; queue = longest time between two tokens",
     r"预填充每块 \1 个 token；queue = 两个 token 之间的最长间隔"),
    ((r"(.+) draft tokens, each accepted with probability (.+) after the one before it: (.+) "
     r"tokens per step; decode amounts are per output token"),
     (r"草稿 \1 个 token，前一个被接受后各以 \2 的概率被接受：每步 \3 个 token；decode "
     r"的数量按每个输出 token 计")),
    (r"all-gather and reduce-scatter instead of dispatch; no buffers of (.+) tokens",
     r"以 all-gather 和 reduce-scatter 代替 dispatch；不需要 \1 个 token 的缓冲"),
    ((r"a second copy of the deployment computes prompts; their cache moves at (.+) B/s; queue = "
     r"what prompts of others add to a token"),
     (r"另一份相同的部署负责算 prompt，其 cache 以 \1 B/s 搬运；queue = 别人的 prompt 给一个 token "
     r"增加的时间")),
    # simulated runs
    ((r"the stream of (.+) requests/s is above the capacity of about (.+): waits grow with the "
      r"length of the run"),
     r"每秒 \1 个请求超过了约 \2 个的处理能力：等待随运行时长增长"),
    ((r"(.+) of (.+) requests were unanswered when the last one came: (.+) requests/s came and "
      r"about (.+) were answered; waits grow with the length of the run"),
     (r"最后一个请求到来时，\2 个中还有 \1 个没有回答：每秒来了 \3 个、约答了 \4 个；"
      r"等待随运行时长增长")),
    ((r"(.+) requests were rejected: longer than the model, the step budget \(without chunked "
      r"prefill\) or the whole cache allow"),
     r"拒绝了 \1 个请求：超过模型、每步预算（未分块预填充时）或整个 cache 的长度"),
    ((r"a stream of (.+) requests? is too short to tell the capacity: a rate above it is not "
      r"refused"),
     r"\1 个请求太少，无法得知处理能力：超过它的速率没有被拒绝"),
    (r"drafts are accepted independently, with one probability",
     "各草稿 token 以同一概率独立地被接受"),
    (r"experts in host memory are not simulated: all weights are on the devices",
     "不模拟放在主机内存的专家：全部权重都在设备上"),
    (r"pages of (.+) tokens are simulated as blocks of (.+)",
     r"每页 \1 个 token 的缓存按每块 \2 个模拟"),
    ((r"a recurrent state is found again at whole blocks of (.+) tokens; what the states kept for "
     r"that take of the cache is not counted"),
     r"循环状态只能在 \1 个 token 的整块处找回；为此保留的状态所占的 cache 未计"),
)  # fmt: skip
_COMPILED: Final = tuple((re.compile(pattern), zh) for pattern, zh in _PATTERNS)


def note_in(note: str, language: str | None = None) -> str:
    """Say a note in a language; one that is not known stays as it is.

    Examples
    --------
    >>> note_in("pages of 1 tokens are simulated as blocks of 16", "zh")
    '每页 1 个 token 的缓存按每块 16 个模拟'
    """
    if check_language(language or get_language()) == "en":
        return note
    for pattern, zh in _COMPILED:
        found = pattern.fullmatch(note)
        if found:
            return found.expand(zh)
    return note
