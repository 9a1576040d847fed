"""Start the real llama.cpp server on a file, and read what it says about its memory."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

# in a process of its own: the log goes to stderr, and a file that llama.cpp dislikes may abort it
SCRIPT = """
import json, sys
import xllamacpp as engine
options = json.loads(sys.argv[1])
params = engine.CommonParams()
params.model.path = options.pop("path")
for part in ("k", "v"):
    name = "GGML_TYPE_" + options.pop("type_" + part).upper()
    setattr(params, "cache_type_" + part, getattr(engine.ggml_type, name))
if not options.pop("flash_attn"):
    params.flash_attn_type = engine.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
for name, value in options.items():
    setattr(params, name, value)
params.verbosity = 4   # information: buffers are printed there
params.warmup = False  # weights of tests are zeros
params.hostnames = ["127.0.0.1"]
params.port = 0
server = engine.Server(params)
sys.stdin.read()       # serve until the test ends this process
"""
_LISTENS = "listening on "

_CACHE = re.compile(r"(?:llama_kv_cache|llama_memory_recurrent): (size = .*)")
_BUFFER = re.compile(r" (?:KV|RS) buffer size = +([\d.]+) MiB")
_OUTPUT = re.compile(r"llama_context: +CPU +output buffer size = +([\d.]+) MiB")
_COMPUTE = re.compile(r"sched_reserve: +CPU compute buffer size = +([\d.]+) MiB")
_CONTEXT = re.compile(r"llama_context: (n_ctx|n_ctx_seq|n_ubatch) += (\d+)")
_PARAMETERS = re.compile(r"print_info: model params += ([\d.]+) ([KMB])")
_FILE = re.compile(r"print_info: file size += ([\d.]+) MiB")
_TIMEOUT_S = 60


@dataclass(frozen=True)
class Started:
    """What the log of one start says."""

    caches: list[str]
    """Lines of cache buffers, spaces collapsed."""
    buffers: list[str]
    """The same in MiB, as allocated."""
    output: str
    """The output buffer in MiB, the compute buffer below."""
    compute: str
    context: dict[str, int]
    parameters: str
    file_mib: str
    address: str
    log: str


class Refused(Exception):  # noqa: N818
    """The server did not start; the text is the end of its log."""


def start(path: Path, **options: object) -> Started:
    """Start the server on a loopback port, wait until it listens, and end it."""
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("the package xllamacpp is not installed")
    given = {"path": str(path), "type_k": "f16", "type_v": "f16", "flash_attn": True, **options}
    log = _log_until_it_listens(json.dumps(given))
    if _LISTENS not in log:
        raise Refused(log[-2000:])
    size = _PARAMETERS.search(log)
    return Started(
        caches=[re.sub(r" +", " ", line).replace("( ", "(") for line in _CACHE.findall(log)],
        buffers=_BUFFER.findall(log),
        output=_OUTPUT.findall(log)[-1],
        compute=_COMPUTE.findall(log)[-1],
        context={key: int(value) for key, value in _CONTEXT.findall(log)},
        parameters=" ".join(size.groups()) if size else "",
        file_mib=_FILE.findall(log)[-1] if _FILE.search(log) else "",
        address=log.partition(_LISTENS)[2].split()[0],
        log=log,
    )


def _log_until_it_listens(options: str) -> str:
    """Return the log up to the line that says the server is ready, or up to its death.

    The server is then ended by force: shutting it down at this moment can wait for ever.
    """
    with tempfile.TemporaryDirectory() as where:
        path = Path(where) / "log"
        with path.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-c", SCRIPT, options],
                stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT,
                env={**os.environ, "GGML_NO_BACKTRACE": "1"},
            )  # fmt: skip
        deadline = time.monotonic() + _TIMEOUT_S
        try:
            while True:
                ended = process.poll() is not None
                text = path.read_text(encoding="utf-8", errors="replace")
                ready = _LISTENS in text and "\n" in text.partition(_LISTENS)[2]
                if ended or ready:
                    return text
                if time.monotonic() > deadline:
                    raise TimeoutError(text[-2000:])
                time.sleep(0.02)
        finally:
            process.kill()
            process.communicate()
