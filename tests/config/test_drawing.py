"""Which stages draw from a pool: by their own shares, and while they go over from the stage before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from recipe.config import Recipe, recipe_from_plain
from recipe.config.drawing import drawing_stages, draws_from
from recipe.errors import RecipeError

BOTH, ONE = {"web": "50%", "code": "50%"}, {"web": "100%", "code": "0%"}
RAMP = {"quota_ramp": {"over": 16, "steps": 2}}


def plain(second: Mapping[str, Any], code: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A stage with both pools, then one with none of ``code`` at its end."""
    first = {"steps": 4, "context": 64, "batch": {"sequences": 1}, "quotas": BOTH}
    return {
        "seed": 1,
        "pools": {"web": {"path": "web"}, "code": {"path": "code", **(code or {})}},
        "stages": {"a": first, "b": {"like": "a", "quotas": ONE, **second}},
    }


def recipe_of(second: Mapping[str, Any], code: Mapping[str, Any] | None = None) -> Recipe:
    return recipe_from_plain(plain(second, code), source="test")


@pytest.fixture
def places() -> Callable[..., list[str]]:
    def find(data: Mapping[str, Any]) -> list[str]:
        with pytest.raises(RecipeError) as caught:
            recipe_from_plain(data, source="test")
        return [problem.where for problem in caught.value.problems]

    return find


def test_a_stage_draws_from_pools_that_it_only_goes_over_from():
    assert [stage.name for stage in drawing_stages(recipe_of({}), "code")] == ["a"]
    assert [stage.name for stage in drawing_stages(recipe_of(RAMP), "code")] == ["a", "b"]


FIM = {"transform": {"fim": {"rate": "50%", "prefix": 1, "middle": 2, "suffix": 3}}}


def test_a_seam_has_the_same_marks_while_shares_go_over(places):
    data = plain({**RAMP, "slicing": {"specials": "window"}})
    data["stages"]["a"]["quotas"] = {"web": "0%", "code": "100%"}
    assert places(data) == ["stages.b.slicing.specials"]
    del data["stages"]["b"]["quota_ramp"]
    assert len(drawing_stages(recipe_from_plain(data, source="test"), "code")) == 1


@pytest.mark.parametrize(
    ("second", "code", "where"),
    [
        ({"packing": {"method": "concat"}}, FIM, "stages.b.packing.method"),
        ({"context": 32}, {"slicing": {"window": 48}}, "pools.code.slicing.window"),
        ({"packing": {"eos_keep": "50%"}}, {"slicing": {"specials": "window"}}, "stages.b.packing.eos_keep"),
    ],
)
def test_what_a_pool_needs_is_asked_of_a_stage_that_goes_over_from_it(places, second, code, where):
    assert places(plain({**second, **RAMP}, code)) == [where]
    assert len(drawing_stages(recipe_of(second, code), "code")) == 1


def test_a_route_may_lead_to_a_pool_that_a_stage_goes_over_from():
    pools = {
        "web": {"path": "web", "max_tokens": 8, "slicing": {"oversize": "route"}},
        "code": {"of": "web", "min_tokens": 9},
    }
    data = {**plain(RAMP), "pools": pools}
    assert drawing_stages(recipe_from_plain(data, source="test"), "code")


def test_a_member_that_its_group_gives_nothing_is_not_drawn():
    data = plain({})
    data["stages"] = {"b": data["stages"]["a"] | {"quotas": {"both": "100%"}}}
    data["groups"] = {"both": {"pools": ["web", "code"], "within": {"shares": {"web": "100%", "code": "0%"}}}}
    recipe = recipe_from_plain(data, source="test")
    assert draws_from(recipe, "b", "web") and not draws_from(recipe, "b", "code")


def test_where_the_order_of_stages_is_faulty_nothing_is_said_of_what_a_ramp_comes_from(places):
    data = plain({**RAMP, "context": 32}, {"slicing": {"window": 48}})
    assert places({**data, "curriculum": ["a", "b", "c"]}) == ["curriculum"]
