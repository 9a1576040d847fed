"""Step-3: multi-matrix factorization attention, few wide experts.

Source: ``stepfun-ai/Step3`` and ``modeling_step3.py`` of the checkpoint. All heads share one
low-rank query of ``share_q_dim`` and one KV head of 256 per group.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerkit.readers.blocks import LAYER, attention_norm, dense_mlp, ffn_norm, shared_expert
from ledgerkit.readers.families._common import Frame, require
from ledgerkit.readers.fields import MAX_CONTEXT, MAX_LAYERS, MAX_VOCAB, Fields
from ledgerkit.readers.rows import Architecture, Layer, Row, attention_row, ffn_row
from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.feed_forward import DenseFfn, FeedForward, MoeFfn

DEFAULTS: dict[str, Mapping[str, Any]] = {
    "step3_text": {
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "num_attention_heads": 64,
        "num_attention_groups": 1,
        "num_hidden_layers": 61,
        "max_position_embedding": 65536,
        "vocab_size": 128815,
        "moe_intermediate_size": 5120,
        "moe_num_experts": 48,
        "moe_top_k": 3,
        "share_expert_dim": 5120,
        "share_q_dim": 2048,
        "head_dim": 256,
        "moe_layers_enum": tuple(range(4, 60)),
        "tie_word_embeddings": False,
    }
}
AT = LAYER + "self_attn."
MOE = LAYER + "moe."


def read(fields: Fields, _model_type: str) -> Architecture:
    """Read a Step-3 text model."""
    frame = Frame(
        hidden=fields.size("hidden_size"),
        layers=fields.size("num_hidden_layers", most=MAX_LAYERS),
        vocab=fields.size("vocab_size", most=MAX_VOCAB),
        context=fields.size(
            "max_position_embedding", "max_position_embeddings", "max_seq_len", most=MAX_CONTEXT
        ),
        tie=fields.flag("tie_word_embeddings"),
    )
    hidden = frame.hidden
    attention, rows = _attention(fields, hidden)
    ffns: dict[bool, tuple[FeedForward, list[Row]]] = {
        False: _dense(fields, hidden),
        True: _moe(fields, hidden),
    }
    kinds = {
        flag: Layer(attention, ffn, (*attention_norm(hidden), *rows, *ffn_rows))
        for flag, (ffn, ffn_rows) in ffns.items()
    }
    listed = moe_layer_numbers(fields, frame.layers)
    return frame.architecture([kinds[index in listed] for index in range(frame.layers)])


def moe_layer_numbers(fields: Fields, layers: int) -> set[int]:
    """Return the layers with experts, from a list or from a string of numbers with commas."""
    value = fields.values.get("moe_layers_enum", fields.defaults.get("moe_layers_enum"))
    fields.mark("moe_layers_enum")
    if isinstance(value, str):
        words = [word.strip() for word in value.split(",")]
        require(all(word.isdigit() for word in words if word),
                "moe_layers_enum must hold layer numbers", value)  # fmt: skip
        value = [int(word) for word in words if word]
    holder = Fields({"moe_layers_enum": value}, fields.record, path=fields.path)
    numbers = holder.integers("moe_layers_enum") or []
    require(all(number < layers for number in numbers) and len(set(numbers)) == len(numbers),
            "moe_layers_enum names a missing layer, or one twice", numbers)  # fmt: skip
    return set(numbers)


def _attention(fields: Fields, hidden: int) -> tuple[SoftmaxAttention, list[Row]]:
    heads = fields.size("num_attention_heads")
    groups = fields.size("num_attention_groups", "num_key_value_heads")
    head_dim = fields.size("head_dim")
    rank = fields.size("share_q_dim")
    require(heads % groups == 0, "num_attention_heads must be a multiple of num_attention_groups",
            (heads, groups))  # fmt: skip
    attention = SoftmaxAttention(
        num_attention_heads=heads,
        num_key_value_heads=groups,
        head_dim=head_dim,
        v_head_dim=head_dim,
    )
    rows = [
        attention_row(AT + "q_proj.weight", rank, hidden, split="none"),
        attention_row(AT + "inter_norm.weight", rank, use="vector", split="none"),
        attention_row(AT + "wq.weight", heads * head_dim, rank),
        attention_row(AT + "k_proj.weight", groups * head_dim, hidden, split="kv_heads"),
        attention_row(AT + "v_proj.weight", groups * head_dim, hidden, split="kv_heads"),
        attention_row(AT + "o_proj.weight", hidden, heads * head_dim),
    ]
    return attention, rows


def _dense(fields: Fields, hidden: int) -> tuple[DenseFfn, list[Row]]:
    width = fields.size("intermediate_size")
    return DenseFfn(intermediate_size=width), [*ffn_norm(hidden), *dense_mlp(hidden, width)]


def _moe(fields: Fields, hidden: int) -> tuple[MoeFfn, list[Row]]:
    experts = fields.size("moe_num_experts")
    width = fields.size("moe_intermediate_size")
    shared = fields.size("share_expert_dim")
    moe = MoeFfn(
        num_experts=experts,
        num_experts_per_tok=fields.size("moe_top_k"),
        moe_intermediate_size=width,
        shared_intermediate_size=shared,
    )
    rows = [*ffn_norm(hidden), *stacked_experts(hidden, width, experts),
            *shared_expert(hidden, shared, at=LAYER + "share_expert.")]  # fmt: skip
    return moe, rows


def stacked_experts(hidden: int, width: int, experts: int) -> list[Row]:
    """Return router and experts, one tensor for each matrix of all experts."""
    shapes = {
        "gate_proj": (width, hidden),
        "up_proj": (width, hidden),
        "down_proj": (hidden, width),
    }
    return [
        ffn_row(MOE + "gate.weight", experts, hidden, account="router", quantizable=False),
        *(
            ffn_row(f"{MOE}{name}.weight", *shape, account="routed_experts", split="experts",
                    copies=experts, routed=True)
            for name, shape in shapes.items()
        ),
    ]  # fmt: skip
