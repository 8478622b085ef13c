"""E4: the winner is adopted as an operation, with the evidence's hash."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import recipe
from recipe import RecipeError
from recipe.config import recipe_to_plain
from recipe.run import lease
from recipe.run.branching.branch import branch_run
from recipe.run.branching.wishes import Wish
from recipe.run.canonical import hash_of
from recipe.run.changing.amend import amend_run
from recipe.run.changing.approval import Approval
from recipe.run.comparing.adopt import adopt_run
from recipe.run.comparing.decisions import Word
from recipe.run.comparing.evidence import read_evidence
from recipe.run.comparing.history import decisions_about, read_history
from recipe.run.folder import RunFolder
from recipe.run.ledger import read_rows
from recipe.run.sayings import went_on_in
from tests.run.compared import loss, started
from tests.run.conftest import Build, served, write

ROOT = Path(__file__).parents[2]
WORD = Word(by="Li", reason="code loss")


@pytest.fixture
def trunk(build: Build, tmp_path: Path) -> Path:
    path = started(build(), tmp_path / "trunk", (4, 8))
    with recipe.open_run(path) as run:
        run.checkpoint(12, uri="ckpt/12", gpu_hours=3, metrics=loss(2.5))
    return path


@pytest.fixture
def branch(trunk: Path) -> Path:
    """Five points from a to b in stage two, from step 8 on; checkpoints at 12 and 16."""
    return branched(trunk, Wish(name="B", overrides=("stages.two.quotas.b=35%",), from_pool="a"))


def branched(trunk: Path, wish: Wish) -> Path:
    (path,) = branch_run(f"{trunk}@2", wish)
    with recipe.open_run(path) as run:
        run.checkpoint(12, uri="B/12", gpu_hours=3, metrics=loss(2.25))
        run.checkpoint(16, uri="B/16", gpu_hours=4)
    return path


def decisions(path: Path) -> list[dict[str, Any]]:
    keys = ("as", "run", "manifest", "evidence", "approved_by", "reason")
    return [{key: row.data[key] for key in keys} for row in read_history(path).said("decision")]


def test_E4_go_on_from_the_branch_with_the_hash_of_the_evidence(trunk: Path, branch: Path):
    made = adopt_run(branch, word=WORD)
    assert made is not None
    assert (made.run, made.manifest, made.uri) == (str(branch), 2, "B/16")
    said = {"as": "trunk", "run": "B", "manifest": 2, "evidence": made.evidence, "approved_by": "Li"}
    for path in (trunk, branch):
        assert decisions(path) == [{**said, "reason": "code loss"}]
        evidence = read_evidence(RunFolder(path), made.evidence)
        assert (evidence["step"], [run["name"] for run in evidence["runs"]]) == (12, ["trunk", "B"])
        assert hash_of(evidence) == made.evidence
    with recipe.open_run(branch) as run:
        assert run.step == 16
        run.checkpoint(20)


def test_the_trunk_says_where_it_went_on_and_is_not_locked(trunk: Path, branch: Path):
    assert went_on_in(RunFolder(trunk)) is None
    adopt_run(branch, word=WORD)
    told = recipe.run_status(trunk).went_on_in
    assert told is not None
    assert (told["run"], told["manifest"]) == ("B", 2)
    assert recipe.run_status(branch).went_on_in is None
    with recipe.open_run(trunk) as run:
        run.checkpoint(14)


def test_an_unfinished_row_tells_of_no_trunk(trunk: Path, branch: Path):
    ledger = trunk / "ledger.jsonl"
    adopt_run(branch, word=WORD)
    ledger.write_bytes(ledger.read_bytes()[:-40])
    assert went_on_in(RunFolder(trunk)) is None


def test_an_older_checkpoint_of_the_branch_may_be_adopted(branch: Path):
    made = adopt_run(f"{branch}@1", word=WORD)
    assert made is not None
    assert (made.manifest, made.uri) == (1, "B/12")


def test_named_runs_are_the_evidence(trunk: Path, branch: Path):
    other = branched(trunk, Wish(name="C"))
    made = adopt_run(branch, word=WORD, evidence=[other])
    assert made is not None
    evidence = read_evidence(RunFolder(branch), made.evidence)
    assert (evidence["step"], [run["name"] for run in evidence["runs"]]) == (16, ["C", "B"])


def test_without_a_yes_nothing_is_written(trunk: Path, branch: Path):
    before = contents(trunk.parent)
    for how in ("trunk", "amend"):
        assert adopt_run(branch, how, word=WORD, confirm=lambda proposal: False) is None  # type: ignore[arg-type]
    assert contents(trunk.parent) == before


def contents(folder: Path) -> dict[str, bytes]:
    """Files of runs, without the leases that were let go of."""
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.parent.name != "lease"}


def test_a_parent_that_cannot_be_told_is_said_and_the_decision_stands(
    trunk: Path, branch: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(lease, "WAIT_SECONDS", 0.0)
    with lease.held(RunFolder(trunk).lease):
        made = adopt_run(branch, word=WORD)
    assert made is not None
    assert "is being written" in str(made.untold)
    assert made.told == (str(branch),)
    assert decisions(trunk) == []
    assert len(decisions(branch)) == 1


def test_a_parent_that_is_complete_or_gone_is_not_told(trunk: Path, branch: Path, tmp_path: Path):
    with recipe.open_run(trunk) as run:
        run.checkpoint(run.num_steps)
    made = adopt_run(branch, word=WORD)
    assert made is not None
    assert (made.told, made.untold) == ((str(branch),), None)
    shutil.move(trunk, tmp_path / "gone" / "trunk")
    assert adopt_run(branch, word=WORD) is not None


def test_E4_the_trunk_is_amended_with_what_the_branch_changed(trunk: Path, branch: Path):
    made = adopt_run(branch, "amend", word=WORD)
    assert made is not None
    assert (made.run, made.manifest, made.uri) == (str(trunk), 4, "ckpt/12")
    row = [row.data for row in read_rows(trunk / "ledger.jsonl") if row.kind == "amend"][-1]
    assert {key: row[key] for key in ("by", "evidence", "approved_by", "reason", "step")} == {
        "by": "adoption",
        "evidence": made.evidence,
        "approved_by": "Li",
        "reason": "code loss",
        "step": 12,
    }
    assert read_evidence(RunFolder(trunk), made.evidence)["step"] == 12
    for path in (trunk, branch):
        assert decisions(path)[-1]["as"] == "amend"
    with recipe.open_run(trunk) as run, recipe.open_run(branch) as other:
        assert run.step == 12
        assert run.recipe.shares("two") == other.recipe.shares("two")
        assert run.recipe.shares("one") == other.recipe.shares("one")


def test_a_trunk_amended_by_adoption_goes_on_as_the_branch_does(trunk: Path, branch: Path):
    """The trunk stands at the branch's own origin: with its changes it is the branch."""
    with recipe.open_run(trunk, step=8) as run:
        run.checkpoint(8)
    adopt_run(branch, "amend", word=WORD)
    with recipe.open_run(trunk) as run, recipe.open_run(f"{branch}", step=12) as other:
        assert run.step == 8
        assert served(run.stream(), 12) == served(other.stream(), 12)


def test_what_the_trunk_changed_meanwhile_stays(trunk: Path, branch: Path):
    amend_run(trunk, ["max_epochs=7"], approval=Approval(reason="more"))
    assert adopt_run(branch, "amend", word=WORD) is not None
    with recipe.open_run(trunk) as run:
        plain = recipe_to_plain(run.recipe)
        assert plain["max_epochs"] == 7
        assert run.recipe.shares("two")["b"] * 100 == 35


def test_what_both_changed_is_refused(trunk: Path, branch: Path):
    amend_run(trunk, ["stages.two.quotas.b=10%"], from_pool="a", approval=Approval(reason="less"))
    before = contents(trunk.parent)
    with pytest.raises(RecipeError) as told:
        adopt_run(branch, "amend", word=WORD)
    assert [problem.where for problem in told.value.problems] == ["stages.two.shares"]
    assert contents(trunk.parent) == before


def test_a_seed_is_not_taken_over_and_that_is_said(trunk: Path):
    path = branched(trunk, Wish(name="B", overrides=("stages.two.quotas.b=35%", "seed=7"), from_pool="a"))
    made = adopt_run(path, "amend", word=WORD)
    assert made is not None
    assert made.left_out == ("seed: 1 → 7",)
    assert recipe.open_run(trunk).recipe.seed == 1


def test_a_pool_that_the_branch_added_comes_with_it(trunk: Path, tmp_path: Path):
    write(tmp_path / "extra", seed=9, documents=40)
    added = ("+pools.d={path: " + str(tmp_path / "extra") + "}", "stages.two.quotas.d=5%")
    path = branched(trunk, Wish(name="B", overrides=added, from_pool="a"))
    assert adopt_run(path, "amend", word=WORD) is not None
    with recipe.open_run(trunk) as run:
        assert run.recipe.shares("two")["d"] * 100 == 5
        assert run.recipe.shares("one")["d"] == 0
        run.checkpoint(run.num_steps)


def test_a_renamed_pool_or_no_trunk_at_all_is_refused_with_the_way_out(
    trunk: Path, branch: Path, tmp_path: Path
):
    other = branched(trunk, Wish(name="C", renamed=(("a", "alpha"),)))
    with pytest.raises(RecipeError, match="--as trunk"):
        adopt_run(other, "amend", word=WORD)
    with pytest.raises(RecipeError, match="a run that is no branch"):
        adopt_run(trunk, "amend", word=WORD)
    shutil.move(trunk, tmp_path / "gone" / "trunk")
    with pytest.raises(RecipeError, match="no run trunk at"):
        adopt_run(branch, "amend", word=WORD)


def test_a_complete_trunk_is_not_amended(trunk: Path, branch: Path):
    with recipe.open_run(trunk) as run:
        run.checkpoint(run.num_steps)
    with pytest.raises(RecipeError, match="a run that is complete"):
        adopt_run(branch, "amend", word=WORD)


def test_an_adoption_unseals_the_final_sets_of_its_runs(trunk: Path, branch: Path):
    recipe.attach_metrics(branch, {"final/code": {"loss": 1.5}}, step=12)
    runs = [read_history(path) for path in (trunk, branch)]
    assert decisions_about(runs) == []
    made = adopt_run(branch, word=WORD)
    assert made is not None
    assert decisions_about([read_history(path) for path in (trunk, branch)])
    evidence = read_evidence(RunFolder(branch), made.evidence)
    assert evidence["sealed"] == {"final/code": ["B"]}
    assert "1.5" not in json.dumps(evidence["runs"][1]["metrics"])


@pytest.mark.slow
@pytest.mark.parametrize("how", ["trunk", "amend"])
def test_invariant_12_killed_at_every_write_an_adoption_can_be_done_again(
    how: str, trunk: Path, branch: Path, tmp_path: Path
):
    """In a process of its own: it forks, and this one has threads."""
    runs = tmp_path / "both"
    for path in (trunk, branch):
        shutil.move(path, runs / path.name)
    command = [sys.executable, "-m", "tests.run.killed_sayings", how, str(runs), str(tmp_path / "cuts")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20


def test_a_word_is_needed(branch: Path):
    with pytest.raises(RecipeError, match="--approved-by"):
        adopt_run(branch, word=Word(by=" ", reason="x"))
