"""Rows of Parquet and Arrow files → documents: which, in what memory, and what of a damaged one."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

from recipe.errors import RecipeError
from recipe.text.readers import read_documents
from recipe.text.sources import ReadOptions, list_sources
from recipe.text.tables import raw_rows
from tests.text.stored import RECORDS, read, write_arrow, write_arrow_file, write_jsonl, write_parquet

WRITERS = pytest.mark.parametrize(
    ("write", "name"),
    [(write_parquet, "a.parquet"), (write_arrow, "a.arrow"), (write_arrow_file, "b.arrow")],
    ids=["parquet", "stream", "file"],
)


@WRITERS
def test_rows_of_all_row_groups_are_documents_at_their_rows(tmp_path, write, name):
    write(tmp_path / name)
    documents, _, _ = read(tmp_path / name, tag_keys=("lang",))
    assert [(d.id, d.text, d.tags) for d in documents] == [
        (r["id"], r["text"], {"lang": r["lang"]}) for r in RECORDS
    ]
    assert [d.place for d in documents] == [f"{name}:{row}" for row in range(1, 26)]


@WRITERS
def test_nested_text_nulls_and_wrong_types_are_told_by_row(tmp_path, write, name):
    rows = [{"a": {"b": "one"}}, {"a": {"b": None}}, {"a": None}, {"a": {"b": ""}}, {"a": {"b": "five"}}]
    write(tmp_path / name, rows)
    documents, tally, refused = read(tmp_path / name, text_key="a.b", on_bad="skip")
    assert [(d.id, d.text) for d in documents] == [(f"{name}:1", "one"), (f"{name}:5", "five")]
    assert (tally.read, tally.kept, tally.empty) == (5, 2, 1)
    assert [(one.to_plain()["row"], one.reason) for one in refused] == [
        (2, "text_not_text"),
        (3, "text_not_text"),
    ]
    with pytest.raises(RecipeError) as caught:
        read(tmp_path / name, text_key="a.b")
    assert [problem.where for problem in caught.value.problems] == [f"{name}:2", f"{name}:3"]


def test_a_column_whose_name_has_a_dot_comes_before_a_field(tmp_path):
    write_parquet(tmp_path / "a.parquet", [{"a.b": "column", "a": {"b": "field"}}])
    [document], _, _ = read(tmp_path / "a.parquet", text_key="a.b")
    assert document.text == "column"


@WRITERS
def test_T07_rows_without_the_text_column_are_named_with_the_columns_found(tmp_path, write, name):
    write(tmp_path / name, [{"content": "x"}, {"content": "y"}])
    with pytest.raises(RecipeError, match=r":1[\s\S]*'content'[\s\S]*:2"):
        read(tmp_path / name)
    assert read(tmp_path / name, on_bad="skip")[1].quarantined == {"text_missing": 2}
    write(tmp_path / name, [{"text": 7}])
    with pytest.raises(RecipeError, match="text in 'text', not int64"):
        read(tmp_path / name)


def without_utf8(texts, kind=None):
    """A column of text whose bytes nobody looked at, as other writers leave them."""
    binary = pa.array(texts, pa.binary())
    return pa.Array.from_buffers(kind or pa.string(), len(texts), binary.buffers())


@WRITERS
def test_T03_invalid_bytes_in_a_row_are_that_row_s(tmp_path, write, name):
    table = pa.table({"text": without_utf8([b"fine", b"raw \xff\xfe", "ok 😀".encode(), b"\xed\xa0\x80"])})
    write(tmp_path / name, table)
    documents, tally, _ = read(tmp_path / name, on_bad="replace")
    assert [d.text for d in documents] == ["fine", "raw \ufffd\ufffd", "ok 😀", "\ufffd\ufffd\ufffd"]
    assert tally.repaired == 2
    documents, _, refused = read(tmp_path / name, on_bad="skip")
    assert [d.text for d in documents] == ["fine", "ok 😀"]
    assert [(one.line, one.reason) for one in refused] == [(2, "invalid_utf8"), (4, "invalid_utf8")]


@WRITERS
def test_T03_invalid_bytes_in_an_id_are_that_row_s_too(tmp_path, write, name):
    write(tmp_path / name, pa.table({"id": without_utf8([b"a", b"\xff"]), "text": ["x", "y"]}))
    documents, _, refused = read(tmp_path / name, on_bad="replace")
    assert [d.id for d in documents] == ["a"]
    assert [(one.line, one.reason) for one in refused] == [(2, "invalid_utf8")]


@WRITERS
def test_T01_line_ends_inside_a_row_are_text(tmp_path, write, name):
    write(tmp_path / name, [{"text": "a\u2028b\x85c\r\nd"}])
    assert read(tmp_path / name)[0][0].text == "a\u2028b\x85c\r\nd"


@pytest.mark.parametrize("kind", ["large_string", "binary", "large_binary", "dictionary", "string_view"])
def test_every_type_of_text_is_text(tmp_path, kind):
    column = pa.array(["one", None, "two", "one"])
    made = {
        "dictionary": lambda: column.dictionary_encode(),
        "string_view": lambda: column.cast(pa.string_view()),
    }.get(kind, lambda: column.cast(getattr(pa, kind)()))()
    write_arrow(tmp_path / "a.arrow", pa.table({"text": made}))
    assert [d.text for d in read(tmp_path / "a.arrow", on_bad="skip")[0]] == ["one", "two", "one"]


def test_dates_are_tags_as_text_and_sections_come_from_lists(tmp_path):
    row = {
        "text": "one two",
        "date": datetime.date(2024, 5, 1),
        "meta": {"at": datetime.datetime(2024, 5, 1, 12), "n": 3},
        "units": [{"start": 0, "id": "a", "needs": None}, {"start": 4, "id": "b", "needs": ["a"]}],
    }
    write_parquet(tmp_path / "a.parquet", [row])
    [document], _, _ = read(tmp_path / "a.parquet", tag_keys=("date", "meta"), units_key="units")
    assert document.tags == {"date": "2024-05-01", "at": "2024-05-01T12:00:00", "n": 3}
    assert document.sections is not None
    assert [(section.start, section.id, section.needs) for section in document.sections] == [
        (0, "a", ()),
        (4, "b", ("a",)),
    ]


def test_only_the_columns_that_are_asked_for_are_read(tmp_path):
    """A damaged column that nobody needs stops nothing: it is not looked at."""
    records = [{"text": f"t{i}", "other": f"{i * 7919 % 10007} secret" * 50} for i in range(200)]
    write_parquet(
        tmp_path / "a.parquet", records, row_group_size=200, compression="none", use_dictionary=False
    )
    data = bytearray((tmp_path / "a.parquet").read_bytes())
    at = data.index(b"secret")
    data[at : at + 3000] = b"\xff" * 3000
    (tmp_path / "a.parquet").write_bytes(data)
    assert len(read(tmp_path / "a.parquet")[0]) == 200
    assert read(tmp_path / "a.parquet", tag_keys=("other",), on_bad="skip")[1].quarantined == {"truncated": 1}


@WRITERS
def test_T04_a_text_of_20_mb_is_one_document(tmp_path, write, name):
    write(tmp_path / name, [{"text": "one"}, {"text": "x" * 20_000_000}, {"text": "three"}])
    before, peak = pa.total_allocated_bytes(), 0
    lengths = []
    for document in read_documents([tmp_path / name]):
        lengths.append(len(document.text))
        peak = max(peak, pa.total_allocated_bytes() - before)
    assert lengths == [3, 20_000_000, 5]
    assert peak < 5 * 20_000_000
    texts, tally, refused = read(tmp_path / name, max_line_bytes=1_000_000, on_bad="skip")
    assert (len(texts), tally.quarantined, refused[0].line) == (2, {"too_long": 1}, 2)


@pytest.mark.parametrize("write", [write_parquet, write_arrow])
def test_a_row_group_of_100_mb_is_not_in_memory(tmp_path, write):
    texts = [f"{i:08d}" + "abcdefgh" * 2500 for i in range(5000)]
    table = pa.table({"text": texts})
    name = "a.parquet" if write is write_parquet else "a.arrow"
    if write is write_parquet:
        write(tmp_path / name, table, row_group_size=5000, compression="zstd", use_dictionary=False)
    else:
        write(tmp_path / name, table, batch=5000)
    del table, texts
    files = list_sources([tmp_path / name], ReadOptions())
    before, peak, count = pa.total_allocated_bytes(), 0, 0
    for raw in raw_rows(0, files[0], ReadOptions()):
        count += len(raw.data)
        peak = max(peak, pa.total_allocated_bytes() - before)
    assert count == 5000 * 20_008
    assert peak < 32_000_000


def cut(path, by):
    path.write_bytes(path.read_bytes()[:-by])


@WRITERS
def test_F02_a_file_of_no_byte_is_named(tmp_path, write, name):
    (tmp_path / name).touch()
    write_jsonl(tmp_path / "z.jsonl")
    with pytest.raises(RecipeError, match=rf"{name}[\s\S]*no byte"):
        read(tmp_path)
    documents, tally, refused = read(tmp_path, on_bad="skip")
    assert (len(documents), tally.quarantined) == (25, {"empty_file": 1})
    assert (refused[0].source, refused[0].line) == (name, None)


@WRITERS
def test_a_cut_table_is_an_error_or_counted_never_a_short_one(tmp_path, write, name):
    records = [{"text": f"{i} {i * 7919 % 10007}"} for i in range(2000)]
    for by in (1, 8, 9, 30, 400):
        write(tmp_path / name, records)
        cut(tmp_path / name, by)
        with pytest.raises(RecipeError, match="a table that is whole"):
            read(tmp_path / name)
        assert read(tmp_path / name, on_bad="skip")[1].quarantined == {"truncated": 1}


def test_a_stream_cut_between_two_batches_is_not_taken_for_whole(tmp_path):
    """Arrow's own reader takes the end of the bytes for the end of the stream."""
    write_arrow(tmp_path / "a.arrow")
    cut(tmp_path / "a.arrow", 8)
    with pa.OSFile(str(tmp_path / "a.arrow")) as source:
        assert pa.ipc.open_stream(source).read_all().num_rows == 25
    with pytest.raises(RecipeError, match="without its end mark"):
        read(tmp_path / "a.arrow")


@WRITERS
def test_no_byte_of_a_table_changed_kills_the_process(tmp_path, write, name):
    """A wrong offset may lead anywhere in memory: every damage is told, or harmless."""
    write(tmp_path / name, RECORDS[:8])
    whole = (tmp_path / name).read_bytes()
    for at in range(0, len(whole), 7):
        data = bytearray(whole)
        data[at] ^= 0xFF
        (tmp_path / name).write_bytes(data)
        _, tally, _ = read(tmp_path / name, on_bad="skip")
        tally.check()


def test_rows_that_are_wanted_are_found_without_decoding_the_others(tmp_path):
    write_parquet(tmp_path / "a.parquet")
    [file] = list_sources([tmp_path / "a.parquet"], ReadOptions())
    found = list(raw_rows(0, file, ReadOptions(), wanted={2, 15, 25}))
    assert [(raw.line, raw.data.decode()) for raw in found] == [
        (row, RECORDS[row - 1]["text"]) for row in (2, 15, 25)
    ]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a.parquet.gz", "packed a second time"),
        ("a.arrow.zst", "packed a second time"),
    ],
)
def test_a_table_packed_twice_is_refused_by_name(tmp_path, name, told):
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(RecipeError, match=told):
        list_sources([tmp_path / name], ReadOptions())


def test_a_format_that_the_name_belies_is_refused(tmp_path):
    write_parquet(tmp_path / "a.parquet")
    with pytest.raises(RecipeError, match="--format parquet, or none"):
        read(tmp_path / "a.parquet", format="jsonl")
    (tmp_path / "a.parquet").rename(tmp_path / "part-0001")
    assert len(read(tmp_path / "part-0001", format="parquet")[0]) == 25
