"""A block: consecutive units of a pool's reading order, sliced, packed and shuffled together.

Planned from lengths alone; no token is read. A block opened under one rule and left unfinished when
the rule changed is opened again by replaying its cuts: what the old rule left unserved becomes runs
for the new one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recipe.config import Rule
from recipe.errors import RecipeError
from recipe.maths.kernels import kernel
from recipe.maths.order import key, permute_range, units_at
from recipe.pools import Pool
from recipe.sequences.concat import Joining, join_runs
from recipe.sequences.packing import best_fit
from recipe.sequences.slicing import (
    AHEAD,
    ALONE,
    ENDS,
    HAS_BOS,
    HAS_EOS,
    OLD_BOS,
    OLD_EOS,
    OVERSIZE,
    REASONS,
    TAILS,
    Cutting,
    Documents,
    Pieces,
    slice_documents,
    slice_runs,
    unserved_runs,
    whole,
)

KINDS = ("body", "overlap", "special", "labels", "documents")
"""What is counted of a sequence: columns of ``Block.counts``; documents are those begun."""


@dataclass(frozen=True, slots=True)
class BlockPlace:
    """Which block: a function of these alone."""

    seed: int
    epoch: int
    block: int
    block_units: int


@dataclass(frozen=True, slots=True)
class CutBlock:
    """One rule under which a block was open, and the sequences it served before the next one."""

    rule: Rule
    served: int


class Rows(NamedTuple):
    """Pieces arranged in rows: row r holds entries ``ends[r]..ends[r + 1]`` of ``pieces``."""

    pieces: Pieces
    ends: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Block:
    """The sequences of a block in the order in which they are served.

    ``documents`` int64[n]: document numbers in reading order; ``tokens`` their body tokens; ``starts``
    where the first of them is stored, counted over the whole pool;
    ``rows``: the pieces of every sequence, their ``document`` an index into ``documents``;
    ``totals`` int64[num_sequences + 1, len(KINDS)]: counts of all sequences before each;
    ``dropped``: tokens that this opening left out, by reason; ``place``: which block it is.
    """

    documents: NDArray[np.int64]
    tokens: NDArray[np.int64]
    starts: NDArray[np.int64]
    rows: Rows
    totals: NDArray[np.int64]
    dropped: dict[str, int]
    place: BlockPlace

    @property
    def num_sequences(self) -> int:
        """Sequences of the block."""
        return len(self.totals) - 1


def num_blocks(pool: Pool, block_units: int) -> int:
    """Blocks of one epoch of a pool."""
    return -(-pool.num_units // block_units)


def block_documents(pool: Pool, place: BlockPlace) -> NDArray[np.int64]:
    """int64[n]: the documents of a block, in reading order; the documents of a unit stay adjacent."""
    start = place.block * place.block_units
    stop = min(start + place.block_units, pool.num_units)
    order = key(place.seed, place.epoch, "order", pool.name)
    units = units_at(start, stop, pool.num_units, pool.extent_units, order)
    if pool.units is None:
        return units
    firsts: NDArray[np.int64] = np.asarray(pool.units[units])
    sizes = np.asarray(pool.units[units + 1]) - firsts
    inside = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    documents: NDArray[np.int64] = np.repeat(firsts, sizes) + inside
    return documents


def measure(pool: Pool, documents: NDArray[np.int64]) -> Documents:
    """Body tokens of documents, and which marks are stored with them.

    Raises:
        RecipeError: a length below zero or above the pool's tokens: its boundaries are damaged.
    """
    bos, eos = pool.stored_marks(documents)
    stored = np.asarray(pool.offsets[documents + 1]) - np.asarray(pool.offsets[documents])
    tokens = stored - bos - eos
    if len(tokens) and (tokens.min() < 0 or stored.max() > pool.num_tokens):
        worst = int(np.argmax(np.where(tokens < 0, pool.num_tokens + 1, stored)))
        raise RecipeError.single(
            f"pool {pool.name}",
            str(pool.path),
            given=f"document {int(documents[worst])} of {int(stored[worst])} stored tokens",
            expected=f"lengths in 0..{pool.num_tokens}: the pool's boundaries are damaged",
            fix="copy the pool again from where it is whole; `recipe audit --full` compares its files",
        )
    return Documents(tokens, bos, eos)


def plan_block(pool: Pool, rule: Rule, place: BlockPlace, cuts: tuple[CutBlock, ...] = ()) -> Block:
    """The sequences of one block under a rule.

    Args:
        pool: only its lengths are read.
        rule: the rule in force.
        place: seed, epoch, block number and size.
        cuts: earlier rules under which the block was open, oldest first; empty for a new block.

    Returns:
        the block; with cuts, only what they left unserved, and nothing more is dropped.
    """
    documents = block_documents(pool, place)
    measured = measure(pool, documents)
    runs: NDArray[np.int64] | None = None
    for depth, cut in enumerate(cuts):
        rows, _ = _arrange(pool, cut.rule, place, (measured, runs, depth))
        runs = _left_over(rows, cut.served)
    rows, dropped = _arrange(pool, rule, place, (measured, runs, len(cuts)))
    starts = np.asarray(pool.offsets[documents]) + measured.bos
    return Block(documents, measured.tokens, starts, rows, _count(rows, measured, rule), dropped, place)


def _left_over(rows: Rows, served: int) -> NDArray[np.int64]:
    first = int(rows.ends[served])
    by_reading = np.lexsort((rows.pieces.fresh[first:], rows.pieces.document[first:]))
    return unserved_runs(rows.pieces.take(first + by_reading))


def _arrange(
    pool: Pool, rule: Rule, place: BlockPlace, state: tuple[Documents, NDArray[np.int64] | None, int]
) -> tuple[Rows, dict[str, int]]:
    """Slice, pack and shuffle a block, or what is left of it (runs), under one rule."""
    measured, runs, depth = state
    if rule.method == "concat":
        pieces, row_of_piece, dropped = _concatenate(measured, runs, rule)
    else:
        pieces, dropped = _slice(measured, runs, rule)
        sizes = pieces.stop - pieces.start + ((pieces.flags & HAS_BOS) > 0) + ((pieces.flags & HAS_EOS) > 0)
        if rule.method == "none":
            row_of_piece = np.arange(len(sizes))
        else:
            row_of_piece = best_fit(sizes, (pieces.flags & ALONE) > 0, rule.context)
    num_rows = int(row_of_piece.max()) + 1 if len(row_of_piece) else 0
    shuffle = key(place.seed, place.epoch, "shuffle", pool.name, place.block, depth)
    served = permute_range(0, num_rows, max(1, num_rows), shuffle)
    order, ends = _in_rows(row_of_piece, served)
    return Rows(pieces.take(order), ends), {r: int(n) for r, n in zip(REASONS, dropped, strict=True) if n}


def _slice(
    measured: Documents, runs: NDArray[np.int64] | None, rule: Rule
) -> tuple[Pieces, NDArray[np.int64]]:
    cutting = Cutting(
        rule.window,
        rule.stride,
        rule.context,
        TAILS.index(rule.tail),
        rule.min_tail,
        OVERSIZE.index(rule.oversize),
    )
    if runs is None:
        return slice_documents(measured, cutting)
    return slice_runs(measured, runs, cutting), np.zeros(len(REASONS), np.int64)


def _concatenate(
    measured: Documents, runs: NDArray[np.int64] | None, rule: Rule
) -> tuple[Pieces, NDArray[np.int64], NDArray[np.int64]]:
    dropped = np.zeros(len(REASONS), np.int64)
    keep = rule.tail == "keep" or runs is not None
    if runs is None:
        runs = whole(measured)
    joining = Joining(rule.context, rule.stride, keep, rule.cross_labels)
    pieces, row_of_piece, left = join_runs(measured, runs, joining)
    dropped[REASONS.index("tail")] = left
    return pieces, row_of_piece, dropped


@kernel
def _in_rows(
    row_of_piece: NDArray[np.int64], served: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Order of the pieces by served row, then as given; and where each row ends."""
    place = np.empty(len(served), np.int64)
    for q in range(len(served)):
        place[served[q]] = q
    ends = np.zeros(len(served) + 1, np.int64)
    for row in row_of_piece:
        ends[place[row] + 1] += 1
    for q in range(len(served)):
        ends[q + 1] += ends[q]
    fill = ends[:-1].copy()
    order = np.empty(len(row_of_piece), np.int64)
    for i in range(len(row_of_piece)):
        q = place[row_of_piece[i]]
        order[fill[q]] = i
        fill[q] += 1
    return order, ends


def _count(rows: Rows, measured: Documents, rule: Rule) -> NDArray[np.int64]:
    return _totals(rows, measured.tokens, (rule.overlap_labels, rule.labels == "inputs", rule.cross_labels))


@kernel
def _totals(rows: Rows, tokens: NDArray[np.int64], rule: tuple[bool, bool, bool]) -> NDArray[np.int64]:
    """Running totals of KINDS before each row; ``rule``: overlap labels, labels are inputs, cross labels."""
    overlap_labels, inputs, cross = rule
    pieces = rows.pieces
    num_rows = len(rows.ends) - 1
    out = np.zeros((num_rows + 1, 5), np.int64)
    for q in range(num_rows):
        for kind in range(5):
            out[q + 1, kind] = out[q, kind]
        seam = False
        for i in range(rows.ends[q], rows.ends[q + 1]):
            start, stop, fresh, flags = pieces.start[i], pieces.stop[i], pieces.fresh[i], pieces.flags[i]
            last = stop == tokens[pieces.document[i]] and stop > start
            if seam and cross and not (inputs and flags & AHEAD):
                out[q + 1, 3] += 1
            if flags & AHEAD:
                continue
            if overlap_labels:
                flags = flags & ~np.uint8(OLD_BOS | OLD_EOS)
            out[q + 1, 0] += stop - start
            out[q + 1, 1] += fresh - start
            out[q + 1, 2] += int(flags & HAS_BOS > 0) + int(flags & HAS_EOS > 0)
            out[q + 1, 3] += _labels(start, stop, start if overlap_labels else fresh, (flags, last, inputs))
            out[q + 1, 4] += int(fresh == 0 and stop > 0)
            if flags & HAS_EOS:
                seam = flags & OLD_EOS == 0
            else:
                seam = last and flags & ENDS == 0 and (overlap_labels or fresh < stop)
    return out


@kernel
def _labels(start: int, stop: int, labelled: int, state: tuple[int, bool, bool]) -> int:
    """Labels of one piece; ``state``: flags, holds the document's last token, labels are inputs."""
    flags, last, inputs = state
    bos = flags & HAS_BOS > 0 and flags & OLD_BOS == 0
    if inputs:
        labels = max(0, stop - labelled - 1)
        if bos and stop > start:
            labels += 1
        if flags & HAS_EOS and stop > labelled:
            labels += 1
        return labels
    labels = stop - labelled
    if labels > 0 and last and flags & ENDS == 0:
        labels -= 1
    return labels + int(bos)
