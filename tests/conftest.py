"""What every test shares: reference data, the kernel cache, hypothesis and the rule on skips."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
IN_CI = os.environ.get("CI", "").lower() not in {"", "0", "false"}


# compiled kernels stay in the checkout, apart from the user's; before anything imports numba
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".numba_cache"))

settings.register_profile("ci", deadline=None, derandomize=True)
settings.register_profile("dev", deadline=None)
settings.load_profile("ci" if IN_CI else "dev")


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout that holds these tests."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """Reference data beside the checkout, or where LEDGERKIT_SHARED says."""
    given = os.environ.get("LEDGERKIT_SHARED")
    path = Path(given) if given else ROOT.parent / "shared"
    if not path.is_dir():
        pytest.skip("no reference data: set LEDGERKIT_SHARED to the directory that holds facts/")
    return path


def _fail_instead_of_skipping(
    report: pytest.TestReport | pytest.CollectReport,
) -> pytest.TestReport | pytest.CollectReport:
    """A skip is a hole in CI: there every tool must be present."""
    if IN_CI and report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    return _fail_instead_of_skipping((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    return _fail_instead_of_skipping((yield))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the browser to one worker: two Jupyter servers on two cores time each other out."""
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.xdist_group("browser"))
