"""A series says what it can: sensitive, flat, an outlier; never which ledger."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerkit.errors import LoadTestError
from ledgerkit.loadtest import diagnose_series

CONTEXTS = [1024, 8192, 32768, 131072]
MANY = [1, 2, 4, 8, 16, 32]


@settings(max_examples=60)
@given(st.floats(0.001, 1.0), st.floats(0.0, 0.95))
def test_the_share_of_an_affine_series_is_recovered(base, share):
    slope = base * share / (1 - share) / CONTEXTS[-1]
    times = [base + slope * c for c in CONTEXTS]
    found = diagnose_series(CONTEXTS, times, axis="context")
    assert found.sensitivity.value == pytest.approx(share, abs=1e-6)
    assert found.growth == pytest.approx(times[-1] / times[0])
    if share > 0.21:
        assert found.verdict == "context_sensitive"
    elif share < 0.19:
        assert found.verdict == "flat"


@settings(max_examples=60)
@given(st.floats(0.0, 1.0), st.floats(1.0, 1000.0))
def test_the_elasticity_of_a_power_law_is_recovered(power, rate):
    total = [rate * b**power for b in MANY]
    found = diagnose_series(MANY, total, axis="concurrency", measure="tokens_per_s")
    assert found.sensitivity.value == pytest.approx(power, abs=1e-9)
    if power > 0.21:
        assert found.verdict == "concurrency_sensitive"
    elif power < 0.19:
        assert found.verdict == "flat"


def test_measures_of_the_same_thing_agree():
    steps = [0.01 + 1e-7 * c for c in CONTEXTS]
    a = diagnose_series(CONTEXTS, steps, axis="context")
    b = diagnose_series(CONTEXTS, [1 / t for t in steps], axis="context",
                        measure="tokens_per_s_one")  # fmt: skip
    c = diagnose_series(CONTEXTS, [4 / t for t in steps], axis="context", measure="tokens_per_s",
                        concurrency=4)  # fmt: skip
    assert a.sensitivity.value == pytest.approx(b.sensitivity.value)
    np.testing.assert_allclose(a.points, c.points)


@settings(max_examples=40)
@given(st.integers(1, 4), st.floats(1.6, 5.0), st.integers(0, 10**6))
def test_a_spike_is_named_wherever_it_is(place, factor, seed):
    noise = 1 + 0.02 * np.random.default_rng(seed).standard_normal(len(MANY))
    steps = np.array([0.004 + 0.0001 * b for b in MANY]) * noise
    steps[place] *= factor
    found = diagnose_series(MANY, steps.tolist(), axis="concurrency")
    assert found.verdict == "outlier"
    assert found.outliers == (MANY[place],)
    assert found.without_outliers == "concurrency_sensitive"


def test_noise_is_not_an_outlier():
    random = np.random.default_rng(1)
    for _ in range(300):
        steps = [(0.004 + 0.0001 * b) * (1 + 0.05 * random.standard_normal()) for b in MANY]
        assert diagnose_series(MANY, steps, axis="concurrency").verdict != "outlier"


def test_noisy_series_do_not_decide():
    found = diagnose_series([1024, 8192, 32768], [0.010, 0.013, 0.012], axis="context")
    assert found.verdict == "undetermined"


def test_two_places_are_too_few_and_a_steep_rise_is_noted():
    found = diagnose_series([10240, 49152], [1 / 45, 1 / 6.5], axis="context")
    assert found.verdict == "undetermined"
    assert {finding.key for finding in found.findings} == {
        "two_points", "steeper_than_proportional"
    }  # fmt: skip


@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_series_never_names_a_ledger(language):
    found = diagnose_series(CONTEXTS, [1, 2, 5, 17], axis="context")
    text = found.text(language)
    assert "Attention" not in text
    assert ("另一组" if language == "zh" else "other one") in text


@pytest.mark.parametrize(
    ("x", "y", "options"),
    [
        ([1, 2], [1, 2], {"axis": "tp"}),
        ([1, 2], [1, 2], {"axis": "context", "measure": "speed"}),
        ([1, 2], [1, 2], {"axis": "concurrency", "measure": "ttft_s"}),
        ([1], [1], {"axis": "context"}),
        ([1, 2], [1, 0], {"axis": "context"}),
        ([1, 2], [1, float("nan")], {"axis": "context"}),
        ([1, 1], [1, 2], {"axis": "context"}),
        ([0, 2], [1, 2], {"axis": "concurrency"}),
        ([1, 2, 3], [1, 2], {"axis": "context"}),
    ],
)
def test_what_is_no_series(x, y, options):
    with pytest.raises(LoadTestError):
        diagnose_series(x, y, **options)
