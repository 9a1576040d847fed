"""The real llama.cpp server, kept running while a test talks to it."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

# in a process of its own: the log goes to stderr, and a native crash must not end the tests
_SCRIPT = """
import json, sys
import xllamacpp as engine
options = json.loads(sys.argv[1])
params = engine.CommonParams()
for part in ("k", "v"):
    kind = "GGML_TYPE_" + options.pop("cache_type_" + part, "f16").upper()
    setattr(params, "cache_type_" + part, getattr(engine.ggml_type, kind))
for name, value in options.items():
    *path, last = name.split(".")
    place = params
    for step in path:
        place = getattr(place, step)
    setattr(place, last, value)
params.verbosity = 4   # information: buffers are printed there
params.hostnames = ["127.0.0.1"]
params.port = 0
server = engine.Server(params)
sys.stdin.read()       # serve until the test ends this process
"""
_LISTENS = "listening on "
_STARTS_WITHIN_S = 120


@dataclass(frozen=True)
class Serving:
    """A running server."""

    url: str
    log: Path

    def text(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")


@contextmanager
def serving(path: Path, where: Path, **options: object) -> Iterator[Serving]:
    """Start the server on a file, wait until it listens, and end it afterwards.

    One thread that does not spin: on a busy machine several would mostly wait for each other.
    """
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("the package xllamacpp is not installed")
    calm = {
        f"{params}.{name}": value
        for params in ("cpuparams", "cpuparams_batch")
        for name, value in (("n_threads", 1), ("poll", 0))
    }
    given = {"model.path": str(path), **calm, **options}
    log = where / "server.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", _SCRIPT, json.dumps(given)],
            stdin=subprocess.PIPE, stdout=file, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        yield Serving(_address(process, log), log)
    finally:
        process.kill()
        process.communicate()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + _STARTS_WITHIN_S
    while time.monotonic() < deadline:
        text = log.read_text(encoding="utf-8", errors="replace")
        rest = text.partition(_LISTENS)[2]
        if "\n" in rest:
            return rest.split()[0]
        if process.poll() is not None:
            raise RuntimeError(text[-2000:])
        time.sleep(0.05)
    raise TimeoutError(log.read_text(encoding="utf-8", errors="replace")[-2000:])
