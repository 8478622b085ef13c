"""How a pool was read: distinct documents, how often each was read, and the share of its tokens covered.

A document was read in an epoch where a token of it was served; pieces of one document in one epoch are
one reading. Blocks are walked by the audit's own reading, and only where that is needed: of epochs that
were read whole the lengths are enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recipe.audit.reads import History, Read, drops
from recipe.audit.spans import Spans, sizes, union
from recipe.audit.state import Cursor
from recipe.audit.unread import Blocks, Part, parts, whole_blocks
from recipe.config import Rule
from recipe.pools import Pool
from recipe.sequences.blocks import plan_block
from recipe.sequences.ownership import owned_elsewhere
from recipe.sequences.pieces import AHEAD, measure
from recipe.sequences.reading_order import block_documents, first_of_unit
from recipe.sequences.slicing import cutting_of, slice_documents

MOST_DOCUMENTS = 1 << 26
"""Pools of more documents are counted only where their readings can be told from the cursor alone."""
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Spread:
    """What was read of a pool."""

    documents: int
    """Of the pool."""
    readings: dict[int, int]
    """Documents by how often they were read, 0 for those that never were."""
    tokens: int
    """Body tokens of the pool."""
    covered: int
    """Of them, tokens that were served fresh at least once; overlap ahead of its turn does not count."""

    @property
    def distinct(self) -> int:
        """Documents that were read."""
        return self.documents - self.readings.get(0, 0)


@dataclass(slots=True)
class Counted:
    """Every document of a pool: how often it was read, and how many of its tokens were served fresh."""

    times: NDArray[np.int32]
    covered: NDArray[np.int32]


def spread_of(pool: Pool, history: History) -> Spread | None:
    """From the cursor where that tells all, else by counting; None where there are too many documents."""
    plain = from_cursor(pool, history)
    if plain is not None:
        return plain
    if pool.num_numbers > MOST_DOCUMENTS:
        return None
    return summed(pool, count(pool, history))


def summed(pool: Pool, counted: Counted) -> Spread:
    """Documents that were counted, in all."""
    times = counted.times
    if pool.members is not None:
        times = times[pool.holds(np.arange(pool.num_numbers))]
    covered = int(counted.covered.sum(dtype=np.int64))
    return Spread(pool.num_documents, histogram(times), pool.stock, covered)


def histogram(times: NDArray[np.int32]) -> dict[int, int]:
    """How many there are of each number."""
    numbers, documents = np.unique(times, return_counts=True)
    return dict(zip(numbers.tolist(), documents.tolist(), strict=True))


def from_cursor(pool: Pool, history: History) -> Spread | None:
    """Of a pool that was read from its first document on, without a jump and whole; else None."""
    if not history.reads:
        return (
            None if history.replaced else Spread(pool.num_documents, {0: pool.num_documents}, pool.stock, 0)
        )
    read, *others = history.reads
    if others or history.replaced or not _is_plain(pool, read):
        return None
    epoch = read.stop.epoch
    begun = sum(_num_documents(pool, read, each) for each in whole_blocks(read) if each.epoch == epoch)
    begun += sum(len(np.unique(part.spans[:, 0])) for part in parts(read))
    served = history.state.counts["body"] - history.state.counts["overlap"]
    readings = {epoch: pool.num_documents - begun, epoch + 1: begun}
    return Spread(
        pool.num_documents,
        {times: documents for times, documents in readings.items() if documents},
        pool.stock,
        pool.stock if epoch else served,
    )


def _is_plain(pool: Pool, read: Read) -> bool:
    """Whether every document is read whole in every epoch."""
    book, card = read.book, pool.card
    places = (read.start, read.stop)
    return (
        (read.start, read.held, read.left, read.life) == (Cursor(), (), (), 0)
        and not any(map(drops, book.rules))
        and not book.withdrawn.number
        and book.fraction is None
        and read.prefix is None
        and all(place.prefix is None and not place.withdrawn for place in places)
        and card.counted == "exact"
        and not sum(card.length_histogram[:1])
    )


def _num_documents(pool: Pool, read: Read, blocks: Blocks) -> int:
    if pool.units is None:
        return max(
            0, min(blocks.stop * read.book.block_units, pool.num_units) - blocks.first * read.book.block_units
        )
    return sum(len(documents) for documents in _documents(read, blocks))


def count(pool: Pool, history: History) -> Counted:
    """Every document, by walking what was read."""
    counted = Counted(np.zeros(pool.num_numbers, np.int32), np.zeros(pool.num_numbers, np.int32))
    opened: dict[tuple[int, int, int], list[Spans]] = {}
    for read in history.reads:
        for part in (*parts(read), *_whole(pool, read, counted)):
            opened.setdefault(part.block, []).append(part.spans)
    merged = [union(*spans) for spans in opened.values()]
    for spans in merged:
        counted.times[np.unique(spans[:, 0])] += 1
    served = union(*merged)
    documents = np.unique(served[:, 0])
    known = np.column_stack([documents, np.zeros_like(documents), counted.covered[documents]])
    documents, tokens = sizes(union(served, known))
    counted.covered[documents] = tokens
    return counted


def _whole(pool: Pool, read: Read, counted: Counted) -> Iterator[Part]:
    """Count the blocks that were read whole; what documents gave in part is handed on."""
    rule = read.book.rules[read.stage]
    for blocks in whole_blocks(read):
        if drops(rule) and not _keeps_beginnings(rule):
            yield from _planned(pool, read, blocks)
            continue
        for documents in _documents(read, blocks):
            kept = _kept(read, rule, documents)
            some = documents[kept > 0]
            counted.times[some] += blocks.times
            counted.covered[some] = np.maximum(counted.covered[some], kept[kept > 0])


def _documents(read: Read, blocks: Blocks) -> Iterator[NDArray[np.int64]]:
    """The documents of blocks; of a whole epoch in the order in which they are stored."""
    pool = read.book.pool
    if blocks.is_epoch and read.book.fraction is None:
        stop = pool.num_numbers if blocks.prefix is None else first_of_unit(pool, blocks.prefix[0])
        for start in range(0, stop, _PIECE):
            numbers = np.arange(start, min(start + _PIECE, stop))
            yield numbers[pool.holds(numbers)]
        return
    for block in range(blocks.first, blocks.stop):
        place = read.book.place(Cursor(blocks.epoch, block, prefix=blocks.prefix))
        yield block_documents(pool, place)


def _kept(read: Read, rule: Rule, documents: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[n]: tokens, from its first on, that a document gives to a whole reading; concat apart."""
    measured, known = measure(read.book.pool, documents), read.book.withdrawn
    tokens = measured.tokens
    if known.number:
        tokens = np.where(known.of(documents) > 0, 0, tokens)
    others = owned_elsewhere(read.book.pool, rule, documents)
    if others is not None:
        tokens = np.where(others, 0, tokens)
    if not drops(rule):
        return tokens
    pieces = slice_documents(measured._replace(tokens=tokens), cutting_of(rule)).pieces
    kept = np.zeros(len(tokens), np.int64)
    kept[pieces.document] = pieces.stop  # in rising order: the last piece of a document counts
    return kept


def _keeps_beginnings(rule: Rule) -> bool:
    """Whether lengths alone tell what a rule leaves out of a document: its end, in every epoch the same."""
    is_fixed = not rule.random_offset and rule.align == "none"
    leaves_out = rule.density is not None or rule.duplicates is not None
    return rule.method != "concat" and not leaves_out and is_fixed


def _planned(pool: Pool, read: Read, blocks: Blocks) -> Iterator[Part]:
    """Blocks of which hashes, texts or neighbours decide what is dropped: what each gave, epoch by epoch."""
    book, rule = read.book, read.book.rules[read.stage]
    for epoch in range(blocks.epoch, blocks.epoch + blocks.times):
        for block in range(blocks.first, blocks.stop):
            place = book.place(Cursor(epoch, block, prefix=blocks.prefix))
            planned = plan_block(pool, rule, place, (), (book.withdrawn, book.withdrawn.number))
            pieces = planned.rows.pieces
            documents = planned.documents[pieces.document]
            spans = np.column_stack([documents, pieces.fresh, pieces.stop])
            fresh = (pieces.flags & AHEAD == 0) & (pieces.stop > pieces.fresh)
            yield Part((read.life, epoch, block), union(spans[fresh]))
