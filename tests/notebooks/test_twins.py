"""Notebooks in two languages stay in step: same cells, same headings, same code."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
CHINESE = sorted(NOTEBOOKS.glob("*.zh.ipynb"))
NAMES = ("id", "attr", "arg", "name", "module", "level")
HAN = re.compile("[\u4e00-\u9fff]")


def cells(path: Path) -> list[dict]:
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def source(cell: dict) -> str:
    return "".join(cell["source"])


def english(path: Path) -> Path:
    return path.with_name(path.name.replace(".zh.", "."))


def shape(node: ast.AST) -> str:
    return type(node).__name__


def differences(one: ast.AST, other: ast.AST) -> list[str]:
    """Where two programs differ, apart from words for readers and the code of the language."""
    pairs = list(zip(ast.walk(one), ast.walk(other), strict=False))
    found = [f"{shape(a)} and {shape(b)}" for a, b in pairs if shape(a) != shape(b)]
    for a, b in pairs:
        names = [(getattr(a, name, None), getattr(b, name, None)) for name in NAMES]
        found += [
            f"{mine} and {yours}"
            for mine, yours in names
            if isinstance(mine, str | int) and mine != yours
        ]
        if isinstance(a, ast.Constant) and isinstance(b, ast.Constant) and a.value != b.value:
            words = isinstance(b.value, str) and HAN.search(b.value)
            if not words and (a.value, b.value) != ("en", "zh"):
                found.append(f"{a.value!r} and {b.value!r}")
    return found


def test_the_notebooks_for_readers_have_a_twin():
    for name in (
        "00_start_here",
        "01_three_ledgers",
        "02_read_a_new_model",
        "05_where_the_cost_goes",
    ):
        assert (NOTEBOOKS / f"{name}.zh.ipynb").is_file()


@pytest.mark.parametrize("path", CHINESE, ids=lambda path: path.name.removesuffix(".zh.ipynb"))
def test_twins_are_in_step(path):
    ours, theirs = cells(path), cells(english(path))
    assert [cell["cell_type"] for cell in ours] == [cell["cell_type"] for cell in theirs]
    for zh, en in zip(ours, theirs, strict=True):
        assert zh["metadata"].get("tags", []) == en["metadata"].get("tags", [])
        if zh["cell_type"] == "code":
            assert differences(ast.parse(source(en)), ast.parse(source(zh))) == [], en["id"]
            assert not HAN.search(source(en))
        else:
            assert HAN.search(source(zh)), zh["id"]
            heads = [re.findall(r"^#+", source(cell), re.MULTILINE) for cell in (zh, en)]
            assert heads[0] == heads[1], en["id"]


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_links_between_notebooks_lead_somewhere(path):
    links = [
        target
        for cell in cells(path)
        if cell["cell_type"] == "markdown"
        for target in re.findall(r"\]\(([^)#:]+)\)", source(cell))
    ]
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_a_changed_argument_is_a_difference():
    assert differences(ast.parse("f(tp=8)"), ast.parse("f(tp=4)")) == ["8 and 4"]
    assert differences(ast.parse("f(tp=8)"), ast.parse("f(pp=8)")) == ["tp and pp"]
    assert differences(ast.parse("a + b"), ast.parse("a - b")) == ["Add and Sub"]
    assert differences(ast.parse("x = 'half'"), ast.parse("x = '减半'")) == []
    assert differences(ast.parse("f('en')"), ast.parse("f('zh')")) == []
