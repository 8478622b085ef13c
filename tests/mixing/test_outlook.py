"""What lies ahead of a place: what is left adds up, and readings at the end are those a walk ends with."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from recipe.mixing.outlook import YieldCache, outlook
from tests.mixing.build import World, stage, world, write


@pytest.fixture
def made(tmp_path: Path) -> World:
    """Two pools of 100 documents of 4 tokens; 20 steps of 10 rows, then 10 with other shares."""
    for name in "ab":
        write(tmp_path / name, [4] * 100)
    stages: list[dict[str, Any]] = [
        stage(4, {"a": 3, "b": 1}, batch=10, steps=20),
        stage(4, {"a": 1, "b": 1}, batch=10, steps=10),
    ]
    return world(tmp_path, {"a": {}, "b": {}}, stages)


@pytest.mark.parametrize("step", [0, 1, 13, 20, 21, 30])
def test_readings_at_the_end_are_those_of_a_walk(made: World, step: int):
    stream = made.stream()
    ahead = outlook(made.recipe, made.pools, stream.snapshot(step))
    end = stream.snapshot(30)
    for name, state in zip("ab", end.pools, strict=True):
        read = Fraction(state.body, 400)
        assert abs(ahead.pools[name].epochs - read) <= Fraction(1, 100)
        assert ahead.pools[name].spent == stream.snapshot(step).pools["ab".index(name)].spent
    assert sum(pool.left for pool in ahead.pools.values()) == (30 - step) * 40
    assert (ahead.step, ahead.num_steps, ahead.end_positions) == (step, 30, 1200)
    assert ahead.problems == ()


def test_only_stages_that_are_left_are_shown(made: World):
    ahead = outlook(made.recipe, made.pools, made.stream().snapshot(20))
    assert list(ahead.stages) == [list(made.recipe.stages)[1]]
    assert outlook(made.recipe, made.pools, made.stream().snapshot(30)).stages == {}


def test_a_pool_that_runs_out_for_certain_is_a_problem_and_under_another_policy_a_warning(tmp_path: Path):
    write(tmp_path / "a", [4] * 100)
    write(tmp_path / "b", [4] * 10)
    stages = [stage(4, {"a": 1, "b": 1}, batch=10, steps=20)]
    told = []
    for policy in ("repeat", "redistribute"):
        small = {"max_epochs": 2, "on_exhausted": policy}
        one = world(tmp_path, {"a": {}, "b": small}, stages)
        ahead = outlook(one.recipe, one.pools, one.stream().snapshot(0))
        told.append((len(ahead.problems), len(ahead.warnings)))
    assert told == [(1, 0), (0, 1)]


def test_what_was_estimated_is_used_again(made: World):
    cache: YieldCache = {}
    first = outlook(made.recipe, made.pools, made.stream().snapshot(3), cache)
    kept = dict(cache)
    assert outlook(made.recipe, made.pools, made.stream().snapshot(3), cache) == first
    assert cache == kept
    assert kept
