"""Offsets of pools of many documents: 32 bits of each on disk, the same numbers and fingerprint."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from recipe.errors import RecipeError
from recipe.pools import PoolWriter, open_pool
from recipe.pools.card import CARD_NAME, FileRecord, LowOffsets, card_text, read_card
from recipe.pools.metadata import copy_metadata, open_metadata
from recipe.pools.npy_files import file_record
from recipe.pools.offsets import Offsets, found_low, write_offsets
from recipe.pools.refingerprint import refingerprint
from recipe.pools.reparting import repart_pool

LENGTHS = st.lists(st.integers(0, 5) | st.integers(0, 2**31 - 1), min_size=1, max_size=40)


def kept(whole):
    """Offsets of which the low bits are kept."""
    edges = np.arange(1, (int(whole[-1]) >> 32) + 1) << 32
    return Offsets(whole.astype(np.uint32), np.searchsorted(whole, edges))


@given(LENGTHS, st.data())
def test_low_bits_are_read_as_the_numbers_that_they_were(lengths, data):
    whole = np.cumsum([0, *lengths])
    low, last = kept(whole), len(whole)
    assert low.tolist() == np.asarray(low).tolist() == [int(one) for one in low] == whole.tolist()
    assert (len(low), low.shape, low.dtype) == (last, whole.shape, whole.dtype)
    one = st.integers(-last, last - 1)
    key = data.draw(one | st.slices(last) | st.lists(one, min_size=1))
    assert np.array_equal(low[key], whole[key])
    numbers = np.array(data.draw(st.lists(st.integers(-last, last - 1), max_size=9)), np.int64)
    assert np.array_equal(low[numbers], whole[numbers]) and low[numbers].dtype == np.int64
    chosen = data.draw(hnp.arrays(np.bool_, last))
    assert np.array_equal(low[chosen], whole[chosen])


@given(LENGTHS, st.data(), st.sampled_from(["left", "right"]))
def test_numbers_are_found_as_among_whole_offsets(lengths, data, side):
    whole = np.cumsum([0, *lengths])
    near = st.sampled_from(whole.tolist()).flatmap(lambda at: st.integers(at - 2, at + 2))
    values = data.draw(st.lists(near | st.integers(-(2**40), 2**40), max_size=9))
    asked = np.array(values, np.int64)
    expected = np.searchsorted(whole, asked, side=side)
    assert np.array_equal(np.searchsorted(kept(whole), asked, side=side), expected)
    for value in values:
        assert np.searchsorted(kept(whole), value, side=side) == np.searchsorted(whole, value, side=side)


@given(LENGTHS, st.integers(1, 7))
def test_a_card_says_where_low_bits_begin_anew(tmp_path_factory, lengths, size):
    whole, folder = np.cumsum([0, *lengths]), tmp_path_factory.mktemp("o")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("recipe.pools.offsets.MANY_DOCUMENTS", 0)
        patch.setattr("recipe.pools.offsets._PIECE", size)
        cut = [whole[at : at + size] for at in range(0, len(whole), size)]
        record, low = write_offsets(folder, len(whole), lambda: cut)
        assert found_low(folder) == low
    assert low.wraps == tuple(np.searchsorted(whole, np.arange(1, (int(whole[-1]) >> 32) + 1) << 32).tolist())
    assert record.bytes == (folder / "offsets.npy").stat().st_size == 128 + 4 * len(whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("recipe.pools.offsets.MANY_DOCUMENTS", 1 << 15)
        found = write_offsets(folder, len(whole), lambda: cut)
    assert found == (FileRecord(bytes=128 + 8 * len(whole), hash=low.hash), None)


def write(path, part_tokens=40, extends=None):
    with PoolWriter(path, vocab_size=100, eos=0, part_tokens=part_tokens, extends=extends) as writer:
        first = 0 if extends is None else extends.num_documents
        for number in range(first, first + 30):
            writer.add(np.full(number % 5, number), id=f"d{number}")
        return writer.close()


@pytest.fixture
def pools(tmp_path, monkeypatch):
    """The same pool with whole offsets, and with their low bits."""
    whole = write(tmp_path / "whole")
    monkeypatch.setattr("recipe.pools.offsets.MANY_DOCUMENTS", 8)
    return whole, write(tmp_path / "low")


def test_a_pool_has_one_fingerprint_however_its_offsets_are_kept(pools):
    whole, low = pools
    assert whole.card.low_offsets is None and low.card.low_offsets.wraps == ()
    assert low.fingerprint == whole.fingerprint and low.offsets.tolist() == whole.offsets.tolist()
    assert np.load(low.path / "offsets.npy").dtype == np.uint32
    assert "low_offsets" not in json.loads((whole.path / CARD_NAME).read_bytes())
    assert read_card(low.path) == low.card
    assert not low.verify(full=True)
    assert all(np.array_equal(low.tokens(n), whole.tokens(n)) for n in range(low.num_documents))
    again = refingerprint(low.path)
    assert again.same and again.is_current and not again.findings


def test_pools_made_of_such_a_pool_are_what_they_would_be(pools, tmp_path):
    whole, low = pools
    assert write(tmp_path / "a", extends=low).fingerprint == write(tmp_path / "b", extends=whole).fingerprint
    parts = repart_pool(low, tmp_path / "c", part_tokens=70)
    assert parts.fingerprint == low.fingerprint and not parts.verify(full=True)
    bare = open_metadata(copy_metadata(low, tmp_path / "d"), "low")
    assert bare.fingerprint == low.fingerprint and bare.offsets.tolist() == whole.offsets.tolist()


def forged(pool, change):
    """Other offsets, and a card that states the hash of their file, but the old fingerprint."""
    path = pool.path / "offsets.npy"
    low = np.load(path)
    np.save(path, change(low))
    card = read_card(pool.path)
    files = {**card.files, path.name: file_record(path)}
    (pool.path / CARD_NAME).write_bytes(card_text(replace(card, files=files)))


def moved(low):
    return np.concatenate([low[:5], low[5:6] + 1, low[6:]]).astype(np.uint32)


def test_low_bits_that_the_fingerprint_does_not_stand_for_are_refused(pools, tmp_path):
    low = pools[1]
    copy = copy_metadata(low, tmp_path / "bare")
    forged(low, moved)
    with pytest.raises(RecipeError, match="contents with hash"):
        _ = open_pool(low.path, "p").offsets
    assert {one.check for one in low.verify(full=True)} >= {"contents", "offsets"}
    (copy / "offsets.npy").write_bytes((low.path / "offsets.npy").read_bytes())
    (copy / CARD_NAME).write_bytes((low.path / CARD_NAME).read_bytes())
    with pytest.raises(RecipeError, match="contents with hash"):
        open_metadata(copy, "p")


def test_low_bits_with_another_end_are_refused(pools):
    low = pools[1]
    forged(low, lambda low: np.append(low[:-1], low[-1:] + 1).astype(np.uint32))
    with pytest.raises(RecipeError, match=f"from 0 to {low.num_tokens}, as its card says"):
        _ = open_pool(low.path, "p").offsets


def test_a_card_with_low_offsets_survives_its_file(pools):
    card = replace(pools[1].card, low_offsets=LowOffsets(hash="0" * 64, wraps=(3, 3, 9)))
    (pools[1].path / CARD_NAME).write_bytes(card_text(card))
    assert read_card(pools[1].path).low_offsets == card.low_offsets
