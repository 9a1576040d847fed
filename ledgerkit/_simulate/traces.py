"""Requests from files and frames; a malformed row is named."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ledgerkit.errors import WorkloadError
from ledgerkit.spec._base import whole_number

if TYPE_CHECKING:
    import polars as pl

    from ledgerkit._simulate.arrivals import Arrivals

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOONCAKE_BLOCK = 512
AZURE = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
FRAME = ("arrival_s", "prompt_tokens", "output_tokens")
_MOST_TOKENS = 1 << 40


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Requests in the order of arrival; content by prefix, or by segments."""

    arrival_s: Floats
    prompt_tokens: Ints
    output_tokens: Ints
    prefix: Ints
    prefix_tokens: Ints
    segments: tuple[Ints, Ints, Ints] | None = None
    """Where each prompt starts, contents and tokens."""


def _bad(where: str, what: str, given: Any) -> WorkloadError:
    return WorkloadError(f"{where}: {what}", given=given, allowed="rows as the format has them",
                         fix="correct or remove this row")  # fmt: skip


def _tokens(where: str, name: str, value: Any) -> int:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise _bad(where, f"{name} is not a number", value) from None
    if not math.isfinite(number) or number != int(number) or not 0 < number <= _MOST_TOKENS:
        raise _bad(where, f"{name} must be a whole number of at least 1", value)
    return int(number)


def _seconds(where: str, name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise _bad(where, f"{name} is not a number", value) from None
    if not math.isfinite(number) or number < 0:
        raise _bad(where, f"{name} must be a finite time of at least 0", value)
    return number


def read_trace(path: Path, most: Any) -> Rows:
    """Read an Azure or a Mooncake trace."""
    if most is not None:
        most = whole_number(WorkloadError, "most", most)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            file.seek(0)
            if first.lstrip().startswith("{"):
                return _mooncake(path.name, file, most)
            if [name.strip() for name in first.split(",")] == list(AZURE):
                return _azure(path.name, file, most)
    except OSError as error:
        raise WorkloadError("this trace cannot be read", given=str(path), allowed="a text file",
                            fix="give the path of a file") from error  # fmt: skip
    except WorkloadError:
        raise
    except ValueError as error:  # bytes that are no text, a path with a null byte
        raise WorkloadError("this trace is not text", given=str(path), allowed="a text file",
                            fix="give the path of a text file in UTF-8") from error  # fmt: skip
    raise WorkloadError(
        "this trace is of no known format", given=first[:80].strip(),
        allowed=f"a CSV file with the columns {', '.join(AZURE)}, or JSON lines with timestamp, "
        "input_length, output_length and hash_ids", fix="or pass a frame to Arrivals.from_frame",
    )  # fmt: skip


def _sorted(times: list[float], *columns: list[int]) -> tuple[Floats, Ints, list[Ints]]:
    at = np.array(times)
    if not len(at):
        raise WorkloadError("this trace holds no request", given=0, allowed="1 or more",
                            fix="give a trace with requests")  # fmt: skip
    order = np.argsort(at, kind="stable")
    return at[order] - at[order[0]], order, [np.array(c, np.int64)[order] for c in columns]


def _azure(name: str, file: Iterator[str], most: int | None) -> Rows:
    times: list[float] = []
    prompts: list[int] = []
    outputs: list[int] = []
    rows = csv.reader(file)
    next(rows)
    for row in rows:
        if not row:
            continue
        if most is not None and len(times) == most:
            break
        where = f"{name} line {rows.line_num}"
        if len(row) != len(AZURE):
            raise _bad(where, f"{len(AZURE)} fields are expected", row)
        times.append(_moment(where, row[0]))
        prompts.append(_tokens(where, AZURE[1], row[1]))
        outputs.append(_tokens(where, AZURE[2], row[2]))
    at, _, (prompt, output) = _sorted(times, prompts, outputs)
    none = np.zeros(len(at), np.int64)
    return Rows(at, prompt, output, none, none)


def _moment(where: str, given: str) -> float:
    """Seconds since 1970 of a time with seven decimals of a second."""
    whole, _, part = given.strip().partition(".")
    digits = part.partition("+")[0].rstrip("Z")
    try:
        moment = datetime.fromisoformat(whole + "+00:00")
        return moment.timestamp() + (int(digits) / 10 ** len(digits) if digits else 0.0)
    except ValueError:
        raise _bad(where, f"{AZURE[0]} is not a time", given) from None


def _mooncake(name: str, file: Iterator[str], most: int | None) -> Rows:
    times: list[float] = []
    prompts: list[int] = []
    outputs: list[int] = []
    hashes: list[list[int]] = []
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        if most is not None and len(times) == most:
            break
        where = f"{name} line {number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            raise _bad(where, "not JSON", line[:80].strip()) from None
        if not isinstance(row, dict):
            raise _bad(where, "not an object", line[:80].strip())
        for key in ("timestamp", "input_length", "output_length", "hash_ids"):
            if key not in row:
                raise _bad(where, f"{key} is missing", list(row))
        times.append(_seconds(where, "timestamp", row["timestamp"]) / 1e3)
        prompts.append(_tokens(where, "input_length", row["input_length"]))
        outputs.append(_tokens(where, "output_length", row["output_length"]))
        hashes.append(_hashes(where, row["hash_ids"], prompts[-1]))
    at, order, (prompt, output) = _sorted(times, prompts, outputs)
    chosen = [hashes[i] for i in order]
    counts = np.array([len(one) for one in chosen])
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    tokens = np.full(start[-1], MOONCAKE_BLOCK, np.int64)
    tokens[start[1:] - 1] = prompt - MOONCAKE_BLOCK * (counts - 1)
    none = np.zeros(len(at), np.int64)
    ids = np.array([key for one in chosen for key in one], np.int64)
    return Rows(at, prompt, output, none, none, (start, ids, tokens))


def _hashes(where: str, given: Any, prompt: int) -> list[int]:
    wanted = -(-prompt // MOONCAKE_BLOCK)
    if not isinstance(given, list) or len(given) != wanted:
        raise _bad(where, f"hash_ids must name {wanted} blocks of {MOONCAKE_BLOCK} tokens", given)
    for key in given:
        if isinstance(key, bool) or not isinstance(key, int) or not 0 <= key < 1 << 62:
            raise _bad(where, "hash_ids are whole numbers of at least 0", key)
    return given


def read_frame(frame: Any) -> Rows:
    """Read requests from a frame."""
    columns = getattr(frame, "columns", None)
    if columns is None or not hasattr(frame, "to_series"):
        raise WorkloadError("arrivals are lk.Arrivals, a polars frame or the path of a trace",
                            given=type(frame).__name__, allowed=", ".join(FRAME),
                            fix="pass lk.Arrivals.poisson(...)")  # fmt: skip
    for name in FRAME:
        if name not in columns:
            raise WorkloadError(f"the frame has no column {name}", given=list(columns),
                                allowed=", ".join((*FRAME, "prefix", "prefix_tokens")),
                                fix=f"add {name}")  # fmt: skip
    if frame.height == 0:
        raise WorkloadError("the frame holds no request", given=0, allowed="1 or more rows",
                            fix="give a frame with requests")  # fmt: skip
    at = _numbers(frame, "arrival_s", _seconds)
    prompt = _numbers(frame, "prompt_tokens", _tokens).astype(np.int64)
    output = _numbers(frame, "output_tokens", _tokens).astype(np.int64)
    shared = np.zeros(frame.height, np.int64)
    which = np.zeros(frame.height, np.int64)
    if "prefix" in columns and "prefix_tokens" in columns:
        which = frame["prefix"].rank("dense").fill_null(0).to_numpy().astype(np.int64)
        shared = _shared(frame["prefix_tokens"])
        wrong = np.nonzero((shared < 0) | (shared >= prompt))[0]
        if len(wrong):
            raise _bad(f"row {int(wrong[0])}", "prefix_tokens must be below prompt_tokens",
                       int(shared[wrong[0]]))  # fmt: skip
        shared = np.where(frame["prefix"].is_null().to_numpy(), 0, shared)
    order = np.argsort(at, kind="stable")
    return Rows(at[order] - at[order[0]], prompt[order], output[order], which[order],
                shared[order])  # fmt: skip


def _shared(column: pl.Series) -> Ints:
    """Tokens of shared prefixes; 0 where none is stated."""
    if not column.dtype.is_numeric() and column.null_count() < len(column):
        raise _no_numbers("prefix_tokens", column)
    values = column.cast(float).fill_null(0.0).to_numpy()
    wrong = ~np.isfinite(values) | (values != np.floor(values)) | (values > _MOST_TOKENS)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise _bad(f"row {at}", "prefix_tokens must be a whole number", column[at])
    return values.astype(np.int64)


def _no_numbers(name: str, column: pl.Series) -> WorkloadError:
    return WorkloadError(f"column {name} does not hold numbers", given=str(column.dtype),
                         allowed="a numeric column", fix=f"cast {name}")  # fmt: skip


def _numbers(frame: pl.DataFrame, name: str, check: Any) -> Floats:
    """One column, checked row by row only where something is wrong."""
    if frame[name].dtype.is_nested():
        raise _no_numbers(name, frame[name])
    try:
        values = frame[name].cast(float).to_numpy().astype(np.float64)
    except Exception as error:
        raise _no_numbers(name, frame[name]) from error
    low = 0.0 if name == "arrival_s" else 1.0
    wrong = ~np.isfinite(values) | (values < low) | (values > _MOST_TOKENS)
    if name != "arrival_s":
        wrong |= values != np.floor(values)
    if wrong.any():
        at = int(np.argmax(wrong))
        check(f"row {at}", name, frame[name][at])
        raise _bad(f"row {at}", f"{name} is out of range", frame[name][at])
    return values


def reuse_ceiling(arrivals: Arrivals, block_tokens: int) -> float:
    """Share of prompt blocks that were in an earlier prompt, behind the same beginning."""
    whole_number(WorkloadError, "block_tokens", block_tokens)
    seen: set[tuple[int, ...]] = set()
    hits = total = 0
    for i in range(arrivals.requests):
        first, last = arrivals.segment_start[i], arrivals.segment_start[i + 1]
        lengths = arrivals.segment_tokens[first:last]
        ends = np.cumsum(lengths)
        ids = arrivals.segment_ids[first:last]
        chain: tuple[int, ...] = ()
        for end in range(block_tokens, int(ends[-1]) + block_tokens, block_tokens):
            upto = int(np.searchsorted(ends, min(end, int(ends[-1]))))
            key = hash((chain, *ids[: upto + 1].tolist(), end))
            chain = (key,)
            total += 1
            hits += chain in seen
            seen.add(chain)
    return hits / total
