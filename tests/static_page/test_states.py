"""What the page was given: the numbers of `lk.ledger`, by a stated choice of layout."""

from __future__ import annotations

import json
import re

import pytest

import ledgerkit as lk
from ledgerkit._commands.explore import states
from ledgerkit._commands.explore.page import page
from ledgerkit._commands.explore.states import Selection
from ledgerkit.errors import LedgerError

ONE = Selection(models=("deepseek-v3", "gemma-4-31b-it"), hardware=("h100-sxm-80gb",))


@pytest.fixture(scope="module")
def computed() -> dict:
    return states.compute(ONE)


def test_every_number_is_that_of_the_ledger(computed):
    for slug in ONE.models:
        for precision in computed["precisions"]:
            state = computed["states"][f"{slug}|h100-sxm-80gb|{precision['key']}"]
            layout = {name: state[name] for name in ("tp", "dp_attention", "ep")}
            served = {"weights": precision["weights"], "kv_dtype": precision["kv_dtype"]}
            for batch, context in ((1, 1024), (32, 8192), (128, 65536)):
                place = computed["concurrencies"].index(batch) * len(computed["contexts"])
                step = computed["contexts"].index(context)
                books = lk.ledger(
                    slug,
                    "h100-sxm-80gb",
                    lk.Deployment(**served, **layout),
                    lk.Workload(prompt_tokens=context, output_tokens=512, concurrency=batch),
                )
                seconds = books.by_ledger()
                for ledger, amount in seconds.items():
                    assert state[f"{ledger}_s"][place + step] == pytest.approx(amount, rel=5e-4)
                assert state["tpot_s_low"][place + step] == pytest.approx(
                    books.tpot_s_low, rel=5e-4
                )
                assert state["ttft_s"][step] == pytest.approx(books.ttft_s, rel=5e-4)
                assert state["fits"][place + step] == books.fits[0]
                assert state["max_concurrency"][step] == books.max_concurrency


def test_the_layout_is_the_smallest_that_holds_the_reference(computed):
    context, batch = states.REFERENCE
    work = lk.Workload(prompt_tokens=context, output_tokens=512, concurrency=batch)
    for slug in ONE.models:
        state = computed["states"][f"{slug}|h100-sxm-80gb|checkpoint"]
        devices = state["tp"] * state["dp_attention"]
        smaller = []
        for tp, ranks, ep in states.LAYOUTS:
            if tp * ranks >= devices:
                continue
            try:
                deployment = lk.Deployment(tp=tp, dp_attention=ranks, ep=ep)
                smaller.append(lk.ledger(slug, "h100-sxm-80gb", deployment, work).fits)
            except LedgerError:
                continue
        assert smaller
        assert "yes" not in smaller
        step = computed["contexts"].index(context)
        place = computed["concurrencies"].index(batch) * len(computed["contexts"])
        assert state["fits"][place + step] == "y"


def test_caches_are_the_exact_ones(computed):
    cache = computed["caches"]["deepseek-v3|bf16"]["bytes"]
    # 61 layers of 576 numbers of 2 bytes per token
    assert cache[0] == pytest.approx(61 * 576 * 2 * 1024, rel=5e-4)
    assert len(cache) == len(computed["contexts"])


def test_a_trail_ends_where_the_model_does():
    found = states.compute(Selection(models=("phi-4",), hardware=("h200-sxm-141gb",)))
    fits = found["states"]["phi-4|h200-sxm-141gb|checkpoint"]["fits"]
    reached = [
        context for context, letter in zip(found["contexts"], fits, strict=False) if letter != "-"
    ]
    # 16K positions hold the prompt and its 512 tokens of answer
    assert max(reached) + 512 <= 16384 < max(reached) * 2**0.5 + 512


def test_the_page_is_the_same_twice_and_asks_for_nothing():
    first, second = (page("zh", ONE) for _ in range(2))
    assert first == second
    packed = re.search(
        r'<script type="application/json" id="data">(.*?)</script>', first, re.DOTALL
    )
    assert packed
    data = json.loads(packed[1].replace("<\\/", "</"))
    assert data["language"] == "zh"
    assert set(data["texts"]["zh"]) == set(data["texts"]["en"])
    own = first.split("<script>")[0] + first.rsplit("<script>", 1)[1]
    assert not re.search(r'(?:src|href)="(?!data:)', own)
    assert "import(" not in first.rsplit("<script>", 1)[1]


@pytest.mark.slow
def test_the_page_of_the_command_is_of_reasonable_size(tmp_path, capsys):
    from ledgerkit.__main__ import main

    target = tmp_path / "made" / "explore.html"
    assert main(["figures", "--html", str(target), "--language", "zh"]) == 0
    assert 1e6 < target.stat().st_size < 6e6
    assert "可离线打开" in capsys.readouterr().out


def test_the_command_wants_a_name_in_html(tmp_path, capsys):
    from ledgerkit.__main__ import main

    assert main(["figures", "--html", str(tmp_path / "page.pdf")]) == 2
    assert "the page is an HTML file" in capsys.readouterr().err
