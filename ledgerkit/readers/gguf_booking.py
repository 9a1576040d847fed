"""Which account a tensor of a GGUF file belongs to, by llama.cpp's tensor names.

The names are the same in all architectures (ggml-org/llama.cpp, ``gguf-py/gguf/constants.py``,
``TENSOR_NAMES``), so one table books every tensor of every supported architecture. A name that is
not in the table is never guessed at: it is listed as unbooked.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from ledgerkit.spec.ggml import ggml_type
from ledgerkit.spec.weights import Split, Use, Weight

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ledgerkit.readers.gguf_header import GgufTensor
    from ledgerkit.spec.axes import Account, Ledger

__all__ = ["Booked", "Place", "book", "layer_weights", "place_of"]


class Place(NamedTuple):
    """Where a tensor is booked and what a step does with it."""

    ledger: Ledger
    account: Account
    use: Use = "linear"
    split: Split = "none"
    routed: bool = False


def _attention(
    use: Use = "linear", split: Split = "none", account: Account = "projections"
) -> Place:
    return Place("attention_kv", account, use, split)


def _ffn(account: Account, use: Use = "linear", split: Split = "none") -> Place:
    return Place("ffn_mlp", account, use, split)


_ATTENTION_NORM = _attention("vector", account="norms")
_FFN_NORM = _ffn("norms", "vector")
_EXPERT = Place("ffn_mlp", "routed_experts", "linear", "experts", routed=True)
_EXPERT_BIAS = Place("ffn_mlp", "routed_experts", "vector", "experts", routed=True)
_RESIDUAL = _ffn("residual")
_RESIDUAL_VECTOR = _ffn("residual", "vector")

_DRAFT = Place("scheduling", "draft")
_DRAFT_NORM = Place("scheduling", "draft", "vector")

_GLOBAL: dict[str, Place] = {
    "token_embd.weight": _ffn("vocab", "lookup", "vocab"),
    "output.weight": _ffn("vocab", "head", "vocab"),
    "output.bias": _ffn("vocab", "vector", "vocab"),
    "output_norm.weight": _ffn("vocab", "vector"),
    "output_norm.bias": _ffn("vocab", "vector"),
    "token_embd_norm.weight": _ffn("vocab", "vector"),
    "per_layer_token_embd.weight": _ffn("per_layer_embedding", "lookup", "vocab"),
    "per_layer_model_proj.weight": _ffn("per_layer_embedding"),
    "per_layer_proj_norm.weight": _FFN_NORM,
    "altup_proj.weight": _RESIDUAL,
    "altup_unembd_proj.weight": _RESIDUAL,
}

_LAYER: dict[str, Place] = {
    # norms
    "attn_norm.weight": _ATTENTION_NORM,
    "attn_norm.bias": _ATTENTION_NORM,
    "ffn_norm.weight": _FFN_NORM,
    "attn_output_norm.weight": _FFN_NORM,
    "attn_norm_2.weight": _FFN_NORM,
    "attn_norm_2.bias": _FFN_NORM,
    "ffn_norm.bias": _FFN_NORM,
    "post_ffw_norm.weight": _FFN_NORM,
    "post_ffw_norm_1.weight": _FFN_NORM,
    "post_ffw_norm_2.weight": _FFN_NORM,
    "pre_ffw_norm_2.weight": _FFN_NORM,
    # softmax attention
    "attn_q.weight": _attention(split="tp"),
    "attn_q.bias": _attention("vector", "tp"),
    "attn_k.weight": _attention(split="kv_heads"),
    "attn_k.bias": _attention("vector", "kv_heads"),
    "attn_v.weight": _attention(split="kv_heads"),
    "attn_v.bias": _attention("vector", "kv_heads"),
    "attn_qkv.weight": _attention(split="tp"),
    "attn_qkv.bias": _attention("vector", "tp"),
    "attn_gate.weight": _attention(split="tp"),
    "attn_output.weight": _attention(split="tp"),
    "attn_output.bias": _attention("vector"),
    "attn_q_norm.weight": _attention("vector"),
    "attn_k_norm.weight": _attention("vector"),
    "attn_sinks.weight": _attention("vector", "tp"),
    # multi-head latent attention; k_b and v_b are kv_b in two parts, one transposed
    "attn_q_a.weight": _attention(),
    "attn_q_a_norm.weight": _attention("vector"),
    "attn_q_b.weight": _attention(split="tp"),
    "attn_kv_a_mqa.weight": _attention(),
    "attn_kv_a_norm.weight": _attention("vector"),
    "attn_kv_b.weight": _attention("expand", "tp"),
    "attn_k_b.weight": _attention("expand", "tp"),
    "attn_v_b.weight": _attention("expand", "tp"),
    # indexer of DeepSeek sparse attention
    "indexer.attn_q_b.weight": _attention(account="indexer"),
    "indexer.attn_k.weight": _attention(account="indexer"),
    "indexer.proj.weight": _attention(account="indexer"),
    "indexer.k_norm.weight": _attention("vector", account="indexer"),
    "indexer.k_norm.bias": _attention("vector", account="indexer"),
    # gated DeltaNet, Kimi delta attention, Mamba-1 and Mamba-2
    "ssm_in.weight": _attention(split="tp"),
    "ssm_f_a.weight": _attention(),
    "ssm_f_b.weight": _attention(split="tp"),
    "ssm_g_a.weight": _attention(),
    "ssm_g_b.weight": _attention(split="tp"),
    "ssm_conv1d.bias": _attention("vector", "tp", "state"),
    "ssm_conv1d_q.weight": _attention("vector", "tp", "state"),
    "ssm_conv1d_k.weight": _attention("vector", "tp", "state"),
    "ssm_conv1d_v.weight": _attention("vector", "tp", "state"),
    "ssm_d": _attention("vector", "tp", "state"),
    "ssm_x.weight": _attention(split="tp"),
    "ssm_dt.weight": _attention(split="tp"),
    "ssm_dt_norm.weight": _attention("vector", account="state"),
    "ssm_b_norm.weight": _attention("vector", account="state"),
    "ssm_c_norm.weight": _attention("vector", account="state"),
    "ssm_ba.weight": _attention(split="tp"),
    "ssm_alpha.weight": _attention(split="tp"),
    "ssm_beta.weight": _attention(split="tp"),
    "ssm_out.weight": _attention(split="tp"),
    "ssm_conv1d.weight": _attention("vector", "tp", "state"),
    "ssm_a": _attention("vector", "tp", "state"),
    "ssm_dt.bias": _attention("vector", "tp", "state"),
    "ssm_norm.weight": _attention("vector", account="state"),
    # gated short convolution of LFM2
    "shortconv.in_proj.weight": _attention(split="tp"),
    "shortconv.conv.weight": _attention("vector", "tp", "state"),
    "shortconv.out_proj.weight": _attention(split="tp"),
    # what an MTP block has beside its decoder layer
    "nextn.eh_proj.weight": _DRAFT,
    "nextn.enorm.weight": _DRAFT_NORM,
    "nextn.hnorm.weight": _DRAFT_NORM,
    "nextn.shared_head_norm.weight": _DRAFT_NORM,
    # dense and shared MLPs
    "ffn_gate.weight": _ffn("dense", split="tp"),
    "ffn_gate.bias": _ffn("dense", "vector", "tp"),
    "ffn_up.weight": _ffn("dense", split="tp"),
    "ffn_up.bias": _ffn("dense", "vector", "tp"),
    "ffn_down.weight": _ffn("dense", split="tp"),
    "ffn_down.bias": _ffn("dense", "vector"),
    "ffn_gate_shexp.weight": _ffn("shared_experts", split="tp"),
    "ffn_up_shexp.weight": _ffn("shared_experts", split="tp"),
    "ffn_down_shexp.weight": _ffn("shared_experts", split="tp"),
    "ffn_gate_inp_shexp.weight": _ffn("router"),
    # routed experts
    "ffn_gate_inp.weight": _ffn("router"),
    "ffn_gate_inp.bias": _ffn("router", "vector"),
    "ffn_gate_inp.scale": _ffn("router", "vector"),
    "exp_probs_b.bias": _ffn("router", "buffer"),
    "exp_probs_b": _ffn("router", "buffer"),
    "ffn_gate_exps.weight": _EXPERT,
    "ffn_gate_exps.bias": _EXPERT_BIAS,
    "ffn_up_exps.weight": _EXPERT,
    "ffn_up_exps.bias": _EXPERT_BIAS,
    "ffn_gate_up_exps.weight": _EXPERT,
    "ffn_gate_up_exps.bias": _EXPERT_BIAS,
    "ffn_down_exps.weight": _EXPERT,
    "ffn_down_exps.bias": _EXPERT_BIAS,
    "ffn_latent_down.weight": _ffn("routed_experts"),
    "ffn_latent_up.weight": _ffn("routed_experts"),
    "ffn_down_exps.scale": _ffn("router", "vector"),
    "ffn_gate.{expert}.weight": _EXPERT,
    "ffn_up.{expert}.weight": _EXPERT,
    "ffn_down.{expert}.weight": _EXPERT,
    # per-layer embeddings, AltUp, LAuReL, layer scalars
    "inp_gate.weight": _ffn("per_layer_embedding"),
    "proj.weight": _ffn("per_layer_embedding"),
    "post_norm.weight": _FFN_NORM,
    "layer_output_scale.weight": _ffn("residual", "buffer"),
    "altup_correct_coef.weight": _RESIDUAL,
    "altup_correct_scale.weight": _RESIDUAL_VECTOR,
    "altup_predict_coef.weight": _RESIDUAL,
    "altup_router.weight": _RESIDUAL,
    "altup_router_norm.weight": _RESIDUAL_VECTOR,
    "laurel_l.weight": _RESIDUAL,
    "laurel_r.weight": _RESIDUAL,
    "laurel_post_norm.weight": _RESIDUAL_VECTOR,
}

_MIXERS = frozenset({"attn_output.weight", "ssm_out.weight", "shortconv.out_proj.weight"})

_CONSTANTS = {
    "rope_freqs.weight",
    "rope_factors_long.weight",
    "rope_factors_short.weight",
    "attn_rot_embd.weight",
}

_DRAFT_HEAD = "nextn.shared_head_head.weight"
_COPIES = {"nextn.embed_tokens.weight", _DRAFT_HEAD}

_IN_LAYER = re.compile(r"blk\.(\d{1,5})\.(.+)")
_ONE_EXPERT = re.compile(r"(ffn_(?:gate|up|down))\.(\d{1,5})\.weight")


class Booked(NamedTuple):
    """One tensor with its place."""

    tensor: GgufTensor
    layer: int | None
    """None = outside the layers."""
    suffix: str
    """Name without the layer, with ``{expert}`` for a single expert's index."""
    place: Place
    scale: GgufTensor | None = None
    """The per-tensor scales of an NVFP4 tensor, stored beside it."""

    @property
    def bytes(self) -> int:
        """Stored bytes, scales included."""
        return self.tensor.bytes + (self.scale.bytes if self.scale else 0)


def book(
    tensors: Iterable[GgufTensor], *, own_heads: bool = False
) -> tuple[list[Booked], list[tuple[GgufTensor, str]]]:
    """Book every tensor, or say why it is in no account.

    Parameters
    ----------
    tensors : iterable of GgufTensor
        All tensors of a file.
    own_heads : bool
        Whether the heads of MTP blocks are parameters of their own, not copies of the model's.

    Returns
    -------
    booked : list of Booked
        Tensors with their places.
    unbooked : list of (GgufTensor, str)
        The others, each with the reason.

    Examples
    --------
    >>> from ledgerkit.readers.gguf_header import GgufTensor
    >>> booked, unbooked = book(
    ...     [
    ...         GgufTensor("blk.0.attn_q.weight", (64, 64), "q8_0", 0, 4352),
    ...         GgufTensor("rope_freqs.weight", (32,), "f32", 4352, 128),
    ...     ]
    ... )
    >>> booked[0].place.account, unbooked[0][1][:14]
    ('projections', 'rotary factors')
    """
    booked, unbooked = [], []
    split = [(tensor, *_split_name(tensor.name)) for tensor in tensors]
    by_layer: dict[int | None, dict[str, GgufTensor]] = {}
    for tensor, layer, suffix in split:
        by_layer.setdefault(layer, {})[suffix] = tensor
    for tensor, layer, suffix in split:
        siblings = by_layer[layer]
        place = place_of(layer, suffix, siblings)
        if own_heads and suffix == _DRAFT_HEAD:
            place = Place("scheduling", "draft", "head")
        if place is not None:
            beside = suffix.removesuffix("weight") + "scale"
            scale = siblings.get(beside)
            if place_of(layer, beside, siblings) or not _is_scale(scale, tensor):
                scale = None
            booked.append(Booked(tensor, layer, suffix, place, scale))
        elif not _is_scale(tensor, siblings.get(suffix.removesuffix("scale") + "weight")):
            unbooked.append((tensor, _reason(tensor.name, suffix)))
    return booked, unbooked


def _is_scale(scale: GgufTensor | None, weight: GgufTensor | None) -> bool:
    """Whether ``scale`` holds the per-tensor scales of the NVFP4 tensor ``weight``."""
    if scale is None or weight is None or weight.type != "nvfp4" or scale.type != "f32":
        return False
    return scale.elements == (weight.ne[2] if len(weight.ne) > 2 else 1)


def _reason(name: str, suffix: str) -> str:
    if suffix in _CONSTANTS:
        return "rotary factors: constants that follow from the config, not parameters"
    if suffix in _COPIES:
        return "a copy of embedding or head inside an MTP block"
    if suffix.endswith(".input_scale"):
        return "scale of the activations in front of a quantized layer"
    if name.startswith(("v.", "mm.", "a.")):
        return "vision or audio tower"
    return "no account is known for this tensor name"


def _split_name(name: str) -> tuple[int | None, str]:
    match = _IN_LAYER.fullmatch(name)
    if match is None:
        return None, name
    suffix = _ONE_EXPERT.sub(r"\1.{expert}.weight", match[2])
    return int(match[1]), suffix


def place_of(layer: int | None, suffix: str, siblings: Collection[str]) -> Place | None:
    """Return the place of a tensor, or None when its name is not known.

    Parameters
    ----------
    layer : int or None
        Layer index; None = outside the layers.
    suffix : str
        Name without the layer.
    siblings : collection of str
        All suffixes of the same layer: some names mean different things beside different others.
    """
    if layer is None:
        place = _GLOBAL.get(suffix)
        if suffix == "token_embd.weight" and "output.weight" not in siblings:
            return _ffn("vocab", "head", "vocab")  # tied: one table, used as head
        return place
    if suffix == "post_attention_norm.weight":
        # alone it is the norm before the FFN (gpt-oss, Qwen3-Next), else one after attention
        after = "ffn_norm.weight" in siblings or "post_ffw_norm.weight" in siblings
        return _ATTENTION_NORM if after else _FFN_NORM
    if suffix == "attn_norm.weight" and not _MIXERS.intersection(siblings):
        return _FFN_NORM  # the one norm of a block that holds an MLP alone (Nemotron-H)
    if suffix == "ssm_dt.bias" and "ssm_dt.weight" in siblings:
        return _attention("vector", "tp")  # Mamba-1: the bias of a projection
    if suffix == "ssm_norm.weight" and "ssm_in.weight" in siblings:
        return _attention("vector", "tp", "state")  # Mamba-2 norms the whole inner width
    if suffix in ("attn_k.weight", "attn_v.weight") and "ssm_f_a.weight" in siblings:
        return _attention(split="tp")  # every head of delta attention has keys of its own
    if suffix == "ffn_down_exps.scale" and "ffn_gate_inp.scale" not in siblings:
        return None  # a parameter of Gemma 4's router only; else the scale of an NVFP4 tensor
    return _LAYER.get(suffix)


def layer_weights(
    booked: Iterable[Booked], split_qkv: tuple[int, int, int] | None = None
) -> tuple[Weight, ...]:
    """Turn the tensors of one layer (or those outside the layers) into weights.

    Parameters
    ----------
    booked : iterable of Booked
        Tensors of one layer.
    split_qkv : (int, int, int), optional
        Outputs of query, key and value in a fused ``attn_qkv`` tensor, which are split differently
        over devices.
    """
    singles: list[Weight] = []
    experts: dict[Weight, int] = {}
    for item in sorted(booked, key=lambda item: (item.suffix, item.tensor.name)):
        weights = _weights(item, split_qkv)
        if "{expert}" not in item.suffix:
            singles += weights
            continue
        for weight in weights:  # experts stored one by one are copies of one class
            experts[weight] = experts.get(weight, 0) + 1
    singles += [weight.model_copy(update={"copies": count}) for weight, count in experts.items()]
    return tuple(singles)


def _weights(item: Booked, split_qkv: tuple[int, int, int] | None) -> list[Weight]:
    tensor, place = item.tensor, item.place
    # with its scale beside it, ggml's nvfp4 is the one of the hub: 1 byte for 16, 4 for the tensor
    dtype = "nvfp4" if item.scale else ggml_type(tensor.type).storage_name
    name = item.suffix if item.layer is None else "blk.{layer}." + item.suffix
    shape, copies = tuple(reversed(tensor.ne)), 1
    if "_exps." in item.suffix:
        copies, shape = shape[0], shape[1:] or (1,)
    if place.use == "linear" and len(shape) == 1:
        shape = (1, *shape)  # one output: the gate of a shared expert
    shapes = [(shape, place.split)]
    if split_qkv is not None and item.suffix.startswith("attn_qkv.") and shape[0] == sum(split_qkv):
        splits: tuple[Split, ...] = ("tp", "kv_heads", "kv_heads")
        shapes = [
            ((rows, *shape[1:]), split) for rows, split in zip(split_qkv, splits, strict=True)
        ]
    return [
        Weight(
            name=name, ledger=place.ledger, account=place.account, shape=part, copies=copies,
            use=place.use, split=split, dtype=dtype, routed=place.routed,
        )
        for part, split in shapes
    ]  # fmt: skip
