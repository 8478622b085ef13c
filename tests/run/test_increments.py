"""Pools that come in increments, and are moved and renamed: one run reads them all, and its audit agrees."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import recipe
from recipe.audit import audit_run
from recipe.cli.main import main
from recipe.config import recipe_from_plain, recipe_to_plain
from recipe.pools import grown_from, open_pool
from recipe.pools.erasing import erase_documents
from recipe.pools.reparting import repart_pool
from recipe.run.branching.branch import branch_run
from recipe.run.branching.wishes import Wish
from recipe.run.changing.amend import amend_run
from recipe.run.changing.approval import Approval
from recipe.run.changing.withdraw import Ticket, withdraw_run
from tests.run.conftest import served, stage
from tests.run.traced import held, traced


def prepared(root: Path, number: int) -> Path:
    """The pool ``web-N``: the one before it and sixty more texts, by the verb."""
    chance = np.random.default_rng(number)
    texts = root / f"texts-{number}"
    texts.mkdir(parents=True)
    for k in range(60):
        words = " ".join(map(str, chance.integers(0, 9999, chance.integers(1, 12))))
        (texts / f"{number}-{k}.txt").write_text(words)
    words = ["--extends", str(root / f"web-{number - 1}")] if number > 1 else []
    place = str(root / f"web-{number}")
    assert main(["prepare", place, str(texts), "--tokenizer", "bytes", "--part-tokens", "700", *words]) == 0
    return root / f"web-{number}"


def over(root: Path, pool: str = "web-1", **changes: object) -> recipe.Recipe:
    plain = {
        "seed": 3,
        "pools_root": str(root),
        "pools": {"web": {"path": pool, "block_units": 8, **changes}},
        "max_epochs": 100,
        "stages": {"s": stage(tokens=30_000, context=64, chunk=2_000, quotas={"web": "100%"})},
    }
    return recipe_from_plain(plain, source="test")


def ok(path: Path) -> None:
    audit = audit_run(path, full=True)
    assert audit.ok, audit.findings


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pools web-1 to web-4, each an extension of the one before."""
    root = tmp_path_factory.mktemp("chain")
    for number in range(1, 5):
        prepared(root, number)
    return root


def test_a_chain_of_extensions_knows_each_of_its_beginnings(chain: Path):
    pools = [open_pool(chain / f"web-{number}", "web") for number in range(1, 5)]
    for k, old in enumerate(pools):
        for new in pools[k + 1 :]:
            assert grown_from(old.fingerprint, new) == grown_from(old, new)
            assert grown_from(old, new).documents == 60 * (k + 1)
    assert all(pool.verify(full=True) == [] for pool in pools)


@pytest.mark.parametrize("opens", [("next-epoch", "now", "next-epoch"), ("now", "next-epoch", "now")])
def test_a_run_reads_three_increments_one_after_another(chain: Path, tmp_path: Path, opens: tuple[str, ...]):
    shutil.copytree(chain, tmp_path / "pools")
    path = tmp_path / "run"
    with recipe.start_run(over(tmp_path / "pools"), path) as run:
        run.checkpoint(10)
    for number, how in enumerate(opens, 2):
        amend_run(path, [f"pools.web.path=web-{number}"], approval=Approval(reason="more"), opens=how)  # type: ignore[arg-type]
        with recipe.open_run(path) as run:
            unbroken = served(run.stream(), run.step, run.step + 30)
            run.checkpoint(run.step + 12)
        with recipe.open_run(path) as run:
            assert served(run.stream(), run.step, run.step + 18) == unbroken[12:]
            run.checkpoint(run.step + 18)
        ok(path)
    with recipe.open_run(path) as run:
        run.checkpoint(run.num_steps)
    ok(path)
    assert traced(path) == sorted(held(path))
    assert {str(one.document)[:2] for one in held(path)} == {f"{number}-" for number in range(1, 5)}
    plan = recipe.make_plan(over(tmp_path / "pools", "web-4"))
    assert plan.pools["web"].measured == open_pool(tmp_path / "pools/web-4", "web").stock


def test_an_increment_of_a_pool_that_was_cut_anew_and_lost_documents(chain: Path, tmp_path: Path):
    """Everything at once: parts merged, documents withdrawn and erased, then more documents."""
    root, path = tmp_path / "pools", tmp_path / "run"
    shutil.copytree(chain, root)
    with recipe.start_run(over(root), path) as run:
        run.checkpoint(10)
    gone = np.array([2, 30, 31])
    ids = open_pool(root / "web-1", "web").ids(gone)
    withdraw_run(path, ids, ticket=Ticket(reason="request 12"))
    erase_documents(root / "web-1", gone, root / "erased", reason="request 12")
    repart_pool(root / "erased", root / "merged", part_tokens=10**6)
    chance = np.random.default_rng(9)
    texts = [chance.integers(0, 256, 40) for _ in range(20)]
    recipe.pools.extend_pool(root / "merged", root / "more", texts, ids=[f"more/{k}" for k in range(20)])
    shutil.rmtree(root / "web-1")
    amend_run(path, ["pools.web.path=more"], approval=Approval(reason="more"), opens="now", pools_root=None)
    with recipe.open_run(path) as run:
        run.checkpoint(60)
    ok(path)
    with recipe.open_run(path) as run:
        run.checkpoint(run.num_steps)
    ok(path)
    read = {one.document for one in held(path, 10)}
    assert not read & set(ids) and {f"more/{k}" for k in range(20)} <= read


def test_invariant_7_a_pool_whose_folder_is_moved_is_the_same_to_run_audit_and_trace(
    chain: Path, tmp_path: Path
):
    root, path = tmp_path / "pools", tmp_path / "run"
    shutil.copytree(chain, root)
    with recipe.start_run(over(root, "web-2"), path) as run:
        run.checkpoint(30)
        rest = served(run.stream(), 30)
    before = traced(path)
    (tmp_path / "elsewhere").mkdir()
    (root / "web-2").rename(tmp_path / "elsewhere/web-2")
    moved = {"pools_root": tmp_path / "elsewhere"}
    with recipe.open_run(path, **moved) as run:
        assert served(run.stream(), 30) == rest
        run.checkpoint(40)
    assert audit_run(path, full=True, **moved).ok
    assert [one for one in traced(path) if one.step < 30] == before
    (branch,) = branch_run(path, Wish(name="branch"), **moved)
    with recipe.open_run(branch, **moved) as run:
        run.checkpoint(50)
    ok(branch)


def test_a_pool_that_was_renamed_keeps_its_order_in_new_runs_and_branches(chain: Path, tmp_path: Path):
    """``renamed_from``: the name alone is another; bytes, audit and trace say so."""
    old = over(chain, "web-2")
    plain = recipe_to_plain(old)
    plain["pools"] = {"pages": {**plain["pools"]["web"], "renamed_from": "web"}}
    plain["stages"]["s"]["quotas"] = {"pages": "100%"}
    new = recipe_from_plain(plain, source="test")
    for name, wanted in (("old", old), ("new", new)):
        with recipe.start_run(wanted, tmp_path / name) as run:
            run.checkpoint(20)
            run.checkpoint(run.num_steps)
        ok(tmp_path / name)
    one, other = (sorted(held(tmp_path / name)) for name in ("old", "new"))
    assert [each._replace(pool="pages") for each in one] == other == traced(tmp_path / "new")
    (branch,) = branch_run(f"{tmp_path / 'old'}@step:20", Wish(name="branch", renamed=(("web", "pages"),)))
    with recipe.open_run(branch) as run:
        run.checkpoint(run.num_steps)
    ok(branch)
    assert held(branch, 20) == held(tmp_path / "new", 20)
