"""The trainer's own part of a recipe is read as strictly as the rest."""

from __future__ import annotations

import pytest

from recipe.errors import RecipeError
from recipe.integrations.training.rate import rate_at
from recipe.integrations.training.settings import Settings, settings_of


def test_decimals_come_as_text_and_are_numbers():
    told = settings_of({"learning_rate": "3e-4", "betas": ["0.9", "0.99"], "layers": 2})
    assert (told.learning_rate, told.betas, told.layers) == (3e-4, (0.9, 0.99), 2)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"layer": 2}, ["trainer.layer", "did you mean 'layers'"]),
        ({"learning_rate": "fast"}, ["trainer.learning_rate", "fast", "0.001"]),
        ({"layers": 0}, ["trainer.layers", "greater than or equal to 1"]),
        ({"layers": "2"}, ["trainer.layers", "integer"]),
        ({"width": 30, "heads": 4}, ["width 30", "4 heads"]),
        ({"decay": "cosin"}, ["trainer.decay", "'cosine'"]),
        ({"betas": ["2", "3"]}, ["trainer.betas", "less than 1"]),
        ({"learning_rate": "inf"}, ["trainer.learning_rate", "finite"]),
        ({"device": "foo"}, ["trainer.device", "foo"]),
        ({"init_seed": 1 << 70}, ["trainer.init_seed"]),
        ({"validation": {"final/x": "held"}}, ["trainer.validation", "final/"]),
        ({"layers": 0, "hds": 2}, ["2 problems", "trainer.layers", "trainer.hds"]),
    ],
)
def test_what_is_wrong_is_named_all_at_once(given, told):
    with pytest.raises(RecipeError) as caught:
        settings_of(given)
    assert all(text in str(caught.value) for text in told)


def test_the_rate_rises_and_falls_to_its_last_part():
    told = Settings(warmup_steps=10, learning_rate=2.0, final_rate=0.25)
    rates = [rate_at(step, 100, told) for step in range(100)]
    assert rates[:10] == sorted(rates[:10]) and rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[-1] == pytest.approx(0.5, rel=0.01)
