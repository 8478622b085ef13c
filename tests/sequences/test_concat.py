"""Joined documents: fact A5, A6, and the law against a plain reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.config import Rule
from recipe.sequences.concat import Joining, count_examples, join_runs
from recipe.sequences.pieces import AHEAD, whole
from tests.sequences.build import marked, measured, rule, rules, texts
from tests.sequences.reference import Doc, Opened, join


def joined(docs: list[Doc], drawn: Rule) -> tuple[list[list[tuple[int, ...]]], int]:
    """Rows of (document, start, stop, fresh, bos, eos), and body tokens left out."""
    joining = Joining(drawn.context, drawn.stride, drawn.tail == "keep", False)
    pieces, row_of, left = join_runs(measured(docs), whole(measured(docs)), joining)
    rows: list[list[tuple[int, ...]]] = [[] for _ in range(int(row_of.max(initial=-1)) + 1)]
    for i, row in enumerate(row_of.tolist()):
        assert not pieces.flags[i] & AHEAD
        span = (pieces.document[i], pieces.start[i], pieces.stop[i], pieces.fresh[i])
        rows[row].append((*map(int, span), *marked(int(pieces.flags[i]))))
    return rows, left


@settings(max_examples=80)
@given(texts(), rules(methods=("concat",)))
def test_rows_are_those_of_the_rules_in_words(docs: list[Doc], drawn: Rule):
    rows, left = joined(docs, drawn)
    out = Opened([])
    runs = [(i, 0, len(doc.tokens)) for i, doc in enumerate(docs) if doc.tokens]
    join(docs, runs, drawn, drawn.tail == "keep", out)
    assert left == out.dropped.get("tail", 0)
    assert len(rows) == len(out.rows)
    for row, right in zip(rows, out.rows, strict=True):
        cells = [cell for segment in right.segments for cell in segment]
        assert sum(stop - start + bos + eos for _, start, stop, _, bos, eos in row) == len(cells)
        got = []
        for document, start, stop, fresh, bos, eos in row:
            got += (
                [(document, -1)] * bos
                + [(document, j) for j in range(start, stop)]
                + [(document, stop)] * eos
            )
            mine = [cell for cell in cells if cell.document == document and start <= cell.place < stop]
            assert [cell.place for cell in mine if cell.new] == [*range(fresh, stop)]
        assert got == [(cell.document, cell.place) for cell in cells]


@settings(max_examples=80)
@given(texts(), st.integers(2, 12), st.data())
def test_A5_the_number_of_examples_is_known_without_iterating(
    docs: list[Doc], context: int, data: st.DataObject
):
    stride = data.draw(st.integers(1, context))
    rows, _ = joined(docs, rule(context, stride=stride, method="concat", tail="drop"))
    num_ids = sum(len(d.tokens) + (d.bos is not None) + (d.eos is not None) for d in docs if d.tokens)
    examples = max(0, 1 + (num_ids - (context + 1)) // stride)
    assert len(rows) == examples == count_examples(num_ids, context, stride)


def test_A6_half_the_stride_gives_about_twice_as_many_and_stride_one_about_context_times_as_many():
    assert [count_examples(100_001, 100, s) for s in (100, 50, 1)] == [1000, 1999, 99_901]


@pytest.mark.parametrize(("n", "examples"), [(0, 0), (99, 0), (100, 0), (101, 1), (1001, 10)])
def test_D06_E06_an_example_reads_one_id_more_than_the_context(n: int, examples: int):
    assert count_examples(n, 100, 100) == examples


def test_N05_examples_beyond_31_bits_are_counted_at_once():
    assert count_examples(3_000_000_000, 1000, 1000) == 2_999_999


def test_keep_adds_one_short_row_and_drop_counts_it():
    docs = [Doc(list(range(5)), eos=1), Doc(list(range(7)), eos=1)]
    kept, left = joined(docs, rule(4, method="concat"))
    assert [sum(p[2] - p[1] + p[4] + p[5] for p in row) for row in kept] == [4, 4, 4, 2]
    assert left == 0
    short, lost = joined(docs, rule(4, method="concat", tail="drop"))
    assert (short, lost) == (kept[:3], 1)


def test_a_stream_shorter_than_a_row_is_kept_as_one_short_row():
    assert joined([Doc([7, 8])], rule(9, method="concat")) == ([[(0, 0, 2, 0, False, False)]], 0)
    assert joined([Doc([7, 8])], rule(9, method="concat", tail="drop")) == ([], 2)


def test_a_whole_stream_of_many_documents_is_walked_in_order():
    docs = [Doc(list(range(n)), eos=1) for n in (3, 1, 4, 1, 5, 9, 2, 6)]
    rows, _ = joined(docs, rule(5, method="concat"))
    flat = [(d, j) for row in rows for d, a, b, _, _, _ in row for j in range(a, b)]
    assert flat == [(d, j) for d, doc in enumerate(docs) for j in range(len(doc.tokens))]
    assert np.all([len(row) >= 1 for row in rows])
