"""The recipes of CONTRIBUTING, followed as they stand in a copy of the package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


def recipe(title: str) -> str:
    return PAGE.split(f"\n### {title}\n")[1].split("\n##")[0]


def blocks(text: str, language: str) -> list[str]:
    return [textwrap.dedent(found[3]) for found in BLOCK.finditer(text) if found[2] == language]


def named(text: str, language: str) -> dict[str, str]:
    """Blocks that a file name in backquotes and a colon introduce."""
    pattern = re.compile(
        rf"`([\w./-]+)`:\n\n( *)```{language}\n(.*?)^\2```$", re.MULTILINE | re.DOTALL
    )
    return {found[1]: textwrap.dedent(found[3]) for found in pattern.finditer(text)}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("ledgerkit", "data"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    return tmp_path


def run(tree: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=tree, env=os.environ | {"PYTHONPATH": str(tree)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def commands(text: str) -> list[list[str]]:
    lines = [line for block in blocks(text, "") for line in block.splitlines()]
    return [re.match(r'python (-[cm]) "?(.*?)"?$', line).groups() for line in lines]


def test_add_a_model(tree):
    steps = recipe("Add a model")
    ((name, content),) = named(steps, "json").items()
    (tree / name).write_text(content, encoding="utf-8")
    report, count = (run(tree, *command) for command in commands(steps))
    assert "Llama 3.2 3B" in report
    assert "num_key_value_heads" in report
    # the count of the published checkpoint
    assert int(count) == 3_212_749_824


def test_add_a_device(tree):
    steps = recipe("Add a device")
    (row,) = blocks(steps, "csv")
    with (tree / "data" / "hardware.csv").open("a", encoding="utf-8") as table:
        table.write(row)
    (build, show) = commands(steps)
    run(tree, *build)
    shown = run(tree, *show)
    assert "a30-24gb" in shown
    code = (
        "import ledgerkit as lk; d = lk.load_hardware('a30-24gb'); w = lk.Workload("
        "prompt_tokens=1024, output_tokens=128); "
        "print(d.memory_bytes_per_s, lk.ledger('qwen3-8b', d, None, w).fits)"
    )
    rate, fits = run(tree, "-c", code).split()
    assert float(rate) == 933e9
    assert fits == "yes"


def test_add_a_chart(tree):
    steps = recipe("Add a chart")
    for name, content in named(steps, "python").items():
        (tree / name).write_text(content, encoding="utf-8")
    (imported,) = (block for block in blocks(steps, "python") if block.startswith("from ledger"))
    init = tree / "ledgerkit" / "charts" / "__init__.py"
    text = init.read_text(encoding="utf-8").replace(
        "from ledgerkit.charts.triangle import", f"{imported}from ledgerkit.charts.triangle import"
    )
    init.write_text(text.replace("__all__ = [", '__all__ = [\n    "step_times",'), "utf-8")
    code = """
import polars as pl, ledgerkit as lk
frame = pl.DataFrame({"label": ["Gemma", "Kimi"], "tpot_s": [0.018, 0.0217]})
lk.save_figure(lk.charts.step_times(frame, language="en"), "f.json")
for language in ("zh", "en"):
    lk.save_figure(lk.charts.open_figure("f.json", language=language), f"f.{language}.svg")
"""
    run(tree, "-c", code)
    assert "decode 一步要多久？" in (tree / "f.zh.svg").read_text(encoding="utf-8")
    assert "21.7 ms" in (tree / "f.en.svg").read_text(encoding="utf-8")


def test_code_of_the_recipes_passes_the_rules(tree):
    pytest.importorskip("ruff")
    config = f"--config={ROOT / 'pyproject.toml'}"
    for name, content in named(recipe("Add a chart"), "python").items():
        (tree / name).write_text(content, encoding="utf-8")
        run(tree, "-m", "ruff", "check", config, name)
        run(tree, "-m", "ruff", "format", "--check", config, name)
