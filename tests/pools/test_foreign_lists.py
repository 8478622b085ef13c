"""Lists of boundaries beside raw token files."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from recipe.errors import RecipeError
from recipe.pools import open_pool
from recipe.pools.foreign.form import Form

TWELVE = [1, 0, 3, 4, 5, 6, 0, 7, 8, 9, 10, 0]


def npy(numbers: list[int]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with path.open("wb") as file:
            np.save(file, np.array(numbers))

    return write


def text(content: str) -> Callable[[Path], None]:
    return lambda path: path.write_text(content) and None


LISTS = {
    "offsets": npy([0, 4, 7, 12]),
    "ends": npy([4, 7, 12]),
    "lengths": npy([4, 3, 5]),
    "raw": lambda path: np.array([4, 7, 12], np.int64).tofile(path),
    "text": text("4\n3\n5\n"),
}


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "a.u16"
    np.array(TWELVE, np.uint16).tofile(path)
    return path


@pytest.mark.parametrize("kind", LISTS)
def test_D04_a_list_of_boundaries_is_believed_and_nothing_is_scanned(tokens, kind):
    """A document cut without EOS does not swallow the next one: 3 documents, where a scan finds 3 others."""
    LISTS[kind](tokens.with_suffix(".lens"))
    pool = open_pool(tokens, "p", eos=0, form=Form(boundaries=".lens"))
    assert pool.offsets.tolist() == [0, 4, 7, 12]
    assert pool.stored_marks(np.arange(3))[1].tolist() == [False, True, True]
    assert [pool.tokens(k).tolist() for k in range(3)] == [[1, 0, 3, 4], [5, 6], [7, 8, 9, 10]]
    assert open_pool(tokens, "p", eos=0).offsets.tolist() == [0, 2, 7, 12]


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_D04_spans_as_dolma_writes_them_are_read(tokens, ending):
    rows = b"0,4,id-0,web.jsonl.gz,1\n4,7,id-1,web.jsonl.gz,2\n7,12,id-2,web.jsonl.gz,3\n"
    tokens.with_name("a.u16" + ending).write_bytes(gzip.compress(rows) if ending.endswith("gz") else rows)
    pool = open_pool(tokens.parent, "p", eos=0, form=Form(boundaries=ending))
    assert pool.offsets.tolist() == [0, 4, 7, 12]


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (npy([4, 7, 13]), "end at token 13"),
        (npy([4, 7, 11]), "end at token 11: 1 tokens behind the last one belong to none"),
        (npy([7, 4, 12]), "document 1 that ends at token 4, before it begins"),
        (npy([-1, 13]), "-1, a negative number"),
        (text("4\nseven_\n"), "another kind|no number"),
        (lambda path: path.write_bytes(b"12345"), "end at token 12345"),
    ],
)
def test_a_list_that_does_not_fit_the_tokens_is_refused(tokens, write, message):
    write(tokens.with_suffix(".lens"))
    with pytest.raises(RecipeError, match=message):
        open_pool(tokens, "p", eos=0, form=Form(boundaries=".lens"))
    assert not list((tokens.parent / ".recipe").glob("*.ends*"))


def test_spans_with_gaps_are_refused(tokens):
    tokens.with_suffix(".csv").write_bytes(b"0,4\n5,12\n")
    with pytest.raises(RecipeError, match="line 1: a document from token 5, 4 comes next"):
        open_pool(tokens, "p", eos=0, form=Form(boundaries=".csv"))


@pytest.mark.parametrize(
    ("ending", "data"),
    [
        (".csv", b"4\n7\n12\n"),
        (".csv", b"start,end\n0,12\n"),
        (".csv", b"0,4,a\n4\n"),
        (".csv.gz", b"0,12\n"),
        (".csv.gz", gzip.compress(b"0,12\n", mtime=0)[:-3]),
        (".npy", b"\x93NUMPY\x01\x00v\x00{}"),
        (".npy", b"\x93NUMPY"),
    ],
)
def test_lists_that_cannot_be_read_are_refused_and_not_raised(tokens, ending, data):
    tokens.with_name("a.u16" + ending).write_bytes(data)
    with pytest.raises(RecipeError, match=r"lines 0\.\.|cannot be read"):
        open_pool(tokens, "p", form=Form(boundaries=ending))


def test_a_list_that_is_missing_or_there_twice_is_refused(tokens):
    with pytest.raises(RecipeError, match=r"no list of boundaries"):
        open_pool(tokens, "p", eos=0, form=Form(boundaries=".lens"))
    LISTS["ends"](tokens.with_suffix(".lens"))
    LISTS["ends"](tokens.with_name("a.u16.lens"))
    with pytest.raises(RecipeError, match=r"both, with boundaries: \.lens"):
        open_pool(tokens, "p", eos=0, form=Form(boundaries=".lens"))


def test_lists_of_a_folder_are_no_tokens(tmp_path):
    for name, numbers in (("a", [1, 2, 3]), ("b", [4, 5])):
        np.save(tmp_path / f"{name}.npy", np.array(numbers, np.uint16))
        np.save(tmp_path / f"{name}.ends.npy", np.array([1, len(numbers)]))
    pool = open_pool(tmp_path, "p", form=Form(boundaries=".ends.npy"))
    assert pool.offsets.tolist() == [0, 1, 3, 4, 5]


def test_another_list_makes_another_pool(tokens):
    LISTS["ends"](tokens.with_suffix(".lens"))
    before = open_pool(tokens, "p", form=Form(boundaries=".lens"))
    npy([5, 7, 12])(tokens.with_suffix(".lens"))
    after = open_pool(tokens, "p", form=Form(boundaries=".lens"))
    assert after.offsets.tolist() == [0, 5, 7, 12]
    assert after.fingerprint != before.fingerprint
