"""Tokens near cuts: which parts of a pool have to be mapped so that its documents can be cut at edges."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recipe.config import Rule
from recipe.errors import RecipeError
from recipe.pools import Pool
from recipe.sequences.boundaries import Edges, section_table
from recipe.sequences.pieces import Documents, body_starts
from recipe.sequences.windows import Reading


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
        rule: how they are cut.
        of: int64[n] numbers of the documents that runs index, and their lengths and marks.
        runs: int64[k, 3]: (document, a, b).

    Returns:
        the reading, and the parts it points into: hold them while it is used.
    """
    numbers, measured = of
    stored = body_starts(pool, numbers, measured)
    first = np.minimum(rule.window - 1, rule.room - measured.fronts)
    index = np.unique(runs[(runs[:, 1] > 0) | (runs[:, 2] > first[runs[:, 0]]), 0])
    addresses, held = np.zeros(len(numbers), np.uint64), list[NDArray[np.generic]]()
    if rule.align != "section":
        part_of = np.searchsorted(pool.part_documents, numbers[index], side="right") - 1
        for part in np.unique(part_of).tolist():
            tokens = pool.part(part)
            held.append(tokens)
            here = index[part_of == part]
            at = (stored[here] - int(pool.part_offsets[part])) * tokens.itemsize
            addresses[here] = (at + tokens.__array_interface__["data"][0]).astype(np.uint64)
    marker = np.empty(0, pool.token_dtype)
    return Reading(marker, addresses, stored, edges_of(pool, rule)), held
