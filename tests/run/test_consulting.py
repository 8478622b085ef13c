"""Policies: asked at batch ends, answering with shares that become amendments on record."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
    with recipe.start_run(recipe_with(build, OWN), tmp_path / "run", allow_targets=ALLOW) as run:
        told = [step for step in range(1, 41) if run.consult(step, {}, allow_targets=ALLOW) is not None]
        assert told == [10, 20, 30], "a batch has 48 positions; the run's end is no place to change shares"
        run.checkpoint(40)
    rows = amendments(tmp_path / "run")
    assert [row["step"] for row in rows] == told
    assert [row["policy"]["memory"] for row in rows] == [{"asked": n} for n in (1, 2, 3)]
    assert {row["by"] for row in rows} == {"policy"}


def test_replay_needs_no_policy(tmp_path: Path, build: Build):
    """What the ranks were served is served again from the recipe versions alone."""
    with recipe.start_run(recipe_with(build, OWN), tmp_path / "run", allow_targets=ALLOW) as run:
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
    with recipe.start_run(recipe_with(build, OWN), tmp_path / "run", allow_targets=ALLOW) as run:
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


def test_a_policy_that_nobody_allowed_is_refused_at_the_start_and_not_imported(tmp_path: Path, build: Build):
    foreign = recipe_with(build, {"_target_": "os.system", "every": 48})
    with pytest.raises(RecipeError, match=r"os\.system(.|\n)*--allow-target os\.system"):
        recipe.start_run(foreign, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_policy_that_was_allowed_at_the_start_is_asked_only_where_it_is_allowed_again(
    tmp_path: Path, build: Build
):
    with recipe.start_run(recipe_with(build, OWN), tmp_path / "run", allow_targets=ALLOW) as run:
        with pytest.raises(RecipeError, match="allow_targets"):
            run.consult(10, {})
        assert run.consult(10, {}, allow_targets=ALLOW) is not None


def test_an_amendment_by_a_handle_brings_a_policy_in_only_where_it_is_allowed(tmp_path: Path, build: Build):
    target, every = (f"++policy.{key}={OWN[key]}" for key in OWN)
    with recipe.start_run(
        recipe_with(build, {"_target_": "recipe.maths.policies.OnlineMixing", "every": 48}), tmp_path / "run"
    ) as run:
        with pytest.raises(RecipeError, match="--allow-target"):
            run.amend([target, every], reason="ours", step=10)
        run.amend([target, every], reason="ours", step=10, allow_targets=ALLOW)
        assert run.consult(20, {}, allow_targets=ALLOW) is not None


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ({"_target_": "DynamicLoading", "reference": {"a": 2, "b": 2}}, "no reference loss of c"),
        ({"_target_": "DynamicLoading", "refrence": {}}, "missing a required"),
        ({"_target_": "OnlineMixing", "smoothing": 1}, "smoothing 1 is not in 0..1"),
        ({"_target_": "OnlineMixing", "floor": "0.5"}, "floor"),
        ({"_target_": "OnlineMixin"}, "did you mean"),
    ],
)
def test_a_wrong_policy_is_told_before_the_run(
    tmp_path: Path, build: Build, policy: dict[str, Any], told: str
):
    policy = {**policy, "_target_": f"recipe.maths.policies.{policy['_target_']}", "every": 48}
    wrong = recipe_with(build, policy)
    (problem,) = recipe.make_plan(wrong).problems
    assert told in problem.fix and problem.where.startswith("policy")
    with pytest.raises(RecipeError, match=told):
        recipe.resume_or_start(wrong, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_answer_that_is_none_leaves_the_run_as_it_is(tmp_path: Path, build: Build):
    allowed = [f"{__name__}.Nonsense"]
    wanted = recipe_with(build, {"_target_": allowed[0], "every": 48})
    with recipe.start_run(wanted, tmp_path / "run", allow_targets=allowed) as run:
        with pytest.raises(RecipeError, match="gave no answer at step 1"):
            run.consult(1, {}, allow_targets=allowed)
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


def consulted(run: recipe.Run, steps: Iterable[int]) -> list[int]:
    return [step for step in steps if run.consult(step, {}, allow_targets=ALLOW) is not None]


def test_whoever_asks_every_few_steps_is_answered_at_the_next_call(tmp_path: Path, build: Build):
    """Due from step 10 on, answered at 14; counted from there, due from 24 on, answered at 28."""
    with recipe.start_run(recipe_with(build, OWN), tmp_path / "run", allow_targets=ALLOW) as run:
        assert consulted(run, range(7, 41, 7)) == [14, 28]
        assert consulted(run, (28, 21, 0, 40)) == [], "answered, behind, and no place to change shares"
        run.checkpoint(40)


def test_what_was_answered_last_comes_from_the_record(tmp_path: Path, build: Build):
    with recipe.start_run(recipe_with(build, OWN), tmp_path / "run", allow_targets=ALLOW) as run:
        assert consulted(run, [13]) == [13]
        run.amend(["stages.one.quotas.a=40%"], from_pool="b", reason="not of the policy", step=15)
        run.checkpoint(16)
    for stop, told in ((22, []), (24, [23])):
        with recipe.open_run(tmp_path / "run") as run:
            assert consulted(run, range(17, stop)) == told
            if told:
                run.checkpoint(24)
    with recipe.open_run(tmp_path / "run") as run:
        assert consulted(run, range(25, 40)) == [33]
        run.checkpoint(40)
    told = [row["policy"] for row in amendments(tmp_path / "run") if row["by"] == "policy"]
    assert [policy["memory"] for policy in told] == [{"asked": n} for n in (1, 2, 3)]
    assert recipe.audit_run(tmp_path / "run").findings == ()


def test_every_stage_counts_anew_from_its_beginning(tmp_path: Path, build: Build):
    """A point that passes at a stage's end is not made up for in the next stage."""
    quotas = {"a": "60%", "b": "30%", "c": "10%"}
    stages = {name: stage(tokens=1200, context=16, chunk=150, quotas=quotas) for name in ("one", "two")}
    wanted = build(stages=stages, groups={}, policy={**OWN, "every": 480}, max_epochs=99)
    with recipe.start_run(wanted, tmp_path / "run", allow_targets=ALLOW) as run:
        assert run.num_steps == 50
        assert consulted(run, [12, 25, 26, 34, 35, 46]) == [12, 35, 46]
        run.checkpoint(50)
    assert [row["stage"] for row in amendments(tmp_path / "run")] == ["one", "two", "two"]


def test_a_branch_goes_on_counting_as_its_parent(tmp_path: Path, build: Build):
    with recipe.start_run(recipe_with(build, OWN), tmp_path / "run", allow_targets=ALLOW) as run:
        assert consulted(run, [11]) == [11]
        run.checkpoint(15)
    (branch,) = recipe.branch_run(tmp_path / "run", recipe.Wish(name="b"))
    with recipe.open_run(branch) as run:
        assert consulted(run, range(16, 32)) == [21, 31]
        run.checkpoint(32)
    assert recipe.audit_run(branch).findings == ()


def test_another_policy_does_not_get_what_the_one_before_it_remembered(tmp_path: Path, build: Build):
    online = {"_target_": "recipe.maths.policies.OnlineMixing", "every": 480}
    losses = dict.fromkeys("abc", 2.0)
    with recipe.start_run(recipe_with(build, OWN), tmp_path / "run", allow_targets=ALLOW) as run:
        assert consulted(run, [10]) == [10]
        run.amend([f"policy._target_={online['_target_']}"], reason="another", step=11)
        assert run.consult(12, losses) is not None
        run.checkpoint(13)
    assert amendments(tmp_path / "run")[-1]["policy"]["memory"]["decision"] == 2


def test_losses_of_no_pool_are_refused_before_anything_is_due(tmp_path: Path, build: Build):
    with recipe.start_run(recipe_with(build, OWN), tmp_path / "run", allow_targets=ALLOW) as run:
        with pytest.raises(ValueError, match=r"no pool 'aa'; did you mean 'a'\?"):
            run.consult(1, {"aa": 2.0})
        with pytest.raises(ValueError, match=r"no pool 'xyz'; the pools are a, b, c"):
            run.consult(1, {"xyz": 2.0})
        with pytest.raises(ValueError, match=r"losses\['a'\] is 'low'"):
            run.consult(10, {"a": "low"}, allow_targets=ALLOW)
        run.checkpoint(11)


def test_a_pool_without_a_loss_is_what_the_policy_says(tmp_path: Path, build: Build):
    """Dynamic loading names it and gives no answer; online mixing lets its reward stand."""
    reference = {"a": 2.0, "b": 2.0, "c": 2.0}
    loading = {"_target_": "recipe.maths.policies.DynamicLoading", "reference": reference, "every": 240}
    with recipe.start_run(recipe_with(build, loading), tmp_path / "loading") as run:
        with pytest.raises(RecipeError, match=r"no loss of b(.|\n)*give it the losses it needs"):
            run.consult(5, {"a": 2.0, "c": 2.0})
        assert run.consult(6, {"a": 2.0, "b": 2.0, "c": 2.0}) is not None, "still due"
    mixing = {"_target_": "recipe.maths.policies.OnlineMixing", "every": 240}
    with recipe.start_run(recipe_with(build, mixing), tmp_path / "mixing") as run:
        run.consult(5, {"a": 2.0, "b": 3.0, "c": 2.0})
        run.consult(10, {"a": 2.0, "c": 2.0})
        run.checkpoint(11)
    first, second = (row["policy"]["memory"]["rewards"] for row in amendments(tmp_path / "mixing"))
    assert first["b"] == second["b"] and first["a"] != second["a"]
