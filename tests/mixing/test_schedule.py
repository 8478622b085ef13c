"""The compiled schedule equals the rule in plain integers and in fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.maths.deadlines import Race, drift_bound
from recipe.mixing.schedule import Queue, _is_less, fits_int64, schedule
from tests.mixing.reference import pick


def queue_of(blocks: list[list[int]]) -> Queue:
    sizes = [len(block) for block in blocks]
    begin = [0, *accumulate(sizes)][:-1]
    flat = [size for block in blocks for size in block]
    columns = (begin, [0] * len(blocks), sizes)
    return Queue(np.array(flat, np.int64), *(np.array(c, np.int64) for c in columns))


@st.composite
def legs(draw: st.DrawFn) -> tuple[Race, list[list[int]]]:
    parts = draw(st.lists(st.integers(0, 1000), min_size=1, max_size=6).filter(any))
    scale = draw(st.sampled_from([1, 10**9, 10**20]))
    context = draw(st.integers(1, 64))
    size = st.lists(st.integers(0, context), min_size=0, max_size=20)
    blocks = [draw(size) if part else [] for part in parts]
    shares = [Fraction(part * scale + (1 if p == 0 and part else 0)) for p, part in enumerate(parts)]
    total = sum(shares)
    return Race.from_shares([share / total for share in shares], context), blocks


@settings(max_examples=150)
@given(legs(), st.integers(0, 60))
def test_invariant_1_kernel_integers_and_fractions_agree(leg: tuple[Race, list[list[int]]], num: int):
    race, blocks = leg
    queue = queue_of(blocks)
    served, debts = schedule(race, [0] * len(blocks), queue, num)
    shares = [Fraction(part, race.denominator) for part in race.parts]
    spent, at, waiting = [0] * len(blocks), [0] * len(blocks), -1
    for i in range(num):
        pool = pick(shares, spent, race.context)
        if at[pool] == len(blocks[pool]):
            waiting = pool
            break
        assert (served.pools[i], served.indices[i]) == (pool, at[pool])
        spent[pool] += blocks[pool][at[pool]]
        at[pool] += 1
    assert (len(served.pools), served.counted, served.waiting) == (sum(at), sum(spent), waiting)
    assert queue.next.tolist() == at
    assert debts == [race.denominator * s - a * sum(spent) for s, a in zip(spent, race.parts, strict=True)]


def test_shares_beyond_64_bits_are_kept_exactly():
    race = Race.from_shares([Fraction(1, 3**40), 1 - Fraction(1, 3**40)], 2048)
    assert not fits_int64(race)
    served, debts = schedule(race, [0, 0], queue_of([[2048], [2048] * 50]), 50)
    assert served.pools.tolist() == [1] * 50
    assert debts == [-2048 * 50, 2048 * 50]


def test_the_largest_race_that_fits_64_bits_does_not_overflow():
    parts = (1, 2**39 - 3, 2**39 + 1)
    race = Race(parts, 2**40 - 1, 2**17 - 1)
    assert fits_int64(race)
    assert not fits_int64(Race(parts, 2**40 - 1, 2**17 + 1))
    served, debts = schedule(race, [0] * 3, queue_of([[], [2**17] * 300, [2**17] * 300]), 500)
    assert served.waiting == -1
    assert sum(debts) == 0
    assert max(map(abs, debts)) <= drift_bound(race) * race.denominator


def test_D2_quotas_count_tokens_and_never_documents():
    """Long English and short Chinese texts: equal shares are equal tokens, not equal draws."""
    race = Race.from_shares([Fraction(1, 2), Fraction(1, 2)], 10_000)
    served, debts = schedule(race, [0, 0], queue_of([[10_000] * 5, [100] * 500]), 404)
    assert np.bincount(served.pools).tolist() == [4, 400]
    assert debts == [0, 0]


def test_D3_sizes_that_vary_are_corrected_for():
    sizes = [[1, 9, 2, 8, 10, 3] * 30, [10] * 180]
    race = Race.from_shares([Fraction(1, 4), Fraction(3, 4)], 10)
    served, debts = schedule(race, [0, 0], queue_of(sizes), 200)
    spent = [sum(sizes[p][: int((served.pools == p).sum())]) for p in (0, 1)]
    assert abs(spent[0] - Fraction(sum(spent), 4)) <= 5
    assert debts == [4 * spent[0] - sum(spent), 4 * spent[1] - 3 * sum(spent)]


@given(
    st.integers(0, 2**62), st.integers(1, 2**62), st.integers(0, 2**62), st.integers(1, 2**62), st.booleans()
)
def test_fractions_are_compared_without_products(a: int, b: int, c: int, d: int, near: bool):
    if near:
        c, d = min(a + 1, 2**62), b
    assert _is_less(a, b, c, d) == (Fraction(a, b) < Fraction(c, d))
    assert not _is_less(a, b, a, b)
