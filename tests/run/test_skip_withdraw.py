"""Steps that are skipped and documents that are withdrawn, in runs that go on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import recipe
from recipe.config import Recipe
from recipe.errors import RecipeError
from recipe.run.canonical import digest
from recipe.run.changing.skip import skip_run
from recipe.run.changing.withdraw import Ticket, read_ids, withdraw_run
from recipe.run.ledger import read_rows
from recipe.run.run import Run
from tests.run.conftest import served, stage, write

Build = Callable[..., Recipe]
Rows = dict[str, list[list[tuple[Any, ...]]]]
WHY = Ticket(reason="take-down", ticket="T-17", approved_by="Ada")


@pytest.fixture
def long(build: Build) -> Recipe:
    """One stage that reads every pool more than once."""
    one = stage(tokens=6000, context=16, chunk=480, quotas={"a": "50%", "b": "40%", "c": "10%"})
    return build(stages={"one": one}, groups={}, max_epochs=9)


def rows_by_pool(run: Run, start: int, stop: int) -> Rows:
    """By pool: the pieces of each of its sequences, in the order in which they are served."""
    found: Rows = {name: [] for name in run.recipe.pools}
    for step in range(start, stop):
        for row in range(3):
            pieces = [tuple(piece) for piece in run.stream().provenance(step, row)]
            found[pieces[0][0]].append(pieces)
    return found


def row_of(path: Path, kind: str) -> dict[str, Any]:
    return next(row.data for row in read_rows(path / "ledger.jsonl") if row.kind == kind)


def test_every_pool_goes_on_behind_what_is_skipped(tmp_path: Path, long: Recipe):
    path = tmp_path / "run"
    with recipe.start_run(long, path) as run:
        run.checkpoint(10, uri="w10")
        run.checkpoint(20)
        before = rows_by_pool(run, 14, 40)
        whole = served(run.stream(), 0)
    skip = skip_run(path, (10, 14), reason="spike at 11")
    assert (skip.discards, sum(skip.sequences.values())) == (10, 12)
    with recipe.open_run(path) as run:
        assert run.step == 10
        after = rows_by_pool(run, 10, 36)
        assert served(run.stream(), 0, 10) == whole[:10]
        state = run.state(12)
        assert served(recipe.stream_from(state), 12) == served(run.stream(), 12)
        run.checkpoint(run.num_steps)
        end, planned = run.stream().snapshot(run.num_steps), run.stream().curriculum.positions
    for name, sequences in after.items():
        common = min(len(sequences), len(before[name]))
        assert common > 2
        assert sequences[:common] == before[name][:common], "read on behind the skipped steps"
    row = row_of(path, "skip")
    assert (row["steps"], row["returned"], row["sequences"]) == ([10, 14], False, dict(skip.sequences))
    dropped = {name: pool.dropped.get("skipped", 0) for name, pool in zip(long.pools, end.pools, strict=True)}
    assert dropped == dict(skip.tokens)
    assert end.positions == planned, "the run is as long as before"


def test_what_is_returned_is_served_before_the_epoch_turns(tmp_path: Path, long: Recipe):
    path = tmp_path / "run"
    with recipe.start_run(long, path) as run:
        run.checkpoint(10)
        skipped = rows_by_pool(run, 10, 14)
    skip_run(path, (10, 14), reason="spike", returned=True)
    with recipe.open_run(path) as run:
        later = rows_by_pool(run, 10, run.num_steps)
        run.checkpoint(run.num_steps)
        end = run.stream().snapshot(run.num_steps)
    for name in ("a", "b"):
        for sequence in skipped[name]:
            assert sequence in later[name], "the very sequences, later"
    assert all("skipped" not in pool.dropped for pool in end.pools)


@pytest.mark.parametrize("steps", [(9, 12), (10, 400), (10, 1000)])
def test_steps_that_cannot_be_skipped_are_refused(tmp_path: Path, long: Recipe, steps: tuple[int, int]):
    with recipe.start_run(long, tmp_path / "run") as run:
        run.checkpoint(10)
    before = (tmp_path / "run" / "ledger.jsonl").read_bytes()
    with pytest.raises(RecipeError, match=r"no checkpoint at step 9|no steps to skip"):
        skip_run(tmp_path / "run", steps, reason="spike")
    assert (tmp_path / "run" / "ledger.jsonl").read_bytes() == before


def documents(rows: Rows) -> dict[str, list[Any]]:
    """By pool: documents in the order in which they are begun."""
    return {
        name: [piece[1] for sequence in sequences for piece in sequence if piece[4] == 0]
        for name, sequences in rows.items()
    }


def test_withdrawn_documents_yield_nothing_and_the_order_stays(tmp_path: Path, long: Recipe):
    path = tmp_path / "run"
    with recipe.start_run(long, path) as run:
        run.checkpoint(4)
        before = rows_by_pool(run, 4, run.num_steps)
        seen = documents(rows_by_pool(run, 0, 4))["a"]
        coming = [one for one in documents(before)["a"] if one not in seen]
    gone = [coming[0], coming[5], seen[0]]
    withdrawal = withdraw_run(path, gone, ticket=WHY, pool="a")
    assert (withdrawal.number, withdrawal.documents) == (1, {"a": 3})
    with recipe.open_run(path) as run:
        after = rows_by_pool(run, 4, run.num_steps)
        states = [run.state(step) for step in (4, 9, 60)]
        for step, state in zip((4, 9, 60), states, strict=True):
            assert served(recipe.stream_from(state), step) == served(run.stream(), step)
        run.checkpoint(run.num_steps)
        end = run.stream().snapshot(run.num_steps)
    read = {piece[1] for sequence in after["a"] for piece in sequence}
    assert not read & set(gone)
    assert {piece[1] for rows in (after["b"], before["b"]) for row in rows for piece in row} >= {0}
    assert end.pools[0].dropped["withdrawn"] > 0
    row = row_of(path, "withdraw")
    data = (path / row["file"]).read_bytes()
    assert digest(data) == row["file_hash"]
    assert json.loads(data)["pools"] == {"a": sorted(gone)}
    assert (row["reason"], row["ticket"], row["approved_by"]) == ("take-down", "T-17", "Ada")


def test_a_second_withdrawal_counts_only_what_is_new(tmp_path: Path, long: Recipe):
    path = tmp_path / "run"
    with recipe.start_run(long, path) as run:
        run.checkpoint(4)
    withdraw_run(path, [3, 5], ticket=WHY, pool="b")
    again = withdraw_run(path, ["5", "7"], ticket=WHY, pool="b")
    assert (again.number, again.documents, again.already) == (2, {"b": 1}, 1)
    with pytest.raises(RecipeError, match="nothing to withdraw"):
        withdraw_run(path, [3, 7], ticket=WHY, pool="b")
    with recipe.open_run(path) as run:
        read = {piece[1] for sequence in rows_by_pool(run, 4, 60)["b"] for piece in sequence}
        assert not read & {3, 5, 7}


def test_no_place_serves_withdrawn_documents_again(tmp_path: Path, long: Recipe):
    """A rewind, or an old state, goes on only where they are withdrawn as well."""
    path = tmp_path / "run"
    with recipe.start_run(long, path) as run:
        run.checkpoint(4)
        old = run.state(6)
        run.checkpoint(8)
    withdraw_run(path, [3, 5], ticket=WHY, pool="b")
    for place in ({"step": 4}, {"state": old}, {"step": 0}):
        with pytest.raises(RecipeError, match=r"--again --at") as told:
            recipe.open_run(path, **place)  # type: ignore[arg-type]
    assert "2 of pool b" in str(told.value)
    again = withdraw_run(path, again=True, at=4, ticket=WHY)
    assert (again.step, again.documents, again.discards) == (4, {"b": 2}, 4)
    with recipe.open_run(path) as run:
        assert run.step == 4
        read = {piece[1] for sequence in rows_by_pool(run, 4, 60)["b"] for piece in sequence}
        assert not read & {3, 5}
        run.checkpoint(6)
    with pytest.raises(RecipeError, match="nothing to withdraw"):
        withdraw_run(path, again=True, ticket=WHY)
    names = [row.data["file"] for row in read_rows(path / "ledger.jsonl") if row.kind == "withdraw"]
    assert names == ["withdrawn/0001.json", "withdrawn/0002.json"], "no list is written over"
    assert recipe.audit_run(path).ok


def test_new_data_without_the_withdrawn_documents_is_accepted(tmp_path: Path, pools_root: Path, build: Build):
    """The pool was prepared again without them; with one of them in it, it is refused."""
    shutil.copytree(pools_root, tmp_path / "pools")
    one = stage(tokens=3000, context=16, chunk=480, quotas={"a": "50%", "b": "40%", "c": "10%"})
    plain = build(stages={"one": one}, groups={}, max_epochs=9, pools_root=str(tmp_path / "pools"))
    path = tmp_path / "run"
    with recipe.start_run(plain, path) as run:
        run.checkpoint(4)
    withdraw_run(path, [55], ticket=WHY, pool="b")
    for documents in (58, 50):
        shutil.rmtree(tmp_path / "pools" / "b")
        write(tmp_path / "pools" / "b", seed=9, documents=documents)
        if documents == 58:
            with pytest.raises(RecipeError, match="1 documents that were withdrawn: 55"):
                recipe.open_run(path, accept_data_change=True)
    with recipe.open_run(path, accept_data_change=True) as run:
        run.checkpoint(8)
        state = run.state()
        whole = served(run.stream(), 8)
    assert served(recipe.stream_from(state), 8) == whole
    with recipe.open_run(path) as run:
        assert served(run.stream(), 8) == whole
        run.checkpoint(run.num_steps)
    assert not recipe.audit_run(path).findings  # the data of before is gone: not all can be checked


def test_unknown_ids_are_told_with_the_nearest(tmp_path: Path, long: Recipe):
    with recipe.start_run(long, tmp_path / "run") as run:
        run.checkpoint(4)
    with pytest.raises(RecipeError, match="no such document"):
        withdraw_run(tmp_path / "run", [3, 99999], ticket=WHY)
    assert not (tmp_path / "run" / "withdrawn").exists()


def test_ids_are_read_one_a_line(tmp_path: Path):
    (tmp_path / "ids").write_bytes("doc-1\r\n\n 17 \nü\u2028x\n \r\na\rb\n".encode())
    assert read_ids(tmp_path / "ids") == ["doc-1", " 17 ", "ü\u2028x", "a\rb"]
    (tmp_path / "none").write_text("\n")
    for name in ("none", "missing"):
        with pytest.raises(RecipeError, match="ids of documents, one a line"):
            read_ids(tmp_path / name)
