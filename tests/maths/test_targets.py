"""Shares from now on: what is spent and what is to come make the whole that was asked for."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.maths.targets import OutOfReachError, forward_shares

F = Fraction
WEIGHTS = st.lists(st.integers(0, 100), min_size=1, max_size=6).filter(any)


def shares(weights):
    return [F(weight, sum(weights)) for weight in weights]


@given(st.data(), WEIGHTS, st.fractions(F(1, 7), 10**13, max_denominator=100))
def test_spent_and_to_come_are_the_target_or_it_is_out_of_reach(data, weights, remaining):
    target = shares(weights)
    spent = data.draw(st.lists(st.integers(0, 10**13), min_size=len(target), max_size=len(target)))
    whole = sum(spent) + remaining
    try:
        forward = forward_shares(target, spent, remaining, target)
    except OutOfReachError as error:
        assert [pool.index for pool in error.pools] == [
            index
            for index, had in enumerate(spent)
            if had > target[index] * whole or whole * target[index] - had > remaining
        ]
        return
    assert sum(forward) == 1 and min(forward) >= 0
    assert [had + share * remaining for had, share in zip(spent, forward, strict=True)] == [
        share * whole for share in target
    ]


@given(st.data(), WEIGHTS)
def test_whoever_spent_as_the_target_says_goes_on_as_before(data, weights):
    times = data.draw(st.integers(0, 10**6))
    spent = [weight * times for weight in weights]
    assert forward_shares(shares(weights), spent, 123, shares(weights), F(1)) == shares(weights)


def test_nothing_spent_is_the_target_itself():
    assert forward_shares([F(1, 3), F(2, 3)], [0, 0], 10, [F(1, 2), F(1, 2)]) == [F(1, 3), F(2, 3)]


def test_a_pool_that_had_more_than_it_shall_have_is_told_with_the_numbers():
    """15 of 100 spent, 10 % of 120 asked for: 12. The least it can end with is 15/120."""
    with pytest.raises(OutOfReachError) as caught:
        forward_shares([F(1, 10), F(9, 10)], [15, 85], 20, [F(1, 10), F(9, 10)])
    over, under = caught.value.pools
    assert (over.index, over.target, over.spent, over.share, over.nearest) == (
        0,
        12,
        15,
        F(-3, 20),
        F(15, 120),
    )
    assert (under.index, under.share, under.most, under.nearest) == (1, F(23, 20), 1, F(105, 120))


def test_a_pool_that_would_rise_too_far_is_told_with_the_numbers():
    """10 of 100 at 10 %; 30 % of 200 asks for 50 of the next 100: five times the share it has."""
    with pytest.raises(OutOfReachError, match=r"10 of 60 and needs a share of 1/2, in 0\.\.1/5") as caught:
        forward_shares([F(3, 10), F(7, 10)], [10, 90], 100, [F(1, 10), F(9, 10)], F(2))
    (pool,) = caught.value.pools
    assert (pool.most, pool.nearest) == (F(1, 5), F(30, 200))
    assert forward_shares([F(3, 10), F(7, 10)], [10, 90], 100, [F(1, 10), F(9, 10)], F(5)) == [
        F(1, 2),
        F(1, 2),
    ]


def test_a_new_pool_is_measured_by_its_target():
    """5 % of 200 in the next 100: twice the target."""
    target, spent, current = [F(1, 20), F(19, 20)], [0, 100], [F(0), F(1)]
    assert forward_shares(target, spent, 100, current, F(2)) == [F(1, 10), F(9, 10)]
    with pytest.raises(OutOfReachError):
        forward_shares(target, spent, 100, current, F(199, 100))


@pytest.mark.parametrize(
    ("target", "spent", "remaining", "rise"),
    [
        ([F(1, 2)], [0], 1, None),
        ([F(1)], [0, 0], 1, None),
        ([F(2), F(-1)], [0, 0], 1, None),
        ([F(1)], [-1], 1, None),
        ([F(1)], [0], 0, None),
        ([F(1)], [0], 1, F(1, 2)),
    ],
)
def test_arguments_out_of_range_are_refused(target, spent, remaining, rise):
    with pytest.raises(ValueError, match=r"must be|remaining"):
        forward_shares(target, spent, remaining, target, rise)
