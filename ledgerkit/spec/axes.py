"""The axes of an entry: ledger, account, phase, resource, verb and basis.

Everything that ledgerkit counts is an amount of a *resource*, in a *phase*, booked to an *account*
of one *ledger*. The names below are the only ones that occur in any frame.
"""

from __future__ import annotations

from typing import Literal

Ledger = Literal["attention_kv", "ffn_mlp", "scheduling"]
Phase = Literal["prefill", "decode", "hold"]
Resource = Literal["compute", "read", "write", "resident", "communicate", "steps", "time"]
Basis = Literal["exact", "estimated", "calibrated"]
Verb = Literal["compute_less", "read_less", "store_less", "communicate_less", "schedule_better"]
Account = Literal[
    "projections",
    "core",
    "cache",
    "indexer",
    "state",
    "norms",
    "dense",
    "routed_experts",
    "shared_experts",
    "router",
    "vocab",
    "per_layer_embedding",
    "residual",
    "offload",
    "tp",
    "ep",
    "pp",
    "launch",
    "host",
    "padding",
    "fragmentation",
    "draft",
    "recompute",
    "queue",
]

LEDGERS: tuple[Ledger, ...] = ("attention_kv", "ffn_mlp", "scheduling")
PHASES: tuple[Phase, ...] = ("prefill", "decode", "hold")

ACCOUNTS: dict[Ledger, tuple[Account, ...]] = {
    "attention_kv": ("core", "cache", "projections", "indexer", "state", "norms"),
    "ffn_mlp": (
        "routed_experts",
        "shared_experts",
        "dense",
        "vocab",
        "router",
        "per_layer_embedding",
        "residual",
        "norms",
        "offload",
    ),
    "scheduling": (
        "tp",
        "ep",
        "pp",
        "launch",
        "padding",
        "fragmentation",
        "host",
        "queue",
        "draft",
        "recompute",
    ),
}
"""Accounts by ledger, in drawing order. ``norms`` exists in two ledgers, so that an account is
always named together with its ledger."""

UNITS: dict[Resource, str] = {
    "compute": "FLOP",
    "read": "B",
    "write": "B",
    "resident": "B",
    "communicate": "B",
    "steps": "1",
    "time": "s",
}
