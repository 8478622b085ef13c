"""``recipe status`` at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import recipe
from recipe.cli.main import main
from recipe.config import recipe_from_plain


@pytest.fixture
def run_path(tmp_path: Path) -> Path:
    for name in "ab":
        recipe.write_pool(tmp_path / name, [[1, 2, 3, 4, 5]] * 40, vocab_size=10, eos=0)
    plain = {
        "seed": 1,
        "pools": {name: {"path": str(tmp_path / name)} for name in "ab"},
        "stages": {"s": {"steps": 6, "context": 8, "batch": {"sequences": 2}, "weights": {"a": 3, "b": 1}}},
    }
    with recipe.start_run(recipe_from_plain(plain, source="test"), tmp_path / "runs" / "trial") as run:
        run.checkpoint(4, uri="ckpt/4.pt", gpu_hours=1.5)
    return tmp_path / "runs" / "trial"


def test_status_prints_where_the_run_stands(run_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["status", str(run_path)]) == 0
    out = capsys.readouterr().out
    assert "trial: step 4 of 6 (66.7%), next in stage s" in out
    assert "ckpt/4.pt" in out


def test_documents_begun_and_documents_read_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """20 documents in four windows each, of all 80 windows a fifth: more are read than from their start."""
    recipe.write_pool(tmp_path / "a", [range(1, 33)] * 20, vocab_size=40, eos=0)
    stage = {"steps": 8, "context": 8, "batch": {"sequences": 2}, "weights": {"a": 1}}
    plain = {"seed": 1, "pools": {"a": {"path": str(tmp_path / "a")}}, "stages": {"s": stage}}
    with recipe.start_run(recipe_from_plain(plain, source="test"), tmp_path / "run") as run:
        run.checkpoint(8)
    reading = recipe.audit_run(tmp_path / "run").to_plain()["reading"]["a"]
    assert 0 < recipe.run_status(tmp_path / "run").pools["a"].documents < reading["distinct"]
    assert main(["status", str(tmp_path / "run")]) == 0
    assert "begun: documents whose first token was served" in capsys.readouterr().out
    assert main(["audit", str(tmp_path / "run")]) == 0
    assert "read: any token of the document was served" in capsys.readouterr().out


def test_what_was_measured_and_on_how_many_labels_is_shown_but_for_sealed_sets(
    run_path: Path, capsys: pytest.CaptureFixture[str]
):
    told = {"code": {"loss": 2.5, "labels": 64_000}, "final/x": {"loss": 1.5, "labels": 7}}
    with recipe.open_run(run_path) as run:
        run.checkpoint(6, metrics=told)
    assert recipe.run_status(run_path).measured == {"code": told["code"]}
    assert main(["status", str(run_path)]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "loss" in line]
    assert line.split() == ["code", "64,000", "loss", "2.5"]


def test_status_as_json(run_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["status", str(run_path), "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["step"], status["num_steps"], status["stage"]) == (4, 6, "s")
    assert sum(pool["spent"] for pool in status["pools"].values()) == sum(
        p["owed"] for p in status["pools"].values()
    )


def test_status_of_no_run_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["status", str(tmp_path)]) == 2
    assert "no run" in capsys.readouterr().err


def test_status_shows_the_turns_the_version_and_the_shares_in_force(
    run_path: Path, capsys: pytest.CaptureFixture[str]
):
    why = recipe.Approval(reason="more of b", approved_by="Ada")
    recipe.amend_run(run_path, ["stages.s.weights.b=3"], approval=why)
    recipe.skip_run(run_path, (4, 5), reason="a spike")
    recipe.withdraw_run(run_path, ["3", "4"], pool="b", ticket=recipe.Ticket(reason="asked", ticket="T-1"))
    assert main(["status", str(run_path)]) == 0
    out = capsys.readouterr().out
    assert "recipe version 2, in force since step 4" in out
    for words in ("turns of the run", "more of b", "Ada", "steps 4..5 dropped", "2 documents, T-1", "begun"):
        assert words in out
    assert main(["status", str(run_path), "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["version"], status["version_since"]) == (2, 4)
    assert status["shares"] == {"a": "1/2", "b": "1/2"}
    told = [(turn["kind"], turn["step"], turn["manifest"]) for turn in status["turns"]]
    assert told == [("withdraw", 4, 4), ("skip", 4, 3), ("amend", 4, 2), ("created", 0, None)]


def test_status_shows_the_last_turns_and_counts_the_rest(run_path: Path, capsys: pytest.CaptureFixture[str]):
    for weight in range(2, 12):
        recipe.amend_run(
            run_path, [f"stages.s.weights.b={weight}"], approval=recipe.Approval(reason=f"try {weight}")
        )
    assert main(["status", str(run_path)]) == 0
    out = capsys.readouterr().out
    assert "try 11" in out
    assert "try 3" not in out
    assert "and 3 before" in out
