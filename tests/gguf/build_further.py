"""Plans of further architectures: decoders, mixtures of experts, hybrids and Gemma 3n."""

from __future__ import annotations

from collections.abc import Callable

from tests.gguf.writing import VOCAB, Plan, decoder, experts

HIDDEN, HEADS, KV_HEADS, DIM, WIDTH, LAYERS = 256, 4, 2, 64, 512, 4
MOE = {"expert_count": 8, "expert_used_count": 2, "expert_feed_forward_length": 128}


def _without(plan: Plan, *suffixes: str, layers: range | list[int] = range(LAYERS)) -> Plan:
    for layer in layers:
        for suffix in suffixes:
            del plan.tensors[f"blk.{layer}.{suffix}.weight"]
    return plan


def _shared(plan: Plan, layer: int, width: int) -> None:
    plan.add(f"blk.{layer}.", ffn_gate_shexp=(HIDDEN, width), ffn_up_shexp=(HIDDEN, width),
             ffn_down_shexp=(width, HIDDEN))  # fmt: skip


def arcee() -> Plan:
    return _without(decoder("arcee"), "ffn_gate")


def smollm3() -> Plan:
    return decoder("smollm3", tie=True)


def granite() -> Plan:
    scales = {"attention.scale": 0.1, "embedding_scale": 12.0, "residual_scale": 0.22}
    return decoder("granite", tie=True, keys=scales | {"logit_scale": 8.0})


def internlm2() -> Plan:
    return decoder("internlm2")


def mistral3() -> Plan:
    return decoder("mistral3", head_dim=128, keys={"attention.temperature_scale": 0.1})


def qwen2vl() -> Plan:
    return decoder("qwen2vl", qkv_bias=True, keys={"rope.dimension_sections": [8, 12, 12, 0]})


def qwen3vl() -> Plan:
    return decoder("qwen3vl", qk_norm=True, tie=True, keys={
        "n_deepstack_layers": 3, "rope.dimension_sections": [12, 10, 10, 0]})  # fmt: skip


def hunyuan_dense() -> Plan:
    return decoder("hunyuan-dense", qk_norm=True, tie=True)


def ernie4_5() -> Plan:
    return decoder("ernie4_5", tie=True)


def seed_oss() -> Plan:
    plan = _without(decoder("seed_oss", qkv_bias=True), "ffn_norm")
    for layer in range(LAYERS):
        plan.add(f"blk.{layer}.", post_attention_norm=(HIDDEN,))
    return plan


def glm4() -> Plan:
    return decoder("glm4", fused_up=True, post_norms=True, qkv_bias=True)


def olmo2() -> Plan:
    plan = _without(decoder("olmo2", post_norms=True), "attn_norm", "ffn_norm")
    for layer in range(LAYERS):
        plan.add(f"blk.{layer}.", attn_q_norm=(HEADS * DIM,), attn_k_norm=(KV_HEADS * DIM,))
    return plan


def olmo3() -> Plan:
    plan = olmo2()
    plan.keys |= {"attention.sliding_window": 512,
                  "attention.sliding_window_pattern": [True, True, True, False]}  # fmt: skip
    return plan


def command_r() -> Plan:
    plan = decoder("command-r", tie=True, keys={"logit_scale": 0.06})
    del plan.keys["attention.layer_norm_rms_epsilon"]
    plan.keys["attention.layer_norm_epsilon"] = 1e-5
    return _without(plan, "ffn_norm")


def cohere2() -> Plan:
    plan = decoder("cohere2", tie=True, keys={"logit_scale": 0.25, "attention.sliding_window": 512})
    del plan.keys["attention.layer_norm_rms_epsilon"]
    plan.keys["attention.layer_norm_epsilon"] = 1e-5
    return _without(plan, "ffn_norm")


def exaone4() -> Plan:
    return _without(decoder("exaone4", post_norms=True, qk_norm=True), "attn_norm", "ffn_norm")


def exaone4_windows() -> Plan:
    """llama.cpp knows the one with windows by its number of layers."""
    plan = decoder("exaone4", layers=64, hidden=64, heads=2, kv_heads=1, head_dim=32, width=64,
                   post_norms=True, qk_norm=True,
                   keys={"attention.sliding_window": 512})  # fmt: skip
    return _without(plan, "attn_norm", "ffn_norm", layers=range(64))


def starcoder2() -> Plan:
    plan = _without(decoder("starcoder2", qkv_bias=True), "ffn_gate")
    del plan.keys["attention.layer_norm_rms_epsilon"]
    plan.keys["attention.layer_norm_epsilon"] = 1e-5
    plan.add("", output_norm__bias=(HIDDEN,))
    for layer in range(LAYERS):
        plan.add(f"blk.{layer}.", attn_norm__bias=(HIDDEN,), ffn_norm__bias=(HIDDEN,),
                 attn_output__bias=(HIDDEN,), ffn_up__bias=(WIDTH,),
                 ffn_down__bias=(HIDDEN,))  # fmt: skip
    return plan


# -- mixtures of experts ---------------------------------------------------------------------


def _moe(architecture: str, keys: dict | None = None, **options: int) -> Plan:
    plan = decoder(architecture, dense=False, keys=MOE | (keys or {}), **options)
    for layer in range(LAYERS):
        experts(plan, layer, HIDDEN, 128, 8)
    return plan


def qwen3vlmoe() -> Plan:
    keys = {"n_deepstack_layers": 3, "rope.dimension_sections": [12, 10, 10, 0]}
    return _moe("qwen3vlmoe", keys, qk_norm=True)


def hunyuan_moe() -> Plan:
    widths = {"feed_forward_length": 128, "expert_shared_feed_forward_length": 128}
    plan = _moe("hunyuan-moe", widths | {"expert_shared_count": 1}, qk_norm=True)
    for layer in range(LAYERS):
        _shared(plan, layer, 128)
    return plan


def ernie4_5_moe() -> Plan:
    plan = _moe("ernie4_5-moe", {"expert_shared_count": 2, "leading_dense_block_count": 1,
                                 "interleave_moe_layer_step": 1,
                                 "expert_shared_feed_forward_length": 256}, tie=True)  # fmt: skip
    _without(plan, "ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", layers=[0])
    plan.add("blk.0.", ffn_gate=(HIDDEN, WIDTH), ffn_up=(HIDDEN, WIDTH), ffn_down=(WIDTH, HIDDEN))
    for layer in range(1, LAYERS):
        _shared(plan, layer, 256)
        plan.add(f"blk.{layer}.", exp_probs_b__bias=(8,))
    return plan


def minimax_m2() -> Plan:
    plan = _moe("minimax-m2", {"feed_forward_length": 128, "expert_gating_func": 2})
    for layer in range(LAYERS):
        plan.add(f"blk.{layer}.", attn_q_norm=(HEADS * DIM,), attn_k_norm=(KV_HEADS * DIM,),
                 exp_probs_b__bias=(8,))  # fmt: skip
    return plan


def granitemoe() -> Plan:
    plan = decoder("granitemoe", dense=False, tie=True, width=128, keys={
        "expert_count": 8, "expert_used_count": 2, "expert_shared_feed_forward_length": 192,
        "logit_scale": 8.0})  # fmt: skip
    for layer in range(LAYERS):
        experts(plan, layer, HIDDEN, 128, 8)
        _shared(plan, layer, 192)
    return plan


def olmoe() -> Plan:
    plan = decoder("olmoe", dense=False, width=128, kv_heads=HEADS,
                   keys={"expert_count": 8, "expert_used_count": 2})  # fmt: skip
    for layer in range(LAYERS):
        experts(plan, layer, HIDDEN, 128, 8)
        plan.add(f"blk.{layer}.", attn_q_norm=(HEADS * DIM,), attn_k_norm=(HEADS * DIM,))
    return plan


def dots1() -> Plan:
    plan = _moe("dots1", {"expert_shared_count": 2, "leading_dense_block_count": 1,
                          "expert_weights_scale": 2.5, "expert_weights_norm": True,
                          "expert_gating_func": 2}, qk_norm=True, kv_heads=HEADS)  # fmt: skip
    _without(plan, "ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", layers=[0])
    plan.add("blk.0.", ffn_gate=(HIDDEN, WIDTH), ffn_up=(HIDDEN, WIDTH), ffn_down=(WIDTH, HIDDEN))
    for layer in range(1, LAYERS):
        _shared(plan, layer, 256)
        plan.add(f"blk.{layer}.", exp_probs_b__bias=(8,))
    return plan


# -- hybrids, and Gemma 3n -------------------------------------------------------------------


def nemotron_h(*, moe: bool = False) -> Plan:
    """One mixer or MLP in each block: Mamba-2, MLP or experts, attention, MLP or experts."""
    heads, state, groups, kernel = 8, 32, 2, 4
    inner = 2 * HIDDEN
    channels = inner + 2 * groups * state
    width = 128 if moe else WIDTH
    plan = decoder("nemotron_h_moe" if moe else "nemotron_h", dense=False, keys={
        "attention.head_count_kv": [0, 0, KV_HEADS, 0], "feed_forward_length": [0, width, 0, width],
        "ssm.conv_kernel": kernel, "ssm.state_size": state, "ssm.group_count": groups,
        "ssm.inner_size": inner, "ssm.time_step_rank": heads,
        "attention.layer_norm_epsilon": 1e-5})  # fmt: skip
    _without(plan, "ffn_norm")
    _without(plan, "attn_q", "attn_k", "attn_v", "attn_output", layers=[0, 1, 3])
    plan.add("blk.0.", ssm_in=(HIDDEN, inner + channels + heads), ssm_conv1d=(kernel, channels),
             ssm_conv1d__bias=(channels,), ssm_dt__bias=(heads,),
             ssm_norm=(inner // groups, groups), ssm_out=(inner, HIDDEN))  # fmt: skip
    plan.tensors |= {"blk.0.ssm_a": (1, heads), "blk.0.ssm_d": (1, heads)}
    for layer in (1, 3):
        at = f"blk.{layer}."
        if not moe:
            plan.add(at, ffn_up=(HIDDEN, width), ffn_down=(width, HIDDEN))
            continue
        plan.add(at, ffn_gate_inp=(HIDDEN, 8), exp_probs_b__bias=(8,),
                 ffn_up_exps=(64, width, 8), ffn_down_exps=(width, 64, 8),
                 ffn_latent_down=(HIDDEN, 64), ffn_latent_up=(64, HIDDEN),
                 ffn_up_shexp=(HIDDEN, 192), ffn_down_shexp=(192, HIDDEN))  # fmt: skip
    if moe:
        plan.keys |= MOE | {"moe_latent_size": 64, "expert_shared_count": 1,
                            "expert_shared_feed_forward_length": 192, "expert_weights_norm": True,
                            "expert_weights_scale": 2.5, "expert_group_count": 1}  # fmt: skip
    return plan


def nemotron_h_moe() -> Plan:
    return nemotron_h(moe=True)


def nemotron_h_moe_mtp() -> Plan:
    """One MTP block, which has both: attention and experts."""
    plan = nemotron_h(moe=True)
    plan.keys |= {"block_count": LAYERS + 1, "nextn_predict_layers": 1,
                  "attention.head_count_kv": [0, 0, KV_HEADS, 0, KV_HEADS],
                  "feed_forward_length": [0, 128, 0, 128, 128]}  # fmt: skip
    at = f"blk.{LAYERS}."
    for name, ne in list(plan.tensors.items()):
        for source in ("blk.2.", "blk.3."):
            if name.startswith(source):
                plan.tensors[name.replace(source, at)] = ne
    plan.add(at, post_attention_norm=(HIDDEN,), nextn__eh_proj__weight=(2 * HIDDEN, HIDDEN),
             nextn__enorm__weight=(HIDDEN,), nextn__hnorm__weight=(HIDDEN,),
             nextn__shared_head_norm__weight=(HIDDEN,))  # fmt: skip
    return plan


def jamba() -> Plan:
    """Mamba-1 with attention in the third layer, experts in every second."""
    state, kernel, rank, inner = 16, 4, 16, 2 * HIDDEN
    plan = decoder("jamba", keys={
        "attention.head_count_kv": [0, 0, KV_HEADS, 0], "ssm.conv_kernel": kernel,
        "ssm.state_size": state, "ssm.inner_size": inner, "ssm.time_step_rank": rank,
        "expert_count": 8, "expert_used_count": 2})  # fmt: skip
    _without(plan, "attn_q", "attn_k", "attn_v", "attn_output", layers=[0, 1, 3])
    _without(plan, "ffn_gate", "ffn_up", "ffn_down", layers=[1, 3])
    for layer in (1, 3):
        experts(plan, layer, HIDDEN, WIDTH, 8)
    for layer in (0, 1, 3):
        at = f"blk.{layer}."
        plan.add(at, ssm_in=(HIDDEN, 2 * inner), ssm_conv1d=(kernel, inner),
                 ssm_conv1d__bias=(inner,), ssm_x=(inner, rank + 2 * state), ssm_dt_norm=(rank,),
                 ssm_dt=(rank, inner), ssm_dt__bias=(inner,), ssm_b_norm=(state,),
                 ssm_c_norm=(state,), ssm_out=(inner, HIDDEN))  # fmt: skip
        plan.tensors |= {at + "ssm_a": (state, inner), at + "ssm_d": (inner,)}
    return plan


def gemma3n() -> Plan:
    """AltUp, LAuReL and per-layer embeddings; the last layers hold keys that nobody reads."""
    layers, streams, rank, per_layer = 25, 4, 64, 256  # llama.cpp has all but layers in its code
    plan = decoder("gemma3n", layers=layers, width=128, tie=True, post_norms=True, qk_norm=True,
                   keys={"attention.sliding_window": 512, "altup.num_inputs": streams,
                         "altup.active_idx": 0, "attention.shared_kv_layers": layers - 20,
                         "embedding_length_per_layer_input": per_layer})  # fmt: skip
    plan.add("", per_layer_token_embd=(per_layer * layers, VOCAB),
             per_layer_model_proj=(HIDDEN, per_layer * layers), per_layer_proj_norm=(per_layer,),
             altup_proj=(HIDDEN, HIDDEN, streams - 1),
             altup_unembd_proj=(HIDDEN, HIDDEN, streams - 1))  # fmt: skip
    for layer in range(layers):
        plan.add(f"blk.{layer}.", inp_gate=(HIDDEN, per_layer), proj=(per_layer, HIDDEN),
                 post_norm=(HIDDEN,), altup_correct_coef=(streams, streams),
                 altup_correct_scale=(HIDDEN,), altup_predict_coef=(streams, streams**2),
                 altup_router=(HIDDEN, streams), altup_router_norm=(HIDDEN,),
                 laurel_l=(HIDDEN, rank), laurel_r=(rank, HIDDEN),
                 laurel_post_norm=(HIDDEN,))  # fmt: skip
    return plan


FURTHER: dict[str, Callable[[], Plan]] = {
    function.__name__: function
    for function in (arcee, cohere2, command_r, dots1, ernie4_5, ernie4_5_moe, exaone4,
                     exaone4_windows, gemma3n,
                     glm4, granite, granitemoe, hunyuan_dense, hunyuan_moe, internlm2, jamba,
                     minimax_m2, mistral3, nemotron_h, nemotron_h_moe,
                     nemotron_h_moe_mtp, olmo2, olmo3, olmoe,
                     qwen2vl, qwen3vl, qwen3vlmoe, seed_oss, smollm3, starcoder2)
}  # fmt: skip
