"""Read a GGUF file: architecture from its metadata, bytes from its tensors.

The metadata become the config of a family (``gguf_config``), which gives the kinds of attention and
FFN and predicts how many elements each account of each layer has. The weights of the model are then
the real tensors of the file, in their real types; where they do not add up to the prediction,
layer by layer and account by account, the file is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledgerkit.errors import CheckpointError
from ledgerkit.readers.config import read_config
from ledgerkit.readers.gguf_booking import Booked, book, layer_weights
from ledgerkit.readers.gguf_config import config_of
from ledgerkit.readers.gguf_header import GgufHeader, GgufTensor, read_header
from ledgerkit.readers.gguf_metadata import Metadata
from ledgerkit.spec.attention import Attention, SoftmaxAttention
from ledgerkit.spec.ggml import ggml_type
from ledgerkit.spec.model import LayerGroup, Model, Mtp

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ledgerkit.spec.weights import Weight

__all__ = ["GgufFile", "GgufTensor", "read_gguf", "read_gguf_file"]

_PART = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf")
_LISTED = 5
_KEYS_AND_VALUES = ("attn_k.", "attn_v.", "attn_k_norm.")

Account = tuple[str, str]


@dataclass(frozen=True)
class GgufFile:
    """The header of a GGUF model: one file, or all parts of a split one."""

    path: str
    """The file that was asked for."""
    version: int
    metadata: dict[str, Any]
    """Keys and values of the first part; what was too long to keep is a ``GgufArray``."""
    tensors: tuple[GgufTensor, ...]
    """Tensors of all parts."""
    file_bytes: int
    """Bytes of all parts, headers included."""

    @cached_property
    def _books(self) -> tuple[list[Booked], list[tuple[GgufTensor, str]]]:
        return book(self.tensors)

    @property
    def booked(self) -> tuple[Booked, ...]:
        """Tensors that belong to an account, with their places."""
        return tuple(self._books[0])

    @property
    def unbooked(self) -> tuple[tuple[GgufTensor, str], ...]:
        """Tensors that belong to none, each with the reason."""
        return tuple(self._books[1])

    @property
    def tensor_bytes(self) -> int:
        """Bytes of all tensors, padding between them left out."""
        return sum(tensor.bytes for tensor in self.tensors)

    @property
    def types(self) -> dict[str, int]:
        """Bytes by ggml type, the largest first."""
        sizes: Counter[str] = Counter()
        for tensor in self.tensors:
            sizes[tensor.type] += tensor.bytes
        return dict(sizes.most_common())


def read_gguf_file(path: str | Path) -> GgufFile:
    """Read the header of a GGUF file, or of all parts of a split one; no weights are loaded.

    Parameters
    ----------
    path : str or pathlib.Path
        A ``.gguf`` file; of a split model, any part.

    Raises
    ------
    CheckpointError
        A header is truncated, corrupt or hostile, or a part is missing.
    """
    path = Path(path)
    headers = [read_header(part) for part in _parts(path)]
    first = headers[0]
    if len(headers) > 1 or first.metadata.get("split.count", 0) not in (0, 1):
        _check_parts(headers)
    tensors = tuple(tensor for header in headers for tensor in header.tensors)
    names = Counter(tensor.name for tensor in tensors)
    if len(names) != len(tensors):
        raise CheckpointError(f"{path.name}: a tensor occurs in two parts",
                              given=names.most_common(1)[0][0])  # fmt: skip
    size = sum(header.file_bytes for header in headers)
    return GgufFile(str(path), first.version, first.metadata, tensors, size)


def _parts(path: Path) -> list[Path]:
    match = _PART.fullmatch(path.name)
    if match is None:
        return [path]
    count = int(match["count"])
    parts = [path.with_name(f"{match['stem']}-{n:05d}-of-{count:05d}.gguf")
             for n in range(1, count + 1)]  # fmt: skip
    if path not in parts:
        raise CheckpointError("the name of the file states a part that cannot be", given=path.name)
    missing = [part.name for part in parts if not part.is_file()]
    if missing:
        raise CheckpointError(
            f"{path.name}: {len(missing)} of {count} parts are missing",
            given=missing[:_LISTED], fix="put all parts into one directory",
        )  # fmt: skip
    return parts


def _check_parts(headers: list[GgufHeader]) -> None:
    total = sum(len(header.tensors) for header in headers)
    for number, header in enumerate(headers):
        stated = {key: header.metadata.get(f"split.{key}") for key in ("no", "count")}
        expected = {"no": number, "count": len(headers)}
        if stated != expected:
            raise CheckpointError(
                f"{header.path}: the header contradicts the name of the part", given=stated,
                allowed=str(expected), fix="keep the names that gguf-split gave, "
                "NAME-00001-of-0000N.gguf",
            )  # fmt: skip
        promised = header.metadata.get("split.tensors.count", total)
        if promised != total:
            raise CheckpointError(f"{header.path}: the parts hold {total} tensors",
                                  given=promised)  # fmt: skip


def read_gguf(path: str | Path) -> Model:
    """Read a GGUF file into a ``Model`` whose weights are the tensors of the file.

    Parameters
    ----------
    path : str or pathlib.Path
        A ``.gguf`` file of llama.cpp; of a split model, any part.

    Returns
    -------
    Model
        Weights have their ggml types and llama.cpp's tensor names; layers are in one group only if
        all their tensors have equal types.

    Raises
    ------
    CheckpointError
        The file is truncated, corrupt or hostile, or its tensors contradict its metadata.
    UnsupportedArchitectureError
        No reader knows this architecture, or one of its keys.
    """
    file = read_gguf_file(path)
    shown = Path(path).name
    meta = Metadata(file.metadata, {tensor.name: tensor for tensor in file.tensors}, shown)
    match = _PART.fullmatch(shown)
    slug = (match["stem"] if match else Path(path).stem).lower()
    predicted = read_config({**config_of(meta), "torch_dtype": "float16"}, slug, str(path))
    heads = predicted.mtp is not None and any(w.use == "head" for w in predicted.mtp.extra)
    booked, unbooked = book(file.tensors, own_heads=heads)
    by_layer: dict[int | None, list[Booked]] = {}
    stale = []
    sharing = {layer for group in predicted.groups for layer in group.layers
               if not getattr(group.attention, "stores_kv", True)}  # fmt: skip
    for item in booked:
        if item.layer in sharing and item.suffix.startswith(_KEYS_AND_VALUES):
            stale.append(
                (item.tensor, "keys and values of a layer that reads another layer's cache")
            )
        else:
            by_layer.setdefault(item.layer, []).append(item)
    outside = layer_weights(by_layer.pop(None, []))
    _compare(shown, "outside the layers", predicted.globals, outside)
    groups = _groups(shown, predicted, by_layer)
    mtp = _mtp(shown, predicted, by_layer)
    name = file.metadata.get("general.name")
    return Model(
        slug=slug,
        name=name if isinstance(name, str) and name else slug,
        model_type=predicted.model_type,
        source=str(path),
        hidden_size=predicted.hidden_size,
        vocab_size=predicted.vocab_size,
        max_position_embeddings=predicted.max_position_embeddings,
        tie_word_embeddings=predicted.tie_word_embeddings,
        dtype=_plain_dtype(file),
        quantization="GGUF " + ", ".join(file.types),
        groups=groups,
        globals=outside,
        mtp=mtp,
        notes=(*predicted.notes, *_notes([*unbooked, *stale])),
    )


def _groups(
    path: str, predicted: Model, by_layer: dict[int | None, list[Booked]]
) -> tuple[LayerGroup, ...]:
    kinds = {layer: group for group in predicted.groups for layer in group.layers}
    last = len(kinds) + (predicted.mtp.num_layers if predicted.mtp else 0) - 1
    beyond = sorted(layer for layer in by_layer if layer is not None and layer > last)
    if beyond:
        raise CheckpointError(f"{path}: tensors of layers that block_count does not count",
                              given=beyond[:_LISTED], allowed=f"0 to {last}")  # fmt: skip
    members: dict[tuple[int, tuple[Weight, ...]], list[int]] = {}
    for layer in sorted(kinds):
        group = kinds[layer]
        weights = layer_weights(by_layer.get(layer, []), _fused(group.attention))
        _compare(path, f"in layer {layer}", group.weights, weights)
        members.setdefault((id(group), weights), []).append(layer)
    return tuple(
        LayerGroup(
            layers=tuple(layers), attention=kinds[layers[0]].attention, ffn=kinds[layers[0]].ffn,
            weights=weights,
        )
        for (_, weights), layers in members.items()
    )  # fmt: skip


def _mtp(path: str, predicted: Model, by_layer: dict[int | None, list[Booked]]) -> Mtp | None:
    """Return the MTP blocks, which follow the layers."""
    if predicted.mtp is None:
        return None
    plan, first = predicted.mtp, predicted.num_hidden_layers
    layers = tuple(range(first, first + plan.num_layers))
    found = {}
    for layer in layers:
        weights = layer_weights(by_layer.get(layer, []), _fused(plan.group.attention))
        _compare(path, f"in MTP block {layer}", (*plan.group.weights, *plan.extra), weights)
        found[weights] = layer
    if len(found) > 1:
        raise CheckpointError(f"{path}: MTP blocks of different types", given=layers)
    weights = next(iter(found))
    inner = tuple(weight for weight in weights if weight.account != "draft")
    group = LayerGroup(layers=layers, attention=plan.group.attention, ffn=plan.group.ffn,
                       weights=inner)  # fmt: skip
    extra = tuple(weight for weight in weights if weight.account == "draft")
    return Mtp(num_layers=plan.num_layers, group=group, extra=extra)


def _fused(attention: Attention) -> tuple[int, int, int] | None:
    """Return the outputs of query, key and value, for architectures that store them as one."""
    if not isinstance(attention, SoftmaxAttention):
        return None
    kv_heads = attention.num_key_value_heads
    return (attention.num_attention_heads * attention.head_dim, kv_heads * attention.head_dim,
            kv_heads * attention.v_head_dim)  # fmt: skip


def _compare(path: str, where: str, predicted: Iterable[Weight], found: Iterable[Weight]) -> None:
    """Refuse tensors that do not add up to what the metadata say, account by account."""
    expected, real = _elements(predicted), _elements(found)
    for account in sorted(expected.keys() | real.keys()):
        if expected[account] != real[account]:
            raise CheckpointError(
                f"{path}: the tensors {where} contradict the metadata: {'/'.join(account)} holds "
                f"{real[account]} elements", given=[weight.name for weight in found
                if (weight.ledger, weight.account) == account],
                allowed=f"{expected[account]} elements",
            )  # fmt: skip


def _elements(weights: Iterable[Weight]) -> Counter[Account]:
    books: Counter[Account] = Counter()
    for weight in weights:
        books[weight.ledger, weight.account] += weight.elements
    return books


def _plain_dtype(file: GgufFile) -> str:
    """Return the format of the unquantized tensors: the one that holds most bytes."""
    plain = [name for name in file.types if name in ("f32", "f16", "bf16")]
    return ggml_type(plain[0]).storage_name if plain else "fp32"


def _notes(unbooked: Iterable[tuple[GgufTensor, str]]) -> list[str]:
    reasons: dict[str, list[GgufTensor]] = {}
    for tensor, reason in unbooked:
        reasons.setdefault(reason, []).append(tensor)
    return [
        f"{len(tensors)} tensors ({sum(tensor.bytes for tensor in tensors)} B) are booked to no "
        f"account: {reason}: {', '.join(tensor.name for tensor in tensors[:_LISTED])}"
        for reason, tensors in reasons.items()
    ]
