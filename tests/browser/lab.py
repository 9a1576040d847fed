"""A JupyterLab server of its own and a page in Chromium that reaches nothing else."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import nbformat

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import ConsoleMessage, Page, Route

SERVER_START_S = 60
OPEN_MS = 60_000
RUN_MS = 180_000
"""A cold kernel compiles before the first cell answers."""

CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # names resolve to nothing: web sockets and workers, which routes miss, stay home as well
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]

RUN_ALL = """async (milliseconds) => {
    const panel = window.jupyterapp.shell.currentWidget;
    const late = new Promise((_, reject) =>
        setTimeout(() => reject(new Error('the kernel did not become ready')), milliseconds));
    await Promise.race([late, panel.context.ready]);
    await Promise.race([late, panel.sessionContext.ready]);
    // not awaited: the command returns only when the last cell has finished
    window.jupyterapp.commands.execute('notebook:run-all-cells');
}"""

FINISHED = """() => {
    const panel = window.jupyterapp.shell.currentWidget;
    const cells = panel.content.widgets.filter(
        cell => cell.model.type === 'code' && cell.model.sharedModel.getSource().trim());
    const failed = cells.some(cell => cell.model.outputs.toJSON()
        .some(output => output.output_type === 'error'));
    const idle = panel.sessionContext.session.kernel.status === 'idle';
    return failed || (idle && cells.every(cell => cell.model.executionCount !== null));
}"""

ERRORS = """() => window.jupyterapp.shell.currentWidget.content.widgets
    .filter(cell => cell.model.type === 'code')
    .flatMap(cell => cell.model.outputs.toJSON())
    .filter(output => output.output_type === 'error')
    .map(output => output.ename + ': ' + output.evalue)"""


def chromium() -> str | None:
    """Path of the system's browser; Playwright's own builds are not used."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for path in map(shutil.which, names) if path), None)


def is_loopback(url: str) -> bool:
    """Whether a request stays on this machine (or needs no network at all)."""
    parts = urlsplit(url)
    return parts.scheme in {"data", "blob", "about"} or parts.hostname == "127.0.0.1"


@dataclass
class LabPage:
    """One notebook open in JupyterLab, with what went wrong on the page."""

    page: Page
    url: str
    root: Path
    outside_requests: list[str] = field(default_factory=list)
    console_errors: list[str] = field(default_factory=list)

    def watch(self) -> None:
        """Block the network beyond loopback and note errors of the page."""
        self.page.route("**/*", self._gate)
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.console_errors.append(str(error)))

    def _gate(self, route: Route) -> None:
        if is_loopback(route.request.url):
            route.continue_()
        else:
            self.outside_requests.append(route.request.url)
            route.abort()

    def _note(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.console_errors.append(message.text)

    def open(self, notebook: Path) -> None:
        """Copy a notebook into the server's directory and show it alone, unrestored."""
        shutil.copy(notebook, self.root / notebook.name)
        self.page.goto(f"{self.url}/doc/tree/{notebook.name}?reset", timeout=OPEN_MS)
        self.page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=OPEN_MS)

    def run_all(self) -> None:
        """Run every cell to its end and raise what a cell raised."""
        self.page.evaluate(RUN_ALL, OPEN_MS)
        self.page.wait_for_function(FINISHED, timeout=RUN_MS)
        errors = self.page.evaluate(ERRORS)
        if errors:
            raise AssertionError("\n".join(errors))

    def run(self, notebook: Path) -> None:
        """Open a notebook and run it."""
        self.open(notebook)
        self.run_all()


def write_notebook(path: Path, *sources: str) -> Path:
    """Write a notebook of the given code cells; without a kernel's name Lab would ask for one."""
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(notebook, path)
    return path


@contextlib.contextmanager
def serve(directory: Path) -> Iterator[tuple[str, Path]]:
    """Run JupyterLab on a free loopback port, apart from the user's settings and workspaces."""
    root = directory / "root"
    root.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command: list[Any] = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
        *("--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0"),
        *("--IdentityProvider.token=", f"--ServerApp.root_dir={root}"),
        *("--LabApp.news_url=None", "--expose-app-in-browser"),
        "--LabApp.extension_manager=readonly",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        f"--LabApp.workspaces_dir={directory / 'workspaces'}",
        f"--LabApp.user_settings_dir={directory / 'settings'}",
    ]
    homes = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    env = os.environ | {name: str(directory / name.lower()) for name in homes}
    url = f"http://127.0.0.1:{port}"
    log = directory / "server.log"
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, env=env, stdout=output, stderr=output, start_new_session=True
        ) as server,
    ):
        try:
            _wait_for(port, server, log)
            yield url, root
        finally:
            # kernels are in the server's process group
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGTERM)
            try:
                server.wait(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, signal.SIGKILL)


def _wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + SERVER_START_S
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    message = f"JupyterLab did not start:\n{log.read_text(errors='replace')[-3000:]}"
    raise RuntimeError(message)
