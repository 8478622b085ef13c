from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.sequences.packing import best_fit, best_fit_reference
from tests.sequences.build import rule
from tests.sequences.reference import Piece, pack


def rows_of(numbers: list[int]) -> list[list[int]]:
    """Indices by row."""
    return [[i for i, row in enumerate(numbers) if row == r] for r in range(max(numbers, default=-1) + 1)]


@settings(max_examples=150)
@given(
    st.integers(1, 40).flatmap(
        lambda t: st.tuples(st.just(t), st.lists(st.tuples(st.integers(1, t), st.booleans())))
    )
)
def test_kernel_plain_words_and_the_rule_agree(drawn: tuple[int, list[tuple[int, bool]]]):
    context, given_pieces = drawn
    sizes, alone = [s for s, _ in given_pieces], [a for _, a in given_pieces]
    rows = best_fit(np.array(sizes, np.int64), np.array(alone, bool), context).tolist()
    assert rows == best_fit_reference(sizes, alone, context)
    pieces = [Piece(i, 0, size, 0, alone=own) for i, (size, own) in enumerate(given_pieces)]
    packed = [[piece.document for [piece] in row] for row in pack([[p] for p in pieces], rule(context))]
    assert rows_of(rows) == packed


def test_golden_packing():
    sizes, alone = np.array([3, 7, 5, 2, 2, 9, 1, 4]), np.array([False] * 7 + [True])
    assert best_fit(sizes, alone, 10).tolist() == [1, 1, 2, 2, 2, 0, 0, 3]


def test_C1_two_documents_apart_and_packed():
    sizes = np.array([4, 3])
    assert best_fit(sizes, np.zeros(2, bool), 8).tolist() == [0, 0]
    assert best_fit(sizes, np.ones(2, bool), 8).tolist() == [0, 1]


def test_P01_rows_of_ten_ten_and_three_and_one():
    assert rows_of(best_fit(np.array([10, 3, 10, 1]), np.zeros(4, bool), 10).tolist()) == [[0], [2], [1, 3]]


def test_every_row_but_what_the_rule_forbids_is_filled_on_long_tailed_lengths():
    rng = np.random.default_rng(0)
    sizes = np.minimum(rng.lognormal(6.4, 1.2, 20_000).astype(np.int64) + 1, 2048)
    rows = best_fit(sizes, np.zeros(len(sizes), bool), 2048)
    filled = np.bincount(rows, weights=sizes)
    assert filled.max() <= 2048
    assert 1 - filled.sum() / (2048 * len(filled)) < 0.001


def test_no_pieces_need_no_rows():
    assert best_fit(np.empty(0, np.int64), np.empty(0, bool), 8).tolist() == []
