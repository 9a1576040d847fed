"""SchedulerView without a browser: runs in a thread, mechanisms, cancel, code."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import ledgerkit as lk
from ledgerkit.errors import LedgerError, SimulationCancelledError
from ledgerkit.widgets import SchedulerView
from tests.widgets.helpers import assert_code_recreates, open_widgets, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SMALL: dict[str, Any] = {"requests": 60, "rate_per_s": 4.0, "tp": 1, "language": "en"}


@pytest.fixture
def view() -> Iterator[SchedulerView]:
    made = SchedulerView(**SMALL)
    until(lambda: made.code or made.error)
    yield made
    made.close()


def finished(view: SchedulerView, sign: str) -> None:
    until(lambda: view.state == "done" and sign in view.code)


@pytest.mark.parametrize("figure", ["timeline", "latency", "books"])
@pytest.mark.parametrize(("language", "theme"), [("zh", "dark"), ("en", "article")])
def test_the_copied_code_draws_the_same_figure(view, figure, language, theme):
    view.figure, view.language, view.theme = figure, language, theme
    assert_code_recreates(view)


def test_a_mechanism_starts_another_run_with_it(view):
    view.shared_prefix_tokens = 512
    finished(view, "shared_prefix_tokens=512")
    assert view.simulation.hit_rate > 0.3
    view._controls["prefix_cache"].value = False
    finished(view, "prefix_cache=False")
    assert view.simulation.hit_rate == 0
    view.replicas = 2
    finished(view, "replicas=2")
    assert view.simulation.scheduler.replicas == 2
    assert_code_recreates(view)


def test_the_numbers_are_those_of_the_simulation(view):
    stream = lk.Arrivals.poisson(4.0, requests=60, prompt_tokens=1024, output_tokens=128)
    run = lk.simulate("llama-3.1-8b", "h100-sxm-80gb", arrivals=stream)
    assert view.simulation.latency.equals(run.latency)
    assert "first token" in view._latencies.value


def test_overload_is_refused_with_the_capacity_and_run_when_asked(view):
    before = view.simulation
    view.prompt_tokens = 32768  # four of these a second are more than one device prefills
    until(lambda: view.error)
    assert "above capacity" in view.error
    assert view.simulation is before
    view.overload = True
    finished(view, "overload='run'")
    assert view.error == ""


class Endless(SchedulerView):
    """A run that only ends when it is told to."""

    ended = False

    def _task(self, tell: Callable[[Any], bool]) -> Any:
        from ledgerkit._simulate.run import Progress

        def work() -> None:
            while tell(Progress(1, 100, 1, 1.0)):
                time.sleep(0.01)
            Endless.ended = True
            raise SimulationCancelledError("cancelled")

        return work


def test_cancel_is_answered_at_once_and_closing_leaves_nothing_behind():
    Endless.ended = False
    before = open_widgets()
    made = Endless(**SMALL)
    until(lambda: made._bar.value > 0)
    assert "1 of 100 requests" in made._status.value
    started = time.monotonic()
    made._stop.click()
    assert made.state == "cancelled"
    assert time.monotonic() - started < 1
    until(lambda: Endless.ended)
    Endless.ended = False
    made.start()
    until(lambda: made._bar.value > 0)
    made.close()
    until(lambda: Endless.ended)
    until(lambda: not any(one.name == "ledgerkit-run" for one in threading.enumerate()))
    assert open_widgets() == before


def test_a_view_that_waits_for_its_button_runs_when_it_is_pressed():
    made = SchedulerView(**SMALL, run=False)
    assert made.state == "idle"
    made.requests = 40
    assert made.state == "idle"
    assert "press Run" in made._status.value
    made._start.click()
    finished(made, "requests=40")
    made.close()


def test_bad_options_are_named():
    with pytest.raises(LedgerError, match="batch"):
        SchedulerView(run=False, batch=3)
