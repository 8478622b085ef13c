"""A14: the region of a document that a piece is of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recipe import write_pool
from recipe.pools import Pool
from recipe.sequences.region import region_of
from tests.sequences.build import rule

LENGTHS = (10, 11, 25, 40, 100)


@pytest.fixture
def pool(tmp_path: Path) -> Pool:
    return write_pool(tmp_path / "p", [np.arange(n) for n in LENGTHS], vocab_size=200)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (0, [None]),  # as long as the window
        (1, ["head", "tail"]),
        (2, ["head", "head", "tail"]),  # 20 lies behind the middle of 25
        (3, ["head", "head", "tail", "tail"]),
        (4, ["head", "head", *["middle"] * 6, "tail", "tail"]),
    ],
)
def test_A14_head_and_tail_are_two_windows_or_a_half(pool: Pool, document: int, expected: list[str | None]):
    drawn = rule(10)
    assert [region_of(pool, document, at, drawn) for at in range(0, LENGTHS[document], 10)] == expected


def test_A14_a_begin_mark_leaves_less_room_for_the_first_window(tmp_path: Path):
    marked = write_pool(tmp_path / "m", [np.arange(9), np.arange(10)], vocab_size=200, bos=150)
    assert [region_of(marked, document, 0, rule(10)) for document in (0, 1)] == [None, "head"]
