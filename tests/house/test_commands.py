"""The shell commands, through the same entry that a shell uses."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import nbformat
import pytest

import ledgerkit
from ledgerkit.__main__ import main
from ledgerkit._commands import doctor, figures

if TYPE_CHECKING:
    from pathlib import Path


def _notebook(path: Path, *cells: tuple[str, list[str]]) -> Path:
    made = [
        nbformat.v4.new_code_cell(source, metadata={"tags": tags} if tags else {})
        for source, tags in cells
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=made), path)
    return path


def test_the_module_runs_as_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ledgerkit", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"ledgerkit {ledgerkit.__version__}\n"


@pytest.mark.notebook
def test_figures_sets_parameters_prints_reports_and_lists_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    notebook = _notebook(
        tmp_path / "tiny.ipynb",
        ("language = 'xx'\nout = 'nowhere'", ["parameters"]),
        ("from pathlib import Path\n(Path(out) / f'{language}.svg').write_text('<svg/>')", []),
        ("print('printed', language)", ["report"]),
        ("import polars as pl\npl.DataFrame({'model': ['m'] * 30})", ["report"]),
    )
    assert main(["figures", "--notebook", str(notebook), "--out", "made", "--language", "zh"]) == 0
    shown = capsys.readouterr().out
    assert "printed zh" in shown
    assert shown.count("│ m ") == 30, "a table is printed whole"
    assert "nowhere" not in shown
    assert shown.endswith("已写入 made：\n  made/manifest.json\n  made/tiny.ipynb\n  made/zh.svg\n")
    # the source stays as it was, the copy in out/ is executed
    stored = json.loads(notebook.read_text(encoding="utf-8"))
    assert all(cell["outputs"] == [] for cell in stored["cells"])
    executed = json.loads((tmp_path / "made" / "tiny.ipynb").read_text(encoding="utf-8"))
    assert any(cell["outputs"] for cell in executed["cells"])


@pytest.mark.notebook
def test_figures_reports_the_cell_that_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook = _notebook(
        tmp_path / "broken.ipynb", ("language = out = ''", ["parameters"]), ("1 / 0", [])
    )
    assert main(["figures", "--notebook", str(notebook), "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "a cell of broken.ipynb failed" in error
    assert "ZeroDivisionError" in error


def test_figures_wants_one_cell_of_parameters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook = _notebook(tmp_path / "plain.ipynb", ("1", []))
    assert main(["figures", "--notebook", str(notebook), "--out", str(tmp_path)]) == 2
    assert "exactly one cell tagged 'parameters' (given: '0 such cells" in capsys.readouterr().err


def test_the_bundled_notebook_fits_the_command() -> None:
    notebook = nbformat.read(figures.bundled_notebook(), as_version=4)
    nbformat.validate(notebook)
    tags = [tag for cell in notebook.cells for tag in cell.metadata.get("tags", ())]
    assert tags.count("parameters") == 1
    assert "report" in tags
    assert notebook.metadata.kernelspec.name == "python3"


@pytest.mark.parametrize(("language", "verdict"), [("en", "all is well"), ("zh", "一切正常")])
def test_doctor_finds_this_installation_well(
    language: str, verdict: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--language", language]) == 0
    shown = capsys.readouterr().out
    assert shown.splitlines()[-1] == verdict
    assert " x " not in shown


def test_doctor_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shadow = tmp_path / "labextensions" / "anywidget"
    shadow.mkdir(parents=True)
    (shadow / "package.json").write_text('{"version": "0.0.1"}')
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "0")
    monkeypatch.setattr("ledgerkit.kernels._jit.cache_directory", lambda: None)
    monkeypatch.setattr(doctor, "PACKAGES", ("numpy", "no-such-package"))
    monkeypatch.setattr(doctor, "FONTS", ("No-Such-Font.otf",))

    assert main(["doctor"]) == 1
    shown = capsys.readouterr().out
    assert "x package no-such-package: not installed" in shown
    assert "x front end of anywidget: JupyterLab has 0.0.1, the kernel has" in shown
    assert "x own fonts: not installed: No-Such-Font.otf" in shown
    assert "x kernel cache: no writable directory" in shown
    assert "do: set NUMBA_CACHE_DIR to a writable directory" in shown
    assert shown.splitlines()[-1] == "failed: 4"


def test_warmup_runs_a_ledger(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warmup"]) == 0
    assert capsys.readouterr().out.startswith("kernels are ready (")
