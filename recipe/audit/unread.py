"""What a stretch of reading served of the blocks it did not read from their first sequence to their last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from recipe.audit.books import Book, open_block
from recipe.audit.reads import Read
from recipe.audit.spans import NOTHING, Spans, union, without
from recipe.audit.state import Cursor
from recipe.sequences.ownership import owned_elsewhere
from recipe.sequences.pieces import AHEAD


class Part(NamedTuple):
    """Tokens of one block that were served fresh; the block by life, epoch and number."""

    block: tuple[int, int, int]
    spans: Spans


class Blocks(NamedTuple):
    """Blocks of one epoch that were read whole, in one stretch; ``times`` epochs from ``epoch`` on alike."""

    epoch: int
    first: int
    stop: int
    prefix: tuple[int, int] | None
    times: int
    is_epoch: bool
    """Whether they are all there are."""


def whole_blocks(read: Read) -> Iterator[Blocks]:
    """The blocks that a stretch began and finished."""
    start, stop = read.start, read.stop
    first = start.block + is_begun(start)
    if start.epoch == stop.epoch:
        yield _blocks(read, start, first, stop.block)
    else:
        yield _blocks(read, start, first, read.book.num_blocks(start))
        between = Cursor(start.epoch + 1, prefix=read.prefix)
        if stop.epoch > between.epoch:
            number = read.book.num_blocks(between)
            yield _blocks(read, between, 0, number)._replace(times=stop.epoch - between.epoch)
        yield _blocks(read, stop, 0, stop.block)
    for place in read.held[: len(read.held) - len(read.left)]:
        if not is_begun(place):
            yield _blocks(read, place, place.block, place.block + 1)


def _blocks(read: Read, place: Cursor, first: int, stop: int) -> Blocks:
    number = read.book.num_blocks(place)
    return Blocks(place.epoch, first, min(stop, number), place.prefix, 1, (first, stop) == (0, number))


def parts(read: Read) -> Iterator[Part]:
    """What it served of the block it began in, of the one it ended in, and of ranges given back."""
    book, start, stop = read.book, read.start, read.stop
    is_same = (start.epoch, start.block) == (stop.epoch, stop.block)
    if is_begun(start) and start.block < book.num_blocks(start):
        after = _rest(book, stop) if is_same else NOTHING
        yield _part(read, start, without(_rest_now(read, start), after))
    if is_begun(stop) and stop.block < book.num_blocks(stop) and not (is_same and is_begun(start)):
        yield _part(read, stop, without(_all(book, stop), _rest(book, stop)))
    done = len(read.held) - len(read.left)
    for place in read.held[:done]:
        if is_begun(place):
            yield _part(read, place, _rest_now(read, place))
    if read.left and read.left[0] != read.held[done]:
        before, after_it = read.held[done], read.left[0]
        spans = _rest_now(read, before) if is_begun(before) else _all(book, after_it)
        yield _part(read, before, without(spans, _rest(book, after_it)))


def is_begun(place: Cursor) -> bool:
    """Whether a block is open there: something of it was served, or left to a skip."""
    return place.stage >= 0


def _part(read: Read, place: Cursor, spans: Spans) -> Part:
    return Part((read.life, place.epoch, place.block), spans)


def _rest(book: Book, place: Cursor) -> Spans:
    """Fresh tokens of the sequences from a place on."""
    block = open_block(book, place).block
    ends, pieces = block.rows.ends, block.rows.pieces
    first, last = int(ends[place.sequence]), int(ends[-1] if place.stop is None else ends[place.stop])
    here = slice(first, last)
    fresh = (pieces.stop[here] > pieces.fresh[here]) & (pieces.flags[here] & AHEAD == 0)
    documents = block.documents[pieces.document[here][fresh]]
    return union(np.column_stack([documents, pieces.fresh[here][fresh], pieces.stop[here][fresh]]))


def _rest_now(read: Read, place: Cursor) -> Spans:
    """The same, without documents that were withdrawn since the block was arranged, or are others' now."""
    book = read.book
    spans, known = _rest(book, place), book.withdrawn
    late = known.documents[known.numbers > place.withdrawn]
    if len(late):
        spans = spans[~np.isin(spans[:, 0], late)]
    others = owned_elsewhere(book.pool, book.rules[read.stage], spans[:, 0])
    return spans if others is None else spans[~others]


def _all(book: Book, place: Cursor) -> Spans:
    """Fresh tokens of all sequences that the block of a place had when it was first arranged."""
    first = replace(place, sequence=0, stop=None)
    if place.cuts:
        cut = place.cuts[0]
        first = replace(first, stage=cut.stage, withdrawn=cut.withdrawn, cuts=())
    return _rest(book, first)
