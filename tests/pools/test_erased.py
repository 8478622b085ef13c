"""Erased documents are told from damaged ones."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.pools import Pool, open_pool, write_pool
from recipe.pools.erased import explained

LENGTHS = [3, 1, 0, 8, 5, 2, 6]


@pytest.fixture
def pool(tmp_path):
    """Bodies of ones and up, EOS 99 behind each, BOS 98 before each; two parts."""
    texts = [np.arange(1, length + 1) for length in LENGTHS]
    return write_pool(tmp_path / "pool", texts, vocab_size=100, eos=99, bos=98, part_tokens=20)


def overwrite(pool: Pool, document: int, *, value: int = 0, marks: bool = False, only: slice = slice(None)):
    """Change the stored tokens of a document in its file."""
    start, stop = pool.offsets[document : document + 2].tolist()
    part = int(np.searchsorted(pool.part_documents, document, side="right")) - 1
    path = pool.layout.part_path(part)
    stored = np.fromfile(path, pool.token_dtype)
    base = int(pool.part_offsets[part])
    span = stored[start - base : stop - base] if marks else stored[start - base + 1 : stop - base - 1]
    span[only] = value
    stored.tofile(path)


def judged(pool: Pool, withdrawn: Iterable[int]) -> tuple[bool, list[int]]:
    """Whether all findings are explained, and the documents erased."""
    again = open_pool(Path(pool.path), pool.name)
    findings = again.verify(full=True)
    left, erased = explained(again, findings, np.array(sorted(withdrawn), np.int64))
    return not left, erased.tolist()


@pytest.mark.parametrize("marks", [False, True])
def test_a_withdrawn_document_of_zeros_is_erased(pool, marks):
    overwrite(pool, 3, marks=marks)
    assert judged(pool, [3]) == (True, [3])
    assert judged(pool, [3, 5]) == (True, [3])
    assert judged(pool, []) == (False, []) and judged(pool, [4]) == (False, [])


def test_the_document_beside_it_must_be_whole(pool):
    overwrite(pool, 3)
    overwrite(pool, 0, value=7, only=slice(0, 1))
    assert judged(pool, [3]) == (False, [])


def test_a_withdrawn_document_that_was_changed_is_not_erased(pool):
    overwrite(pool, 3, value=7)
    assert judged(pool, [3]) == (False, [])
    overwrite(pool, 3, only=slice(1, None))
    assert judged(pool, [3]) == (False, [])


def test_a_mark_beside_it_that_was_lost_is_damage(pool):
    overwrite(pool, 3)
    overwrite(pool, 2, marks=True)
    assert judged(pool, [3]) == (False, [])
    assert judged(pool, [2, 3]) == (True, [3])


def test_a_document_table_that_was_changed_vouches_for_nothing(pool):
    overwrite(pool, 3)
    table = pool.path / "documents.parquet"
    data = bytearray(table.read_bytes())
    data[40] ^= 1
    table.write_bytes(data)
    assert judged(pool, [3])[0] is False


@settings(max_examples=40)
@given(data=st.data())
def test_any_other_byte_that_differs_is_damage(pool, data):
    original = {path: path.read_bytes() for path in sorted(pool.path.glob("*.bin"))}
    try:
        overwrite(pool, 3)
        path = data.draw(st.sampled_from(list(original)))
        stored = bytearray(path.read_bytes())
        at = data.draw(st.integers(0, len(stored) - 1))
        stored[at] ^= 1 << data.draw(st.integers(0, 7))
        path.write_bytes(stored)
        token = at // pool.token_dtype.itemsize + int(pool.part_offsets[list(original).index(path)])
        start, stop = pool.offsets[3:5].tolist()
        if token not in (start, stop - 1):  # its marks may be anything: nobody reads them
            assert judged(pool, [3])[0] is False
    finally:
        for path, content in original.items():
            path.write_bytes(content)
