"""Some documents of a pool as a pool of their own: everything the pool says of them comes along."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.errors import RecipeError
from recipe.pools import Pool, Section, open_pool, write_pool
from recipe.pools.copying import copy_documents
from tests.pools import drawn
from tests.pools.megatron_files import write_pair


def said(pool: Pool) -> list[object]:
    """What a pool holds and says of its documents, by id; sections and repeats counted in the document."""
    found: list[object] = []
    for row in pool.rows(range(pool.num_documents)):
        first, stop = pool.offsets[row.document : row.document + 2].tolist()
        more = [
            None if spans is None else [a - first for a in spans.reshape(-1).tolist() if first <= a < stop]
            for spans in (pool.sections, pool.repeats)
        ]
        found.append((row.id, row.group, row.tags, row.source, pool.stored(row.document).tolist(), *more))
    return found


@settings(max_examples=40)
@given(documents=drawn.documents(), how=drawn.settings())
def test_a_copy_of_all_documents_is_the_same_pool(documents, how):
    with tempfile.TemporaryDirectory() as folder:
        pool = drawn.written(Path(folder, "pool"), documents, **how)
        copy = copy_documents(
            pool, np.ones(len(documents), bool), Path(folder, "copy"), part_tokens=how["part_tokens"]
        )
        assert copy.fingerprint == pool.fingerprint
        assert said(copy) == said(pool) and copy.verify(full=True) == []


@settings(max_examples=40)
@given(data=st.data(), documents=drawn.documents(), how=drawn.settings())
def test_a_copy_of_some_is_the_pool_that_would_be_written_of_them(data, documents, how):
    kept = sorted(data.draw(st.sets(st.integers(0, len(documents) - 1), min_size=1)))
    chosen = [dict(documents[k]) for k in kept]
    lost = drawn.drop_needs_of_others(chosen)
    with tempfile.TemporaryDirectory() as folder:
        pool = drawn.written(Path(folder, "pool"), documents, **how)
        if pool.sections is not None:
            chosen = [{"sections": [], **document} for document in chosen]
        copy = copy_documents(pool, np.array(kept), Path(folder, "copy"), part_tokens=how["part_tokens"])
        other = drawn.written(Path(folder, "other"), chosen, **how)
        assert copy.fingerprint == other.fingerprint and said(copy) == said(other)
        assert copy.card.dropped.get("needs", 0) == lost


def test_documents_keep_their_ids_when_those_were_numbers(tmp_path):
    pool = write_pool(tmp_path / "pool", [[1], [2], [3]], vocab_size=9)
    copy = copy_documents(pool, np.array([0, 2]), tmp_path / "copy")
    assert copy.ids([0, 1]) == [0, 2] and copy.find(2) == 1
    assert copy.card.source["copied"]["fingerprint"] == pool.fingerprint


def test_tags_may_be_others_and_what_was_left_out_is_counted(tmp_path):
    pool = write_pool(tmp_path / "pool", [[1], [2]], vocab_size=9, tags=[{"a": 1}, None])
    copy = copy_documents(
        pool, np.array([True, False]), tmp_path / "copy",
        tags=lambda row: {**row.tags, "seen": row.id}, dropped={"duplicate": 1}, source={"why": "dedup"},
    )  # fmt: skip
    assert copy.rows([0])[0].tags == {"a": 1, "seen": 0}
    assert copy.card.dropped == {"duplicate": 1} and copy.card.source["why"] == "dedup"


def test_a_need_of_a_section_left_behind_is_counted(tmp_path):
    sections = [[Section(0, "base")], [Section(1, None, ("base",))], []]
    pool = write_pool(
        tmp_path / "pool", [[1, 2], [3, 4], [5]], vocab_size=9, sections=sections, groups=["g"] * 3
    )
    copy = copy_documents(pool, np.array([1, 2]), tmp_path / "copy")
    assert copy.card.dropped == {"needs": 1} and copy.needs is None and copy.sections.tolist() == [1]


def test_an_interrupted_copy_goes_on_at_the_part(tmp_path):
    pool = write_pool(tmp_path / "pool", [[k % 9] * 4 for k in range(20)], vocab_size=9)
    whole = copy_documents(pool, np.arange(1, 20), tmp_path / "whole", part_tokens=8)
    taken: list[object] = []

    def tags(row, stop=None):
        if row.id == stop:
            raise KeyboardInterrupt
        taken.append(row.id)
        return row.tags

    where = {"out": tmp_path / "copy", "part_tokens": 8}
    with pytest.raises(KeyboardInterrupt):
        copy_documents(pool, np.arange(1, 20), tags=lambda row: tags(row, stop=10), **where)
    assert taken == list(range(1, 10)) and not (tmp_path / "copy").exists()
    taken.clear()
    assert copy_documents(pool, np.arange(1, 20), tags=tags, **where).fingerprint == whole.fingerprint
    assert taken[0] == 9  # documents 1 to 8 were in finished parts


def test_nothing_chosen_pairs_and_wrong_numbers_are_refused(tmp_path):
    pool = write_pool(tmp_path / "pool", [[1], [2]], vocab_size=9)
    with pytest.raises(RecipeError, match="no document of it"):
        copy_documents(pool, np.zeros(2, bool), tmp_path / "copy")
    for wrong in ([1, 0], [2], [-1]):
        with pytest.raises(ValueError, match="do not rise"):
            copy_documents(pool, np.array(wrong), tmp_path / "copy")
    with pytest.raises(ValueError, match="mask of 1"):
        copy_documents(pool, np.ones(1, bool), tmp_path / "copy")
    write_pair(tmp_path / "pair", [[[1, 2]]], 3)
    with pytest.raises(RecipeError, match="without a card"):
        copy_documents(open_pool(tmp_path / "pair", "p"), np.ones(1, bool), tmp_path / "copy")
