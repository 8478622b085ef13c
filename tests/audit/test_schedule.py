"""The audit's own schedule: the rule of the stream, by other code."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.audit.schedule import Contest, Ready, draw, drawn_next
from recipe.maths.deadlines import Race, choose, drift_bound, serve

parts_of = st.lists(st.integers(0, 50), min_size=1, max_size=6).filter(any)


def ready_of(sizes: list[list[int]]) -> Ready:
    ends = np.cumsum([len(row) for row in sizes]).astype(np.int64)
    counted = np.array([size for row in sizes for size in row], np.int64)
    return Ready(counted, ends - [len(row) for row in sizes], ends)


@given(parts=parts_of, context=st.integers(1, 40), data=st.data())
def test_invariant_1_both_forms_choose_as_the_rule_and_stay_within_the_bound(parts, context, data):
    race, contest = Race(tuple(parts), sum(parts), context), Contest(tuple(parts), context)
    debts = [0] * len(parts)
    for _ in range(60):
        pool = choose(race, debts)
        assert drawn_next(contest, debts) == pool
        debts = serve(race, debts, pool, data.draw(st.integers(0, context)))
        assert all(abs(Fraction(debt, race.denominator)) <= drift_bound(race) for debt in debts)
        assert all(contest.within_bound(debt) for debt in debts)


@given(parts=parts_of, data=st.data(), scale=st.sampled_from([1, 10**9 + 7, 10**17]))
def test_the_compiled_form_and_plain_integers_agree(parts, data, scale):
    """Also for denominators beyond 2**31, and where 64 bits end and only plain integers are left."""
    context = 16
    sizes = [data.draw(st.lists(st.integers(0, context), min_size=5, max_size=40)) for _ in parts]
    contest = Contest(tuple(part * scale + (part > 0) for part in parts), context)
    ready = ready_of(sizes)
    drawn = draw(contest, [0] * len(parts), ready, 30)
    excess, counted, number, at = [0] * len(parts), 0, 0, [0] * len(parts)
    waiting = -1
    while number < 30:
        pool = drawn_next(contest, excess)
        if at[pool] == len(sizes[pool]):
            waiting = pool
            break
        tokens = sizes[pool][at[pool]]
        at[pool] += 1
        excess = [e - part * tokens for e, part in zip(excess, contest.parts, strict=True)]
        excess[pool] += contest.whole * tokens
        counted, number = counted + tokens, number + 1
    assert (drawn.excess, drawn.sequences, drawn.counted, drawn.waiting) == (excess, number, counted, waiting)
    begins = ready.stop - [len(row) for row in sizes]
    assert (ready.at - begins).tolist() == at


def test_the_furthest_distance_is_that_after_any_sequence():
    drawn = draw(Contest((1, 1), 8), [0, 0], ready_of([[8, 8], [8, 8]]), 4)
    assert drawn.excess == [0, 0] and drawn.furthest == [8, 8]


def test_a_pool_without_a_ready_sequence_stops_the_drawing_before_its_choice_counts():
    drawn = draw(Contest((1, 1), 8), [0, 0], ready_of([[8], []]), 4)
    assert (drawn.sequences, drawn.waiting, drawn.excess) == (1, 1, [8, -8])


def test_a_state_that_the_rule_never_reaches_is_refused():
    with pytest.raises(ValueError, match="no pool may be drawn"):
        draw(Contest((1, 1), 8), [1000, 1000], ready_of([[8], [8]]), 2)


def test_shares_when_a_pool_leaves_keep_their_proportions():
    assert Contest((5, 3, 2), 8).leave(0) == Contest((0, 3, 2), 8)
