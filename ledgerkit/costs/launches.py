"""Kernels of one step: counted per block, not fitted.

Each kernel of a captured graph costs a fixed latency, which books to ``scheduling.launch``. Formats
with a scale per block add kernels that quantize activations: fp8 blocks everywhere, nvfp4 in
attention and dense FFN (fused expert kernels quantize on the way). With them, the error of an fp4
server is that of the same server in fp8, under two engines; without, it lacks 9 to 13 %.

Source: counts of the fused paths of current engines.

========================  =======  ======================
block                     kernels  more to quantize
========================  =======  ======================
GQA attention             6        2 (+1 q/k norm, +1 output gate)
MLA                       10       3
linear attention          8        2
dense FFN                 4        2
routed experts            9        2
shared expert             3        1
========================  =======  ======================

Worked: a Llama layer has 10 kernels, a DeepSeek-V3 fp8 MoE layer 13 + 11 + 4 = 28.
"""

from __future__ import annotations

from ledgerkit.costs.linear import served_dtype
from ledgerkit.spec.attention import (
    Attention,
    CompressedAttention,
    LatentAttention,
    NoAttention,
    SoftmaxAttention,
    StateAttention,
)
from ledgerkit.spec.deployment import Deployment
from ledgerkit.spec.feed_forward import DenseFfn, FeedForward, MoeFfn
from ledgerkit.spec.model import LayerGroup, Model

_BLOCKS = frozenset({"fp8_block128", "mxfp8"})
_DENSE_BLOCKS = _BLOCKS | {"nvfp4"}
INDEXER_KERNELS = 5
"""q and k projections, weights, scores, top-k; judged, not measured."""


def attention_kernels(attention: Attention, *, blocks: bool) -> int:
    """Kernels of one attention block, its norm included.

    Examples
    --------
    >>> attention_kernels(
    ...     LatentAttention(
    ...         num_attention_heads=128,
    ...         q_lora_rank=1536,
    ...         kv_lora_rank=512,
    ...         qk_nope_head_dim=128,
    ...         qk_rope_head_dim=64,
    ...         v_head_dim=128,
    ...     ),
    ...     blocks=True,
    ... )
    13
    """
    match attention:
        case SoftmaxAttention():
            count = 6 + attention.qk_norm + attention.output_gate + 2 * blocks
            indexer = attention.indexer
        case LatentAttention():
            count = 10 + 3 * blocks
            indexer = attention.indexer
        case CompressedAttention():
            count = 10 + 3 * blocks
            indexer = attention.indexer
        case StateAttention():
            return 8 + 2 * blocks
        case NoAttention():
            return 0
    return count + (INDEXER_KERNELS if indexer is not None and indexer.owned else 0)


def ffn_kernels(ffn: FeedForward, *, blocks: bool) -> int:
    """Kernels of one feed-forward block, its norm included."""
    match ffn:
        case DenseFfn():
            return 4 + 2 * blocks
        case MoeFfn():
            count = 9 + 2 * blocks
            if ffn.shared_intermediate_size:
                count += 3 + blocks
            if ffn.dense_intermediate_size:
                count += 4 + 2 * blocks
            return count
        case _:
            return 0


def _has_blocks(group: LayerGroup, ledger: str, deployment: Deployment) -> bool:
    fused = ledger == "ffn_mlp" and isinstance(group.ffn, MoeFfn)
    formats = _BLOCKS if fused else _DENSE_BLOCKS
    return any(
        weight.ledger == ledger and served_dtype(weight, deployment) in formats
        for weight in group.weights
    )


def step_kernels(model: Model, deployment: Deployment) -> int:
    """Kernels of one step through all layers."""
    return sum(
        group.count
        * (
            attention_kernels(
                group.attention, blocks=_has_blocks(group, "attention_kv", deployment)
            )
            + ffn_kernels(group.ffn, blocks=_has_blocks(group, "ffn_mlp", deployment))
        )
        for group in model.groups
    )
