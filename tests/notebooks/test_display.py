"""How a figure shows itself in a notebook: drawn, without a content network."""

from __future__ import annotations

import altair as alt
import pytest

import ledgerkit as lk

WORK = lk.Workload(prompt_tokens=1024, output_tokens=64)


def figures() -> dict[str, alt.TopLevelMixin]:
    points = lk.sweep(
        model="llama-3.1-8b", hardware=["h100-sxm-80gb", "h200-sxm-141gb"], prompt_tokens=1024,
        output_tokens=64, concurrency=[1, 8],
    )  # fmt: skip
    axes = {"x": "tokens_per_s", "y": "tpot_s"}
    return {
        "ledger": lk.ledger("llama-3.1-8b", "h100-sxm-80gb", None, WORK).chart(),
        "sweep": points.chart(**axes, color="hardware"),
        "facets": points.chart(**axes, facet="hardware"),
    }


@pytest.mark.parametrize("name", ["ledger", "sweep", "facets"])
def test_a_figure_is_an_svg_that_names_no_other_host(name):
    bundle = figures()[name]._repr_mimebundle_()
    assert set(bundle) == {"image/svg+xml", "text/plain"}
    svg = bundle["image/svg+xml"]
    assert svg.startswith("<svg")
    assert "LedgerKit Sans SC" in svg
    assert svg.replace("http://www.w3.org", "").count("http") == 0


def test_a_renderer_of_the_users_choice_wins():
    figure = figures()["ledger"]
    with alt.renderers.enable("png"):
        shown = figure._repr_mimebundle_()
    bundle = shown[0] if isinstance(shown, tuple) else shown
    assert "image/png" in bundle
