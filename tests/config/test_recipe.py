# ruff: noqa: E501  (tables: a row is a line)
"""What the rest of the program reads from a recipe."""

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from recipe.config import Leg, recipe_from_plain, recipe_to_plain

QUOTAS = "stages.short.quotas"


def test_shares_are_exact_in_the_order_of_the_pools(small):
    shares = small({QUOTAS: {"code": "38.4%", "web": "rest"}}).shares("short")
    assert shares == {"web": Fraction(77, 125), "code": Fraction(48, 125)}
    assert list(shares) == ["web", "code"]


@pytest.mark.parametrize(
    "changes",
    [
        {QUOTAS: {"web": "61.6%", "code": "38.4%"}},
        {QUOTAS: {"web": "61.60 %", "code": "rest"}},
        {QUOTAS: None, "stages.short.weights": {"web": 77, "code": 48}},
        {QUOTAS: None, "stages.short.weights": {"web": 0.77, "code": "0.48"}},
        {QUOTAS: None, "stages.short.weights": {"web": "77/125", "code": "48/125"}},
        {QUOTAS: None, "stages.short.quotas_tokens": {"web": "616k", "code": "384k"}},
        {QUOTAS: None, "stages.short.tokens": None, "stages.short.quotas_tokens": {"web": "616k", "code": "384k"}},
        {QUOTAS: {"both": "100%"}, "groups.both": {"pools": ["web", "code"], "within": {"shares": {"web": 77, "code": 48}}}},
        {QUOTAS: {"both": "100%"}, "groups.both": {"pools": ["web", "code"], "within": {"web": "61.6%", "code": "rest"}}},
    ],
)  # fmt: skip
def test_every_form_of_shares_means_the_same(small, changes):
    recipe = small(changes)
    assert recipe.shares("short") == {"web": Fraction(77, 125), "code": Fraction(48, 125)}
    assert recipe.stages["short"].tokens == 1_000_000


def test_M06_ten_pools_of_a_tenth_are_accepted():
    pools = {f"p{number}": {"path": "x"} for number in range(10)}
    for form in ({"quotas": dict.fromkeys(pools, "10%")}, {"weights": dict.fromkeys(pools, 0.1)}):
        stage = {"tokens": 1000, "context": 10, "batch": {"sequences": 1}, **form}
        recipe = recipe_from_plain({"seed": 1, "pools": pools, "stages": {"s": stage}}, source="r.yaml")
        assert set(recipe.shares("s").values()) == {Fraction(1, 10)}


def test_M06_thirds_that_do_not_sum_are_refused_not_normalised(problems):
    found = problems({QUOTAS: {"web": "33.3%", "code": "66.6%"}})
    assert "sum 99.9%" in str(found[0].given)


def test_M07_one_percent_sign_is_all_of_a_pool(small):
    recipe = small({"pools": {"web": {"path": "x"}}, QUOTAS: {"web": "100%"}})
    assert recipe.shares("short") == {"web": 1}


def test_a_group_without_explicit_shares_needs_settling(small):
    recipe = small({"groups.both": ["web", "code"], QUOTAS: {"both": "100%"}})
    assert not recipe.is_settled
    with pytest.raises(ValueError, match="settle"):
        recipe.shares("short")


@given(st.lists(st.integers(1, 50), min_size=1, max_size=6))
def test_shares_sum_to_one(weights):
    pools = {f"p{number}": {"path": "x"} for number in range(len(weights))}
    stage = {
        "tokens": 9,
        "context": 3,
        "batch": {"sequences": 1},
        "weights": dict(zip(pools, weights, strict=True)),
    }
    recipe = recipe_from_plain({"seed": 1, "pools": pools, "stages": {"s": stage}}, source="r.yaml")
    assert sum(recipe.shares("s").values()) == 1


# --- legs

TO_CODE = {"like": "short", "quotas": {"web": "21.6%", "code": "78.4%"}}


def test_without_a_ramp_a_stage_is_one_leg(small):
    recipe = small()
    assert recipe.legs("short") == (Leg(Fraction(0), recipe.shares("short")),)


def test_a_ramp_goes_over_from_the_shares_of_the_stage_before(small):
    """From 38.4 % to 78.4 % of code in four steps: the middles of 38.4, 48.4, 58.4, 68.4, 78.4."""
    recipe = small({"stages.long": {**TO_CODE, "quota_ramp": {"over": 1001, "steps": 4}}})
    legs = recipe.legs("long")
    assert [leg.shares["code"] * 1000 for leg in legs] == [434, 534, 634, 734, 784]
    assert [leg.start for leg in legs] == [Fraction(1001 * step, 4) for step in range(5)]
    assert legs[-1].shares == recipe.shares("long")
    assert [list(leg.shares) for leg in legs] == [["web", "code"]] * 5


def test_a_ramp_starts_from_the_last_shares_of_a_stage_with_a_ramp(small):
    ramp = {"over": 1000, "steps": 2}
    stages = {"stages.a": {**TO_CODE, "quota_ramp": ramp}, "stages.b": {"like": "short", "quota_ramp": ramp}}
    shares = small(stages).legs("b")[0].shares
    assert shares["code"] == Fraction(784 - 100, 1000)


def test_a_ramp_belongs_to_one_stage(small):
    ramp = {"over": 1000, "steps": 2}
    recipe = small({"stages.a": {**TO_CODE, "quota_ramp": ramp}, "stages.b": {"like": "a"}})
    assert len(recipe.legs("a")) == 3
    assert recipe.stages["b"].quota_ramp is None


def test_a_ramp_of_groups_is_of_their_pools(small):
    both = {"pools": ["web", "code"], "within": {"shares": {"web": 1, "code": 3}}}
    ramp = {"over": 10, "steps": 1}
    stage = {"tokens": 9000, "context": 512, "batch": {"sequences": 8}}
    to_both = {**stage, "quotas": {"both": "100%"}, "quota_ramp": ramp}
    legs = small({"groups.both": both, "stages.long": to_both}).legs("long")
    assert [leg.shares["web"] for leg in legs] == [Fraction(616 + 250, 2000), Fraction(1, 4)]


@given(st.integers(1, 10**6), st.integers(1, 50), st.lists(st.integers(0, 9), min_size=4, max_size=4))
def test_the_mean_of_a_ramp_is_the_middle_and_every_leg_is_whole(over, steps, weights):
    a, b, c, d = weights
    pools = {"web": {"path": "w"}, "code": {"path": "c"}}
    first = {"tokens": over, "context": 3, "batch": {"sequences": 1}, "weights": {"web": a + 1, "code": b}}
    second = {"like": "s", "weights": {"web": c, "code": d + 1}, "quota_ramp": {"over": over, "steps": steps}}
    recipe = recipe_from_plain({"seed": 1, "pools": pools, "stages": {"s": first, "t": second}}, source="r")
    *ramp, last = recipe.legs("t")
    assert all(sum(leg.shares.values()) == 1 and min(leg.shares.values()) >= 0 for leg in (*ramp, last))
    middle = (recipe.shares("s")["web"] + recipe.shares("t")["web"]) / 2
    assert sum(leg.shares["web"] for leg in ramp) / steps == middle
    assert {b.start - a.start for a, b in zip(ramp, [*ramp[1:], last], strict=True)} == {
        Fraction(over, steps)
    }


# --- rules


def test_a_rule_has_every_default_filled_in(small):
    rule = small().rule("short", "web")
    assert (rule.context, rule.window, rule.stride, rule.min_tail) == (512, 512, 512, 128)
    assert (rule.tail, rule.oversize, rule.overlap_labels) == ("keep", "split", False)
    assert (rule.method, rule.attention, rule.positions, rule.cross_labels) == (
        "best_fit",
        "piece",
        "restart",
        False,
    )
    assert rule.labels == "shifted"


def test_a_copy_of_a_recipe_that_changes_it_has_rules_of_its_own(small):
    recipe = small()
    before = recipe.rule("short", "web")
    stages = {name: stage.model_copy(update={"context": 64}) for name, stage in recipe.stages.items()}
    for deep in (False, True):
        changed = recipe.model_copy(update={"stages": stages}, deep=deep)
        assert changed.rule("short", "web").context == 64
    assert recipe.rule("short", "web") == before
    assert recipe == small()


def test_a_pool_slices_in_its_own_way_over_the_stage(small):
    recipe = small(
        {"stages.short.slicing": {"tail": "drop"}, "pools.code.slicing": {"window": 100, "oversize": "drop"}}
    )
    assert recipe.rule("short", "web").window == 512
    rule = recipe.rule("short", "code")
    assert (rule.window, rule.stride, rule.min_tail, rule.tail, rule.oversize) == (
        100,
        100,
        25,
        "drop",
        "drop",
    )


def test_a_pool_without_a_share_may_slice_as_it_likes(small):
    small({"pools.code.slicing": {"window": 9999}, QUOTAS: {"web": "100%", "code": "0%"}})


def test_packing_by_name(small):
    assert small({"stages.short.packing": "none"}).stages["short"].packing.method == "none"


@pytest.mark.parametrize(
    ("batch", "ramp"),
    [
        ({"sequences": 8}, ((0, 8),)),
        ({"tokens": "4Ki"}, ((0, 8),)),
        ({"ramp": {"0": 2, "100k": 4}}, ((0, 2), (100_000, 4))),
        ({"ramp": {0: 2, 100_000: 4}}, ((0, 2), (100_000, 4))),
    ],
)
def test_a_batch_is_sequences_by_position(small, batch, ramp):
    assert small({"stages.short.batch": batch}).stages["short"].ramp == ramp


# --- pools


def test_pool_policies_fall_back_to_the_recipe(small):
    recipe = small({"pools.web": {"path": "x", "max_epochs": 2, "on_exhausted": "stop"}, "max_epochs": 3})
    assert (recipe.epochs_allowed("web"), recipe.epochs_allowed("code")) == (2, 3)
    assert (recipe.exhaustion("web"), recipe.exhaustion("code")) == ("stop", "repeat")


def test_pool_paths_start_at_the_root(small):
    assert small().pool_path("web") == Path("pools/web")
    assert small({"pools_root": "/data"}).pool_path("web") == Path("/data/pools/web")
    assert small({"pools_root": "/data", "pools.web.path": "/else"}).pool_path("web") == Path("/else")


def test_a_pool_to_plan_with_has_no_path(small):
    with pytest.raises(ValueError, match="has no path"):
        small({"pools.web": {"stock": "3080B"}}).pool_path("web")


def test_S03_large_seeds_and_seed_zero_are_seeds(small):
    for seed in (0, 4294967290, 2**63 - 1):
        assert small({"seed": seed}).seed == seed


def test_F1_a_context_up_to_the_position_table_is_fine(small):
    assert small({"model": {"max_positions": 512}}).model.max_positions == 512


def test_a_recipe_cannot_be_changed(small):
    with pytest.raises(ValidationError):
        small().seed = 2


# --- where a run comes from, and what it stands for


def test_E5_a_start_is_one_record_with_the_tokens_before_it_apart(small):
    start = {"weights": "hub/base", "revision": "695e0514", "tokenizer": "hub/base", "prior": "15T"}
    recipe = small({"start": start})
    assert (recipe.start.weights, recipe.start.revision, recipe.start.tokenizer) == (
        "hub/base",
        "695e0514",
        "hub/base",
    )
    assert recipe.start.prior_tokens == 15 * 10**12
    assert recipe.spans["short"].start == 0


def test_E5_tokens_before_the_start_may_be_told_by_area(small):
    start = small({"start": {"weights": "w", "prior": {"code": "2T", "web": "1.5T"}}}).start
    assert start.prior == {"code": 2 * 10**12, "web": 1500 * 10**9}
    assert start.prior_tokens == 3500 * 10**9
    assert small({"start": {"weights": "w"}}).start.prior_tokens == 0


def test_a_renamed_pool_keeps_the_name_of_its_order(small):
    recipe = small({"pools.web.renamed_from": "english"})
    assert (recipe.order_name("web"), recipe.order_name("code")) == ("english", "code")


def test_a_proxy_reads_the_part_of_the_pools_that_it_is_of_the_full_run(small):
    assert small({"simulate_budget": "10T"}).simulated_fraction == Fraction(1, 10**7)
    assert small({"simulate_budget": "1M"}).simulated_fraction == 1
    assert small().simulated_fraction is None


def test_a_policy_has_its_parameters_beside_its_name(small):
    policy = small({"policy": {"_target_": "a.B", "every": "1M", "rate": 0.1, "params": [1, None]}}).policy
    assert (policy.target, policy.every) == ("a.B", 10**6)
    assert policy.params == {"rate": "0.1", "params": [1, None]}


def test_settings_of_the_trainer_stay_as_they_are_written(small):
    trainer = {
        "lr": "3e-4",
        "betas": ["0.9", 0.95],
        "clip": None,
        "flash": True,
        "layers": {"no": 4, "4": {}},
    }
    assert small({"trainer": trainer}).trainer == {**trainer, "betas": ["0.9", "0.95"]}


# --- plain form

CHANGES = [
    {},
    {"groups.g": ["web"]},
    {"groups.g": {"pools": ["web", "code"], "within": {"temperature": 0.3}}, QUOTAS: {"g": "100%"}},
    {"groups.g": {"pools": ["web", "code"], "within": {"web": 1, "code": "2/3"}}, QUOTAS: {"g": "100%"}},
    {QUOTAS: None, "stages.short.weights": {"web": "1/3", "code": 0.1}},
    {QUOTAS: None, "stages.short.weights": {"web": "1e-30", "code": f"1/{2**99}"}},
    {QUOTAS: None, "stages.short.quotas_tokens": {"web": "616k", "code": "384k"}},
    {"stages.short.batch": {"ramp": {"0": 4, "10k": 8}}},
    {"stages.short.batch": {"tokens": 4096}, "stages.short.tokens": None, "stages.short.until": "2M"},
    {"pools.web.slicing": {"window": 100}, "stages.short.packing": "none", "sink": "parquet", "tokenizer": "bytes"},
    {"pools.web": {"path": "x", "stock": "1B", "block_units": "auto", "eos": 0, "bos": 1}},
    {"pools.web": {"path": "x/*.npy", "eos": 0, "dtype": "uint16", "documents": "eos", "empty": "skip"}},
    {"pools.web": {"path": "x", "column": "input_ids", "boundaries": ".csv.gz"}},
    {"stages.long": {"like": "short", "context": 1024}, "curriculum": ["long", "short"]},
    {"stages.long": {"like": "short", "quota_ramp": {"over": "100k", "steps": 64}}},
    {"start": {"weights": "w", "prior": {"a": "1T", "no": 0}}, "pools.web.renamed_from": "old"},
    {"start": {"weights": "w", "prior": 5}, "trainer": {}, "simulate_budget": "1B"},
    {"trainer": {"lr": 3e-5, "clip": None, "betas": [0.9, [None, "1e5"]], "a": {"b": {"no": True}}}},
    {"policy": {"_target_": "a.B", "every": "1M", "params": 1, "rate": 0.1, "none": None}},
]  # fmt: skip


@pytest.mark.parametrize("changes", CHANGES)
def test_the_plain_form_reads_back_equal(small, changes):
    recipe = small(changes)
    plain = recipe_to_plain(recipe)
    assert recipe_from_plain(plain, source="plain") == recipe
    assert recipe_to_plain(recipe_from_plain(plain, source="plain")) == plain


@pytest.mark.parametrize("changes", CHANGES)
def test_the_plain_form_survives_json_and_yaml(small, changes):
    import json

    import yaml

    from recipe.config import parse_yaml

    plain = recipe_to_plain(small(changes))
    assert json.loads(json.dumps(plain)) == plain
    text = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)
    assert parse_yaml(text, "stored.yaml") == plain == yaml.safe_load(text)


def test_the_plain_form_keeps_the_order(small):
    pools = {name: {"path": name} for name in ("z", "a", "no", "1e5")}
    quotas = {"a": "1%", "z": "rest", "1e5": "2%", "no": "3%"}
    plain = recipe_to_plain(small({"pools": pools, QUOTAS: quotas}))
    assert list(plain["pools"]) == ["z", "a", "no", "1e5"]


SLICINGS = [
    {"align": "paragraph", "align_within": 9, "window": 40, "stride": 20},
    {"offset": "random", "density": {"head": 1, "middle": 0.5, "tail": "1/3"}},
    {"stride": {"head": 8, "tail": 16}, "specials": "window"},
    {"offset": 0, "density": 1, "align": "none", "specials": "document", "duplicates": "keep"},
    {"duplicates": "drop"},
    {"duplicates": "62.5%", "stride": 8},
]


@pytest.mark.parametrize("slicing", SLICINGS)
def test_slicing_survives_being_stored(small, slicing):
    made = small({"stages.short.slicing": slicing})
    again = recipe_from_plain(recipe_to_plain(made), source="stored")
    assert again == made
    assert again.rule("short", "web") == made.rule("short", "web")


def test_slicing_as_it_was_is_the_same_rule_whether_it_is_written_or_not(small):
    assert small({"stages.short.slicing": SLICINGS[3]}).rule("short", "web") == small().rule("short", "web")
    assert "align" not in str(recipe_to_plain(small()))


def test_an_aligned_rule_has_its_reach_and_regions_have_their_strides(small):
    rule = small({"stages.short.slicing": {"align": "word", "stride": {"head": 8}}}).rule("short", "web")
    assert (rule.align_within, rule.strides, rule.stride) == (7, (8, 512, 512), 512)
    wrapped = small({"stages.short.slicing": {"specials": "window"}}).rule("short", "web")
    assert (wrapped.window, wrapped.stride) == (510, 510)
