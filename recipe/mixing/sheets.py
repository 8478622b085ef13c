"""From walked sequences to sheets: every piece of some steps, ready to be copied."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from recipe.config import Recipe
from recipe.maths.kernels import kernel
from recipe.mixing.walker import Walked
from recipe.pools import Pool
from recipe.sequences.assembly import TOKEN_TYPES, Sheet, Sources
from recipe.sequences.blocks import Rows, measure


class Library:
    """The token parts of all pools, numbered by slots and opened when a row first needs them."""

    def __init__(self, pools: tuple[Pool, ...]) -> None:
        self._pools = pools
        counts = [len(pool.part_documents) - 1 for pool in pools]
        self._first_slot = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        num_slots = int(self._first_slot[-1])
        self.address = np.zeros(num_slots, np.uint64)
        self.width = np.zeros(num_slots, np.uint8)
        self._lock = threading.Lock()
        self._kept: list[NDArray[np.generic]] = []

    def open(self, slot: int) -> None:
        """Map the part of a slot, so that its address is known."""
        with self._lock:
            if self.address[slot]:
                return
            pool = int(np.searchsorted(self._first_slot, slot, side="right")) - 1
            part = self._pools[pool].part(slot - int(self._first_slot[pool]))
            self._kept.append(part)
            self.width[slot] = TOKEN_TYPES.index(part.dtype.name)
            self.address[slot] = part.__array_interface__["data"][0]

    def sources(self, recipe: Recipe, stage: str) -> Sources:
        """Addresses, marks and label rules of all pools in one stage."""
        rules = [recipe.rule(stage, pool.name) for pool in self._pools]
        flags = [
            (r.overlap_labels, r.labels == "inputs", r.cross_labels, r.attention == "sequence", r.positions == "continue")
            for r in rules
        ]
        marks = [[-1 if mark is None else mark for mark in (p.card.bos, p.card.eos)] for p in self._pools]
        return Sources(self.address, self.width, np.array(marks, np.int64), np.array(flags, np.bool_))

    def sheet(self, walked: Walked) -> Sheet:
        """The pieces of walked sequences, with where their documents lie."""
        sizes, columns = _columns(walked)
        ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        document, start, stop, fresh, flags, tokens = columns
        slot, base = np.empty(len(document), np.int64), np.empty(len(document), np.int64)
        pool_of_piece = np.repeat(walked.pools, sizes)
        for p, pool in enumerate(self._pools):
            here = np.flatnonzero(pool_of_piece == p)
            if len(here):
                slot[here], base[here] = _locate(pool, document[here])
                slot[here] += self._first_slot[p]
        return Sheet(ends, walked.pools, document, start, stop, fresh, flags, tokens, slot, base)


def _locate(pool: Pool, documents: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Part of each document, and the place of its first body token there."""
    part = np.searchsorted(pool.part_documents, documents, side="right") - 1
    bos = measure(pool, documents).bos
    return part, np.asarray(pool.offsets[documents]) + bos - np.asarray(pool.part_offsets)[part]


def _columns(walked: Walked) -> tuple[NDArray[np.int64], tuple[NDArray[np.int64], ...]]:
    """Pieces per sequence, and the columns of all pieces in schedule order."""
    num = len(walked.pools)
    sizes = np.empty(num, np.int64)
    rows_of = [np.flatnonzero(walked.block_of == b) for b in range(len(walked.blocks))]
    for rows, block in zip(rows_of, walked.blocks, strict=True):
        indices = walked.indices[rows]
        sizes[rows] = block.rows.ends[indices + 1] - block.rows.ends[indices]
    firsts = np.cumsum(sizes) - sizes
    out = (*(np.empty(int(sizes.sum()), np.int64) for _ in range(4)), np.empty(int(sizes.sum()), np.uint8))
    tokens = np.empty(int(sizes.sum()), np.int64)
    for rows, block in zip(rows_of, walked.blocks, strict=True):
        if len(rows):
            _gather(block.rows, (block.documents, block.tokens), walked.indices[rows], firsts[rows], (*out, tokens))
    return sizes, (*out, tokens)


@kernel
def _gather(
    rows: Rows,
    documents: tuple[NDArray[np.int64], NDArray[np.int64]],
    indices: NDArray[np.int64],
    firsts: NDArray[np.int64],
    out: tuple[
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.uint8],
        NDArray[np.int64],
    ],
) -> None:
    numbers, lengths = documents
    document, start, stop, fresh, flags, tokens = out
    for r in range(len(indices)):
        k = firsts[r]
        for i in range(rows.ends[indices[r]], rows.ends[indices[r] + 1]):
            local = rows.pieces.document[i]
            document[k] = numbers[local]
            tokens[k] = lengths[local]
            start[k] = rows.pieces.start[i]
            stop[k] = rows.pieces.stop[i]
            fresh[k] = rows.pieces.fresh[i]
            flags[k] = rows.pieces.flags[i]
            k += 1
