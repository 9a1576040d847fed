"""Bamba, and models of mixers alone: Mamba, Falcon Mamba, Mamba-2 (Codestral Mamba).

Source: ``models/bamba``, ``mamba``, ``falcon_mamba`` and ``mamba2`` of transformers 5.24. Bamba has
Mamba-2 mixers, a few layers of attention and an MLP in every layer; the others have no MLP. The
norms inside Falcon Mamba's mixers have no weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerkit.readers.blocks import (
    LAYER,
    attention_norm,
    dense_mlp,
    ffn_norm,
    gqa_projections,
    vocabulary,
)
from ledgerkit.readers.families._common import (
    Frame,
    read_frame,
    read_head_dim,
    read_heads,
    require,
)
from ledgerkit.readers.families._mamba import Mamba1, Mamba2, mamba1, mamba2
from ledgerkit.readers.fields import MAX_CONTEXT, MAX_LAYERS, MAX_VOCAB, Fields
from ledgerkit.readers.rows import Architecture, Layer, Row
from ledgerkit.spec.attention import SoftmaxAttention, StateAttention
from ledgerkit.spec.feed_forward import DenseFfn, NoFfn

DEFAULTS: dict[str, Mapping[str, Any]] = {
    "bamba": {
        "num_key_value_heads": 8,
        "max_position_embeddings": 262144,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
        "attn_layer_indices": None,
        "mamba_n_heads": 128,
        "mamba_n_groups": 1,
        "mamba_d_state": 256,
        "mamba_d_conv": 4,
        "mamba_expand": 2,
        "mamba_conv_bias": True,
        "mamba_proj_bias": False,
    },
    "mamba2": {
        "num_heads": 128,
        "head_dim": 64,
        "state_size": 128,
        "expand": 2,
        "conv_kernel": 4,
        "n_groups": 8,
        "use_bias": False,
        "use_conv_bias": True,
        "tie_word_embeddings": False,
    },
}
_MAMBA = {
    "state_size": 16,
    "expand": 2,
    "conv_kernel": 4,
    "time_step_rank": "auto",
    "use_bias": False,
    "use_conv_bias": True,
    "tie_word_embeddings": True,
}
DEFAULTS |= {"mamba": _MAMBA, "falcon_mamba": _MAMBA}
_PURE = "backbone.layers.{layer}."


def read(fields: Fields, model_type: str) -> Architecture:
    """Read a decoder of Mamba-2 layers."""
    fields.ignore("training", "z_loss_coefficient")
    fields.ignore("rotary", "attn_rotary_emb")
    fields.ignore("runtime", "mamba_chunk_size", "chunk_size")
    if model_type != "bamba":
        return _pure(fields, model_type)
    frame = read_frame(fields)
    hidden = frame.hidden
    intermediate = fields.size("intermediate_size")
    rows = [
        *ffn_norm(hidden, LAYER + "pre_ff_layernorm"),
        *dense_mlp(hidden, intermediate, at=LAYER + "feed_forward.", bias=fields.flag("mlp_bias")),
    ]
    attends = _attention_layers(fields, frame)
    mixers: dict[bool, tuple[SoftmaxAttention | StateAttention, list[Row]]] = {
        flag: _attention(fields, hidden) if flag else _mixer(fields, hidden)
        for flag in set(attends)
    }
    fields.ignore("unused", "num_attention_heads", "num_key_value_heads", "head_dim",
                  "attention_bias", *(name for name in fields.values
                                      if str(name).startswith("mamba_")))  # fmt: skip
    ffn = DenseFfn(intermediate_size=intermediate)
    layers = {
        flag: Layer(attention, ffn, (*attention_norm(hidden), *mixer, *rows))
        for flag, (attention, mixer) in mixers.items()
    }
    table = vocabulary(hidden, frame.vocab, tie=frame.tie, norm="model.final_layernorm")
    return frame.architecture([layers[flag] for flag in attends], table)


def _attention_layers(fields: Fields, frame: Frame) -> list[bool]:
    """Return which layers attend; the class goes by the numbers alone."""
    listed = fields.integers("attn_layer_indices") or []
    require(max(listed, default=0) < frame.layers, "attn_layer_indices names a missing layer",
            listed)  # fmt: skip
    attends = [index in set(listed) for index in range(frame.layers)]
    words = ("mamba", "linear_attention", "attention", "full_attention")
    for name in ("layer_types", "layers_block_type"):
        kinds = fields.words(name, frame.layers, allowed=words, default=None)
        if kinds is not None:
            require(attends == [kind in words[2:] for kind in kinds],
                    f"{name} and attn_layer_indices contradict each other", kinds)  # fmt: skip
    return attends


def _attention(fields: Fields, hidden: int) -> tuple[SoftmaxAttention, list[Row]]:
    heads, kv_heads = read_heads(fields)
    head_dim = read_head_dim(fields, hidden, heads)
    bias = fields.flag("attention_bias")
    attention = SoftmaxAttention(num_attention_heads=heads, num_key_value_heads=kv_heads,
                                 head_dim=head_dim, v_head_dim=head_dim)  # fmt: skip
    return attention, gqa_projections(hidden, heads, kv_heads, head_dim, qkv_bias=bias, o_bias=bias)


def _mixer(fields: Fields, hidden: int) -> tuple[StateAttention, list[Row]]:
    heads = fields.size("mamba_n_heads")
    inner = fields.size("mamba_expand") * hidden
    if fields.values.get("mamba_d_head", "auto") == "auto":
        fields.mark("mamba_d_head")
        width = inner // heads
    else:
        width = fields.size("mamba_d_head")
    require(heads * width == inner, "mamba_n_heads x mamba_d_head must be mamba_expand x "
            "hidden_size", (heads, width, inner))  # fmt: skip
    size = Mamba2(
        heads=heads,
        head_dim=width,
        state=fields.size("mamba_d_state"),
        groups=fields.size("mamba_n_groups"),
        kernel=fields.size("mamba_d_conv"),
        conv_bias=fields.flag("mamba_conv_bias"),
        proj_bias=fields.flag("mamba_proj_bias"),
    )
    return mamba2(hidden, size, LAYER + "mamba.")


def _pure(fields: Fields, model_type: str) -> Architecture:
    """Return a model of mixers and nothing else."""
    hidden = fields.size("hidden_size")
    mixer = _mixer2 if model_type == "mamba2" else _mixer1
    attention, rows = mixer(fields, hidden)
    fields.ignore("initialisation", "time_step_rank", "time_step_init_scheme", "time_step_scale")
    fields.ignore("unused", "norm_before_gate", "rms_norm")
    fields.only("d_model", hidden, why="hidden_size says another width")
    fields.only("ssm_cfg", {}, why="settings of the mixers are read from their own fields")
    fields.ignore("unused", "pad_vocab_size_multiple")
    fields.ignore(
        "runtime", "fused_add_norm", "use_mambapy", "use_associative_scan", "use_falcon_mambapy"
    )
    fields.ignore("epsilon", "mixer_rms_eps")
    layer = Layer(attention, NoFfn(), (*attention_norm(hidden, _PURE + "norm"), *rows))
    vocab, tie = fields.size("vocab_size", most=MAX_VOCAB), fields.flag("tie_word_embeddings")
    layers = fields.size("num_hidden_layers", "n_layer", most=MAX_LAYERS)
    fields.words("layer_types", layers, allowed=("linear_attention",), default=None)
    # a state has no longest context; files that state one mean the length of training
    context = fields.size("max_position_embeddings", default=MAX_CONTEXT, rule="no limit",
                          most=MAX_CONTEXT)  # fmt: skip
    table = vocabulary(hidden, vocab, tie=tie, embedding="backbone.embeddings.weight",
                       norm="backbone.norm_f")  # fmt: skip
    return Architecture(hidden, vocab, context, tie, [layer] * layers, table)


def _mixer1(fields: Fields, hidden: int) -> tuple[StateAttention, list[Row]]:
    # Falcon Mamba states both, and they differ: the class goes by the width
    inner = fields.size("intermediate_size", default=fields.size("expand") * hidden,
                        rule="expand x hidden_size")  # fmt: skip
    fields.only("d_inner", inner, why="intermediate_size says another width")
    if fields.values.get("time_step_rank", "auto") == "auto":
        rank = -(-hidden // 16)
        fields.record.use(fields.path + "time_step_rank", rank, "derived", "hidden_size / 16")
    else:
        rank = fields.size("time_step_rank")
    size = Mamba1(
        inner,
        fields.size("state_size"),
        fields.size("conv_kernel"),
        rank,
        conv_bias=fields.flag("use_conv_bias"),
        proj_bias=fields.flag("use_bias"),
    )
    return mamba1(hidden, size, _PURE + "mixer.")


def _mixer2(fields: Fields, hidden: int) -> tuple[StateAttention, list[Row]]:
    heads, width = fields.size("num_heads"), fields.size("head_dim")
    require(heads * width == fields.size("expand") * hidden, "num_heads x head_dim must be expand "
            "x hidden_size", (heads, width, hidden))  # fmt: skip
    fields.only("intermediate_size", heads * width, why="the mixers have another width")
    size = Mamba2(
        heads=heads,
        head_dim=width,
        state=fields.size("state_size"),
        groups=fields.size("n_groups"),
        kernel=fields.size("conv_kernel"),
        conv_bias=fields.flag("use_conv_bias"),
        proj_bias=fields.flag("use_bias"),
    )
    return mamba2(hidden, size, _PURE + "mixer.")
