"""Verbs of pools on a pool in a store: looked at and verified there, changed here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import fsspec
import numpy as np
import pytest

import recipe
from recipe.cli.main import main
from tests.pools.loopback import store, upload

URL = "s3://pools/english"
OUTS = {"english": "here", URL: "there"}


@pytest.fixture(scope="module")
def bucket() -> Iterator[None]:
    with store():
        fsspec.filesystem("s3").mkdir("pools")
        yield


@pytest.fixture
def local(bucket: None, in_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RECIPE_CACHE", str(in_tmp / "cache"))
    documents = [np.arange(5 + k % 60) for k in range(100)]
    recipe.write_pool(
        "english", documents, vocab_size=500, eos=99, tags=[{"lang": "ab"[k % 2]} for k in range(100)]
    )
    upload(Path("english"), URL)
    return Path("english")


def answer(capsys, *words):
    code = main([*map(str, words), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_what_is_shown_is_what_a_disk_shows(local, capsys):
    here, there = (answer(capsys, "pools", "show", place)[1] for place in (local, URL))
    assert {**there, "path": "", "bytes": 0} == {**here, "path": "", "bytes": 0}
    assert there["path"] == URL


def test_a_changed_byte_is_found_there_too(local, capsys):
    assert answer(capsys, "pools", "verify", URL, "--full")[0] == 0
    data = (local / "part-00000.bin").read_bytes()
    fsspec.filesystem("s3").pipe("pools/english/part-00000.bin", data[:-1] + b"x")
    code, told = answer(capsys, "pools", "verify", URL, "--full")
    assert (code, told["pools"][0]["path"]) == (1, URL)
    assert "part-00000.bin" in told["pools"][0]["findings"][0]["where"]


@pytest.mark.parametrize("name", ["prepare.json", "quarantine.jsonl"])
def test_what_stands_beside_it_is_checked_there_too(bucket, in_tmp, monkeypatch, capsys, name):
    monkeypatch.setenv("RECIPE_CACHE", str(in_tmp / "cache"))
    Path("a.jsonl").write_text('{"text": "a"}\nno record\n')
    assert answer(capsys, "prepare", "web", "a.jsonl", "--on-bad", "skip")[0] == 0
    upload(Path("web"), "s3://pools/web")
    assert answer(capsys, "pools", "verify", "s3://pools/web")[0] == 0
    data = Path("web", name).read_bytes()
    fsspec.filesystem("s3").pipe(f"pools/web/{name}", data.replace(b"a", b"b", 1))
    code, told = answer(capsys, "pools", "verify", "s3://pools/web")
    assert code == 1 and told["pools"][0]["findings"][0]["where"] == f"s3://pools/web/{name}"


@pytest.mark.parametrize("words", [["describe", URL, "kind=public"], ["refingerprint", URL, "--write"]])
def test_nothing_is_written_there(bucket, in_tmp, capsys, words):
    with pytest.raises(SystemExit) as caught:
        main(["pools", *words])
    assert caught.value.code == 2
    assert "in a store" in capsys.readouterr().err


def test_what_is_made_of_it_here_is_what_a_disk_gives(local, capsys):
    assert answer(capsys, "pools", "overlap", "english", URL)[1]["documents"] == [[40, 100], [100, 40]]
    made = {place: answer(capsys, "pools", "dedup", "--out", out, place)[1] for place, out in OUTS.items()}
    kept, there = (told["pools"][0] for told in made.values())
    assert there == {**kept, "path": "there/english"} and there["kept"]["documents"] == 60
