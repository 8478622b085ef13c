"""Runs of a recipe with a set of pools: what is on record stays, and a folder that comes later is told."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import recipe
from recipe.cli.main import main

RECIPE = """\
seed: 5
pools_root: pools
pools: {web: {path: web}, "lang_*": {path: multilingual/*}}
stages:
  main: {tokens: 1024, context: 32, batch: {sequences: 4}, quotas: {web: rest, "lang_*": 40%}}
"""


@pytest.fixture
def multilingual(in_tmp: Path) -> Path:
    """``multi.yaml`` with a pool of two languages beside one of the web."""
    for name in ("web", "multilingual/no", "multilingual/en"):
        documents = [np.arange(20) for _ in range(60)]
        recipe.write_pool(f"pools/{name}", documents, vocab_size=100, eos=99)
    Path("multi.yaml").write_text(RECIPE)
    return in_tmp


def test_a_folder_that_comes_later_is_told_and_changes_nothing_of_the_run(multilingual, capsys):
    assert main(["run", "multi.yaml"]) == 0
    stored = Path("runs/multi/recipes/0001.yaml").read_bytes()
    assert b"path: multilingual/no" in stored
    assert b"multilingual/*" not in stored
    recipe.write_pool("pools/multilingual/de", [np.arange(20)] * 60, vocab_size=100, eos=99)
    capsys.readouterr()
    assert main(["run", "multi.yaml"]) == 2
    told = capsys.readouterr().err
    assert "pools.lang_de.path" in told
    assert "(nothing) → multilingual/de" in told
    assert main(["run", "runs/multi"]) == 0
    assert Path("runs/multi/recipes/0001.yaml").read_bytes() == stored
    assert main(["audit", "runs/multi"]) == 0


def test_a_plan_shows_the_pools_of_a_set_and_the_group_that_its_quota_makes(multilingual, capsys):
    assert main(["plan", "multi.yaml", "pools.lang_no.max_epochs=6"]) == 0
    shown = capsys.readouterr().out
    assert "lang_en" in shown
    assert "lang_no" in shown
    assert "[lang_*]" in shown


def test_a_group_called_as_a_pattern_is_amended_by_its_name(multilingual, capsys):
    with recipe.start_run(recipe.load_recipe("multi.yaml"), "runs/multi") as run:
        run.checkpoint(step=2)
    words = ["stages.main.quotas.lang_*=50%", "--from", "web", "--reason", "more", "--yes"]
    assert main(["amend", "runs/multi", *words]) == 0
    with recipe.open_run("runs/multi") as run:
        shares = run.recipe.shares("main")
        assert shares["lang_en"] + shares["lang_no"] == shares["web"]


def test_an_amendment_with_the_set_adds_the_pools_that_came_later(multilingual, capsys):
    with recipe.start_run(recipe.load_recipe("multi.yaml"), "runs/multi") as run:
        run.checkpoint(step=2)
    recipe.write_pool("pools/multilingual/de", [np.arange(20)] * 60, vocab_size=100, eos=99)
    words = ["+pools.lang_*={path: multilingual/*}", "stages.main.quotas.lang_de=10%", "--from", "web"]
    assert main(["amend", "runs/multi", *words, "--reason", "German came", "--yes"]) == 0
    with recipe.open_run("runs/multi") as run:
        assert list(run.recipe.pools) == ["web", "lang_en", "lang_no", "lang_de"]
        assert run.recipe.pools["lang_de"].path == "multilingual/de"
        assert run.recipe.shares("main")["lang_de"] == Fraction(1, 10)
    assert main(["amend", "runs/multi", "+pools.x_*={path: nowhere/*}", "--reason", "no", "--yes"]) == 2
    assert "there is no folder pools/nowhere" in capsys.readouterr().err


def test_a_branch_that_names_the_set_has_named_the_pools_that_it_adds(multilingual, capsys):
    with recipe.start_run(recipe.load_recipe("multi.yaml"), "runs/multi") as run:
        run.checkpoint(step=2)
    recipe.write_pool("pools/multilingual/de", [np.arange(20)] * 60, vocab_size=100, eos=99)
    words = ["+pools.lang_*={path: multilingual/*}", "stages.main.quotas.lang_de=10%", "--from", "web"]
    assert main(["branch", "runs/multi@1", "german", *words, "--reason", "German came", "--yes"]) == 0
    told = capsys.readouterr()
    assert "UNCONTROLLED" not in told.out + told.err
    assert main(["run", "runs/german"]) == 0
    assert main(["audit", "runs/german"]) == 0
