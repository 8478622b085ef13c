"""Amendments: the old recipe before a step, the new one after it; what was spent stays spent."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recipe
from recipe.config import Recipe
from recipe.errors import RecipeError
from recipe.mixing.snapshot import Snapshot
from recipe.run.changing.amend import amend_run
from recipe.run.changing.approval import Approval
from recipe.run.changing.totals import Goal
from recipe.run.ledger import read_rows
from recipe.run.manifest import latest_path, read_manifest
from recipe.run.run import Run
from tests.run.conftest import served, stage, write

Build = Callable[..., Recipe]
WHY = Approval(reason="evaluation", approved_by="Ada")


@pytest.fixture
def path(tmp_path: Path, build: Build) -> Path:
    """A run that stands at step 7 of its first stage."""
    with recipe.start_run(build(), tmp_path / "run") as run:
        run.checkpoint(7, uri="weights-7", gpu_hours=3, metrics={"code": {"loss": 2.5}})
    return tmp_path / "run"


def last(path: Path) -> Snapshot:
    return Snapshot.from_plain(read_manifest(latest_path(path))["snapshot"])


def rows(path: Path, kind: str) -> list[dict[str, object]]:
    return [dict(row.data) for row in read_rows(path / "ledger.jsonl") if row.kind == kind]


def finish(run: Run) -> list[bytes]:
    """Serve the whole run, put its end on record."""
    batches = served(run.stream(), 0)
    run.checkpoint(run.num_steps)
    return batches


def test_E2_the_old_recipe_before_the_step_and_the_new_one_after(path: Path, build: Build, tmp_path: Path):
    with recipe.start_run(build(), tmp_path / "as-it-was") as run:
        before = served(run.stream(), 0)
    amendment = amend_run(path, ["stages.one.quotas.rest=60%"], from_pool="a", approval=WHY)
    assert (amendment.step, amendment.version, amendment.manifest) == (7, 2, 2)
    assert amendment.changes == ("stages.one.quotas.a: 61.6% → 40%", "stages.one.quotas.rest: 38.4% → 60%")
    with recipe.open_run(path) as run:
        after = finish(run)
    assert after[:7] == before[:7]
    assert after[7:] != before[7:]
    (row,) = rows(path, "amend")
    assert (row["step"], row["recipe"], row["reason"], row["approved_by"]) == (7, 2, "evaluation", "Ada")
    manifest = read_manifest(path / "manifests" / "000002.yaml")
    assert manifest["recipe"]["version"] == 2
    assert manifest["turn"]["step"] == 7
    assert manifest["checkpoint"]["uri"] == "weights-7", "the same weights, under another recipe"
    assert (manifest["gpu_hours"], manifest["metrics"]) == (3, {"code": {"loss": 2.5}})


def test_invariant_9_owed_is_spent_over_all_versions_and_the_length_is_kept(path: Path):
    amend_run(path, ["stages.one.quotas.rest=60%"], from_pool="a", approval=WHY)
    with recipe.open_run(path) as run:
        run.checkpoint(11)
    amend_run(path, ["stages.one.quotas={a: 10%, b: 10%, c: 80%}"], approval=WHY)
    with recipe.open_run(path) as run:
        run.checkpoint(run.num_steps)
        positions = run.stream().curriculum.positions
    end = last(path)
    assert sum(pool.owed for pool in end.pools) == sum(pool.spent for pool in end.pools)
    assert end.positions == positions
    chunks = rows(path, "chunk")
    assert [row["steps"] for row in chunks][:3] == [[0, 4], [4, 7], [7, 7 + chunks[2]["steps"][1] - 7]]
    for before, after in pairwise(chunks):
        assert before["steps"][1] == after["steps"][0]
        if before["stage"] == after["stage"]:
            assert before["grid"][1] == after["grid"][0], "the grid stays: early rows share a chunk"
    assert {row["recipe"] for row in chunks} == {1, 2, 3}


@settings(max_examples=25)
@given(data=st.data())
def test_invariant_1_drift_stays_below_two_contexts_across_amendments(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory, pools_root: Path, build: Build
):
    """Shares are changed at random steps; every pool stays near the sum of what each leg owed it."""
    folder = tmp_path_factory.mktemp("drift")
    one = stage(tokens=3000, context=16, chunk=150, quotas={"a": "61.6%", "b": "38%", "c": "0.4%"})
    with recipe.start_run(build(stages={"one": one}, groups={}, max_epochs=99), folder / "run") as run:
        run.checkpoint(data.draw(st.integers(1, 20)))
    for _ in range(data.draw(st.integers(1, 4))):
        parts = [data.draw(st.integers(1, 997)) for _ in range(3)]
        weights = f"{{a: {parts[0]}, b: {parts[1]}, c: {parts[2]}}}"
        amend_run(folder / "run", [f"stages.one.weights={weights}"], approval=WHY)
        with recipe.open_run(folder / "run") as run:
            here = run.step
            for step in range(here, min(here + 12, run.num_steps) + 1):
                for pool in run.stream().snapshot(step).pools:
                    assert abs(pool.spent - pool.owed) < 2 * 16
            run.checkpoint(min(here + data.draw(st.integers(1, 12)), run.num_steps))
        if run.complete:
            break


def test_a_tiny_pool_is_not_starved_by_amending_again_and_again(tmp_path: Path, build: Build):
    one = stage(tokens=4800, context=16, chunk=480, quotas={"a": "59%", "b": "40%", "c": "1%"})
    with recipe.start_run(build(stages={"one": one}, groups={}, max_epochs=99), tmp_path / "run") as run:
        run.checkpoint(5)
    for turn in range(18):
        share = 60 - turn % 2
        amend_run(
            tmp_path / "run", [f"stages.one.quotas={{a: {share}%, b: {99 - share}%, c: 1%}}"], approval=WHY
        )
        with recipe.open_run(tmp_path / "run") as run:
            run.checkpoint(run.step + 5)
    end = last(tmp_path / "run")
    assert end.pools[2].spent > 0
    assert abs(end.pools[2].spent - end.pools[2].owed) < 32


def test_an_amended_run_opens_from_state_alone_and_from_the_folder_alike(path: Path):
    amend_run(path, ["stages.one.quotas.rest=60%"], from_pool="a", approval=WHY)
    with recipe.open_run(path) as run:
        whole, state, later = served(run.stream(), 0), run.state(), run.state(12)
    assert served(recipe.stream_from(state), 7) == whole[7:]
    assert served(recipe.stream_from(later), 12) == whole[12:]
    with pytest.raises(RecipeError, match="a step before this stream"):
        recipe.stream_from(state).batch(6)
    with recipe.open_run(path, state=later) as run:
        assert served(run.stream(), 0) == whole
        run.checkpoint(14)
    with recipe.open_run(path) as run:
        assert served(run.stream(), 0) == whole


def test_a_state_from_before_the_amendment_is_refused_after_it(path: Path):
    with recipe.open_run(path) as run:
        stale = run.state(9)
    amend_run(path, ["stages.one.quotas.rest=60%"], from_pool="a", approval=WHY)
    with recipe.open_run(path) as run:
        run.checkpoint(9)
    with pytest.raises(RecipeError, match="a state of another course"):
        recipe.open_run(path, state=stale)


def test_a_state_of_the_very_step_undoes_the_amendment(path: Path, build: Build, tmp_path: Path):
    """It was taken before; going on from it discards the amendment, on record."""
    with recipe.open_run(path) as run:
        before, whole = run.state(), served(run.stream(), 0)
    amend_run(path, ["stages.one.quotas.rest=60%"], from_pool="a", approval=WHY)
    with recipe.open_run(path, state=before) as run:
        assert served(run.stream(), 0) == whole
        run.checkpoint(run.num_steps)
    with recipe.open_run(path) as run:
        assert run.recipe.shares("one")["a"] == Fraction(77, 125)
        assert served(run.stream(), 0) == whole
    (rewind,) = rows(path, "rewind")
    assert rewind["turn"] == rows(path, "amend")[0]["row"]
    amend_run(path, ["stages.two.tokens=1200"], at=7, approval=WHY)
    assert [row["recipe"] for row in rows(path, "amend")] == [2, 3], "a discarded number is not used again"


def test_amending_at_an_older_checkpoint_discards_what_came_after(path: Path):
    with recipe.open_run(path) as run:
        run.checkpoint(12)
    seen = []
    amendment = amend_run(
        path,
        ["stages.one.quotas.rest=60%"],
        from_pool="a",
        at=7,
        approval=WHY,
        confirm=lambda worked_out: seen.append(worked_out) or True,  # type: ignore[func-returns-value]
    )
    assert seen[0].discards == amendment.discards == 5
    with recipe.open_run(path) as run:
        assert (run.step, run.recipe.shares("one")["a"]) == (7, Fraction(2, 5))
    assert [row["to_step"] for row in rows(path, "rewind")] == [7]


def test_what_was_not_confirmed_is_not_written(path: Path):
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    amendment = amend_run(
        path, ["stages.one.quotas.rest=60%"], from_pool="a", approval=WHY, confirm=lambda _: False
    )
    assert amendment.manifest is None
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (["stages.one.context=32"], "stages.one.context"),
        (["stages.one.slicing.stride=8"], "stride: 8"),
        (["stages.one.tokens=96"], "336 positions: so many are consumed"),
        (["seed=2"], "seed"),
        (["count=fresh"], "count"),
        (["stages.one.batch.sequences=4"], "batch"),
        (["stages.one.chunk=100"], "chunk"),
    ],
)
def test_what_is_behind_does_not_change(path: Path, changes: list[str], told: str):
    with pytest.raises(
        RecipeError, match=r"branch|end the stage here|leave it as it is|say at least"
    ) as info:
        amend_run(path, changes, approval=WHY)
    assert told in str(info.value)
    assert rows(path, "amend") == []


def test_a_complete_run_has_nothing_left_to_change_but_may_get_a_stage(path: Path):
    with recipe.open_run(path) as run:
        end = run.num_steps
        run.checkpoint(end)
    with pytest.raises(RecipeError, match="nothing is left to change") as refused:
        amend_run(path, ["max_epochs=60"], approval=WHY)
    assert "--at 7" in refused.value.problems[0].fix
    assert rows(path, "amend") == []
    assert amend_run(path, ["max_epochs=60"], at=7, approval=WHY, confirm=lambda _: False).step == 7
    last_stage = "+stages.more={like: two, tokens: 480}"
    amendment = amend_run(path, [last_stage], approval=WHY)
    assert amendment.step == end and amendment.after.end_positions > amendment.after.positions


def test_another_name_for_a_pool_is_a_branch(path: Path):
    for change in ("+pools.a.renamed_from=old", "~pools.a"):
        with pytest.raises(RecipeError, match=r"--rename a=NEW"):
            amend_run(path, [change], approval=WHY)


def test_a_finished_stage_does_not_change_and_a_later_one_does(path: Path):
    with recipe.open_run(path) as run:
        run.checkpoint(20)
        assert run.stage == "two"
    with pytest.raises(RecipeError, match="branch"):
        amend_run(path, ["stages.one.quotas.rest=60%"], from_pool="a", approval=WHY)
    amend_run(path, ["stages.two.tokens=1200", "stages.two.quotas.a=40%"], from_pool="b", approval=WHY)
    with recipe.open_run(path) as run:
        assert run.recipe.shares("two") == {"a": Fraction(2, 5), "b": Fraction(2, 5), "c": Fraction(1, 5)}
        run.checkpoint(run.num_steps)


def test_a_stage_ends_where_it_stands_and_another_begins(path: Path):
    """The way to another context, or a decay, from here on."""
    changes = [
        "stages.one.tokens=336",
        "+stages.decay={tokens: 480, context: 32, batch: {sequences: 3}, quotas: {a: 0%, rest: 100%}}",
        "~stages.two",
    ]
    amend_run(path, changes, approval=WHY)
    with recipe.open_run(path) as run:
        assert (run.step, run.stage, run.num_steps) == (7, "decay", 12)
        pools = {name for _, batch in run.stream().batches(read_ahead=0) for name in batch["pool"].tolist()}
        assert pools == {1, 2}
        run.checkpoint(run.num_steps)
    assert last(path).stage == 1


def test_total_quotas_are_reached_by_the_whole_stage(path: Path):
    """Spent and forward shares together come to what was asked, up to the estimate of padding."""
    amend_run(path, ["stages.one.quotas.rest=45%"], from_pool="a", goal=Goal(), approval=WHY)
    with recipe.open_run(path) as run:
        stop = next(layout for layout in run.stream().curriculum.stages if layout.name == "one").stop_step
        run.checkpoint(stop)
        spent = [pool.spent for pool in run.stream().snapshot(stop).pools]
    assert abs(Fraction(spent[0], sum(spent)) - Fraction(55, 100)) < Fraction(3, 100)


def test_what_a_pool_is_behind_is_not_asked_for_twice(tmp_path: Path, build: Build):
    """Windows of 16: after four of them c was owed 6 and served none; it is to end with 20 % of 640."""
    one = stage(tokens=640, context=16, quotas={"a": "90%", "c": "10%", "b": "0%"}, batch={"sequences": 1})
    plain = build(stages={"one": one}, groups={}, max_epochs=99, count="positions")
    with recipe.start_run(plain, tmp_path / "run") as run:
        run.checkpoint(4)
        spent = [pool.spent for pool in run.stream().snapshot(4).pools]
        owed = [pool.owed for pool in run.stream().snapshot(4).pools]
    assert spent != owed
    goal = Goal(max_rise=None)
    changes = ["stages.one.quotas={a: 80%, c: 20%, b: 0%}"]
    amend_run(tmp_path / "run", changes, goal=goal, approval=WHY)
    with recipe.open_run(tmp_path / "run") as run:
        end = run.stream().snapshot(run.num_steps)
    assert [pool.owed for pool in end.pools] == [512, 0, 128]
    assert abs(end.pools[2].spent - 128) < 16


def test_totals_out_of_reach_are_refused_with_the_numbers(path: Path):
    with pytest.raises(RecipeError, match="totals that cannot be reached") as info:
        amend_run(path, ["stages.one.quotas={a: 1%, b: 90%, c: 9%}"], goal=Goal(), approval=WHY)
    assert "spent of a total of" in str(info.value)
    assert "the nearest total that can be reached" in str(info.value)
    assert rows(path, "amend") == []


def test_a_pool_is_added_and_one_leaves(path: Path, pools_root: Path):
    write(pools_root / "later", seed=9, documents=30)
    with recipe.open_run(path) as run:
        spent = [pool.spent for pool in run.stream().snapshot(7).pools]
    changes = [
        f"+pools.later={{path: '{pools_root / 'later'}'}}",
        "stages.one.quotas={a: 50%, b: 20%, c: 0%, later: 30%}",
    ]
    amend_run(path, changes, approval=WHY)
    with recipe.open_run(path) as run:
        base = run.stream().snapshot(7)
        assert [pool.spent for pool in base.pools] == [*spent, 0]
        assert [pool.debt for pool in base.pools] == [0, 0, 0, 0], "a pool left: nobody owes"
        run.checkpoint(run.num_steps)
        assert run.stream().snapshot(12).pools[2].spent == spent[2], "its share is 0: nothing more is drawn"
    assert rows(path, "amend")[0]["pools"].keys() == {"later"}
    assert last(path).pools[3].spent > 0


def test_a_pool_that_runs_out_for_certain_is_refused(tmp_path: Path, build: Build):
    with recipe.start_run(build(max_epochs=2), tmp_path / "run") as run:
        run.checkpoint(3)
    with pytest.raises(RecipeError, match=r"pools\.c"):
        amend_run(tmp_path / "run", ["stages.two.quotas={a: 0%, b: 0%, c: 100%}"], approval=WHY)


def test_a_live_amendment_counts_once_a_checkpoint_does(path: Path):
    with recipe.open_run(path) as run:
        old = served(run.stream(), 7)
        state = run.amend(["stages.one.quotas.rest=60%"], reason="live", step=10, from_pool="a")
        new = served(run.stream(), 7)
        assert new[:3] == old[:3]
        assert new[3:] != old[3:]
        assert served(recipe.stream_from(state), 10) == new[3:]
        assert served(run.stream(), 0, 7) == served(recipe.open_run(path, 0).stream(), 0, 7)
    with recipe.open_run(path) as run:
        assert served(run.stream(), 7) == old, "no checkpoint came after it"
    with recipe.open_run(path, state=state) as run:
        assert served(run.stream(), 7) == new
        run.checkpoint(13)
    with recipe.open_run(path) as run:
        assert (run.step, run.recipe.shares("one")["a"]) == (13, Fraction(2, 5))
        assert served(run.stream(), 7) == new


def test_a_live_amendment_at_the_checkpoint_is_on_record_at_once(path: Path):
    with recipe.open_run(path) as run:
        run.amend(["stages.one.quotas.rest=60%"], reason="live", from_pool="a")
        new = served(run.stream(), 7)
    with recipe.open_run(path) as run:
        assert served(run.stream(), 7) == new


def test_another_handle_is_told_that_the_run_turned(path: Path):
    with recipe.open_run(path) as run:
        amend_run(path, ["stages.one.quotas.rest=60%"], from_pool="a", approval=WHY)
        with pytest.raises(RecipeError, match="this handle is behind"):
            run.checkpoint(9)


def test_a_run_begun_anew_behind_an_amendment_is_followed_by_the_audit(tmp_path: Path, build: Build):
    """The chunk that the amendment split is closed whole the second time."""
    one = stage(tokens=1152, context=32, chunk=446, quotas={"a": "60%", "b": "40%", "c": "0%"})
    with recipe.start_run(build(stages={"one": one}, groups={}), tmp_path / "run") as run:
        run.checkpoint(4)
        run.checkpoint(10)
    with recipe.open_run(tmp_path / "run", 4) as run:
        run.amend(["stages.one.quotas.a=40%"], from_pool="b", reason="x")
    with recipe.open_run(tmp_path / "run", 0) as run:
        run.checkpoint(4)
        run.checkpoint(5)
    assert recipe.audit_run(tmp_path / "run").findings == ()
