"""A small explorer page and a browser that shows it without any network."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from ledgerkit._commands.explore.page import write_page
from ledgerkit._commands.explore.states import Selection
from tests.browser.lab import CHROMIUM_FLAGS, chromium

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

SMALL = Selection(
    models=("deepseek-v3", "gemma-4-26b-a4b", "kimi-k2.6", "llama-3.1-70b"),
    hardware=("h100-sxm-80gb", "h200-sxm-141gb"),
)


@dataclass
class Shown:
    """The page in a browser, with what it asked for and what went wrong."""

    page: Page
    path: Path
    requests: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def open(self, **state: str) -> None:
        """Open a view by its link."""
        # from another page: a change of the link alone would not load it anew
        self.page.goto("about:blank")
        self.page.goto(f"{self.path.as_uri()}#{urlencode(state)}")
        self.page.wait_for_selector("html[data-drawn]")

    def choose(self, name: str, value: str) -> None:
        """Choose an entry of a list and wait for the redraw."""
        before = self.page.evaluate("() => document.documentElement.dataset.drawn")
        self.page.select_option(f"select[name={name}]", value)
        self.page.wait_for_function(
            "before => document.documentElement.dataset.drawn !== before", arg=before
        )

    def row(self, key: str, column: int = 0) -> str:
        """Read one number of the table."""
        cells = self.page.locator(f'tr[data-key="{key}"] td')
        return cells.nth(column).inner_text()


@pytest.fixture(scope="session")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_page(tmp_path_factory.mktemp("page") / "explore.html", selection=SMALL)


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


@pytest.fixture
def shown(browser: Browser, page_file: Path, request: pytest.FixtureRequest) -> Iterator[Shown]:
    """The page at 1280 × 900; parametrize indirectly with a (width, height) for another."""
    width, height = getattr(request, "param", (1280, 900))
    context = browser.new_context(offline=True, viewport={"width": width, "height": height})
    made = Shown(context.new_page(), page_file)
    made.page.on("request", lambda asked: made.requests.append(asked.url))
    made.page.on("pageerror", lambda error: made.problems.append(str(error)))
    made.page.on(
        "console",
        lambda line: made.problems.append(line.text) if line.type in {"error", "warning"} else None,
    )
    yield made
    context.close()
