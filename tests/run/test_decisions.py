"""Decisions on record, their evidence, and final sets that are sealed until there is one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import recipe
from recipe import RecipeError
from recipe.run import writes
from recipe.run.canonical import canonical, digest
from recipe.run.comparing.compare import compared, read_histories
from recipe.run.comparing.comparison import Comparison, Question
from recipe.run.comparing.decisions import Word, decide, open_final
from recipe.run.comparing.evidence import evidence_path, read_evidence
from recipe.run.comparing.history import read_history
from recipe.run.folder import RunFolder
from tests.run.compared import loss, started
from tests.run.conftest import Build
from tests.run.faulty import FaultyOs, full_from_then_on

WORD = Word(by="Li", reason="code loss")
SECRET = 1.98765


@pytest.fixture
def runs(build: Build, tmp_path: Path) -> list[Path]:
    """A and B; both have final sets."""
    paths = [
        started(build(max_epochs=9 - k), tmp_path / name, **loss(2.5 - k)) for k, name in enumerate("AB")
    ]
    for path in paths:
        recipe.attach_metrics(path, {"final/code": {"loss": SECRET}})
    return paths


def opened(runs: list[Path], **asked: Any) -> Comparison:
    return open_final(read_histories(runs), Question(**asked), WORD)


def num_opened(runs: list[Path]) -> list[int]:
    return [len(read_history(path).said("opened")) for path in runs]


def test_E4_a_decision_names_manifest_approval_and_the_hash_of_its_evidence(runs: list[Path]):
    made = recipe.compare_runs(runs)
    decision = decide(made, "B", WORD)
    (row,) = read_history(runs[1]).said("decision")
    assert {key: row.data[key] for key in ("as", "run", "manifest", "approved_by", "reason")} == {
        "as": "choice",
        "run": "B",
        "manifest": 3,
        "approved_by": "Li",
        "reason": "code loss",
    }
    assert row.data["manifest_hash"] == made.runs[1].manifest_hash
    folder = RunFolder(runs[1])
    data = evidence_path(folder, decision.evidence).read_bytes()
    assert digest(data) == decision.evidence == row.data["evidence"]
    assert data == canonical(made.to_plain())
    assert read_evidence(folder, decision.evidence)["runs"][0]["name"] == "A"
    assert str(SECRET).encode() not in data
    assert not read_history(runs[0]).said("decision")


def test_the_audit_has_nothing_against_such_rows_and_finds_evidence_that_changed(runs: list[Path]):
    decision = decide(recipe.compare_runs(runs), "B", WORD)
    opened(runs)
    with recipe.open_run(runs[1]) as run:
        run.forget(1, reason="old")
        run.checkpoint(14)
    for path in runs:
        assert recipe.audit_run(path).findings == ()
    path = evidence_path(RunFolder(runs[1]), decision.evidence)
    path.write_bytes(path.read_bytes().replace(b'"step":12', b'"step":13'))
    (finding,) = recipe.audit_run(runs[1]).findings
    assert (finding.check, finding.where) == ("evidence", f"evidence/{decision.evidence}.json")


def test_changed_evidence_is_found(runs: list[Path]):
    decision = decide(recipe.compare_runs(runs), "B", WORD)
    folder = RunFolder(runs[1])
    path = evidence_path(folder, decision.evidence)
    path.write_bytes(path.read_bytes().replace(b'"step":12', b'"step":13'))
    with pytest.raises(RecipeError, match="not the evidence"):
        read_evidence(folder, decision.evidence)
    with pytest.raises(RecipeError, match="not the evidence"):
        decide(recipe.compare_runs(runs), "B", WORD)


def test_final_sets_stay_sealed_until_a_decision(runs: list[Path]):
    with pytest.raises(RecipeError, match="no decision on record for one of A, B"):
        opened(runs)
    assert num_opened(runs) == [0, 0]
    decide(recipe.compare_runs(runs), "B", WORD)
    made = opened(runs, no_worse_than={"final/code.loss": 0})
    assert made.opened == ("final/code",)
    assert made.runs[0].metrics["final/code"] == {"loss": SECRET}
    assert num_opened(runs) == [1, 1]
    assert recipe.compare_runs(runs).sealed == {"final/code": ("A", "B")}


def test_every_opening_is_a_row_in_every_run_whose_numbers_were_shown(
    runs: list[Path], build: Build, tmp_path: Path
):
    runs.append(started(build(max_epochs=5), tmp_path / "C", **loss(3)))
    decide(recipe.compare_runs(runs), "B", WORD)
    for _ in range(2):
        opened(runs)
    assert num_opened(runs) == [2, 2, 0]
    row = read_history(runs[0]).said("opened")[0]
    assert {key: row.data[key] for key in ("sets", "manifest", "by", "reason")} == {
        "sets": ["final/code"],
        "manifest": 3,
        "by": "Li",
        "reason": "code loss",
    }


def test_a_decision_for_another_run_opens_nothing(runs: list[Path], build: Build, tmp_path: Path):
    other = started(build(max_epochs=5), tmp_path / "C", **loss(3))
    decide(recipe.compare_runs([runs[1], other]), "C", WORD)
    with pytest.raises(RecipeError, match="no decision"):
        opened(runs)


def test_a_decision_for_a_discarded_checkpoint_no_longer_counts(runs: list[Path]):
    decide(recipe.compare_runs(runs), "B", WORD)
    recipe.open_run(runs[1], step=4).checkpoint(12)
    with pytest.raises(RecipeError, match="no decision"):
        opened(runs)


def test_what_was_opened_stays_on_record_after_a_rewind(runs: list[Path]):
    decide(recipe.compare_runs(runs), "B", WORD)
    opened(runs)
    recipe.open_run(runs[1], step=4).checkpoint(5)
    assert num_opened(runs) == [1, 1]


def test_nothing_is_shown_when_the_opening_cannot_be_put_on_record(
    runs: list[Path], monkeypatch: pytest.MonkeyPatch
):
    decide(recipe.compare_runs(runs), "B", WORD)
    monkeypatch.setattr(writes, "os", FaultyOs(full_from_then_on, 0))
    with pytest.raises(RecipeError, match="No space left on device"):
        opened(runs)


def test_a_question_that_cannot_be_answered_opens_nothing(runs: list[Path]):
    decide(recipe.compare_runs(runs), "B", WORD)
    with pytest.raises(RecipeError, match="did you mean"):
        opened(runs, no_worse_than={"final/code.los": 0})
    assert num_opened(runs) == [0, 0]


def test_a_full_disk_leaves_no_decision_and_no_half_evidence(
    runs: list[Path], monkeypatch: pytest.MonkeyPatch
):
    made = recipe.compare_runs(runs)
    told = 0
    for at in range(40):
        monkeypatch.setattr(writes, "os", FaultyOs(full_from_then_on, at))
        try:
            decide(made, "B", WORD)
        except RecipeError as error:
            told += 1
            assert "No space left on device" in str(error)
        monkeypatch.setattr(writes, "os", FaultyOs(None))
        for path in (runs[1] / "evidence").glob("*"):
            assert digest(path.read_bytes()) == path.stem
        if rows := read_history(runs[1]).said("decision"):
            break
    assert (told, len(rows)) == (at, 1)
    assert told > 8


@pytest.mark.parametrize(
    "word", [Word(by="", reason="x"), Word(by="x", reason=" "), Word(by="x\n", reason="y")]
)
def test_who_and_why_must_be_said(runs: list[Path], word: Word):
    with pytest.raises(RecipeError, match="not put on record"):
        decide(recipe.compare_runs(runs), "B", word)
    with pytest.raises(RecipeError, match="not put on record"):
        open_final(read_histories(runs), Question(), word)


def test_a_run_is_chosen_by_path_or_name(runs: list[Path]):
    made = recipe.compare_runs(runs)
    assert decide(made, str(runs[0]), WORD).run == "A"
    with pytest.raises(RecipeError, match="give the path"):
        decide(made, "C", WORD)


def test_nothing_to_open_is_told(build: Build, tmp_path: Path):
    paths = [started(build(max_epochs=9 - k), tmp_path / name) for k, name in enumerate("AB")]
    with pytest.raises(RecipeError, match="no set final/NAME at step 12"):
        opened(paths)


def test_the_comparison_with_final_sets_is_only_made_on_purpose(runs: list[Path]):
    histories = read_histories(runs)
    assert str(SECRET) not in json.dumps(compared(histories, Question()).to_plain())
    assert str(SECRET) not in json.dumps(recipe.run_status(runs[0]).to_plain())
    assert str(SECRET) not in recipe.ledger_table(runs[0]).to_json()
