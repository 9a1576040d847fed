"""Writing a sweep to Parquet: resumed runs yield the same file; nothing half done looks whole."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

import ledgerkit as lk
from ledgerkit.errors import SweepCancelledError, SweepError


@pytest.fixture(autouse=True)
def _small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ledgerkit._sweep.plan.UNIT_POINTS", 500)


def swept(**changes: object) -> lk.Sweep:
    axes = {
        "model": "llama-3.1-8b", "hardware": "h100-sxm-80gb", "tp": [1, 3, 8],
        "prompt_tokens": range(1, 400), "output_tokens": 16, "concurrency": [1, 8, 64],
        "progress": False,
    }  # fmt: skip
    return lk.sweep(**{**axes, **changes})


def test_the_file_holds_what_collect_gives(tmp_path: Path) -> None:
    path = swept().sink_parquet(tmp_path / "deep" / "er" / "points.parquet")
    assert pl.read_parquet(path).equals(swept().collect())
    assert [p.name for p in path.parent.iterdir()] == ["points.parquet"]


def test_an_interrupted_run_goes_on_and_yields_the_same_bytes(tmp_path: Path) -> None:
    whole = swept().sink_parquet(tmp_path / "whole.parquet")
    path = tmp_path / "parts.parquet"
    with pytest.raises(SweepCancelledError):
        swept(progress=lambda p: p.points < 1500, threads=1).sink_parquet(path)
    assert not path.exists()
    parts = tmp_path / "parts.parquet.parts"
    done = {p.name: p.stat().st_mtime_ns for p in parts.glob("whole/part-*.parquet")}
    assert 0 < len(done) < 8
    (parts / "begun" / "left-over").write_bytes(b"half")
    calls = []
    swept(progress=calls.append).sink_parquet(path)
    assert calls[-1].total_points < 3591
    assert path.read_bytes() == whole.read_bytes()
    assert not parts.exists()


def test_parts_of_another_sweep_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "points.parquet"
    with pytest.raises(SweepCancelledError):
        swept(progress=lambda _: False).sink_parquet(path)
    for other in (swept(concurrency=[1, 8, 65]), swept().select("tpot_s"),
                  swept().where(pl.col("tpot_s") < 1), swept(engine="sglang")):  # fmt: skip
        with pytest.raises(SweepError, match="another sweep"):
            other.sink_parquet(path)
    assert swept().sink_parquet(path).is_file()


def test_a_directory_becomes_a_dataset(tmp_path: Path) -> None:
    path = swept().sink_parquet(tmp_path / "points")
    assert pl.scan_parquet(path).collect().equals(swept().collect())
    assert {p.suffix for p in path.iterdir()} == {".parquet"}
    with pytest.raises(SweepError, match="exists"):
        swept().sink_parquet(path)


def test_what_a_lost_worker_had_begun_is_not_in_the_dataset(tmp_path: Path) -> None:
    path = tmp_path / "points"

    def die(_: object) -> None:
        (tmp_path / "points.parts" / "begun" / "half").write_bytes(b"PAR1 half")

    swept(progress=die).sink_parquet(path)
    assert pl.read_parquet(path).equals(swept().collect())
    assert [p.name for p in tmp_path.iterdir()] == ["points"]


def test_places_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    with pytest.raises(SweepError, match="cannot write"):
        swept().sink_parquet(file / "points.parquet")
    (tmp_path / "d.parquet").mkdir()
    with pytest.raises(SweepError, match="directory"):
        swept().sink_parquet(tmp_path / "d.parquet")
    (tmp_path / "x.parquet.parts").mkdir()
    (tmp_path / "x.parquet.parts" / "mine").write_text("keep")
    with pytest.raises(SweepError, match="not empty"):
        swept().sink_parquet(tmp_path / "x.parquet")


def test_a_full_disk_leaves_no_file_and_the_run_can_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "points.parquet"
    write = pl.DataFrame.write_parquet
    written = []

    def full(self: pl.DataFrame, file: Path, **options: object) -> None:
        if len(written) == 3:
            Path(file).write_bytes(b"PAR1 half")
            raise OSError(28, os.strerror(28))
        written.append(file)
        write(self, file, **options)

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    with pytest.raises(SweepError, match="No space left"):
        swept(threads=1).sink_parquet(path)
    monkeypatch.undo()
    monkeypatch.setattr("ledgerkit._sweep.plan.UNIT_POINTS", 500)
    assert not path.exists()
    assert not list((tmp_path / "points.parquet.parts" / "begun").iterdir())
    swept().sink_parquet(path)
    assert pl.read_parquet(path).equals(swept().collect())
