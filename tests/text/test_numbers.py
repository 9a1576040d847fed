"""Amounts as they are printed."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.text import numbers

POWERS = {"": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


def parsed(shown: str, unit: str) -> float:
    number, _, tail = shown.rpartition(" ")
    return float(number.replace("−", "-")) * 10 ** POWERS[tail.removesuffix(unit)]


@given(st.floats(1, 9e20) | st.floats(-9e20, -1))
def test_si_keeps_three_digits(value):
    shown = numbers.si(value, "B")
    assert parsed(shown, "B") == pytest.approx(value, rel=0.0051)
    assert "e" not in shown
    assert "-" not in shown
    if abs(value) >= 1000:
        digits = re.sub(r"\D", "", shown.split(" ")[0])
        assert len(digits.lstrip("0")) == 3 or value > 9.9e20


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (999.4, "999 B"),
        (999.6, "1.00 kB"),
        (70272, "70.3 kB"),
        (4.82e9, "4.82 GB"),
        (999.7e9, "1.00 TB"),
        (1.33e12, "1.33 TB"),
        (-323e9, "−323 GB"),
    ],
)
def test_bytes(value, shown):
    assert numbers.byte_size(value) == shown


@pytest.mark.parametrize(
    ("tokens", "shown"),
    [
        (1, "1"),
        (1024, "1K"),
        (4070, "4.0K"),
        (8192, "8K"),
        (10200, "10K"),
        (68608, "67K"),
        (131072, "128K"),
        (1048576, "1M"),
        (262144, "256K"),
    ],
)
def test_contexts(tokens, shown):
    assert numbers.context(tokens) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0.0 ms"),
        (12e-6, "12 µs"),
        (0.0004, "0.4 ms"),
        (0.0299, "29.9 ms"),
        (0.09996, "100 ms"),
        (0.414, "414 ms"),
        (0.9994, "999 ms"),
        (1.0, "1.00 s"),
        (12.34, "12.3 s"),
        (4321.0, "4,321 s"),
    ],
)
def test_durations(seconds, shown):
    assert numbers.duration(seconds) == shown


def test_rates_counts_and_changes():
    assert numbers.rate(43.29) == "43 token/s"
    assert numbers.rate(1385.4) == "1,385 token/s"
    assert numbers.count(1191) == "1,191"
    assert numbers.change(0.0299, 0.0131, numbers.duration, "zh") == "29.9 → 13.1 ms（−56%）"
    assert numbers.change(0, 5e9, numbers.byte_size, "en") == "0 B → 5.00 GB"
    assert numbers.duration_band(0.02, 0.029, "zh") == "20 到 29 ms"
    assert numbers.duration_band(0.02, 0.029, "en") == "20 to 29 ms"
    assert numbers.gib(150.754820096e9) == "140.4 GiB"


amounts = st.lists(st.floats(0, 1e15, allow_subnormal=False), min_size=1, max_size=8)


@given(amounts)
def test_integer_shares_sum_to_a_hundred(values):
    shares = numbers.integer_shares(values)
    total = sum(values)
    assert sum(shares) == (100 if total > 0 else 0)
    for share, value in zip(shares, values, strict=True):
        if total > 0:
            assert abs(share - 100 * value / total) < max(1.0, 0.5 * len(values))


@given(amounts)
def test_share_texts_tell_a_trace_from_nothing(values):
    total = sum(values)
    for shown, value in zip(numbers.share_texts(values), values, strict=True):
        if value == 0:
            assert shown == "–"
        elif 100 * value / total < 0.5:
            assert shown == "<1"
        else:
            assert shown == "<1" or int(shown) >= 1


def test_equal_parts_round_in_a_fixed_order():
    assert numbers.integer_shares([1, 1, 1]) == [34, 33, 33]
