"""Invariant 5 and the cases of resuming: any step, any number of times, equals the unbroken run."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from recipe.errors import RecipeError
from recipe.mixing.snapshot import Snapshot, start_of
from recipe.mixing.stream import Stream
from tests.mixing.build import World, everything, plain_batch, stage, windows, world, write
from tests.mixing.worlds import Bank, draw_case

POLICIES = ("repeat", "stop", "redistribute")


def saved(stream: Stream, step: int) -> Snapshot:
    """A snapshot that went through a file."""
    return Snapshot.from_plain(json.loads(json.dumps(stream.snapshot(step).to_plain())))


@settings(max_examples=30)
@given(st.data())
def test_invariant_5_a_resume_at_every_step_equals_the_unbroken_run(bank: Bank, data: st.DataObject):
    case = draw_case(data.draw, bank, policies=POLICIES)
    try:
        whole = everything(case.world.stream())
    except RecipeError:
        assume(False)
        raise
    once = case.world.stream()
    for step in range(len(whole)):
        again = case.world.stream([saved(once, step)])
        assert plain_batch(again.batch(step)) == whole[step]
        assert again.snapshot(step + 1) == case.world.stream([saved(once, step + 1)]).snapshot(step + 1)
    some = data.draw(st.integers(0, len(whole)))
    assert everything(case.world.stream([saved(once, some)]), some) == whole[some:]


@settings(max_examples=40)
@given(st.data())
def test_invariant_5_a_resume_of_a_resume_of_a_resume_too(bank: Bank, data: st.DataObject):
    case = draw_case(data.draw, bank, policies=POLICIES)
    try:
        whole = everything(case.world.stream())
    except RecipeError:
        assume(False)
        raise
    stream, step, got = case.world.stream(), 0, []
    while step < len(whole):
        more = data.draw(st.integers(1, 5))
        got += everything(stream, step, step + more)
        step = min(step + more, len(whole))
        stream = case.world.stream([saved(stream, step)])
    assert got == whole


@settings(max_examples=30)
@given(st.data())
def test_a_snapshot_does_not_depend_on_how_the_walk_was_broken_up(bank: Bank, data: st.DataObject):
    case = draw_case(data.draw, bank, policies=POLICIES)
    try:
        num = len(everything(case.world.stream()))
    except RecipeError:
        assume(False)
        raise
    stepwise, at = case.world.stream(), start_of(len(case.sources))
    for step in range(num - 1):
        (at,) = stepwise.walk(at, step + 1)
        assert at == case.world.stream().snapshot(step + 1)


@settings(max_examples=30)
@given(st.data())
def test_chunks_close_where_the_grid_says_and_tile_the_run(bank: Bank, data: st.DataObject):
    case = draw_case(data.draw, bank, policies=POLICIES)
    try:
        num = len(everything(case.world.stream()))
    except RecipeError:
        assume(False)
        raise
    stream = case.world.stream()
    closed = stream.closings(start_of(len(stream.pools)), stream.num_steps)
    right = []
    for layout in stream.curriculum.stages:
        target = layout.first_position + layout.chunk
        for step in range(layout.first_step + 1, layout.stop_step + 1):
            position = stream.curriculum.positions_at(step)
            if position >= target or step in (layout.stop_step, num):
                right.append(step)
                target += layout.chunk if position >= target else 0
    assert [at.step for at in closed] == [step for step in right if step <= num]
    for half in range(num + 1):
        later = stream.closings(stream.snapshot(half), stream.num_steps)
        assert [at.step for at in later] == [at.step for at in closed if at.step > half]


@pytest.fixture
def ten(tmp_path: Path) -> World:
    """A pool of ten windows, read three times."""
    write(tmp_path / "a", [4] * 10)
    return world(tmp_path, {"a": {}}, [stage(4, {"a": 1}, steps=30)], max_epochs=3)


def test_R01_the_third_run_goes_on_where_the_second_stopped(tmp_path: Path):
    write(tmp_path / "a", [4] * 200)
    made = world(tmp_path, {"a": {}}, [stage(4, {"a": 1}, steps=200)])
    whole = windows(made.stream())
    first = saved(made.stream(), 30)
    second = saved(made.stream([first]), 40)
    assert (first.step, second.step) == (30, 40)
    (piece,) = made.stream([second]).provenance(40, 0)
    assert piece[:4] == whole[40]
    assert sorted(window[1] for window in whole) == list(range(200))


def test_R02_the_place_is_not_skipped_again_in_later_epochs(ten: World):
    rest = everything(ten.stream([saved(ten.stream(), 6)]), 6)
    assert len(rest) == 4 + 10 + 10
    assert rest == everything(ten.stream())[6:]


def test_R06_a_resume_in_a_later_epoch_reads_that_epochs_order(ten: World):
    whole = everything(ten.stream())
    random.seed(3)
    np.random.default_rng(0).random(5)
    assert everything(ten.stream([saved(ten.stream(), 17)]), 17) == whole[17:]
    epochs = [[batch["input_ids"][0][0] for batch in whole[i : i + 10]] for i in (0, 10, 20)]
    assert epochs[0] != epochs[1] != epochs[2]
    assert sorted(epochs[0]) == sorted(epochs[1]) == sorted(epochs[2])


def test_R09_a_resume_at_the_very_end_of_an_epoch_reads_the_next_one(tmp_path: Path):
    write(tmp_path / "a", [4] * 512)
    made = world(tmp_path, {"a": {}}, [stage(4, {"a": 1}, batch=8, steps=128)])
    at = saved(made.stream(), 64)
    assert (at.pools[0].cursor.epoch, at.pools[0].cursor.block, at.pools[0].cursor.sequence) == (1, 0, 0)
    second = [d for batch in everything(made.stream([at]), 64) for row in batch["input_ids"] for d in row[:1]]
    assert len(second) == len(set(second)) == 512


def test_D5_distinct_documents_and_readings_are_told(ten: World):
    states = [ten.stream().snapshot(step).pools[0] for step in (4, 10, 25)]
    assert [(s.distinct, s.documents, s.cursor.epoch) for s in states] == [
        (4, 4, 0),
        (10, 10, 1),
        (10, 25, 2),
    ]


def test_a_snapshot_survives_json_and_refuses_what_it_does_not_know():
    plain = start_of(2).to_plain()
    assert Snapshot.from_plain(json.loads(json.dumps(plain))) == start_of(2)
    with pytest.raises(ValueError, match="format 2"):
        Snapshot.from_plain(plain | {"format": 2})
    with pytest.raises(ValueError, match="not a snapshot"):
        Snapshot.from_plain({k: v for k, v in plain.items() if k != "pools"})
    with pytest.raises(ValueError, match="not a snapshot"):
        Snapshot.from_plain(plain | {"extra": 1})


def test_a_step_outside_the_run_is_refused(ten: World):
    stream = ten.stream()
    for step in (-1, 31):
        with pytest.raises(ValueError, match=r"outside 0\.\.30"):
            stream.snapshot(step)
    with pytest.raises(ValueError, match=r"outside 0\.\.29"):
        stream.batch(30)
    with pytest.raises(ValueError, match="no row 1"):
        stream.provenance(0, 1)


def test_a_step_after_the_run_ended_is_refused_however_often_it_is_asked_for(tmp_path: Path):
    write(tmp_path / "a", [4] * 5)
    keys = {"max_epochs": 1, "on_exhausted": "stop"}
    made = world(tmp_path, {"a": {}}, [stage(4, {"a": 1}, batch=2, steps=9)], **keys)
    stream = made.stream()
    assert len(everything(stream)) == stream.end_step == 2
    for _ in range(2):
        with pytest.raises(ValueError, match="ended at step 2"):
            stream.snapshot(3)
        with pytest.raises(ValueError, match="ended at step 2"):
            stream.batch(2)
    assert stream.snapshot(2).step == 2
