"""Pools and their blocks: opened at a cursor, and added up from the lengths of their documents alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from recipe.audit.state import Cursor, Malformed
from recipe.config import Recipe, Rule
from recipe.config.view import family
from recipe.maths.order import key, units_at, units_in
from recipe.pools import Pool
from recipe.sequences.blocks import Block, CutBlock, plan_block
from recipe.sequences.ownership import rule_for
from recipe.sequences.reading_order import BlockPlace, num_blocks
from recipe.sequences.rows import KINDS
from recipe.sequences.withdrawn import NOTHING, Withdrawn, together

BODY, OVERLAP, SPECIAL, LABELS, DOCUMENTS, SEPARATORS = (
    KINDS.index(kind) for kind in ("body", "overlap", "special", "labels", "documents", "separators")
)
"""Columns of the totals of a block."""


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
                rules=tuple(_rule(recipe, stage, name, pools.get(name)) for stage in recipe.stages),
                seed=recipe.seed,
                block_units=config.block_units or 0,
                counted=recipe.count,
                epochs=None if policy == "repeat" else recipe.epochs_allowed(name),
                stops=policy == "stop",
                order=recipe.order_name(name),
                fraction=recipe.simulated_fraction,
                withdrawn=together(
                    (withdrawn or {}).get(other, NOTHING) for other in family(recipe.pools, name)
                ),
            )
        )
    return tuple(books)


def _rule(recipe: Recipe, stage: str, name: str, pool: Pool | None) -> Rule:
    rule = recipe.rule(stage, name)
    return rule if pool is None else rule_for(pool, rule)


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
        return int(self.totals[sequence, BODY] - self.totals[sequence, OVERLAP])


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
        return each[:, BODY] - each[:, OVERLAP]
    return np.ascontiguousarray(each[:, {"body": BODY, "labels": LABELS}[kind]])


def block_tokens(book: Book, cursor: Cursor) -> int:
    """Body tokens of all documents of a block, from their lengths alone."""
    pool = book.pool
    begin = _units(book, cursor)
    if pool.members is not None:
        begin = pool.members[begin]
    end = begin + 1
    if pool.units is not None:
        begin, end = np.asarray(pool.units[begin]), np.asarray(pool.units[end])
    lengths = end - begin
    documents = np.repeat(begin - (np.cumsum(lengths) - lengths), lengths) + np.arange(int(lengths.sum()))
    documents = documents[pool.holds(documents)]
    stored = int((np.asarray(pool.offsets[documents + 1]) - np.asarray(pool.offsets[documents])).sum())
    _, eos = pool.stored_marks(documents)
    return stored - int(pool.fronts(documents).sum()) - int(eos.sum())


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
