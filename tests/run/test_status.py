"""Status, warnings, what manifests count, and hints that may be lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import recipe
from recipe import RecipeError
from recipe.run import hints
from recipe.run.folder import RunFolder
from recipe.run.manifest import latest_path, read_manifest
from tests.run.conftest import Build, served


def test_D5_F2_manifests_count_tokens_documents_repetition_and_seeds(build: Build, tmp_path: Path):
    with recipe.start_run(build(), tmp_path / "run") as run:
        run.checkpoint(run.num_steps, gpu_hours=2.5)
        end = run.stream().snapshot(run.num_steps)
    manifest = read_manifest(latest_path(tmp_path / "run"))
    for pool, state in zip(manifest["pools"].values(), end.pools, strict=True):
        assert pool["tokens"]["spent"] == state.spent
        begun = pool["documents_begun"], pool["documents_begun_in_first_epoch"]
        assert begun == (state.documents, state.distinct)
        assert pool["documents_begun_in_first_epoch"] <= pool["documents"]
        assert pool["epoch_seed"] == 1 + pool["epoch"]
        assert float(pool["epochs_read"]) == pytest.approx(
            (state.body - state.overlap) / pool["stock"], abs=1e-4
        )
    assert max(pool["epoch"] for pool in manifest["pools"].values()) > 0
    spent = {name: sum(pools[name]["spent"] for pools in manifest["stages"].values()) for name in "abc"}
    assert spent == {name: pool["tokens"]["spent"] for name, pool in manifest["pools"].items()}


def test_what_a_rule_leaves_out_is_read_past_and_counts_in_epochs(build: Build, tmp_path: Path):
    """Short tails are dropped: readings are those that the cursor counts all the same."""
    thinned = {"pools": {name: {"path": name, "slicing": {"tail": "drop"}} for name in "abc"}}
    with recipe.start_run(build(**thinned), tmp_path / "run") as run:
        run.checkpoint(run.num_steps)
    manifest = read_manifest(latest_path(tmp_path / "run"))
    assert recipe.audit_run(tmp_path / "run", full=True).ok
    assert any(pool["dropped"] and pool["epoch"] for pool in manifest["pools"].values())
    for pool in manifest["pools"].values():
        assert pool["epoch"] <= float(pool["epochs_read"]) <= pool["epoch"] + 1


def test_status_shows_the_last_checkpoint_and_the_hint(build: Build, tmp_path: Path):
    with recipe.start_run(build(), tmp_path / "run") as run:
        status = recipe.run_status(tmp_path / "run")
        assert (status.step, status.stage, status.checkpoints, status.served) == (0, "one", [], None)
        for step, _ in run.stream().batches():
            if step == 8:
                break
        run.checkpoint(8, uri="ckpt/8", gpu_hours=1)
    status = recipe.run_status(tmp_path / "run")
    assert (status.step, status.num_steps, status.complete) == (8, run.num_steps, False)
    assert [(c.step, c.uri, c.gpu_hours) for c in status.checkpoints] == [(8, "ckpt/8", 1)]
    assert sum(pool.spent for pool in status.pools.values()) == sum(
        pool.owed for pool in status.pools.values()
    )
    assert json.dumps(status.to_plain())


@pytest.mark.parametrize(("checkpoint", "shown"), [(0, True), (4, True), (5, False), (25, False)])
def test_the_hint_is_shown_only_for_steps_that_the_checkpoint_does_not_count(
    build: Build, tmp_path: Path, checkpoint: int, shown: bool
):
    """Step 4 is the last one that was handed to the trainer: the fifth."""
    with recipe.start_run(build(), tmp_path / "run") as run:
        run.checkpoint(checkpoint)
        assert run.num_steps == 25
    (tmp_path / "run" / "progress.json").write_text('{"step": 4, "time": "2026-01-01T00:00:00Z"}')
    assert (recipe.run_status(tmp_path / "run").served is not None) is shown


def test_status_tells_of_an_unfinished_write(build: Build, tmp_path: Path):
    with recipe.start_run(build(), tmp_path / "run") as run:
        run.checkpoint(8)
    ledger = tmp_path / "run" / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes() + b'{"format":1,"ki')
    assert recipe.run_status(tmp_path / "run").unfinished == "the ledger ends in an unfinished line"
    recipe.open_run(tmp_path / "run").checkpoint(9)
    assert recipe.run_status(tmp_path / "run").unfinished is None


def test_no_run_is_told(tmp_path: Path):
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(RecipeError, match="no run"):
            recipe.run_status(path)
        with pytest.raises(RecipeError, match="no run"):
            recipe.open_run(path)


@pytest.fixture
def hinted(build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that left a snapshot every few sequences."""
    monkeypatch.setattr(hints, "SNAPSHOT_SEQUENCES", 1)
    with recipe.start_run(build(), tmp_path / "run") as run:
        for step in range(0, run.num_steps, 3):
            run.stream().snapshot(step)
        assert len(list(run.stream().batches())) == run.num_steps
    return tmp_path / "run"


def test_hints_are_left_by_iterating_and_found_again(hinted: Path):
    names = sorted(int(path.stem) for path in (hinted / "snapshots").iterdir())
    assert len(names) > 3
    with recipe.open_run(hinted) as run:
        assert run.stream()._hints is not None
        found = run.stream()._hints.nearest(names[2])
        assert found == run.stream().snapshot(names[2])


@pytest.mark.parametrize("content", [None, b"", b"{}", b"[]", b"\xff\x00"])
def test_lost_and_corrupt_hints_change_nothing(hinted: Path, content: bytes | None):
    with recipe.open_run(hinted) as run:
        truth = served(run.stream(), 7)
    for path in [*(hinted / "snapshots").iterdir(), hinted / "progress.json"]:
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
    assert recipe.run_status(hinted).served is None
    with recipe.open_run(hinted) as run:
        assert run.stream()._hints is not None
        assert run.stream()._hints.nearest(20) is None
        assert served(run.stream(), 7) == truth
        run.checkpoint(9)


def test_a_forged_hint_and_one_of_other_data_are_passed_over(hinted: Path):
    path = sorted((hinted / "snapshots").iterdir())[-1]
    plain = json.loads(path.read_bytes())
    plain["snapshot"]["positions"] += 1
    path.write_text(json.dumps(plain))
    with recipe.open_run(hinted) as run:
        assert run.stream()._hints is not None
        found = run.stream()._hints.nearest(10**6)
        assert found is not None
        assert found.step < int(path.stem)
        assert hints.Hints(RunFolder(run.path), "another recipe").nearest(10**6) is None


def test_only_rank_0_of_a_runs_own_handle_leaves_hints(build: Build, tmp_path: Path):
    with recipe.start_run(build(), tmp_path / "run") as run:
        list(run.stream().batches(0, 1, 3))
        list(recipe.stream_from(run.state(0)).batches())
    assert not (tmp_path / "run" / "progress.json").exists()
