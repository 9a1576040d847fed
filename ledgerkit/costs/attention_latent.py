r"""MLA: one latent for all heads.

Decode works on the latent itself (*absorbed*): :math:`2 H (2 r + d_r)` FLOP per pair, and the
up-projection folds into query and output. Prefill expands the latents to keys and values first:
:math:`2 H (d_n + d_r + d_v)` per pair plus the up-projection of every visible token, again for
each chunk. The latent has one copy on every tensor-parallel rank. With an indexer, the core attends
to ``topk`` tokens, in absorbed form in both phases.

Source: FlashMLA; DeepSeek-V3 report; vLLM chunked prefill of MLA. Worked, DeepSeek-V3: 278,528
FLOP per pair absorbed, 81,920 expanded, 576 elements read per token.
"""

from __future__ import annotations

from dataclasses import replace

from ledgerkit.costs.indexer import indexer_operation
from ledgerkit.costs.operations import Operation, Share, Work
from ledgerkit.spec.attention import LatentAttention
from ledgerkit.spec.cache import latent_bytes
from ledgerkit.spec.deployment import Deployment

SOURCE = "absorbed 2·H·(2r+dr) FLOP per pair in decode; expanded 2·H·(dn+dr+dv) in prefill"


def absorbed_flop_per_pair(attention: LatentAttention) -> float:
    """FLOP of one (query, key) pair on the latent, all heads."""
    width = 2 * attention.kv_lora_rank + attention.qk_rope_head_dim
    return 2.0 * attention.num_attention_heads * width


def expanded_flop_per_pair(attention: LatentAttention) -> float:
    """FLOP of one (query, key) pair on expanded keys and values, all heads."""
    width = attention.qk_nope_head_dim + attention.qk_rope_head_dim + attention.v_head_dim
    return 2.0 * attention.num_attention_heads * width


def latent_operations(
    attention: LatentAttention, count: int, deployment: Deployment
) -> list[Operation]:
    """Core of an MLA layer, and its indexer."""
    token = latent_bytes(attention, deployment.kv_dtype)
    tp = deployment.tp
    absorbed = Work(
        flop_per_pair=absorbed_flop_per_pair(attention) / tp,
        read_per_kv_token=token,
        write_per_token=token,
    )
    prefill = decode = absorbed
    name = "latent_attention"
    if attention.indexer is None:
        prefill = replace(absorbed, flop_per_pair=expanded_flop_per_pair(attention) / tp)
    else:
        prefill = decode = replace(absorbed, topk=float(attention.indexer.topk))
        name = "sparse_latent_attention"

    def share(work: Work) -> Share:
        once = replace(
            work,
            read_per_kv_token=work.read_per_kv_token / tp,
            write_per_token=work.write_per_token / tp,
        )
        return Share(work, once, once)

    operations = [
        Operation(
            name=name, ledger="attention_kv", compute_account="core", byte_account="cache",
            count=count, prefill=share(prefill), decode=share(decode),
            prefill_class=("attention_prefill", "bf16"),
            decode_class=("latent_decode", deployment.kv_dtype), source=SOURCE,
        )
    ]  # fmt: skip
    if attention.indexer is not None:
        operations += indexer_operation(
            attention.indexer, attention.indexer.ratio, count, deployment
        )
    return operations
