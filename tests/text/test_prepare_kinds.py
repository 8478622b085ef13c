"""Every kind of source → pools: one and the same pool, with everything left out counted and written down."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from recipe.cli.main import main
from recipe.errors import RecipeError
from recipe.text.preparation import PrepareOptions
from recipe.text.prepare import prepare_pool
from recipe.text.sources import ReadOptions
from recipe.text.tokenizers import ByteTokenizer, load_tokenizer
from tests.text.stored import (
    RECORDS,
    members_of,
    write_arrow,
    write_arrow_file,
    write_jsonl,
    write_parquet,
    write_tar,
)

BYTES = ByteTokenizer()

WRITERS = {
    "a.jsonl": write_jsonl,
    "a.parquet": write_parquet,
    "a.arrow": write_arrow,
    "b.arrow": write_arrow_file,
    "a.tar": lambda path, records=RECORDS: write_tar(path, members_of(records)),
}
TOKENS = ("part-00000.bin", "part-00000.idx", "offsets.npy", "hashes.npy")


def test_records_with_ids_give_one_pool_whatever_file_they_are_in(tmp_path):
    pools = {}
    for name, write in WRITERS.items():
        write(tmp_path / name)
        options = PrepareOptions(workers=1, read=ReadOptions(tag_keys=("lang",)))
        pools[name] = prepare_pool([tmp_path / name], tmp_path / f"{name}.pool", BYTES, options)
    first = pools["a.jsonl"].path
    for name, pool in pools.items():
        assert {row.id: row.tags for row in pool.rows(range(25))} == {
            record["id"]: {"lang": record["lang"]} for record in RECORDS
        }
        for file in TOKENS:
            assert (pool.path / file).read_bytes() == (first / file).read_bytes(), (name, file)


def bad_jsonl(path):
    lines = [
        b'{"text": "one"}',
        b'{"text": null}',
        b'{"text": ""}',
        b'{"text": "raw \xff"}',
        b'{"text": "five"}',
    ]
    path.write_bytes(b"\n".join(lines) + b"\n")


def bad_table():
    offsets = pa.array([b"one", None, b"", b"raw \xff", b"five"], pa.binary())
    return pa.table({"text": pa.Array.from_buffers(pa.string(), 5, offsets.buffers())})


def bad_tar(path):
    members = [("1.txt", b"one"), ("2.jpg", b"x"), ("3.txt", b""), ("4.txt", b"raw \xff"), ("5.txt", b"five")]
    write_tar(path, members)


BAD = {
    "a.jsonl": (bad_jsonl, "line", [2, 4]),
    "a.parquet": (lambda path: write_parquet(path, bad_table()), "row", [2, 4]),
    "a.arrow": (lambda path: write_arrow(path, bad_table()), "row", [2, 4]),
    "a.tar": (bad_tar, "member", ["2", "4"]),
}


@pytest.mark.parametrize("name", list(BAD))
def test_T07_the_quarantine_file_says_where_and_why_and_counts_add_up(tmp_path, name):
    write, within, places = BAD[name]
    write(tmp_path / name)
    for on_bad, kept, bad in (("skip", 2, places), ("replace", 3, places[:1])):
        pool = prepare_pool(
            [tmp_path / name],
            tmp_path / on_bad,
            BYTES,
            PrepareOptions(workers=1, read=ReadOptions(on_bad=on_bad)),
        )
        read = pool.card.source["read"]
        assert (pool.num_documents, read["kept"], read["empty"], read["read"]) == (kept, kept, 1, 5)
        assert read["read"] == read["kept"] + read["empty"] + sum(read["quarantined"].values())
        rows = [
            json.loads(line) for line in (tmp_path / on_bad / "quarantine.jsonl").read_text().splitlines()
        ]
        assert [(row["source"], row[within]) for row in rows] == [(name, place) for place in bad]
        assert all(row["reason"] in read["quarantined"] for row in rows)
    with pytest.raises(RecipeError) as caught:
        prepare_pool([tmp_path / name], tmp_path / "error", BYTES)
    assert [problem.where for problem in caught.value.problems] == [f"{name}:{place}" for place in places]
    assert not (tmp_path / "error").exists()


def test_T07_a_wrong_key_of_many_records_is_counted_for_each(tmp_path):
    """More refusals than one task holds: the file is written a task at a time."""
    write_parquet(tmp_path / "a.parquet", pa.table({"body": ["x"] * 70_000}), row_group_size=50_000)
    write_jsonl(tmp_path / "z.jsonl")
    options = PrepareOptions(workers=1, read=ReadOptions(on_bad="skip"))
    pool = prepare_pool([tmp_path], tmp_path / "pool", BYTES, options)
    assert pool.card.dropped == {"text_missing": 70_000}
    with (tmp_path / "pool" / "quarantine.jsonl").open() as file:
        rows = [json.loads(line)["row"] for line in file]
    assert rows == list(range(1, 70_001))


def test_a_pool_of_tables_is_left_as_it_is_and_told_when_they_change(tmp_path):
    write_parquet(tmp_path / "a.parquet")
    first = prepare_pool([tmp_path / "a.parquet"], tmp_path / "pool", BYTES)
    said = []
    prepare_pool([tmp_path / "a.parquet"], tmp_path / "pool", BYTES, progress=said.append)
    assert "up to date" in said[0].text
    write_parquet(tmp_path / "a.parquet", RECORDS[1:])
    with pytest.raises(RecipeError, match=r"a\.parquet"):
        prepare_pool([tmp_path / "a.parquet"], tmp_path / "pool", BYTES)
    assert first.num_documents == 25


def test_workers_with_a_tokenizer_take_rows_and_members(tmp_path, tokenizer_file):
    records = [{"id": f"d{i}", "text": f"document {i} " * 600} for i in range(900)]
    (tmp_path / "in").mkdir()
    write_parquet(tmp_path / "in" / "a.parquet", records[:450], row_group_size=300)
    write_tar(tmp_path / "in" / "b.tar", members_of(records[450:]))
    tokenizer = load_tokenizer(str(tokenizer_file))
    pools = [
        prepare_pool([tmp_path / "in"], tmp_path / f"{workers}", tokenizer, PrepareOptions(workers=workers))
        for workers in (1, 2)
    ]
    for file in TOKENS:
        assert (pools[0].path / file).read_bytes() == (pools[1].path / file).read_bytes()


def test_the_verb_reads_tables_and_tars(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_parquet(tmp_path / "a.parquet", [{"page": {"body": "text"}, "lang": "en"}])
    write_tar(tmp_path / "n.tar", [("1.md", b"# note"), ("2.jpg", b"x")])
    assert (
        main(["prepare", "wiki", "a.parquet", "--text-key", "page.body", "--tag-key", "lang", "--json"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["documents"] == 1
    assert main(["prepare", "notes", "n.tar", "--text-member", "md", "--on-bad", "skip"]) == 0
    out = capsys.readouterr().out
    assert "left out: text missing" in out
    assert "notes/quarantine.jsonl" in out
    assert main(["prepare", "more", "n.tar", "--text-member", "md"]) == 2
    assert "n.tar:2" in capsys.readouterr().err


def test_prepare_help_names_every_kind(capsys):
    with pytest.raises(SystemExit):
        main(["prepare", "--help"])
    out = " ".join(capsys.readouterr().out.split())
    for word in (".parquet", ".arrow", ".tar.zst", "datasets", "s3://", "--text-member", "quarantine.jsonl"):
        assert word in out
