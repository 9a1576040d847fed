"""SweepView without a browser: the run in its thread, cancel, the box, the code."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from ledgerkit._sweep.run import Progress
from ledgerkit.errors import LedgerError, SweepCancelledError, SweepError
from ledgerkit.widgets import SweepView
from tests.widgets.helpers import assert_code_recreates, open_widgets, until

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALL: dict[str, Any] = {
    "models": ["llama-3.1-8b", "qwen3-8b"], "devices": ["h100-sxm-80gb"], "tp": [1, 2],
    "steps": 4, "prompt_tokens": (1024, 16384), "language": "en",
}  # fmt: skip


@pytest.fixture
def view() -> Iterator[SweepView]:
    made = SweepView(**SMALL)
    until(lambda: made.code or made.error)
    yield made
    made.close()


class Endless(SweepView):
    """A sweep that only ends when it is told to."""

    ended = False

    def _collect(self, made: Any) -> pl.DataFrame:
        tell = made.options.progress
        while tell(Progress(1, 1000, 1.0)) is not False:
            time.sleep(0.01)
        Endless.ended = True
        raise SweepCancelledError("cancelled")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"language": "zh", "theme": "dark", "color": "tp"},
        {"x": "free_bytes", "y": "resident_bytes_device"},
    ],
)
def test_the_copied_code_draws_the_same_figure(view, changes):
    for name, value in changes.items():
        setattr(view, name, value)
    until(lambda: view.state == "done" and (not changes.get("x") or changes["x"] in view.code))
    assert_code_recreates(view)


def test_a_column_that_was_not_computed_is_computed(view):
    assert "usd_per_million_output_tokens" not in view.frame.columns
    view.y = "usd_per_million_output_tokens"
    until(lambda: view.state == "done" and "usd_per_million" in view.code)
    assert "usd_per_million_output_tokens" in view.frame.columns


def test_the_box_picks_its_points(view):
    assert view.selection.height == view.frame.height
    middle = view.frame[view.x].median()
    view._figure.selected = {view.x: [0.0, middle], view.y: [1e9, 0.0]}
    assert view.selection.height == view.frame.filter(pl.col(view.x) <= middle).height
    assert "points selected" in view._picked.value
    assert "token/s" in view._picked.value
    assert view._figure.spec["layer"][0]["params"][0]["name"] == "brush"
    assert "params" not in view.chart.to_dict()["layer"][0]


def test_cancel_is_answered_within_a_second_and_ends_the_thread():
    Endless.ended = False
    made = Endless(**SMALL)
    until(lambda: made._bar.value > 0)
    assert made.state == "running"
    assert made._start.disabled
    started = time.monotonic()
    made._stop.click()
    assert made.state == "cancelled"
    assert time.monotonic() - started < 1
    until(lambda: Endless.ended)
    assert time.monotonic() - started < 1
    assert made._stop.disabled
    assert made.error == ""
    made.close()


def test_closing_ends_the_run_and_leaves_nothing_behind(view):
    before = open_widgets()
    Endless.ended = False
    made = Endless(**SMALL)
    made.language = "zh"
    until(lambda: made._bar.value > 0)
    made.close()
    until(lambda: Endless.ended)
    until(lambda: not any(one.name == "ledgerkit-run" for one in threading.enumerate()))
    assert open_widgets() == before
    assert view.state == "done"


def test_a_second_run_replaces_the_first():
    Endless.ended = False
    made = Endless(**SMALL)
    until(lambda: made._bar.value > 0)
    made.start()
    until(lambda: Endless.ended)
    assert made.state == "running"
    made.close()


def test_a_run_that_fails_says_why(view, monkeypatch):
    def fails(_made: Any) -> pl.DataFrame:
        raise SweepError("too many points")

    monkeypatch.setattr(view, "_collect", fails)
    before = view._figure.spec
    view.start()
    until(lambda: view.error)
    assert "too many points" in view.error
    assert view.state == "idle"
    assert view._figure.spec is before


def test_the_points_of_the_next_run_are_counted(view):
    view.steps = 5
    assert view.points == 2 * 2 * 5 * 5
    assert "100 points" in view._status.value
    view._controls["tp"].value = ()
    assert "tp" in view.error


def test_bad_options_are_named():
    with pytest.raises(LedgerError, match="batch"):
        SweepView(run=False, batch=3)
    with pytest.raises(LedgerError, match="no such column"):
        SweepView(**SMALL, run=False, x="colour")
    with pytest.raises(LedgerError, match="zork"):
        SweepView(["zork"], run=False)
