"""Fields that change no parameter, byte or FLOP, with the reason why.

A field stands here only if it is irrelevant in every family; a field that matters somewhere is
named as ignored by the families in which it does not. The reasons have their words in
``ledgerkit.text.reading``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

_BY_REASON = {
    "provenance": (
        "_name_or_path architectures auto_map transformers_version model_type name "
        "transformers.js_config finetuning_task is_llama_config license commit_hash _commit_hash "
        "unsloth_version unsloth_fixed custom_generate base_model_name_or_path is_composition"
    ),
    "metadata": (
        "_source _fidelity _inferred _official _name _replace _adapted _slug _hub_id _aliases"
    ),
    "runtime": (
        "use_cache output_attentions output_hidden_states return_dict torchscript "
        "use_bfloat16 pretraining_tp ep_size tf_legacy_loss cache_implementation "
        "_attn_implementation _attn_implementation_autoset attn_implementation "
        "_flash_attn_2_enabled use_mamba_kernels num_logits_to_keep gradient_checkpointing "
        "use_flash_attn use_flash_attention_2 flash_attn fused_mlp tensor_parallel_size "
        "chunk_size_feed_forward onnx_kv_cache problem_type save_dtype "
        "_experts_implementation experts_implementation moe_implementation is_causal "
        "use_grouped_mm use_flex_attention debug micro_forward skip_checkpoint use_deepep "
        "residual_in_fp32 reorder_and_upcast_attn max_model_len "
    ),
    "tokenizer": (
        "bos_token_id eos_token_id pad_token_id sep_token_id decoder_start_token_id "
        "tokenizer_class model_max_length end_token_id "
        "image_token_id video_token_id audio_token_id image_token_index "
        "video_token_index audio_token_index boi_token_id eoi_token_id boa_token_id eoa_token_id "
        "boi_token_index eoi_token_index eoa_token_index boa_token_index vision_start_token_id "
        "vision_end_token_id vision_token_id media_placeholder_token_id video_placeholder "
        "mask_token_id unk_token_id im_start_token_id im_end_token_id im_patch_token "
        "image_start_token_id image_end_token_id video_start_token_id video_end_token_id "
        "im_newline_token_id image_newline_token_id pad_id eod_token_id text_start_id text_end_id"
    ),
    "initialisation": (
        "initializer_range init_std init_method rescale_prenorm_residual time_step_floor "
        "time_step_max time_step_min time_step_limit mamba_dt_min mamba_dt_max mamba_dt_init_floor "
        "initializer_factor embedding_initializer_range"
    ),
    "training": (
        "attention_probs_dropout_prob hidden_dropout_prob "
        "attention_dropout hidden_dropout dropout resid_pdrop embd_pdrop attn_pdrop "
        "residual_dropout embedding_dropout resid_dropout embed_dropout attn_dropout "
        "summary_activation summary_first_dropout summary_proj_to_labels summary_type "
        "summary_use_proj router_aux_loss_coef aux_loss_alpha seq_aux output_router_logits "
        "router_jitter_noise router_z_loss_coef ignore_index aux_loss_coeff moe_aux_loss_coeff "
        "mtp_loss_scaling_factor mtp_loss_factor classifier_dropout label_smoothing "
        "router_bias_update_speed bias_update_speed expert_dropout dropout_rate ffn_dropout "
        "input_jitter_noise sequence_parallel altup_lr_multiplier"
    ),
    "generation": (
        "bad_words_ids begin_suppress_tokens diversity_penalty do_sample early_stopping "
        "encoder_no_repeat_ngram_size exponential_decay_length_penalty forced_bos_token_id "
        "forced_eos_token_id id2label label2id length_penalty max_length min_length "
        "no_repeat_ngram_size num_beam_groups num_beams num_return_sequences output_scores prefix "
        "remove_invalid_values repetition_penalty return_dict_in_generate suppress_tokens "
        "temperature top_k top_p typical_p task_specific_params tie_encoder_decoder num_labels "
        "generation_config penalty_alpha max_new_tokens"
    ),
    "rotary": (
        "rope_theta rope_scaling rope_parameters rotary_dim rotary_pct rotary_emb_base "
        "partial_rotary_factor rope_interleave rope_interleaved rope_local_base_freq "
        "rope_ratio rope_type swa_rope_theta compress_rope_theta original_max_position_embeddings "
        "indexer_rope_interleave use_mrope mrope_section rope_percent rotary_base "
        "rotary_percentage rope_base local_rope_theta global_rope_theta "
        "initial_context_length rope_pct no_rope_layer_interval mla_use_nope "
        ""
        "partial_rotary_factors "
        "llama_4_scaling_beta"
    ),
    "epsilon": (
        "rms_norm_eps layer_norm_eps layer_norm_epsilon layernorm_epsilon norm_eps norm_epsilon "
        "hc_eps mamba_rms_norm_eps rms_norm_epsilon"
    ),
    "activation": (
        "hidden_act hidden_activation activation_function mamba_hidden_act mlp_hidden_act act_fn "
        "linear_activation output_gate_type"
    ),
    "router arithmetic": (
        "routed_scaling_factor scoring_func norm_topk_prob topk_method moe_renormalize "
        "moe_router_activation_func use_grouped_topk norm_expert_weight moe_router_scaling_factor "
        "router_scaling_factor moe_router_dtype moe_routed_scaling_factor score_function "
        "router_dtype expert_score_func sparsemixer_moe"
    ),
    "scalar": (
        "final_logit_softcapping attn_logit_softcapping query_pre_attn_scalar logits_scaling "
        "residual_multiplier embedding_multiplier attention_multiplier logit_scale "
        "attention_value_scale swiglu_limit swiglu_alpha attn_scale floor_scale "
        "attn_temperature_tuning altup_coef_clip scale_emb scale_depth dim_model_base "
        "router_logit_softcapping scale_embeddings"
    ),
    "tower": (
        "vision_config audio_config vision_feature_layer vision_feature_select_strategy "
        "vision_soft_tokens_per_image mm_tokens_per_image audio_soft_tokens_per_image "
        "use_unified_vision_chunk spatial_merge_size multimodal_projector_bias "
        "projector_hidden_act image_seq_length image_grid_pinpoints "
        "num_image_tokens video_config speech_config"
    ),
}
_REASON_OF = {name: reason for reason, names in _BY_REASON.items() for name in names.split()}

NEUTRAL: dict[str, tuple[Any, ...]] = {
    "add_cross_attention": (False,),
    "cross_attention_hidden_size": (),
    "is_decoder": (False, True),
    "is_encoder_decoder": (False,),
    "pruned_heads": ({},),
    "use_cla": (False,),
    "lm_head_bias": (False,),
    "alibi": (False,),
}
"""Fields that are fine with these values and that no family handles otherwise."""


@lru_cache(maxsize=1024)
def reason_to_ignore(name: str) -> str | None:
    """Return why a field changes no cost in any family, or None when that is not known.

    Examples
    --------
    >>> reason_to_ignore("rope_theta"), reason_to_ignore("kv_lora_rank")
    ('rotary', None)
    """
    return _REASON_OF.get(name)
