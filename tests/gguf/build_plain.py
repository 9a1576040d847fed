"""Plans of LFM2, and of decoders whose layers are all alike."""

from __future__ import annotations

from collections.abc import Callable

from tests.gguf.build_further import HIDDEN, KV_HEADS, LAYERS, MOE, WIDTH, _without
from tests.gguf.writing import VOCAB, Plan, decoder, experts


def lfm2(*, moe: bool = False) -> Plan:
    """Short convolutions, attention in the third layer; experts after the first."""
    kernel = 3
    plan = decoder("lfm2moe" if moe else "lfm2", tie=True, qk_norm=True, dense=not moe, keys={
        "attention.head_count_kv": [0, 0, KV_HEADS, 0], "shortconv.l_cache": kernel,
        **(MOE | {"leading_dense_block_count": 1, "expert_gating_func": 2} if moe else {}),
    })  # fmt: skip
    plan.add("", token_embd_norm=(HIDDEN,))
    del plan.tensors["output_norm.weight"]
    convolve = [0, 1, 3]
    parts = ("attn_q", "attn_k", "attn_v", "attn_output", "attn_q_norm", "attn_k_norm")
    _without(plan, *parts, layers=convolve)
    for layer in convolve:
        plan.add(f"blk.{layer}.", shortconv__conv__weight=(kernel, HIDDEN),
                 shortconv__in_proj__weight=(HIDDEN, 3 * HIDDEN),
                 shortconv__out_proj__weight=(HIDDEN, HIDDEN))  # fmt: skip
    if not moe:
        return plan
    plan.add("blk.0.", ffn_gate=(HIDDEN, WIDTH), ffn_up=(HIDDEN, WIDTH), ffn_down=(WIDTH, HIDDEN))
    for layer in range(1, LAYERS):
        experts(plan, layer, HIDDEN, 128, 8)
        plan.add(f"blk.{layer}.", exp_probs_b__bias=(8,))
    return plan


def lfm2moe() -> Plan:
    return lfm2(moe=True)


def gemma() -> Plan:
    return decoder("gemma", tie=True, head_dim=128)


def exaone() -> Plan:
    return decoder("exaone")


def baichuan() -> Plan:
    return decoder("baichuan", kv_heads=4)


def minicpm() -> Plan:
    scales = {"embedding_scale": 12.0, "residual_scale": 0.22, "logit_scale": 8.0}
    return decoder("minicpm", tie=True, keys=scales)


def olmo() -> Plan:
    plan = _without(decoder("olmo", kv_heads=4), "attn_norm", "ffn_norm")
    del plan.keys["attention.layer_norm_rms_epsilon"], plan.tensors["output_norm.weight"]
    plan.keys["attention.layer_norm_epsilon"] = 1e-5
    return plan


def _layer_norms(plan: Plan) -> Plan:
    del plan.keys["attention.layer_norm_rms_epsilon"]
    plan.keys["attention.layer_norm_epsilon"] = 1e-5
    plan.add("", output_norm__bias=(HIDDEN,))
    for layer in range(LAYERS):
        plan.add(f"blk.{layer}.", attn_norm__bias=(HIDDEN,), ffn_norm__bias=(HIDDEN,))
    return plan


def nemotron() -> Plan:
    return _layer_norms(_without(decoder("nemotron"), "ffn_gate"))


def stablelm() -> Plan:
    plan = decoder("stablelm", qkv_bias=True, keys={"use_parallel_residual": False})
    return _layer_norms(plan)


def apertus() -> Plan:
    plan = _without(decoder("apertus", qk_norm=True), "ffn_gate")
    plan.bare = {f"xielu.{name}": [0.5] * LAYERS for name in ("alpha_p", "alpha_n", "beta", "eps")}
    return plan


def chatglm() -> Plan:
    plan = decoder("chatglm", fused_qkv=True, fused_up=True)
    for layer in range(LAYERS):
        plan.add(f"blk.{layer}.", attn_qkv__bias=(2 * HIDDEN,))
    return plan


def dbrx() -> Plan:
    plan = decoder("dbrx", dense=False, fused_qkv=True, keys={
        "expert_count": 8, "expert_used_count": 4, "attention.clamp_kqv": 8.0,
        "feed_forward_length": 128, "attention.layer_norm_epsilon": 1e-5})  # fmt: skip
    del plan.keys["attention.layer_norm_rms_epsilon"]
    _without(plan, "ffn_norm")
    for layer in range(LAYERS):
        experts(plan, layer, HIDDEN, 128, 8)
        plan.add(f"blk.{layer}.", attn_output_norm=(HIDDEN,))
    return plan


def mamba2() -> Plan:
    heads, state, groups, kernel = 8, 32, 2, 4
    inner = 2 * HIDDEN
    channels = inner + 2 * groups * state
    plan = Plan("mamba2", {
        "context_length": 4096, "embedding_length": HIDDEN, "block_count": LAYERS,
        "feed_forward_length": 0, "attention.head_count": 0, "ssm.conv_kernel": kernel,
        "ssm.inner_size": inner, "ssm.state_size": state, "ssm.time_step_rank": heads,
        "ssm.group_count": groups, "attention.layer_norm_rms_epsilon": 1e-5})  # fmt: skip
    plan.add("", token_embd=(HIDDEN, VOCAB), output_norm=(HIDDEN,))
    for layer in range(LAYERS):
        at = f"blk.{layer}."
        plan.add(at, attn_norm=(HIDDEN,), ssm_in=(HIDDEN, inner + channels + heads),
                 ssm_conv1d=(kernel, channels), ssm_conv1d__bias=(channels,),
                 ssm_dt__bias=(heads,), ssm_norm=(inner // groups, groups),
                 ssm_out=(inner, HIDDEN))  # fmt: skip
        plan.tensors |= {at + "ssm_a": (1, heads), at + "ssm_d": (1, heads)}
    return plan


def falcon(*, kv_heads: int = 1) -> Plan:
    """One norm before both blocks, or one for each."""
    plan = _without(decoder("falcon", kv_heads=kv_heads, fused_qkv=True), "ffn_gate", "ffn_norm")
    del plan.keys["attention.layer_norm_rms_epsilon"]
    plan.keys["attention.layer_norm_epsilon"] = 1e-5
    plan.add("", output_norm__bias=(HIDDEN,))
    for layer in range(LAYERS):
        plan.add(f"blk.{layer}.", attn_norm__bias=(HIDDEN,))
        if kv_heads > 1:
            plan.add(f"blk.{layer}.", attn_norm_2=(HIDDEN,), attn_norm_2__bias=(HIDDEN,))
    return plan


def falcon_40b() -> Plan:
    return falcon(kv_heads=2)


def deci() -> Plan:
    """A whole block, one without attention, one without either, and one with fewer key heads."""
    plan = decoder("deci", keys={
        "attention.head_count": [4, 0, 0, 4], "attention.head_count_kv": [2, 0, 0, 1],
        "feed_forward_length": [WIDTH, 2 * WIDTH, 0, WIDTH]})  # fmt: skip
    _without(plan, "attn_q", "attn_k", "attn_v", "attn_output", "attn_norm", layers=[1, 2])
    _without(plan, "ffn_gate", "ffn_up", "ffn_down", "ffn_norm", layers=[2])
    plan.add("blk.1.", ffn_gate=(HIDDEN, 2 * WIDTH), ffn_up=(HIDDEN, 2 * WIDTH),
             ffn_down=(2 * WIDTH, HIDDEN))  # fmt: skip
    plan.add("blk.3.", attn_k=(HIDDEN, 64), attn_v=(HIDDEN, 64))
    return plan


def phi2() -> Plan:
    plan = _layer_norms(_without(decoder("phi2", kv_heads=4, qkv_bias=True), "ffn_gate"))
    plan.add("", output__bias=(VOCAB,))
    for layer in range(LAYERS):
        at = f"blk.{layer}."
        del plan.tensors[at + "ffn_norm.weight"], plan.tensors[at + "ffn_norm.bias"]
        plan.add(at, attn_output__bias=(HIDDEN,), ffn_up__bias=(WIDTH,), ffn_down__bias=(HIDDEN,))
    return plan


def jais2() -> Plan:
    plan = _layer_norms(_without(decoder("jais2", qkv_bias=True), "ffn_gate"))
    for layer in range(LAYERS):
        plan.add(f"blk.{layer}.", attn_output__bias=(HIDDEN,), ffn_up__bias=(WIDTH,),
                 ffn_down__bias=(HIDDEN,))  # fmt: skip
    return plan


PLAIN: dict[str, Callable[[], Plan]] = {
    function.__name__: function
    for function in (apertus, baichuan, chatglm, dbrx, deci, exaone, falcon, falcon_40b, gemma,
                     jais2, lfm2, lfm2moe, mamba2, minicpm, nemotron, olmo, phi2, stablelm)
}  # fmt: skip
