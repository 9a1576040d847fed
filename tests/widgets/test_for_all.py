"""What holds for every widget, with results on screen: reached by keyboard, in one language."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.sync_playwright import Axe

from ledgerkit.charts.theme import THEMES
from tests.browser.conftest import browser, lab_server  # noqa: F401  # one server for this module
from tests.browser.lab import LabPage, write_notebook
from tests.widgets.keyboard import Walk
from tests.widgets.test_config import CONFIG
from tests.widgets.words import CJK, english, words

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Locator, Page

pytestmark = pytest.mark.browser

SMALL = '["llama-3.1-8b"], ["h100-sxm-80gb"], tp=[1, 2], steps=4, prompt_tokens=(1024, 16384)'
CELLS = {
    "explorer": """explorer = lk.widgets.Explorer("kimi-k2.6", tp=1, dp_attention=8, ep=8)
explorer.account = "cache"
explorer""",
    "compare": "lk.widgets.Compare()",
    "sweep": f"lk.widgets.SweepView({SMALL})",
    "doctor": """found = lk.loadtest.recorded("smollm2-135m")
lk.widgets.LoadTestDoctor(found, lk.Model.model_validate(found.provenance["model"]))""",
    "lab": "lk.widgets.TechniqueLab(tp=1, dp_attention=8, ep=8)",
    "scheduler": "lk.widgets.SchedulerView(requests=60, rate_per_s=4.0, tp=1)",
    "config": f"lk.widgets.ConfigDrop({CONFIG!r})",
}
MARKS = ".ledgerkit-figure svg.marks"
WAIT_MS = 240_000
"""A first sweep, and a first simulation, compile their kernels."""

EXECUTE = """code => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel
    .requestExecute({ code }).done.then(() => null)"""
DRESS = """import gc
from ledgerkit.widgets._base import Panel
for one in gc.get_objects():
    if isinstance(one, Panel) and one.comm is not None:
        one.language, one.theme = {language!r}, {theme!r}"""
DRESSED = """([panel, background, chinese]) => {
    const chart = panel.querySelector('.ledgerkit-figure .vega-embed');
    const drawn = chart?.querySelector('svg.marks');
    return drawn && getComputedStyle(drawn).backgroundColor === background
        && /[\\u4e00-\\u9fff]/.test(chart.getAttribute('aria-label')) === chinese;
}"""
SERIOUS = {"serious", "critical"}


@pytest.fixture(scope="module")
def page(
    browser: Browser,  # noqa: F811
    lab_server: tuple[str, Path],  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Page]:
    """All widgets, in Chinese, on one tall page."""
    url, root = lab_server
    context = browser.new_context(viewport={"width": 1280, "height": 9000})
    opened = LabPage(context.new_page(), url, root)
    opened.watch()
    sources = ["import ledgerkit as lk\nlk.set_language('zh')", *CELLS.values()]
    opened.run(write_notebook(tmp_path_factory.mktemp("notebook") / "all.ipynb", *sources))
    for name in CELLS:
        panel(opened.page, name).locator(MARKS).wait_for(timeout=WAIT_MS)
    yield opened.page
    assert opened.console_errors == []
    assert opened.outside_requests == []
    context.close()


def panel(page: Page, name: str) -> Locator:
    """The panel of a widget."""
    cell = page.locator(".jp-CodeCell").nth(1 + list(CELLS).index(name))
    return cell.locator(".ledgerkit").first


def dress(page: Page, *, theme: str, language: str) -> None:
    """Give all widgets a theme and a language, and wait until their figures are drawn in them."""
    page.evaluate(EXECUTE, DRESS.format(theme=theme, language=language))
    ground = THEMES[theme].background
    background = f"rgb({', '.join(str(int(ground[i : i + 2], 16)) for i in (1, 3, 5))})"
    for name in CELLS:
        held = panel(page, name).element_handle()
        wanted = [held, background, language == "zh"]
        page.wait_for_function(DRESSED, arg=wanted, timeout=WAIT_MS)


@pytest.fixture
def walk(page: Page, name: str) -> Iterator[Walk]:
    """A walk through a widget."""
    started = Walk(panel(page, name))
    yield started
    started.close()


@pytest.mark.parametrize("name", CELLS)
def test_every_control_is_reached_seen_named_and_moved_by_keys(walk: Walk) -> None:
    there, sliders = [], []
    for _ in range(walk.controls):
        stop = walk.press("Tab")
        assert walk.name(), stop.words
        assert stop.outlined, stop.words
        there.append(stop)
        if stop.slider:
            sliders.append(stop)
        else:
            assert walk.unmoved(stop) == [], stop.words
            assert walk.here().stop == stop.stop, f"{stop.words} lost the focus"
    assert [stop.stop for stop in there] == [str(number) for number in range(walk.controls)]
    assert walk.press("Tab").stop == "after"
    back = [walk.press("Shift+Tab").stop for _ in there]
    assert back == [stop.stop for stop in reversed(there)]
    assert walk.press("Shift+Tab").stop == "before"
    # last: what a slider moves is drawn anew
    for stop in sliders:
        walk.go(stop)
        assert walk.unmoved(stop) == [], stop.words
        assert walk.here().stop == stop.stop, f"{stop.words} lost the focus"


@pytest.mark.parametrize("name", CELLS)
def test_a_chinese_widget_speaks_chinese(page: Page, name: str) -> None:
    dress(page, theme="article", language="zh")
    said = words(panel(page, name))
    assert any(CJK.search(text) for text in said)
    assert english(said) == {}


def test_an_english_widget_speaks_english(page: Page) -> None:
    dress(page, theme="article", language="en")
    for name in CELLS:
        said = words(panel(page, name))
        assert [text for text in said if CJK.search(text) and text != "中文"] == [], name
        # the words that are looked for in Chinese widgets are those that are there in English
        assert english(said), name


@pytest.mark.parametrize(("theme", "language"), [("article", "en"), ("dark", "zh")])
def test_an_accessibility_scan_of_every_widget_finds_nothing_serious(
    page: Page, theme: str, language: str
) -> None:
    dress(page, theme=theme, language=language)
    found = Axe().run(page, context=".ledgerkit").response["violations"]
    serious = [
        (one["id"], node["html"][:160])
        for one in found
        if one["impact"] in SERIOUS
        for node in one["nodes"]
    ]
    assert serious == [], "\n".join(map(str, serious))
