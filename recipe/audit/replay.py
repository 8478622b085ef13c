"""A stretch of steps computed again from a state: by the audit's own layout, schedule and reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from recipe.audit.books import Book, OpenBlock
from recipe.audit.layout import StageLayout
from recipe.audit.reading import Barren, Shelf
from recipe.audit.schedule import Contest, Ready, carry, draw
from recipe.audit.state import Cursor, Malformed, State
from recipe.maths.rounding import owed


@dataclass(frozen=True, slots=True)
class Ground:
    """What a run was served from: its stages and its pools."""

    layouts: tuple[StageLayout, ...]
    books: tuple[Book, ...]
    carried: int | None = None
    """Stage inside which the recipe was amended with pools ahead of their share, or behind it."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the pools, in the order of the recipe."""
        return tuple(book.name for book in self.books)


@dataclass(frozen=True, slots=True)
class Replayed:
    """States at the steps asked for, and what was seen on the way."""

    states: tuple[State, ...]
    furthest: tuple[Fraction, ...]
    """By pool: largest distance from its share after any sequence, in counted tokens."""
    outside: tuple[int, ...]
    """Pools that were further from their share than the rule promises."""
    unequal: tuple[tuple[int, Cursor, int, int], ...]
    """Finished blocks that do not add up: pool, place, tokens by lengths, tokens accounted for."""
    blocks: int
    """Blocks finished."""
    stage: int
    """Index of the stage."""


@dataclass(slots=True)
class _Leg:
    """The schedule between two changes of shares."""

    number: int
    """Of the stage's legs."""
    contest: Contest
    excess: list[int]
    counted: int
    owed_before: list[int]
    """Per pool, owed at the leg's beginning."""

    def owed(self) -> list[int]:
        """Per pool, owed here."""
        here = owed(self.contest.parts, self.contest.whole, self.counted)
        return [a + b for a, b in zip(self.owed_before, here, strict=True)]


@dataclass(slots=True)
class _Walk:
    """Everything that moves while a stretch of one stage is computed."""

    ground: Ground
    stage: int
    step: int
    """Where a stretch of constant shares began, or ended."""
    leg: _Leg
    left: tuple[int, ...]
    shelves: list[Shelf]
    furthest: list[Fraction] = field(default_factory=list)
    outside: set[int] = field(default_factory=set)
    sequences: int = 0

    @property
    def layout(self) -> StageLayout:
        """The stage."""
        return self.ground.layouts[self.stage]


def replay(
    ground: Ground, start: State, stops: Sequence[int], cache: dict[tuple[str, Cursor], OpenBlock]
) -> Replayed:
    """The states at some steps of one stage: the one that the step after ``start`` belongs to.

    Args:
        ground: stages and pools.
        start: where to begin; not ended, and not behind the last stage.
        stops: steps in rising order, from ``start.step`` to the end of that stage.
        cache: blocks opened before, by pool.

    Returns:
        a state for every stop. Where a pool runs dry and ends the run before a stop, the state of
        that stop is at the last whole step, ended.

    Raises:
        Malformed: the start state is impossible.
    """
    start = entered(ground, start)
    layout = ground.layouts[start.stage]
    walk = _begin(ground, start, cache)
    states: list[State] = []
    for stop in stops:
        if not _serve_to(walk, stop):
            return _cut_short(ground, start, stops, layout.whole_steps(start.step, walk.sequences), cache)
        states.append(_state(walk, start, stop))
    return _result(walk, states)


def entered(ground: Ground, at: State) -> State:
    """The same place; at a stage's end, as the beginning of the next: a new leg without debts."""
    if at.step < ground.layouts[at.stage].stop_step or at.stage + 1 == len(ground.layouts):
        return at
    return at.next_stage()


def _cut_short(
    ground: Ground, start: State, stops: Sequence[int], last: int, cache: dict[tuple[str, Cursor], OpenBlock]
) -> Replayed:
    """The same when the run ends at step ``last``: what came after it was never served."""
    before = [stop for stop in stops if stop <= last]
    seen = replay(ground, start, [*before, last], cache)
    end = ended(ground, seen.states[-1])
    return replace(seen, states=(*seen.states[:-1], *(end for _ in stops[len(before) :])))


def ended(ground: Ground, at: State) -> State:
    """The state of a run that ends here, before its planned length; a chunk that holds a step is closed."""
    layout = ground.layouts[at.stage]
    is_open = at.step > layout.first_step and (at.chunk == 0 or layout.close_of(at.chunk - 1) < at.step)
    return replace(at, ended=True, chunk=at.chunk + is_open)


def ended_if_last(ground: Ground, at: State, cache: dict[tuple[str, Cursor], OpenBlock]) -> State:
    """The same state, or, where the next step cannot be served, the one that says so."""
    may_end = any(book.epochs is not None for book in ground.books)
    if at.ended or not may_end or at.step >= ground.layouts[-1].stop_step:
        return at
    try:
        after = replay(ground, at, [at.step + 1], cache).states[0]
    except Barren:  # an error to whoever goes on, not an end
        return at
    return after if after.step == at.step else at


def contest_of(layout: StageLayout, at: State, carried: int | None) -> Contest:
    """The contest for the shares of the leg that a state stands in; ``carried`` as of :class:`Ground`.

    Raises:
        Malformed: pools left that had no share, or nobody stayed.
    """
    number = layout.leg_before(at.step)
    contest = Contest(layout.legs[number].parts, layout.context, number > 0 or at.stage == carried)
    stayed = contest.without(at.left)
    if not stayed.drawn:
        raise Malformed("snapshot.left", "pools that left others behind", list(at.left))
    return stayed


def _begin(ground: Ground, start: State, cache: dict[tuple[str, Cursor], OpenBlock]) -> _Walk:
    layout = ground.layouts[start.stage]
    contest = contest_of(layout, start, ground.carried)
    debts = [pool.debt for pool in start.pools]
    if sum(debts) or any(not contest.within_bound(debt) for debt in debts):
        raise Malformed("snapshot.pools.debt", "debts within the bound that sum to 0", debts)
    in_leg = owed(contest.parts, contest.whole, start.counted)
    before = [pool.counts["owed"] - here for pool, here in zip(start.pools, in_leg, strict=True)]
    shelves = [Shelf.at(book, pool, cache) for book, pool in zip(ground.books, start.pools, strict=True)]
    leg = _Leg(layout.leg_before(start.step), contest, debts, start.counted, before)
    return _Walk(ground, start.stage, start.step, leg, start.left, shelves, [Fraction(0)] * len(debts))


def _serve_to(walk: _Walk, stop: int) -> bool:
    """Serve the steps up to one, leg by leg; False when the run ends before."""
    layout = walk.layout
    while walk.step < stop:
        number = layout.leg_of(walk.step)
        if number != walk.leg.number and not _change(walk, number):
            return False
        end = min([stop, *(leg.first_step for leg in layout.legs[number + 1 : number + 2])])
        if not _serve(walk, layout.sequences_between(walk.step, end)):
            return False
        walk.step = end
    return True


def _change(walk: _Walk, number: int) -> bool:
    """Other shares begin; False when only pools that left have one."""
    leg, layout = walk.leg, walk.layout
    contest = Contest(layout.legs[number].parts, layout.context).without(walk.left)
    if not contest.drawn:
        return False
    excess = carry(leg.contest, contest, leg.excess, leg.counted)
    walk.leg = _Leg(number, replace(contest, carried=any(excess)), excess, 0, leg.owed())
    return True


def _serve(walk: _Walk, wanted: int) -> bool:
    """Draw so many sequences; False when a pool runs dry and the run ends."""
    stop = walk.sequences + wanted
    while walk.sequences < stop:
        leg = walk.leg
        ready, begins = _ready(walk)
        drawn = draw(leg.contest, leg.excess, ready, stop - walk.sequences)
        leg.excess, leg.counted = drawn.excess, leg.counted + drawn.counted
        walk.sequences += drawn.sequences
        for pool, (shelf, begin) in enumerate(zip(walk.shelves, begins, strict=True)):
            if begin is not None:
                shelf.serve(int(ready.at[pool]) - begin)
            walk.furthest[pool] = max(walk.furthest[pool], Fraction(drawn.furthest[pool], leg.contest.whole))
            if not leg.contest.within_bound(drawn.furthest[pool]):
                walk.outside.add(pool)
        if drawn.waiting >= 0 and not walk.shelves[drawn.waiting].open_next(walk.stage):
            if walk.ground.books[drawn.waiting].stops or len(leg.contest.drawn) == 1:
                return False
            _leave(walk, drawn.waiting)
    return True


def _ready(walk: _Walk) -> tuple[Ready, list[int | None]]:
    """Sequences of all open blocks end to end; and where sequence 0 of each pool's block would be."""
    size = len(walk.shelves)
    at, stop = np.zeros(size, np.int64), np.zeros(size, np.int64)
    begins: list[int | None] = [None] * size
    columns = []
    filled = 0
    for pool, shelf in enumerate(walk.shelves):
        if walk.leg.contest.parts[pool] and shelf.is_ready(walk.stage):
            assert shelf.block is not None
            left = shelf.block.counted[shelf.place.sequence : shelf.stop]
            at[pool], stop[pool] = filled, filled + len(left)
            begins[pool] = filled - shelf.place.sequence
            columns.append(left)
            filled += len(left)
    counted = np.concatenate(columns) if columns else np.empty(0, np.int64)
    return Ready(counted, at, stop), begins


def _leave(walk: _Walk, pool: int) -> None:
    """A pool is exhausted: the others go on by their proportions, from debts of zero."""
    leg = walk.leg
    walk.leg = _Leg(leg.number, leg.contest.leave(pool), [0] * len(leg.excess), 0, leg.owed())
    walk.left = (*walk.left, pool)


def _state(walk: _Walk, start: State, stop: int) -> State:
    """The state at a step boundary."""
    if stop == start.step:
        return start
    layout = walk.layout
    positions = layout.positions_at(stop)
    pools = tuple(
        shelf.state(debt, tokens)
        for shelf, debt, tokens in zip(walk.shelves, walk.leg.excess, walk.leg.owed(), strict=True)
    )
    return State(
        step=stop,
        stage=walk.stage,
        positions=positions,
        stage_positions=positions - layout.first_position,
        sequences=start.sequences + walk.sequences,
        chunk=layout.closed_by(stop),
        counted=walk.leg.counted,
        left=walk.left,
        pools=pools,
    )


def _result(walk: _Walk, states: list[State]) -> Replayed:
    unequal = [(pool, *block) for pool, shelf in enumerate(walk.shelves) for block in shelf.unequal]
    return Replayed(
        tuple(states),
        tuple(walk.furthest),
        tuple(sorted(walk.outside)),
        tuple(unequal),
        sum(shelf.finished for shelf in walk.shelves),
        walk.stage,
    )
