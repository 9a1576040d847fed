"""Efficiencies: which fraction of a peak an operation reaches, with a band.

``time = t0 + max(FLOP / (peak · eta_compute), bytes / (bandwidth · eta_memory))``. The numbers are
data (``data/efficiency.csv``), never fitted on serving rows.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ledgerkit.spec._base import Frozen

OpClass = Literal[
    "gemm", "grouped_gemm", "attention_prefill", "attention_decode", "latent_decode", "elementwise"
]
Fraction = Annotated[float, Field(gt=0, le=1.2)]
Seconds = Annotated[float, Field(ge=0)]


class Band(Frozen):
    """A value with the low and high end of its spread (low ≤ mid ≤ high)."""

    low: float
    mid: float
    high: float


class OpEfficiency(Frozen):
    """Fractions of peak of one class of operations in one compute dtype."""

    op_class: OpClass
    dtype: str
    """Compute dtype (``gemm``, ``grouped_gemm``, prefill) or cache dtype (decode attention)."""
    eta_compute: Band
    eta_memory: Band
    source: str
    scope: Literal["device", "family", "vendor", "global", "user"] = "device"
    """How specific the evidence is; wider scopes have wider bands."""


class LinkEfficiency(Frozen):
    """Fraction of a link's rate, and its latencies."""

    eta_link: Band
    alpha_s: Band
    """Latency of a one-shot collective inside the scale-up domain."""
    alpha_two_shot_s: Band
    """Further latency of the two-shot form."""
    source: str
    eta_scale_out: Band | None = None
    """Fraction of the network card's rate beyond the scale-up domain; None = ``eta_link``."""


class Efficiencies(Frozen):
    """All that turns work into seconds on one device."""

    ops: tuple[OpEfficiency, ...]
    link: LinkEfficiency
    kernel_latency_s: Band
    """t0 of one captured kernel."""
    host_step_s: Band
    """Host gap of one engine step."""
    host_sequence_s: Band
    """Sampling and bookkeeping per sequence and step."""
    host_prefill_kernel_s: Band
    """Host time per kernel of a step that no captured graph covers: floor of a prefill chunk."""
    source: str = ""

    def op(self, op_class: OpClass, dtype: str) -> OpEfficiency:
        """Efficiency of an operation class; the class's bf16 row stands in for other dtypes."""
        fallback = None
        for row in self.ops:
            if row.op_class == op_class:
                if row.dtype == dtype:
                    return row
                if row.dtype == "bf16":
                    fallback = row
        if fallback is None:
            msg = f"no efficiency for {op_class}"
            raise KeyError(msg)
        return fallback
