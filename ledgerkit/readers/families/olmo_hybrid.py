"""OLMo Hybrid: gated DeltaNet layers, and a full layer of OLMo 2 for every three of them.

Source: ``models/olmo_hybrid`` of transformers 5.24. Norms stand behind the blocks of full layers
and before those of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerkit.readers.blocks import LAYER, attention_norm, dense_mlp, ffn_norm, gqa_projections
from ledgerkit.readers.families._common import (
    Frame,
    read_frame,
    read_head_dim,
    read_heads,
    require,
)
from ledgerkit.readers.fields import Fields
from ledgerkit.readers.rows import Architecture, Layer, Row, attention_row
from ledgerkit.spec.attention import SoftmaxAttention, StateAttention
from ledgerkit.spec.feed_forward import DenseFfn

DEFAULTS: dict[str, Mapping[str, Any]] = {
    "olmo_hybrid": {
        "max_position_embeddings": 65536,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "linear_conv_kernel_dim": 4,
    }
}


def read(fields: Fields, _model_type: str) -> Architecture:
    """Read an OLMo Hybrid decoder."""
    frame = read_frame(fields)
    hidden = frame.hidden
    fields.ignore("initialisation", "linear_a_log_min", "linear_a_log_max", "linear_dt_min",
                  "linear_dt_max", "linear_dt_init_floor")  # fmt: skip
    fields.ignore("scalar", "linear_allow_neg_eigval")
    heads, kv_heads = read_heads(fields)
    intermediate = fields.size("intermediate_size")
    ffn, mlp = DenseFfn(intermediate_size=intermediate), dense_mlp(hidden, intermediate)
    full, full_rows = _attention(fields, hidden, heads, kv_heads)
    linear, linear_rows = _delta_net(fields, hidden, heads)
    layers = {
        True: Layer(
            full,
            ffn,
            (
                *attention_norm(hidden, LAYER + "post_attention_layernorm"),
                *full_rows,
                *ffn_norm(hidden, LAYER + "post_feedforward_layernorm"),
                *mlp,
            ),
        ),
        False: Layer(linear, ffn, (*attention_norm(hidden), *linear_rows, *ffn_norm(hidden), *mlp)),
    }
    return frame.architecture([layers[flag] for flag in _full_layers(fields, frame)])


def _full_layers(fields: Fields, frame: Frame) -> list[bool]:
    """Return which layers attend to everything: listed, or every fourth and at least the last."""
    kinds = fields.words("layer_types", frame.layers, default=None,
                         allowed=("linear_attention", "full_attention"))  # fmt: skip
    if kinds is not None:
        return [kind == "full_attention" for kind in kinds]
    full = [index % 4 == 3 for index in range(frame.layers)]
    return full if any(full) else [*full[:-1], True]


def _attention(
    fields: Fields, hidden: int, heads: int, kv_heads: int
) -> tuple[SoftmaxAttention, list[Row]]:
    head_dim = read_head_dim(fields, hidden, heads)
    bias = fields.flag("attention_bias")
    attention = SoftmaxAttention(num_attention_heads=heads, num_key_value_heads=kv_heads,
                                 head_dim=head_dim, v_head_dim=head_dim, qk_norm=True)  # fmt: skip
    return attention, gqa_projections(
        hidden, heads, kv_heads, head_dim, qkv_bias=bias, o_bias=bias,
        qk_norm=(heads * head_dim, kv_heads * head_dim),
    )  # fmt: skip


def _delta_net(fields: Fields, hidden: int, heads: int) -> tuple[StateAttention, list[Row]]:
    key_heads = fields.size("linear_num_key_heads", default=heads, rule="num_attention_heads")
    value_heads = fields.size("linear_num_value_heads", default=heads, rule="num_attention_heads")
    key_dim = fields.size("linear_key_head_dim", default=3 * hidden // (4 * key_heads),
                          rule="3/4 hidden_size / linear_num_key_heads")  # fmt: skip
    value_dim = fields.size("linear_value_head_dim", default=2 * key_dim,
                            rule="2 x linear_key_head_dim")  # fmt: skip
    kernel = fields.size("linear_conv_kernel_dim")
    require(value_heads % key_heads == 0, "linear_num_value_heads must be a multiple of "
            "linear_num_key_heads", (value_heads, key_heads))  # fmt: skip
    keys, values = key_heads * key_dim, value_heads * value_dim
    channels = 2 * keys + values
    attention = StateAttention(variant="gated_delta_net", num_heads=value_heads, key_dim=key_dim,
                               value_dim=value_dim, num_groups=key_heads, conv_channels=channels,
                               conv_kernel=kernel)  # fmt: skip
    at = LAYER + "linear_attn."
    inputs = {"q_proj": keys, "k_proj": keys, "v_proj": values, "a_proj": value_heads,
              "b_proj": value_heads, "g_proj": values}  # fmt: skip
    kept: dict[str, Any] = {"use": "vector", "account": "state"}
    rows = [
        *(attention_row(f"{at}{name}.weight", width, hidden) for name, width in inputs.items()),
        attention_row(at + "conv1d.weight", channels, 1, kernel, **kept),
        attention_row(at + "A_log", value_heads, **kept),
        attention_row(at + "dt_bias", value_heads, **kept),
        attention_row(at + "o_norm.weight", value_dim, split="none", **kept),
        attention_row(at + "o_proj.weight", hidden, values),
    ]
    return attention, rows
