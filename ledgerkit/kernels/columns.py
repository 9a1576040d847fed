"""Column numbers of the tables that kernels read and of the arrays that they fill.

An operation row holds the coefficients of one operation of ``COUNT`` equal layers on one device.
With n query tokens after p cached ones in each of s sequences, t tokens in its scope and Tm tokens
in the expert group::

    flop  = F_TOKEN·t + F_PAIR·s·pairs(n, p)
    read  = R_STEP + R_TOKEN·t + R_KV·s·seen(n, p) + R_SEQUENCE·s + R_EXPERT·distinct(Tm)
    write = W_TOKEN·t + W_SEQUENCE·s
    time  = COUNT · max(flop · S_PER_FLOP, (read + write) · S_PER_BYTE)

Amounts are those of one device: its ``AMOUNT_COUNT`` layers, once for each micro-batch of the step.
"""

from __future__ import annotations

from typing import Final

# operation rows -------------------------------------------------------------------------------
COUNT: Final = 0
SCOPE: Final = 1
F_TOKEN: Final = 2
F_PAIR: Final = 3
R_STEP: Final = 4
R_TOKEN: Final = 5
R_KV: Final = 6
R_SEQUENCE: Final = 7
R_EXPERT: Final = 8
EXPERTS: Final = 9
LOG_MISS: Final = 10
"""log(1 − k/E): an expert is missed by t independent tokens with probability exp(t · LOG_MISS)."""
W_TOKEN: Final = 11
W_SEQUENCE: Final = 12
WINDOW: Final = 13
TOPK: Final = 14
CHUNK: Final = 15
RATIO: Final = 16
S_PER_FLOP: Final = 17
S_PER_BYTE: Final = 18
AMOUNT_COUNT: Final = 19
"""Layers of the busiest device; fewer than COUNT with pipeline stages."""
OP_COLUMNS: Final = 20

# scopes: which tokens an operation sees -------------------------------------------------------
SCOPE_RANK: Final = 0
"""Tokens of the attention rank."""
SCOPE_EXPERTS: Final = 1
"""Tokens of the whole expert group."""
SCOPE_SAMPLED: Final = 2
"""Positions that are sampled; the operation is skipped where there are none."""
SCOPE_CONTEXT: Final = 3
"""All tokens that attention sees, cached ones included (MLA expansion)."""

# link rows ------------------------------------------------------------------------------------
L_COUNT: Final = 0
L_KIND: Final = 1
L_RANKS: Final = 2
L_TOKEN_BYTES: Final = 3
"""Bytes of one token's message (all-reduce, p2p) or of its dispatch and combine (exchange)."""
L_GATHER_BYTES: Final = 4
"""Exchange only: bytes of one token of the group if everything is gathered and reduced."""
L_ALPHA: Final = 5
L_ALPHA_TWO_SHOT: Final = 6
L_S_PER_BYTE: Final = 7
L_AMOUNT_COUNT: Final = 8
"""Messages that the busiest device takes part in; fewer than L_COUNT with pipeline stages."""
LINK_COLUMNS: Final = 9

KIND_ALL_REDUCE: Final = 0
KIND_EXCHANGE: Final = 1
KIND_SEND: Final = 2

# scalars --------------------------------------------------------------------------------------
KERNELS: Final = 0
"""Kernels launched by one step of the whole model."""
KERNEL_S: Final = 1
HOST_STEP_S: Final = 2
HOST_SEQUENCE_S: Final = 3
HOST_PREFILL_KERNEL_S: Final = 4
OVERLAP: Final = 5
CAPTURED: Final = 6
"""1: kernels come from a captured graph and cost their latency each; 0: the host launches them, and
its time is a floor of the step."""
SCALARS: Final = 7

# amounts of one operation in one phase --------------------------------------------------------
A_FLOP: Final = 0
A_READ: Final = 1
A_WRITE: Final = 2
A_TIME_COMPUTE: Final = 3
"""Seconds of the steps in which arithmetic binds."""
A_TIME_MEMORY: Final = 4
"""Seconds of the steps in which bytes bind."""
AMOUNTS: Final = 5

# amounts of one link ---------------------------------------------------------------------------
C_BYTES: Final = 0
C_STEPS: Final = 1
C_TIME: Final = 2
LINK_AMOUNTS: Final = 3

# amounts of the host ---------------------------------------------------------------------------
H_LAUNCH: Final = 0
H_HOST: Final = 1
H_STAGES: Final = 2
"""Seconds that micro-batches wait for the busiest stage."""
H_KERNELS: Final = 3
HOST_AMOUNTS: Final = 4
