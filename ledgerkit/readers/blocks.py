"""Building blocks that many families share: projections, norms, MLPs, experts, vocabulary."""

from __future__ import annotations

from ledgerkit.readers.rows import Row, attention_row, ffn_row
from ledgerkit.spec.axes import Account

__all__ = [
    "attention_norm",
    "dense_mlp",
    "ffn_norm",
    "gqa_projections",
    "mla_projections",
    "routed_experts",
    "router",
    "shared_expert",
    "vocabulary",
]

LAYER = "model.layers.{layer}."


def attention_norm(hidden: int, name: str = LAYER + "input_layernorm") -> list[Row]:
    """Return the norm before (or after) attention."""
    return [attention_row(name + ".weight", hidden, use="vector", split="none", account="norms")]


def ffn_norm(hidden: int, name: str = LAYER + "post_attention_layernorm") -> list[Row]:
    """Return the norm before (or after) the feed-forward block."""
    return [ffn_row(name + ".weight", hidden, use="vector", account="norms")]


def gqa_projections(
    hidden: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    v_head_dim: int | None = None,
    *,
    at: str = LAYER + "self_attn.",
    qkv_bias: bool = False,
    o_bias: bool = False,
    qk_norm: int | tuple[int, int] | None = None,
    norm_names: tuple[str, str] = ("q_norm", "k_norm"),
    q_factor: int = 1,
    value: bool = True,
    keys: bool = True,
) -> list[Row]:
    """Return separate q, k, v, o projections, with biases and q/k norms.

    Parameters
    ----------
    qk_norm : int or (int, int), optional
        Elements of the q and k norm weights; one number when both are equal (a norm per head).
    q_factor : int
        2 when the query projection also yields an output gate.
    value : bool
        False where values are the keys, without a projection of their own.
    keys : bool
        False in layers that read the keys and values of an earlier layer.
    """
    v_head_dim = v_head_dim or head_dim
    rows = [attention_row(at + "q_proj.weight", heads * head_dim * q_factor, hidden)]
    if keys:
        rows.append(attention_row(at + "k_proj.weight", kv_heads * head_dim, hidden,
                                  split="kv_heads"))  # fmt: skip
        if value:
            rows.append(attention_row(at + "v_proj.weight", kv_heads * v_head_dim, hidden,
                                      split="kv_heads"))  # fmt: skip
    rows.append(attention_row(at + "o_proj.weight", hidden, heads * v_head_dim))
    if qkv_bias:
        rows.append(attention_row(at + "q_proj.bias", heads * head_dim * q_factor, use="vector"))
        if keys:
            rows += [attention_row(at + f"{part}_proj.bias", kv_heads * width, use="vector",
                                   split="kv_heads")
                     for part, width in (("k", head_dim), ("v", v_head_dim)) if value or part == "k"]  # noqa: E501  # fmt: skip
    if o_bias:
        rows.append(attention_row(at + "o_proj.bias", hidden, use="vector", split="none"))
    if qk_norm is not None:
        q_width, k_width = (qk_norm, qk_norm) if isinstance(qk_norm, int) else qk_norm
        rows.append(attention_row(f"{at}{norm_names[0]}.weight", q_width, use="vector",
                                  split="none"))  # fmt: skip
        if keys:
            rows.append(attention_row(f"{at}{norm_names[1]}.weight", k_width, use="vector",
                                      split="none"))  # fmt: skip
    return rows


def mla_projections(
    hidden: int,
    heads: int,
    q_lora_rank: int | None,
    kv_lora_rank: int,
    qk_nope_head_dim: int,
    qk_rope_head_dim: int,
    v_head_dim: int,
    *,
    at: str = LAYER + "self_attn.",
    bias: bool = False,
) -> list[Row]:
    """Return the projections of multi-head latent attention (DeepSeek-V2 and later).

    The down-projections are whole on every tensor-parallel rank; ``kv_b`` is the up-projection that
    decoding folds into the query and the output.
    """
    width = qk_nope_head_dim + qk_rope_head_dim
    rows = []
    if q_lora_rank is None:
        rows.append(attention_row(at + "q_proj.weight", heads * width, hidden))
    else:
        rows.append(attention_row(at + "q_a_proj.weight", q_lora_rank, hidden, split="none"))
        rows.append(attention_row(at + "q_a_layernorm.weight", q_lora_rank, use="vector",
                                  split="none"))  # fmt: skip
        rows.append(attention_row(at + "q_b_proj.weight", heads * width, q_lora_rank))
    rows.append(attention_row(at + "kv_a_proj_with_mqa.weight", kv_lora_rank + qk_rope_head_dim,
                              hidden, split="none"))  # fmt: skip
    rows.append(attention_row(at + "kv_a_layernorm.weight", kv_lora_rank, use="vector",
                              split="none"))  # fmt: skip
    rows.append(attention_row(at + "kv_b_proj.weight", heads * (qk_nope_head_dim + v_head_dim),
                              kv_lora_rank, use="expand"))  # fmt: skip
    rows.append(attention_row(at + "o_proj.weight", hidden, heads * v_head_dim))
    if bias:
        if q_lora_rank is not None:
            rows.append(attention_row(at + "q_a_proj.bias", q_lora_rank, use="vector",
                                      split="none"))  # fmt: skip
        rows.append(attention_row(at + "kv_a_proj_with_mqa.bias", kv_lora_rank + qk_rope_head_dim,
                                  use="vector", split="none"))  # fmt: skip
        rows.append(attention_row(at + "o_proj.bias", hidden, use="vector", split="none"))
    return rows


def dense_mlp(
    hidden: int,
    intermediate: int,
    *,
    at: str = LAYER + "mlp.",
    names: tuple[str, ...] = ("gate_proj", "up_proj", "down_proj"),
    bias: bool = False,
    account: Account = "dense",
) -> list[Row]:
    """Return the matrices of an MLP; two names for an MLP without a gate."""
    rows = []
    for name in names:
        inner = name is not names[-1]
        shape = (intermediate, hidden) if inner else (hidden, intermediate)
        rows.append(ffn_row(f"{at}{name}.weight", *shape, account=account, split="tp"))
        if bias:
            rows.append(ffn_row(f"{at}{name}.bias", shape[0], account=account, use="vector",
                                split="tp" if inner else "none"))  # fmt: skip
    return rows


def shared_expert(
    hidden: int,
    intermediate: int,
    *,
    at: str = LAYER + "mlp.shared_experts.",
    names: tuple[str, ...] = ("gate_proj", "up_proj", "down_proj"),
    gate: str | None = None,
) -> list[Row]:
    """Return the shared expert(s), and the gate in front of them, a router of one output."""
    rows = dense_mlp(hidden, intermediate, at=at, names=names, account="shared_experts")
    if gate is not None:
        rows.append(ffn_row(gate, 1, hidden, account="router", quantizable=False))
    return rows


def routed_experts(
    hidden: int,
    intermediate: int,
    num_experts: int,
    *,
    at: str = LAYER + "mlp.experts.{expert}.",
    names: tuple[str, ...] = ("gate_proj", "up_proj", "down_proj"),
) -> list[Row]:
    """Return the routed experts, one tensor for each expert and matrix."""
    return [
        ffn_row(
            f"{at}{name}.weight",
            *((hidden, intermediate) if name is names[-1] else (intermediate, hidden)),
            account="routed_experts", split="experts", copies=num_experts, routed=True,
        )
        for name in names
    ]  # fmt: skip


def router(
    hidden: int,
    num_experts: int,
    *,
    name: str = LAYER + "mlp.gate.weight",
    correction: str | None = None,
    dtype: str | None = None,
) -> list[Row]:
    """Return the router, and its correction bias (stored in fp32) where there is one."""
    rows = [ffn_row(name, num_experts, hidden, account="router", dtype=dtype, quantizable=False)]
    if correction is not None:
        rows.append(ffn_row(correction, num_experts, account="router", use="buffer", dtype="fp32"))
    return rows


def vocabulary(
    hidden: int,
    vocab_size: int,
    *,
    tie: bool,
    embedding: str = "model.embed_tokens.weight",
    norm: str | None = "model.norm",
    norm_bias: bool = False,
    head: str = "lm_head.weight",
) -> list[Row]:
    """Return embedding, final norm and head; a tied table is one tensor, used as head."""
    rows = [
        ffn_row(
            embedding,
            vocab_size,
            hidden,
            account="vocab",
            split="vocab",
            use="head" if tie else "lookup",
        )
    ]
    if norm is not None:
        kinds = (".weight", ".bias") if norm_bias else (".weight",)
        rows += [ffn_row(norm + kind, hidden, account="vocab", use="vector") for kind in kinds]
    if not tie:
        rows.append(ffn_row(head, vocab_size, hidden, account="vocab", split="vocab", use="head"))
    return rows
