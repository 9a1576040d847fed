"""The chart of a sweep: what it draws, what it says, what it refuses."""

from __future__ import annotations

import polars as pl
import pytest

import ledgerkit as lk
from ledgerkit.errors import FigureError


def swept(**changes: object) -> lk.Sweep:
    axes = {
        "model": ["llama-3.1-8b", "qwen3-8b"], "hardware": ["h100-sxm-80gb", "l4-24gb"],
        "prompt_tokens": 1024, "output_tokens": 128, "concurrency": range(1, 65), "progress": False,
    }  # fmt: skip
    return lk.sweep(**{**axes, **changes})


def rows_of(spec: dict) -> pl.DataFrame:
    [values] = spec["datasets"].values()
    return pl.DataFrame(values)


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("theme", ["article", "dark"])
def test_points_and_front_are_those_of_the_sweep(language: str, theme: str) -> None:
    sweep = swept(model="llama-3.1-8b")
    chart = sweep.chart(
        x="tokens_per_s_per_device", y="tokens_per_s_per_user", color="hardware", facet="model",
        language=language, theme=theme,
    )  # fmt: skip
    rows = rows_of(chart.to_dict())
    assert rows.filter(~pl.col("front")).height == sweep.points
    assert set(rows["model"]) == {"Llama 3.1 8B"}
    for slug, name in (("h100-sxm-80gb", "H100 SXM 80 GB"), ("l4-24gb", "L4 24 GB")):
        expected = swept(model="llama-3.1-8b", hardware=slug).pareto(
            "tokens_per_s_per_device", "tokens_per_s_per_user"
        )
        drawn = rows.filter(pl.col("front"), pl.col("hardware") == name)
        assert sorted(drawn["tokens_per_s_per_user"]) == sorted(expected["tokens_per_s_per_user"])


def test_thinned_and_left_out_points_are_stated() -> None:
    chart = swept().chart(x="tpot_s", y="tokens_per_s", max_points=100, language="en")
    assert "points shown" in str(chart.to_dict()["title"])
    some = swept(prices={"l4-24gb": 1.0}).chart(
        x="tpot_s", y="usd_per_million_output_tokens", language="en"
    )
    assert "128 points without a value" in str(some.to_dict()["title"])


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(FigureError, match="no point"):
        swept().where(pl.col("tpot_s") < 0).chart(x="tpot_s", y="ttft_s")
    with pytest.raises(FigureError, match="too many values"):
        swept().chart(x="tpot_s", y="ttft_s", color="concurrency")
    with pytest.raises(FigureError, match="unknown language"):
        swept().chart(x="tpot_s", y="ttft_s", language="fr")
