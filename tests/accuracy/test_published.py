"""Figures that others published: each has a source, and ours are as near as the page says."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest

import ledgerkit as lk
from ledgerkit import text
from ledgerkit._accuracy.published import published
from ledgerkit._data import data_path
from ledgerkit._refs import resolve
from ledgerkit.costs.table import build
from ledgerkit.kernels import columns as c


@pytest.fixture(scope="module")
def figures():
    return published()


def _ratios(figures, name, quantity=None):
    found = [f.seconds_ratio for f in figures if f.set == name and quantity in (None, f.quantity)]
    assert found
    return np.array(found)


def test_every_figure_has_a_source_and_every_set_a_reason():
    with data_path("published.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 250
    assert all(row["source"] for row in rows)
    for name in {row["set"] for row in rows}:
        assert text.get(f"accuracy.why.{name}", "zh")
        assert text.get(f"accuracy.why.{name}", "en")


def test_a_ratio_is_of_time_whatever_the_unit(figures):
    for one in figures:
        raw = one.predicted / one.measured
        assert one.seconds_ratio == pytest.approx(raw if one.quantity in {"tpot_s", "ttft_s",
                                                  "exchange_s"} else 1 / raw)  # fmt: skip


def test_decode_on_one_memory_bound_machine(figures):
    ratios = _ratios(figures, "llama.cpp on DGX Spark", "decode_tokens_per_s")
    assert 0.9 <= np.median(ratios) <= 1.1
    assert np.mean(np.abs(np.log(ratios)) <= np.log(1.6)) >= 0.9


def test_context_slows_decode_as_measured(figures):
    """The fall from an empty cache to 32,768 tokens, model by model."""
    with data_path("published.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    falls = {}
    for row, figure in zip(rows, figures, strict=True):
        if (row["quantity"], row["concurrency"]) == ("decode_tokens_per_s", "1"):
            falls.setdefault(row["model"], {})[int(row["prompt_tokens"])] = figure
    assert len(falls) >= 5
    for model, by_depth in falls.items():
        if 32768 not in by_depth:
            continue
        measured = by_depth[1].measured / by_depth[32768].measured
        predicted = by_depth[1].predicted / by_depth[32768].predicted
        assert predicted == pytest.approx(measured, rel=0.35), model


def test_deepseek_across_nodes(figures):
    decode = _ratios(figures, "DeepSeek-V3 across nodes", "decode_tokens_per_s_per_device")
    prefill = _ratios(figures, "DeepSeek-V3 across nodes", "prefill_tokens_per_s_per_device")
    assert np.all(np.abs(np.log(decode)) <= np.log(1.6))
    assert np.all(np.abs(np.log(prefill)) <= np.log(1.6))


def test_exchange_of_experts(figures):
    ratios = _ratios(figures, "DeepEP low latency")
    assert np.all(np.abs(np.log(ratios)) <= np.log(1.6))
    # from 32 ranks on everything goes over the network card
    assert np.all(np.abs(ratios[2:] - 1) <= 0.25)


def test_prefill_sends_one_copy_to_each_other_node():
    """Four nodes of eight: 4 · (1 − C(192, 8) / C(256, 8)) nodes are reached, ¾ of them far."""
    model, hardware, layout, profile, efficiencies = resolve(
        "deepseek-v3", "h800-sxm-80gb", lk.Deployment(dp_attention=32, ep=32)
    )
    table = build(model, layout, hardware, efficiencies, profile)
    (exchange,) = (i for i, link in enumerate(table.links) if link.kind == c.KIND_EXCHANGE)
    copies = table.link_rows["mid"][:, exchange, c.L_TOKEN_BYTES] / (7168 * 3)
    missed = math.comb(192, 8) / math.comb(256, 8)
    assert copies[0] == pytest.approx(4 * (1 - missed) * 0.75)
    assert copies[1] == pytest.approx(32 * (1 - math.comb(248, 8) / math.comb(256, 8)))
    # inside one domain a rank is its own node
    near = build(model, lk.Deployment(dp_attention=8, ep=8), hardware, efficiencies, profile)
    assert near.link_rows["mid"][0, 0, c.L_TOKEN_BYTES] == near.links[0].token_bytes
