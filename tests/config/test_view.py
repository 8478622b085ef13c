"""Views in a recipe: which pool owns a document in a stage, and long documents that are routed."""

from typing import Any

import pytest

from recipe.config import Recipe, recipe_from_plain, recipe_to_plain
from recipe.config.identity import fingerprint
from recipe.config.view import families, family, filter_of, number_of
from recipe.errors import RecipeError

WEB = {"path": "web"}
LONG = {"of": "web", "min_tokens": 101}


def recipe_of(pools: dict[str, Any], *quotas: dict[str, str], **changes: Any) -> Recipe:
    stage = {"steps": 3, "context": 128, "batch": {"sequences": 2}, **changes}
    stages = {f"s{k}": {**stage, "quotas": each} for k, each in enumerate(quotas)}
    return recipe_from_plain({"seed": 1, "pools": pools, "stages": stages}, source="test")


HALF = {"web": "50%", "long": "50%"}


def test_pools_with_filters_own_before_the_one_that_takes_what_is_left():
    pools = {"web": WEB, "long": LONG, "other": {"path": "other"}, "good": {"of": "web", "where": {"q": 1}}}
    recipe = recipe_of(pools, {"web": "25%", "long": "25%", "other": "25%", "good": "25%"})
    assert family(recipe.pools, "good") == ("long", "good", "web")
    assert families(recipe.pools) == [("long", "good", "web")]
    assert [recipe.rule("s0", name).behind for name in recipe.pools] == [("long", "good"), (), (), ("long",)]


def test_only_pools_that_a_stage_draws_from_own_anything_in_it():
    recipe = recipe_of({"web": WEB, "long": LONG}, {"web": "100%", "long": "0%"}, HALF)
    assert recipe.rule("s0", "web").behind == ()
    assert recipe.rule("s1", "web").behind == ("long",)


def test_while_shares_go_over_both_stages_say_who_owns():
    stages = {
        "a": {"steps": 4, "context": 8, "batch": {"sequences": 1}, "quotas": HALF},
        "b": {
            "like": "a",
            "quotas": {"web": "100%", "long": "0%"},
            "quota_ramp": {"over": 16, "steps": 2},
        },
        "c": {"like": "a", "quotas": {"web": "100%", "long": "0%"}},
    }
    plain = {"seed": 1, "pools": {"web": WEB, "long": LONG}, "stages": stages}
    recipe = recipe_from_plain(plain, source="test")
    assert [recipe.rule(name, "web").behind for name in "abc"] == [("long",), ("long",), ()]


def test_renaming_a_view_changes_no_rule():
    renamed = {"web": WEB, "tall": {**LONG, "renamed_from": "long"}}
    before = recipe_of({"web": WEB, "long": LONG}, HALF).rule("s0", "web")
    assert recipe_of(renamed, {"web": "50%", "tall": "50%"}).rule("s0", "web") == before


def test_a_view_lies_where_its_parent_lies_and_has_its_readings():
    recipe = recipe_of({"web": {**WEB, "max_epochs": 2}, "long": LONG}, HALF)
    assert recipe.pool_path("long") == recipe.pool_path("web")
    assert recipe.epochs_allowed("long") == 2


def test_a_recipe_with_views_is_stored_and_read_back_the_same():
    where = {"quality": {"min": 0.5}, "licence": ["mit", "apache-2.0"], "source": {"not": "forum"}, "year": 7}
    recipe = recipe_of({"web": WEB, "long": {**LONG, "where": where, "by": "group"}}, HALF)
    again = recipe_from_plain(recipe_to_plain(recipe), source="test")
    assert again == recipe and fingerprint(again) == fingerprint(recipe)
    assert recipe.pools["long"].where == {**where, "quality": {"min": "0.5"}}


def test_a_recipe_without_views_keeps_its_identity():
    recipe = recipe_of({"web": WEB}, {"web": "100%"})
    assert not {"of", "where", "min_tokens", "max_tokens", "by"} & set(
        recipe_to_plain(recipe)["pools"]["web"]
    )
    assert filter_of(recipe.pools["web"]) is None


@pytest.mark.parametrize(
    ("long", "words"),
    [
        ({**LONG, "min_tokens": 102}, "another view of the folder with min_tokens: 101"),
        ({**LONG, "by": "group"}, "another view of the folder with min_tokens: 101"),
        ({**LONG, "where": {"a": 1}}, "another view of the folder with min_tokens: 101"),
        ({**LONG, "max_tokens": 900}, "another view of the folder with min_tokens: 101"),
    ],
)
def test_b6_routing_needs_a_view_that_takes_exactly_what_is_longer(long, words):
    web = {**WEB, "max_tokens": 100, "slicing": {"oversize": "route"}}
    with pytest.raises(RecipeError, match=words) as caught:
        recipe_of({"web": web, "long": long}, HALF)
    [problem] = caught.value.problems
    assert problem.where == "pools.web.slicing.oversize"
    assert "long: {of: web, min_tokens: 101}" in problem.fix


def test_b6_routing_needs_a_stage_that_draws_what_is_routed():
    web = {**WEB, "max_tokens": 100, "slicing": {"oversize": "route"}}
    with pytest.raises(RecipeError, match="long, which no stage draws from"):
        recipe_of({"web": web, "long": LONG}, {"web": "100%", "long": "0%"})


def test_b6_no_window_of_a_pool_that_routes_is_smaller_than_its_documents():
    web = {**WEB, "max_tokens": 100, "slicing": {"oversize": "route", "window": 99}}
    with pytest.raises(RecipeError, match="a window of 99 in stage s0"):
        recipe_of({"web": web, "long": LONG}, HALF)


def test_b6_a_pool_that_routes_is_cut_as_one_that_splits():
    pools = {"web": {**WEB, "max_tokens": 100, "slicing": {"oversize": "route"}}, "long": LONG}
    assert recipe_of(pools, HALF).rule("s0", "web").oversize == "split"


def test_a_view_of_a_pool_without_a_folder_has_a_stock_to_plan_with():
    recipe = recipe_of({"web": {"stock": "1B"}, "long": {"of": "web", "min_tokens": 9, "stock": "1M"}}, HALF)
    assert recipe.folder("long") is None
    with pytest.raises(RecipeError, match=r"pools\.long\.stock"):
        recipe_of({"web": {"stock": "1B"}, "long": LONG}, HALF)


@pytest.mark.parametrize("text", ["0x10", "1_000", "nan", "inf", "1e", "", "\uff11", "1e9999"])
def test_a_text_that_is_no_plain_decimal_number_stays_a_text(text):
    assert number_of(text) is None
