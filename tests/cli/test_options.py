"""Which word is the recipe and which an override."""

from __future__ import annotations

import pytest

from recipe.cli.options import split_words
from recipe.errors import RecipeError


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], ("demo", [])),
        (["demo"], ("demo", [])),
        (["seed=1", "my.yaml", "pools.a.path=x"], ("my.yaml", ["seed=1", "pools.a.path=x"])),
        (["+pools.web.max_epochs=2", "~stages.long"], ("demo", ["+pools.web.max_epochs=2", "~stages.long"])),
        (["seed=1,2"], ("demo", ["seed=1,2"])),
    ],
)
def test_words_with_an_equals_sign_are_overrides(words, expected):
    assert split_words(words) == expected


def test_a_file_whose_name_holds_an_equals_sign_is_the_recipe(in_tmp):
    (in_tmp / "lr=1.yaml").write_text("seed: 1\n")
    assert split_words(["lr=1.yaml", "seed=2"]) == ("lr=1.yaml", ["seed=2"])


def test_two_recipes_are_refused():
    with pytest.raises(RecipeError, match=r"demo my\.yaml"):
        split_words(["demo", "my.yaml"])


@pytest.mark.parametrize("word", ["@foo=1", "=1", "~", "~@x", "+=1", "++@a=1", "~~", ":=1"])
def test_an_override_without_a_key_is_refused(word):
    with pytest.raises(RecipeError, match="key=value"):
        split_words(["my.yaml", word])
