r"""Linear attention and state-space layers: a state instead of a cache.

Every decode step reads and writes the state of each sequence. FLOP per token, decode:
gated delta net and KDA :math:`7 d_k d_v H_v`, Mamba-2 :math:`5 H P N`, Mamba :math:`6 d N`,
lightning attention :math:`4 d_k d_v H`; a short convolution of k columns with a gate before and
behind it :math:`(2 k + 2) d`. Prefill works in chunks of C = 64 tokens (256 for
Mamba-2): delta rule :math:`H_v [C (6 d_k + 4 d_v) + 6 d_k d_v]`; Mamba-2
:math:`2 C N G + H (2 C P + 4 N P)`; lightning attention
:math:`2 C H (d_k + d_v) / 2 + 4 d_k d_v H`.

Source: derived from the recurrences, within ±20 % of what a kernel executes. Worked: Qwen3-Next
3.67 MFLOP per token and layer in decode, 5.77 in prefill; 4.19 MB of state read and written.
"""

from __future__ import annotations

from ledgerkit.costs.operations import Operation, Share, Work
from ledgerkit.spec.attention import StateAttention
from ledgerkit.spec.cache import state_bytes
from ledgerkit.spec.deployment import Deployment

DELTA_CHUNK = 64
MAMBA2_CHUNK = 256
LIGHTNING_CHUNK = 256


def decode_flop_per_token(attention: StateAttention) -> float:
    """FLOP of one recurrence step.

    Examples
    --------
    >>> decode_flop_per_token(
    ...     StateAttention(variant="gated_delta_net", num_heads=32, key_dim=128, value_dim=128)
    ... )
    3670016.0
    """
    if attention.variant == "short_conv":
        return attention.conv_channels * (2.0 * attention.conv_kernel + 2.0)
    per_element = {"gated_delta_net": 7.0, "kda": 7.0, "mamba2": 5.0, "mamba": 6.0,
                   "lightning": 4.0}  # fmt: skip
    return per_element[attention.variant] * attention.state_elements


def prefill_flop_per_token(attention: StateAttention) -> float:
    """FLOP of one token of a chunked scan.

    Examples
    --------
    >>> prefill_flop_per_token(
    ...     StateAttention(variant="gated_delta_net", num_heads=32, key_dim=128, value_dim=128)
    ... )
    5767168.0
    """
    heads, dk, dv = attention.num_heads, attention.key_dim, attention.value_dim
    match attention.variant:
        case "gated_delta_net" | "kda":
            return heads * (DELTA_CHUNK * (6.0 * dk + 4.0 * dv) + 6.0 * dk * dv)
        case "mamba2":
            scores = 2.0 * MAMBA2_CHUNK * dk * attention.num_groups
            return scores + heads * (2.0 * MAMBA2_CHUNK * dv + 4.0 * dk * dv)
        case "lightning":
            return heads * (LIGHTNING_CHUNK * (dk + dv) + 4.0 * dk * dv)
        case _:
            return decode_flop_per_token(attention)


def state_operations(
    attention: StateAttention, count: int, deployment: Deployment
) -> list[Operation]:
    """Recurrence of one layer; the state divides over the tensor-parallel ranks."""
    state = state_bytes(attention) / deployment.tp

    def share(flop: float) -> Share:
        return Share.same(
            Work(
                flop_per_token=flop / deployment.tp,
                read_per_sequence=state,
                write_per_sequence=state,
            )
        )

    return [
        Operation(
            name=attention.variant, ledger="attention_kv", compute_account="core",
            byte_account="state", count=count, prefill=share(prefill_flop_per_token(attention)),
            decode=share(decode_flop_per_token(attention)),
            prefill_class=("attention_prefill", "bf16"),
            decode_class=("attention_decode", "bf16"),
            source="state read and written once per sequence and step; FLOP of the recurrence",
            basis="estimated",
        )
    ]  # fmt: skip
