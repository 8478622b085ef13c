"""A fix names options that the verb has, keys where a recipe is written, and neither where there is none."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from recipe.cli.main import main


@pytest.fixture
def files(in_tmp: Path) -> Path:
    """Token files that do not say where documents end, and a recipe that is held against them."""
    np.array([5, 7, 0, 9, 3, 0], "<u2").tofile("f.u16")
    Path("in.jsonl").write_text('{"text": "one"}\n' * 30)
    assert main(["prepare", "own", "in.jsonl", "--json"]) == 0
    stage = {"steps": 2, "context": 8, "batch": {"sequences": 1}, "quotas": {"a": "100%"}}
    Path("r.yaml").write_text(
        json.dumps({"seed": 1, "pools": {"a": {"path": "own"}}, "stages": {"s": stage}})
    )
    foreign = {"seed": 1, "pools": {"a": {"path": "f.u16"}}, "stages": {"s": stage}}
    Path("foreign.yaml").write_text(json.dumps(foreign))
    return in_tmp


def fix_of(capsys, *words: str) -> str:
    capsys.readouterr()
    assert main([*words]) == 2
    return capsys.readouterr().err.partition("fix ")[2].strip()


@pytest.mark.parametrize(
    "words",
    [
        ("pools", "show", "f.u16"),
        ("pools", "verify", "f.u16"),
        ("pools", "overlap", "f.u16", "own"),
        ("audit", "leakage", "r.yaml", "--against", "f.u16", "--allow-unchecked"),
        ("export", "f.u16", "--format", "megatron", "--out", "new"),
    ],
)
def test_where_options_say_it_the_fix_is_these_and_one_of_them_mends_it(words, files, capsys):
    fix = fix_of(capsys, *words)
    assert fix == "write --eos ID (it is looked for once), --boundaries ENDING, or --documents file"
    assert main([*words, "--eos", "0"]) == 0
    assert main([*[word.replace("new", "newer") for word in words], "--documents", "file"]) == 0


@pytest.mark.parametrize(
    "words",
    [
        ("pools", "repart", "f.u16", "--part-tokens", "100", "--out", "new"),
        ("pools", "dedup", "--out", "new", "f.u16"),
        ("pools", "texts", "f.u16", "--out", "new"),
    ],
)
def test_where_no_option_says_it_none_is_named(words, files, capsys):
    fix = fix_of(capsys, *words)
    assert fix.startswith("this verb has no option that says it")
    assert not re.search(r"\beos: ", fix)


def test_what_that_fix_names_is_a_way_out(files, capsys):
    assert main(["export", "f.u16", "--format", "megatron", "--eos", "0", "--out", "pairs"]) == 0
    assert main(["audit", "leakage", "r.yaml", "--against", "pairs", "--allow-unchecked"]) == 0


def test_of_a_pool_in_a_recipe_the_fix_is_the_recipes_key(files, capsys):
    assert fix_of(capsys, "plan", "foreign.yaml").startswith("write eos: ID")
