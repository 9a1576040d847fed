"""The steps of binder/, followed in a new environment; then what a visitor does, offline."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.browser.lab import CHROMIUM_FLAGS, LabPage, chromium

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.browser, pytest.mark.slow]

MOST_BYTES = 700e6
EXPLORER = ".ledgerkit .vega-embed svg.marks"
LISTED = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
WAIT_MS = 90_000
ASKED = (
    "?model=qwen3-8b&hardware=l4-24gb&kv_dtype=fp8&prompt_tokens=4096&output_tokens=256"
    "&concurrency=4&language=zh&theme=dark"
)
SWEEP = """
import ledgerkit as lk
points = lk.sweep(model="llama-3.1-8b", hardware="h100-sxm-80gb", output_tokens=256,
                  prompt_tokens=range(1024, 1024 + 2000), concurrency=range(1, 501))
print(points.points, points.best("tokens_per_s").height)
"""
RUN_ONE = """async (code) => {
    const session = window.jupyterapp.shell.currentWidget.sessionContext.session;
    const reply = session.kernel.requestExecute({ code });
    let shown = '';
    reply.onIOPub = message => { shown += message.content.text || message.content.evalue || ''; };
    await reply.done;
    return shown;
}"""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory, root: Path) -> tuple[Path, Path, dict]:
    """A copy of the checkout, an environment with what binder/ names, and its variables."""
    if not (root / ".git").exists():
        pytest.skip("not a git checkout: its files cannot be listed")
    home = tmp_path_factory.mktemp("home")
    listed = subprocess.run(LISTED, cwd=root, capture_output=True, check=True)
    archive = subprocess.run(
        ["tar", "--create", "--null", "--ignore-failed-read", "--files-from=-"],
        cwd=root, input=listed.stdout, capture_output=True, check=True,
    )  # fmt: skip
    subprocess.run(["tar", "--extract"], cwd=home, input=archive.stdout, check=True)
    environment = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    path = f"{environment / 'bin'}:{os.environ['PATH']}"
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("JUPYTER", "NUMBA", "PYTEST", "PYTHON"))
    }
    variables |= {"HOME": str(home), "PATH": path, "XDG_CACHE_HOME": str(home / ".cache")}
    requirements = home / "binder" / "requirements.txt"
    pip = [environment / "bin" / "python", "-m", "pip", "install", "--quiet",
           "--disable-pip-version-check", "--no-compile", "-r", requirements]  # fmt: skip
    subprocess.run(pip, check=True, env=os.environ | {"PATH": path})
    # the index that the environment of the tests was given serves the build as well
    subprocess.run([home / "binder" / "postBuild"], cwd=home, check=True,
                   env=variables | {"HOME": os.environ.get("HOME", str(home))})  # fmt: skip
    return home, environment, variables


# parts of the panel whose words go beyond what is shown
CUT = """() => [...document.querySelectorAll('.ledgerkit, .ledgerkit-detail, .ledgerkit-stage')]
    .filter(part => part.scrollWidth > part.clientWidth + 1).map(part => part.className)"""


@pytest.fixture(scope="module")
def server(image) -> Iterator[tuple[str, int, Path]]:
    """JupyterLab of the image on a loopback port: its address, its process, its root."""
    home, environment, variables = image
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        environment / "bin" / "jupyter-lab", "--no-browser", "--allow-root", "--ip=127.0.0.1",
        f"--port={port}", "--IdentityProvider.token=", "--expose-app-in-browser",
        f"--ServerApp.root_dir={home}",
    ]  # fmt: skip
    log = home / "server.log"
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, cwd=home, env=variables, stdout=output, stderr=output, start_new_session=True
        ) as process,
    ):
        try:
            deadline = time.monotonic() + 120
            while process.poll() is None and time.monotonic() < deadline:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.3)
            else:
                pytest.fail(log.read_text(errors="replace")[-2000:])
            yield f"http://127.0.0.1:{port}", process.pid, home
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait(timeout=20)


@pytest.fixture
def visitor(server) -> Iterator[LabPage]:
    executable = chromium()
    if executable is None:
        pytest.skip("no Chromium on this machine: install your system's chromium package")
    from playwright.sync_api import sync_playwright

    url, _, home = server
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable, headless=True, args=CHROMIUM_FLAGS
        )
        page = LabPage(browser.new_context(viewport={"width": 1280, "height": 900}).new_page(),
                       url, home)  # fmt: skip
        page.watch()
        yield page
        browser.close()


def memory_bytes(group: int) -> float:
    """Proportional share of memory of all processes of a group: server and kernels."""
    total = 0
    for status in Path("/proc").glob("[0-9]*/smaps_rollup"):
        with contextlib.suppress(OSError):
            if os.getpgid(int(status.parent.name)) == group or _started_by(status.parent, group):
                found = re.search(r"^Pss:\s+(\d+) kB", status.read_text(), re.MULTILINE)
                total += int(found[1]) * 1024 if found else 0
    return total


def _started_by(process: Path, ancestor: int) -> bool:
    while process.name not in {"0", "1"}:
        if int(process.name) == ancestor:
            return True
        parent = re.search(r"^PPid:\s+(\d+)", (process / "status").read_text(), re.MULTILINE)
        process = process.parent / (parent[1] if parent else "0")
    return False


def test_a_visitor_of_lab_sees_figures_and_moves_the_explorer(visitor, server):
    _, group, _ = server
    page = visitor.page
    page.goto(f"{visitor.url}/doc/tree/notebooks/00_start_here.ipynb?reset", timeout=90_000)
    page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=90_000)
    visitor.run_all()
    page.wait_for_selector(EXPLORER, timeout=60_000)
    assert page.locator(".jp-RenderedSVG img").count() >= 1
    shown = page.evaluate(RUN_ONE, SWEEP)
    assert shown.split() == ["1000000", "1"]
    assert memory_bytes(group) < MOST_BYTES
    assert visitor.outside_requests == []
    assert visitor.console_errors == []
    page.evaluate("() => window.jupyterapp.serviceManager.sessions.shutdownAll()")


def test_a_visitor_without_code_sees_the_explorer(visitor, server):
    _, group, _ = server
    page = visitor.page
    page.goto(f"{visitor.url}/voila/render/binder/explorer.ipynb", timeout=90_000)
    page.wait_for_selector(EXPLORER, timeout=90_000)
    before = page.locator(EXPLORER).first.inner_html()
    handle = page.locator(".noUi-handle").first
    handle.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "([selector, before]) => document.querySelector(selector)?.innerHTML !== before",
        arg=[EXPLORER, before], timeout=60_000,
    )  # fmt: skip
    assert page.locator(".jp-CodeCell .jp-InputArea:visible").count() == 0
    assert visitor.outside_requests == []
    for width in (1280, 1920):
        page.set_viewport_size({"width": width, "height": 1000})
        assert page.evaluate(CUT) == []
    assert memory_bytes(group) < MOST_BYTES


def test_a_link_opens_the_explorer_with_its_state_and_is_handed_on(visitor):
    page, address = visitor.page, f"{visitor.url}/voila/render/binder/explorer.ipynb"
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{address}{ASKED}&tp=one", timeout=WAIT_MS)
    page.locator(EXPLORER).wait_for(timeout=WAIT_MS)
    alert = page.get_by_role("alert")
    assert "tp=one" in (alert.text_content() or "")
    assert page.get_by_label("模型", exact=True).input_value() == "Qwen3 8B"
    assert page.get_by_label("KV cache", exact=True).input_value() == "fp8"
    ground = page.locator(".ledgerkit").first.evaluate("e => getComputedStyle(e).backgroundColor")
    assert ground == "rgb(20, 24, 31)"
    before = page.locator(EXPLORER).inner_html()

    # the note goes with the next change, and the link follows it
    page.get_by_role("slider", name="并发").focus()
    page.keyboard.press("ArrowRight")
    alert.wait_for(state="detached", timeout=WAIT_MS)
    page.get_by_role("button", name="复制链接").click()
    page.get_by_role("status").filter(has_text="已复制").wait_for(timeout=WAIT_MS)
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert copied.startswith(address)
    asked = parse_qs(urlsplit(copied).query)
    wanted = {**parse_qs(ASKED.removeprefix("?")), "concurrency": ["8"]}
    assert {name: asked[name] for name in wanted} == wanted

    page.goto(copied, timeout=WAIT_MS)
    page.locator(EXPLORER).wait_for(timeout=WAIT_MS)
    assert page.get_by_role("slider", name="并发").get_attribute("aria-valuetext") == "8"
    assert page.get_by_role("alert").count() == 0
    assert page.locator(EXPLORER).inner_html() != before
