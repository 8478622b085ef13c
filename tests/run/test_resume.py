"""Resume: at every step, again and again, from the folder or from the state, equals the unbroken run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recipe
from recipe.config import Recipe
from recipe.run.ledger import read_rows
from tests.run.conftest import Build, served, stage, write


@pytest.fixture
def whole(build: Build, tmp_path: Path) -> list[bytes]:
    with recipe.start_run(build(), tmp_path / "whole") as run:
        return served(run.stream(), 0)


def chunk_rows(path: Path) -> list[dict]:
    """Chunk rows that no rewind discarded, in order, by the rule that the ledger states."""
    kept: list[dict] = []
    for row in read_rows(path / "ledger.jsonl"):
        if row.kind == "rewind":
            kept = [r for r in kept if r["steps"][1] <= row.data["to_step"]]
        if row.kind == "chunk":
            kept.append(row.data)
    return kept


def numbers(rows: list[dict]) -> list[dict]:
    """Rows without chain and time."""
    return [{k: v for k, v in row.items() if k not in ("row", "time", "previous", "hash")} for row in rows]


def test_resume_at_every_step_from_the_folder_and_from_the_state(
    build: Build, tmp_path: Path, whole: list[bytes]
):
    with recipe.start_run(build(), tmp_path / "run") as run:
        states = [run.state(step) for step in range(run.num_steps + 1)]
        for step in range(run.num_steps + 1):
            run.checkpoint(step)
    for step, state in enumerate(states):
        with recipe.open_run(tmp_path / "run", step=step) as run:
            assert run.step == step
            assert served(run.stream(), run.step) == whole[step:]
        stream = recipe.stream_from(state)
        assert stream.step == step
        assert served(stream, stream.step) == whole[step:]


def test_F4_R01_a_run_stopped_at_every_step_equals_the_unbroken_one(
    build: Build, tmp_path: Path, whole: list[bytes]
):
    """Each opening goes on where the last one stopped: 30 then 40, never 30 then 10."""
    got = []
    recipe.start_run(build(), tmp_path / "run").close()
    for step in range(len(whole)):
        with recipe.open_run(tmp_path / "run") as run:
            assert run.step == step
            got += served(run.stream(), run.step, step + 1)
            run.checkpoint(step + 1)
    assert got == whole
    assert recipe.open_run(tmp_path / "run").complete


def test_the_account_does_not_depend_on_where_checkpoints_are(build: Build, tmp_path: Path):
    with recipe.start_run(build(), tmp_path / "once") as run:
        run.checkpoint(run.num_steps)
    with recipe.start_run(build(), tmp_path / "often") as run:
        for step in range(run.num_steps + 1):
            run.checkpoint(step)
    assert numbers(chunk_rows(tmp_path / "once")) == numbers(chunk_rows(tmp_path / "often"))


def test_chunk_rows_tile_the_steps_and_their_sums_are_whole(build: Build, tmp_path: Path):
    with recipe.start_run(build(), tmp_path / "run") as run:
        run.checkpoint(7)
        run.checkpoint(run.num_steps)
        rows, end = chunk_rows(tmp_path / "run"), run.stream().snapshot(run.num_steps)
    edges = [row["steps"] for row in rows]
    assert [edge[0] for edge in edges] == [0, *(edge[1] for edge in edges[:-1])]
    for row in rows:
        pools = row["pools"].values()
        assert sum(p["owed"] for p in pools) == sum(p["spent"] for p in pools) == row["counted"]
        assert sum(p["planned"] for p in pools) == row["grid"][1] - row["grid"][0]
        assert sum(p["body"] + p["special"] + p["padding"] for p in pools) == row["positions"]
        assert row["groups"]["rest"]["spent"] == row["pools"]["b"]["spent"] + row["pools"]["c"]["spent"]
    assert sum(row["positions"] for row in rows) == end.positions


def test_R02_R06_R09_positions_in_later_epochs_resume_in_their_own_order(build: Build, tmp_path: Path):
    """One pool of 10 sequences read three times; cut in every epoch and exactly at its end."""
    write(tmp_path / "p", seed=5, documents=10, longest=2)
    one = build(
        pools_root=str(tmp_path),
        pools={"p": {"path": "p"}},
        groups={},
        stages={
            "s": {
                "steps": 15,
                "context": 2,
                "batch": {"sequences": 2},
                "quotas": {"p": "100%"},
                "packing": "none",
            }
        },
    )
    with recipe.start_run(one, tmp_path / "run") as run:
        everything = served(run.stream(), 0)
        orders = [
            [run.stream().provenance(s, r)[0].document for s in range(5 * e, 5 * e + 5) for r in (0, 1)]
            for e in range(3)
        ]
        for step in range(16):
            run.checkpoint(step)
    assert [sorted(order) for order in orders] == [list(range(10))] * 3
    assert orders[0] != orders[1] != orders[2]
    for step in range(16):
        with recipe.open_run(tmp_path / "run", step) as run:
            assert served(run.stream(), step) == everything[step:]


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 3), (3, 1)])
def test_L01_L02_another_number_of_ranks_goes_on_with_the_same_rows(
    build: Build, tmp_path: Path, before: int, after: int
):
    """12 windows remain after the checkpoint, each once, whatever the number of ranks was before."""
    six = {
        **stage(tokens=480, context=16, quotas={"a": "100%", "b": "0%", "c": "0%"}),
        "batch": {"sequences": 6},
    }
    seen = []
    with recipe.start_run(build(stages={"s": six}), tmp_path / "run") as run:
        truth = [run.stream().batch(step)["input_ids"].tolist() for step in range(run.num_steps)]
        for rank in range(before):
            seen += [
                (step, b["input_ids"].tolist()) for step, b in run.stream().batches(0, rank, before, stop=2)
            ]
        run.checkpoint(2)
    with recipe.open_run(tmp_path / "run") as run:
        for rank in range(after):
            seen += [
                (step, b["input_ids"].tolist()) for step, b in run.stream().batches(run.step, rank, after)
            ]
    for step, rows in enumerate(truth):
        assert [row for at, part in seen if at == step for row in part] == rows


def test_R05_read_ahead_does_not_move_the_position(build: Build, tmp_path: Path, whole: list[bytes]):
    with recipe.start_run(build(), tmp_path / "run") as run:
        batches = run.stream().batches(read_ahead=8)
        for step, _ in batches:
            if step == 3:
                run.checkpoint(step + 1)
                break
        batches.close()
    with recipe.open_run(tmp_path / "run") as run:
        assert served(run.stream(), run.step) == whole[4:]


def test_A03_V04_evaluation_reads_another_stream_and_moves_nothing(build: Build, tmp_path: Path):
    """Evaluations before and after a resume read the same rows; train tokens are counted once."""
    held_out = build(
        stages={"eval": stage(tokens=96, context=16, quotas={"c": "100%", "a": "0%", "b": "0%"})}
    )
    with recipe.start_run(held_out, tmp_path / "eval") as run:
        state = run.state(0)
    evaluations = []
    with recipe.start_run(build(), tmp_path / "run") as run:
        for step, _ in run.stream().batches():
            evaluations.append(served(recipe.stream_from(state), 0))
            if step == 4:
                run.checkpoint(5)
                break
    with recipe.open_run(tmp_path / "run") as run:
        for _ in run.stream().batches(run.step):
            evaluations.append(served(recipe.stream_from(state), 0))
        run.checkpoint(run.num_steps)
    assert all(rows == evaluations[0] for rows in evaluations)
    assert recipe.run_status(tmp_path / "run").positions == sum(
        r["positions"] for r in chunk_rows(tmp_path / "run")
    )
    assert recipe.run_status(tmp_path / "eval").positions == 0


@settings(max_examples=30)
@given(cuts=st.lists(st.integers(0, 27), min_size=1, max_size=6))
def test_invariant_5_any_chain_of_rewinds_leaves_true_sums(cuts: list[int], chain: Path):
    """Open at any step ever reached, from the state, and checkpoint one or two steps on."""
    path = chain / "run"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(chain / "fresh", path)
    with recipe.open_run(path) as run:
        states = [run.state(step) for step in range(run.num_steps + 1)]
        last = run.num_steps
    for cut in cuts:
        with recipe.open_run(path, state=states[cut]) as run:
            run.checkpoint(min(cut + 2, last))
    end = recipe.open_run(path)
    rows = chunk_rows(path)
    assert [row["steps"][0] for row in rows] == [0, *(row["steps"][1] for row in rows[:-1])][: len(rows)]
    cumulative = recipe.run_status(path).pools
    truth = end.stream().snapshot(end.step)
    assert [pool.spent for pool in cumulative.values()] == [pool.spent for pool in truth.pools]
    stages = sum_of_stages(path)
    assert stages == {name: pool.spent for name, pool in cumulative.items()}


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory, pools_root: Path) -> Path:
    folder = tmp_path_factory.mktemp("chain")
    recipe.start_run(two_stages(pools_root), folder / "fresh").close()
    return folder


def two_stages(pools_root: Path) -> Recipe:
    from recipe.config import recipe_from_plain

    quotas = {"a": "60%", "b": "30%", "c": "10%"}
    return recipe_from_plain(
        {
            "seed": 3,
            "pools_root": str(pools_root),
            "pools": {name: {"path": name} for name in "abc"},
            "stages": {
                "one": stage(tokens=700, context=16, chunk=100, quotas=quotas),
                "two": stage(tokens=1200, context=32, chunk=300, quotas=quotas),
            },
        },
        source="test",
    )


def sum_of_stages(path: Path) -> dict[str, int]:
    from recipe.run.manifest import latest_path, read_manifest

    stages = read_manifest(latest_path(path))["stages"]
    return {name: sum(pools[name]["spent"] for pools in stages.values() if name in pools) for name in "abc"}
