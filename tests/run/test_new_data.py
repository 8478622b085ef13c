"""C07, R07: data that changed under a run is refused, or accepted on record."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import recipe
from recipe import RecipeError
from recipe.run.ledger import read_rows, read_tail
from recipe.run.manifest import latest_path, read_manifest
from recipe.run.surviving import surviving
from tests.run.conftest import Build, served, stage, write


@pytest.fixture
def path(build: Build, tmp_path: Path) -> Path:
    """A run of pools x and y, stopped at step 6 inside a chunk; then x is replaced by a smaller pool."""
    write(tmp_path / "x", seed=1, documents=80)
    write(tmp_path / "y", seed=2, documents=80)
    quotas = {"x": "50%", "y": "50%"}
    wanted = build(
        pools_root=str(tmp_path),
        pools={"x": {"path": "x"}, "y": {"path": "y"}},
        groups={},
        stages={"s": stage(tokens=960, context=16, chunk=200, quotas=quotas)},
    )
    with recipe.start_run(wanted, tmp_path / "run") as run:
        run.checkpoint(6)
    shutil.move(tmp_path / "x", tmp_path / "old")
    write(tmp_path / "x", seed=3, documents=40)
    return tmp_path / "run"


def test_C07_R07_changed_data_is_refused_with_both_digests(path: Path):
    old = recipe.pools.open_pool(path.parent / "old", "x").fingerprint
    new = recipe.pools.open_pool(path.parent / "x", "x").fingerprint
    with pytest.raises(RecipeError) as caught:
        recipe.open_run(path)
    (problem,) = caught.value.problems
    assert problem.where == "pools.x"
    assert new in str(problem.given)
    assert old in problem.expected
    assert "accept_data_change" in problem.fix


def test_R07_accepted_new_data_is_read_from_its_beginning(path: Path):
    with recipe.open_run(path, accept_data_change=True) as run:
        stream = run.stream()
        new = recipe.pools.open_pool(path.parent / "x", "x")
        rows = [stream.provenance(step, row) for step in range(6, run.num_steps) for row in range(3)]
        seen = [piece for row in rows for piece in row if piece.pool == "x"]
        total = sum(piece.stop - piece.fresh for piece in seen)
        again = sum(piece.stop - piece.fresh for piece in set(seen))
        assert min(total, new.stock) == again


def test_C07_an_accepted_change_is_on_the_ledger_and_in_the_manifest(path: Path):
    with recipe.open_run(path, accept_data_change=True) as run:
        unbroken = served(run.stream(), 6)
        run.checkpoint(8)
    rows = list(read_rows(path / "ledger.jsonl"))
    (data,) = (row.data for row in rows if row.kind == "data")
    assert (data["step"], list(data["pools"])) == (6, ["x"])
    assert [r.data["steps"] for r in rows if r.kind == "chunk"][:2] == [[0, 5], [5, 6]]
    manifest = read_manifest(latest_path(path))
    assert manifest["turn"]["step"] == 6
    assert manifest["pools"]["x"]["fingerprint"] == data["pools"]["x"]["after"]
    with recipe.open_run(path) as run:
        assert served(run.stream(), 8) == unbroken[2:]
        run.checkpoint(run.num_steps)
    rows = [row.data for row in read_rows(path / "ledger.jsonl") if row.kind == "chunk"]
    assert [row["steps"][0] for row in rows] == [0, *(row["steps"][1] for row in rows[:-1])]
    assert [row["grid"] for row in rows][:3] == [[0, 200], [200, 288], [288, 400]]


def test_steps_before_accepted_data_are_not_served_from_it(path: Path):
    with recipe.open_run(path, accept_data_change=True) as run:
        state = run.state(7)
        with pytest.raises(RecipeError, match="a step before new data was accepted"):
            run.stream().batch(5)
    with pytest.raises(RecipeError, match="a step before this stream"):
        recipe.stream_from(state).batch(5)


def test_the_old_data_put_back_opens_the_old_step(path: Path):
    recipe.open_run(path, accept_data_change=True).checkpoint(8)
    shutil.move(path.parent / "x", path.parent / "new")
    shutil.move(path.parent / "old", path.parent / "x")
    with pytest.raises(RecipeError, match="the data changed"):
        recipe.open_run(path)
    with recipe.open_run(path, 6) as run:
        run.checkpoint(run.num_steps)
    kept = [row.kind for row in read_rows(path / "ledger.jsonl")]
    assert kept.count("rewind") == 1
    assert recipe.open_run(path).complete


def test_a_state_opens_only_the_data_it_was_made_with(path: Path):
    with recipe.open_run(path, accept_data_change=True) as run:
        run.checkpoint(8)
        state = run.state(8)
    shutil.rmtree(path.parent / "x")
    shutil.copytree(path.parent / "old", path.parent / "x")
    with pytest.raises(RecipeError, match="the data changed"):
        recipe.stream_from(state)
    with pytest.raises(RecipeError, match="the data changed"):
        recipe.open_run(path, state=state, accept_data_change=True)


def test_new_data_with_ids_the_model_has_no_row_for_is_refused(path: Path, build: Build, tmp_path: Path):
    write(tmp_path / "z", seed=4, documents=60)
    whole = {"z": "100%"}
    wanted = build(
        pools_root=str(tmp_path),
        pools={"z": {"path": "z"}},
        groups={},
        model={"vocab_size": 500},
        stages={"s": stage(tokens=480, context=16, quotas=whole)},
    )
    recipe.start_run(wanted, tmp_path / "limited").close()
    shutil.rmtree(tmp_path / "z")
    recipe.write_pool(tmp_path / "z", [np.full(20, 600)] * 20, vocab_size=700, eos=0)
    with pytest.raises(RecipeError, match="600"):
        recipe.open_run(tmp_path / "limited", accept_data_change=True)


def logged(path: Path) -> list[tuple[int, list[tuple[int, list[str]]]]]:
    """Step of every manifest, and the accepted changes it states: from which step, which pools."""
    manifests = [read_manifest(file) for file in sorted((path / "manifests").glob("0*.yaml"))]
    return [
        (
            manifest["checkpoint"]["step"],
            [(change["step"], list(change["pools"])) for change in manifest["accepted_data_changes"]],
        )
        for manifest in manifests
    ]


def audited(path: Path) -> list[str]:
    """What an audit finds."""
    return [f"{finding.where}: {finding.observed}" for finding in recipe.audit_run(path, workers=1).findings]


def test_C07_every_later_manifest_logs_the_override_with_both_digests(path: Path):
    old = recipe.pools.open_pool(path.parent / "old", "x").fingerprint
    new = recipe.pools.open_pool(path.parent / "x", "x").fingerprint
    with recipe.open_run(path, accept_data_change=True) as run:
        assert run.data_change == {"x": (old, new)}
        run.checkpoint(8)
        assert run.data_change == {}
        run.checkpoint(12)
    with recipe.open_run(path) as run:
        run.checkpoint(run.num_steps)
    assert logged(path) == [(6, []), (8, [(6, ["x"])]), (12, [(6, ["x"])]), (20, [(6, ["x"])])]
    changes = read_manifest(latest_path(path))["accepted_data_changes"]
    assert changes == [{"step": 6, "pools": {"x": {"before": old, "after": new}}}]
    pools = [read_manifest(file)["pools"] for file in sorted((path / "manifests").glob("0*.yaml"))]
    assert [pool["x"]["epochs_read"] is None for pool in pools] == [False, True, True, True]
    assert all(pool["y"]["epochs_read"] for pool in pools)
    assert audited(path) == []


def test_C07_a_second_override_is_logged_beside_the_first(path: Path):
    recipe.open_run(path, accept_data_change=True).checkpoint(8)
    shutil.rmtree(path.parent / "y")
    write(path.parent / "y", seed=5, documents=50)
    recipe.open_run(path, accept_data_change=True).checkpoint(20)
    assert logged(path)[-1] == (20, [(6, ["x"]), (8, ["y"])])
    assert audited(path) == []


@pytest.mark.parametrize("step", [6, 7])
def test_C07_a_run_opened_at_a_state_keeps_the_log(path: Path, step: int):
    """No checkpoint was written there: what was accepted is known from the ledger's rows alone."""
    with recipe.open_run(path, accept_data_change=True) as run:
        state = run.state(step)
        unbroken = served(run.stream(), step)
        run.checkpoint(12)
    with recipe.open_run(path, state=state) as run:
        assert served(run.stream(), step) == unbroken
        run.checkpoint(9)
        run.checkpoint(run.num_steps)
    assert logged(path)[2:] == [(9, [(6, ["x"])]), (20, [(6, ["x"])])]
    assert audited(path) == []


def test_C07_a_state_after_an_override_that_never_came_on_record_is_refused(path: Path):
    with recipe.open_run(path, accept_data_change=True) as run:
        state = run.state(7)
    with pytest.raises(RecipeError, match="a state of another course"):
        recipe.open_run(path, state=state)


def test_the_old_data_put_back_leaves_the_override_out_of_the_log(path: Path):
    """The override was accepted at the very step that the run goes back to."""
    recipe.open_run(path, accept_data_change=True).checkpoint(8)
    shutil.move(path.parent / "x", path.parent / "new")
    shutil.move(path.parent / "old", path.parent / "x")
    recipe.open_run(path, 6).checkpoint(20)
    assert logged(path)[-1] == (20, [])
    assert audited(path) == []
    kept = [row.data["steps"] for row in surviving(path / "ledger.jsonl", read_tail(path / "ledger.jsonl"))
            if row.kind == "chunk"]  # fmt: skip
    assert kept[-1][0] == 0 and [b for _, b in kept[1:]] == [a for a, _ in kept[:-1]]


@pytest.mark.parametrize("accept", [True, False])
def test_an_override_cut_short_before_its_checkpoint_is_discarded_on_record(path: Path, accept: bool):
    recipe.open_run(path, accept_data_change=True).checkpoint(8)
    ledger = path / "ledger.jsonl"
    lines = ledger.read_bytes().splitlines(keepends=True)
    (data,) = (k for k, line in enumerate(lines) if b'"kind":"data"' in line)
    ledger.write_bytes(b"".join(lines[: data + 1]))
    for file in ("000002.yaml", "latest.yaml"):
        (path / "manifests" / file).unlink()
    if not accept:
        shutil.rmtree(path.parent / "x")
        shutil.move(path.parent / "old", path.parent / "x")
    recipe.open_run(path, accept_data_change=accept).checkpoint(20)
    assert logged(path)[-1] == (20, [(6, ["x"])] if accept else [])
    assert audited(path) == []


@pytest.mark.parametrize("accept", [False, True])
def test_a_step_below_0_is_no_step_whatever_the_data(path: Path, accept: bool):
    """Only a step that the old data was served for is told to be of it."""
    if not accept:
        shutil.rmtree(path.parent / "x")
        shutil.move(path.parent / "old", path.parent / "x")
    with recipe.open_run(path, accept_data_change=accept) as run:
        stream = run.stream()
        asked = [
            lambda: stream.batch(-1),
            lambda: stream.batches(start=-1),
            lambda: stream.provenance(-1, 0),
            lambda: stream.snapshot(-1),
        ]
        for ask in asked:
            with pytest.raises(ValueError, match=r"step -1 is outside 0\.\."):
                ask()
        if accept:
            with pytest.raises(RecipeError, match="before new data was accepted"):
                stream.batch(0)


def test_steps_served_from_accepted_data_are_the_same_when_the_run_is_opened_again(path: Path):
    with recipe.open_run(path, accept_data_change=True) as run:
        first = {step: batch for step, batch in run.stream().batches()}
        run.checkpoint(9)
        run.checkpoint(run.num_steps)
    for step in (9, None):
        with recipe.open_run(path, step=step) as again:
            for at in (6, 7, 12, run.num_steps - 1):
                batch = again.stream().batch(at)
                assert all((batch[name] == first[at][name]).all() for name in batch)
            with pytest.raises(RecipeError, match="step 5"):
                again.stream().batch(5)
