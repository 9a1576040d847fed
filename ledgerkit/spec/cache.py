"""Cache layouts: bytes of keys, values, latents, index keys and states of one sequence.

A *layout* is how an engine packs a cache vector, named by ``kv_dtype``. Layouts that pack scales
with the data (``fp8_ds_mla``, ``nvfp4``, the ggml types) are sized here, from engine sources.
"""

from __future__ import annotations

import math
from typing import Literal

from ledgerkit.errors import UnsupportedDtypeError
from ledgerkit.spec.attention import (
    Attention,
    CompressedAttention,
    Indexer,
    LatentAttention,
    NoAttention,
    SoftmaxAttention,
    StateAttention,
)

_PLAIN = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0}
# bytes of a block of 32 elements in ggml
_GGML = {"q8_0": 34, "q5_1": 24, "q5_0": 22, "q4_1": 20, "q4_0": 18, "iq4_nl": 18}
KV_DTYPES = ("bf16", "fp16", "fp32", "fp8", "fp8_ds_mla", "int8", "int8_per_token_head",
             "fp8_per_token_head", "nvfp4", *_GGML)  # fmt: skip
"""Layouts that ``kv_dtype`` accepts."""

_DS_MLA_TILE = 128


def vector_bytes(elements: int, kv_dtype: str) -> float:
    """Bytes of one cached vector (a key or value head) of ``elements`` elements.

    Examples
    --------
    >>> vector_bytes(128, "bf16"), vector_bytes(128, "nvfp4"), vector_bytes(128, "q8_0")
    (256.0, 72.0, 136.0)
    """
    if kv_dtype not in KV_DTYPES:  # a tuple: what cannot be a key is refused, too
        raise _unknown_layout(kv_dtype)
    if kv_dtype in _PLAIN:
        return elements * _PLAIN[kv_dtype]
    if kv_dtype in ("int8_per_token_head", "fp8_per_token_head"):
        return elements + 4.0
    if kv_dtype == "nvfp4":
        return elements / 2 + elements / 16
    if kv_dtype in _GGML:
        if elements % 32:
            raise UnsupportedDtypeError(
                f"a {kv_dtype} cache needs head sizes that are multiples of 32", given=elements,
                allowed="32, 64, 96, ...", fix="use kv_dtype='fp16'",
            )  # fmt: skip
        return elements / 32 * _GGML[kv_dtype]
    raise UnsupportedDtypeError(
        "fp8_ds_mla is a layout of MLA latents; this layer has ordinary keys and values",
        given=kv_dtype, allowed="models with MLA", fix="use kv_dtype='fp8'",
    )  # fmt: skip


def _unknown_layout(kv_dtype: str) -> UnsupportedDtypeError:
    return UnsupportedDtypeError("unknown cache layout", given=kv_dtype,
                                 allowed=", ".join(KV_DTYPES),
                                 fix="kv_dtype='bf16' suits every model")  # fmt: skip


def latent_bytes(attention: LatentAttention, kv_dtype: str) -> float:
    """Bytes of the MLA latent of one token.

    ``fp8_ds_mla``: fp8 latent, one fp32 scale for 128 elements, rotary part in bf16
    (FlashMLA, vLLM): 512 + 16 + 128 = 656 for DeepSeek-V3.
    """
    if kv_dtype == "fp8_ds_mla":
        rank = attention.kv_lora_rank
        return rank + math.ceil(rank / _DS_MLA_TILE) * 4.0 + attention.qk_rope_head_dim * 2.0
    return vector_bytes(attention.elements_per_token, kv_dtype)


def index_key_bytes(indexer: Indexer, kv_dtype: str) -> float:
    """Bytes of the index keys of one token; 8-bit keys carry one fp32 scale for 128 elements."""
    elements = indexer.elements_per_token
    if kv_dtype in ("fp8", "fp8_ds_mla"):
        return elements + math.ceil(elements / _DS_MLA_TILE) * 4.0
    return vector_bytes(elements, kv_dtype)


def kept_tokens(context: int, limit: int | None) -> int:
    """Tokens that stay in the cache at this context."""
    return context if limit is None else min(context, limit)


def state_bytes(
    attention: StateAttention,
    state_dtype: str | None = None,
    conv_dtype: str = "bf16",
    conv_columns: Literal["engine", "transformers"] = "engine",
) -> float:
    """Bytes of the recurrent state and the convolution memory of one sequence."""
    state = attention.state_elements * _plain(state_dtype or attention.state_dtype)
    return state + attention.conv_elements(conv_columns) * _plain(conv_dtype)


def compressor_bytes(
    attention: CompressedAttention,
    state_dtype: str | None = None,
    conv_columns: Literal["engine", "transformers"] = "engine",
) -> float:
    """Bytes of what DeepSeek-V4's compressors keep of one sequence, whatever its length.

    Engines keep it in fp32 (aiconfigurator: 2 · ratio · windows · width · 4), transformers in the
    dtype of the activations.

    Examples
    --------
    >>> heavy = CompressedAttention(
    ...     num_attention_heads=128, head_dim=512, qk_rope_head_dim=64, window=128, ratio=128
    ... )
    >>> compressor_bytes(heavy)
    524288.0
    """
    usual = "fp32" if conv_columns == "engine" else "bf16"
    return attention.compressor_elements(conv_columns) * _plain(state_dtype or usual)


def _plain(dtype: str) -> float:
    try:
        return _PLAIN[dtype]
    except KeyError:
        raise UnsupportedDtypeError("a state needs a plain dtype", given=dtype,
                                    allowed=", ".join(_PLAIN),
                                    fix="use kv_dtype='bf16'") from None  # fmt: skip


def token_bytes(attention: Attention, kv_dtype: str) -> float:
    """Bytes that one kept token takes in one layer, index keys left out."""
    match attention:
        case SoftmaxAttention():
            heads = attention.num_key_value_heads * attention.stores_kv
            return heads * (
                vector_bytes(attention.head_dim, kv_dtype)
                + vector_bytes(attention.v_head_dim, kv_dtype)
            )
        case LatentAttention():
            return latent_bytes(attention, kv_dtype)
        case CompressedAttention():
            return compressed_entry_bytes(attention, kv_dtype)
        case _:
            return 0.0


def compressed_entry_bytes(attention: CompressedAttention, kv_dtype: str) -> float:
    """Bytes of one entry of a DeepSeek-V4 layer (window token or compressed entry).

    In ``fp8`` layouts: fp8 content, rotary part in bf16, one ue8m0 scale for 64 elements and one
    byte of padding (FlashMLA): 448 + 128 + 7 + 1 = 584.
    """
    if kv_dtype in ("fp8", "fp8_ds_mla"):
        plain = attention.head_dim - attention.qk_rope_head_dim
        return plain + 2.0 * attention.qk_rope_head_dim + math.ceil(plain / 64) + 1
    return vector_bytes(attention.head_dim, kv_dtype)


def layer_cache_bytes(
    attention: Attention,
    context: int,
    kv_dtype: str = "bf16",
    indexer_dtype: str | None = None,
    state_dtype: str | None = None,
    conv_columns: Literal["engine", "transformers"] = "engine",
) -> float:
    """Peak live bytes of one layer of one sequence that reaches ``context`` tokens."""
    if kv_dtype not in KV_DTYPES:
        vector_bytes(1, kv_dtype)
    match attention:
        case NoAttention():
            return 0.0
        case StateAttention():
            return state_bytes(attention, state_dtype, "bf16", conv_columns)
        case CompressedAttention():
            size = kept_tokens(context, attention.window) * token_bytes(attention, kv_dtype)
            entries = context // attention.ratio if attention.ratio else 0
            size += entries * token_bytes(attention, kv_dtype)
            if attention.indexer is not None:
                size += entries * index_key_bytes(attention.indexer, indexer_dtype or kv_dtype)
            return size + compressor_bytes(attention, state_dtype, conv_columns)
        case _:
            size = kept_tokens(context, attention.limit) * token_bytes(attention, kv_dtype)
            if attention.indexer is not None:
                keys = context // attention.indexer.ratio
                size += keys * index_key_bytes(attention.indexer, indexer_dtype or kv_dtype)
            return size
