"""The same texts prepared with two tokenizers: one set of documents, one reading order, never one run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import recipe
from recipe.audit import audit_run
from recipe.config import recipe_from_plain
from recipe.errors import RecipeError
from recipe.pools import Pool, open_pool, write_pool
from recipe.pools.twins import compare_twins
from recipe.run.branching.branch import branch_run
from recipe.run.branching.wishes import Wish
from recipe.sequences.reading_order import BlockPlace, block_documents, num_blocks
from recipe.text.preparation import PrepareOptions
from recipe.text.prepare import prepare_pool
from recipe.text.sources import ReadOptions
from recipe.text.tokenizers import load_tokenizer

WORDS = ["def sorted(xs):", "保留重复元素。", "The 7 swans", "3.14 x 2024", "return", "zebra", "and", "多"]


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory, tokenizer_file: Path) -> Path:
    """Pools ``bytes/web`` and ``bpe/web`` of the same 200 texts, some of them in groups."""
    root = tmp_path_factory.mktemp("twins")
    chance = np.random.default_rng(4)
    with (root / "texts.jsonl").open("w") as file:
        for number in range(200):
            text = " ".join(chance.choice(WORDS, chance.integers(1, 40)))
            plain = {"id": f"page/{number}", "text": text}
            file.write(json.dumps(plain | ({"repo": number // 3} if number < 90 else {})) + "\n")
    for name, spec in (("bytes", "bytes"), ("bpe", str(tokenizer_file))):
        options = PrepareOptions(seed=3, read=ReadOptions(id_key="id", group_key="repo"))
        prepare_pool([root / "texts.jsonl"], root / name / "web", load_tokenizer(spec), options).close()
    return root


def pool(root: Path, name: str) -> Pool:
    return open_pool(root / name / "web", "web")


def test_documents_are_matched_by_id_and_stand_in_the_same_order(twins):
    found = compare_twins(pool(twins, "bytes"), pool(twins, "bpe"))
    assert found.are_twins and found.is_same_order and found.documents == (200, 200)
    assert found.tokens[1] < found.tokens[0] and found.tokenizers[0] != found.tokenizers[1]
    assert sum(one.documents for one in found.lengths) == 200
    assert tuple(np.sum([one.tokens for one in found.lengths], axis=0)) == found.tokens


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize("epoch", [0, 2])
def test_one_name_and_seed_give_one_reading_order_of_units(twins, seed, epoch):
    """Of blocks of as many units; the order within a row's block depends on lengths."""
    orders = []
    for name in ("bytes", "bpe"):
        one = pool(twins, name)
        places = [BlockPlace(seed, epoch, block, 16) for block in range(num_blocks(one, 16))]
        orders.append([one.ids(block_documents(one, place)) for place in places])
    assert orders[0] == orders[1]
    assert sorted(id for block in orders[0] for id in block) == sorted(pool(twins, "bytes").ids(range(200)))


def a_run(root: Path, path: Path, tokens: int = 4096) -> recipe.Run:
    plain = {
        "seed": 1,
        "pools_root": str(root),
        "pools": {"web": {"path": "web", "block_units": 16}},
        "stages": {
            "main": {"tokens": tokens, "context": 64, "batch": {"sequences": 2}, "quotas": {"web": "100%"}}
        },
    }
    return recipe.start_run(recipe_from_plain(plain, source="test"), path)


def test_G5_a_twin_never_takes_the_place_of_a_pool_under_a_run(twins, tmp_path):
    shutil.copytree(twins / "bytes", tmp_path / "pools")
    with a_run(tmp_path / "pools", tmp_path / "run") as run:
        run.checkpoint(4, uri="weights-4")
    shutil.rmtree(tmp_path / "pools/web")
    shutil.copytree(twins / "bpe/web", tmp_path / "pools/web")
    for accept in (False, True):
        with pytest.raises(RecipeError, match=r"branch .* --data fresh") as refused:
            recipe.open_run(tmp_path / "run", accept_data_change=accept)
        (problem,) = refused.value.problems
        assert problem.where == "pools.web" and str(problem.given).startswith("tokenizer ")
    ledger = (tmp_path / "run/ledger.jsonl").read_bytes()
    (path,) = branch_run(tmp_path / "run", Wish(name="branch", data="fresh"))
    with recipe.open_run(path) as branch:
        branch.checkpoint(branch.num_steps)
    audit = audit_run(path, full=True)
    assert audit.ok, audit.findings
    assert (tmp_path / "run/ledger.jsonl").read_bytes() == ledger


def test_accounts_are_by_document_and_the_same_over_twins(twins, tmp_path):
    """A quarter more than an epoch: every document once, those of the next epoch's first blocks twice."""
    for name in ("bytes", "bpe"):
        with a_run(
            twins / name, tmp_path / name, tokens=pool(twins, name).stock * 5 // 4 // 128 * 128
        ) as run:
            run.checkpoint(run.num_steps)
        audit = audit_run(tmp_path / name, full=True)
        assert audit.ok, audit.findings
        spread = audit.reading["web"].spread
        assert spread is not None and {*spread.readings} == {1, 2} and spread.distinct == 200


def test_what_differs_in_id_group_or_place_is_no_twin(tmp_path):
    texts, ids = [[1], [2, 2], [3]], ["a", "b", "c"]
    first = write_pool(tmp_path / "1", texts, vocab_size=9, ids=ids)
    for number, (others, groups) in enumerate(
        [("acb", None), ("abcd", None), ("ab", None), ("abc", [0, 0, 1])]
    ):
        bodies = [[1]] * len(others)
        other = write_pool(tmp_path / f"other{number}", bodies, vocab_size=9, ids=list(others), groups=groups)
        found = compare_twins(first, other)
        assert not found.are_twins and not found.is_same_order
        assert found.num_different == {0: 2, 1: 1, 2: 1, 3: 3}[number]
    assert found.differences[0] == (0, ("a", None), ("a", 0))
