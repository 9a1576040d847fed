"""One study of each file of rows for all tests."""

from __future__ import annotations

import pytest

from ledgerkit._accuracy.study import study
from ledgerkit._data import data_path


@pytest.fixture(scope="session")
def known(shared):
    """Study of the known serving rows beside the checkout."""
    facts = shared / "facts"
    return study(facts / "serving_measured.csv", facts / "configs")


@pytest.fixture(scope="session")
def public():
    """Study of the small table that ships with the package."""
    return study(data_path("accuracy_public.csv"))
