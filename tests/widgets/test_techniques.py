"""TechniqueLab without a browser: stacks, refusals, code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import ledgerkit as lk
from ledgerkit.errors import LedgerError
from ledgerkit.widgets import TechniqueLab
from tests.widgets.helpers import assert_code_recreates, open_widgets, until

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def lab() -> Iterator[TechniqueLab]:
    made = TechniqueLab("deepseek-v3", tp=1, ep=8, dp_attention=8, language="en")
    yield made
    made.close()


@pytest.mark.parametrize("figure", ["bars", "triangle", "waterfall"])
@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_copied_code_draws_the_same_figure(lab, figure, language):
    lab.added, lab.removed = ["kv_quantization", "mtp"], ["shared_experts"]
    lab.figure, lab.language, lab.theme = figure, language, "dark"
    assert_code_recreates(lab)


def test_the_net_effect_is_that_of_the_transfer(lab):
    found = lk.transfer(
        "kv_quantization", model="deepseek-v3", hardware="h200-sxm-141gb",
        deployment=lk.Deployment(ep=8, dp_attention=8),
        workload=lk.Workload(prompt_tokens=8192, output_tokens=512, concurrency=32),
    )  # fmt: skip
    assert lab.transfer.net.equals(found.net)
    row = dict(zip(found.net["name"], found.net["after"], strict=True))
    assert f"{row['tpot_s'] * 1e3:.1f} ms" in lab._net.value


def test_a_reader_stacks_in_the_order_of_choosing(lab):
    lab._lists["added"].value = ("kv_quantization", "mtp")
    until(lambda: lab.added == ["kv_quantization", "mtp"] and "'mtp'" in lab.code)
    lab._lists["added"].value = ("mtp", "dsa", "kv_quantization")
    until(lambda: "'dsa'" in lab.code)
    assert lab.added == ["kv_quantization", "mtp", "dsa"]


def test_a_technique_that_does_not_go_with_the_model_is_explained(lab):
    before = lab.transfer
    lab._lists["added"].value = ("sliding_window",)
    until(lambda: lab.error)
    assert "no softmax attention to give a window" in lab.error
    assert lab.transfer is before
    lab.added = ["mtp"]
    assert lab.error == ""


def test_without_techniques_it_says_what_to_do(lab):
    lab.added = []
    assert lab.chart is None
    assert "Choose a technique" in lab._net.value


def test_every_technique_has_its_words(lab):
    for language in ("zh", "en"):
        lab.language = language
        for chosen in lab._lists.values():
            assert all(label.strip() for label, _ in chosen.options)
    names = set(lab.transfer.net["name"])
    assert all(lab.text(f"widget.lab.net.{name}") for name in names)


def test_unknown_techniques_are_named():
    with pytest.raises(LedgerError, match="zork"):
        TechniqueLab(added=["zork"])
    with pytest.raises(LedgerError, match="mha"):
        TechniqueLab(removed=["mha"])


@pytest.mark.usefixtures("lab")
def test_closing_leaves_nothing_behind():
    before = open_widgets()
    made = TechniqueLab("llama-3.1-8b", "h100-sxm-80gb")
    made.language = "zh"
    made.close()
    assert open_widgets() == before
