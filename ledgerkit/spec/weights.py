"""Weights: one row for each class of tensors that a layer holds.

The list of weights is the single source of parameter counts, stored bytes, FLOP of linear layers
and shards: whatever is counted, is counted from the same rows.
"""

from __future__ import annotations

import math
from typing import Literal

from pydantic import model_validator

from ledgerkit.spec._base import Frozen, Size
from ledgerkit.spec.axes import ACCOUNTS, Account, Ledger
from ledgerkit.spec.precision import storage

Split = Literal["tp", "kv_heads", "vocab", "experts", "none"]
"""How a parallel layout divides a tensor.

``tp``: over the tensor-parallel ranks; ``kv_heads``: over the ranks as far as there are KV heads,
replicated beyond; ``vocab``: over the ranks by rows of the vocabulary; ``experts``: each device
keeps its share of the experts (``ep``) and its slice of each; ``none``: a full copy on every rank.
"""

Use = Literal["linear", "expand", "lookup", "vector", "head", "buffer"]
"""What a step does with a tensor.

``linear``: read once per step, 2 FLOP per element and token; ``expand``: the MLA up-projection,
folded into the query in decode and applied to every cached token in prefill; ``lookup``: one row
per token is read; ``head``: like linear, on sampled positions only; ``vector``: norms, biases,
sinks: read once per step, no FLOP counted; ``buffer``: stored, counted, read once per step (router
correction bias and its kin).
"""


class Weight(Frozen):
    """A class of equal tensors of one layer (or of the model, outside the layers).

    Examples
    --------
    >>> gate_up = Weight(
    ...     name="model.layers.{layer}.mlp.experts.{expert}.gate_proj.weight",
    ...     ledger="ffn_mlp",
    ...     account="routed_experts",
    ...     shape=(2048, 7168),
    ...     copies=256,
    ...     split="experts",
    ...     dtype="fp8_block128",
    ... )
    >>> gate_up.elements
    3758096384
    >>> gate_up.bytes
    3759013888.0
    """

    name: str
    """Checkpoint name, with ``{layer}`` and ``{expert}`` as placeholders."""
    ledger: Ledger
    account: Account
    shape: tuple[Size, ...]
    """One tensor as stored: (outputs, inputs) for a linear layer."""
    copies: Size = 1
    """Tensors of this shape in one layer, e.g. the number of experts."""
    use: Use = "linear"
    split: Split = "none"
    dtype: str = "bf16"
    """Storage format in the checkpoint."""
    routed: bool = False
    """True: of ``copies`` experts a token uses ``num_experts_per_tok``."""

    @model_validator(mode="after")
    def _account_is_in_ledger(self) -> Weight:
        if self.account not in ACCOUNTS[self.ledger]:
            msg = f"account {self.account!r} is not in ledger {self.ledger!r}"
            raise ValueError(msg)
        storage(self.dtype)
        return self

    @property
    def elements(self) -> int:
        """Elements of all copies."""
        return math.prod(self.shape) * self.copies

    @property
    def bytes(self) -> float:
        """Stored bytes of all copies, scales included."""
        return storage(self.dtype).bytes(self.shape) * self.copies
