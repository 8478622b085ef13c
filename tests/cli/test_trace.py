"""``recipe trace`` at the command line."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import recipe
from recipe.cli.main import main
from recipe.config import recipe_from_plain
from recipe.run.branching.branch import branch_run
from recipe.run.branching.wishes import Wish
from recipe.run.tracing.values import Reading
from recipe.text.prepare import prepare_pool
from recipe.text.tokenizers import load_tokenizer

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one stage over a pool of 30 files, of which four of six steps are on record."""
    root = tmp_path_factory.mktemp("trace")
    (root / "texts").mkdir()
    for n in range(30):
        (root / "texts" / f"{n}.txt").write_text(f"file {n}\n" + "line\n" * (n % 7), encoding="utf-8")
    prepare_pool([root / "texts"], root / "pool", load_tokenizer("bytes")).close()
    plain = {
        "seed": 1,
        "pools": {"files": {"path": str(root / "pool")}},
        "stages": {"s": {"steps": 6, "context": 32, "batch": {"sequences": 2}, "weights": {"files": 1}}},
    }
    with recipe.start_run(recipe_from_plain(plain, source="test"), root / "run") as run:
        run.checkpoint(4)
    return root


@pytest.fixture
def first(folder: Path) -> Reading:
    """The first piece of the run's first row."""
    piece = recipe.trace_row(folder / "run", 0, 0)[0]
    return recipe.trace_document(folder / "run", piece.document)[0]


def answer(capsys: Captured, *words: object) -> Any:
    assert main(["trace", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_document_is_told_with_every_place_that_read_it(folder: Path, first: Reading, capsys: Captured):
    assert main(["trace", str(folder / "run"), "--document", str(first.document)]) == 0
    out = capsys.readouterr().out
    assert f"files: document '{first.document}'" in out
    assert "read" in out
    assert "served fresh: " in out


def test_a_document_as_json(folder: Path, first: Reading, capsys: Captured):
    plain = answer(capsys, folder / "run", "--document", first.document)
    (document,) = plain["documents"]
    assert (plain["run"], plain["step"], plain["until"], plain["gaps"]) == ("run", 4, 4, [])
    assert document["readings"][0] == {
        "run": "run",
        "pool": "files",
        "document": first.document,
        "epoch": 0,
        "step": 0,
        "row": 0,
        "columns": [0, first.stop],
        "start": 0,
        "stop": first.stop,
        "fresh": 0,
        "stage": "s",
        "recipe": 1,
        "status": "read",
    }


def test_documents_of_a_file_get_a_line_each_when_they_are_many(
    folder: Path, tmp_path: Path, capsys: Captured
):
    ids = tmp_path / "ids.txt"
    ids.write_text("".join(f"{n}.txt\n" for n in range(30)), encoding="utf-8")
    assert main(["trace", str(folder / "run"), "--documents", str(ids), "--until", "end"]) == 0
    out = capsys.readouterr().out
    assert "30 documents in steps 0..5" in out
    assert "28.txt" in out
    plain = answer(capsys, folder / "run", "--documents", ids, "--until", "end")
    said = {one["status"] for document in plain["documents"] for one in document["readings"]}
    assert said == {"read", "will be read"}


def test_a_document_that_no_step_read_says_so(folder: Path, capsys: Captured):
    plain = answer(capsys, folder / "run", *(word for n in range(30) for word in ("--document", f"{n}.txt")))
    unread = [one["document"] for one in plain["documents"] if not one["readings"]]
    assert unread
    assert main(["trace", str(folder / "run"), "--document", unread[0]]) == 0
    assert "not read, in steps 0..3" in capsys.readouterr().out


def test_a_text_is_found_from_a_file_and_from_a_pipe(
    folder: Path, first: Reading, capsys: Captured, monkeypatch: pytest.MonkeyPatch
):
    text = folder / "texts" / str(first.document)
    by_id = answer(capsys, folder / "run", "--document", first.document)
    assert answer(capsys, folder / "run", "--text", text) == by_id
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.read_bytes())))
    assert answer(capsys, folder / "run", "--text", "-") == by_id


def test_a_row_is_told_down_to_the_lines_of_its_files(folder: Path, first: Reading, capsys: Captured):
    words = ["trace", str(folder / "run"), "--step", "0", "--row", "0"]
    assert main([*words, "--sources", str(folder / "texts")]) == 0
    out = capsys.readouterr().out
    assert "step 0, row 0, read" in out
    assert f"file {str(first.document).removesuffix('.txt')}\\n" in out
    assert "missing" not in out
    assert main(words) == 0
    out = capsys.readouterr().out
    assert f"file {str(first.document).removesuffix('.txt')}\\n" in out
    assert "missing" not in out  # lines and characters are known from the tokens
    plain = answer(capsys, *words[1:], "--sources", folder / "texts")
    assert plain["pieces"][0]["document"] == first.document
    assert plain["pieces"][0]["source"]["file"] == str(folder / "texts" / str(first.document))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "neither"),
        (["--step", "1"], "add --row R"),
        (["--row", "1"], "add --step N"),
        (["--document", "1.txt", "--step", "1", "--row", "0"], "both"),
        (["--document", "12.tx"], "the nearest is '12.txt'"),
        (["--document", "nowhere.txt"], "check the id"),
        (["--document", "1.txt", "--pool", "file"], "did you mean files?"),
        (["--document", "1.txt", "--until", "7"], "0..6, or end"),
        (["--step", "1", "--row", "2"], "rows 0..1 of step 1"),
        (["--text", "missing.txt"], "No such file"),
        (["--documents", "missing.txt"], "No such file"),
    ],
)
def test_what_cannot_be_traced_is_one_message(folder: Path, words: list[str], said: str, capsys: Captured):
    assert main(["trace", str(folder / "run"), *words]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""
    assert "Traceback" not in captured.err


def test_steps_of_a_parent_that_is_gone_are_told_and_the_exit_code_is_1(
    folder: Path, first: Reading, tmp_path: Path, capsys: Captured
):
    (branch,) = branch_run(folder / "run", Wish(name="B"), root=tmp_path)
    words = ["trace", str(branch), "--document", str(first.document)]
    assert main(words) == 0
    assert "0 of run" in capsys.readouterr().out
    (folder / "run").rename(folder / "elsewhere")
    try:
        assert main(words) == 1
    finally:
        (folder / "elsewhere").rename(folder / "run")
    assert "not traced: steps 0..3 of run: " in capsys.readouterr().out


def test_an_id_may_hold_commas_and_equals_signs(tmp_path: Path, capsys: Captured):
    recipe.write_pool(tmp_path / "p", [[1, 2, 3]] * 2, vocab_size=9, eos=0, ids=["a,b=c", "d"])
    plain = {
        "seed": 1,
        "pools": {"p": {"path": str(tmp_path / "p")}},
        "stages": {"s": {"steps": 1, "context": 8, "batch": {"sequences": 1}, "weights": {"p": 1}}},
    }
    recipe.start_run(recipe_from_plain(plain, source="test"), tmp_path / "run").checkpoint(1)
    found = answer(capsys, tmp_path / "run", "--document", "a,b=c")
    assert [one["document"] for one in found["documents"]] == ["a,b=c"]
