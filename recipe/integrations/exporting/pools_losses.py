"""What the files of another format cannot say of a pool, counted: named and agreed to, or not exported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.integrations.exporting.pools_documents import Kind, documents_of, kept
from recipe.pools.pool import Pool
from recipe.pools.views import held_documents

_PIECE = 1 << 20


def losses(pool: Pool, kinds: Sequence[Kind], *, as_text: bool) -> dict[str, int]:
    """How much would be lost, by what it is; nothing that there is none of.

    Args:
        pool: whose documents are written.
        kinds: of its ids and groups.
        as_text: whether numbers become texts where there are both.
    """
    found = {
        "section_starts": _held(pool, pool.sections),
        "needs_of_sections": _held(pool, None if pool.needs is None else pool.needs[:, 0]),
        "spans_that_repeat": _held(pool, None if pool.repeats is None else pool.repeats[:, 0]),
        "documents_with_special_tokens_in_front": _with_leads(pool),
    }
    if as_text and "both" in kinds:
        ints, groups = _numbers(pool)
        found["ids_that_are_numbers"] = ints if kinds[0] == "both" else 0
        found["groups_that_are_numbers"] = groups if kinds[1] == "both" else 0
    return {name: count for name, count in found.items() if count}


def _held(pool: Pool, places: NDArray[Any] | None) -> int:
    """How many places, in stored tokens, lie in documents that are exported."""
    if places is None:
        return 0
    pieces = (places[start : start + _PIECE] for start in range(0, len(places), _PIECE))
    documents = (np.searchsorted(pool.offsets, piece, side="right") - 1 for piece in pieces)
    return sum(int(kept(pool, numbers).sum()) for numbers in documents)


def _with_leads(pool: Pool) -> int:
    """Documents with special tokens in front besides BOS."""
    if pool.leads is None:
        return 0
    return sum(
        int(((pool.leads[numbers] > pool.stored_marks(numbers)[0]) & kept(pool, numbers)).sum())
        for numbers in held_documents(pool)
    )


def _numbers(pool: Pool) -> tuple[int, int]:
    ids = groups = 0
    for documents in documents_of(pool):
        rows = documents.rows
        ids += rows.num_rows - rows["id_int"].null_count
        groups += rows.num_rows - rows["group_int"].null_count
    return ids, groups
