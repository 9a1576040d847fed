"""Kimi-Linear and the text model of Kimi-K3: Kimi Delta Attention with latent attention in between.

Sources: ``models/kimi_linear`` of transformers 5.24; the headers of Kimi-Linear-48B-A3B and
Kimi-K3. The layer lists of ``linear_attn_config`` count from 1. Kimi-K3 adds output gates of full
rank, experts in a narrower latent space and residual attention.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerkit.readers.blocks import (
    LAYER,
    attention_norm,
    dense_mlp,
    ffn_norm,
    routed_experts,
    router,
    shared_expert,
    vocabulary,
)
from ledgerkit.readers.families._common import Frame, require
from ledgerkit.readers.families.deepseek import latent_rows, read_expert_groups, read_latent
from ledgerkit.readers.fields import MAX_CONTEXT, MAX_LAYERS, MAX_VOCAB, Fields
from ledgerkit.readers.rows import Architecture, Layer, Row, attention_row, ffn_row
from ledgerkit.spec.attention import Attention, StateAttention
from ledgerkit.spec.axes import Account
from ledgerkit.spec.feed_forward import DenseFfn, FeedForward, MoeFfn

DEFAULTS: dict[str, Mapping[str, Any]] = {
    "kimi_linear": {
        "max_position_embeddings": 1048576,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "q_lora_rank": None,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "num_shared_experts": 1,
        "num_expert_group": 1,
        "topk_group": 1,
        "first_k_dense_replace": 1,
        "moe_layer_freq": 1,
        "num_nextn_predict_layers": 0,
        "mla_use_output_gate": False,
        "routed_expert_hidden_size": None,
        "latent_moe_use_norm": False,
        "attn_res_block_size": None,
        "linear_head_dim": 128,
        "linear_num_heads": 32,
        "linear_conv_kernel_dim": 4,
    }
}
AT = LAYER + "self_attn."
MOE = LAYER + "block_sparse_moe."


def read(fields: Fields, _model_type: str) -> Architecture:
    """Read a Kimi-Linear decoder."""
    frame = Frame(
        hidden=fields.size("hidden_size"),
        layers=fields.size("num_hidden_layers", most=MAX_LAYERS),
        vocab=fields.size("vocab_size", most=MAX_VOCAB),
        context=fields.size("max_position_embeddings", "model_max_length", most=MAX_CONTEXT),
        tie=fields.flag("tie_word_embeddings"),
    )
    hidden = frame.hidden
    fields.only("tie_word_embeddings", False, why="the class has a head of its own")
    fields.only("num_nextn_predict_layers", 0, why="MTP blocks of this model type are not known")
    fields.ignore("scalar", "activation_situ_beta", "activation_situ_linear_beta")
    linear, full_layers = _linear(fields, frame)
    residual = _residual_rows(fields, hidden)
    latent = read_latent(fields)
    mixers: dict[bool, tuple[Attention, list[Row]]] = {
        True: (
            latent,
            [*latent_rows(fields, frame, latent), *_output_gate(fields, hidden, latent)],
        ),
        False: (linear[0], [*attention_norm(hidden), *linear[1]]),
    }
    ffns: dict[bool, tuple[FeedForward, list[Row]]] = {
        False: _dense(fields, hidden),
        True: _moe(fields, hidden),
    }
    sparse = _sparse_layers(fields, frame)
    pairs = list(zip(full_layers, sparse, strict=True))
    layers = {
        (full, flag): Layer(
            mixers[full][0], ffns[flag][0], (*mixers[full][1], *ffns[flag][1], *residual)
        )
        for full, flag in dict.fromkeys(pairs)
    }
    table = vocabulary(hidden, frame.vocab, tie=frame.tie)
    if residual:
        table += _residual_norm(hidden, "model.output_attn_res")
    return frame.architecture([layers[pair] for pair in pairs], table)


def _linear(fields: Fields, frame: Frame) -> tuple[tuple[StateAttention, list[Row]], list[bool]]:
    """Return the delta-attention layer, and which layers attend fully instead."""
    part = fields.section("linear_attn_config")
    types = fields.words(
        "layer_types",
        frame.layers,
        allowed=("linear_attention", "full_attention"),
        default=None,
    )
    if part is None:
        heads, width = fields.size("linear_num_heads"), fields.size("linear_head_dim")
        layer = _delta_attention(
            frame.hidden, heads, width, fields.size("linear_conv_kernel_dim"), full_gate=False
        )
        if types is None:
            every = 4
            return layer, [index > 0 and index % every == 0 for index in range(frame.layers)]
        return layer, [kind == "full_attention" for kind in types]
    fields.ignore("duplicate", "linear_num_heads", "linear_head_dim", "linear_conv_kernel_dim")
    part.ignore("scalar", "gate_lower_bound")
    layer = _delta_attention(
        frame.hidden,
        part.size("num_heads"),
        part.size("head_dim"),
        part.size("short_conv_kernel_size"),
        full_gate=part.flag("use_full_rank_gate", default=False),
    )
    full = part.integers("full_attn_layers", least=1) or []
    kda = part.integers("kda_layers", least=1) or []
    part.finish()
    require(
        sorted(full + kda) == list(range(1, frame.layers + 1)),
        "full_attn_layers and kda_layers must name each layer once, counted from 1",
        {"full_attn_layers": full, "kda_layers": kda},
    )
    flags = [number in set(full) for number in range(1, frame.layers + 1)]
    require(
        types is None or flags == [kind == "full_attention" for kind in types],
        "layer_types and linear_attn_config contradict each other",
        types,
    )
    return layer, flags


def _delta_attention(
    hidden: int, heads: int, width: int, kernel: int, *, full_gate: bool
) -> tuple[StateAttention, list[Row]]:
    inner = heads * width
    attention = StateAttention(
        variant="kda",
        num_heads=heads,
        key_dim=width,
        value_dim=width,
        num_groups=heads,
        conv_channels=3 * inner,
        conv_kernel=kernel,
    )
    exact = "fp32" if full_gate else None  # Kimi-K3 stores convolutions and norm in fp32
    state = {"use": "vector", "account": "state"}
    gate = (
        [attention_row(AT + "g_proj.weight", inner, hidden)]
        if full_gate
        else [
            attention_row(AT + "g_a_proj.weight", width, hidden, split="none"),
            attention_row(AT + "g_b_proj.weight", inner, width),
        ]
    )
    rows = [
        *(attention_row(f"{AT}{part}_proj.weight", inner, hidden) for part in "qkv"),
        *(
            attention_row(f"{AT}{part}_conv1d.weight", inner, 1, kernel, dtype=exact, **state)  # type: ignore[arg-type]
            for part in "qkv"
        ),
        # one value per head; the Kimi-K3 file pads 96 of them to 128, and padding is no parameter
        attention_row(AT + "A_log", heads, dtype="fp32", **state),  # type: ignore[arg-type]
        attention_row(AT + "dt_bias", inner, dtype="fp32", **state),  # type: ignore[arg-type]
        attention_row(AT + "f_a_proj.weight", width, hidden, split="none"),
        attention_row(AT + "f_b_proj.weight", inner, width),
        attention_row(AT + "b_proj.weight", heads, hidden),
        *gate,
        attention_row(AT + "o_norm.weight", width, split="none", dtype=exact, **state),  # type: ignore[arg-type]
        attention_row(AT + "o_proj.weight", hidden, inner),
    ]
    return attention, rows


def _output_gate(fields: Fields, hidden: int, latent: Any) -> list[Row]:
    if not fields.flag("mla_use_output_gate"):
        return []
    width = latent.num_attention_heads * latent.v_head_dim
    return [attention_row(AT + "g_proj.weight", width, hidden)]


def _residual_norm(hidden: int, at: str) -> list[Row]:
    return [
        ffn_row(at + "_norm.weight", hidden, account="residual", use="vector"),
        ffn_row(at + "_proj.weight", 1, hidden, account="residual", quantizable=False),
    ]


def _residual_rows(fields: Fields, hidden: int) -> list[Row]:
    """Return the norms and scores with which a layer of Kimi-K3 attends to earlier residuals."""
    if fields.optional("attn_res_block_size") is None:
        return []
    return [
        row
        for name in ("self_attention_res", "mlp_res")
        for row in _residual_norm(hidden, LAYER + name)
    ]


def _dense(fields: Fields, hidden: int) -> tuple[DenseFfn, list[Row]]:
    width = fields.size("intermediate_size")
    return DenseFfn(intermediate_size=width), [*ffn_norm(hidden), *dense_mlp(hidden, width)]


def _moe(fields: Fields, hidden: int) -> tuple[MoeFfn, list[Row]]:
    experts = fields.size("num_experts", "n_routed_experts", "num_local_experts")
    width = fields.size("moe_intermediate_size")
    shared = fields.count("num_shared_experts", "n_shared_experts") * width
    latent = fields.optional("routed_expert_hidden_size")
    groups, chosen = read_expert_groups(fields, experts)
    moe = MoeFfn(
        num_experts=experts,
        num_experts_per_tok=fields.size("num_experts_per_token", "num_experts_per_tok"),
        moe_intermediate_size=width,
        expert_hidden_size=latent,
        shared_intermediate_size=shared,
        n_group=groups,
        topk_group=chosen,
    )
    rows = [
        *ffn_norm(hidden),
        *router(hidden, experts, name=MOE + "gate.weight"),
        ffn_row(
            MOE + "gate.e_score_correction_bias",
            experts,
            account="router",
            use="buffer",
            dtype="fp32" if latent else None,  # Kimi-Linear stores it in the plain dtype
        ),
        *routed_experts(
            latent or hidden, width, experts, at=MOE + "experts.{expert}.", names=("w1", "w3", "w2")
        ),
    ]
    if latent:
        rows += _latent_space(hidden, latent, norm=fields.flag("latent_moe_use_norm"))
    if shared:
        rows += shared_expert(hidden, shared, at=MOE + "shared_experts.")
    return moe, rows


def _latent_space(hidden: int, latent: int, *, norm: bool) -> list[Row]:
    """Return the projections into and out of the space in which the experts live."""
    account: Account = "routed_experts"
    rows = [
        ffn_row(MOE + "routed_expert_down_proj.weight", latent, hidden, account=account,
                quantizable=False),
        ffn_row(MOE + "routed_expert_up_proj.weight", hidden, latent, account=account,
                quantizable=False),
    ]  # fmt: skip
    if norm:
        rows.append(
            ffn_row(MOE + "routed_expert_norm.weight", latent, account=account, use="vector")
        )
    return rows


def _sparse_layers(fields: Fields, frame: Frame) -> list[bool]:
    types = fields.words("mlp_layer_types", frame.layers, allowed=("dense", "sparse"), default=None)
    first = fields.count("first_k_dense_replace", most=MAX_LAYERS)
    every = fields.size("moe_layer_freq", most=MAX_LAYERS)
    if types is not None:
        return [kind == "sparse" for kind in types]
    return [index >= first and index % every == 0 for index in range(frame.layers)]
