"""A device, efficiencies, an engine and configs that tests state themselves.

Round numbers, so that expected values can be worked out on paper; nothing is read from ``data``.
"""

from __future__ import annotations

import math
from typing import Any

from ledgerkit._ledger import Ledger
from ledgerkit.costs.table import CostTable, build
from ledgerkit.readers.config import read_config
from ledgerkit.spec.attention import (
    Attention,
    CompressedAttention,
    Indexer,
    LatentAttention,
    SoftmaxAttention,
    StateAttention,
)
from ledgerkit.spec.deployment import Deployment, Workload
from ledgerkit.spec.efficiency import Band, Efficiencies, LinkEfficiency, OpEfficiency
from ledgerkit.spec.engine import EngineProfile
from ledgerkit.spec.hardware import Hardware
from ledgerkit.spec.model import LayerGroup, Model
from ledgerkit.spec.weights import Weight

DEVICE = Hardware(
    slug="round", memory_bytes=141_000_000_000, memory_bytes_per_s=5e12,
    peak_flop_per_s={"bf16": 1e15, "fp8": 2e15}, scaleup_bytes_per_s=450e9, scaleup_domain_size=8,
    nic_bytes_per_s=50e9,
)  # fmt: skip
"""One device of a domain of eight."""

RACK = DEVICE.model_copy(update={"slug": "rack", "scaleup_domain_size": 128})
"""The same in a domain that holds every layout of the tests."""


def flat(value: float, spread: float = 1.0) -> Band:
    return Band(low=value / spread, mid=value, high=value * spread)


def efficiencies(
    compute: float = 1.0,
    memory: float = 1.0,
    link: float = 1.0,
    spread: float = 1.0,
    **times: float,
) -> Efficiencies:
    """Efficiencies that are alike for all operations; latencies are 0 unless given."""
    kinds = ("gemm", "grouped_gemm", "attention_prefill", "attention_decode", "latent_decode",
             "elementwise")  # fmt: skip
    rows = tuple(
        OpEfficiency(op_class=kind, dtype=dtype, eta_compute=flat(compute, spread),
                     eta_memory=flat(memory, spread), source="round numbers of a test")  # type: ignore[arg-type]
        for kind in kinds
        for dtype in ("bf16", "fp8")
    )  # fmt: skip
    names = ("alpha_s", "alpha_two_shot_s", "kernel_latency_s", "host_step_s", "host_sequence_s",
             "host_prefill_kernel_s")  # fmt: skip
    seconds = {name: flat(times.get(name, 0.0), spread) for name in names}
    return Efficiencies(
        ops=rows,
        link=LinkEfficiency(
            eta_link=flat(link, spread), alpha_s=seconds.pop("alpha_s"),
            alpha_two_shot_s=seconds.pop("alpha_two_shot_s"), source="round numbers of a test",
        ),
        **seconds,
    )  # fmt: skip


IDEAL = efficiencies()
"""Peaks are reached, and nothing takes time by itself."""

REAL = efficiencies(
    0.5, 0.8, 0.55, 1.1, alpha_s=4.5e-6, alpha_two_shot_s=8e-6, kernel_latency_s=4e-6,
    host_step_s=6e-4, host_sequence_s=1e-5, host_prefill_kernel_s=34e-6,
)  # fmt: skip
"""As a real device has them, with bands."""

ENGINE = EngineProfile(
    slug="plain", name="plain", version="1", source="a test", max_num_batched_tokens=8192,
    max_num_seqs=1024, block_size=16, memory_fraction=0.9,
)  # fmt: skip


def table_of(
    model: Model,
    deployment: Deployment | None = None,
    hardware: Hardware = RACK,
    fractions: Efficiencies = REAL,
    engine: EngineProfile = ENGINE,
) -> CostTable:
    return build(model, deployment or Deployment(), hardware, fractions, engine)


def books_of(
    model: Model,
    deployment: Deployment | None = None,
    hardware: Hardware = RACK,
    fractions: Efficiencies = REAL,
    engine: EngineProfile = ENGINE,
    **workload: int,
) -> Ledger:
    """The ledger of a model; 1,024 tokens in, 2 out, one sequence unless said otherwise."""
    work = Workload(**{"prompt_tokens": 1024, "output_tokens": 2, **workload})
    return Ledger(table_of(model, deployment, hardware, fractions, engine), work)


# configs -----------------------------------------------------------------------------------------

LLAMA_8B: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
    "max_position_embeddings": 131072, "torch_dtype": "bfloat16",
}  # fmt: skip
LLAMA_70B: dict[str, Any] = {
    **LLAMA_8B, "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80,
    "num_attention_heads": 64,
}  # fmt: skip
DEEPSEEK_V3: dict[str, Any] = {
    "model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432,
    "moe_intermediate_size": 2048, "num_hidden_layers": 61, "first_k_dense_replace": 3,
    "n_routed_experts": 256, "num_experts_per_tok": 8, "n_shared_experts": 1, "n_group": 8,
    "topk_group": 4, "num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536,
    "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "vocab_size": 129280, "max_position_embeddings": 163840, "topk_method": "noaux_tc",
    "num_nextn_predict_layers": 0, "torch_dtype": "bfloat16",
    "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
                            "weight_block_size": [128, 128]},
}  # fmt: skip
MIXTRAL: dict[str, Any] = {
    "model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "vocab_size": 32000, "max_position_embeddings": 32768, "num_local_experts": 8,
    "num_experts_per_tok": 2, "torch_dtype": "bfloat16",
}  # fmt: skip
GPT2: dict[str, Any] = {
    "model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024,
    "vocab_size": 50257,
}  # fmt: skip
GEMMA3: dict[str, Any] = {
    "model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240,
    "num_hidden_layers": 34, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
    "sliding_window": 1024, "vocab_size": 262208, "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}  # fmt: skip
GEMMA4_MOE: dict[str, Any] = {
    "model_type": "gemma4_text", "hidden_size": 2816, "intermediate_size": 2112,
    "moe_intermediate_size": 704, "num_hidden_layers": 30, "num_attention_heads": 16,
    "num_key_value_heads": 8, "num_global_key_value_heads": 2, "head_dim": 256,
    "global_head_dim": 512, "attention_k_eq_v": True, "sliding_window": 1024, "vocab_size": 262144,
    "hidden_size_per_layer_input": 0, "num_kv_shared_layers": 0, "enable_moe_block": True,
    "num_experts": 128, "top_k_experts": 8, "max_position_embeddings": 262144,
    "torch_dtype": "bfloat16",
}  # fmt: skip
GEMMA4_SMALL: dict[str, Any] = {
    "model_type": "gemma4_text", "hidden_size": 2560, "intermediate_size": 10240,
    "num_hidden_layers": 42, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256,
    "global_head_dim": 512, "sliding_window": 512, "vocab_size": 262144,
    "vocab_size_per_layer_input": 262144, "hidden_size_per_layer_input": 256,
    "num_kv_shared_layers": 18, "max_position_embeddings": 131072, "torch_dtype": "bfloat16",
}  # fmt: skip
GPT_OSS: dict[str, Any] = {
    "model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880,
    "num_hidden_layers": 36, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
    "vocab_size": 201088, "num_local_experts": 128, "num_experts_per_tok": 4, "sliding_window": 128,
    "max_position_embeddings": 131072, "torch_dtype": "bfloat16",
    "quantization_config": {
        "quant_method": "mxfp4",
        "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router",
                                   "model.embed_tokens", "lm_head"],
    },
}  # fmt: skip


def model(config: dict[str, Any], **changes: Any) -> Model:
    """Read a config, with fields changed."""
    return read_config({**config, **changes}, slug=str(config["model_type"]))


# kinds of attention that no config above has -----------------------------------------------------


def with_attention(base: Model, attention: Attention, *weights: Weight) -> Model:
    """The same model with another kind of attention in every layer."""
    groups = tuple(
        LayerGroup(layers=g.layers, attention=attention, ffn=g.ffn, weights=(*g.weights, *weights))
        for g in base.groups
    )
    return base.model_copy(update={"groups": groups, "slug": f"{base.slug}-{attention.kind}"})


def sparse(topk: int = 2048) -> Model:
    """DeepSeek-V3 with the indexer of V3.2: 64 heads of 128, keys of 128."""
    base = model(DEEPSEEK_V3)
    attention = base.groups[0].attention
    assert isinstance(attention, LatentAttention)
    indexer = Indexer(num_heads=64, head_dim=128, topk=topk)
    at = "model.layers.{layer}.self_attn.indexer."
    rows = (("wq_b", (64 * 128, 1536)), ("wk", (128, 7168)), ("weights_proj", (64, 7168)))
    matrices = (
        Weight(name=at + name, ledger="attention_kv", account="indexer", shape=shape, dtype="fp8")
        for name, shape in rows
    )
    norm = Weight(name=at + "k_norm", ledger="attention_kv", account="indexer", shape=(256,),
                  use="vector")  # fmt: skip
    return with_attention(base, attention.model_copy(update={"indexer": indexer}), *matrices, norm)


def chunked(chunk: int = 512) -> Model:
    """Llama-8B with the local attention of Llama 4."""
    return with_attention(
        model(LLAMA_8B),
        SoftmaxAttention(num_attention_heads=32, num_key_value_heads=8, head_dim=128,
                         v_head_dim=128, chunk=chunk),
    )  # fmt: skip


def recurrent() -> Model:
    """Llama-8B with the gated delta nets of Qwen3-Next."""
    return with_attention(
        model(LLAMA_8B),
        StateAttention(variant="gated_delta_net", num_heads=32, key_dim=128, value_dim=128,
                       num_groups=16, conv_channels=8192, conv_kernel=4),
    )  # fmt: skip


def compressed() -> Model:
    """Llama-8B with the compressed attention of DeepSeek-V4: one entry per 4 tokens, indexed."""
    return with_attention(
        model(LLAMA_8B),
        CompressedAttention(num_attention_heads=32, head_dim=512, qk_rope_head_dim=64, window=128,
                            ratio=4, indexer=Indexer(num_heads=64, head_dim=128, topk=512)),
    )  # fmt: skip


CONFIGS = (
    LLAMA_8B,
    LLAMA_70B,
    DEEPSEEK_V3,
    MIXTRAL,
    GPT2,
    GEMMA3,
    GEMMA4_MOE,
    GEMMA4_SMALL,
    GPT_OSS,
)


def every_kind() -> list[Model]:
    """One model of each kind of attention and FFN."""
    return [*(model(config) for config in CONFIGS), sparse(), chunked(), recurrent(), compressed()]


# sums of entries ---------------------------------------------------------------------------------


def amount(books, phase, resource, *, account=None, op=None, column="amount_device"):
    """Sum of the entries that match."""
    return math.fsum(
        getattr(entry, column) or 0.0
        for entry in books._entries
        if (entry.phase, entry.resource) == (phase, resource)
        and account in (None, entry.account)
        and op in (None, entry.op)
    )


def per_token(books, column):
    """Resident cache bytes of one token."""
    total = math.fsum(
        getattr(entry, column) for entry in books._entries
        if entry.phase == "hold" and entry.op.removesuffix(" copies") in
        ("latents", "keys_and_values", "index_keys")
    )  # fmt: skip
    return total / books.workload.hold_context / books.workload.concurrency
