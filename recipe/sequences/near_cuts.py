"""Tokens near cuts: which parts of a pool have to be mapped so that its documents can be cut at edges."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from recipe.config import Rule
from recipe.errors import RecipeError
from recipe.pools import Pool
from recipe.sequences.boundaries import Edges, section_table
from recipe.sequences.pieces import Documents, Pieces, body_starts
from recipe.sequences.slicing import Sliced
from recipe.sequences.windows import Reading

GROUP_BYTES = 16 << 20
"""Bytes of documents of a pool in a store that are in memory at once while they are cut."""


def edges_of(pool: Pool, rule: Rule) -> Edges:
    """Where a pool's documents may be cut under a rule that aligns.

    Raises:
        RecipeError: it has no sections, or nobody said what its tokens spell.
    """
    if rule.align == "section":
        if pool.sections is None:
            raise RecipeError.single(
                f"pool {pool.name}",
                f"pools.{pool.name}",
                given="a pool without sections",
                expected="sections: its documents are cut there",
                fix="prepare the pool with --sections or --units-key, or align at paragraphs",
            )
        return section_table(pool.sections)
    if pool.edges is None:
        raise RecipeError.single(
            f"pool {pool.name}",
            "tokenizer",
            given=f"nothing, with align: {rule.align}",
            expected="the tokenizer that made the pool",
            fix="write tokenizer: {path: FOLDER}, or leave out align",
        )
    table: Edges = pool.edges()
    return table.of(rule.align, pool.sections)


def reading_of(
    pool: Pool, rule: Rule, of: tuple[NDArray[np.int64], Documents], runs: NDArray[np.int64]
) -> tuple[Reading, list[NDArray[np.generic]]]:
    """What the compiled loop reads to cut some runs.

    Args:
        pool: parts with documents that may be cut, or begin inside an overlap, are mapped; others are not.
            Of a pool in a store these documents are fetched.
        rule: how they are cut.
        of: int64[n] numbers of the documents that runs index, and their lengths and marks.
        runs: int64[k, 3]: (document, a, b).

    Returns:
        the reading, and the parts it points into: hold them while it is used.

    Raises:
        RecipeError: a document that was cut before it was withdrawn has been erased since: where its cuts
            were, and with them the rows of its block, cannot be told any more.
    """
    numbers, measured = of
    stored = body_starts(pool, numbers, measured)
    first = np.minimum(rule.window - 1, rule.room - measured.fronts)
    index = np.unique(runs[(runs[:, 1] > 0) | (runs[:, 2] > first[runs[:, 0]]), 0])
    addresses, held = np.zeros(len(numbers), np.uint64), list[NDArray[np.generic]]()
    if rule.align != "section" and len(pool.erased):
        _refuse_erased(pool, numbers[index])
    if rule.align != "section" and pool.layout.remote is not None:
        memory, place = _fetched(pool, numbers[index], stored[index], measured.tokens[index])
        held.append(memory)
        addresses[index] = (place + memory.__array_interface__["data"][0]).astype(np.uint64)
    elif rule.align != "section":
        part_of = np.searchsorted(pool.part_documents, numbers[index], side="right") - 1
        for part in np.unique(part_of).tolist():
            tokens = pool.part(part)
            held.append(tokens)
            here = index[part_of == part]
            at = (stored[here] - int(pool.part_offsets[part])) * tokens.itemsize
            addresses[here] = (at + tokens.__array_interface__["data"][0]).astype(np.uint64)
    marker = np.empty(0, pool.token_dtype)
    return Reading(marker, addresses, stored, edges_of(pool, rule)), held


def _refuse_erased(pool: Pool, cut: NDArray[np.int64]) -> None:
    gone = np.intersect1d(cut, pool.erased)
    if len(gone):
        raise RecipeError.single(
            f"pool {pool.name}",
            str(pool.path),
            given=f"{len(gone)} erased documents at whose texts cuts of a block were aligned before they "
            f"were withdrawn: {', '.join(map(repr, pool.ids(gone[:5])))}",
            expected="their texts, as long as blocks that were arranged with them are read",
            fix="put the folder back that holds them until the run has read these blocks to their end; what "
            "was served of them before can only be computed again with it",
        )


def _fetched(
    pool: Pool, numbers: NDArray[np.int64], stored: NDArray[np.int64], tokens: NDArray[np.int64]
) -> tuple[NDArray[np.generic], NDArray[np.int64]]:
    """Bodies of documents of a pool in a store, in memory; and at which byte of it each begins."""
    assert pool.layout.remote is not None
    width = pool.token_dtype.itemsize
    parts = np.searchsorted(pool.part_documents, numbers, side="right") - 1
    starts = (stored - pool.part_offsets[parts]) * width
    names = [pool.layout.file_name(part) for part in range(pool.num_parts)]
    memory, runs = pool.layout.remote.gather(
        names, np.stack([parts, starts, starts + tokens * width], axis=1)
    )
    return memory, runs.place


def cut_near(
    of: tuple[Pool, Rule, NDArray[np.int64]],
    measured: Documents,
    runs: NDArray[np.int64],
    cut: Callable[[NDArray[np.int64], Reading | None], Sliced],
) -> Sliced:
    """Cut runs, with the tokens near their cuts where a rule aligns them.

    Args:
        of: the pool, how it is cut, and int64[n] numbers of the documents that runs index.
        measured: lengths and marks of the documents.
        runs: int64[k, 3]: (document, a, b).
        cut: cuts some of the runs.
    """
    pool, rule, numbers = of
    if rule.align == "none":
        return cut(runs, None)
    sliced: list[Sliced] = []
    for some in _groups(pool, rule, measured, runs):
        reading, _held = reading_of(pool, rule, (numbers, measured), some)
        sliced.append(cut(some, reading))
    if len(sliced) == 1:
        return sliced[0]
    pieces = Pieces(*(np.concatenate(columns) for columns in zip(*(s.pieces for s in sliced), strict=True)))
    dropped, aligned = (np.sum([s[k] for s in sliced], axis=0) for k in (1, 2))
    return Sliced(pieces, dropped, aligned)


def _groups(pool: Pool, rule: Rule, measured: Documents, runs: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Runs, as many at a time as their tokens are read for: all, but for texts of a pool in a store."""
    if pool.layout.remote is None or rule.align == "section" or not len(runs):
        return [runs]
    ends = np.cumsum(measured.tokens[runs[:, 0]]) * pool.token_dtype.itemsize
    return np.split(runs, np.flatnonzero(np.diff(ends // GROUP_BYTES)) + 1)
