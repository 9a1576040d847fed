"""Which structures a model has, which ledger each acts on, and what stands in for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ledgerkit.spec.attention import (
    Attention,
    CompressedAttention,
    LatentAttention,
    NoAttention,
    SoftmaxAttention,
    StateAttention,
)
from ledgerkit.spec.axes import Ledger
from ledgerkit.spec.feed_forward import DenseFfn, MoeFfn
from ledgerkit.spec.model import LayerGroup, Model
from ledgerkit.spec.precision import storage

Counterfactual = tuple[str, str, dict[str, Any]]
"""(key of its name, technique, settings) of a removal by ``lk.transfer``."""

ACCEPTANCE = 0.85
"""Of MTP drafts, assumed: the low end of what the DeepSeek-V3 report states (arXiv 2412.19437)."""


VARIANTS = {
    "gated_delta_net": "Gated DeltaNet", "kda": "KDA", "mamba": "Mamba", "mamba2": "Mamba-2",
    "lightning": "Lightning Attention", "short_conv": "Short Convolution",
}  # fmt: skip
"""What recurrences are called."""
SOURCES = {
    "mha": "arXiv 1706.03762", "gqa": "arXiv 2305.13245", "mqa": "arXiv 1911.02150",
    "mla": "arXiv 2405.04434", "dsa": "arXiv 2512.02556", "block_sparse": "arXiv 2502.11089",
    "compressed": "arXiv 2502.11089", "linear": "arXiv 2402.18668", "window": "arXiv 2310.06825",
    "chunked": "https://huggingface.co/docs/transformers/model_doc/llama4",
    "kv_sharing": "arXiv 2405.12981", "dense": "arXiv 2002.05202", "moe": "arXiv 2401.06066",
    "shared_experts": "arXiv 2401.06066",
    "dense_beside": "https://huggingface.co/google/gemma-4-26B-A4B",
    "node_limited": "arXiv 2412.19437",
    "per_layer_embedding": "https://ai.google.dev/gemma/docs/gemma-3n",
    "expert_quantization": "arXiv 2210.17323", "weight_quantization": "arXiv 2210.17323",
    "mtp": "arXiv 2412.19437",
}  # fmt: skip
"""Where a structure and its risks are described."""


@dataclass(frozen=True)
class Structure:
    """One structure, as far as cost is concerned."""

    id: str
    ledger: Ledger
    layers: int
    """Layers that have it; 0 = it is not of the layers."""
    numbers: dict[str, Any] = field(default_factory=dict)
    """Fields of its description."""
    counterfactuals: tuple[Counterfactual, ...] = ()
    risks: tuple[str, ...] = ()
    """Kinds of stated risks, see ``reading.risk.*``."""
    also: tuple[Ledger, ...] = ()
    """Further ledgers that it acts on."""

    @property
    def source(self) -> str:
        """Where the structure and its risks are described."""
        return SOURCES[self.id]


def structures(model: Model) -> tuple[Structure, ...]:
    """Everything that a model does to its ledgers, attention first."""
    return (*_attention(model), *_ffn(model), *_formats(model), *_drafting(model))


def _count(groups: list[LayerGroup]) -> int:
    return sum(group.count for group in groups)


def _of(model: Model, kind: type) -> list[LayerGroup]:
    return [group for group in model.groups if isinstance(group.attention, kind)]


def _mixers(model: Model) -> int:
    """Layers with any attention or recurrence."""
    return _count([g for g in model.groups if not isinstance(g.attention, NoAttention)])


def several(values: Any) -> str:
    """Distinct values, smallest first, as ``8`` or ``2 / 8``."""
    return " / ".join(f"{value:,}" for value in sorted(set(values)))


def _attention(model: Model) -> Iterator[Structure]:
    softmax = _of(model, SoftmaxAttention)
    yield from _heads(softmax)
    yield from _windows(model, softmax)
    latent = _of(model, LatentAttention)
    if latent:
        width = several(group.attention.elements_per_token for group in latent)
        yield Structure(
            "mla", "attention_kv", _count(latent), {"elements": width},
            (("heads_own", "mla", {"against": "mha"}),), ("framework", "engineering"),
        )  # fmt: skip
    sparse = [g for g in model.groups if getattr(g.attention, "indexer", None) is not None]
    for name, kind in (("dsa", LatentAttention), ("block_sparse", SoftmaxAttention)):
        mine = [g for g in sparse if isinstance(g.attention, kind)]
        if mine:
            topk = several(g.attention.indexer.topk for g in mine)  # type: ignore[union-attr]
            yield Structure(
                name, "attention_kv", _count(mine), {"topk": topk},
                (("all_tokens", name, {}),), ("recall", "framework"),
            )  # fmt: skip
    compressed = [g for g in model.groups if isinstance(g.attention, CompressedAttention)]
    if compressed:
        ratios = several(g.attention.ratio for g in compressed)  # type: ignore[union-attr]
        yield Structure("compressed", "attention_kv", _count(compressed), {"ratios": ratios},
                        (), ("recall", "framework"))  # fmt: skip
    state = _of(model, StateAttention)
    if state:
        variants = [g.attention.variant for g in state if isinstance(g.attention, StateAttention)]
        full = _mixers(model) - _count(state)
        mixed = bool(softmax or latent)
        yield Structure(
            "linear", "attention_kv", _count(state),
            {"variant": " / ".join(sorted({VARIANTS[v] for v in variants})), "others": full},
            (("full_attention", "hybrid_linear", {}),) if mixed else (),
            ("recall", "scheduling", "framework"),
        )  # fmt: skip


def has_window(group: LayerGroup) -> bool:
    """Whether the config gives these layers a sliding window."""
    return getattr(group.attention, "window", None) is not None


def sees_part(attention: Attention, model: Model) -> bool:
    """Whether a layer sees only part of the past directly, or a summary of it.

    A window as long as the longest context is none.
    """
    if isinstance(attention, StateAttention | CompressedAttention):
        return True
    if getattr(attention, "indexer", None) is not None:
        return True
    limit = attention.limit
    return limit is not None and limit < model.max_position_embeddings


def _heads(softmax: list[LayerGroup]) -> Iterator[Structure]:
    by_kind: dict[str, list[LayerGroup]] = {}
    for group in softmax:
        attention = group.attention
        if isinstance(attention, SoftmaxAttention):
            kv, heads = attention.num_key_value_heads, attention.num_attention_heads
            kind = "mha" if kv == heads else "mqa" if kv == 1 else "gqa"
            by_kind.setdefault(kind, []).append(group)
    for kind, groups in by_kind.items():
        many = [g.attention for g in groups if isinstance(g.attention, SoftmaxAttention)]
        yield Structure(
            kind, "attention_kv", _count(groups),
            {"heads": several(a.num_attention_heads for a in many),
             "kv_heads": several(a.num_key_value_heads for a in many)},
            () if kind == "mha" else (("heads_own", "gqa", {}),),
            () if kind == "mha" else ("quality", "scheduling"),
        )  # fmt: skip


def _windows(model: Model, softmax: list[LayerGroup]) -> Iterator[Structure]:
    windowed = [g for g in softmax if sees_part(g.attention, model) and has_window(g)]
    if windowed:
        window = several(getattr(g.attention, "window", None) for g in windowed)
        yield Structure(
            "window", "attention_kv", _count(windowed),
            {"window": window, "others": _mixers(model) - _count(windowed)},
            (("no_window", "sliding_window", {}),), ("recall", "scheduling"),
        )  # fmt: skip
    chunked = [g for g in softmax if getattr(g.attention, "chunk", None)]
    if chunked:
        chunk = several(getattr(g.attention, "chunk", None) for g in chunked)
        yield Structure("chunked", "attention_kv", _count(chunked), {"chunk": chunk},
                        (), ("recall",))  # fmt: skip
    shared = [g for g in softmax if not getattr(g.attention, "stores_kv", True)]
    if shared:
        yield Structure("kv_sharing", "attention_kv", _count(shared), {},
                        (("own_cache", "kv_sharing", {}),), ("quality", "framework"))  # fmt: skip


def _ffn(model: Model) -> Iterator[Structure]:
    dense = [g for g in model.groups if isinstance(g.ffn, DenseFfn)]
    if dense:
        widths = several(g.ffn.intermediate_size for g in dense)  # type: ignore[union-attr]
        yield Structure("dense", "ffn_mlp", _count(dense), {"width": widths})
    moe = [g for g in model.groups if isinstance(g.ffn, MoeFfn)]
    if moe:
        many = [g.ffn for g in moe if isinstance(g.ffn, MoeFfn)]
        yield Structure(
            "moe", "ffn_mlp", _count(moe),
            {"experts": several(f.num_experts for f in many),
             "topk": several(f.num_experts_per_tok for f in many)},
            (("equal_total", "moe", {"against": "equal_total"}),
             ("equal_active", "moe", {"against": "equal_active"})),
            ("scheduling", "engineering", "quality"),
        )  # fmt: skip
        if any(f.shared_intermediate_size for f in many):
            width = several(f.shared_intermediate_size for f in many if f.shared_intermediate_size)
            yield Structure("shared_experts", "ffn_mlp", _count(moe), {"width": width},
                            (("no_shared", "shared_experts", {}),))  # fmt: skip
        if any(f.dense_intermediate_size for f in many):
            width = several(f.dense_intermediate_size for f in many if f.dense_intermediate_size)
            yield Structure("dense_beside", "ffn_mlp", _count(moe), {"width": width})
        limited = [f for f in many if f.n_group > 1]
        if limited:
            yield Structure(
                "node_limited", "scheduling", _count(moe),
                {"limit": several(f.topk_group for f in limited),
                 "groups": several(f.n_group for f in limited)}, (), ("quality",),
            )  # fmt: skip
    tables = sum(
        w.elements
        for w in model.globals
        if w.account == "per_layer_embedding" and w.use == "lookup"
    )
    if tables:
        yield Structure("per_layer_embedding", "ffn_mlp", 0, {"elements": f"{tables:,}"},
                        (), ("framework",))  # fmt: skip


def _formats(model: Model) -> Iterator[Structure]:
    """Storage formats of fewer than 16 bits per element."""
    found: dict[str, set[str]] = {}
    for weight, _ in model.booked_weights():
        if weight.use in ("linear", "expand") and storage(weight.dtype).compute != "fp32":
            bits = 8 * weight.bytes / weight.elements
            if bits < 15:  # below every 16-bit format
                found.setdefault(weight.dtype, set()).add(weight.account)
    named: dict[str, list[str]] = {}
    for dtype, accounts in found.items():
        only = accounts <= {"routed_experts", "shared_experts"}
        named.setdefault("expert_quantization" if only else "weight_quantization", []).append(dtype)
    for name, dtypes in named.items():
        whole = name == "weight_quantization"
        removal = "weight_fp8" if whole else "expert_quantization"
        yield Structure(
            name, "ffn_mlp", 0, {"dtype": " / ".join(sorted(dtypes))},
            (("bf16", removal, {}),), ("quality", "framework"),
            ("attention_kv",) if whole else (),
        )  # fmt: skip


def _drafting(model: Model) -> Iterator[Structure]:
    if model.mtp is not None:
        yield Structure(
            "mtp", "scheduling", model.mtp.num_layers,
            {"parameters": f"{model.mtp.parameter_count:,}"},
            (("no_draft", "mtp", {"action": "apply", "acceptance": ACCEPTANCE}),),
            ("framework", "scheduling"),
        )  # fmt: skip
