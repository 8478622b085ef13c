"""Windows that score: every token once, behind the longest left context."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.sequences.evaluation import cache_plan, count_windows, scored_windows


@st.composite
def rules(draw):
    window = draw(st.integers(1, 12))
    return {
        "window": window,
        "stride": draw(st.integers(1, window)),
        "offset": draw(st.integers(0, window - 1)),
    }


@given(st.integers(0, 60), rules())
def test_f7_every_token_is_scored_once_with_the_longest_left_context(num_tokens, rule):
    windows = scored_windows(num_tokens, **rule).tolist()
    scored = [token for _, stop, fresh in windows for token in range(fresh, stop)]
    assert scored == list(range(num_tokens))
    for start, stop, fresh in windows:
        assert 0 < stop - start <= rule["window"] and stop > fresh
        for token in range(fresh, stop):
            behind = [token - a for a, b, _ in windows if a <= token < b]
            assert token - start == max(behind)


@given(st.integers(0, 60), rules())
def test_windows_but_the_first_and_those_near_the_beginning_are_whole(num_tokens, rule):
    for start, stop, _ in scored_windows(num_tokens, **rule).tolist():
        assert start == 0 or stop - start == rule["window"]


@given(st.integers(0, 60), rules())
def test_the_number_of_windows_is_known_without_iterating(num_tokens, rule):
    first = rule["offset"] or rule["window"]
    assert count_windows(num_tokens, first, rule["stride"]) == len(scored_windows(num_tokens, **rule))


@given(st.integers(0, 60), rules())
def test_f7_a_cache_holds_what_a_window_does_not_compute(num_tokens, rule):
    plan = cache_plan(num_tokens, **rule)
    held: list[int] = []
    for start, stop, fresh, cached, offset in zip(*(part.tolist() for part in plan), strict=True):
        held = [token for token in held if token >= start]
        assert len(held) == cached and offset == fresh
        held += range(fresh, stop)
        assert held == list(range(start, stop)) and len(held) <= rule["window"]


@pytest.mark.parametrize(
    "wrong",
    [{"window": 0}, {"stride": 0}, {"stride": 5}, {"offset": 4}, {"offset": -1}, {"num_tokens": -1}],
)
def test_numbers_out_of_range_are_the_callers_fault(wrong):
    given_numbers = {"num_tokens": 10, "window": 4, "stride": 2, "offset": 0} | wrong
    with pytest.raises(ValueError, match="do not all hold"):
        scored_windows(**given_numbers)
