# ruff: noqa: E501  (tables: a row is a line)
"""What the loss counts apart from what is sampled: weights by hand, faults with a way out, amendments by name."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.config import (
    amended,
    difference,
    fingerprint,
    load_recipe,
    recipe_from_plain,
    recipe_to_plain,
    settle,
)
from recipe.errors import RecipeError
from recipe.maths.shares import effective_share, from_weights, loss_weights

OBJECTIVE = "stages.short.objective"
NATURAL = {"pools": ["b", "c"]}


def weighted(objective, quotas, *, within=None, **stage):
    """A recipe over a, b, c, of which g is b and c; ``within`` 3:1."""
    pools = {name: {"stock": 1000} for name in ("a", "b", "c")}
    one = {"tokens": 1000, "context": 10, "batch": {"sequences": 1}, "chunk": 100, "quotas": quotas, **stage}
    groups = {"g": {"pools": ["b", "c"], "within": within or {"shares": {"b": 3, "c": 1}}}}
    two = {"first": {**one, "objective": objective}} if objective is not None else {"first": one}
    return recipe_from_plain({"seed": 1, "pools": pools, "groups": groups, "stages": two}, source="r")


def texts(recipe, stage="first"):
    return [{name: str(weight) for name, weight in leg.items()} for leg in recipe.loss_weights(stage)]


# --- weights


def test_code_is_sampled_at_15_and_counts_as_10_per_cent(small):
    recipe = small(
        {"stages.short.quotas": {"web": "85%", "code": "15%"}, OBJECTIVE: {"web": "rest", "code": "10%"}}
    )
    assert texts(recipe, "short") == [{"web": "18/17", "code": "2/3"}]


def test_a_group_counts_by_its_shares_inside():
    """b and c are 24 and 6 % of the loss (3:1 of 30 would be 22.5 and 7.5), sampled alike."""
    recipe = weighted({"a": "70%", "g": "30%"}, {"a": "50%", "b": "25%", "c": "25%"})
    assert texts(recipe) == [{"a": "7/5", "b": "9/10", "c": "3/10"}]
    recipe = weighted({"a": "70%", "b": "24%", "c": "6%"}, {"a": "60%", "g": "40%"})
    assert texts(recipe) == [{"a": "7/6", "b": "4/5", "c": "3/5"}]


def test_a_natural_group_counts_by_its_stock():
    recipe = settle(
        weighted({"a": "50%", "g": "50%"}, {"a": "20%", "b": "40%", "c": "40%"}, within="natural"), {}, {}
    )
    assert texts(recipe) == [{"a": "5/2", "b": "5/8", "c": "5/8"}]


def test_every_leg_of_a_ramp_has_weights_of_its_own():
    """From 100:0:0 to 20:80:0 in two steps: b has 20, then 60, then 80 % and always counts as half."""
    plain = recipe_to_plain(weighted(None, {"a": "100%", "g": "0%"}))
    second = {"quotas": {"a": "20%", "b": "80%", "c": "0%"}, "objective": {"a": "50%", "b": "50%", "c": "0%"}}
    plain["stages"]["second"] = {
        **plain["stages"]["first"],
        **second,
        "quota_ramp": {"over": 100, "steps": 2},
    }
    recipe = recipe_from_plain(plain, source="r")
    assert [leg["b"] for leg in texts(recipe, "second")] == ["5/2", "5/6", "5/8"]
    assert [leg["a"] for leg in texts(recipe, "second")] == ["5/8", "5/4", "5/2"]
    assert recipe.loss_weights("first") is None, "the first stage has no objective"


def test_a_pool_that_does_not_count_has_weight_0_and_one_that_is_not_sampled_too():
    recipe = weighted({"a": "100%", "b": "0%", "c": "0%"}, {"a": "80%", "b": "20%", "c": "0%"})
    assert texts(recipe) == [{"a": "5/4", "b": "0", "c": "0"}]


def test_half_and_half_counted_9_to_1_is_worth_25_of_41_labels():
    half, tenth = Fraction(1, 2), Fraction(1, 10)
    assert effective_share({"a": 1 - tenth, "b": tenth}, {"a": half, "b": half}) == 1 / (
        2 * (Fraction(81, 100) + Fraction(1, 100))
    )


parts = st.lists(st.integers(0, 50), min_size=3, max_size=3).filter(any)


@given(counted=parts, sampled=parts)
def test_the_sampled_mean_of_the_weights_is_exactly_one(counted, sampled):
    sampled = [max(part, bool(want)) for part, want in zip(sampled, counted, strict=True)]
    objective, shares = (from_weights(dict(zip("abc", each, strict=True))) for each in (counted, sampled))
    weights = loss_weights(objective, shares)
    assert {name: weights[name] * shares[name] for name in "abc"} == objective
    assert 0 < effective_share(objective, shares) <= 1
    assert (effective_share(objective, shares) == 1) == (objective == shares)


def test_weights_of_what_is_not_sampled_are_refused():
    with pytest.raises(ValueError, match=r"\['b'\]"):
        loss_weights({"a": Fraction(1, 2), "b": Fraction(1, 2)}, {"a": Fraction(1), "b": Fraction(0)})


# --- as it is written


def test_without_an_objective_nothing_is_stored_and_null_is_none(small):
    assert "objective" not in recipe_to_plain(small())["stages"]["short"]
    null = small({OBJECTIVE: None})
    assert null == small() and recipe_to_plain(null) == recipe_to_plain(small())
    assert fingerprint(null) == fingerprint(small())


def test_it_is_stored_exactly_and_is_part_of_the_identity(small):
    recipe = small({OBJECTIVE: {"web": "rest", "code": "33.3%"}})
    assert recipe_to_plain(recipe)["stages"]["short"]["objective"] == {"web": "66.7%", "code": "33.3%"}
    assert recipe_from_plain(recipe_to_plain(recipe), source="r") == recipe
    assert fingerprint(recipe) != fingerprint(small())


def test_every_stage_and_like_hand_it_on_and_null_ends_it(small):
    recipe = small(
        {
            "every_stage": {"objective": {"web": "50%", "code": "50%"}},
            "stages.long": {"like": "short", "objective": {"web": "70%", "code": "30%"}},
            "stages.end": {"like": "long", "objective": None},
        }
    )
    assert [recipe.objective(name) and str(recipe.objective(name)["code"]) for name in recipe.stages] == [
        "1/2",
        "3/10",
        None,
    ]


# change of the small recipe (web 61.6 %, code 38.4 %) · place · words of given · words of the fix
FAULTS = [
    ({OBJECTIVE: {"web": "90%"}}, OBJECTIVE, "sum 90%", "raise a share by 10%"),
    ({OBJECTIVE: {"web": "90%", "code": "20%"}}, OBJECTIVE, "sum 110%", "lower a share by 10%"),
    ({OBJECTIVE: {"web": "100%"}}, f"{OBJECTIVE}.code", "nothing", "write code: 0% if its labels do not count"),
    ({OBJECTIVE: {"web": "rest", "code": "rest"}}, OBJECTIVE, "rest", "give all but one"),
    ({OBJECTIVE: {"web": "rest", "cod": "10%"}}, f"{OBJECTIVE}.cod", "10%", "did you mean 'code'?"),
    ({OBJECTIVE: {"web": 90, "code": 10}}, f"{OBJECTIVE}.web", "90", "write 90%"),
    ({OBJECTIVE: "none"}, OBJECTIVE, "none", "or null for none"),
    ({OBJECTIVE: {"g": "50%", "web": "50%", "code": "0%"}, "groups.g": ["web"]}, f"{OBJECTIVE}.web", "g", "remove web or g"),
    ({"stages.short.objectiv": {"web": "rest"}}, "stages.short.objectiv", "web", "did you mean 'objective'?"),
    ({OBJECTIVE: {"web": "90%", "code": "10%"}, "stages.short.quotas": {"web": "100%", "code": "0%"}}, f"{OBJECTIVE}.code", "code in the loss, and not sampled", "give code a share under quotas, or write code: 0% under objective"),
    ({OBJECTIVE: {"web": "90%", "g": "10%"}, "groups.g": {"pools": ["code"], "within": {"shares": {"code": "100%"}}}, "stages.short.quotas": {"web": "100%", "code": "0%"}}, f"{OBJECTIVE}.g", "code in the loss through g, and not sampled", "state the pools of g apart, code: 0%"),
    ({OBJECTIVE: {"web": "90%", "code": "10%"}, "stages.short.quotas": None, "stages.short.weights": {"web": 1, "code": 0}}, f"{OBJECTIVE}.code", "not sampled", "give code a share under weights"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "place", "given", "fix"), FAULTS)
def test_what_is_wrong_with_an_objective(problems, changes, place, given, fix):
    found = {problem.where: problem for problem in problems(changes)}
    assert place in found, list(found)
    assert given in str(found[place].given) and fix in found[place].fix


def test_a_pool_without_stock_in_a_natural_group_is_found_when_stocks_are_known():
    recipe = weighted({"a": "50%", "b": "25%", "c": "25%"}, {"a": "50%", "g": "50%"}, within="natural")
    settle(recipe, {}, {})
    with pytest.raises(RecipeError) as caught:
        settle(recipe, {"c": 0}, {})
    (problem,) = caught.value.problems
    assert (problem.where, problem.given) == ("stages.first.objective.c", "c in the loss, and not sampled")


# --- amendments


BEFORE = weighted({"a": "70%", "b": "20%", "c": "10%"}, {"a": "50%", "b": "30%", "c": "20%"})


def objective(recipe):
    return {name: str(part * 100) for name, part in recipe.objective("first").items()}


@pytest.mark.parametrize(
    ("overrides", "from_pool", "after"),
    [
        (["stages.first.objective.b=25%"], "a", {"a": "65", "b": "25", "c": "10"}),
        (["stages.first.objective.b=25%", "stages.first.objective.a=rest"], None, {"a": "65", "b": "25", "c": "10"}),
        (["stages.first.objective={a:60%,b:30%}"], None, {"a": "60", "b": "30", "c": "10"}),
        (["stages.first.objective.g=15%"], "a", {"a": "85", "b": "10", "c": "5"}),
        (["stages.first.objective.b=5%", "stages.first.quotas.b=40%"], "a", {"a": "85", "b": "5", "c": "10"}),
    ],
)  # fmt: skip
def test_what_is_named_changes_and_the_rest_stays(overrides, from_pool, after):
    new = amended(BEFORE, overrides, from_pool=from_pool)
    assert objective(new) == after
    is_same = new.shares("first") == BEFORE.shares("first")
    assert is_same == ("quotas" not in str(overrides))


def test_both_are_amended_at_once_each_from_the_same_pool():
    new = amended(BEFORE, ["stages.first.objective.b=5%", "stages.first.quotas.b=40%"], from_pool="a")
    assert difference(BEFORE, new) == [
        "stages.first.quotas.a: 50% → 40%",
        "stages.first.quotas.b: 30% → 40%",
        "stages.first.objective.a: 70% → 85%",
        "stages.first.objective.b: 20% → 5%",
    ]


def test_amended_quotas_change_the_weights_and_not_the_objective():
    new = amended(BEFORE, ["stages.first.quotas.b=40%"], from_pool="a")
    assert new.objective("first") == BEFORE.objective("first")
    assert texts(new) == [{"a": "7/4", "b": "1/2", "c": "1/2"}]


@pytest.mark.parametrize("override", ["stages.first.objective=null", "~stages.first.objective"])
def test_it_is_taken_away(override):
    assert amended(BEFORE, [override]).loss_weights("first") is None


def test_it_is_given_to_a_stage_that_had_none_whole():
    bare = weighted(None, {"a": "50%", "b": "30%", "c": "20%"})
    assert objective(amended(bare, ["stages.first.objective={a:rest,g:20%}"])) == {
        "a": "80",
        "b": "15",
        "c": "5",
    }
    with pytest.raises(RecipeError, match=r"objective\.c"):
        amended(bare, ["stages.first.objective={a:rest,b:20%}"])


def test_a_new_pool_counts_nothing_until_it_is_said():
    new = amended(BEFORE, ["+pools.d={stock: 9}"])
    assert objective(new) == {"a": "70", "b": "20", "c": "10", "d": "0"}
    new = amended(
        BEFORE,
        ["+pools.d={stock: 9}", "stages.first.quotas.d=5%", "stages.first.objective.d=1%"],
        from_pool="a",
    )
    assert texts(new)[0]["d"] == "1/5"


@pytest.mark.parametrize(
    ("overrides", "from_pool", "where", "words"),
    [
        (["stages.first.objective.b=25%"], None, "stages.first.objective", "take 5% from one pool"),
        (["stages.first.objective.x=25%"], "a", "stages.first.objective.x", "a pool or group"),
        (["stages.first.objective.b=25%"], "x", "--from", "a pool of the recipe"),
        (["~stages.first.objective.b"], None, "stages.first.objective.b", "write 0%: stages.first.objective.b=0%"),
        (["stages.first.objective.g=10%", "stages.first.objective.b=1%"], "a", "stages.first.objective.b", "under one name"),
        (["stages.first.quotas.b=0%"], "a", "stages.first.objective.b", "give b a share"),
        (["stages.first.objective.a=71%", "stages.first.objective.g=29.000001%"], None, "stages.first.objective", "sum"),
        (["stages.first.objective.g=10%"], "a", "stages.first.objective.b", "percent text"),
    ],
)  # fmt: skip
def test_what_an_amendment_of_it_cannot_do(overrides, from_pool, where, words):
    with pytest.raises(RecipeError) as caught:
        amended(BEFORE, overrides, from_pool=from_pool)
    told = {
        problem.where: f"{problem.given} {problem.expected} {problem.fix}"
        for problem in caught.value.problems
    }
    assert where in told and words in told[where], told


def test_the_shipped_plan_takes_one():
    plan = settle(
        load_recipe(
            "ten_trillion",
            ["stages.base.objective={english:rest,rewrites:7.9%,chinese:14%,code_all:10%,maths:1.5%}"],
        ),
        {},
        {},
    )
    assert plan.loss_weights("base")[0]["code"] == Fraction(2, 3)
    assert plan.loss_weights("base")[0]["maths"] == 1
