"""Notebooks for readers, opened and run in JupyterLab with the network blocked."""

from __future__ import annotations

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe

pytestmark = [pytest.mark.browser, pytest.mark.slow]

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
EXPLORER = ".ledgerkit .vega-embed svg.marks"
SERIOUS = {"serious", "critical"}
WIDE = "() => [...document.querySelectorAll('.jp-RenderedSVG img')].map(i => i.naturalWidth)"


@pytest.mark.parametrize(
    ("name", "lab", "figures"),
    [
        ("00_start_here", (1280, 900), 1),
        ("00_start_here.zh", (1920, 1000), 1),
        ("01_three_ledgers.zh", (1280, 900), 4),
    ],
    indirect=["lab"],
)
def test_figures_and_explorer_show_without_network(lab, name, figures):
    lab.run(NOTEBOOKS / f"{name}.ipynb")
    page = lab.page
    # outputs below the fold are drawn when they come into view
    page.locator(".jp-Notebook .jp-CodeCell").last.scroll_into_view_if_needed()
    page.wait_for_selector(EXPLORER, timeout=60_000)
    images = page.locator(".jp-RenderedSVG img")
    assert images.count() == figures
    assert min(page.evaluate(WIDE)) >= 588
    assert lab.outside_requests == []
    assert lab.console_errors == []
    if name == "00_start_here":
        found = Axe().run(page, context=".ledgerkit").response["violations"]
        serious = [one for one in found if one["impact"] in SERIOUS]
        assert [(one["id"], one["nodes"][0]["html"][:160]) for one in serious] == []
