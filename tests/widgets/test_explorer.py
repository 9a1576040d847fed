"""The Explorer without a browser: state, code, errors, files, and what it leaves behind."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

import ledgerkit as lk
from ledgerkit.widgets._base import dispose
from ledgerkit.widgets._deployment import CONTEXTS
from ledgerkit.widgets._explorer import Explorer
from tests.widgets.helpers import assert_code_recreates, open_widgets, run_code, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def explorer() -> Iterator[Explorer]:
    made = Explorer("kimi-k2.6", "h200-sxm-141gb", tp=1, dp_attention=8, ep=8)
    yield made
    made.close()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"language": "zh", "theme": "dark"},
        {"trail": "concurrency", "concurrency": 4},
        {"weights": "fp8", "kv_dtype": "fp8", "prompt_tokens": 65536},
    ],
)
def test_the_copied_code_draws_the_same_figure(explorer, changes):
    for name, value in changes.items():
        setattr(explorer, name, value)
    assert_code_recreates(explorer)


def test_a_config_of_ones_own_is_in_the_code():
    config = {
        "model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 4, "vocab_size": 32000,
        "num_attention_heads": 16, "num_key_value_heads": 4, "intermediate_size": 4096,
        "max_position_embeddings": 131072, "tie_word_embeddings": False,
        "architectures": ["LlamaForCausalLM"], "torch_dtype": "bfloat16", "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
    }  # fmt: skip
    own = Explorer(config, "h100-sxm-80gb")
    assert_code_recreates(own)
    given = Explorer(lk.load_model(config), "h100-sxm-80gb")
    assert_code_recreates(given)
    assert given.ledger.tpot_s == own.ledger.tpot_s
    dispose([own, given])


def test_setting_a_trait_redraws_before_it_returns(explorer):
    before = explorer.ledger.tpot_s
    explorer.prompt_tokens = 131072
    assert explorer.ledger.tpot_s > before
    assert explorer.ledger.workload.prompt_tokens == 131072


def test_what_a_reader_moves_is_drawn_by_a_thread_and_ends_at_the_newest(explorer):
    slider = explorer._controls["prompt_tokens"]
    for value in CONTEXTS:
        slider.value = value
    until(lambda: explorer.ledger.workload.prompt_tokens == CONTEXTS[-1])
    until(lambda: f"prompt_tokens={CONTEXTS[-1]}" in explorer.code)


def test_moves_that_arrive_together_are_drawn_once(explorer):
    drawn = []
    draw, gate = explorer._draw, threading.Event()

    def slow() -> None:
        gate.wait(10)
        draw()
        drawn.append(explorer.ledger.workload.prompt_tokens)

    explorer._draw = slow
    for value in CONTEXTS:
        explorer._controls["prompt_tokens"].value = value
    gate.set()
    until(lambda: drawn and drawn[-1] == CONTEXTS[-1])
    assert len(drawn) <= 3


def test_an_impossible_layout_keeps_the_figure_and_says_why(explorer):
    before = explorer._figure.spec
    explorer._controls["ep"].value = 32
    until(lambda: explorer.error)
    assert "ep must divide" in explorer.error
    assert "figure not updated" in explorer._message.value
    assert explorer._figure.spec is before
    explorer.ep = 8
    assert explorer.error == ""
    assert explorer._message.value == ""


def test_any_other_failure_shows_as_well(explorer, monkeypatch):
    def broken() -> None:
        message = "no <b>luck</b>"
        raise RuntimeError(message)

    monkeypatch.setattr(explorer, "_draw", broken)
    explorer._controls["concurrency"].value = 64
    until(lambda: explorer.error)
    assert explorer.error == "RuntimeError: no <b>luck</b>"
    assert "&lt;b&gt;" in explorer._message.value


def test_both_languages_have_the_same_numbers(explorer):
    explorer.language = "zh"
    assert "三本账" in explorer._title.value
    assert explorer._controls["concurrency"].description == "并发"
    zh = explorer.ledger.tpot_s
    explorer.language = "en"
    assert explorer.ledger.tpot_s == zh


def test_an_account_is_explained_to_be_redone(explorer):
    explorer.account = "routed_experts"
    (found,) = explorer.ledger.explain("routed_experts")
    assert found.expression in explorer._formula.value.replace("&gt;", ">")
    assert "expert_bytes" in explorer._formula.value


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf", "json"])
def test_the_figure_is_saved(explorer, tmp_path: Path, suffix):
    path = explorer.save(tmp_path / f"explorer.{suffix}")
    starts = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF", "json": b"{"}
    assert path.read_bytes().startswith(starts[suffix])


def test_a_saved_json_can_be_drawn_again(explorer, tmp_path: Path):
    path = explorer.save(tmp_path / "explorer.json")
    again = lk.charts.open_figure(path)
    assert json.dumps(again.to_dict()["layer"]) == json.dumps(explorer.chart.to_dict()["layer"])


def test_a_slider_stands_where_the_value_is(explorer):
    slider = explorer._controls["prompt_tokens"]
    for value, label in ((624, "624"), (8192, "8K"), (5000, "4.9K")):
        explorer.prompt_tokens = value
        assert (slider.value, slider.label, explorer.prompt_tokens) == (value, label, value)
    slider.value = 1024
    until(lambda: explorer.prompt_tokens == 1024 and "prompt_tokens=1024" in explorer.code)
    explorer.language = "zh"
    assert explorer._controls["prompt_tokens"].value == 1024


def test_the_page_gets_the_file(explorer, monkeypatch):
    sent = []
    monkeypatch.setattr(
        explorer._toolbar, "send", lambda content, buffers: sent.append((content, buffers))
    )
    explorer._toolbar._pressed(None, {"save": "svg"}, [])
    until(lambda: sent)
    content, (data,) = sent[0]
    assert content == {"file": "ledgerkit-explorer.svg", "type": "image/svg+xml"}
    assert data.startswith(b"<svg")


def test_closing_leaves_nothing_behind():
    Explorer("llama-3.1-8b", "h100-sxm-80gb").close()
    before, threads = open_widgets(), threading.active_count()
    for _ in range(3):
        made = Explorer("llama-3.1-8b", "h100-sxm-80gb")
        made.language = "zh"
        made.theme = "dark"
        made.close()
    assert open_widgets() == before
    assert threading.active_count() <= threads + 2


def test_unknown_options_are_named():
    with pytest.raises(lk.errors.LedgerError, match=r"no such option.*'batch'"):
        Explorer("llama-3.1-8b", batch=3)


def test_the_code_is_short_where_defaults_hold():
    made = Explorer("llama-3.1-8b", "h100-sxm-80gb", language="en")
    assert "kv_dtype" not in made.code
    assert run_code(made.code).to_dict() == made.chart.to_dict()
    made.close()


def test_the_first_picture_does_not_wait_for_altair():
    code = (
        "import sys, ledgerkit as lk\n"
        "made = lk.widgets.Explorer('llama-3.1-8b', 'h100-sxm-80gb')\n"
        "assert made._figure.spec['layer'] and not made.error\n"
        "print(*sorted({'altair', 'jsonschema', 'numba', 'vl_convert'} & set(sys.modules)))\n"
    )
    lk.widgets.Explorer("llama-3.1-8b", "h100-sxm-80gb").close()  # fills the cache of the renderer
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
