"""From walked sequences to sheets: every piece of some steps, ready to be copied."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recipe.config import Recipe
from recipe.errors import RecipeError
from recipe.maths.kernels import kernel
from recipe.mixing.walker import Walked
from recipe.pools import Pool
from recipe.sequences.blocks import Block
from recipe.sequences.rows import Rows
from recipe.sequences.sheet import (
    BASE,
    DOCUMENT,
    FLAGS,
    FRESH,
    SLOT,
    START,
    STOP,
    TOKEN_TYPES,
    TOKENS,
    Sheet,
    Sources,
)

if TYPE_CHECKING:
    from recipe.pools.remote.asking import Object


class Library:
    """The token parts of all pools, numbered by slots and opened when a row first needs them."""

    def __init__(self, pools: tuple[Pool, ...]) -> None:
        """Number the parts of the pools; none is opened."""
        self._pools = pools
        counts = [len(pool.part_documents) - 1 for pool in pools]
        self._first_slot = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        num_slots = int(self._first_slot[-1])
        self.address = np.zeros(num_slots, np.uint64)
        self._width_of = [TOKEN_TYPES.index(np.dtype(pool.token_dtype).name) for pool in pools]
        self.widths = tuple(sorted(set(self._width_of)))
        pool_of = np.repeat(np.arange(len(pools)), counts)
        self.is_remote = np.array([pool.layout.remote is not None for pool in pools], np.bool_)[pool_of]
        """bool[num_slots]: parts that lie in a store: they have no address."""
        self.has_remote = bool(self.is_remote.any())
        self.widths_of = np.array([pool.token_dtype.itemsize for pool in pools], np.int64)[pool_of]
        """int64[num_slots]: bytes of a token."""
        self._lock = threading.Lock()
        self._kept: list[NDArray[np.generic]] = []

    def open(self, slot: int) -> None:
        """Map the part of a slot, so that its address is known."""
        with self._lock:
            if self.address[slot]:
                return
            pool, index = self._part(slot)
            part = pool.part(index)
            self._kept.append(part)
            self.address[slot] = part.__array_interface__["data"][0]

    def _part(self, slot: int) -> tuple[Pool, int]:
        pool = int(np.searchsorted(self._first_slot, slot, side="right")) - 1
        return self._pools[pool], slot - int(self._first_slot[pool])

    def object(self, slot: int) -> Object:
        """The token file of a part in a store."""
        pool, index = self._part(slot)
        assert pool.layout.remote is not None
        return pool.layout.remote.object(pool.layout.file_name(index))

    def addresses(self, sheet: Sheet, slab: int) -> NDArray[np.uint64]:
        """uint64[num_slots + 1]: addresses of parts, opened if a sheet needs them; the last is ``slab``."""
        for slot in np.unique(sheet.pieces[:, SLOT]).tolist():
            if slot < len(self.address):
                self.open(slot)
        return np.append(self.address, np.uint64(slab))

    def sources(self, recipe: Recipe, stage: str) -> Sources:
        """Addresses, marks and label rules of all pools in one stage."""
        rules = [recipe.rule(stage, pool.name) for pool in self._pools]
        marks = [[-1 if mark is None else mark for mark in (p.bos, p.eos)] for p in self._pools]
        flags = [
            (
                rule.overlap_labels,
                rule.labels == "inputs",
                rule.cross_labels,
                rule.attention == "sequence",
                rule.positions == "continue",
                rule.document_multiple,
                *(rule.fim.ids if rule.fim is not None else (-1, -1, -1)),
            )
            for rule in rules
        ]
        columns = [np.array(self._width_of)[:, None], np.array(marks), np.array(flags)]
        return Sources(self.address, np.concatenate(columns, axis=1, dtype=np.int64))

    def sheet(self, walked: Walked) -> Sheet:
        """The pieces of walked sequences, with where their documents lie."""
        by_block = list(walked.by_block())
        sizes = _sizes(walked, by_block)
        ends = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=ends[1:])
        pieces = np.empty((int(ends[-1]), 8), np.int64)
        for block, rows in by_block:
            if len(rows):
                p = int(walked.pools[rows[0]])
                pool, first_slot = self._pools[p], int(self._first_slot[p])
                documents = (block.documents, block.tokens, block.starts)
                parts = (pool.part_documents, pool.part_offsets, first_slot)
                if len(pool.erased):
                    _refuse_erased(pool, block, walked.indices[rows])
                _gather(block.rows, (documents, parts), (walked.indices[rows], ends[rows]), pieces)
        return Sheet(ends, walked.pools, pieces)


def _refuse_erased(pool: Pool, block: Block, sequences: NDArray[np.int64]) -> None:
    """Raise RecipeError if sequences of a block, served once, hold a document that was erased since."""
    gone = np.flatnonzero(np.isin(block.documents, pool.erased))
    if not len(gone):
        return
    ends = block.rows.ends
    for sequence in np.unique(sequences).tolist():
        held = np.intersect1d(block.rows.pieces.document[ends[sequence] : ends[sequence + 1]], gone)
        if len(held):
            names = ", ".join(map(repr, pool.ids(block.documents[held])))
            raise RecipeError.single(
                f"pool {pool.name}", str(pool.path), given=f"documents that were erased: {names}",
                expected="documents that are there: rows of theirs were served before they were withdrawn",
                fix="put the folder back that holds them, or look at later steps; what was spent is still "
                "counted (recipe audit, recipe trace)",
            )  # fmt: skip


def _sizes(walked: Walked, by_block: list[tuple[Block, NDArray[np.int64]]]) -> NDArray[np.int64]:
    """Pieces of every sequence."""
    sizes = np.empty(len(walked.pools), np.int64)
    for block, rows in by_block:
        indices = walked.indices[rows]
        sizes[rows] = block.rows.ends[indices + 1] - block.rows.ends[indices]
    return sizes


@kernel
def _gather(
    rows: Rows, where: Any, places: tuple[NDArray[np.int64], NDArray[np.int64]], out: NDArray[np.int64]
) -> None:
    """Copy the pieces of rows ``places[0]`` of a block to where ``places[1]`` says.

    ``where``: of the block's documents the numbers, body tokens and starts; of the pool's parts the first
    documents, the first tokens and the slot of the first one.
    """
    indices, firsts = places
    (numbers, tokens, starts), (part_documents, part_offsets, first_slot) = where
    pieces = rows.pieces
    for r in range(len(indices)):
        k = firsts[r]
        for i in range(rows.ends[indices[r]], rows.ends[indices[r] + 1]):
            at = pieces.document[i]
            part = np.searchsorted(part_documents, numbers[at], side="right") - 1
            out[k, DOCUMENT] = numbers[at]
            out[k, START] = pieces.start[i]
            out[k, STOP] = pieces.stop[i]
            out[k, FRESH] = pieces.fresh[i]
            out[k, FLAGS] = pieces.flags[i]
            out[k, TOKENS] = tokens[at]
            out[k, SLOT] = first_slot + part
            out[k, BASE] = starts[at] - part_offsets[part]
            k += 1
