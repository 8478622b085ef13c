"""Cuts at texts of which stretches are read are those at the whole texts, and little is read for them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from recipe.config import Rule
from recipe.sequences.boundaries import edge_table
from recipe.sequences.near_cuts import cut_seen, nothing_seen
from recipe.sequences.pieces import Documents
from recipe.sequences.slicing import Sliced, cutting_of, slice_runs
from recipe.sequences.spelling import Edges
from recipe.sequences.windows import Reading
from tests.sequences.build import rule

WORDS = (
    "it",
    " is",
    " 3",
    ".14",
    ". ",
    "\n",
    "\n\n",
    "   ",
    "\u5929",
    "\u3002",
    "\u201d",
    "!",
    "\u00e9",
    "x" * 9,
)
PIECES = [word.encode() for word in WORDS] + [b"\xe5", b"\xa4\xa9", b"\xf0\x9f", b"\x98\x80", b"\r"]
"""Some tokens are parts of characters."""
ALIGN = ("number", "word", "sentence", "line", "paragraph")


def table(drawn: Rule) -> Edges:
    return edge_table(PIECES).of(drawn.align, np.array([150, 151, 400], np.int64))


def cut_whole(texts: list[NDArray[np.int32]], runs: NDArray[np.int64], drawn: Rule) -> Sliced:
    where = np.array([text.__array_interface__["data"][0] for text in texts], np.uint64)
    reading = Reading(np.empty(0, np.int32), where, places(texts), table(drawn))
    return slice_runs(measured(texts), runs, cutting_of(drawn), reading)


def places(texts: list[NDArray[np.int32]]) -> NDArray[np.int64]:
    return 100 + np.cumsum([0, *map(len, texts)])[:-1].astype(np.int64)


def measured(texts: list[NDArray[np.int32]]) -> Documents:
    none = np.zeros(len(texts), np.bool_)
    return Documents(np.array([len(text) for text in texts]), none, none)


class Shelf:
    """Texts that are handed out in stretches, counted."""

    def __init__(self, texts: list[NDArray[np.int32]], runs: NDArray[np.int64]) -> None:
        self.texts, self.runs = texts, runs
        self.rounds = self.tokens = 0

    def fetch(self, wants: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        self.rounds, self.tokens = self.rounds + 1, self.tokens + int((wants[:, 2] - wants[:, 1]).sum())
        assert np.all(np.diff(wants[:, 0]) >= 0)
        parts = [self.texts[self.runs[run, 0]][a:b] for run, a, b in wants.tolist()]
        sizes = np.cumsum([0, *map(len, parts)])[: len(parts)]
        return np.concatenate([*parts, np.empty(0, np.int32)]), sizes.astype(np.int64) * 4


def cut_in_stretches(shelf: Shelf, drawn: Rule) -> Sliced:
    texts, runs = shelf.texts, shelf.runs
    bare = Reading(np.empty(0, np.int32), np.zeros(len(texts), np.uint64), places(texts), table(drawn))
    return cut_seen(
        nothing_seen(drawn, measured(texts), runs),
        shelf.fetch,
        lambda seen: slice_runs(measured(texts), runs, cutting_of(drawn), bare._replace(glimpses=seen)),
    )


def same(found: Sliced, expected: Sliced) -> None:
    for one, other in zip(found.pieces, expected.pieces, strict=True):
        assert one.tolist() == other.tolist()
    assert (found.dropped.tolist(), found.aligned.tolist()) == (
        expected.dropped.tolist(),
        expected.aligned.tolist(),
    )


@settings(max_examples=150)
@given(st.data())
def test_stretches_give_the_cuts_of_whole_texts(data: st.DataObject):
    """Of any bytes, whole characters or not, and of runs that begin inside a document."""
    draw = random.Random(data.draw(st.integers(0, 2**32)))
    few = draw.sample(range(len(PIECES)), draw.randint(1, 6))  # long rows of blanks or of parts of characters
    lengths = data.draw(st.lists(st.integers(1, 900), min_size=1, max_size=3))
    texts = [np.array(draw.choices([*few, 0], k=n), np.int32) for n in lengths]
    window = data.draw(st.integers(2, 200))
    stride = data.draw(st.integers(2, window))
    within = data.draw(st.integers(1, stride - 1))
    drawn = rule(window, stride=stride, align=data.draw(st.sampled_from(ALIGN)), align_within=within)
    begin = [data.draw(st.sampled_from([0, n // 3])) for n in lengths]
    runs = np.array([[k, a, n] for k, (a, n) in enumerate(zip(begin, lengths, strict=True))], np.int64)
    same(cut_in_stretches(Shelf(texts, runs), drawn), cut_whole(texts, runs, drawn))


def prose(n: int) -> NDArray[np.int32]:
    """Words, an end of a sentence after about ten, of a line after thirty."""
    return np.array(random.Random(1).choices(range(7), [40, 40, 8, 2, 8, 2, 1], k=n), np.int32)


@pytest.mark.parametrize(("align", "share"), [("word", 0.02), ("sentence", 0.05), ("paragraph", 0.2)])
def test_Z03_little_is_read_round_the_cuts(align: Any, share: float):
    """Windows of 4,096 tokens: the stretches looked at, over all tokens."""
    texts = [prose(n) for n in (100_000, 3000, 41_000)]
    runs = np.array([[k, 0, len(text)] for k, text in enumerate(texts)], np.int64)
    shelf, drawn = Shelf(texts, runs), rule(4096, align=align, align_within=1024)
    same(cut_in_stretches(shelf, drawn), cut_whole(texts, runs, drawn))
    assert 0 < shelf.tokens < share * sum(map(len, texts))


def test_a_text_of_many_windows_takes_few_rounds():
    texts = [prose(400_000)]
    runs = np.array([[0, 0, 400_000]], np.int64)
    shelf, drawn = Shelf(texts, runs), rule(1024, stride=800, align="word", align_within=256)
    found = cut_in_stretches(shelf, drawn)
    same(found, cut_whole(texts, runs, drawn))
    assert len(found.pieces.stop) == 501 and shelf.rounds < 60
    assert shelf.tokens < 0.8 * 400_000
