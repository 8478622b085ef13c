"""Readings that go on elsewhere: past steps that were skipped, or at the next epoch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from recipe.audit.books import Book, OpenBlock, block_tokens, open_block
from recipe.audit.reading import Shelf
from recipe.audit.replay import Ground
from recipe.audit.state import Cursor, PoolState, State

Cache = dict[tuple[str, Cursor], OpenBlock]


@dataclass(frozen=True, slots=True)
class Skipped:
    """What a skip makes of a state."""

    base: State
    sequences: Mapping[str, int]
    tokens: Mapping[str, int]
    """By pool: fresh tokens skipped."""


def skipped(ground: Ground, at: State, after: State, *, returned: bool) -> Skipped:
    """Steps from the first one skipped on, which read on from where the pools would have been after the last.

    Args:
        ground: what the skipped steps would have been served from.
        at: the state at the first of them.
        after: the state behind the last of them.
        returned: whether their sequences are read before the epoch ends; else their tokens are dropped.

    Raises:
        Malformed: the states are of no one course.
    """
    pools, sequences, tokens = [], {}, {}
    for book, before, then in zip(ground.books, at.pools, after.pools, strict=True):
        sequences[book.name] = then.counts["sequences"] - before.counts["sequences"]
        tokens[book.name] = _fresh(then) - _fresh(before)
        if returned:
            ranges = _passed(book, before, (sequences[book.name], after.stage))
            pools.append(_returned(book, before, then, ranges))
        else:
            dropped = _with(then.dropped, "skipped", tokens[book.name])
            pools.append(replace(before, cursor=then.cursor, held=then.held, dropped=dropped))
    return Skipped(replace(at, ended=False, pools=tuple(pools)), sequences, tokens)


def _fresh(pool: PoolState) -> int:
    return pool.counts["body"] - pool.counts["overlap"]


def _with(dropped: Mapping[str, int], reason: str, tokens: int) -> dict[str, int]:
    return {**dropped, reason: dropped.get(reason, 0) + tokens} if tokens else dict(dropped)


def _passed(book: Book, before: PoolState, much: tuple[int, int]) -> tuple[Cursor, ...]:
    """The ranges that so many sequences are, read on in a stage: one a block, or a part of one."""
    left, stage = much
    shelf = Shelf.at(replace(book, epochs=None), before, {})
    ranges = []
    while left:
        if not shelf.is_ready(stage):
            shelf.open_next(stage)
        begin = shelf.place.sequence
        stop = min(begin + left, shelf.stop)
        ranges.append(replace(shelf.place, stop=stop))
        left -= stop - begin
        shelf.serve(stop)
    return tuple(ranges)


def _returned(book: Book, before: PoolState, then: PoolState, ranges: tuple[Cursor, ...]) -> PoolState:
    """A pool past ranges that are held for later, the epoch that they end not being over yet."""
    at = then.cursor
    if ranges and at.epoch and at == Cursor(at.epoch):
        prefix = before.cursor.prefix if before.cursor.epoch == at.epoch - 1 else None
        at = Cursor(at.epoch - 1, prefix=prefix)
        at = replace(at, block=book.num_blocks(at))
    return replace(before, cursor=at, held=(*then.held, *ranges), dropped=then.dropped)


def at_next_epoch(book: Book, pool: PoolState) -> PoolState:
    """The state with the reading at its next epoch, what is unread of this one being dropped."""
    at = pool.cursor
    if not (at.block or at.stage >= 0 or pool.held):
        return pool
    blocks = book.num_blocks(at)
    is_open = at.stage >= 0 and at.block < blocks
    unread = sum(
        block_tokens(book, Cursor(at.epoch, block, prefix=at.prefix))
        for block in range(at.block + is_open, blocks)
    )
    unread += sum(_rest(book, place) for place in (*([at] if is_open else []), *pool.held))
    dropped = _with(pool.dropped, "unread", unread)
    return replace(pool, cursor=Cursor(at.epoch + 1), held=(), dropped=dropped)


def _rest(book: Book, place: Cursor) -> int:
    """Fresh tokens at a place that were not served."""
    if place.stage < 0:
        return block_tokens(book, place)
    block = open_block(book, place)
    stop = block.num_sequences if place.stop is None else place.stop
    return block.fresh(stop) - block.fresh(place.sequence)


def grown(pool: PoolState, units: tuple[int, int]) -> PoolState:
    """The state of a pool that has grown: what was begun goes on over the units that it had."""
    begun = pool.cursor.block or pool.cursor.stage >= 0 or pool.held
    cursor = _within(pool.cursor, units) if begun else pool.cursor
    return replace(pool, cursor=cursor, held=tuple(_within(place, units) for place in pool.held))


def _within(place: Cursor, units: tuple[int, int]) -> Cursor:
    return place if place.prefix is not None else replace(place, prefix=units)
