"""Which cells are worth running, how long they take, and what they should show."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from ledgerkit.errors import LoadTestError
from ledgerkit.loadtest._anchors import predicted_ledger
from ledgerkit.loadtest._inputs import deployment_of, load_both, positive
from ledgerkit.loadtest._schema import cell_name
from ledgerkit.loadtest._settle import CONCURRENCIES, CONTEXTS
from ledgerkit.spec.deployment import Deployment, Workload

if TYPE_CHECKING:
    from ledgerkit.spec.hardware import Hardware
    from ledgerkit.spec.model import Model

__all__ = ["Cell", "Plan", "Skipped", "plan"]

MIN_RUNS = 3
_MOST = 10**9


@dataclass(frozen=True)
class Cell:
    """One cell: what is asked, and what is expected of it (seconds; None without a model)."""

    prompt_tokens: int
    output_tokens: int
    concurrency: int
    fits: Literal["yes", "no", "uncertain"] | None = None
    step_s: float | None = None
    step_low_s: float | None = None
    step_high_s: float | None = None
    ttft_s: float | None = None
    """Of a request alone."""
    kv_share: float | None = None

    @property
    def name(self) -> str:
        """Name of the cell."""
        return cell_name(self.prompt_tokens, self.concurrency)

    @property
    def duration_s(self) -> float | None:
        """Expected seconds of one run: prompts one after another, then the answers together."""
        if self.step_s is None or self.ttft_s is None:
            return None
        return self.concurrency * self.ttft_s + (self.output_tokens - 1) * self.step_s


@dataclass(frozen=True)
class Skipped:
    """A cell that is not run, and why: ``memory``, ``length``, ``seats`` or ``time``."""

    prompt_tokens: int
    concurrency: int
    reason: Literal["memory", "length", "seats", "time"]

    @property
    def name(self) -> str:
        """Name of the cell."""
        return cell_name(self.prompt_tokens, self.concurrency)


@dataclass(frozen=True)
class Plan:
    """A load test that can be run, printed as commands of other tools, or stored.

    Attributes
    ----------
    cells : tuple of Cell
    skipped : tuple of Skipped
    order : tuple of (int, int)
        (index of the cell, run) in the order of the test: shuffled within each repetition, and
        the first cell once more at the end, to see drift.
    runs : int
        Repetitions of each cell.
    warmup : int
        Requests before anything counts.
    seed : int
        Of the order and the prompts.
    model, hardware : str or None
        Slugs, for the record.
    """

    cells: tuple[Cell, ...]
    skipped: tuple[Skipped, ...]
    order: tuple[tuple[int, int], ...]
    runs: int
    warmup: int
    seed: int
    model: str | None = None
    hardware: str | None = None
    deployment: dict[str, Any] | None = None
    vocab_size: int | None = None
    usd_per_hour: float | None = None
    price_date: str | None = None

    @property
    def duration_s(self) -> float | None:
        """Expected seconds of the whole test, warm-up left out; None without predictions."""
        times = [self.cells[i].duration_s for i, _ in self.order]
        known = [time for time in times if time is not None]
        return sum(known) if len(known) == len(times) else None

    @property
    def cost_usd(self) -> float | None:
        """Expected price of the devices for that time; None where no price is known."""
        if self.duration_s is None or self.usd_per_hour is None:
            return None
        return self.duration_s / 3600.0 * self.usd_per_hour

    @property
    def table(self) -> pl.DataFrame:
        """One row per cell: tokens, concurrency, fit, predicted step, TTFT, KV share, seconds."""
        return pl.DataFrame(
            [
                {"cell": cell.name, **asdict(cell), "duration_s": cell.duration_s}
                for cell in self.cells
            ],
            infer_schema_length=None,
        )

    @property
    def fingerprint(self) -> str:
        """Hash of everything that decides what is sent."""
        sent = {
            "cells": [(c.prompt_tokens, c.output_tokens, c.concurrency) for c in self.cells],
            "order": self.order,
            "seed": self.seed,
        }
        return hashlib.sha256(json.dumps(sent, sort_keys=True).encode()).hexdigest()[:16]

    def record(self) -> dict[str, Any]:
        """The plan as plain data, for the provenance of results."""
        return {**asdict(self), "fingerprint": self.fingerprint}

    def commands(self, tool: str, *, base_url: str = "http://localhost:8000", served: str) -> str:
        """Ready shell commands that run the same cells with another tool.

        Parameters
        ----------
        tool : str
            ``vllm``, ``sglang``, ``llama-bench``, ``llama-batched-bench``, ``aiperf``,
            ``genai-perf`` or ``guidellm``.
        base_url : str
            Server, without ``/v1``.
        served : str
            Name of the model on the server, or the path of a GGUF file for the llama.cpp tools.
        """
        from ledgerkit.loadtest._commands import commands

        return commands(self, tool, base_url=base_url, served=served)

    def text(self, language: str | None = None) -> str:
        """What will be run, what is left out and why, and what it takes."""
        from ledgerkit.loadtest._words import describe_plan

        return describe_plan(self, language)

    def __repr__(self) -> str:
        return self.text()


def plan(
    model: Any = None,
    hardware: Any = None,
    deployment: Deployment | dict[str, Any] | None = None,
    *,
    contexts: Sequence[int] = CONTEXTS,
    concurrencies: Sequence[int] = CONCURRENCIES,
    design: Literal["grid", "sweeps", "corners"] = "grid",
    output_tokens: int = 256,
    runs: int = MIN_RUNS,
    time_limit_s: float | None = None,
    warmup: int = 2,
    seed: int = 0,
) -> Plan:
    """Choose the cells of a minimal load test.

    Parameters
    ----------
    model, hardware : ref or object, optional
        With both, cells that cannot fit are left out, and step time, TTFT, duration and cost are
        predicted.
    deployment : Deployment or dict, optional
        As served.
    contexts, concurrencies : sequence of int
        Grid of prompt tokens and sequences at once. A prompt that leaves no room for the answer
        is shortened.
    design : {"grid", "sweeps", "corners"}
        All pairs; or the two sweeps of the article (contexts at the fewest sequences, sequences
        at a middle context), which is less; or the four corners, which is least.
    output_tokens : int
        Tokens of every answer, the same everywhere.
    runs : int
        Repetitions; below three there is no verdict.
    time_limit_s : float, optional
        If the grid takes longer, only its corners are run, and then shorter ones.
    warmup : int
        Requests before anything counts.
    seed : int
        Of the order and the prompts.

    Returns
    -------
    Plan

    Raises
    ------
    LoadTestError
        Nothing is left to run, or a number makes no sense.

    Examples
    --------
    >>> made = plan("llama-3.1-8b", "h100-sxm-80gb")
    >>> [skipped.name for skipped in made.skipped]
    ['32K x 16', '130816 x 4', '130816 x 8', '130816 x 16']
    """
    grid = _grid(contexts, concurrencies, output_tokens, runs, warmup)
    if design not in ("grid", "sweeps", "corners"):
        raise LoadTestError("unknown design", given=design, allowed="grid, sweeps, corners")
    if design == "sweeps":
        grid = _sweeps(grid)
    if type(seed) is not int:
        raise LoadTestError("seed must be a whole number", given=seed, allowed="a whole number")
    if time_limit_s is not None:
        time_limit_s = positive("time_limit_s", time_limit_s)
    model, hardware = load_both(model, hardware)
    deployment = deployment_of(deployment)
    layout = deployment or Deployment()
    cells, skipped = _cells(grid, output_tokens, model, hardware, layout)
    if not cells:
        reasons = sorted({entry.reason for entry in skipped})
        raise LoadTestError(
            "no cell fits this deployment",
            given=f"left out for: {reasons}",
            allowed="cells whose cache fits beside the weights",
            fix="more devices, shorter contexts, or smaller weights",
        )
    if design == "corners":
        cells = _corners(cells)
    if time_limit_s is not None:
        cells, late = _shortened(cells, runs, time_limit_s)
        skipped += late
    price = None
    if hardware is not None and hardware.usd_per_hour is not None:
        price = hardware.usd_per_hour * layout.devices
    return Plan(
        cells=tuple(cells),
        skipped=tuple(skipped),
        order=_order(len(cells), runs, seed),
        runs=runs,
        warmup=warmup,
        seed=seed,
        model=None if model is None else model.slug,
        hardware=None if hardware is None else hardware.slug,
        deployment=layout.model_dump() if deployment is not None else None,
        vocab_size=None if model is None else model.vocab_size,
        usd_per_hour=price,
        price_date=None if hardware is None else hardware.price_date,
    )


def _grid(
    contexts: Sequence[int], concurrencies: Sequence[int], output: int, runs: int, warmup: int
) -> list[tuple[int, int]]:
    several = {"contexts": _listed(contexts), "concurrencies": _listed(concurrencies)}
    single = {"output_tokens": [output], "runs": [runs], "warmup": [warmup]}
    for name, values in {**several, **single}.items():
        least = 0 if name == "warmup" else 1
        if not values or any(type(v) is not int or not least <= v <= _MOST for v in values):
            raise LoadTestError(f"{name} must be whole numbers, {least} to {_MOST}",
                                given=values, allowed="whole numbers in that range")  # fmt: skip
    if output < 2:
        raise LoadTestError(
            "an answer of one token has no decode step", given=output, allowed="two tokens or more"
        )
    return [
        (c, b)
        for c in sorted(set(several["contexts"]))
        for b in sorted(set(several["concurrencies"]))
    ]


def _listed(values: Any) -> list[Any]:
    """Values of a sequence or an array, as Python numbers; anything else as one value."""
    if hasattr(values, "tolist"):
        values = values.tolist()
    return list(values) if isinstance(values, Iterable) else [values]


def _sweeps(grid: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Contexts at the fewest sequences, and sequences at a context in the middle."""
    contexts = sorted({c for c, _ in grid})
    middle, fewest = contexts[(len(contexts) - 1) // 2], min(b for _, b in grid)
    return [(c, b) for c, b in grid if b == fewest or c == middle]


def _cells(
    grid: list[tuple[int, int]],
    output: int,
    model: Model | None,
    hardware: Hardware | None,
    layout: Deployment,
) -> tuple[list[Cell], list[Skipped]]:
    cells: dict[tuple[int, int], Cell] = {}
    skipped: list[Skipped] = []
    limits = [layout.max_model_len] + ([model.max_position_embeddings] if model else [])
    limit = min((bound for bound in limits if bound is not None), default=None)
    seats = None if layout.max_num_seqs is None else layout.max_num_seqs * layout.dp_attention
    for asked, many in grid:
        prompt = asked if limit is None else min(asked, limit - output)
        if prompt < 1 or (limit is not None and prompt < asked // 2):
            skipped.append(Skipped(asked, many, "length"))
            continue
        if seats is not None and many > seats:
            skipped.append(Skipped(prompt, many, "seats"))
            continue
        cell = _predicted(Cell(prompt, output, many), model, hardware, layout)
        if cell.fits == "no":
            skipped.append(Skipped(prompt, many, "memory"))
        else:
            cells[prompt, many] = cell
    return list(cells.values()), list(dict.fromkeys(skipped))


def _predicted(
    cell: Cell, model: Model | None, hardware: Hardware | None, layout: Deployment
) -> Cell:
    if model is None or hardware is None:
        return cell
    from ledgerkit._ledger import ledger

    books = ledger(
        model, hardware, layout,
        Workload(prompt_tokens=cell.prompt_tokens, output_tokens=cell.output_tokens,
                 concurrency=cell.concurrency),
    )  # fmt: skip
    middle = predicted_ledger(
        model, hardware, layout, cell.prompt_tokens + cell.output_tokens / 2, cell.concurrency
    )
    share = None if middle is None else middle.share()["attention_kv"]
    return Cell(
        cell.prompt_tokens, cell.output_tokens, cell.concurrency, books.fits,
        books.tpot_s, books.tpot_s_low, books.tpot_s_high, books.ttft_s, share,
    )  # fmt: skip


def _order(cells: int, runs: int, seed: int) -> tuple[tuple[int, int], ...]:
    shuffle = random.Random(seed)  # noqa: S311  an order, not a secret
    found: list[tuple[int, int]] = []
    for run in range(runs):
        places = list(range(cells))
        shuffle.shuffle(places)
        found += [(place, run) for place in places]
    return (*found, (found[0][0], runs))


def _corners(cells: list[Cell]) -> list[Cell]:
    """Shortest and longest context at the fewest and the most sequences that fit with it."""
    few = min(cell.concurrency for cell in cells)
    chosen: dict[tuple[int, int], Cell] = {}
    for many in (few, max(cell.concurrency for cell in cells)):
        row = [cell for cell in cells if cell.concurrency == many]
        for cell in (min(row, key=_tokens), max(row, key=_tokens)):
            chosen[cell.prompt_tokens, cell.concurrency] = cell
    return list(chosen.values())


def _tokens(cell: Cell) -> int:
    return cell.prompt_tokens


def _seconds(cells: list[Cell], runs: int) -> float:
    return sum(cell.duration_s or 0.0 for cell in cells) * (runs + 1 / len(cells))


def _shortened(cells: list[Cell], runs: int, limit_s: float) -> tuple[list[Cell], list[Skipped]]:
    """Corners only, then shorter corners, until the test ends in time."""
    kept = cells
    if any(cell.duration_s is None for cell in cells):
        kept = _corners(cells)
    while _seconds(kept, runs) > limit_s:
        corners = _corners(kept)
        if len(corners) == len(kept):
            longest = max(_tokens(cell) for cell in kept)
            shorter = [cell for cell in cells if cell.prompt_tokens < longest]
            if len({_tokens(cell) for cell in shorter}) < 2:
                break
            corners = _corners(shorter)
        kept = corners
    left = [Skipped(c.prompt_tokens, c.concurrency, "time") for c in cells if c not in kept]
    return kept, left
