"""Memory: what stays on a device while all sequences are at their longest.

Weights, cache and state are exact; pages round up. What an engine needs besides (activations,
captured graphs, communication buffers) is an estimate, see ``reserve``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ledgerkit.costs.layout import at_entry, kv_copies, split_and_copies, stage_layers
from ledgerkit.costs.linear import served_bytes
from ledgerkit.spec.attention import (
    CompressedAttention,
    Indexer,
    LatentAttention,
    NoAttention,
    SoftmaxAttention,
    StateAttention,
)
from ledgerkit.spec.axes import LEDGERS, Account, Basis, Ledger
from ledgerkit.spec.cache import compressor_bytes, index_key_bytes, state_bytes, token_bytes
from ledgerkit.spec.deployment import Deployment
from ledgerkit.spec.engine import EngineProfile
from ledgerkit.spec.hardware import Hardware
from ledgerkit.spec.model import LayerGroup, Model

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Holding:
    """One kind of resident bytes: of a layer, on one device.

    ``bytes = layers · (fixed + sequences · (per_sequence + per_token · kept))`` with ``kept``
    tokens of a context, see ``kept_entries``.
    """

    name: str
    ledger: Ledger
    account: Account
    layers_by_stage: tuple[int, ...]
    fixed: float = 0.0
    per_sequence: float = 0.0
    per_token: float = 0.0
    limit: float = math.inf
    ratio: int = 1
    block: int = 1
    """> 1: only the bytes that rounding up to this many tokens adds."""
    tp_copies: float = 1.0
    dp_copies: float = 1.0
    pp_copies: float = 1.0
    basis: Basis = "exact"
    source: str = ""

    def kept_entries(self, context: int) -> float:
        """Cache entries of one sequence at this context."""
        if self.block > 1:
            return float(-context % self.block)
        return float(min(context, self.limit) // self.ratio)

    def bytes_of_layer(self, context: int, sequences: float) -> float:
        """Bytes of one layer on one device."""
        per_sequence = self.per_sequence + self.per_token * self.kept_entries(context)
        return self.fixed + sequences * per_sequence


def holdings(model: Model, deployment: Deployment, profile: EngineProfile) -> list[Holding]:
    """Everything that stays on the devices of a replica."""
    stages = stage_layers(model.num_hidden_layers, deployment.pp)
    found: list[Holding] = []
    for group in model.groups:
        layers = tuple(sum(i in stage for i in group.layers) for stage in stages)
        found += _weight_holdings(group, layers, deployment)
        found += _cache_holdings(group, layers, deployment, profile)
    last = (0,) * (deployment.pp - 1) + (1,)
    first = (1,) + (0,) * (deployment.pp - 1)
    for weight in model.globals:
        fraction, copies = split_and_copies(weight, None, deployment)
        where = first if at_entry(weight) else last
        pp_copies = 1.0
        if weight.use == "head" and model.tie_word_embeddings and deployment.pp > 1:
            # a tied table is needed at both ends of the pipeline
            where, pp_copies = (1,) + (0,) * (deployment.pp - 2) + (1,), 2.0
        found.append(
            Holding(
                name="weights", ledger=weight.ledger, account=weight.account,
                layers_by_stage=where, fixed=served_bytes(weight, deployment) * fraction,
                tp_copies=copies, dp_copies=float(deployment.dp_attention), pp_copies=pp_copies,
                source="stored bytes, scales included",
            )
        )  # fmt: skip
    return found


def _weight_holdings(
    group: LayerGroup, layers: tuple[int, ...], deployment: Deployment
) -> list[Holding]:
    sums: dict[tuple[Ledger, Account, float, float], float] = {}
    for weight in group.weights:
        fraction, copies = split_and_copies(weight, group, deployment)
        dp_copies = 1.0 if weight.split == "experts" else float(deployment.dp_attention)
        key = (weight.ledger, weight.account, copies, dp_copies)
        sums[key] = sums.get(key, 0.0) + served_bytes(weight, deployment) * fraction
    return [
        Holding(
            name="weights", ledger=ledger, account=account, layers_by_stage=layers, fixed=size,
            tp_copies=copies, dp_copies=dp_copies, source="stored bytes, scales included",
        )
        for (ledger, account, copies, dp_copies), size in sums.items()
    ]  # fmt: skip


def _cache_holdings(
    group: LayerGroup, layers: tuple[int, ...], deployment: Deployment, profile: EngineProfile
) -> list[Holding]:
    attention, tp, kv_dtype = group.attention, deployment.tp, deployment.kv_dtype
    found: list[Holding] = _index_holdings(group, layers, deployment)

    def cache(name: str, size: float, copies: float, limit: float, ratio: int = 1) -> None:
        if not size:
            return
        found.append(
            Holding(
                name=name, ledger="attention_kv", account="cache", layers_by_stage=layers,
                per_token=size * copies / tp, limit=limit, ratio=ratio, tp_copies=copies,
                source="cache bytes of the kept tokens",
            )
        )  # fmt: skip
        block = deployment.block_size or profile.block_size
        if block > 1 and limit == math.inf and ratio == 1:
            found.append(
                Holding(
                    name="page_rounding", ledger="scheduling", account="fragmentation",
                    layers_by_stage=layers, per_token=size * copies / tp, block=block,
                    tp_copies=1.0, basis="estimated",
                    source=f"the last page of {block} tokens is rarely full",
                )
            )  # fmt: skip

    match attention:
        case SoftmaxAttention():
            copies = kv_copies(attention.num_key_value_heads, tp)
            limit = math.inf if attention.limit is None else float(attention.limit)
            cache("keys_and_values", token_bytes(attention, kv_dtype), copies, limit)
        case LatentAttention():
            cache("latents", token_bytes(attention, kv_dtype), float(tp), math.inf)
        case CompressedAttention():
            entry = token_bytes(attention, kv_dtype)
            cache("window_entries", entry, float(tp), float(attention.window))
            if attention.ratio:
                cache("compressed_entries", entry, float(tp), math.inf, attention.ratio)
                found.append(
                    Holding(
                        name="compressor_state", ledger="attention_kv", account="state",
                        layers_by_stage=layers, per_sequence=compressor_bytes(attention),
                        tp_copies=float(tp), source="tokens that are not yet one entry, in fp32",
                    )
                )  # fmt: skip
        case StateAttention():
            found.append(
                Holding(
                    name="state", ledger="attention_kv", account="state", layers_by_stage=layers,
                    per_sequence=state_bytes(attention) / tp,
                    source="recurrent state and convolution memory",
                )
            )  # fmt: skip
        case NoAttention():
            pass
    return found


def _index_holdings(
    group: LayerGroup, layers: tuple[int, ...], deployment: Deployment
) -> list[Holding]:
    attention = group.attention
    indexer: Indexer | None = getattr(attention, "indexer", None)
    if indexer is None or not indexer.owned:
        return []
    return [
        Holding(
            name="index_keys", ledger="attention_kv", account="indexer", layers_by_stage=layers,
            per_token=index_key_bytes(indexer, deployment.kv_dtype),
            ratio=attention.ratio if isinstance(attention, CompressedAttention) else indexer.ratio,
            tp_copies=float(deployment.tp), source="index keys of all tokens",
        )
    ]  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Residence:
    """Resident bytes of each pipeline stage as a function of sequences and context.

    ``bytes = base + sequences · (per_sequence + Σ per_token · kept(context))``: one definition for
    single points and for grids, so that both round alike.
    """

    base: Array
    """float64[stages]"""
    per_sequence: Array
    """float64[stages]"""
    terms: tuple[tuple[float, int, int, Array], ...]
    """(limit, ratio, block) of ``Holding.kept_entries`` and the bytes per token of each stage."""

    @classmethod
    @lru_cache(maxsize=256)
    def of(cls, found: tuple[Holding, ...]) -> Residence:
        """Gather holdings that keep tokens alike."""
        stages = range(len(found[0].layers_by_stage) if found else 1)

        def total(chosen: Iterable[Holding], field: str) -> Array:
            held = list(chosen)
            return np.array(
                [math.fsum(h.layers_by_stage[i] * getattr(h, field) for h in held) for i in stages]
            )

        kinds = dict.fromkeys((h.limit, h.ratio, h.block) for h in found if h.per_token)
        return cls(
            base=total(found, "fixed"),
            per_sequence=total(found, "per_sequence"),
            terms=tuple(
                (*kind, total((h for h in found if (h.limit, h.ratio, h.block) == kind),
                              "per_token"))
                for kind in kinds
            ),
        )  # fmt: skip

    def sequence_bytes(self, contexts: Array) -> Array:
        """Bytes of one sequence at each context: float64[stages, contexts]."""
        found = np.repeat(self.per_sequence[:, None], len(contexts), axis=1)
        for limit, ratio, block, per_token in self.terms:
            if block > 1:
                kept = np.mod(-contexts, float(block))
            else:
                kept = np.floor(np.minimum(contexts, limit) / ratio)
            found += per_token[:, None] * kept
        return found


def cache_room(
    hardware: Hardware,
    deployment: Deployment,
    profile: EngineProfile,
    fixed_bytes: float,
    reserve_bytes: float,
) -> float:
    """Bytes of a device that are left for the cache beside ``fixed_bytes`` of weights.

    Engines mean different things by their memory fraction: of all memory, and everything has to
    fit in it (vLLM); of all memory, but activations and graphs live beside it (SGLang); of what is
    free once weights and activations are there (TensorRT-LLM).

    Examples
    --------
    >>> import ledgerkit as lk
    >>> from ledgerkit.catalog.engines import load_engine
    >>> device = lk.load_hardware("h100-sxm-80gb")
    >>> half = lk.Deployment(memory_fraction=0.5)
    >>> left = [
    ...     cache_room(device, half, load_engine(name), 20e9, 2e9) / 1e9
    ...     for name in ("vllm", "sglang", "tensorrt-llm")
    ... ]
    >>> round(left[1] - left[0], 6), left[2] > left[0]
    (2.0, True)
    """
    fraction = deployment.memory_fraction or profile.memory_fraction
    memory = hardware.memory_bytes
    if profile.memory_fraction_of == "free":
        return fraction * (memory - fixed_bytes - reserve_bytes)
    if profile.memory_fraction_covers == "weights_and_cache":
        return min(fraction * memory, memory - reserve_bytes) - fixed_bytes
    return fraction * memory - fixed_bytes - reserve_bytes


def stage_bytes(found: Iterable[Holding], context: int, sequences: float) -> list[float]:
    """Bytes on one device of each stage, without the reserve."""
    residence = Residence.of(tuple(found))
    one = residence.sequence_bytes(np.array([float(context)]))[:, 0]
    return [float(size) for size in residence.base + sequences * one]


def resident_by_ledger(
    found: Iterable[Holding], contexts: Array, sequences: Array, reserve_bytes: float
) -> dict[Ledger, Array]:
    """Bytes of each ledger on the fullest device, at points; the reserve books to scheduling."""
    held = tuple(found)
    whole = Residence.of(held)
    fullest = (whole.base[:, None] + sequences * whole.sequence_bytes(contexts)).argmax(axis=0)
    at = np.arange(len(contexts))
    sums: dict[Ledger, Array] = {}
    for ledger in LEDGERS:
        mine = Residence.of(tuple(h for h in held if h.ledger == ledger))
        stages = mine.base[:, None] + sequences * mine.sequence_bytes(contexts)
        sums[ledger] = stages[fullest if len(stages) > 1 else 0 * fullest, at]
    sums["scheduling"] = sums["scheduling"] + reserve_bytes
    return sums
