from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.maths.rounding import allotments, largest_remainder, owed, round_to_sum

PARTS = st.lists(st.integers(0, 10**6), min_size=1, max_size=8).filter(any)
D_PLAN = {"english": 616, "rewrites": 79, "chinese": 140, "web": 50, "code": 99, "maths": 15, "teacher": 1}


def by_hand(parts: list[int], total: int) -> list[int]:
    """Hamilton's method in fractions."""
    exact = [Fraction(part * total, sum(parts)) for part in parts]
    whole = [int(value // 1) for value in exact]
    order = sorted(range(len(parts)), key=lambda i: (whole[i] - exact[i], i))
    for i in order[: total - sum(whole)]:
        whole[i] += 1
    return whole


@settings(max_examples=100)
@given(PARTS, st.integers(0, 10**15))
def test_rounding_is_hamiltons(parts: list[int], total: int):
    assert largest_remainder(parts, sum(parts), total) == by_hand(parts, total)


@settings(max_examples=100)
@given(PARTS, st.lists(st.integers(0, 10**9), min_size=1, max_size=6))
def test_invariant_2_allotments_of_chunks_sum_to_each_chunk_and_to_the_whole(
    parts: list[int], sizes: list[int]
):
    at, sums = 0, [0] * len(parts)
    for size in sizes:
        chunk = allotments(parts, sum(parts), at, at + size)
        assert sum(chunk) == size
        sums = [a + b for a, b in zip(sums, chunk, strict=True)]
        at += size
    assert sums == owed(parts, sum(parts), at)


@settings(max_examples=100)
@given(st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=6), st.integers(1, 1000))
def test_debts_are_rounded_to_a_sum_of_zero(debts: list[int], denominator: int):
    debts = [*debts, -sum(debts)]
    rounded = round_to_sum(debts, denominator)
    assert sum(rounded) == 0
    assert all(abs(r - Fraction(d, denominator)) < 1 for r, d in zip(rounded, debts, strict=True))


def test_M01_what_is_left_over_goes_round_and_never_to_the_first_alone():
    assert largest_remainder([1] * 8, 8, 15) == [2, 2, 2, 2, 2, 2, 2, 1]
    assert [allotments([1, 1, 1], 3, a, a + 100) for a in (0, 100, 200)] == [
        [34, 33, 33],
        [33, 34, 33],
        [33, 33, 34],
    ]


def test_D1_a_chunk_of_ten_billion_is_allotted_in_whole_tokens():
    parts = list(D_PLAN.values())
    assert allotments(parts, 1000, 0, 10 * 10**9) == [
        6_160_000_000,
        790_000_000,
        1_400_000_000,
        500_000_000,
        990_000_000,
        150_000_000,
        10_000_000,
    ]


def test_a_pool_may_be_owed_one_less_where_its_share_of_a_chunk_is_below_one():
    chunks = [allotments([1, 3, 3], 7, n, n + 1) for n in range(7)]
    assert all(sum(chunk) == 1 for chunk in chunks)
    assert [sum(column) for column in zip(*chunks, strict=True)] == [1, 3, 3]
    assert min(min(chunk) for chunk in chunks) >= -1


@pytest.mark.parametrize("bad", [([1, 2], 4), ([-1, 2], 1), ([1], 0)])
def test_parts_that_are_no_shares_are_refused(bad: tuple[list[int], int]):
    with pytest.raises(ValueError, match="must be >= 0 and sum to"):
        largest_remainder(*bad, 10)


def test_fractions_that_do_not_sum_to_a_whole_are_refused():
    with pytest.raises(ValueError, match="whole number"):
        round_to_sum([1, 1], 3)
