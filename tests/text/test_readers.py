"""Files → documents: what is read, what is left out, and where it was."""

import gzip
import json
import os
import tracemalloc

import pytest
import zstandard

from recipe.errors import RecipeError
from recipe.text.documents import Tally
from recipe.text.inputs import FileInput
from recipe.text.readers import raw_batches, read_documents
from recipe.text.sources import ReadOptions, list_sources


def lines(*texts):
    return b"".join(json.dumps({"text": text}).encode() + b"\n" for text in texts)


def read(path, **options):
    """Texts, tally, refusals."""
    tally, refused = Tally(), []
    documents = read_documents([path], ReadOptions(**options), tally=tally, quarantine=refused.append)
    return [document.text for document in documents], tally, refused


def test_T01_lines_end_at_line_feeds_alone(tmp_path):
    file = tmp_path / "a.jsonl"
    text = "a\u2028b\x85c\x0cd"
    file.write_bytes(json.dumps({"text": text}, ensure_ascii=False).encode() + b"\n" + lines("two"))
    assert read(file)[0] == [text, "two"]


def test_T03_lone_surrogates_and_invalid_bytes_are_replaced_and_counted(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_bytes(
        b'{"text": "ok\\ud800bad"}\n{"text": "\\ud83d\\ude00"}\n{"text": "raw \xff\xfe"}\n{"text": "fine"}\n'
    )
    texts, tally, _ = read(file, on_bad="replace")
    assert texts == ["ok\ufffdbad", "\U0001f600", "raw \ufffd\ufffd", "fine"]
    assert (tally.kept, tally.repaired) == (4, 2)


def test_T03_the_error_names_file_and_line_of_each(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'{"text": "ok\\ud800bad"}\n{"text": "\\ud83d\\ude00"}\n{"text": "raw \xff\xfe"}\n')
    with pytest.raises(RecipeError) as caught:
        read(file)
    assert [problem.where for problem in caught.value.problems] == ["a.jsonl:1", "a.jsonl:3"]


def test_T03_surrogates_in_ids_and_tags_are_no_better(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'{"id": "\\ud800", "text": "x"}\n')
    assert read(file, on_bad="skip")[1].quarantined == {"lone_surrogate": 1}


def test_T04_a_line_of_20_mb_is_one_document_in_bounded_memory(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_bytes(lines("one", "x" * 20_000_000, "three"))
    tracemalloc.start()
    assert [len(document.text) for document in read_documents([file])] == [3, 20_000_000, 5]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * 20_000_000


def test_T04_a_line_above_the_limit_is_named_and_let_go(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_bytes(lines("one", "x" * 3_000_000, "three"))
    with pytest.raises(RecipeError, match=r"a\.jsonl:2[\s\S]*at most 1,000,000 bytes"):
        read(file, max_line_bytes=1_000_000)
    texts, tally, refused = read(file, max_line_bytes=1_000_000, on_bad="skip")
    assert texts == ["one", "three"]
    assert tally.quarantined == {"too_long": 1}
    assert (refused[0].line, len(refused[0].excerpt)) == (2, 120)


@pytest.mark.parametrize("escaped", [False, True])
def test_T04_one_emoji_in_a_line_that_then_takes_too_much_memory_is_named_and_let_go(
    tmp_path, monkeypatch, escaped
):
    """A character of four bytes makes every other one of its text as wide."""
    monkeypatch.setattr("recipe.text.widths.WIDEST", 6000)
    file = tmp_path / "a.jsonl"
    texts = ["x" * 1500, "x" * 1500 + "\U0001f600", "x" * 900 + "\U0001f600", "\u4e2d" * 600]
    file.write_text("".join(json.dumps({"text": t}, ensure_ascii=escaped) + "\n" for t in texts), "utf-8")
    with pytest.raises(RecipeError, match=r"a\.jsonl:2[\s\S]*at most 6,000 bytes in memory"):
        read(file, max_line_bytes=2000)
    kept, tally, _ = read(file, max_line_bytes=2000, on_bad="skip")
    assert kept == [texts[0], texts[2], *([] if escaped else [texts[3]])]
    assert tally.quarantined["too_long"] == 2 - (not escaped)
    assert read(file, max_line_bytes=8000)[0] == texts


@pytest.mark.parametrize(("characters", "fits"), [(1480, True), (1500, False)])
def test_T04_one_chinese_character_doubles_the_text_and_the_line_counts_too(
    tmp_path, monkeypatch, characters, fits
):
    """Two bytes a byte of the line and two a character: about 4 x 1,500 are the limit."""
    monkeypatch.setattr("recipe.text.widths.WIDEST", 6000)
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps({"text": "x" * characters + "\u4e2d"}, ensure_ascii=False) + "\n", "utf-8")
    assert len(read(file, max_line_bytes=2000, on_bad="skip")[0]) == fits


@pytest.mark.parametrize("content_bytes", [9, 10, 11])
def test_the_limit_counts_the_line_without_its_end(tmp_path, content_bytes):
    file = tmp_path / "a.txt"
    file.write_bytes(b"x" * content_bytes)
    assert len(read(file, max_line_bytes=10, on_bad="skip")[0]) == (content_bytes <= 10)


def test_T05_all_frames_of_zst_and_all_members_of_gz_are_read(tmp_path):
    first, second = lines("a", "b", "c"), lines("d", "e")
    zst, gz = tmp_path / "a.jsonl.zst", tmp_path / "a.jsonl.gz"
    skippable = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"
    pack = zstandard.ZstdCompressor().compress
    zst.write_bytes(pack(first) + skippable + pack(second))
    gz.write_bytes(gzip.compress(first) + gzip.compress(second))
    assert read(zst)[0] == read(gz)[0] == ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_a_truncated_archive_is_an_error_or_counted_never_a_short_file(tmp_path, suffix):
    many = lines(*[f"text {i * 7919 % 10007}" for i in range(20_000)])
    packed = gzip.compress(many) if suffix == "gz" else zstandard.ZstdCompressor().compress(many)
    file = tmp_path / f"a.jsonl.{suffix}"
    file.write_bytes(packed[: len(packed) - 5])
    with pytest.raises(RecipeError, match="archive that is whole"):
        read(file)
    texts, tally, refused = read(file, on_bad="skip")
    assert tally.quarantined == {"truncated": 1}
    assert refused[0].line == len(texts) + 1


def test_garbage_after_an_archive_is_told(tmp_path):
    file = tmp_path / "a.jsonl.zst"
    file.write_bytes(zstandard.ZstdCompressor().compress(lines("a")) + b"garbage!")
    assert read(file, on_bad="skip")[1].quarantined == {"truncated": 1}


def test_T07_every_record_without_text_is_named_with_the_keys_found(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'{"text": "one"}\n{"content": "two"}\n{"text": 7}\n')
    with pytest.raises(RecipeError) as caught:
        read(file)
    assert [problem.where for problem in caught.value.problems] == ["a.jsonl:2", "a.jsonl:3"]
    assert "'content'" in str(caught.value)
    texts, tally, _ = read(file, on_bad="skip")
    assert texts == ["one"]
    assert tally.quarantined == {"text_missing": 1, "text_not_text": 1}


def test_a_fault_of_json_is_told_by_the_line_of_the_file_alone(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text('{"text": "one"}\n{"text": one}\n')
    with pytest.raises(RecipeError) as caught:
        read(file)
    assert "a.jsonl:2" in str(caught.value) and "Expecting value: column 10" in str(caught.value)
    assert "line 2 column" not in str(caught.value) and "line 1" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "invalid_json"),
        (b"[" * 100_000, "invalid_json"),
        (b'{"text": "x", "n": ' + b"9" * 5000 + b"}", "invalid_json"),
        (b"[1]", "not_an_object"),
        (b"null", "not_an_object"),
        (b'{"text": null}', "text_not_text"),
        (b'{"id": true, "text": "x"}', "bad_id"),
        (b'{"id": 1.5, "text": "x"}', "bad_id"),
        (b'{"id": 99999999999999999999, "text": "x"}', "bad_id"),
        (b'{"text": "x", "g": []}', "bad_group"),
        (b'{"text": "x", "tags": {"a": []}}', "bad_tag"),
        (b"\xff", "invalid_utf8"),
    ],
)
def test_bad_records_have_one_reason_each(tmp_path, line, reason):
    file = tmp_path / "a.jsonl"
    file.write_bytes(line + b"\n" + lines("good"))
    texts, tally, _ = read(file, on_bad="skip", group_key="g", tag_keys=("tags",))
    assert texts == ["good"]
    assert tally.quarantined == {reason: 1}


def test_D01_empty_texts_and_blank_lines_are_counted_apart(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_bytes(lines("", "a b", "") + b"\n  \r\n")
    texts, tally, _ = read(file)
    assert texts == ["a b"]
    assert (tally.read, tally.kept, tally.empty, tally.blank_lines) == (3, 1, 2, 2)


def test_ids_groups_and_tags_come_from_the_record(tmp_path):
    file = tmp_path / "a.jsonl"
    record = {"key": 7, "body": {"text": "hello"}, "repo": "r", "meta": {"lang": "en", "stars": 3}}
    file.write_text(json.dumps(record))
    options = ReadOptions(text_key="body.text", id_key="key", group_key="repo", tag_keys=("meta", "absent"))
    [document] = read_documents([file], options)
    assert (document.id, document.text, document.group) == (7, "hello", "r")
    assert (document.tags, document.place) == ({"lang": "en", "stars": 3}, "a.jsonl:1")


def test_C04_equal_file_names_in_two_folders_share_no_id(tmp_path):
    for folder, text in (("web", "w"), ("code", "c")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "part0.jsonl").write_bytes(lines(text))
    documents = list(read_documents([tmp_path / "web", tmp_path / "code"]))
    assert [document.id for document in documents] == ["code/part0.jsonl:1", "web/part0.jsonl:1"]


def test_S04_files_come_in_the_order_of_their_names(tmp_path):
    for folder, names in (("one", ["c", "a", "b", "x/2", "x/1"]), ("two", ["x/1", "b", "x/2", "a", "c"])):
        for name in names:
            path = tmp_path / folder / f"{name}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
    one, two = (list(read_documents([tmp_path / folder])) for folder in ("one", "two"))
    assert [document.text for document in one] == ["a", "b", "c", "x/1", "x/2"]
    assert one == two


def test_a_text_tree_is_one_document_a_file_in_groups_of_folders(tmp_path):
    for name in ("top.py", "pkg/a.py", "pkg/sub/b.py", "pkg/notes.md", ".git/config", "pkg/.hidden"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {name}\r\n")
    options = ReadOptions(include=("*.py", "**/*.md"), group_depth=1, exclude=("pkg/notes*",))
    documents = list(read_documents([tmp_path], options))
    assert [(d.id, d.group) for d in documents] == [
        ("pkg/a.py", "pkg"),
        ("pkg/sub/b.py", "pkg"),
        ("top.py", None),
    ]
    assert documents[0].text == "# pkg/a.py\r\n"


def test_hidden_files_that_globs_let_in_are_told_and_not_read(tmp_path):
    for name in ("a.txt", ".b.txt", ".sub/c.txt", "d/.e.txt", "d/.f.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    told: list[str] = []
    files = list_sources([tmp_path], ReadOptions(include=("*.txt",)), on_hidden=told.extend)
    assert [file.name for file in files] == ["a.txt"]
    assert sorted(told) == [".b.txt", ".sub/c.txt", "d/.e.txt"]
    told.clear()
    [file] = list_sources([tmp_path / ".sub"], ReadOptions(), on_hidden=told.extend)
    assert (file.name, told) == ("c.txt", []), "what is named is read"
    (tmp_path / "a.txt").unlink()
    with pytest.raises(RecipeError, match="only hidden files"):
        list_sources([tmp_path], ReadOptions(exclude=("d/*",)))


def test_every_wrong_source_is_named_at_once(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(RecipeError) as caught:
        list_sources([tmp_path / "empty", tmp_path / "missing"], ReadOptions())
    assert len(caught.value.problems) == 2
    with pytest.raises(RecipeError, match="--format jsonl"):
        list_sources([tmp_path / "a.json"], ReadOptions())


def test_a_file_name_that_is_no_text_is_refused(tmp_path):
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("x")
    with pytest.raises(RecipeError, match="a name in UTF-8"):
        list_sources([tmp_path], ReadOptions())


def test_a_file_named_twice_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(RecipeError, match="named twice"):
        list_sources([tmp_path, tmp_path / "a.txt"], ReadOptions())


def test_batches_cut_nothing(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(lines(*map(str, range(100))))
    (tmp_path / "b.jsonl").write_bytes(lines(*map(str, range(100))))
    files = list_sources([tmp_path], ReadOptions())
    whole = [raw for batch in raw_batches(files, ReadOptions(), 10**9) for raw in batch]
    small = [raw for batch in raw_batches(files, ReadOptions(), 50) for raw in batch]
    assert whole == small
    assert len(whole) == 200


def test_tasks_say_how_many_stored_bytes_were_read_before_them(tmp_path):
    """Records of 1 MiB: a task each."""
    large = lines("x" * (1 << 20))
    (tmp_path / "a.jsonl").write_bytes(large * 2)
    (tmp_path / "b.jsonl").write_bytes(large)
    files = list_sources([tmp_path], ReadOptions())
    done = [count for _, count in FileInput(files, ReadOptions()).batches()]
    assert done[1:] == [2 * len(large), 3 * len(large)]


def test_a_signature_at_the_beginning_is_no_text(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + lines("a"))
    (tmp_path / "b.txt").write_bytes(b"\xef\xbb\xbfb")
    assert [document.text for document in read_documents([tmp_path])] == ["a", "b"]


def test_an_empty_name_is_no_source(tmp_path, monkeypatch):
    """An unset shell variable does not read the folder one happens to be in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "z.txt").write_text("text")
    with pytest.raises(RecipeError, match="an empty shell variable"):
        list_sources([""], ReadOptions())
