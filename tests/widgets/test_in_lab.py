"""Every widget in JupyterLab in a headless Chromium: one notebook, one cell for each widget."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from ledgerkit.loadtest import Results
from tests.browser.conftest import browser, lab_server  # noqa: F401  # one server for this module
from tests.browser.lab import LabPage, write_notebook
from tests.widgets.test_config import CONFIG
from tests.widgets.test_doctor import ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Locator, Page

pytestmark = pytest.mark.browser

CELLS = {
    "explorer": 'lk.widgets.Explorer("kimi-k2.6", tp=1, dp_attention=8, ep=8, language="en")',
    "compare": 'lk.widgets.Compare(language="en")',
    "sweep": """class Endless(lk.widgets.SweepView):
    endless = False
    def _collect(self, made):
        from ledgerkit._sweep.run import Progress
        import time
        while self.endless and made.options.progress(Progress(1, 1000, 1.0)) is not False:
            time.sleep(0.01)
        return super()._collect(made)

sweep = Endless(["llama-3.1-8b"], ["h100-sxm-80gb"], tp=[1, 2], steps=4, language="en",
                prompt_tokens=(1024, 16384))
sweep""",
    "doctor": 'lk.widgets.LoadTestDoctor(language="en")',
    "lab": 'lk.widgets.TechniqueLab(tp=1, dp_attention=8, ep=8, language="en")',
    "scheduler": 'lk.widgets.SchedulerView(requests=60, rate_per_s=4.0, tp=1, language="en")',
    "config": 'lk.widgets.ConfigDrop(language="en")',
}
MARKS = ".ledgerkit-figure svg.marks"
WAIT_MS = 240_000
"""A first sweep, and a first simulation, compile their kernels."""
EXECUTE = """code => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel
    .requestExecute({ code }).done.then(() => null)"""


@pytest.fixture(scope="module")
def notebook(
    browser: Browser,  # noqa: F811
    lab_server: tuple[str, Path],  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[LabPage]:
    """All widgets on one tall page, so that JupyterLab renders every cell."""
    url, root = lab_server
    context = browser.new_context(
        viewport={"width": 1280, "height": 9000}, permissions=["clipboard-read", "clipboard-write"]
    )
    opened = LabPage(context.new_page(), url, root)
    opened.watch()
    sources = ["import ledgerkit as lk", *CELLS.values()]
    opened.run(write_notebook(tmp_path_factory.mktemp("notebook") / "widgets.ipynb", *sources))
    yield opened
    context.close()


@pytest.fixture
def page(notebook: LabPage) -> Iterator[Page]:
    """The page; afterwards nothing may have gone wrong in it, nor left this machine."""
    yield notebook.page
    errors, outside = notebook.console_errors[:], notebook.outside_requests[:]
    notebook.console_errors.clear()
    assert errors == []
    assert outside == []


def panel(page: Page, name: str) -> Locator:
    """The panel of a widget."""
    cell = page.locator(".jp-CodeCell").nth(1 + list(CELLS).index(name))
    return cell.locator(".ledgerkit").first


def drawn(widget: Locator) -> str:
    """The marks that are shown; two different pictures differ here."""
    widget.locator(MARKS).wait_for(timeout=WAIT_MS)
    return widget.locator(MARKS).inner_html()


def redrawn(widget: Locator, before: str) -> str:
    """Wait for another picture."""
    for _ in range(WAIT_MS // 50):
        if drawn(widget) != before:
            return drawn(widget)
        widget.page.wait_for_timeout(50)
    message = "the picture did not change"
    raise AssertionError(message)


def upload(widget: Locator, path: Path) -> None:
    """Choose a file in the upload button's dialog."""
    with widget.page.expect_file_chooser(timeout=WAIT_MS) as waiting:
        widget.get_by_role("button", name="Upload").click()
    waiting.value.set_files(path)


def test_explorer_follows_keys_and_keeps_focus_and_names(page: Page) -> None:
    widget = panel(page, "explorer")
    before = drawn(widget)
    handle = widget.get_by_role("slider", name="context")
    handle.focus()
    page.keyboard.press("ArrowRight")
    redrawn(widget, before)
    assert handle.evaluate("element => element === document.activeElement")
    assert handle.evaluate("element => getComputedStyle(element).outlineStyle") == "solid"
    assert handle.get_attribute("aria-valuetext") == "11K"


def test_explorer_copies_its_python(page: Page) -> None:
    widget = panel(page, "explorer")
    drawn(widget)
    widget.get_by_role("button", name="Copy as Python").click()
    widget.get_by_role("status").filter(has_text="Copied").wait_for(timeout=WAIT_MS)
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert copied.startswith("import ledgerkit as lk\n\nbooks = lk.ledger(")
    shown = widget.locator("pre").filter(has_text="import ledgerkit")
    assert copied.strip() == (shown.text_content() or "").strip()


@pytest.mark.parametrize(("kind", "start"), [("SVG", b"<svg"), ("PNG", b"\x89PNG")])
def test_explorer_saves_its_figure(page: Page, kind: str, start: bytes) -> None:
    widget = panel(page, "explorer")
    drawn(widget)
    widget.get_by_label("format of the figure").select_option(label=kind)
    with page.expect_download(timeout=WAIT_MS) as waiting:
        widget.get_by_role("button", name="Save figure").click()
    assert waiting.value.suggested_filename == f"ledgerkit-explorer.{kind.lower()}"
    assert waiting.value.path().read_bytes().startswith(start)


def test_explorer_turns_dark_and_chinese_in_place(page: Page) -> None:
    widget = panel(page, "explorer")
    before = drawn(widget)
    light = widget.evaluate("element => getComputedStyle(element).backgroundColor")
    widget.get_by_role("button", name="dark").click()
    before = redrawn(widget, before)
    assert widget.evaluate("element => getComputedStyle(element).backgroundColor") != light
    widget.get_by_role("button", name="中文").click()
    assert "系统调度" in redrawn(widget, before)
    assert widget.get_by_role("button", name="中文").get_attribute("aria-pressed") == "true"
    widget.get_by_role("slider", name="并发").wait_for(timeout=WAIT_MS)


def test_compare_pins_and_switches_figures(page: Page) -> None:
    from playwright.sync_api import expect

    widget = panel(page, "compare")
    before = drawn(widget)
    widget.get_by_role("button", name="pin for reference").click()
    before = redrawn(widget, before)
    assert "DeepSeek-V3 (pinned)" in before
    widget.get_by_label("deployments").select_option(label="Kimi-K2.6")
    expect(widget.get_by_label("model", exact=True)).to_have_value("Kimi-K2.6", timeout=WAIT_MS)
    widget.get_by_label("figure", exact=True).select_option(label="bars")
    assert "bytes read" in redrawn(widget, before)


def test_a_box_over_the_sweep_lists_its_points(page: Page) -> None:
    widget = panel(page, "sweep")
    drawn(widget)
    assert "points in" in (widget.locator(".ledgerkit-status").text_content() or "")
    plot = widget.locator(MARKS).locator("g.background, path.background").first
    box = plot.bounding_box()
    assert box is not None
    left, top = box["x"] + 8, box["y"] + 40
    page.mouse.move(left, top)
    page.mouse.down()
    page.mouse.move(left + box["width"] / 2, top + box["height"] / 2, steps=4)
    page.mouse.up()
    widget.get_by_text("points selected").wait_for(timeout=WAIT_MS)
    assert 0 < widget.locator(".ledgerkit-detail table tbody tr").count() <= 12


def test_a_sweep_shows_progress_and_cancels(page: Page) -> None:
    widget = panel(page, "sweep")
    before = drawn(widget)
    page.evaluate(EXECUTE, "sweep.endless = True")
    widget.get_by_role("button", name="Run").click()
    status = widget.locator(".ledgerkit-status")
    status.filter(has_text="points/s").wait_for(timeout=WAIT_MS)
    widget.get_by_role("button", name="Cancel").click()
    status.filter(has_text="cancelled").wait_for(timeout=WAIT_MS)
    assert drawn(widget) == before
    assert widget.get_by_role("button", name="Run").is_enabled()


def test_doctor_reads_an_upload_and_gives_a_verdict(page: Page, tmp_path: Path) -> None:
    widget = panel(page, "doctor")
    assert "Upload or pick" in (widget.text_content() or "")
    path = tmp_path / "results.json"
    path.write_text('{"a": 1}')
    upload(widget, path)
    widget.get_by_role("alert").filter(has_text="unknown result format").wait_for(timeout=WAIT_MS)
    path = Results.from_cells(ROWS).save(tmp_path / "results.parquet")
    upload(widget, path)
    before = drawn(widget)
    assert "95% interval" in (widget.locator(".ledgerkit-verdict").text_content() or "")
    # the picture before the choice: afterwards it may be the new one already
    widget.get_by_label("figure", exact=True).select_option(label="sensitivity")
    redrawn(widget, before)


def test_techniques_are_toggled_and_refused_with_a_reason(page: Page) -> None:
    widget = panel(page, "lab")
    before = drawn(widget)
    added = widget.get_by_label("put in (several)")
    added.select_option(label=["Attn · KV Cache Quantization", "Sys · MTP"])
    before = redrawn(widget, before)
    assert "MTP" in before
    assert "KV Cache Quantization + MTP" in before
    widget.get_by_label("figure", exact=True).select_option(label="arrow in the triangle")
    before = redrawn(widget, before)
    added.select_option(label=["Attn · Sliding Window Attention"])
    widget.get_by_role("alert").filter(has_text="no softmax attention").wait_for(timeout=WAIT_MS)
    assert drawn(widget) == before


def test_scheduler_runs_again_without_a_mechanism(page: Page) -> None:
    widget = panel(page, "scheduler")
    before = drawn(widget)
    status = widget.locator(".ledgerkit-status")
    status.filter(has_text="done:").wait_for(timeout=WAIT_MS)
    widget.get_by_label("batching").select_option(label="static")
    redrawn(widget, before)
    code = widget.locator(".ledgerkit-detail pre").last
    assert "batching='static'" in (code.text_content() or "")
    before = drawn(widget)
    widget.get_by_label("figure", exact=True).select_option(label="three ledgers")
    redrawn(widget, before)


def test_config_is_pasted_and_read_and_a_bad_one_is_explained(page: Page) -> None:
    widget = panel(page, "config")
    area = widget.locator("textarea")
    area.fill(json.dumps({**CONFIG, "num_flux_heads": 3}))
    area.blur()
    alert = widget.get_by_role("alert")
    alert.wait_for(timeout=WAIT_MS)
    assert "num_flux_heads" in (alert.text_content() or "")
    area.fill(json.dumps(CONFIG))
    area.blur()
    drawn(widget)
    assert widget.locator("[data-key=context] b").text_content() == "128K"
    alert.wait_for(state="detached", timeout=WAIT_MS)
