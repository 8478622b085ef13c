"""Skipped steps: burnt or returned, alone and among withdrawals; the stream equals the plain rules."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.mixing.skipping import skipped
from recipe.mixing.snapshot import COUNTS, Cursor, Cut, PoolState, Snapshot
from recipe.mixing.stream import Stream
from tests.mixing.build import World, stage, windows, world, write
from tests.mixing.twins import Twins
from tests.mixing.worlds import Bank, draw_case

POLICIES = ("repeat", "stop", "redistribute")


def some_documents(draw: Any, twins: Twins) -> dict[str, list[int]]:
    """A few documents of some pools; now and then half of one."""
    chosen = {}
    for reader in twins.course.readers:
        numbers = range(len(reader.source.docs))
        some = st.lists(st.sampled_from(numbers), max_size=3, unique=True)
        chosen[reader.name] = draw(st.one_of(some, some, st.just(list(numbers)[: len(numbers) // 2])))
    return chosen


@settings(max_examples=60)
@given(st.data())
def test_invariant_3_skips_and_withdrawals_in_any_order_follow_the_rules(bank: Bank, data: st.DataObject):
    case = draw_case(data.draw, bank, policies=POLICIES)
    twins = Twins(case.world, case.sources)
    for _ in range(data.draw(st.integers(1, 5))):
        event = data.draw(st.sampled_from(["burnt", "returned", "returned", "withdraw"]))
        if event == "withdraw":
            twins.withdraw(some_documents(data.draw, twins))
        else:
            twins.skip(data.draw(st.integers(1, 4)), returned=event == "returned")
        twins.serve(data.draw(st.integers(0, 4)))
    twins.serve(1000)


@settings(max_examples=30)
@given(st.data())
def test_invariant_5_steps_after_a_skip_and_a_withdrawal_are_opened_anywhere(bank: Bank, data: st.DataObject):
    case = draw_case(data.draw, bank, stages=2)
    twins = Twins(case.world, case.sources)
    twins.skip(data.draw(st.integers(1, 4)), returned=data.draw(st.booleans()))
    twins.serve(data.draw(st.integers(0, 2)))
    twins.withdraw(some_documents(data.draw, twins))
    base, recipe = twins.snapshot(), case.world.recipe
    twins.serve(1000)
    for step in range(base.step, twins.step):
        at = json.loads(json.dumps(twins.stream.snapshot(step).to_plain()))
        again = Stream(recipe, twins.pools, [Snapshot.from_plain(at)], twins.withdrawn)
        assert again.snapshot(step + 1) == twins.stream.snapshot(step + 1)


@pytest.fixture
def ten(tmp_path: Path) -> World:
    """A pool of ten windows in blocks of four, read three times."""
    write(tmp_path / "a", [4] * 10)
    return world(tmp_path, {"a": {"block_units": 4}}, [stage(4, {"a": 1}, steps=30)], max_epochs=3)


def read(stream: Stream, start: int) -> list[int]:
    """Documents from a step on, one a step."""
    return [piece.document for step in range(start, stream.num_steps) for piece in stream.provenance(step, 0)]


def order(made: World) -> list[int]:
    return [window[1] for window in windows(made.stream())]


def test_what_is_burnt_is_never_read_in_its_epoch(ten: World):
    stream, whole = ten.stream(), order(ten)
    made = skipped(stream.ground, stream.snapshot(3), stream.snapshot(6), returned=False)
    after = Stream(ten.recipe, ten.pools, [made.snapshot])
    assert read(after, 3) == whole[6:30] + order_of_epoch(ten, 3)[:3]
    assert (dict(made.sequences), dict(made.tokens)) == ({"a": 3}, {"a": 12})
    state = made.snapshot.pools[0]
    assert dict(state.dropped) == {"skipped": 12}
    assert [getattr(state, name) for name in COUNTS] == [
        getattr(stream.snapshot(3).pools[0], name) for name in COUNTS
    ]
    assert replace(made.snapshot, pools=()) == replace(stream.snapshot(3), pools=())


def order_of_epoch(made: World, epoch: int) -> list[int]:
    longer = world(
        Path(made.recipe.pools_root or ""), {"a": {"block_units": 4}}, [stage(4, {"a": 1}, steps=50)]
    )
    return order(longer)[10 * epoch :]


def test_what_is_returned_is_read_before_the_epoch_turns(ten: World):
    stream, whole = ten.stream(), order(ten)
    made = skipped(stream.ground, stream.snapshot(3), stream.snapshot(6), returned=True)
    after = Stream(ten.recipe, ten.pools, [made.snapshot])
    assert read(after, 3) == whole[6:10] + whole[3:6] + whole[10:]
    held = [(each.block, each.sequence, each.stop) for each in made.snapshot.pools[0].held]
    assert held == [(0, 3, 4), (1, 0, 2)]
    assert not made.snapshot.pools[0].dropped
    assert after.snapshot(10).pools[0].cursor.epoch == 1
    assert not after.snapshot(10).pools[0].held


def test_what_is_left_of_an_epoch_that_ended_meanwhile_is_read_with_the_next(ten: World):
    stream, whole = ten.stream(), order(ten)
    made = skipped(stream.ground, stream.snapshot(8), stream.snapshot(13), returned=True)
    after = Stream(ten.recipe, ten.pools, [made.snapshot])
    assert read(after, 8)[:12] == whole[13:20] + whole[8:13]
    assert [each.epoch for each in made.snapshot.pools[0].held] == [0, 1]
    at = after.snapshot(20).pools[0]
    assert (at.cursor.epoch, at.distinct, at.documents) == (2, 10, 20)


@pytest.mark.parametrize("policy", ["stop", "redistribute"])
def test_a_skip_to_the_very_end_of_the_last_reading_still_gives_it_back(tmp_path: Path, policy: str):
    write(tmp_path / "a", [4] * 10)
    keys = {"max_epochs": 1, "on_exhausted": policy}
    made = world(tmp_path, {"a": {"block_units": 4}}, [stage(4, {"a": 1}, steps=30)], **keys)
    stream, whole = made.stream(), order(made)
    assert stream.snapshot(10).ended
    given_back = skipped(stream.ground, stream.snapshot(7), stream.snapshot(10), returned=True).snapshot
    after = made.stream([given_back])
    assert (given_back.ended, given_back.pools[0].cursor.epoch, given_back.pools[0].cursor.block) == (
        False,
        0,
        3,
    )
    assert [after.provenance(step, 0)[0].document for step in (7, 8, 9)] == whole[7:]
    with pytest.raises(ValueError, match="ended at step 10"):
        after.batch(10)
    burnt = made.stream(
        [skipped(stream.ground, stream.snapshot(7), stream.snapshot(10), returned=False).snapshot]
    )
    with pytest.raises(ValueError, match="ended at step 7"):
        burnt.batch(7)


def test_a_returned_range_is_cut_when_the_rule_has_changed_by_then(tmp_path: Path):
    """Three rows of eight are given back; one is read as it was, the others by four."""
    write(tmp_path / "a", [8] * 5)
    stages = [stage(8, {"a": 1}, steps=3), stage(4, {"a": 1}, steps=30)]
    made = world(tmp_path, {"a": {"block_units": 8}}, stages, seed=5)
    stream = made.stream()
    whole = [made.stream().provenance(step, 0)[0].document for step in range(3)]
    given_back = skipped(stream.ground, stream.snapshot(0), stream.snapshot(3), returned=True).snapshot
    after = made.stream([given_back])
    rest = [document for document in range(5) if document not in whole]
    assert sorted(read(after, 0)[:2]) == rest
    assert read(after, 0)[2] == whole[0]
    by_four = [after.provenance(step, 0)[0] for step in range(3, 7)]
    right = sorted((document, start, start + 4) for document in whole[1:] for start in (0, 4))
    assert sorted((p.document, p.start, p.stop) for p in by_four) == right
    state = after.snapshot(5).pools[0]
    assert (state.held[0].sequence, state.held[0].stop, state.held[0].cuts) == (2, None, (Cut(0, 1, 0, 3),))
    assert after.snapshot(7).pools[0].cursor.epoch == 1


def test_a_skip_of_what_was_returned_returns_it_again(ten: World):
    stream, whole = ten.stream(), order(ten)
    first = skipped(stream.ground, stream.snapshot(0), stream.snapshot(2), returned=True).snapshot
    second = ten.stream([first])
    again = skipped(second.ground, second.snapshot(8), second.snapshot(9), returned=True).snapshot
    assert read(ten.stream([again]), 8)[:3] == [whole[1], whole[0], whole[10]]
    burnt = skipped(second.ground, second.snapshot(8), second.snapshot(9), returned=False).snapshot
    assert read(ten.stream([burnt]), 8)[:2] == [whole[1], whole[10]]


def test_pools_that_were_not_drawn_stay_as_they_are(tmp_path: Path):
    write(tmp_path / "a", [4] * 10)
    write(tmp_path / "z", [4] * 10, first=100)
    made = world(tmp_path, {"a": {}, "z": {}}, [stage(4, {"a": 1, "z": 0}, steps=9)])
    stream = made.stream()
    for returned in (True, False):
        done = skipped(stream.ground, stream.snapshot(2), stream.snapshot(4), returned=returned)
        assert done.snapshot.pools[1] == stream.snapshot(2).pools[1]
        assert (done.sequences["z"], done.tokens["z"]) == (0, 0)


def test_steps_of_two_stages_and_none_at_all_are_refused(tmp_path: Path):
    write(tmp_path / "a", [4] * 10)
    stream = world(tmp_path, {"a": {}}, [stage(4, {"a": 1}), stage(4, {"a": 1})]).stream()
    for first, last in ((3, 5), (2, 2), (3, 1)):
        with pytest.raises(ValueError, match="not steps of one stage"):
            skipped(stream.ground, stream.snapshot(first), stream.snapshot(last), returned=False)
    assert skipped(stream.ground, stream.snapshot(4), stream.snapshot(6), returned=True).sequences == {"a": 2}


def test_ranges_and_withdrawals_of_a_hundred_pools_take_few_bytes_of_a_state():
    rng = random.Random(3)

    def cursor(**more: Any) -> Cursor:
        return Cursor(epoch=2, block=rng.randrange(999), stage=1, sequence=rng.randrange(9999), **more)

    pools = [
        PoolState(
            cursor=cursor(withdrawn=3, prefix=(rng.randrange(10**8), 1024), cuts=(Cut(0, 77, 2),)),
            held=(cursor(stop=rng.randrange(9999), prefix=(10**8, 1024)), cursor(stop=9999, withdrawn=1)),
            dropped={reason: rng.randrange(10**9) for reason in ("tail", "skipped", "withdrawn", "unread")},
            **{name: rng.randrange(10**12) for name in COUNTS},
        )
        for _ in range(100)
    ]
    snapshot = Snapshot(pools=tuple(pools))
    text = json.dumps(snapshot.to_plain(), separators=(",", ":")).encode()
    assert Snapshot.from_plain(json.loads(text)) == snapshot
    assert len(zstandard.ZstdCompressor(level=19).compress(text)) < 100 * 200


def test_the_plain_form_says_nothing_of_ranges_where_there_are_none(ten: World):
    stream = ten.stream()
    assert set(stream.snapshot(3).to_plain()["pools"][0]) == {"cursor", "debt", *COUNTS}
    made = skipped(stream.ground, stream.snapshot(3), stream.snapshot(6), returned=True).snapshot
    plain = json.loads(json.dumps(made.to_plain()))
    assert plain["pools"][0]["held"] == [
        {"cursor": [0, 0, 0, 3], "stop": 4},
        {"cursor": [0, 1, 0, 0], "stop": 2},
    ]
    assert Snapshot.from_plain(plain) == made
