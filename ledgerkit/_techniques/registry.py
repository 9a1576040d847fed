"""Which function applies and which removes each technique."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from ledgerkit._techniques import (
    experts,
    formats,
    heads,
    latent,
    layouts,
    linear_attention,
    placement,
    reuse,
    serving,
    shared_cache,
    sparse,
    speculation,
    windows,
)
from ledgerkit._techniques.point import Change, checked_settings, settings_of
from ledgerkit._techniques.sides import State
from ledgerkit._techniques.steps import Step
from ledgerkit.catalog._registry import unknown
from ledgerkit.errors import TechniqueError

Action = Literal["apply", "remove"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a technique enters and leaves a deployment."""

    apply: Callable[..., Any] | None
    remove: Callable[..., Any] | None
    rank: int = 0
    """When it is booked in a stack: 0 changes model or deployment (``Point``), 1 the books and the
    deployment, 2 the books of whatever the stack ends with (``State``)."""


def _weights(dtype: str) -> Recipe:
    return Recipe(partial(formats.apply_weights, dtype=dtype), formats.remove_weights)


RECIPES: Mapping[str, Recipe] = {
    "mha": Recipe(heads.apply_mha, None),
    "mqa": Recipe(heads.apply_mqa, heads.remove_gqa),
    "gqa": Recipe(heads.apply_gqa, heads.remove_gqa),
    "mla": Recipe(latent.apply_mla, latent.remove_mla),
    "mla_absorption": Recipe(latent.apply_absorption, None),
    "sliding_window": Recipe(windows.apply_window, windows.remove_window),
    "dsa": Recipe(sparse.apply_dsa, sparse.remove_dsa),
    "nsa": Recipe(sparse.apply_nsa, None),
    "block_sparse": Recipe(sparse.apply_block_sparse, sparse.remove_block_sparse),
    "hybrid_window": Recipe(windows.apply_window_hybrid, windows.remove_window),
    "hybrid_linear": Recipe(linear_attention.apply_linear, linear_attention.remove_linear),
    "kv_quantization": Recipe(formats.apply_kv, formats.remove_kv),
    "kv_sharing": Recipe(shared_cache.apply_sharing, shared_cache.remove_sharing),
    "dense_ffn": Recipe(experts.remove_moe, None),
    "gated_ffn": Recipe(experts.apply_gate, experts.remove_gate),
    "moe": Recipe(experts.apply_moe, experts.remove_moe),
    "shared_experts": Recipe(experts.apply_shared, experts.remove_shared),
    "expert_quantization": Recipe(formats.apply_experts, formats.remove_experts),
    "weight_fp8": _weights("fp8_block128"),
    "weight_int8": _weights("int8"),
    "weight_int4": _weights("int4_g128"),
    "weight_mxfp4": _weights("mxfp4"),
    "weight_nvfp4": _weights("nvfp4"),
    "weight_gguf": _weights("q4_k"),
    "expert_offload": Recipe(placement.apply_offload, None, rank=2),
    "continuous_batching": Recipe(serving.apply_batching, serving.remove_batching, rank=2),
    "paged_attention": Recipe(serving.apply_paging, serving.remove_paging, rank=2),
    "prefix_cache": Recipe(reuse.apply_prefix_cache, reuse.remove_prefix, rank=1),
    "radix_attention": Recipe(reuse.apply_radix, reuse.remove_prefix, rank=1),
    "speculative_decoding": Recipe(speculation.apply_speculation, None, rank=2),
    "mtp": Recipe(speculation.apply_mtp, None, rank=2),
    "chunked_prefill": Recipe(serving.apply_chunks, serving.remove_chunks, rank=1),
    "tensor_parallelism": Recipe(layouts.apply_tp, layouts.remove_tp),
    "pipeline_parallelism": Recipe(layouts.apply_pp, layouts.remove_pp),
    "expert_parallelism": Recipe(layouts.apply_ep, layouts.remove_ep, rank=1),
    "deepep": Recipe(placement.apply_deepep, placement.remove_deepep, rank=1),
    "pd_disaggregation": Recipe(serving.apply_disaggregation, None, rank=2),
    "dp_attention": Recipe(layouts.apply_dp_attention, layouts.remove_dp_attention),
}


def recipe(technique: str) -> Recipe:
    """Look a technique up.

    Raises
    ------
    CatalogError
        There is no such technique.
    """
    found = RECIPES.get(technique)
    if found is None:
        raise unknown("technique", technique, RECIPES, "lk.techniques()")
    return found


def step(technique: str, action: str, settings: Mapping[str, Any]) -> Step:
    """Bind a technique to its settings.

    Raises
    ------
    CatalogError, TechniqueError
        The technique, the action or a setting does not exist.
    """
    kind = recipe(technique)
    if action not in ("apply", "remove"):
        raise TechniqueError("unknown action", given=action, allowed="apply, remove",
                             fix="use action='apply'")  # fmt: skip
    change: Change | None = kind.apply if action == "apply" else kind.remove
    if change is None:
        raise TechniqueError(
            f"{technique} cannot be removed: it is a baseline, or one of two ways to compute",
            given=action, allowed="apply", fix="apply it and reverse the transfer",
        )  # fmt: skip
    checked_settings(technique, change, settings)
    bound = {**settings_of(change), **settings}
    on_books = change if kind.rank else partial(_on_point, change)
    return Step(technique, action, bound, on_books, kind.rank)  # type: ignore[arg-type]


def _on_point(change: Change, state: State, **settings: Any) -> State:
    return state.moved(change(state.point, **settings))
