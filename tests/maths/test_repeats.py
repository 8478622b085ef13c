"""Stretches that stand earlier in their unit, against a plain reference."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.maths.repeats import find_repeats
from tests.sequences.reference import repeated_tokens

Body = list[int]


def found(units: list[list[Body]], size: int) -> list[tuple[int, int, int]]:
    """(document, first, stop) of every span, in tokens of the document."""
    documents = [body for unit in units for body in unit]
    tokens = np.array([token for body in documents for token in [*body, 9]], np.uint16)
    starts = np.cumsum([0, *(len(body) + 1 for body in documents)])[:-1]
    bodies = np.column_stack([starts, starts + [len(body) for body in documents]]).astype(np.int64)
    edges = np.cumsum([0, *(len(unit) for unit in units)])
    spans = find_repeats(tokens, bodies.reshape(-1, 2), edges, size)
    assert all(one[1] <= two[0] for one, two in pairwise(spans.tolist()))
    owners = np.searchsorted(starts, spans[:, 0], side="right") - 1
    shifted = spans - starts[owners][:, None] if len(spans) else spans
    return [(d, a, b) for d, (a, b) in zip(owners.tolist(), shifted.tolist(), strict=True)]


@settings(max_examples=300)
@given(
    st.lists(st.lists(st.lists(st.integers(0, 2), max_size=14), min_size=1, max_size=3), max_size=4),
    st.integers(1, 6),
)
def test_spans_are_the_tokens_of_stretches_seen_before(units: list[list[Body]], size: int):
    spans = found(units, size)
    assert {(d, token) for d, a, b in spans for token in range(a, b)} == repeated_tokens(units, size)


def test_A12_a_stretch_counts_only_where_it_is_whole_and_in_its_unit():
    first, second = [1, 2, 3, 4, 5, 6], [7, 2, 3, 4, 5, 8, 5, 6]
    assert found([[first, second]], 4) == [(1, 1, 5)]
    assert found([[first, second]], 5) == []
    assert found([[first], [second]], 4) == []


def test_what_runs_on_across_two_documents_is_no_stretch():
    assert found([[[1, 2], [3, 4], [1, 2, 3, 4]]], 3) == []


def test_a_pattern_repeats_itself_from_its_second_round_on():
    assert found([[[1, 2] * 5]], 4) == [(0, 2, 10)]


def test_stretches_have_a_token():
    with pytest.raises(ValueError, match="at least 1"):
        find_repeats(np.empty(0, np.uint16), np.empty((0, 2), np.int64), np.zeros(1, np.int64), 0)
