"""Generated pages are current; the help page is organised by symptom and its commands exist."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

import ledgerkit as lk
from ledgerkit.__main__ import parser

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def build_docs():
    path = DOCS.parent / "tools" / "build_docs.py"
    spec = importlib.util.spec_from_file_location("build_docs", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(path.parent))


@pytest.mark.slow
def test_the_generated_pages_are_current(build_docs):
    found = build_docs.stale(DOCS)
    assert found == [], "run: python tools/build_docs.py"


def test_the_reference_names_everything_public():
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    for name in lk.__all__:
        if name != "__version__":
            assert f"\n## lk.{name}\n" in page, name
    assert "object at 0x" not in page
    assert "**Parameters**" in page


def test_the_gallery_shows_every_chart_with_its_code(build_docs):
    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    for name in set(lk.charts.__all__) - build_docs.NO_CHARTS:
        section = page.split(f"\n## {name}\n")[1].split("\n## ")[0]
        assert f"(img/gallery/{name}.svg)" in section
        assert "```python\n" in section
        image = (DOCS / "img" / "gallery" / f"{name}.svg").read_text(encoding="utf-8")
        assert "<desc" in image


def test_a_docstring_becomes_markdown(build_docs):
    made = build_docs._markdown(
        "Do it.\n\nParameters\n----------\nsize : int\n    In px.\n\nExamples\n--------\n>>> 1\n1"
    )
    assert made == "Do it.\n\n**Parameters**\n\n- `size` (int): In px.\n\n```pycon\n>>> 1\n1\n```"


@pytest.mark.parametrize("name", ["troubleshooting.md", "troubleshooting.zh.md"])
def test_commands_and_names_of_the_help_page_exist(name):
    page = (DOCS / name).read_text(encoding="utf-8")
    commands = set(re.findall(r"python -m ledgerkit ([a-z]+)(.*?)`", page))
    assert {command for command, _ in commands} == {"doctor", "warmup"}
    for command, options in commands:
        parser().parse_args([command, *options.split()])
    for path in set(re.findall(r"`lk\.([\w.]+)", page)):
        value = lk
        for part in path.split("."):
            value = getattr(value, part)


def test_the_help_page_has_the_same_symptoms_in_both_languages():
    pages = [
        (DOCS / name).read_text(encoding="utf-8")
        for name in ("troubleshooting.md", "troubleshooting.zh.md")
    ]
    for pattern in (r"^## ", r"^- "):
        counts = [
            [len(re.findall(pattern, part, re.MULTILINE)) for part in page.split("\n## ")]
            for page in pages
        ]
        assert counts[0] == counts[1]
