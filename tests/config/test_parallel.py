"""`parallel`, `deal` and `packing.document_multiple`: read, merged, checked, and part of what is the same."""

import pytest

from recipe.config import (
    ParallelConfig,
    amended,
    fingerprint,
    recipe_from_plain,
    recipe_to_plain,
    settle,
)
from recipe.errors import RecipeError

MULTIPLE = "stages.short.packing.document_multiple"


def test_nothing_is_said_of_keys_that_are_not_used(small):
    plain = recipe_to_plain(small())
    assert "parallel" not in plain
    assert "deal" not in plain
    assert "document_multiple" not in plain["stages"]["short"]["packing"]
    assert small().rule("short", "web").document_multiple == 1
    assert fingerprint(small({"deal": "order", MULTIPLE: 1, "parallel.tp": 1})) == fingerprint(small())


@pytest.mark.parametrize(
    ("given", "number"),
    [(16, 16), ("16", 16), ("2*cp", 8), ("2 * cp * tp", 16), ("cp", 4), ("tp*4", 8), ("1Ki", 1024)],
)
def test_a_multiple_is_a_number_or_a_product_of_sizes(small, given, number):
    recipe = small({MULTIPLE: given, "parallel": {"cp": 4, "tp": 2}, "stages.short.context": 4096})
    assert recipe.rule("short", "web").document_multiple == number
    settled = settle(recipe, {"web": 1000, "code": 1000}, {"web": 10, "code": 10})
    assert settled.stages["short"].packing.document_multiple == number
    assert recipe_from_plain(recipe_to_plain(settled), source="x") == settled
    assert recipe_from_plain(recipe_to_plain(recipe), source="x") == recipe
    assert settled.is_settled


def test_the_identity_has_the_number_and_not_how_the_model_is_split(small):
    four = {MULTIPLE: "2*cp", "parallel": {"cp": 4}}
    assert fingerprint(small(four)) == fingerprint(small({MULTIPLE: 8}))
    assert fingerprint(small(four)) != fingerprint(small({MULTIPLE: "2*cp", "parallel": {"cp": 2}}))
    assert fingerprint(small({"parallel": {"tp": 8, "pp": 2}})) == fingerprint(small())
    assert fingerprint(small({"deal": "balanced"})) != fingerprint(small())


def test_stages_take_it_from_every_stage_and_like(small):
    recipe = small(
        {
            "every_stage": {"packing": {"document_multiple": 8}},
            "stages.short.packing": "none",
            "stages.long": {"like": "short", "packing": {"document_multiple": 2}},
        }
    )
    assert [recipe.rule(stage, "web").document_multiple for stage in ("short", "long")] == [8, 2]
    assert recipe.stages["short"].packing.method == "none"


def test_ranks_that_share_rows():
    assert ParallelConfig().num_ranks == 1
    assert ParallelConfig(tp=2, pp=3, cp=4).num_ranks == 24


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({MULTIPLE: 0}, "1..16777216"),
        ({MULTIPLE: "2*pp"}, "document_multiple"),
        ({MULTIPLE: "2*cpp"}, "2*cp"),
        ({MULTIPLE: "0*cp"}, "2*cp"),
        ({MULTIPLE: 3}, "a divisor of"),
        ({MULTIPLE: "3*cp"}, "3*cp = 3"),
        ({"stages.short.packing": {"method": "concat", "document_multiple": 8}}, "packing.method"),
        ({"stages.short.packing": {"attention": "sequence", "document_multiple": 8}}, "packing.attention"),
        ({"stages.short.packing": {"cross_labels": True, "document_multiple": 8}}, "packing.cross_labels"),
        ({"parallel": {"cp": 3}}, "a multiple of 6"),
        ({"parallel": {"cp": 2, "tp": 3, "sequence_parallel": True}}, "a multiple of 12"),
        ({"parallel": {"sequence_paralel": True}}, "did you mean 'sequence_parallel'"),
        ({"parallel": {"tp": 0}}, "1 or more"),
        ({"deal": "ordered"}, "balanced"),
        ({"dael": "balanced"}, "did you mean 'deal'"),
        ({"stages.short.packing": {"document_multiples": 2}}, "did you mean 'document_multiple'"),
    ],
)
def test_what_cannot_be_is_refused_with_a_way_out(small, changes, told):
    with pytest.raises(RecipeError) as error:
        small(changes)
    assert told in str(error.value)


def test_an_amendment_changes_what_is_ahead_and_not_what_is_behind(small):
    recipe = small({"stages.long": {"like": "short"}, MULTIPLE: 2})
    settled = settle(recipe, {"web": 1000, "code": 1000}, {"web": 10, "code": 10})
    now = amended(settled, ["stages.long.packing.document_multiple=2*cp", "parallel.cp=4", "deal=balanced"])
    assert now.rule("long", "web").document_multiple == 8
    assert now.rule("short", "web").document_multiple == 2
    assert now.deal == "balanced"
    with pytest.raises(RecipeError, match="not finished"):
        amended(settled, [f"{MULTIPLE}=4"], stage="long")
