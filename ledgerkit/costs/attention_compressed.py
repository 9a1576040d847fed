r"""DeepSeek-V4 attention: a window of plain entries and a compressed past.

A query sees ``window`` plain entries and, of one compressed entry per ``ratio`` tokens, all or the
``topk`` that the indexer chose. Key and value are one vector: :math:`4 H d_h` FLOP per pair. The
single KV head is copied on every tensor-parallel rank. Tokens that are not yet one entry wait as
fp32 values and gates: each writes its own, and every ``ratio`` tokens all of them are read.

Source: DeepSeek-V4 configuration and FlashMLA cache layout; the compressors' memory as
aiconfigurator sizes it. Worked: V4-Pro at 128 heads of 512, 262,144 FLOP per pair and layer; a
layer of ratio 4 writes 2 · 2 · (512 + 128) · 4 = 10,240 bytes per token into its compressors, and
reads as many.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ledgerkit.costs.indexer import indexer_operation
from ledgerkit.costs.operations import Operation, Share, Work
from ledgerkit.spec.attention import CompressedAttention
from ledgerkit.spec.cache import compressed_entry_bytes, compressor_bytes
from ledgerkit.spec.deployment import Deployment

SOURCE = "4·H·dh FLOP per pair; window entries, and one compressed entry per ratio tokens"


def compressed_operations(
    attention: CompressedAttention, count: int, deployment: Deployment
) -> list[Operation]:
    """Window part, compressed part, compressors and indexer of one layer."""
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
    if attention.ratio:
        operations.append(_compressor(attention, count, deployment))
    if attention.ratio and attention.indexer is not None:
        operations += indexer_operation(
            attention.indexer, float(attention.ratio), count, deployment
        )
    return operations


def _compressor(attention: CompressedAttention, count: int, deployment: Deployment) -> Operation:
    """Memory of the compressors: token by token in decode, once per chunk in prefill.

    Its arithmetic, one softmax over the waiting tokens, is left out: some 10^4 FLOP per token.
    """
    state = compressor_bytes(attention)
    decode = Work(read_per_token=state / attention.ratio, write_per_token=state / attention.ratio)
    prefill = Work(read_per_sequence=state, write_per_sequence=state)
    return Operation(
        name="compressor", ledger="attention_kv", compute_account="core", byte_account="state",
        count=count,
        prefill=Share.replicated(prefill, deployment.tp),
        decode=Share.replicated(decode, deployment.tp),
        prefill_class=("attention_prefill", "bf16"), decode_class=("attention_decode", "bf16"),
        source="fp32 values and gates of waiting tokens: written once, read once per entry",
        basis="estimated",
    )  # fmt: skip
