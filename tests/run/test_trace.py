"""Invariant 11: where documents were read, and what rows hold, say the same, whatever a run went through."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recipe
from recipe import RecipeError
from recipe.config import recipe_from_plain
from recipe.mixing.tracing import Search, Stretch
from recipe.pools.growth import extend_pool
from recipe.run.branching.branch import branch_run
from recipe.run.branching.wishes import Wish
from recipe.run.changing.amend import amend_run
from recipe.run.changing.approval import Approval
from recipe.run.changing.change import Growth
from recipe.run.changing.skip import skip_run
from recipe.run.changing.withdraw import Ticket, withdraw_run
from recipe.run.tracing.trace import Wanted
from tests.run.conftest import Build, stage, write
from tests.run.traced import Held, held, traced

WHY = Approval(reason="evaluation", approved_by="Ada")


@pytest.fixture
def path(build: Build, tmp_path: Path) -> Path:
    """A run of 25 steps in two stages (15 and 10), with checkpoints at steps 4, 9 and 20."""
    with recipe.start_run(build(), tmp_path / "run") as run:
        for step in (4, 9, 20):
            run.checkpoint(step)
    return tmp_path / "run"


def assert_traced(path: Path, expected: list[Held] | None = None) -> None:
    """All documents at once, and some of them alone, are found where the rows hold them; and back."""
    everything = sorted(held(path) if expected is None else expected)
    assert everything
    assert traced(path) == everything
    for name, document in sorted({(one.pool, one.document) for one in everything}, key=str)[::20]:
        mine = [Held.of(one) for one in recipe.trace_document(path, document, pool=name)]
        assert mine == [one for one in everything if (one.pool, one.document) == (name, document)]
    for step, row in sorted({(one.step, one.row) for one in everything})[::9]:
        pieces = [
            Held(step, row, one.columns[0], one.pool, one.document, one.start, one.stop, one.fresh)
            for one in recipe.trace_row(path, step, row)
        ]
        assert pieces == [one for one in everything if (one.step, one.row) == (step, row)]


def test_invariant_11_a_recorded_run(path: Path):
    assert_traced(path)


def test_invariant_11_a_run_without_a_checkpoint_has_read_nothing(build: Build, tmp_path: Path):
    recipe.start_run(build(), tmp_path / "run").close()
    assert recipe.trace_document(tmp_path / "run", 3) == []


def test_a_reading_says_where_and_by_what_the_document_was_read(path: Path):
    first = recipe.trace_document(path, 3, pool="c")[0]
    with recipe.open_run(path) as run:
        batch = run.stream().batch(first.step)
        body = run.stream().ground.pools[2].tokens(3)
    seen = batch["input_ids"][first.row, slice(*first.columns)]
    assert seen.tolist() == body[first.start : first.stop].tolist()
    assert (first.run, first.pool, first.epoch, first.stage, first.recipe) == ("run", "c", 0, "one", 1)


def test_what_is_not_on_record_yet_will_be_read(path: Path):
    with recipe.open_run(path) as run:
        num_steps = run.num_steps
    everything = held(path, 0, num_steps)
    assert traced(path, until="end") == sorted(everything)
    assert traced(path, until=22) == sorted(one for one in everything if one.step < 22)
    assert traced(path, until=6) == sorted(one for one in everything if one.step < 6)
    said = {one.step: one.status for one in recipe.trace_document(path, 3, until="end")}
    assert {step: status for step, status in said.items() if (status == "read") is not (step < 20)} == {}


@pytest.mark.parametrize("until", [-1, 26])
def test_steps_that_the_run_does_not_have_are_refused(path: Path, until: int):
    with pytest.raises(RecipeError, match=r"0\.\.25, or end"):
        recipe.trace_document(path, 3, until=until)


def test_progress_never_passes_its_total(path: Path):
    told: list[tuple[int, int]] = []
    recipe.trace_row(path, 5, 0, progress=lambda done, total: told.append((done, total)))
    recipe.trace_documents(
        path, Wanted(ids=tuple(range(9))), until="end", progress=lambda *at: told.append(at)
    )
    assert told
    assert all(done <= total for done, total in told)


def test_invariant_11_rewound_rows_do_not_count(path: Path):
    with recipe.open_run(path, step=9) as run:
        run.checkpoint(12)
    with recipe.open_run(path, step=4) as run:
        run.checkpoint(6)
        run.checkpoint(17)
    assert max(one.step for one in held(path)) == 16
    assert_traced(path)


def test_invariant_11_amended_runs_and_an_amendment_that_was_rewound(path: Path):
    amend_run(path, ["stages.two.quotas={a: 10%, b: 10%, c: 80%}"], approval=WHY)
    with recipe.open_run(path) as run:
        run.checkpoint(24)
    with recipe.open_run(path, step=9) as run:
        run.checkpoint(11)
    amend_run(path, ["stages.one.quotas.rest=60%"], from_pool="a", approval=WHY)
    with recipe.open_run(path) as run:
        run.checkpoint(14)
    amend_run(path, ["stages.two.quotas.a=20%"], from_pool="c", approval=WHY)
    with recipe.open_run(path) as run:
        run.checkpoint(23)
    assert_traced(path)
    trace = recipe.trace_documents(path, Wanted(ids=tuple(range(90)), pool="a"))
    assert {reading.recipe for one in trace.documents for reading in one.readings} == {1, 3, 4}


def test_every_epoch_of_a_pool_is_found_and_serves_each_token_fresh_once(path: Path):
    amend_run(path, ["stages.two.quotas={a: 10%, b: 10%, c: 80%}"], approval=WHY, at=9)
    with recipe.open_run(path) as run:
        run.checkpoint(run.num_steps)
    trace = recipe.trace_documents(path, Wanted(ids=tuple(range(12)), pool="c"))
    assert {epoch for one in trace.documents for epoch in one.fresh} >= {0, 1, 2}
    assert all(one.fresh[0] == one.fresh[1] == one.tokens for one in trace.documents)


@pytest.mark.parametrize("returned", [True, False])
def test_invariant_11_skipped_steps(path: Path, returned: bool):
    skip_run(path, (9, 13), reason="a loss spike", returned=returned)
    with recipe.open_run(path) as run:
        run.checkpoint(run.num_steps)
    assert_traced(path)


def test_invariant_11_withdrawn_documents_are_found_where_they_were_read_before(path: Path):
    before = {name: recipe.trace_document(path, 3, pool=name, until=9) for name in "abc"}
    withdraw_run(path, [3], ticket=Ticket(reason="take-down"), at=9)
    with recipe.open_run(path) as run:
        run.checkpoint(run.num_steps)
    for name, readings in before.items():
        assert recipe.trace_document(path, 3, pool=name) == readings
    assert {one.withdrawn for one in recipe.trace_documents(path, Wanted(ids=(3,))).documents} == {9}
    assert {one.withdrawn for one in recipe.trace_documents(path, Wanted(ids=(4,))).documents} == {None}
    assert_traced(path)


@pytest.mark.parametrize("opens", ["next-epoch", "now"])
def test_invariant_11_a_pool_that_has_grown(build: Build, tmp_path: Path, opens: Growth):
    """Documents keep their ids; steps before the amendment are those of the pool as it was."""
    for seed, name in enumerate("xy"):
        write(tmp_path / name, seed=seed, documents=24)
    wanted = build(
        pools_root=str(tmp_path),
        pools={name: {"path": name, "block_units": 8} for name in "xy"},
        groups={},
        stages={"s": stage(tokens=2400, context=16, chunk=200, quotas={"x": "50%", "y": "50%"})},
    )
    with recipe.start_run(wanted, tmp_path / "run") as run:
        run.checkpoint(17)
    more = [np.arange(1, 30)] * 9
    extend_pool(tmp_path / "x", tmp_path / "x2", more).close()
    amend_run(tmp_path / "run", ["pools.x.path=x2"], approval=WHY, opens=opens)
    with recipe.open_run(tmp_path / "run") as run:
        run.checkpoint(run.num_steps)
    everything = held(tmp_path / "run")
    assert {one.document for one in everything if one.pool == "x"} >= set(range(33))
    assert_traced(tmp_path / "run", everything)


def test_invariant_11_steps_of_a_branch_before_it_left_its_parent(path: Path):
    amend_run(path, ["stages.one.quotas.rest=60%"], from_pool="a", approval=WHY, at=9)
    with recipe.open_run(path) as run:
        run.checkpoint(12)
    (branch,) = branch_run(
        f"{path}@step:12", Wish(name="B", overrides=("stages.two.quotas.a=40%",), from_pool="b")
    )
    with recipe.open_run(branch) as run:
        run.checkpoint(21)
    (second,) = branch_run(f"{branch}@step:21", Wish(name="C"))
    expected = held(path, 0, 12) + held(branch, 12, 21)
    with recipe.open_run(path, step=4) as run:  # the parent goes another way meanwhile
        run.checkpoint(16)
    assert_traced(branch, expected)
    assert_traced(second, expected)
    trace = recipe.trace_documents(second, Wanted(ids=tuple(range(60)), pool="b"))
    readings = [reading for one in trace.documents for reading in one.readings]
    assert {(one.run, one.step < 12) for one in readings} == {("run", True), ("B", False)}


def change(path: Path, deed: str) -> None:
    """Change the course of a run at its last checkpoint."""
    with recipe.open_run(path) as run:
        step = run.step
    upward = [f"stages.two.quotas.a={step + 40}%"]
    if deed == "amend":
        amend_run(path, upward, from_pool="b", approval=WHY)
    elif deed == "live amend":
        with recipe.open_run(path) as run:
            run.amend(upward, from_pool="b", reason="r")
    elif deed == "skip":
        skip_run(path, (step, step + 2), reason="r", returned=True)
    elif deed == "withdraw":
        withdraw_run(path, list(range(2 * step, 90, 3)), pool="a", ticket=Ticket(reason="r"))


@pytest.mark.parametrize("changes", [(), ("stages.two.quotas.a=20%",)])
@pytest.mark.parametrize("deed", ["nothing", "amend", "live amend", "skip", "withdraw"])
def test_invariant_11_a_branch_that_left_where_the_course_of_its_parent_changed(
    path: Path, deed: str, changes: tuple[str, ...]
):
    """Its own steps are its own from the first one on, on record or not; so are those of a branch of it."""
    from_pool = "b" if changes else None
    change(path, deed)
    (branch,) = branch_run(path, Wish(name="B", overrides=changes, from_pool=from_pool))
    assert_steps_of(branch, {"run": held(path, 0, 20), "B": held(branch, 20, 25)})
    with recipe.open_run(branch) as run:
        run.checkpoint(20)
    (same,) = branch_run(branch, Wish(name="same"))  # where B itself begins
    assert_steps_of(same, {"run": held(path, 0, 20), "same": held(same, 20, 25)})
    with recipe.open_run(branch) as run:
        run.checkpoint(22)
    change(branch, deed)
    mine = held(branch, 20, 22)
    assert_steps_of(branch, {"run": held(path, 0, 20), "B": mine + held(branch, 22, 25)})
    (second,) = branch_run(branch, Wish(name="C", overrides=("stages.two.quotas.a=40%",), from_pool="c"))
    assert_steps_of(second, {"run": held(path, 0, 20), "B": mine, "C": held(second, 22, 25)})


def assert_steps_of(path: Path, expected: dict[str, list[Held]]) -> None:
    """All readings up to the end, by the run that they are said to be of; some rows are told as they are."""
    trace = recipe.trace_documents(path, Wanted(ids=tuple(range(90))), until="end")
    assert not trace.gaps
    readings = [reading for one in trace.documents for reading in one.readings]
    found = {name: sorted(Held.of(one) for one in readings if one.run == name) for name in expected}
    assert found == {name: sorted(everything) for name, everything in expected.items()}
    assert {one.run for one in readings} == set(expected)
    last = list(expected.values())[-1]
    for step, row in sorted({(one.step, one.row) for one in last})[::6]:
        pieces = [
            Held(step, row, one.columns[0], one.pool, one.document, one.start, one.stop, one.fresh)
            for one in recipe.trace_row(path, step, row)
        ]
        assert pieces == [one for one in last if (one.step, one.row) == (step, row)]


def test_a_pool_that_a_branch_renamed_is_traced_under_its_new_name(path: Path):
    (branch,) = branch_run(f"{path}@step:9", Wish(name="B", renamed=(("b", "books"),)))
    with recipe.open_run(branch) as run:
        run.checkpoint(21)
    trace = recipe.trace_documents(branch, Wanted(ids=tuple(range(60)), pool="books"))
    assert len(trace.documents) == 60
    found = sorted(Held.of(one) for document in trace.documents for one in document.readings)
    before = [one for one in held(path, 0, 9) if one.pool == "b"]
    assert found == sorted(before + [one for one in held(branch, 9, 21) if one.pool == "books"])


def test_invariant_11_checkpoints_that_were_committed_late(path: Path):
    with recipe.open_run(path) as run:
        first, second = run.begin_checkpoint(22), run.begin_checkpoint(24)
        second.commit("weights-24")
        first.commit("weights-22")
    assert_traced(path)
    (branch,) = branch_run(f"{path}@step:22", Wish(name="B"))
    with recipe.open_run(branch) as run:
        run.checkpoint(23)
    assert_traced(branch, held(path, 0, 22) + held(branch, 22, 23))


def test_a_branch_without_its_parent_says_what_it_cannot_trace(path: Path):
    (branch,) = branch_run(f"{path}@step:9", Wish(name="B"))
    with recipe.open_run(branch) as run:
        run.checkpoint(21)
    expected = held(branch, 9, 21)
    shutil.rmtree(path)
    trace = recipe.trace_documents(branch, Wanted(ids=(3,), pool="c"))
    assert [(gap.run, gap.first_step, gap.stop_step) for gap in trace.gaps] == [("run", 0, 9)]
    assert [Held.of(one) for one in trace.documents[0].readings] == [
        one for one in expected if (one.pool, one.document) == ("c", 3)
    ]
    with pytest.raises(RecipeError, match="run run"):
        recipe.trace_document(branch, 3)
    with pytest.raises(RecipeError, match="a step that cannot be traced"):
        recipe.trace_row(branch, 8, 0)
    assert recipe.trace_row(branch, 9, 0)


def test_steps_before_accepted_data_are_told_not_to_be_traced(build: Build, tmp_path: Path):
    for seed, name in enumerate("xy"):
        write(tmp_path / name, seed=seed, documents=60)
    quotas = {"x": "50%", "y": "50%"}
    wanted = build(
        pools_root=str(tmp_path),
        pools={name: {"path": name} for name in "xy"},
        groups={},
        stages={"s": stage(tokens=960, context=16, chunk=200, quotas=quotas)},
    )
    recipe.start_run(wanted, tmp_path / "run").checkpoint(6)
    old = held(tmp_path / "run")
    shutil.move(tmp_path / "x", tmp_path / "old")
    write(tmp_path / "x", seed=3, documents=40)
    recipe.open_run(tmp_path / "run", accept_data_change=True).checkpoint(15)
    trace = recipe.trace_documents(tmp_path / "run", Wanted(ids=tuple(range(60)), pool="y"))
    assert [(gap.first_step, gap.stop_step) for gap in trace.gaps] == [(0, 6)]
    found = [Held.of(one) for document in trace.documents for one in document.readings]
    assert sorted(found) == [one for one in held(tmp_path / "run", 6, 15) if one.pool == "y"]
    assert recipe.trace_documents(tmp_path / "run", Wanted(ids=(3,)), until=6).gaps
    shutil.move(tmp_path / "x", tmp_path / "new")
    shutil.move(tmp_path / "old", tmp_path / "x")
    recipe.open_run(tmp_path / "run", 6).checkpoint(15)
    assert_traced(tmp_path / "run")
    assert [one for one in held(tmp_path / "run") if one.step < 6] == old


def test_of_a_long_run_only_what_may_hold_a_document_is_walked(tmp_path: Path):
    """100,000 sequences with a chunk row for every 1024; each is walked from the chunk row before it."""
    for name, number in {"a": 30_000, "b": 20_000}.items():
        recipe.write_pool(tmp_path / name, [[1, 2, 3, 4, 5]] * number, vocab_size=9, eos=0)
    plain = {
        "seed": 1,
        "max_epochs": 9,
        "pools": {name: {"path": str(tmp_path / name), "block_units": 4096} for name in "ab"},
        "stages": {
            "s": {
                "steps": 400,
                "context": 12,
                "batch": {"sequences": 256},
                "chunk": 4 * 256 * 12,
                "weights": {"a": 1, "b": 2},
            }
        },
    }
    with recipe.start_run(recipe_from_plain(plain, source="test"), tmp_path / "run") as run:
        for step in range(50, 401, 50):
            run.checkpoint(step)
        stream = run.stream()
        for document in (5, 29_999):
            walked: list[int] = []
            wanted = Wanted(ids=(document,), pool="a")
            trace = recipe.trace_documents(run.path, wanted, progress=lambda step, _: walked.append(step))  # noqa: B023
            everything = Search(stream.ground, {0: [document]}).walk(Stretch(stream.snapshot(0), 400))
            expected = [(hit.step, hit.row, hit.column) for _, hits in everything for hit in hits]
            found = [(one.step, one.row, one.columns[0]) for one in trace.documents[0].readings]
            assert found == expected
            assert len(expected) >= 2
            assert len(walked) <= 33 * len(expected) < 100


@settings(max_examples=12)
@given(data=st.data())
def test_invariant_11_runs_that_went_through_anything(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory, build: Build
):
    """Checkpoints, rewinds, amendments, skips and withdrawals at random steps."""
    path = tmp_path_factory.mktemp("any") / "run"
    with recipe.start_run(build(), path) as run:
        run.checkpoint(data.draw(st.integers(1, 12)))
    known = {0}
    for _ in range(data.draw(st.integers(1, 5))):
        with recipe.open_run(path) as run:
            known.add(run.step)
            step, num_steps = run.step, run.num_steps
        deed = data.draw(st.sampled_from(["go", "rewind", "amend", "skip", "withdraw"]))
        try:
            if deed == "rewind":
                step = data.draw(st.sampled_from(sorted(known)))
                with recipe.open_run(path, step=step) as run:
                    run.checkpoint(min(step + data.draw(st.integers(0, 4)), run.num_steps))
            elif deed == "amend":
                weights = ", ".join(f"{name}: {data.draw(st.integers(1, 9))}" for name in "abc")
                amend_run(path, [f"stages.two.weights={{{weights}}}"], approval=WHY)
            elif deed == "skip":
                stop = step + data.draw(st.integers(1, 5))
                skip_run(path, (step, stop), reason="spike", returned=data.draw(st.booleans()))
            elif deed == "withdraw":
                withdraw_run(
                    path, data.draw(st.lists(st.integers(0, 20), min_size=1)), ticket=Ticket(reason="r")
                )
        except RecipeError:
            continue
        with recipe.open_run(path) as run:
            run.checkpoint(min(run.step + data.draw(st.integers(0, 9)), num_steps))
    everything = sorted(held(path))
    if everything:
        assert traced(path) == everything
        one = data.draw(st.sampled_from(everything))
        mine = [Held.of(found) for found in recipe.trace_document(path, one.document, pool=one.pool)]
        assert mine == [
            other for other in everything if (other.pool, other.document) == (one.pool, one.document)
        ]
