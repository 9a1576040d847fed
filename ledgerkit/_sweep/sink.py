"""Streaming to Parquet: parts as they are computed, one file or dataset at the end.

Parts lie in a directory beside the destination and are complete files only: each is written in
another directory first, where a worker that dies, or one that writes a unit a second time, leaves
nothing a reader could meet. A later run of the same sweep finds the parts and computes the others;
parts of another sweep are refused. The destination appears when all is there.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from ledgerkit._sweep.engine import execute
from ledgerkit._sweep.fingerprint import fingerprint
from ledgerkit._sweep.frames import Frames
from ledgerkit._sweep.reducers import Collect, Pieces
from ledgerkit.errors import SweepError

if TYPE_CHECKING:
    from ledgerkit._sweep.lazy import Sweep

_MANIFEST = "sweep.json"
_WHOLE, _BEGUN = "whole", "begun"
_ROWS_PER_GROUP = 1_048_576


class WriteParts:
    """Writes each unit to a file of its own."""

    def __init__(self, names: tuple[str, ...], directory: Path) -> None:
        self.needs, self.directory = names, directory

    def path(self, unit: int) -> Path:
        """File of a unit."""
        return self.directory / _WHOLE / f"part-{unit:08d}.parquet"

    def reduce(self, frames: Frames, pieces: Pieces, unit: int) -> int:
        """Write a unit; returns its rows."""
        frame = Collect(self.needs).reduce(frames, pieces, unit)
        path = self.path(unit)
        hidden = self.directory / _BEGUN / uuid.uuid4().hex
        try:
            frame.write_parquet(hidden, compression="zstd", statistics=True)
            hidden.replace(path)
        except BaseException:
            hidden.unlink(missing_ok=True)
            raise
        return frame.height

    def join(self, unit: int, part: int) -> None:
        """Nothing: the file is there."""


def sink(sweep: Sweep, path: Path) -> Path:
    """Write a sweep; see ``Sweep.sink_parquet``."""
    one_file = path.suffix == ".parquet"
    if one_file and path.is_dir():
        raise SweepError(
            "the destination is a directory",
            given=str(path),
            allowed="a file name, or a directory without the ending .parquet",
            fix="give a file name, or a directory without .parquet",
        )
    if not one_file and path.exists():
        raise SweepError("the destination exists", given=str(path), allowed="a name that is free",
                         fix="delete it, or choose another name")  # fmt: skip
    path = path.absolute()  # workers may run elsewhere
    parts = path.with_name(path.name + ".parts")
    plan = sweep.plan
    try:
        _open(parts, fingerprint(sweep), plan.units)
        reducer = WriteParts(sweep.columns, parts)
        missing = [unit for unit in range(plan.units) if not reducer.path(unit).is_file()]
        execute(sweep.task(reducer), sweep.tables, sweep.options, units=missing)
        files = [reducer.path(unit) for unit in range(plan.units)]
        if one_file:
            _join(files, path)
        else:
            (parts / _WHOLE).replace(path)
        # a worker may still be writing a unit that another has finished: its failure is no news
        shutil.rmtree(parts, ignore_errors=True)
    except (OSError, pl.exceptions.ComputeError) as error:
        raise SweepError(
            f"cannot write the sweep: {error}",
            given=str(path),
            allowed="a writable place with room",
            fix="choose a writable place with room; call again to go on where it stopped",
        ) from error
    return path


def _open(parts: Path, mark: str, units: int) -> None:
    """Make the directory of the parts, or check that it belongs to this sweep."""
    manifest = parts / _MANIFEST
    hidden = parts / f"{_MANIFEST}.begun"
    parts.mkdir(parents=True, exist_ok=True)
    if not manifest.is_file():
        if any(found != hidden for found in parts.iterdir()):
            raise SweepError(
                "the directory for the parts is not empty",
                given=str(parts),
                allowed="an empty directory, or none",
                fix="delete it, or choose another name",
            )
        hidden.write_text(json.dumps({"sweep": mark, "parts": units}), encoding="utf-8")
        hidden.replace(manifest)
    elif json.loads(manifest.read_text(encoding="utf-8")).get("sweep") != mark:
        raise SweepError(
            "unfinished parts of another sweep are in the way",
            given=str(parts),
            allowed="parts of this sweep, or none",
            fix="delete them, or choose another name",
        )
    (parts / _WHOLE).mkdir(exist_ok=True)
    shutil.rmtree(parts / _BEGUN, ignore_errors=True)
    (parts / _BEGUN).mkdir()


def _join(files: Sequence[Path], path: Path) -> None:
    """Write all parts into one file, in order, in bounded memory."""
    hidden = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        pl.scan_parquet(list(files)).sink_parquet(
            hidden, compression="zstd", statistics=True, row_group_size=_ROWS_PER_GROUP,
            maintain_order=True,
        )  # fmt: skip
        hidden.replace(path)
    finally:
        hidden.unlink(missing_ok=True)
