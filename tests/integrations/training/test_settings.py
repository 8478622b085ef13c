"""The trainer's own part of a recipe is read as strictly as the rest."""

from __future__ import annotations

import pytest

from recipe.config import load_recipe
from recipe.config.free import TRAINER_SETTINGS
from recipe.errors import RecipeError
from recipe.integrations.training.rate import rate_at
from recipe.integrations.training.settings import Settings, settings_of


def test_decimals_come_as_text_and_are_numbers():
    told = settings_of({"learning_rate": "3e-4", "betas": ["0.9", "0.99"], "layers": 2})
    assert (told.learning_rate, told.betas, told.layers) == (3e-4, (0.9, 0.99), 2)


def test_every_setting_may_be_overridden_where_the_recipe_leaves_it_at_its_default():
    assert set(TRAINER_SETTINGS) == set(Settings.model_fields)
    made = load_recipe("ab", ["trainer.heads=2", "trainer.keep=3"])
    assert (settings_of(made.trainer).heads, settings_of(made.trainer).keep) == (2, 3)
    with pytest.raises(RecipeError, match="did you mean 'heads'") as refused:
        load_recipe("ab", ["trainer.haeds=2"])
    assert refused.value.problems[0].expected == f"one of {', '.join(TRAINER_SETTINGS)}"


WHOLE = "a whole number, 1..1024"
BETAS = "a list of 2 numbers, each 0 or more and below 1"
AREAS = "a mapping of areas to the folders of held-out pools"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"layer": 2},
            ("layer", "2", f"one of {', '.join(Settings.model_fields)}", "did you mean 'layers'?"),
        ),
        ({"layers": 0}, ("layers", "0", WHOLE, "write layers: 4, which it is when left out")),
        ({"layers": "2"}, ("layers", "'2'", WHOLE, "write layers: 4, which it is when left out")),
        ({"heads": None}, ("heads", "None", WHOLE, "write heads: 4, which it is when left out")),
        ({"keep": True}, ("keep", "True", "a whole number, 1 or more", "write keep: 1, or leave it out")),
        (
            {"learning_rate": "fast"},
            (
                "learning_rate",
                "fast",
                "a number, above 0",
                "write learning_rate: 0.001, which it is when left out",
            ),
        ),
        (
            {"learning_rate": "inf"},
            (
                "learning_rate",
                "inf",
                "a number, above 0",
                "write learning_rate: 0.001, which it is when left out",
            ),
        ),
        ({"clip": 0}, ("clip", "0", "a number, above 0", "write clip: 1.0, which it is when left out")),
        (
            {"final_rate": "1.5"},
            ("final_rate", "1.5", "a number, 0..1", "write final_rate: 0.1, which it is when left out"),
        ),
        (
            {"width": 30},
            (
                "width",
                "width 30 with 4 heads",
                "a multiple of 2 x 4 heads = 8",
                "write width: 24 or 32, or other heads",
            ),
        ),
        ({"decay": "cosin"}, ("decay", "cosin", "one of cosine, linear, none", "did you mean 'cosine'?")),
        ({"betas": ["2", "3"]}, ("betas", "2", BETAS, "write betas: [0.9, 0.95], which it is when left out")),
        ({"betas": [0.9]}, ("betas", "[0.9]", BETAS, "write betas: [0.9, 0.95], which it is when left out")),
        (
            {"device": "foo"},
            (
                "device",
                "foo",
                "cpu, cuda, or cuda:N for the N-th",
                "write device: cpu, which it is when left out",
            ),
        ),
        (
            {"init_seed": 1 << 63},
            (
                "init_seed",
                str(1 << 63),
                f"a whole number, 0 or more and below {1 << 63}",
                "write init_seed: 0, which it is when left out",
            ),
        ),
        (
            {"validation": ["held"]},
            ("validation", "['held']", AREAS, "write validation: {code: pools/held/code}"),
        ),
        (
            {"final": {"a": 3}},
            ("final.a", "3", "the folder of a pool, as text", "write final: {a: pools/held/code}"),
        ),
        (
            {"validation": {"final/x": "held"}},
            (
                "validation",
                "final/x",
                "areas that do not begin with final/, pool:, sft/",
                "call them otherwise; pools of the final test stand under trainer.final",
            ),
        ),
    ],
)
def test_a_setting_that_is_none_is_told_in_words(given, told):
    with pytest.raises(RecipeError) as caught:
        settings_of(given)
    (found,) = caught.value.problems
    assert (found.where, found.given, found.expected, found.fix) == (f"trainer.{told[0]}", *told[1:])


def test_what_is_wrong_is_named_all_at_once():
    with pytest.raises(RecipeError) as caught:
        settings_of({"layers": 0, "hds": 2, "betas": ["2", "3"]})
    assert [found.where for found in caught.value.problems] == [
        "trainer.layers",
        "trainer.betas",
        "trainer.hds",
    ]


@pytest.mark.parametrize("wrong", [{"x": {}}, -(10**30), None, "?"])
def test_every_setting_can_be_told_in_words(wrong):
    """None of pydantic's own wording, whichever setting is a mapping of nothing or a number too large."""
    may_be_none = {"micro_batch", "threads", "checkpoint_steps", "keep"} if wrong is None else set()
    for name in set(Settings.model_fields) - may_be_none:
        with pytest.raises(RecipeError) as caught:
            settings_of({name: wrong})
        told = str(caught.value)
        assert f"trainer.{name}" in told and "nput should" not in told and "Undefined" not in told
    assert all(getattr(settings_of({name: wrong}), name) is None for name in may_be_none)


def test_the_rate_rises_and_falls_to_its_last_part():
    told = Settings(warmup_steps=10, learning_rate=2.0, final_rate=0.25)
    rates = [rate_at(step, 100, told) for step in range(100)]
    assert rates[:10] == sorted(rates[:10]) and rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[-1] == pytest.approx(0.5, rel=0.01)
