from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.maths.intervals import (
    beta_part,
    estimate,
    independent_difference,
    paired_difference,
    t_quantile,
)

VALUES = st.lists(st.fractions(-1000, 1000, max_denominator=1000), min_size=3, max_size=9)


@pytest.mark.parametrize(
    ("degrees", "table"),
    [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (9, 2.2622), (29, 2.0452), (120, 1.9799)],
)
def test_quantiles_are_those_of_the_printed_tables(degrees: int, table: float):
    assert round(t_quantile(0.95, degrees), 4) == table


@given(st.floats(0.01, 0.999))
def test_one_and_two_degrees_have_closed_forms(level: float):
    p = (1 + level) / 2
    assert t_quantile(level, 1) == pytest.approx(math.tan(math.pi * (p - 0.5)), rel=1e-9)
    assert t_quantile(level, 2) == pytest.approx(level * math.sqrt(1 / (2 * p * (1 - p))), rel=1e-9)


def test_very_many_degrees_are_the_normal_distribution():
    assert t_quantile(0.95, 1e7) == pytest.approx(1.959964, rel=1e-5)


@given(st.floats(0.01, 0.99), st.integers(1, 8), st.integers(1, 8))
def test_the_beta_function_of_whole_numbers_is_a_binomial_tail(x: float, a: int, b: int):
    n = a + b - 1
    tail = sum(math.comb(n, j) * x**j * (1 - x) ** (n - j) for j in range(a, n + 1))
    assert beta_part(x, a, b) == pytest.approx(tail, abs=1e-12)


@pytest.mark.parametrize(("level", "degrees"), [(0, 3), (1, 3), (0.95, 0), (0.95, math.nan)])
def test_arguments_out_of_range_are_refused(level: float, degrees: float):
    with pytest.raises(ValueError, match="are needed"):
        t_quantile(level, degrees)


def test_no_spread_is_known_below_three():
    for values in ([Fraction(1)], [Fraction(1), Fraction(9)]):
        made = estimate(values)
        assert (made.spread, made.half_width) == (None, None)
    assert (
        independent_difference([Fraction(1)] * 2, [Fraction(2), Fraction(3), Fraction(5)]).half_width is None
    )


def test_a_difference_of_decimals_is_exact():
    assert paired_difference([Fraction("2.11")], [Fraction("2.10")]).mean == Fraction("0.01")


def test_pairing_takes_out_what_both_share():
    """2.0, 2.4, 2.9 against the same plus 0.1: the seeds differ much, the pairs not at all."""
    base = [Fraction(text) for text in ("2.0", "2.4", "2.9")]
    other = [value + Fraction("0.1") for value in base]
    assert paired_difference(other, base).half_width == 0
    wide = independent_difference(other, base).half_width
    assert wide is not None
    assert wide > 0.5


@given(VALUES, st.randoms())
def test_equal_numbers_and_spreads_have_the_degrees_of_the_pooled_test(values: list[Fraction], dice):
    """Welch's degrees are 2(n - 1) then."""
    shuffled = dice.sample(values, len(values))
    made = independent_difference([value + 1 for value in shuffled], values)
    spread = estimate(values).spread
    assert spread is not None
    degrees = 2 * (len(values) - 1)
    wanted = t_quantile(0.95, degrees) * spread * math.sqrt(2 / len(values))
    assert made.mean == 1
    assert made.half_width == pytest.approx(wanted, rel=1e-6, abs=1e-12)


def test_what_no_float_holds_is_infinite():
    made = estimate([Fraction(10) ** 400, Fraction(0), Fraction(0)])
    assert made.spread == math.inf
