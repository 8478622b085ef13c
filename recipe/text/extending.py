"""Ids of new documents that the pool which they are appended to has already: found before it is written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recipe.errors import Problem
from recipe.pools.pool import Pool
from recipe.pools.table import either, row_groups
from recipe.text.documents import RecordsError
from recipe.text.spill import first_numbers, id_hash, ids_of_task, row_of_task

SHOWN = 3
"""Ids that are named; the others are counted."""
_FIX = "--place-ids takes file and line for the id, --id-key names another key; or leave these records out"


def check_new_ids(folder: Path, num_tasks: int, extends: Pool, chosen: NDArray[np.bool_] | None) -> None:
    """Refuse new documents whose ids the extended pool has.

    Args:
        folder: what the first pass left.
        num_tasks: of the first pass.
        extends: the pool that is there.
        chosen: by number, which new documents are appended to it; None: all.

    Raises:
        RecordsError: naming the first ids with both places, and how many there are.
    """
    first = first_numbers(folder, num_tasks)
    of_tasks = []
    for number in range(num_tasks):
        hashes = ids_of_task(folder, number)
        of_tasks.append(hashes if chosen is None else hashes[chosen[first[number] : first[number + 1]]])
    new = np.sort(np.concatenate([*of_tasks, np.zeros(0, np.uint64)]))
    found, total = dict[int | str, str](), 0
    for id, place in _ids_there(extends):
        at = np.searchsorted(new, wanted := np.uint64(id_hash(id)))
        if at < len(new) and new[at] == wanted:
            total += 1
            if len(found) < SHOWN:
                found[id] = place
    if found:
        more = f" (the first {SHOWN} of {total:,})" if total > len(found) else ""
        problems = [
            Problem(source, f"id {id!r}, as {found[id]}", "an id that the extended pool does not have", _FIX)
            for id, source in _places(folder, num_tasks, found)
        ]
        raise RecordsError(f"ids that {extends.path} has already{more}", problems)


def _ids_there(pool: Pool) -> Iterator[tuple[int | str, str]]:
    """Every id of a pool, with where its document came from, as far as the pool says it."""
    number = 0
    for rows in row_groups(pool.layout.table_file(), ("id_int", "id_str", "source")):
        for id, source in zip(either(rows, "id"), rows["source"].to_pylist(), strict=True):
            if id is not None:
                yield id, f"{source or f'document {number:,}'} of {pool.path}"
            number += 1


def _places(folder: Path, num_tasks: int, ids: dict[int | str, str]) -> Iterator[tuple[int | str, str]]:
    """The ids with their places among the sources."""
    hashes = np.array([id_hash(id) for id in ids], np.uint64)
    for number in range(num_tasks):
        for place in np.flatnonzero(np.isin(ids_of_task(folder, number), hashes)).tolist():
            id, _, _, source, *_ = row_of_task(folder, number, place)
            if id in ids:
                yield id, source
