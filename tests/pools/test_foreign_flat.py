"""Files of nothing but tokens, with a header or without, as pools."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.errors import RecipeError
from recipe.pools import Pool, open_pool
from recipe.pools.foreign.form import Form
from recipe.pools.foreign.scanning import _CHUNK_BYTES

TEN = [1, 2, 3, 0, 4, 5, 0, 6, 7, 0]


def bodies(pool: Pool) -> list[list[int]]:
    return [pool.tokens(number).tolist() for number in range(pool.num_documents)]


def raw(path: Path, tokens: list[int], dtype: str = "uint16") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.array(tokens, dtype).tofile(path)
    return path


def test_F03_a_header_is_recognised_and_never_read_as_data(tmp_path):
    """1,000 ids with a header and without, both named .npy: 1,000 ids from both."""
    ids = np.append(np.arange(1, 1000, dtype=np.uint16), np.uint16(0))
    np.save(tmp_path / "head.npy", ids)
    ids.tofile(tmp_path / "bare.npy")
    with_head = open_pool(tmp_path / "head.npy", "p", eos=0)
    without = open_pool(tmp_path / "bare.npy", "p", eos=0, form=Form(dtype="uint16"))
    assert with_head.num_tokens == without.num_tokens == 1000
    assert with_head.stored(0).tolist() == without.stored(0).tolist() == ids.tolist()


def test_N07_a_negative_id_is_refused_where_it_stands(tmp_path):
    np.save(tmp_path / "a.npy", np.array([*TEN, -7, 0], np.int32))
    with pytest.raises(RecipeError, match=r"id -7 at token 10\n    expected  ids from 0 on"):
        open_pool(tmp_path / "a.npy", "p", eos=0)


def test_F03_a_headerless_npy_asks_for_its_type(tmp_path):
    for number in range(3):
        raw(tmp_path / f"{number}.npy", TEN)
    with pytest.raises(RecipeError, match=r"/0\.npy\n    given     no header") as refused:
        open_pool(tmp_path, "p", eos=0)
    assert len(refused.value.problems) == 1 and "dtype: uint16" in str(refused.value)
    assert "and so 2 more" in str(refused.value)


def test_F03_a_type_that_contradicts_the_header_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.array(TEN, np.int32))
    with pytest.raises(RecipeError, match=r"dtype: uint16\n    expected  int32, as its header says"):
        open_pool(tmp_path / "a.npy", "p", eos=0, form=Form(dtype="uint16"))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32"])
@pytest.mark.parametrize("head", [True, False])
def test_every_width_is_read_with_a_header_and_without(tmp_path, dtype, head):
    if head:
        np.save(tmp_path / "a.npy", np.array(TEN, dtype))
    else:
        raw(tmp_path / "a.npy", TEN, dtype)
    pool = open_pool(tmp_path / "a.npy", "p", eos=0, form=Form(dtype=dtype))
    assert pool.token_dtype.name == dtype
    assert bodies(pool) == [[1, 2, 3], [4, 5], [6, 7]]
    assert pool.verify(full=True) == []


@pytest.mark.parametrize("wrong", ["<f4", ">u2", "<u8", "?"])
def test_other_types_are_refused(tmp_path, wrong):
    np.save(tmp_path / "a.npy", np.array(TEN).astype(wrong))
    with pytest.raises(RecipeError, match="little-endian"):
        open_pool(tmp_path / "a.npy", "p", eos=0)


@pytest.mark.parametrize("ending", ["u16", "uint16", "bin", "raw", "dat"])
def test_raw_files_of_any_name_are_read_when_they_are_named(tmp_path, ending):
    path = raw(tmp_path / f"a.{ending}", TEN)
    pool = open_pool(path, "p", eos=0, form=Form(dtype=None if "16" in ending else "uint16"))
    assert bodies(pool) == [[1, 2, 3], [4, 5], [6, 7]]


def test_an_ending_that_says_another_type_is_refused(tmp_path):
    with pytest.raises(RecipeError, match="uint32, as its ending says"):
        open_pool(raw(tmp_path / "a.u32", TEN, "uint32"), "p", eos=0, form=Form(dtype="uint16"))


def test_bytes_that_are_no_whole_tokens_are_refused(tmp_path):
    (tmp_path / "a.u32").write_bytes(bytes(10))
    with pytest.raises(RecipeError, match="10 bytes"):
        open_pool(tmp_path / "a.u32", "p", eos=0)


@pytest.mark.parametrize("change", [-1, 2])
def test_F02_a_npy_file_of_another_size_than_its_header_says_is_refused(tmp_path, change):
    np.save(tmp_path / "a.npy", np.array(TEN, np.uint16))
    data = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(data[:change] if change < 0 else data + bytes(change))
    with pytest.raises(RecipeError, match=f"{len(data) + change} bytes\n    expected  {len(data)}"):
        open_pool(tmp_path / "a.npy", "p", eos=0)


def test_F02_an_empty_file_is_named_or_left_out_with_a_word(tmp_path):
    raw(tmp_path / "a.u16", [*range(1, 100), 0])
    (tmp_path / "b.u16").touch()
    with pytest.raises(RecipeError, match=r"b\.u16\n    given     no token \(0 bytes\)"):
        open_pool(tmp_path, "p", eos=0)
    pool = open_pool(tmp_path, "p", eos=0, form=Form(empty="skip"))
    assert pool.num_tokens == 100
    assert pool.layout.notes == ("left out, as they hold no token: b.u16 (1 in all)",)


def test_D04_a_file_that_does_not_end_with_the_mark_is_told(tmp_path):
    raw(tmp_path / "a.u16", [1, 2, 0, 3])
    raw(tmp_path / "b.u16", [4, 0])
    pool = open_pool(tmp_path, "p", eos=0)
    assert bodies(pool) == [[1, 2], [3], [4]]
    assert pool.stored_marks(np.arange(3))[1].tolist() == [True, False, True]
    assert (pool.card.body_tokens, pool.card.special_tokens) == (4, 2)
    (note,) = pool.layout.notes
    assert (
        "1 of 2 files end without the mark 0 (the first is a.u16): the last document of each is cut" in note
    )


def test_D04_a_file_without_any_mark_is_refused_with_the_number(tmp_path):
    raw(tmp_path / "a.u16", [1, 2, 3])
    with pytest.raises(RecipeError, match="no token 0 in its 3 tokens"):
        open_pool(tmp_path, "p", eos=0)
    assert bodies(open_pool(tmp_path, "p", eos=0, form=Form(documents="file"))) == [[1, 2, 3]]


def test_tokens_without_a_word_on_documents_are_refused(tmp_path):
    raw(tmp_path / "a.u16", TEN)
    with pytest.raises(RecipeError, match="nothing that says where a document ends"):
        open_pool(tmp_path, "p")


def test_marks_in_front_delimit_documents_too(tmp_path):
    """Files that begin each document with its mark, and are cut anywhere."""
    raw(tmp_path / "a.u16", [9, 1, 2, 9, 3])
    raw(tmp_path / "b.u16", [4, 9, 5])
    pool = open_pool(tmp_path, "p", bos=9, form=Form(documents="bos"))
    assert bodies(pool) == [[1, 2], [3], [4], [5]]
    assert pool.offsets.tolist() == [0, 3, 5, 6, 8]
    assert "1 of 2 files begin without the mark 9 (the first is b.u16)" in pool.layout.notes[0]


def test_empty_documents_are_documents(tmp_path):
    assert bodies(open_pool(raw(tmp_path / "a.u16", [0, 1, 0, 0]), "p", eos=0)) == [[], [1], []]


def test_rows_of_a_square_array_are_documents_unless_marks_are(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[1, 0, 2], [3, 4, 0]], np.uint16))
    assert bodies(open_pool(tmp_path / "a.npy", "p")) == [[1, 0, 2], [3, 4, 0]]
    scanned = open_pool(tmp_path / "a.npy", "p", eos=0, form=Form(documents="eos"))
    assert bodies(scanned) == [[1], [2, 3, 4]]
    np.save(tmp_path / "a.npy", np.asfortranarray(np.ones((3, 2), np.uint16)))
    with pytest.raises(RecipeError, match="columns first"):
        open_pool(tmp_path / "a.npy", "p")


def test_a_document_of_more_than_2_31_tokens_is_refused(tmp_path):
    """A sparse file of one document: nothing of it is read to know that."""
    with (tmp_path / "a.u8").open("wb") as file:
        file.truncate((1 << 31) + 1)
    pool = open_pool(tmp_path / "a.u8", "p", form=Form(documents="file"))
    with pytest.raises(RecipeError, match="document 0 of 2147483649 tokens"):
        _ = pool.offsets


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40))
def test_a_scan_cuts_behind_every_mark_and_nowhere_else(tmp_path_factory, tokens):
    tokens = [*tokens, 0]
    folder = tmp_path_factory.mktemp("scan")
    pool = open_pool(raw(folder / "a.u16", tokens), "p", eos=0)
    assert pool.offsets.tolist() == [0, *(at + 1 for at, token in enumerate(tokens) if token == 0)]
    shutil.rmtree(folder)


def test_a_scan_in_chunks_finds_marks_at_their_edges(tmp_path):
    tokens = np.ones(_CHUNK_BYTES + 5, np.uint8)
    marks = [0, _CHUNK_BYTES - 1, _CHUNK_BYTES, _CHUNK_BYTES + 4]
    tokens[marks] = 7
    tokens.tofile(tmp_path / "a.u8")
    pool = open_pool(tmp_path / "a.u8", "p", eos=7)
    assert pool.offsets.tolist() == [0, *(mark + 1 for mark in marks)]


def test_N07_ids_out_of_range_are_found_with_file_and_position(tmp_path):
    np.save(tmp_path / "shard-1.npy", np.array([1, 2, 3, 4, 5, 63_999, -1, 0], np.int32))
    pool = open_pool(tmp_path, "a", form=Form(documents="file"))  # no mark is looked for
    high, low = pool.check_ids(32_000)
    assert f"id 63999 at position 5 of {tmp_path / 'shard-1.npy'}" in high.given
    assert f"id -1 at position 6 of {tmp_path / 'shard-1.npy'}" in low.given
    assert open_pool(raw(tmp_path / "b.u16", [31_999, 0]), "b", eos=0).check_ids(32_000) == []


def test_S04_files_of_folders_and_patterns_come_in_sorted_order(tmp_path):
    for number, name in enumerate(["c", "x/2", "a", "x/1", "b"]):
        raw(tmp_path / f"{name}.u16", [number + 1, 0])
    expected = [[3], [5], [1], [4], [2]]
    assert bodies(open_pool(tmp_path, "p", eos=0)) == expected
    assert bodies(open_pool(tmp_path / "**" / "*.u16", "p", eos=0)) == expected
    assert bodies(open_pool(tmp_path / "[ab].u16", "p", eos=0)) == [[3], [5]]
    moved = tmp_path.with_name(tmp_path.name + "-moved")
    shutil.copytree(tmp_path, moved)
    assert open_pool(moved, "p", eos=0).fingerprint == open_pool(tmp_path, "p", eos=0).fingerprint
    shutil.rmtree(moved)


def test_files_of_several_kinds_are_refused_with_what_to_write(tmp_path):
    raw(tmp_path / "a.u16", TEN)
    (tmp_path / "b.parquet").touch()
    with pytest.raises(RecipeError, match=r"expected  files of one kind\n.*\*\*/\*\.u16"):
        open_pool(tmp_path, "p", eos=0)
    assert open_pool(tmp_path / "*.u16", "p", eos=0).num_documents == 3


def test_files_of_several_types_are_refused(tmp_path):
    raw(tmp_path / "a.u16", TEN)
    raw(tmp_path / "b.u32", TEN, "uint32")
    with pytest.raises(RecipeError, match=r"type uint32\n    expected  uint16, as in"):
        open_pool(tmp_path, "p", eos=0)


def test_words_for_files_are_refused_of_pools_that_state_them(tmp_path):
    from recipe.pools import write_pool

    write_pool(tmp_path / "own", [[1, 2]], vocab_size=10)
    with pytest.raises(RecipeError, match=r"pools\.p\.dtype"):
        open_pool(tmp_path / "own", "p", form=Form(dtype="uint16"))


def test_what_a_recipe_says_travels_with_a_pickle(tmp_path):
    raw(tmp_path / "a.npy", TEN)
    pool = open_pool(tmp_path / "a.npy", "p", eos=0, form=Form(dtype="uint16"))
    assert bodies(pickle.loads(pickle.dumps(pool))) == bodies(pool)


CHANGED: dict[str, Any] = {
    "tokens": lambda path: raw(path, [1, 2, 3, 0, 4, 5, 0, 6, 8, 0]),
    "length": lambda path: raw(path, [*TEN, 5, 0]),
}


@pytest.mark.parametrize("change", CHANGED)
def test_C07_another_content_is_another_pool(tmp_path, change):
    path = raw(tmp_path / "a.u16", TEN)
    before = open_pool(path, "p", eos=0)
    CHANGED[change](path)
    after = open_pool(path, "p", eos=0)
    assert after.fingerprint != before.fingerprint
    assert [finding.check for finding in before.verify()] == ["contents"]


def test_C07_other_marks_make_other_documents_and_another_pool(tmp_path):
    path = raw(tmp_path / "a.u16", TEN)
    five = open_pool(path, "p", eos=5)
    assert five.offsets.tolist() == [0, 6, 10]
    assert five.fingerprint != open_pool(path, "p", eos=0).fingerprint


def test_files_that_are_added_behind_are_growth(tmp_path):
    from recipe.pools import grown_from

    raw(tmp_path / "a.u16", TEN)
    before = open_pool(tmp_path, "p", eos=0)
    raw(tmp_path / "b.u16", [8, 0])
    prefix = grown_from(before.fingerprint, open_pool(tmp_path, "p", eos=0))
    assert (prefix.documents, prefix.parts) == (3, 1)


LARGE = """\
import resource, sys
from recipe.pools import open_pool

used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
pool = open_pool(sys.argv[1], "p", eos=1)
assert pool.num_documents == 1 and pool.num_tokens == 1 << 28
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used) >> 10)
"""


def test_a_scan_takes_a_few_megabytes_whatever_the_size(tmp_path):
    """512 MiB, of which only the last token is on the disk."""
    path = tmp_path / "a.u16"
    with path.open("wb") as file:
        file.truncate((1 << 29) - 2)
        file.seek(0, 2)
        file.write(np.array([1], "<u2").tobytes())
    done = subprocess.run(
        [sys.executable, "-c", LARGE, str(path)], check=True, capture_output=True, text=True
    )
    assert int(done.stdout) < 64
