"""Time the Explorer in a real browser: first paint, and from a slider's key to the new chart.

Needs Chromium and the test extra. The page reaches nothing but its own server.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from playwright.sync_api import Page, sync_playwright

from tests.browser.lab import CHROMIUM_FLAGS, LabPage, chromium, serve, write_notebook

MOVES = 60
OPENINGS = 3
SOURCE = """import ledgerkit as lk
lk.widgets.Explorer("kimi-k2.6", dp_attention=8, ep=8, tp=1, language="en")"""

# the clock runs in the page: from the key that moves the slider to the frame with the new marks
WATCH = """() => {
    window.moves = [];
    const figure = document.querySelector('.ledgerkit-figure');
    document.addEventListener('keydown', () => { window.pressed = performance.now(); }, true);
    new MutationObserver(() => requestAnimationFrame(() => {
        if (window.pressed === null) return;
        window.moves.push(performance.now() - window.pressed);
        window.pressed = null;
    })).observe(figure, { childList: true });
}"""

# from the moment the kernel reports the cell's start to the first marks
START = """() => {
    const session = window.jupyterapp.shell.currentWidget.sessionContext.session;
    window.started = null;
    window.painted = null;
    session.kernel.iopubMessage.connect((_, message) => {
        if (message.header.msg_type === 'execute_input') window.started = performance.now();
    });
    const look = () => {
        const marks = document.querySelector('.ledgerkit-figure svg.marks');
        if (marks) window.painted = performance.now();
        else requestAnimationFrame(look);
    };
    look();
}"""


def first_paint_s(lab: LabPage, directory: Path, number: int) -> float:
    lab.open(write_notebook(directory / f"explorer{number}.ipynb", SOURCE))
    page = lab.page
    page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status"
        " === 'idle'", timeout=60_000,
    )  # fmt: skip
    page.evaluate(START)
    lab.run_all()
    page.wait_for_function("() => window.painted !== null", timeout=60_000)
    taken: float = page.evaluate("() => window.painted - window.started")
    return taken / 1e3


def slider_ms(page: Page) -> list[float]:
    page.wait_for_timeout(2000)
    page.evaluate(WATCH)
    page.locator(".noUi-handle").first.focus()
    for move in range(MOVES):
        page.keyboard.press("ArrowRight" if move // 6 % 2 == 0 else "ArrowLeft")
        page.wait_for_function(f"() => window.moves.length > {move}", timeout=20_000)
        page.wait_for_timeout(40)
    found: list[float] = page.evaluate("() => window.moves")
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        directory = Path(name)
        browser = playwright.chromium.launch(executable_path=chromium(), args=CHROMIUM_FLAGS)
        with serve(directory) as (url, root):
            paints, moves = [], []
            for number in range(OPENINGS):
                context = browser.new_context(viewport={"width": 1280, "height": 1700})
                lab = LabPage(context.new_page(), url, root)
                lab.watch()
                paints.append(first_paint_s(lab, directory, number))
                if number == OPENINGS - 1:
                    moves = slider_ms(lab.page)
                context.close()
        browser.close()
    ordered = sorted(moves)
    slow = ordered[int(0.95 * len(ordered))]
    print(f"first paint   {statistics.median(paints):5.2f} s (median of {OPENINGS}), "
          f"{min(paints):.2f} to {max(paints):.2f} s")  # fmt: skip
    print(f"slider move   {statistics.median(moves):5.0f} ms (median of {MOVES}), "
          f"p95 {slow:.0f} ms, slowest {ordered[-1]:.0f} ms")  # fmt: skip


if __name__ == "__main__":
    main()
