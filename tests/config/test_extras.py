"""What is missing is installed by a command that works where the program was called."""

from __future__ import annotations

from pathlib import Path

import recipe
from recipe.config.extras import how_to_install


def test_an_extra_is_named_as_this_installation_has_it(in_tmp, monkeypatch):
    (in_tmp / "pyproject.toml").touch()
    assert how_to_install("train", in_tmp) == "pip install -e '.[train]'"
    monkeypatch.chdir("/")
    assert how_to_install("train", in_tmp) == f"pip install -e '{in_tmp}[train]'"
    (in_tmp / "pyproject.toml").unlink()
    assert how_to_install("train", in_tmp) == "pip install 'token-recipe[train]'"


def test_the_extra_is_one_that_the_package_has():
    top = Path(recipe.__file__).resolve().parents[1]
    assert "\ntrain = [" in (top / "pyproject.toml").read_text()
