"""``recipe branch``: says what will be, asks, makes all or none; ``recipe run`` goes on with each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import recipe
from recipe.cli.main import main


@pytest.fixture
def trunk(small: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """``small.yaml`` run to its end, a checkpoint at every chunk's close: steps 3, 6, 8, 12 and 16."""
    assert main(["run", "small.yaml", "--name", "trunk"]) == 0
    capsys.readouterr()
    return Path("runs/trunk")


def answer(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> tuple[Any, str]:
    assert main(["branch", *words]) == code
    said = capsys.readouterr()
    return (json.loads(said.out) if "--json" in words else said.out), said.err


def test_a_branch_is_shown_and_made(trunk: Path, capsys: pytest.CaptureFixture[str]):
    words = [
        f"{trunk}@3",
        "more-b",
        "stages.long.quotas.b=60%",
        "--from",
        "a",
        "--yes",
        "--reason",
        "why not",
    ]
    out, err = answer(capsys, *words)
    assert "runs/more-b: from trunk, manifest 3 (step 8)" in out
    assert "stages.long.quotas.a: 50% → 40%" in out
    assert "left from step 8 on" in out
    assert "UNCONTROLLED" not in out + err
    assert "created; go on with it by `recipe run runs/more-b`" in err
    assert main(["run", "runs/more-b"]) == 0
    said = capsys.readouterr()
    assert "going on at step 8 of 16" in said.err
    assert "no file" not in said.err
    assert recipe.run_status("runs/more-b").complete


def test_without_a_yes_nothing_is_written(trunk: Path, capsys: pytest.CaptureFixture[str]):
    _, err = answer(capsys, str(trunk), "A", code=1)
    assert "nothing was written; --yes agrees without asking" in err
    out, err = answer(capsys, f"{trunk}@1", "A", "--dry-run")
    assert "no change: a control" in out
    assert sorted(path.name for path in Path("runs").iterdir()) == ["trunk"]


def test_several_branches_and_seeds_at_once(trunk: Path, capsys: pytest.CaptureFixture[str]):
    folder = Path("mine/branch")
    folder.mkdir(parents=True)
    (folder / "A.yaml").write_text("{}")
    (folder / "B.yaml").write_text("from: a\nstages.long.quotas.b: 60%\n")
    words = [f"{trunk}@step:8", "-m", "branch=A,B", "seed=5,6", "--config-dir", "mine", "--yes", "--json"]
    told, _ = answer(capsys, *words)
    names = ["A-seed5", "A-seed6", "B-seed5", "B-seed6"]
    assert told["created"]
    assert [branch["name"] for branch in told["branches"]] == names
    assert [branch["controlled"] for branch in told["branches"]] == [True] * 4
    assert [bool(branch["notes"]) for branch in told["branches"]] == [False, True, False, True]
    for name in names:
        assert recipe.run_status(f"runs/{name}").step == 8


def test_of_several_branches_one_that_cannot_be_stops_all(trunk: Path, capsys: pytest.CaptureFixture[str]):
    _, err = answer(
        capsys, str(trunk), "x", "-m", "stages.long.quotas.b=60%,170%", "--from", "a", "--yes", code=2
    )
    assert "x-b170%: stages.long.quotas" in err
    assert not Path("runs/x-b60%").exists()


def test_an_uncontrolled_branch_is_said_loudly_everywhere(trunk: Path, capsys: pytest.CaptureFixture[str]):
    told, err = answer(capsys, f"{trunk}@3", "A", "stages.long.tokens=2048", "--yes", "--json")
    assert "A is UNCONTROLLED against its parent:" in err
    assert "steps left: 8 → 16" in err
    assert not told["branches"][0]["controlled"]
    assert main(["status", "runs/A"]) == 0
    out = capsys.readouterr().out
    assert "branch of trunk, manifest 3 (step 8)" in out
    assert "UNCONTROLLED" in out
    assert "steps left: 8 → 16" in out


def test_fresh_data_and_another_tail(trunk: Path, capsys: pytest.CaptureFixture[str]):
    spec = "{name: decay, tokens: 256, quotas: {a: 10%, b: 90%}}"
    words = [f"{trunk}@1", "A", "--data", "fresh", "--end-stage", spec, "--yes"]
    out, _ = answer(capsys, *words)
    assert "its data from the beginning" in out
    assert "documents that the parent read come again" in out
    with recipe.open_run("runs/A") as run:
        assert list(run.recipe.stages) == ["short", "decay"]
        assert run.step == 3
        run.checkpoint(run.num_steps)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["runs/trunk@99", "A"], "the nearest are"),
        (["runs/none", "A"], "no such folder"),
        (["runs/trunk"], "NAME"),
        (["runs/trunk", "A", "B"], "one name"),
        (["runs/trunk", "../A"], "a plain name"),
        (["runs/trunk", "trunk"], "started before"),
        (["runs/trunk", "A", "stages.long.quotas.b=170%"], "100%"),
        (["runs/trunk", "A", "pools.a.pth=x"], "path"),
        (["runs/trunk", "A", "--rename", "a"], "OLD=NEW"),
        (["runs/trunk", "A", "--fresh", "z"], "a pool of the branch"),
        (["runs/trunk", "A", "branch=nothing"], "or a YAML file"),
        (["runs/trunk", "A", "seed=1,2"], "add -m"),
        (["runs/trunk", "A", "-m", "seed=range(0,100000000)"], "at most 1,000 jobs"),
        (["runs/trunk", "A", "--reason", "two\nlines"], "--reason"),
    ],
)
def test_bad_words_are_one_message_and_2(
    trunk: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
):
    assert main(["branch", *words, "--yes"]) == 2
    said = capsys.readouterr()
    assert told in said.err
    assert sorted(path.name for path in Path("runs").iterdir()) == ["trunk"]


def test_a_run_given_by_its_folder_takes_no_changes(trunk: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["run", str(trunk)]) == 0
    capsys.readouterr()
    for words in (["seed=2"], ["--name", "x"], ["-m"]):
        assert main(["run", str(trunk), *words]) == 2
        assert "recipe branch" in capsys.readouterr().err
