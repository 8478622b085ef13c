"""Files of a pool held against each other: what hashes alone would not tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import recipe
from recipe.errors import RecipeError
from recipe.pools import open_pool
from recipe.pools.agreement import document_findings
from recipe.pools.card import card_text, read_card
from recipe.pools.refingerprint import refingerprint, write_anew

DOCUMENTS = [list(range(1, n)) for n in (12, 5, 9, 20, 3, 7)]
GROUPS = ["a", "a", None, "b", "b", "b"]


def write(folder, **more):
    more = {
        "ids": [f"d{n}" for n in range(6)],
        "groups": GROUPS,
        "leads": [[50], [], [], [], [51, 52], []],
        **more,
    }
    recipe.write_pool(folder, DOCUMENTS, vocab_size=100, eos=99, bos=98, part_tokens=30, **more).close()
    return folder


def retold(folder, column, values):
    """Write a column of the document table anew."""
    path = folder / "documents.parquet"
    table = pq.read_table(path)
    place = table.schema.names.index(column)
    pq.write_table(
        table.set_column(place, table.schema.field(place), pa.array(values, table.schema.types[place])), path
    )


@pytest.fixture
def pool(tmp_path):
    return write(tmp_path / "p")


def found_in(folder):
    with open_pool_unchecked(folder) as pool:
        return document_findings(pool)


def open_pool_unchecked(folder):
    """The pool with a card that states the sizes and hashes that its files have now."""
    found = refingerprint(folder)
    (folder / "card.json").write_bytes(card_text(found.made))
    return open_pool(folder, "p")


def test_a_pool_as_it_was_written_agrees_with_itself(pool):
    with open_pool(pool, "p") as opened:
        assert opened.num_parts > 1
        assert document_findings(opened) == []


@pytest.mark.parametrize(
    ("column", "values", "check"),
    [
        ("tokens", [11, 4, 8, 19, 2, 7], "length"),
        ("part", [0, 0, 0, 0, 0, 0], "part"),
        ("id_str", ["d0", "d1", "d2", "d3", "d1", "d5"], "id"),
        ("group_str", ["a", "a", None, "b", "c", "b"], "units"),
        ("group_str", ["a", "a", None, "a", "a", "a"], "group"),
        ("content_hash", [b"0" * 16] * 6, "tokens"),
    ],
)
def test_a_table_that_says_something_else_is_named(pool, column, values, check):
    retold(pool, column, values)
    assert check in {finding.check for finding in found_in(pool)}


def test_other_tokens_than_the_table_was_made_of_name_the_document(pool):
    path = pool / "part-00000.bin"
    data = bytearray(path.read_bytes())
    data[2 * 4] ^= 1  # bos, a lead, then the body of document 0
    path.write_bytes(bytes(data))
    (finding,) = found_in(pool)
    assert (finding.check, finding.where) == ("tokens", f"{pool / 'documents.parquet'} document 0")


def test_a_lost_end_mark_is_named(pool):
    with open_pool(pool, "p") as opened:
        last = int(opened.offsets[1]) - 1
    data = bytearray((pool / "part-00000.bin").read_bytes())
    data[2 * last] = 1
    (pool / "part-00000.bin").write_bytes(bytes(data))
    assert "eos" in {finding.check for finding in found_in(pool)}


@pytest.mark.parametrize("name", ["body_tokens", "special_tokens", "max_document_tokens", "max_id"])
def test_what_the_card_states_of_all_documents_is_counted(pool, name):
    """A card of another count, every hash of it right: the ids of a pool are known from its card (N07)."""
    card = read_card(pool)
    old = getattr(card, name)
    new = old + 1 if isinstance(old, int) else replace(old, id=old.id - 1)
    (pool / "card.json").write_bytes(card_text(replace(card, **{name: new})))
    with open_pool(pool, "p") as opened:
        (one,) = document_findings(opened)
    assert (one.check, one.where) == ("counts", str(pool / "card.json")) and one.expected.startswith(name)


def test_many_faults_are_counted_and_a_few_named(tmp_path):
    documents = [np.ones(3, np.int64)] * 40
    recipe.write_pool(tmp_path / "p", documents, vocab_size=10).close()
    retold(tmp_path / "p", "content_hash", [b"1" * 16] * 40)
    findings = found_in(tmp_path / "p")
    assert len(findings) == 9
    assert findings[-1].observed == "32 more documents like these"


def test_what_does_not_agree_is_never_written_down_as_right(pool):
    retold(pool, "content_hash", [b"0" * 16] * 6)
    found = refingerprint(pool)
    with pytest.raises(ValueError, match="never blessed"):
        write_anew(found)


def test_a_card_made_anew_of_the_same_contents_is_the_same_card(pool):
    before = (pool / "card.json").read_bytes()
    found = refingerprint(pool)
    assert (found.same, found.is_current, found.differences, found.findings) == (True, True, (), ())
    assert card_text(found.made) == before


def test_changed_tags_are_another_pool_shown_old_and_new(pool):
    retold(pool, "tags", ['{"l":"en"}'] * 6)
    found = refingerprint(pool)
    assert not found.same
    assert not found.findings
    names = {name for name, _, _ in found.differences}
    assert {"files.documents.parquet.hash", "parts.part-00000.rows_hash"} <= names
    write_anew(found)
    with open_pool(pool, "p") as opened:
        assert opened.fingerprint == found.found != found.stated
        assert opened.verify(full=True) == []


def test_a_damaged_card_is_held_against_the_contents(pool):
    card = read_card(pool)
    text = (pool / "card.json").read_text()
    (pool / "card.json").write_text(text.replace('"body_tokens": 50', '"body_tokens": 51'))
    found = refingerprint(pool)
    assert (found.card, found.stated, found.found) == ("damaged", card.fingerprint, card.fingerprint)
    assert ("body_tokens", 51, 50) in found.differences
    write_anew(found)
    assert read_card(pool) == replace(card)


@pytest.mark.parametrize("how", ["lost", "damaged"])
def test_hashes_of_blocks_are_made_anew(pool, how):
    path = pool / "hashes.npy"
    data = path.read_bytes()
    if how == "lost":
        path.unlink()
    else:
        path.write_bytes(data[:-1] + b"x")
    found = refingerprint(pool)
    assert (found.same, found.is_current) == (True, False)
    write_anew(found)
    assert path.read_bytes() == data
    with open_pool(pool, "p") as opened:
        assert opened.verify(full=True) == []


def test_a_card_of_an_older_format_is_made_anew_and_of_a_later_one_left_alone(pool):
    card, text = read_card(pool), (pool / "card.json").read_text()
    (pool / "card.json").write_text(text.replace('"format": 1', '"format": 0'))
    found = refingerprint(pool)
    assert (found.card, found.found) == ("damaged", card.fingerprint)
    write_anew(found)
    assert read_card(pool) == card
    (pool / "card.json").write_text(text.replace('"format": 1', '"format": 2'))
    with pytest.raises(RecipeError, match="the version of recipe that wrote it"):
        refingerprint(pool)
