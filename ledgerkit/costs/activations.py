"""Activation traffic: what norms, residuals and gates move between the matrix operations.

Source: eight passes over the hidden state per layer (measured fits are insensitive to it: four
passes change the median decode error by 0.2 points, sixteen by 0.5). Half of them surround the
attention block, half the FFN. Each block reads two and writes two.
"""

from __future__ import annotations

from ledgerkit.costs.operations import Operation, Share, Work
from ledgerkit.spec.attention import NoAttention
from ledgerkit.spec.axes import Ledger
from ledgerkit.spec.deployment import Deployment
from ledgerkit.spec.feed_forward import NoFfn
from ledgerkit.spec.model import LayerGroup

PASSES_PER_BLOCK = 2
"""Reads, and as many writes, of the hidden state around one block."""
_BYTES = 2.0


def activation_operations(
    group: LayerGroup, hidden_size: int, deployment: Deployment
) -> list[Operation]:
    """One operation for the attention blocks and one for the FFN blocks of equal layers."""
    moved = PASSES_PER_BLOCK * hidden_size * _BYTES
    share = Share.replicated(
        Work(read_per_token=moved, write_per_token=moved), tp_copies=deployment.tp
    )
    blocks: tuple[tuple[Ledger, bool], ...] = (
        ("attention_kv", not isinstance(group.attention, NoAttention)),
        ("ffn_mlp", not isinstance(group.ffn, NoFfn)),
    )
    return [
        Operation(
            name="activations", ledger=ledger, compute_account="norms", byte_account="norms",
            count=group.count, prefill=share, decode=share,
            prefill_class=("elementwise", "bf16"), decode_class=("elementwise", "bf16"),
            source="8 passes over the hidden state per layer, 4 per block", basis="estimated",
        )
        for ledger, exists in blocks
        if exists
    ]  # fmt: skip
