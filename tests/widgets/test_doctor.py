"""LoadTestDoctor without a browser: results in, verdict out, at the point that is asked for."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import polars as pl
import pytest

import ledgerkit as lk
from ledgerkit.errors import LoadTestError
from ledgerkit.widgets import LoadTestDoctor
from tests.widgets.helpers import assert_code_recreates, open_widgets, until, uploaded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROWS = pl.DataFrame(
    [
        {
            "prompt_tokens": context, "concurrency_requested": many, "run": run,
            # 6 ms a step, 0.02 ms a sequence, 50 ns a token in the cache
            "itl_s": (6.0 + 0.02 * many + 5e-5 * many * context) * 1e-3 * (1 + 0.01 * (run - 1)),
        }
        for context in (1024, 8192, 32768)
        for many in (1, 4, 16)
        for run in range(3)
    ]
)  # fmt: skip


@pytest.fixture
def doctor() -> Iterator[LoadTestDoctor]:
    made = LoadTestDoctor(ROWS, language="en", anchored=False)
    yield made
    made.close()


def test_it_starts_empty_and_says_what_to_do():
    made = LoadTestDoctor(language="en")
    assert made.chart is None
    assert made.error == ""
    assert "Upload or pick" in made._words.value
    made.close()


def test_the_share_is_that_of_the_made_up_server(doctor):
    doctor.prompt_tokens, doctor.concurrency = 32768, 16
    cache = 5e-5 * 16 * 32768
    truth = cache / (6.0 + 0.02 * 16 + cache)
    assert doctor.diagnosis.attention_kv_share.value == pytest.approx(truth, abs=0.02)
    assert doctor.diagnosis.verdict == "attention_kv"
    assert "Attention" in doctor._words.value


def test_the_point_starts_in_the_middle_of_what_was_measured(doctor):
    found = lk.loadtest.diagnose(ROWS)
    assert doctor.prompt_tokens == round(found.context_tokens)
    assert doctor.concurrency == round(found.concurrency)


@pytest.mark.parametrize("figure", ["verdict", "ratio", "sensitivity"])
@pytest.mark.parametrize(("language", "theme"), [("zh", "dark"), ("en", "article")])
def test_the_copied_code_draws_the_same_figure(figure, language, theme):
    made = LoadTestDoctor("example", language=language, theme=theme, figure=figure)
    assert_code_recreates(made)
    made.close()


def test_files_of_the_folder_are_offered_and_read(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = lk.loadtest.Results.from_cells(ROWS).save(tmp_path / "run.parquet")
    (tmp_path / "notes.txt").write_text("not for reading")
    made = LoadTestDoctor(language="en", anchored=False)
    pick = made._side.children[1]
    assert [label for label, _ in pick.options][2:] == ["run.parquet"]
    pick.value = path.name
    until(lambda: made.diagnosis is not None and made.code)
    assert made.diagnosis.cells.height == ROWS.height
    assert_code_recreates(made)
    made.close()


def test_an_upload_is_read_whatever_its_name_says(doctor):
    row = {"pp": 1024, "tg": 128, "pl": 1, "n_kv": 1152, "t_pp": 0.5, "t_tg": 2.0, "n_kv_max": 8192,
           "speed_pp": 2048.0, "speed_tg": 64.0, "t": 2.5, "speed": 460.8}  # fmt: skip
    lines = "\n".join(
        json.dumps(row | {"pp": context, "pl": many, "t_tg": 2.0 + 1e-5 * context * many})
        for context in (1024, 8192)
        for many in (1, 8)
        for _ in range(3)
    )
    upload = doctor._side.children[2]
    upload.value = (uploaded(f"..{os.sep}..{os.sep}bench.jsonl", lines),)
    until(lambda: "bench.jsonl" in doctor.code)
    assert "lk.loadtest.read('bench.jsonl')" in doctor.code
    assert doctor.diagnosis.cells.height == 12


def test_what_cannot_be_read_is_said_and_the_verdict_stays(doctor):
    before = doctor.diagnosis
    doctor._side.children[2].value = (uploaded("x.json", '{"a": 1}'),)
    until(lambda: doctor.error)
    assert "unknown result format" in doctor.error
    assert doctor.diagnosis is before
    with pytest.raises(LoadTestError, match="no such result file"):
        doctor.take("nowhere.json")


@pytest.mark.usefixtures("doctor")
def test_closing_leaves_nothing_behind():
    before = open_widgets()
    made = LoadTestDoctor(ROWS)
    made.language = "zh"
    made.close()
    assert open_widgets() == before
