"""The demo's pools are made by its first run; no other recipe's pools are ever made up."""

from __future__ import annotations

from pathlib import Path

from recipe.cli.main import main


def test_plan_of_the_demo_before_its_first_run_says_where_the_pools_come_from(in_tmp, capsys):
    assert main(["plan"]) == 2
    assert "start with `recipe run`" in capsys.readouterr().err
    assert list(in_tmp.iterdir()) == []


def test_a_pool_that_was_pointed_elsewhere_is_not_made_up(in_tmp, capsys):
    """C05: a missing pool is named, even in the demo, when its path is the user's."""
    assert main(["run", "demo", "pools.code.path=mine/code"]) == 2
    assert "mine/code" in capsys.readouterr().err
    assert not Path("pools").exists()


def test_a_recipe_of_ones_own_with_the_demos_pools_makes_none(in_tmp, capsys):
    text = "seed: 1\npools: {code: {path: pools/demo/code}}\n"
    stage = "stages: {one: {tokens: 4Ki, context: 64, batch: {sequences: 8}, quotas: {code: 100%}}}\n"
    Path("mine.yaml").write_text(text + stage, encoding="utf-8")
    assert main(["run", "mine.yaml"]) == 2
    assert "pools/demo/code" in capsys.readouterr().err
    assert not Path("pools").exists()
