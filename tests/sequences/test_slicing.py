"""Windows over documents: facts A and B, and the law against a plain reference."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.config import Rule
from recipe.sequences.pieces import ALONE, REASONS, Documents, Pieces
from recipe.sequences.slicing import count_pieces, heads_of, slice_runs
from tests.sequences.build import (
    OFFSETS,
    choices,
    cut,
    cutting,
    dropped,
    marked,
    measured,
    reading,
    rule,
    rules,
    spans,
    texts,
)
from tests.sequences.reference import Doc, Opened, slice_document


def columns(pieces: Pieces) -> list[tuple[int, int, int, int]]:
    """(document, start, stop, fresh) of every piece."""
    return list(zip(*(column.tolist() for column in pieces[:4]), strict=True))


@settings(max_examples=300)
@given(texts(), rules(), st.sampled_from(["int64", "uint16"]))
def test_pieces_are_those_of_the_rules_in_words(docs: list[Doc], drawn: Rule, kind: str):
    sliced = cut(docs, drawn, kind)
    out, right = Opened([]), []
    for number, doc in enumerate(docs):
        right += slice_document(number, doc, drawn, out, None, choices(docs, drawn))
    flags = [(*marked(flag), bool(flag & ALONE)) for flag in sliced.pieces.flags.tolist()]
    assert columns(sliced.pieces) == [(p.document, p.start, p.stop, p.fresh) for p in right]
    assert flags == [(p.bos, p.eos, p.alone) for p in right]
    assert {r: n for r, n in zip(REASONS, sliced.dropped.tolist(), strict=True) if n} == out.dropped
    assert sliced.aligned.tolist() == out.aligned


@settings(max_examples=150)
@given(texts(), rules())
def test_A10_fresh_spans_joined_are_the_document_less_what_was_dropped(docs: list[Doc], drawn: Rule):
    pieces, lost = cut(docs, drawn)[:2]
    for number, doc in enumerate(docs):
        mine = np.flatnonzero(pieces.document == number)
        served = [j for i in mine for j in range(pieces.fresh[i], pieces.stop[i])]
        assert served == sorted(set(served))
        if drawn.density is None and drawn.duplicates is None:
            assert served == list(range(len(served)))
        if not any(lost):
            assert len(served) == len(doc.tokens)
    fresh = int((pieces.stop - pieces.fresh).sum())
    assert fresh + sum(lost.tolist()) == sum(len(doc.tokens) for doc in docs)


@settings(max_examples=200)
@given(st.integers(0, 400), rules(), st.booleans())
def test_A11_the_number_of_pieces_follows_without_iterating(n: int, drawn: Rule, bos: bool):
    drawn = replace(drawn, align="none", density=None, duplicates=None)
    docs = [Doc(list(range(n)), 2 if bos else None)]
    head = int(heads_of(measured(docs), np.zeros(1, np.int64), cutting(drawn), OFFSETS)[0])
    head = head if drawn.random_offset else 0
    assert count_pieces(n, cutting(drawn), bos=bos, head=head) == len(cut(docs, drawn).pieces.start)


@settings(max_examples=150)
@given(texts(), rules(), st.data())
def test_runs_left_over_are_cut_by_the_new_rule_and_their_ends_are_kept(
    docs: list[Doc], drawn: Rule, data: st.DataObject
):
    runs, right, out = [], [], Opened([])
    for number, doc in enumerate(docs):
        if doc.tokens:
            a = data.draw(st.integers(0, len(doc.tokens) - 1))
            runs.append((number, a, data.draw(st.integers(a + 1, len(doc.tokens)))))
            right += slice_document(number, doc, drawn, out, runs[-1][1:], choices(docs, drawn))
    given = np.array(runs, np.int64).reshape(-1, 3)
    pieces, lost, aligned, _ = slice_runs(measured(docs), given, cutting(drawn), reading(docs, drawn))
    assert columns(pieces) == [(p.document, p.start, p.stop, p.fresh) for p in right]
    assert int((pieces.stop - pieces.fresh).sum()) == sum(b - a for _, a, b in runs)
    assert (sum(lost), aligned.tolist()) == (0, out.aligned)


def test_A1_three_windows_over_2048():
    assert [s[0] for s in spans(2048, rule(1024, stride=512))] == [0, 512, 1024]


def test_A2_the_tail_is_what_no_full_window_holds():
    assert spans(2048, rule(1024, stride=600, tail="drop")) == [(0, 1024, 0), (600, 1624, 1024)]
    assert dropped(2048, rule(1024, stride=600, tail="drop")) == [424, 0, 0, 0, 0]
    assert spans(2048, rule(1024, stride=600))[-1] == (1200, 2048, 1624)


def test_A3_backfill_ends_at_the_end_or_drops_and_counts():
    assert spans(2048, rule(1024, stride=600, tail="backfill"))[-1] == (1024, 2048, 1624)
    assert spans(1624 + 255, rule(1024, stride=600, tail="backfill"))[-1] == (600, 1624, 1024)
    assert dropped(1624 + 255, rule(1024, stride=600, tail="backfill")) == [255, 0, 0, 0, 0]
    assert dropped(1624 + 256, rule(1024, stride=600, tail="backfill")) == [0, 0, 0, 0, 0]


@pytest.mark.parametrize(("stride", "readings"), [(512, 8), (256, 16), (4096, 1)])
def test_A8_every_inner_token_is_read_window_over_stride_times(stride: int, readings: int):
    pieces = spans(40_960, rule(4096, stride=stride))
    for token in (8192, 20_000, 30_001):
        assert sum(start <= token < stop for start, stop, _ in pieces) == readings


def test_A9_overlap_is_read_again_and_stays_on_the_ledger():
    pieces = spans(6000, rule(4000, stride=3500))
    assert pieces == [(0, 4000, 0), (3500, 6000, 4000)]
    processed = sum(stop - start for start, stop, _ in pieces)
    overlap = sum(fresh - start for start, _, fresh in pieces)
    assert (processed, overlap, processed - overlap) == (6500, 500, 6000)
    assert Fraction(overlap, 6000) == Fraction(1, 12)


def test_B1_without_alignment_windows_cut_where_they_end():
    assert spans(12_000, rule(4000)) == [(0, 4000, 0), (4000, 8000, 4000), (8000, 12_000, 8000)]


def test_W01_stride_equal_to_the_window_leaves_no_gap():
    assert spans(16, rule(4)) == [(0, 4, 0), (4, 8, 4), (8, 12, 8), (12, 16, 12)]


def test_W04_every_piece_under_drop_is_a_whole_window_and_the_rest_is_counted():
    assert [spans(n, rule(4, tail="drop")) for n in (7, 3)] == [[(0, 4, 0)], []]
    assert [len(spans(n, rule(4, tail="drop"))) for n in (10, 7, 9)] == [2, 1, 2]
    assert [dropped(n, rule(4, tail="drop")) for n in (10, 7, 3)] == [
        [2, 0, 0, 0, 0],
        [3, 0, 0, 0, 0],
        [0, 3, 0, 0, 0],
    ]


@pytest.mark.parametrize(("n", "windows"), [(0, 0), (99, 0), (100, 1), (101, 1)])
def test_D06_a_document_shorter_than_a_window_gives_no_window_under_drop(n: int, windows: int):
    assert (
        len(spans(n, rule(100, tail="drop"))) == windows == count_pieces(n, cutting(rule(100, tail="drop")))
    )


def test_N03_a_document_of_65537_tokens_has_that_length():
    whole = spans(65_537, rule(65_536))
    assert whole == [(0, 65_536, 0), (65_536, 65_537, 65_536)]
    assert len(spans(65_537, rule(65_536, tail="drop"))) == 1


def test_N05_windows_beyond_31_bits_are_counted_at_once():
    by_drop = cutting(rule(1000, tail="drop"))
    assert count_pieces(3_000_000_000, by_drop) == 3_000_000
    last = slice_runs(
        Documents(np.array([3_000_000_000]), np.zeros(1, bool), np.zeros(1, bool)),
        np.array([[0, 2_999_998_000, 3_000_000_000]]),
        by_drop,
    ).pieces
    assert last.start.tolist() == [2_999_998_000, 2_999_999_000]


def test_P01_split_keeps_all_and_truncate_reports_what_it_leaves():
    assert [len(spans(n, rule(4))) for n in (5, 2, 3, 1)] == [2, 1, 1, 1]
    lost = [dropped(n, rule(4, oversize="truncate")) for n in (5, 2, 3, 1)]
    assert [sum(row) for row in lost] == [1, 0, 0, 0]
    assert sum(dropped(13, rule(10, oversize="truncate")) + dropped(11, rule(10, oversize="truncate"))) == 4
    assert dropped(11, rule(10, oversize="drop")) == [0, 0, 11, 0, 0]


def test_P03_a_document_longer_than_twice_the_row_is_split():
    assert [stop - start for start, stop, _ in spans(121, rule(60))] == [60, 60, 1]


def test_the_first_cut_makes_room_for_the_begin_mark_where_the_window_fills_the_context():
    assert spans(10, rule(4), bos=2) == [(0, 3, 0), (3, 7, 3), (7, 10, 7)]
    assert spans(10, rule(5, window=4), bos=2) == [(0, 4, 0), (4, 8, 4), (8, 10, 8)]


def test_a_document_that_fills_the_window_is_whole_under_every_tail():
    for tail in ("keep", "backfill", "drop", "pad"):
        assert spans(8, rule(8, tail=tail)) == [(0, 8, 0)]
        assert spans(7, rule(8, tail=tail), bos=2) == [(0, 7, 0)]
