"""Rows: what a family says about a class of tensors, before its storage format is known.

A family lists rows; the storage format of each comes from the quantization of the checkpoint, layer
by layer, when ``assemble`` turns rows into ``Weight`` objects.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ledgerkit.spec.attention import Attention
    from ledgerkit.spec.axes import Account, Ledger
    from ledgerkit.spec.feed_forward import FeedForward
    from ledgerkit.spec.weights import Split, Use

__all__ = ["Architecture", "Layer", "MtpPlan", "Row", "attention_row", "ffn_row"]


class Row(NamedTuple):
    """A class of equal tensors of one layer.

    Rows with one name are slices of one stored tensor (a fused q, k, v projection).
    """

    name: str
    """Checkpoint name, with ``{layer}`` and ``{expert}``."""
    ledger: Ledger
    account: Account
    shape: tuple[int, ...]
    copies: int = 1
    use: Use = "linear"
    split: Split = "none"
    routed: bool = False
    dtype: str | None = None
    """Storage format that this tensor always has; None = the checkpoint's."""
    quantizable: bool | None = None
    """Whether quantizers take this tensor for a linear layer; None = by ``use``."""


def attention_row(
    name: str,
    *shape: int,
    split: Split = "tp",
    use: Use = "linear",
    account: Account = "projections",
    copies: int = 1,
    dtype: str | None = None,
    quantizable: bool | None = None,
) -> Row:
    """Return a row of the attention ledger."""
    return Row(name, "attention_kv", account, shape, copies, use, split, False, dtype, quantizable)


def ffn_row(
    name: str,
    *shape: int,
    account: Account,
    split: Split = "none",
    use: Use = "linear",
    copies: int = 1,
    routed: bool = False,
    dtype: str | None = None,
    quantizable: bool | None = None,
) -> Row:
    """Return a row of the FFN ledger."""
    return Row(name, "ffn_mlp", account, shape, copies, use, split, routed, dtype, quantizable)


@dataclass(frozen=True, slots=True)
class Layer:
    """One decoder layer as its family describes it."""

    attention: Attention
    ffn: FeedForward
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class MtpPlan:
    """Multi-token-prediction blocks."""

    num_layers: int
    layer: Layer
    first_index: int
    """Index of the first block in the checkpoint's layer numbering."""
    extra: tuple[Row, ...] = ()


@dataclass(slots=True)
class Architecture:
    """What a family reads out of a config."""

    hidden_size: int
    vocab_size: int
    max_position_embeddings: int
    tie_word_embeddings: bool
    layers: list[Layer]
    globals: list[Row]
    mtp: MtpPlan | None = None
    other_parameters: list[tuple[str, int | None]] = field(default_factory=list)
    dtype: str | None = None
    """Dtype of unquantized tensors, where the family fixes it."""
    formats: dict[str, str] = field(default_factory=dict)
    """Storage formats that this family's checkpoints have in place of the usual ones."""
