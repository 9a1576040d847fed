"""Experts in host memory: published rates from machines that run another model."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ledgerkit import text
from ledgerkit._accuracy.offloaded import SET, Host, fit_host, offloaded, offloaded_rows


@pytest.fixture(scope="module")
def rows():
    return offloaded_rows()


def test_bytes_and_layers_of_a_row(rows):
    by_model = {row.model: row for row in rows}
    deepseek = by_model["deepseek-v3"]
    # three matrices of 7168 x 2048 at 4.5 bits
    assert deepseek.expert_bytes == 3 * 7168 * 2048 * 4.5 / 8
    assert (deepseek.layers, deepseek.experts) == (58, 256)
    minimax = by_model["minimax-m2.7"]
    assert minimax.layers == 62
    assert minimax.expert_bytes == pytest.approx(3 * 3072 * 1536, rel=1e-3)
    assert {row.per_token for row in rows} == {6, 8}


def test_a_step_is_the_device_plus_the_host(rows):
    row, host = rows[0], Host(memory_share=0.5, layer_wait_s=1e-4)
    moved = 58 * 8 * row.expert_bytes
    crossing = 2 * 58 * 2 * 7168 / row.link_bytes_per_s
    assert row.step_s(host) == pytest.approx(
        row.device_s + moved / (0.5 * 614.4e9) + crossing + 58e-4
    )


def test_the_fit_finds_the_host_that_made_the_rates(rows):
    from dataclasses import replace

    host = Host(memory_share=0.37, layer_wait_s=2.5e-4)
    made = [replace(row, measured=1 / row.step_s(host), link_bytes_per_s=1e15) for row in rows]
    made = [replace(row, measured=1 / row.step_s(host)) for row in made]
    found = fit_host(made)
    assert found.memory_share == pytest.approx(0.37, rel=1e-6)
    assert found.layer_wait_s == pytest.approx(2.5e-4, rel=1e-6)


def test_rates_from_machines_of_the_other_model():
    figures = offloaded()
    ratios = np.array([one.seconds_ratio for one in figures])
    # the band of the page for points outside its table
    assert np.all(np.abs(np.log(ratios)) <= math.log(1.6))
    assert all(one.source and one.set == SET for one in figures)
    for language in ("zh", "en"):
        assert text.get(f"accuracy.why.{SET}", language)
