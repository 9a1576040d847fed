r"""The lightning indexer: small scores over all tokens, to attend to few of them.

FLOP per pair: :math:`2 H_I (d_I + 1)`, in fp8 where the keys are; keys are read once per step.
Tensor parallelism does not divide it: every rank holds the whole indexer.

Source: DeepSeek-V3.2 inference code; SGLang and vLLM index caches. Worked: 16,512 FLOP per pair
and layer for 64 heads of 128; 132 B per token in fp8.
"""

from __future__ import annotations

from ledgerkit.costs.operations import Operation, Share, Work
from ledgerkit.spec.attention import Indexer
from ledgerkit.spec.cache import index_key_bytes
from ledgerkit.spec.deployment import Deployment
from ledgerkit.spec.efficiency import OpClass


def indexer_operation(
    indexer: Indexer, ratio: float, count: int, deployment: Deployment
) -> list[Operation]:
    """Scores of an indexer over ``1 / ratio`` of the tokens; empty where a layer reuses a choice.

    The scores themselves stay on chip in fused kernels and are not booked as traffic.
    """
    if not indexer.owned:
        return []
    key = index_key_bytes(indexer, deployment.kv_dtype)
    # scores are multiplied in the dtype of the keys, unlike the core, whose cache is expanded first
    dtype = "fp8" if deployment.kv_dtype.startswith("fp8") else "bf16"
    scores: tuple[OpClass, str] = ("attention_prefill", dtype)
    work = Work(
        flop_per_pair=2.0 * indexer.num_heads * (indexer.head_dim + 1),
        read_per_kv_token=key,
        write_per_token=key / ratio,
        ratio=ratio,
    )
    share = Share.replicated(work, deployment.tp)
    return [
        Operation(
            name="indexer", ledger="attention_kv", compute_account="indexer",
            byte_account="indexer", count=count, prefill=share, decode=share,
            prefill_class=scores, decode_class=scores,
            source="2·HI·(dI+1) FLOP per pair, index keys read once per step",
        )
    ]  # fmt: skip
