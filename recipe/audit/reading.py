"""Pools read again: one place after another, each opened, served and finished.

A reading takes the blocks of an epoch in turn, and then the ranges that skips gave back. What is open
is arranged anew when the rule changes, or when its unserved rest holds a document that was withdrawn since.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from recipe.audit.books import (
    BODY,
    DOCUMENTS,
    LABELS,
    OVERLAP,
    SEPARATORS,
    SPECIAL,
    Book,
    OpenBlock,
    accounted,
    block_tokens,
    open_block,
)
from recipe.audit.state import Cursor, Cut, Malformed, PoolState


class Barren(Malformed):
    """A pool that was to serve a sequence has none, however often it is read."""


@dataclass(slots=True)
class Shelf:
    """One pool while rows are computed again: it moves forward from a state."""

    book: Book
    cursor: Cursor
    counts: dict[str, int]
    dropped: dict[str, int]
    cache: dict[tuple[str, Cursor], OpenBlock] = field(repr=False)
    """The block opened last, by pool: rows that follow each other need not plan it twice."""
    held: tuple[Cursor, ...] = ()
    block: OpenBlock | None = None
    unequal: list[tuple[Cursor, int, int]] = field(default_factory=list)
    """Finished blocks that do not add up: place, tokens by lengths, tokens accounted for."""
    finished: int = 0

    @classmethod
    def at(cls, book: Book, state: PoolState, cache: dict[tuple[str, Cursor], OpenBlock]) -> Shelf:
        """The shelf of a pool in a state."""
        return cls(book, state.cursor, dict(state.counts), dict(state.dropped), cache, state.held)

    def state(self, debt: int, owed: int) -> PoolState:
        """The pool's state here."""
        counts = {**self.counts, "owed": owed}
        return PoolState(self.cursor, debt, counts, dict(self.dropped), self.held)

    @property
    def place(self) -> Cursor:
        """Where the next sequence lies: in the reading, or, behind its last block, in a range given back."""
        return self.held[0] if self._in_held() else self.cursor

    def _in_held(self) -> bool:
        return bool(self.held) and self.cursor.block >= self.book.num_blocks(self.cursor)

    def _move(self, place: Cursor) -> None:
        if self._in_held():
            self.held = (place, *self.held[1:])
        else:
            self.cursor = place

    @property
    def stop(self) -> int:
        """Where the sequences of the open block end that are to be served."""
        assert self.block is not None
        stop = self.place.stop
        return self.block.num_sequences if stop is None else stop

    def is_ready(self, stage: int) -> bool:
        """Whether a sequence of the open block can be served in a stage."""
        return self.block is not None and self.place.stage == stage

    def open_next(self, stage: int) -> bool:
        """Open what serves the next sequence in a stage; False when the pool is exhausted.

        Raises:
            Barren: a whole reading of the pool gives no sequence.
            Malformed: the cursor is impossible.
        """
        most = 2 * self.book.num_blocks(Cursor()) + self.book.num_blocks(self.cursor) + len(self.held) + 2
        for _ in range(most):
            if not self._turn_to(stage):
                return False
            if self.place.sequence < self.stop:
                return True
            self._finish()
        raise Barren("pool", "at least one sequence a reading", f"none of {self.book.name}")

    def _turn_to(self, stage: int) -> bool:
        at, book = self.place, self.book
        begins = at.stage < 0
        if begins and at.block == 0 and book.epochs is not None and at.epoch >= book.epochs:
            return False
        if begins:
            self._move(replace(at, stage=stage, withdrawn=book.withdrawn.number))
        elif book.rules[at.stage] == book.rules[stage] and not self._holds_withdrawn(at):
            self._move(replace(at, stage=stage))
        else:
            cuts = (*at.cuts, Cut(at.stage, at.sequence, at.withdrawn, at.stop))
            number = book.withdrawn.number
            self._move(Cursor(at.epoch, at.block, stage, 0, cuts, None, number, at.prefix))
        self.block = self._opened(self.place)
        if begins or len(self.place.cuts) > len(at.cuts):
            for reason, tokens in self.block.dropped.items():
                self.dropped[reason] = self.dropped.get(reason, 0) + tokens
        return True

    def _holds_withdrawn(self, at: Cursor) -> bool:
        """Whether a document in the unserved sequences of a block was withdrawn since it was arranged."""
        known = self.book.withdrawn
        if known.number <= at.withdrawn:
            return False
        block = self._opened(at).block
        last = None if at.stop is None else int(block.rows.ends[at.stop])
        rest = block.rows.pieces.document[int(block.rows.ends[at.sequence]) : last]
        return bool((known.of(block.documents[np.unique(rest)]) > at.withdrawn).any())

    def _opened(self, place: Cursor) -> OpenBlock:
        name = self.book.name
        same = replace(place, sequence=0)
        block = self.cache.get((name, same))
        if block is None or place.sequence > block.num_sequences:
            block = open_block(self.book, place)
            for known in [known for known in self.cache if known[0] == name]:
                del self.cache[known]
            self.cache[name, same] = block
        return block

    def serve(self, upto: int) -> None:
        """Count the sequences of the open block up to one; what is served whole is finished."""
        assert self.block is not None
        at = self.place
        begin = at.sequence
        if upto == begin:
            return
        totals = (self.block.totals[upto] - self.block.totals[begin]).tolist()
        rows, context = upto - begin, self.book.rules[at.stage].context
        served = {
            "spent": int(self.block.counted[begin:upto].sum()),
            "body": totals[BODY],
            "overlap": totals[OVERLAP],
            "special": totals[SPECIAL],
            "padding": rows * context - totals[BODY] - totals[SPECIAL],
            "labels": totals[LABELS],
            "sequences": rows,
            "documents": totals[DOCUMENTS],
            "distinct": totals[DOCUMENTS] if at.epoch == 0 else 0,
            "separators": totals[SEPARATORS],
        }
        for name, number in served.items():
            self.counts[name] += number
        self._move(replace(at, sequence=upto))
        if upto == self.stop:
            self._finish()

    def _finish(self) -> None:
        """Close what is finished: its tokens must add up; then what comes after it, or the next reading."""
        assert self.block is not None
        place, at = self.place, self.cursor
        by_length = block_tokens(self.book, place)
        by_account = accounted(self.book, place, self.block)
        if by_length != by_account:
            self.unequal.append((place, by_length, by_account))
        self.finished += 1
        if self._in_held():
            self.held = self.held[1:]
        else:
            at = Cursor(at.epoch, at.block + 1, prefix=at.prefix)
        is_over = at.block >= self.book.num_blocks(at) and not self.held
        self.cursor = Cursor(at.epoch + 1) if is_over else at
        self.block = None
