"""Charts of runs: what they draw, in both languages."""

from __future__ import annotations

from functools import cache

import polars as pl
import pytest

import ledgerkit as lk
from ledgerkit.errors import FigureError


@cache
def served():
    stream = lk.Arrivals.poisson(4.0, requests=150, prompt_tokens=1024, output_tokens=64,
                                 shared_prefix_tokens=256)  # fmt: skip
    return lk.simulate("llama-3.1-8b", "h100-sxm-80gb", arrivals=stream)


@cache
def figures(language):
    run = served()
    curve = run.load_curve([2, 8, 60], ttft_s=0.2)
    _, books = run.engines(["vllm", "transformers"])
    speed = pl.DataFrame({"setting": ["a", "a"], "clients": [1, 64], "speedup": [1.9, 0.9]})
    return {
        "timeline": run.chart("timeline", language=language),
        "latency": run.chart("latency", language=language, ttft_s=0.1, tpot_s=0.02),
        "books": run.chart("books", language=language),
        "load": lk.charts.simulation_load(curve, language=language),
        "engines": lk.charts.simulation_engines(books, language=language),
        "ablation": lk.charts.simulation_ablation(run.ablation(), language=language),
        "crossover": lk.charts.simulation_crossover(speed, language=language),
    }


NAMES = ("timeline", "latency", "books", "load", "engines", "ablation", "crossover")


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("name", NAMES)
def test_figures_can_be_saved(name, language, tmp_path):
    path = tmp_path / "figure.svg"
    lk.save_figure(figures(language)[name], path)
    written = path.read_text(encoding="utf-8")
    assert "<svg" in written
    assert ("时间" in written or "并发" in written) is (language == "zh")


def test_bars_of_the_books_sum_to_one():
    spec = figures("en")["engines"].to_dict()
    rows = next(iter(spec["datasets"].values()))
    sums = {}
    for row in rows:
        sums[row["engine"]] = sums.get(row["engine"], 0) + row["share"]
    assert list(sums.values()) == pytest.approx([1, 1])


def test_missing_columns_are_named():
    with pytest.raises(FigureError, match="column"):
        lk.charts.simulation_load(pl.DataFrame({"rate_per_s": [1.0]}))
    with pytest.raises(FigureError, match="kind of chart"):
        served().chart("pie")


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_figure_can_be_drawn_in_another_theme_and_language(name, tmp_path):
    path = lk.save_figure(figures("en")[name], tmp_path / "figure.json")
    again = lk.charts.open_figure(path, theme="dark", language="zh").to_dict()
    assert again["config"]["background"] != "#FFFFFF"
    assert again["title"] != figures("en")[name].to_dict()["title"]
    facts = again["usermeta"]["ledgerkit"]
    assert facts["finding"]
    assert facts["options"]["language"] == "zh"
