"""Names of runs: one plain folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from recipe.cli.main import main
from recipe.cli.names import check_name
from recipe.errors import RecipeError

ODD = [
    "",
    " ",
    ".",
    "..",
    ".hidden",
    "-x",
    "a/b",
    "a b",
    "a\nb",
    "a\0b",
    "a\udcffb",
    "a\u200bb",
    "a:b",
    "a*",
    "项" * 67,
]


@pytest.mark.parametrize("name", ["demo", "seed=1,2", "A_b-c+d.e", "项目-1", "हिन्दी", "é", "7", "x" * 200])
def test_letters_of_any_script_digits_and_a_few_signs_are_a_name(name):
    check_name(name, "--name")


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_anything_else_is_none(name):
    with pytest.raises(RecipeError, match="the name of one folder"):
        check_name(name, "--name")


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_an_odd_name_starts_nothing(small, capsys, name):
    assert main(["run", "small.yaml", f"--name={name}"]) == 2
    assert "--name" in capsys.readouterr().err
    assert not Path("runs").exists()


@pytest.mark.parametrize("text", ['""', r'"a\0b"', "' '", "'-x'", r'"a\nb"'])
def test_an_odd_name_in_the_recipe_starts_nothing(small, capsys, text):
    small.write_text(f"name: {text}\n{small.read_text()}")
    assert main(["run", "small.yaml"]) == 2
    assert "Traceback" not in capsys.readouterr().err
    assert not Path("runs").exists()
