"""A recipe with a policy on the command line: files are written without it, a wrong one is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import recipe
from recipe.cli.main import main
from recipe.config import load_recipe

ONLINE = "+policy={_target_: recipe.maths.policies.OnlineMixing, every: 512}"
OWN = "+policy={_target_: own_policy_here.Stay, every: 512}"


@pytest.fixture
def own(in_tmp, monkeypatch):
    code = "class Stay:\n    def __call__(self, view):\n        return view\n"
    (in_tmp / "own_policy_here.py").write_text(code)
    monkeypatch.syspath_prepend(in_tmp)


def test_the_shares_stay_as_stated_and_that_is_told(small, capsys):
    for words in (["plan", "small.yaml", ONLINE], ["run", "small.yaml", ONLINE, "--name", "x"]):
        assert main(words) == 0
        told = [line for line in capsys.readouterr().err.splitlines() if "OnlineMixing" in line]
        assert len(told) == 1 and "the shares stay as stated" in told[0] and "run.consult" in told[0]
    assert main(["audit", "runs/x"]) == 0


def test_a_policy_that_is_not_allowed_is_told_with_the_option_that_allows_it(own, small, capsys):
    assert main(["plan", "small.yaml", OWN]) == 1
    assert "--allow-target own_policy_here.Stay" in capsys.readouterr().err
    assert main(["run", "small.yaml", OWN, "--name", "x"]) == 2
    assert "--allow-target own_policy_here.Stay" in capsys.readouterr().err
    assert not (small.parent / "runs" / "x").exists()


def test_it_is_allowed_by_name_or_with_all_of_its_module(own, small, capsys):
    allow = ["--allow-target", "os.getcwd", "--allow-target", "own_policy_here.*"]
    assert main(["plan", "small.yaml", OWN, "--json", *allow]) == 0
    assert json.loads(capsys.readouterr().out)["problems"] == []
    assert main(["run", "small.yaml", OWN, "--name", "x", *allow[2:]]) == 0
    assert main(["run", "small.yaml", OWN, "--name", "x"]) == 0, "only the start asks"


def test_parameters_that_do_not_fit_are_told_before_the_run(small, capsys):
    loading = "+policy={_target_: recipe.maths.policies.DynamicLoading, every: 512, reference: {a: 2}}"
    assert main(["run", "small.yaml", loading, "--name", "x"]) == 2
    assert "no reference loss of b" in capsys.readouterr().err
    assert not (small.parent / "runs" / "x").exists()


def test_a_policy_that_a_change_brings_is_checked_as_at_the_start(own, small, capsys):
    with recipe.start_run(load_recipe("small.yaml"), "runs/a") as run:
        run.checkpoint(4)
    before = Path("runs/a/ledger.jsonl").read_bytes()
    system = "policy={_target_: os.system, every: 512}"
    amend, branch = ["amend", "runs/a", "--reason", "x", "--yes"], ["branch", "runs/a", "b", "--yes"]
    screen = ["screen", "small.yaml", "--stage", "long", "--dirichlet", "2", "--out", "runs/s", "--yes"]
    for words in (amend, branch, screen):
        for policy in (f"+{system}", OWN):
            assert main([*words, policy]) == 2
            assert "--allow-target" in capsys.readouterr().err
    assert Path("runs/a/ledger.jsonl").read_bytes() == before
    assert [path.name for path in Path("runs").iterdir()] == ["a"]
    allow = ["--allow-target", "own_policy_here.Stay"]
    for words in (amend, branch, screen):
        assert main([*words, OWN, *allow]) == 0
    # what stays is not asked about again
    assert main([*amend, "stages.long.tokens=512"]) == 0
