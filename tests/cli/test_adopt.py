"""``recipe adopt`` at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import recipe
from recipe.cli.main import main
from recipe.config import load_recipe

SAID = ["--approved-by", "Li", "--reason", "code loss"]


@pytest.fixture
def runs(small: Path) -> Path:
    """runs/trunk, and runs/B that branched from its step 4."""
    with recipe.start_run(load_recipe("small.yaml"), "runs/trunk") as run:
        run.checkpoint(4, uri="trunk/4")
        run.checkpoint(6, uri="trunk/6")
    assert main(["branch", "runs/trunk@1", "B", "stages.long.quotas.a=60%", "--from", "b", "--yes"]) == 0
    with recipe.open_run("runs/B") as run:
        run.checkpoint(6, uri="B/6")
    return Path("runs")


def test_as_the_trunk(runs: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["adopt", "runs/B", *SAID, "--yes"]) == 0
    out = capsys.readouterr().out
    assert "tokens read, cumulative" in out
    assert "go on from runs/B: manifest 1, step 6, weights B/6, in place of runs/trunk\n" in out
    assert "on record in runs/B and runs/trunk; evidence" in out
    assert "runs/B: go on from manifest 1, weights B/6" in out
    assert main(["status", "runs/trunk"]) == 0
    assert "the trunk went on in B (manifest 1), approved by Li at " in capsys.readouterr().out
    assert main(["status", "runs/trunk", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["went_on_in"]["run"] == "B"
    assert main(["run", "runs/trunk", "--yes"]) == 0
    assert "warning: the trunk went on in B" in capsys.readouterr().err


def test_as_an_amendment(runs: Path, capsys):
    assert main(["adopt", "runs/B", "--as", "amend", *SAID, "--yes"]) == 0
    out = capsys.readouterr().out
    assert "recipe version 2 from step 6 on" in out
    assert "runs/trunk: go on from manifest 3, weights trunk/6" in out
    with recipe.open_run("runs/trunk") as run:
        assert run.recipe.shares("long")["a"] * 100 == 60


def test_a_run_that_is_no_branch_is_not_adopted(runs: Path, capsys):
    for how in ("trunk", "amend"):
        assert main(["adopt", "runs/trunk", "--as", how, *SAID, "--yes"]) == 2
        assert "a run that is no branch" in capsys.readouterr().err


def test_json(runs: Path, capsys):
    assert main(["adopt", "runs/B", *SAID, "--yes", "--evidence", "runs/trunk", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert (plain["as"], plain["run"], plain["manifest"], plain["untold"]) == ("trunk", "runs/B", 1, None)
    assert (runs / "B" / "evidence" / f"{plain['evidence']}.json").is_file()


def test_without_a_yes_nothing_is_written(runs: Path, capsys):
    before = {path: path.read_bytes() for path in runs.rglob("*") if path.is_file()}
    assert main(["adopt", "runs/B", *SAID]) == 1
    assert "nothing was written" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in runs.rglob("*") if path.is_file()} == before


def test_who_and_why_are_asked_for(runs: Path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["adopt", "runs/B"])
    assert stop.value.code == 2
    assert main(["adopt", "runs/C", *SAID]) == 2
    assert "no run" in capsys.readouterr().err
