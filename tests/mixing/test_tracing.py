"""Invariant 11 on streams: what a search by document finds is what the rows hold."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from recipe.errors import RecipeError
from recipe.mixing.row_pieces import Hit
from recipe.mixing.skipping import skipped
from recipe.mixing.snapshot import Snapshot, start_of
from recipe.mixing.stream import Stream
from recipe.mixing.tracing import Search, Stretch, merged
from recipe.mixing.withdrawals import Withdrawals
from tests.mixing.build import World, stage, world, write
from tests.mixing.worlds import Bank, draw_case

Piece = tuple[int, int, int, int, int, int, int, int]
"""Step, row, column, pool, document, start, stop, fresh."""


class At(NamedTuple):
    """A mark of a test."""

    snapshot: Snapshot


class Marks:
    """A stream's base and its snapshots at some steps."""

    def __init__(self, stream: Stream, steps: set[int], base: Snapshot | None = None) -> None:
        base = base or start_of(len(stream.pools))
        self.all = [At(base), *(At(stream.snapshot(s)) for s in sorted(steps) if s > base.step)]

    def between(self, low: At, high: At) -> At | None:
        inside = [at for at in self.all if low.snapshot.step < at.snapshot.step < high.snapshot.step]
        return inside[len(inside) // 2] if inside else None


def traced(
    stream: Stream, wanted: dict[int, list[int]], steps: set[int], base: Snapshot | None = None
) -> list[Piece]:
    """What a search finds in the steps up to the last mark."""
    marks, search = Marks(stream, steps, base), Search(stream.ground, wanted, at_once=0)
    found: list[Piece] = []
    epochs: set[tuple[int, int, int, int]] = set()
    for stretch in merged(search.stretches(marks.all[0], marks.all[-1], marks.between)):
        for _, hits in search.walk(stretch):
            found += [(*hit[:5], *hit[6:]) for hit in hits]
            epochs |= {(hit.pool, hit.document, hit.epoch, token) for hit in hits for token in fresh(hit)}
    assert len(epochs) == sum(stop - fresh for *_, stop, fresh in found), "a token is fresh once an epoch"
    return found


def fresh(hit: Hit) -> range:
    return range(hit.fresh, hit.stop)


def held(stream: Stream, num_steps: int, first: int = 0) -> list[Piece]:
    """What the rows of the first steps hold."""
    found: list[Piece] = []
    for step in range(first, num_steps):
        for row in range(stream.curriculum.stretch(step).batch):
            for piece in stream.provenance(step, row):
                where = (step, row, piece.column, stream.pools.index(piece.pool))
                found.append((*where, int(piece.document), piece.start, piece.stop, piece.fresh))
    return found


def served(stream: Stream) -> int:
    """Steps that the stream has; cases whose pools give nothing are passed over."""
    try:
        return sum(1 for _ in stream.batches(read_ahead=0))
    except RecipeError:
        assume(False)
        raise


@settings(max_examples=60)
@given(st.data())
def test_invariant_11_a_search_finds_what_the_rows_hold(bank: Bank, data: st.DataObject):
    case = draw_case(data.draw, bank, policies=("repeat", "stop", "redistribute"))
    stream = case.world.stream()
    num_steps = served(stream)
    assume(num_steps)
    steps = data.draw(st.sets(st.integers(1, num_steps))) | {num_steps}
    everything = held(stream, num_steps)
    for number, pool in enumerate(case.world.pools.values()):
        for document in range(pool.num_documents):
            expected = [piece for piece in everything if piece[3:5] == (number, document)]
            assert traced(stream, {number: [document]}, steps) == expected


@settings(max_examples=40)
@given(st.data())
def test_invariant_11_many_documents_are_found_at_once(bank: Bank, data: st.DataObject):
    case = draw_case(data.draw, bank)
    stream = case.world.stream()
    num_steps = served(stream)
    steps = data.draw(st.sets(st.integers(1, num_steps))) | {num_steps}
    wanted = {
        number: data.draw(st.lists(st.integers(0, pool.num_documents - 1), max_size=4))
        for number, pool in enumerate(case.world.pools.values())
    }
    expected = [piece for piece in held(stream, num_steps) if piece[4] in wanted[piece[3]]]
    assert traced(stream, wanted, steps) == expected


@settings(max_examples=60)
@given(st.data())
def test_invariant_11_holds_after_a_skip_and_after_a_withdrawal(bank: Bank, data: st.DataObject):
    case = draw_case(data.draw, bank)
    before = case.world.stream()
    num_steps = served(before)
    at = data.draw(st.integers(0, num_steps - 1))
    base, withdrawn = before.snapshot(at), Withdrawals.none()
    for name, pool in case.world.pools.items():
        gone = data.draw(st.lists(st.integers(0, pool.num_documents - 1), max_size=3))
        withdrawn = withdrawn.and_then({name: gone})
    stage_end = before.curriculum.stages[before.curriculum.stretch(at).stage].stop_step
    until = data.draw(st.integers(at, min(stage_end, num_steps)))
    if until > at:
        returned = data.draw(st.booleans())
        base = skipped(before.ground, base, before.snapshot(until), returned=returned).snapshot
    stream = Stream(case.world.recipe, case.world.pools, [base], withdrawn)
    try:
        everything = held(stream, num_steps, at)
    except RecipeError:  # what is left of a pool gives nothing
        assume(False)
        raise
    steps = data.draw(st.sets(st.integers(at + 1, num_steps))) | {num_steps}
    for number, pool in enumerate(case.world.pools.values()):
        for document in range(pool.num_documents):
            expected = [piece for piece in everything if piece[3:5] == (number, document)]
            assert traced(stream, {number: [document]}, steps, base) == expected


@pytest.fixture
def long(tmp_path: Path) -> World:
    """Two pools of several blocks, read three times over two stages."""
    for name in "ab":
        write(tmp_path / name, [20] * 40, eos=True)
    pools = {name: {"path": name, "block_units": 8} for name in "ab"}
    stages = [stage(32, {"a": 3, "b": 1}, steps=50), stage(64, {"a": 1, "b": 1}, steps=25)]
    return world(tmp_path, pools, stages)


def test_only_the_stretches_that_hold_a_document_are_walked(long: World):
    stream = long.stream()
    marks = Marks(stream, set(range(1, 76)))
    for document in range(40):
        search = Search(stream.ground, {1: [document]}, at_once=0)
        walked = list(search.stretches(marks.all[0], marks.all[-1], marks.between))
        steps = {piece[0] for piece in held(stream, 75) if piece[3:5] == (1, document)}
        assert {stretch.start.step for stretch in walked} == steps
        assert all(stretch.stop_step == stretch.start.step + 1 for stretch in walked)


def test_of_a_pool_that_is_shrunk_only_what_is_read_is_found(tmp_path: Path):
    """Half of the pool, a random part, is read again and again; the rest never is."""
    write(tmp_path / "a", [20] * 40)
    pools = {"a": {"path": "a", "block_units": 8}}
    made = world(tmp_path, pools, [stage(20, {"a": 1}, steps=50)], simulate_budget=2000)
    stream = made.stream()
    everything = held(stream, 50)
    found = {document: traced(stream, {0: [document]}, set(range(1, 51))) for document in range(40)}
    assert sum(bool(pieces) for pieces in found.values()) == 20
    assert sorted(piece for pieces in found.values() for piece in pieces) == sorted(everything)


def test_marks_that_are_near_are_walked_at_once(long: World):
    stream = long.stream()
    marks = Marks(stream, set(range(1, 76)))
    search = Search(stream.ground, {1: list(range(40))}, at_once=6)
    walked = list(search.stretches(marks.all[0], marks.all[-1], marks.between))
    assert max(stretch.stop_step - stretch.start.step for stretch in walked) in (5, 6)


def test_a_document_of_a_pool_without_a_share_costs_no_walk(tmp_path: Path):
    for name in "ab":
        write(tmp_path / name, [20] * 8)
    stream = world(tmp_path, {"a": "a", "b": "b"}, [stage(16, {"a": 1, "b": 0})]).stream()
    marks = Marks(stream, {4})
    assert list(Search(stream.ground, {1: [3]}).stretches(*marks.all, marks.between)) == []


def test_stretches_that_meet_are_walked_as_one():
    at = [start_of(1), *(Snapshot(step=step) for step in (3, 6, 9))]
    apart: list[Any] = [Stretch(at[0], 3), Stretch(at[1], 6), Stretch(at[3], 12)]
    assert list(merged(apart)) == [Stretch(at[0], 6), Stretch(at[3], 12)]
    assert all(a.stop_step < b.start.step for a, b in pairwise(merged(apart)))
