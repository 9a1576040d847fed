"""No word of a figure in the gallery is cut, small or under another."""

from __future__ import annotations

import pytest

from tests.browser.lab import CHROMIUM_FLAGS, chromium
from tests.charts.test_layout import MEASURE, OVERLAP, SMALLEST, _face

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_words_of_the_gallery(root, tmp_path):
    executable = chromium()
    if executable is None:
        pytest.skip("no Chromium on this machine: install your system's chromium package")
    from playwright.sync_api import sync_playwright

    faces = "".join(_face(root, *face) for face in (("Regular", 400), ("Bold", 700)))
    figures = "".join(
        f'<div id="{path.stem}">{path.read_text(encoding="utf-8")}</div>'
        for path in sorted((root / "docs" / "img" / "gallery").glob("*.svg"))
    )
    page_file = tmp_path / "gallery.html"
    page_file.write_text(f'<meta charset="utf-8"><style>{faces}</style>{figures}', "utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable, headless=True, args=CHROMIUM_FLAGS
        )
        page = browser.new_page()
        page.goto(page_file.as_uri())
        page.evaluate("() => document.fonts.ready")
        measured = page.evaluate(MEASURE)
        browser.close()
    problems = []
    for figure in measured:
        words = figure["words"]
        assert words, figure["name"]
        problems += [
            f"{figure['name']}: {word['text']!r} is {word['size']} px or cut"
            for word in words
            if word["size"] < SMALLEST or min(word["left"], figure["width"] - word["right"]) < 0
        ]
        upright = [word for word in words if not word["turned"]]
        for index, one in enumerate(upright):
            for other in upright[:index]:
                across = min(one["right"], other["right"]) - max(one["left"], other["left"])
                down = min(one["bottom"], other["bottom"]) - max(one["top"], other["top"])
                if across > OVERLAP[0] and down > OVERLAP[1]:
                    problems.append(f"{figure['name']}: {one['text']!r} on {other['text']!r}")
    assert problems == []
