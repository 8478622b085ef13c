"""Older steps, other handles, repeated checkpoints: cumulative tokens are what the weights have seen."""

from __future__ import annotations

from pathlib import Path

import pytest

import recipe
from recipe import RecipeError
from recipe.run.ledger import read_rows
from recipe.run.manifest import latest_path, manifest_path, read_manifest
from tests.run.conftest import Build


@pytest.fixture
def path(build: Build, tmp_path: Path) -> Path:
    """A run with checkpoints at 4, 10 and 15."""
    with recipe.start_run(build(), tmp_path / "run") as run:
        for step in (4, 10, 15):
            run.checkpoint(step)
    return tmp_path / "run"


def kinds(path: Path) -> list[str]:
    return [row.kind for row in read_rows(path / "ledger.jsonl") if row.kind != "chunk"]


def test_a_rewind_is_on_record_with_the_first_checkpoint_after_it(path: Path):
    with recipe.open_run(path, step=4) as run:
        assert "rewind" not in kinds(path)
        run.checkpoint(6)
        run.checkpoint(8)
    assert kinds(path) == ["created", *["checkpoint"] * 3, "rewind", "checkpoint", "checkpoint"]
    (rewind,) = (row.data for row in read_rows(path / "ledger.jsonl") if row.kind == "rewind")
    assert (rewind["from_step"], rewind["to_step"], rewind["manifest"]) == (15, 4, 1)
    assert recipe.open_run(path).step == 8


def test_what_a_rewind_discards_is_what_was_served_since(path: Path):
    with recipe.open_run(path) as run:
        before, after = run.stream().snapshot(4), run.stream().snapshot(15)
    recipe.open_run(path, 4).checkpoint(5)
    (rewind,) = (row.data for row in read_rows(path / "ledger.jsonl") if row.kind == "rewind")
    for name, a, b in zip("abc", before.pools, after.pools, strict=True):
        assert rewind["discarded"][name]["spent"] == b.spent - a.spent
        assert rewind["discarded"][name]["padding"] == b.padding - a.padding


def test_manifests_name_their_parent_and_the_one_before(path: Path):
    recipe.open_run(path, 4).checkpoint(6)
    first, third, fourth = (read_manifest(manifest_path(path, number)) for number in (1, 3, 4))
    assert fourth["previous"] == third["hash"]
    assert fourth["parent"] == {"number": 1, "hash": first["hash"]}
    assert read_manifest(latest_path(path)) == fourth


def test_a_discarded_checkpoint_can_be_opened_again(path: Path):
    recipe.open_run(path, 4).checkpoint(6)
    with recipe.open_run(path, 10) as run:
        assert run.step == 10
        run.checkpoint(12)
    assert kinds(path)[-2:] == ["checkpoint", "checkpoint"]
    steps = [row.data["steps"] for row in read_rows(path / "ledger.jsonl") if row.kind == "chunk"]
    assert steps[-1][0] <= 12


def test_a_step_without_checkpoint_is_refused_with_the_steps_there_are(path: Path):
    with pytest.raises(RecipeError, match="there are 4, 10, 15"):
        recipe.open_run(path, step=7)
    assert recipe.open_run(path, step=0).step == 0


def test_an_older_step_of_many_is_found_by_jumps(build: Build, tmp_path: Path):
    with recipe.start_run(build(), tmp_path / "run") as run:
        for _ in range(3):
            for step in range(run.step, run.num_steps + 1):
                run.checkpoint(step)
        for step in range(run.num_steps + 1):
            with recipe.open_run(tmp_path / "run", step) as older:
                assert older.stream().snapshot(step) == run.stream().snapshot(step)


def test_a_second_checkpoint_at_a_step_counts_nothing_twice(path: Path):
    with recipe.open_run(path) as run:
        before = read_manifest(latest_path(path))
        assert run.checkpoint(15, metrics={"validation": {"loss": 2.5}}, gpu_hours=3) == 4
    after = read_manifest(latest_path(path))
    assert after["metrics"] == {"validation": {"loss": 2.5}}
    assert after["gpu_hours"] == 3
    assert (after["stages"], after["snapshot"]) == (before["stages"], before["snapshot"])


@pytest.mark.parametrize("step", [-1, 14, 10**9])
def test_a_checkpoint_behind_the_handle_or_after_the_end_is_refused(path: Path, step: int):
    with recipe.open_run(path) as run, pytest.raises(RecipeError, match=f"no step {step} to put on record"):
        run.checkpoint(step)


def test_a_step_that_is_no_whole_number_is_the_callers_fault(path: Path):
    with recipe.open_run(path) as run, pytest.raises(TypeError):
        run.checkpoint(15.5)  # type: ignore[arg-type]


def test_a_closed_run_is_closed(path: Path):
    run = recipe.open_run(path)
    run.close()
    with pytest.raises(ValueError, match="was closed"):
        run.checkpoint(15)


def test_handles_of_one_run_go_on_after_each_other(path: Path):
    with recipe.open_run(path) as one, recipe.open_run(path) as two:
        one.checkpoint(16)
        two.checkpoint(18)
        one.checkpoint(20)
    assert recipe.open_run(path).step == 20


def test_a_handle_that_is_behind_is_told(path: Path):
    with recipe.open_run(path) as one, recipe.open_run(path) as two:
        one.checkpoint(20)
        with pytest.raises(RecipeError, match="step 20 is on record, later than 17"):
            two.checkpoint(17)
    assert kinds(path).count("checkpoint") == 4


def test_a_handle_whose_course_was_changed_is_told(path: Path):
    with recipe.open_run(path) as one, recipe.open_run(path, 4) as two:
        two.checkpoint(5)
        with pytest.raises(RecipeError, match="this handle is behind"):
            one.checkpoint(16)


def test_of_two_handles_that_would_rewind_one_does(path: Path):
    with recipe.open_run(path, 4) as one, recipe.open_run(path, 10) as two:
        one.checkpoint(5)
        with pytest.raises(RecipeError, match="this handle is behind"):
            two.checkpoint(11)


def test_a_state_later_than_the_last_checkpoint_opens_without_a_rewind(path: Path):
    with recipe.open_run(path) as run:
        state = run.state(18)
    with recipe.open_run(path, state=state) as run:
        assert run.step == 18
        run.checkpoint(19)
    assert "rewind" not in kinds(path)


def test_step_and_state_must_agree(path: Path):
    with recipe.open_run(path) as run:
        state = run.state(18)
    with pytest.raises(RecipeError, match="step and state differ"):
        recipe.open_run(path, step=10, state=state)


def test_a_state_of_another_recipe_is_refused(build: Build, tmp_path: Path, path: Path):
    with recipe.start_run(build(seed=9), tmp_path / "other") as run:
        state = run.state(3)
    with pytest.raises(RecipeError, match="a run of another recipe"):
        recipe.open_run(path, state=state)


def test_rows_that_were_cut_off_are_missed(path: Path):
    lines = (path / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    (path / "ledger.jsonl").write_bytes(b"".join(lines[:-1]))
    with pytest.raises(RecipeError, match="rows are missing"):
        recipe.open_run(path)


def test_a_damaged_manifest_is_refused_and_an_older_one_opens(path: Path):
    last = manifest_path(path, 3)
    last.write_bytes(last.read_bytes().replace(b"step: 15", b"step: 16"))
    with pytest.raises(RecipeError, match="damaged"):
        recipe.open_run(path)
    assert recipe.open_run(path, 10).step == 10


def test_a_damaged_copy_may_be_deleted(path: Path):
    latest_path(path).write_bytes(b"step: 16")
    with pytest.raises(RecipeError, match="delete latest"):
        recipe.open_run(path)
    latest_path(path).unlink()
    assert recipe.open_run(path).step == 15
