"""Decoders that equal a supported one up to the names of fields and tensors.

Baichuan (``modeling_baichuan.py``), MiniCPM (``modeling_minicpm.py``), InternLM2
(``modeling_internlm2.py`` of the checkpoints), EXAONE 3.5 (``models/exaone`` of transformers 5.24
and ``modeling_exaone.py``), GLM-4-9B-Chat (``modeling_chatglm.py``), Molmo 2 (``models/molmo2``
and the renamings of the same library) and Ling 2.0 (``modeling_bailing_moe_v2.py``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from ledgerkit.errors import ConfigError
from ledgerkit.readers.families import decoders, llama, moe_decoders
from ledgerkit.readers.fields import Fields
from ledgerkit.readers.rows import Architecture, Layer, Row


class Kin(NamedTuple):
    """Another name of a supported decoder."""

    model_type: str
    """The decoder that it equals."""
    fields: dict[str, str]
    """Its name of a field → the usual one."""
    tensors: tuple[tuple[str, str], ...]
    """Part of a usual tensor name → its own; each is replaced in turn."""


_FUSED = ("q_proj", "k_proj", "v_proj")
KIN = {
    "internlm2": Kin(
        "llama",
        {"bias": "attention_bias"},
        (
            *((f"self_attn.{part}", "attention.wqkv") for part in _FUSED),
            ("self_attn.o_proj", "attention.wo"),
            ("mlp.gate_proj", "feed_forward.w1"),
            ("mlp.up_proj", "feed_forward.w3"),
            ("mlp.down_proj", "feed_forward.w2"),
            ("input_layernorm", "attention_norm"),
            ("post_attention_layernorm", "ffn_norm"),
            ("embed_tokens", "tok_embeddings"),
            ("lm_head", "output"),
        ),
    ),
    "baichuan": Kin(
        "llama",
        {"model_max_length": "max_position_embeddings"},
        tuple((f"self_attn.{part}", "self_attn.W_pack") for part in _FUSED),
    ),
    "minicpm": Kin("llama", {}, ()),
    "exaone": Kin(
        "llama",
        {"num_layers": "num_hidden_layers"},
        (
            ("self_attn.o_proj", "self_attn.out_proj"),
            ("self_attn.", "attn.attention."),
            ("mlp.gate_proj", "mlp.c_fc_0"),
            ("mlp.up_proj", "mlp.c_fc_1"),
            ("mlp.down_proj", "mlp.c_proj"),
            ("input_layernorm", "ln_1"),
            ("post_attention_layernorm", "ln_2"),
            ("model.layers.", "transformer.h."),
            ("model.embed_tokens", "transformer.wte"),
            ("model.norm", "transformer.ln_f"),
        ),
    ),
    "chatglm": Kin(
        "glm",
        {
            "num_layers": "num_hidden_layers",
            "ffn_hidden_size": "intermediate_size",
            "padded_vocab_size": "vocab_size",
            "seq_length": "max_position_embeddings",
            "kv_channels": "head_dim",
            "multi_query_group_num": "num_key_value_heads",
            "add_qkv_bias": "attention_bias",
        },
        (
            *((f"self_attn.{part}", "self_attention.query_key_value") for part in _FUSED),
            ("self_attn.o_proj", "self_attention.dense"),
            ("mlp.gate_up_proj", "mlp.dense_h_to_4h"),
            ("mlp.down_proj", "mlp.dense_4h_to_h"),
            ("model.layers.", "transformer.encoder.layers."),
            ("model.embed_tokens", "transformer.embedding.word_embeddings"),
            ("model.norm", "transformer.encoder.final_layernorm"),
            ("lm_head", "transformer.output_layer"),
        ),
    ),
    "molmo2_text": Kin(
        "molmo2_text",
        {"qkv_bias": "attention_bias"},
        (
            *((f"self_attn.{part}", "self_attn.att_proj") for part in _FUSED),
            ("self_attn.o_proj", "self_attn.attn_out"),
            ("mlp.gate_proj", "mlp.ff_proj"),
            ("mlp.up_proj", "mlp.ff_proj"),
            ("mlp.down_proj", "mlp.ff_out"),
            ("input_layernorm", "attn_norm"),
            ("post_attention_layernorm", "ff_norm"),
            ("model.layers.", "model.transformer.blocks."),
            (decoders.FURTHER_WORDS, "model.transformer.wte.new_embedding"),
            ("model.embed_tokens.weight", "model.transformer.wte.embedding"),
            ("model.norm", "model.transformer.ln_f"),
        ),
    ),
    "bailing_moe": Kin(
        "sarvam_moe",
        {"use_qkv_bias": "attention_bias"},
        (
            *((f"self_attn.{part}", "attention.query_key_value") for part in _FUSED),
            ("self_attn.o_proj", "attention.dense"),
            ("self_attn.q_norm", "attention.query_layernorm"),
            ("self_attn.k_norm", "attention.key_layernorm"),
            ("gate.e_score_correction_bias", "gate.expert_bias"),
            ("embed_tokens", "word_embeddings"),
        ),
    ),
}
KIN["bailing_moe_v2"] = KIN["bailing_moe"]
DEFAULTS: dict[str, Mapping[str, Any]] = {
    "internlm2": {
        "max_position_embeddings": 2048,
        "tie_word_embeddings": False,
        "attention_bias": True,
        "mlp_bias": False,
    },
    "baichuan": {
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
    },
    "minicpm": {
        "max_position_embeddings": 2048,
        "tie_word_embeddings": True,
        "attention_bias": False,
        "mlp_bias": False,
    },
    "exaone": {
        "num_key_value_heads": 8,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
    },
    "chatglm": {"tie_word_embeddings": False},
    "molmo2_text": {
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 36864,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "qk_norm_type": "qwen3",
        "additional_vocab_size": 128,
    },
    "bailing_moe": {"tie_word_embeddings": False, "n_group": 1, "topk_group": 1},
}
DEFAULTS["bailing_moe_v2"] = DEFAULTS["bailing_moe"]


def read(fields: Fields, model_type: str) -> Architecture:
    """Read a decoder under its own names."""
    kin = KIN[model_type]
    _special(fields, model_type)
    inner = _translated(fields, kin)
    start = len(fields.record.used)
    readers = {
        "llama": llama.read,
        "glm": decoders.read,
        "sarvam_moe": moe_decoders.read,
        "molmo2_text": decoders.read,
    }
    plan = readers[kin.model_type](inner, kin.model_type)
    inner.finish()
    fields.mark(*fields.values)
    own = {usual: name for name, usual in kin.fields.items() if name in fields.values}
    used = fields.record.used
    for index in range(start, len(used)):
        at, _, name = used[index].path.rpartition(".")
        if name in own and name not in fields.values:
            path = f"{at}.{own[name]}" if at else own[name]
            used[index] = dataclasses.replace(used[index], path=path)
    plan.layers = _renamed_layers(plan.layers, kin)
    plan.globals = [_renamed(row, kin) for row in plan.globals]
    return plan


def _special(fields: Fields, model_type: str) -> None:
    """Take note of the fields that one model type alone has."""
    if model_type == "chatglm":
        for name in ("multi_query_attention", "rmsnorm", "post_layer_norm"):
            fields.only(name, True, why=f"GLM-4 has {name} = true")
        for name in ("add_bias_linear", "interleaved_qkv", "use_qk_norm",
                     "apply_residual_connection_post_layernorm"):  # fmt: skip
            fields.only(name, False, why=f"GLM-4 has {name} = false")
        fields.only("pre_seq_len", why="prefix tuning is not implemented")
        fields.ignore("runtime", "apply_query_key_layer_scaling", "attention_softmax_in_fp32")
        fields.ignore("runtime", "bias_dropout_fusion", "fp32_residual_connection")
        fields.ignore("unused", "prefix_projection")
        fields.ignore("rotary", "original_rope")
        fields.ignore("epsilon", "layernorm_epsilon")
    elif model_type == "molmo2_text":
        fields.only("tie_word_embeddings", False, why="Molmo 2 has a head of its own")
        fields.only("use_qk_norm", True, why="this model type always has q and k norms")
        fields.flag("norm_after", default=False)
        fields.ignore("rotary", "rope_scaling_layers")
    elif model_type == "baichuan":
        fields.ignore("training", "z_loss_weight")
        fields.ignore("provenance", "_from_model_config")
    elif model_type == "minicpm":
        fields.only("sparse_config", why="sparse attention keeps more than keys and values")
        fields.ignore("scalar", "mup_denominator")
    elif model_type.startswith("bailing_moe"):
        stated = ("first_k_dense_replace", "use_qk_norm", "moe_router_enable_expert_bias")
        missing = [name for name in stated if not fields.has(name)]
        if missing:
            raise ConfigError(
                "the config does not say which generation of Ling it is",
                given=f"no {', '.join(missing)}",
                fix="state these fields",
            )
        fields.only("moe_router_enable_expert_bias", True, why="a router without a correction bias "
                    "is not implemented for Ling")  # fmt: skip
        fields.only("use_bias", False, why="biases are not implemented for Ling")
        fields.only("norm_head", False, why="a normalised head is not implemented")
        fields.only("use_rmsnorm", True, why="Ling has RMS norms")
        fields.only("moe_shared_expert_intermediate_size",
                    fields.values.get("moe_intermediate_size"),
                    why="shared experts of another width are not implemented")  # fmt: skip
        for name in ("use_sliding_window", "norm_softmax"):
            fields.only(name, False, why="not implemented for Ling")
        fields.ignore("unused", "max_window_layers", "sliding_window")
        fields.ignore("runtime", "using_split_qkv_in_self_attention", "output_dropout")
        fields.ignore("router arithmetic", "multi_gate")


def _translated(fields: Fields, kin: Kin) -> Fields:
    """Return the fields under their usual names, without those that are done with."""
    values: dict[str, Any] = {}
    for name, value in fields.values.items():
        if fields.seen(name):
            continue
        usual = kin.fields.get(name, name)
        if values.get(usual, value) != value:
            raise ConfigError(f"{fields.path}{name} and another field for {usual} contradict each "
                              "other", given=(values[usual], value))  # fmt: skip
        values[usual] = value
    inner = Fields(values, fields.record, fields.defaults, fields.path)
    inner.mark("model_type")
    return inner


def _renamed(row: Row, kin: Kin) -> Row:
    name = row.name
    for usual, own in kin.tensors:
        name = name.replace(usual, own)
    return row._replace(name=name)


def _renamed_layers(layers: list[Layer], kin: Kin) -> list[Layer]:
    known = {
        id(layer): Layer(layer.attention, layer.ffn, tuple(_renamed(r, kin) for r in layer.rows))
        for layer in layers
    }
    return [known[id(layer)] for layer in layers]
