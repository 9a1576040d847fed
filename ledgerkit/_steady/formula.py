r"""Continuous batching in closed form, on numbers or on arrays of points.

Every request pays the prefill of every other request, either in its first token (it waits) or
between its tokens (a prompt takes part in the steps): work is conserved. With B running sequences,
answers of O tokens, g tokens per step, a decode step of D seconds, a prompt of P seconds in m
chunks, and the share φ of the others' prefills that a request waits for:

.. math::

    a &= (B - 1) / (O / g) \cdot (1 - φ)  \quad\text{prompts per decode step} \\
    x &= \max(\max(am, 1) P / m + D,\; L) - D
        \quad\text{(mixed)} \qquad \max(\max(am, 1) P / m,\; L) + h \quad\text{(separate)} \\
    \mathrm{TPOT} &= (D + \min(am, 1) \, x) / g

L is the host's time to launch a step that no captured graph covers, h the host gap of a step. The
first token comes after the request path, the own prefill, the prefills that the request waits for,
the wait for a seat and half of the step that runs when it arrives.

Source: work conservation; checked on public serving measurements (``ACCURACY.md``), where the
coefficient of the interference is 0.92 to 1.03 when it is left free.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Load:
    """Who runs, and what they cost; each field one number per point.

    Seconds are of one decode step (``step_s``), of one prompt among others (``prompt_s``), of one
    prompt alone with its host time (``alone_s``).
    """

    concurrency: Numbers
    running: Numbers
    steps: Numbers
    """Decode steps of one answer: output tokens over tokens per step."""
    tokens_per_step: Numbers
    step_s: Numbers
    draft_s: Numbers
    """Part of ``step_s`` that drafting and verifying takes."""
    prompt_s: Numbers
    chunks: Numbers
    launch_s: Numbers
    separate_host_s: Numbers
    """Host gap of a prefill step of its own."""
    alone_s: Numbers
    mixed: Numbers
    """1: chunks ride along with decode steps; 0: they run in steps of their own."""
    wait_share: Numbers
    request_path_s: Numbers
    factor: Numbers
    """Of a calibration: measured over predicted seconds between tokens."""


@dataclass(frozen=True, slots=True)
class Times:
    """What the load makes of it, in seconds."""

    rounds: Numbers
    """Prefill chunks that fall on one decode step."""
    interference_s: Numbers
    """Added to a mean decode step by the prompts of others."""
    step_s: Numbers
    tpot_s: Numbers
    shared_steps_s: Numbers
    """Decode steps of others that the own prefill shares or waits for."""
    wait_prefill_s: Numbers
    wait_seat_s: Numbers
    wait_step_s: Numbers
    ttft_s: Numbers


def interference(load: Load, prompts_per_step: Numbers) -> tuple[Numbers, Numbers]:
    """Return (chunks per decode step, seconds that they add to a mean step)."""
    rounds = prompts_per_step * load.chunks
    chunk_s = np.maximum(rounds, 1.0) * load.prompt_s / load.chunks
    together = np.maximum(chunk_s + load.step_s, load.launch_s) - load.step_s
    apart = np.maximum(chunk_s, load.launch_s) + load.separate_host_s
    added = np.minimum(rounds, 1.0) * np.where(load.mixed > 0, together, apart)
    return rounds, load.factor * added


def first_step_waits(load: Load, step_s: Numbers) -> tuple[Numbers, Numbers]:
    """Return (decode of others during the own prefill, rest of the step that runs on arrival)."""
    others = (load.running - 1.0) / load.running
    shared = np.where(load.mixed > 0, load.chunks - 0.5, 0.5)
    return others * shared * load.step_s, others * step_s / 2.0


def closed_loop(load: Load) -> Times:
    """Solve a closed loop of ``concurrency`` clients that all start at once."""
    others = load.running - 1.0
    rounds, added = interference(load, others / load.steps * (1.0 - load.wait_share))
    step = load.step_s + added
    shared, wait_step = first_step_waits(load, step)
    wait_prefill = load.wait_share * others * load.prompt_s
    queued = load.concurrency - load.running
    wait_seat = queued / load.running * load.steps * step
    return Times(
        rounds=rounds,
        interference_s=added,
        step_s=step,
        tpot_s=step / load.tokens_per_step,
        shared_steps_s=shared,
        wait_prefill_s=wait_prefill,
        wait_seat_s=wait_seat,
        wait_step_s=wait_step,
        ttft_s=load.request_path_s + load.alone_s + shared + wait_prefill + wait_seat + wait_step,
    )


def queue_wait(busy: float, service_s: float, variation: float, servers: int = 1) -> float:
    """Mean wait before ``servers`` that are ``busy`` (0 to 1) of the time, Poisson arrivals.

    ``variation`` is the coefficient of variation of the service.

    Source: Pollaczek and Khinchine; for more than one server the approximation of Sakasegawa.

    Examples
    --------
    >>> round(queue_wait(0.5, 0.2, 0.0), 3), round(queue_wait(0.5, 0.2, 1.0), 3)
    (0.1, 0.2)
    """
    crowd: float = busy ** (math.sqrt(2.0 * (servers + 1.0)) - 1.0) / (servers * (1.0 - busy))
    return crowd * service_s * (1.0 + variation**2) / 2.0
