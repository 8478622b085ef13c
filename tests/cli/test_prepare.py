"""``recipe prepare`` with words that cannot be: one message and exit code 2; a pool inside its own source."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from recipe.cli.main import main


@pytest.fixture
def tree(in_tmp: Path) -> Path:
    """A working directory with ``tree/a.txt``, ``tree/deep/b.txt``, a FIFO and a link to the tree."""
    (in_tmp / "tree" / "deep").mkdir(parents=True)
    (in_tmp / "tree" / "a.txt").write_text("one")
    (in_tmp / "tree" / "deep" / "b.txt").write_text("three")
    (in_tmp / "link").symlink_to("tree")
    os.mkfifo(in_tmp / "fifo")
    return in_tmp


def made(capsys, *words: str) -> dict:
    assert main(["prepare", *words, "--workers", "1", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "out", ["", ".", "/", "..", "tree/..", "a\0b", "tree/a.txt/pool", "tree/a.txt/x/pool"]
)
def test_what_can_be_no_folder_is_refused(tree, capsys, out):
    assert main(["prepare", out, "tree"]) == 2
    assert "fix" in capsys.readouterr().err
    assert sorted(path.name for path in tree.iterdir()) == ["fifo", "link", "tree"]


@pytest.mark.parametrize(
    ("source", "sort"), [("fifo", "a FIFO"), ("/dev/null", "a device"), ("no", "missing")]
)
def test_a_source_that_is_no_file_is_called_what_it_is(tree, capsys, source, sort):
    assert main(["prepare", "pool", source]) == 2
    assert f"given     {sort}" in capsys.readouterr().err


@pytest.mark.parametrize("out", ["tree/out", "link/out", "tree/deep/out"])
def test_a_pool_inside_its_source_is_no_source_of_itself(tree, capsys, out):
    first = made(capsys, out, "tree")
    half = Path(f"{out}.partial")
    half.mkdir()
    (half / "left.txt").write_text("left of an interrupted preparation")
    assert made(capsys, out, "tree") == first
    assert first["documents"] == 2


@pytest.mark.parametrize(("option", "what"), [("--group-key", "group"), ("--tag-key", "tag")])
def test_a_key_that_no_record_has_is_told(in_tmp, capsys, option, what):
    (in_tmp / "a.jsonl").write_text('{"text": "a", "lang": null}\n{"text": "b", "repo": 7}\n')
    assert main(["prepare", "p", "a.jsonl", option, "repoo"]) == 0
    assert f"warning: no document has a {what}: no record has the key 'repoo'" in capsys.readouterr().err
    assert main(["prepare", "q", "a.jsonl", option, "repo"]) == 0
    assert "warning" not in capsys.readouterr().err
