"""Nemotron-H and Nemotron-3: one mixer per block, Mamba-2, attention, MLP or experts.

Source: ``models/nemotron_h`` of transformers 5.24. ``hybrid_override_pattern`` spells the blocks
(M = Mamba-2, * = attention, - = MLP, E = experts), or ``layers_block_type`` lists them. MLPs have
two matrices. With ``moe_latent_size`` the experts live in a narrower space. MTP blocks:
``nemotron_h_mtp.py`` of SGLang and vLLM.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ledgerkit.errors import ConfigError
from ledgerkit.readers.blocks import dense_mlp, gqa_projections, routed_experts, vocabulary
from ledgerkit.readers.families._common import (
    Frame,
    draft_row,
    joint_rows,
    read_heads,
    require,
    state_dtype,
)
from ledgerkit.readers.families._mamba import Mamba2, mamba2
from ledgerkit.readers.families.deepseek import read_expert_groups
from ledgerkit.readers.fields import MAX_CONTEXT, MAX_LAYERS, MAX_VOCAB, Fields
from ledgerkit.readers.rows import (
    Architecture,
    Layer,
    MtpPlan,
    Row,
    attention_row,
    ffn_row,
)
from ledgerkit.spec.attention import NoAttention, SoftmaxAttention
from ledgerkit.spec.feed_forward import DenseFfn, MoeFfn, NoFfn

DEFAULTS: dict[str, Mapping[str, Any]] = {
    "nemotron_h": {
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": False,
        "ssm_state_size": 128,
        "mamba_num_heads": 128,
        "mamba_head_dim": 64,
        "n_groups": 8,
        "conv_kernel": 4,
        "use_conv_bias": True,
        "use_bias": False,
        "mlp_bias": False,
        "mamba_ssm_cache_dtype": "float32",
        "n_shared_experts": 1,
        "moe_latent_size": None,
        "n_group": 1,
        "topk_group": 1,
        "num_nextn_predict_layers": 0,
    }
}
_LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
_WORDS = {
    "mamba": "mamba",
    "linear_attention": "mamba",
    "attention": "attention",
    "full_attention": "attention",
    "mlp": "mlp",
    "moe": "moe",
}
AT = "backbone.layers.{layer}."
MIXER = AT + "mixer."
_TWO = ("up_proj", "down_proj")


def read(fields: Fields, _model_type: str) -> Architecture:
    """Read a Nemotron-H decoder."""
    kinds = _blocks(fields)
    frame = Frame(
        hidden=fields.size("hidden_size"),
        layers=len(kinds),
        vocab=fields.size("vocab_size", most=MAX_VOCAB),
        context=fields.size("max_position_embeddings", most=MAX_CONTEXT),
        tie=fields.flag("tie_word_embeddings"),
    )
    for name in ("attention_bias", "mamba_proj_bias"):
        fields.only(name, False, why="the class has no such bias")
    fields.only("sliding_window", why="windows of this model type are not known")
    if fields.has("num_query_groups"):
        fields.only("num_query_groups", fields.values.get("num_key_value_heads"),
                    why="it contradicts num_key_value_heads")  # fmt: skip
    # the inner width of Mamba is heads x head_dim, whatever "expand" says
    fields.ignore("unused", "expand", "mamba_expand", "time_step_rank", "chunk_size",
                  "mamba_chunk_size", "moe_shared_expert_overlap")  # fmt: skip
    makers = {"mamba": _mamba, "attention": _attention, "mlp": _mlp, "moe": _moe}
    fields.only("tie_word_embeddings", False, why="the class has a head of its own")
    layers = {kind: makers[kind](fields, frame.hidden) for kind in dict.fromkeys(kinds)}
    mtp = _mtp(fields, frame, makers)
    table = vocabulary(
        frame.hidden,
        frame.vocab,
        tie=frame.tie,
        embedding="backbone.embeddings.weight",
        norm="backbone.norm_f",
    )
    for names in _ONLY_IN.values():
        fields.ignore("unused", *names)
    return frame.architecture([layers[kind] for kind in kinds], table, mtp)


def _mtp(
    fields: Fields, frame: Frame, makers: Mapping[str, Callable[[Fields, int], Layer]]
) -> MtpPlan | None:
    """Return the MTP block: attention, then MLP or experts, with a projection of the joined inputs.

    Its layers are spelled like the model's. Checkpoints hold one block, however often it is used.
    """
    blocks = fields.count("num_nextn_predict_layers", most=MAX_LAYERS)
    pattern = fields.values.get("mtp_hybrid_override_pattern")
    words = fields.words("mtp_layers_block_type", allowed=tuple(_WORDS), default=None)
    fields.mark("mtp_hybrid_override_pattern")
    kinds = [_WORDS[word] for word in words or ()]
    if not kinds and isinstance(pattern, str):
        kinds = [_LETTERS.get(letter, letter) for letter in pattern]
    if not blocks:
        return None
    if blocks != 1 or kinds not in (["attention", "moe"], ["attention", "mlp"]):
        fields.record.assume("mtp_not_counted", family="Nemotron")
        return None
    parts = [makers[kind](fields, frame.hidden) for kind in kinds]
    rows = [
        row._replace(name=row.name.replace(AT, f"mtp.layers.{index}."))
        for index, part in enumerate(parts)
        for row in part.rows
    ]
    extra = (
        *joint_rows(frame.hidden, "mtp.layers.0.", "eh_proj", ("enorm", "hnorm")),
        draft_row("mtp.layers.1.final_layernorm.weight", frame.hidden, use="vector"),
    )
    return MtpPlan(blocks, Layer(parts[0].attention, parts[1].ffn, tuple(rows)), 0, extra)


_ONLY_IN = {
    "mamba": ("ssm_state_size", "mamba_num_heads", "mamba_head_dim", "n_groups", "mamba_n_groups",
              "conv_kernel", "mamba_d_conv", "use_conv_bias", "mamba_conv_bias", "use_bias",
              "mamba_ssm_cache_dtype"),
    "attention": ("num_attention_heads", "num_key_value_heads", "head_dim", "attention_head_dim"),
    "mlp": ("intermediate_size", "mlp_bias"),
    "moe": ("n_routed_experts", "num_local_experts", "n_shared_experts", "moe_intermediate_size",
            "moe_shared_expert_intermediate_size", "moe_latent_size", "num_experts_per_tok",
            "n_group", "topk_group"),
}  # fmt: skip


def _blocks(fields: Fields) -> list[str]:
    """Return the kind of each block."""
    pattern = fields.values.get("hybrid_override_pattern")
    fields.mark("hybrid_override_pattern")
    listed = next((name for name in ("layers_block_type", "layer_types") if fields.has(name)), None)
    if listed is not None:
        words = fields.words(listed, allowed=tuple(_WORDS)) or []
        kinds = [_WORDS[word] for word in words]
        fields.mark("layers_block_type", "layer_types")
    elif isinstance(pattern, str) and pattern:
        unknown = sorted(set(pattern) - set(_LETTERS))
        require(not unknown, "hybrid_override_pattern holds letters that no reader knows", unknown)
        kinds = [_LETTERS[letter] for letter in pattern]
        fields.record.use(fields.path + "hybrid_override_pattern", pattern, "config")
    else:
        raise ConfigError(
            "the config has no hybrid_override_pattern and no layers_block_type",
            given=pattern,
            fix="add one of them: it says what each block is",
        )
    require(0 < len(kinds) <= MAX_LAYERS, "the list of blocks is empty or absurd", len(kinds))
    if fields.has("num_hidden_layers"):
        stated = fields.size("num_hidden_layers", most=MAX_LAYERS)
        require(
            stated == len(kinds),
            "num_hidden_layers and the list of blocks contradict each other",
            {"num_hidden_layers": stated, "blocks": len(kinds)},
        )
    else:
        fields.mark("num_hidden_layers")
    return kinds


def _attention_norm(hidden: int) -> Row:
    return attention_row(AT + "norm.weight", hidden, use="vector", split="none", account="norms")


def _ffn_norm(hidden: int) -> Row:
    return ffn_row(AT + "norm.weight", hidden, use="vector", account="norms")


def _mamba(fields: Fields, hidden: int) -> Layer:
    size = Mamba2(
        heads=fields.size("mamba_num_heads"),
        head_dim=fields.size("mamba_head_dim"),
        state=fields.size("ssm_state_size"),
        groups=fields.size("n_groups", "mamba_n_groups"),
        kernel=fields.size("conv_kernel", "mamba_d_conv"),
        conv_bias=fields.flag("use_conv_bias", "mamba_conv_bias"),
        proj_bias=fields.flag("use_bias"),
        state_dtype=state_dtype(fields, "mamba_ssm_cache_dtype"),
    )
    require(
        size.heads % size.groups == 0, "n_groups must divide mamba_num_heads",
        (size.heads, size.groups),
    )  # fmt: skip
    attention, rows = mamba2(hidden, size, MIXER)
    return Layer(attention, NoFfn(), (_attention_norm(hidden), *rows))


def _attention(fields: Fields, hidden: int) -> Layer:
    heads, kv_heads = read_heads(fields)
    head_dim = fields.size("head_dim", "attention_head_dim")
    attention = SoftmaxAttention(
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
    )
    rows = gqa_projections(hidden, heads, kv_heads, head_dim, at=MIXER)
    return Layer(attention, NoFfn(), (_attention_norm(hidden), *rows))


def _mlp(fields: Fields, hidden: int) -> Layer:
    width = fields.size("intermediate_size")
    rows = dense_mlp(hidden, width, at=MIXER, names=_TWO, bias=fields.flag("mlp_bias"))
    ffn = DenseFfn(intermediate_size=width, matrices=2)
    return Layer(NoAttention(), ffn, (_ffn_norm(hidden), *rows))


def _moe(fields: Fields, hidden: int) -> Layer:
    experts = fields.size("n_routed_experts", "num_local_experts")
    width = fields.size("moe_intermediate_size")
    latent = fields.optional("moe_latent_size")
    # one block of shared experts, as wide as its own field says
    fields.ignore("unused", "n_shared_experts")
    shared = fields.size("moe_shared_expert_intermediate_size")
    fields.only("mlp_bias", False, why="biases in experts are not implemented")
    groups, chosen = read_expert_groups(fields, experts)
    moe = MoeFfn(
        num_experts=experts,
        num_experts_per_tok=fields.size("num_experts_per_tok"),
        moe_intermediate_size=width,
        expert_hidden_size=latent,
        shared_intermediate_size=shared,
        matrices=2,
        n_group=groups,
        topk_group=chosen,
    )
    rows = [
        _ffn_norm(hidden),
        ffn_row(MIXER + "gate.weight", experts, hidden, account="router", quantizable=False),
        ffn_row(MIXER + "gate.e_score_correction_bias", experts, account="router", use="buffer",
                dtype="fp32"),
        *routed_experts(latent or hidden, width, experts, at=MIXER + "experts.{expert}.",
                        names=_TWO),
        *dense_mlp(hidden, shared, at=MIXER + "shared_experts.", names=_TWO,
                   account="shared_experts"),
    ]  # fmt: skip
    if latent:
        rows += [
            ffn_row(MIXER + "fc1_latent_proj.weight", latent, hidden, account="routed_experts"),
            ffn_row(MIXER + "fc2_latent_proj.weight", hidden, latent, account="routed_experts"),
        ]
    return Layer(NoAttention(), moe, tuple(rows))
