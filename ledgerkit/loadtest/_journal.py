"""A journal of finished requests, so that a crash or a cancel loses none of them.

JSON lines beside the result file: first the plan's fingerprint and where the test ran, then one
line per request and one per finished run of a cell. It is deleted when the Parquet file is safe.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ledgerkit.errors import LoadTestError

__all__ = ["Journal", "records"]


@dataclass
class Journal:
    """What has been done so far, in memory and on disk.

    Attributes
    ----------
    path : Path or None
        None keeps everything in memory.
    fingerprint : str
        Of the plan; another plan must not continue this journal.
    requests, cells : list of dict
        Rows of ``REQUEST_COLUMNS`` and ``CELL_COLUMNS``.
    """

    path: Path | None
    fingerprint: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    cells: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def beside(cls, out: Path | None, fingerprint: str, *, resume: bool) -> Journal:
        """Open the journal of a result file, and take up what it holds.

        Raises
        ------
        LoadTestError
            It belongs to another plan, or may not be continued.
        """
        if out is None:
            return cls(None, fingerprint)
        path = out.with_name(out.name + ".journal.jsonl")
        found = cls(path, fingerprint)
        if path.exists() and path.stat().st_size:
            if not resume:
                raise LoadTestError(
                    "an unfinished test lies beside this file",
                    given=str(path),
                    allowed="a place without a journal",
                    fix="resume=True continues it; or remove the journal",
                )
            found._take_up(path)
        else:
            found._write({"plan": fingerprint})
        return found

    def _take_up(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        if not text.endswith("\n"):  # a crash cut the last line; the next must not join it
            with path.open("a", encoding="utf-8") as file:
                file.write("\n")
        found = records(path)
        if not found or found[0].get("plan") != self.fingerprint:
            raise LoadTestError(
                "the unfinished test beside this file belongs to another plan",
                given=str(path),
                allowed="the plan that the file was begun with",
                fix="use the same plan and seed, or another file",
            )
        self.requests = [record["request"] for record in found if "request" in record]
        self.cells = [record["cell"] for record in found if "cell" in record]
        done = self.done
        for row in self.requests:
            if (row["cell"], row["run"]) not in done and row["status"] == "ok":
                # finished, but its run of the cell was not: kept, and not counted
                row["status"] = "ok, run interrupted"

    @property
    def done(self) -> set[tuple[str, int]]:
        """Runs of cells that are finished."""
        return {(row["cell"], row["run"]) for row in self.cells}

    def request(self, row: dict[str, Any]) -> None:
        """Keep one request."""
        self.requests.append(row)
        self._write({"request": row})

    def cell(self, row: dict[str, Any]) -> None:
        """Keep one finished run of a cell."""
        self.cells.append(row)
        self._write({"cell": row})

    def _write(self, record: dict[str, Any]) -> None:
        if self.path is None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
        except OSError as problem:
            raise LoadTestError(
                "the journal of the test cannot be written",
                given=str(self.path),
                allowed="a writable directory",
                fix=str(problem),
            ) from None

    def close(self) -> None:
        """Remove the file; its rows are safe elsewhere."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def records(path: Path) -> list[dict[str, Any]]:
    """All whole lines of a journal."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [record for record in map(_parsed, lines) if record is not None]


def _parsed(line: str) -> dict[str, Any] | None:
    """One record; None for a line that a crash cut short."""
    try:
        record = json.loads(line)
    except json.JSONDecodeError:
        return None
    return record if isinstance(record, dict) else None
