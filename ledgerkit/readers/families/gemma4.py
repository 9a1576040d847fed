"""Gemma 4 text models: window layers, wider full layers, experts beside a dense MLP, shared caches.

Sources: ``models/gemma4`` and ``gemma4_unified`` of transformers 5.24; the headers of
gemma-4-31B-it.

Full layers have heads of ``global_head_dim``; with ``attention_k_eq_v`` they have no value
projection, and the cache still holds keys (rotated) and values (not rotated). The last
``num_kv_shared_layers`` layers read the cache of the last layer of their kind before them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ledgerkit.readers.blocks import (
    LAYER,
    attention_norm,
    dense_mlp,
    ffn_norm,
    gqa_projections,
    vocabulary,
)
from ledgerkit.readers.families._common import Frame, read_frame, require
from ledgerkit.readers.fields import MAX_LAYERS, MAX_VOCAB, Fields
from ledgerkit.readers.rows import Architecture, Layer, Row, ffn_row
from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.axes import Account
from ledgerkit.spec.feed_forward import DenseFfn, MoeFfn

_DEFAULTS = {
    "vocab_size": 262144,
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 30,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": True,
    "attention_bias": False,
    "sliding_window": 512,
    "layer_types": None,
    "hidden_size_per_layer_input": 256,
    "vocab_size_per_layer_input": 262144,
    "num_global_key_value_heads": None,
    "global_head_dim": 512,
    "attention_k_eq_v": False,
    "num_kv_shared_layers": 0,
    "enable_moe_block": False,
    "use_double_wide_mlp": False,
    "num_experts": None,
    "top_k_experts": None,
    "moe_intermediate_size": None,
}
DEFAULTS: dict[str, Mapping[str, Any]] = {
    "gemma4_text": _DEFAULTS,
    "gemma4_unified_text": {
        **_DEFAULTS,
        "max_position_embeddings": 262144,
        "sliding_window": 1024,
        "hidden_size_per_layer_input": 0,
    },
}
_EVERY = 6


class _Kind(NamedTuple):
    """What tells one layer from another."""

    full: bool
    shared: bool
    kv_heads: int
    head_dim: int


def read(fields: Fields, model_type: str) -> Architecture:
    """Read a Gemma 4 text model."""
    frame = read_frame(fields)
    hidden = frame.hidden
    types = _layer_types(fields, frame)
    shared = fields.count("num_kv_shared_layers", most=MAX_LAYERS)
    first_shared = frame.layers - shared if shared else frame.layers
    require(first_shared > 0, "num_kv_shared_layers must leave layers to share from", shared)
    for kind in set(types[first_shared:]):
        require(
            kind in types[:first_shared],
            f"no {kind} layer before the sharing ones has a cache to share",
            shared,
        )
    if model_type == "gemma4_unified_text":
        fields.only("hidden_size_per_layer_input", 0, why="this class has no such embedding")
        fields.only("enable_moe_block", False, why="this class has no experts")
    per_layer = fields.count("hidden_size_per_layer_input")
    plan = _Plan(fields, frame, per_layer)
    sizes = plan.sizes(fields, types)
    kinds = [_Kind(kind == "full_attention", index >= first_shared, *sizes[index])
             for index, kind in enumerate(types)]  # fmt: skip
    layers = {kind: plan.layer(kind) for kind in dict.fromkeys(kinds)}
    tables = per_layer_tables(fields, frame, per_layer) if per_layer else []
    if not per_layer:
        fields.ignore("unused", "vocab_size_per_layer_input")
    fields.only("use_bidirectional_attention", "vision", why="attention in both directions has "
                "no decode phase")  # fmt: skip
    return frame.architecture(
        [layers[kind] for kind in kinds],
        table=[*vocabulary(hidden, frame.vocab, tie=frame.tie), *tables],
    )


def _layer_types(fields: Fields, frame: Frame) -> list[str]:
    """Return the kinds of layers; the class default has every sixth one full, and the last."""
    types = fields.words("layer_types", frame.layers,
                         allowed=("full_attention", "sliding_attention"))  # fmt: skip
    if types is None:
        types = ["full_attention" if (index + 1) % _EVERY == 0 else "sliding_attention"
                 for index in range(frame.layers)]  # fmt: skip
        fields.record.use(fields.path + "layer_types", "5 sliding, 1 full", "derived",
                          "the class default")  # fmt: skip
    if types[-1] != "full_attention":  # the class does the same
        fields.record.assume("last_full")
        types[-1] = "full_attention"
    return types


def _per_layer_config(
    fields: Fields, layers: int, usual: tuple[int, int]
) -> dict[int, tuple[int, int]] | None:
    """Return the layers whose sizes are stated one by one, as transformers 5 saves them."""
    part = fields.section("per_layer_config")
    if part is None:
        return None
    found = {}
    for name in list(part.values):
        require(str(name).isdigit() and int(name) < layers,
                "per_layer_config must name layers by their number", name)  # fmt: skip
        own = part.section(name)
        if own is None:
            continue
        found[int(name)] = (
            own.size("num_key_value_heads", default=usual[0], rule="as other layers"),
            own.size("head_dim", default=usual[1], rule="as other layers"),
        )
        own.finish()
    return found


class _Plan:
    """The sizes of a layer, and the layer of each kind."""

    def __init__(self, fields: Fields, frame: Frame, per_layer: int) -> None:
        self.hidden = frame.hidden
        self.per_layer = per_layer
        self.bias = fields.flag("attention_bias")
        self.window = fields.optional("sliding_window")
        self.heads = fields.size("num_attention_heads")
        self.local = (fields.size("num_key_value_heads"), fields.size("head_dim"))
        self.k_eq_v = fields.flag("attention_k_eq_v")
        self.intermediate = fields.size("intermediate_size")
        self.double = fields.flag("use_double_wide_mlp")
        self.moe = None
        if fields.flag("enable_moe_block"):
            self.moe = (
                fields.size("num_experts"),
                fields.size("top_k_experts"),
                fields.size("moe_intermediate_size", "expert_intermediate_size"),
            )
        else:
            fields.ignore("unused", "num_experts", "top_k_experts", "moe_intermediate_size",
                          "expert_intermediate_size")  # fmt: skip

    def sizes(self, fields: Fields, types: list[str]) -> list[tuple[int, int]]:
        """Return key/value heads and head size of each layer."""
        overrides = _per_layer_config(fields, len(types), self.local)
        if overrides is None:
            kv_heads, head_dim = self.local
            wide = fields.size("global_head_dim", default=head_dim, rule="head_dim")
            few = fields.size("num_global_key_value_heads", default=kv_heads,
                              rule="num_key_value_heads")  # fmt: skip
            # the class uses the number of global heads only together with K = V
            full = (few if self.k_eq_v else kv_heads, wide)
            found = [full if kind == "full_attention" else self.local for kind in types]
        else:
            fields.ignore("duplicate", "global_head_dim", "num_global_key_value_heads")
            found = [overrides.get(index, self.local) for index in range(len(types))]
        for count, _ in set(found):
            require(self.heads % count == 0, "num_attention_heads must be a multiple of the "
                    "key/value heads", (self.heads, count))  # fmt: skip
        return found

    def layer(self, kind: _Kind) -> Layer:
        """Return the layer of one kind."""
        kv_heads, head_dim = kind.kv_heads, kind.head_dim
        attention = SoftmaxAttention(
            num_attention_heads=self.heads, num_key_value_heads=kv_heads, head_dim=head_dim,
            v_head_dim=head_dim, window=None if kind.full else self.window,
            stores_kv=not kind.shared, qk_norm=True,
        )  # fmt: skip
        wide = self.intermediate * (2 if self.double and kind.shared else 1)
        ffn, ffn_rows = self._ffn(wide)
        rows = (
            *attention_norm(self.hidden),
            *attention_norm(self.hidden, LAYER + "post_attention_layernorm"),
            *gqa_projections(
                self.hidden, self.heads, kv_heads, head_dim, qkv_bias=self.bias, o_bias=self.bias,
                qk_norm=head_dim, keys=not kind.shared, value=not (kind.full and self.k_eq_v),
            ),
            *ffn_rows,
            *(per_layer_rows(self.hidden, self.per_layer) if self.per_layer else ()),
            ffn_row(LAYER + "layer_scalar", 1, account="residual", use="buffer"),
        )  # fmt: skip
        return Layer(attention, ffn, rows)

    def _ffn(self, wide: int) -> tuple[DenseFfn | MoeFfn, list[Row]]:
        hidden = self.hidden
        rows = [
            *ffn_norm(hidden, LAYER + "pre_feedforward_layernorm"),
            *ffn_norm(hidden, LAYER + "post_feedforward_layernorm"),
            *dense_mlp(hidden, wide),
        ]
        if self.moe is None:
            return DenseFfn(intermediate_size=wide), rows
        experts, topk, width = self.moe
        at = LAYER + "experts."
        rows += [
            *(row for name in ("post_feedforward_layernorm_1", "post_feedforward_layernorm_2",
                               "pre_feedforward_layernorm_2")
              for row in ffn_norm(hidden, LAYER + name)),
            ffn_row(LAYER + "router.proj.weight", experts, hidden, account="router",
                    quantizable=False),
            ffn_row(LAYER + "router.scale", hidden, account="router", use="vector"),
            ffn_row(LAYER + "router.per_expert_scale", experts, account="router", use="vector"),
            ffn_row(at + "gate_up_proj", 2 * width, hidden, account="routed_experts",
                    split="experts", copies=experts, routed=True),
            ffn_row(at + "down_proj", hidden, width, account="routed_experts", split="experts",
                    copies=experts, routed=True),
        ]  # fmt: skip
        moe = MoeFfn(num_experts=experts, num_experts_per_tok=topk, moe_intermediate_size=width,
                     dense_intermediate_size=wide)  # fmt: skip
        return moe, rows


def per_layer_tables(fields: Fields, frame: Frame, per_layer: int) -> list[Row]:
    """Return the table of per-layer embeddings and what projects into its space."""
    rows = fields.size("vocab_size_per_layer_input", most=MAX_VOCAB)
    width = frame.layers * per_layer
    account: Account = "per_layer_embedding"
    return [
        ffn_row("model.embed_tokens_per_layer.weight", rows, width, account=account,
                split="vocab", use="lookup"),
        ffn_row("model.per_layer_model_projection.weight", width, frame.hidden, account=account),
        ffn_row("model.per_layer_projection_norm.weight", per_layer, account="norms",
                use="vector"),
    ]  # fmt: skip


def per_layer_rows(hidden: int, per_layer: int) -> list[Row]:
    """Return what a layer does with its row of the per-layer embedding."""
    return [
        ffn_row(LAYER + "per_layer_input_gate.weight", per_layer, hidden,
                account="per_layer_embedding"),
        ffn_row(LAYER + "per_layer_projection.weight", hidden, per_layer,
                account="per_layer_embedding"),
        ffn_row(LAYER + "post_per_layer_input_norm.weight", hidden, use="vector",
                account="norms"),
    ]  # fmt: skip
