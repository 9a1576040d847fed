"""Totals, entries and expressions of random deployments agree."""

from __future__ import annotations

import math
from itertools import chain

import numpy as np
import pytest

from ledgerkit.costs.table import EDGES
from ledgerkit.kernels import step as kernels
from ledgerkit.spec.axes import ACCOUNTS, PHASES, UNITS
from ledgerkit.spec.workpoint import WorkPoint
from tests.costs import world
from tests.ledger.random_points import catalogued, of_every_kind

DEPLOYMENTS = 200


@pytest.fixture(scope="module")
def points():
    return [*catalogued(DEPLOYMENTS, seed=2), *of_every_kind(104, seed=3)]


def test_totals_are_the_sums_of_the_entries(points):
    for books in points:
        for phase in PHASES:
            for resource in UNITS:
                entries = [e for e in books._entries if (e.phase, e.resource) == (phase, resource)]
                exact = math.fsum(e.amount_device for e in entries)
                total = books.total(phase, resource)
                assert abs(total - exact) <= 4 * math.ulp(exact), (books, phase, resource)
                for name, value in books.by_ledger(phase, resource).items():
                    part = math.fsum(e.amount_device for e in entries if e.ledger == name)
                    assert abs(value - part) <= 4 * math.ulp(part), (books, phase, resource, name)


def test_every_expression_gives_its_amount(points):
    checked = 0
    for books in points:
        for entry in books._entries:
            from ledgerkit._ledger import explain_entry

            explanation = explain_entry(entry)
            value = explanation.evaluate()
            assert value == pytest.approx(entry.amount_device, rel=1e-9, abs=1e-300), (
                books, entry.op, entry.phase, explanation,
            )  # fmt: skip
            # nothing stands in the expression that has no value, and no value without a use
            assert all(name in explanation.expression for name in explanation.values)
            checked += 1
    assert checked > 100 * DEPLOYMENTS


def test_entries_are_well_formed(points):
    for books in points:
        for entry in books._entries:
            assert entry.account in ACCOUNTS[entry.ledger]
            assert entry.source
            for value in (entry.amount_device, entry.low, entry.high, entry.amount_replica or 0.0):
                assert math.isfinite(value)
                assert value >= 0
            assert entry.low <= entry.amount_device * (1 + 1e-12)
            assert entry.high >= entry.amount_device * (1 - 1e-12)
            if entry.resource in ("time", "steps"):
                assert entry.amount_replica is None
            else:
                assert entry.amount_replica is not None
            if entry.resource == "time":
                assert entry.basis != "exact"


def test_seconds_are_ttft_and_tpot(points):
    for books in points:
        assert books.ttft_s == pytest.approx(books.total("prefill", "time"), rel=1e-15)
        assert books.tpot_s == pytest.approx(books.total("decode", "time"), rel=1e-15)
        assert books.ttft_s_low <= books.ttft_s <= books.ttft_s_high
        assert books.tpot_s_low <= books.tpot_s <= books.tpot_s_high
        steps = books.workload.output_tokens - 1
        assert books.e2e_s == pytest.approx(books.ttft_s + steps * books.tpot_s, rel=1e-15)
        assert math.fsum(books.share().values()) == pytest.approx(1, rel=1e-12)


def test_resident_bytes_are_those_of_the_entries(points):
    for books in points:
        held = math.fsum(e.amount_device for e in books.resident_entries())
        assert books.resident_bytes_device == pytest.approx(held, rel=1e-14)
        assert books.free_bytes == books.capacity_bytes - books.resident_bytes_device
        low, high = (math.fsum(getattr(e, end) for e in books.resident_entries())
                     for end in ("low", "high"))  # fmt: skip
        expected = "uncertain"
        if high <= books.capacity_bytes:
            expected = "yes"
        elif low > books.capacity_bytes:
            expected = "no"
        assert books.fits == expected


def test_the_frame_holds_the_entries():
    for books in chain(catalogued(3, seed=5), of_every_kind(3, seed=5)):
        frame = books.entries
        assert frame.columns == [
            "phase", "ledger", "account", "op", "resource", "link", "amount_device",
            "amount_replica", "low", "high", "unit", "basis", "expression", "source",
        ]  # fmt: skip
        assert frame.height == len(books._entries)
        for row, entry in zip(frame.iter_rows(named=True), books._entries, strict=True):
            assert row["amount_device"] == entry.amount_device
            assert row["amount_replica"] == entry.amount_replica
            assert row["unit"] == UNITS[entry.resource]
            assert row["expression"] == entry.formula.expression
            assert (row["phase"], row["ledger"], row["account"]) == (
                entry.phase, entry.ledger, entry.account,
            )  # fmt: skip


def test_a_sweep_of_many_points_is_every_point_bit_for_bit():
    model = world.model(world.DEEPSEEK_V3)
    books = [
        world.books_of(
            model, world.Deployment(tp=4, pp=2), prompt_tokens=prompt, output_tokens=output,
            concurrency=concurrency, cached_tokens=prompt // 3,
        )
        for prompt in (1, 100, 9000, 40_000)
        for output in (1, 2, 1000)
        for concurrency in (1, 3, 64, 2000)
    ]  # fmt: skip
    table = books[0]._table
    points = [WorkPoint.of(table.deployment, one.workload) for one in books]
    columns = [
        np.array([getattr(point, name) for point in points], dtype=np.float64)
        for name in ("prompt_tokens", "cached_tokens", "context", "sequences", "group_tokens",
                     "micro_batches")
    ]  # fmt: skip
    chunk = np.full(len(points), float(table.chunk_tokens))
    for edge in EDGES:
        out = np.empty((len(points), 2, 3, 5))
        kernels.totals(
            table.ops[edge], table.link_rows[edge], table.scalars[edge], table.op_ledger, *columns,
            chunk, out,
        )  # fmt: skip
        for row, one in zip(out, books, strict=True):
            assert (row == one._totals[edge]).all()
