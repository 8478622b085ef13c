"""Names of runs: one plain folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from recipe.cli.main import main
from recipe.errors import RecipeError
from recipe.run.folder import check_name

ODD = [
    "",
    " ",
    ".",
    "..",
    ".hidden",
    "-x",
    "a/b",
    "a\nb",
    "a\0b",
    "a\udcffb",
    "a\u200bb",
    "项" * 67,
]


@pytest.mark.parametrize("name", ["demo", "seed=1,2", "A_b-c+d.e", "项目-1", "हिन्दी", "é", "7", "x" * 200])
def test_a_printable_name_of_one_folder_is_one(name):
    check_name(name, "--name")


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_what_no_folder_may_be_called_is_none(name):
    with pytest.raises(RecipeError, match="a plain name"):
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
