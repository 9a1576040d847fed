"""One schema for whatever measured a load test: requests, and runs of cells.

A *cell* is a pair (prompt tokens, concurrency). A *run* is one repetition of a cell. A result file
is one Parquet table with a row per request and a row per run of a cell, told apart by ``record``;
where it came from stands in the file's metadata.
"""

from __future__ import annotations

import contextlib
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from ledgerkit.errors import LoadTestError

__all__ = ["CELL_COLUMNS", "REQUEST_COLUMNS", "Results", "cell_name"]

SCHEMA_VERSION = 1
_META_KEY = "ledgerkit.loadtest"


REQUEST_COLUMNS: dict[str, Any] = {
    "cell": pl.String,
    "run": pl.Int64,
    "order": pl.Int64,  # position of this run of the cell in the randomised order
    "prompt_tokens_requested": pl.Int64,
    "output_tokens_requested": pl.Int64,
    "concurrency_requested": pl.Int64,
    "request": pl.Int64,
    "status": pl.String,  # "ok", or what went wrong
    "error": pl.String,
    "http_status": pl.Int64,
    "attempts": pl.Int64,
    "start_s": pl.Float64,  # on the monotonic clock of the test
    "ttft_s": pl.Float64,
    "e2e_s": pl.Float64,
    "prompt_tokens": pl.Int64,
    "output_tokens": pl.Int64,
    "cached_tokens": pl.Int64,
    "tokens_from": pl.String,  # "usage", or "chunks" where the server did not count
    "finish_reason": pl.String,
    "chunk_times_s": pl.List(pl.Float64),  # after start_s
}
"""Columns of a row per request."""

CELL_COLUMNS: dict[str, Any] = {
    "cell": pl.String,
    "run": pl.Int64,
    "order": pl.Int64,
    "prompt_tokens": pl.Float64,
    "prompt_tokens_counted": pl.Float64,  # by the server
    "output_tokens": pl.Float64,
    "concurrency_requested": pl.Float64,
    "concurrency": pl.Float64,  # sequences that really decoded at once
    "context_tokens": pl.Float64,  # mean tokens in the cache while decode was timed
    "itl_s": pl.Float64,  # seconds of a decode step (per token of one sequence)
    "itl_method": pl.String,
    "itl_median_s": pl.Float64,
    "itl_p99_s": pl.Float64,
    "steady_tokens": pl.Float64,  # tokens per sequence behind itl_s
    "tokens_per_s": pl.Float64,  # decode, all sequences
    "tokens_per_s_one": pl.Float64,  # decode, one sequence
    "ttft_p50_s": pl.Float64,
    "ttft_p99_s": pl.Float64,
    "tpot_p50_s": pl.Float64,
    "tpot_p99_s": pl.Float64,
    "e2e_p50_s": pl.Float64,
    "e2e_p99_s": pl.Float64,
    "requests": pl.Int64,
    "failed": pl.Int64,
    "cached_tokens": pl.Float64,
    "output_tokens_min": pl.Float64,
    "output_tokens_max": pl.Float64,
    "tokens_from": pl.String,
    "tokens_per_chunk": pl.Float64,
    "preemptions": pl.Float64,
    "itl_mean_s": pl.Float64,  # client, over the whole run, to compare with engine_itl_s
    "engine_itl_s": pl.Float64,  # the engine's own account of it
    "running_max": pl.Float64,  # sequences at once by the server's own account
    "peak_memory_bytes": pl.Float64,
    "kv_usage_peak": pl.Float64,  # fraction of the cache pool
}
"""Columns of a row per run of a cell."""


def cell_name(prompt_tokens: float, concurrency: float) -> str:
    """Name of a cell.

    Examples
    --------
    >>> cell_name(8192, 4), cell_name(1000, 1)
    ('8K x 4', '1000 x 1')
    """
    if not math.isfinite(prompt_tokens * concurrency):
        return "?"
    whole = int(prompt_tokens)
    tokens = f"{whole // 1024}K" if whole and whole % 1024 == 0 else f"{whole}"
    return f"{tokens} x {int(concurrency)}"


def parquet_path(path: str | Path) -> Path:
    """Path of a result file.

    Raises
    ------
    LoadTestError
        It has another ending: ``read`` tells formats apart by it.
    """
    target = Path(path)
    if target.suffix != ".parquet":
        raise LoadTestError(
            "results are saved as Parquet",
            given=str(path),
            allowed="names that end in .parquet",
            fix=f"name it {target.with_suffix('.parquet').name}",
        )
    return target


def shaped(frame: pl.DataFrame, columns: dict[str, Any]) -> pl.DataFrame:
    """Bring a frame to a schema: missing columns are null, unknown ones are left out."""
    known: Any = {name: kind for name, kind in columns.items() if name in frame.columns}
    try:
        filled = frame.select(list(known)).cast(known)
    except pl.exceptions.PolarsError as problem:
        said = str(problem).splitlines()[0]
        raise LoadTestError(
            "a column holds values of another kind",
            given=said,
            allowed="columns as lk.loadtest.run writes them",
        ) from None
    return pl.concat([pl.DataFrame(schema=columns), filled], how="diagonal")


@dataclass(frozen=True)
class Results:
    """What a load test measured.

    Attributes
    ----------
    requests : polars.DataFrame
        One row per request (``REQUEST_COLUMNS``); empty where a tool reports totals only.
    cells : polars.DataFrame
        One row per run of a cell (``CELL_COLUMNS``).
    provenance : dict
        Plan, tool and version, server, client, time: whatever is known of where this comes from.

    Examples
    --------
    >>> rows = pl.DataFrame({"cell": ["1K x 1"], "run": [0], "itl_s": [0.02]})
    >>> Results.from_cells(rows).cells["itl_s"].to_list()
    [0.02]
    """

    requests: pl.DataFrame
    cells: pl.DataFrame
    provenance: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_cells(cls, cells: pl.DataFrame, provenance: dict[str, Any] | None = None) -> Results:
        """Wrap rows that already stand for runs of cells."""
        empty = pl.DataFrame(schema=REQUEST_COLUMNS)
        return cls(empty, shaped(cells, CELL_COLUMNS), provenance or {})

    def __repr__(self) -> str:
        runs = self.cells.height
        failed = self.failures.height
        return (
            f"Results({self.cells['cell'].n_unique()} cells, {runs} runs, "
            f"{self.requests.height} requests, {failed} failed)"
        )

    @property
    def failures(self) -> pl.DataFrame:
        """Requests that did not finish, with what happened."""
        return self.requests.filter(~pl.col("status").str.starts_with("ok")).drop("chunk_times_s")

    @property
    def table(self) -> pl.DataFrame:
        """The article's table: per cell TTFT, decode tokens/s, tails and peak memory (medians)."""
        return (
            self.cells.group_by("cell", maintain_order=True)
            .agg(
                pl.col("prompt_tokens", "concurrency_requested", "concurrency").median(),
                pl.len().alias("runs"),
                pl.col(
                    "ttft_p50_s", "ttft_p99_s", "itl_s", "itl_p99_s", "tpot_p99_s",
                    "tokens_per_s", "tokens_per_s_one", "e2e_p99_s",
                ).median(),
                pl.col("peak_memory_bytes", "kv_usage_peak").max(),
                pl.col("failed").sum(),
            )
            .sort("concurrency_requested", "prompt_tokens")
        )  # fmt: skip

    def save(self, path: str | Path) -> Path:
        """Write one Parquet file with every row and the provenance.

        Parameters
        ----------
        path : path
            Ends in ``.parquet``.
        """
        target = parquet_path(path)
        both = pl.concat(
            [
                self.requests.with_columns(pl.lit("request").alias("record")),
                self.cells.with_columns(pl.lit("cell").alias("record")),
            ],
            how="diagonal_relaxed",
        )
        note = {"schema": SCHEMA_VERSION, **self.provenance}
        unfinished = target.with_name(target.name + ".part")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            both.write_parquet(
                unfinished,
                metadata={_META_KEY: json.dumps(note, ensure_ascii=False, sort_keys=True)},
            )
            unfinished.replace(target)
        except (OSError, pl.exceptions.PolarsError) as problem:
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise LoadTestError(
                "the result file cannot be written",
                given=str(target),
                allowed="a writable place",
                fix=str(problem),
            ) from None
        return target

    @classmethod
    def load(cls, path: str | Path) -> Results:
        """Read what ``save`` wrote.

        Raises
        ------
        LoadTestError
            The file is not one of ours, or of a version that this one does not know.
        """
        try:
            note = pl.read_parquet_metadata(path).get(_META_KEY)
            both = pl.read_parquet(path)
        except (OSError, pl.exceptions.PolarsError) as problem:
            raise LoadTestError(
                "this file cannot be read as Parquet",
                given=str(path),
                allowed="a whole Parquet file",
                fix=f"{problem}: was it cut off?",
            ) from None
        if note is None or "record" not in both.columns:
            raise LoadTestError(
                "this Parquet file does not hold a ledgerkit load test",
                given=str(path),
                allowed="files that lk.loadtest.run wrote",
            )
        provenance = json.loads(note)
        version = provenance.pop("schema", None)
        if version != SCHEMA_VERSION:
            raise LoadTestError("unknown version of the result file", given=version,
                                allowed=str(SCHEMA_VERSION))  # fmt: skip
        requests = shaped(both.filter(pl.col("record") == "request"), REQUEST_COLUMNS)
        cells = shaped(both.filter(pl.col("record") == "cell"), CELL_COLUMNS)
        return cls(requests, cells, provenance)
