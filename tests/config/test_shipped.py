"""The recipes in conf/."""

from fractions import Fraction

import pytest

from recipe.config import fingerprint, load_recipe, recipe_from_plain, recipe_to_plain, settle
from recipe.config.shipped import shipped_conf
from recipe.maths.rounding import largest_remainder

NAMES = sorted(file.stem for file in (shipped_conf() / "recipe").glob("*.yaml"))
PLANNED = {
    "english": 6160,
    "rewrites": 790,
    "chinese": 1400,
    "code_web": 500,
    "code": 990,
    "maths": 150,
    "teacher": 10,
}
STOCK = {
    "english": 3080,
    "rewrites": 600,
    "chinese": 500,
    "code_web": 250,
    "code": 490,
    "maths": 70,
    "teacher": 10,
}


@pytest.mark.parametrize("name", NAMES)
def test_every_shipped_recipe_loads_and_reads_back(name):
    recipe = load_recipe(name)
    assert recipe.name == name
    again = recipe_from_plain(recipe_to_plain(recipe), source="stored")
    assert again == recipe
    assert fingerprint(again) == fingerprint(recipe)


def test_D_the_ten_trillion_recipe_plans_the_table_exactly():
    recipe = settle(load_recipe("ten_trillion"), {}, {})
    planned = dict.fromkeys(recipe.pools, Fraction(0))
    for name, stage in recipe.stages.items():
        for pool, share in recipe.shares(name).items():
            planned[pool] += share * stage.tokens
    assert {pool: tokens / 10**9 for pool, tokens in planned.items()} == PLANNED
    assert {name: pool.stock for name, pool in recipe.pools.items()} == {
        n: s * 10**9 for n, s in STOCK.items()
    }
    assert all(planned[name] <= recipe.epochs_allowed(name) * STOCK[name] * 10**9 for name in planned)


def test_D1_a_chunk_of_ten_billion_is_allotted_in_whole_tokens():
    recipe = settle(load_recipe("ten_trillion"), {}, {})
    for name, stage in recipe.stages.items():
        shares = recipe.shares(name).values()
        chunk = largest_remainder([int(share * 1000) for share in shares], 1000, stage.chunk)
        assert chunk == [tokens * 10**6 for tokens in PLANNED.values()]
        assert sum(chunk) == stage.chunk == 10**10


def test_E1_the_code_group_is_fifteen_percent():
    recipe = load_recipe("ten_trillion")
    assert {recipe.group_shares(name)["code_all"] for name in recipe.stages} == {Fraction(15, 100)}


def test_F1_contexts_grow_within_the_position_table():
    for name in ("ten_trillion", "demo"):
        recipe = load_recipe(name)
        contexts = [stage.context for stage in recipe.stages.values()]
        assert len(contexts) >= 2 and contexts == sorted(contexts)
        assert contexts[-1] <= recipe.model.max_positions


def test_the_demo_has_five_pools_a_group_and_a_stage_with_overlap():
    recipe = load_recipe("demo")
    assert len(recipe.pools) >= 5 and recipe.groups
    rules = [recipe.rule(stage, pool) for stage in recipe.stages for pool in recipe.pools]
    assert any(rule.stride < rule.window for rule in rules)
    assert recipe.sink is not None and recipe.tokenizer is not None


def test_the_smallest_recipe_is_the_one_of_the_documentation():
    recipe = load_recipe("minimal")
    assert recipe.shares("short") == {"a": Fraction(77, 125), "b": Fraction(48, 125)}
    assert recipe.stages["short"].chunk == 100_000


@pytest.mark.parametrize("name", NAMES)
def test_every_shipped_file_says_what_it_is(name):
    assert (shipped_conf() / "recipe" / f"{name}.yaml").read_text().startswith("#")
