"""``recipe audit leakage``: of a recipe and of a run, exit codes, one message."""

from __future__ import annotations

import json

import numpy as np
import pytest

import recipe
from recipe.cli.main import main
from recipe.config import recipe_from_plain
from recipe.run.changing.withdraw import Ticket

SHARED = list(range(1, 61))


@pytest.fixture
def pools(in_tmp):
    """Two pools that are trained on, the second with no share, and two that are held out."""
    rng = np.random.default_rng(1)
    texts = [rng.integers(100, 400, 90) for _ in range(20)]
    recipe.write_pool("pools/a", [*texts, np.array([7, *SHARED, 8])], vocab_size=500, eos=0)
    recipe.write_pool("pools/spare", [np.array(SHARED)], vocab_size=500, eos=0)
    recipe.write_pool("held/leaky", [np.array([9, *SHARED])], vocab_size=500, eos=0)
    recipe.write_pool("held/clean", [rng.integers(400, 499, 90)], vocab_size=500, eos=0)
    return in_tmp


def yaml(**more):
    plain = {
        "seed": 1,
        "pools": {"a": {"path": "pools/a"}, "spare": {"path": "pools/spare"}},
        "stages": {
            "one": {
                "steps": 40,
                "context": 64,
                "batch": {"sequences": 2},
                "quotas": {"a": "100%", "spare": "0%"},
            }
        },
    }
    return json.dumps(plain | more)


def test_f6_leaks_are_named_and_exit_with_1(pools, capsys):
    (pools / "r.yaml").write_text(yaml())
    assert main(["audit", "leakage", "r.yaml", "--against", "held/leaky", "held/clean", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert list(found["trained"]) == ["a"], "a pool without a share is not read"
    assert [leak["trained"] for leak in found["leaks"]] == [
        {"pool": "a", "document": 20, "start": 1, "stop": 61}
    ]
    assert main(["audit", "leakage", "r.yaml", "--against", "held/leaky"]) == 1
    assert "1 places where held-out text is trained on" in capsys.readouterr().out


def test_pools_that_the_recipe_names_are_the_default(pools, capsys):
    held = {
        "evaluation": {"pools": {"x": "held/clean"}, "stride": 9},
        "trainer": {"final": {"y": "held/leaky"}},
    }
    (pools / "r.yaml").write_text(yaml(**held))
    assert main(["audit", "leakage", "r.yaml", "--json"]) == 1
    assert set(json.loads(capsys.readouterr().out)["held"]) == {"x", "final/y"}
    assert main(["audit", "leakage", "r.yaml", "--ngram", "61"]) == 0
    assert "no held-out text is trained on" in capsys.readouterr().out


def test_of_a_run_what_was_withdrawn_before_it_was_read_does_not_count(pools, capsys):
    """20 is served in some step: withdrawn before it, nothing leaks; behind it, it does."""
    started = recipe_from_plain(json.loads(yaml()), source="r")
    for name in ("early", "late"):
        with recipe.start_run(started, f"runs/{name}") as run:
            run.checkpoint(step=0)
    (first,) = {one.step for one in recipe.trace_document("runs/early", 20, until="end") if one.epoch == 0}
    with recipe.open_run("runs/late") as run:
        run.checkpoint(step=first + 1)
    for name, exit_code in (("early", 0), ("late", 1)):
        recipe.withdraw_run(f"runs/{name}", [20], ticket=Ticket(reason="leak", approved_by="me"))
        assert main(["audit", "leakage", f"runs/{name}", "--against", "held/leaky"]) == exit_code
    capsys.readouterr()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "name them: --against"),
        (["--against", "held/none"], "held/none"),
        (["--ngram", "0", "--against", "held/clean"], "1 or more"),
        (["--against", "held/clean", "pools/../held/clean"], "different names"),
    ],
)
def test_bad_input_is_one_message(pools, capsys, words, told):
    (pools / "r.yaml").write_text(yaml())
    assert main(["audit", "leakage", "r.yaml", *words]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("also", [["seed=2"], ["--config-dir", "conf"]])
@pytest.mark.parametrize(
    "verb", [["audit", "leakage"], ["flags"], ["export", "--format", "npy", "--out", "x"]]
)
def test_what_a_run_cannot_follow_is_refused(pools, capsys, verb, also):
    recipe.start_run(recipe_from_plain(json.loads(yaml()), source="r"), "runs/r").close()
    assert main([*verb, "runs/r", *also]) == 2
    told = capsys.readouterr().err
    assert " ".join(also) in told
    assert "the folder of a run, alone" in told


def test_a_recipes_pools_are_looked_for_below_pools_root(pools, capsys):
    """Those that are trained on and those that the recipe holds out; paths of --against are as they are."""
    held = {"evaluation": {"pools": {"x": "held/leaky"}, "stride": 9}}
    (pools / "r.yaml").write_text(yaml(**held))
    (pools / "moved").mkdir()
    for name in ("pools", "held"):
        (pools / name).rename(pools / "moved" / name)
    assert main(["audit", "leakage", "r.yaml", "--pools-root", "moved", "--json"]) == 1
    assert set(json.loads(capsys.readouterr().out)["held"]) == {"x"}
    against = ["--against", "moved/held/clean"]
    assert main(["audit", "leakage", "r.yaml", "--pools-root", "moved", *against]) == 0


def test_a_runs_held_out_pools_are_looked_for_below_pools_root(pools, capsys):
    held = {"evaluation": {"pools": {"x": "held/clean"}, "stride": 9}}
    recipe.start_run(recipe_from_plain(json.loads(yaml(**held)), source="r"), "runs/r").close()
    (pools / "moved").mkdir()
    for name in ("pools", "held"):
        (pools / name).rename(pools / "moved" / name)
    assert main(["audit", "leakage", "runs/r", "--pools-root", "moved", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["held"]) == {"x"}


def test_held_out_token_files_are_read_as_the_options_or_the_recipe_say(pools, capsys):
    np.array([9, *SHARED, 0], "<u2").tofile("leaky.bin")
    words = ["--against", "leaky.bin"]
    (pools / "r.yaml").write_text(yaml())
    assert main(["audit", "leakage", "r.yaml", *words]) == 2
    assert "--dtype" in capsys.readouterr().err
    assert main(["audit", "leakage", "r.yaml", *words, "--dtype", "uint16", "--eos", "0"]) == 1
    entry = {"path": "leaky.bin", "dtype": "uint16", "eos": 0}
    for held in ({"evaluation": {"pools": {"x": entry}, "stride": 9}}, {"trainer": {"final": {"x": entry}}}):
        (pools / "r.yaml").write_text(yaml(**held))
        capsys.readouterr()
        assert main(["audit", "leakage", "r.yaml", "--json"]) == 1
        (found,) = json.loads(capsys.readouterr().out)["held"].values()
        assert found["leaked_documents"] == 1
