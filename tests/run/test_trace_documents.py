"""Documents by id and by content; ids that nobody has, with the nearest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recipe
from recipe import RecipeError
from recipe.pools import open_pool
from recipe.pools.pool import Pool
from recipe.run.tracing.documents import DocumentAt, chosen, find_ids, find_text, unknown_ids
from recipe.run.tracing.nearest import nearest_id
from recipe.text.tokenizers import ByteTokenizer, Tokenizer
from tests.pools.megatron_files import write_pair

TEXTS = ["one", "two", "three", "one", "fünf"]


def write(path: Path, ids: list[int | str] | None, **more: Any) -> Pool:
    tokens = [np.frombuffer(text.encode(), np.uint8) for text in TEXTS]
    recipe.write_pool(path, tokens, vocab_size=257, ids=ids, **more)
    return open_pool(path, path.name)


@pytest.fixture
def pools(tmp_path: Path) -> dict[str, Pool]:
    """The same five texts thrice: ids that are numbers in order, texts, and both."""
    return {
        "numbered": write(tmp_path / "numbered", None),
        "named": write(tmp_path / "named", ["a.txt", "b.txt", "lib/c.py", "lib/d.py", "7"], eos=256),
        "mixed": write(tmp_path / "mixed", [100, 7, "x", 900, "lib/c.py"]),
    }


def as_bytes(pool: Pool) -> Tokenizer:
    return ByteTokenizer()


def test_an_id_is_found_in_every_pool_that_has_it(pools: dict[str, Pool]):
    assert find_ids(pools, [("lib/c.py",)])[0] == [DocumentAt("mixed", 4), DocumentAt("named", 2)]
    assert find_ids(pools, [(3,), (900,)])[0] == [DocumentAt("mixed", 3), DocumentAt("numbered", 3)]


def test_a_number_and_its_text_are_two_ids(pools: dict[str, Pool]):
    assert find_ids(pools, [(7,)])[0] == [DocumentAt("mixed", 1)]
    assert find_ids(pools, [("7",)])[0] == [DocumentAt("named", 4)]
    assert find_ids(pools, [(7, "7")])[0] == [DocumentAt("mixed", 1), DocumentAt("named", 4)]


def test_many_ids_are_found_as_one_by_one(pools: dict[str, Pool]):
    asked: list[tuple[int | str, ...]] = [(n,) for n in (0, 1, 7, 100, 900, 2**70, -(2**70))]
    asked += [(text,) for text in ("a.txt", "x", "lib/d.py", "7", "no", "a.tx", "", "b.txt", "é", "0")]
    apart = [find_ids(pools, [ways]) for ways in asked]
    found, unknown = find_ids(pools, asked)
    assert found == sorted({one for known, _ in apart for one in known})
    assert unknown == [ways for _, missed in apart for ways in missed]


def test_ids_that_no_pool_has_are_told_at_once_with_the_nearest(pools: dict[str, Pool]):
    _, unknown = find_ids(pools, [("lib/dd.py",), ("a.txt",), (901,)])
    error = unknown_ids(pools, unknown)
    assert [(p.given, p.fix) for p in error.problems] == [
        ("'lib/dd.py'", "the nearest is 'lib/d.py', in pool named"),
        ("901", "the nearest is 900, in pool mixed"),
    ]


def test_of_very_many_unknown_ids_the_first_are_told(pools: dict[str, Pool]):
    error = unknown_ids(pools, [(f"gone-{n}",) for n in range(30)])
    assert error.title == "no such document (10 more are unknown)"
    assert len(error.problems) == 20


@pytest.mark.parametrize(
    ("pool", "ways", "nearest"),
    [
        ("numbered", (99,), 4),
        ("numbered", (-3,), 0),
        ("numbered", ("a",), None),
        ("numbered", (2**70, str(2**70)), 4),
        ("named", ("lib/c.pyx",), "lib/c.py"),
        ("named", ("/a.txt",), "a.txt"),
        ("named", ("q",), None),
        ("mixed", (8,), 7),
        ("mixed", (2**70,), 900),
    ],
)
def test_the_nearest_id(pools: dict[str, Pool], pool: str, ways: tuple[int | str, ...], nearest: object):
    assert nearest_id(pools[pool], ways) == nearest


def test_every_document_with_a_text_is_found_by_its_content(pools: dict[str, Pool], tmp_path: Path):
    write_pair(tmp_path / "pair", [[[256, *b"one", 256]], [list(b"two")], [list(b"one")]], 8)
    pools["pair"] = open_pool(tmp_path / "pair", "pair", eos=256, bos=256)
    found = find_text(pools, "one", as_bytes)
    assert found == [
        *(DocumentAt("numbered", n) for n in (0, 3)),
        *(DocumentAt("named", n) for n in (0, 3)),
        *(DocumentAt("mixed", n) for n in (0, 3)),
        *(DocumentAt("pair", n) for n in (0, 2)),
    ]
    assert find_text(pools, "fünf", as_bytes) == [DocumentAt(n, 4) for n in ("numbered", "named", "mixed")]
    assert find_text(pools, "onE", as_bytes) == []
    assert find_text(pools, "one", lambda pool: None) == []


def test_a_pool_that_is_not_there_is_told_with_the_nearest_name(pools: dict[str, Pool]):
    assert list(chosen(pools, None)) == list(pools)
    assert list(chosen(pools, "named")) == ["named"]
    with pytest.raises(RecipeError, match="did you mean named"):
        chosen(pools, "name")
