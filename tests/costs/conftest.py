"""Models that many tests of the costs need."""

from __future__ import annotations

import pytest

from tests.costs import world


@pytest.fixture(scope="session")
def llama():
    return world.model(world.LLAMA_8B)


@pytest.fixture(scope="session")
def deepseek():
    return world.model(world.DEEPSEEK_V3)


@pytest.fixture(scope="session")
def sparse():
    return world.sparse()
