"""Matching the tensors that a checkpoint stores with those that its config predicts.

Names are matched one by one. A quantized layer is several stored tensors (packed codes, scales,
zero points ...) of one predicted weight; experts may be stored one by one or fused; wrappers put
prefixes before names. What matches nothing is a tower, an MTP block, a known leftover, or unbooked.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ledgerkit.spec.model import Model
    from ledgerkit.spec.weights import Weight

__all__ = ["Expected", "Target", "expand", "match", "other_place"]

_COMPANIONS: tuple[tuple[str, str], ...] = (
    # block-fp8, compressed-tensors, modelopt
    (".weight_scale_inv", ".weight"),
    (".weight_scale_2", ".weight"),
    (".weight_scale", ".weight"),
    (".weight_global_scale", ".weight"),
    (".weight_packed", ".weight"),
    (".weight_shape", ".weight"),
    (".weight_zero_point", ".weight"),
    (".weight_g_idx", ".weight"),
    (".input_scale", ".weight"),
    (".input_global_scale", ".weight"),
    (".input_zero_point", ".weight"),
    # GPTQ, AWQ
    (".qweight", ".weight"),
    (".qzeros", ".weight"),
    (".scales", ".weight"),
    (".g_idx", ".weight"),
    # bitsandbytes
    (".weight.absmax", ".weight"),
    (".weight.quant_map", ".weight"),
    (".weight.nested_absmax", ".weight"),
    (".weight.nested_quant_map", ".weight"),
    (".weight.quant_state.bitsandbytes__nf4", ".weight"),
    (".weight.quant_state.bitsandbytes__fp4", ".weight"),
    (".weight_format", ".weight"),
    (".SCB", ".weight"),
    # fused experts: gpt-oss in MXFP4, block-fp8
    ("_blocks", ""),
    ("_scales", ""),
    ("_scale_inv", ""),
    # DeepSeek-V4 and kin
    (".scale", ".weight"),
)
"""Ending of a stored name → ending of the name of the weight that it belongs to."""


def _moved(before: str, after: str) -> Callable[[str], str]:
    return lambda name: after + name[len(before) :] if name.startswith(before) else name


_PREFIXES: tuple[Callable[[str], str], ...] = (
    lambda name: name,
    _moved("", "model."),
    _moved("model.", ""),
    _moved("", "transformer."),
    _moved("transformer.", ""),
    _moved("", "language_model."),
    _moved("language_model.", ""),
    _moved("model.language_model.", "language_model.model."),
    _moved("language_model.model.", "model.language_model."),
    _moved("model.language_model.", "model."),
    _moved("model.", "model.language_model."),
)
_FUSED = re.compile(r"(?P<at>.*\bexperts)\.(?P<part>gate_up_proj|gate_proj|up_proj|down_proj)")
_SINGLE = re.compile(
    r"(?P<at>.*\bexperts)\.\d+\.(?P<part>gate_proj|up_proj|down_proj|w1|w2|w3)\.weight"
)
_PARTS = {"gate_up_proj": ("gate_proj", "up_proj"), "gate_proj": ("gate_proj",),
          "up_proj": ("up_proj",), "down_proj": ("down_proj",)}  # fmt: skip
_JOINED = {"gate_proj": "gate_up_proj", "up_proj": "gate_up_proj", "w1": "gate_up_proj",
           "w3": "gate_up_proj", "down_proj": "down_proj", "w2": "down_proj"}  # fmt: skip

_TOWER = re.compile(
    r"(?:model\.)?(?P<tower>vision_tower|vision_model|vision_encoder|visual|vit_large_projector"
    r"|vision_language_adapter|vision_projection|vision_embed\w*|embed_vision|patch_merger"
    r"|multi_modal_projector|multimodal_projector|mm_projector|pre_mm_projector_norm"
    r"|image_newline|audio_tower|audio_model|audio_encoder|audio_projector|embed_audio)\b"
)
_LAYER = re.compile(r"\blayers\.(\d+)\.")
_LEFTOVERS = (
    (re.compile(r".*rotary_emb\.(?:inv_freq|cos_cached|sin_cached)"),
     "rotary angles: constants that follow from the config"),
    (re.compile(r".*\battn\.(?:bias|masked_bias)"), "a causal mask: a constant"),
    (re.compile(r".*\.(?:slope_rate|(?:diagonal|key|query)_decay)"),
     "decay of linear attention: constants that follow from the config"),
    (re.compile(r".*\.(?:[kv]_scale|kv_cache_scaling_factor|[kqv]_zero_point)"),
     "scale of a quantized cache"),
)  # fmt: skip


class Target(NamedTuple):
    """One predicted tensor."""

    key: tuple[str, bool]
    """Name of its class, and whether it belongs to an MTP block."""
    layer: int


class Expected(NamedTuple):
    """A class of predicted tensors: all that share a name, over all layers."""

    name: str
    mtp: bool
    weights: tuple[tuple[Weight, int], ...]
    """Rows with this name and the number of their layers; slices of one tensor are several."""
    shape: tuple[int, ...]
    """One tensor of the first layer that has it, slices joined along the outputs."""
    tensors: int
    """Stored tensors that the class should have."""

    @property
    def bytes(self) -> float:
        """Predicted bytes of all of them."""
        return sum(weight.bytes * count for weight, count in self.weights)


def expand(model: Model) -> tuple[dict[str, Target], dict[tuple[str, bool], Expected]]:
    """Return every predicted tensor by name, and the classes that they fall into.

    Parameters
    ----------
    model : Model
        Read from the config of the checkpoint.
    """
    names: dict[str, Target] = {}
    classes: dict[tuple[str, bool], Expected] = {}
    for part in _parts(model):
        for key, (weights, layers) in part.items():
            fresh = {
                name: Target(key, layer) for layer in layers for name in _names(weights[0], layer)
            }
            names |= fresh
            rows = tuple((weight, len(layers)) for weight in weights)
            known = classes.get(key)
            if known is None:
                classes[key] = Expected(*key, rows, _joined_shape(weights), len(fresh))
            else:
                classes[key] = known._replace(
                    weights=known.weights + rows, tensors=known.tensors + len(fresh)
                )
    return names, classes


Part = dict[tuple[str, bool], tuple[list["Weight"], list[int]]]


def _parts(model: Model) -> Iterator[Part]:
    """Yield rows by name: outside the layers, group by group, MTP blocks."""
    sources: list[tuple[Iterable[Weight], Iterable[int], bool]] = [(model.globals, (0,), False)]
    sources += [(group.weights, group.layers, False) for group in model.groups]
    if model.mtp is not None:
        blocks = model.mtp.group.layers
        sources.append(((*model.mtp.group.weights, *model.mtp.extra), blocks, True))
    for weights, layers, mtp in sources:
        part: Part = {}
        for weight in weights:
            # blocks with a module of their own are counted from zero there
            first = min(layers) if mtp and "mtp" in weight.name.partition("{layer}")[0] else 0
            numbers = [layer - first for layer in layers]
            part.setdefault((weight.name, mtp), ([], numbers))[0].append(weight)
        yield part


def _joined_shape(weights: list[Weight]) -> tuple[int, ...]:
    first = weights[0]
    rows = sum(weight.shape[0] * (1 if weight.routed else weight.copies) for weight in weights)
    shape = (rows, *first.shape[1:])
    return (first.copies, *shape) if first.routed and "{expert}" not in first.name else shape


def _names(weight: Weight, layer: int) -> Iterator[str]:
    name = weight.name.replace("{layer}", str(layer))
    if "{expert}" not in name:
        yield name
        return
    for expert in range(weight.copies):
        yield name.replace("{expert}", str(expert))


def match(name: str, expected: dict[str, Target]) -> list[str]:
    """Return the predicted tensors that a stored one belongs to; several when it is fused.

    Parameters
    ----------
    name : str
        Stored name.
    expected : dict
        Predicted tensors, from ``expand``.

    Examples
    --------
    >>> expected = {"model.layers.0.mlp.up_proj.weight": Target(("...", False), 0)}
    >>> match("model.layers.0.mlp.up_proj.weight_scale_inv", expected)
    ['model.layers.0.mlp.up_proj.weight']
    """
    for moved in dict.fromkeys(move(name) for move in _PREFIXES):
        for candidate in _candidates(moved):
            if candidate in expected:
                return [candidate]
        for candidate in _candidates(moved):
            found = _across_experts(candidate, expected)
            if found:
                return found
    return []


def _candidates(name: str) -> Iterator[str]:
    yield name
    for ending, weight in _COMPANIONS:
        if name.endswith(ending):
            yield name[: -len(ending)] + weight


def _across_experts(name: str, expected: dict[str, Target]) -> list[str]:
    """Match fused experts with single ones and the other way round."""
    fused = _FUSED.fullmatch(name.removesuffix(".weight"))
    if fused is not None:
        found = []
        for part in _PARTS[fused["part"]]:
            expert = 0
            while (single := f"{fused['at']}.{expert}.{part}.weight") in expected:
                found.append(single)
                expert += 1
        return found
    single_expert = _SINGLE.fullmatch(name)
    if single_expert is not None:
        joined = f"{single_expert['at']}.{_JOINED[single_expert['part']]}"
        return [other for other in (joined, joined + ".weight") if other in expected]
    return []


def other_place(name: str, model: Model) -> tuple[str, str]:
    """Say where a tensor belongs that the config does not predict.

    Parameters
    ----------
    name : str
        Stored name.
    model : Model
        Read from the config.

    Returns
    -------
    kind : str
        ``tower``, ``mtp`` or ``unbooked``.
    detail : str
        Name of the tower, or the reason.
    """
    tower = _TOWER.match(name)
    if tower is not None:
        return "tower", tower["tower"]
    layer = _LAYER.search(name)
    beyond = layer is not None and int(layer[1]) >= model.num_hidden_layers
    if beyond or name.startswith(("mtp.", "model.mtp")):
        return "mtp", "a tensor of an MTP block that the config does not predict"
    for pattern, reason in _LEFTOVERS:
        if pattern.fullmatch(name):
            return "unbooked", reason
    if name.endswith("lm_head.weight") and model.tie_word_embeddings:
        return "unbooked", "a second copy of the tied embedding"
    return "unbooked", "the config predicts no such tensor"
