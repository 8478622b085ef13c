"""A12: windows that repeat what stands earlier in their document or group are dropped once, and counted."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recipe as product
from recipe.config import Rule
from recipe.errors import RecipeError
from recipe.pools import Pool
from recipe.sequences.blocks import Block, CutBlock, plan_block
from recipe.sequences.reading_order import BlockPlace
from tests.sequences.build import rule

DROP = Fraction(1)


def pool(root: Path, texts: list[list[int]], **more: Any) -> Pool:
    arrays = [np.array(text, np.int64) for text in texts]
    return product.write_pool(root / "pool", arrays, **{"vocab_size": 1000, "repeats": 4, **more})


def opened(of: Pool, drawn: Rule, cuts: tuple[CutBlock, ...] = ()) -> Block:
    return plan_block(of, drawn, BlockPlace(1, 0, 0, 64), cuts)


def served(block: Block) -> list[tuple[int, int, int]]:
    """(document, first, stop) of what is fresh in every piece."""
    p = block.rows.pieces
    return sorted(zip(block.documents[p.document].tolist(), p.fresh.tolist(), p.stop.tolist(), strict=True))


def test_A12_a_window_that_stood_in_the_document_before_is_dropped_and_counted(tmp_path):
    """Windows of 4: A B A C, the second A is the only one that repeats."""
    a, b, c = [1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]
    block = opened(pool(tmp_path, [[*a, *b, *a, *c]]), rule(4, duplicates=DROP))
    assert served(block) == [(0, 0, 4), (0, 4, 8), (0, 12, 16)]
    assert (block.dropped, block.duplicates) == ({"duplicate": 4}, 1)


def test_A12_first_and_last_windows_stay(tmp_path):
    """Title and tail of every document of the group are the same text."""
    ends, middle = [1, 2, 3, 4], [5, 6, 7, 8]
    texts = [[*ends, *middle, *ends], [*ends, *middle, *ends]]
    block = opened(pool(tmp_path, texts, groups=["g", "g"]), rule(4, duplicates=DROP))
    assert served(block) == [(0, 0, 4), (0, 4, 8), (0, 8, 12), (1, 0, 4), (1, 8, 12)]
    assert (block.dropped, block.duplicates) == ({"duplicate": 4}, 1)


def test_A12_another_source_is_not_looked_at(tmp_path):
    text = list(range(12))
    block = opened(pool(tmp_path, [text, text]), rule(4, duplicates=DROP))
    assert (len(served(block)), block.dropped, block.duplicates) == (6, {}, 0)


def test_A12_a_window_in_which_a_section_begins_stays(tmp_path):
    """Windows of 4 from token 4 on repeat; sections at 8 and 14: windows 8 and 12 hold them."""
    text = [1, 2, 3, 4] * 6
    made = pool(tmp_path, [text], sections=[[8, 14]])
    block = opened(made, rule(4, duplicates=DROP))
    assert served(block) == [(0, 0, 4), (0, 8, 12), (0, 12, 16), (0, 20, 24)]
    assert (block.dropped, block.duplicates) == ({"duplicate": 8}, 2)


@pytest.mark.parametrize(("part", "tokens"), [("1", 4), ("3/4", 4), ("1/2", 8), ("1/4", 8)])
def test_A12_near_duplicates_are_those_of_which_a_part_repeats(tmp_path, part, tokens):
    """Windows of 4: new, all old, half of it old, new, the end."""
    text = [1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 1, 2, 7, 8, 9, 10, 11]
    made = pool(tmp_path, [text], repeats=2)
    assert made.repeats is not None
    assert made.repeats.tolist() == [[4, 8], [10, 12]]
    block = opened(made, rule(4, duplicates=Fraction(part)))
    assert (block.dropped, block.duplicates) == ({"duplicate": tokens}, tokens // 4)


def test_A12_what_is_left_of_a_block_is_not_looked_at_again(tmp_path):
    text = [1, 2, 3, 4] * 6
    made = pool(tmp_path, [text])
    first = opened(made, rule(4))
    again = opened(made, rule(8, duplicates=DROP), (CutBlock(rule(4), 1),))
    assert (first.dropped, again.dropped, again.duplicates) == ({}, {}, 0)
    dropped = opened(made, rule(4, duplicates=DROP))
    assert dropped.dropped == {"duplicate": 16}
    kept = opened(made, rule(8), (CutBlock(rule(4, duplicates=DROP), 0),))
    assert sorted(served(kept)) == [(0, 0, 4), (0, 20, 24)]


def test_A12_a_pool_in_which_nobody_looked_is_refused(tmp_path):
    with pytest.raises(RecipeError, match=r"repeats\.npy") as caught:
        opened(pool(tmp_path, [list(range(12))], repeats=None), rule(4, duplicates=DROP))
    assert "recipe prepare --repeats" in caught.value.problems[0].fix


def test_A12_marks_are_no_part_of_what_repeats(tmp_path):
    """With BOS and EOS stored, the windows are counted in body tokens all the same."""
    text = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 9]
    made = pool(tmp_path, [text], bos=998, eos=999)
    block = opened(made, rule(6, window=4, duplicates=DROP))
    assert served(block) == [(0, 0, 4), (0, 4, 8), (0, 12, 13)]
    assert block.dropped == {"duplicate": 4}
