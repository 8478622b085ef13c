from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.maths.deadlines import Race, choose, drift_bound, serve
from tests.mixing.reference import pick


@st.composite
def races(draw: st.DrawFn) -> tuple[list[Fraction], int]:
    parts = draw(st.lists(st.integers(0, 1000), min_size=1, max_size=7).filter(any))
    return [Fraction(part, sum(parts)) for part in parts], draw(st.integers(1, 64))


@settings(max_examples=60)
@given(races(), st.lists(st.integers(0, 64), min_size=1, max_size=80))
def test_invariant_1_every_pool_stays_within_the_bound_at_every_prefix(
    drawn: tuple[list[Fraction], int], sizes: list[int]
):
    shares, context = drawn
    race, debts, spent = Race.from_shares(shares, context), [0] * len(shares), [0] * len(shares)
    bound = drift_bound(race)
    assert bound < context
    for size in sizes:
        pool = choose(race, debts)
        assert pool == pick(shares, spent, context)
        debts = serve(race, debts, pool, min(size, context))
        spent[pool] += min(size, context)
        drift = [spent[p] - shares[p] * sum(spent) for p in range(len(shares))]
        assert [Fraction(d, race.denominator) for d in debts] == drift
        assert max(map(abs, drift)) <= bound


def picks(shares: list[Fraction], context: int, sizes: list[int]) -> list[int]:
    race, debts, out = Race.from_shares(shares, context), [0] * len(shares), []
    for size in sizes:
        out.append(choose(race, debts))
        debts = serve(race, debts, out[-1], size)
    return out


def test_golden_schedules():
    fifths = [Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)]
    assert picks(fifths, 10, [10] * 12) == [0, 1, 0, 2, 0, 1, 0, 2, 1, 0, 0, 1]
    uneven = [Fraction(77, 125), Fraction(48, 125)]
    assert picks(uneven, 8, [8, 3, 8, 1, 7, 8, 8, 2, 5, 8]) == [0, 1, 1, 0, 0, 0, 1, 0, 0, 0]


def test_M03_a_tiny_pool_waits_for_its_turn():
    tiny = [Fraction(1, 1000), Fraction(999, 1000)]
    assert picks(tiny, 8, [8] * 10) == [1] * 10
    order = picks(tiny, 8, [8] * 1000)
    assert order.count(0) == 1
    assert order.index(0) == 499


def test_ties_go_by_the_order_of_the_pools():
    assert picks([Fraction(1, 4)] * 4, 8, [8] * 8) == [0, 1, 2, 3, 0, 1, 2, 3]


def test_one_pool_is_always_chosen_and_has_no_drift():
    race = Race.from_shares([Fraction(0), Fraction(1)], 8)
    assert drift_bound(race) == 0
    assert choose(race, [0, 0]) == 1


def test_a_pool_with_share_zero_changes_nothing():
    with_zero = picks([Fraction(1, 3), Fraction(0), Fraction(2, 3)], 5, [5, 2, 4, 5, 1, 5])
    without = picks([Fraction(1, 3), Fraction(2, 3)], 5, [5, 2, 4, 5, 1, 5])
    assert with_zero == [{0: 0, 1: 2}[p] for p in without]


def test_sequences_of_no_tokens_do_not_stop_the_race():
    assert picks([Fraction(1, 2), Fraction(1, 2)], 4, [0] * 5) == [0] * 5


def test_when_a_pool_leaves_the_others_keep_their_proportions():
    race = Race.from_shares([Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)], 8).without(0)
    assert [Fraction(part, race.denominator) for part in race.parts] == [0, Fraction(3, 5), Fraction(2, 5)]
    with pytest.raises(ValueError, match="no pool with a share above zero"):
        race.without(1).without(2)


@pytest.mark.parametrize("bad", [[Fraction(1, 2)], [Fraction(3, 2), Fraction(-1, 2)]])
def test_shares_that_do_not_sum_to_one_are_refused(bad: list[Fraction]):
    with pytest.raises(ValueError, match="sum to 1"):
        Race.from_shares(bad, 8)
