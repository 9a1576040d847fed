"""What most families read the same way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ledgerkit.errors import ConfigError
from ledgerkit.readers.fields import MAX_CONTEXT, MAX_LAYERS, MAX_VOCAB, Fields

__all__ = ["Frame", "read_frame", "read_head_dim", "read_heads", "require", "window_flags"]


class Frame(NamedTuple):
    """The outer measures of a decoder."""

    hidden: int
    layers: int
    vocab: int
    context: int
    tie: bool


def read_frame(fields: Fields) -> Frame:
    """Return hidden size, layers, vocabulary, longest context and whether embeddings are tied."""
    return Frame(
        hidden=fields.size("hidden_size"),
        layers=fields.size("num_hidden_layers", most=MAX_LAYERS),
        vocab=fields.size("vocab_size", most=MAX_VOCAB),
        context=fields.size("max_position_embeddings", most=MAX_CONTEXT),
        tie=fields.flag("tie_word_embeddings"),
    )


def read_heads(fields: Fields) -> tuple[int, int]:
    """Return query heads and key/value heads."""
    heads = fields.size("num_attention_heads")
    kv_heads = fields.size("num_key_value_heads", default=heads, rule="num_attention_heads")
    if heads % kv_heads:
        raise ConfigError("num_attention_heads must be a multiple of num_key_value_heads",
                          given=(heads, kv_heads), fix="correct one of the two")  # fmt: skip
    return heads, kv_heads


def read_head_dim(fields: Fields, hidden: int, heads: int) -> int:
    """Return head_dim, or hidden_size / num_attention_heads where the file states none."""
    if not fields.has("head_dim") and "head_dim" not in fields.defaults and hidden % heads:
        raise ConfigError("hidden_size must be a multiple of num_attention_heads when head_dim is "
                          "not stated", given=(hidden, heads), fix="state head_dim")  # fmt: skip
    return fields.size("head_dim", default=hidden // heads,
                       rule="hidden_size / num_attention_heads")  # fmt: skip


def require(condition: bool, what: str, given: object, fix: str = "correct the config") -> None:
    """Refuse a config that contradicts itself."""
    if not condition:
        raise ConfigError(what, given=given, fix=fix)


def window_flags(types: Sequence[str], sliding: str = "sliding_attention") -> list[bool]:
    """Return which layers have a window."""
    return [kind == sliding for kind in types]
