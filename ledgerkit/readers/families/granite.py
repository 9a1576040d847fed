"""Granite mixtures of experts and hybrids: Mamba-2 and attention layers, experts, a shared MLP.

Sources: ``models/granitemoehybrid``, ``granitemoeshared``, ``granitemoe`` and ``granitemoe_swa``
(windows, and a sink for each head) of transformers 5.24.
Experts are as wide as ``intermediate_size``; without experts the shared MLP is the only one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerkit.readers.blocks import LAYER, attention_norm, ffn_norm, gqa_projections
from ledgerkit.readers.families._common import (
    Frame,
    read_frame,
    read_head_dim,
    read_heads,
    require,
    window_flags,
)
from ledgerkit.readers.families._mamba import Mamba2, mamba2
from ledgerkit.readers.fields import Fields
from ledgerkit.readers.rows import Architecture, Layer, Row, attention_row, ffn_row
from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.axes import Account
from ledgerkit.spec.feed_forward import DenseFfn, MoeFfn

_COMMON = {
    "max_position_embeddings": 2048,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
}
DEFAULTS: dict[str, Mapping[str, Any]] = {
    "granitemoe": _COMMON,
    "granitemoeshared": {**_COMMON, "shared_intermediate_size": 0},
    "granitemoe_swa": {**_COMMON, "shared_intermediate_size": 0, "sliding_window": 128},
    "granitemoehybrid": {
        **_COMMON,
        "shared_intermediate_size": 1024,
        "layer_types": None,
        "mamba_n_heads": 128,
        "mamba_n_groups": 1,
        "mamba_d_state": 256,
        "mamba_d_head": "auto",
        "mamba_d_conv": 4,
        "mamba_expand": 2,
        "mamba_conv_bias": True,
        "mamba_proj_bias": False,
    },
}
_MAMBA = tuple(f"mamba_{name}" for name in ("n_heads", "n_groups", "d_state", "d_head", "d_conv",
               "expand", "conv_bias", "proj_bias"))  # fmt: skip
_WORDS = ("mamba", "linear_attention", "attention", "full_attention")


def read(fields: Fields, model_type: str) -> Architecture:
    """Read a Granite mixture of experts."""
    frame = read_frame(fields)
    hidden = frame.hidden
    heads, kv_heads = read_heads(fields)
    head_dim = read_head_dim(fields, hidden, heads)
    bias = fields.flag("attention_bias")
    fields.only("normalization_function", "rmsnorm", why="only RMS norms are implemented")
    fields.ignore("rotary", "position_embedding_type")
    fields.ignore("runtime", "mamba_chunk_size", "init_method")
    softmax = SoftmaxAttention(
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
    )
    rows = gqa_projections(hidden, heads, kv_heads, head_dim, qkv_bias=bias, o_bias=bias)
    mixers: dict[bool, tuple[Any, list[Row]]] = {True: (softmax, rows)}
    attends = [True] * frame.layers
    if model_type == "granitemoe_swa":
        rows.append(attention_row(LAYER + "self_attn.sinks", heads, use="vector"))
        window, attends = _full_layers(fields, frame)
        mixers[False] = (softmax.model_copy(update={"window": window}), rows)
    if model_type == "granitemoehybrid":
        attends = _attention_layers(fields, frame)
        if not all(attends):
            mixers[False] = mamba2(hidden, _mamba_size(fields, hidden), LAYER + "mamba.")
        fields.ignore("unused", *_MAMBA)
    shared = 0 if model_type == "granitemoe" else fields.count("shared_intermediate_size")
    ffn, ffn_rows = _ffn(fields, hidden, shared)
    layers = {
        full: Layer(attention, ffn, (*attention_norm(hidden), *mixer_rows, *ffn_rows))
        for full, (attention, mixer_rows) in mixers.items()
    }
    return frame.architecture([layers[full] for full in attends])


def _attention_layers(fields: Fields, frame: Frame) -> list[bool]:
    name = "layers_block_type" if fields.has("layers_block_type") else "layer_types"
    types = fields.words(name, frame.layers, allowed=_WORDS)
    fields.mark("layers_block_type", "layer_types")
    return [kind in ("attention", "full_attention") for kind in types or ["mamba"] * frame.layers]


def _full_layers(fields: Fields, frame: Frame) -> tuple[int | None, list[bool]]:
    """Return the window, and which layers have none: listed, or every fourth from the first on."""
    fields.ignore("rotary", "layer_rope_theta")
    window = fields.optional("sliding_window")
    types = fields.words("layer_types", frame.layers, default=None,
                         allowed=("full_attention", "sliding_attention"))  # fmt: skip
    if types is None:
        return window, [index % 4 == 0 for index in range(frame.layers)]
    return window, [not flag for flag in window_flags(types)]


def _mamba_size(fields: Fields, hidden: int) -> Mamba2:
    heads = fields.size("mamba_n_heads")
    inner = fields.size("mamba_expand") * hidden
    if fields.values.get("mamba_d_head", "auto") == "auto":
        fields.mark("mamba_d_head")
        width = inner // heads
    else:
        width = fields.size("mamba_d_head")
    require(
        heads * width == inner,
        "mamba_n_heads x mamba_d_head must be mamba_expand x hidden_size",
        (heads, width, inner),
    )
    return Mamba2(
        heads=heads,
        head_dim=width,
        state=fields.size("mamba_d_state"),
        groups=fields.size("mamba_n_groups"),
        kernel=fields.size("mamba_d_conv"),
        conv_bias=fields.flag("mamba_conv_bias"),
        proj_bias=fields.flag("mamba_proj_bias"),
    )


def _ffn(fields: Fields, hidden: int, shared: int) -> tuple[DenseFfn | MoeFfn, list[Row]]:
    experts = fields.count("num_local_experts", "num_experts")
    norm = ffn_norm(hidden)
    if not experts:
        require(shared > 0, "without experts, shared_intermediate_size must be above 0", shared)
        fields.ignore("unused", "intermediate_size", "num_experts_per_tok")
        return DenseFfn(intermediate_size=shared), [*norm, *_shared_mlp(hidden, shared, "dense")]
    width = fields.size("intermediate_size")
    at = LAYER + "block_sparse_moe."
    rows = [
        *norm,
        ffn_row(at + "router.layer.weight", experts, hidden, account="router", quantizable=False),
        ffn_row(at + "input_linear.weight", 2 * width, hidden, account="routed_experts",
                split="experts", copies=experts, routed=True),
        ffn_row(at + "output_linear.weight", hidden, width, account="routed_experts",
                split="experts", copies=experts, routed=True),
        *(_shared_mlp(hidden, shared, "shared_experts") if shared else ()),
    ]  # fmt: skip
    moe = MoeFfn(
        num_experts=experts,
        num_experts_per_tok=fields.size("num_experts_per_tok"),
        moe_intermediate_size=width,
        shared_intermediate_size=shared,
    )
    return moe, rows


def _shared_mlp(hidden: int, width: int, account: Account) -> list[Row]:
    at = LAYER + "shared_mlp."
    return [
        ffn_row(at + "input_linear.weight", 2 * width, hidden, account=account, split="tp"),
        ffn_row(at + "output_linear.weight", hidden, width, account=account, split="tp"),
    ]
