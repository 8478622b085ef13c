"""Branches compared: what they share, what speaks against it, and a tree that adds up."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import recipe
from recipe import RecipeError
from recipe.run.branching.branch import branch_run
from recipe.run.branching.wishes import Wish
from recipe.run.canonical import canonical
from recipe.run.changing.amend import amend_run
from recipe.run.changing.approval import Approval
from recipe.run.changing.skip import skip_run
from recipe.run.changing.withdraw import Ticket, withdraw_run
from recipe.run.comparing.history import read_history
from recipe.run.comparing.lineage_tree import find_parent, totals_of
from recipe.run.ledger import read_rows
from recipe.run.row import chained, first_line
from tests.run.compared import advance, loss, started
from tests.run.conftest import Build, stage, write

KINDS = ("spent", "body", "special", "padding", "labels")


@pytest.fixture
def trunk(build: Build, tmp_path: Path) -> Path:
    return started(build(), tmp_path / "trunk", (4, 8))


def branched(
    trunk: Path | str, *wishes: Wish, steps: Sequence[int] = (12, 16), **losses: float
) -> list[Path]:
    """Branches of a run, with checkpoints; the last one has the losses given by name."""
    paths = branch_run(trunk, wishes)
    for path in paths:
        with recipe.open_run(path) as run:
            advance(run, steps, loss(losses[path.name]) if path.name in losses else {})
    return paths


def up(name: str, *more: str, pool: str = "a") -> Wish:
    """Five points from one pool to b, in both stages."""
    quotas = ("stages.two.quotas.b=35%",)
    return Wish(name=name, overrides=(*quotas, *more), from_pool=pool)


def test_E1_two_branches_of_one_checkpoint_that_differ_by_what_was_named(build: Build, tmp_path: Path):
    """A keeps the group at 15 %, B has it at 20 % and the big pool at 5 points less; nothing else."""
    quotas = {"a": "85%", "rest": "15%"}
    plain = {"one": stage(tokens=1600, context=16, chunk=150, quotas=quotas)}
    trunk = started(build(stages=plain), tmp_path / "trunk", (4, 8))
    change = Wish(name="B", overrides=("stages.one.quotas.rest=20%",), from_pool="a")
    paths = branched(trunk, Wish(name="A"), change, steps=(12, 24), A=2.5, B=2.4)
    made = recipe.compare_runs(paths)
    a, b = made.runs
    assert made.remarks == ()
    assert made.controlled
    assert (a.positions, made.step) == (b.positions, 24)
    assert (a.gpu_hours, b.gpu_hours) == (6.0, 6.0)
    assert a.counted != b.counted or a.spent != b.spent
    more = made.to_plain()["runs"][1]["more"]
    assert more["a"] < 0 < more["b"] + more["c"]
    assert sum(more.values()) == b.counted - a.counted
    assert a.parent is not None
    assert b.parent is not None
    assert (a.parent["hash"] if "hash" in a.parent else a.parent["manifest"]) == 2
    assert "stages.one.quotas.rest" in b.parent["named"]


def test_the_tree_has_the_trunk_first_and_its_end_points_are_the_cumulative_totals(trunk: Path):
    a, b = branched(trunk, Wish(name="A"), up("B"))
    (deep,) = branched(f"{b}@1", Wish(name="deep"), steps=(14, 16))
    made = recipe.compare_runs([a, deep])
    assert [(node.name, node.depth, node.first, node.last, node.compared) for node in made.lineage] == [
        ("trunk", 0, 0, 8, False),
        ("A", 1, 8, 16, True),
        ("B", 1, 8, 12, False),
        ("deep", 2, 12, 16, True),
    ]
    nodes = {node.name: node for node in made.lineage}
    for run, line in (("A", ("trunk", "A")), ("deep", ("trunk", "B", "deep"))):
        total = next(each for each in made.runs if each.name == run).spent
        assert nodes[run].total == total
        assert total == {pool: sum((nodes[name].own or {})[pool] for name in line) for pool in total}


def test_a_trunk_is_compared_with_its_own_branch(trunk: Path):
    (b,) = branched(trunk, up("B"))
    with recipe.open_run(trunk) as run:
        advance(run, (12, 16), {})
    made = recipe.compare_runs([trunk, b])
    assert made.remarks == ()
    assert [node.name for node in made.lineage] == ["trunk", "B"]
    assert made.lineage[0].last == 16


def test_an_uncontrolled_branch_is_said_loudly(build: Build, trunk: Path):
    longer = Wish(name="longer", overrides=("stages.two.batch.sequences=6",))
    paths = branched(trunk, Wish(name="A"), longer)
    made = recipe.compare_runs(paths)
    assert not made.controlled
    assert made.remarks[0].startswith("longer is an uncontrolled branch: ")
    assert any(line.startswith("longer against A: batches: ") for line in made.remarks)
    assert any(line.startswith("longer against A: positions consumed: ") for line in made.remarks)


def test_branches_of_different_checkpoints_are_told(trunk: Path):
    (a,) = branched(f"{trunk}@1", Wish(name="A"))
    (b,) = branched(f"{trunk}@2", up("B"))
    assert any("B against A: checkpoint: " in line for line in recipe.compare_runs([a, b]).remarks)


def test_a_branch_that_was_amended_since_is_told(trunk: Path):
    a, b = branched(trunk, Wish(name="A"), Wish(name="B"), steps=(12,))
    amend_run(
        b, ["stages.two.quotas.b=20%"], from_pool="a", approval=Approval(reason="less", approved_by="Li")
    )
    for path in (a, b):
        with recipe.open_run(path) as run:
            run.checkpoint(16)
    made = recipe.compare_runs([a, b])
    assert "B was amended at step 12" in made.remarks
    assert any(line.startswith("B against A: not named: stages.two") for line in made.remarks)
    assert [node.name for node in made.lineage] == ["trunk", "A", "B"]


def test_an_amendment_before_the_branches_is_shared_and_no_remark(trunk: Path):
    amend_run(trunk, ["stages.two.quotas.b=20%"], from_pool="a", approval=Approval(reason="x"))
    (b,) = branched(trunk, Wish(name="B"), steps=(12,))
    with recipe.open_run(trunk) as run:
        run.checkpoint(12)
    assert recipe.compare_runs([trunk, b]).remarks == ()


def test_data_that_one_branch_reads_anew_is_told(trunk: Path):
    paths = branched(trunk, Wish(name="A"), Wish(name="B", data="fresh"))
    made = recipe.compare_runs(paths)
    assert "B against A: data: read on → all pools fresh" in made.remarks
    assert [len(arm.runs) for arm in made.arms] == [1, 1]


def test_a_trunk_that_was_rewound_past_the_branch_is_told(trunk: Path):
    (b,) = branched(trunk, up("B"), steps=(12,))
    with recipe.open_run(trunk, step=4) as run:
        advance(run, (6, 12), {})
    made = recipe.compare_runs([trunk, b])
    assert any("trunk was rewound past step 8" in line for line in made.remarks)
    assert made.lineage[0].own is not None


def test_branches_over_seeds_are_arms_and_paired(trunk: Path):
    """Common random numbers: A and B of one seed read the same documents, and are compared pair by pair."""
    wishes = [
        Wish(
            name=f"{name}-seed{seed}", overrides=(f"seed={seed}", *change), from_pool="a" if change else None
        )
        for name, change in (("A", ()), ("B", ("stages.two.quotas.b=35%",)))
        for seed in (1, 2, 3)
    ]
    losses = dict(zip([wish.name for wish in wishes], (2.0, 2.5, 3.0, 1.9, 2.4, 2.9), strict=True))
    paths = branch_run(trunk, wishes)
    for path in paths:
        with recipe.open_run(path) as run:
            advance(run, (12,), loss(losses[path.name]))
    made = recipe.compare_runs(paths)
    assert made.remarks == ()
    assert [(arm.name, len(arm.runs)) for arm in made.arms] == [("A", 3), ("B", 3)]
    cell = made.metrics[0].cells[1]
    assert cell.delta is not None
    assert (cell.paired, float(cell.delta.mean), cell.delta.half_width) == (True, -0.1, 0.0)


def test_a_trunk_whose_folder_is_gone_is_known_from_the_branch_alone(trunk: Path):
    a, b = branched(trunk, Wish(name="A"), up("B"))
    before = recipe.compare_runs([a, b])
    shutil.move(trunk, trunk.parent / "elsewhere")
    made = recipe.compare_runs([a, b])
    assert find_parent(read_history(a)) is None
    assert made.lineage[0].own is None
    assert made.lineage[0].total == before.lineage[0].total
    assert made.remarks == ()


def test_a_trunk_that_was_moved_together_with_its_branches_is_found_beside_them(trunk: Path, tmp_path: Path):
    a, _ = branched(trunk, Wish(name="A"), up("B"))
    for path in (trunk, a):
        (tmp_path / "moved").mkdir(exist_ok=True)
        shutil.move(path, tmp_path / "moved" / path.name)
    parent = find_parent(read_history(tmp_path / "moved" / "A"))
    assert parent is not None
    assert parent.folder.path == tmp_path / "moved" / "trunk"


def test_a_renamed_pool_keeps_its_account(trunk: Path):
    paths = branched(trunk, Wish(name="A", renamed={"a": "alpha"}))
    (made,) = recipe.compare_runs(paths).runs
    assert made.spent["alpha"] == totals_of(*last(paths[0]))["alpha"]["spent"] > 0


def test_the_sums_hold_over_every_kind_of_turn(trunk: Path, tmp_path: Path):
    """A pool is added while training, steps are skipped, documents withdrawn, a checkpoint comes late."""
    write(tmp_path / "extra", seed=9, documents=40)
    (b,) = branched(trunk, up("B"), steps=(10,))
    added = ["+pools.d={path: " + str(tmp_path / "extra") + "}", "stages.two.quotas.d=5%"]
    with recipe.open_run(b) as run:
        run.amend(added, reason="more", from_pool="a", step=11)
        late = run.begin_checkpoint(12)
        run.checkpoint(13)
        run.checkpoint(18)
        late.commit("late")
    skip_run(b, (18, 20), reason="a spike")
    withdraw_run(b, ["0"], pool="a", ticket=Ticket(reason="asked for"))
    with recipe.open_run(b) as run:
        run.checkpoint(22)
    for step in (10, 12, 13, 18, 22):
        (node,) = [node for node in recipe.compare_runs([b], step).lineage if node.name == "B"]
        assert node.own is not None
        assert (node.last, sum(node.own.values()) > 0) == (step, True)
    remarks = recipe.compare_runs([b], 22).remarks
    assert remarks[-3:] == (
        "B was amended at step 11",
        "B skipped steps at step 18",
        "B had documents withdrawn at step 18",
    )
    assert recipe.compare_runs([b], 10).remarks == ()


def test_the_sums_hold_along_a_ramp(build: Build, tmp_path: Path):
    second = {"a": "30%", "b": "50%", "c": "20%"}
    ramp = {"over": 600, "steps": 4}
    stages = {
        "one": stage(tokens=700, context=16, chunk=150, quotas={"a": "61.6%", "rest": "38.4%"}),
        "two": stage(tokens=900, context=32, chunk=200, quotas=second, quota_ramp=ramp),
    }
    path = started(build(stages=stages), tmp_path / "ramp", (8, 16, 18, 25))
    for step in (8, 16, 18, 25):
        (node,) = recipe.compare_runs([path], step).lineage
        assert node.own == node.total


def last(path: Path) -> Any:
    history = read_history(path)
    return history, history.points[-1]


def forged(path: Path, change: Any) -> None:
    """The ledger with a row changed and every hash after it made anew."""
    rows = [row.data for row in read_rows(path / "ledger.jsonl")]
    bodies = [
        {k: v for k, v in row.items() if k not in ("format", "row", "time", "previous", "hash")}
        for row in rows
    ]
    change(bodies)
    data = first_line(bodies[0], time=rows[0]["time"])
    before = recipe.run.row.Row(0, json.loads(data))  # type: ignore[attr-defined]
    for row in chained(before, bodies[1:], time=rows[0]["time"]):
        data += canonical(row) + b"\n"
    (path / "ledger.jsonl").write_bytes(data)


@pytest.mark.parametrize("kind", KINDS)
def test_a_chunk_row_that_does_not_add_up_is_refused(build: Build, tmp_path: Path, kind: str):
    """Also where the chain was made anew: sums are checked, not only shown."""
    path = started(build(), tmp_path / "run")
    other = started(build(seed=2), tmp_path / "other")

    def change(bodies: list[dict[str, Any]]) -> None:
        chunk = next(body for body in bodies if body["kind"] == "chunk")
        value = chunk["pools"]["a"][kind]  # another of as many digits: places in the file are stated too
        chunk["pools"]["a"][kind] = value + 1 if value % 10 < 9 else value - 1

    forged(path, change)
    with pytest.raises(RecipeError, match=f"does not add up(.|\n)*pool a, {kind}"):
        recipe.compare_runs([path, other])


def test_a_branch_that_does_not_begin_where_its_parent_ended_is_refused(trunk: Path):
    (a,) = branched(trunk, Wish(name="A"), steps=(12,))

    def change(bodies: list[dict[str, Any]]) -> None:
        bodies[0]["snapshot"]["pools"][0]["spent"] += 1
        for body in bodies:
            if body["kind"] == "chunk" or "closing" in body:
                body["snapshot"]["pools"][0]["spent"] += 1

    forged(a, change)
    with pytest.raises(RecipeError, match="does not add up"):
        recipe.compare_runs([a])
