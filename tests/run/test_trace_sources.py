"""A14: from the tokens of a row to file, line and characters, as far as the sources are here."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import recipe
from recipe import RecipeError
from recipe.config import recipe_from_plain
from recipe.run.tracing.trace import Wanted, trace_documents
from recipe.run.tracing.values import RowPiece
from recipe.text.preparation import PrepareOptions
from recipe.text.prepare import prepare_pool
from recipe.text.sources import ReadOptions
from recipe.text.tokenizers import load_tokenizer
from tests.text.conftest import train_small

RECORDS = ["first record\nof two lines", "zweiter Eintrag: 你好\nnoch eine Zeile\n", "third"]
FILE = "a file of its own\nwith a second line\n" * 4


@pytest.fixture(scope="session")
def tokenizer_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained tokenizer."""
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    train_small().save(str(path))
    return path


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A packed file of records and a text, in a folder of their own."""
    folder = tmp_path / "texts"
    (folder / "docs").mkdir(parents=True)
    lines = [json.dumps({"id": f"record {n}", "body": text}) for n, text in enumerate(RECORDS)]
    with gzip.open(folder / "records.jsonl.gz", "wt", encoding="utf-8", newline="\n") as file:
        file.write("\n".join(["", *lines]) + "\n")
    (folder / "docs" / "guide.txt").write_bytes(b"\xef\xbb\xbf" + FILE.encode())
    return folder


def start(tmp_path: Path, texts: Path, tokenizer: str) -> Path:
    read = ReadOptions(text_key="body")
    prepare_pool([texts], tmp_path / "pool", load_tokenizer(tokenizer), PrepareOptions(read=read)).close()
    plain = {
        "seed": 1,
        "tokenizer": {"path": tokenizer} if tokenizer != "bytes" else tokenizer,
        "pools": {"p": {"path": str(tmp_path / "pool")}},
        "stages": {"s": {"steps": 4, "context": 24, "batch": {"sequences": 3}, "weights": {"p": 1}}},
    }
    with recipe.start_run(recipe_from_plain(plain, source="test"), tmp_path / "run") as run:
        run.checkpoint(4)
    return tmp_path / "run"


def rows(run: Path, **more: object) -> list[RowPiece]:
    return [one for step in range(4) for row in range(3) for one in recipe.trace_row(run, step, row, **more)]  # type: ignore[arg-type]


@pytest.mark.parametrize("tokenizer", ["bytes", "file"])
def test_A14_every_piece_of_a_row_is_found_in_its_file(
    tmp_path: Path, texts: Path, tokenizer: str, tokenizer_file
):
    run = start(tmp_path, texts, "bytes" if tokenizer == "bytes" else str(tokenizer_file))
    whole = {f"record {n}": (text, n + 2) for n, text in enumerate(RECORDS)}
    whole["docs/guide.txt"] = FILE, None
    found = rows(run, sources=[texts])
    assert {one.document for one in found} <= set(whole)
    for one in found:
        text, line = whole[one.document]
        at = one.source
        assert (at.known_from, at.missing, at.line) == ("file", None, line)
        assert Path(at.file or "").is_relative_to(texts)
        assert at.text == text[slice(*at.characters)][:200]
        first = text.count("\n", 0, at.characters[0]) + 1
        assert at.lines == (first, first + text.count("\n", at.characters[0], at.characters[1] - 1))
    guide = [one for one in found if one.document == "docs/guide.txt"]
    assert (
        "".join(FILE[slice(*one.source.characters)] for one in sorted(guide, key=lambda o: o.start)) == FILE
    )


def test_without_the_sources_characters_are_those_of_the_tokens(tmp_path: Path, texts: Path):
    run = start(tmp_path, texts, "bytes")
    with_files = rows(run, sources=[texts])
    without = rows(run)
    for one, other in zip(with_files, without, strict=True):
        assert other.source.known_from == "tokens"
        assert (other.source.file, other.source.line) == (None, None)
        assert (one.source.characters, one.source.text) == (other.source.characters, other.source.text)
        assert "--sources" in (other.source.missing or "")


def test_a_file_that_changed_is_not_believed(tmp_path: Path, texts: Path):
    run = start(tmp_path, texts, "bytes")
    (texts / "docs" / "guide.txt").write_text(FILE.replace("own", "OWN"), encoding="utf-8")
    (piece, *_) = [one for one in rows(run, sources=[texts]) if one.document == "docs/guide.txt"]
    assert piece.source.known_from == "tokens"
    assert "guide.txt changed" in (piece.source.missing or "")


def test_without_the_tokenizer_the_source_is_named_all_the_same(tmp_path: Path, texts: Path, tokenizer_file):
    copy = tmp_path / "tokenizer.json"
    copy.write_bytes(Path(tokenizer_file).read_bytes())
    run = start(tmp_path, texts, str(copy))
    copy.unlink()
    piece = rows(run, sources=[texts])[0]
    assert piece.source.source is not None
    assert piece.source.characters is None
    assert "--tokenizer" in (piece.source.missing or "")
    named = rows(run, sources=[texts], tokenizer=str(tokenizer_file))
    assert {one.source.known_from for one in named} == {"file"}


def test_a_pool_of_arrays_names_no_source(tmp_path: Path):
    recipe.write_pool(tmp_path / "p", [list(range(1, 30))] * 8, vocab_size=100, eos=0)
    plain = {
        "seed": 1,
        "pools": {"p": {"path": str(tmp_path / "p")}},
        "stages": {"s": {"steps": 2, "context": 16, "batch": {"sequences": 2}, "weights": {"p": 1}}},
    }
    recipe.start_run(recipe_from_plain(plain, source="test"), tmp_path / "run").checkpoint(2)
    source = recipe.trace_row(tmp_path / "run", 0, 0)[0].source
    assert (source.source, source.characters) == (None, None)
    assert "tokenizer, not stated" in (source.missing or "")


@pytest.mark.parametrize(("step", "row", "expected"), [(0, 3, "rows 0..2 of step 0"), (4, 0, "steps 0..3")])
def test_a_row_that_the_run_does_not_have_is_refused(
    tmp_path: Path, texts: Path, step: int, row: int, expected: str
):
    run = start(tmp_path, texts, "bytes")
    with pytest.raises(RecipeError) as caught:
        recipe.trace_row(run, step, row)
    assert expected in caught.value.problems[0].expected


def test_a_text_is_found_by_its_content_whatever_tokenizer_made_it(
    tmp_path: Path, texts: Path, tokenizer_file
):
    run = start(tmp_path, texts, str(tokenizer_file))
    for text, identity in [
        (RECORDS[1], "record 1"),
        (FILE, "docs/guide.txt"),
        (FILE + "\n", "docs/guide.txt"),
    ]:
        (found,) = trace_documents(run, Wanted(text=text)).documents
        assert found.document == identity
        assert list(found.readings) == recipe.trace_document(run, identity)
    with pytest.raises(RecipeError, match="no document has this text"):
        trace_documents(run, Wanted(text=RECORDS[1] + "x"))
