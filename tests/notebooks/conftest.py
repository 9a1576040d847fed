"""The JupyterLab of the browser tests, for notebooks."""

from tests.browser.conftest import browser, lab, lab_server

__all__ = ["browser", "lab", "lab_server"]
