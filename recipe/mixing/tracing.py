"""Where documents are read in a stream, by inverting its order.

A document is one unit's, a unit stands at one place of an epoch's reading order, so it lies in one
block an epoch. Between two turns a pool's cursor only moves forward, and ranges that a skip returned
are served in their order: between two snapshots it either passed that block or not, and which of its
sequences, so that all but the few stretches in which they were served can be left out. Only those
are walked, on metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from recipe.mixing.cursor_block import block_at, block_place
from recipe.mixing.memory import SNAPSHOT_SEQUENCES
from recipe.mixing.row_pieces import Hit, hits_of, pieces_of
from recipe.mixing.snapshot import Cursor, PoolState, Snapshot
from recipe.mixing.walker import Ground, Walked, Walker
from recipe.pools.selection import units_of
from recipe.sequences.blocks import Block
from recipe.sequences.reading_order import place_of_unit

AT_ONCE = 1 << 15
"""Sequences that take about as long to walk as it takes to begin a walk."""
_KEPT_EPOCHS = 1 << 12


class Mark(Protocol):
    """A place whose snapshot is known without walking there."""

    @property
    def snapshot(self) -> Snapshot:
        """The state there."""


M = TypeVar("M", bound=Mark)


class Stretch(NamedTuple):
    """Steps that are to be walked: from a known snapshot up to a step."""

    start: Snapshot
    stop_step: int


@dataclass(frozen=True, slots=True)
class _Lying:
    """Wanted documents of a pool in one epoch: ``blocks`` int64[n], sorted, and the document of each."""

    blocks: NDArray[np.int64]
    documents: NDArray[np.int64]

    def within(self, first: int, last: int | None) -> NDArray[np.int64]:
        """The blocks in ``first..last`` that hold any, each once."""
        end = None if last is None else np.searchsorted(self.blocks, last, side="right")
        return np.unique(self.blocks[np.searchsorted(self.blocks, first) : end])

    def of(self, block: int) -> NDArray[np.int64]:
        """The documents that lie in a block."""
        first, end = np.searchsorted(self.blocks, block), np.searchsorted(self.blocks, block, side="right")
        return self.documents[first:end]


class Search:
    """Where the wanted documents of some pools are read in one stream."""

    def __init__(self, ground: Ground, wanted: Mapping[int, Iterable[int]], at_once: int = AT_ONCE) -> None:
        """Look for documents.

        Args:
            ground: what the stream's walks stand on.
            wanted: numbers of documents, by the pool's index in the recipe.
            at_once: sequences between two marks that are walked without looking for a mark between.
        """
        self._ground = ground
        self._at_once = at_once
        self._wanted = {pool: np.unique(np.fromiter(of, np.int64)) for pool, of in wanted.items() if of}
        self._lying: dict[tuple[int, int, tuple[int, int] | None], _Lying] = {}

    def stretches(self, low: M, high: M, between: Callable[[M, M], M | None]) -> Iterator[Stretch]:
        """What is to be walked between two marks, in order: everything else holds no wanted document.

        Args:
            low: a mark of this stream.
            high: a later one.
            between: a mark strictly between two marks, about half-way; None where none is known.
        """
        waiting = [(low, high)]
        while waiting:
            low, high = waiting.pop()
            if not self._may_hold(low.snapshot, high.snapshot):
                continue
            is_near = high.snapshot.sequences - low.snapshot.sequences <= self._at_once
            middle = None if is_near else between(low, high)
            if middle is None:
                yield Stretch(low.snapshot, high.snapshot.step)
            else:
                waiting += [(middle, high), (low, middle)]

    def walk(self, stretch: Stretch) -> Iterator[tuple[Snapshot, list[Hit]]]:
        """Walk a stretch: every state on the way, and what was read since the one before.

        Ends early where the run does.
        """
        walker = Walker(self._ground, stretch.start)
        while walker.step < stretch.stop_step and not walker.finished:
            walked = walker.advance(stretch.stop_step, SNAPSHOT_SEQUENCES)
            yield walker.snapshot(), self._hits(walked)

    def _may_hold(self, low: Snapshot, high: Snapshot) -> bool:
        return any(self._may_serve(pool, low.pools[pool], high.pools[pool]) for pool in self._wanted)

    def _may_serve(self, pool: int, low: PoolState, high: PoolState) -> bool:
        """Whether a pool may have served a wanted document between two of its states."""
        return self._blocks_may_serve(pool, low.cursor, high.cursor) or any(
            self._may_lie(pool, left or begun, begun, left) for begun, left in _returned(low.held, high.held)
        )

    def _blocks_may_serve(self, pool: int, a: Cursor, b: Cursor) -> bool:
        """Whether the blocks between two cursors may hold one."""
        if a == b:
            return False
        if b.epoch > a.epoch + 1:
            return True
        for epoch in range(a.epoch, b.epoch + 1):
            prefix = a.prefix if epoch == a.epoch else b.prefix
            first, last = (a.block if epoch == a.epoch else 0), (b.block if epoch == b.epoch else None)
            for block in self._lying_in(pool, epoch, prefix).within(first, last).tolist():
                at = Cursor(epoch=epoch, block=block, prefix=prefix)
                begun = a if (epoch, block) == (a.epoch, a.block) else None
                left = b if (epoch, block) == (b.epoch, b.block) else None
                if self._may_lie(pool, at, begun, left):
                    return True
        return False

    def _may_lie(self, pool: int, at: Cursor, begun: Cursor | None, left: Cursor | None) -> bool:
        """Whether a block may have served wanted documents between two places in it; None: its edges.

        A block or range left for good was served to its end, perhaps cut again: what the opening that
        ``begun`` stands in has not served yet then holds every document that is still to come.
        """
        documents = self._lying_in(pool, at.epoch, at.prefix).of(at.block)
        if not len(documents):
            return False
        if left is not None:
            return any(
                self._serves(pool, documents, opening, (first, opening.sequence))
                for first, opening in _openings(begun, left)
            )
        if begun is None or begun.stage < 0:
            return True
        return self._serves(pool, documents, begun, (begun.sequence, begun.stop))

    def _serves(
        self, pool: int, documents: NDArray[np.int64], cursor: Cursor, of: tuple[int, int | None]
    ) -> bool:
        """Whether some sequences of the block, as open at a cursor, hold any of the documents."""
        first, stop = of
        if stop is not None and first >= stop:
            return False
        found = pieces_of(self._open(pool, cursor), documents)[1]
        return bool(((found >= first) & (stop is None or found < stop)).any())

    def _open(self, pool: int, cursor: Cursor) -> Block:
        ground, of = self._ground, self._ground.pools[pool]
        return block_at(ground.recipe, of, cursor, ground.withdrawn_of(of.name), ground.blocks)

    def _lying_in(self, pool: int, epoch: int, prefix: tuple[int, int] | None) -> _Lying:
        found = self._lying.get((pool, epoch, prefix))
        if found is None:
            if len(self._lying) >= _KEPT_EPOCHS:
                self._lying = {}
            found = self._lying[pool, epoch, prefix] = self._lie(pool, epoch, prefix)
        return found

    def _lie(self, index: int, epoch: int, prefix: tuple[int, int] | None) -> _Lying:
        pool, documents = self._ground.pools[index], self._wanted[index]
        place = block_place(self._ground.recipe, pool, Cursor(epoch=epoch, prefix=prefix))
        documents = documents[pool.holds(documents)]
        places = [place_of_unit(pool, place, unit) for unit in units_of(pool, documents).tolist()]
        read = np.array([at is not None for at in places], np.bool_)
        blocks = np.array([at for at in places if at is not None], np.int64) // place.block_units
        by_block = np.argsort(blocks, kind="stable")
        return _Lying(blocks[by_block], documents[read][by_block])

    def _hits(self, walked: Walked) -> list[Hit]:
        """The pieces of wanted documents in walked steps, in order."""
        hits: list[Hit] = []
        for block, rows in walked.by_block():
            pool = int(walked.pools[rows[0]]) if len(rows) else -1
            if pool in self._wanted:
                place = block.place
                documents = self._lying_in(pool, place.epoch, place.prefix).of(place.block)
                if len(documents):
                    hits += hits_of(walked, pool, (block, rows), documents)
        return sorted(hits)


def _returned(low: tuple[Cursor, ...], high: tuple[Cursor, ...]) -> Iterator[tuple[Cursor, Cursor | None]]:
    """Returned ranges that were read between two states: from where, and up to where (None: to the end)."""
    gone = len(low) - len(high)
    yield from ((begun, None) for begun in low[:gone])
    if high and low[gone] != high[0]:
        yield low[gone], high[0]


def _openings(begun: Cursor | None, left: Cursor) -> Iterator[tuple[int, Cursor]]:
    """The openings of a block from ``begun`` up to ``left``: first sequence and end of each."""
    depth = 0 if begun is None else len(begun.cuts)
    for number, cut in enumerate(left.cuts[depth:], depth):
        first = begun.sequence if begun is not None and number == depth else 0
        arranged = replace(left, stage=cut.stage, withdrawn=cut.withdrawn, cuts=left.cuts[:number])
        yield first, replace(arranged, sequence=cut.served, stop=cut.stop)
    yield (begun.sequence if begun is not None and len(left.cuts) == depth else 0), left


def merged(stretches: Iterable[Stretch]) -> Iterator[Stretch]:
    """Stretches of one stream, given in order, with those that meet made one."""
    last: Stretch | None = None
    for stretch in stretches:
        if last is not None and stretch.start.step <= last.stop_step:
            last = Stretch(last.start, max(last.stop_step, stretch.stop_step))
        else:
            if last is not None:
                yield last
            last = stretch
    if last is not None:
        yield last
