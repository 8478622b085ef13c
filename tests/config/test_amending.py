# ruff: noqa: E501  (tables: a row is a line)
"""Amendments: what is named changes exactly, the rest stays, and what a run cannot change is refused."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.config import (
    amended,
    difference,
    load_recipe,
    recipe_from_plain,
    recipe_to_plain,
    settle,
    with_shares,
)
from recipe.errors import RecipeError

PLAN = settle(load_recipe("ten_trillion"), {}, {})
"""61.6 + 7.9 + 14 + 15 + 1.5 %; the 15 % of code are 5 + 9.9 + 0.1 % of three pools. Stages base, mid, long."""

QUOTAS = "stages.base.quotas"
CODE = ("code_web", "code", "teacher")


def per_cent(recipe, stage="base"):
    return {name: share * 100 for name, share in recipe.shares(stage).items()}


def stated(shares, form="quotas", **stage):
    """A recipe with one stage; pools are those of the shares and a, b, c, and g is all of b and c."""
    pools = {name: {"path": name} for name in ("a", "b", "c")}
    one = {"tokens": 1000, "context": 10, "batch": {"sequences": 1}, "chunk": 100, form: shares, **stage}
    groups = {"g": {"pools": ["b", "c"], "within": {"shares": {"b": 3, "c": 1}}}}
    return recipe_from_plain({"seed": 1, "pools": pools, "groups": groups, "stages": {"s": one}}, source="r")


def problems(recipe, *overrides, **options):
    with pytest.raises(RecipeError) as caught:
        amended(recipe, overrides, **options)
    return {problem.where: problem for problem in caught.value.problems}


# --- quotas


def test_E1_a_group_is_raised_pro_rata_and_english_gives_five_points():
    new = amended(PLAN, [f"{QUOTAS}.code_all=20%"], stage="base", from_pool="english")
    before, after = per_cent(PLAN), per_cent(new)
    assert [after[name] for name in CODE] == [Fraction(20, 3), Fraction(132, 10), Fraction(2, 15)]
    assert after["english"] == Fraction("56.6")
    assert all(after[name] == before[name] for name in ("rewrites", "chinese", "maths"))
    assert difference(PLAN, new) == [f"{QUOTAS}.english: 61.6% → 56.6%", f"{QUOTAS}.code_all: 15% → 20%"]


def test_E1_or_the_five_points_go_to_one_named_pool():
    new = amended(PLAN, [f"{QUOTAS}.teacher=5.1%"], stage="base", from_pool="english")
    after = per_cent(new)
    assert [after[name] for name in CODE] == [5, Fraction("9.9"), Fraction("5.1")]
    assert after["english"] == Fraction("56.6")
    assert new.group_shares("base")["code_all"] == Fraction(1, 5)


def test_E1_pools_of_a_group_that_are_stated_apart_are_scaled_each():
    apart = amended(PLAN, [f"{QUOTAS}.teacher=0.2%"], stage="base", from_pool="code")
    assert "teacher" in apart.stages["base"].quotas
    new = amended(apart, [f"{QUOTAS}.code_all=20%"], stage="base", from_pool="english")
    assert [per_cent(new)[name] for name in CODE] == [
        Fraction(20, 3),
        Fraction("9.8") * 4 / 3,
        Fraction(4, 15),
    ]


def test_shares_without_a_finite_percent_are_stored_as_weights_and_amended_on():
    once = amended(stated({"a": "70%", "b": "20%", "c": "10%"}), ["stages.s.quotas.g=20%"], from_pool="a")
    assert once.stages["s"].shares_form == "weights"
    assert per_cent(once, "s") == {"a": 80, "b": Fraction(40, 3), "c": Fraction(20, 3)}
    again = amended(once, ["stages.s.quotas.g=30%"], from_pool="a")
    assert again.stages["s"].shares_form == "quotas"
    assert per_cent(again, "s") == {"a": 70, "b": 20, "c": 10}


def test_what_is_left_may_go_to_one_name_as_rest():
    new = amended(PLAN, [f"{QUOTAS}={{code_all: 20%, english: rest}}"], stage="base")
    assert new == amended(PLAN, [f"{QUOTAS}.code_all=20%"], stage="base", from_pool="english")
    left = amended(PLAN, [f"{QUOTAS}.english=50%", f"{QUOTAS}.code_all=rest"], stage="base")
    assert left.group_shares("base")["code_all"] == Fraction("0.266")


def test_the_pool_gets_what_others_give_up():
    new = amended(PLAN, [f"{QUOTAS}.english=51.6%", f"{QUOTAS}.maths=1%"], from_pool="teacher")
    assert per_cent(new)["teacher"] == Fraction("10.6")


def test_a_group_of_a_pool_that_gives_is_stated_apart():
    new = amended(PLAN, [f"{QUOTAS}.maths=2%"], from_pool="code_web")
    assert [per_cent(new)[name] for name in CODE] == [Fraction("4.5"), Fraction("9.9"), Fraction("0.1")]


def test_only_the_named_stages_change():
    new = amended(PLAN, ["stages.mid.quotas.code_all=20%"], stage="base", from_pool="english")
    assert new.shares("base") == PLAN.shares("base") and new.shares("long") == PLAN.shares("long")
    assert new.group_shares("mid")["code_all"] == Fraction(1, 5)


def test_a_pool_may_leave_and_come_back():
    gone = amended(PLAN, [f"{QUOTAS}.maths=0%"], from_pool="english")
    assert gone.shares("base")["maths"] == 0
    assert amended(gone, [f"{QUOTAS}.maths=1.5%"], from_pool="english").shares("base") == PLAN.shares("base")


def test_a_group_without_a_share_gets_it_by_its_own_shares():
    none = stated({"a": "100%", "g": "0%"})
    assert per_cent(amended(none, ["stages.s.quotas.g=4%"], from_pool="a"), "s") == {"a": 96, "b": 3, "c": 1}
    apart = stated({"a": "100%", "b": "0%", "c": "0%"})
    assert per_cent(amended(apart, ["stages.s.quotas.g=4%"], from_pool="a"), "s") == {"a": 96, "b": 3, "c": 1}


def test_a_ramp_goes_over_to_the_amended_shares():
    ramped = amended(PLAN, ["+stages.mid.quota_ramp={over: 200B, steps: 2}"])
    new = amended(ramped, ["stages.mid.quotas.code_all=20%"], stage="mid", from_pool="english")
    assert [leg.shares["english"] * 1000 for leg in new.legs("mid")] == [
        616 - Fraction(25, 2),
        616 - Fraction(75, 2),
        566,
    ]


# --- weights and tokens


def test_a_single_weight_changes_the_proportion():
    new = amended(stated({"a": 3, "g": 4}, "weights"), ["stages.s.weights.a=5"])
    assert per_cent(new, "s") == {"a": Fraction(500, 9), "b": Fraction(300, 9), "c": Fraction(100, 9)}
    assert recipe_to_plain(new)["stages"]["s"]["weights"] == {"a": 5, "g": 4}


def test_a_weight_of_a_pool_takes_its_group_apart():
    new = amended(stated({"a": 3, "g": 4}, "weights"), ["stages.s.weights.c=2"])
    assert recipe_to_plain(new)["stages"]["s"]["weights"] == {"a": 3, "b": 3, "c": 2}


def test_weights_may_take_the_difference_from_one_pool():
    new = amended(stated({"a": 3, "g": 4}, "weights"), ["stages.s.weights.g=5"], from_pool="a")
    assert recipe_to_plain(new)["stages"]["s"]["weights"] == {"a": 2, "g": 5}


def test_quotas_amend_the_shares_in_force_of_a_stage_with_weights():
    new = amended(stated({"a": 3, "g": 1}, "weights"), ["stages.s.quotas.g=50%"], from_pool="a")
    assert recipe_to_plain(new)["stages"]["s"]["quotas"] == {"a": "50%", "g": "50%"}


def test_weights_on_a_stage_with_quotas_state_its_shares_anew():
    new = amended(stated({"a": "50%", "g": "50%"}), ["stages.s.weights={a: 1, b: 1, c: 1}"])
    assert set(per_cent(new, "s").values()) == {Fraction(100, 3)}
    found = problems(stated({"a": "50%", "g": "50%"}), "stages.s.weights.a=1")
    assert set(found) == {"stages.s.weights.b", "stages.s.weights.c"}
    assert "write b: 0" in found["stages.s.weights.b"].fix


def test_amounts_are_new_totals_and_the_length_of_the_stage():
    tokens = stated({"a": 600, "g": 400}, "quotas_tokens")
    new = amended(tokens, ["stages.s.quotas_tokens.g=800"])
    assert (new.stages["s"].tokens, per_cent(new, "s")["b"]) == (1400, Fraction(600, 14))


def test_amounts_and_a_length_have_to_agree():
    tokens = stated({"a": 600, "g": 400}, "quotas_tokens")
    both = ["stages.s.quotas_tokens.g=800", "stages.s.tokens=1400"]
    assert amended(tokens, both) == amended(tokens, both[:1])
    assert "1500" in problems(tokens, both[0], "stages.s.tokens=1500")["stages.s.quotas_tokens"].expected
    assert "2000" in problems(tokens, "stages.s.tokens=2000")["stages.s.quotas_tokens"].expected


def test_amounts_with_a_difference_from_one_pool_keep_the_length():
    tokens = stated({"a": 600, "g": 400}, "quotas_tokens")
    new = amended(tokens, ["stages.s.quotas_tokens.c=200"], from_pool="a")
    assert recipe_to_plain(new)["stages"]["s"]["quotas_tokens"] == {"a": 500, "b": 300, "c": 200}
    assert new.stages["s"].tokens == 1000


def test_quotas_of_a_stage_with_amounts_keep_its_length():
    tokens = stated({"a": 600, "g": 400}, "quotas_tokens")
    new = amended(tokens, ["stages.s.quotas.a=50%", "stages.s.quotas.g=50%"])
    assert (new.stages["s"].shares_form, new.stages["s"].tokens) == ("quotas", 1000)


# --- pools and stages


NEW_POOL = "+pools.new={path: pools/new}"


def test_a_new_pool_stands_last_and_has_no_share_where_none_is_written():
    new = amended(PLAN, [NEW_POOL, f"{QUOTAS}.new=5%"], stage="base", from_pool="english")
    assert list(new.pools) == [*PLAN.pools, "new"]
    assert per_cent(new)["new"] == 5 and per_cent(new)["english"] == Fraction("56.6")
    assert [new.shares(name)["new"] for name in ("mid", "long")] == [0, 0]


def test_a_new_pool_has_no_share_in_finished_stages():
    new = amended(PLAN, [NEW_POOL, "stages.long.quotas.new=5%"], stage="long", from_pool="english")
    assert [new.shares(name)["new"] for name in PLAN.stages] == [0, 0, Fraction(1, 20)]
    assert {**new.shares("base")} == {**PLAN.shares("base"), "new": 0}


@pytest.mark.parametrize("form", ["weights", "quotas_tokens"])
def test_a_new_pool_without_a_share_changes_none_in_any_form(form):
    old = stated({"a": 600, "g": 400}, form)
    assert amended(old, [NEW_POOL]).shares("s") == {**old.shares("s"), "new": 0}


def test_a_new_pool_may_join_a_group():
    asked = [
        NEW_POOL,
        "groups.code_all.pools=[code_web, code, teacher, new]",
        "groups.code_all.within.shares.new=50",
    ]
    new = amended(PLAN, asked, stage="base")
    assert new.shares("base")["new"] == Fraction(15, 100) * Fraction(1, 4)


def test_later_stages_may_be_added_changed_and_removed():
    asked = ["+stages.extra={like: mid, tokens: 1T}", "stages.mid.tokens=2T", "~stages.long"]
    new = amended(PLAN, asked, stage="base")
    assert list(new.stages) == ["base", "mid", "extra"]
    assert (new.stages["mid"].tokens, new.stages["extra"].context) == (2 * 10**12, 8192)


def test_a_later_stage_may_be_written_anew():
    new = amended(
        PLAN,
        [
            "~stages.long",
            "+stages.long={like: base, tokens: 1T, weights: {english: 1, rewrites: 0, chinese: 0, code_all: 1, maths: 0}}",
        ],
        stage="base",
    )
    assert (new.stages["long"].context, new.shares("long")["english"]) == (4096, Fraction(1, 2))


def test_a_stage_may_be_changed_by_a_mapping():
    new = amended(
        PLAN, ["stages.mid={tokens: 2T, quotas: {code_all: 20%}}"], stage="base", from_pool="english"
    )
    assert (new.stages["mid"].tokens, new.shares("mid")["english"]) == (2 * 10**12, Fraction("0.566"))


# --- refused, with every problem


REFUSED = [
    # sums: never renormalised
    ([f"{QUOTAS}.code_all=20%"], None, QUOTAS, "sum 105%", "exactly 100%", "take 5% from one pool: --from english"),
    ([f"{QUOTAS}.code_all=10%"], None, QUOTAS, "sum 95%", "exactly 100%", "give 5% to one pool: --from english"),
    ([f"{QUOTAS}.english=20%"], None, QUOTAS, "sum 58.4%", "exactly 100%", "--from chinese"),
    ([f"{QUOTAS}.code_all=rest", f"{QUOTAS}.maths=rest"], None, QUOTAS, "code_all and maths", "rest at most once", "all but one"),
    ([f"{QUOTAS}.code_all=rest", f"{QUOTAS}.maths=90%"], None, f"{QUOTAS}.code_all", "173.5% without code_all", "at most 100%", "lower the other shares by 73.5%"),
    # the pool that gives
    ([f"{QUOTAS}.code_all=80%"], "english", f"{QUOTAS}.english", "61.6%, of which 65%", "at most 61.6%", "ask for 3.4% less"),
    ([f"{QUOTAS}.code_all=16.6%"], "maths", f"{QUOTAS}.maths", "1.5%, of which 1.6%", "at most 1.5%", "0.1% less"),
    ([f"{QUOTAS}.english=20%"], "english", f"{QUOTAS}.english", "english changed", "not asked for itself", "another pool"),
    ([f"{QUOTAS}.code_all=20%"], "code", f"{QUOTAS}.code", "code_all changed, with --from code, which is in it", "not asked for itself", "a pool outside of code_all: english,"),
    ([f"{QUOTAS}.code_all=15%"], "english", QUOTAS, "the shares in force", "a changed share", "leave --from out"),
    ([f"{QUOTAS}.code_all=rest"], "english", QUOTAS, "a rest", "one place", "leave --from out"),
    (["stages.base.weights={english: 1, maths: 0}"], "english", "stages.base.weights.english", "english changed", "not asked for itself", "another pool"),
    (["stages.base.weights={english: 1, rewrites: 0, chinese: 0, code_all: 1}"], "maths", "stages.base.weights", "stated whole", "a changed share", "leave --from out"),
    ([f"{QUOTAS}.code_all=20%"], "englsh", "--from", "englsh", "a pool of the recipe", "did you mean 'english'?"),
    ([f"{QUOTAS}.english=50%"], "code_all", "--from", "code_all", "not a group", "one of code_web, code, teacher"),
    (["stages.mid.tokens=2T"], "english", "--from", "english", "a changed share", "leave it out"),
    ([], "english", "--from", "english", "a changed share", "leave it out"),
    # names and values of shares
    ([f"{QUOTAS}.englsh=50%"], "maths", f"{QUOTAS}.englsh", "englsh", "a pool or group", "did you mean 'english'?"),
    ([f"{QUOTAS}.new=5%"], "english", f"{QUOTAS}.new", "new", "a pool or group", "+pools.new={path: FOLDER}"),
    ([f"{QUOTAS}.code_all=20%", f"{QUOTAS}.code=11%"], "english", f"{QUOTAS}.code", "code in code_all and in code", "under one name", "each of their pools"),
    ([f"{QUOTAS}.code_all=20"], "english", f"{QUOTAS}.code_all", "20", "percent text", "write 20%"),
    ([f"{QUOTAS}.code_all.x=20%"], "english", f"{QUOTAS}.code_all", "20%", "percent text", "percent sign"),
    ([f"{QUOTAS}=20%"], None, QUOTAS, "20%", "a mapping", "quotas: {"),
    ([f"{QUOTAS}.maths=1%", "stages.base.weights.code=3"], None, "stages.base.weights", "quotas and weights together", "one form", "keep one"),
    ([f"~{QUOTAS}.maths"], None, f"{QUOTAS}.maths", "~", "a share for every pool", "write 0%: stages.base.quotas.maths=0%"),
    ([f"~{QUOTAS}"], None, QUOTAS, "~", "a share for every pool", "quotas.POOL=0%"),
    ([f"+{QUOTAS}.maths=1%"], "english", f"{QUOTAS}.maths", "+", "it is 1.5%", "to replace it"),
    # pools
    (["~pools.maths"], None, "pools.maths", "~pools.maths", "every pool of the run", "write 0%: stages.base.quotas.maths=0%"),
    (["~pools"], None, "pools", "~pools", "every pool of the run", "write 0%"),
    # what is behind, in stage mid
    (["stages.base.tokens=9T"], None, "stages.base.tokens", "stages.base.tokens=9T", "not finished: mid, long", "branch instead"),
    ([f"{QUOTAS}.code_all=20%"], None, f"{QUOTAS}.code_all", "code_all=20%", "not finished: mid, long", "branch instead"),
    (["stages={base: {tokens: 9T}}"], None, "stages.base", "tokens: 9T", "not finished: mid, long", "branch instead"),
    (["~stages.base"], None, "stages.base", "~stages.base", "has not begun: long", "branch instead"),
    (["~stages.mid"], None, "stages.mid", "~stages.mid", "has not begun: long", "branch instead"),
    (["~stages"], None, "stages", "~stages", "has not begun: long", "branch instead"),
    (["~stages.base.slicing"], None, "stages.base.slicing", "~stages.base.slicing", "has not begun: long", "branch instead"),
    # what would have no effect
    (["every_stage.chunk=20B"], None, "every_stage.chunk", "every_stage", "a key of one stage", "stages.NAME.KEY"),
    (["stages.mid.like=base"], None, "stages.mid.like", "like=base", "a value of its own", "+stages.NAME={like: base}"),
    (["stages.mid={like: base}"], None, "stages.mid.like", "like: base", "a value of its own", "+stages.NAME={like: base}"),
    (["pools.maths.stock=${pools.code.stock}"], None, "pools.maths.stock", "${", "a value", "write the value itself"),
    (["tokenizer/x=bytes"], None, "tokenizer/x", "tokenizer/x", "one of", "did you mean"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("overrides", "from_pool", "where", "shown", "expected", "fix"),
    REFUSED,
    ids=[f"{row[2]}-{number}" for number, row in enumerate(REFUSED)],
)
def test_what_cannot_be_is_refused_with_the_way_out(overrides, from_pool, where, shown, expected, fix):
    stage = "mid" if "not finished" in expected or "not begun" in expected else "base"
    found = problems(PLAN, *overrides, stage=stage, from_pool=from_pool)
    assert set(found) == {where}
    assert shown in str(found[where].given) and expected in found[where].expected and fix in found[where].fix


def test_every_problem_is_told_at_once():
    found = problems(
        PLAN,
        f"{QUOTAS}.code_all=20%",
        "stages.mid.quotas.englsh=20%",
        "stages.mid.tokens=10G",
        "stages.long.quotas={maths: 2, code_all: 20%, code: 5%}",
        "~pools.maths",
        "sed=4",
        "+pools.new={pat: x}",
        "groups.code_all.within=naturl",
        "seed=",
        stage="mid",
        from_pool="chinse",
    )
    assert set(found) == {
        f"{QUOTAS}.code_all",
        "stages.mid.quotas.englsh",
        "stages.long.quotas.maths",
        "stages.mid.tokens",
        "pools.maths",
        "sed",
        "pools.new.pat",
        "pools.new.path",
        "groups.code_all.within",
        "seed",
        "--from",
    }


def test_faults_of_two_stages_and_of_one_twice_are_told_together():
    found = problems(
        PLAN,
        f"{QUOTAS}.code_all=80%",
        "stages.mid.quotas.maths=70%",
        "stages.long.quotas={maths: 2, code_all: 20%, code: 5%}",
        stage="base",
        from_pool="english",
    )
    expected = {
        f"{QUOTAS}.english",
        "stages.mid.quotas.english",
        "stages.long.quotas.maths",
        "stages.long.quotas.code",
    }
    assert set(found) == expected


def test_a_stage_that_is_not_there_is_the_callers_fault():
    with pytest.raises(ValueError, match="no stage"):
        amended(PLAN, [], stage="bsae")


# --- overrides are read as elsewhere


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e9", 10**9), ("1_000_000", 10**6), ("1.5e9", 1500 * 10**6), ("'1e9'", 10**9), ("2T", 2 * 10**12)],
)
def test_G01_amounts_are_exact(text, value):
    asked = [f"stages.long.tokens={text}", "stages.long.chunk=200k", "stages.long.batch={sequences: 1}"]
    assert amended(PLAN, asked, stage="base").stages["long"].tokens == value


def test_G01_what_is_no_whole_number_is_refused():
    assert "whole number" in problems(PLAN, "stages.long.tokens=1.5")["stages.long.tokens"].expected


@pytest.mark.parametrize("name", ["no", "1E234", "695e0514", "2024_01"])
def test_G01_G03_names_keep_their_text(name):
    new = amended(PLAN, [f"+pools.{name}={{path: {name}}}", f"{QUOTAS}.{name}=1%"], from_pool="english")
    assert new.pools[name].path == name
    assert new.shares("base")[name] == Fraction(1, 100)


def test_G06_mappings_merge_and_lists_are_replaced():
    new = amended(
        PLAN, [f"{QUOTAS}={{code_all: 20%}}", "stages.mid.batch={sequences: 512}"], from_pool="english"
    )
    assert len(new.stages["base"].parts) == 5
    assert new.stages["mid"].ramp == ((0, 512),)
    three = ["+groups.some=[code, maths]", "groups.some=[maths]"]
    assert amended(PLAN, three).groups["some"].pools == ("maths",)


@pytest.mark.parametrize(
    ("override", "where", "fix"),
    [
        ("+pools.maths.qouta=0.5", "pools.maths.qouta", "stages.NAME.quotas"),
        ("++stage.strde=2", "stage", "did you mean 'stages'?"),
        ("pools.mahts.stock=5", "pools.mahts", "did you mean 'maths'?"),
        ("stages.bsae.tokens=5", "stages.bsae", "did you mean 'base'?"),
        ("stages.base.slicing.strde=5", "stages.base.slicing.strde", "did you mean 'stride'?"),
        ("trainer.lr=5", "trainer.lr", "+trainer.lr=5 adds a new one"),
        ("pools.x.stock=5", "pools.x", "name one of these; +pools.x.stock=5 adds a new one"),
    ],
)
def test_G07_a_misspelt_key_names_the_nearest_one(override, where, fix):
    found = problems(PLAN, override)
    assert list(found) == [where]
    assert fix in found[where].fix


# --- exact shares


def test_exact_shares_are_stated_by_pool_without_a_ramp():
    ramped = amended(PLAN, ["+stages.mid.quota_ramp={over: 200B, steps: 2}"])
    shares = dict.fromkeys(PLAN.pools, Fraction(1, 7))
    new = with_shares(ramped, "mid", shares)
    assert new.shares("mid") == shares and len(new.legs("mid")) == 1
    assert new.shares("base") == PLAN.shares("base")
    assert recipe_from_plain(recipe_to_plain(new), source="stored") == new


def test_exact_shares_are_of_every_pool_and_sum_to_one():
    for shares in ({"english": Fraction(1)}, dict.fromkeys(PLAN.pools, Fraction(1, 8)), {}):
        with pytest.raises(ValueError, match="sum to one"):
            with_shares(PLAN, "base", shares)


def test_shares_that_cannot_be_written_down_are_refused():
    odd = Fraction(1, 3**70)
    shares = {name: Fraction(0) for name in PLAN.pools} | {"english": 1 - odd, "maths": odd}
    with pytest.raises(RecipeError, match="ratio of two whole numbers"):
        with_shares(PLAN, "base", shares)


# --- laws

AMOUNTS = st.lists(st.integers(0, 40), min_size=4, max_size=4).filter(lambda w: w[0] and w[1] + w[2])


@given(AMOUNTS, st.integers(1, 100), st.booleans(), st.fractions(0, 1, max_denominator=1000))
def test_a_group_gets_what_is_asked_for_pro_rata_and_one_pool_the_difference(weights, scale, by_name, part):
    d, a, b, c = weights
    pools = {name: {"path": name} for name in "abcd"}
    groups = {"g": {"pools": ["a", "b"], "within": {"shares": {"a": a, "b": b}}}}
    shares = {"g": (a + b) * scale, "c": c, "d": d} if by_name else {"a": a, "b": b, "c": c, "d": d}
    stage = {"tokens": 9, "context": 3, "batch": {"sequences": 1}, "chunk": 3, "weights": shares}
    old = recipe_from_plain({"seed": 1, "pools": pools, "groups": groups, "stages": {"s": stage}}, source="r")
    asked = Fraction(int(part * 1000), 1000)
    if asked - old.group_shares("s")["g"] > old.shares("s")["d"] or asked == old.group_shares("s")["g"]:
        return
    new = amended(old, [f"stages.s.quotas.g={float(asked * 100):g}%"], from_pool="d")
    before, after = old.shares("s"), new.shares("s")
    assert sum(after.values()) == 1 and new.group_shares("s")["g"] == asked
    assert after["c"] == before["c"]
    assert after["a"] * before["b"] == after["b"] * before["a"]
    assert recipe_from_plain(recipe_to_plain(new), source="stored") == new


OVERRIDES = st.one_of(
    st.builds(
        "{}stages.{}.{}.{}={}".format,
        st.sampled_from(["", "+"]),
        st.sampled_from(["base", "mid", "long", "nope"]),
        st.sampled_from(["quotas", "weights", "quotas_tokens"]),
        st.sampled_from(["english", "code_all", "code", "maths", "new", "nobody"]),
        st.sampled_from(["0%", "5%", "20%", "61.6%", "rest", "5", "1/3", "x", "{a: 1}", "null", "{}"]),
    ),
    st.builds(
        "stages.{}.{}={}".format,
        st.sampled_from(["base", "mid", "extra"]),
        st.sampled_from(["tokens", "until", "context", "batch", "quotas", "quota_ramp", "like"]),
        st.sampled_from(["1T", "8192", "{sequences: 1}", "{}", "[1]", "x", "null"]),
    ),
    st.sampled_from(
        [
            "~stages.mid",
            "~stages",
            "+stages.extra={like: mid, tokens: 1T}",
            "stages={mid: {quotas: {maths: 5%}}}",
            "stages=5",
            "pools=5",
            "groups=5",
            "~groups",
            "+pools.new={path: x}",
            "~pools.new",
            "groups.code_all=[code]",
            "groups.code_all.within=natural",
            "+groups.two=[maths, new]",
            "curriculum=[long, mid, base]",
            "+stages.mid.quota_ramp={over: 1B, steps: 4}",
            "+trainer.a=1",
            "=x",
        ]
    ),
)


@settings(max_examples=300)
@given(
    st.lists(OVERRIDES, min_size=1, max_size=4),
    st.sampled_from([None, "base", "mid", "long"]),
    st.sampled_from([None, "english", "maths", "new", "code_all"]),
)
def test_whatever_is_asked_for_is_done_exactly_or_refused(overrides, stage, from_pool):
    try:
        new = amended(PLAN, overrides, stage=stage, from_pool=from_pool)
    except RecipeError as error:
        assert len(set(map(str, error.problems))) == len(error.problems)
        return
    assert list(new.pools)[: len(PLAN.pools)] == list(PLAN.pools)
    assert recipe_from_plain(recipe_to_plain(new), source="stored") == new
    for name in list(PLAN.stages)[: list(PLAN.stages).index(stage or "base")]:
        assert new.stages[name].tokens == PLAN.stages[name].tokens
