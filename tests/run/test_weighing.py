"""What the loss counts, on record: rows say it, amendments change it, the audit works it out again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recipe
from recipe.config import Recipe
from recipe.errors import RecipeError
from recipe.run.branching.branch import branch_run
from recipe.run.branching.wishes import Wish
from recipe.run.changing.amend import amend_run
from recipe.run.changing.approval import Approval
from recipe.run.folder import RunFolder
from recipe.run.handover.quotas import quota_table
from recipe.run.handover.trainer import trainer_settings
from recipe.run.ledger import read_rows
from recipe.run.manifest import latest_path, read_manifest
from recipe.run.run import Run
from recipe.run.shapes import fault_of
from recipe.run.state import stream_from
from tests.audit.runs import forge
from tests.run.conftest import stage

Build = Callable[..., Recipe]
WHY = Approval(reason="evaluation", approved_by="Ada")
ONE = stage(tokens=700, context=16, chunk=150, quotas={"a": "60%", "rest": "40%"})
TWO = stage(tokens=900, context=32, chunk=200, quotas={"a": "50%", "b": "30%", "c": "20%"})
OBJECTIVE = {"a": "75%", "b": "15%", "c": "10%"}


@pytest.fixture
def told(build: Build) -> Recipe:
    """The second of two stages counts a half more of pool a than it samples, and half of b and c."""
    return build(stages={"one": ONE, "two": TWO | {"objective": OBJECTIVE}})


@pytest.fixture
def path(tmp_path: Path, told: Recipe) -> Path:
    """A run that stands in its second stage."""
    with recipe.start_run(told, tmp_path / "run") as run:
        run.checkpoint(17, uri="weights-17")
    return tmp_path / "run"


def finish(path: Path) -> None:
    with recipe.open_run(path) as run:
        run.checkpoint(run.num_steps)


def chunks(path: Path) -> list[dict[str, Any]]:
    return [dict(row.data) for row in read_rows(path / "ledger.jsonl") if row.kind == "chunk"]


def weights(run: Run, step: int) -> list[str]:
    return [str(weight) for weight in (run.stream().loss_weights(step) or {}).values()]


def test_rows_say_what_labels_counted_from_which_step_on(path: Path):
    finish(path)
    said = {row["steps"][0]: row.get("loss_weights") for row in chunks(path)}
    first = min(step for step, weights in said.items() if weights)
    assert first == 15 and all(said[step] is None for step in said if step < first)
    assert said[first] == [{"step": 15, "pools": {"a": "3/2", "b": "1/2", "c": "1/2"}}]
    assert recipe.audit_run(path, full=True).findings == ()


def test_a_run_without_an_objective_says_nothing_of_it(tmp_path: Path, build: Build):
    with recipe.start_run(build(), tmp_path / "run") as run:
        run.checkpoint(run.num_steps)
    everything = b"".join(file.read_bytes() for file in (tmp_path / "run").rglob("*") if file.is_file())
    assert b"loss_weight" not in everything and b"objective" not in everything


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize(
    "change",
    [
        lambda said: said[0]["pools"].update(b="2/3"),
        lambda said: said[0].update(step=16),
        lambda said: said.clear(),
        lambda said: said.append({"step": 18, "pools": {"a": "1", "b": "1", "c": "1"}}),
    ],
)
def test_forged_weights_are_found_though_every_hash_fits(path: Path, full: bool, change: Callable[..., None]):
    finish(path)

    def forged(rows: list[dict[str, Any]]) -> None:
        change(next(row for row in rows if "loss_weights" in row)["loss_weights"])

    forge(path, forged)
    findings = recipe.audit_run(path, full=full).findings
    assert findings and any("loss_weights" in finding.where for finding in findings), findings


def test_weights_that_are_left_out_of_a_row_are_found(path: Path):
    finish(path)
    forge(path, lambda rows: [row.pop("loss_weights", None) for row in rows] and None)
    assert any("loss_weights" in finding.where for finding in recipe.audit_run(path).findings)


def test_a_row_whose_weights_are_none_is_refused_where_it_is_read(path: Path):
    finish(path)
    row = next(row for row in chunks(path) if "loss_weights" in row)
    assert fault_of(row) is None
    assert fault_of(row | {"loss_weights": [{"step": 1, "pools": {"a": 0.5}}]}) == "loss_weights"


def arrays(run: Run, start: int, stop: int | None = None) -> list[dict[str, Any]]:
    return [
        {name: array.tolist() for name, array in batch.items() if name != "loss_weight"}
        for _, batch in run.stream().batches(start, stop=stop, read_ahead=0)
    ]


def test_an_amended_objective_holds_from_its_step_on_and_changes_no_batch(path: Path):
    with recipe.open_run(path) as run:
        before = arrays(run, 0)
    done = amend_run(path, ["stages.two.objective.b=5%"], from_pool="a", approval=WHY)
    assert done.changes == ("stages.two.objective.a: 75% → 85%", "stages.two.objective.b: 15% → 5%")
    with recipe.open_run(path) as run:
        assert arrays(run, 0) == before
        assert [weights(run, step) for step in (14, 16, 17, 20)] == [
            [],
            ["3/2", "1/2", "1/2"],
            ["17/10", "1/6", "1/2"],
            ["17/10", "1/6", "1/2"],
        ]
        both = [batch["loss_weight"] for _, batch in run.stream().batches(16, stop=18)]
        pools = [batch["pool"] for _, batch in run.stream().batches(16, stop=18)]
        assert np.array_equal(both[0], np.array([1.5, 0.5, 0.5], np.float32)[pools[0]])
        assert np.array_equal(both[1], np.array([17 / 10, 1 / 6, 0.5], np.float32)[pools[1]])
        run.checkpoint(run.num_steps)
    assert recipe.audit_run(path, full=True).findings == ()


def test_amended_quotas_weigh_anew(path: Path):
    amend_run(path, ["stages.two.quotas.b=10%"], from_pool="a", approval=WHY)
    with recipe.open_run(path) as run:
        assert [weights(run, step) for step in (16, 17)] == [["3/2", "1/2", "1/2"], ["15/14", "3/2", "1/2"]]
        state = run.state(17)
    assert [str(each) for each in (stream_from(state).loss_weights(17) or {}).values()] == [
        "15/14",
        "3/2",
        "1/2",
    ]
    finish(path)
    assert recipe.audit_run(path, full=True).findings == ()


def test_an_objective_is_given_to_a_run_that_had_none_and_taken_away(tmp_path: Path, build: Build):
    path = tmp_path / "run"
    with recipe.start_run(build(stages={"one": ONE, "two": TWO}), path) as run:
        run.checkpoint(17)
    amend_run(
        path, [f"stages.two.objective={{{','.join(f'{k}:{v}' for k, v in OBJECTIVE.items())}}}"], approval=WHY
    )
    with recipe.open_run(path) as run:
        run.checkpoint(20)
    amend_run(path, ["~stages.two.objective"], approval=WHY)
    with recipe.open_run(path) as run:
        assert [weights(run, step) for step in (16, 17, 19, 20)] == [
            [],
            ["3/2", "1/2", "1/2"],
            ["3/2", "1/2", "1/2"],
            [],
        ]
        run.checkpoint(run.num_steps)
    assert recipe.audit_run(path, full=True).findings == ()


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("stages.one.objective={a:100%,b:0%,c:0%}", "a stage that is not finished"),
        ("stages.two.quotas.c=0%", "c in the loss, and not sampled"),
    ],
)
def test_what_an_amendment_cannot_do_leaves_the_run_as_it_was(path: Path, override: str, words: str):
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    with pytest.raises(RecipeError, match=words):
        amend_run(path, [override], from_pool="a" if "quotas" in override else None, approval=WHY)
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before


@pytest.mark.parametrize(
    ("override", "from_pool", "after"),
    [
        ("stages.two.objective.b=5%", "a", ["17/10", "1/6", "1/2"]),
        ("stages.two.objective.rest=5%", "a", ["19/10", "1/10", "1/10"]),
        ("~stages.two.objective", None, []),
    ],
)
def test_a_branch_that_differs_in_its_objective_alone_is_controlled(
    path: Path, override: str, from_pool: str | None, after: list[str]
):
    (made,) = branch_run(path, Wish(name="less-b", overrides=(override,), from_pool=from_pool))
    with recipe.open_run(path) as trunk, recipe.open_run(made) as branch:
        assert arrays(branch, 17) == arrays(trunk, 17), "the same batches"
        assert weights(branch, 17) == after
        branch.checkpoint(branch.num_steps)
    parent = next(dict(row.data) for row in read_rows(made / "ledger.jsonl"))["parent"]
    assert parent["controlled"] is True, parent
    assert recipe.audit_run(made, full=True).findings == ()


def test_what_is_handed_over_says_the_weights_of_every_leg(path: Path):
    amend_run(path, ["stages.two.objective.b=5%"], from_pool="a", approval=WHY)
    finish(path)
    folder = RunFolder(path)
    with recipe.open_run(path) as run:
        told = quota_table(folder, run.recipe, read_manifest(latest_path(path)))
        legs = told["stages"]["two"]["legs"]
        assert [(leg["steps"], leg["loss_weights"]["b"]) for leg in legs] == [
            ([15, 17], "1/2"),
            ([17, 25], "1/6"),
        ]
        assert "loss_weights" not in told["stages"]["one"]["legs"][0] and "loss_weights" in told["words"]
        assert "num_labels" in str(trainer_settings(run.recipe)["pytorch"])
