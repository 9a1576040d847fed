"""Columns of a steady load: the closed form of ``lk.steady_state``, on arrays of points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ledgerkit._steady.formula import Load, closed_loop
from ledgerkit._sweep.prepared import Array, Prepared
from ledgerkit.kernels import columns as c


@dataclass(frozen=True, slots=True)
class Loaded:
    """Points of a closed loop that starts at once, as the engine or a calibration says."""

    ttft_s: Array
    tpot_s: Array
    tokens_per_s: Array


def seats(prepared: Prepared, contexts: Array) -> Array:
    """Sequences that run at once; NaN where not one fits. As ``ledgerkit._steady.work.seats``."""
    table, layout = prepared.table, prepared.layout
    base = prepared.residence.base
    with_one = base[:, None] + prepared.residence.sequence_bytes(contexts)
    room = np.array([table.cache_room(float(fixed)) for fixed in base])[:, None]
    grows = with_one > base[:, None]
    one = np.where(grows, with_one - base[:, None], 1.0)
    free = np.where(grows, room / one, np.inf).min(axis=0)
    most = float(layout.max_num_seqs or table.profile.max_num_seqs)
    whole = np.where(free >= most, most, np.floor(free)) * layout.dp_attention
    found: Array = np.where(free < 1, np.nan, whole)
    return found


def loaded(
    prepared: Prepared, workload: Sequence[Array], running: Array,
    step_s: Array, bare_prefill_s: Array, alone_s: Array,
) -> Loaded:  # fmt: skip
    """Solve the closed loop at points.

    Parameters
    ----------
    workload : four of float64[n]
        Concurrency, prompt, cached and output tokens.
    running : float64[n]
        Sequences that run at once.
    step_s, bare_prefill_s, alone_s : float64[n]
        Decode step of the running sequences; prefill without and with the host's time.
    """
    concurrency, prompts, cached, outputs = workload
    table, layout, serving = prepared.table, prepared.layout, prepared.serving
    scalars = table.scalars["mid"][0]

    def constant(value: float) -> Array:
        return np.full_like(running, float(value))

    load = Load(
        concurrency=concurrency, running=running, steps=outputs / serving.tokens_per_step,
        tokens_per_step=constant(serving.tokens_per_step), step_s=step_s, draft_s=constant(0.0),
        prompt_s=bare_prefill_s / (math.sqrt(layout.dp_attention) * layout.pp),
        chunks=np.ceil((prompts - cached) / table.chunk_tokens),
        launch_s=constant(scalars[c.KERNELS] * scalars[c.HOST_PREFILL_KERNEL_S]),
        separate_host_s=constant(scalars[c.HOST_STEP_S] + scalars[c.HOST_SEQUENCE_S]),
        alone_s=alone_s, mixed=constant(serving.mixes(table)),
        wait_share=constant(serving.waits(table)), request_path_s=constant(serving.path_s()),
        factor=constant(prepared.tpot_factor),
    )  # fmt: skip
    times = closed_loop(load)
    e2e_s = times.ttft_s + (outputs - 1) * times.tpot_s
    return Loaded(times.ttft_s, times.tpot_s, concurrency / e2e_s * outputs)
