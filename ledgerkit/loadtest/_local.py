"""A real llama.cpp server on this machine, for a load test that needs no other one."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ledgerkit.errors import LoadTestError

__all__ = ["LocalServer", "serve_local"]

# in a process of its own: its log goes to stderr, and a native crash must not end the caller
_SCRIPT = """
import json, sys
import xllamacpp as engine
given = json.loads(sys.argv[1])
params = engine.CommonParams()
params.model.path = given["path"]
params.n_ctx = given["slots"] * given["context_tokens"]
params.n_parallel = given["slots"]
params.n_batch = params.n_ubatch = given["ubatch"]
for cpu in (params.cpuparams, params.cpuparams_batch):
    cpu.n_threads = given["threads"]
    cpu.poll = 0       # threads that spin slow down a machine that does other things too
params.verbosity = 4   # information: buffers are printed there
params.hostnames = ["127.0.0.1"]
params.port = 0
params.endpoint_metrics = True
server = engine.Server(params)
sys.stdin.read()       # serve until the caller ends this process
"""
_LISTENS = "listening on "


@dataclass(frozen=True)
class LocalServer:
    """A running llama.cpp server.

    Attributes
    ----------
    url : str
        Address for ``run``.
    log : Path
        File that it writes its messages to; gone when the server is.
    """

    url: str
    log: Path

    def text(self) -> str:
        """What it has logged so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")


@contextmanager
def serve_local(
    path: str | Path,
    *,
    slots: int = 4,
    context_tokens: int = 2304,
    ubatch: int = 512,
    threads: int = 1,
    start_s: float = 120.0,
) -> Iterator[LocalServer]:
    """Serve a GGUF file with llama.cpp on the CPU of this machine while the block runs.

    Parameters
    ----------
    path : path
        GGUF file.
    slots : int
        Sequences at once.
    context_tokens : int
        Tokens of one sequence, prompt and answer.
    ubatch : int
        Tokens of one prefill step.
    threads : int
        Threads of the engine.
    start_s : float
        How long it may take to start.

    Yields
    ------
    LocalServer

    Raises
    ------
    LoadTestError
        The package ``xllamacpp`` or the file is missing, or the server did not start.

    Examples
    --------
    >>> with serve_local("absent.gguf") as server:
    ...     pass
    Traceback (most recent call last):
    ...
    ledgerkit.errors.LoadTestError: there is no such GGUF file (given: 'absent.gguf'; allowed: ...
    """
    numbers = {"slots": slots, "context_tokens": context_tokens, "ubatch": ubatch,
               "threads": threads}  # fmt: skip
    for name, value in numbers.items():
        if type(value) is not int or value < 1:
            raise LoadTestError(
                f"{name} must be a whole number, 1 or more", given=value, allowed="1 or more"
            )
    if not Path(path).is_file():
        raise LoadTestError("there is no such GGUF file", given=str(path),
                            allowed="the path of a .gguf file", fix="correct the path")  # fmt: skip
    if importlib.util.find_spec("xllamacpp") is None:
        raise LoadTestError(
            "serving a file needs xllamacpp",
            allowed="an environment with the extra real",
            fix='pip install "ledgerkit-llm[real]"',
        )
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "server.log"
        with log.open("wb") as file:
            process = subprocess.Popen(  # noqa: S603  this interpreter, our own script
                [sys.executable, "-c", _SCRIPT, json.dumps({"path": str(path), **numbers})],
                stdin=subprocess.PIPE, stdout=file, stderr=subprocess.STDOUT,
            )  # fmt: skip
        try:
            yield LocalServer(_address(process, log, start_s), log)
        finally:
            process.kill()
            process.communicate()


def _address(process: subprocess.Popen[bytes], log: Path, start_s: float) -> str:
    """Wait for the address in the log."""
    deadline = time.monotonic() + start_s
    while True:
        text = log.read_text(encoding="utf-8", errors="replace")
        line, end, _ = text.partition(_LISTENS)[2].partition("\n")
        if end:
            return line.split()[0]
        if process.poll() is not None or time.monotonic() > deadline:
            raise LoadTestError(
                "the server did not start",
                given=text[-500:],
                allowed="a GGUF file that llama.cpp loads",
                fix="is it a GGUF file, and is there memory for it?",
            )
        time.sleep(0.05)
