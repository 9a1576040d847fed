r"""DeepSeek-V4 attention: a window of plain entries and a compressed past.

A query sees ``window`` plain entries and, of one compressed entry per ``ratio`` tokens, all or the
``topk`` that the indexer chose. Key and value are one vector: :math:`4 H d_h` FLOP per pair. The
single KV head is copied on every tensor-parallel rank.

Source: DeepSeek-V4 configuration and FlashMLA cache layout. Worked: V4-Pro at 128 heads of 512,
262,144 FLOP per pair and layer.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ledgerkit.costs.indexer import indexer_operation
from ledgerkit.costs.operations import Operation, Share, Work
from ledgerkit.spec.attention import CompressedAttention
from ledgerkit.spec.cache import compressed_entry_bytes
from ledgerkit.spec.deployment import Deployment

SOURCE = "4·H·dh FLOP per pair; window entries, and one compressed entry per ratio tokens"


def compressed_operations(
    attention: CompressedAttention, count: int, deployment: Deployment
) -> list[Operation]:
    """Window part, compressed part and indexer of one layer."""
    entry = compressed_entry_bytes(attention, deployment.kv_dtype)
    flop = 4.0 * attention.num_attention_heads * attention.head_dim / deployment.tp
    base = Work(flop_per_pair=flop, read_per_kv_token=entry, write_per_token=entry)
    works = {"window_attention": replace(base, window=float(attention.window))}
    if attention.ratio:
        indexer = attention.indexer
        works["compressed_attention"] = replace(
            base,
            write_per_token=entry / attention.ratio,
            ratio=float(attention.ratio),
            topk=float(indexer.topk) if indexer else math.inf,
        )
    operations = []
    for name, work in works.items():
        once = replace(
            work,
            read_per_kv_token=work.read_per_kv_token / deployment.tp,
            write_per_token=work.write_per_token / deployment.tp,
        )
        share = Share(work, once, once)
        operations.append(
            Operation(
                name=name, ledger="attention_kv", compute_account="core", byte_account="cache",
                count=count, prefill=share, decode=share,
                prefill_class=("attention_prefill", "bf16"),
                decode_class=("latent_decode", deployment.kv_dtype), source=SOURCE,
                basis="estimated",
            )
        )  # fmt: skip
    if attention.ratio and attention.indexer is not None:
        operations += indexer_operation(
            attention.indexer, float(attention.ratio), count, deployment
        )
    return operations
