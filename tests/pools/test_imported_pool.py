"""Megatron pairs named as they are."""

from __future__ import annotations

import pickle
import shutil
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.errors import RecipeError
from recipe.pools import open_pool, write_pool
from recipe.pools.megatron import read_index, write_index
from tests.pools.megatron_files import write_pair


def bodies(pool) -> list[list[int]]:
    return [pool.tokens(number).tolist() for number in range(pool.num_documents)]


@given(
    parts=st.lists(
        st.lists(st.lists(st.lists(st.integers(0, 100), max_size=4), max_size=3), max_size=4),
        min_size=1,
        max_size=3,
    ),
    code=st.sampled_from([1, 2, 3, 4, 5, 8]),
)
def test_any_pairs_are_read_by_their_index(tmp_path_factory, parts, code):
    """Documents may span several sequences, or none."""
    folder = tmp_path_factory.mktemp("pairs")
    for number, documents in enumerate(parts):
        write_pair(folder / f"{number}", documents, code)
    pool = open_pool(folder, "p")
    assert bodies(pool) == [list(chain(*document)) for part in parts for document in part]
    assert pool.verify(full=True) == []
    assert pool.stock == pool.num_tokens == pool.offsets[-1]
    shutil.rmtree(folder)


def test_D04_boundaries_come_from_the_index_not_from_marks(tmp_path):
    """A document cut without EOS does not swallow the next one, an EOS inside ends nothing."""
    write_pair(tmp_path / "p", [[[1, 0, 3, 4]], [[5, 6, 0]], [[7, 8, 9, 10, 0]]], 8)
    pool = open_pool(tmp_path / "p", "p", eos=0)
    assert pool.offsets.tolist() == [0, 4, 7, 12]
    assert pool.stored_marks(np.arange(3))[1].tolist() == [False, True, True]
    assert bodies(pool) == [[1, 0, 3, 4], [5, 6], [7, 8, 9, 10]]
    assert (pool.stock, pool.card.special_tokens, pool.card.counted) == (10, 2, "exact")


@pytest.mark.parametrize(
    ("tokens", "bos", "eos", "right"),
    [
        ([9, 1, 2, 0], 9, 0, [1, 2]),
        ([9, 1, 2], 9, 0, [1, 2]),
        ([1, 2, 0], 9, 0, [1, 2]),
        ([0, 1, 0], 0, 0, [1]),
        ([0], 0, 0, []),
        ([0, 0], 0, 0, []),
        ([9], 9, 0, []),
        ([], 9, 0, []),
        ([9, 0], None, None, [9, 0]),
    ],
)
def test_stored_marks_are_recognised_and_not_counted_twice(tmp_path, tokens, bos, eos, right):
    write_pair(tmp_path / "p", [[[5]], [tokens], [[6]]], 4)
    pool = open_pool(tmp_path / "p", "p", eos=eos, bos=bos)
    assert bodies(pool) == [[5], right, [6]]
    assert pool.card.special_tokens == len(tokens) - len(right)


def test_marks_are_looked_up_over_many_parts_in_any_order(tmp_path):
    for part in range(7):
        write_pair(tmp_path / f"{part}", [[[1, part]], [[part, 0]]], 4)
    pool = open_pool(tmp_path, "p", eos=0)
    asked = np.array([13, 0, 5, 5, 2, 1])
    assert pool.stored_marks(asked)[1].tolist() == [True, True, True, True, False, True]


def test_F01_a_last_entry_that_is_not_the_number_of_sequences_is_refused(tmp_path):
    write_pair(tmp_path / "p", [[[1, 2, 3]], [[4, 5]]], 4, last=3)
    with pytest.raises(RecipeError) as refused:
        open_pool(tmp_path / "p", "p")
    message = str(refused.value)
    assert str(tmp_path / "p.idx") in message
    assert "3 as its last document entry" in message and "2, its number of sequences" in message


def test_F01_two_pairs_are_the_documents_of_both_in_turn(tmp_path):
    write_pair(tmp_path / "a", [[[1, 2, 3]], [[4, 5]]], 4)
    write_pair(tmp_path / "b", [[[6, 7, 8, 9]]], 4)
    pool = open_pool(tmp_path, "p")
    assert (pool.num_documents, pool.num_tokens) == (3, 9)
    assert bodies(pool) == [[1, 2, 3], [4, 5], [6, 7, 8, 9]]


@pytest.mark.parametrize("keep", [0, 1, 9])
def test_F02_a_token_file_cut_short_is_named(tmp_path, keep):
    write_pair(tmp_path / "a", [[[1] * 100]], 8)
    write_pair(tmp_path / "b", [[[1] * 5]], 8)
    (tmp_path / "b.bin").write_bytes((tmp_path / "b.bin").read_bytes()[:keep])
    with pytest.raises(RecipeError, match=r"b\.bin\n.*\n    expected  10 bytes"):
        open_pool(tmp_path, "p")


@pytest.mark.parametrize("keep", [0, 5, 20, 40, 60])
def test_an_index_cut_short_is_named(tmp_path, keep):
    write_pair(tmp_path / "a", [[[1, 2]], [[3]]], 8)
    (tmp_path / "a.idx").write_bytes((tmp_path / "a.idx").read_bytes()[:keep])
    with pytest.raises(RecipeError, match=r"a\.idx"):
        open_pool(tmp_path, "p")


def test_a_token_file_that_is_longer_than_its_index_says_is_refused(tmp_path):
    write_pair(tmp_path / "a", [[[1, 2]]], 8)
    with (tmp_path / "a.bin").open("ab") as file:
        file.write(b"1234")
    with pytest.raises(RecipeError, match=r"8 bytes\n    expected  4 bytes, as its index says"):
        open_pool(tmp_path / "a", "p")


@pytest.mark.parametrize("changes", [{"version": 2}, {"code": 7}, {"code": 6}])
def test_unknown_versions_and_types_are_refused(tmp_path, changes):
    write_pair(tmp_path / "a", [[[1, 2]]], **{"code": 8, **changes})
    with pytest.raises(RecipeError, match=r"version 2|an integer type"):
        open_pool(tmp_path / "a", "p")


def test_sequences_with_gaps_are_refused_when_offsets_are_asked_for(tmp_path):
    write_pair(tmp_path / "a", [[[1, 2]], [[3]], [[4]]], 8, pointers=[0, 2, 6])
    pool = open_pool(tmp_path / "a", "p")
    with pytest.raises(RecipeError, match="sequence 1 at byte 2"):
        _ = pool.offsets
    assert [finding.check for finding in pool.verify()] == ["index"]


def test_pairs_of_different_types_are_refused(tmp_path):
    write_pair(tmp_path / "a", [[[1]]], 8)
    write_pair(tmp_path / "b", [[[1]]], 4)
    with pytest.raises(RecipeError, match=r"type int32\n    expected  uint16, as in"):
        open_pool(tmp_path, "p")


def test_a_token_file_without_index_is_refused(tmp_path):
    write_pair(tmp_path / "a", [[[1]]], 8)
    (tmp_path / "b.bin").touch()
    with pytest.raises(RecipeError, match=r"b\.bin\n    given     a token file without its \.idx"):
        open_pool(tmp_path, "p")


@pytest.mark.parametrize("names", [["c", "a", "b", "x/2", "x/1"], ["x/1", "b", "c", "x/2", "a"]])
def test_S04_pairs_are_taken_in_sorted_order(tmp_path, names):
    for name in names:
        write_pair(tmp_path / "p" / name, [[list(map(ord, name))]], 4)
    pool = open_pool(tmp_path / "p", "p")
    assert ["".join(map(chr, body)) for body in bodies(pool)] == ["a", "b", "c", "x/1", "x/2"]
    assert [row.part for row in pool.rows(range(5))] == ["a", "b", "c", "x/1", "x/2"]


def test_S04_two_folders_with_the_same_pairs_are_one_pool(tmp_path):
    for place, names in (("p", "cab"), ("q", "bca")):
        for name in names:
            write_pair(tmp_path / place / name, [[[ord(name)]]], 4)
    assert open_pool(tmp_path / "p", "p").fingerprint == open_pool(tmp_path / "q", "p").fingerprint


@pytest.mark.parametrize(
    "path", ["d/a_text", "d/a_text.bin", "d/a_text.idx", "d/a*", "d/*_text.idx", "**/a_*"]
)
def test_prefixes_files_and_patterns_name_pairs(tmp_path, monkeypatch, path):
    write_pair(tmp_path / "d" / "a_text", [[[1, 2]]], 8)
    monkeypatch.chdir(tmp_path)
    assert bodies(open_pool(Path(path), "p")) == bodies(open_pool(tmp_path / path, "p")) == [[1, 2]]


def test_N04_pointers_beyond_two_thousand_million_bytes(tmp_path):
    with (tmp_path / "p.idx").open("wb") as file:
        write_index(file, np.array([600_000_000, 5]), np.dtype("<i4"))
    with (tmp_path / "p.bin").open("wb") as file:
        file.truncate(2_400_000_020)
    index = read_index(tmp_path / "p.idx")
    assert index.pointers().tolist() == [0, 2_400_000_000]
    assert open_pool(tmp_path / "p", "p").offsets.tolist() == [0, 600_000_000, 600_000_005]


def test_N07_the_first_id_outside_the_model_is_placed(tmp_path):
    write_pair(tmp_path / "d" / "shard0", [[[1, 31_999]]], 4)
    write_pair(tmp_path / "d" / "shard1", [[[1, 2, 3]], [[4, 5, 63_999, -1]]], 4)
    pool = open_pool(tmp_path / "d", "A")
    high, low = pool.check_ids(32_000)
    shard = tmp_path / "d" / "shard1.bin"
    assert (high.where, high.expected) == ("pools.A", "ids in 0..31999")
    assert high.given == f"id 63999 at position 5 of {shard}"
    assert low.given == f"id -1 at position 6 of {shard}"
    assert open_pool(tmp_path / "d" / "shard0", "A").check_ids(32_000) == []


def test_the_largest_id_is_found_with_its_first_place(tmp_path):
    write_pair(tmp_path / "a", [[[1, 7]]], 4)
    write_pair(tmp_path / "b", [[[0, 9, 9]]], 4)
    most = open_pool(tmp_path, "p").max_id()
    assert (most.id, most.part, most.position) == (9, "b.bin", 1)


def test_C07_appended_tokens_change_the_fingerprint(tmp_path):
    write_pair(tmp_path / "p", [[[1] * 1000]], 8)
    before = open_pool(tmp_path / "p", "p").fingerprint
    write_pair(tmp_path / "p", [[[1] * 1010]], 8)
    assert open_pool(tmp_path / "p", "p").fingerprint != before


def test_C07_any_token_of_a_small_pair_changes_the_fingerprint(tmp_path):
    found = set()
    for at in range(50):
        write_pair(tmp_path / "p", [[[7 if k == at else 1 for k in range(50)]]], 8)
        found.add(open_pool(tmp_path / "p", "p").fingerprint)
    assert len(found) == 50


def test_a_large_pair_is_fingerprinted_by_samples_of_its_whole_length(tmp_path):
    found = set()
    tokens = np.zeros(2_000_000, dtype=np.uint16)
    write_pair(tmp_path / "p", [[[1] * 2_000_000]], 8)
    for at in (None, 0, -1):
        if at is not None:
            tokens[at] = 5
        tokens.tofile(tmp_path / "p.bin")
        found.add(open_pool(tmp_path / "p", "p").fingerprint)
    assert len(found) == 3


def test_rows_and_ids_of_imported_documents(tmp_path):
    own = write_pool(tmp_path / "own", [[1, 2], [3]], vocab_size=10, eos=0)
    pool = open_pool(tmp_path / "own" / "part-00000", "p", eos=0)
    assert pool.ids([1, 0]) == [1, 0] and pool.find(1) == 1
    (row,) = pool.rows([1])
    assert (row.id, row.part, row.tokens, row.group, row.tags) == (1, "part-00000", 1, None, {})
    assert row.content_hash == own.rows([1])[0].content_hash


def test_an_imported_pool_survives_pickling_with_its_marks(tmp_path):
    write_pair(tmp_path / "p", [[[1, 0]], [[2]]], 8)
    pool = pickle.loads(pickle.dumps(open_pool(tmp_path / "p", "n", eos=0)))
    assert (pool.name, bodies(pool)) == ("n", [[1], [2]])


def test_large_imported_pools_count_marks_from_a_sample(tmp_path, monkeypatch):
    monkeypatch.setattr("recipe.pools.imported._EXACT_DOCUMENTS", 10)
    monkeypatch.setattr("recipe.pools.imported._SAMPLED_DOCUMENTS", 5)
    write_pair(tmp_path / "p", [[[1, 2, 0]]] * 20, 8)
    card = open_pool(tmp_path / "p", "p", eos=0).card
    assert (card.body_tokens, card.special_tokens, card.counted) == (40, 20, "sampled")
