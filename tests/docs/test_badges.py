"""Badges of the READMEs: current, at a tag, to pages that exist."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

import ledgerkit as lk

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def badges():
    spec = importlib.util.spec_from_file_location("badges", ROOT / "tools" / "badges.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_badges_are_what_the_project_says(badges):
    for path, text in badges.pages(ROOT).items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: python tools/badges.py"


@pytest.mark.parametrize("readme", ["README.md", "README.zh.md"])
def test_with_a_repository_the_badges_open_pages_of_the_tag(badges, tmp_path, readme):
    for name in (*badges.PAGES, "pyproject.toml"):
        text = (ROOT / name).read_text(encoding="utf-8")
        if name == "pyproject.toml":
            urls = '[project.urls]\nSource = "https://github.com/someone/books.git"\n'
            assert "[project.urls]" not in text, "the test makes its own"
            text += urls
        (tmp_path / name).write_text(text, encoding="utf-8")
    text = badges.pages(tmp_path)[tmp_path / readme]
    links = re.findall(r"\((https://mybinder\.org/[^)]+)\)", text)
    assert len(links) == 2
    for link in links:
        parts = urlsplit(link)
        assert parts.path == f"/v2/gh/someone/books/v{lk.__version__}"
        (target,) = parse_qs(parts.query)["urlpath"]
        opened = urlsplit(target).path
        for start in ("lab/tree/", "voila/render/"):
            opened = opened.removeprefix(start)
        assert (ROOT / opened).is_file()


def test_an_address_that_is_no_repository_is_refused(badges, tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "x"\n[project.urls]\nSource = "https://example.org/x"\n',
        encoding="utf-8",
    )
    with pytest.raises(SystemExit, match=r"not a repository on github\.com"):
        badges.project(tmp_path)


@pytest.mark.parametrize("page", ["binder.md", "binder.zh.md"])
def test_the_page_names_the_version_and_files_that_exist(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    tags = re.findall(r"/(v[\d.]+)\?urlpath=", text) + re.findall(r"git tag (v\S+)", text)
    assert set(tags) == {f"v{lk.__version__}"}
    for path in re.findall(r"(?:notebooks|binder)/[\w.]+\.ipynb", text):
        assert (ROOT / path).is_file()
