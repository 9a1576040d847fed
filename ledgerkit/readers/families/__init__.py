"""One readable file for each family of architectures.

``FAMILIES`` maps a ``model_type`` to the module that reads it; modules are imported on first use.
Each has ``DEFAULTS`` (the class defaults of its model types, for fields that files leave out) and
``read(fields, model_type)``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ledgerkit.errors import UnsupportedArchitectureError

if TYPE_CHECKING:
    from ledgerkit.readers.fields import Fields
    from ledgerkit.readers.rows import Architecture

__all__ = ["FAMILIES", "family"]

_MODULES: dict[str, tuple[str, ...]] = {
    "decoders": (
        "gemma",
        "olmo",
        "olmo2",
        "olmo3",
        "cohere",
        "cohere2",
        "starcoder2",
        "stablelm",
        "exaone4",
        "glm",
        "glm4",
        "glm4v_text",
        "glm_ocr_text",
        "nemotron",
        "apertus",
        "apertus1p5_text",
        "bitnet",
        "arcee",
        "helium",
        "jais2",
        "hyperclovax",
        "vaultgemma",
        "nanochat",
    ),
    "axk2": ("axk2",),
    "bailing_hybrid": ("bailing_hybrid",),
    "aria": ("aria_text",),
    "bamba": ("bamba", "mamba", "mamba2", "falcon_mamba"),
    "cohere2_moe": ("cohere2_moe",),
    "dbrx": ("dbrx",),
    "deepseek": (
        "deepseek_v2",
        "deepseek_v3",
        "deepseek_v32",
        "kimi_k2",
        "glm_moe_dsa",
        "glm4_moe_lite",
        "mistral4",
        "minicpm3",
        "axk1",
        "sarvam_mla",
        "youtu",
    ),
    "deepseek_v4": ("deepseek_v4",),
    "ernie": ("ernie4_5_moe",),
    "falcon": ("falcon",),
    "gemma": ("gemma2", "gemma3_text"),
    "gemma3n": ("gemma3n_text",),
    "gemma4": ("gemma4_text", "gemma4_unified_text"),
    "glm4_moe": ("glm4_moe", "glm4v_moe_text"),
    "gpt2": ("gpt2",),
    "gpt_kin": (
        "gpt_neox",
        "gpt_neo",
        "gptj",
        "codegen",
        "phi",
        "opt",
        "xglm",
        "bloom",
        "mpt",
        "persimmon",
        "gpt_bigcode",
    ),
    "gpt_oss": ("gpt_oss",),
    "granite": ("granitemoe", "granitemoeshared", "granitemoehybrid", "granitemoe_swa"),
    "hunyuan": ("hunyuan_v1_moe",),
    "hy_v3": ("hy_v3",),
    "hy_v4": ("hy_v4",),
    "jamba": ("jamba",),
    "kimi_linear": ("kimi_linear",),
    "lfm2": ("lfm2", "lfm2_moe"),
    "lfm3": ("lfm3",),
    "llama": (
        "llama",
        "smollm3",
        "internlm3",
        "iquestcoder",
        "cwm",
        "granite",
        "granite_swa",
        "mistral",
        "ministral",
        "ministral3",
        "qwen2",
        "qwen3",
        "qwen2_vl_text",
        "qwen2_5_vl_text",
        "qwen2_5_omni_text",
        "qwen3_vl_text",
        "mimo",
        "ernie4_5",
        "paddleocr_vl_text",
        "hunyuan_v1_dense",
        "hunyuan_vl_text",
        "seed_oss",
    ),
    "llama4": ("llama4_text",),
    "mimo_v2": ("mimo_v2", "mimo_v2_flash"),
    "minimax": ("minimax_m1", "minimax_text_01", "minimax"),
    "minimax_m2": ("minimax_m2", "minimax_m3", "minimax_m3_vl_text"),
    "mistral_large4": ("mistral_large4_text",),
    "mixtral": ("mixtral",),
    "moe_decoders": (
        "olmoe",
        "flex_olmo",
        "phimoe",
        "dots1",
        "solar_open",
        "sarvam_moe",
        "exaone_moe",
        "afmoe",
        "laguna",
        "mellum",
    ),
    "nemotron_h": ("nemotron_h",),
    "nemotron_nas": ("nemotron-nas",),
    "olmo_hybrid": ("olmo_hybrid",),
    "phi3": ("phi3", "phi4_multimodal"),
    "qwen_moe": ("qwen2_moe", "qwen3_moe", "qwen3_vl_moe_text", "qwen3_omni_moe_text"),
    "qwen3_next": ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"),
    "renamed": (
        "internlm2",
        "exaone",
        "chatglm",
        "bailing_moe",
        "bailing_moe_v2",
        "baichuan",
        "minicpm",
        "molmo2_text",
    ),
    "step3": ("step3_text",),
    "step3p7": ("step3p5", "step3p7_text"),
}
FAMILIES: dict[str, str] = {kind: name for name, kinds in _MODULES.items() for kind in kinds}
"""Model type → module."""

_INEXPRESSIBLE = {
    "diffllama": "it reads each value twice in one attention",
    "doge": "a learned mask chooses the keys of each head",
    "dots3_note": "some layers keep a window of latents",
    "dots3_note_text": "some layers keep a window of latents",
    "falcon_h1": "attention and Mamba run side by side in one layer",
    "jetmoe": "a router chooses the query heads of each token",
    "longcat_flash": "a layer has two attentions, and experts that compute nothing",
    "zamba": "some layers have attention and Mamba in one",
    "zamba2": "some layers have attention and Mamba in one, with weights that layers share",
    "zaya": "attention convolves its queries and keys, and keeps columns of them beside its cache",
}
"""What a layer is made of here cannot say; each was compared with its class in transformers."""
Read = Callable[["Fields", str], "Architecture"]


def family(model_type: Any) -> tuple[Read, Mapping[str, Any]]:
    """Return the reader of a model type and its class defaults.

    Raises
    ------
    UnsupportedArchitectureError
        No family reads this model type.
    """
    name = FAMILIES.get(model_type) if isinstance(model_type, str) else None
    if isinstance(model_type, str) and model_type in _INEXPRESSIBLE:
        raise UnsupportedArchitectureError(
            f"no reader can say what such a layer costs: {_INEXPRESSIBLE[model_type]}",
            given=model_type, allowed="layers with one kind of attention, or one state",
            fix="its sizes are not known here",
        )  # fmt: skip
    if name is None:
        raise UnsupportedArchitectureError(
            "no reader knows this model_type", given=model_type,
            allowed=", ".join(sorted(FAMILIES)),
            fix="name one of these if the model equals it in every layer; otherwise its sizes are "
                "not known here",
        )  # fmt: skip
    module = importlib.import_module(f"ledgerkit.readers.families.{name}")
    return module.read, module.DEFAULTS[model_type]
