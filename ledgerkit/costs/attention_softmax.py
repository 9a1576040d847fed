r"""MHA, MQA and GQA: scores and values over the cached heads.

FLOP per (query, key) pair: :math:`2 H (d_k + d_v)`; KV heads do not enter, they are read once per
group of queries. Each kept token costs its cache bytes once per step and sequence; a layer that
shares the cache of another one stores nothing but reads all the same.

Source: FlashAttention counts; pair counts are closed forms, brute-force checked in the tests.
Worked: Llama-3.1-8B, one decode step at 8,192 tokens: 32 · 4,096 B · 8,192 = 1.074 GB read,
32 · 2 · 32 · 256 · 8,192 = 4.29 GFLOP.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ledgerkit.costs.indexer import indexer_operation
from ledgerkit.costs.layout import kv_copies, kv_heads_per_rank
from ledgerkit.costs.operations import Operation, Share, Work
from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.cache import vector_bytes
from ledgerkit.spec.deployment import Deployment

SOURCE = "2·H·(dk+dv) FLOP per pair; every kept key and value read once per step"


def softmax_operations(
    attention: SoftmaxAttention, count: int, deployment: Deployment
) -> list[Operation]:
    """Core of a softmax-attention layer."""
    heads = kv_heads_per_rank(attention.num_key_value_heads, deployment.tp)
    copies = kv_copies(attention.num_key_value_heads, deployment.tp)
    token = heads * (
        vector_bytes(attention.head_dim, deployment.kv_dtype)
        + vector_bytes(attention.v_head_dim, deployment.kv_dtype)
    )
    width = attention.head_dim + attention.v_head_dim
    indexer = attention.indexer
    work = Work(
        flop_per_pair=2.0 * attention.num_attention_heads / deployment.tp * width,
        read_per_kv_token=token,
        write_per_token=token if attention.stores_kv else 0.0,
        window=attention.window or math.inf,
        topk=indexer.topk if indexer else math.inf,
        chunk=attention.chunk or 0.0,
    )
    once = replace(
        work,
        read_per_kv_token=work.read_per_kv_token / copies,
        write_per_token=work.write_per_token / copies,
    )
    share = Share(work, once, once)
    operations = [
        Operation(
            name=core_name(attention), ledger="attention_kv", compute_account="core",
            byte_account="cache", count=count, prefill=share, decode=share,
            prefill_class=("attention_prefill", "bf16"),
            decode_class=("attention_decode", deployment.kv_dtype), source=SOURCE,
        )
    ]  # fmt: skip
    if indexer is not None:
        operations += indexer_operation(indexer, indexer.ratio, count, deployment)
    return operations


def core_name(attention: SoftmaxAttention) -> str:
    """Name of the operation: which tokens it sees."""
    if attention.window is not None:
        return "window_attention"
    return "chunked_attention" if attention.chunk is not None else "full_attention"
