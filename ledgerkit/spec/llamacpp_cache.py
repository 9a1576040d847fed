"""What llama.cpp allocates for the past of its sequences, buffer by buffer, as its log prints it.

Everything is allocated when the context is created: a rectangle of *cells* (token slots) times
layers for keys and values, a smaller one for the layers with a sliding window, and one cell for
each sequence in recurrent layers. The rules are those of releases since November 2025 (cells padded
to 256): ggml-org/llama.cpp@02c28f5, ``src/llama-context.cpp`` (context and batch),
``src/llama-kv-cache.cpp`` (rows), ``src/llama-kv-cache-iswa.cpp`` (windowed cells) and
``src/llama-memory-recurrent.cpp`` (states).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Literal

from ledgerkit.errors import CapacityError, UnsupportedDtypeError
from ledgerkit.spec._base import Count, Frozen, Size, true_or_false, whole_number
from ledgerkit.spec.attention import (
    Attention,
    LatentAttention,
    NoAttention,
    SoftmaxAttention,
    StateAttention,
)
from ledgerkit.spec.ggml import GgmlType, ggml_type
from ledgerkit.spec.llamacpp_compute import compute_bytes

if TYPE_CHECKING:
    from ledgerkit.spec.model import Model

__all__ = ["CACHE_TYPES", "CacheBuffer", "LlamaCppCache", "llamacpp_cache"]

CACHE_TYPES = ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")
"""What ``--cache-type-k`` and ``--cache-type-v`` accept (``common/arg.cpp``)."""

_PAD = 256
_MIB = 1024 * 1024
_MAX_SEQUENCES = 256
_MAX_CONTEXT = (1 << 32) - _PAD
_MAX_BATCH = (1 << 31) - 1

_WINDOWED = frozenset({
    "afmoe", "cohere2", "exaone4", "exaone_moe", "gemma2", "gemma3", "gemma3_text", "gemma3n",
    "gemma3n_text", "gemma4", "gemma4_text", "gemma4_unified", "gemma4_unified_text", "gpt_oss",
    "laguna", "llama4", "llama4_text", "mimo_v2", "mimo_v2_flash", "olmo3", "step3p5",
    "step3p7_text",
})  # fmt: skip
"""Model types whose window llama.cpp gives a cache of its own."""
_NOT_WINDOWED = frozenset({"mistral", "ministral", "mixtral", "phi3", "phimoe", "qwen2",
                           "qwen2_moe", "qwen3", "qwen3_moe", "starcoder2"})  # fmt: skip
"""Model types whose window llama.cpp ignores: every layer keeps the whole context."""


_STATES = ("gated_delta_net", "kda", "mamba", "mamba2", "short_conv")


class CacheBuffer(Frozen):
    """One allocation, as one line of the log.

    Examples
    --------
    >>> CacheBuffer(
    ...     kind="kv",
    ...     cells=2048,
    ...     layers=3,
    ...     streams=2,
    ...     sequences=2,
    ...     type_k="q8_0",
    ...     type_v="q8_0",
    ...     k_bytes=3342336,
    ...     v_bytes=3342336,
    ... ).line
    'size = 6.38 MiB (2048 cells, 3 layers, 2/2 seqs), K (q8_0): 3.19 MiB, V (q8_0): 3.19 MiB'
    """

    kind: Literal["kv", "swa", "indexer", "state"]
    """``kv``: layers that keep the whole context; ``swa``: layers with a window; ``indexer``: index
    keys of DeepSeek sparse attention; ``state``: recurrent layers, whose K is the convolution (R in
    the log) and V the state (S)."""
    cells: Size
    """Token slots of one stream; sequences for ``state``."""
    layers: Count
    """Layers that store something; the log counts all layers of the model for ``state``."""
    streams: Size
    """Separate rectangles: one, or one for each sequence."""
    sequences: Size
    """Slots of the server."""
    type_k: str
    type_v: str
    k_bytes: Count
    v_bytes: Count

    @property
    def bytes(self) -> int:
        """Bytes of the buffer."""
        return self.k_bytes + self.v_bytes

    @property
    def line(self) -> str:
        """The line of the log, spaces collapsed; MiB = 2^20 bytes."""
        total, keys, values = _mib(self.bytes), _mib(self.k_bytes), _mib(self.v_bytes)
        start = f"size = {total} MiB ({self.cells} cells, {self.layers} layers, {self.sequences}"
        if self.kind == "state":
            # no rollback snapshots, no history of per-layer embeddings: no model here has them
            return (f"{start} seqs 0 rs_seq), R ({self.type_k}): {keys} MiB, "
                    f"S ({self.type_v}): {values} MiB, P (f32): 0.00 MiB")  # fmt: skip
        return (f"{start}/{self.streams} seqs), K ({self.type_k}): {keys} MiB, "
                f"V ({self.type_v}): {values} MiB")  # fmt: skip


class LlamaCppCache(Frozen):
    """All cache buffers of one llama.cpp context."""

    n_ctx: Size
    """Cells of all sequences together, after padding."""
    n_ctx_seq: Size
    """Cells that one sequence can use."""
    n_ubatch: Size
    """Tokens of one physical batch."""
    buffers: tuple[CacheBuffer, ...]
    output_bytes: Size
    """Bytes of the output buffer: a row of logits in single precision for each slot."""
    compute_bytes: int | None
    """Bytes of the compute buffer on a CPU with flash attention and no F32 cache; None: not
    derived, for these settings or for this model type."""

    @property
    def bytes(self) -> int:
        """Bytes of all cache buffers."""
        return sum(buffer.bytes for buffer in self.buffers)

    @property
    def lines(self) -> tuple[str, ...]:
        """Lines of the log on cache, output and (on a CPU) compute buffers, spaces collapsed."""
        lines = [buffer.line for buffer in self.buffers]
        lines.append(f"output buffer size = {_mib(self.output_bytes)} MiB")
        if self.compute_bytes is not None:
            lines.append(f"compute buffer size = {_mib(self.compute_bytes)} MiB")
        return tuple(lines)


def _mib(size: int) -> str:
    # the log divides in single precision, which shows in the second decimal above 16 MiB
    return f"{struct.unpack('f', struct.pack('f', size))[0] / _MIB:.2f}"


def _padded(cells: int) -> int:
    return -(-cells // _PAD) * _PAD


def llamacpp_cache(
    model: Model,
    n_ctx: int = 0,
    n_parallel: int = 1,
    *,
    cache_type_k: str = "f16",
    cache_type_v: str = "f16",
    unified: bool = False,
    n_batch: int = 2048,
    n_ubatch: int = 512,
    swa_full: bool = False,
    flash_attn: bool = True,
    windowed: bool | None = None,
    latent: Literal["latent", "expanded"] = "latent",
) -> LlamaCppCache:
    """Return every buffer that llama.cpp allocates for a model, its weights left out.

    Exact are the lines of cache and output buffers, for every model that is accepted, and the line
    of the compute buffer where one is given: for the types of ``llamacpp_compute.COMPUTE_TYPES`` on
    a CPU. For others, for F32 caches, without flash attention, and on GPUs, where llama.cpp splits
    its graph, it is not derived. Nothing is estimated. Weights are ``Model.weight_bytes``.

    Parameters
    ----------
    model : Model
        From a GGUF file, or from a config: what counts are the shapes of attention.
    n_ctx : int
        ``--ctx-size``: tokens of all sequences together; 0 = as the model was trained.
    n_parallel : int
        ``--parallel``: slots.
    cache_type_k, cache_type_v : str
        ``--cache-type-k``, ``--cache-type-v``: a type of ``CACHE_TYPES``.
    unified : bool
        ``--kv-unified``: all sequences share one rectangle of cells.
    n_batch, n_ubatch : int
        ``--batch-size``, ``--ubatch-size``: tokens.
    swa_full : bool
        ``--swa-full``: windowed layers keep the whole context too.
    flash_attn : bool
        Whether flash attention is on; without it values are stored transposed, and padded to the
        widest layer.
    windowed : bool, optional
        Whether llama.cpp honours this model's window; None = by model type.
    latent : {"latent", "expanded"}
        MLA: the latent alone (files with ``key_length_mla``), or keys and values of every head
        (files converted before llama.cpp had MLA).

    Raises
    ------
    CapacityError
        A setting that llama.cpp refuses, or a kind of attention whose cache is not known.
    UnsupportedDtypeError
        A type that no cache can have, or whose blocks do not divide the heads.

    Examples
    --------
    >>> from ledgerkit.readers.config import read_config
    >>> llama = read_config(
    ...     dict(
    ...         model_type="llama",
    ...         hidden_size=4096,
    ...         intermediate_size=14336,
    ...         num_hidden_layers=32,
    ...         num_attention_heads=32,
    ...         num_key_value_heads=8,
    ...         vocab_size=128256,
    ...         max_position_embeddings=131072,
    ...     )
    ... )
    >>> llamacpp_cache(llama, n_ctx=8192).bytes == 8192 * 131072
    True
    """
    _check_choices(latent, unified=unified, swa_full=swa_full, flash_attn=flash_attn,
                   windowed=False if windowed is None else windowed)  # fmt: skip
    kind_k, kind_v = _cache_type(cache_type_k), _cache_type(cache_type_v)
    if kind_v.block_elements > 1 and not flash_attn:
        raise CapacityError(
            "llama.cpp quantizes cached values with flash attention only",
            given=cache_type_v,
            allowed="f32, f16, bf16, or flash_attn=True",
            fix="set flash_attn=True",
        )
    n_parallel = whole_number(CapacityError, "n_parallel", n_parallel, most=_MAX_SEQUENCES)
    n_batch = whole_number(CapacityError, "n_batch", n_batch, most=_MAX_BATCH)
    n_ubatch = whole_number(CapacityError, "n_ubatch", n_ubatch, 0, _MAX_BATCH)
    n_ctx = whole_number(CapacityError, "n_ctx", n_ctx, 0, _MAX_CONTEXT)
    context = n_ctx or whole_number(CapacityError, "n_ctx", model.max_position_embeddings,
                                    most=_MAX_CONTEXT)  # fmt: skip
    batch = min(context, n_batch)
    ubatch = min(batch, n_ubatch or n_batch)
    # n_ctx is first padded as a whole, then shared out, then padded again
    per_sequence = _padded(context) if unified else _padded(_padded(context) // n_parallel)
    streams = 1 if unified else n_parallel
    honoured = _honours_window(model) if windowed is None else windowed
    plain, with_window, states = _sort(model, windowed=honoured)
    widths = [_widths(attention, latent) for attention, _ in (*plain, *with_window)]
    widest = None if flash_attn else max((values for _, values in widths), default=0)
    buffers = []
    if plain or with_window:
        whole = _rectangle("kv", plain, per_sequence, streams, n_parallel, kind_k, kind_v, widest,
                           latent)  # fmt: skip
        buffers.append(_all_counted(whole, model))
    if with_window:
        limits = {attention.limit for attention, _ in with_window}
        if len(limits) > 1:
            raise CapacityError(
                "llama.cpp has one window for all layers",
                given=sorted(limit for limit in limits if limit is not None),
                allowed="models with one window",
            )
        window = limits.pop() or 0
        cells = _padded(min(per_sequence, window * (n_parallel if unified else 1) + ubatch))
        buffers.append(_rectangle("swa", with_window, per_sequence if swa_full else cells, streams,
                                  n_parallel, kind_k, kind_v, widest, latent))  # fmt: skip
    indexed = [(attention.indexer, count) for attention, count in plain if attention.indexer]
    if indexed:
        keys = sum(count * kind_k.row_bytes(indexer.elements_per_token)
                   for indexer, count in indexed)  # fmt: skip
        owners = sum(count for indexer, count in indexed if indexer.owned)
        buffers.append(
            CacheBuffer(
                kind="indexer", cells=per_sequence, layers=owners, streams=streams,
                sequences=n_parallel, type_k=kind_k.name, type_v=kind_v.name,
                k_bytes=keys * per_sequence * streams, v_bytes=0,
            )
        )  # fmt: skip
    if states:
        buffers.append(_states(states, model.num_hidden_layers, n_parallel))
    compute = None
    if flash_attn and "f32" not in (kind_k.name, kind_v.name):
        seen = {buffer.kind == "swa": buffer.cells for buffer in buffers}
        tokens = -(-ubatch // n_parallel) * n_parallel  # as many of each sequence
        quantized = kind_k.block_elements > 1, kind_v.block_elements > 1
        compute = compute_bytes(model, seen, tokens, n_parallel, windowed=honoured,
                                quantized=quantized)  # fmt: skip
    return LlamaCppCache(
        n_ctx=per_sequence * streams, n_ctx_seq=per_sequence, n_ubatch=ubatch,
        buffers=tuple(buffers), output_bytes=n_parallel * model.vocab_size * 4,
        compute_bytes=compute,
    )  # fmt: skip


def _check_choices(latent: str, **flags: bool) -> None:
    for name, flag in flags.items():
        true_or_false(CapacityError, name, flag)
    if latent not in ("latent", "expanded"):
        raise CapacityError("latent names what is kept of MLA", given=latent,
                            allowed="latent, expanded", fix="use latent='latent'")  # fmt: skip


def _cache_type(name: str) -> GgmlType:
    if name not in CACHE_TYPES:
        raise UnsupportedDtypeError("llama.cpp has no cache of this type", given=name,
                                    allowed=", ".join(CACHE_TYPES))  # fmt: skip
    return ggml_type(name)


def _honours_window(model: Model) -> bool:
    if model.model_type in _WINDOWED:
        return True
    has_window = any(
        isinstance(group.attention, SoftmaxAttention) and group.attention.limit is not None
        for group in model.groups
    )
    if has_window and model.model_type not in _NOT_WINDOWED:
        raise CapacityError(
            "it is not known whether llama.cpp honours the sliding window of this model type",
            given=model.model_type,
            allowed="windowed=True, windowed=False",
            fix="say windowed=True or windowed=False",
        )
    return False


Plain = SoftmaxAttention | LatentAttention


def _sort(
    model: Model, *, windowed: bool
) -> tuple[
    list[tuple[Plain, int]], list[tuple[SoftmaxAttention, int]], list[tuple[StateAttention, int]]
]:
    """Sort layers into those that keep the context, those that keep a window, and states."""
    plain: list[tuple[Plain, int]] = []
    with_window: list[tuple[SoftmaxAttention, int]] = []
    states: list[tuple[StateAttention, int]] = []
    for group in model.groups:
        attention: Attention = group.attention
        match attention:
            case NoAttention():
                continue
            case StateAttention() if attention.variant in _STATES:
                states.append((attention, group.count))
            case LatentAttention():
                plain.append((attention, group.count))
            case SoftmaxAttention(indexer=None):
                if attention.stores_kv and windowed and attention.limit is not None:
                    with_window.append((attention, group.count))
                elif attention.stores_kv:
                    plain.append((attention, group.count))
            case _:
                raise CapacityError(
                    "it is not known what cache llama.cpp allocates for this attention",
                    given=attention,
                    allowed="attention whose cache the docstring of llamacpp_cache lists",
                )
    return plain, with_window, states


def _widths(attention: Plain, latent: Literal["latent", "expanded"]) -> tuple[int, int]:
    """Return key and value elements of one cell in one layer."""
    if isinstance(attention, LatentAttention):
        if latent == "latent":
            return attention.elements_per_token, 0
        width = attention.qk_nope_head_dim + attention.qk_rope_head_dim
        heads = attention.num_attention_heads
        return heads * width, heads * attention.v_head_dim
    heads = attention.num_key_value_heads
    return heads * attention.head_dim, heads * attention.v_head_dim


def _rectangle(
    kind: Literal["kv", "swa"],
    layers: list[tuple[Plain, int]] | list[tuple[SoftmaxAttention, int]],
    cells: int,
    streams: int,
    sequences: int,
    kind_k: GgmlType,
    kind_v: GgmlType,
    widest: int | None,
    latent: Literal["latent", "expanded"],
) -> CacheBuffer:
    k_bytes = v_bytes = count = 0
    for attention, layer_count in layers:
        keys, values = _widths(attention, latent)
        _check_heads(attention, kind_k, kind_v, latent)
        count += layer_count
        k_bytes += layer_count * kind_k.row_bytes(keys)
        v_bytes += layer_count * kind_v.row_bytes(widest if widest and values else values)
    return CacheBuffer(
        kind=kind, cells=cells, layers=count, streams=streams, sequences=sequences,
        type_k=kind_k.name, type_v=kind_v.name, k_bytes=k_bytes * cells * streams,
        v_bytes=v_bytes * cells * streams,
    )  # fmt: skip


def _all_counted(buffer: CacheBuffer, model: Model) -> CacheBuffer:
    """Count the blocks without attention too where the log does: they have keys of no width."""
    if model.model_type != "nemotron-nas":
        return buffer
    return buffer.model_copy(update={"layers": model.num_hidden_layers})


def _check_heads(
    attention: Plain, kind_k: GgmlType, kind_v: GgmlType, latent: Literal["latent", "expanded"]
) -> None:
    """Refuse blocks that do not divide the heads, as llama.cpp does."""
    if isinstance(attention, SoftmaxAttention):
        key_head, value_head = attention.head_dim, attention.v_head_dim
    elif latent == "latent":
        key_head, value_head = attention.elements_per_token, attention.kv_lora_rank
    else:
        key_head = attention.qk_nope_head_dim + attention.qk_rope_head_dim
        value_head = attention.v_head_dim
    for noun, head, kind in (("K", key_head, kind_k), ("V", value_head, kind_v)):
        if head % kind.block_elements:
            raise UnsupportedDtypeError(
                f"a {kind.name} {noun} cache needs head sizes that are multiples of "
                f"{kind.block_elements}", given=head, fix="use f16",
            )  # fmt: skip


def _states(
    states: list[tuple[StateAttention, int]], num_layers: int, sequences: int
) -> CacheBuffer:
    """Return the recurrent memory: one cell for each sequence, always in single precision."""
    conv = sum(count * attention.conv_elements("engine") for attention, count in states)
    state = sum(count * attention.state_elements for attention, count in states)
    return CacheBuffer(
        kind="state", cells=sequences, layers=num_layers, streams=1, sequences=sequences,
        type_k="f32", type_v="f32", k_bytes=4 * conv * sequences, v_bytes=4 * state * sequences,
    )  # fmt: skip
