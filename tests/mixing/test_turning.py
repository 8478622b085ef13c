"""What lies behind a run's state stays as it is; what was asked is shown in plain words."""

from __future__ import annotations

from typing import Any

import pytest

from recipe.config import Recipe, recipe_from_plain, settle
from recipe.mixing.snapshot import PoolState, Snapshot
from recipe.mixing.turning import behind_problems


def plan(**changes: Any) -> Recipe:
    stage = {"tokens": "6400", "context": 64, "batch": {"sequences": 10}, "quotas": {"web": "100%"}}
    data = {"seed": 1, "pools": {"web": {"stock": 10**6}}, "stages": {"s": stage}, **changes}
    return settle(recipe_from_plain(data, source="test"), {"web": 10**6}, {"web": 10})


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ({}, {"tokenizer": {"path": "other"}}, ("path: other", "nothing")),
        ({"tokenizer": "bytes"}, {"tokenizer": {"path": "other"}}, ("path: other", "builtin: bytes")),
        ({}, {"start": {"weights": "w", "prior": {"web": 5}}}, ("weights: w, prior: {web: 5}", "nothing")),
        ({}, {"seed": 2}, ("2", "1")),
    ],
)
def test_settings_of_the_whole_run_are_shown_as_a_recipe_writes_them(
    old: dict[str, Any], new: dict[str, Any], shown: tuple[str, str]
):
    at = Snapshot(pools=(PoolState(),))
    (problem,) = behind_problems(plan(**old), plan(**new), at)
    assert (problem.given, problem.expected) == (shown[0], f"{shown[1]}, as from the run's start")
