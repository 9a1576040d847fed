"""Mamba mixers of the first kind (Jamba) and of the second (Nemotron-H, Granite hybrids)."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from ledgerkit.readers.rows import Row, attention_row
from ledgerkit.spec.attention import StateAttention

__all__ = ["Mamba1", "Mamba2", "mamba1", "mamba2"]


class Mamba1(NamedTuple):
    """The sizes of a Mamba mixer."""

    inner: int
    state: int
    kernel: int
    rank: int
    conv_bias: bool
    proj_bias: bool


def mamba1(hidden: int, size: Mamba1, at: str) -> tuple[StateAttention, list[Row]]:
    """Return a Mamba mixer: input projection, short convolution, selective state, output."""
    attention = StateAttention(
        variant="mamba",
        num_heads=size.inner,
        key_dim=size.state,
        value_dim=1,
        conv_channels=size.inner,
        conv_kernel=size.kernel,
        scan_inputs=size.rank + 2 * size.state,
    )
    kept: dict[str, Any] = {"use": "vector", "account": "state"}
    rows = [
        attention_row(at + "in_proj.weight", 2 * size.inner, hidden),
        attention_row(at + "conv1d.weight", size.inner, 1, size.kernel, **kept),
        *((attention_row(at + "conv1d.bias", size.inner, **kept),) if size.conv_bias else ()),
        attention_row(at + "x_proj.weight", size.rank + 2 * size.state, size.inner),
        attention_row(at + "dt_proj.weight", size.inner, size.rank),
        attention_row(at + "dt_proj.bias", size.inner, use="vector"),
        attention_row(at + "A_log", size.inner, size.state, **kept),
        attention_row(at + "D", size.inner, **kept),
        attention_row(at + "out_proj.weight", hidden, size.inner),
    ]
    if size.proj_bias:
        rows += [
            attention_row(at + "in_proj.bias", 2 * size.inner, use="vector"),
            attention_row(at + "out_proj.bias", hidden, use="vector", split="none"),
        ]
    return attention, rows


class Mamba2(NamedTuple):
    """The sizes of a Mamba-2 mixer."""

    heads: int
    head_dim: int
    state: int
    groups: int
    kernel: int
    conv_bias: bool
    proj_bias: bool
    state_dtype: Literal["fp32", "bf16", "fp16"] = "fp32"


def mamba2(hidden: int, size: Mamba2, at: str) -> tuple[StateAttention, list[Row]]:
    """Return a Mamba-2 mixer: input projection, short convolution, state, gated norm, output.

    The inner width is heads x head_dim; the convolution runs over it and over B and C of each
    group.
    """
    inner = size.heads * size.head_dim
    channels = inner + 2 * size.groups * size.state
    attention = StateAttention(
        variant="mamba2",
        num_heads=size.heads,
        key_dim=size.state,
        value_dim=size.head_dim,
        num_groups=size.groups,
        conv_channels=channels,
        conv_kernel=size.kernel,
        state_dtype=size.state_dtype,
    )
    state: dict[str, Any] = {"use": "vector", "account": "state"}
    rows = [
        attention_row(at + "in_proj.weight", inner + channels + size.heads, hidden),
        attention_row(at + "conv1d.weight", channels, 1, size.kernel, **state),
        *((attention_row(at + "conv1d.bias", channels, **state),) if size.conv_bias else ()),
        attention_row(at + "dt_bias", size.heads, **state),
        attention_row(at + "A_log", size.heads, **state),
        attention_row(at + "D", size.heads, **state),
        attention_row(at + "norm.weight", inner, **state),
        attention_row(at + "out_proj.weight", hidden, inner),
    ]
    if size.proj_bias:
        rows += [
            attention_row(at + "in_proj.bias", inner + channels + size.heads, use="vector"),
            attention_row(at + "out_proj.bias", hidden, use="vector", split="none"),
        ]
    return attention, rows
