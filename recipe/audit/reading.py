"""Pools read again: blocks opened at a cursor, served, finished, and added up from lengths alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from recipe.audit.state import Cursor, Malformed, PoolState
from recipe.config import Recipe, Rule
from recipe.maths.order import key, units_at
from recipe.pools import Pool
from recipe.sequences.blocks import KINDS, BlockPlace, CutBlock, num_blocks, plan_block

_BODY, _OVERLAP, _SPECIAL, _LABELS, _DOCUMENTS = (
    KINDS.index(kind) for kind in ("body", "overlap", "special", "labels", "documents")
)


@dataclass(frozen=True, slots=True)
class Book:
    """A pool and the rules under which it is read, one a stage."""

    name: str
    found: Pool | None
    """None when the pool is not there, or is another one now."""
    rules: tuple[Rule, ...]
    seed: int
    block_units: int
    counted: str
    """Kind of token that is counted."""
    epochs: int | None
    """Readings after which it is exhausted; None: never."""
    stops: bool
    """Whether the run ends when it is exhausted; else the pool leaves."""

    @property
    def pool(self) -> Pool:
        """The pool; raises Malformed when it is not there."""
        if self.found is None:
            raise Malformed(f"pools.{self.name}", "the pool that was read", None)
        return self.found

    @property
    def num_blocks(self) -> int:
        """Blocks of one reading."""
        return num_blocks(self.pool, self.block_units)

    def place(self, cursor: Cursor) -> BlockPlace:
        """The block a cursor is in."""
        return BlockPlace(self.seed, cursor.epoch, cursor.block, self.block_units)


def books_of(recipe: Recipe, pools: Mapping[str, Pool]) -> tuple[Book, ...]:
    """The books of a settled recipe's pools, in its order; ``pools`` are those that are there."""
    books = []
    for name, config in recipe.pools.items():
        policy = recipe.exhaustion(name)
        books.append(
            Book(
                name=name,
                found=pools.get(name),
                rules=tuple(recipe.rule(stage, name) for stage in recipe.stages),
                seed=recipe.seed,
                block_units=config.block_units or 0,
                counted=recipe.count,
                epochs=None if policy == "repeat" else recipe.epochs_allowed(name),
                stops=policy == "stop",
            )
        )
    return tuple(books)


@dataclass(frozen=True, slots=True)
class OpenBlock:
    """An open block: counts of its sequences, and what opening it for the first time dropped."""

    totals: NDArray[np.int64]
    """int64[n + 1, kinds]: running totals before each sequence."""
    counted: NDArray[np.int64]
    """int64[n]: counted tokens of each sequence."""
    dropped: dict[str, int]

    @property
    def num_sequences(self) -> int:
        """Sequences of the block."""
        return len(self.counted)


def open_block(book: Book, cursor: Cursor) -> OpenBlock:
    """The block of a cursor under the rule of the cursor's stage.

    Raises:
        Malformed: the cursor names a block or a cut that the pool does not have.
    """
    if cursor.block >= book.num_blocks:
        raise Malformed("cursor", f"a block of 0..{book.num_blocks - 1}", cursor.block)
    cuts = tuple(CutBlock(book.rules[stage], served) for stage, served in cursor.cuts)
    rule = book.rules[cursor.stage]
    block = plan_block(book.pool, rule, book.place(cursor), cuts)
    totals = np.asarray(block.totals)
    if cursor.sequence >= len(totals):
        raise Malformed(
            "cursor", f"at most {len(totals) - 1} sequences of block {cursor.block}", cursor.sequence
        )
    return OpenBlock(totals, _counted(totals, book.counted, rule.context), block.dropped)


def _counted(totals: NDArray[np.int64], kind: str, context: int) -> NDArray[np.int64]:
    each = totals[1:] - totals[:-1]
    if kind == "positions":
        return np.full(len(each), context, np.int64)
    if kind == "fresh":
        return each[:, _BODY] - each[:, _OVERLAP]
    return np.ascontiguousarray(each[:, {"body": _BODY, "labels": _LABELS}[kind]])


def block_tokens(book: Book, cursor: Cursor) -> int:
    """Body tokens of all documents of a block, from their lengths alone."""
    pool, first = book.pool, cursor.block * book.block_units
    last = min(first + book.block_units, pool.num_units)
    order = key(book.seed, cursor.epoch, "order", pool.name)
    begin = units_at(first, last, pool.num_units, pool.extent_units, order)
    end = begin + 1
    if pool.units is not None:
        begin, end = np.asarray(pool.units[begin]), np.asarray(pool.units[end])
    stored = int((np.asarray(pool.offsets[end]) - np.asarray(pool.offsets[begin])).sum())
    lengths = end - begin
    documents = np.repeat(begin - (np.cumsum(lengths) - lengths), lengths) + np.arange(int(lengths.sum()))
    bos, eos = pool.stored_marks(documents)
    return stored - int(bos.sum()) - int(eos.sum())


def accounted(book: Book, cursor: Cursor, block: OpenBlock) -> int:
    """Fresh tokens a finished block served under all its rules, and what it dropped."""
    fresh = int(block.totals[-1, _BODY] - block.totals[-1, _OVERLAP])
    dropped = block.dropped
    for depth, (stage, served) in enumerate(cursor.cuts):
        earlier = open_block(book, replace(cursor, stage=stage, sequence=served, cuts=cursor.cuts[:depth]))
        fresh += int(earlier.totals[served, _BODY] - earlier.totals[served, _OVERLAP])
        if depth == 0:
            dropped = earlier.dropped
    return fresh + sum(dropped.values())


@dataclass(slots=True)
class Shelf:
    """One pool while rows are computed again: it moves forward from a state."""

    book: Book
    cursor: Cursor
    counts: dict[str, int]
    dropped: dict[str, int]
    cache: dict[tuple[str, Cursor], OpenBlock] = field(repr=False)
    """The block opened last, by pool: rows that follow each other need not plan it twice."""
    block: OpenBlock | None = None
    unequal: list[tuple[Cursor, int, int]] = field(default_factory=list)
    """Finished blocks that do not add up: place, tokens by lengths, tokens accounted for."""
    finished: int = 0

    @classmethod
    def at(cls, book: Book, state: PoolState, cache: dict[tuple[str, Cursor], OpenBlock]) -> Shelf:
        """The shelf of a pool in a state."""
        return cls(book, state.cursor, dict(state.counts), dict(state.dropped), cache)

    def state(self, debt: int, owed: int) -> PoolState:
        """The pool's state here."""
        return PoolState(self.cursor, debt, {**self.counts, "owed": owed}, dict(self.dropped))

    def is_ready(self, stage: int) -> bool:
        """Whether a sequence of the open block can be served in a stage."""
        return self.block is not None and self.cursor.stage == stage

    def open_next(self, stage: int) -> bool:
        """Open what serves the next sequence in a stage; False when the pool is exhausted.

        Raises:
            Malformed: a whole reading of the pool gives no sequence, or the cursor is impossible.
        """
        for _ in range(2 * self.book.num_blocks + 2):
            if not self._turn_to(stage):
                return False
            assert self.block is not None
            if self.cursor.sequence < self.block.num_sequences:
                return True
            self._finish()
        raise Malformed("pool", "at least one sequence a reading", f"none of {self.book.name}")

    def _turn_to(self, stage: int) -> bool:
        at, rules = self.cursor, self.book.rules
        begins = at.stage < 0
        if begins and at.block == 0 and self.book.epochs is not None and at.epoch >= self.book.epochs:
            return False
        if begins or rules[at.stage] == rules[stage]:
            self.cursor = replace(at, stage=stage)
        else:
            cuts = (*at.cuts, (at.stage, at.sequence))
            self.cursor = Cursor(at.epoch, at.block, stage, 0, cuts)
        self.block = self._opened()
        if begins:
            for reason, tokens in self.block.dropped.items():
                self.dropped[reason] = self.dropped.get(reason, 0) + tokens
        return True

    def _opened(self) -> OpenBlock:
        name = self.book.name
        same = replace(self.cursor, sequence=0)
        block = self.cache.get((name, same))
        if block is None or self.cursor.sequence > block.num_sequences:
            block = open_block(self.book, self.cursor)
            for known in [known for known in self.cache if known[0] == name]:
                del self.cache[known]
            self.cache[name, same] = block
        return block

    def serve(self, upto: int) -> None:
        """Count the sequences of the open block up to one; a block served whole is finished."""
        assert self.block is not None
        begin = self.cursor.sequence
        if upto == begin:
            return
        totals = (self.block.totals[upto] - self.block.totals[begin]).tolist()
        rows, context = upto - begin, self.book.rules[self.cursor.stage].context
        served = {
            "spent": int(self.block.counted[begin:upto].sum()),
            "body": totals[_BODY],
            "overlap": totals[_OVERLAP],
            "special": totals[_SPECIAL],
            "padding": rows * context - totals[_BODY] - totals[_SPECIAL],
            "labels": totals[_LABELS],
            "sequences": rows,
            "documents": totals[_DOCUMENTS],
            "distinct": totals[_DOCUMENTS] if self.cursor.epoch == 0 else 0,
        }
        for name, number in served.items():
            self.counts[name] += number
        self.cursor = replace(self.cursor, sequence=upto)
        if upto == self.block.num_sequences:
            self._finish()

    def _finish(self) -> None:
        """Close the finished block: its tokens must add up; then the next one, or the next reading."""
        assert self.block is not None
        at = self.cursor
        by_length, by_account = block_tokens(self.book, at), accounted(self.book, at, self.block)
        if by_length != by_account:
            self.unequal.append((at, by_length, by_account))
        self.finished += 1
        last = at.block + 1 == self.book.num_blocks
        self.cursor = Cursor(at.epoch + 1) if last else Cursor(at.epoch, at.block + 1)
        self.block = None
