"""Compare without a browser: rows, pins, shared workload, code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ledgerkit.errors import LedgerError
from ledgerkit.widgets import Compare
from tests.widgets.helpers import assert_code_recreates, open_widgets, until

if TYPE_CHECKING:
    from collections.abc import Iterator

TWO = [
    {"model": "llama-3.1-8b", "hardware": "h100-sxm-80gb"},
    {"model": "qwen3-8b", "hardware": "h200-sxm-141gb"},
]


@pytest.fixture
def both() -> Iterator[Compare]:
    made = Compare(TWO, language="en")
    yield made
    made.close()


@pytest.mark.parametrize("figure", ["triangle", "bars", "memory"])
@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_copied_code_draws_the_same_figure(both, figure, language):
    both.figure, both.language, both.theme = figure, language, "dark"
    assert_code_recreates(both)


def test_the_start_shows_three_and_its_code_recreates_them():
    made = Compare()
    assert len(made.comparison.labels) == 3
    assert_code_recreates(made)
    made.close()


def test_all_share_the_workload_and_only_the_selected_changes_its_layout(both):
    both.concurrency = 64
    both.kv_dtype = "fp8"
    first, second = both.comparison.ledgers
    assert first.workload.concurrency == second.workload.concurrency == 64
    assert (first.deployment.kv_dtype, second.deployment.kv_dtype) == ("fp8", "bf16")


def test_selecting_shows_the_other_row(both):
    both._list.value = 1
    until(lambda: both.model == "qwen3-8b")
    assert both.hardware == "h200-sxm-141gb"
    assert both._controls["model"].value == "qwen3-8b"
    both.kv_dtype = "fp8"
    assert [one.deployment.kv_dtype for one in both.comparison.ledgers] == ["bf16", "fp8"]


def test_a_pinned_copy_stays_while_the_rest_moves(both):
    both.pin()
    before = both.comparison.ledgers[2].tpot_s
    both.prompt_tokens = 32768
    one, _, pinned = both.comparison.ledgers
    assert pinned.tpot_s == before
    assert one.tpot_s > before
    assert both.comparison.labels[2] == "Llama 3.1 8B (pinned)"
    both._list.value = 2
    until(lambda: both.selected == 2)
    assert both._controls["tp"].disabled
    assert_code_recreates(both)


def test_equal_models_get_names_of_their_own(both):
    both.add()
    both.add()
    labels = both.comparison.labels
    assert len(set(labels)) == 4
    assert_code_recreates(both)
    both.remove()
    assert len(both.comparison.labels) == 3


def test_there_is_room_for_six(both):
    for _ in range(4):
        both.add()
    with pytest.raises(LedgerError, match="no room"):
        both.add()
    buttons = both._side.children[2].children
    buttons[0].click()
    until(lambda: both.error)
    assert "no room" in both.error


def test_bad_deployments_are_refused_by_name():
    with pytest.raises(LedgerError, match="1 to 6"):
        Compare([])
    with pytest.raises(LedgerError, match="needs a model"):
        Compare([{"model": "llama-3.1-8b"}])
    with pytest.raises(LedgerError, match="batch"):
        Compare([TWO[0], {**TWO[1], "batch": 3}])


@pytest.mark.usefixtures("both")
def test_closing_leaves_nothing_behind():
    before = open_widgets()
    made = Compare(TWO)
    made.language = "zh"
    made.add()
    made.close()
    assert open_widgets() == before
