"""Which tokens alignment reads."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recipe.errors import RecipeError
from recipe.pools import open_pool
from recipe.sequences.blocks import plan_block
from recipe.sequences.reading_order import BlockPlace
from tests.mixing.build import write
from tests.sequences.build import rule
from tests.sequences.edges import edges, open_spelt

AT = BlockPlace(1, 0, 0, 64)
LENGTHS = [5, 6, 30, 4, 7, 3]
"""With eleven tokens a part the long document has one of its own."""


def test_only_parts_with_documents_longer_than_a_window_are_opened(tmp_path: Path):
    write(tmp_path / "web", LENGTHS, part_tokens=11)
    pool = open_spelt(tmp_path / "web", "web")
    plan_block(pool, rule(8, align="word", align_within=2), AT)
    assert pool.token_files.opened == [int(np.searchsorted(pool.part_documents, 2, side="right")) - 1]


def test_without_alignment_no_token_is_read(tmp_path: Path):
    write(tmp_path / "web", LENGTHS, part_tokens=11)
    pool = open_spelt(tmp_path / "web", "web")
    plan_block(pool, rule(8, random_offset=True, specials="window", window=6), AT)
    assert pool.token_files.opened == []


def test_a_pool_on_the_other_side_of_a_pickle_is_cut_alike(tmp_path: Path):
    write(tmp_path / "web", LENGTHS)
    pool, drawn = open_spelt(tmp_path / "web", "web"), rule(8, align="line", align_within=7)
    there: Any = pickle.loads(pickle.dumps(pool))
    assert there.edges is edges
    stops = [plan_block(each, drawn, AT).rows.pieces.stop.tolist() for each in (pool, there)]
    assert stops[0] == stops[1] != plan_block(pool, rule(8), AT).rows.pieces.stop.tolist()


@pytest.mark.parametrize(("align", "message"), [("word", "no tokenizer|nothing"), ("section", "sections")])
def test_a_pool_of_which_nobody_says_what_it_spells_is_refused(tmp_path: Path, align: Any, message: str):
    write(tmp_path / "web", LENGTHS)
    with pytest.raises(RecipeError, match=message):
        plan_block(open_pool(tmp_path / "web", "web"), rule(8, align=align, align_within=2), AT)
