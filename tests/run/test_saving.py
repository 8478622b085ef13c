"""Checkpoints that are committed late and out of order, and checkpoints whose weights were deleted."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recipe
from recipe.config import Recipe
from recipe.errors import RecipeError
from recipe.run.ledger import read_rows
from recipe.run.manifest import latest_path, manifest_path, read_manifest
from tests.run.conftest import served

Build = Callable[..., Recipe]


def checkpoints(path: Path) -> list[tuple[int, bool]]:
    rows = [row.data for row in read_rows(path / "ledger.jsonl") if row.kind == "checkpoint"]
    return [(row["step"], bool(row.get("late"))) for row in rows]


def test_what_was_not_committed_never_happened(tmp_path: Path, build: Build):
    with recipe.start_run(build(), tmp_path / "run") as run:
        run.checkpoint(4)
        before = (tmp_path / "run" / "ledger.jsonl").read_bytes()
        run.begin_checkpoint(9)
    assert (tmp_path / "run" / "ledger.jsonl").read_bytes() == before
    assert recipe.open_run(tmp_path / "run").step == 4


def test_a_commit_in_order_is_an_ordinary_checkpoint(tmp_path: Path, build: Build):
    for name in ("plain", "begun"):
        with recipe.start_run(build(), tmp_path / name) as run:
            for step in (4, 9, 20):
                if name == "plain":
                    run.checkpoint(step, uri=f"w{step}")
                else:
                    run.begin_checkpoint(step).commit(f"w{step}")
    plain, begun = (read_manifest(latest_path(tmp_path / name)) for name in ("plain", "begun"))
    assert plain["snapshot"] == begun["snapshot"]
    assert plain["stages"] == begun["stages"]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_commits_in_any_order_open_at_any_of_them(tmp_path: Path, build: Build, order: tuple[int, ...]):
    """The manifests state the same account as those written in order."""
    steps = (5, 12, 24)
    with recipe.start_run(build(), tmp_path / "plain") as run:
        whole = served(run.stream(), 0)
        for step in steps:
            run.checkpoint(step)
    with recipe.start_run(build(), tmp_path / "run") as run:
        begun = [run.begin_checkpoint(step) for step in steps]
        for which in order:
            assert begun[which].commit(f"w{steps[which]}") == begun[which].manifest
        assert run.step == 24
    latest = read_manifest(latest_path(tmp_path / "run"))
    assert latest["checkpoint"]["step"] == max(steps[which] for which in order[: order.index(2) + 1])
    for which, step in enumerate(steps):
        late = read_manifest(manifest_path(tmp_path / "run", begun[which].manifest or 0))
        true = read_manifest(manifest_path(tmp_path / "plain", which + 1))
        for key in ("snapshot", "stages", "pools", "positions", "checkpoint"):
            if key != "checkpoint":
                assert late[key] == true[key], (step, key)
        with recipe.open_run(tmp_path / "run", step) as run:
            assert served(run.stream(), step) == whole[step:]
    assert recipe.open_run(tmp_path / "run").step == 24


def test_going_on_from_a_late_checkpoint_rewinds_to_it(tmp_path: Path, build: Build):
    with recipe.start_run(build(), tmp_path / "run") as run:
        early, late = run.begin_checkpoint(7), run.begin_checkpoint(15)
        late.commit("w15")
        early.commit("w7")
        whole = served(run.stream(), 0)
    assert checkpoints(tmp_path / "run") == [(15, False), (7, True)]
    with recipe.open_run(tmp_path / "run", 7) as run:
        run.checkpoint(run.num_steps)
    with recipe.open_run(tmp_path / "run") as run:
        assert served(run.stream(), 0) == whole
    kinds = [row.kind for row in read_rows(tmp_path / "run" / "ledger.jsonl")]
    assert kinds.count("rewind") == 1


def test_a_run_that_turned_before_the_step_takes_no_late_commit(tmp_path: Path, build: Build):
    with recipe.start_run(build(), tmp_path / "run") as run:
        run.checkpoint(4)
        stale = run.begin_checkpoint(9)
        good = run.begin_checkpoint(6)
        run.amend(["stages.one.quotas.rest=60%"], from_pool="a", reason="live", step=7)
        run.checkpoint(12)
        assert good.commit("w6") == 3
        with pytest.raises(RecipeError, match="a checkpoint of another course"):
            stale.commit("w9")
        run.checkpoint(15)
    assert checkpoints(tmp_path / "run") == [(4, False), (12, False), (6, True), (15, False)]


def test_a_commit_at_the_step_of_a_turn_is_one_of_the_run_as_it_turned(tmp_path: Path, build: Build):
    """The weights have seen the steps before it, which are the same; what follows is the amended run."""
    with recipe.start_run(build(), tmp_path / "run") as run:
        begun = run.begin_checkpoint(6)
        run.amend(["stages.one.quotas.rest=60%"], from_pool="a", reason="live", step=6)
        later = served(run.stream(), 6)
        run.checkpoint(9)
        begun.commit("w6")
    for where in ({"step": 6}, {}):
        with recipe.open_run(tmp_path / "run", **where) as run:  # type: ignore[arg-type]
            assert served(run.stream(), 6) == later
    with recipe.open_run(tmp_path / "run", 6) as run:
        run.checkpoint(8)
    assert recipe.audit_run(tmp_path / "run").ok


def test_a_run_that_turned_goes_on_at_the_late_checkpoint_that_is_its_last(tmp_path: Path, build: Build):
    with recipe.start_run(build(), tmp_path / "run") as run:
        run.checkpoint(2)
        whole = served(run.stream(), 0)
        begun = run.begin_checkpoint(5)
        run.amend(["stages.one.quotas.rest=60%"], from_pool="a", reason="live", step=7)
        begun.commit("w5")
    with recipe.open_run(tmp_path / "run") as run:
        assert run.step == 5, "nothing after the amendment is on record"
        assert served(run.stream(), 0) == whole
        run.checkpoint(8)
    assert recipe.audit_run(tmp_path / "run").ok
    assert recipe.audit_run(tmp_path / "run", chain_only=True).ok


def test_the_chain_of_late_commits_is_whole(tmp_path: Path, build: Build):
    with recipe.start_run(build(), tmp_path / "run") as run:
        first, second, third = (run.begin_checkpoint(step) for step in (4, 8, 9))
        second.commit("w8")
        first.commit("w4")
        assert recipe.audit_run(tmp_path / "run", chain_only=True).findings == ()
        third.commit("w9")
    assert recipe.audit_run(tmp_path / "run", chain_only=True).findings == ()


def test_a_commit_counts_once(tmp_path: Path, build: Build):
    with recipe.start_run(build(), tmp_path / "run") as run:
        begun = run.begin_checkpoint(4)
        begun.commit("w4")
        with pytest.raises(ValueError, match="was committed: manifest 1"):
            begun.commit("w4")


def test_what_is_forgotten_is_on_record_and_the_run_goes_on(tmp_path: Path, build: Build):
    with recipe.start_run(build(), tmp_path / "run") as run:
        run.checkpoint(4)
        run.checkpoint(8)
        run.forget(1, reason="made room")
        with pytest.raises(RecipeError, match="no such checkpoint"):
            run.forget(7)
        run.checkpoint(9)
    row = next(row.data for row in read_rows(tmp_path / "run" / "ledger.jsonl") if row.kind == "forgotten")
    assert (row["manifest"], row["step"], row["reason"]) == (1, 4, "made room")
    assert recipe.open_run(tmp_path / "run").step == 9


@settings(max_examples=30)
@given(data=st.data())
def test_late_commits_leave_the_account_as_it_is(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory, build: Build
):
    """Begun at random steps, committed in a random order, some never: the end is that of the plain run."""
    folder = tmp_path_factory.mktemp("late")
    with recipe.start_run(build(), folder / "run") as run:
        last = run.num_steps
        steps = sorted(data.draw(st.sets(st.integers(1, last - 1), min_size=1, max_size=6)))
        begun = [run.begin_checkpoint(step) for step in steps]
        for which in data.draw(st.permutations(range(len(steps))).map(lambda p: p[: len(p) // 2 + 1])):
            begun[which].commit(f"w{steps[which]}")
        run.checkpoint(last)
        end = run.stream().snapshot(last).to_plain()
    manifest = read_manifest(latest_path(folder / "run"))
    assert manifest["snapshot"] == end
    spent = {name: pool["tokens"]["spent"] for name, pool in manifest["pools"].items()}
    totals = {
        name: sum(stage.get(name, {}).get("spent", 0) for stage in manifest["stages"].values())
        for name in spent
    }
    assert totals == spent
