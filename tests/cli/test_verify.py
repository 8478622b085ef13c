"""``recipe audit verify RECIPE``: a recipe on its own pools, without a run."""

from __future__ import annotations

import json

import fsspec
import numpy as np
import pytest

import recipe
from recipe.cli.main import main


@pytest.fixture
def folder(in_tmp):
    rng = np.random.default_rng(3)
    recipe.write_pool(
        "p", [rng.integers(0, 256, rng.integers(1, 60)) for _ in range(40)], vocab_size=257, eos=256
    )
    stage = {"tokens": "2k", "context": 32, "batch": {"sequences": 2}, "quotas": {"p": "100%"}}
    plain = {"seed": 1, "tokenizer": "bytes", "pools": {"p": {"path": "p"}}, "stages": {"one": stage}}
    (in_tmp / "r.yaml").write_text(json.dumps(plain | {"max_epochs": 9}))
    return in_tmp


@pytest.mark.parametrize(
    "override",
    [
        "seed=2",
        "+stages.one.slicing.stride=20",
        "+stages.one.slicing.align=word",
        "+stages.one.slicing.offset=random",
        "+stages.one.packing.method=concat",
    ],
)
def test_g2_g3_every_claim_holds_and_nothing_is_left_behind(folder, capsys, override):
    before = sorted(path.name for path in folder.rglob("*"))
    assert main(["audit", "verify", "r.yaml", override, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [check["ok"] for check in told["checks"] if check["check"] in ("rows", "labels", "loss")] == [
        True
    ] * 3
    assert sorted(path.name for path in folder.rglob("*")) == before


def test_a_run_takes_no_overrides(folder, capsys):
    assert main(["run", "r.yaml"]) == 0
    assert main(["audit", "verify", "runs/r", "seed=3"]) == 2
    assert "leave the overrides out" in capsys.readouterr().err


def test_sources_may_be_in_a_store_and_must_be_somewhere(folder, capsys):
    """Full of blanks, so that ids alone say nothing of the text: it is held against the source."""
    texts = "".join(json.dumps({"text": f"page  {k} " * 9}) + "\n" for k in range(40))
    fsspec.filesystem("memory").pipe("/verified/texts.jsonl", texts.encode())
    assert main(["prepare", "q", "memory://verified", "--json"]) == 0
    capsys.readouterr()
    verb = ["audit", "verify", "r.yaml", "pools.p.path=q"]
    assert main([*verb, "--sources", "memory://verified", "--json"]) == 0
    (said,) = [one["said"] for one in json.loads(capsys.readouterr().out)["checks"] if one["check"] == "text"]
    assert "are the text they were made from" in said
    assert main([*verb, "--sources", "verified"]) == 2
    assert "a folder that holds the sources of a pool" in capsys.readouterr().err
