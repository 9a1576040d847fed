"""Bands: the group-balanced quantile, and where they widen."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledgerkit as lk
from ledgerkit._data import data_path
from ledgerkit._steady.bands import balanced_quantile, factor, spread

POINT = lk.Workload(prompt_tokens=2048, output_tokens=256, concurrency=8)


@given(
    st.lists(st.lists(st.floats(0, 10), min_size=1, max_size=9), min_size=1, max_size=6),
    st.floats(0.05, 0.99),
)
def test_quantile_is_the_least_value_that_covers_the_level_of_mean_group_shares(groups, level):
    def covered(limit: float) -> float:
        return sum(sum(v <= limit for v in g) / len(g) for g in groups) / len(groups)

    found = balanced_quantile(groups, level)
    assert covered(found) >= level - 1e-9
    below = [v for g in groups for v in g if v < found]
    if below:
        assert covered(max(below)) < level + 1e-9


def test_equal_groups_give_the_plain_quantile():
    values = np.random.default_rng(3).uniform(size=(5, 200))
    plain = np.quantile(values, 0.9, method="inverted_cdf")
    assert balanced_quantile(values.tolist(), 0.9) == pytest.approx(plain)


def test_every_factor_says_where_it_comes_from():
    with data_path("bands.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(row["source"] for row in rows)
    assert all(float(row["factor"]) > 1 and float(row["level"]) == 0.9 for row in rows)
    assert {(r["quantity"], r["where"]) for r in rows} >= {
        ("tpot", "inside"), ("tpot", "outside"), ("tpot", "calibrated"), ("ttft", "inside"),
        ("ttft", "outside"), ("ttft", "disaggregated"),
    }  # fmt: skip


def test_a_band_is_a_factor_on_both_sides():
    state = lk.steady_state("llama-3.1-8b", "h100-sxm-80gb", None, POINT)
    q = factor("tpot", "inside")
    assert state.tpot_s_low * q == pytest.approx(state.tpot_s)
    assert state.tpot_s * q == pytest.approx(state.tpot_s_high)
    assert state.ttft_s_high / state.ttft_s > state.tpot_s_high / state.tpot_s
    assert any("load generator" in note for note in state.notes)


@pytest.mark.parametrize(
    ("model", "device", "layout", "reason"),
    [
        ("llama-3.2-1b", "tpu-v5e", lk.Deployment(), "another family of devices"),
        ("qwen2.5-0.5b", "rtx-4090-24gb", lk.Deployment(engine="llama.cpp"), "llama.cpp"),
        ("deepseek-v3", "h200-sxm-141gb", lk.Deployment(tp=16), "across nodes"),
        ("llama-3.1-405b", "gb200-nvl72-186gb", lk.Deployment(tp=8, pp=4), "more than 16 devices"),
    ],
)
def test_bands_widen_where_nothing_was_measured(model, device, layout, reason):
    state = lk.steady_state(model, device, layout, POINT)
    assert reason in state.tpot_band.reasons[0]
    assert state.tpot_band.factor >= factor("tpot", "outside") > factor("tpot", "inside")
    assert state.ttft_band.factor >= factor("ttft", "outside")


def test_wide_constants_widen_the_band_further():
    narrow = spread("tpot", ("speculation",), (0.9, 1.0, 1.1))
    wide = spread("tpot", ("speculation",), (0.4, 1.0, 3.0))
    assert narrow.factor == factor("tpot", "outside")
    assert wide.factor == pytest.approx(3.0)
    assert spread("tpot", (), (0.4, 1.0, 3.0)).factor == factor("tpot", "inside")


def test_first_tokens_of_disaggregated_points_are_widest():
    state = lk.steady_state(
        "llama-3.1-8b", "h100-sxm-80gb", None, POINT, prefill_workers=1, decode_workers=1
    )
    assert state.ttft_band.factor == factor("ttft", "disaggregated")
    assert any("routing" in note for note in state.notes)
    assert math.isclose(state.tpot_band.factor, factor("tpot", "inside"))
