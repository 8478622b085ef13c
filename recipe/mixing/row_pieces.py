"""What rows of walked steps are made of: pieces, where they lie in a row and in their document."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recipe.mixing.memory import SNAPSHOT_SEQUENCES
from recipe.mixing.snapshot import Snapshot
from recipe.mixing.walker import Ground, Walked, Walker
from recipe.sequences.blocks import Block
from recipe.sequences.bundles import columns_of
from recipe.sequences.pieces import AHEAD, MARKER
from recipe.sequences.transform import segments_of


class Hit(NamedTuple):
    """A piece of a document in a row: its tokens ``start..stop``, from ``column`` on.

    Of a piece that is filled in the middle, prefix, suffix and middle are hits of their own.
    """

    step: int
    row: int
    column: int
    pool: int
    document: int
    epoch: int
    start: int
    stop: int
    fresh: int


def pieces_of(block: Block, documents: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pieces of a block that hold tokens of some documents: their indices, and the sequences they lie in."""
    pieces, ends = block.rows
    wanted = np.isin(block.documents, documents)
    held = wanted[pieces.document] & (pieces.stop > pieces.start) & ((pieces.flags & (AHEAD | MARKER)) == 0)
    found = np.flatnonzero(held)
    return found, np.searchsorted(ends, found, side="right") - 1


def _columns(block: Block, sequence: int) -> NDArray[np.int64]:
    """int64[n]: where the tokens of each piece of a sequence begin, marks before them left out."""
    pieces = block.rows.pieces.take(np.arange(*block.rows.ends[sequence : sequence + 2]))
    return columns_of(pieces, block.multiple)


def hits_of(
    walked: Walked, pool: int, where: tuple[Block, NDArray[np.int64]], documents: NDArray[np.int64]
) -> Iterator[Hit]:
    """What rows of walked steps, which come from one block, hold of some documents."""
    block, rows = where
    pieces, batch = block.rows.pieces, walked.stretch.batch
    row_of = dict(zip(walked.indices[rows].tolist(), rows.tolist(), strict=True))
    for piece, sequence in zip(*map(np.ndarray.tolist, pieces_of(block, documents)), strict=True):
        if sequence in row_of:
            steps, row = divmod(row_of[sequence], batch)
            column = int(_columns(block, sequence)[piece - int(block.rows.ends[sequence])])
            start, stop, fresh, flags = (int(of[piece]) for of in pieces[1:])
            for a, b, offset in segments_of(start, stop, flags):
                yield Hit(
                    step=walked.first_step + steps,
                    row=row,
                    column=column + offset,
                    pool=pool,
                    document=int(block.documents[pieces.document[piece]]),
                    epoch=block.place.epoch,
                    start=a,
                    stop=b,
                    fresh=min(max(a, fresh), b),
                )


def row_hits(
    ground: Ground, start: Snapshot, at: tuple[int, int], watch: Callable[[int], None] = lambda step: None
) -> list[Hit] | None:
    """Every piece of a row, left to right; None where the run ended before its step.

    Args:
        ground: what the steps are served from.
        start: a state at or before the step.
        at: step and row.
        watch: called with the steps walked, some way apart.
    """
    step, row = at
    walker = Walker(ground, start)
    while not walker.finished:
        walked = walker.advance(step if walker.step < step else step + 1, SNAPSHOT_SEQUENCES)
        watch(walker.step)
        if walked.first_step <= step < walker.step:
            place = (step - walked.first_step) * walked.stretch.batch + row
            number, pool = int(walked.block_of[place]), int(walked.pools[place])
            block = walked.blocks[number]
            return list(hits_of(walked, pool, (block, np.array([place])), block.documents))
    return None
