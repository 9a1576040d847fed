"""Result files of many tools, told apart by what is in them, in one schema."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from ledgerkit._data import data_path
from ledgerkit.errors import LoadTestError
from ledgerkit.loadtest import _read_json, _read_llama
from ledgerkit.loadtest._schema import (
    CELL_COLUMNS,
    REQUEST_COLUMNS,
    Results,
    cell_name,
    shaped,
)
from ledgerkit.spec._base import finite_number

__all__ = ["read", "recorded"]

Column = str | tuple[str, float]
_FORMATS = (
    "vllm bench serve (JSON), sglang.bench_serving (JSONL), llama-bench (json, jsonl, csv, md), "
    "llama-batched-bench (jsonl, md), genai-perf (JSON), aiperf (JSON, JSONL), guidellm (JSON), "
    "ledgerkit (Parquet, journal), any CSV with columns="
)


@dataclass
class _Found:
    """Rows of one file, before runs are numbered."""

    tool: str
    cells: list[dict[str, Any]] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)


def read(
    path: str | Path | Iterable[str | Path], *, columns: Mapping[str, Column] | None = None
) -> Results:
    """Read what a load test or a benchmark tool wrote.

    Files of one call belong to one test: repetitions of a cell, in the order given, are its runs.

    Parameters
    ----------
    path : path or iterable of paths
        A result file, several of them, or a directory of ``.json``, ``.jsonl``, ``.csv`` and
        ``.md`` files.
    columns : mapping, optional
        For a plain CSV: our column → theirs, or → (theirs, factor into our unit), e.g.
        ``{"prompt_tokens": "ctx", "concurrency_requested": "bs", "itl_s": ("tpot_ms", 1e-3)}``.

    Returns
    -------
    Results

    Raises
    ------
    LoadTestError
        A format or version that is not known; the message says what was found.

    Examples
    --------
    >>> found = read("rows.csv", columns={"prompt_tokens": "ctx", "itl_s": ("tpot_ms", 1e-3)})
    Traceback (most recent call last):
    ...
    ledgerkit.errors.LoadTestError: there is no such result file (given: ['rows.csv']; ...
    """
    files = _files(path)
    if len(files) == 1 and columns is None and files[0].suffix == ".parquet":
        return Results.load(files[0])
    if len(files) == 1 and files[0].name.endswith(".journal.jsonl"):
        return _journal(files[0])
    found = [_one(file, columns) for file in files]
    return _joined(found, files)


def recorded(name: str) -> Results:
    """A real load test that ships with ledgerkit, to explore without a server.

    Parameters
    ----------
    name : str
        ``smollm2-135m`` or ``gemma-3-270m``: two small models on llama.cpp, on one CPU thread.

    Returns
    -------
    Results
        ``provenance`` holds the plan, ``model`` and ``device`` (as ``lk.Model.model_validate`` and
        ``lk.load_hardware`` take them), the file and the engine.

    Raises
    ------
    LoadTestError
        There is no such recording.

    Examples
    --------
    >>> found = recorded("smollm2-135m")
    >>> found.cells["cell"].n_unique(), found.failures.height
    (6, 0)
    """
    folder = data_path("loadtest")
    known = sorted(file.stem for file in folder.glob("*.parquet"))
    if name not in known:
        raise LoadTestError("there is no such recording", given=name, allowed=", ".join(known),
                            fix="use one of these names")  # fmt: skip
    return Results.load(folder / f"{name}.parquet")


def _files(path: str | Path | Iterable[str | Path]) -> list[Path]:
    try:
        given = [Path(path)] if isinstance(path, str | Path) else [Path(entry) for entry in path]
    except TypeError:
        raise LoadTestError("a result file is named by its path", given=path,
                            allowed="a path, or paths", fix="name a file") from None  # fmt: skip
    if any("\0" in str(entry) for entry in given):
        raise LoadTestError("no file has a name with a null byte", given=path,
                            allowed="a path, or paths", fix="correct the path")  # fmt: skip
    if len(given) == 1 and given[0].is_dir():
        kinds = {".json", ".jsonl", ".csv", ".md"}
        given = sorted(entry for entry in given[0].iterdir() if entry.suffix in kinds)
    missing = [str(entry) for entry in given if not entry.is_file()]
    if missing or not given:
        raise LoadTestError("there is no such result file", given=missing or str(path),
                            allowed=_FORMATS, fix="correct the path")  # fmt: skip
    return given


def _one(file: Path, columns: Mapping[str, Column] | None) -> _Found:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise LoadTestError("this is not a text file", given=str(file), allowed=_FORMATS,
                            fix="name the file that the tool wrote") from None  # fmt: skip
    except OSError as problem:
        raise LoadTestError(f"this file cannot be read: {problem.strerror}", given=str(file),
                            allowed=_FORMATS, fix="name a file that can") from None  # fmt: skip
    if columns is not None:
        return _plain_csv(text, columns, file)
    stripped = text.lstrip()
    if stripped[:1] in "{[" and stripped:
        return _from_json(_documents(stripped, file), file)
    if stripped.startswith("|") or "\n|" in stripped:
        tables = _read_llama.markdown(text)
        if tables is not None:
            return _Found(*tables)
    header = stripped.split("\n", 1)[0]
    if "build_commit" in header and "avg_ts" in header:
        return _Found(
            "llama-bench", _read_llama.bench_rows(list(csv.DictReader(io.StringIO(text))))
        )
    raise _unknown(f"a text that begins {header[:120]!r}", file)


def _unknown(what: str, file: Path) -> LoadTestError:
    return LoadTestError(
        f"unknown result format: {what}", given=str(file), allowed=_FORMATS,
        fix="give columns= for a plain CSV",
    )  # fmt: skip


def _documents(text: str, file: Path) -> list[Any]:
    """One JSON document, or several one after another (JSON lines, appended results)."""
    decoder, place, found = json.JSONDecoder(), 0, []
    while place < len(text):
        try:
            document, end = decoder.raw_decode(text, place)
        except json.JSONDecodeError as problem:
            raise LoadTestError(
                "this file is broken JSON", given=str(file), allowed="whole JSON documents",
                fix=f"{problem.msg} at character {problem.pos}: was it cut off?",
            ) from None  # fmt: skip
        except (RecursionError, ValueError) as problem:
            what = "nested too deeply" if isinstance(problem, RecursionError) else str(problem)
            raise LoadTestError(f"this JSON cannot be read: {what}", given=str(file),
                                allowed="results as the tools write them",
                                fix="name the file that the tool wrote") from None  # fmt: skip
        found.append(document)
        place = end
        while place < len(text) and text[place] in " \t\r\n,":
            place += 1
    return found


def _from_json(documents: list[Any], file: Path) -> _Found:
    rows = documents[0] if len(documents) == 1 and isinstance(documents[0], list) else documents
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise _unknown("JSON that is no object and no list of objects", file)
    keys = set(rows[0])
    for is_theirs, reader in _READERS:
        if is_theirs(keys, rows[0]):
            try:
                return _Found(*reader(rows))
            except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as problem:
                if isinstance(problem, LoadTestError):
                    raise
                raise _unknown(
                    f"it looks like {reader.__name__.replace('_', ' ')}, but {repr(problem)[:200]} "
                    f"is missing or of another kind; keys: {sorted(keys)[:40]}", file,
                ) from problem  # fmt: skip
    raise _unknown(f"JSON with the keys {sorted(keys)[:40]}", file)


def _is_genai(keys: set[str], row: dict[str, Any]) -> bool:
    return (
        "input_config" in keys
        and "output_token_throughput" in keys
        and isinstance(row["input_config"], dict)
    )


_Reader = Callable[[list[dict[str, Any]]], tuple[Any, ...]]
_READERS: tuple[tuple[Callable[[set[str], dict[str, Any]], bool], _Reader], ...] = (
    (lambda keys, _: {"build_commit", "n_gen", "avg_ts"} <= keys, _read_llama.llama_bench),
    (lambda keys, _: {"pp", "tg", "pl", "t_tg"} <= keys, _read_llama.llama_batched_bench),
    (lambda keys, _: "total_output_tokens_retokenized" in keys, _read_json.sglang),
    (lambda keys, _: {"model_id", "total_input_tokens"} <= keys, _read_json.vllm),
    (
        lambda keys, row: (
            {"metadata", "metrics"} <= keys
            and isinstance(row["metadata"], dict)
            and "request_start_ns" in row["metadata"]
        ),
        _read_json.aiperf_records,
    ),
    (
        lambda keys, _: (
            "aiperf_version" in keys or ("schema_version" in keys and "time_to_first_token" in keys)
        ),
        _read_json.aiperf,
    ),
    (_is_genai, _read_json.genai_perf),
    (lambda keys, _: "benchmarks" in keys, _read_json.guidellm),
)


def _plain_csv(text: str, columns: Mapping[str, Column], file: Path) -> _Found:
    if not isinstance(columns, Mapping):
        raise LoadTestError("columns= maps our columns to theirs", given=columns,
                            allowed=", ".join(CELL_COLUMNS),
                            fix="pass {'prompt_tokens': 'ctx'}")  # fmt: skip
    unknown = [name for name in columns if name not in CELL_COLUMNS]
    if unknown:
        raise LoadTestError("these are no columns of ours", given=unknown,
                            allowed=", ".join(CELL_COLUMNS), fix="leave them out")  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(text)))
    wanted = {name: _theirs(name, column) for name, column in columns.items()}
    absent = sorted({theirs for theirs, _ in wanted.values()} - set(rows[0] if rows else ()))
    if absent:
        raise LoadTestError("the file does not have these columns", given=absent,
                            allowed=", ".join(rows[0] if rows else ()) or "a header and rows",
                            fix="name columns of the file")  # fmt: skip
    cells = []
    for number, row in enumerate(rows, start=2):
        cell: dict[str, Any] = {}
        for name, (theirs, factor) in wanted.items():
            value = row[theirs] or ""
            if CELL_COLUMNS[name] == pl.String:
                cell[name] = value
                continue
            try:
                cell[name] = float(value) * factor if value.strip() else None
            except ValueError:
                raise LoadTestError(f"line {number}, column {theirs!r}: not a number", given=value,
                                    allowed="a number, or nothing",
                                    fix=f"correct {file.name}") from None  # fmt: skip
        cells.append(cell)
    return _Found("csv", cells)


def _theirs(name: str, column: Any) -> tuple[str, float]:
    """Name of a column of a file, and the factor into our unit."""
    theirs, factor = (column, 1.0) if isinstance(column, str) else (None, None)
    if isinstance(column, tuple | list) and len(column) == 2:
        theirs, factor = column
    if not isinstance(theirs, str):
        raise LoadTestError(f"columns[{name!r}] is a name, or a name and a factor", given=column,
                            allowed="'theirs' or ('theirs', 1e-3)",
                            fix=f"pass {{{name!r}: 'theirs'}}")  # fmt: skip
    return theirs, finite_number(LoadTestError, f"the factor of {name}", factor)


def _journal(file: Path) -> Results:
    """What an unfinished test has measured so far."""
    from ledgerkit.loadtest._journal import records

    found = records(file)
    requests = pl.DataFrame([r["request"] for r in found if "request" in r], schema=REQUEST_COLUMNS)
    cells = pl.DataFrame([r["cell"] for r in found if "cell" in r], schema=CELL_COLUMNS)
    return Results(requests, cells, {"tool": "ledgerkit", "end": "unfinished"})


def _joined(found: list[_Found], files: list[Path]) -> Results:
    """Number the runs of each cell over all files, and put everything into the schema."""
    seen: dict[str, int] = {}
    cells, requests = [], []
    for part in found:
        runs = {}
        for row in part.cells:
            given = row.get("cell")
            if not given and row.get("prompt_tokens") and row.get("concurrency_requested"):
                given = cell_name(row["prompt_tokens"], row["concurrency_requested"])
            row["cell"] = given
            if row.get("run") is None or len(found) > 1:
                row["run"] = seen.get(str(given), 0)
                seen[str(given)] = row["run"] + 1
            runs[given] = row["run"]
            cells.append(row)
        requests += [{**row, "run": runs.get(row["cell"], 0)} for row in part.requests]
    provenance = {
        "tool": ", ".join(dict.fromkeys(part.tool for part in found)),
        "files": [file.name for file in files],
        **{key: value for part in found for key, value in part.notes.items()},
    }
    return Results(
        _frame(requests, REQUEST_COLUMNS, files), _frame(cells, CELL_COLUMNS, files), provenance
    )


def _frame(rows: list[dict[str, Any]], columns: dict[str, Any], files: list[Path]) -> pl.DataFrame:
    if not rows:
        return pl.DataFrame(schema=columns)
    try:
        return shaped(pl.DataFrame(rows, infer_schema_length=None), columns)
    except (LoadTestError, pl.exceptions.PolarsError, OverflowError, TypeError) as problem:
        raise LoadTestError("a value in this file is none that can be measured",
                            given=", ".join(str(file) for file in files[:5]),
                            allowed="numbers that a clock or a counter gives",
                            fix=str(problem).splitlines()[0]) from None  # fmt: skip
