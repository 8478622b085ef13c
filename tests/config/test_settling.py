"""What becomes a number when pools are known."""

from fractions import Fraction

import pytest

from recipe.config import recipe_from_plain, recipe_to_plain, settle
from recipe.config.settling import block_units, group_budget
from recipe.errors import RecipeError

STOCK = {"web": 300, "code": 100}
UNITS = {"web": 3, "code": 1}


def grouped(small, within, **changes):
    return small(
        {
            "groups.g": {"pools": ["web", "code"], "within": within},
            "stages.short.quotas": {"g": "100%"},
            **changes,
        }
    )


@pytest.mark.parametrize(
    ("within", "web"),
    [
        ("natural", Fraction(3, 4)),
        ("even", Fraction(1, 2)),
        ({"temperature": 1}, Fraction(3, 4)),
        ({"temperature": 0}, Fraction(1, 2)),
        ({"temperature": 0.5}, Fraction(633974596, 10**9)),  # sqrt(3) / (sqrt(3) + 1)
        ("unimax", Fraction(3, 4)),  # the run asks for more than 4 readings of both
        ({"shares": {"web": "60%", "code": "rest"}}, Fraction(3, 5)),
    ],
)
def test_shares_inside_a_group_become_numbers(small, within, web):
    settled = settle(grouped(small, within), STOCK, UNITS)
    assert settled.is_settled
    assert settled.shares("short") == {"web": web, "code": 1 - web}


def test_unimax_goes_by_what_the_run_asks_of_the_group(small):
    recipe = grouped(small, "unimax", **{"stages.short.tokens": 1024, "stages.short.context": 64})
    assert settle(recipe, {"web": 3000, "code": 100}, UNITS).shares("short")["code"] == Fraction(400, 1024)


def test_shares_are_whole_billionths_that_sum_to_one(small):
    pools = {name: {"path": name} for name in "abc"}
    recipe = small({"pools": pools, "groups.g": list("abc"), "stages.short.quotas": {"g": "100%"}})
    shares = settle(recipe, dict.fromkeys("abc", 7), {}).shares("short")
    assert [share * 10**9 for share in shares.values()] == [333333334, 333333333, 333333333]


def test_explicit_weights_inside_a_group_stay_exact(small):
    recipe = grouped(small, {"shares": {"web": 1, "code": 2}})
    assert settle(recipe, STOCK, UNITS).shares("short")["web"] == Fraction(1, 3)


def test_declared_stocks_are_enough_to_settle(small):
    recipe = grouped(small, "natural", **{"pools.web": {"stock": "3B"}, "pools.code": {"stock": "1B"}})
    assert settle(recipe, {}, {}).shares("short")["web"] == Fraction(3, 4)


def test_a_measured_stock_goes_before_a_declared_one(small):
    recipe = grouped(small, "natural", **{"pools.web": {"path": "x", "stock": "3B"}})
    assert settle(recipe, {"web": 100, "code": 100}, {}).shares("short")["web"] == Fraction(1, 2)


@pytest.mark.parametrize(
    ("stock", "word"), [({}, "no stock for web, code"), ({"web": 0, "code": 0}, "without tokens")]
)
def test_a_group_without_anything_to_go_by_is_refused(small, stock, word):
    with pytest.raises(RecipeError) as caught:
        settle(grouped(small, "natural"), stock, {})
    assert caught.value.problems[0].where == "groups.g.within"
    assert word in str(caught.value.problems[0].given)


def test_an_empty_pool_beside_others_gets_nothing(small):
    assert settle(grouped(small, "natural"), {"web": 0, "code": 5}, {}).shares("short")["web"] == 0


@pytest.mark.parametrize(
    ("stock", "units", "size"),
    [
        (1_000_000, 1000, 32_768),
        (64 * 2**20, 1024, 1024),
        (64 * 2**20 + 1, 1024, 512),
        (64 * 2**20, 64, 64),
        (2**40, 1, 64),
        (0, 0, 32_768),
        (2**30, 2**20, 32_768),
    ],
)
def test_a_block_is_the_largest_power_of_two_within_64_mi_tokens(stock, units, size):
    assert block_units(stock, units) == size


def test_block_units_that_are_given_stay(small):
    settled = settle(small({"pools.web.block_units": 7}), STOCK, UNITS)
    assert (settled.pools["web"].block_units, settled.pools["code"].block_units) == (7, 32_768)


@pytest.mark.parametrize(
    ("changes", "chunk"),
    [
        ({}, 50_000),
        ({"stages.short.tokens": 1000}, 4096),
        ({"stages.short.tokens": "8T"}, 10**9),
        ({"stages.short.tokens": 1_000_001}, 50_001),
        ({"stages.short.tokens": None, "stages.short.steps": 1000}, 204_800),
        ({"stages.short.chunk": "100k"}, 100_000),
    ],
)
def test_a_chunk_is_a_twentieth_of_the_stage_at_most_a_billion_at_least_a_batch(small, changes, chunk):
    assert settle(small(changes), STOCK, UNITS).stages["short"].chunk == chunk


def test_settling_twice_changes_nothing_and_reads_back(small):
    settled = settle(grouped(small, {"temperature": "0.3"}), STOCK, UNITS)
    assert settle(settled, {"web": 1, "code": 9}, {"web": 5, "code": 5}) == settled
    assert recipe_from_plain(recipe_to_plain(settled), source="stored") == settled


def test_the_budget_of_a_group_counts_a_ramp_by_its_middle(small):
    """A million of nothing, then 100k from 0 % to 100 % and 900k of all."""
    stage = {"tokens": "1M", "context": 512, "batch": {"sequences": 8}}
    to_g = {"g": "100%", "maths": "0%"}
    recipe = small(
        {
            "pools.maths": {"path": "m"},
            "groups.g": ["web", "code"],
            "stages.short.quotas": {"web": "0%", "code": "0%", "maths": "100%"},
            "stages.long": {**stage, "quotas": to_g, "quota_ramp": {"over": "100k", "steps": 3}},
        }
    )
    assert group_budget(recipe, "g") == 950_000
