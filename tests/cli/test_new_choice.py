"""What ``recipe new`` leaves out of a folder of pools, and says so."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from recipe import load_recipe, write_pool
from recipe.cli.main import main
from recipe.pools import Pool
from recipe.pools.copying import copy_documents
from recipe.pools.splits import parse_split
from recipe.pools.splitting import split_pool
from recipe.pools.writer import PoolWriter


def pool(path: str, count: int, first: int = 0) -> Pool:
    return write_pool(path, [[n, n] for n in range(first, first + count)], vocab_size=900, eos=899)


def tokenised(path: str, tokenizer: str, count: int) -> None:
    with PoolWriter(
        Path(path), vocab_size=900, tokenizer=tokenizer, tokenizer_name=f"{tokenizer}.json"
    ) as to:
        to.add([1] * count)
        to.close()


def drafted(capsys, *words: str) -> str:
    assert main(["new", *words]) == 0
    text = capsys.readouterr().out
    Path("my.yaml").write_text(text)
    return text


def paths() -> set[str]:
    return {str(of.path) for of in load_recipe("my.yaml").pools.values()}


def test_held_out_sides_are_no_quotas_and_may_be_measured_on(in_tmp, capsys):
    web = pool("web", 400)
    split_pool(web, parse_split("train=80%,validation=10%,test=10%"), "pools/web")
    text = drafted(capsys, "pools")
    assert paths() == {"pools/web/train"}
    assert "# left out: pools/web/test: held out: the side test of a split" in text
    (line,) = [line for line in text.splitlines() if line.startswith("# evaluation:")]
    Path("my.yaml").write_text(text.replace(line, line.removeprefix("# ")))
    evaluation = load_recipe("my.yaml").evaluation
    assert evaluation is not None
    assert {area: of.path for area, of in evaluation.pools.items()} == {
        "test": "pools/web/test",
        "validation": "pools/web/validation",
    }


def test_of_versions_of_a_pool_the_newest_is_taken(in_tmp, capsys):
    web = pool("pools/web", 400)
    pool("pools/code", 100, first=500)
    copy_documents(web, np.arange(300), "pools/clean")
    text = drafted(capsys)
    assert paths() == {"pools/clean", "pools/code"}
    assert "# left out: pools/web: another version of pools/clean, which is the newest" in text
    assert load_recipe("my.yaml").shares("main") == {"clean": Fraction(3, 4), "code": Fraction(1, 4)}


def test_empty_pools_and_those_of_a_rare_tokenizer_are_left_out(in_tmp, capsys):
    tokenised("pools/a", "common", 10)
    tokenised("pools/b", "common", 11)
    tokenised("pools/c", "rare", 1000)
    write_pool("pools/void", [[]], vocab_size=900)
    text = drafted(capsys)
    assert paths() == {"pools/a", "pools/b"}
    assert "pools/c: another tokenizer (rare.json) than that of most (common.json)" in text
    assert "pools/void: empty: no tokens" in text


def test_unfinished_folders_are_passed_over(in_tmp, capsys):
    made = pool("pools/web", 10)
    made.path.rename("pools/other.partial")
    (Path("pools/other.partial") / "card.json").unlink()
    pool("pools/code", 10)
    text = drafted(capsys)
    assert paths() == {"pools/code"}
    assert "# left out: pools/other.partial: never finished, or being made now" in text


def test_where_nothing_is_left_every_reason_is_told(in_tmp, capsys):
    web = pool("web", 400)
    split_pool(web, parse_split("train=80%,validation=20%"), "split")
    Path("split/train").rename("elsewhere")
    assert main(["new", "split"]) == 2
    assert "split/validation: held out" in capsys.readouterr().err


@pytest.mark.parametrize(("side", "is_told"), [("train", False), ("validation", True)])
def test_plan_warns_of_a_held_out_side_that_is_trained_on(in_tmp, capsys, side, is_told):
    split_pool(pool("web", 400), parse_split("train=80%,validation=20%"), "split")
    stage = "{steps: 2, context: 8, batch: {sequences: 1}, quotas: {it: 100%, spare: 0%}}"
    other = "validation" if side == "train" else "train"
    Path("r.yaml").write_text(
        f"seed: 1\npools: {{it: {{path: split/{side}}}, spare: {{path: split/{other}}}}}\n"
        f"stages: {{one: {stage}}}\n"
    )
    assert main(["plan", "r.yaml"]) == 0
    told = " ".join("".join(capsys.readouterr()).split())
    assert ("pool 'it' is the side 'validation' of a split" in told) == is_told
    assert "pool 'spare'" not in told
