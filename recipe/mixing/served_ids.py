"""Ids of files that nobody checked when they were written: a negative one is refused before it is served."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from recipe.errors import RecipeError
from recipe.maths.kernels import kernel
from recipe.pools import Pool
from recipe.sequences.bundles import columns_of
from recipe.sequences.page import IGNORED, Arrays
from recipe.sequences.pieces import AHEAD, MARKER, Pieces
from recipe.sequences.sheet import MULTIPLE, TOKENS, Sheet, Sources
from recipe.sequences.transform import segments_of

MOST = 1 << 31
"""No model has so many ids."""


def is_unchecked(pool: Pool) -> bool:
    """Whether a pool may hold ids that no model has: others wrote it, and its type has room for them."""
    return pool.layout.table is None and (pool.token_dtype.kind == "i" or pool.token_dtype.itemsize >= 4)


def refuse_impossible(
    arrays: Arrays, of: tuple[Sheet, NDArray[np.int64], Sources], pools: tuple[Pool, ...]
) -> None:
    """Look through ids and labels of a batch.

    Args:
        arrays: of the batch.
        of: the sheet it was copied from, its rows there, and the marks and rules of the pools.
        pools: of the recipe.

    Raises:
        RecipeError: an id is negative, or 2**31 or more: names pool, part, document and position.
    """
    if not _is_any_impossible(arrays.input_ids, arrays.labels):
        return
    ids, labels = (np.asarray(array) for array in arrays[:2])
    wrong = (ids < 0) | (ids >= MOST) | (labels >= MOST) | ((labels < 0) & (labels != IGNORED))
    row, column = (int(axis[0]) for axis in np.nonzero(wrong))
    is_label = 0 <= ids[row, column] < MOST
    given = int((labels if is_label else ids)[row, column])
    sheet, rows, sources = of
    pool = pools[int(sheet.pool[rows[row]])]
    found = next(_tokens_at(sheet, int(rows[row]), sources, column), None)
    where = str(pool.path) if found is None else _place(pool, found[0], found[1] + is_label)
    raise RecipeError.single(
        f"pool {pool.name}", where, given=f"id {given}", expected=f"ids in 0..{MOST - 1}",
        fix="write the token files anew from the texts, or with another type (dtype): no model has such an "
        "id; with model.vocab_size every id is looked at before the first step",
    )  # fmt: skip


@kernel
def _is_any_impossible(ids: NDArray[np.int64], labels: NDArray[np.int64]) -> bool:
    found = False
    for row in range(ids.shape[0]):
        for column in range(ids.shape[1]):
            id, label = ids[row, column], labels[row, column]
            found |= (id < 0) | (id >= MOST) | (label >= MOST) | ((label < 0) & (label != IGNORED))
    return found


def _tokens_at(sheet: Sheet, row: int, sources: Sources, column: int) -> Iterator[tuple[int, int]]:
    """Document and token of it that stand in a column of a row of a sheet."""
    multiple = int(sources.rules[sheet.pool[row], MULTIPLE])
    entries = sheet.pieces[sheet.ends[row] : sheet.ends[row + 1]]
    columns = columns_of(Pieces(*entries[:, :TOKENS].T), multiple)
    for piece, begins in zip(entries[:, :TOKENS].tolist(), columns.tolist(), strict=True):
        document, start, stop, _, flags = piece
        if not flags & (AHEAD | MARKER):
            for a, b, offset in segments_of(start, stop, flags):
                if 0 <= (at := column - begins - offset) < b - a:
                    yield document, a + at


def _place(pool: Pool, document: int, token: int) -> str:
    part = int(np.searchsorted(pool.part_documents, document, side="right")) - 1
    front = int(pool.fronts(np.array([document]))[0])
    position = int(pool.offsets[document]) - int(pool.part_offsets[part]) + front + token
    name = pool.layout.file_name(part)
    return f"{pool.path}, part {name}: document {document}, token {token} (position {position} of the part)"
