"""Small models of every architecture that the reader knows, for ``tests.gguf.writing.write``."""

from __future__ import annotations

from collections.abc import Callable

from tests.gguf.build_experts import EXPERTS
from tests.gguf.build_further import FURTHER
from tests.gguf.build_plain import PLAIN
from tests.gguf.writing import (
    CONTEXT,
    F32,
    VOCAB,
    Plan,
    Type,
    _add,
    decoder,
    experts,
    plain_type,
    quantized,
    write,
)

__all__ = [
    "CONTEXT", "F32", "PLANS", "VOCAB", "Plan", "Type", "_add", "decoder", "plain_type",
    "quantized", "write",
]  # fmt: skip


def llama() -> Plan:
    plan = decoder("llama")
    plan.add("", rope_freqs=(32,))
    return plan


def mixtral() -> Plan:
    plan = decoder("llama", dense=False, keys={"expert_count": 8, "expert_used_count": 2})
    for layer in range(4):
        experts(plan, layer, 256, 512, 8)
    return plan


def mixtral_single_experts() -> Plan:
    """As converted in 2023: a tensor for each expert."""
    plan = decoder("llama", dense=False, keys={"expert_count": 4, "expert_used_count": 2})
    for layer in range(4):
        plan.add(f"blk.{layer}.", ffn_gate_inp=(256, 4))
        for expert in range(4):
            plan.tensors |= {
                f"blk.{layer}.ffn_gate.{expert}.weight": (256, 512),
                f"blk.{layer}.ffn_up.{expert}.weight": (256, 512),
                f"blk.{layer}.ffn_down.{expert}.weight": (512, 256),
            }
    return plan


def qwen2() -> Plan:
    return decoder("qwen2", qkv_bias=True, tie=True)


def qwen3() -> Plan:
    return decoder("qwen3", qk_norm=True, head_dim=128)


def qwen3moe() -> Plan:
    plan = decoder("qwen3moe", qk_norm=True, dense=False, keys={
        "expert_count": 8, "expert_used_count": 4, "expert_feed_forward_length": 128})  # fmt: skip
    for layer in range(4):
        experts(plan, layer, 256, 128, 8)
    return plan


def gemma2() -> Plan:
    return decoder("gemma2", tie=True, post_norms=True, keys={
        "attention.sliding_window": 512, "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0})  # fmt: skip


def gemma3() -> Plan:
    return decoder("gemma3", layers=8, tie=True, post_norms=True, qk_norm=True,
                   keys={"attention.sliding_window": 512})  # fmt: skip


def phi3() -> Plan:
    return decoder("phi3", fused_qkv=True, fused_up=True, keys={
        "attention.sliding_window": 2047,
        "rope.scaling.original_context_length": CONTEXT})  # fmt: skip


def gpt_oss() -> Plan:
    hidden, heads, width, count = 256, 8, 256, 4
    plan = decoder("gpt-oss", heads=heads, dense=False, qkv_bias=True, keys={
        "attention.sliding_window": 128, "expert_count": count, "expert_used_count": 2,
        "expert_feed_forward_length": width})  # fmt: skip
    for layer in range(4):
        at = f"blk.{layer}."
        experts(plan, layer, hidden, width, count)
        plan.add(at, post_attention_norm=(hidden,), attn_sinks=(heads,))
        plan.add(at, attn_output__bias=(hidden,), ffn_gate_inp__bias=(count,),
                 ffn_gate_exps__bias=(width, count), ffn_up_exps__bias=(width, count),
                 ffn_down_exps__bias=(hidden, count))  # fmt: skip
    return plan


def deepseek2(
    *, latent: bool = True, q_lora: int = 96, correction: bool = True, layers: int = 4
) -> Plan:
    """One dense layer, then experts with a shared one, behind multi-head latent attention."""
    hidden, heads, rank, nope, rope, value = 256, 4, 192, 64, 32, 64
    width, count, shared = 128, 8, 1
    keys = {
        "leading_dense_block_count": 1, "attention.kv_lora_rank": rank,
        "attention.head_count_kv": 1 if latent else heads,
        "rope.dimension_count": rope, "expert_count": count, "expert_used_count": 2,
        "expert_shared_count": shared, "expert_feed_forward_length": width,
        "expert_weights_scale": 2.5, "vocab_size": VOCAB,
    }  # fmt: skip
    keys |= (
        {"attention.key_length": rank + rope, "attention.value_length": rank,
         "attention.key_length_mla": nope + rope, "attention.value_length_mla": value}
        if latent else {"attention.key_length": nope + rope, "attention.value_length": value}
    )  # fmt: skip
    if q_lora:
        keys["attention.q_lora_rank"] = q_lora
    if correction:
        keys |= {"expert_gating_func": 2, "expert_weights_norm": True}
    plan = decoder("deepseek2", layers=layers, keys=keys, dense=False)
    for layer in range(layers):
        at = f"blk.{layer}."
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            del plan.tensors[f"{at}{name}.weight"]
        if q_lora:
            plan.add(at, attn_q_a=(hidden, q_lora), attn_q_a_norm=(q_lora,),
                     attn_q_b=(q_lora, heads * (nope + rope)))  # fmt: skip
        else:
            plan.add(at, attn_q=(hidden, heads * (nope + rope)))
        plan.add(at, attn_kv_a_mqa=(hidden, rank + rope), attn_kv_a_norm=(rank,),
                 attn_output=(heads * value, hidden))  # fmt: skip
        if latent:
            plan.add(at, attn_k_b=(nope, rank, heads), attn_v_b=(rank, value, heads))
        else:
            plan.add(at, attn_kv_b=(rank, heads * (nope + value)))
        if layer == 0:
            plan.add(at, ffn_gate=(hidden, 512), ffn_up=(hidden, 512), ffn_down=(512, hidden))
            continue
        experts(plan, layer, hidden, width, count)
        plan.add(at, ffn_gate_shexp=(hidden, width * shared), ffn_up_shexp=(hidden, width * shared),
                 ffn_down_shexp=(width * shared, hidden))  # fmt: skip
        if correction:
            plan.add(at, exp_probs_b__bias=(count,))
    return plan


def sparse_latent(architecture: str, owned: list[int]) -> Plan:
    """DeepSeek sparse attention: an indexer in the layers that own one."""
    hidden, heads, width, q_lora = 256, 16, 64, 96
    plan = deepseek2()
    plan.architecture = architecture
    plan.keys |= {"attention.indexer.head_count": heads, "attention.indexer.key_length": width,
                  "attention.indexer.top_k": 64}  # fmt: skip
    if architecture == "glm-dsa":
        plan.keys["attention.indexer.types"] = owned
    for layer, own in enumerate(owned):
        if own:
            plan.add(f"blk.{layer}.", indexer__attn_q_b__weight=(q_lora, heads * width),
                     indexer__attn_k__weight=(hidden, width), indexer__proj__weight=(hidden, heads),
                     indexer__k_norm__weight=(width,), indexer__k_norm__bias=(width,))  # fmt: skip
    return plan


def deepseek32() -> Plan:
    return sparse_latent("deepseek32", [1, 1, 1, 1])


def glm_dsa() -> Plan:
    return sparse_latent("glm-dsa", [1, 1, 0, 1])


def mistral4() -> Plan:
    plan = deepseek2(correction=False)
    plan.architecture = "mistral4"
    return plan


def deepseek2_lite() -> Plan:
    # llama.cpp knows the one without q_lora_rank by its number of layers
    return deepseek2(q_lora=0, correction=False, layers=27)


def deepseek2_expanded() -> Plan:
    """As converted before llama.cpp had MLA."""
    return deepseek2(latent=False)


def gemma4(*, moe: bool = True) -> Plan:
    """Window layers and wider full ones whose values are their keys; experts beside the MLP."""
    hidden, heads, layers, count, inner = 256, 4, 6, 8, 128
    pattern = [layer % 3 != 2 for layer in range(layers)]
    kv_heads = [4 if here else 2 for here in pattern]
    plan = decoder("gemma4", layers=layers, tie=True, post_norms=True, dense=True, keys={
        "attention.sliding_window": 512, "attention.sliding_window_pattern": pattern,
        "attention.shared_kv_layers": 0, "embedding_length_per_layer_input": 0,
        "attention.head_count_kv": kv_heads, "attention.key_length": 128,
        "attention.value_length": 128, "attention.key_length_swa": 64,
        "attention.value_length_swa": 64, "rope.dimension_count": 128,
        "rope.dimension_count_swa": 64, "rope.freq_base_swa": 10000.0,
        **({"expert_count": count, "expert_used_count": 2, "expert_feed_forward_length": inner}
           if moe else {}),
    })  # fmt: skip
    plan.add("", rope_freqs=(64,))
    for layer, windowed in enumerate(pattern):
        at, dim = f"blk.{layer}.", 64 if windowed else 128
        plan.add(at, attn_q=(hidden, heads * dim), attn_k=(hidden, kv_heads[layer] * dim),
                 attn_output=(heads * dim, hidden), attn_q_norm=(dim,), attn_k_norm=(dim,),
                 layer_output_scale=(1,))  # fmt: skip
        if windowed:
            plan.add(at, attn_v=(hidden, kv_heads[layer] * dim))
        else:
            del plan.tensors[at + "attn_v.weight"]
        if moe:
            plan.add(at, ffn_gate_inp=(hidden, count), ffn_gate_inp__scale=(hidden,),
                     pre_ffw_norm_2=(hidden,), post_ffw_norm_1=(hidden,),
                     post_ffw_norm_2=(hidden,), ffn_gate_up_exps=(hidden, 2 * inner, count),
                     ffn_down_exps=(inner, hidden, count),
                     ffn_down_exps__scale=(count,))  # fmt: skip
    return plan


def gemma4_e() -> Plan:
    """Per-layer embeddings, and last layers that read the cache of earlier ones."""
    hidden, heads, kv_heads, layers, width, per_layer = 256, 4, 1, 6, 512, 32
    shared = 3
    pattern = [layer % 3 != 2 for layer in range(layers)]
    plan = decoder("gemma4", layers=layers, kv_heads=kv_heads, tie=True, post_norms=True, keys={
        "attention.sliding_window": 512, "attention.sliding_window_pattern": pattern,
        "attention.shared_kv_layers": shared, "embedding_length_per_layer_input": per_layer,
        "attention.key_length": 128, "attention.value_length": 128,
        "attention.key_length_swa": 64, "attention.value_length_swa": 64,
        "rope.dimension_count": 128, "rope.dimension_count_swa": 64,
        "rope.freq_base_swa": 10000.0,
        "feed_forward_length": [width] * (layers - shared) + [2 * width] * shared,
    })  # fmt: skip
    plan.add("", rope_freqs=(64,), per_layer_token_embd=(per_layer * layers, VOCAB),
             per_layer_model_proj=(hidden, per_layer * layers),
             per_layer_proj_norm=(per_layer,))  # fmt: skip
    for layer, windowed in enumerate(pattern):
        at, dim = f"blk.{layer}.", 64 if windowed else 128
        plan.add(at, attn_q=(hidden, heads * dim), attn_output=(heads * dim, hidden),
                 attn_q_norm=(dim,), layer_output_scale=(1,), inp_gate=(hidden, per_layer),
                 proj=(per_layer, hidden), post_norm=(hidden,))  # fmt: skip
        if layer < layers - shared:
            plan.add(at, attn_k=(hidden, kv_heads * dim), attn_v=(hidden, kv_heads * dim),
                     attn_k_norm=(dim,))  # fmt: skip
        else:
            del plan.tensors[at + "attn_k.weight"], plan.tensors[at + "attn_v.weight"]
            plan.add(at, ffn_gate=(hidden, 2 * width), ffn_up=(hidden, 2 * width),
                     ffn_down=(2 * width, hidden))  # fmt: skip
    return plan


def shared_expert(plan: Plan, layer: int, hidden: int, width: int, gate: bool = True) -> None:
    plan.add(f"blk.{layer}.", ffn_gate_shexp=(hidden, width), ffn_up_shexp=(hidden, width),
             ffn_down_shexp=(width, hidden))  # fmt: skip
    if gate:
        plan.add(f"blk.{layer}.", ffn_gate_inp_shexp=(hidden,))


def qwen2moe() -> Plan:
    plan = decoder("qwen2moe", qkv_bias=True, dense=False, keys={
        "expert_count": 8, "expert_used_count": 4, "expert_feed_forward_length": 128,
        "expert_shared_feed_forward_length": 192})  # fmt: skip
    for layer in range(4):
        experts(plan, layer, 256, 128, 8)
        shared_expert(plan, layer, 256, 192)
    return plan


def delta_net(architecture: str, *, moe: bool, mtp: int = 0, layers: int = 8) -> Plan:
    """Three gated DeltaNet layers, then gated attention; MTP blocks at the end."""
    hidden, heads, kv_heads, head_dim, width = 256, 4, 2, 64, 512
    key_heads, value_heads, dim, kernel, inner = 2, 4, 64, 4, 128
    keys_dim, values_dim = key_heads * dim, value_heads * dim
    keys = {
        "ssm.conv_kernel": kernel, "ssm.state_size": dim, "ssm.group_count": key_heads,
        "ssm.time_step_rank": value_heads, "ssm.inner_size": values_dim,
        "full_attention_interval": 4, "rope.dimension_sections": [11, 11, 10, 0],
    }  # fmt: skip
    if architecture == "qwen3next":
        del keys["rope.dimension_sections"]
    if moe:
        keys |= {"expert_count": 8, "expert_used_count": 2, "expert_feed_forward_length": inner,
                 "expert_shared_feed_forward_length": inner}  # fmt: skip
    if mtp:
        keys["nextn_predict_layers"] = mtp
    plan = decoder(architecture, layers=layers + mtp, hidden=hidden, heads=heads,
                   kv_heads=kv_heads, head_dim=head_dim, width=width, qk_norm=True,
                   dense=not moe, keys=keys)  # fmt: skip
    for layer in range(layers + mtp):
        at = f"blk.{layer}."
        del plan.tensors[at + "ffn_norm.weight"]
        plan.add(at, post_attention_norm=(hidden,))
        if moe:
            experts(plan, layer, hidden, inner, 8)
            shared_expert(plan, layer, hidden, inner)
        if layer >= layers:
            plan.add(at, nextn__eh_proj__weight=(2 * hidden, hidden),
                     nextn__enorm__weight=(hidden,), nextn__hnorm__weight=(hidden,),
                     nextn__shared_head_norm__weight=(hidden,))  # fmt: skip
        if layer >= layers or layer % 4 == 3:
            plan.add(at, attn_q=(hidden, heads * head_dim * 2))
            continue
        for part in ("q", "k", "v", "output", "q_norm", "k_norm"):
            del plan.tensors[f"{at}attn_{part}.weight"]
        plan.add(at, attn_qkv=(hidden, 2 * keys_dim + values_dim), attn_gate=(hidden, values_dim),
                 ssm_conv1d=(kernel, 2 * keys_dim + values_dim), ssm_dt__bias=(value_heads,),
                 ssm_norm=(dim,), ssm_out=(values_dim, hidden))  # fmt: skip
        plan.tensors[at + "ssm_a"] = (value_heads,)
        if architecture == "qwen3next":
            plan.add(at, ssm_ba=(hidden, 2 * value_heads))
        else:
            plan.add(at, ssm_beta=(hidden, value_heads), ssm_alpha=(hidden, value_heads))
    return plan


def qwen3next() -> Plan:
    return delta_net("qwen3next", moe=True)


def qwen35() -> Plan:
    return delta_net("qwen35", moe=False, mtp=1)


def qwen35moe() -> Plan:
    return delta_net("qwen35moe", moe=True, mtp=1)


def glm4moe() -> Plan:
    """One dense layer, experts, and an MTP block that repeats embedding and head."""
    hidden, width, count, layers = 256, 128, 8, 4
    plan = decoder("glm4moe", layers=layers + 1, dense=False, qkv_bias=True, qk_norm=True, keys={
        "expert_count": count, "expert_used_count": 2, "expert_feed_forward_length": width,
        "expert_shared_count": 1, "leading_dense_block_count": 1, "nextn_predict_layers": 1,
        "expert_weights_norm": True, "expert_gating_func": 2})  # fmt: skip
    for layer in range(layers + 1):
        at = f"blk.{layer}."
        del plan.tensors[at + "ffn_norm.weight"]
        plan.add(at, post_attention_norm=(hidden,))
        if layer == 0:
            plan.add(at, ffn_gate=(hidden, 512), ffn_up=(hidden, 512), ffn_down=(512, hidden))
            continue
        experts(plan, layer, hidden, width, count)
        shared_expert(plan, layer, hidden, width, gate=False)
        plan.add(at, exp_probs_b__bias=(count,))
    plan.add(f"blk.{layers}.", nextn__eh_proj__weight=(2 * hidden, hidden),
             nextn__enorm__weight=(hidden,), nextn__hnorm__weight=(hidden,),
             nextn__shared_head_norm__weight=(hidden,),
             nextn__embed_tokens__weight=(hidden, VOCAB),
             nextn__shared_head_head__weight=(hidden, VOCAB))  # fmt: skip
    return plan


def granitehybrid() -> Plan:
    """Three Mamba-2 layers, then attention; experts beside a shared one everywhere."""
    hidden, layers, state, groups, kernel, heads = 256, 4, 32, 1, 4, 8
    inner, width, shared = 2 * hidden, 128, 192
    channels = inner + 2 * groups * state
    plan = decoder("granitehybrid", layers=layers, dense=False, tie=True, width=width, keys={
        "attention.head_count_kv": [0, 0, 0, 2], "ssm.conv_kernel": kernel,
        "ssm.state_size": state, "ssm.group_count": groups, "ssm.inner_size": inner,
        "ssm.time_step_rank": heads, "expert_count": 8, "expert_used_count": 2,
        "expert_shared_feed_forward_length": shared})  # fmt: skip
    for layer in range(layers):
        at = f"blk.{layer}."
        experts(plan, layer, hidden, width, 8)
        shared_expert(plan, layer, hidden, shared, gate=False)
        if layer == 3:
            continue
        for part in ("q", "k", "v", "output"):
            del plan.tensors[f"{at}attn_{part}.weight"]
        plan.add(at, ssm_in=(hidden, inner + channels + heads), ssm_conv1d=(kernel, channels),
                 ssm_conv1d__bias=(channels,), ssm_dt__bias=(heads,),
                 ssm_norm=(inner // groups, groups), ssm_out=(inner, hidden))  # fmt: skip
        plan.tensors |= {at + "ssm_a": (1, heads), at + "ssm_d": (1, heads)}
    return plan


def kimi_linear() -> Plan:
    """Three layers of delta attention, then latent attention."""
    hidden, heads, dim, kernel = 256, 4, 64, 4
    plan = deepseek2(q_lora=0)
    plan.architecture = "kimi-linear"
    plan.keys |= {"attention.head_count_kv": [0, 0, 0, 1], "ssm.conv_kernel": kernel,
                  "kda.head_dim": dim}  # fmt: skip
    for layer in range(3):
        at = f"blk.{layer}."
        for part in ("q", "kv_a_mqa", "kv_a_norm", "k_b", "v_b"):
            del plan.tensors[f"{at}attn_{part}.weight"]
        convolution = (kernel, 1, heads * dim, 1)
        plan.add(at, attn_q=(hidden, heads * dim), attn_k=(hidden, heads * dim),
                 attn_v=(hidden, heads * dim), attn_output=(heads * dim, hidden),
                 ssm_conv1d_q=convolution, ssm_conv1d_k=convolution, ssm_conv1d_v=convolution,
                 ssm_f_a=(hidden, dim), ssm_f_b=(dim, heads * dim), ssm_beta=(hidden, heads),
                 ssm_dt__bias=(heads * dim,), ssm_g_a=(hidden, dim), ssm_g_b=(dim, heads * dim),
                 ssm_norm=(dim,))  # fmt: skip
        plan.tensors[at + "ssm_a"] = (1, heads, 1, 1)
    return plan


def llama4() -> Plan:
    """Chunked attention on three of four layers, experts on every second."""
    hidden, width, inner, count = 256, 512, 128, 4
    plan = decoder("llama4", dense=False, width=width, keys={
        "expert_count": count, "expert_used_count": 1, "expert_feed_forward_length": inner,
        "interleave_moe_layer_step": 2})  # fmt: skip
    for layer in range(4):
        if layer % 2 == 0:
            plan.add(f"blk.{layer}.", ffn_gate=(hidden, width), ffn_up=(hidden, width),
                     ffn_down=(width, hidden))  # fmt: skip
            continue
        experts(plan, layer, hidden, inner, count)
        shared_expert(plan, layer, hidden, inner, gate=False)
    return plan


PLANS: dict[str, Callable[[], Plan]] = {
    function.__name__: function
    for function in (llama, mixtral, mixtral_single_experts, qwen2, qwen3, qwen3moe, gemma2, gemma3,
                     phi3, gpt_oss, deepseek2, deepseek2_lite, deepseek2_expanded,
                     mistral4, gemma4, gemma4_e,
                     qwen2moe, qwen3next, qwen35, qwen35moe, glm4moe, llama4, deepseek32, glm_dsa,
                     granitehybrid, kimi_linear)
} | FURTHER | EXPERTS | PLAIN  # fmt: skip
