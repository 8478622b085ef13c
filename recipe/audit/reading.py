"""Pools read again: blocks opened at a cursor, served, finished, and added up from lengths alone.

A reading takes the blocks of an epoch in turn, and then the ranges that skips gave back. What is open
is arranged anew when the rule changes, or when its unserved rest holds a document that was withdrawn since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from recipe.audit.state import Cursor, Cut, Malformed, PoolState
from recipe.config import Recipe, Rule
from recipe.maths.order import key, units_at, units_in
from recipe.pools import Pool
from recipe.sequences.blocks import KINDS, Block, BlockPlace, CutBlock, num_blocks, plan_block
from recipe.sequences.withdrawn import NOTHING, Withdrawn

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
    order: str | None = None
    """Name that its orders are keyed on; None: its own."""
    fraction: Fraction | None = None
    """Share of it that every epoch reads; None: all."""
    withdrawn: Withdrawn = NOTHING
    prefix: tuple[int, int] | None = None
    """Units it had, and of its extents, where it has grown since all this."""

    @property
    def pool(self) -> Pool:
        """The pool; raises Malformed when it is not there."""
        if self.found is None:
            raise Malformed(f"pools.{self.name}", "the pool that was read", None)
        return self.found

    def num_blocks(self, cursor: Cursor) -> int:
        """Blocks of the cursor's epoch."""
        return num_blocks(self.pool, self.block_units, cursor.prefix or self.prefix, self.fraction)

    def place(self, cursor: Cursor) -> BlockPlace:
        """The block a cursor is in."""
        at = (self.seed, cursor.epoch, cursor.block, self.block_units)
        return BlockPlace(*at, self.order, cursor.prefix or self.prefix, self.fraction)


def books_of(
    recipe: Recipe, pools: Mapping[str, Pool], withdrawn: Mapping[str, Withdrawn] | None = None
) -> tuple[Book, ...]:
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
                order=recipe.order_name(name),
                fraction=recipe.simulated_fraction,
                withdrawn=(withdrawn or {}).get(name, NOTHING),
            )
        )
    return tuple(books)


@dataclass(frozen=True, slots=True)
class OpenBlock:
    """An open block: counts of its sequences, and what arranging it dropped."""

    block: Block
    totals: NDArray[np.int64]
    """int64[n + 1, kinds]: running totals before each sequence."""
    counted: NDArray[np.int64]
    """int64[n]: counted tokens of each sequence."""

    @property
    def dropped(self) -> dict[str, int]:
        """Tokens that this arrangement left out, by reason."""
        return self.block.dropped

    @property
    def num_sequences(self) -> int:
        """Sequences of the block."""
        return len(self.counted)

    def fresh(self, sequence: int) -> int:
        """Fresh tokens of the sequences before one."""
        return int(self.totals[sequence, _BODY] - self.totals[sequence, _OVERLAP])


def open_block(book: Book, cursor: Cursor) -> OpenBlock:
    """The block of a cursor under the rule of the cursor's stage.

    Raises:
        Malformed: the cursor names a block, a cut or a range that the pool does not have.
    """
    if cursor.block >= book.num_blocks(cursor):
        raise Malformed("cursor", f"a block of 0..{book.num_blocks(cursor) - 1}", cursor.block)
    cuts = tuple(CutBlock(book.rules[cut.stage], *cut[1:]) for cut in cursor.cuts)
    rule = book.rules[cursor.stage]
    block = plan_block(book.pool, rule, book.place(cursor), cuts, (book.withdrawn, cursor.withdrawn))
    totals = np.asarray(block.totals)
    last = len(totals) - 1
    if max(cursor.sequence, cursor.stop or 0) > last:
        place = max(cursor.sequence, cursor.stop or 0)
        raise Malformed("cursor", f"at most {last} sequences of block {cursor.block}", place)
    return OpenBlock(block, totals, _counted(totals, book.counted, rule.context))


def _counted(totals: NDArray[np.int64], kind: str, context: int) -> NDArray[np.int64]:
    each = totals[1:] - totals[:-1]
    if kind == "positions":
        return np.full(len(each), context, np.int64)
    if kind == "fresh":
        return each[:, _BODY] - each[:, _OVERLAP]
    return np.ascontiguousarray(each[:, {"body": _BODY, "labels": _LABELS}[kind]])


def block_tokens(book: Book, cursor: Cursor) -> int:
    """Body tokens of all documents of a block, from their lengths alone."""
    pool = book.pool
    begin = _units(book, cursor)
    end = begin + 1
    if pool.units is not None:
        begin, end = np.asarray(pool.units[begin]), np.asarray(pool.units[end])
    stored = int((np.asarray(pool.offsets[end]) - np.asarray(pool.offsets[begin])).sum())
    lengths = end - begin
    documents = np.repeat(begin - (np.cumsum(lengths) - lengths), lengths) + np.arange(int(lengths.sum()))
    bos, eos = pool.stored_marks(documents)
    return stored - int(bos.sum()) - int(eos.sum())


def _units(book: Book, cursor: Cursor) -> NDArray[np.int64]:
    """The units of a block: of a pool that is read in part, places of the first epoch's order."""
    units, extent = cursor.prefix or book.prefix or (book.pool.num_units, book.pool.extent_units)
    read = (
        units if book.fraction is None else -(-units * book.fraction.numerator // book.fraction.denominator)
    )
    first = cursor.block * book.block_units
    last = min(first + book.block_units, read)
    name = book.order or book.name
    order = key(book.seed, cursor.epoch, "order", name)
    if book.fraction is None or not cursor.epoch:
        return units_at(first, last, units, extent, order)
    places = units_at(first, last, read, extent, order)
    return units_in(places, units, extent, key(book.seed, 0, "order", name))


def accounted(book: Book, cursor: Cursor, block: OpenBlock) -> int:
    """Fresh tokens that a finished block gave or left to skips under all its rules, and what they dropped."""
    arrangements = [
        open_block(
            book,
            replace(
                cursor,
                stage=cut.stage,
                sequence=0,
                cuts=cursor.cuts[:depth],
                withdrawn=cut.withdrawn,
                stop=None,
            ),
        )
        for depth, cut in enumerate(cursor.cuts)
    ]
    tokens = [each.fresh(each.num_sequences) + sum(each.dropped.values()) for each in (*arrangements, block)]
    went_on = [
        each.fresh(each.num_sequences if cut.stop is None else cut.stop) - each.fresh(cut.served)
        for each, cut in zip(arrangements, cursor.cuts, strict=True)
    ]
    return sum(tokens) - sum(went_on)


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
            Malformed: a whole reading of the pool gives no sequence, or the cursor is impossible.
        """
        most = 2 * self.book.num_blocks(Cursor()) + self.book.num_blocks(self.cursor) + len(self.held) + 2
        for _ in range(most):
            if not self._turn_to(stage):
                return False
            if self.place.sequence < self.stop:
                return True
            self._finish()
        raise Malformed("pool", "at least one sequence a reading", f"none of {self.book.name}")

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
            "body": totals[_BODY],
            "overlap": totals[_OVERLAP],
            "special": totals[_SPECIAL],
            "padding": rows * context - totals[_BODY] - totals[_SPECIAL],
            "labels": totals[_LABELS],
            "sequences": rows,
            "documents": totals[_DOCUMENTS],
            "distinct": totals[_DOCUMENTS] if at.epoch == 0 else 0,
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
