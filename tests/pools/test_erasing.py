"""A pool without the text of withdrawn documents: the same pool to a run, and the text is in no file."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.errors import RecipeError
from recipe.pools import Pool, extend_pool, grown_from, open_pool, write_pool
from recipe.pools.copying import copy_documents
from recipe.pools.erasing import erase_documents
from recipe.pools.reparting import repart_pool
from tests.pools import drawn
from tests.pools.megatron_files import write_pair

TEXTS = [[10 * k + 7] * (3 + k) for k in range(9)]
"""Document k holds the one token 10 k + 7, which no other document does."""


def small(root: Path) -> Pool:
    return write_pool(root / "pool", TEXTS, vocab_size=100, eos=1, bos=2, part_tokens=20)


def erased(pool: Pool, numbers: list[int], out: Path, reason: str = "request 12") -> Pool:
    return erase_documents(pool, np.array(numbers), out, reason=reason)


def tokens_on_disk(folder: Path) -> set[int]:
    return {int(token) for path in folder.glob("*.bin") for token in np.fromfile(path, np.uint16)}


def test_the_text_is_in_no_token_file_and_the_pool_is_the_same_to_a_run(tmp_path):
    pool = small(tmp_path)
    new = erased(pool, [6, 2], tmp_path / "new")
    assert tokens_on_disk(pool.path) - tokens_on_disk(new.path) == {27, 67}
    assert new.fingerprint == pool.fingerprint and new.offsets.tolist() == pool.offsets.tolist()
    assert new.erased.tolist() == [2, 6] and not new.tokens(2).any() and not new.stored(6).any()
    kept = [k for k in range(9) if k not in (2, 6)]
    assert all(new.stored(k).tolist() == pool.stored(k).tolist() for k in kept)
    assert new.rows(range(9)) == pool.rows(range(9))


def test_the_card_counts_what_was_withdrawn_by_reason(tmp_path):
    new = erased(small(tmp_path), [2, 6], tmp_path / "new")
    newer = erased(new, [6, 0, 1], tmp_path / "newer", "another")
    assert new.card.withdrawn == {"documents": 2, "tokens": 5 + 9, "reasons": {"request 12": 2}}
    assert newer.card.withdrawn == {
        "documents": 4,
        "tokens": 14 + 3 + 4,
        "reasons": {"request 12": 2, "another": 2},
    }
    assert newer.erased.tolist() == [0, 1, 2, 6] and newer.verify(full=True) == []


def test_files_without_such_documents_are_linked(tmp_path):
    pool, new = small(tmp_path), erased(small(tmp_path / "other"), [0], tmp_path / "new")
    new = erased(pool, [0], tmp_path / "again")
    linked = [pool.layout.part_path(k).samefile(new.layout.part_path(k)) for k in range(pool.num_parts)]
    assert linked == [False] + [True] * (pool.num_parts - 1)


@settings(max_examples=40)
@given(data=st.data(), documents=drawn.documents(), how=drawn.settings())
def test_whatever_is_erased_the_rest_is_verified_and_a_flipped_byte_is_found(data, documents, how):
    gone = data.draw(st.sets(st.integers(0, len(documents) - 1), min_size=1))
    with tempfile.TemporaryDirectory() as folder:
        pool = drawn.written(Path(folder, "pool"), documents, **how)
        new = erased(pool, sorted(gone), Path(folder, "new"))
        new = repart_pool(new, Path(folder, "cut"), part_tokens=data.draw(st.sampled_from([4, 1000])))
        assert new.fingerprint == pool.fingerprint and new.verify(full=True) == []
        kept = [k for k in range(len(documents)) if k not in gone]
        assert all(new.stored(k).tolist() == pool.stored(k).tolist() for k in kept)
        assert not any(new.stored(k).any() for k in gone)
        stored = [k for k in kept if len(new.stored(k))]
        if stored:
            document = data.draw(st.sampled_from(stored))
            part = int(np.searchsorted(new.part_documents, document, side="right")) - 1
            path = new.layout.part_path(part)
            held = np.fromfile(path, new.token_dtype)
            held[int(new.offsets[document] - new.part_offsets[part])] ^= 1
            new.close()
            held.tofile(path)
            assert open_pool(new.path, "damaged").verify(full=True) != []


def test_without_the_cards_word_zeros_are_damage(tmp_path):
    new = erased(small(tmp_path), [2], tmp_path / "new")
    assert new.verify(full=True, erased=False) != []


def test_a_pool_with_erased_documents_grows(tmp_path):
    pool = small(tmp_path)
    erased(pool, [2], tmp_path / "new")
    grown = extend_pool(tmp_path / "new", tmp_path / "grown", [[5], [6]])
    assert grown.erased.tolist() == [2] and grown.card.withdrawn["documents"] == 1
    assert grown_from(pool.fingerprint, grown).documents == 9
    assert grown.fingerprint == extend_pool(tmp_path / "pool", tmp_path / "other", [[5], [6]]).fingerprint
    assert grown.verify(full=True) == []


def test_what_cannot_be_erased_is_refused(tmp_path):
    pool = small(tmp_path)
    new = erased(pool, [2], tmp_path / "new")
    with pytest.raises(RecipeError, match="erased before"):
        erased(new, [2], tmp_path / "newer")
    with pytest.raises(RecipeError, match="no document"):
        erased(pool, [], tmp_path / "newer")
    with pytest.raises(ValueError, match="documents 9"):
        erased(pool, [9], tmp_path / "newer")
    with pytest.raises(ValueError, match="reason"):
        erased(pool, [1], tmp_path / "newer", " ")
    write_pair(tmp_path / "pair", [[[1, 2]]], 3)
    with pytest.raises(RecipeError, match="without a card"):
        erased(open_pool(tmp_path / "pair", "p"), [0], tmp_path / "newer")
    assert not (tmp_path / "newer").exists()


KILLED = """
import os, signal, sys
import numpy as np
from recipe.pools import erasing

calls = 0
def dying(original):
    def call(*args):
        global calls
        calls += 1
        if calls > int(sys.argv[3]):
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*args)
    return call

erasing.write_durably, erasing.sync = dying(erasing.write_durably), dying(erasing.sync)
erasing.erase_documents(sys.argv[1], np.array([0, 4, 8]), sys.argv[2], reason="request 12")
"""


def test_12_killed_at_any_write_it_goes_on_and_no_text_was_copied(tmp_path):
    pool = small(tmp_path)
    whole = erased(pool, [0, 4, 8], tmp_path / "whole")
    for number in range(11):  # settings, the card; a note of each token file, and the files
        command = [sys.executable, "-c", KILLED, str(pool.path), str(tmp_path / f"{number}"), str(number)]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
        new = tmp_path / f"{number}"
        assert not new.exists()
        assert not {7, 47, 87} & tokens_on_disk(new.with_name(f"{number}.partial"))
        again = erased(pool, [0, 4, 8], new)
        assert again.card == whole.card and again.verify(full=True) == []
        assert {path.name for path in new.iterdir()} == {path.name for path in whole.path.iterdir()}


def test_erased_documents_are_not_copied(tmp_path):
    new = erased(small(tmp_path), [2], tmp_path / "new")
    with pytest.raises(ValueError, match="was erased"):
        copy_documents(new, np.arange(4), tmp_path / "copy")
    copy = copy_documents(new, np.array([0, 1, 3]), tmp_path / "copy")
    assert [copy.tokens(k).tolist() for k in range(3)] == [TEXTS[0], TEXTS[1], TEXTS[3]]
