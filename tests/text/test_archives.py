"""Tars as WebDataset writes them → documents: which members are a record, and what of a damaged one."""

from __future__ import annotations

import json
import tarfile
import tracemalloc

import pytest
import webdataset
import zstandard

from recipe.errors import RecipeError
from recipe.text.archives import raw_members
from recipe.text.readers import read_documents
from recipe.text.sources import ReadOptions, list_sources
from tests.text.stored import RECORDS, members_of, read, write_jsonl, write_tar


def texts(documents):
    return [document.text for document in documents]


@pytest.mark.parametrize("suffix", ["tar", "tar.gz", "tgz", "tar.zst"])
def test_members_of_one_stem_are_one_document(tmp_path, suffix):
    file = tmp_path / f"a.{suffix}"
    write_tar(file, members_of(), "w:gz" if "gz" in suffix else "w")
    if suffix == "tar.zst":
        file.write_bytes(zstandard.ZstdCompressor().compress(file.read_bytes()))
    documents, _, _ = read(file, tag_keys=("lang",))
    assert [(d.id, d.text, d.tags) for d in documents] == [
        (r["id"], r["text"], {"lang": r["lang"]}) for r in RECORDS
    ]
    assert [d.place for d in documents] == [f"a.{suffix}:{number:04d}" for number in range(25)]


def test_what_the_webdataset_package_writes_is_read(tmp_path):
    with webdataset.TarWriter(str(tmp_path / "a.tar")) as writer:
        for number, record in enumerate(RECORDS):
            rest = {key: value for key, value in record.items() if key != "text"}
            writer.write({"__key__": f"web/{number:03d}", "txt": record["text"], "json": rest, "cls": number})
    documents, _, _ = read(tmp_path / "a.tar")
    assert [(d.id, d.text) for d in documents] == [(r["id"], r["text"]) for r in RECORDS]
    assert documents[3].place == "a.tar:web/003"


def test_the_text_is_in_json_where_there_is_no_txt_or_where_it_is_said(tmp_path):
    rest = json.dumps({"body": {"text": "from json"}, "id": "j"}).encode()
    write_tar(tmp_path / "a.tar", [("1.json", rest), ("1.jpg", b"\xff" * 99)])
    assert texts(read(tmp_path / "a.tar", text_key="body.text")[0]) == ["from json"]
    write_tar(tmp_path / "a.tar", [("1.json", rest), ("1.txt", b"from txt"), ("1.md", b"from md")])
    for member, text in ((None, "from txt"), ("json", "from json"), ("md", "from md")):
        [document], _, _ = read(tmp_path / "a.tar", text_key="body.text", text_member=member)
        assert (document.text, document.id) == (text, "j")


def test_T07_records_without_a_text_are_named_with_the_members_found(tmp_path):
    members = [("a/1.txt", b"one"), ("a/2.jpg", b"x"), ("a/2.cls", b"7"), ("a/3.json", b'{"content": "x"}')]
    write_tar(tmp_path / "a.tar", members)
    with pytest.raises(RecipeError, match=r"a\.tar:a/2[\s\S]*\.jpg, \.cls[\s\S]*a\.tar:a/3[\s\S]*'content'"):
        read(tmp_path / "a.tar")
    documents, _, refused = read(tmp_path / "a.tar", on_bad="skip")
    assert texts(documents) == ["one"]
    rows = [one.to_plain() for one in refused]
    assert [(row["source"], row["member"], row["reason"]) for row in rows] == [
        ("a.tar", "a/2", "text_missing"),
        ("a.tar", "a/3", "text_missing"),
    ]
    assert all("line" not in row for row in rows)


def test_T03_characters_of_members_are_those_of_lines(tmp_path):
    members = [
        ("1.txt", b"raw \xff\xfe"),
        ("2.json", b'{"text": "ok\\ud800bad"}'),
        ("3.json", b'{"text": "\\ud83d\\ude00"}'),
        ("4.txt", b"\xef\xbb\xbfsigned\r\n"),
        ("5.txt", b"x"),
        ("5.json", b'{"id": "\xff"}'),
    ]
    write_tar(tmp_path / "a.tar", members)
    documents, tally, _ = read(tmp_path / "a.tar", on_bad="replace")
    assert texts(documents) == ["raw \ufffd\ufffd", "ok\ufffdbad", "😀", "signed\r\n", "x"]
    assert (tally.repaired, documents[4].id) == (3, "\ufffd")
    refused = read(tmp_path / "a.tar", on_bad="skip")[2]
    assert [(one.member, one.reason) for one in refused] == [
        ("1", "invalid_utf8"),
        ("2", "lone_surrogate"),
        ("5", "invalid_utf8"),
    ]


def test_D01_empty_members_are_counted(tmp_path):
    write_tar(tmp_path / "a.tar", [("1.txt", b""), ("2.txt", b"a b"), ("3.json", b'{"text": ""}')])
    documents, tally, _ = read(tmp_path / "a.tar")
    assert (texts(documents), tally.read, tally.empty) == (["a b"], 3, 2)


def test_folders_and_hidden_members_are_no_records_and_links_have_no_text(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        (tmp_path / "web").mkdir()
        for name in ("web/one.txt", "web/._one.txt"):
            (tmp_path / name).write_text(name)
        (tmp_path / "web" / "two.txt").symlink_to("one.txt")
        tar.add(tmp_path / "web", "./web")
    documents, _, refused = read(tmp_path / "a.tar", on_bad="skip")
    assert [(d.id, d.text) for d in documents] == [("a.tar:web/one", "web/one.txt")]
    assert [(one.member, one.reason) for one in refused] == [("web/two", "text_missing")]


def test_one_record_has_one_text(tmp_path):
    write_tar(tmp_path / "a.tar", [("1.txt", b"one"), ("1.TXT", b"two"), ("2.txt", b"x")])
    documents, tally, _ = read(tmp_path / "a.tar", on_bad="skip")
    assert (texts(documents), tally.quarantined) == (["x"], {"bad_member": 1})


def test_a_member_that_is_named_in_no_character_set_is_refused(tmp_path):
    write_tar(tmp_path / "a.tar", [("caf\udce9.txt", b"x"), ("b.txt", b"y")])
    documents, _, refused = read(tmp_path / "a.tar", on_bad="skip")
    assert (texts(documents), refused[0].reason, refused[0].member) == (["y"], "bad_member", "caf\\udce9")


def test_long_names_and_large_members_are_read(tmp_path):
    write_tar(tmp_path / "a.tar", [("folder/" * 40 + "x.txt", b"deep")])
    assert texts(read(tmp_path / "a.tar")[0]) == ["deep"]


def test_T04_a_member_of_20_mb_is_one_document_and_one_above_the_limit_is_let_go(tmp_path):
    write_tar(tmp_path / "a.tar", [("1.txt", b"one"), ("2.txt", b"x" * 20_000_000), ("3.txt", b"three")])
    lengths = [len(document.text) for document in read_documents([tmp_path / "a.tar"])]
    assert lengths == [3, 20_000_000, 5]
    documents, tally, refused = read(tmp_path / "a.tar", max_line_bytes=1_000_000, on_bad="skip")
    assert (texts(documents), tally.quarantined) == (["one", "three"], {"too_long": 1})
    assert (refused[0].member, len(refused[0].excerpt)) == ("2", 120)


def test_T05_all_archives_of_a_file_are_read(tmp_path):
    """As ``cat a.tar b.tar`` leaves them: the library stops at the first end mark."""
    write_tar(tmp_path / "a.tar", [("1.txt", b"one"), ("2.txt", b"two")])
    write_tar(tmp_path / "b.tar", [("3.txt", b"three")])
    both = (tmp_path / "a.tar").read_bytes() + (tmp_path / "b.tar").read_bytes()
    (tmp_path / "c.tar").write_bytes(both)
    assert texts(read(tmp_path / "c.tar")[0]) == ["one", "two", "three"]


def test_a_tar_cut_anywhere_is_an_error_or_counted_never_a_short_one(tmp_path):
    write_tar(tmp_path / "a.tar", [(f"{n}.txt", f"text {n} ".encode() * 90) for n in range(4)])
    whole = (tmp_path / "a.tar").read_bytes()
    end = max(place for place, byte in enumerate(whole) if byte) + 1
    for length in [*range(1, end, 97), 512, 1536, 3072, 512 * -(-end // 512)]:
        (tmp_path / "a.tar").write_bytes(whole[:length])
        documents, tally, _ = read(tmp_path / "a.tar", on_bad="skip")
        assert tally.quarantined == {"truncated": 1}, length
        assert [d.text for d in documents] == [f"text {n} " * 90 for n in range(len(documents))]
        with pytest.raises(RecipeError, match="a tar that is whole"):
            read(tmp_path / "a.tar")


def test_a_packed_tar_cut_anywhere_is_told_too(tmp_path):
    write_tar(tmp_path / "a.tar.gz", members_of(), "w:gz")
    whole = (tmp_path / "a.tar.gz").read_bytes()
    for length in (10, len(whole) // 2, len(whole) - 5):
        (tmp_path / "a.tar.gz").write_bytes(whole[:length])
        assert read(tmp_path / "a.tar.gz", on_bad="skip")[1].quarantined == {"truncated": 1}


def test_what_stands_behind_an_archive_is_told(tmp_path):
    write_tar(tmp_path / "a.tar", [("1.txt", b"one")])
    (tmp_path / "a.tar").write_bytes((tmp_path / "a.tar").read_bytes() + b"garbage!" * 64)
    documents, tally, _ = read(tmp_path / "a.tar", on_bad="skip")
    assert (texts(documents), tally.quarantined) == (["one"], {"truncated": 1})


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.jsonl", "a.jsonl.gz", "a.jsonl.zst", "a.txt.gz"])
def test_F02_a_file_of_no_byte_is_named(tmp_path, name):
    (tmp_path / name).touch()
    write_jsonl(tmp_path / "z.jsonl")
    with pytest.raises(RecipeError, match=name):
        read(tmp_path)
    documents, tally, _ = read(tmp_path, on_bad="skip")
    assert (len(documents), tally.quarantined) == (25, {"empty_file": 1})


def test_F02_an_empty_text_is_an_empty_document(tmp_path):
    (tmp_path / "__init__.py").touch()
    assert read(tmp_path)[1].empty == 1


def test_memory_does_not_grow_with_the_number_of_members(tmp_path):
    """The library's list of members is emptied while reading."""
    write_tar(tmp_path / "a.tar", ((f"{n:06d}.txt", b"x") for n in range(3000)))
    options = ReadOptions()
    [file] = list_sources([tmp_path / "a.tar"], options)
    held = []
    tracemalloc.start()
    for seen, _ in enumerate(raw_members(0, file, options), 1):
        if seen in (500, 2500):
            held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert seen == 3000
    assert held[1] - held[0] < 2000 * 10


@pytest.mark.parametrize(("member", "word"), [("a.md", "md"), ("a.json.md", "md"), ("a.jpg", "SUFFIX")])
def test_members_that_are_called_otherwise_are_named_by_their_suffix(tmp_path, member, word):
    """No key of records helps where there is no record."""
    write_tar(tmp_path / "a.tar", [(member, b"text")])
    with pytest.raises(RecipeError, match=f"--text-member {word}, or") as caught:
        read(tmp_path / "a.tar")
    assert "--text-key" not in str(caught.value)
