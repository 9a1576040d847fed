"""The layout lint: what a browser measures of every word of every figure."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from ledgerkit.charts import save_figure
from tests.browser.lab import CHROMIUM_FLAGS, chromium
from tests.charts.figures import FIGURES, all_figures

pytestmark = [pytest.mark.browser, pytest.mark.slow]

EDGE = 4.0
SMALLEST = 12.0
OVERLAP = (0.5, 5.5)
MEASURE = """
() => [...document.querySelectorAll("svg")].map(svg => {
  const frame = svg.getBoundingClientRect();
  return {
    name: svg.parentElement.id, width: frame.width, height: frame.height,
    // Vega hides a mark of an axis that has no room, and leaves it where it is
    words: [...svg.querySelectorAll('text:not([opacity="0"])')].map(word => {
      const box = word.getBoundingClientRect();
      return {
        text: word.textContent, size: parseFloat(getComputedStyle(word).fontSize),
        turned: /rotate/.test(word.getAttribute("transform") || ""),
        left: box.left - frame.left, top: box.top - frame.top,
        right: box.right - frame.left, bottom: box.bottom - frame.top,
      };
    }),
  };
})
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory, root):
    executable = chromium()
    if executable is None:
        pytest.skip("no Chromium on this machine: install your system's chromium package")
    from playwright.sync_api import sync_playwright

    directory = tmp_path_factory.mktemp("figures")
    faces = "".join(
        _face(root, weight, number) for weight, number in (("Regular", 400), ("Bold", 700))
    )
    figures = []
    for name, language in all_figures():
        path = save_figure(FIGURES[name](language=language), directory / f"{name}.svg")
        figures.append(f'<div id="{name}/{language}">{path.read_text(encoding="utf-8")}</div>')
    page_file = directory / "figures.html"
    page_file.write_text(
        f'<meta charset="utf-8"><style>{faces}</style>{"".join(figures)}', encoding="utf-8"
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable, headless=True, args=CHROMIUM_FLAGS
        )
        page = browser.new_page()
        page.goto(page_file.as_uri())
        page.evaluate("() => document.fonts.ready")
        assert page.evaluate("() => document.fonts.check('12px \"LedgerKit Sans SC\"', '账')")
        found = {figure["name"]: figure for figure in page.evaluate(MEASURE)}
        browser.close()
    return found


def _face(root: Path, weight: str, number: int) -> str:
    font = (root / "data" / "fonts" / f"LedgerKitSansSC-{weight}.otf").read_bytes()
    source = base64.b64encode(font).decode()
    return (
        f'@font-face {{ font-family: "LedgerKit Sans SC"; font-weight: {number};'
        f' src: url("data:font/otf;base64,{source}"); }}'
    )


@pytest.mark.parametrize(("name", "language"), list(all_figures()))
def test_no_word_is_cut_small_or_under_another(measured, name, language):
    figure = measured[f"{name}/{language}"]
    words = figure["words"]
    assert words
    problems = []
    for word in words:
        if word["size"] < SMALLEST:
            problems.append(f"{word['size']} px: {word['text']}")
        room = min(
            word["left"],
            word["top"] + OVERLAP[1],  # a line box is taller than its letters
            figure["width"] - word["right"],
            figure["height"] - word["bottom"] + OVERLAP[1],
        )
        if room < EDGE:
            problems.append(f"{room:.1f} px from the edge: {word['text']}")
    upright = [word for word in words if not word["turned"]]
    for index, one in enumerate(upright):
        for other in upright[:index]:
            across = min(one["right"], other["right"]) - max(one["left"], other["left"])
            down = min(one["bottom"], other["bottom"]) - max(one["top"], other["top"])
            if across > OVERLAP[0] and down > OVERLAP[1]:
                problems.append(f"{one['text']!r} on {other['text']!r} ({across:.0f}×{down:.0f})")
    assert not problems


@pytest.mark.parametrize("name", list(FIGURES))
def test_figures_have_exactly_their_width(measured, name):
    expected = 420 if "phone" in name else 588 if "panel" in name else 700
    for language in ("zh", "en"):
        assert measured[f"{name}/{language}"]["width"] == expected


def test_a_saved_page_draws_without_network(tmp_path):
    executable = chromium()
    if executable is None:
        pytest.skip("no Chromium on this machine: install your system's chromium package")
    from playwright.sync_api import sync_playwright

    path = save_figure(FIGURES["triangle-zoom"](language="zh"), tmp_path / "figure.html")
    asked: list[str] = []
    errors: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable, headless=True, args=CHROMIUM_FLAGS
        )
        page = browser.new_context(offline=True).new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(path.as_uri())
        page.wait_for_selector("#figure svg")
        words = page.locator("#figure svg text").all_text_contents()
        label = page.locator("[role=graphics-document]").get_attribute("aria-label")
        browser.close()
    assert "decode 一步的时间，落在哪本账？" in words
    assert label
    assert label.startswith("decode 一步的时间")
    assert asked == [path.as_uri()]
    assert errors == []
