"""Cuts and starts at permitted places: facts B, on texts of one byte a token."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recipe.config import Rule
from recipe.sequences.boundaries import edge_table
from recipe.sequences.pieces import REASONS, Documents, Pieces
from recipe.sequences.slicing import Sliced, cutting_of, slice_documents
from recipe.sequences.windows import Reading
from tests.sequences.build import rule


def sliced(text: bytes, drawn: Rule, sections: Any = ()) -> Sliced:
    """One document of a pool in which it is stored from token 100 on."""
    tokens = np.frombuffer(text, np.uint8).astype(np.int32)
    table = edge_table([bytes([byte]) for byte in range(256)])
    edges = table.of(drawn.align, np.array([100 + at for at in sections], np.int64))
    where = np.array([tokens.__array_interface__["data"][0]], np.uint64)
    reading = Reading(np.empty(0, np.int32), where, np.array([100]), edges)
    documents = Documents(np.array([len(tokens)]), np.array([False]), np.array([False]))
    return slice_documents(documents, cutting_of(drawn), None, reading)


def spans(pieces: Pieces) -> list[tuple[int, int, int]]:
    return list(zip(pieces.start.tolist(), pieces.stop.tolist(), pieces.fresh.tolist(), strict=True))


def test_B2_four_chapters_are_four_pieces():
    drawn = rule(4000, align="section", align_within=1000)
    found = sliced(b"x" * 12_000, drawn, (3000, 6500, 9500))
    assert [stop - start for start, stop, _ in spans(found.pieces)] == [3000, 3500, 3000, 2500]
    assert found.aligned.tolist() == [3, 0, 0]


def test_B2_a_chapter_that_ends_too_far_back_is_not_reached():
    drawn = rule(4000, align="section", align_within=999)
    found = sliced(b"x" * 12_000, drawn, (3000, 6500, 9500))
    assert [stop for _, stop, _ in spans(found.pieces)] == [4000, 8000, 12_000]
    assert found.aligned.tolist() == [0, 2, 0]


@pytest.mark.parametrize("number", ["2024", "61.6", "1.2.3", "2024-05-01", "¥3,499.00", "12:30", "1/3"])
def test_B3_no_cut_falls_inside_a_number(number: str):
    text = f"It is {number} now".encode()
    begins, ends = 6, 6 + len(number.encode())
    for window in range(begins, ends + 1):
        found = sliced(text, rule(len(text), window=window, align="number", align_within=window - 1))
        cut = spans(found.pieces)[0][1]
        assert cut == (window if window in (begins, ends) else begins)


def test_B3_a_cut_in_a_long_number_stays_and_is_counted():
    found = sliced(b"7" * 30, rule(10, align="number", align_within=4))
    assert [stop for _, stop, _ in spans(found.pieces)] == [10, 20, 30]
    assert found.aligned.tolist() == [0, 2, 0]


TEXT = b"One two. Three four!\nFive six.\n\nSeven eight nine"


@pytest.mark.parametrize(
    ("align", "cuts"),
    [
        ("none", [12, 24, 36, 48]),
        ("word", [9, 21, 32, 44, 48]),
        ("sentence", [9, 21, 32, 44, 48]),
        ("line", [12, 21, 32, 44, 48]),
        ("paragraph", [12, 24, 32, 44, 48]),
    ],
)
def test_B4_a_cut_moves_back_to_the_last_permitted_place_or_stays(align: Any, cuts: list[int]):
    found = sliced(TEXT, rule(12, align=align, align_within=0 if align == "none" else 11))
    assert [stop for _, stop, _ in spans(found.pieces)] == cuts
    assert [fresh for _, _, fresh in spans(found.pieces)] == [0, *cuts[:-1]]


def test_B8_a_window_starts_at_a_boundary_inside_its_overlap():
    """Cuts after "One two. " and "Three four!\n"; the next windows start where a word does."""
    found = sliced(TEXT, rule(20, stride=12, align="word", align_within=4))
    for start, _, fresh in spans(found.pieces)[1:]:
        assert start <= fresh
        assert TEXT[start - 1 : start] in (b" ", b"\n") or TEXT[start : start + 1] in b" \n.!"
    plain = sliced(TEXT, rule(20, stride=12)).pieces
    assert found.aligned[2] > 0
    assert len(plain.start) <= len(found.pieces.start)


def test_B8_an_overlap_without_a_boundary_keeps_its_start():
    found = sliced(b"x" * 60, rule(20, stride=12, align="word", align_within=4))
    assert spans(found.pieces) == [(0, 20, 0), (12, 32, 20), (24, 44, 32), (36, 56, 44), (48, 60, 56)]
    assert found.aligned.tolist() == [0, 4, 0]


def test_truncated_documents_end_at_a_boundary_and_the_rest_is_counted():
    found = sliced(TEXT, rule(12, align="sentence", align_within=11, oversize="truncate"))
    assert spans(found.pieces) == [(0, 9, 0)]
    assert found.dropped[REASONS.index("oversize")] == found.dropped.sum() == 39
