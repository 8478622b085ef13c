"""Pools without their tokens."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recipe.errors import RecipeError
from recipe.pools import open_pool, write_pool
from recipe.pools.metadata import copy_metadata, open_metadata


@pytest.fixture
def pool(tmp_path):
    texts = [np.arange(length) % 90 for length in (5, 0, 12, 7)]
    groups = ["a", "a", None, None]
    return write_pool(tmp_path / "whole", texts, vocab_size=100, eos=99, groups=groups, tags=[{"k": 1}] * 4)


def test_lengths_units_and_marks_are_those_of_the_pool_and_no_token_file_is_there(pool, tmp_path):
    bare = open_metadata(copy_metadata(pool, tmp_path / "bare"), "whole", eos=99)
    assert sorted(path.name for path in bare.path.iterdir()) == ["card.json", "offsets.npy", "units.npy"]
    assert bare.fingerprint == pool.fingerprint and bare.stock == pool.stock == 24
    assert np.array_equal(bare.offsets, pool.offsets) and np.array_equal(bare.units, pool.units)
    numbers = np.arange(4)
    assert [m.tolist() for m in bare.stored_marks(numbers)] == [[False] * 4, [True] * 4]
    with pytest.raises(RecipeError, match=r"part-00000\.bin"):
        bare.tokens(0)


def test_the_document_table_comes_along_when_it_is_wanted(pool, tmp_path):
    bare = open_metadata(copy_metadata(pool, tmp_path / "bare", documents=True), "whole")
    assert [row.tags for row in bare.rows([0, 3])] == [{"k": 1}, {"k": 1}]


def test_token_files_that_are_there_are_not_looked_at(pool):
    for path in pool.path.glob("part-*"):
        path.write_bytes(b"not what the card says")
    with pytest.raises(RecipeError):
        open_pool(pool.path, "whole")
    assert open_metadata(pool.path, "whole").num_documents == 4


@pytest.mark.parametrize("name", ["offsets.npy", "units.npy"])
def test_boundaries_that_were_changed_are_refused(pool, tmp_path, name):
    bare = copy_metadata(pool, tmp_path / "bare")
    data = bytearray((bare / name).read_bytes())
    data[-9] ^= 1
    (bare / name).write_bytes(data)
    with pytest.raises(RecipeError, match=name):
        open_metadata(bare, "whole")
    (bare / name).unlink()
    with pytest.raises(RecipeError, match=name):
        open_metadata(bare, "whole")


def test_a_folder_that_is_taken_is_not_written_to(pool, tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "note").write_text("mine")
    with pytest.raises(RecipeError, match="nothing is overwritten"):
        copy_metadata(pool, tmp_path / "taken")
    assert [path.name for path in (tmp_path / "taken").iterdir()] == ["note"]


def test_imported_pairs_have_no_metadata_to_copy(pool, tmp_path):
    for ending in ("bin", "idx"):
        (tmp_path / f"pair.{ending}").write_bytes((pool.path / f"part-00000.{ending}").read_bytes())
    pairs = open_pool(tmp_path / "pair", "pair", eos=99)
    with pytest.raises(RecipeError, match="imported token files"):
        copy_metadata(pairs, tmp_path / "bare")
    with pytest.raises(RecipeError, match=r"card\.json"):
        open_metadata(Path(tmp_path / "none"), "pair")
