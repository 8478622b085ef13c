"""``recipe export`` of a pool: the command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import recipe
from recipe.cli.main import main
from recipe.integrations.exporting import PoolWanted, export_pool
from recipe.pools import open_pool


@pytest.fixture
def pools(in_tmp: Path) -> Path:
    """The working directory with ``pools/web``: four documents in two languages."""
    tags = [{"language": "en"}, {"language": "no"}, {"language": "en"}, {"language": "de", "quality": 0.7}]
    recipe.write_pool("pools/web", [[1], [2, 3], [], [4]], vocab_size=10, eos=9, ids="abcd", tags=tags)
    return in_tmp


def test_a_folder_with_a_card_is_exported_as_a_pool(pools, capsys):
    assert main(["export", "pools/web", "--format", "npy", "--out", "out"]) == 0
    assert "4 documents, 8 tokens with end marks as npy" in capsys.readouterr().out
    assert np.load("out/tokens-00000.npy").tolist() == [1, 9, 2, 3, 9, 9, 4, 9]
    assert np.load("out/tokens-00000.offsets.npy").tolist() == [0, 2, 5, 6, 8]


def test_json_says_what_there_is(pools, capsys):
    assert main(["export", "pools/web", "--format", "megatron", "--out", "out", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["documents"], answer["tokens"], answer["copied"]) == (4, 8, True)


def test_of_no_documents_no_file_is_named_that_is_not_there(pools, capsys):
    recipe.write_pool("pools/none", [], vocab_size=10, eos=9).close()
    for format in ("npy", "megatron", "datatrove"):
        assert main(["export", "pools/none", "--format", format, "--out", f"none-{format}"]) == 0
        told = capsys.readouterr().out
        assert "0 documents" in told and "_rows.parquet" not in told
        assert [path.name for path in Path(f"none-{format}").iterdir()] == ["_manifest.json"]


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        (["language=no"], ["b"]),
        (["language=en", "language=no"], ["a", "b", "c"]),
        (["quality={min: 0.5}"], ["d"]),
    ],
)
def test_where_chooses_documents(pools, where, ids):
    """G03: no is a language."""
    words = [word for text in where for word in ("--where", text)]
    assert main(["export", "pools/web", "--format", "parquet", "--out", "out", *words]) == 0
    assert pq.read_table("out")["id"].to_pylist() == ids


def test_token_files_of_others_are_pools_too(pools):
    with open_pool("pools/web", "web") as web:
        export_pool(web, "pairs", PoolWanted(format="megatron"))
    for source in ("pairs", "pairs/tokens-00000", "pairs/tokens-00000.bin"):
        to = f"out-{source.replace('/', '-')}"
        assert main(["export", source, "--format", "parquet", "--out", to]) == 0
        assert pq.read_table(to)["input_ids"].to_pylist() == [[1, 9], [2, 3, 9], [9], [4, 9]]


def test_a_recipe_whose_name_a_folder_has_stays_a_recipe(small, capsys):
    Path("demo").touch()
    words = ["--format", "npy", "--out", "out"]
    assert main(["export", "small.yaml", *words]) == 0
    assert "sequences in" in capsys.readouterr().out
    assert main(["export", "demo", "--format", "npy", "--out", "demo-out", "--steps", "0..1"]) == 2
    assert "pool" in capsys.readouterr().err  # its pools are not prepared here: it was looked for as a recipe


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["pools/web", "--dp-size", "2", "--steps", "0..2"], "--dp-size"),
        (["pools/web", "seed=3"], "--where KEY=VALUE chooses documents"),
        (["pools/web", "--where", "language"], "language=en"),
        (["pools/web", "--where", "language={nor: en}"], "--where.language.nor"),
        (["pools/web", "--where", "langage=en"], "langage"),
        (["small.yaml", "--where", "language=en"], "leave --where out"),
    ],
)
def test_faults_are_one_message_and_nothing_is_written(small, pools, capsys, words, told):
    assert main(["export", *words, "--format", "npy", "--out", "out"]) == 2
    assert told in capsys.readouterr().err
    assert not Path("out").exists()


def test_datatrove_files_hold_no_sequences(small, capsys):
    assert main(["export", "small.yaml", "--format", "datatrove", "--out", "out"]) == 2
    assert "choose another --format, or name a pool" in capsys.readouterr().err


def test_files_of_others_are_read_as_they_are_said_to_be(pools):
    np.array([5, 6, 9, 7, 9], np.uint16).tofile("raw.u16")
    assert main(["export", "raw.u16", "--format", "parquet", "--out", "out", "--eos", "9"]) == 0
    assert pq.read_table("out")["input_ids"].to_pylist() == [[5, 6, 9], [7, 9]]
    np.array([5, 6, 9, 7, 9], np.uint16).tofile("raw.ids")
    words = ["--format", "parquet", "--out", "other", "--dtype", "uint16", "--documents", "file"]
    assert main(["export", "raw.ids", *words]) == 0
    assert pq.read_table("other")["input_ids"].to_pylist() == [[5, 6, 9, 7, 9]]


@pytest.mark.parametrize("words", [["--eos", "49"], ["--documents", "file"], []])
def test_lists_beside_npy_files_are_not_read_as_tokens(in_tmp, capsys, words):
    """Of files without a manifest what reads them is named; said, it gives the documents of the pool."""
    recipe.write_pool("pools/a", [[1, 2, 3], [4, 5]], vocab_size=50, eos=49).close()
    assert main(["export", "pools/a", "--format", "npy", "--out", "out"]) == 0
    Path("out/_manifest.json").unlink()
    assert main(["pools", "show", "out", "--samples", "0", *words]) == 2
    told = capsys.readouterr().err
    assert "tokens-00000.offsets.npy" in told and "boundaries: .offsets.npy" in told
    assert (
        main(["pools", "show", "out", "--samples", "0", "--eos", "49", "--boundaries", ".offsets.npy"]) == 0
    )
    assert main(["pools", "show", "out/tokens-00000.npy", "--samples", "0", "--eos", "49"]) == 0
