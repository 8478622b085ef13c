"""E5: runs that start from weights from elsewhere, whose earlier tokens are shown apart and never added."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recipe
from recipe import RecipeError
from recipe.pools.writer import PoolWriter
from recipe.run.branching.branch import branch_run
from recipe.run.branching.wishes import Wish
from recipe.run.ledger import read_rows
from recipe.run.manifest import latest_path, read_manifest
from tests.run.conftest import Build

START = {"weights": "org/model-7b", "revision": "abc1", "tokenizer": "org-tokenizer", "prior": "18T"}


def first_row(path: Path) -> dict[str, Any]:
    return next(read_rows(path / "ledger.jsonl")).data


def test_E5_the_start_is_one_record_in_the_first_row_and_apart_in_every_manifest(
    build: Build, tmp_path: Path
):
    with recipe.start_run(build(start=START, model={"vocab_size": 500}), tmp_path / "run") as run:
        run.checkpoint(5)
        run.checkpoint(run.num_steps)
    apart = {**START, "prior": 18 * 10**12, "prior_tokens": 18 * 10**12}
    assert first_row(tmp_path / "run")["start"] == {**apart, "vocab_size": 500, "pools_tokenizer": None}
    manifest = read_manifest(latest_path(tmp_path / "run"))
    assert manifest["prior"] == apart
    spent = sum(pool["tokens"]["spent"] for pool in manifest["pools"].values())
    assert spent < 2000
    status = recipe.run_status(tmp_path / "run")
    assert status.prior == apart
    assert sum(pool.spent for pool in status.pools.values()) == spent


def test_E5_prior_tokens_may_be_stated_by_area(build: Build, tmp_path: Path):
    areas = {"web": "10T", "code": "2T"}
    recipe.start_run(build(start={"weights": "w", "prior": areas}), tmp_path / "run").close()
    start = first_row(tmp_path / "run")["start"]
    assert start["prior"] == {"web": 10**13, "code": 2 * 10**12}
    assert start["prior_tokens"] == 12 * 10**12


def test_a_run_without_a_start_says_nothing_of_one(build: Build, tmp_path: Path):
    with recipe.start_run(build(), tmp_path / "run") as run:
        run.checkpoint(3)
    assert "start" not in first_row(tmp_path / "run")
    assert read_manifest(latest_path(tmp_path / "run"))["prior"] is None


def test_E5_a_branch_keeps_the_start_of_its_parent(build: Build, tmp_path: Path):
    with recipe.start_run(build(start=START), tmp_path / "run") as run:
        run.checkpoint(5)
    (path,) = branch_run(tmp_path / "run", Wish(name="A"))
    assert first_row(path)["start"] == first_row(tmp_path / "run")["start"]


def test_E5_an_amendment_refuses_another_tokenizer_and_another_start(build: Build, tmp_path: Path):
    with recipe.start_run(build(start=START), tmp_path / "run") as run:
        run.checkpoint(5)
        for words in (["tokenizer=bytes"], ["start.prior=1T"]):
            with pytest.raises(RecipeError, match="branch"):
                run.amend(words, reason="no")


def test_a_start_with_another_tokenizer_than_the_pools_is_told(build: Build, tmp_path: Path):
    for name in "abc":
        with PoolWriter(tmp_path / name, vocab_size=500, eos=0, tokenizer="a" * 64) as writer:
            for number in range(60):
                writer.add(np.arange(1, 30), id=number)
            writer.close()
    told: list[str] = []
    for number, tokenizer in enumerate(["b" * 64, "a" * 64, "some name"]):
        wanted = build(pools_root=str(tmp_path), start={"weights": "w", "tokenizer": tokenizer})
        path = tmp_path / f"run{number}"
        recipe.start_run(wanted, path, on_plan=lambda plan: told.extend(plan.warnings)).close()
        assert first_row(path)["start"]["pools_tokenizer"] == "a" * 64
    assert [line for line in told if line.startswith("start.tokenizer")] == [told[0]]
    assert "b" * 64 in told[0]


def test_the_command_that_started_a_run_goes_on_with_it_after_an_amendment(build: Build, tmp_path: Path):
    """A queue that starts the same command again finds the recipe in force, not a refusal."""
    with recipe.resume_or_start(build(), tmp_path / "run") as run:
        run.checkpoint(5)
        run.amend(["stages.two.quotas.a=40%"], from_pool="b", reason="less a")
    with recipe.resume_or_start(build(), tmp_path / "run") as run:
        assert run.step == 5
        assert str(run.recipe.shares("two")["a"]) == "2/5"
        in_force = run.recipe
    with recipe.resume_or_start(in_force, tmp_path / "run") as run:
        assert run.step == 5
    with pytest.raises(RecipeError, match="another recipe"):
        recipe.resume_or_start(build(seed=9), tmp_path / "run")


def test_a_branch_goes_on_with_its_own_recipe_and_not_with_its_parents(build: Build, tmp_path: Path):
    with recipe.start_run(build(), tmp_path / "run") as run:
        run.checkpoint(5)
    (path,) = branch_run(
        tmp_path / "run", Wish(name="A", overrides=("stages.two.quotas.a=40%",), from_pool="b")
    )
    with recipe.open_run(path) as branch:
        own = branch.recipe
    recipe.resume_or_start(own, path).close()
    with pytest.raises(RecipeError, match="another recipe"):
        recipe.resume_or_start(build(), path)
