"""Batching, paging, chunks and disaggregation: what a serving engine arranges differently.

*Continuous batching removed*: static batches run until their longest answer ends; steps get shorter
as slots drain, and the weights of idle slots' steps are read for nothing. The engine no longer
decides before each step (``schedule_s``, default: its host time per running sequence).

*Paging removed*: every sequence reserves ``reserved_tokens`` (default: ``max_model_len``).

*Chunked prefill*: prompts in chunks of ``chunk_tokens``; *removed*, in one piece. A running
sequence waits for one chunk, or for the whole prompt: account ``queue`` of decode, which the
unloaded ``tpot_s`` leaves out.

*Disaggregation*: prompts are computed on a second copy of the deployment and their cache is sent
over a link; running sequences no longer wait for prompts that arrive as fast as answers end.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ledgerkit._scheduling.steps import mixed_s
from ledgerkit._techniques.point import Point, whole
from ledgerkit._techniques.sides import Overlay, Row, Side, State
from ledgerkit.catalog.engines import load_engine
from ledgerkit.costs.scheduling.batching import continuous_batching
from ledgerkit.costs.scheduling.lengths import OutputLengths
from ledgerkit.costs.scheduling.paging import paged_cache
from ledgerkit.costs.scheduling.pools import disaggregation
from ledgerkit.errors import TechniqueError
from ledgerkit.spec.axes import Phase

_SAMPLES = 17
LENGTHS = ("fixed", "uniform", "exponential", "lognormal")


def apply_batching(state: State) -> State:
    """Refuse: a ledger prices steps with all sequences busy."""
    raise TechniqueError(
        "the ledger of a deployment has continuous batching already",
        given=state.point.deployment.engine, fix="use action='remove' and reverse the transfer",
    )  # fmt: skip


def remove_batching(
    state: State, *, lengths: str = "exponential", variation: float = 1.0,
    schedule_s: float | None = None,
) -> State:  # fmt: skip
    """Serve in static batches of as many sequences as decode at once."""
    point = state.point
    work, slots = point.workload, point.workload.concurrency
    if slots < 2:
        raise TechniqueError("static and continuous batches of one are the same", given=slots,
                             allowed="2 or more", fix="give a larger concurrency")  # fmt: skip
    spread = output_lengths(lengths, work.output_tokens, variation)
    table = point.table()
    decide = table.efficiencies.host_sequence_s.mid * work.sequences_per_rank(point.deployment)
    decide = decide if schedule_s is None else schedule_s
    found = continuous_batching(spread, slots, _step_s(point, slots))
    idle = spread.longest(slots) / spread.mean - 1.0

    def book(phase: Phase, rows: list[Row]) -> list[Row]:
        if phase != "decode":
            return rows
        step = math.fsum(row.amount for row in rows if row.resource == "time")
        read = [row for row in rows if row.resource == "read" and row.weights]
        steps = math.fsum(row.amount for row in rows if row.resource == "steps")
        every = math.fsum(row.replica or 0.0 for row in read) * idle
        return [
            *rows,
            Row("decode", "scheduling", "padding", "idle slots", "time",
                step * (found.gain - 1.0), None),
            Row("decode", "scheduling", "padding", "weights read for idle slots", "read",
                math.fsum(row.amount for row in read) * idle, every),
            Row("decode", "scheduling", "padding", "idle steps", "steps", steps * idle, None),
            Row("decode", "scheduling", "host", "deciding before each step", "time", -decide, None),
        ]  # fmt: skip

    note = f"static batches of {slots}; {lengths} answers of {work.output_tokens} tokens on average"
    return state.booked(Overlay(book, notes=(note,)))


def output_lengths(kind: str, mean: int, variation: float) -> OutputLengths:
    """Distribution of answers by name."""
    if kind not in LENGTHS:
        raise TechniqueError("unknown distribution of answers", given=kind,
                             allowed=", ".join(LENGTHS), fix="use 'exponential'")  # fmt: skip
    if kind == "lognormal":
        return OutputLengths.lognormal(mean, variation)
    found: OutputLengths = getattr(OutputLengths, kind)(mean)
    return found


def _step_s(point: Point, slots: int) -> Any:
    """Seconds of a decode step by busy slots: priced at some numbers, straight between them."""
    known = sorted({round(b) for b in np.geomspace(1, slots, min(slots, _SAMPLES))})
    ledger = point.books()
    seconds = [
        ledger.at(point.with_workload(concurrency=int(b)).workload).tpot_s for b in known
    ]  # fmt: skip
    return lambda busy: float(np.interp(busy, known, seconds))


def apply_paging(state: State) -> State:
    """Refuse where the engine pages already."""
    profile = load_engine(state.point.deployment.engine)
    raise TechniqueError(
        f"the ledger books pages of {profile.block_size} tokens already", given=profile.slug,
        fix="use action='remove' and reverse the transfer",
    )  # fmt: skip


def remove_paging(state: State, *, reserved_tokens: int | None = None) -> State:
    """Reserve room for the longest sequence when a request starts."""
    point = state.point
    work, layout = point.workload, point.deployment
    longest = layout.max_model_len or point.model.max_position_embeddings
    reserved = longest if reserved_tokens is None else whole("reserved_tokens", reserved_tokens)
    if not work.hold_context <= reserved <= longest:
        raise TechniqueError(
            "reserved_tokens must hold the sequences of the workload", given=reserved,
            allowed=f"{work.hold_context} to {longest}", fix="leave reserved_tokens out",
        )  # fmt: skip
    full = Side(State(point.with_workload(prompt_tokens=reserved - work.output_tokens)))
    profile = load_engine(layout.engine).for_device(point.hardware)
    pages = paged_cache(
        kv_bytes_per_token=point.model.kv_bytes_per_token(layout.kv_dtype),
        prompt_tokens=work.prompt_tokens, lengths=OutputLengths.fixed(work.output_tokens),
        max_model_len=reserved, block_size=layout.block_size or profile.block_size,
        layers=point.model.num_hidden_layers,
    )  # fmt: skip
    table = math.fsum(e.amount for e in pages.entries if e.resource == "read")
    sequences = work.sequences_per_rank(layout)

    def book(phase: Phase, rows: list[Row]) -> list[Row]:
        if phase == "decode":
            return [
                *rows,
                Row("decode", "scheduling", "fragmentation", "page table", "read",
                    -table * sequences, -table * work.concurrency),
            ]  # fmt: skip
        if phase != "hold":
            return rows
        kept = [row for row in rows if row.account != "fragmentation"]
        used, held = (
            [row for row in some if row.ledger == "attention_kv" and not row.weights]
            for some in (kept, full.rows("hold"))
        )
        amount, replica = (
            math.fsum(getattr(row, name) or 0.0 for row in held)
            - math.fsum(getattr(row, name) or 0.0 for row in used)
            for name in ("amount", "replica")
        )
        return [
            *kept,
            Row("hold", "scheduling", "fragmentation", "reserved and empty", "resident", amount,
                replica),
        ]  # fmt: skip

    seats = float(full.ledger.max_concurrency)
    note = f"each sequence reserves {reserved} tokens and uses {work.hold_context} at its end"
    return state.booked(Overlay(book, {"max_concurrency": seats}, (note,)))


def apply_chunks(state: State, *, chunk_tokens: int = 512) -> State:
    """Prefill in smaller chunks."""
    point = state.point
    now = point.table().chunk_tokens
    wanted = whole("chunk_tokens", chunk_tokens)
    if wanted >= min(now, point.workload.new_tokens):
        raise TechniqueError(
            f"prompts come in chunks of {min(now, point.workload.new_tokens)} already",
            given=wanted, fix="give fewer chunk_tokens, or a longer prompt",
        )  # fmt: skip
    return _chunked(state, wanted)


def remove_chunks(state: State) -> State:
    """Prefill each prompt in one piece."""
    new = state.point.workload.new_tokens
    if new <= state.point.table().chunk_tokens:
        raise TechniqueError("the prompt is one chunk already", given=new,
                             fix="give a longer prompt, or use action='apply'")  # fmt: skip
    return _chunked(state, new)


def _chunked(state: State, tokens: int) -> State:
    old = state.point
    new = old.with_deployment(max_num_batched_tokens=tokens)
    less = _stall_s(new) - _stall_s(old)

    def book(phase: Phase, rows: list[Row]) -> list[Row]:
        if phase != "decode":
            return rows
        return [*rows, Row("decode", "scheduling", "queue", "longest wait for a chunk", "time",
                           less, None)]  # fmt: skip

    note = f"prefill in chunks of {tokens} tokens; queue = longest time between two tokens"
    return state.moved(new).booked(Overlay(book, notes=(note,)))


def _stall_s(point: Point) -> float:
    """Longest step in which a running sequence waits for a chunk of a prompt."""
    table, work = point.table(), point.workload
    starts = range(work.cached_tokens, work.prompt_tokens, table.chunk_tokens)
    others = max(0, work.sequences_per_rank(point.deployment) - 1)
    return max(
        mixed_s(
            table, chunk_tokens=min(table.chunk_tokens, work.prompt_tokens - past),
            past_tokens=past, sequences=others, context=work.decode_context,
        )
        for past in {starts[0], starts[-1], starts[max(0, len(starts) - 2)]}
    )  # fmt: skip


def apply_disaggregation(state: State, *, link_bytes_per_s: float | None = None) -> State:
    """Compute prompts on devices of their own."""
    point = state.point
    work, table = point.workload, point.table()
    rate = link_bytes_per_s or point.hardware.nic_bytes_per_s or point.hardware.pcie_bytes_per_s
    if rate is None:
        raise TechniqueError(f"{point.hardware.slug} has no known link between pools",
                             given=point.hardware.slug, fix="give link_bytes_per_s")  # fmt: skip
    cache = point.model.cache_bytes(work.prompt_tokens, point.deployment.kv_dtype)
    starts = range(work.cached_tokens, work.prompt_tokens, table.chunk_tokens)
    others = max(0, work.sequences_per_rank(point.deployment) - 1)
    plain = point.books().tpot_s
    waits = [
        mixed_s(table, chunk_tokens=min(table.chunk_tokens, work.prompt_tokens - past),
                past_tokens=past, sequences=others, context=work.decode_context) - plain
        for past in starts
    ]  # fmt: skip
    # as many prompts come in as answers end: one for each answer's worth of tokens of the others
    stall = max(0.0, math.fsum(waits)) * others / work.output_tokens if others else 0.0
    weights = math.fsum(
        row.replica or 0.0 for row in Side(State(point)).rows("hold") if row.weights
    )
    entries = disaggregation(
        prompt_tokens=work.prompt_tokens, cache_bytes=cache, link_bytes_per_s=rate,
        stall_s=stall, weight_bytes=weights,
    )  # fmt: skip

    def book(phase: Phase, rows: list[Row]) -> list[Row]:
        found = list(rows)
        for entry in entries:
            if entry.phase != phase:
                continue
            # the second copy is on other devices: nothing changes on the busiest one
            on_device = 0.0 if phase == "hold" else entry.amount
            replica = None if entry.resource == "time" else entry.amount
            found.append(Row(phase, entry.ledger, entry.account, entry.op, entry.resource,
                             on_device, replica))  # fmt: skip
        return found

    note = (
        f"a second copy of the deployment computes prompts; their cache moves at {rate:.3g} B/s; "
        "queue = what prompts of others add to a token"
    )
    return state.booked(Overlay(book, notes=(note,)))
