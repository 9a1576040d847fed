"""The wheel alone does the main job: no checkout beside it, nothing else installed."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT],
        check=True,
        capture_output=True,
    )
    return next(out.glob("ledgerkit_llm-*.whl"))


def test_contents(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        header = archive.read(metadata).decode()

    def packed(source: str, place: str) -> set[str]:
        return {
            f"{place}/{path.relative_to(ROOT / source).as_posix()}"
            for path in (ROOT / source).rglob("*")
            if path.is_file() and path.parent.name != ".ipynb_checkpoints"
        }

    assert {"ledgerkit/__init__.py", "ledgerkit/py.typed"} <= set(names)
    assert packed("data", "ledgerkit/_packaged") <= set(names)
    assert packed("notebooks", "ledgerkit/_notebooks") <= set(names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"ledgerkit", "ledgerkit_llm"}
    assert not [name for name in names if name.endswith((".pyc", ".nbi", ".nbc"))]

    assert "Name: ledgerkit-llm\n" in header
    assert "License-Expression: MIT AND OFL-1.1\n" in header
    for licence in ("LICENSE", "NOTICE", "data/fonts/OFL.txt"):
        assert f"License-File: {licence}\n" in header
        assert any(name.endswith(f".dist-info/licenses/{licence}") for name in names)


@pytest.mark.slow
@pytest.mark.notebook
def test_main_job_from_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("JUPYTER", "LEDGERKIT", "NUMBA", "PYTEST", "PYTHON"))
    }

    def run(*arguments: str | Path) -> str:
        done = subprocess.run(
            [python, *arguments],
            cwd=elsewhere,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel)
    home = Path(run("-c", "import ledgerkit; print(ledgerkit.__file__)").strip())
    assert home.is_relative_to(tmp_path / "venv")

    run("-m", "ledgerkit", "doctor")
    shown = run("-m", "ledgerkit", "figures", "--language", "zh")
    for slug in ("DeepSeek-V3", "Gemma 4 26B", "Kimi-K2.6", "MiMo-V2.5-Pro"):
        assert slug in shown
    made = {path.suffix for path in (elsewhere / "out").iterdir()}
    assert {".svg", ".png", ".pdf"} <= made
