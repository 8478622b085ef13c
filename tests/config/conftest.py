"""A small recipe in plain values, and the problems of a changed one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from recipe.config import Recipe, recipe_from_plain
from recipe.errors import Problem, RecipeError

SMALL = {
    "seed": 1,
    "pools": {"web": {"path": "pools/web"}, "code": {"path": "pools/code"}},
    "stages": {
        "short": {
            "tokens": "1M",
            "context": 512,
            "batch": {"sequences": 8},
            "quotas": {"web": "61.6%", "code": "38.4%"},
        }
    },
}


def changed(changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The small recipe with values set at dotted keys."""
    data: Any = copy.deepcopy(SMALL)
    for key, value in (changes or {}).items():
        *above, last = key.split(".")
        holder = data
        for name in above:
            holder = holder.setdefault(name, {})
        holder[last] = value
    return data


@pytest.fixture
def small() -> Callable[..., Recipe]:
    def build(changes: Mapping[str, Any] | None = None) -> Recipe:
        return recipe_from_plain(changed(changes), source="small.yaml")

    return build


@pytest.fixture
def problems() -> Callable[..., list[Problem]]:
    def find(changes: Mapping[str, Any]) -> list[Problem]:
        with pytest.raises(RecipeError) as caught:
            recipe_from_plain(changed(changes), source="small.yaml")
        return list(caught.value.problems)

    return find


@pytest.fixture
def plain() -> Callable[..., dict[str, Any]]:
    """The small recipe in plain values, changed at dotted keys."""
    return changed
