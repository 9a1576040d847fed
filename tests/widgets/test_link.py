"""The Explorer's state in an address: written, read, and what is said of nonsense."""

from __future__ import annotations

import html
from urllib.parse import parse_qs

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ledgerkit._ledger import ledger
from ledgerkit.catalog.models import load_model, model_slugs
from ledgerkit.errors import LedgerError
from ledgerkit.spec.cache import KV_DTYPES
from ledgerkit.spec.deployment import Deployment, Workload
from ledgerkit.spec.precision import WEIGHT_DTYPES
from ledgerkit.widgets import Explorer
from ledgerkit.widgets._deployment import fitting_workload
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
        ("model=gpt2&prompt_tokens=1024", "prompt_tokens=1024"),
        ("weights=q9_k", "weights=q9_k"),
        ("experts=q8_1", "experts=q8_1"),
        ("tp=%2B2", "tp=+2"),
        ("tp= 2", "tp= 2"),
        ("tp=２", "tp=２"),
        ("tp=0", "tp=0"),
        ("concurrency=99999999999999999999", "concurrency=99999999999999999999"),
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


SHORT = [slug for slug in model_slugs() if load_model(slug).max_position_embeddings < 8192 + 512]


@pytest.mark.parametrize("slug", SHORT)
def test_a_model_with_few_positions_is_kept_with_tokens_that_fit(slug):
    found = read_link(f"model={slug}&hardware=l4-24gb&language=zh", {"prompt_tokens": 8192})
    assert found.refused == ()
    assert found.state == {"model": slug, "hardware": "l4-24gb", "language": "zh"}
    tokens = fitting_workload(load_model(slug).max_position_embeddings, {})
    assert sum(tokens.values()) <= load_model(slug).max_position_embeddings
    assert tokens["output_tokens"] == 512


def test_an_explorer_of_a_model_with_few_positions_opens():
    explorer = Explorer("gpt2", "l4-24gb")
    assert (explorer.prompt_tokens, explorer.output_tokens, explorer.error) == (512, 512, "")
    again = Explorer.from_link(explorer.link)
    assert (again.model, again.error, again.link) == ("gpt2", "", explorer.link)
    again.close()
    explorer.close()
    assert fitting_workload(1024, {"prompt_tokens": 1000}) == {"output_tokens": 24}
    assert fitting_workload(1024, {"prompt_tokens": 24}) == {"output_tokens": 512}


@pytest.mark.parametrize(
    ("query", "refused"),
    [
        ("tp=8&ep=3", {"ep"}),
        ("tp=7&ep=7&pp=2&kv_dtype=fp8", {"tp", "ep"}),
        ("tp=2&pp=999&weights=int4_g64", {"pp"}),
        ("tp=2&prompt_tokens=9999999&output_tokens=64&concurrency=9", {"prompt_tokens"}),
        ("tp=2&prompt_tokens=64&output_tokens=9999999&ep=5", {"output_tokens", "ep"}),
        ("weights=int4_g99999&experts=q4_k&tp=4", {"weights"}),
        ("hardware=nothing&tp=2", {"hardware"}),
    ],
)
def test_what_is_wrong_takes_nothing_else_with_it(query, refused):
    asked = f"model=qwen3-30b-a3b&trail=concurrency&language=zh&theme=dark&{query}"
    found = read_link(asked, {"hardware": "h200-sxm-141gb"})
    assert {name for name, _ in found.refused} == refused
    kept = {name: str(value) for name, value in found.state.items()}
    for name, (value,) in parse_qs(asked).items():
        assert name in refused or kept[name] == value


def test_a_notice_stays_readable():
    found = read_link("tp=" + "9" * 6000 + "".join(f"&{'n' * 99}{i}=1" for i in range(50)))
    assert len(found.refused) == 51
    assert sum(map(len, found.problems("en"))) < 1000
    assert found.problems("zh")[-1] == "…"


def test_after_an_error_there_is_no_link_to_another_view():
    explorer = Explorer("qwen3-8b", "h200-sxm-141gb")
    before = explorer.link
    explorer.model = "gpt2"
    assert explorer.error
    assert explorer.link == explorer._toolbar.link == explorer._address.value == ""
    explorer.model = "qwen3-8b"
    assert (explorer.error, explorer.link, explorer._toolbar.link) == ("", before, before)
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


FORMATS = st.none() | st.sampled_from(
    [*WEIGHT_DTYPES, "q4_k", "q8_0", "iq2_xxs", "int4_g64", "int3_asym_g32", "int8_channel"]
)
LAYOUTS = st.fixed_dictionaries({
    "tp": st.sampled_from([1, 2, 4, 8]), "pp": st.sampled_from([1, 2, 3]),
    "ep": st.sampled_from([1, 2, 8]), "dp_attention": st.sampled_from([1, 2, 8]),
    "weights": FORMATS, "experts": FORMATS, "kv_dtype": st.sampled_from(KV_DTYPES),
})  # fmt: skip
WORK = st.fixed_dictionaries({
    "prompt_tokens": st.integers(1, 200_000), "output_tokens": st.integers(1, 20_000),
    "concurrency": st.integers(1, 4096) | st.integers(1, 2**53),
})  # fmt: skip


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.filter_too_much])
@given(
    slug=st.sampled_from(model_slugs()), device=st.sampled_from(["h200-sxm-141gb", "l4-24gb"]),
    layout=LAYOUTS, work=WORK, language=st.sampled_from(["zh", "en"]),
)  # fmt: skip
def test_every_state_that_has_books_is_read_back(slug, device, layout, work, language):
    try:
        ledger(slug, device, Deployment(**layout), Workload(**work))
    except LedgerError:
        assume(False)  # an Explorer shows an error, and writes no link
    state = {"model": slug, "hardware": device, "language": language} | layout | work
    found = read_link(write_link(state))
    assert found.refused == ()
    usual = Deployment()
    assert found.state == {
        name: value for name, value in state.items()
        if name == "tp" or value != getattr(usual, name, "has none")
    }  # fmt: skip


@settings(deadline=None, max_examples=12)
@given(
    slug=st.sampled_from([*SHORT, "qwen3-30b-a3b"]), weights=FORMATS, experts=FORMATS,
    concurrency=st.integers(1, 2**53),
)  # fmt: skip
def test_what_an_explorer_writes_is_read(slug, weights, experts, concurrency):
    explorer = Explorer(
        slug, "h200-sxm-141gb", weights=weights, experts=experts, concurrency=concurrency
    )
    assert bool(explorer.link) == (explorer.error == "")
    found = read_link(explorer.link)
    assert found.refused == ()
    assert all(getattr(explorer, name) == value for name, value in found.state.items())
    explorer.close()
