"""Which folders are versions of one pool, and which of them is the newest, from their cards alone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from recipe.pools import Pool, open_pool, write_pool
from recipe.pools.card import CARD_NAME
from recipe.pools.copying import copy_documents
from recipe.pools.erasing import erase_documents
from recipe.pools.splits import parse_split
from recipe.pools.splitting import split_pool
from recipe.pools.versions import held_out_side, superseded


@pytest.fixture
def web(tmp_path: Path) -> Pool:
    return write_pool(tmp_path / "web", [[n, n + 1] for n in range(40)], vocab_size=300, eos=299)


def older(*pools: Pool) -> dict[str, str]:
    return superseded({pool.path.name: pool for pool in pools})


def some(pool: Pool, folder: str, count: int) -> Pool:
    return copy_documents(pool, np.arange(count), pool.path.parent / folder)


def written_before(*pools: Pool) -> None:
    """Say that cards are of an hour ago: a file system's clock may not tell one write from the next."""
    for pool in pools:
        state = (card := pool.path / CARD_NAME).stat()
        os.utime(card, ns=(state.st_atime_ns, state.st_mtime_ns - 3600 * 10**9))


def test_pools_of_other_texts_are_no_versions(web, tmp_path):
    assert older(web, write_pool(tmp_path / "code", [[1]], vocab_size=300)) == {}


def test_what_was_made_of_a_pool_is_newer_over_several_steps_and_whatever_the_names(web):
    middle = some(web, "a", 30)
    assert older(web, middle, last := some(middle, "b", 20)) == {"web": "b", "a": "b"}
    assert older(last, middle) == {"a": "b"}
    assert older(web, last) == {}, "the card names only what it was copied from"


def test_of_two_copies_of_a_pool_the_one_that_was_written_last_stays(web):
    before, after = some(web, "z", 30), some(web, "a", 20)
    written_before(before)
    assert older(before, after) == {"z": "a"}


def test_of_equal_folders_the_one_whose_withdrawn_documents_are_gone_stays(web, tmp_path):
    erased = erase_documents(web, np.array([3]), tmp_path / "clean", reason="asked")
    shutil.copytree(web.path, tmp_path / "later")
    later = open_pool(tmp_path / "later", "later")
    assert older(web, erased, later) == {"web": "clean", "later": "clean"}


def test_sides_of_one_split_stay_and_the_pool_that_was_split_and_an_older_split_do_not(web, tmp_path):
    halves = parse_split("a=1/2,b=1/2")
    first = split_pool(web, halves, tmp_path / "first")
    again = split_pool(web, parse_split("c=1/2,d=1/2", 7), tmp_path / "again")
    written_before(*first.values())
    assert older(*first.values()) == {}
    found = older(web, *first.values(), *again.values())
    assert set(found) == {"web", "a", "b"} and set(found.values()) <= {"c", "d"}


@pytest.mark.parametrize(
    ("shares", "held"),
    [
        ({"train": "97/100", "validation": "2/100", "test": "1/100"}, {"validation", "test"}),
        ({"a": "1/2", "b": "1/2"}, set()),
        ({"train": "1/10", "rest": "9/10"}, set()),
        ({"most": "9/10", "few": "1/10"}, {"few"}),
        ({"train": "1/2", "held": "1/2"}, {"held"}),
        ({"train": "1/2", "check": "1/2"}, {"check"}),
        ({"train": "1/10", "held_out": "9/10"}, {"held_out"}),
        ({"web": "1/2", "Held-Out": "1/4", "exam": "1/4"}, {"Held-Out", "exam"}),
        ({"test": "3/4", "eval": "1/4"}, {"eval"}),
        ({"web": "1/4", "test": "3/4"}, {"test"}),
    ],
)
def test_held_out_is_every_side_that_is_not_called_train_nor_the_largest_of_the_others(shares, held):
    sides = {name: held_out_side({"split": {"name": name, "shares": shares}}) for name in shares}
    assert {name for name, side in sides.items() if side == name} == held
    assert held_out_side({}) is None
