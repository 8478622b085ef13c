"""Mixtures to try: grids are complete, draws are the same everywhere and follow their distribution."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.maths.mixtures import MIXTURE_GRAIN, dirichlet, grid_points, num_grid_points

SHARES = [Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)]


def test_a_grid_of_three_names_in_quarters():
    points = list(grid_points(3, 4))
    assert points[:3] == [(0, 0, 4), (0, 1, 3), (0, 2, 2)]
    assert len(set(points)) == len(points) == 15


@given(st.integers(1, 4), st.integers(0, 8), st.integers(0, 2))
def test_a_grid_has_every_point_once(num_names, parts, least):
    points = list(grid_points(num_names, parts, least))
    assert len(set(points)) == len(points) == num_grid_points(num_names, parts, least)
    assert all(sum(point) == parts and min(point) >= least for point in points)


def test_draws_are_the_same_on_every_machine():
    """E3: golden values; a change of them is a change of every screen drawn before."""
    draws = [dirichlet(SHARES, Fraction(4), 7, index) for index in range(3)]
    assert draws == [[346448, 651847, 1705], [549553, 388640, 61807], [307851, 596096, 96053]]


@given(st.lists(st.integers(0, 50), min_size=1, max_size=6).filter(any), st.integers(1, 10**4))
def test_a_draw_is_whole_and_sums_to_the_grain(weights, hundredths):
    centre = [Fraction(weight, sum(weights)) for weight in weights]
    drawn = dirichlet(centre, Fraction(hundredths, 100), 1, 0)
    assert sum(drawn) == MIXTURE_GRAIN
    assert all(part >= 0 and (share or not part) for part, share in zip(drawn, centre, strict=True))


def test_draws_have_the_centre_as_mean_and_spread_with_the_concentration():
    for concentration in (2, 50):
        drawn = [dirichlet(SHARES, Fraction(concentration), 3, index) for index in range(400)]
        for place, share in enumerate(SHARES):
            values = [draw[place] / MIXTURE_GRAIN for draw in drawn]
            mean = sum(values) / len(values)
            variance = sum((value - mean) ** 2 for value in values) / len(values)
            expected = float(share * (1 - share)) / (concentration + 1)
            assert abs(mean - share) < 4 * (expected / len(values)) ** 0.5
            assert 0.75 < variance / expected < 1.3


def test_a_tiny_concentration_gives_corners():
    drawn = [dirichlet(SHARES, Fraction(1, 10_000), 1, index) for index in range(20)]
    assert all(max(draw) == MIXTURE_GRAIN for draw in drawn)


def test_a_draw_depends_on_seed_and_number_only():
    assert dirichlet(SHARES, Fraction(4), 7, 1) == dirichlet(SHARES, Fraction(4), 7, 1)
    assert dirichlet(SHARES, Fraction(4), 7, 1) != dirichlet(SHARES, Fraction(4), 8, 1)
    assert dirichlet(SHARES, Fraction(4), 7, 1) != dirichlet(SHARES, Fraction(4), 8, 0)


@pytest.mark.parametrize(
    ("centre", "concentration", "seed", "index"),
    [
        ([Fraction(1, 2)], Fraction(1), 1, 0),
        ([Fraction(3, 2), Fraction(-1, 2)], Fraction(1), 1, 0),
        (SHARES, Fraction(0), 1, 0),
        (SHARES, Fraction("1e-300"), 1, 0),
        (SHARES, Fraction("1e999"), 1, 0),
        (SHARES, Fraction(1), -1, 0),
        (SHARES, Fraction(1), 1, -1),
    ],
)
def test_impossible_draws_are_refused(centre, concentration, seed, index):
    with pytest.raises(ValueError, match=r"a centre of|a concentration outside|seed"):
        dirichlet(centre, concentration, seed, index)
