"""A kernel is one source in two tiers, which agree to the last bit."""

from __future__ import annotations

import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ledgerkit as lk
from ledgerkit import _amounts
from ledgerkit._refs import resolve
from ledgerkit.costs.table import build
from ledgerkit.kernels import step as kernels
from ledgerkit.spec.workpoint import WorkPoint
from tests.kernels.test_kernels import arrays, empty, tables

FRESH = """
import sys
import ledgerkit as lk
point = lk.ledger(
    "deepseek-v3", "h200-sxm-141gb", lk.Deployment(tp=8, max_num_batched_tokens={chunk}),
    lk.Workload(prompt_tokens={prompt}, output_tokens=128),
)
print(point.ttft_s.hex(), point.tpot_s.hex(), len(point.entries), "numba" in sys.modules)
"""


@settings(max_examples=200)
@given(table=tables, where=st.tuples(*(st.floats(1, 1e6) for _ in range(5)), st.integers(1, 9)))
def test_a_step_has_the_same_bits_in_both_tiers(table, where):
    rows = arrays(*table)
    compiled, plain = empty(*table[:2]), [one.tolist() for one in empty(*table[:2])]
    seconds = kernels.step(*rows, *map(float, where), *compiled)
    assert seconds == kernels.step.plain(*(r.tolist() for r in rows), *map(float, where), *plain)
    for mine, other in zip(compiled, plain, strict=True):
        assert mine.tolist() == other


@pytest.mark.parametrize("slug", lk.models()["slug"].to_list())
def test_a_point_has_the_same_bits_in_both_tiers(slug, monkeypatch):
    draw = random.Random(slug)
    layout = lk.Deployment(tp=draw.choice((1, 2, 4)), pp=draw.choice((1, 1, 2)))
    work = lk.Workload(
        prompt_tokens=draw.randrange(1, 4_000), output_tokens=draw.randrange(1, 90),
        concurrency=draw.randrange(1, 300),
    )  # fmt: skip
    model, hardware, _, profile, fractions = resolve(slug, "h200-sxm-141gb", layout)
    try:
        table = build(model, layout, hardware, fractions, profile)
    except lk.errors.LedgerError:  # heads or layers that do not divide
        layout = lk.Deployment()
        table = build(model, layout, hardware, fractions, profile)
    point = WorkPoint.of(layout, work)
    found = []
    for interpret in (True, False):
        monkeypatch.setattr(_amounts, "_interpret", lambda *_, which=interpret: which)
        totals = _amounts.run_totals(table, point)
        phases = [
            _amounts.run_phase(table, phase, point, edge, level)
            for phase in (0, 1)
            for edge in ("low", "mid", "high")
            for level in ("device", "once")
        ]
        found.append((totals, phases))
    (totals, phases), (others, other_phases) = found
    assert all((totals[edge] == others[edge]).all() for edge in totals)
    for mine, other in zip(phases, other_phases, strict=True):
        assert mine.seconds == other.seconds
        for name in ("ops", "links", "host"):
            assert np.array_equal(getattr(mine, name), getattr(other, name))


@pytest.mark.parametrize(("prompt", "chunk", "loads"), [(1024, 8192, False), (160_000, 64, True)])
def test_numba_is_loaded_when_it_pays(prompt, chunk, loads):
    """One point of a fresh process does without; a prompt of very many chunks does not."""
    code = FRESH.format(prompt=prompt, chunk=chunk)
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    ttft, tpot, entries, numba = done.stdout.split()
    assert numba == str(loads)
    here = lk.ledger(
        "deepseek-v3", "h200-sxm-141gb", lk.Deployment(tp=8, max_num_batched_tokens=chunk),
        lk.Workload(prompt_tokens=prompt, output_tokens=128),
    )  # fmt: skip
    assert [ttft, tpot, int(entries)] == [here.ttft_s.hex(), here.tpot_s.hex(), len(here.entries)]
