"""The compute buffer of llama.cpp on a CPU: its graph, laid out as its allocator does.

llama.cpp plans one buffer for everything between the weights and the logits. Its size is what its
graph of tensors needs when a simple allocator places them one by one, holes included; nothing but
running that allocator gives it to the byte. Sources: ggml-org/llama.cpp,
``ggml/src/ggml-alloc.c`` (allocator), ``src/llama-graph.cpp`` (inputs, attention, experts).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.feed_forward import DenseFfn, MoeFfn, NoFfn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ledgerkit.spec.model import Model

__all__ = ["COMPUTE_TYPES", "compute_bytes"]

COMPUTE_TYPES = frozenset({"gemma2", "gemma3_text", "gpt_oss", "llama", "mistral", "mixtral",
                           "qwen2", "qwen3", "qwen3_moe"})  # fmt: skip
"""Model types whose graph is known: their buffers equal those of the log, to its 0.01 MiB."""

_ALIGNMENT = 32
_F32, _F16, _I32, _I64 = 4, 2, 4, 8
_ENDLESS = 1 << 62
_ROTATED = 64
"""Least width of a rotation."""
_GATED = 3
"""Matrices of an MLP with a gate."""


@dataclass(eq=False)
class _Tensor:
    """A node of the graph; sizes in bytes."""

    size: int
    sources: tuple[_Tensor, ...] = ()
    inplace: bool = False
    """The operation may write over its first source that nothing else reads."""
    view: _Tensor | None = None
    children: int = 0
    views: int = 0
    offset: int | None = None
    owner: bool = False


@dataclass
class _Graph:
    """Tensors in the order in which they are computed: sources first."""

    leaves: list[_Tensor] = field(default_factory=list)
    nodes: list[_Tensor] = field(default_factory=list)
    known: set[int] = field(default_factory=set)

    def expand(self, tensor: _Tensor) -> None:
        if id(tensor) in self.known:
            return
        self.known.add(id(tensor))
        for source in tensor.sources:
            self.expand(source)
        (self.nodes if tensor.sources else self.leaves).append(tensor)


class _Allocator:
    """First the best fitting hole, then the end; neighbours that are free are joined."""

    def __init__(self) -> None:
        self.free: list[list[int]] = [[0, _ENDLESS]]
        self.size = 0

    def take(self, size: int) -> int:
        size += -size % _ALIGNMENT
        holes = [hole for hole in self.free[:-1] if hole[1] >= size]
        # of equal holes the last one
        hole = min(reversed(holes), key=lambda hole: hole[1]) if holes else self.free[-1]
        offset = hole[0]
        hole[0], hole[1] = offset + size, hole[1] - size
        if not hole[1]:
            self.free.remove(hole)
        self.size = max(self.size, offset + size)
        return offset

    def give_back(self, offset: int, size: int) -> None:
        size += -size % _ALIGNMENT
        self.free.append([offset, size])
        self.free.sort()
        joined: list[list[int]] = []
        for start, length in self.free:
            if joined and sum(joined[-1]) == start:
                joined[-1][1] += length
            else:
                joined.append([start, length])
        self.free = joined


def _planned_bytes(graph: _Graph) -> int:
    """Place every tensor of a graph, and return the bytes that this takes."""
    memory = _Allocator()
    for leaf in graph.leaves:
        leaf.offset, leaf.owner = memory.take(leaf.size), True
    for node in graph.nodes:
        if node.view is not None:
            node.view.views += 1
        for source in node.sources:
            source.children += 1
    for node in graph.nodes:
        if node.view is None:
            _place(node, memory)
        for source in node.sources:
            source.children -= 1
            if not source.children and not source.views:
                _release(source, memory)
    return memory.size


def _release(tensor: _Tensor, memory: _Allocator) -> None:
    """Give back what nothing reads any more; of a view, what it views."""
    if tensor.view is not None:
        tensor.view.views -= 1
        tensor = tensor.view
        if tensor.views or tensor.children:
            return
    if tensor.owner and tensor.offset is not None:
        memory.give_back(tensor.offset, tensor.size)
        tensor.owner = False


def _place(node: _Tensor, memory: _Allocator) -> None:
    for source in node.sources if node.inplace else ():
        if source.size != node.size or source.children != 1 or source.views:
            continue
        viewed = source.view
        if viewed is not None and (viewed.views != 1 or viewed.children):
            continue
        owner = viewed or source
        if owner.owner:
            node.offset, node.owner, owner.owner = owner.offset, True, False
            return
    node.offset, node.owner = memory.take(node.size), True


# -- the graph of a decoder ------------------------------------------------------------------


def _op(size: int, *sources: _Tensor, inplace: bool = False) -> _Tensor:
    return _Tensor(size, sources, inplace)


def _view(tensor: _Tensor, size: int | None = None) -> _Tensor:
    return _Tensor(tensor.size if size is None else size, (tensor,), view=tensor.view or tensor)


class _Layer(NamedTuple):
    """What the graph of one layer depends on."""

    attention: SoftmaxAttention
    ffn: DenseFfn | MoeFfn
    windowed: bool


def _rotated(tensor: _Tensor, matrix: _Tensor | None) -> _Tensor:
    """Multiply by a matrix, so that what is quantized has no outliers."""
    return tensor if matrix is None else _view(_op(tensor.size, matrix, _view(tensor)))


@dataclass
class _Decoder:
    """Builds the graph of one physical batch, layer by layer."""

    hidden: int
    tokens: int
    outputs: int
    cells: Mapping[bool, int]
    """Cells that a token looks at, by whether the layer has a window."""
    scaled: bool
    """Whether embeddings are scaled by an input: 1 for those that were given as such."""
    rotations: tuple[int, int]
    """Widths of the matrices that rotate keys and values before they are quantized; 0 = none."""
    graph: _Graph = field(default_factory=_Graph)

    def __post_init__(self) -> None:
        tokens, stream = self.tokens, _F32 * self.hidden * self.tokens
        self.stream = _op(stream, _Tensor(_I32 * tokens))
        self.graph.expand(self.stream)
        self.graph.expand(_Tensor(stream))  # embeddings that are given instead of tokens
        given = _op(stream, _Tensor(stream))  # and both at once
        rows = _op(stream, _Tensor(_I32 * tokens))
        mixed = _Tensor(stream, (rows, _Tensor(_I64 * tokens), given), view=given)
        self.graph.expand(mixed)
        if self.scaled:  # embeddings, row by row
            self.stream = _op(stream, self.stream, _Tensor(_F32 * tokens), inplace=True)
        self.positions = _Tensor(_I32 * tokens)
        self.inputs = {
            kind: (_Tensor(_I64 * tokens), _Tensor(_I64 * tokens),
                   _Tensor(_F16 * cells * tokens))
            for kind, cells in self.cells.items()
        }  # fmt: skip
        self.rotate = {
            kind: tuple(_Tensor(_F32 * width**2) if width else None for width in self.rotations)
            for kind in self.cells
        }

    def norm(self, tensor: _Tensor) -> _Tensor:
        return _op(tensor.size, tensor, inplace=True)

    def attention(self, attention: SoftmaxAttention, *, windowed: bool) -> _Tensor:
        keys, values, mask = self.inputs[windowed]
        rotate_k, rotate_v = self.rotate[windowed]
        cur = self.norm(self.stream)
        heads, kv_heads = attention.num_attention_heads, attention.num_key_value_heads

        def project(count: int, width: int, *, rotate: bool) -> _Tensor:
            out = _view(_op(_F32 * count * width * self.tokens, cur))
            if rotate and attention.qk_norm:
                out = self.norm(out)
            return _op(out.size, out, self.positions) if rotate else out

        q = project(heads, attention.head_dim, rotate=True)
        k = project(kv_heads, attention.head_dim, rotate=True)
        v = project(kv_heads, attention.v_head_dim, rotate=False)
        q, k, v = _rotated(q, rotate_k), _rotated(k, rotate_k), _rotated(v, rotate_v)
        # with a second cache, of windows, keys come before values
        for tensor in (q, k, v) if True in self.cells else (q, v, k):
            self.graph.expand(tensor)
        # what is written to the cache takes no memory here
        self.graph.expand(_Tensor(0, (_view(k), keys)))
        self.graph.expand(_Tensor(0, (_view(v), values)))
        mixed = _op(_F32 * heads * attention.v_head_dim * self.tokens, _view(q), mask)
        return _op(self.stream.size, _rotated(_view(mixed), rotate_v))

    def dense(self, cur: _Tensor, width: int, tokens: int) -> _Tensor:
        size = _F32 * width * tokens
        return _op(_F32 * self.hidden * tokens, _op(size, _op(size, cur), _op(size, cur)))

    def experts(self, cur: _Tensor, ffn: MoeFfn, tokens: int) -> _Tensor:
        used, width = ffn.num_experts_per_tok, ffn.moe_intermediate_size
        every, few = _F32 * ffn.num_experts * tokens, _F32 * used * tokens
        probabilities = _op(every, _op(every, cur), inplace=True)
        chosen = _view(_op(every, probabilities), few)
        weights = _view(_op(few, _view(probabilities), chosen))
        total = _op(_F32 * tokens, _op(_F32 * tokens, weights), inplace=True)
        weights = _view(_op(few, weights, total, inplace=True))
        self.graph.expand(weights)
        rows = _view(cur)
        inner = [_op(used * _F32 * width * tokens, rows, chosen) for _ in range(2)]
        inner_out = _op(used * _F32 * width * tokens, *inner)
        whole = used * _F32 * self.hidden * tokens
        out = _op(whole, _op(whole, inner_out, chosen), weights, inplace=True)
        parts = [_view(out, whole // used) for _ in range(used)]
        for part in parts:
            self.graph.expand(part)
        total_out = parts[0]
        for part in parts[1:]:
            total_out = _op(whole // used, total_out, part, inplace=True)
        return total_out

    def layer(self, layer: _Layer, *, last: bool) -> None:
        residual, cur = self.stream, self.attention(layer.attention, windowed=layer.windowed)
        tokens = self.tokens
        if last:  # only rows whose logits are asked for go on
            tokens, rows = self.outputs, _Tensor(_I32 * self.outputs)
            size = _F32 * self.hidden * tokens
            cur, residual = _op(size, cur, rows), _op(size, residual, rows)
        middle = _op(cur.size, cur, residual, inplace=True)
        cur, ffn = self.norm(middle), layer.ffn
        if isinstance(ffn, DenseFfn):
            cur = self.dense(cur, ffn.intermediate_size, tokens)
        else:
            cur = self.experts(cur, ffn, tokens)
        self.stream = _op(middle.size, cur, middle, inplace=True)
        self.graph.expand(self.stream)

    def finish(self, vocab: int) -> int:
        self.graph.expand(_op(_F32 * vocab * self.outputs, self.norm(self.stream)))
        return _planned_bytes(self.graph)


def compute_bytes(
    model: Model,
    cells: Mapping[bool, int],
    tokens: int,
    outputs: int,
    *,
    windowed: bool,
    quantized: tuple[bool, bool] = (False, False),
) -> int | None:
    """Return the bytes of the compute buffer on a CPU with flash attention.

    Parameters
    ----------
    model : Model
    cells : Mapping of bool to int
        Cells of the cache that a token looks at, in layers without and with a window.
    tokens : int
        Tokens of one physical batch.
    outputs : int
        Rows of logits that are kept: one for each slot of the server.
    windowed : bool
        Whether llama.cpp honours the model's window.
    quantized : (bool, bool)
        Whether cached keys, and cached values, are of a quantized type: they are rotated first.

    Returns
    -------
    int or None
        None: the graph of this model type is not known.

    Examples
    --------
    >>> from ledgerkit.readers.config import read_config
    >>> smollm2 = read_config(
    ...     dict(
    ...         model_type="llama",
    ...         hidden_size=576,
    ...         intermediate_size=1536,
    ...         num_hidden_layers=30,
    ...         num_attention_heads=9,
    ...         num_key_value_heads=3,
    ...         vocab_size=49152,
    ...         max_position_embeddings=8192,
    ...     )
    ... )
    >>> size = compute_bytes(smollm2, {False: 4096}, 512, 1, windowed=False)
    >>> f"{size / 2**20:.2f} MiB"
    '18.64 MiB'
    """
    layers = _layers(model, windowed=windowed)
    if layers is None:
        return None
    decoder = _Decoder(model.hidden_size, tokens, min(outputs, tokens), cells,
                       scaled=model.model_type == "gemma3_text",
                       rotations=_rotations(layers[0].attention, *quantized))  # fmt: skip
    for number, layer in enumerate(layers):
        decoder.layer(layer, last=number == len(layers) - 1)
    return decoder.finish(model.vocab_size)


def _rotations(attention: SoftmaxAttention, keys: bool, values: bool) -> tuple[int, int]:  # noqa: FBT001
    """Return the widths of the rotations: only of heads of whole blocks of 64."""
    key_head, value_head = attention.head_dim, attention.v_head_dim
    # keys: the largest power of two that divides a head
    return (
        key_head & -key_head if keys and key_head % _ROTATED == 0 else 0,
        _ROTATED if values and value_head % _ROTATED == 0 else 0,
    )


def _layers(model: Model, *, windowed: bool) -> list[_Layer] | None:
    """Return the layers in order, or None where one is not of the kinds that are known."""
    found: dict[int, _Layer] = {}
    if model.model_type not in COMPUTE_TYPES:
        return None
    for group in model.groups:
        attention, ffn = group.attention, group.ffn
        fused = any("qkv" in weight.name for weight in group.weights)
        if not isinstance(attention, SoftmaxAttention) or isinstance(ffn, NoFfn) or fused:
            return None
        unknown = bool(attention.indexer or attention.output_gate or not attention.stores_kv)
        if isinstance(ffn, MoeFfn):
            unknown |= ffn.shared_intermediate_size + ffn.dense_intermediate_size > 0
            unknown |= ffn.num_experts_per_tok == 1
        if unknown or ffn.matrices != _GATED:
            return None
        here = windowed and attention.limit is not None
        found |= dict.fromkeys(group.layers, _Layer(attention, ffn, windowed=here))
    return [found[layer] for layer in sorted(found)]
