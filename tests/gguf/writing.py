"""Small GGUF files of many architectures, written with the ``gguf`` package.

Names and extents of the tensors are those that llama.cpp's loaders ask for; that they are right is
proved by tests/engine_llamacpp, which loads every file with the real llama.cpp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gguf
import numpy as np

Type = gguf.GGMLQuantizationType
F32 = Type.F32
VOCAB = 320
CONTEXT = 4096


@dataclass
class Plan:
    """Metadata (without the architecture prefix) and extents, fastest first, of one file."""

    architecture: str
    keys: dict[str, Any]
    tensors: dict[str, tuple[int, ...]] = field(default_factory=dict)
    bare: dict[str, Any] = field(default_factory=dict)
    """Metadata whose keys have no prefix."""

    def add(self, at: str, **extents: tuple[int, ...]) -> None:
        for name, ne in extents.items():
            suffix = name.replace("__", ".")
            self.tensors[at + suffix + ("" if "." in suffix else ".weight")] = ne


def plain_type(name: str, ne: tuple[int, ...]) -> Type:
    """Norms, biases, routers, convolutions in F32, the rest in F16, as ``--outtype f16`` does."""
    small = len(ne) == 1 or name.endswith(("bias", "ssm_a", "ssm_d", "ssm_norm.weight"))
    small |= "ffn_gate_inp" in name or "conv1d" in name or "shortconv.conv." in name
    return F32 if small else Type.F16


def quantized(by_name: Callable[[str], Type]) -> Callable[[str, tuple[int, ...]], Type]:
    """Quantize matrices; a row that is no whole number of blocks falls back, as llama.cpp's do."""

    def choose(name: str, ne: tuple[int, ...]) -> Type:
        if plain_type(name, ne) is F32:
            return F32
        kind = by_name(name)
        return kind if ne[0] % gguf.GGML_QUANT_SIZES[kind][0] == 0 else Type.Q8_0

    return choose


def write(
    path: Path,
    plan: Plan,
    types: Callable[[str, tuple[int, ...]], Type] = plain_type,
    **options: Any,
) -> Path:
    """Write a file whose weights are all zero."""
    writer = gguf.GGUFWriter(str(path), plan.architecture, **options)
    writer.add_name(f"tiny {plan.architecture}")
    for key, value in plan.keys.items():
        _add(writer, f"{plan.architecture}.{key}", value)
    for key, value in plan.bare.items():
        _add(writer, key, value)
    _vocabulary(writer)
    for name, ne in plan.tensors.items():
        kind = types(name, ne)
        block, size = gguf.GGML_QUANT_SIZES[kind]
        assert ne[0] % block == 0, (name, ne, kind)
        shape = (*reversed(ne[1:]), ne[0] // block * size)
        writer.add_tensor(name, np.zeros(shape, dtype=np.uint8), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_array(key, value)


def _vocabulary(writer: gguf.GGUFWriter) -> None:
    """A byte-level sentencepiece vocabulary, the least that llama.cpp starts with."""
    tokens = [b"<unk>", b"<s>", b"</s>", *(f"<0x{byte:02X}>".encode() for byte in range(256))]
    kinds = [2, 3, 3, *[6] * 256]
    tokens += [b"<|endoftext|>", *(f"word{n}".encode() for n in range(VOCAB - len(tokens) - 1))]
    kinds += [1] * (VOCAB - len(kinds))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * VOCAB)
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)


def decoder(
    architecture: str,
    *,
    hidden: int = 256,
    layers: int = 4,
    heads: int = 4,
    kv_heads: int = 2,
    head_dim: int = 64,
    width: int = 512,
    tie: bool = False,
    qkv_bias: bool = False,
    qk_norm: bool = False,
    fused_qkv: bool = False,
    fused_up: bool = False,
    post_norms: bool = False,
    keys: dict[str, Any] | None = None,
    dense: bool = True,
) -> Plan:
    """A decoder with separate q, k, v and a gated MLP; the architectures vary from here."""
    plan = Plan(architecture, {
        "context_length": CONTEXT, "embedding_length": hidden, "block_count": layers,
        "feed_forward_length": width, "attention.head_count": heads,
        "attention.head_count_kv": kv_heads, "attention.key_length": head_dim,
        "attention.value_length": head_dim, "attention.layer_norm_rms_epsilon": 1e-6,
        "rope.dimension_count": head_dim, "rope.freq_base": 10000.0, **(keys or {}),
    })  # fmt: skip
    plan.add("", token_embd=(hidden, VOCAB), output_norm=(hidden,))
    if not tie:
        plan.add("", output=(hidden, VOCAB))
    outputs = {"attn_q": heads * head_dim, "attn_k": kv_heads * head_dim,
               "attn_v": kv_heads * head_dim}  # fmt: skip
    for layer in range(layers):
        at = f"blk.{layer}."
        plan.add(at, attn_norm=(hidden,), attn_output=(heads * head_dim, hidden))
        if fused_qkv:
            plan.add(at, attn_qkv=(hidden, sum(outputs.values())))
        else:
            plan.add(at, **{name: (hidden, rows) for name, rows in outputs.items()})
        if qkv_bias:
            plan.add(at, **{f"{name}__bias": (rows,) for name, rows in outputs.items()})
        if qk_norm:
            plan.add(at, attn_q_norm=(head_dim,), attn_k_norm=(head_dim,))
        if post_norms:
            plan.add(at, post_attention_norm=(hidden,), post_ffw_norm=(hidden,))
        if architecture != "gpt-oss":
            plan.add(at, ffn_norm=(hidden,))
        if dense:
            plan.add(at, ffn_down=(width, hidden),
                     ffn_up=(hidden, 2 * width if fused_up else width))  # fmt: skip
            if not fused_up:
                plan.add(at, ffn_gate=(hidden, width))
    return plan


def experts(plan: Plan, layer: int, hidden: int, width: int, count: int) -> None:
    plan.add(f"blk.{layer}.", ffn_gate_inp=(hidden, count),
             ffn_gate_exps=(hidden, width, count), ffn_up_exps=(hidden, width, count),
             ffn_down_exps=(width, hidden, count))  # fmt: skip
