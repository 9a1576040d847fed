"""Multimodal wrappers: where the text model sits in the config and in the checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ledgerkit.errors import ConfigError
from ledgerkit.readers.fields import Fields
from ledgerkit.readers.record import Record

__all__ = ["WRAPPERS", "Wrapper", "unwrap", "wrapper_of"]


class Wrapper(NamedTuple):
    """One multimodal model type."""

    text_type: str | None
    """Model type of the text model when ``text_config`` does not state one; None = it must."""
    naming: str = "outer"
    """``outer``: ``language_model.`` before the whole name; ``inner``: ``model.`` becomes
    ``model.language_model.``; ``text_model``: it becomes ``model.text_model.``; ``plain``: names
    as in the text model; ``thinker``: ``thinker.`` before the whole name."""
    key: str = "text_config"
    ignore: tuple[str, ...] = ()
    """Further top-level fields of the wrapper that shape its towers only."""
    older_key: str | None = None
    """Name that released files have in place of ``key``."""

    def rename(self, name: str) -> str:
        """Return the checkpoint's name of a tensor of the text model."""
        if self.naming == "outer":
            return "language_model." + name
        if self.naming == "inner" and name.startswith("model."):
            return "model.language_model." + name.removeprefix("model.")
        if self.naming == "text_model" and name.startswith("model."):
            return "model.text_model." + name.removeprefix("model.")
        if self.naming == "thinker":
            return "thinker." + name
        return name


_LLAVA = ("vision_aspect_ratio", "use_image_newline_parameter", "projector_layernorm_eps",
          "spatial_pool_mode", "spatial_pool_stride", "video_seq_length")  # fmt: skip
_SPEECH = (
    "enable_audio_output", "position_id_per_seconds", "seconds_per_chunk", "user_token_id",
    "system_token_id", "assistant_token_id", "audio_start_token_id", "audio_end_token_id",
    "tts_pad_token_id", "tts_bos_token_id", "tts_eos_token_id", "token2wav_config",
    "code2wav_config", "talker_config",
)  # fmt: skip
_IDEFICS = ("scale_factor", "_pad_token_id")
WRAPPERS: dict[str, Wrapper] = {
    "aria": Wrapper(
        "aria_text",
        ignore=("projector_patch_to_query_dict", "max_value_projector_patch_to_query_dict"),
    ),
    "apertus1p5": Wrapper(
        "apertus1p5_text", "inner", ignore=("image_token_offset", "audio_token_offset")
    ),
    "aya_vision": Wrapper("cohere2", ignore=("adapter_layer_norm_eps", "downsample_factor")),
    "cohere2_vision": Wrapper(
        "cohere2", ignore=("alignment_intermediate_size", "downsample_factor")
    ),
    "deepseek_vl": Wrapper("llama", "inner"),
    "deepseek_vl_hybrid": Wrapper("llama", "inner", ignore=("high_res_vision_config",)),
    "exaone4_5": Wrapper("exaone4", "inner"),
    "fast_vlm": Wrapper("qwen2", "inner"),
    "glm_ocr": Wrapper("glm_ocr_text", "inner"),
    "hunyuan_vl": Wrapper(
        "hunyuan_vl_text", "plain", ignore=("im_start_id", "im_end_id", "im_newline_id")
    ),
    "idefics2": Wrapper("mistral", "text_model", ignore=("perceiver_config",)),
    "glm46v": Wrapper("glm4v_text", "inner"),
    "glm4v": Wrapper("glm4v_text", "inner"),
    "glm4v_moe": Wrapper("glm4v_moe_text", "inner"),
    "idefics3": Wrapper("llama", "text_model", ignore=_IDEFICS),
    "internvl_chat": Wrapper(
        None,
        key="llm_config",
        ignore=(
            "downsample_ratio",
            "dynamic_image_size",
            "force_image_size",
            "hidden_size",
            "image_fold",
            "max_dynamic_patch",
            "min_dynamic_patch",
            "pad2square",
            "ps_version",
            "select_layer",
            "template",
            "use_backbone_lora",
            "use_llm_lora",
            "use_thumbnail",
        ),
    ),
    "internvl": Wrapper("qwen2", ignore=("downsample_ratio",)),
    "llava": Wrapper("llama", ignore=_LLAVA),
    "llava_next": Wrapper("llama", ignore=_LLAVA),
    "llava_onevision": Wrapper("qwen2", ignore=_LLAVA),
    "qwen2_vl": Wrapper("qwen2_vl_text", "plain"),
    "qwen2_5_vl": Wrapper("qwen2_5_vl_text", "plain"),
    "smolvlm": Wrapper("llama", "text_model", ignore=_IDEFICS),
    "llava_next_video": Wrapper("llama", ignore=_LLAVA),
    "ovis2": Wrapper("qwen2", ignore=("visual_indicator_token_ids", "hidden_size", "vocab_size")),
    "molmo2": Wrapper(
        "molmo2_text",
        "plain",
        ignore=(
            "adapter_config",
            "frame_end_token_id",
            "frame_start_token_id",
            "image_col_id",
            "image_high_res_id",
            "image_low_res_id",
            "image_patch_id",
            "low_res_image_start_token_id",
            "use_frame_special_tokens",
            "vit_config",
        ),
    ),
    "nemotron_h_omni": Wrapper(
        "nemotron_h",
        ignore=(
            "downsample_ratio",
            "force_image_size",
            "img_context_token_id",
            "projector_hidden_size",
            "sound_config",
            "sound_context_token_id",
            "video_context_token_id",
            "video_pruning_rate",
            "video_temporal_patch_size",
            "vision_hidden_size",
            "vit_hidden_size",
        ),
        older_key="llm_config",
    ),
    "paddleocr_vl": Wrapper("paddleocr_vl_text", "plain"),
    "perception_lm": Wrapper(
        "llama", "inner", ignore=("vision_use_cls_token", "projector_pooling_ratio")
    ),
    "paligemma": Wrapper("gemma", ignore=("hidden_size", "projection_dim")),
    "video_llama_3": Wrapper("qwen2", "inner"),
    "video_llava": Wrapper("llama", ignore=_LLAVA),
    "vipllava": Wrapper("llama", ignore=_LLAVA),
    "qwen2_audio": Wrapper("qwen2"),
    "voxtral": Wrapper("llama", ignore=("hidden_size",)),
    "gemma3": Wrapper("gemma3_text"),
    "gemma3n": Wrapper("gemma3n_text", "inner"),
    "gemma4": Wrapper("gemma4_text", "inner"),
    "gemma4_unified": Wrapper("gemma4_unified_text", "inner"),
    "kimi_vl": Wrapper("deepseek_v3"),
    "kimi_k25": Wrapper("kimi_k2", ignore=("projection_hidden_size", "projection_layer_norm_eps")),
    "kimi_k3": Wrapper("kimi_linear", ignore=("image_placeholder",)),
    "lfm2_vl": Wrapper(
        "lfm2",
        "inner",
        ignore=(
            "do_image_splitting",
            "downsample_factor",
            "encoder_patch_size",
            "max_image_tokens",
            "max_num_patches",
            "max_pixels_tolerance",
            "max_tiles",
            "min_image_tokens",
            "min_tiles",
            "projector_bias",
            "projector_hidden_size",
            "projector_use_layernorm",
            "tile_size",
            "use_image_special_tokens",
            "use_thumbnail",
        ),
    ),
    "llama4": Wrapper("llama4_text"),
    "minimax_m3_vl": Wrapper(
        "minimax_m3_vl_text",
        ignore=(
            "img_token_compression_config",
            "merged_hidden_size",
            "num_reward_heads",
            "process_image_mode",
            "projector_hidden_size",
        ),
    ),
    "mistral3": Wrapper("mistral"),
    "mistral_large4": Wrapper("mistral_large4_text", "plain"),
    "qwen3_5": Wrapper("qwen3_5_text", "inner", ignore=("language_model_only",)),
    "qwen3_5_moe": Wrapper("qwen3_5_moe_text", "inner", ignore=("language_model_only",)),
    "qwen2_5_omni": Wrapper(
        "qwen2_5_omni_thinker", "thinker", "thinker_config", (*_SPEECH, "enable_talker")
    ),
    "qwen2_5_omni_thinker": Wrapper("qwen2_5_omni_text", "plain", ignore=_SPEECH),
    "qwen3_omni_moe": Wrapper("qwen3_omni_moe_thinker", "thinker", "thinker_config", _SPEECH),
    "qwen3_omni_moe_thinker": Wrapper("qwen3_omni_moe_text", "plain", ignore=_SPEECH),
    "qwen3_vl": Wrapper("qwen3_vl_text", "inner"),
    "qwen3_vl_moe": Wrapper("qwen3_vl_moe_text", "inner"),
    "step3_vl": Wrapper(
        "step3_text", "plain", ignore=("understand_projector_stride", "projector_bias")
    ),
    "step3p7": Wrapper("step3p7_text", "plain", ignore=("projector_bias",)),
}
CLASS_SIZES: dict[str, dict[str, int]] = {
    "llama": {"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
              "num_hidden_layers": 32, "num_attention_heads": 32},
    "mistral": {"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336,
                "num_hidden_layers": 32, "num_attention_heads": 32},
    "gemma": {"vocab_size": 256000, "hidden_size": 3072, "intermediate_size": 24576,
              "num_hidden_layers": 28, "num_attention_heads": 16},
}  # fmt: skip
"""Sizes that the text part of a multimodal file leaves out where they are those of its class."""
_INHERITED = ("torch_dtype", "dtype", "quantization_config")
_TOWERS = {"vision_config": "vision", "audio_config": "audio", "speech_config": "speech",
           "sound_config": "audio", "vit_config": "vision", "talker_config": "talker"}  # fmt: skip


def wrapper_of(config: Mapping[str, Any]) -> Wrapper | None:
    """Return the wrapper of a config, with the key under which its text model stands."""
    wrapper = WRAPPERS.get(str(config.get("model_type")))
    if wrapper is None or wrapper.older_key is None or config.get(wrapper.key) is not None:
        return wrapper
    if config.get(wrapper.older_key) is None:
        return wrapper
    return wrapper._replace(key=wrapper.older_key)


def unwrap(
    config: Mapping[str, Any], record: Record
) -> tuple[dict[str, Any], Wrapper | None, list[tuple[str, int | None]]]:
    """Return the text config, its wrapper and the names of the towers left out.

    Fields of the whole file that concern the text model too (dtype, quantization, tied embeddings)
    are handed down.
    """
    wrapper = wrapper_of(config)
    if wrapper is None:
        return dict(config), None, []
    text = config.get(wrapper.key)
    if text is None and wrapper.text_type and "hidden_size" in config:
        # some files of multimodal types hold the text model alone, without a part of its own
        record.assume("flat", part=wrapper.key)
        return {**config, "model_type": wrapper.text_type}, None, []
    if not isinstance(text, Mapping):
        raise ConfigError(f"a {config.get('model_type')} config needs {wrapper.key}", given=text,
                          fix="give the whole config.json, or its text part alone")  # fmt: skip
    inner = dict(text)
    if inner.get("model_type") is None:
        if wrapper.text_type is None:
            raise ConfigError(f"{wrapper.key} must state its model_type")
        inner["model_type"] = wrapper.text_type
    _hand_down(config, inner, record)
    outer = Fields(config, record)
    outer.mark("model_type", wrapper.key, "tie_word_embeddings", *_INHERITED)
    for name in config:
        if name in inner and name not in _INHERITED and config[name] == inner[name]:
            outer.ignore("duplicate", name)
    outer.ignore("tower", *wrapper.ignore)
    towers: list[tuple[str, int | None]] = [
        (tower, None) for name, tower in _TOWERS.items() if config.get(name) is not None
    ]
    outer.finish()
    if str(inner["model_type"]) in WRAPPERS:
        deepest, second, more = unwrap(inner, record)
        if second is None:
            raise ConfigError(f"{wrapper.key} must hold a text model of its own")
        key = f"{wrapper.key}.{second.key}"
        return deepest, wrapper._replace(key=key), [*towers, *more]
    return inner, wrapper, towers


def _hand_down(config: Mapping[str, Any], inner: dict[str, Any], record: Record) -> None:
    """Give the text part what the whole file says about it."""
    for name in _INHERITED:
        if config.get(name) is not None and inner.get(name) is None:
            inner[name] = config[name]
    tied = config.get("tie_word_embeddings")
    if tied is None:
        return
    stated = inner.get("tie_word_embeddings")
    if stated is not None and stated != tied:
        record.assume("tie", value=tied)
    inner["tie_word_embeddings"] = tied
