"""What repeats inside the units of a pool: found when it is written, kept with it, known where it grows."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import recipe.pools.closing as closing
from recipe.errors import RecipeError
from recipe.pools import Pool, PoolWriter, extend_pool, grown_from, open_pool, write_pool
from recipe.pools.metadata import copy_metadata, open_metadata

ROOM = {"vocab_size": 100, "eos": 99, "bos": 98}
TEXTS = [[1, 2, 3, 4, 5, 6], [7, 2, 3, 4, 5], [1, 2, 3, 4], [1, 2, 3, 4, 1, 2, 3, 4]]
GROUPS = ["g", "g", "g", None]
SPANS = [[8 + 1 + 1, 8 + 1 + 5], [15 + 1, 15 + 1 + 4], [21 + 1 + 4, 21 + 1 + 8]]
"""Of stretches of 4: tokens 2 3 4 5 of the second, all of the third, the end of the fourth."""


def small(path: Path, **more: object) -> Pool:
    options = {"groups": GROUPS, "repeats": 4, **ROOM, **more}
    return write_pool(path, [np.array(text) for text in TEXTS], **options)  # type: ignore[arg-type]


def test_A12_repeats_are_stored_tokens_of_a_group_or_document(tmp_path):
    pool = small(tmp_path / "pool")
    assert pool.repeats is not None
    assert pool.repeats.tolist() == SPANS
    assert pool.card.source == {"repeats": 4}


def test_A12_without_groups_each_document_stands_for_itself(tmp_path):
    assert small(tmp_path / "pool", groups=None).repeats.tolist() == SPANS[2:]


def test_a_pool_in_which_nobody_looked_has_none_and_is_what_it_was(tmp_path):
    pool = small(tmp_path / "pool", repeats=None)
    assert pool.repeats is None
    assert "repeats.npy" not in pool.card.files
    assert pool.fingerprint != small(tmp_path / "other").fingerprint


@pytest.mark.parametrize("part_tokens", [1, 9, 16, 22])
def test_repeats_do_not_depend_on_where_parts_end(tmp_path, part_tokens):
    pool = small(tmp_path / "pool", part_tokens=part_tokens)
    assert pool.num_parts > 1
    assert pool.repeats.tolist() == SPANS
    assert sorted(path.name for path in pool.path.glob("*.repeats")) == []


@pytest.mark.parametrize("part_tokens", [None, 30])
def test_special_tokens_in_front_of_documents_are_no_part_of_what_repeats(tmp_path, part_tokens):
    leads = [[70, 71, 72, 73], [70, 71, 72, 73], [70, 71, 72, 73], []]
    pool = small(tmp_path / "pool", leads=leads, part_tokens=part_tokens)
    moved = [8, 12, 12]
    assert pool.repeats.tolist() == [[a + by, b + by] for (a, b), by in zip(SPANS, moved, strict=True)]


def test_an_interrupted_search_goes_on_behind_the_parts_it_finished(tmp_path, monkeypatch):
    settings = {**ROOM, "part_tokens": 9, "repeats": 4, "resume": True}

    def written() -> PoolWriter:
        writer = PoolWriter(tmp_path / "pool", **settings)
        for text, group in list(zip(TEXTS, GROUPS, strict=True))[writer.num_documents :]:
            writer.add(text, group=group)
        return writer

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt), written() as writer:
        patch.setattr(closing, "_card", _interrupt)
        writer.close()
    left = sorted((tmp_path / "pool.partial").glob("*.repeats"))
    times = [path.stat().st_mtime_ns for path in left]
    assert len(left) == 4
    left[-1].unlink()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt), written() as writer:
        patch.setattr(closing, "_card", _interrupt)
        writer.close()
    assert [path.stat().st_mtime_ns for path in left][:-1] == times[:-1]
    assert written().close().repeats.tolist() == SPANS


def _interrupt(*args: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("before", [4, None])
def test_a_pool_that_grew_has_what_its_beginning_had_and_is_known_to_have_grown(tmp_path, before):
    old = small(tmp_path / "old", repeats=before)
    repeats = None if before else 4
    new = extend_pool(old.path, tmp_path / "new", [np.array([5, 1, 2, 3, 4] * 2)], repeats=repeats)
    assert new.repeats.tolist() == [*SPANS, [31 + 1 + 5, 31 + 1 + 10]]
    assert new.card.source["repeats"] == 4
    assert grown_from(old, new).documents == 4
    assert grown_from(old.fingerprint, new).documents == 4


def test_stretches_of_another_length_than_in_the_pool_that_is_extended_are_refused(tmp_path):
    old = small(tmp_path / "old")
    with pytest.raises(RecipeError, match="4, as in"):
        extend_pool(old.path, tmp_path / "new", [np.arange(9)], repeats=5)
    assert not (tmp_path / "new").exists()


def test_stretches_have_a_token(tmp_path):
    with pytest.raises(RecipeError, match="1 or more tokens"):
        small(tmp_path / "pool", repeats=0)
    assert list(tmp_path.iterdir()) == []


def test_metadata_hold_the_repeats(tmp_path):
    pool = small(tmp_path / "pool")
    bare = open_metadata(copy_metadata(pool, tmp_path / "bare"), "pool")
    assert bare.repeats.tolist() == SPANS


def test_changed_repeats_are_found(tmp_path):
    small(tmp_path / "pool")
    shutil.copytree(tmp_path / "pool", tmp_path / "copy")
    file = tmp_path / "copy" / "repeats.npy"
    data = bytearray(file.read_bytes())
    data[-8] ^= 1
    file.write_bytes(data)
    pool = open_pool(tmp_path / "copy", "pool")
    assert [finding.where for finding in pool.verify(full=True)] == [str(file)]
    with pytest.raises(RecipeError, match="contents with hash"):
        _ = pool.repeats
