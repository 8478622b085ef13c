"""Rows since a step or a manifest, and rows of a stage: the rest stays checked for chain and sums."""

from __future__ import annotations

import pytest

import recipe
from recipe.errors import RecipeError
from tests.audit.runs import forge, read_rows


def ends(rows, numbers):
    """Steps at which rows end, and their stages."""
    found = [rows[number] for number in numbers]
    return [
        row["steps"][1] if row["kind"] == "chunk" else row.get("step", row.get("to_step")) for row in found
    ]


def test_since_a_step_computes_the_rows_behind_it(recorded):
    rows = read_rows(recorded)
    audit = recipe.audit_run(recorded, since=30, seed=1)
    checked = audit.checked
    assert audit.ok and 0 < len(checked.replayed) < len(rows) - 2
    assert max(ends(rows, checked.replayed)) == rows[-1]["step"]
    assert checked.outside + checked.replayable == recipe.audit_run(recorded).checked.replayable
    assert "since step 30" in checked.lines()[0] and f"{checked.outside} others" in checked.lines()[0]


def test_since_a_manifest_computes_the_rows_written_after_it(recorded):
    rows = read_rows(recorded)
    number = next(row["row"] for row in rows if row.get("manifest") == 2 and row["kind"] == "checkpoint")
    for name in ("@2", "manifests/000002.yaml", "000002.yaml"):
        replayed = recipe.audit_run(recorded, since=name).checked.replayed
        later = {row["row"] for row in rows[number + 1 :] if row["kind"] != "rewind"}
        assert later <= set(replayed) and 1 not in replayed


def test_a_stage_computes_its_rows_alone(recorded):
    rows = read_rows(recorded)
    replayed = recipe.audit_run(recorded, stage="long").checked.replayed
    assert replayed and {rows[r]["stage"] for r in replayed if rows[r]["kind"] == "chunk"} == {"long"}
    assert recipe.audit_run(recorded, stage="long", since=0).checked.replayed == replayed


def test_chain_and_sums_stay_whole(recorded, changed):
    def change(rows):
        rows[2]["pools"]["web"]["spent"] += 1

    audit = changed(lambda run: forge(run, change), stage="long")
    assert any(finding.where.startswith("ledger.jsonl row 2") for finding in audit.findings)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"since": 10**9}, "a step in 0.."),
        ({"since": "x"}, "a step in 0.."),
        ({"since": "@99"}, "a manifest on record: 1.."),
        ({"stage": "lonk"}, "one of short, long"),
    ],
)
def test_a_step_manifest_or_stage_that_is_not_there_is_refused(recorded, options, expected):
    with pytest.raises(RecipeError) as error:
        recipe.audit_run(recorded, **options)
    assert expected in str(error.value)


def test_every_such_problem_is_told_at_once(recorded):
    with pytest.raises(RecipeError) as error:
        recipe.audit_run(recorded, since="@99", stage="lonk")
    assert len(error.value.problems) == 2 and "did you mean 'long'?" in str(error.value)


def test_the_verdict_of_a_part_is_no_verdict_of_the_whole(recorded):
    audit = recipe.audit_run(recorded, stage="long")
    assert any("not computed again" in line for line in audit.cannot_prove)
