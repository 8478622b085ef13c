"""What a branch reads: on where its parent stood, from the beginning, under another seed, other tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recipe
from recipe.config import recipe_from_plain, recipe_to_plain
from recipe.pools.writer import PoolWriter
from recipe.run.branching.branch import branch_run, plan_branches
from recipe.run.branching.origin import find_origin
from recipe.run.branching.wishes import Wish
from recipe.run.ledger import read_rows
from recipe.run.manifest import latest_path, manifest_path, read_manifest
from tests.run.conftest import Build, served, stage, write
from tests.run.test_branch import pieces, refused


@pytest.fixture
def one_stage(build: Build, pools_root: Path) -> Any:
    """A recipe of one stage, in which nothing is ever cut anew."""
    quotas = {"a": "60%", "b": "30%", "c": "10%"}
    return build(stages={"s": stage(tokens=1440, context=16, quotas=quotas)}, groups={})


@pytest.fixture
def trunk(one_stage: Any, tmp_path: Path) -> Path:
    with recipe.start_run(one_stage, tmp_path / "trunk") as run:
        run.checkpoint(10, uri="weights-10")
    return tmp_path / "trunk"


def first_row(path: Path) -> dict[str, Any]:
    return next(read_rows(path / "ledger.jsonl")).data


def test_E3_branches_of_three_seeds_read_in_other_orders_and_each_counts_what_it_left(trunk: Path):
    """Under another seed a pool goes on at its next epoch; what it left unread of this one is dropped."""
    own, *others = branch_run(trunk, [Wish(name=f"s{n}", overrides=(f"seed={n}",)) for n in (1, 2, 3)])
    assert first_row(own)["snapshot"] == read_manifest(latest_path(trunk))["snapshot"]
    orders = []
    for path in others:
        row = first_row(path)
        for name, state in zip("abc", row["snapshot"]["pools"], strict=True):
            total = row["pools"][name]["stock"]
            epochs = state["cursor"][0]
            assert state["cursor"] == [epochs, 0, -1, 0]
            assert state["body"] - state["overlap"] + sum(state["dropped"].values()) == epochs * total
            assert state["dropped"]["unread"] > 0
        assert row["parent"]["named"] == ["seed"]
        assert row["parent"]["differs"][0].startswith("seed: 1 → ")
        assert row["parent"]["controlled"]
        with recipe.open_run(path) as run:
            orders.append([piece[0] for piece in pieces(run.stream(), 10, "a")][:20])
            run.checkpoint(run.num_steps)
    assert orders[0] != orders[1]


def test_E3_branches_of_one_seed_draw_alike(trunk: Path):
    """Common random numbers: two mixtures under one new seed read every pool in one order."""
    changes = [("seed=2",), ("seed=2", "stages.s.quotas.b=50%", "stages.s.quotas.a=40%")]
    paths = branch_run(trunk, [Wish(name=f"x{k}", overrides=words) for k, words in enumerate(changes)])
    with recipe.open_run(paths[0]) as one, recipe.open_run(paths[1]) as other:
        for pool in "abc":
            a, b = (pieces(run.stream(), 10, pool) for run in (one, other))
            both = min(len(a), len(b))
            assert a[:both] == b[:both]


def test_a_control_goes_on_in_its_parents_leg_to_the_last_fraction_of_a_token(trunk: Path):
    """Q07: nothing is rounded where nothing of the stage in progress changes."""
    wishes = [
        Wish(name="A"),
        Wish(name="B", overrides=("max_epochs=20",)),
        Wish(name="C", overrides=("+stages.t={like: s}",)),
    ]
    for path in branch_run(trunk, wishes):
        assert first_row(path)["snapshot"] == read_manifest(latest_path(trunk))["snapshot"]


def test_a_control_keeps_pools_that_left_away(build: Build, tmp_path: Path):
    quotas = {"a": "40%", "b": "30%", "c": "30%"}
    pools = {**{name: {"path": name} for name in "ab"}, "c": {"path": "c", "max_epochs": 1}}
    stages = {"s": stage(tokens=1440, context=16, quotas=quotas)}
    wanted = build(stages=stages, groups={}, pools=pools, on_exhausted="redistribute")
    with recipe.start_run(wanted, tmp_path / "trunk") as run:
        run.checkpoint(25)
        assert run.stream().snapshot(25).left == (2,)
        whole = served(run.stream(), 25)
    again = ("pools.c.max_epochs=2",)
    paths = branch_run(
        tmp_path / "trunk", [Wish(name="A"), Wish(name="B", overrides=again), Wish(name="C", fresh=("c",))]
    )
    lefts = [first_row(path)["snapshot"]["left"] for path in paths]
    assert lefts == [[2], [], []]
    with recipe.open_run(paths[0]) as branch:
        assert served(branch.stream(), 25) == whole
    for path in paths[1:]:
        with recipe.open_run(path) as branch:
            assert pieces(branch.stream(), 25, "c")


def test_another_seed_is_told_before_the_branch_is_made(trunk: Path):
    (branch,) = plan_branches(find_origin(trunk), [Wish(name="A", overrides=("seed=5",))])
    (note,) = [note for note in branch.notes if "another seed" in note]
    assert "(1 → 5): a, b, c go on at the next epoch" in note
    assert "unread" in note
    assert branch.outlook.pools["a"].epochs > branch.outlook.pools["a"].read >= 1


def test_another_seed_with_fresh_data_begins_at_epoch_0_of_its_own_order(trunk: Path, one_stage: Any):
    (path,) = branch_run(trunk, Wish(name="A", overrides=("seed=5",), data="fresh"))
    alone = one_stage.model_copy(update={"seed": 5})
    with recipe.start_run(alone, path.parent / "alone") as run, recipe.open_run(path) as branch:
        for pool in "abc":
            a, b = (pieces(x.stream(), start, pool) for x, start in ((run, 0), (branch, 10)))
            assert a[: len(b)] == b[: len(a)]


def test_pools_may_be_read_fresh_one_by_one(trunk: Path):
    (path,) = branch_run(trunk, Wish(name="A", fresh=("b",)))
    with recipe.open_run(trunk, step=0) as run, recipe.open_run(path) as branch:
        assert pieces(branch.stream(), 10, "b")[:5] == pieces(run.stream(), 0, "b")[:5]
        assert pieces(branch.stream(), 10, "a")[:5] == pieces(run.stream(), 10, "a")[:5]
    assert first_row(path)["parent"]["fresh"] == ["b"]
    assert refused(trunk, Wish(name="B", fresh=("x",)))[0].startswith("--fresh: x")
    assert refused(trunk, Wish(name="B", data="anew"))[0].startswith("--data: anew")  # type: ignore[arg-type]


def test_R07_a_pool_that_changed_is_refused_unless_it_is_read_fresh(
    trunk: Path, tmp_path: Path, one_stage: Any
):
    write(tmp_path / "b2", seed=77, documents=80)
    words = (f"pools.b.path={tmp_path / 'b2'}",)
    (told,) = refused(trunk, Wish(name="A", overrides=words))
    assert told.startswith("pools.b: fingerprint ")
    assert "--fresh b" in told
    (path,) = branch_run(trunk, Wish(name="A", overrides=words, fresh=("b",)))
    with recipe.open_run(path) as run:
        assert pieces(run.stream(), 10, "b")
        run.checkpoint(run.num_steps)
    parent = first_row(path)["parent"]
    assert not parent["controlled"]
    assert parent["against"][0].startswith("pools.b: fingerprint ")


def test_a_pool_that_runs_out_for_certain_is_refused_with_the_numbers(trunk: Path):
    words = ("stages.s.quotas.c=60%", "stages.s.quotas.a=10%", "pools.c.max_epochs=1")
    (told,) = refused(trunk, Wish(name="A", overrides=words))
    assert told.startswith("pools.c: ")
    assert "readings at the run's end" in told
    assert "pools.c.max_epochs=" in told


def test_a_pool_that_is_renamed_keeps_its_order(trunk: Path):
    wish = Wish(name="A", renamed=(("b", "books"),))
    (path,) = branch_run(trunk, wish)
    with recipe.open_run(trunk) as run, recipe.open_run(path) as branch:
        assert list(branch.recipe.pools) == ["a", "books", "c"]
        assert pieces(branch.stream(), 10, "books") == pieces(run.stream(), 10, "b")
        branch.checkpoint(branch.num_steps)
    with recipe.open_run(path) as branch:
        assert branch.complete
    assert refused(trunk, Wish(name="B", renamed=(("x", "y"),)))
    assert refused(trunk, Wish(name="B", renamed=(("a", "b"),)))


def retokenised(root: Path, tokenizer: str, vocab: int) -> None:
    rng = np.random.default_rng(3)
    for name in "abc":
        with PoolWriter(root / name, vocab_size=vocab, eos=0, tokenizer=tokenizer) as writer:
            for number in range(60):
                writer.add(rng.integers(1, vocab, rng.integers(5, 40)), id=number)
            writer.close()


def test_E5_a_tokenizer_change_is_a_branch_with_fresh_data_and_the_tokens_before_it_apart(
    one_stage: Any, tmp_path: Path
):
    retokenised(tmp_path / "old", "a" * 64, 500)
    retokenised(tmp_path / "new", "b" * 64, 900)
    recipe_old = one_stage.model_copy(update={"pools_root": str(tmp_path / "old")})
    with recipe.start_run(recipe_old, tmp_path / "trunk") as run:
        run.checkpoint(10, uri="weights-10")
    words = (f"pools_root='{tmp_path / 'new'}'",)
    told = refused(tmp_path / "trunk", Wish(name="A", overrides=words))
    assert len(told) == 3
    assert all("--data fresh" in line for line in told)
    (path,) = branch_run(tmp_path / "trunk", Wish(name="A", overrides=words, data="fresh"))
    row, base = first_row(path), read_manifest(manifest_path(tmp_path / "trunk", 1))
    assert all(state["spent"] == state["body"] == state["debt"] == 0 for state in row["snapshot"]["pools"])
    assert row["snapshot"]["positions"] == base["snapshot"]["positions"]
    assert row["start"]["prior"] == {name: base["pools"][name]["tokens"]["spent"] for name in "abc"}
    assert (row["start"]["weights"], row["start"]["tokenizer"]) == ("weights-10", "a" * 64)
    assert row["start"]["pools_tokenizer"] == "b" * 64
    assert row["parent"]["retokenised"]
    assert not row["parent"]["controlled"]
    assert row["parent"]["against"][0].startswith("tokenizer: aaaa")
    with recipe.open_run(path) as run:
        assert run.step == 10
        unbroken = served(run.stream(), 10)
        run.checkpoint(20)
    with recipe.open_run(path) as run:
        assert served(run.stream(), 20) == unbroken[10:]
        run.checkpoint(run.num_steps)
    end = read_manifest(latest_path(path))
    chunks = [row.data for row in read_rows(path / "ledger.jsonl") if row.kind == "chunk"]
    for name in "abc":
        assert end["pools"][name]["tokens"]["spent"] == sum(row["pools"][name]["spent"] for row in chunks)


def test_a_branch_goes_on_with_what_its_parents_policy_remembers(one_stage: Any, tmp_path: Path):
    """A control whose policy is told the same losses goes the trunk's way."""
    policy = {"_target_": "recipe.maths.policies.OnlineMixing", "every": 240}
    plain = {**recipe_to_plain(one_stage), "policy": policy}
    wanted = recipe_from_plain(plain, source="test")
    losses = {"a": 2.0, "b": 3.0, "c": 2.5}
    with recipe.start_run(wanted, tmp_path / "trunk") as run:
        assert run.consult(5, losses=losses) is not None
        run.checkpoint(8)
    (path,) = branch_run(tmp_path / "trunk", Wish(name="A"))
    assert first_row(path)["policy"]["memory"]
    ways = []
    for folder in (tmp_path / "trunk", path):
        with recipe.open_run(folder) as run:
            run.consult(10, losses={"a": 1.5, "b": 3.0, "c": 2.0})
            ways.append((run.recipe.shares("s"), served(run.stream(), 10)))
            run.checkpoint(run.num_steps)
        assert recipe.audit_run(folder, full=True).findings == ()
    assert ways[0] == ways[1]


def test_Q02_another_mixture_from_a_checkpoint_loses_and_repeats_nothing(build: Build, tmp_path: Path):
    """A and B of 100 windows, 1:1 for 60, then 2:1 in a branch for 60; a pool added moves neither cursor."""
    for name in "abc":
        documents = [np.arange(1, 5)] * 100
        recipe.write_pool(tmp_path / name, documents, vocab_size=9)
    stages = {"s": {"steps": 12, "context": 4, "batch": {"sequences": 10}, "weights": {"a": 1, "b": 1}}}
    pools = {name: {"path": name} for name in "ab"}
    wanted = build(pools_root=str(tmp_path), pools=pools, groups={}, stages=stages)
    with recipe.start_run(wanted, tmp_path / "trunk") as run:
        run.checkpoint(6)
    words = ("stages.s.weights.a=2",)
    more = (*words, "+pools.c={path: c}")
    paths = branch_run(tmp_path / "trunk", [Wish(name="A", overrides=words), Wish(name="B", overrides=more)])
    with recipe.open_run(tmp_path / "trunk") as run:
        before = {name: pieces(run.stream(), 0, name, stop=6) for name in "ab"}
        alone = {name: pieces(run.stream(), 0, name) for name in "ab"}
    for path in paths:
        with recipe.open_run(path) as run:
            after = {name: pieces(run.stream(), 6, name) for name in "ab"}
        served_now = {name: [*before[name], *after[name]] for name in "ab"}
        assert [len(after[name]) for name in "ab"] == [40, 20]
        assert [len(set(served_now[name])) for name in "ab"] == [70, 50]
        assert served_now["b"] == alone["b"][:50]
        assert served_now["a"][:60] == alone["a"]
