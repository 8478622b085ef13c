"""Branches: other runs from one checkpoint, which differ by what was named and by nothing else."""

from __future__ import annotations

from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recipe
from recipe import RecipeError
from recipe.pools import open_pool
from recipe.run.branching.branch import branch_run, create_branches, plan_branches
from recipe.run.branching.origin import find_origin
from recipe.run.branching.wishes import Wish
from recipe.run.ledger import read_rows
from recipe.run.manifest import latest_path, manifest_path, read_manifest, unseal
from recipe.sequences.reading_order import BlockPlace, place_of_unit
from tests.run.conftest import Build, served, stage, write

UP = ("stages.two.quotas.a=40%",)
"""Ten points less for a; they go to b."""


@pytest.fixture
def trunk(build: Build, tmp_path: Path) -> Path:
    """A run of 25 steps in two stages (15 and 10), with checkpoints at steps 4, 9 and 20."""
    with recipe.start_run(build(), tmp_path / "trunk") as run:
        run.checkpoint(4, uri="weights-4")
        run.checkpoint(9, uri="weights-9")
        run.checkpoint(20)
    return tmp_path / "trunk"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def pieces(stream: Any, start: int, pool: str, stop: int | None = None) -> list[tuple[Any, ...]]:
    """What a pool gives from a step on: document, start, stop, fresh, in order."""
    found = []
    for step in range(start, stream.num_steps if stop is None else stop):
        for row in range(len(stream.batch(step)["pool"])):
            found += [piece[1:5] for piece in stream.provenance(step, row) if piece.pool == pool]
    return found


def refused(path: Path | str, wish: Wish, **more: Any) -> list[str]:
    with pytest.raises(RecipeError) as caught:
        branch_run(path, wish, **more)
    return [f"{p.where}: {p.given}; {p.expected}; {p.fix}" for p in caught.value.problems]


def test_Q07_a_branch_goes_on_where_the_trunk_stood_and_touches_nothing_of_it(trunk: Path):
    before = contents(trunk)
    (path,) = branch_run(f"{trunk}@2", Wish(name="A"))
    assert contents(trunk) == before
    assert path == trunk.parent / "A"
    assert (path / "parent.yaml").read_bytes() == manifest_path(trunk, 2).read_bytes()
    with recipe.open_run(trunk) as run, recipe.open_run(path) as branch:
        assert branch.step == 9
        assert served(branch.stream(), 9) == served(run.stream(), 9)


def test_Q07_continue_fresh_and_resume_are_three_things(trunk: Path, build: Build, tmp_path: Path):
    a, b = branch_run(f"{trunk}@2", [Wish(name="A"), Wish(name="B", data="fresh")])
    with recipe.open_run(trunk, step=9) as run, recipe.open_run(a) as first, recipe.open_run(b) as second:
        assert pieces(first.stream(), 9, "a") == pieces(run.stream(), 9, "a")
        begins = [piece[:3] for piece in pieces(second.stream(), 9, "a")]
        own = [piece[:3] for piece in pieces(run.stream(), 0, "a")]
        assert begins[:8] == own[:8] != [piece[:3] for piece in pieces(run.stream(), 9, "a")][:8]
        whole = served(first.stream(), 9)
        first.checkpoint(14)
    with recipe.open_run(a) as again:
        assert again.step == 14
        assert served(again.stream(), 14) == whole[5:]


def test_a_branch_is_resumed_at_every_step_and_by_state(trunk: Path):
    """Invariant 5, on a branch."""
    (path,) = branch_run(f"{trunk}@step:9", Wish(name="A", overrides=UP, from_pool="b"))
    with recipe.open_run(path) as run:
        whole = served(run.stream(), 9)
        for step in range(10, run.num_steps + 1):
            state = run.state(step)
            assert served(recipe.stream_from(state), step) == whole[step - 9 :]
            run.checkpoint(step)
            with recipe.open_run(path) as again:
                assert served(again.stream(), step) == whole[step - 9 :]


def test_a_branchs_first_row_says_where_it_comes_from(trunk: Path):
    (path,) = branch_run(f"{trunk}@2", Wish(name="A", overrides=UP, from_pool="b", reason="less a"))
    row = next(read_rows(path / "ledger.jsonl")).data
    told = read_manifest(manifest_path(trunk, 2))
    parent = {
        "run": "trunk",
        "id": unseal(trunk / "run.yaml", (trunk / "run.yaml").read_bytes())["id"],
        "path": str(trunk),
        "manifest": 2,
        "hash": told["hash"],
        "step": 9,
        "data": "continue",
        "named": ["stages.two.quotas.a", "stages.two.quotas.b"],
        "differs": ["stages.two.quotas.a: 50% → 40%", "stages.two.quotas.b: 30% → 40%"],
        "controlled": True,
    }
    assert row["parent"] == parent
    assert unseal(path / "run.yaml", (path / "run.yaml").read_bytes())["parent"] == parent
    assert (row["step"], row["stage"], row["grid"]) == (9, "one", [432, 432])
    assert row["snapshot"]["step"] == 9
    version = unseal(path / "recipes/0001.yaml", (path / "recipes/0001.yaml").read_bytes())
    assert (version["version"], version["step"], version["reason"]) == (1, 9, "less a")


def test_E2_what_the_trunk_spent_stays_spent_in_a_branch(trunk: Path):
    (path,) = branch_run(f"{trunk}@2", Wish(name="A", overrides=UP, from_pool="b"))
    with recipe.open_run(path) as run:
        run.checkpoint(run.num_steps)
    end, base = read_manifest(latest_path(path)), read_manifest(manifest_path(trunk, 2))
    rows = [row.data for row in read_rows(path / "ledger.jsonl") if row.kind == "chunk"]
    for name in "abc":
        added = sum(row["pools"][name]["spent"] for row in rows)
        assert end["pools"][name]["tokens"]["spent"] == base["pools"][name]["tokens"]["spent"] + added
        stages = sum(stage[name]["spent"] for stage in end["stages"].values())
        assert stages == end["pools"][name]["tokens"]["spent"]
    assert [row["steps"][0] for row in rows] == [9, *(row["steps"][1] for row in rows[:-1])]
    assert [row["grid"][0] for row in rows][:2] == [432, 450]


@pytest.mark.parametrize(
    "slicing",
    [
        {},
        {"offset": "random", "stride": {"head": 9}},
        {"density": {"middle": 0.5}},
        {"align": "word", "align_within": 7, "stride": 9},
    ],
    ids=str,
)
def test_invariant_8_branches_draw_alike_up_to_the_first_cut_and_the_same_blocks_always(
    build: Build, tmp_path: Path, slicing: Any
):
    pools = {name: {"path": name, "block_units": 8, "slicing": slicing} for name in "abc"}
    top = {"pools_root": write_words(tmp_path), "tokenizer": "bytes"} if "align" in slicing else {}
    with recipe.start_run(build(pools=pools, **top), tmp_path / "trunk") as run:
        assert not top or any(cuts_moved(run, pool) for pool in "abc")
        run.checkpoint(4)
    more = ("stages.one.quotas.a=20%", "stages.two.quotas.c=45%")
    wishes = [Wish(name="A"), Wish(name="B", overrides=more, from_pool="b")]
    paths = branch_run(tmp_path / "trunk", wishes)
    with recipe.open_run(paths[0]) as one, recipe.open_run(paths[1]) as other:
        for pool in "abc":
            a, b = (pieces(run.stream(), 4, pool, stop=15) for run in (one, other))
            both = min(len(a), len(b))
            assert a[:both] == b[:both]
            assert both > (1 if pool == "c" else 5)
            first, second = (blocks(run, pool, pieces(run.stream(), 4, pool)) for run in (one, other))
            both = min(len(first), len(second))
            assert first[:both] == second[:both]
            assert pool == "c" or both > 1


def write_words(root: Path) -> str:
    """Pools like those of other tests, of words of the letter a, one byte a token."""
    chance = np.random.default_rng(3)
    for name, documents in {"a": 90, "b": 60, "c": 12}.items():
        texts = [np.where(chance.random(n) < 0.2, 32, 97) for n in chance.integers(1, 40, documents)]
        recipe.write_pool(root / "words" / name, texts, vocab_size=257, eos=256)
    return str(root / "words")


def cuts_moved(run: Any, pool: str) -> bool:
    """Whether some piece that another one goes on from has fewer fresh tokens than a stride."""
    found = pieces(run.stream(), 0, pool, stop=15)
    begins = {(document, fresh) for document, _, _, fresh in found}
    return any(stop - fresh < 9 and (document, stop) in begins for document, _, stop, fresh in found)


def blocks(run: Any, name: str, served: list[tuple[Any, ...]]) -> list[int]:
    """The blocks that documents were read from, in order, epoch after epoch; only the first epoch is told."""
    with open_pool(run.recipe.pool_path(name), name) as pool:
        place = BlockPlace(run.recipe.seed, 0, 0, 8)
        seen = [place_of_unit(pool, place, pool.find(piece[0])) for piece in served[: pool.num_units // 2]]
    numbers = [at // 8 for at in seen if at is not None]
    return [number for k, number in enumerate(numbers) if not k or numbers[k - 1] != number]


def test_invariant_8_without_a_change_of_rule_the_order_is_one_to_the_end(build: Build, tmp_path: Path):
    stages = {"s": stage(tokens=960, context=16, quotas={"a": "60%", "b": "30%", "c": "10%"})}
    with recipe.start_run(build(stages=stages, groups={}), tmp_path / "trunk") as run:
        run.checkpoint(5)
    wishes = [Wish(name="A"), Wish(name="B", overrides=("stages.s.quotas.b=80%",), from_pool="a")]
    a_path, b_path = branch_run(tmp_path / "trunk", wishes)
    with recipe.open_run(a_path) as one, recipe.open_run(b_path) as other:
        for pool in "abc":
            a, b = (pieces(run.stream(), 5, pool) for run in (one, other))
            both = min(len(a), len(b))
            assert a[:both] == b[:both]
        assert len(pieces(other.stream(), 5, "b")) > len(pieces(one.stream(), 5, "b"))


def test_a_branch_of_a_branch(trunk: Path):
    (a,) = branch_run(f"{trunk}@1", Wish(name="A", overrides=UP, from_pool="b"))
    with recipe.open_run(a) as run:
        run.checkpoint(12)
    (b,) = branch_run(a, Wish(name="B"))
    with recipe.open_run(a) as run, recipe.open_run(b) as branch:
        assert served(branch.stream(), 12) == served(run.stream(), 12)
    assert next(read_rows(b / "ledger.jsonl")).data["parent"]["run"] == "A"


def test_a_branch_at_the_end_of_a_stage(build: Build, tmp_path: Path):
    with recipe.start_run(build(), tmp_path / "trunk") as run:
        run.checkpoint(15)
    (path,) = branch_run(tmp_path / "trunk", Wish(name="A", overrides=UP, from_pool="b"))
    row = next(read_rows(path / "ledger.jsonl")).data
    assert (row["stage"], row["grid"]) == ("one", [700, 700])
    with recipe.open_run(path) as run:
        run.checkpoint(run.num_steps)
    rows = [row.data for row in read_rows(path / "ledger.jsonl") if row.kind == "chunk"]
    assert [row["stage"] for row in rows] == ["two"] * len(rows)
    assert rows[-1]["grid"][1] == 900


def test_a_complete_run_is_branched_to_go_on(build: Build, tmp_path: Path):
    with recipe.start_run(build(), tmp_path / "trunk") as run:
        run.checkpoint(run.num_steps)
        end = run.num_steps
    more = ("+stages.three={like: two, tokens: 300}",)
    (path,) = branch_run(tmp_path / "trunk", Wish(name="A", overrides=more))
    with recipe.open_run(path) as run:
        assert (run.step, run.stage) == (end, "three")
        run.checkpoint(run.num_steps)
        assert run.complete


def test_an_end_stage_takes_the_place_of_the_rest(trunk: Path):
    tail = "{name: decay, tokens: 300, context: 16, quotas: {a: 50%, b: 20%, c: 30%}}"
    (path,) = branch_run(f"{trunk}@1", Wish(name="A", end_stage=tail))
    with recipe.open_run(path) as run:
        assert list(run.recipe.stages) == ["one", "decay"]
        assert run.recipe.stages["one"].tokens == 150
        assert (run.step, run.stage) == (4, "decay")
        run.checkpoint(run.num_steps)
    rows = [row.data for row in read_rows(path / "ledger.jsonl")]
    assert rows[0]["grid"] == [150, 150]
    assert sum(row["positions"] for row in rows if row["kind"] == "chunk") == 336
    assert {row["stage"] for row in rows if row["kind"] == "chunk"} == {"decay"}


def test_an_end_stage_between_two_stages_is_like_the_one_that_was_next(trunk: Path):
    with recipe.open_run(trunk, step=9) as run:
        run.checkpoint(15)
        assert run.stage == "two"
    (path,) = branch_run(trunk, Wish(name="A", end_stage="{tokens: 192}"))
    with recipe.open_run(path) as run:
        assert list(run.recipe.stages) == ["one", "end"]
        assert (run.step, run.stage) == (15, "end")
        assert run.recipe.stages["end"].context == 32
        assert run.recipe.shares("end")["a"] * 2 == 1


def test_an_end_stage_at_a_chunks_close_keeps_what_was_planned(trunk: Path):
    """Where a chunk closed here the stage ends at what its rows plan; the rest of the batch is overshoot."""
    with recipe.open_run(trunk, step=9) as run:
        run.checkpoint(13)
    (path,) = branch_run(trunk, Wish(name="A", end_stage="{tokens: 96}"))
    row = next(read_rows(path / "ledger.jsonl")).data
    with recipe.open_run(path) as run:
        assert run.recipe.stages["one"].tokens == row["grid"][1] == 600
        assert run.stage == "end"


@pytest.mark.parametrize(
    "spec", ["[1]", "{name: two, tokens: 5}", "{tokens: 300, contxt: 3}", "{quotas: {a: 5%}}"]
)
def test_an_end_stage_that_is_none_is_refused(trunk: Path, spec: str):
    assert refused(trunk, Wish(name="A", end_stage=spec))
    assert not (trunk.parent / "A").exists()


def test_changes_of_what_lies_behind_are_refused_all_at_once(trunk: Path):
    told = refused(
        f"{trunk}@3",
        Wish(
            name="A",
            overrides=("stages.two.context=64", "count=fresh", "labels=inputs"),
        ),
    )
    wheres = {line.partition(":")[0] for line in told}
    assert wheres == {"count", "labels", "stages.one", "stages.two.context"}
    assert not any("branch the run" in line for line in told)
    assert "start another run" in told[0]


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "-m", "trunk"])
def test_names_that_leave_the_folder_or_are_taken_are_refused(trunk: Path, name: str):
    before = contents(trunk.parent)
    assert refused(trunk, Wish(name=name))
    assert contents(trunk.parent) == before


def test_several_branches_are_created_all_or_none(trunk: Path):
    (trunk.parent / "C").mkdir()
    (trunk.parent / "C" / "notes").write_text("mine")
    wishes = [Wish(name="A"), Wish(name="B", overrides=("seed=x",)), Wish(name="C"), Wish(name="A")]
    with pytest.raises(RecipeError) as caught:
        branch_run(trunk, wishes)
    told = str(caught.value)
    assert all(mark in told for mark in ("B: seed", "C: ", "A 2 times"))
    assert not (trunk.parent / "A").exists()


def test_G10_a_name_taken_meanwhile_takes_back_those_created_before(trunk: Path):
    branches = plan_branches(find_origin(trunk), [Wish(name="A"), Wish(name="B")])
    branch_run(trunk, Wish(name="B"))
    with pytest.raises(RecipeError, match="started before"):
        create_branches(branches)
    assert not (trunk.parent / "A").exists()
    assert (trunk.parent / "B").is_dir()
    assert not list(trunk.parent.glob(".tmp-*"))


def _try(trunk: Path, barrier: Any, answers: Any) -> None:
    barrier.wait()
    try:
        answers.put(str(branch_run(trunk, Wish(name="A"))[0]))
    except RecipeError as error:
        answers.put(error.title)


def test_G10_of_four_processes_that_branch_under_one_name_one_does(trunk: Path):
    context = get_context("fork")
    barrier, answers = context.Barrier(4), context.Queue()
    jobs = [context.Process(target=_try, args=(trunk, barrier, answers)) for _ in range(4)]
    for job in jobs:
        job.start()
    told = sorted(answers.get(timeout=600) for _ in jobs)
    for job in jobs:
        job.join()
    assert told.count(str(trunk.parent / "A")) == 1
    with recipe.open_run(trunk.parent / "A") as run:
        assert run.step == 20


def test_a_folder_of_its_own_for_branches(trunk: Path, tmp_path: Path):
    (path,) = branch_run(trunk, Wish(name="A"), root=tmp_path / "elsewhere" / "deep")
    with recipe.open_run(path) as run:
        assert run.step == 20


def test_a_pool_may_be_added_in_a_branch(trunk: Path, tmp_path: Path):
    write(tmp_path / "d", seed=9, documents=30)
    words = (f"+pools.d={{path: '{tmp_path / 'd'}'}}", "stages.two.quotas.d=10%")
    (path,) = branch_run(f"{trunk}@2", Wish(name="A", overrides=words, from_pool="b"))
    with recipe.open_run(path) as run:
        assert pieces(run.stream(), 15, "d")
        run.checkpoint(run.num_steps)
    parent = next(read_rows(path / "ledger.jsonl")).data["parent"]
    assert parent["controlled"]
    assert any(line.startswith("pools.d.path") for line in parent["differs"])


def test_a_branch_begins_at_its_base_and_has_no_step_before(trunk: Path):
    (path,) = branch_run(f"{trunk}@2", Wish(name="A"))
    with recipe.open_run(path) as run:
        run.checkpoint(12)
    with recipe.open_run(path, step=9) as run:
        assert run.step == 9
        with pytest.raises(RecipeError, match="before the branch"):
            run.stream().batch(8)
        run.checkpoint(10)
    with pytest.raises(RecipeError, match="a step before the branch"):
        recipe.open_run(path, step=0)
    with recipe.open_run(path) as run:
        assert run.step == 10


def test_E1_two_branches_take_the_same_steps_and_positions_and_differ_by_the_named_shares(trunk: Path):
    """A keeps the group, B raises it pro rata at the expense of one pool; both counts are on record."""
    wishes = [Wish(name="A"), Wish(name="B", overrides=("stages.one.quotas.rest=43.4%",), from_pool="a")]
    ends = []
    for path in branch_run(f"{trunk}@1", wishes):
        with recipe.open_run(path) as run:
            shares = run.recipe.shares("one")
            run.checkpoint(run.num_steps, gpu_hours=12.5)
        ends.append((shares, read_manifest(latest_path(path))))
    (kept, a), (raised, b) = ends
    assert (raised["b"] / kept["b"], raised["c"] / kept["c"]) == (Fraction(434, 384),) * 2
    assert kept["a"] - raised["a"] == Fraction(5, 100)
    for key in ("num_steps", "positions", "gpu_hours", "count"):
        assert a[key] == b[key]
    spent = [sum(pool["tokens"]["spent"] for pool in end["pools"].values()) for end in (a, b)]
    assert all(spent)
    rows = [next(read_rows(trunk.parent / name / "ledger.jsonl")).data["parent"] for name in "AB"]
    assert [row["controlled"] for row in rows] == [True, True]
    assert [row["differs"] for row in rows] == [
        [],
        ["stages.one.quotas.a: 61.6% → 56.6%", "stages.one.quotas.rest: 38.4% → 43.4%"],
    ]
