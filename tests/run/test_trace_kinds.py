"""A14: from the tokens of a row to file and row, or file and member, for every kind of source."""

from __future__ import annotations

import json
from pathlib import Path

import fsspec
import pytest

import recipe
from recipe.cli.main import main
from recipe.config import recipe_from_plain
from recipe.run.tracing.prepared import Name, Prepared
from recipe.text.preparation import PrepareOptions
from recipe.text.prepare import prepare_pool
from recipe.text.sources import ReadOptions
from recipe.text.tokenizers import ByteTokenizer
from tests.text.stored import (
    RECORDS,
    members_of,
    write_arrow,
    write_arrow_file,
    write_parquet,
    write_tar,
)

KINDS = {
    "b.parquet": write_parquet,
    "c.arrow": write_arrow,
    "d.arrow": write_arrow_file,
    "e.tar": lambda path: write_tar(path, members_of()),
    "f:1.tar.gz": lambda path: write_tar(path, ((f"x:y/{n}", d) for n, d in members_of()), "w:gz"),
}


@pytest.fixture(params=list(KINDS))
def texts(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A file of one kind."""
    (tmp_path / "texts" / "deep").mkdir(parents=True)
    KINDS[request.param](tmp_path / "texts" / "deep" / request.param)
    return tmp_path / "texts"


def start(tmp_path: Path, source: Path | str) -> Path:
    prepare_pool([source], tmp_path / "pool", ByteTokenizer(), PrepareOptions(read=ReadOptions())).close()
    plain = {
        "seed": 1,
        "tokenizer": "bytes",
        "pools": {"p": {"path": str(tmp_path / "pool")}},
        "stages": {"s": {"steps": 3, "context": 24, "batch": {"sequences": 4}, "weights": {"p": 1}}},
    }
    with recipe.start_run(recipe_from_plain(plain, source="test"), tmp_path / "run") as run:
        run.checkpoint(3)
    return tmp_path / "run"


def check(run: Path, root: Path | str) -> None:
    """Every piece is found in its file, at the place of its record."""
    found = [
        one
        for step in range(3)
        for row in range(4)
        for one in recipe.trace_row(run, step, row, sources=[root])
    ]
    assert len({one.document for one in found}) > 10
    for one in found:
        number = int(str(one.document).removeprefix("d"))
        at = one.source
        assert (at.known_from, at.missing) == ("file", None)
        assert str(at.file).startswith(f"{root}/")
        assert at.characters is not None
        assert at.text == RECORDS[number]["text"][slice(*at.characters)]
        stem = f"{'x:y/' if 'f:1' in str(at.file) else ''}{number:04d}"
        expected = (None, stem) if ".tar" in str(at.file) else (number + 1, None)
        assert (at.line, at.member) == expected


def test_A14_every_piece_is_found_at_its_row_or_member(tmp_path: Path, texts: Path):
    check(start(tmp_path, texts), texts)


def test_A14_without_what_prepare_wrote_names_tell_the_kind(tmp_path: Path, texts: Path):
    run = start(tmp_path, texts)
    (tmp_path / "pool" / "prepare.json").unlink()
    check(run, texts)


def test_A14_sources_in_a_store_are_found_by_their_url(tmp_path: Path):
    system = fsspec.filesystem("memory")
    write_parquet(tmp_path / "b.parquet")
    system.pipe("/traced/b.parquet", (tmp_path / "b.parquet").read_bytes())
    check(start(tmp_path, "memory://traced"), "memory://traced")
    system.rm("/traced", recursive=True)


def test_A14_a_table_that_changed_is_not_believed(tmp_path: Path):
    (tmp_path / "texts").mkdir()
    write_parquet(tmp_path / "texts" / "b.parquet")
    run = start(tmp_path, tmp_path / "texts")
    write_parquet(tmp_path / "texts" / "b.parquet", RECORDS[::-1])
    pieces = recipe.trace_row(run, 0, 0, sources=[tmp_path / "texts"])
    assert {one.source.known_from for one in pieces} == {"tokens"}
    assert "changed" in (pieces[0].source.missing or "")


def test_the_verbs_name_row_and_member(tmp_path: Path, texts: Path, capsys: pytest.CaptureFixture[str]):
    run = start(tmp_path, texts)
    words = [str(run), "--step", "0", "--row", "0", "--sources", str(texts)]
    [file] = (texts / "deep").iterdir()
    piece = recipe.trace_row(run, 0, 0, sources=[texts])[0].source
    within = piece.line if piece.member is None else piece.member
    assert piece.source == f"deep/{file.name}:{within}"
    assert main(["inspect", *words]) == 0
    assert f"{file}:{within}" in capsys.readouterr().out.replace("\n", "")
    assert main(["trace", *words, "--json"]) == 0
    [first, *_] = json.loads(capsys.readouterr().out)["pieces"]
    assert first["source"] == piece.to_plain()


def test_places_with_colons_are_told_apart(tmp_path: Path):
    """Nothing is written down here: the names alone."""
    prepared = Prepared(tmp_path)
    assert prepared.name_of("a:b.tar:c:d/1") == Name("a:b.tar", "c:d/1")
    assert prepared.name_of("a:7.parquet:12") == Name("a:7.parquet", 12)
    assert prepared.name_of("a:b.txt") == Name("a:b.txt", None)
