"""Where a branch starts: a checkpoint by number or step, and clear words where there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recipe
from recipe import RecipeError
from recipe.run.branching.branch import branch_run
from recipe.run.branching.origin import find_origin, later_withdrawals, split_place
from recipe.run.branching.wishes import Wish
from recipe.run.folder import RunFolder
from recipe.run.ledger import read_rows
from recipe.run.sayings import say
from tests.run.conftest import Build, served


@pytest.fixture
def trunk(build: Build, tmp_path: Path) -> Path:
    """Checkpoints at 4, 4 again, 9 and 12; then 9 again after a rewind to 4 (manifest 5)."""
    with recipe.start_run(build(), tmp_path / "trunk") as run:
        for step in (4, 4, 9, 12):
            run.checkpoint(step, uri=f"weights-{step}")
    with recipe.open_run(tmp_path / "trunk", step=4) as run:
        run.checkpoint(9, uri="weights-9b")
    return tmp_path / "trunk"


def told(path: Path, **place: Any) -> str:
    with pytest.raises(RecipeError) as caught:
        find_origin(path, **place)
    (problem,) = caught.value.problems
    return f"{problem.given}; {problem.expected}; {problem.fix}"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("runs/a", ("runs/a", None, None)),
        ("runs/a@12", ("runs/a", 12, None)),
        ("runs/a@step:400", ("runs/a", None, 400)),
        ("runs/a@latest", ("runs/a@latest", None, None)),
        ("mail@home@3", ("mail@home", 3, None)),
        ("runs/a@step:x", ("runs/a@step:x", None, None)),
    ],
)
def test_a_place_is_a_run_and_a_manifest_or_step(text: str, place: tuple[Any, ...]):
    assert split_place(text) == (Path(place[0]), *place[1:])


def test_a_run_whose_name_looks_like_a_place_is_a_run(tmp_path: Path):
    (tmp_path / "a@3").mkdir()
    assert split_place(str(tmp_path / "a@3")) == (tmp_path / "a@3", None, None)


def test_checkpoints_are_found_by_number_and_by_step(trunk: Path):
    assert (find_origin(trunk).number, find_origin(trunk).uri) == (5, "weights-9b")
    assert find_origin(trunk, step=4).number == 2
    assert find_origin(trunk, manifest=1).step == 4
    assert find_origin(trunk, step=9).number == 5


def test_a_manifest_that_does_not_exist_lists_the_nearest(trunk: Path):
    text = told(trunk, manifest=77)
    assert text.startswith(
        "manifest 77; a manifest that counts; the nearest are 1 (step 4), 2 (step 4), 5 (step 9)"
    )
    assert f"{trunk}@5" in text
    assert told(trunk, step=6).startswith("step 6; a manifest that counts")


def test_a_discarded_manifest_is_refused(trunk: Path):
    assert told(trunk, manifest=4).startswith("manifest 4, which a rewind discarded")
    assert told(trunk, step=12).startswith("step 12; ")


def test_a_run_without_checkpoints_is_refused(build: Build, tmp_path: Path):
    recipe.start_run(build(), tmp_path / "new").close()
    assert told(tmp_path / "new").startswith("a run without checkpoints; a run with a checkpoint")


def test_a_forgotten_checkpoint_is_refused_early_and_its_neighbours_named(trunk: Path):
    folder = RunFolder(trunk)
    row = find_origin(trunk, manifest=2).row.data
    body = {
        "kind": "forgotten",
        "step": 4,
        "manifest": 2,
        "manifest_hash": row["manifest_hash"],
        "reason": "quota of the store",
    }
    say(folder, lambda tail: body)
    text = told(trunk, manifest=2)
    assert text.startswith("manifest 2, forgotten at ")
    assert "quota of the store" in text
    assert "1 (step 4), 5 (step 9)" in text
    assert find_origin(trunk, manifest=1).step == 4


def test_words_in_a_reason_are_no_row(trunk: Path):
    folder, row = RunFolder(trunk), find_origin(trunk, manifest=2).row.data
    reason = '{"kind":"forgotten","manifest":5}'
    say(
        folder,
        lambda tail: {
            "kind": "forgotten",
            "step": 4,
            "manifest": 1,
            "manifest_hash": row["manifest_hash"],
            "reason": reason,
        },
    )
    assert find_origin(trunk, manifest=5).number == 5


def test_withdrawals_after_the_checkpoint_are_counted(trunk: Path):
    assert later_withdrawals(find_origin(trunk)) == 0


def test_nothing_of_the_run_is_written_or_locked(trunk: Path):
    before = {p: p.read_bytes() for p in trunk.rglob("*") if p.is_file()}
    find_origin(trunk)
    assert {p: p.read_bytes() for p in trunk.rglob("*") if p.is_file()} == before


def test_a_damaged_manifest_is_told(trunk: Path):
    path = trunk / "manifests" / "000005.yaml"
    path.write_bytes(path.read_bytes().replace(b"weights-9b", b"weights-9c"))
    assert "hash" in told(trunk, manifest=5)


def test_no_run_is_told(tmp_path: Path):
    assert told(tmp_path / "none").startswith("no such folder")


def test_the_closing_that_a_checkpoint_names_says_how_far_the_stage_is_planned(trunk: Path):
    origin = find_origin(trunk, manifest=5)
    assert (origin.stage, origin.planned_to) == ("one", 432)
    rows = [row.data for row in read_rows(trunk / "ledger.jsonl") if row.kind == "chunk"]
    assert rows[-1]["grid"][1] <= 432


def test_a_checkpoint_that_was_committed_late_is_an_origin_too(build: Build, tmp_path: Path):
    with recipe.start_run(build(), tmp_path / "trunk") as run:
        late = run.begin_checkpoint(7)
        run.checkpoint(12)
        late.commit("weights-7")
        run.checkpoint(14)
        whole = served(run.stream(), 7)
    origin = find_origin(tmp_path / "trunk", step=7)
    assert (origin.step, origin.uri) == (7, "weights-7")
    assert find_origin(tmp_path / "trunk", manifest=origin.number).step == 7
    assert find_origin(tmp_path / "trunk").step == 14
    (path,) = branch_run(f"{tmp_path / 'trunk'}@step:7", Wish(name="A"))
    with recipe.open_run(path) as branch:
        assert served(branch.stream(), 7) == whole


def test_run_forget_makes_branching_fail_early(trunk: Path):
    with recipe.open_run(trunk) as run:
        run.forget(5, reason="store is full")
    assert "store is full" in told(trunk, manifest=5)
    with pytest.raises(RecipeError, match="gone"):
        find_origin(trunk)
