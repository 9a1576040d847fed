"""Nemotron-NAS (Llama-3.3-Nemotron-Super and kin): a block of its own for each layer.

Source: ``modeling_decilm.py`` of the checkpoints. ``block_configs`` says for each layer how many
query heads share a KV head and how wide the MLP is, or that attention or MLP is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerkit.errors import ConfigError
from ledgerkit.readers.blocks import attention_norm, dense_mlp, ffn_norm, gqa_projections
from ledgerkit.readers.families._common import Frame, read_frame, require
from ledgerkit.readers.fields import Fields
from ledgerkit.readers.rows import Architecture, Layer, Row
from ledgerkit.spec.attention import NoAttention, SoftmaxAttention
from ledgerkit.spec.feed_forward import DenseFfn, NoFfn

DEFAULTS: dict[str, Mapping[str, Any]] = {
    "nemotron-nas": {
        "max_position_embeddings": 131072,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
    }
}
_MULTIPLE = 256
"""MLP widths are rounded up to multiples of this."""
_UNKNOWN = ("num_sink_tokens", "sparsify", "window_length", "replace_with_linear",
            "unshifted_sink", "use_prefill_window_in_sink_attention")  # fmt: skip


def read(fields: Fields, _model_type: str) -> Architecture:
    """Read a decoder whose layers were found by architecture search."""
    frame = read_frame(fields)
    heads = fields.size("num_attention_heads")
    fields.ignore("unused", "num_key_value_heads", "intermediate_size")
    require(
        frame.hidden % heads == 0 or fields.has("head_dim"),
        "hidden_size must be a multiple of num_attention_heads",
        (frame.hidden, heads),
    )
    head_dim = fields.size("head_dim", default=frame.hidden // heads,
                           rule="hidden_size / num_attention_heads")  # fmt: skip
    bias, mlp_bias = fields.flag("attention_bias"), fields.flag("mlp_bias")
    _, blocks = fields.raw("block_configs")
    if not isinstance(blocks, (list, tuple)) or len(blocks) != frame.layers:
        raise ConfigError(
            "block_configs must have one entry for each layer",
            given=type(blocks).__name__,
            allowed=f"{frame.layers} entries",
        )
    sizes = []
    known: dict[str, tuple[int | None, int | None]] = {}
    for index, block in enumerate(blocks):
        same = repr(block)  # many layers have equal blocks
        if same not in known:
            known[same] = _sizes(fields, block, index, heads, frame.hidden)
        sizes.append(known[same])
    layers = {}
    for kv_heads, width in dict.fromkeys(sizes):
        attention, rows = _attention(frame, heads, kv_heads, head_dim, bias=bias)
        ffn = NoFfn() if width is None else DenseFfn(intermediate_size=width)
        if width is not None:
            rows = [*rows, *ffn_norm(frame.hidden), *dense_mlp(frame.hidden, width, bias=mlp_bias)]
        layers[kv_heads, width] = Layer(attention, ffn, tuple(rows))
    return frame.architecture([layers[size] for size in sizes])


def _attention(
    frame: Frame, heads: int, kv_heads: int | None, head_dim: int, *, bias: bool
) -> tuple[SoftmaxAttention | NoAttention, list[Row]]:
    if kv_heads is None:
        return NoAttention(), []
    attention = SoftmaxAttention(
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
    )
    rows = gqa_projections(frame.hidden, heads, kv_heads, head_dim, qkv_bias=bias, o_bias=bias)
    return attention, [*attention_norm(frame.hidden), *rows]


def _sizes(
    fields: Fields, block: Any, index: int, heads: int, hidden: int
) -> tuple[int | None, int | None]:
    """Return KV heads and MLP width of one block; None where that part is missing."""
    path = f"{fields.path}block_configs[{index}]"
    if not isinstance(block, Mapping):
        raise ConfigError(f"{path} must be a mapping", given=block)
    whole = Fields(block, fields.record, path=path + ".")
    attention, ffn = whole.section("attention"), whole.section("ffn")
    if attention is None or ffn is None:
        raise ConfigError(f"{path} needs the parts attention and ffn", given=list(block))
    whole.only("parallel_blocks", why="parallel blocks are not implemented")
    whole.finish()
    for part in (attention, ffn):
        for name in _UNKNOWN:
            part.only(name, False, why="this kind of block is not implemented")
    kv_heads = width = None
    if attention.flag("no_op", default=False):
        attention.ignore("unused", "n_heads_in_group")
    else:
        group = attention.size("n_heads_in_group")
        require(heads % group == 0, f"{path}.attention.n_heads_in_group must divide the heads",
                (heads, group))  # fmt: skip
        kv_heads = heads // group
    if ffn.flag("no_op", default=False):
        ffn.ignore("unused", "ffn_mult", "intermediate_size")
    elif ffn.has("intermediate_size"):
        ffn.ignore("unused", "ffn_mult")
        width = ffn.size("intermediate_size")
    else:
        width = ffn_width(ffn.number("ffn_mult"), hidden)
        ffn.mark("intermediate_size")
    attention.finish()
    ffn.finish()
    return kv_heads, width


def ffn_width(multiplier: float, hidden: int) -> int:
    """Return the MLP width that belongs to ``ffn_mult``.

    Examples
    --------
    >>> ffn_width(5.25, 8192), ffn_width(1.3125, 8192)
    (28672, 7168)
    """
    width = int(2 * multiplier * hidden / 3)
    return width + -width % _MULTIPLE
