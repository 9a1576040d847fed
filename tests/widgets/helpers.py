"""What tests of widgets share: run the copied code, count what stays open, wait for a thread."""

from __future__ import annotations

import ast
import gc
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import ipywidgets

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledgerkit.widgets._base import Panel

WAIT_S = 120
"""A first sweep compiles its kernels."""


def run_code(code: str) -> Any:
    """Run code as a cell does: the value of its last expression."""
    tree = ast.parse(code)
    last = tree.body.pop()
    assert isinstance(last, ast.Expr)
    names: dict[str, Any] = {}
    exec(compile(tree, "cell", "exec"), names)  # noqa: S102  # the code under test
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # noqa: S307


def assert_code_recreates(panel: Panel) -> None:
    """The copied Python draws exactly the figure that is shown."""
    assert panel.error == ""
    shown = panel.chart.to_dict()
    assert shown
    assert run_code(panel.code).to_dict() == shown


def open_widgets() -> int:
    """Widgets that ipywidgets holds."""
    gc.collect()
    return len(ipywidgets.widgets.widget._instances)


def uploaded(name: str, content: str) -> dict[str, Any]:
    """A file as the upload button hands it over."""
    data = content.encode()
    return {
        "name": name,
        "type": "text/plain",
        "size": len(data),
        "content": memoryview(data),
        "last_modified": datetime.fromtimestamp(0, tz=UTC),
    }


def until(condition: Callable[[], object]) -> None:
    """Wait for what a thread does."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "this never came about"
        time.sleep(0.01)
