"""Plans of mixtures of experts whose layers differ in window, heads or kind of MLP."""

from __future__ import annotations

from collections.abc import Callable

from tests.gguf.build_further import (
    DIM,
    HEADS,
    HIDDEN,
    KV_HEADS,
    LAYERS,
    MOE,
    WIDTH,
    _shared,
    _without,
)
from tests.gguf.writing import CONTEXT, VOCAB, Plan, decoder, experts

INNER = 128
"""Width of an expert."""
SPARSE = {**MOE, "expert_shared_count": 1, "leading_dense_block_count": 1,
          "expert_weights_scale": 2.5, "expert_weights_norm": True,
          "expert_gating_func": 2}  # fmt: skip
WINDOWS = [True, True, True, False]


def dense_mlp(plan: Plan, layer: int) -> None:
    plan.add(f"blk.{layer}.", ffn_gate=(HIDDEN, WIDTH), ffn_up=(HIDDEN, WIDTH),
             ffn_down=(WIDTH, HIDDEN))  # fmt: skip


def sparse(
    architecture: str, keys: dict | None = None, *, blocks: int = 0, correction: bool = True,
    shared: int = INNER, **options: object,
) -> Plan:  # fmt: skip
    """One dense layer, then experts with a shared one; dense MTP blocks at the end."""
    plan = decoder(architecture, layers=LAYERS + blocks, dense=False,
                   keys=SPARSE | (keys or {}), **options)  # fmt: skip
    for layer in range(LAYERS + blocks):
        if layer == 0 or layer >= LAYERS:
            dense_mlp(plan, layer)
            continue
        experts(plan, layer, HIDDEN, INNER, 8)
        if shared:
            _shared(plan, layer, shared)
        if correction:
            plan.add(f"blk.{layer}.", exp_probs_b__bias=(8,))
    if not shared:
        del plan.keys["expert_shared_count"]
    return plan


def draft(plan: Plan, layer: int, *, copies: bool = False) -> None:
    """What an MTP block has beside its decoder layer."""
    plan.add(f"blk.{layer}.", nextn__eh_proj__weight=(2 * HIDDEN, HIDDEN),
             nextn__enorm__weight=(HIDDEN,), nextn__hnorm__weight=(HIDDEN,),
             nextn__shared_head_norm__weight=(HIDDEN,))  # fmt: skip
    if copies:
        plan.add(f"blk.{layer}.", nextn__shared_head_head__weight=(HIDDEN, VOCAB))


def bailingmoe2() -> Plan:
    return sparse("bailingmoe2", {"expert_shared_feed_forward_length": INNER,
                                  "expert_group_count": 4, "expert_group_used_count": 2},
                  fused_qkv=True, qk_norm=True)  # fmt: skip


def afmoe() -> Plan:
    plan = sparse("afmoe", {"attention.sliding_window": 512}, qk_norm=True, post_norms=True)
    for layer in range(LAYERS):
        plan.add(f"blk.{layer}.", attn_gate=(HIDDEN, HEADS * DIM))
    return plan


def phimoe() -> Plan:
    plan = decoder("phimoe", dense=False, qkv_bias=True, width=INNER, keys={
        "expert_count": 8, "expert_used_count": 2, "attention.sliding_window": CONTEXT,
        "rope.scaling.original_context_length": CONTEXT})  # fmt: skip
    plan.add("", output__bias=(VOCAB,), output_norm__bias=(HIDDEN,))
    for layer in range(LAYERS):
        experts(plan, layer, HIDDEN, INNER, 8)
        plan.add(f"blk.{layer}.", attn_norm__bias=(HIDDEN,), ffn_norm__bias=(HIDDEN,),
                 attn_output__bias=(HIDDEN,))  # fmt: skip
    return plan


def mistral3_moe() -> Plan:
    plan = decoder("mistral3", dense=False, width=INNER, keys={
        "attention.temperature_scale": 0.1, "expert_count": 8,
        "expert_used_count": 2})  # fmt: skip
    for layer in range(LAYERS):
        experts(plan, layer, HIDDEN, INNER, 8)
    return plan


def mimo2(*, blocks: int = 0, fused: bool = False) -> Plan:
    """Values narrower than keys, twice the key heads in window layers, sinks there."""
    value, windows = 32, [False, True, True, False] + [True] * blocks
    kv_heads = [2 * KV_HEADS if here else KV_HEADS for here in windows]
    plan = sparse("mimo2", {
        "attention.value_length": value, "attention.head_count_kv": kv_heads,
        "attention.sliding_window": 128, "attention.sliding_window_pattern": windows,
        "attention.value_scale": 0.7, "rope.freq_base_swa": 10000.0,
        **({"nextn_predict_layers": blocks} if blocks else {}),
    }, blocks=blocks, shared=0)  # fmt: skip
    for layer, here in enumerate(windows):
        at, keys, values = f"blk.{layer}.", kv_heads[layer] * DIM, kv_heads[layer] * value
        plan.add(at, attn_output=(HEADS * value, HIDDEN))
        if fused:
            _without(plan, "attn_q", "attn_k", "attn_v", layers=[layer])
            plan.add(at, attn_qkv=(HIDDEN, HEADS * DIM + keys + values))
        else:
            plan.add(at, attn_k=(HIDDEN, keys), attn_v=(HIDDEN, values))
        if here:
            plan.add(at, attn_sinks=(HEADS,))
        if layer >= LAYERS:
            draft(plan, layer)
    return plan


def mimo2_mtp() -> Plan:
    return mimo2(blocks=3, fused=True)


def step35(*, blocks: int = 0) -> Plan:
    """More query heads in window layers, a gate for each head."""
    windows = [False, True, True, True] + [True] * blocks
    heads = [6 if here else HEADS for here in windows]
    plan = sparse("step35", {
        "attention.head_count": heads, "attention.head_count_kv": [KV_HEADS] * len(heads),
        "attention.sliding_window": 512, "attention.sliding_window_pattern": windows,
        "expert_shared_feed_forward_length": 192, "rope.freq_base_swa": 10000.0,
        **({"nextn_predict_layers": blocks} if blocks else {}),
    }, blocks=blocks, shared=192, qk_norm=True)  # fmt: skip
    for layer, count in enumerate(heads):
        plan.add(f"blk.{layer}.", attn_q=(HIDDEN, count * DIM), attn_output=(count * DIM, HIDDEN),
                 attn_gate=(HIDDEN, count))  # fmt: skip
        if layer >= LAYERS:
            draft(plan, layer, copies=True)
    return plan


def step35_mtp() -> Plan:
    return step35(blocks=3)


def laguna(*, windows: bool = True) -> Plan:
    """More query heads in window layers; a gate for each head, or for each element."""
    pattern = [False, True, True, True] if windows else [False] * LAYERS
    heads = [6 if here else HEADS for here in pattern]
    plan = sparse("laguna", {
        "attention.head_count": heads, "expert_shared_feed_forward_length": 192,
        **({"attention.sliding_window": 512, "attention.sliding_window_pattern": pattern,
            "rope.freq_base_swa": 10000.0, "rope.dimension_count_swa": DIM} if windows else {}),
    }, shared=192, qk_norm=True)  # fmt: skip
    for layer, count in enumerate(heads):
        plan.add(f"blk.{layer}.", attn_q=(HIDDEN, count * DIM), attn_output=(count * DIM, HIDDEN),
                 attn_gate=(HIDDEN, count if windows else count * DIM))  # fmt: skip
    return plan


def laguna_m() -> Plan:
    return laguna(windows=False)


def exaone_moe(*, blocks: int = 0) -> Plan:
    plan = sparse("exaone-moe", {
        "attention.sliding_window": 512,
        "attention.sliding_window_pattern": WINDOWS + [False] * blocks,
        "expert_shared_feed_forward_length": INNER, "nextn_predict_layers": blocks,
    }, blocks=blocks, qk_norm=True)  # fmt: skip
    for layer in range(LAYERS, LAYERS + blocks):
        draft(plan, layer)
    return plan


def exaone_moe_mtp() -> Plan:
    return exaone_moe(blocks=1)


def hy_v3(*, blocks: int = 0) -> Plan:
    """Its correction has no suffix; MTP blocks have experts too."""
    keys = {"expert_shared_feed_forward_length": INNER, "nextn_predict_layers": blocks}
    plan = sparse("hy_v3", keys, blocks=blocks, correction=False, qk_norm=True)
    for layer in range(LAYERS, LAYERS + blocks):
        _without(plan, "ffn_gate", "ffn_up", "ffn_down", layers=[layer])
        experts(plan, layer, HIDDEN, INNER, 8)
        _shared(plan, layer, INNER)
        draft(plan, layer)
    for layer in range(1, LAYERS + blocks):
        plan.tensors[f"blk.{layer}.exp_probs_b"] = (8,)
    return plan


def hy_v3_mtp() -> Plan:
    return hy_v3(blocks=1)


EXPERTS: dict[str, Callable[[], Plan]] = {
    function.__name__: function
    for function in (afmoe, bailingmoe2, exaone_moe, exaone_moe_mtp, hy_v3, hy_v3_mtp, laguna,
                     laguna_m, mimo2, mimo2_mtp, mistral3_moe, phimoe, step35, step35_mtp)
}  # fmt: skip
