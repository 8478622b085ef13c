"""Runs that end before their length, and pools that leave: checkpoints, resume and sums hold there too."""

from __future__ import annotations

from pathlib import Path

import pytest

import recipe
from recipe import RecipeError
from recipe.config import Recipe
from recipe.run.ledger import read_rows
from tests.run.conftest import Build, served, stage


def dry(build: Build, policy: str) -> Recipe:
    """Pool c runs dry after one reading, well before the stage is over."""
    quotas = {"a": "40%", "b": "30%", "c": "30%"}
    return build(
        on_exhausted=policy,
        max_epochs=1,
        groups={},
        stages={"s": stage(tokens=2000, context=16, chunk=150, quotas=quotas)},
    )


@pytest.mark.parametrize("policy", ["stop", "redistribute"])
def test_a_run_whose_pools_run_dry_resumes_at_every_step(build: Build, tmp_path: Path, policy: str):
    with recipe.start_run(dry(build, policy), tmp_path / "run") as run:
        batches = served(run.stream(), 0)
        assert len(batches) < run.num_steps or policy == "redistribute"
        for step in range(len(batches) + 1):
            run.checkpoint(step)
        assert run.complete
        end = run.stream().snapshot(len(batches))
    for step in range(len(batches) + 1):
        with recipe.open_run(tmp_path / "run", step) as run:
            assert served(run.stream(), step) == batches[step:]
            assert run.complete is (step == len(batches))
    rows = [row.data for row in read_rows(tmp_path / "run" / "ledger.jsonl") if row.kind == "chunk"]
    assert [row["steps"][0] for row in rows] == [0, *(row["steps"][1] for row in rows[:-1])]
    assert rows[-1]["steps"][1] == len(batches)
    for name, pool in zip("abc", end.pools, strict=True):
        assert sum(row["pools"][name]["spent"] for row in rows) == pool.spent
        assert sum(row["pools"][name]["owed"] for row in rows) == pool.owed


def test_a_step_after_the_end_of_a_stopped_run_is_refused_with_the_end(build: Build, tmp_path: Path):
    with recipe.start_run(dry(build, "stop"), tmp_path / "run") as run:
        last = len(served(run.stream(), 0))
        with pytest.raises(RecipeError, match=f"at most {last}, where a pool ran dry"):
            run.checkpoint(last + 1)
        run.checkpoint(last)
    status = recipe.run_status(tmp_path / "run")
    assert (status.complete, status.stage, status.step < status.num_steps) == (True, None, True)


@pytest.mark.parametrize(("policy", "pool"), [("stop", "c"), ("redistribute", "a")])
def test_the_pool_and_the_policy_that_ended_the_run_are_named(
    build: Build, tmp_path: Path, policy: str, pool: str
):
    quotas = {"a": "40%", "b": "30%", "c": "30%"}
    stages = {"s": stage(tokens=9000, context=16, quotas=quotas)}
    wanted = build(on_exhausted=policy, max_epochs=1, groups={}, stages=stages)
    with recipe.start_run(wanted, tmp_path / "run") as run:
        last = len(served(run.stream(), 0))
        assert run.ending is None
        run.checkpoint(last)
        assert run.ending == f"pool {pool} (on_exhausted: {policy}) has nothing left"
        with pytest.raises(ValueError, match=rf"it has steps 0\.\.{last - 1}, not step {last}$"):
            run.stream().batch(last)
    assert recipe.run_status(tmp_path / "run").ending == run.ending


def test_the_end_is_known_to_a_handle_that_served_nothing(build: Build, tmp_path: Path):
    with recipe.start_run(dry(build, "stop"), tmp_path / "run") as run:
        last = len(served(recipe.stream_from(run.state(0)), 0))
        run.checkpoint(last)
        assert run.complete
    with recipe.open_run(tmp_path / "run") as run:
        assert run.complete
        assert served(run.stream(), run.step) == []
