"""Fixtures of the browser tests: `lab` is a page in a JupyterLab of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.lab import CHROMIUM_FLAGS, LabPage, chromium, serve

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser


# not for the whole run: while Playwright is open, nothing else in its process can use asyncio
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    executable = chromium()
    if executable is None:
        pytest.skip("no Chromium on this machine: install your system's chromium package")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=executable, headless=True, args=CHROMIUM_FLAGS
        )
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def lab_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    with serve(tmp_path_factory.mktemp("jupyter")) as server:
        yield server


@pytest.fixture
def lab(
    browser: Browser, lab_server: tuple[str, Path], request: pytest.FixtureRequest
) -> Iterator[LabPage]:
    """A fresh page of 1280 × 900; parametrize indirectly with a (width, height) for another."""
    width, height = getattr(request, "param", (1280, 900))
    context = browser.new_context(viewport={"width": width, "height": height})
    url, root = lab_server
    opened = LabPage(context.new_page(), url, root)
    opened.watch()
    yield opened
    context.close()
