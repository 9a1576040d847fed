from __future__ import annotations

from pathlib import Path

import pytest

from tests.gguf import build, real_files


@pytest.fixture(scope="session")
def smollm2() -> Path:
    return real_files.smollm2()


@pytest.fixture(scope="session")
def gemma3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return real_files.gemma3(real_files.shared_directory(tmp_path_factory))


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One small file of each architecture."""
    where = tmp_path_factory.mktemp("tiny")
    return {name: build.write(where / f"{name}.gguf", plan()) for name, plan in build.PLANS.items()}
