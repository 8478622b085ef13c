"""Random offsets, densities and strides by region, and marks round windows: facts A11, A13, A15."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from recipe.sequences.pieces import HAS_BOS, HAS_EOS, WRAPPED, Documents
from recipe.sequences.slicing import cutting_of, heads_of, slice_documents, thinned
from tests.mixing.build import plain_batch, stage, world, write
from tests.sequences.build import rule, spans


def lengths(*tokens: int) -> Documents:
    none = np.zeros(len(tokens), bool)
    return Documents(np.array(tokens), none, none)


def test_A11_the_head_before_a_random_offset_is_a_piece_of_its_own():
    drawn = rule(8, stride=6, random_offset=True)
    pieces = slice_documents(lengths(30), cutting_of(drawn), np.array([5])).pieces
    found = list(zip(pieces.start.tolist(), pieces.stop.tolist(), pieces.fresh.tolist(), strict=True))
    assert found == [(0, 5, 0), (5, 13, 5), (11, 19, 13), (17, 25, 19), (23, 30, 25)]


def test_A11_offsets_lie_before_the_stride_and_differ_by_document_and_epoch():
    documents, numbers = lengths(*[100] * 600, 8, 3), np.arange(602)
    cutting = cutting_of(rule(8, stride=6, random_offset=True))
    first, again, next_epoch = (heads_of(documents, numbers, cutting, key) for key in (1, 1, 2))
    assert set(first[:600].tolist()) == set(range(6))
    assert np.array_equal(first, again) and not np.array_equal(first, next_epoch)
    assert max(np.bincount(first[:600])) < 150
    assert first[600:].tolist() == [0, 0]


def test_A11_a_document_that_one_window_holds_stays_one_piece():
    assert spans(8, rule(8, stride=6, random_offset=True)) == [(0, 8, 0)]


def test_A13_head_and_tail_are_kept_and_half_of_the_middle_is_thinned():
    drawn = rule(10, density=(Fraction(1), Fraction(1, 2), Fraction(1)))
    documents, numbers, cutting = lengths(10_000, 10), np.arange(2), cutting_of(drawn)
    pieces = slice_documents(documents, cutting).pieces
    density = drawn.density
    assert density is not None
    kept, lost = thinned(pieces, (documents, numbers), (cutting, density), 5)
    starts = kept.start[kept.document == 0].tolist()
    assert starts[:2] == [0, 10] and starts[-2:] == [9980, 9990]
    assert 420 < len(starts) < 580
    assert lost == 10 * (1000 - len(starts))
    assert 10 in kept.stop[kept.document == 1]
    again = thinned(pieces, (documents, numbers), (cutting, density), 5)[0]
    assert np.array_equal(again.start, kept.start)


def test_A13_density_as_strides_head_and_tail_are_read_twice_as_often():
    found = spans(100, rule(10, stride=10, strides=(5, 10, 5)))
    steps = [b[0] - a[0] for a, b in pairwise(found)]
    assert steps == [5, 5, *[10] * 6, 5, 5, 5, 5]
    assert all(stop - start == 10 for start, stop, _ in found)
    assert [stop for _, stop, _ in found][:-1] == [fresh for _, _, fresh in found][1:]


def test_A15_marks_stand_round_every_window_and_count_as_special():
    cutting = cutting_of(rule(10, window=8, stride=6, specials="window"))
    pieces = slice_documents(lengths(30), cutting).pieces
    marks = HAS_BOS | HAS_EOS | WRAPPED
    assert all(flags & marks == marks for flags in pieces.flags.tolist())
    assert len(pieces.flags) == 5


def served(tmp_path: Path, **slicing: Any) -> dict[str, Any]:
    """One document of five tokens in rows of six positions, two windows of four, rows in order."""
    write(tmp_path / "a", [5], eos=True, bos=True)
    keys = {"labels": slicing.pop("labels", "shifted")}
    rule = {"specials": "window", "stride": 3, **slicing}
    stages = [stage(6, {"a": 1}, batch=2, steps=1, slicing=rule, packing={"method": "none"})]
    batch = plain_batch(world(tmp_path, {"a": {}}, stages, **keys).stream().batch(0))
    order = sorted(range(2), key=lambda row: batch["input_ids"][row])
    return {name: [column[row] for row in order] for name, column in batch.items()}


def test_A15_every_token_is_a_label_once_whatever_the_overlap(tmp_path: Path):
    """Tokens 10..14: windows 10..13 and 13..14, of which 13 is read again; the default window is 6 - 2."""
    batch = served(tmp_path)
    assert batch["input_ids"] == [[2, 10, 11, 12, 13, 1], [2, 13, 14, 1, 0, 0]]
    assert batch["labels"] == [[10, 11, 12, 13, 1, -100], [-100, 14, 1, -100, -100, -100]]
    assert batch["attention_mask"] == [[1] * 6, [1, 1, 1, 1, 0, 0]]


def test_A15_without_overlap_the_mark_predicts_the_first_token(tmp_path: Path):
    batch = served(tmp_path, stride=4)
    assert batch["labels"] == [[10, 11, 12, 13, 1, -100], [14, 1, -100, -100, -100, -100]]


def test_A15_labels_equal_to_inputs(tmp_path: Path):
    batch = served(tmp_path, labels="inputs")
    assert batch["labels"] == [[-100, 10, 11, 12, 13, 1], [-100, -100, 14, 1, -100, -100]]
