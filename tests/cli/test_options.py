"""Which word is the recipe and which an override."""

from __future__ import annotations

from argparse import ArgumentTypeError

import pytest

from recipe.cli.main import main
from recipe.cli.options import number, split_words
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


SEEDED = (
    ["audit", "r"],
    ["audit", "verify", "r"],
    ["pools", "recount", "p", "--under", "bytes"],
    ["prepare", "p", "t"],
    ["tokenizer", "train", "o", "t", "--vocab-size", "300"],
)


@pytest.mark.parametrize("verb", SEEDED)
@pytest.mark.parametrize("seed", [0, 10**18, 2**63 - 1])
def test_every_seed_that_a_recipe_may_have_is_one(in_tmp, capsys, verb, seed):
    """Refused is what is not there, not the seed."""
    assert main([*verb, "--seed", str(seed)]) == 2
    assert "--seed" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["amend", "r", "seed=1", "--reason", "x", "--at", "\u0663"],
        ["amend", "r", "seed=1", "--reason", ""],
        ["amend", "r", "seed=1", "--reason", " \t"],
        ["withdraw", "r", "--document", "7", "--reason", "x", "--ticket", ""],
        ["skip", "r", "--reason", "x", "--steps", "\u0661..\u0665"],
        ["trace", "r", "--document", "7", "--until", "\u0663"],
        ["trace", "r", "--row", "0", "--step", "\u0663"],
        ["trace", "r", "--row", "0", "--step", "9" * 5000],
        ["compare", "r", "s", "--step", "1_0"],
        ["compare", "r", "s", "--step", "-1"],
        ["screen", "rank", "r", "--metric", "a.loss", "--step", "\u0663"],
        ["audit", "r", "--since", "\u0663"],
        ["audit", "r", "--since", "@\u0663"],
        *(
            ["audit", "r", "--sample", text]
            for text in ("nan%", "inf%", "inf", "1e999", "1e999%", "1_0", "\u0663")
        ),
        *(["audit", "r", "--sample", text] for text in ("0", "0%", "101%", "-5%", "9" * 5000)),
        ["audit", "r", "--workers", "0"],
        ["prepare", "p", "t", "--workers", "0"],
        ["prepare", "p", "t", "--part-tokens", "1__0"],
        ["prepare", "p", "t", "--part-tokens", "_10"],
        ["prepare", "p", "t", "--seed", "1_0"],
        ["tokenizer", "train", "o", "t", "--vocab-size", str(2**63)],
        ["pools", "recount", "p", "--under", "bytes", "--sample", "2"],
        ["audit", "verify", "r", "--sample", "0"],
        *([*verb, "--seed", text] for verb in SEEDED for text in ("-5", str(2**63), "9" * 5000, "\u0663")),
    ],
)
def test_numbers_and_texts_that_are_none_are_refused_by_the_option(capsys, words):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert f"argument {words[-2]}" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "value"), [("100k", 100_000), ("1Gi", 2**30), ("1_000", 1000), ("7", 7)])
def test_counts_take_amounts(text, value):
    assert number(1, amounts=True)(text) == value


@pytest.mark.parametrize(
    "words",
    [
        ["prepare", "p", "t", "--part-tokens", "1GB"],
        ["export", "pools/p", "--tokens-per-file", "1GB"],
        ["pools", "repart", "p", "--out", "q", "--part-tokens", "1GB"],
    ],
)
def test_a_count_in_bytes_is_refused_with_what_its_letters_mean(capsys, words):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "a billion (not bytes)? write 1B, or 1Gi for 1 x 2**30" in told


def test_an_amount_below_the_least_is_refused():
    with pytest.raises(ArgumentTypeError, match=r"in 1\.\."):
        number(1, amounts=True)("0k")
