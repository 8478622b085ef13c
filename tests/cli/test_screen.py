"""``recipe screen``: draws, ranks, confirms; asks first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recipe.cli.main import main

DRAW = ["--stage", "long", "--dirichlet", "3", "--seed", "7", "--out", "runs/screen"]


@pytest.fixture
def target(small: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["run", "small.yaml", "--name", "big"]) == 0
    capsys.readouterr()
    return "runs/big@3"


def test_E3_from_draws_to_branches_of_the_target(target: str, capsys: pytest.CaptureFixture[str]):
    assert main(["screen", "small.yaml", *DRAW, "--yes"]) == 0
    said = capsys.readouterr()
    assert "3 mixtures of stage long" in said.out
    assert "recipe run runs/screen/m000" in said.err
    assert 'for run in runs/screen/*/; do recipe run "$run"; done' in said.err
    for number, loss in enumerate([2.5, 2.0, 3.0]):
        assert main(["run", f"runs/screen/m00{number}/"]) == 0
        assert main(["attach", f"runs/screen/m00{number}", "--set", "val", f"loss={loss}"]) == 0
    capsys.readouterr()
    assert main(["screen", "rank", "runs/screen", "--metric", "val.loss"]) == 0
    said = capsys.readouterr()
    lines = [line.split()[:2] for line in said.out.splitlines() if line.startswith(" m0")]
    assert lines == [["m001", "1"], ["m000", "2"], ["m002", "3"]]
    assert "a proxy is a hint" in said.err
    words = ["confirm", "runs/screen", "--metric", "val.loss", "--top", "2", "--target", target]
    assert main(["screen", *words]) == 1
    assert not Path("runs/confirm-m001").exists()
    capsys.readouterr()
    assert main(["screen", *words, "--yes", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [branch["name"] for branch in told["branches"]] == ["confirm-m001", "confirm-m000"]
    assert all(branch["controlled"] for branch in told["branches"])
    assert main(["run", "runs/confirm-m001"]) == 0


def test_a_screen_of_branches(target: str, capsys: pytest.CaptureFixture[str]):
    words = ["--branch", target, "--stage", "long", "--grid", "25%", "--out", "runs/s"]
    assert main(["screen", *words, "--dry-run"]) == 0
    assert not Path("runs/s").exists()
    capsys.readouterr()
    assert main(["screen", *words, "--yes", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [mixture["name"] for mixture in told["mixtures"]] == ["m000", "m001", "m002", "m003", "m004"]
    assert told["parent"]["step"] == 8
    assert main(["status", "runs/s/m004"]) == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["small.yaml", "--stage", "long", "--out", "x"], "exactly one of the three"),
        (["small.yaml", "--stage", "long", "--grid", "5%", "--dirichlet", "3", "--out", "x"], "exactly one"),
        (["small.yaml", "--stage", "long", "--grid", "0.1", "--out", "x"], "--grid"),
        (["small.yaml", "--stage", "long", "--grid", "0%", "--out", "x"], "--grid"),
        (
            ["small.yaml", "--stage", "long", "--grid", "7%", "--out", "x"],
            "the share that a, b hold together",
        ),
        (["small.yaml", "--dirichlet", "3", "--out", "x"], "--stage"),
        (["small.yaml", "--dirichlet", "3", "--stage", "long"], "--out"),
        (["small.yaml", "--dirichlet", "0", "--stage", "long", "--out", "x"], "mixtures"),
        (
            ["small.yaml", "--dirichlet", "3", "--stage", "long", "--concentration", "-1", "--out", "x"],
            "--conc",
        ),
        *(
            (
                ["small.yaml", "--dirichlet", "3", "--stage", "long", "--concentration", text, "--out", "x"],
                "1000000000",
            )
            for text in ("1e-300", "1e300")
        ),
        (["small.yaml", "--weights", "none.csv", "--stage", "long", "--out", "x"], "CSV"),
        (["small.yaml", "--branch", "runs/x", "--grid", "5%", "--out", "x"], "--branch"),
        (["rank"], "DIR"),
        (["rank", "x"], "--metric"),
        (["rank", "x", "--metric", "val.loss"], "no screen"),
        (["confirm", "x", "--metric", "val.loss"], "--target"),
        (["confirm", "x", "--metric", "val.loss", "--target", "y", "--top", "0"], "--top"),
    ],
)
def test_bad_words_are_one_message_and_2(
    small: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
):
    assert main(["screen", *words, "--yes"]) == 2
    assert told in capsys.readouterr().err
    assert not Path("x").exists()
