"""Near-duplicates: texts go to datatrove as they are, and what it says comes back as pools."""

from __future__ import annotations

import gzip
import inspect
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from recipe.errors import RecipeError
from recipe.pools import open_pool, write_pool
from recipe.pools.chosen_ids import ChosenIds
from recipe.pools.dedup import dedup_pools
from recipe.pools.where import passing
from recipe.text.handing import read_ids, write_texts
from recipe.text.preparation import PrepareOptions
from recipe.text.prepare import prepare_pool
from recipe.text.sources import ReadOptions
from recipe.text.tokenizers import ByteTokenizer, load_tokenizer
from tests.text.cut import Stop, contents, stopping
from tests.text.stored import write_jsonl

BYTES = ByteTokenizer()


def lines_of(paths):
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def test_texts_are_handed_out_with_ids_tags_and_groups(tmp_path):
    rows = [{"id": i, "text": f"tëxt {i}\n", "lang": "en", "g": "g" if i % 2 else None} for i in range(7)]
    write_jsonl(tmp_path / "a.jsonl", rows)
    options = PrepareOptions(read=ReadOptions(tag_keys=("lang",), group_key="g"))
    pool = prepare_pool([tmp_path / "a.jsonl"], tmp_path / "a", BYTES, options)
    paths = write_texts(pool, BYTES, tmp_path / "texts", file_documents=3)
    assert [path.name for path in paths] == [f"texts-0000{i}.jsonl" for i in range(3)]
    found = lines_of(paths)
    assert [line["id"] for line in found] == [str(id) for id in pool.ids(np.arange(7))]  # in stored order
    for line in found:
        number = int(line["id"])
        group = {"group": "g"} if number % 2 else {}
        assert (line["text"], line["metadata"]) == (rows[number]["text"], {"lang": "en", **group})
    with pytest.raises(RecipeError, match="there already"):
        write_texts(pool, BYTES, tmp_path / "texts")


def test_a_tag_called_like_the_group_is_not_lost_but_refused(tmp_path):
    pool = write_pool(
        tmp_path / "a", [[97]], vocab_size=257, eos=256, groups=["g"], tags=[{"group": "another"}]
    )
    with pytest.raises(RecipeError, match="a tag that is called 'group'"):
        write_texts(pool, BYTES, tmp_path / "texts")
    assert not (tmp_path / "texts").exists()


def test_ids_come_from_lines_json_lines_and_folders(tmp_path):
    (tmp_path / "ids.txt").write_text("a\n\nb c\r\n7\n")
    write_jsonl(tmp_path / "kept" / "0.jsonl", [{"id": "x", "text": ""}, {"id": 3}])
    (tmp_path / "kept" / "1.jsonl.gz").write_bytes(gzip.compress(b'{"id": "y"}\n'))
    (tmp_path / "kept" / "stats.json").write_text("{}")
    assert list(read_ids(tmp_path / "ids.txt")) == ["a", "b c", "7"]
    assert list(read_ids(tmp_path / "kept")) == ["x", 3, "y"]
    write_jsonl(tmp_path / "bad.jsonl", [{"id": "x"}, {"text": "no id"}])
    with pytest.raises(RecipeError, match=r"bad\.jsonl:2"):
        list(read_ids(tmp_path / "bad.jsonl"))
    with pytest.raises(RecipeError, match="no such file"):
        list(read_ids(tmp_path / "nothing"))


def functions_of(*modules):
    """Real texts of some length: documented functions of the standard library."""
    found = {}
    for module in modules:
        for name, member in inspect.getmembers(module, inspect.isfunction):
            if member.__module__ == module.__name__:
                text = textwrap.dedent(inspect.getsource(member))
                if len(text.split()) >= 80:
                    found[f"{module.__name__}.{name}"] = text
    return found


def corpus(folder):
    """Functions, and near copies of every third one: a word or two are others."""
    import argparse
    import ast
    import difflib
    import shutil
    import statistics
    import tarfile
    import zipfile

    texts = functions_of(argparse, ast, difflib, shutil, statistics, tarfile, zipfile)
    copies = {}
    for name in sorted(texts)[::3]:
        words = texts[name].split(" ")
        words[-2] = "another"
        copies[f"{name}~"] = " ".join(words)
    rows = [{"id": name, "text": text, "from": name.split(".")[0]} for name, text in (texts | copies).items()]
    write_jsonl(folder / "functions.jsonl", rows)
    return texts, copies


def test_datatroves_minhash_takes_the_texts_and_its_answer_comes_back(tmp_path, tokenizer_file):
    """Both ways back, ids or texts prepared anew, give the same tokens."""
    pytest.importorskip("datatrove")
    texts, copies = corpus(tmp_path)
    assert len(copies) >= 8
    tokenizer = load_tokenizer(tokenizer_file)
    options = PrepareOptions(read=ReadOptions(tag_keys=("from",)))
    pool = prepare_pool([tmp_path / "functions.jsonl"], tmp_path / "functions", tokenizer, options)
    write_texts(pool, tokenizer, tmp_path / "texts")
    script = Path(__file__).with_name("minhash.py")
    work = tmp_path / "work"
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "texts"), str(work)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    removed = set(read_ids(work / "removed"))
    near = {frozenset((name.removesuffix("~"), name)) for name in copies}
    pairs = {frozenset((id.removesuffix("~"), f"{id.removesuffix('~')}~")) for id in removed}
    assert len(near & pairs) >= len(near) - 1  # MinHash finds a near copy with a probability close to one
    kept = ChosenIds.of(read_ids(work / "kept"), keep=True)
    [one] = dedup_pools([pool.path], tmp_path / "unique", ids=kept)
    new = open_pool(one.path, "functions")
    assert one.left_out == {"near_duplicate": len(removed)}
    assert set(new.ids(np.arange(new.num_documents))) == {*texts, *copies} - removed
    dropped = ChosenIds.of(read_ids(work / "removed"), keep=False)
    [other] = dedup_pools([pool.path], tmp_path / "again", ids=dropped)
    assert open_pool(other.path, "functions").part(0).tobytes() == new.part(0).tobytes()
    read = ReadOptions(tag_keys=("metadata",), include=("*.jsonl.gz",))
    back = prepare_pool([work / "kept"], tmp_path / "back", tokenizer, PrepareOptions(read=read))
    assert back.part(0).tobytes() == new.part(0).tobytes()  # ids were texts: the order is the same
    assert [row.tags["from"] for row in back.rows([0, 1])] == [row.tags["from"] for row in new.rows([0, 1])]


def test_tags_that_dedup_joined_go_out_and_come_back(tmp_path):
    rows = [{"id": str(i), "text": "one page", "lang": lang} for i, lang in enumerate(("en", "zh"))]
    write_jsonl(tmp_path / "a.jsonl", [*rows, {"id": "2", "text": "another", "lang": "de"}])
    options = PrepareOptions(duplicates="drop", read=ReadOptions(tag_keys=("lang",)))
    pool = prepare_pool([tmp_path / "a.jsonl"], tmp_path / "a", BYTES, options)
    write_texts(pool, BYTES, tmp_path / "texts")
    again = PrepareOptions(read=ReadOptions(tag_keys=("metadata",)))
    back = prepare_pool([tmp_path / "texts"], tmp_path / "back", BYTES, again)
    assert [row.tags for row in back.rows([0, 1])] == [row.tags for row in pool.rows([0, 1])]
    assert passing(back, {"lang": "zh"}).sum() == passing(back, {"lang": "en"}).sum() == 1


def test_texts_cut_anywhere_go_on_behind_the_last_whole_file(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", [{"text": f"text {i}", "tag": i} for i in range(23)])
    pool = prepare_pool([tmp_path / "a.jsonl"], tmp_path / "pool", BYTES)
    write_texts(pool, BYTES, tmp_path / "whole", file_documents=5)
    out, partial = tmp_path / "out", tmp_path / "out.partial"
    for cut in range(1, 6):
        with pytest.raises(Stop):
            write_texts(pool, BYTES, out, file_documents=5, tell=stopping(1)[0])
        assert len(list(partial.glob("*.jsonl"))) == cut
    stamp = (partial / "texts-00000.jsonl").stat().st_mtime_ns
    write_texts(pool, BYTES, out, file_documents=5)
    assert contents(out) == contents(tmp_path / "whole")
    assert (out / "texts-00000.jsonl").stat().st_mtime_ns == stamp


def test_texts_of_another_pool_are_not_gone_on_with(tmp_path):
    for name in ("one", "two"):
        write_jsonl(tmp_path / f"{name}.jsonl", [{"text": f"{name} {i}"} for i in range(9)])
        prepare_pool([tmp_path / f"{name}.jsonl"], tmp_path / name, BYTES).close()
    with open_pool(tmp_path / "one", "one") as one, pytest.raises(Stop):
        write_texts(one, BYTES, tmp_path / "out", file_documents=4, tell=stopping(2)[0])
    with open_pool(tmp_path / "two", "two") as two:
        paths = write_texts(two, BYTES, tmp_path / "out", file_documents=4)
        assert {row["text"] for row in lines_of(paths)} == {f"two {i}" for i in range(9)}


def test_a_fault_of_the_pool_leaves_no_texts(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", [{"text": f"t{i}", "group": 1, "g": i} for i in range(9)])
    read = ReadOptions(tag_keys=("group",), group_key="g")
    pool = prepare_pool([tmp_path / "a.jsonl"], tmp_path / "pool", BYTES, PrepareOptions(read=read))
    with pytest.raises(RecipeError, match="a tag that is called 'group'"):
        write_texts(pool, BYTES, tmp_path / "out", file_documents=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "pool"]
