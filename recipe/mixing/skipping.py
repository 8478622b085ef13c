"""Steps that are not served: what a skip of steps a up to b makes of the state.

The steps from a on go on from the state at a, but every pool is read on from where it would have been
at b: its cursor, its returned ranges and what was dropped on the way are those of the state at b. All
other numbers, spent tokens and debts among them, stay those at a: nothing was served. What every pool
gave between a and b is then one of two things:

*Burnt*: its fresh tokens are counted as dropped, by the reason ``skipped``. Documents that were begun in
between are not counted as begun.

*Returned*: the sequences become ranges (:attr:`recipe.mixing.snapshot.PoolState.held`), behind those held
already, in the order in which they would have been served: one for each block, or part of one, in the
arrangement it had. They are served before the pool's epoch turns. A range belongs to its epoch: where an
epoch ended between a and b, what is left of it is served with the next one's. Where b is the very end of an
epoch, that epoch is not over yet: the cursor stands behind its last block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from recipe.mixing.cursor_block import blocks_of_epoch
from recipe.mixing.reading import Reading, counted_totals
from recipe.mixing.snapshot import Cursor, PoolState, Snapshot
from recipe.mixing.walker import Ground
from recipe.pools import Pool


@dataclass(frozen=True, slots=True)
class Skipped:
    """A skip of some steps."""

    snapshot: Snapshot
    """What the steps from the first one on go on from."""
    sequences: Mapping[str, int]
    """By pool: sequences skipped."""
    tokens: Mapping[str, int]
    """By pool: fresh tokens skipped."""


def skipped(ground: Ground, at: Snapshot, after: Snapshot, *, returned: bool) -> Skipped:
    """Skip the steps between two states of one course.

    Args:
        ground: what these steps would be served from.
        at: the state at the first step that is skipped.
        after: the state at the first one that is not, in the same stage.
        returned: whether the pools give later what they would have given; else it is dropped.

    Raises:
        ValueError: the states do not lie so.
    """
    stage = ground.curriculum.stretch(at.step).stage
    if not at.step < after.step <= ground.curriculum.stages[stage].stop_step:
        raise ValueError(f"steps {at.step}..{after.step} are not steps of one stage")
    pools = {
        pool.name: (pool, before, then)
        for pool, before, then in zip(ground.pools, at.pools, after.pools, strict=True)
    }
    left = [
        _returned(ground, pool, (before, then), stage) if returned else _burnt(before, then)
        for pool, before, then in pools.values()
    ]
    return Skipped(
        replace(at, ended=False, pools=tuple(left)),
        {name: then.sequences - before.sequences for name, (_, before, then) in pools.items()},
        {name: _fresh(before, then) for name, (_, before, then) in pools.items()},
    )


def _fresh(before: PoolState, then: PoolState) -> int:
    return (then.body - then.overlap) - (before.body - before.overlap)


def _burnt(before: PoolState, then: PoolState) -> PoolState:
    """The pool past what is skipped, which is dropped."""
    dropped = dict(then.dropped)
    if tokens := _fresh(before, then):
        dropped["skipped"] = dropped.get("skipped", 0) + tokens
    return replace(before, cursor=then.cursor, held=then.held, dropped=dropped)


def _returned(ground: Ground, pool: Pool, states: tuple[PoolState, PoolState], stage: int) -> PoolState:
    """The pool past what is skipped, which is held for later."""
    before, then = states
    ranges = _passed(ground, pool, states, stage)
    cursor = then.cursor
    if ranges and cursor.epoch and cursor == Cursor(epoch=cursor.epoch):
        prefix = before.cursor.prefix if before.cursor.epoch + 1 == cursor.epoch else None
        cursor = Cursor(epoch=cursor.epoch - 1, prefix=prefix)
        cursor = replace(cursor, block=blocks_of_epoch(ground.recipe, pool, cursor))
    return replace(before, cursor=cursor, held=(*then.held, *ranges), dropped=then.dropped)


def _passed(
    ground: Ground, pool: Pool, states: tuple[PoolState, PoolState], stage: int
) -> tuple[Cursor, ...]:
    """What a pool gives between two states: ranges of sequences, in order."""
    before, then = states
    reading = Reading(ground.recipe, pool, before, ground.blocks, ground.withdrawn_of(pool.name))
    left, ranges = then.sequences - before.sequences, []
    while left:
        block = reading.open(stage, lambda _: True)
        assert block is not None, "a reading that may turn gives a block"
        begin = reading.sequence
        stop = min(begin + left, reading.stop)
        ranges.append(replace(reading.place, stop=stop))
        reading.serve_to(stop, counted_totals(block, "fresh", 0))
        left -= stop - begin
    passed = reading.state(debt=0, owed=0)
    assert _fresh(before, passed) == _fresh(before, then), (
        f"pool {pool.name}: the states are of another course"
    )
    return tuple(ranges)
