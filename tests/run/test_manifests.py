"""All manifests of a run at a glance, and what late ones are to a run that goes back."""

from __future__ import annotations

from pathlib import Path

import pytest

import recipe
from recipe.errors import RecipeError
from recipe.run.branching.branch import branch_run
from recipe.run.branching.wishes import Wish
from recipe.run.comparing.history import read_history
from recipe.run.manifest import manifest_path, read_manifest
from tests.run.conftest import Build, served


@pytest.fixture
def path(build: Build, tmp_path: Path) -> Path:
    """Checkpoints at 4, 12 and, late, at 8; then the run went on to 16, and back to 12."""
    with recipe.start_run(build(), tmp_path / "run") as run:
        run.checkpoint(4, uri="w4", gpu_hours=1)
        early, late = run.begin_checkpoint(8), run.begin_checkpoint(12)
        late.commit("w12")
        early.commit("w8")
        run.checkpoint(16, uri="w16")
        run.forget(1, reason="made room")
    with recipe.open_run(tmp_path / "run", step=12) as run:
        run.checkpoint(14, uri="w14")
    return tmp_path / "run"


def test_every_manifest_is_listed_with_what_became_of_it(path: Path):
    listed = recipe.run_manifests(path)
    assert [(one.manifest, one.step, one.uri) for one in listed] == [
        (1, 4, "w4"),
        (2, 12, "w12"),
        (3, 8, "w8"),
        (4, 16, "w16"),
        (5, 14, "w14"),
    ]
    assert [one.manifest for one in listed if one.late] == [3]
    assert [one.manifest for one in listed if one.discarded] == [4]
    assert {one.manifest: one.forgotten for one in listed if one.forgotten} == {1: "made room"}
    assert (listed[0].gpu_hours, listed[1].gpu_hours, listed[0].version) == (1, None, 1)
    for one in listed:
        told = read_manifest(manifest_path(path, one.manifest))
        assert (told["checkpoint"]["step"], told["time"]) == (one.step, one.time)


@pytest.mark.parametrize("last", [0, 1, 3, 99])
def test_the_last_ones_are_those_of_the_whole_list(path: Path, last: int):
    whole = recipe.run_manifests(path)
    assert recipe.run_manifests(path, last) == whole[max(0, len(whole) - last) :]


def test_nothing_is_listed_of_what_is_no_run_or_was_damaged(path: Path, tmp_path: Path):
    with pytest.raises(ValueError, match="last is -1"):
        recipe.run_manifests(path, -1)
    with pytest.raises(RecipeError, match="no run"):
        recipe.run_manifests(tmp_path)
    ledger = path / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b'"uri":"w4"', b'"uri":"w5"'))
    with pytest.raises(RecipeError, match="recipe audit"):
        recipe.run_manifests(path, 1)


def test_a_late_checkpoint_counts_although_the_run_went_back_to_a_later_one(path: Path):
    """The rewind to 12 discards all rows after manifest 2's; what was said of step 8 still holds."""
    recipe.attach_metrics(path, {"code": {"loss": 2}}, 3)
    assert [point.step for point in read_history(path).points] == [4, 12, 8, 14]
    assert recipe.run_status(path).step == 14
    (branch,) = branch_run(f"{path}@3", Wish(name="B"))
    with recipe.open_run(path, step=8) as run, recipe.open_run(branch) as other:
        assert served(run.stream(), 8) == served(other.stream(), 8)
        run.checkpoint(9)
    assert [point.step for point in read_history(path).points] == [4, 8, 9]
    assert recipe.audit_run(path).findings == ()


def test_a_late_checkpoint_of_a_turn_that_was_discarded_counts_no_more(path: Path):
    with recipe.open_run(path) as run:
        state = run.state(15)
        run.amend(["stages.two.quotas={a: 40%, b: 40%, c: 20%}"], reason="live", step=15)
        early, late = run.begin_checkpoint(16), run.begin_checkpoint(18)
        late.commit("w18")
        early.commit("w16")
    with recipe.open_run(path, state=state) as run:
        run.checkpoint(17)
    counted = [one.step for one in recipe.run_manifests(path) if not one.discarded]
    assert counted == [4, 12, 8, 14, 17]
    assert recipe.audit_run(path).findings == ()
