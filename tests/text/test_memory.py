"""What would take too much memory is a bad record; what is long is encoded as it would be in one piece."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.errors import RecipeError
from recipe.pools.blocks import document_hash
from recipe.text.documents import Tally
from recipe.text.long_lines import load_long
from recipe.text.preparation import PrepareOptions
from recipe.text.prepare import prepare_pool
from recipe.text.readers import raw_batches, read_documents
from recipe.text.sources import ReadOptions, list_sources
from recipe.text.spooled import Spooled, gathered, slices, tokens_digest
from recipe.text.tokenizers import ByteTokenizer
from recipe.text.widths import _STRING, _outside


def quarantined(path, **options):
    tally = Tally()
    texts = [d.text for d in read_documents([path], ReadOptions(on_bad="skip", **options), tally=tally)]
    return texts, tally.quarantined


def test_a_line_of_very_many_values_is_a_bad_record(tmp_path, monkeypatch):
    """Commas and brackets inside of texts are no values."""
    monkeypatch.setattr("recipe.text.widths.WIDEST", 400_000)
    rows = [{"text": "a", "x": [[]] * 2000}, {"text": "[a, b], " * 2000}, {"text": "c", "x": [[]] * 500}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    texts, bad = quarantined(tmp_path / "a.jsonl", max_line_bytes=100_000)
    assert (texts, bad) == ([rows[1]["text"], "c"], {"too_long": 1})
    with pytest.raises(RecipeError, match=r"a\.jsonl:1[\s\S]*160 for each of its values; its 4,002 values"):
        list(read_documents([tmp_path / "a.jsonl"], ReadOptions(max_line_bytes=100_000)))


@pytest.mark.parametrize("dictionary", [False, True])
def test_a_page_that_is_too_large_is_told_before_it_is_decoded(tmp_path, monkeypatch, dictionary):
    """Also one beside which there are small ones, and a dictionary."""
    texts = ["short", *(f"{number} " + "word " * 2000 for number in range(100))]
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet", use_dictionary=dictionary)
    monkeypatch.setattr("recipe.text.tables.most_together", lambda options: 500_000)
    assert quarantined(tmp_path / "a.parquet") == ([], {"too_long": 1})
    pq.write_table(
        pa.table({"text": texts, "other": ["x" * 20_000] * 101}), tmp_path / "a.parquet",
        use_dictionary=False, write_batch_size=10, data_page_size=10_000,
    )  # fmt: skip
    assert quarantined(tmp_path / "a.parquet") == (texts, {})
    with pytest.raises(RecipeError, match=r"a\.parquet[\s\S]*decoded whole; one has 1,0\d\d,\d\d\d:"):
        pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet", use_dictionary=dictionary)
        list(read_documents([tmp_path / "a.parquet"]))


@pytest.mark.parametrize("compression", ["lz4", "zstd", "uncompressed"])
@pytest.mark.parametrize("kind", ["file", "stream"])
def test_a_compressed_batch_that_is_too_large_is_told_before_it_is_decoded(
    tmp_path, monkeypatch, compression, kind
):
    """One that is not compressed is mapped, and takes nothing."""
    texts = [f"{number} " + "word " * 2000 for number in range(100)]
    table = pa.table({"text": pa.array(texts).dictionary_encode()})
    opened = {"file": pa.ipc.new_file, "stream": pa.ipc.new_stream}[kind]
    options = pa.ipc.IpcWriteOptions(compression=None if compression == "uncompressed" else compression)
    with opened(tmp_path / "a.arrow", table.schema, options=options) as writer:
        writer.write_table(table)
    assert quarantined(tmp_path / "a.arrow") == (texts, {})
    monkeypatch.setattr("recipe.text.tables.most_together", lambda options: 500_000)
    is_mapped = compression == "uncompressed"
    assert quarantined(tmp_path / "a.arrow") == ((texts, {}) if is_mapped else ([], {"too_long": 1}))


@pytest.mark.parametrize("length", [0, 1, 7, 100])
def test_ids_on_disk_are_those_that_were_gathered(tmp_path, monkeypatch, length):
    monkeypatch.setattr("recipe.text.spooled.HELD_TOKENS", 5)
    monkeypatch.setattr("recipe.text.spooled.SLICE_TOKENS", 3)
    ids = np.arange(length)
    found = gathered(np.array_split(ids, 9), np.dtype("<u2"), tmp_path)
    assert isinstance(found, Spooled) == (length > 5)
    assert np.concatenate([*map(np.copy, slices(found)), np.zeros(0, int)]).tolist() == ids.tolist()
    assert (len(found), tokens_digest(found).hex()) == (length, document_hash(ids))
    assert not list(tmp_path.iterdir())


def test_what_is_said_of_a_document_has_a_length_that_fits(tmp_path, monkeypatch):
    monkeypatch.setattr("recipe.text.records.MOST_SAID", 10)
    rows = [
        {"text": "a", "id": "1234567890", "tag": ["123", "456"], "group": "g"},
        {"text": "b", "id": "12345678901", "tag": "", "group": "g"},
        {"text": "c", "id": "3", "tag": ["12345", "123"], "group": "g"},
        {"text": "d", "id": "4", "tag": "", "group": "12345678901"},
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.table({"text": ["a", "b"], "tag": ["1234567", "12345678"]}), tmp_path / "b.parquet")
    bad = {"bad_id": 1, "bad_tag": 1, "bad_group": 1}
    assert quarantined(tmp_path / "a.jsonl", tag_keys=("tag",), group_key="group") == (["a"], bad)
    assert quarantined(tmp_path / "b.parquet", tag_keys=("tag",)) == (["a"], {"bad_tag": 1})


def test_texts_beside_the_text_count_for_the_size_of_a_batch(tmp_path):
    table = pa.table({"text": ["a"] * 10, "tag": ["x" * 5000] * 10, "id": ["y"] * 10})
    pq.write_table(table, tmp_path / "a.parquet")
    options = ReadOptions(tag_keys=("tag",))
    files = list_sources([tmp_path / "a.parquet"], options)
    assert [len(batch) for batch in raw_batches(files, options, 10_000)] == [2] * 5


class Whole(ByteTokenizer):
    """Bytes that are only encoded together."""

    most_whole = 300_000

    def pieces(self, text):
        yield text


def pool_bytes(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".bin", ".idx")}


@pytest.mark.parametrize("duplicates", ["keep", "drop"])
def test_long_texts_make_the_same_pool_whatever_is_done_with_them(tmp_path, monkeypatch, duplicates):
    """In pieces, on disk, in processes or in this one."""
    long = "some words é " * 100_000
    texts = ["a", long, "b", long + "c", long] * 4
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    made = []
    for number, (workers, held, most) in enumerate([(1, 1 << 22, 1 << 30), (2, 1000, 1 << 20), (1, 1000, 1)]):
        monkeypatch.setattr("recipe.text.spooled.HELD_TOKENS", held)
        monkeypatch.setattr("recipe.text.engines.local.LONG_BYTES", most)
        monkeypatch.setattr("recipe.text.engines.choosing.SMALL_BYTES_OF_BYTES", 0)
        monkeypatch.setattr("recipe.text.tokenise.LONG", 1 << (18 if number else 30))
        options = PrepareOptions(workers=workers, duplicates=duplicates)
        prepare_pool([tmp_path / "a.jsonl"], tmp_path / str(number), ByteTokenizer(), options).close()
        made.append(pool_bytes(tmp_path / str(number)))
    assert made[0] == made[1] == made[2]


def test_a_text_that_can_only_be_encoded_whole_is_a_bad_record_above_what_fits(tmp_path, monkeypatch):
    monkeypatch.setattr("recipe.text.tokenise.LONG", 1000)
    texts = ["a", "é" * 150_000, "é" * 150_001, "x" * 300_000, "x" * 300_001]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    with pytest.raises(RecipeError) as error:
        prepare_pool([tmp_path / "a.jsonl"], tmp_path / "pool", Whole())
    assert "a.jsonl:3" in str(error.value)
    assert "at most 300,000 bytes that the tokenizer bytes has to encode together" in str(error.value)
    assert "--max-line-bytes 268437246" in str(error.value)
    read = ReadOptions(on_bad="skip")
    with prepare_pool([tmp_path / "a.jsonl"], tmp_path / "pool", Whole(), PrepareOptions(read=read)) as pool:
        assert pool.card.source["read"]["quarantined"] == {"too_long": 2}
        assert (pool.num_documents, pool.card.body_tokens) == (3, 600_001)
    read = ReadOptions(max_line_bytes=268437246)
    with prepare_pool([tmp_path / "a.jsonl"], tmp_path / "more", Whole(), PrepareOptions(read=read)) as pool:
        assert pool.num_documents == 5


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_long_texts_of_a_table_are_read_one_by_one(tmp_path, monkeypatch, kind):
    monkeypatch.setattr("recipe.text.tables.SLICE_BYTES", 0)
    texts = ["abc", None, "", "é", "x" * 100, None, "last"]
    with pa.ipc.new_file(tmp_path / "a.arrow", pa.schema([("text", kind)])) as writer:
        writer.write_batch(pa.record_batch({"text": pa.array(["", *texts], kind)}).slice(1))
    kept, bad = quarantined(tmp_path / "a.arrow", max_line_bytes=50)
    assert (kept, bad) == (["abc", "é", "last"], {"text_not_text": 2, "too_long": 1})


@given(
    record=st.dictionaries(st.text('a,[{"\\é'), st.sampled_from([1, [], {}, 'x,"[\\' * 9, [[1, {"a": 2}]]])),
    chunk=st.sampled_from([1, 3, 7, 50]),
    cut=st.integers(0, 9),
)
def test_a_line_is_taken_apart_at_its_strings(record, chunk, cut):
    """Also one that ends inside a string."""
    data = json.dumps(record, ensure_ascii=False).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("recipe.text.widths._CHUNK", chunk)
        assert b"".join(_outside(data)) == _STRING.sub(b"", data)
        assert b"".join(_outside(data[:-cut])) in _STRING.sub(b"", data)


PIECES = ["a", "long text ", "\\", '"', "\n", "é", "中", "\U0001f600", "/", "\u2028", "\x7f"]
WORDS = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)


@given(
    record=st.recursive(WORDS | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(WORDS, inner)),
    escaped=st.booleans(),
    size=st.sampled_from([2, 5, 20]),
    damage=st.sampled_from(
        [None, b"\\", b'"', b"\x00", b"\xff", b"\\ud83d", b"\\x", b"recipe-long-string-0"]
    ),
    place=st.integers(0, 200),
)
def test_a_long_line_read_in_parts_is_the_record_it_is_when_read_at_once(
    record, escaped, size, damage, place
):
    """Or it is left to the one who reads it at once and says what is wrong with it."""
    data = json.dumps({"text": record, "b": [record]}, ensure_ascii=escaped).encode()
    if damage is not None:
        data = data[:place] + damage + data[place:]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("recipe.text.long_lines.PART_BYTES", size)
        found = load_long(data)
    assert damage is None or found is None or found == json.loads(data)
    assert damage is not None or found is None or found == {"text": record, "b": [record]}


@pytest.mark.parametrize("escaped", [False, True])
def test_a_long_line_is_read_in_parts(monkeypatch, escaped):
    monkeypatch.setattr("recipe.text.long_lines.PART_BYTES", 50)
    record = {"text": 'one "two" \U0001f600\n' * 100, "id": "x", "tags": ["y" * 100, {"z": "中" * 100}]}
    assert load_long(json.dumps(record, ensure_ascii=escaped).encode()) == record


def test_a_long_line_gives_the_document_it_gives_when_read_at_once(tmp_path, monkeypatch):
    lines = [
        json.dumps({"text": "a\n😀" * 200, "id": 1}),
        '{"text": "\\ud800' + "b" * 900 + '"}',
        '{"text": "c' * 99,
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines), "utf-8")
    (tmp_path / "b.jsonl").write_bytes(b'{"text": "' + b"d" * 900 + b'\xff"}\n')
    for on_bad in ("skip", "replace"):
        found = []
        for size in (100, 1 << 20):
            monkeypatch.setattr("recipe.text.long_lines.PART_BYTES", size)
            monkeypatch.setattr("recipe.text.records.LONG_LINE", size)
            some: list = []
            options = ReadOptions(on_bad=on_bad)
            found.append((list(read_documents([tmp_path], options, quarantine=some.append)), some))
        assert found[0] == found[1]
        assert len(found[0][0]) == (1 if on_bad == "skip" else 3)


PEAK = """
import re, sys
from pathlib import Path
from recipe.text.prepare import prepare_pool
from recipe.text.tokenizers import ByteTokenizer

for name in ("few", "many"):
    prepare_pool([f"{sys.argv[1]}/{name}.jsonl"], f"{sys.argv[1]}/{name}", ByteTokenizer()).close()
    status = Path("/proc/self/status").read_text()
    print(1024 * int(re.search("VmHWM: *([0-9]+)", status.replace(chr(9), " "))[1]))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux says how much a process took")
@pytest.mark.parametrize(("last", "most"), [("", 4), ("\U0001f600", 7)])
def test_T04_a_line_of_40_mb_takes_so_many_times_its_bytes(tmp_path, last, most):
    """Of a process of its own, at its most: the line, its text (four times as wide with an emoji), a copy of
    the text in UTF-8 while it is made; ids are on disk.
    """
    (tmp_path / "few.jsonl").write_text('{"text": "few words"}\n')
    with (tmp_path / "many.jsonl").open("w", encoding="utf-8") as file:
        file.write('{"text": "' + "one\\n" * 8_000_000 + last + '"}\n')
    words = [sys.executable, "-c", PEAK, str(tmp_path)]
    few, many = map(int, subprocess.run(words, check=True, capture_output=True, text=True).stdout.split())
    assert many - few < most * 40_000_000
