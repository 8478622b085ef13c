"""Spans are sets of tokens."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recipe.audit.spans import NOTHING, sizes, union, without

SPAN = st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 5)).map(
    lambda s: (s[0], s[1], s[1] + s[2])
)
SPANS = st.lists(SPAN, max_size=6).map(lambda spans: np.array(spans, np.int64).reshape(-1, 3))


def tokens(spans) -> set[tuple[int, int]]:
    return {(document, token) for document, a, b in spans.tolist() for token in range(a, b)}


@given(one=SPANS, other=SPANS)
def test_union_and_difference_are_those_of_the_sets(one, other):
    both = union(one, other)
    assert tokens(both) == tokens(one) | tokens(other)
    assert tokens(without(both, other)) == tokens(one) - tokens(other)
    assert tokens(without(one, other)) == tokens(one) - tokens(other)


@given(spans=SPANS)
def test_a_union_is_in_order_and_its_spans_neither_touch_nor_are_empty(spans):
    found = union(spans).tolist()
    assert found == sorted(found) and all(a < b for _, a, b in found)
    assert all(d != e or b < c for (d, _, b), (e, c, _) in pairwise(found))
    documents, counted = sizes(union(spans))
    assert dict(zip(documents.tolist(), counted.tolist(), strict=True)) == {
        document: sum(d == document for d, _ in tokens(spans)) for document, _ in tokens(spans)
    }


def test_nothing_of_nothing_is_nothing():
    assert len(union(NOTHING)) == len(without(NOTHING, NOTHING)) == 0
