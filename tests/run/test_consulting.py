"""Policies: asked at batch ends, answering with shares that become amendments on record."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import recipe
from recipe.config import Recipe
from recipe.errors import RecipeError
from recipe.maths.policies import Answer, View
from recipe.run.ledger import read_rows
from tests.run.conftest import served, stage

Build = Callable[..., Recipe]


class Swap:
    """A policy of our own: shares of the first two pools change places; it counts its answers."""

    def __call__(self, view: View) -> Answer:
        shares = [*view.shares[1::-1], *view.shares[2:]]
        asked = view.memory.get("asked", 0) + 1
        return Answer(shares=dict(zip(view.pools, shares, strict=True)), memory={"asked": asked})


class Nonsense:
    """Shares that do not sum to one."""

    def __call__(self, view: View) -> Answer:
        return Answer(shares=dict.fromkeys(view.pools, Fraction(1, 2)))


def recipe_with(build: Build, policy: dict[str, Any]) -> Recipe:
    one = stage(tokens=1920, context=16, chunk=150, quotas={"a": "60%", "b": "30%", "c": "10%"})
    return build(stages={"one": one}, groups={}, policy=policy, max_epochs=99)


OWN = {"_target_": f"{__name__}.Swap", "every": 480}
ALLOW = [f"{__name__}.Swap"]


def amendments(path: Path) -> list[dict[str, Any]]:
    return [row.data for row in read_rows(path / "ledger.jsonl") if row.kind == "amend"]


def test_a_policy_is_asked_at_the_first_batch_end_of_every_stretch(tmp_path: Path, build: Build):
    with recipe.start_run(recipe_with(build, OWN), tmp_path / "run") as run:
        told = [step for step in range(1, 41) if run.consult(step, {}, allow_targets=ALLOW) is not None]
        assert told == [10, 20, 30], "a batch has 48 positions; the run's end is no place to change shares"
        run.checkpoint(40)
    rows = amendments(tmp_path / "run")
    assert [row["step"] for row in rows] == told
    assert [row["policy"]["memory"] for row in rows] == [{"asked": n} for n in (1, 2, 3)]
    assert {row["by"] for row in rows} == {"policy"}


def test_replay_needs_no_policy(tmp_path: Path, build: Build):
    """What the ranks were served is served again from the recipe versions alone."""
    with recipe.start_run(recipe_with(build, OWN), tmp_path / "run") as run:
        seen = []
        for step in range(40):
            seen += served(run.stream(), step, step + 1)
            state = run.consult(step + 1, {"a": 2.5, "b": 1.0, "c": 3}, allow_targets=ALLOW)
            if state is not None:
                assert served(recipe.stream_from(state), step + 1, step + 2) == served(
                    run.stream(), step + 1, step + 2
                )
        run.checkpoint(40)
    with recipe.open_run(tmp_path / "run") as run:
        assert served(run.stream(), 0) == seen


def test_an_answer_without_a_later_checkpoint_is_asked_for_again(tmp_path: Path, build: Build):
    with recipe.start_run(recipe_with(build, OWN), tmp_path / "run") as run:
        run.checkpoint(8)
        run.consult(10, {}, allow_targets=ALLOW)
        after = served(run.stream(), 8)
    with recipe.open_run(tmp_path / "run") as run:
        assert run.recipe.shares("one")["a"] == Fraction(60, 100)
        run.consult(10, {}, allow_targets=ALLOW)
        assert served(run.stream(), 8) == after
        run.checkpoint(15)
    assert [row["recipe"] for row in amendments(tmp_path / "run")] == [2, 3]
    assert [row["policy"]["memory"] for row in amendments(tmp_path / "run")] == [{"asked": 1}, {"asked": 1}]


def test_a_policy_that_nobody_allowed_is_not_imported(tmp_path: Path, build: Build):
    with (
        recipe.start_run(recipe_with(build, {"_target_": "os.system", "every": 48}), tmp_path / "run") as run,
        pytest.raises(RecipeError, match=r"os\.system"),
    ):
        run.consult(1, {})


def test_an_answer_that_is_none_leaves_the_run_as_it_is(tmp_path: Path, build: Build):
    policy = {"_target_": f"{__name__}.Nonsense", "every": 48}
    with recipe.start_run(recipe_with(build, policy), tmp_path / "run") as run:
        with pytest.raises(RecipeError, match="gave no answer at step 1"):
            run.consult(1, {}, allow_targets=[f"{__name__}.Nonsense"])
        assert amendments(tmp_path / "run") == []
        run.checkpoint(3)


@pytest.mark.parametrize(
    "policy",
    [
        {"_target_": "recipe.maths.policies.DynamicLoading", "reference": {"a": 2.0, "b": 2.0, "c": 2.0}},
        {"_target_": "recipe.maths.policies.OnlineMixing"},
    ],
)
def test_the_shipped_policies_move_shares_towards_high_losses(
    tmp_path: Path, build: Build, policy: dict[str, Any]
):
    with recipe.start_run(recipe_with(build, {**policy, "every": 240}), tmp_path / "run") as run:
        for step in range(1, 40):
            run.consult(step, {"a": 2.0, "b": 3.5, "c": 2.1})
        shares = run.recipe.shares("one")
        run.checkpoint(40)
    assert shares["b"] > Fraction(30, 100)
    assert sum(shares.values()) == 1
    assert len(amendments(tmp_path / "run")) == 7
