"""Small random configs of every model type that transformers can build, drawn by its own rules."""

from __future__ import annotations

from hypothesis import strategies as st


def pick(draw, *values):
    return draw(st.sampled_from(values))


def frame(draw, **more):
    """The outer measures, small."""
    return {
        "vocab_size": pick(draw, 32, 61, 128),
        "hidden_size": pick(draw, 32, 48, 64),
        "num_hidden_layers": draw(st.integers(1, 7)),
        "max_position_embeddings": pick(draw, 64, 128),
        "tie_word_embeddings": draw(st.booleans()),
        **more,
    }


def heads(draw, *, head_dim=True):
    """Query heads, key heads that divide them, and a head size of its own."""
    kv_heads = pick(draw, 1, 2, 4)
    found = {
        "num_key_value_heads": kv_heads,
        "num_attention_heads": kv_heads * pick(draw, 1, 2),
    }
    if head_dim:
        found["head_dim"] = pick(draw, 8, 16, 24)
    return found


def experts(draw, number="num_experts", topk="num_experts_per_tok"):
    count = pick(draw, 2, 4, 8)
    return {number: count, topk: draw(st.integers(1, count))}


def hyperclovax(draw):
    return llama(draw) | {"hidden_size": 64, "use_post_norm": draw(st.booleans())}


def flex_olmo(draw):
    return dense(draw, attention_bias=draw(st.booleans())) | experts(draw) | {"pad_token_id": 0}


def nanochat(draw):
    found = frame(draw, hidden_size=64, intermediate_size=40, attention_bias=draw(st.booleans()))
    return found | heads(draw, head_dim=False)


def bamba(draw):
    found = frame(draw, hidden_size=64, intermediate_size=40, attention_bias=draw(st.booleans()),
                  mlp_bias=draw(st.booleans()), mamba_n_heads=pick(draw, 4, 8),
                  mamba_n_groups=pick(draw, 1, 2), mamba_d_state=pick(draw, 8, 16),
                  mamba_d_conv=pick(draw, 2, 4), mamba_conv_bias=draw(st.booleans()),
                  mamba_proj_bias=draw(st.booleans()), pad_token_id=0)  # fmt: skip
    last = found["num_hidden_layers"] - 1
    listed = draw(st.lists(st.integers(0, last), unique=True))
    return found | heads(draw, head_dim=False) | {"attn_layer_indices": listed}


def mamba2(draw):
    size = pick(draw, 4, 8)
    return {
        "vocab_size": pick(draw, 32, 61),
        "hidden_size": 32,
        "num_hidden_layers": draw(st.integers(1, 4)),
        "num_heads": size,
        "head_dim": 64 // size,
        "state_size": pick(draw, 8, 16),
        "n_groups": pick(draw, 1, 2),
        "conv_kernel": pick(draw, 2, 4),
        "use_bias": draw(st.booleans()),
        "use_conv_bias": draw(st.booleans()),
        "tie_word_embeddings": draw(st.booleans()),
    }


def mamba(draw):
    return {
        "vocab_size": pick(draw, 32, 61),
        "hidden_size": pick(draw, 24, 64),
        "num_hidden_layers": draw(st.integers(1, 4)),
        "state_size": pick(draw, 8, 16),
        "expand": pick(draw, 1, 2),
        "conv_kernel": pick(draw, 2, 4),
        "time_step_rank": pick(draw, "auto", 8),
        "use_bias": draw(st.booleans()),
        "use_conv_bias": draw(st.booleans()),
        "tie_word_embeddings": draw(st.booleans()),
    }


def dbrx(draw):
    kv_heads = pick(draw, 1, 2)
    return {
        "vocab_size": pick(draw, 32, 61),
        "d_model": 64,
        "n_heads": kv_heads * pick(draw, 1, 2),
        "n_layers": draw(st.integers(1, 4)),
        "max_seq_len": 64,
        "attn_config": {"kv_n_heads": kv_heads, "clip_qkv": 8, "rope_theta": 500000},
        "ffn_config": {"ffn_hidden_size": 24, "moe_num_experts": 4, "moe_top_k": 2,
                       "hidden_size": 64},
    }  # fmt: skip


def youtu(draw):
    return minicpm3(draw) | {"v_head_dim": pick(draw, 8, 24)}


def axk1(draw):
    return deepseek(draw) | {"q_lora_rank": 16}


def olmo_hybrid(draw):
    found = frame(draw, hidden_size=64, intermediate_size=40, attention_bias=draw(st.booleans()),
                  linear_conv_kernel_dim=pick(draw, 2, 4), pad_token_id=0,
                  num_hidden_layers=pick(draw, 2, 3, 6))  # fmt: skip
    found |= {"num_attention_heads": 4, "num_key_value_heads": pick(draw, 1, 2, 4)}
    if draw(st.booleans()):
        found |= {"linear_num_key_heads": 2, "linear_num_value_heads": pick(draw, 2, 4)}
    if draw(st.booleans()):
        found |= {"linear_key_head_dim": 8, "linear_value_head_dim": pick(draw, 8, 16)}
    if draw(st.booleans()):
        kinds = words(draw, found["num_hidden_layers"], "linear_attention", "full_attention",
                      first="full_attention")  # fmt: skip
        found["layer_types"] = [*kinds[:-1], "linear_attention"]
    return found


def words(draw, layers, *allowed, first=None):
    found = [pick(draw, *allowed) for _ in range(layers)]
    if first is not None:
        found[0] = first
    return found


def lfm2(draw):
    found = frame(draw, hidden_size=64, intermediate_size=pick(draw, 40, 96, 600),
                  num_attention_heads=4, num_key_value_heads=pick(draw, 1, 2, 4),
                  conv_bias=draw(st.booleans()), conv_L_cache=pick(draw, 2, 3, 4))  # fmt: skip
    kinds = words(draw, found["num_hidden_layers"], "conv", "full_attention")
    return found | {"layer_types": kinds}


def lfm2_dense(draw):
    return lfm2(draw) | {
        "block_auto_adjust_ff_dim": draw(st.booleans()),
        "block_multiple_of": pick(draw, 16, 64),
        "block_ffn_dim_multiplier": pick(draw, 1.0, 1.3),
    }


def lfm2_moe(draw):
    return lfm2(draw) | experts(draw) | {
        "moe_intermediate_size": pick(draw, 16, 24),
        "num_dense_layers": draw(st.integers(0, 3)),
        "use_expert_bias": draw(st.booleans()),
    }  # fmt: skip


def dense(draw, **more):
    return frame(draw, intermediate_size=pick(draw, 40, 96), **heads(draw), **more)


def llama(draw):
    return dense(draw, attention_bias=draw(st.booleans()), mlp_bias=draw(st.booleans()))


def internlm3(draw):
    biased = draw(st.booleans())
    return dense(draw, attention_bias=biased, mlp_bias=biased)


def cwm(draw):
    found = dense(draw, mlp_bias=draw(st.booleans()), sliding_window=8)
    if draw(st.booleans()):
        found["layer_types"] = words(
            draw, found["num_hidden_layers"], "full_attention", "sliding_attention"
        )
    return found


def smollm3(draw):
    return llama(draw) | {"pad_token_id": 0}


def qwen2(draw):
    found = frame(draw, intermediate_size=pick(draw, 40, 96), **heads(draw, head_dim=False))
    found["use_sliding_window"] = draw(st.booleans())
    found["sliding_window"] = 8
    found["max_window_layers"] = draw(st.integers(0, found["num_hidden_layers"]))
    return found


def qwen3(draw):
    found = dense(draw, attention_bias=draw(st.booleans()))
    found["use_sliding_window"] = draw(st.booleans())
    found["sliding_window"] = 8
    found["max_window_layers"] = draw(st.integers(0, found["num_hidden_layers"]))
    return found


def mistral(draw):
    return dense(draw, sliding_window=pick(draw, None, 8))


def ministral(draw):
    found = dense(draw, sliding_window=8)
    kinds = words(draw, found["num_hidden_layers"], "full_attention", "sliding_attention")
    return found | ({"layer_types": kinds} if draw(st.booleans()) else {})


def seed_oss(draw):
    return dense(
        draw,
        attention_bias=draw(st.booleans()),
        attention_out_bias=draw(st.booleans()),
        mlp_bias=draw(st.booleans()),
    )


def ernie4_5(draw):
    return dense(draw, use_bias=draw(st.booleans()))


def hunyuan_dense(draw):
    return dense(draw, attention_bias=draw(st.booleans()))


def phi3(draw):
    found = frame(draw, intermediate_size=40, sliding_window=pick(draw, None, 8))
    return found | heads(draw, head_dim=False) | {"pad_token_id": 0}


def gpt2(draw):
    return {
        "vocab_size": pick(draw, 32, 61),
        "n_positions": pick(draw, 32, 64),
        "n_embd": pick(draw, 32, 64),
        "n_layer": draw(st.integers(1, 4)),
        "n_head": pick(draw, 1, 2, 4),
        "n_inner": pick(draw, None, 40),
        "tie_word_embeddings": draw(st.booleans()),
    }


def falcon(draw):
    kv_heads = pick(draw, 1, 2)
    return {
        "vocab_size": pick(draw, 32, 61),
        "hidden_size": 64,
        "num_hidden_layers": draw(st.integers(1, 4)),
        "num_attention_heads": kv_heads * pick(draw, 1, 2),
        "num_kv_heads": kv_heads,
        "multi_query": draw(st.booleans()),
        "new_decoder_architecture": draw(st.booleans()),
        "parallel_attn": draw(st.booleans()),
        "bias": draw(st.booleans()),
        "num_ln_in_parallel_attn": pick(draw, None, 1, 2),
        "ffn_hidden_size": pick(draw, None, 96),
        "tie_word_embeddings": draw(st.booleans()),
    }


def gemma(draw):
    found = dense(draw, attention_bias=draw(st.booleans()), sliding_window=8)
    found["hidden_size"] = 64
    if draw(st.booleans()):
        found["layer_types"] = words(
            draw, found["num_hidden_layers"], "full_attention", "sliding_attention"
        )
    return found


def gemma3n(draw):
    layers = pick(draw, 5, 6, 8)
    types = ["sliding_attention", "full_attention"] * 4
    return frame(
        draw,
        num_hidden_layers=layers,
        hidden_size=64,
        layer_types=types[:layers],
        intermediate_size=[pick(draw, 40, 96) for _ in range(layers)],
        num_kv_shared_layers=pick(draw, 0, 1, 3),
        hidden_size_per_layer_input=pick(draw, 8, 16),
        vocab_size_per_layer_input=pick(draw, 32, 64),
        altup_num_inputs=pick(draw, 2, 4),
        laurel_rank=pick(draw, 4, 8),
        attention_bias=draw(st.booleans()),
        sliding_window=8,
        activation_sparsity_pattern=[0.0] * layers,
        **heads(draw),
    )


def gemma4(draw):
    layers = pick(draw, 4, 5, 7)
    types = words(draw, layers, "sliding_attention", "full_attention")
    types[:2] = ["sliding_attention", "full_attention"]
    types[-1] = "full_attention"
    shared = pick(draw, 0, 1, layers - 2)
    moe = draw(st.booleans())
    found = frame(
        draw,
        num_hidden_layers=layers,
        layer_types=types,
        intermediate_size=pick(draw, 40, 96),
        num_kv_shared_layers=shared,
        use_double_wide_mlp=draw(st.booleans()),
        hidden_size_per_layer_input=pick(draw, 0, 8),
        vocab_size_per_layer_input=pick(draw, 32, 64),
        attention_k_eq_v=draw(st.booleans()),
        attention_bias=draw(st.booleans()),
        global_head_dim=pick(draw, 16, 32),
        sliding_window=8,
        enable_moe_block=moe,
        **heads(draw),
    )
    found["num_global_key_value_heads"] = pick(draw, None, 1)
    if moe:
        found |= experts(draw, topk="top_k_experts") | {"moe_intermediate_size": 24}
    return found


def gpt_oss(draw):
    return dense(draw, sliding_window=8, attention_bias=draw(st.booleans())) | experts(
        draw, "num_local_experts"
    )


def mixtral(draw):
    return dense(draw, sliding_window=pick(draw, None, 8)) | experts(draw, "num_local_experts")


def qwen_moe(draw):
    layers = draw(st.integers(1, 6))
    return (
        dense(
            draw,
            decoder_sparse_step=pick(draw, 1, 2),
            mlp_only_layers=pick(draw, [], [0]),
            moe_intermediate_size=24,
        )
        | experts(draw)
        | {"num_hidden_layers": layers}
    )


def qwen2_moe(draw):
    return qwen_moe(draw) | {
        "shared_expert_intermediate_size": 40,
        "qkv_bias": draw(st.booleans()),
    }


def qwen3_moe(draw):
    return qwen_moe(draw) | {"attention_bias": draw(st.booleans())}


def qwen3_next(draw):
    key_heads = pick(draw, 1, 2)
    found = qwen_moe(draw) | {
        "shared_expert_intermediate_size": 40,
        "attention_bias": draw(st.booleans()),
        "linear_num_key_heads": key_heads,
        "linear_num_value_heads": key_heads * pick(draw, 1, 2),
        "linear_key_head_dim": pick(draw, 8, 16),
        "linear_value_head_dim": pick(draw, 8, 16),
        "linear_conv_kernel_dim": pick(draw, 2, 4),
    }
    found["layer_types"] = words(
        draw, found["num_hidden_layers"], "linear_attention", "full_attention"
    )
    return found


def qwen3_5(draw):
    found = qwen3_next(draw)
    for name in (
        "num_experts",
        "num_experts_per_tok",
        "moe_intermediate_size",
        "shared_expert_intermediate_size",
        "decoder_sparse_step",
        "mlp_only_layers",
    ):
        del found[name]
    return found


def qwen3_5_moe(draw):
    found = qwen3_next(draw)
    for name in ("decoder_sparse_step", "mlp_only_layers", "intermediate_size"):
        del found[name]
    return found


def latent(draw):
    layers = draw(st.integers(1, 6))
    count = pick(draw, 4, 8)
    return frame(
        draw,
        num_hidden_layers=layers,
        intermediate_size=40,
        moe_intermediate_size=24,
        num_attention_heads=pick(draw, 2, 4),
        q_lora_rank=pick(draw, 16, 24),
        kv_lora_rank=pick(draw, 8, 16),
        qk_nope_head_dim=pick(draw, 8, 16),
        qk_rope_head_dim=8,
        v_head_dim=pick(draw, 8, 16),
        n_routed_experts=count,
        n_shared_experts=pick(draw, 1, 2),
        num_experts_per_tok=2,
        n_group=pick(draw, 1, 2),
        topk_group=1,
        attention_bias=draw(st.booleans()),
    )


def deepseek(draw):
    found = latent(draw)
    found["q_lora_rank"] = pick(draw, None, 16)
    found["first_k_dense_replace"] = draw(st.integers(0, found["num_hidden_layers"]))
    return found | {"num_key_value_heads": found["num_attention_heads"]}


def minicpm3(draw):
    count = pick(draw, 2, 4)
    return frame(
        draw,
        intermediate_size=pick(draw, 40, 96),
        num_attention_heads=count,
        num_key_value_heads=count,
        q_lora_rank=pick(draw, None, 16),
        kv_lora_rank=pick(draw, 16, 24),
        qk_nope_head_dim=pick(draw, 8, 16),
        qk_rope_head_dim=8,
        v_head_dim=pick(draw, None, 8, 24),
        attention_bias=draw(st.booleans()),
    )


def glm4_moe_lite(draw):
    found = deepseek(draw)
    # the class goes by this list alone, and has one dense layer without it
    found["mlp_layer_types"] = words(draw, found["num_hidden_layers"], "dense", "sparse")
    return found


def sparse_latent(draw):
    found = latent(draw) | {
        "index_n_heads": pick(draw, 1, 2),
        "index_head_dim": pick(draw, 8, 16),
        "index_topk": 16,
    }
    found["num_key_value_heads"] = found["num_attention_heads"]
    found["first_k_dense_replace"] = draw(st.integers(0, found["num_hidden_layers"]))
    return found


def glm_moe_dsa(draw):
    found = sparse_latent(draw)
    found["indexer_types"] = words(draw, found["num_hidden_layers"], "full", "shared", first="full")
    return found


def glm4_moe(draw):
    found = dense(
        draw,
        attention_bias=draw(st.booleans()),
        use_qk_norm=draw(st.booleans()),
        moe_intermediate_size=24,
        n_shared_experts=pick(draw, 1, 2),
        num_experts_per_tok=2,
        n_routed_experts=pick(draw, 4, 8),
        n_group=pick(draw, 1, 2),
        topk_group=1,
    )
    found["first_k_dense_replace"] = draw(st.integers(0, found["num_hidden_layers"]))
    return found


def kimi_linear(draw):
    found = latent(draw)
    for name in ("n_routed_experts", "n_shared_experts", "n_group", "num_experts_per_tok"):
        del found[name]
    layers = found["num_hidden_layers"]
    full = [i for i in range(1, layers + 1) if draw(st.booleans())]
    found |= {
        "num_experts": pick(draw, 4, 8),
        "num_experts_per_token": 2,
        "num_shared_experts": pick(draw, 1, 2),
        "q_lora_rank": pick(draw, None, 16),
        "first_k_dense_replace": draw(st.integers(0, layers)),
        "linear_attn_config": {
            "full_attn_layers": full,
            "kda_layers": [i for i in range(1, layers + 1) if i not in full],
            "num_heads": pick(draw, 1, 2),
            "head_dim": pick(draw, 8, 16),
            "short_conv_kernel_size": pick(draw, 2, 4),
        },
        "pad_token_id": 0,
        "tie_word_embeddings": False,
    }
    return found


def minimax_m2(draw):
    return dense(draw) | experts(draw, "num_local_experts")


def minimax_m3(draw):
    found = dense(
        draw,
        dense_intermediate_size=pick(draw, 40, 80),
        shared_intermediate_size=pick(draw, 24, 40),
        index_n_heads=pick(draw, 1, 2),
        index_head_dim=pick(draw, 8, 16),
    ) | experts(draw, "num_local_experts")
    layers = found["num_hidden_layers"]
    found["layer_types"] = words(draw, layers, "minimax_m3_sparse", "full_attention")
    found["mlp_layer_types"] = words(draw, layers, "dense", "sparse")
    return found


def llama4(draw):
    found = dense(
        draw,
        attention_bias=draw(st.booleans()),
        intermediate_size_mlp=pick(draw, 40, 80),
        interleave_moe_layer_step=pick(draw, 1, 2, 3),
        attention_chunk_size=16,
        pad_token_id=0,
    )
    return found | experts(draw, "num_local_experts")


def ernie_moe(draw):
    found = frame(
        draw,
        intermediate_size=40,
        moe_intermediate_size=24,
        moe_num_shared_experts=pick(draw, 0, 1, 2),
        moe_layer_interval=pick(draw, 1, 2),
        use_bias=draw(st.booleans()),
        **heads(draw, head_dim=False),
    ) | experts(draw, "moe_num_experts", "moe_k")
    layers = found["num_hidden_layers"]
    found["moe_layer_start_index"] = draw(st.integers(0, layers - 1))
    found["moe_layer_end_index"] = pick(draw, -1, layers - 1)
    return found


def hunyuan_moe(draw):
    found = dense(draw, attention_bias=draw(st.booleans()), pad_token_id=0)
    return found | experts(draw, topk="moe_topk")


def hy_v3(draw):
    found = dense(
        draw,
        attention_bias=draw(st.booleans()),
        mlp_bias=draw(st.booleans()),
        moe_intermediate_size=24,
        num_shared_experts=pick(draw, 1, 2),
    ) | experts(draw)
    found["mlp_layer_types"] = words(draw, found["num_hidden_layers"], "dense", "sparse")
    return found


def nemotron_h(draw):
    kinds = words(draw, draw(st.integers(1, 6)), "M", "*", "-", "E")
    heads_of_state = pick(draw, 2, 4)
    return {
        "vocab_size": pick(draw, 32, 61),
        "hidden_size": 64,
        "hybrid_override_pattern": "".join(kinds),
        "max_position_embeddings": 64,
        "tie_word_embeddings": False,
        "intermediate_size": pick(draw, 40, 96),
        "mlp_bias": False,
        "use_bias": draw(st.booleans()),
        "use_conv_bias": draw(st.booleans()),
        "mamba_num_heads": heads_of_state,
        "mamba_head_dim": pick(draw, 8, 16),
        "n_groups": pick(draw, 1, 2),
        "ssm_state_size": pick(draw, 8, 16),
        "conv_kernel": pick(draw, 2, 4),
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 24,
        "moe_shared_expert_intermediate_size": 40,
        "moe_latent_size": pick(draw, None, 16),
        **heads(draw),
    }


def jamba(draw):
    period, expert_period = pick(draw, 2, 3), pick(draw, 1, 2)
    found = frame(
        draw,
        intermediate_size=40,
        attn_layer_period=period,
        attn_layer_offset=draw(st.integers(0, period - 1)),
        expert_layer_period=expert_period,
        expert_layer_offset=draw(st.integers(0, expert_period - 1)),
        mamba_d_state=pick(draw, 4, 8),
        mamba_d_conv=pick(draw, 2, 4),
        mamba_expand=pick(draw, 1, 2),
        mamba_dt_rank=pick(draw, "auto", 5),
        mamba_conv_bias=draw(st.booleans()),
        mamba_proj_bias=draw(st.booleans()),
        use_mamba_kernels=False,
        **heads(draw, head_dim=False),
    )
    return found | experts(draw)


def granite_moe(draw):
    found = frame(draw, intermediate_size=24, **heads(draw, head_dim=False))
    found["attention_bias"] = draw(st.booleans())
    return found | experts(draw, "num_local_experts")


def windowed(draw, found):
    """Windows on some layers, listed or by the rule of the class."""
    found["sliding_window"] = 8
    if draw(st.booleans()):
        found["layer_types"] = words(
            draw, found["num_hidden_layers"], "full_attention", "sliding_attention"
        )
    return found


def granite_swa(draw):
    return windowed(draw, llama(draw))


def granitemoe_swa(draw):
    return windowed(draw, granite_shared(draw))


def mellum(draw):
    found = windowed(draw, dense(draw, moe_intermediate_size=24, **experts(draw)))
    found["attention_bias"] = draw(st.booleans())
    if draw(st.booleans()):
        found["mlp_layer_types"] = words(draw, found["num_hidden_layers"], "dense", "sparse")
    return found


def cohere2_moe(draw):
    found = dense(draw, attention_bias=draw(st.booleans()), **experts(draw))
    layers = found["num_hidden_layers"]
    found |= {
        "num_shared_experts": pick(draw, 0, 1, 2),
        "prefix_dense_intermediate_size": pick(draw, None, 56),
        "sliding_window": 8,
        "sliding_window_pattern": pick(draw, 2, 4),
    }
    if draw(st.booleans()):
        found["mlp_layer_types"] = words(draw, layers, "dense", "sparse")
        found["layer_types"] = words(draw, layers, "full_attention", "sliding_attention")
        return found
    return found | {
        "first_k_dense_replace": draw(st.integers(0, layers)),
        "prefix_dense_sliding_window_pattern": pick(draw, 1, 2),
    }


def lfm3(draw):
    found = dense(draw, conv_bias=draw(st.booleans()), conv_L_cache=pick(draw, 2, 3, 7))
    for name in ("use_sandwich_norm", "use_attention_gate", "attention_bias"):
        found[name] = draw(st.booleans())
    found |= {"sliding_window": 8, "pad_token_id": 0}
    if draw(st.booleans()):
        found["layer_types"] = words(
            draw, found["num_hidden_layers"], "conv", "full_attention", "sliding_attention"
        )
    return found


def axk2(draw):
    found = sparse_latent(draw) | {"gated_norm_rank": pick(draw, 4, 8)}
    if draw(st.booleans()):
        found |= {"n_group": None, "topk_group": None}
    return found


def hy_v4(draw):
    found = sparse_latent(draw) | {"hc_mult": pick(draw, 2, 4), "pad_token_id": 0}
    del found["first_k_dense_replace"]
    layers = found["num_hidden_layers"]
    if draw(st.booleans()):
        found["mlp_layer_types"] = words(draw, layers, "dense", "sparse")
        found["indexer_types"] = words(draw, layers, "full", "shared", first="full")
    return found


def bailing_hybrid(draw):
    found = deepseek(draw) | {
        "head_dim": pick(draw, 8, 16),
        "short_conv_kernel_size": pick(draw, 2, 4),
        "layer_group_size": pick(draw, 1, 2, 3),
        "num_mtp_layers": pick(draw, 0, 1),
        "pad_token_id": 0,
        "tie_word_embeddings": False,
    }
    found["num_experts"] = found.pop("n_routed_experts")
    if draw(st.booleans()):
        found["layer_types"] = words(
            draw, found["num_hidden_layers"], "linear_attention", "full_attention"
        )
    return found


def apertus1p5(draw):
    found = apertus(draw)
    if not found["tie_word_embeddings"]:
        found["output_vocab_size"] = pick(draw, None, 16, found["vocab_size"])
    return found


def granite_shared(draw):
    return granite_moe(draw) | {"shared_intermediate_size": pick(draw, 0, 40)}


def granite_hybrid(draw):
    found = granite_moe(draw) | {
        "shared_intermediate_size": 40,
        "hidden_size": 64,
        "mamba_n_heads": pick(draw, 4, 8),
        "mamba_d_head": "auto",
        "mamba_expand": 2,
        "mamba_d_state": pick(draw, 8, 16),
        "mamba_d_conv": pick(draw, 2, 4),
        "mamba_n_groups": pick(draw, 1, 2),
        "mamba_conv_bias": draw(st.booleans()),
        "mamba_proj_bias": draw(st.booleans()),
    }
    if draw(st.booleans()):
        found["num_local_experts"] = 0
    found["layer_types"] = words(draw, found["num_hidden_layers"], "mamba", "attention")
    return found


def deepseek_v4(draw):
    layers = draw(st.integers(1, 6))
    group = pick(draw, 1, 2)
    return frame(
        draw,
        num_hidden_layers=layers,
        num_attention_heads=group * pick(draw, 1, 2),
        head_dim=pick(draw, 16, 32),
        qk_rope_head_dim=8,
        q_lora_rank=pick(draw, 16, 24),
        o_groups=group,
        o_lora_rank=pick(draw, 8, 16),
        moe_intermediate_size=24,
        n_routed_experts=pick(draw, 4, 8),
        num_experts_per_tok=2,
        index_n_heads=pick(draw, 1, 2),
        index_head_dim=pick(draw, 8, 16),
        index_topk=8,
        hc_mult=pick(draw, 2, 4),
        num_hash_layers=draw(st.integers(0, layers)),
        sliding_window=8,
        compress_ratios=words(draw, layers, 0, 4, 128),
    )


def mimo_v2_flash(draw):
    found = frame(
        draw,
        intermediate_size=40,
        moe_intermediate_size=24,
        n_routed_experts=4,
        num_experts_per_tok=2,
        sliding_window=8,
        num_key_value_heads=pick(draw, 1, 2),
        num_attention_heads=8,
        head_dim=pick(draw, 16, 24),
        v_head_dim=pick(draw, 8, 16),
        attention_bias=draw(st.booleans()),
    )
    layers = found["num_hidden_layers"]
    found["layer_types"] = words(draw, layers, "full_attention", "sliding_attention")
    found["mlp_layer_types"] = words(draw, layers, "dense", "sparse")
    return found


def gemma1(draw):
    return dense(draw, attention_bias=draw(st.booleans()))


def olmo(draw):
    found = frame(draw, intermediate_size=pick(draw, 40, 96), **heads(draw, head_dim=False))
    return found | {"attention_bias": draw(st.booleans()), "pad_token_id": 0}


def olmo3(draw):
    found = olmo(draw) | {"sliding_window": 8}
    if draw(st.booleans()):
        found["layer_types"] = words(
            draw, found["num_hidden_layers"], "full_attention", "sliding_attention"
        )
    return found


def cohere(draw):
    return olmo(draw) | {"use_qk_norm": draw(st.booleans())}


def starcoder2(draw):
    found = frame(draw, intermediate_size=pick(draw, 40, 96), **heads(draw, head_dim=False))
    return found | {"use_bias": draw(st.booleans()), "sliding_window": pick(draw, None, 8)}


def stablelm(draw):
    found = frame(draw, intermediate_size=pick(draw, 40, 96), **heads(draw, head_dim=False))
    for name in ("use_qkv_bias", "qk_layernorm", "use_parallel_residual"):
        found[name] = draw(st.booleans())
    return found | {"hidden_size": 64}


def exaone4(draw):
    found = dense(draw, sliding_window=8, sliding_window_pattern=pick(draw, 1, 2, 4))
    if draw(st.booleans()):
        found["layer_types"] = words(
            draw, found["num_hidden_layers"], "full_attention", "sliding_attention"
        )
    return found


def glm(draw):
    return dense(draw, attention_bias=draw(st.booleans()), pad_token_id=0)


def apertus(draw):
    return olmo(draw) | {"hidden_act": pick(draw, "xielu", "silu")}


def helium(draw):
    found = frame(draw, intermediate_size=40, **heads(draw, head_dim=False))
    found["head_dim"] = found["hidden_size"] // found["num_attention_heads"]
    for name in ("attention_bias", "mlp_bias"):
        found[name] = draw(st.booleans())
    return found | {"pad_token_id": 0}


def olmoe(draw):
    return olmo(draw) | experts(draw)


def phimoe(draw):
    found = frame(draw, intermediate_size=40, **heads(draw, head_dim=False))
    return (
        found
        | experts(draw, "num_local_experts")
        | {
            "attention_bias": draw(st.booleans()),
            "lm_head_bias": draw(st.booleans()),
            "sliding_window": pick(draw, None, 8),
        }
    )


def shared_moe(draw, number="n_routed_experts", shared="n_shared_experts"):
    found = dense(draw, moe_intermediate_size=pick(draw, 16, 24), **experts(draw, number))
    return found | {shared: draw(st.integers(1, 2)), "n_group": 1, "topk_group": 1}


def dots1(draw):
    found = shared_moe(draw) | {"attention_bias": draw(st.booleans())}
    layers = found["num_hidden_layers"]
    found["first_k_dense_replace"] = draw(st.integers(0, layers))
    found["sliding_window"] = pick(draw, None, 8)
    return found | {"max_window_layers": draw(st.integers(0, layers))}


def solar_open(draw):
    found = shared_moe(draw) | {"attention_bias": draw(st.booleans())}
    found.pop("intermediate_size")
    return found


def sarvam_moe(draw):
    found = shared_moe(draw)
    for name in ("attention_bias", "use_qk_norm"):
        found[name] = draw(st.booleans())
    return found | {"first_k_dense_replace": draw(st.integers(0, 2))}


def exaone_moe(draw):
    found = shared_moe(draw, "num_experts", "num_shared_experts")
    layers = found["num_hidden_layers"]
    if draw(st.booleans()):
        found["mlp_layer_types"] = words(draw, layers, "dense", "sparse")
    else:
        found["first_k_dense_replace"] = draw(st.integers(0, layers))
    return found | {"sliding_window": 8, "sliding_window_pattern": pick(draw, 1, 2, 4)}


def afmoe(draw):
    found = shared_moe(draw, "num_experts", "num_shared_experts")
    found.pop("n_group"), found.pop("topk_group")
    found["num_dense_layers"] = draw(st.integers(0, 2))
    found["attention_bias"] = draw(st.booleans())
    return found | {"sliding_window": 8, "global_attn_every_n_layers": pick(draw, 1, 2, 4)}


def laguna(draw):
    found = dense(draw, moe_intermediate_size=pick(draw, 16, 24), **experts(draw))
    layers = found["num_hidden_layers"]
    found["shared_expert_intermediate_size"] = pick(draw, 16, 32)
    found["gating"] = pick(draw, True, "per-head", "per-element")
    found["attention_bias"] = draw(st.booleans())
    kv_heads = found["num_key_value_heads"]
    if draw(st.booleans()):
        found["mlp_layer_types"] = words(draw, layers, "dense", "sparse")
        found["layer_types"] = words(draw, layers, "full_attention", "sliding_attention")
        found["num_attention_heads_per_layer"] = [
            kv_heads * pick(draw, 1, 2) for _ in range(layers)
        ]
    return found | {"sliding_window": 8}


def gpt_neox(draw):
    return frame(draw, intermediate_size=pick(draw, 40, 96), num_attention_heads=4) | {
        "attention_bias": draw(st.booleans())
    }


def gptj(draw):
    found = gpt2(draw)
    return found | {"n_embd": 64, "rotary_dim": 4}


def phi(draw):
    found = frame(draw, intermediate_size=40, **heads(draw, head_dim=False))
    return found | {"qk_layernorm": draw(st.booleans())}


def bitnet(draw):
    found = frame(draw, hidden_size=64, intermediate_size=pick(draw, 40, 96),
                  attention_bias=draw(st.booleans()))  # fmt: skip
    return found | heads(draw, head_dim=False)


def aria_text(draw):
    found = llama(draw) | {"hidden_size": 64, "moe_num_shared_experts": pick(draw, 1, 2)}
    return found | experts(draw, "moe_num_experts", "moe_topk") | {"pad_token_id": 0}


def persimmon(draw):
    found = frame(draw, intermediate_size=pick(draw, 40, 96), num_attention_heads=4)
    return found | {"qk_layernorm": draw(st.booleans())}


def gpt_neo(draw):
    layers = pick(draw, 2, 4)
    found = frame(draw, num_heads=pick(draw, 2, 4), window_size=64, max_position_embeddings=128,
                  intermediate_size=pick(draw, None, 40), num_layers=layers)  # fmt: skip
    del found["num_hidden_layers"]
    return found | {"attention_types": pick(
        draw, [[["global", "local"], layers // 2]], [[["global"], layers]],
        [[["local"], 1], [["global"], layers - 1]],
    )}  # fmt: skip


def xglm(draw):
    return {
        "vocab_size": pick(draw, 32, 61),
        "d_model": 64,
        "ffn_dim": pick(draw, 40, 96),
        "num_layers": draw(st.integers(1, 4)),
        "attention_heads": pick(draw, 2, 4),
        "max_position_embeddings": 64,
        "tie_word_embeddings": draw(st.booleans()),
    }


def mpt(draw):
    return {
        "vocab_size": pick(draw, 32, 61),
        "d_model": pick(draw, 32, 64),
        "n_layers": draw(st.integers(1, 4)),
        "n_heads": pick(draw, 1, 2, 4),
        "max_seq_len": 64,
        "attn_config": {"clip_qkv": pick(draw, None, 8.0), "alibi": True},
        "tie_word_embeddings": draw(st.booleans()),
    }


def opt(draw):
    found = frame(draw, ffn_dim=pick(draw, 40, 96), num_attention_heads=pick(draw, 2, 4))
    for name in ("enable_bias", "layer_norm_elementwise_affine", "do_layer_norm_before"):
        found[name] = draw(st.booleans())
    return found


def bloom(draw):
    return {
        "vocab_size": pick(draw, 32, 61),
        "hidden_size": pick(draw, 32, 64),
        "n_layer": draw(st.integers(1, 4)),
        "n_head": pick(draw, 1, 2, 4),
        "tie_word_embeddings": draw(st.booleans()),
    }


def gpt_bigcode(draw):
    return gpt2(draw) | {"multi_query": draw(st.booleans())}


DRAWINGS = {
    "afmoe": afmoe,
    "apertus": apertus,
    "apertus1p5_text": apertus1p5,
    "arcee": llama,
    "aria_text": aria_text,
    "axk1": axk1,
    "axk2": axk2,
    "bailing_hybrid": bailing_hybrid,
    "bamba": bamba,
    "bitnet": bitnet,
    "bloom": bloom,
    "codegen": gptj,
    "cohere": cohere,
    "cohere2": olmo3,
    "cohere2_moe": cohere2_moe,
    "cwm": cwm,
    "dbrx": dbrx,
    "deepseek_v2": deepseek,
    "deepseek_v3": deepseek,
    "deepseek_v32": sparse_latent,
    "deepseek_v4": deepseek_v4,
    "dots1": dots1,
    "ernie4_5": ernie4_5,
    "ernie4_5_moe": ernie_moe,
    "exaone": llama,
    "exaone4": exaone4,
    "exaone_moe": exaone_moe,
    "falcon": falcon,
    "flex_olmo": flex_olmo,
    "falcon_mamba": mamba,
    "gemma": gemma1,
    "gemma2": gemma,
    "gemma3_text": gemma,
    "gemma3n_text": gemma3n,
    "gemma4_text": gemma4,
    "glm": glm,
    "glm4": glm,
    "glm4_moe": glm4_moe,
    "glm4_moe_lite": glm4_moe_lite,
    "glm_moe_dsa": glm_moe_dsa,
    "gpt2": gpt2,
    "gpt_bigcode": gpt_bigcode,
    "gpt_neo": gpt_neo,
    "gpt_neox": gpt_neox,
    "gpt_oss": gpt_oss,
    "gptj": gptj,
    "granite": llama,
    "granite_swa": granite_swa,
    "granitemoe": granite_moe,
    "granitemoe_swa": granitemoe_swa,
    "granitemoehybrid": granite_hybrid,
    "granitemoeshared": granite_shared,
    "helium": helium,
    "hunyuan_v1_dense": hunyuan_dense,
    "hunyuan_v1_moe": hunyuan_moe,
    "hy_v3": hy_v3,
    "hy_v4": hy_v4,
    "hyperclovax": hyperclovax,
    "internlm3": internlm3,
    "iquestcoder": llama,
    "jais2": llama,
    "jamba": jamba,
    "kimi_linear": kimi_linear,
    "laguna": laguna,
    "lfm2": lfm2_dense,
    "lfm2_moe": lfm2_moe,
    "lfm3": lfm3,
    "mellum": mellum,
    "llama": llama,
    "llama4_text": llama4,
    "mamba": mamba,
    "mamba2": mamba2,
    "mimo_v2_flash": mimo_v2_flash,
    "minimax_m2": minimax_m2,
    "minimax_m3_vl_text": minimax_m3,
    "minicpm3": minicpm3,
    "ministral": ministral,
    "ministral3": mistral,
    "mistral": mistral,
    "mixtral": mixtral,
    "mpt": mpt,
    "nanochat": nanochat,
    "nemotron": llama,
    "nemotron_h": nemotron_h,
    "olmo": olmo,
    "olmo2": olmo,
    "olmo3": olmo3,
    "olmo_hybrid": olmo_hybrid,
    "olmoe": olmoe,
    "opt": opt,
    "persimmon": persimmon,
    "phi": phi,
    "phi3": phi3,
    "phimoe": phimoe,
    "qwen2": qwen2,
    "qwen2_moe": qwen2_moe,
    "qwen3": qwen3,
    "qwen3_5_moe_text": qwen3_5_moe,
    "qwen3_5_text": qwen3_5,
    "qwen3_moe": qwen3_moe,
    "qwen3_next": qwen3_next,
    "sarvam_mla": deepseek,
    "sarvam_moe": sarvam_moe,
    "seed_oss": seed_oss,
    "smollm3": smollm3,
    "solar_open": solar_open,
    "stablelm": stablelm,
    "starcoder2": starcoder2,
    "vaultgemma": gemma,
    "xglm": xglm,
    "youtu": youtu,
}
"""Model type → how to draw a config of it."""
