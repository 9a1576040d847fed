"""The Explorer in a real browser: controls move marks and numbers, in both languages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.lab import LabPage, write_notebook

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

SOURCE = """import ledgerkit as lk
explorer = lk.widgets.Explorer(
    model="kimi-k2.6", hardware="h200-sxm-141gb", tp=1, dp_attention=8, ep=8, language="en"
)
explorer"""
MARKS = ".vega-embed svg.marks"
CHANGE_MS = 60_000


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    return write_notebook(tmp_path / "explorer.ipynb", SOURCE)


def numbers(page: Page) -> dict[str, str]:
    """The key numbers as the page shows them."""
    rows = page.locator("table.ledgerkit-numbers tr")
    return {
        row.get_attribute("data-key") or "": (row.locator("b").text_content() or "")
        for row in rows.all()
    }


def drawing(page: Page) -> str:
    """The marks of the chart; two different pictures differ here."""
    found: str = page.locator(MARKS).first.inner_html()
    return found


def changed(page: Page, before: str) -> None:
    page.wait_for_function(
        "([selector, before]) => document.querySelector(selector)?.innerHTML !== before",
        arg=[MARKS, before], timeout=CHANGE_MS,
    )  # fmt: skip


def test_slider_moves_marks_and_numbers(lab: LabPage, notebook: Path) -> None:
    lab.run(notebook)
    page = lab.page
    page.wait_for_selector(MARKS, timeout=CHANGE_MS)
    numbers_before, drawing_before = numbers(page), drawing(page)
    assert numbers_before["tpot"].endswith("ms")

    # context is the first slider; Kimi's cache grows with it, so time and memory must grow
    handle = page.locator(".noUi-handle").first
    handle.focus()
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    changed(page, drawing_before)
    page.wait_for_function(
        "(before) => document.querySelector('[data-key=tpot] b').textContent !== before",
        arg=numbers_before["tpot"], timeout=CHANGE_MS,
    )  # fmt: skip
    after = numbers(page)
    assert float(after["tpot"].split()[0]) > float(numbers_before["tpot"].split()[0])
    assert float(after["memory"].split()[0]) > float(numbers_before["memory"].split()[0])
    assert lab.outside_requests == []
    assert lab.console_errors == []


def test_language_switch_keeps_the_state(lab: LabPage, notebook: Path) -> None:
    lab.run(notebook)
    page = lab.page
    page.wait_for_selector(MARKS, timeout=CHANGE_MS)
    numbers_before, drawing_before = numbers(page), drawing(page)
    page.locator("button", has_text="中文").first.click()
    changed(page, drawing_before)
    page.wait_for_selector("text=三本账 Explorer", timeout=CHANGE_MS)
    assert "系统调度" in drawing(page)
    assert numbers(page)["tpot"] == numbers_before["tpot"]
    assert lab.console_errors == []


def test_a_bad_layout_says_so_and_keeps_the_figure(lab: LabPage, notebook: Path) -> None:
    lab.run(notebook)
    page = lab.page
    page.wait_for_selector(MARKS, timeout=CHANGE_MS)
    before = drawing(page)
    # 32 groups do not divide the 8 devices of this layout
    page.get_by_label("EP", exact=True).select_option(label="32")
    alert = page.wait_for_selector(".ledgerkit-error", timeout=CHANGE_MS)
    assert alert is not None
    assert "ep must divide" in alert.inner_text()
    assert drawing(page) == before
