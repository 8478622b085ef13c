"""``recipe export``: the command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from recipe.cli.main import main

WORDS = ["export", "small.yaml", "--format", "npy", "--out", "out"]


def test_a_recipe_is_exported_without_a_run(small, capsys):
    assert main([*WORDS, "--steps", "0..3", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["steps"], answer["sequences"], answer["kept"]) == ([0, 3], 12, 0)
    assert np.load("out/steps-000000000-000000003.input_ids.npy").shape == (12, 32)


def test_a_run_and_its_recipe_export_the_same_tokens(small, capsys):
    assert main(["run", "small.yaml"]) == 0
    assert main([*WORDS, "--steps", "0..3"]) == 0
    assert main(["export", "runs/small", "--format", "npy", "--out", "other", "--steps", "0..3"]) == 0
    name = "steps-000000000-000000003.input_ids.npy"
    assert np.array_equal(np.load(f"out/{name}"), np.load(f"other/{name}"))
    assert "12 sequences" in capsys.readouterr().out


def test_a_folder_that_is_not_empty_is_asked_about(small, capsys):
    Path("out").mkdir()
    Path("out/notes.txt").write_text("mine")
    assert main(WORDS) == 1
    assert "out is not empty: notes.txt" in capsys.readouterr().err
    assert [path.name for path in Path("out").iterdir()] == ["notes.txt"]
    assert main([*WORDS, "--yes"]) == 0
    assert Path("out/notes.txt").read_text() == "mine"


def test_faults_are_one_message(small, capsys):
    assert main([*WORDS, "--dp-size", "3"]) == 2
    assert "3 ranks" in capsys.readouterr().err
    assert main([*WORDS, "--dp-size", "2", "--dp-rank", "2"]) == 2
    assert "0..1 (--dp-size 2)" in capsys.readouterr().err
    assert main(["export", "small.yaml", "--format", "megatron", "--out", "out"]) == 2
    assert "add --lossy" in capsys.readouterr().err


def test_what_is_lost_is_said(small, capsys):
    assert main(["export", "small.yaml", "--format", "megatron", "--out", "out", "--lossy"]) == 0
    assert "positions without label" in capsys.readouterr().out
