"""Special tokens in front of documents: stored, counted, hashed, grown and handed over without texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recipe.errors import RecipeError
from recipe.pools import Pool, Section, open_pool, write_pool
from recipe.pools.growth import extend_pool, grown_from
from recipe.pools.metadata import copy_metadata, open_metadata

DOCUMENTS = [[10, 11, 12], [13, 14], [15] * 5, [16]]
LEADS = [[7, 8], [7], None, []]


def write(path: Path, **more: object) -> Pool:
    """Two documents of a group with leads, two without."""
    return write_pool(path, DOCUMENTS, vocab_size=100, eos=1, groups=[0, 0, 1, 2], leads=LEADS, **more)


@pytest.mark.parametrize(("bos", "right"), [(None, [2, 1, 0, 0]), (2, [3, 2, 1, 1])])
def test_C6_what_stands_in_front_is_special_and_no_part_of_a_document(
    tmp_path: Path, bos: int | None, right: list[int]
):
    pool = write(tmp_path / "a", bos=bos, part_tokens=9)
    assert pool.num_parts > 1
    assert pool.leads is not None and pool.leads.tolist() == right
    assert [pool.tokens(number).tolist() for number in range(4)] == DOCUMENTS
    assert pool.stored(0).tolist() == [*([bos] if bos else []), 7, 8, 10, 11, 12, 1]
    assert (pool.card.body_tokens, pool.card.special_tokens) == (11, 3 + 4 + (4 if bos else 0))
    assert [row.tokens for row in pool.rows(range(4))] == [3, 2, 5, 1]
    assert pool.verify(full=True) == []


def test_a_pool_without_leads_has_no_file_of_them(tmp_path: Path):
    pool = write_pool(tmp_path / "a", DOCUMENTS, vocab_size=100, leads=[None, [], None, []])
    other = write_pool(tmp_path / "b", DOCUMENTS, vocab_size=100)
    assert pool.leads is None and not (tmp_path / "a/leads.npy").exists()
    assert pool.fingerprint == other.fingerprint


def test_the_fingerprint_covers_where_bodies_begin(tmp_path: Path):
    one = write(tmp_path / "a")
    texts = [[7, 8, *DOCUMENTS[0]], [7, *DOCUMENTS[1]], *DOCUMENTS[2:]]
    other = write_pool(tmp_path / "b", texts, vocab_size=100, eos=1, groups=[0, 0, 1, 2])
    assert [one.stored(k).tolist() for k in range(4)] == [other.stored(k).tolist() for k in range(4)]
    assert one.fingerprint != other.fingerprint


def test_a_changed_file_is_found(tmp_path: Path):
    write(tmp_path / "a")
    path = tmp_path / "a/leads.npy"
    leads = np.load(path)
    leads[0] += 1
    np.save(path, leads)
    with pytest.raises(RecipeError, match="hash"):
        _ = open_pool(tmp_path / "a", "a").leads


def test_sections_and_needs_are_places_of_bodies(tmp_path: Path):
    sections = [[0, Section(2, "sum")], [Section(0, "call", ("sum",))], None, None]
    pool = write(tmp_path / "a", sections=sections)
    assert pool.sections is not None and pool.sections.tolist() == [4]
    assert pool.needs is not None and pool.needs.tolist() == [[7, 9, 4, 5]]


@pytest.mark.parametrize("leads", [[[5]], None])
def test_a_pool_with_leads_grows(tmp_path: Path, leads: list[list[int]] | None):
    pool = write(tmp_path / "a", part_tokens=9)
    grown = extend_pool(tmp_path / "a", tmp_path / "b", [[20, 21]], groups=[9], leads=leads)
    assert grown.leads is not None and grown.leads.tolist() == [2, 1, 0, 0, 1 if leads else 0]
    assert grown_from(pool, grown) == grown_from(pool.fingerprint, grown)
    assert [grown.tokens(number).tolist() for number in range(5)] == [*DOCUMENTS, [20, 21]]


def test_a_pool_may_get_leads_when_it_grows(tmp_path: Path):
    pool = write_pool(tmp_path / "a", DOCUMENTS, vocab_size=100, bos=2)
    grown = extend_pool(tmp_path / "a", tmp_path / "b", [[20, 21]], leads=[[5, 6]])
    assert grown.leads is not None and grown.leads.tolist() == [1, 1, 1, 1, 3]
    assert grown_from(pool.fingerprint, grown).documents == 4


def test_metadata_alone_tell_every_length(tmp_path: Path):
    pool = write(tmp_path / "a")
    copy_metadata(pool, tmp_path / "m")
    bare = open_metadata(tmp_path / "m", "a")
    assert bare.fingerprint == pool.fingerprint
    assert bare.fronts(np.arange(4)).tolist() == [2, 1, 0, 0]
