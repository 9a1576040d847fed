"""The Explorer's state in an address: written, read, and what is said of nonsense."""

from __future__ import annotations

import html
from urllib.parse import parse_qs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerkit.widgets import Explorer
from ledgerkit.widgets._link import read_link, write_link
from tests.widgets.helpers import open_widgets
from tests.widgets.test_config import CONFIG

STATE = {
    "model": "qwen3-30b-a3b", "hardware": "h100-sxm-80gb", "weights": "fp8", "experts": "int4_g32",
    "kv_dtype": "fp8", "tp": 2, "ep": 2, "prompt_tokens": 4096, "output_tokens": 256,
    "concurrency": 4, "trail": "concurrency", "language": "zh", "theme": "dark",
}  # fmt: skip


def test_an_explorer_opens_with_the_state_of_another():
    first = Explorer(**STATE)
    second = Explorer.from_link(first.link, model="kimi-k2.6", dp_attention=8, ep=8)
    assert {name: getattr(second, name) for name in STATE} == STATE
    assert second.error == ""
    assert second.link == first.link
    assert second.chart.to_dict() == first.chart.to_dict()
    first.close()
    second.close()


def test_the_link_follows_the_state_and_is_on_the_page():
    explorer = Explorer("llama-3.1-8b", "h100-sxm-80gb", language="en")
    explorer.concurrency = 64
    explorer.theme = "dark"
    found = parse_qs(explorer.link.removeprefix("?"))
    assert (found["concurrency"], found["theme"], found["tp"]) == (["64"], ["dark"], ["1"])
    assert html.escape(explorer.link) in explorer._address.value
    assert explorer._toolbar.link == explorer.link
    explorer.close()
    own = Explorer(CONFIG, "h100-sxm-80gb")
    assert own.link == own._toolbar.link == own._address.value == ""
    own.close()


def test_a_page_of_voila_reads_its_address(monkeypatch):
    monkeypatch.setenv("QUERY_STRING", "model=qwen3-8b&hardware=l4-24gb&language=zh")
    explorer = Explorer.from_link(model="kimi-k2.6", hardware="h200-sxm-141gb", dp_attention=8)
    assert (explorer.model, explorer.hardware, explorer.language) == ("qwen3-8b", "l4-24gb", "zh")
    assert explorer.dp_attention == 1
    explorer.close()
    monkeypatch.delenv("QUERY_STRING")
    explorer = Explorer.from_link(model="kimi-k2.6", hardware="h200-sxm-141gb", dp_attention=8)
    assert (explorer.model, explorer.dp_attention, explorer.error) == ("kimi-k2.6", 8, "")
    explorer.close()


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("model=../../etc/passwd", "model=../../etc/passwd"),
        ("model=Qwen/Qwen3-8B", "model=Qwen/Qwen3-8B"),
        ("hardware=h999", "hardware=h999"),
        ("kv_dtype=fp3", "kv_dtype=fp3"),
        ("concurrency=-3", "concurrency=-3"),
        ("prompt_tokens=many", "prompt_tokens=many"),
        ("prompt_tokens=9999999", "prompt_tokens=9999999"),
        ("colour=red", "colour=red"),
        ("model=llama-3.1-8b&ep=8", "ep=8"),
        ("model=gpt2", "model=gpt2"),
        ("language=%3Cb%3E", "language=<b>"),
    ],
)
@pytest.mark.parametrize("language", ["zh", "en"])
def test_what_cannot_be_used_is_told_and_the_default_is_shown(query, name, language):
    explorer = Explorer.from_link(query, model="kimi-k2.6", language=language)
    assert name in explorer.error
    assert ("链接" in explorer.error) == (language == "zh")
    assert html.escape(name) in explorer._message.value
    assert 'role="alert"' in explorer._message.value
    assert explorer.chart is not None
    # nothing is stale, and the note goes with the next change
    assert "ledgerkit-stale" not in explorer._stage._dom_classes
    explorer.concurrency = 7
    assert explorer.error == explorer._message.value == ""
    explorer.close()


def test_links_leave_nothing_behind():
    Explorer.from_link("model=qwen3-8b").close()
    before = open_widgets()
    Explorer.from_link("model=qwen3-8b&tp=2").close()
    assert open_widgets() == before


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=40))
def test_any_query_gives_a_state(query):
    found = read_link(query, {"model": "kimi-k2.6", "hardware": "h200-sxm-141gb"})
    assert {"model", "hardware"} <= found.state.keys()
    assert all(found.problems(language) or not found.refused for language in ("zh", "en"))


@settings(deadline=None, max_examples=30)
@given(
    slug=st.sampled_from(["deepseek-v3", "gemma-4-26b-a4b", "llama-3.1-8b"]),
    prompt=st.integers(1, 4096), concurrency=st.integers(1, 512),
    language=st.sampled_from(["zh", "en"]),
)  # fmt: skip
def test_what_is_written_is_read(slug, prompt, concurrency, language):
    state = {
        "model": slug, "hardware": "h200-sxm-141gb", "weights": None, "tp": 1,
        "prompt_tokens": prompt, "concurrency": concurrency, "language": language,
    }  # fmt: skip
    found = read_link(write_link(state))
    assert found.refused == ()
    assert found.state == {name: value for name, value in state.items() if name != "weights"}
