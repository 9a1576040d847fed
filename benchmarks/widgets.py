"""Time the Explorer in a real browser: first paint, and from a slider's key to the new chart.

Needs Chromium and the test extra. The page reaches nothing but its own server. Besides the times
on the clock, which other work on the machine lengthens, it prints processor time: what kernel and
page spend, one after the other, and what an idle machine comes close to.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import psutil
from playwright.sync_api import CDPSession, sync_playwright

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


def kernel_s() -> float:
    """Processor seconds of the kernel that this process's server has started last."""
    kernels = [
        one
        for one in psutil.Process().children(recursive=True)
        if "ipykernel_launcher" in " ".join(one.cmdline())
    ]
    used = max(kernels, key=lambda one: one.create_time()).cpu_times()
    return used.user + used.system


def page_s(session: CDPSession) -> float:
    """Processor seconds of the page's main thread."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(one["value"] for one in metrics if one["name"] == "TaskDuration")


class Clock:
    """Processor time of kernel and page since it was made."""

    def __init__(self, lab: LabPage) -> None:
        self.session = lab.page.context.new_cdp_session(lab.page)
        self.session.send("Performance.enable", {"timeDomain": "threadTicks"})
        self.kernel, self.page = kernel_s(), page_s(self.session)

    def read(self) -> tuple[float, float]:
        return kernel_s() - self.kernel, page_s(self.session) - self.page


def first_paint(lab: LabPage, directory: Path, number: int) -> tuple[float, float, float]:
    lab.open(write_notebook(directory / f"explorer{number}.ipynb", SOURCE))
    page = lab.page
    page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status"
        " === 'idle'", timeout=60_000,
    )  # fmt: skip
    page.evaluate(START)
    clock = Clock(lab)
    lab.run_all()
    page.wait_for_function("() => window.painted !== null", timeout=60_000)
    taken: float = page.evaluate("() => window.painted - window.started")
    return (taken / 1e3, *clock.read())


def slider(lab: LabPage) -> tuple[list[float], float, float]:
    page = lab.page
    page.wait_for_timeout(2000)
    page.evaluate(WATCH)
    page.locator(".noUi-handle").first.focus()
    clock = Clock(lab)
    for move in range(MOVES):
        page.keyboard.press("ArrowRight" if move // 6 % 2 == 0 else "ArrowLeft")
        page.wait_for_function(f"() => window.moves.length > {move}", timeout=20_000)
        page.wait_for_timeout(40)
    kernel, shown = clock.read()
    found: list[float] = page.evaluate("() => window.moves")
    return found, 1e3 * kernel / MOVES, 1e3 * shown / MOVES


def main() -> None:
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        directory = Path(name)
        browser = playwright.chromium.launch(executable_path=chromium(), args=CHROMIUM_FLAGS)
        with serve(directory) as (url, root):
            paints = []
            for number in range(OPENINGS):
                context = browser.new_context(viewport={"width": 1280, "height": 1700})
                lab = LabPage(context.new_page(), url, root)
                lab.watch()
                paints.append(first_paint(lab, directory, number))
                if number == OPENINGS - 1:
                    moves, kernel_ms, page_ms = slider(lab)
                context.close()
        browser.close()
    ordered = sorted(moves)
    slow = ordered[int(0.95 * len(ordered))]
    clock, kernel, page = (statistics.median(column) for column in zip(*paints, strict=True))
    print(f"first paint   {clock:5.2f} s (median of {OPENINGS}); "
          f"processor: kernel {kernel:.2f} s, page {page:.2f} s")  # fmt: skip
    print(f"slider move   {statistics.median(moves):5.0f} ms (median of {MOVES}), p95 {slow:.0f} "
          f"ms; processor: kernel {kernel_ms:.0f} ms, page {page_ms:.0f} ms")  # fmt: skip


if __name__ == "__main__":
    main()
