"""Texts of the document table: digits are stored as bytes and numbers, and each text comes back as it was."""

from __future__ import annotations

from random import Random
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.errors import RecipeError
from recipe.pools import PoolWriter, open_pool
from recipe.pools.spelling import spell, spelled
from recipe.pools.stored_texts import MANUAL, SPELLED, restored, stored_names
from recipe.pools.table import SCHEMA, STORED, DocumentTable, open_rows, row_groups

UUIDS = st.uuids().map(str)
HEX = st.binary(min_size=7, max_size=40).map(bytes.hex)
NUMBERS = st.integers(0, 10**20).map(str) | st.text("0123456789", max_size=20)
PIECES = st.one_of(
    UUIDS, UUIDS.map(str.upper), HEX, HEX.map(str.upper), HEX.map(lambda digits: digits[1:]), NUMBERS,
    st.sampled_from(["{", "}", "{uuid}", "{number}", "{}", "-", "é", "漢", "<urn:uuid:", ">", '"', "a", "F"]),
    st.text(st.characters(codec="utf-8"), max_size=5),
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=4).map("".join) | UUIDS
U = "39147604-bfbe-4ed5-b19c-54105f8ae8a7"


def table_of(texts):
    columns = {name: pa.nulls(len(texts), SCHEMA.field(name).type) for name in SCHEMA.names}
    return pa.table(columns | {name: pa.array(texts, pa.string()) for name in SPELLED})


def by_hand(stored, row, name="id_str"):
    """What the schema of the file tells a reader of Parquet to do, with Python alone."""
    if (form := stored[f"{name}_form"][row].as_py()) is None:
        return stored[name][row].as_py()
    digits = stored[f"{name}_bytes16"][row].as_py() or stored[f"{name}_bytes"][row].as_py() or b""
    uuid = UUID(bytes=digits) if len(digits) == 16 else None
    number = stored[f"{name}_number"][row].as_py()
    return form.format(
        uuid=uuid, UUID=str(uuid).upper(), hex=digits.hex(), HEX=digits.hex().upper(), number=number
    )


@given(st.lists(TEXTS | st.none(), max_size=12), st.integers(1, 6))
def test_any_mix_of_texts_comes_back_exactly(texts, times):
    texts = texts * times
    stored = spelled(table_of(texts), STORED)
    back = restored(stored, SCHEMA.names)
    assert stored.schema.equals(STORED) and back.schema.equals(SCHEMA)
    assert all(back[name].to_pylist() == texts for name in SPELLED)
    assert [by_hand(stored, row) for row in range(len(texts))] == texts


@given(st.lists(TEXTS | st.none(), max_size=12), st.data())
def test_a_part_of_the_rows_comes_back_too(texts, data):
    stored = spelled(table_of(texts * 5), STORED)
    at = data.draw(st.lists(st.integers(0, max(0, 5 * len(texts) - 1)), max_size=8)) if texts else []
    taken = restored(stored.take(pa.array(at, pa.int64())), ["source"])
    assert taken["source"].to_pylist() == [(texts * 5)[row] for row in at]
    assert restored(stored.slice(len(texts)), ["id_str"])["id_str"].to_pylist() == texts * 4


@pytest.mark.parametrize(
    ("text", "form", "digits", "number"),
    [
        (U, "{uuid}", U, None),
        (f"<urn:uuid:{U}>", "<urn:uuid:{uuid}>", U, None),
        (U.upper(), "{UUID}", U, None),
        (U.replace("-", ""), "{hex}", U, None),
        (f"{U}_12", "{uuid}_{number}", U, 12),
        (f"0012-{U}", "{number:04}-{uuid}", U, 12),
        (U[:-1] + "A", U[:-3] + "{number}aA", None, 8),  # two cases: no UUID
        ("s3://b/a-01.jsonl.gz/123", "s3://b/a-01.jsonl.gz/{number}", None, 123),
        ("web/00000007", "web/{number:08}", None, 7),
        ("0", "{number}", None, 0),
        ("{7}", "{{{number}}}", None, 7),
        ("b" + "1" * 14, "b" + "{number}", None, int("1" * 14)),
        ("g" + "1" * 13 + "h", "g{number}h", None, int("1" * 13)),
        ("", None, None, None),
    ],
)
def test_a_text_has_one_form(text, form, digits, number):
    found = {name: value[0].as_py() for name, value in spell(pa.array([text])).items()}
    assert found["form"] == form
    assert found["number"] == number
    assert found["bytes16"] == (None if digits is None else UUID(digits).bytes)


def test_texts_of_their_own_stay_texts_of_the_file():
    texts = ["one-1", "two-1", "three-1", *(f"four-{n}" for n in range(4))]
    stored = spelled(table_of(texts), STORED)
    assert stored["id_str"].to_pylist() == ["one-1", "two-1", "three-1", None, None, None, None]
    assert stored["id_str_form"].to_pylist() == [None] * 3 + ["four-{number}"] * 4


def ids_of(count):
    chance = Random(0)
    for n in range(count):
        yield str(UUID(int=chance.getrandbits(128)))
        yield f"<urn:uuid:{UUID(int=chance.getrandbits(128))}>"
        yield chance.randbytes(20).hex().upper()
        yield f"web/{n:04d}"
        yield "word " * n + "!"
        yield 10 * n


def test_documents_are_found_by_ids_of_any_kind_and_rows_say_what_they_were(tmp_path, monkeypatch):
    monkeypatch.setattr("recipe.pools.table.ROW_GROUP", 100)
    ids = list(ids_of(60))
    sources = [f"a-{n % 3}.jsonl:{n}" for n in range(len(ids))]
    groups = [str(UUID(int=n // 2)) for n in range(len(ids))]
    with PoolWriter(tmp_path / "p", vocab_size=9, eos=0) as writer:
        for id, source, group in zip(ids, sources, groups, strict=True):
            writer.add(np.array([1]), id=id, source=source, group=group)
        pool = writer.close()
    numbers = list(range(len(ids)))
    assert pool.ids(numbers) == ids and [pool.find(id) for id in ids] == numbers
    rows = pool.rows(numbers[::-1])[::-1]
    assert [(row.id, row.source, row.group) for row in rows] == list(zip(ids, sources, groups, strict=True))
    assert not pool.verify(full=True)
    file = pq.ParquetFile(pool.path / "documents.parquet")
    assert file.num_row_groups == 4 and file.schema_arrow.metadata[b"texts"].decode() == MANUAL
    assert file.read()["id_str"].null_count > 200


@pytest.mark.parametrize("id", ["web/{number:04}", "web/0", "{uuid}", "", U, "web/00000", "web/9999"])
def test_what_no_document_is_called_is_not_found(tmp_path, id):
    with PoolWriter(tmp_path / "p", vocab_size=9, eos=0) as writer:
        for one in ids_of(20):
            writer.add(np.array([1]), id=one or "x")
        pool = writer.close()
    assert DocumentTable(pool.layout.table).find(id) is None


def test_a_table_without_forms_is_read_as_it_was(tmp_path):
    ids = list(ids_of(20))
    with PoolWriter(tmp_path / "p", vocab_size=9, eos=0) as writer:
        for id in ids:
            writer.add(np.array([1]), id=id, source=id)
        writer.close().close()
    path = tmp_path / "p/documents.parquet"
    tables = list(row_groups(path))
    with open_rows(tmp_path / "old.parquet") as old:
        for table in tables:
            old.write_table(table)
    assert pq.read_schema(tmp_path / "old.parquet").names == SCHEMA.names
    assert list(row_groups(tmp_path / "old.parquet")) == tables
    (tmp_path / "old.parquet").rename(path)
    table = DocumentTable(path)
    assert [table.find(id) for id in ids] == list(range(len(ids)))
    assert table.read(np.array([3, 1]), ["source"])["source"].to_pylist() == [f'"{ids[3]}"', f'"{ids[1]}"']


def test_a_form_that_nobody_wrote_is_told(tmp_path):
    stored = spelled(table_of([f"a{n}" for n in range(5)]), STORED)
    at = stored.schema.get_field_index("id_str_form")
    for form in ("{digits}", "{number", "{number}{hex}{number}"):
        changed = stored.set_column(at, STORED.field("id_str_form"), pa.array([form] * 5))
        with pytest.raises(pa.ArrowInvalid, match="a form"):
            restored(changed, ["id_str"])


@pytest.mark.parametrize(
    ("form", "message"), [("{uuid}", "other than 16 bytes"), ("a{number}", "without what fills it")]
)
def test_a_form_with_other_digits_than_it_names_is_a_fault_of_the_file(tmp_path, form, message):
    stored = spelled(table_of([f"{n:040x}" for n in range(5)]), STORED)
    at = stored.schema.get_field_index("id_str_form")
    path = tmp_path / "documents.parquet"
    pq.write_table(stored.set_column(at, STORED.field("id_str_form"), pa.array([form] * 5)), path)
    for read in (lambda: list(row_groups(path)), lambda: DocumentTable(path).read(np.array([1]), ["id_str"])):
        with pytest.raises(RecipeError, match=message):
            read()


def test_a_pool_is_opened_and_extended_with_texts_as_they_were(tmp_path):
    ids = [str(UUID(int=n)) for n in range(12)]
    with PoolWriter(tmp_path / "a", vocab_size=9, eos=0) as writer:
        for id in ids[:6]:
            writer.add(np.array([1]), id=id, source=f"a:{id}")
        first = writer.close()
    with PoolWriter(tmp_path / "b", vocab_size=9, eos=0, extends=first) as writer:
        for id in ids[6:]:
            writer.add(np.array([1]), id=id, source=f"a:{id}")
        writer.close().close()
    pool = open_pool(tmp_path / "b", "b")
    assert pool.ids(range(12)) == ids and [row.source for row in pool.rows(range(12))] == [
        f"a:{i}" for i in ids
    ]


def test_names_of_what_is_stored():
    assert stored_names(["tokens", "source"])[:3] == ["tokens", "source", "source_form"]
    assert set(stored_names(SCHEMA.names)) == set(STORED.names)
