"""Qwen3-Next and Qwen3.5/3.6: gated DeltaNet layers with a gated attention layer in between.

Sources: ``models/qwen3_next``, ``qwen3_5`` and ``qwen3_5_moe`` of transformers 5.24; the headers of
Qwen3-Next-80B-A3B and Qwen3.5-35B-A3B. The query projection is twice as wide: its second half is an
output gate. The recurrent state is kept in fp32.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerkit.readers.blocks import (
    LAYER,
    attention_norm,
    ffn_norm,
    gqa_projections,
)
from ledgerkit.readers.families._common import (
    Frame,
    draft_row,
    read_frame,
    read_head_dim,
    read_heads,
    require,
    state_dtype,
)
from ledgerkit.readers.families.qwen_moe import BRANCHES, read_ffn, sparse_layers
from ledgerkit.readers.fields import MAX_LAYERS, Fields
from ledgerkit.readers.rows import Architecture, Layer, MtpPlan, Row, attention_row
from ledgerkit.spec.attention import Attention, SoftmaxAttention, StateAttention

_COMMON = {
    "num_key_value_heads": 2,
    "head_dim": 256,
    "max_position_embeddings": 32768,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "attn_output_gate": True,
    "full_attention_interval": 4,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "mamba_ssm_dtype": "float32",
}
_MOE = {
    "decoder_sparse_step": 1,
    "mlp_only_layers": None,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
}
DEFAULTS: dict[str, Mapping[str, Any]] = {
    "qwen3_next": {
        **_COMMON,
        **_MOE,
        "num_experts": 512,
        "num_experts_per_tok": 10,
        # no file states it; the published checkpoints carry one block under mtp.
        "mtp_num_hidden_layers": 1,
    },
    "qwen3_5_text": {**_COMMON, "num_key_value_heads": 4, "mtp_num_hidden_layers": 0},
    "qwen3_5_moe_text": {
        **_COMMON,
        **_MOE,
        "num_experts": 256,
        "num_experts_per_tok": 8,
        "mtp_num_hidden_layers": 0,
    },
}


def read(fields: Fields, model_type: str) -> Architecture:
    """Read a Qwen hybrid."""
    frame = read_frame(fields)
    hidden = frame.hidden
    fields.only("use_sliding_window", False, why="this model type has no windows")
    types = fields.words(
        "layer_types",
        frame.layers,
        allowed=("linear_attention", "full_attention"),
        default=None,
    )
    every = fields.size("full_attention_interval", most=MAX_LAYERS)
    if types is None:
        types = [
            "full_attention" if (index + 1) % every == 0 else "linear_attention"
            for index in range(frame.layers)
        ]
    mixers: dict[str, tuple[Attention, list[Row]]] = {
        "linear_attention": delta_net(fields, hidden, fused=model_type == "qwen3_next"),
        "full_attention": gated_attention(fields, hidden),
    }
    dense = model_type == "qwen3_5_text"
    if dense:
        fields.ignore("unused", "mlp_only_layers", "decoder_sparse_step")
    flags = [False] * frame.layers if dense else sparse_layers(fields, frame)
    ffns = {flag: read_ffn(fields, hidden, model_type, sparse=flag) for flag in set(flags)}
    fields.ignore("unused", *BRANCHES)

    def layer(kind: str, *, flag: bool) -> Layer:
        attention, rows = mixers[kind]
        ffn, ffn_rows = ffns[flag]
        return Layer(attention, ffn, (*attention_norm(hidden), *rows, *ffn_norm(hidden), *ffn_rows))

    pairs = list(zip(types, flags, strict=True))
    layers = {pair: layer(pair[0], flag=pair[1]) for pair in dict.fromkeys(pairs)}
    mtp = _mtp(fields, frame, layer("full_attention", flag=flags[-1]), model_type)
    return frame.architecture([layers[pair] for pair in pairs], mtp=mtp)


def gated_attention(fields: Fields, hidden: int) -> tuple[SoftmaxAttention, list[Row]]:
    """Return grouped-query attention whose query projection also yields an output gate."""
    heads, kv_heads = read_heads(fields)
    head_dim = read_head_dim(fields, hidden, heads)
    bias = fields.flag("attention_bias")
    gate = fields.flag("attn_output_gate")
    attention = SoftmaxAttention(
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
        output_gate=gate,
        qk_norm=True,
    )
    rows = gqa_projections(
        hidden,
        heads,
        kv_heads,
        head_dim,
        qkv_bias=bias,
        o_bias=bias,
        qk_norm=head_dim,
        q_factor=2 if gate else 1,
    )
    return attention, rows


def delta_net(fields: Fields, hidden: int, *, fused: bool) -> tuple[StateAttention, list[Row]]:
    """Return a gated DeltaNet layer: a short convolution over q, k, v, then a state per head."""
    key_heads = fields.size("linear_num_key_heads")
    value_heads = fields.size("linear_num_value_heads")
    key_dim = fields.size("linear_key_head_dim")
    value_dim = fields.size("linear_value_head_dim")
    kernel = fields.size("linear_conv_kernel_dim")
    require(
        value_heads % key_heads == 0,
        "linear_num_value_heads must be a multiple of linear_num_key_heads",
        (value_heads, key_heads),
    )
    keys, values = key_heads * key_dim, value_heads * value_dim
    channels = 2 * keys + values
    attention = StateAttention(
        variant="gated_delta_net",
        num_heads=value_heads,
        key_dim=key_dim,
        value_dim=value_dim,
        num_groups=key_heads,
        conv_channels=channels,
        conv_kernel=kernel,
        state_dtype=state_dtype(fields, "mamba_ssm_dtype"),
    )
    at = LAYER + "linear_attn."
    inputs = (
        {"in_proj_qkvz": channels + values, "in_proj_ba": 2 * value_heads}
        if fused
        else {
            "in_proj_qkv": channels,
            "in_proj_z": values,
            "in_proj_b": value_heads,
            "in_proj_a": value_heads,
        }
    )
    exact = None if fused else "fp32"  # how the Qwen3.5 checkpoints store them
    state = {"use": "vector", "account": "state"}
    rows = [
        *(attention_row(f"{at}{name}.weight", width, hidden) for name, width in inputs.items()),
        attention_row(at + "conv1d.weight", channels, 1, kernel, **state),  # type: ignore[arg-type]
        attention_row(at + "A_log", value_heads, dtype=exact, **state),  # type: ignore[arg-type]
        attention_row(at + "dt_bias", value_heads, **state),  # type: ignore[arg-type]
        attention_row(at + "norm.weight", value_dim, split="none", dtype=exact, **state),  # type: ignore[arg-type]
        attention_row(at + "out_proj.weight", hidden, values),
    ]
    return attention, rows


def _mtp(fields: Fields, frame: Frame, layer: Layer, model_type: str) -> MtpPlan | None:
    """Return the MTP blocks: full attention layers behind two norms and one projection."""
    names = ("mtp_num_hidden_layers", "num_nextn_predict_layers")
    blocks = fields.count(*names, most=MAX_LAYERS)
    fields.only("mtp_use_dedicated_embeddings", False, why="embeddings of the MTP block are shared")
    if not blocks:
        return None
    require(blocks == 1, "checkpoints of this model type hold one MTP block", blocks)
    if not any(name in fields.values for name in names):
        fields.record.assume("mtp_unstated", family="Qwen3-Next", blocks=blocks)
    rows = tuple(row._replace(name=row.name.replace("model.", "mtp.", 1)) for row in layer.rows)
    if model_type == "qwen3_5_moe_text":  # here each expert has tensors of its own
        rows = tuple(part for row in rows for part in _apart(row))
    extra = (
        draft_row("mtp.fc.weight", frame.hidden, 2 * frame.hidden),
        *(
            draft_row(f"mtp.{name}.weight", frame.hidden, use="vector")
            for name in ("norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden")
        ),
    )
    return MtpPlan(blocks, Layer(layer.attention, layer.ffn, rows), 0, extra)


def _apart(row: Row) -> tuple[Row, ...]:
    """Take a fused expert tensor apart."""
    at = row.name.rpartition("experts.")[0] + "experts.{expert}."
    if row.name.endswith("experts.gate_up_proj"):
        half = (row.shape[0] // 2, row.shape[1])
        return tuple(
            row._replace(name=f"{at}{name}_proj.weight", shape=half) for name in ("gate", "up")
        )
    if row.name.endswith("experts.down_proj"):
        return (row._replace(name=at + "down_proj.weight"),)
    return (row,)
