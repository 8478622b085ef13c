"""Sections of documents and what they need: stored with the pool, counted over all its tokens."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from recipe.errors import RecipeError
from recipe.pools import PoolWriter, Section, extend_pool, grown_from, open_pool, write_pool
from recipe.pools.metadata import copy_metadata, open_metadata

ROOM = {"vocab_size": 100, "eos": 99, "bos": 98}


def documents(*lengths):
    return [np.arange(length) % 90 for length in lengths]


def small(path, **more):
    """Two documents of 5 and 4 tokens and marks; sections at 2 of the first and 1, 3 of the second."""
    return write_pool(path, documents(5, 4), sections=[[0, 2], [1, 3]], **ROOM, **more)


def test_sections_are_stored_tokens_of_the_pool_without_the_starts_of_documents(tmp_path):
    pool = small(tmp_path / "pool")
    assert pool.sections.tolist() == [1 + 2, 8 + 1, 8 + 3]
    assert pool.needs is None


def test_a_pool_of_which_nothing_is_said_has_no_sections(tmp_path):
    pool = write_pool(tmp_path / "pool", documents(5, 4), **ROOM)
    assert pool.sections is None
    assert "sections.npy" not in pool.card.files


def test_documents_said_to_have_no_sections_give_a_pool_with_none(tmp_path):
    assert write_pool(tmp_path / "pool", documents(5), sections=[[]], **ROOM).sections.tolist() == []


def test_sections_do_not_depend_on_where_parts_end(tmp_path):
    one = small(tmp_path / "one")
    two = small(tmp_path / "two", part_tokens=7)
    assert two.num_parts == 2
    assert one.sections.tolist() == two.sections.tolist()


def test_pools_that_differ_in_sections_alone_have_other_fingerprints(tmp_path):
    prints = {
        write_pool(tmp_path / str(number), documents(5, 4), sections=sections, **ROOM).fingerprint
        for number, sections in enumerate((None, [[], []], [[2], []], [[3], []]))
    }
    assert len(prints) == 4


def test_B5_needs_are_spans_of_the_document_or_group(tmp_path):
    first = [Section(0, "a"), Section(2, "b"), 4]
    second = [Section(1, "c", ("b", "a")), Section(3, None, ("c",))]
    pool = write_pool(tmp_path / "pool", documents(5, 4), sections=[first, second], groups=["g", "g"], **ROOM)
    assert pool.sections.tolist() == [3, 5, 9, 11]
    assert pool.needs.tolist() == [[9, 11, 3, 5], [9, 11, 1, 3], [11, 12, 9, 11]]


def test_needs_of_another_document_without_a_group_are_refused_all_at_once(tmp_path):
    first, second = [Section(0, "a", ("z",))], [Section(1, "c", ("a",)), Section(2, "d", ("d",))]
    with pytest.raises(RecipeError) as caught:
        write_pool(tmp_path / "pool", documents(5, 4), sections=[first, second], **ROOM)
    assert [problem.given for problem in caught.value.problems] == [
        "needs 'z'",
        "needs 'a'",
        "needs 'd', itself",
    ]
    assert not (tmp_path / "pool").exists()


def test_section_ids_are_unique_in_their_unit(tmp_path):
    with pytest.raises(RecipeError, match="section id 'a' again"):
        write_pool(tmp_path / "pool", documents(5), sections=[[Section(0, "a"), Section(2, "a")]], **ROOM)


@pytest.mark.parametrize("sections", [[5], [-1], [2, 2], [3, 1]])
def test_sections_outside_a_document_or_not_in_order_are_the_callers_fault(tmp_path, sections):
    with pytest.raises(ValueError, match="sections at"):
        write_pool(tmp_path / "pool", documents(5), sections=[sections], **ROOM)


def test_an_interrupted_writer_keeps_the_sections_of_finished_parts(tmp_path):
    settings = {**ROOM, "part_tokens": 7, "resume": True}
    writer = PoolWriter(tmp_path / "pool", **settings)
    writer.add(documents(5)[0], sections=[Section(0, "a"), Section(2, "b")], group="g")
    writer.add(documents(4)[0], sections=[Section(1, "c", ("b",))], group="g")
    writer.abort(keep_parts=True)
    writer = PoolWriter(tmp_path / "pool", **settings)
    assert writer.num_documents == 1
    writer.add(documents(4)[0], sections=[Section(1, "c", ("b",))], group="g")
    pool = writer.close()
    assert (pool.sections.tolist(), pool.needs.tolist()) == ([3, 9], [[9, 12, 3, 6]])
    assert sorted(path.name for path in pool.path.glob("*.sections")) == []


@pytest.mark.parametrize("sections", [None, [[2], []], [[Section(0, "a"), Section(2, "b", ("a",))], []]])
def test_a_pool_that_grew_keeps_its_sections_and_is_known_to_have_grown(tmp_path, sections):
    old = write_pool(tmp_path / "old", documents(5, 4), sections=sections, **ROOM)
    added = [[Section(0, "a"), Section(1, "b", ("a",))]]
    new = extend_pool(old.path, tmp_path / "new", documents(3), sections=added)
    before = [] if sections is None else [3]
    assert new.sections.tolist() == [*before, 13 + 1 + 1]
    assert new.needs.tolist()[-1] == [15, 17, 14, 15]
    assert grown_from(old, new).documents == 2
    assert grown_from(old.fingerprint, new).documents == 2


def test_metadata_hold_the_sections(tmp_path):
    pool = small(tmp_path / "pool")
    bare = open_metadata(copy_metadata(pool, tmp_path / "bare"), "pool")
    assert bare.sections.tolist() == pool.sections.tolist()


@pytest.mark.parametrize("name", ["sections.npy", "needs.npy"])
def test_changed_sections_are_found(tmp_path, name):
    sections = [[Section(0, "a"), Section(2, "b", ("a",))]]
    write_pool(tmp_path / "pool", documents(5), sections=sections, **ROOM)
    shutil.copytree(tmp_path / "pool", tmp_path / "copy")
    data = bytearray((tmp_path / "copy" / name).read_bytes())
    data[-8] ^= 1
    (tmp_path / "copy" / name).write_bytes(data)
    pool = open_pool(tmp_path / "copy", "pool")
    assert [finding.where for finding in pool.verify(full=True)] == [str(tmp_path / "copy" / name)]
    with pytest.raises(RecipeError, match="contents with hash"):
        getattr(pool, name.removesuffix(".npy"))
