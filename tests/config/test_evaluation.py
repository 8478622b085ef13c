"""The rule that scores held-out pools: defaults, and what it must not share with training."""

from __future__ import annotations

import pytest

from recipe.config import recipe_from_plain, recipe_to_plain
from recipe.errors import RecipeError


def recipe(evaluation, **more):
    plain = {
        "seed": 1,
        "pools": {"web": {"path": "web"}},
        "stages": {
            "short": {"steps": 4, "context": 64, "batch": {"sequences": 2}, "weights": {"web": 1}},
            "long": {"steps": 4, "context": 128, "batch": {"sequences": 2}, "weights": {"web": 1}},
        },
        "evaluation": evaluation,
    }
    return recipe_from_plain(plain | more, source="here")


def test_the_default_is_no_stride_of_a_curriculum_that_doubles():
    rule = recipe({"pools": {"code": "held/code"}}).scoring_rule
    assert rule is not None and (rule.window, rule.stride, rule.offset) == (128, 48, 24)


def test_a_recipe_without_it_has_the_plain_values_and_the_identity_that_it_had():
    assert recipe(None).scoring_rule is None and "evaluation" not in recipe_to_plain(recipe(None))


@pytest.mark.parametrize(
    ("evaluation", "key", "fix"),
    [
        ({"stride": 64, "window": 96}, "evaluation.stride", "write another, such as 36"),
        ({"stride": 16, "offset": 0}, "evaluation.offset", "write a positive one, such as 8"),
        ({"stride": 200}, "evaluation.stride", "lower the stride to 128"),
        ({"stride": 16, "offset": 128}, "evaluation.offset", "lower it"),
        ({"stride": 16, "pools": {"code": "web"}}, "evaluation.pools.code.path", "split it off"),
        ({"stride": 16, "pools": {"code": "./held/../web/"}}, "evaluation.pools.code.path", "split it off"),
        ({"window": 64, "stride": 64, "offset": 5}, "evaluation.stride", "such as 24"),
        ({"window": 1, "stride": 1, "offset": 0}, "evaluation.offset", "raise the window"),
        ({"stirde": 16}, "evaluation.stirde", "stride"),
        ({"pools": {"c": {"path": "c", "dtpye": "uint16"}}}, "evaluation.pools.c.dtpye", "'dtype'"),
        ({"pools": {"c": {"path": "c", "dtype": "u16"}}}, "evaluation.pools.c.dtype", "'uint16'"),
        (
            {"pools": {"c": {"path": "c", "documents": "eos"}}},
            "evaluation.pools.c.documents",
            "write eos: ID",
        ),
        ({"pools": {"c": {"dtype": "uint16"}}}, "evaluation.pools.c.path", "path: FOLDER"),
    ],
)
def test_f6_a_rule_that_training_has_too_is_refused(evaluation, key, fix):
    with pytest.raises(RecipeError) as caught:
        recipe(evaluation)
    problems = {problem.where: problem for problem in caught.value.problems}
    assert fix in problems[key].fix


def test_labels_that_are_inputs_need_a_token_before_each_scored_one():
    with pytest.raises(RecipeError, match=r"evaluation\.stride"):
        recipe({"window": 96, "stride": 96, "offset": 8}, labels="inputs")


def test_strides_by_region_are_training_too_and_where_all_are_taken_the_window_is_short():
    own = {"pools": {"web": {"path": "web", "slicing": {"stride": {"head": 3, "middle": 64, "tail": 4}}}}}
    for window, fix in ((6, "such as 2"), (4, "such as 1")):
        with pytest.raises(RecipeError) as caught:
            recipe({"window": window, "stride": 3, "offset": 1}, **own)
        assert fix in caught.value.problems[0].fix
    short = {"window": 3, "stride": {"head": 1, "middle": 3, "tail": 2}}
    with pytest.raises(RecipeError, match="raise the window"):
        recipe({"window": 3, "stride": 3, "offset": 1}, pools={"web": {"path": "web", "slicing": short}})


def test_the_window_fits_the_models_positions():
    with pytest.raises(RecipeError, match=r"evaluation\.window"):
        recipe({"window": 256, "stride": 16}, model={"max_positions": 128})
