"""MLA: one latent for all heads, against heads with keys and values of their own.

Removed, the model has MHA with the same query path and the same heads: keys of
``qk_nope_head_dim + qk_rope_head_dim`` and values of ``v_head_dim`` for each head, from full k and
v projections of the hidden state in place of ``kv_a`` (with its norm) and ``kv_b``. An indexer
stays, and an ``fp8_ds_mla`` cache becomes ``fp8``. ``against="gqa"`` gives ``kv_heads`` such heads
instead of all.

Applied to softmax attention, the latent has ``kv_lora_rank`` elements and ``qk_rope_head_dim``
rotary ones; the heads keep their value width, and their key width as ``qk_nope_head_dim`` (so a
query head is wider by the rotary part). The query path is not compressed.

*Absorption* is the choice between two ways to compute the same MLA: on the latents (decode), or on
keys and values expanded from them (prefill). The counterfactual computes prefill chunks on the
latents too, as engines could.
"""

from __future__ import annotations

from functools import lru_cache

from ledgerkit._techniques.point import Point, whole
from ledgerkit._techniques.rebuild import (
    changed,
    main_dtype,
    prefix,
    rebuild,
    replaced,
    resized,
)
from ledgerkit.errors import TechniqueError
from ledgerkit.spec.attention import Indexer, LatentAttention, SoftmaxAttention
from ledgerkit.spec.model import LayerGroup, Model
from ledgerkit.spec.weights import Weight

_ALL_TOKENS = 2**40


def apply_mla(
    point: Point, *, kv_lora_rank: int = 512, qk_rope_head_dim: int = 64
) -> Point:  # fmt: skip
    """Replace softmax attention by MLA."""
    rank, rope = whole("kv_lora_rank", kv_lora_rank), whole("qk_rope_head_dim", qk_rope_head_dim, 0)
    if not any(_convertible(group) for group in point.model.groups):
        raise TechniqueError(
            f"{point.model.slug} has MLA already, or no full softmax attention to replace",
            given=point.model.slug, fix="remove 'mla' to see what it saves in this model",
        )  # fmt: skip
    return point.with_model(_latent(point.model, rank, rope))


def remove_mla(point: Point, *, against: str = "mha", kv_heads: int = 8) -> Point:
    """Replace MLA by MHA, or by GQA with ``kv_heads``, of the same heads."""
    if not any(isinstance(group.attention, LatentAttention) for group in point.model.groups):
        raise TechniqueError(
            f"{point.model.slug} has no MLA to remove", given=point.model.slug,
            fix="apply 'mla' to see what it would save",
        )  # fmt: skip
    if against not in ("mha", "gqa", "mqa"):
        raise TechniqueError("unknown counterfactual of MLA", given=against,
                             allowed="mha, gqa, mqa", fix="use against='mha'")  # fmt: skip
    heads = {"mha": None, "gqa": whole("kv_heads", kv_heads), "mqa": 1}[against]
    point = (
        point.with_deployment(kv_dtype="fp8")
        if point.deployment.kv_dtype == "fp8_ds_mla"
        else point
    )
    return point.with_model(mha_of_latent(point.model, heads))


def apply_absorption(point: Point) -> Point:
    """Compute prefill chunks on latents, without expanding the cached ones."""
    if not any(
        isinstance(group.attention, LatentAttention) and group.attention.indexer is None
        for group in point.model.groups
    ):
        raise TechniqueError(
            f"{point.model.slug} has no MLA whose prefill expands latents",
            given=point.model.slug, fix="take a model with MLA and without an indexer",
        )  # fmt: skip
    return point.with_model(_absorbed(point.model))


def _convertible(group: LayerGroup) -> bool:
    attention = group.attention
    return (
        isinstance(attention, SoftmaxAttention)
        and attention.limit is None
        and attention.stores_kv
        and attention.indexer is None
    )


@lru_cache(maxsize=64)
def mha_of_latent(model: Model, kv_heads: int | None = None) -> Model:
    """Model with softmax attention of the same heads in place of MLA."""

    def change(group: LayerGroup) -> LayerGroup:
        latent = group.attention
        if not isinstance(latent, LatentAttention):
            return group
        heads = kv_heads or latent.num_attention_heads
        if latent.num_attention_heads % heads:
            raise TechniqueError(
                "kv_heads must divide the number of query heads", given=heads,
                allowed=f"divisors of {latent.num_attention_heads}", fix="use kv_heads=1",
            )  # fmt: skip
        width = latent.qk_nope_head_dim + latent.qk_rope_head_dim
        softmax = SoftmaxAttention(
            num_attention_heads=latent.num_attention_heads, num_key_value_heads=heads,
            head_dim=width, v_head_dim=latent.v_head_dim, indexer=latent.indexer,
        )  # fmt: skip
        return replaced(group, softmax, weights=_expanded(group, model.hidden_size, heads, softmax))

    label = "MHA" if kv_heads is None else f"GQA {kv_heads}" if kv_heads > 1 else "MQA"
    note = (
        f"{label} for MLA: same heads and query path; keys of qk_nope_head_dim + qk_rope_head_dim, "
        "values of v_head_dim; full k and v projections in place of kv_a and kv_b"
    )
    return rebuild(model, change, label, note)


def _expanded(
    group: LayerGroup, hidden: int, heads: int, softmax: SoftmaxAttention
) -> list[Weight]:
    """Weights with k and v projections where the latent's projections were."""
    found: list[Weight] = []
    for weight in group.weights:
        name = weight.name
        if weight.account != "projections" or ".kv_" not in name:
            found.append(weight)
            continue
        if weight.use != "expand":
            continue
        for part, width in (("k", softmax.head_dim), ("v", softmax.v_head_dim)):
            found.append(
                resized(
                    weight, (heads * width, hidden), use="linear", split="kv_heads",
                    name=name.replace(".kv_b_proj.", f".{part}_proj."),
                )
            )  # fmt: skip
    return found


@lru_cache(maxsize=64)
def _latent(model: Model, rank: int, rope: int) -> Model:
    hidden = model.hidden_size

    def change(group: LayerGroup) -> LayerGroup:
        old = group.attention
        if not isinstance(old, SoftmaxAttention) or not _convertible(group):
            return group
        latent = LatentAttention(
            num_attention_heads=old.num_attention_heads, q_lora_rank=None, kv_lora_rank=rank,
            qk_nope_head_dim=old.head_dim, qk_rope_head_dim=rope, v_head_dim=old.v_head_dim,
        )  # fmt: skip
        own = [w for w in group.weights if w.account == "projections"]
        dtype = main_dtype(own, model.dtype)
        at = prefix(group) + "self_attn."
        heads = old.num_attention_heads

        def row(name: str, shape: tuple[int, ...], **fields: str) -> Weight:
            kind = {"use": "linear", "split": "none", "dtype": dtype} | fields
            return Weight(name=at + name, ledger="attention_kv", account="projections",
                          shape=shape, **kind)  # fmt: skip

        rows = [
            row("q_proj.weight", (heads * (old.head_dim + rope), hidden), split="tp"),
            row("kv_a_proj_with_mqa.weight", (rank + rope, hidden)),
            row("kv_a_layernorm.weight", (rank,), use="vector", dtype=model.dtype),
            row("kv_b_proj.weight", (heads * (old.head_dim + old.v_head_dim), rank),
                use="expand", split="tp"),
            row("o_proj.weight", (hidden, heads * old.v_head_dim), split="tp"),
        ]  # fmt: skip
        others = [w for w in group.weights if w.account != "projections"]
        return replaced(group, latent, weights=[*rows, *others])

    note = (
        f"MLA for softmax attention: latent of {rank} + {rope} rotary elements, "
        "qk_nope_head_dim = head_dim, same value heads, query path not compressed"
    )
    return rebuild(model, change, "MLA", note)


@lru_cache(maxsize=64)
def _absorbed(model: Model) -> Model:
    """MLA that works on latents in prefill: as under an indexer that costs nothing."""

    def change(group: LayerGroup) -> LayerGroup:
        if not isinstance(group.attention, LatentAttention) or group.attention.indexer is not None:
            return group
        every = Indexer(num_heads=1, head_dim=1, topk=_ALL_TOKENS, owned=False)
        return replaced(group, changed(group.attention, indexer=every))

    return rebuild(model, change, "absorbed prefill", "prefill chunks attend to latents")
