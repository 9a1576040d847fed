"""Quantiles against published tables, and against closed forms."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.loadtest._student import f_upper, incomplete_beta, t_quantile, t_two_sided

# two-sided 95 % and 99.9 % points of Student's t, as in every table
TABLE_95 = {1: 12.7062, 2: 4.3027, 3: 3.1824, 9: 2.2622, 30: 2.0423, 45: 2.0141, 120: 1.9799}
TABLE_999 = {1: 636.619, 5: 6.8688, 10: 4.5869, 60: 3.4602}
# upper 5 % points of F
F_TABLE = {(3, 12): 3.4903, (13, 32): 2.0469, (1, 10): 4.9646, (10, 10): 2.9782}


@pytest.mark.parametrize("dof", TABLE_95)
def test_the_95_percent_points_are_those_of_the_tables(dof):
    assert t_quantile(0.95, dof) == pytest.approx(TABLE_95[dof], abs=6e-5)


@pytest.mark.parametrize("dof", TABLE_999)
def test_the_999_points_are_those_of_the_tables(dof):
    assert t_quantile(0.999, dof) == pytest.approx(TABLE_999[dof], rel=1e-5)


@pytest.mark.parametrize("dofs", F_TABLE)
def test_f_tails_are_those_of_the_tables(dofs):
    assert f_upper(F_TABLE[dofs], *dofs) == pytest.approx(0.05, abs=2e-3)


def test_one_degree_of_freedom_is_cauchy():
    for t in (0.1, 1.0, 3.0, 50.0):
        assert t_two_sided(t, 1) == pytest.approx(1 - 2 * math.atan(t) / math.pi, rel=1e-12)


def test_two_degrees_of_freedom_have_a_closed_form():
    for t in (0.1, 1.0, 3.0, 50.0):
        assert t_two_sided(t, 2) == pytest.approx(1 - t / math.sqrt(2 + t * t), rel=1e-10)


@given(st.integers(1, 30), st.integers(1, 30), st.floats(0.001, 0.999))
def test_whole_shapes_are_binomial_tails(a, b, x):
    n = a + b - 1
    tail = math.fsum(math.comb(n, k) * x**k * (1 - x) ** (n - k) for k in range(a, n + 1))
    assert incomplete_beta(a, b, x) == pytest.approx(tail, rel=1e-9, abs=1e-14)


@given(st.floats(0.01, 0.9999), st.floats(1, 400))
def test_the_quantile_undoes_the_tail(level, dof):
    assert t_two_sided(t_quantile(level, dof), dof) == pytest.approx(1 - level, rel=1e-8)
